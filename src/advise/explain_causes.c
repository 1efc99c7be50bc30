/* SPDX-License-Identifier: MIT
 *
 * The causes that the figures support, most likely first, each with the arithmetic that shows it.
 * Fragmentation is named only where free and unallocated memory together would have covered the
 * request, and first only where it outweighs what lies outside. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "advise/explain_parts.h"

/* So much outside the allocator is more than a context and its libraries. */
#define OUTSIDE_LEAST_BYTES ((int64_t)UF_GIB)
#define OUTSIDE_LEAST_PERCENT 8
/* The driver's figure is read after the failure: so little more than the request proves nothing. */
#define NARROW_BYTES ((int64_t)(64 * UF_MIB))

static UF_PRINTF(3, 4) void add(uf_explanation *out, uf_cause cause, const char *format, ...)
{
    if (uf__explain_has(out, cause)) {
        return;
    }
    va_list list;
    va_start(list, format);
    vsnprintf(out->reasons[out->cause_count], UF_EXPLAIN_TEXT, format, list);
    va_end(list);
    out->causes[out->cause_count++] = cause;
}

#define SIZE(bytes) (uf__explain_size(bytes).text)

/* The printed figures that the rules below ask about. */
typedef struct view {
    uf_amount asked, total, device, allocated;
    const uf_reckoning *sums;
    bool has_fragments, has_outside, is_refused, is_narrow, is_larger, has_spilt;
} view;

static void judge(const uf_message *message, const uf_reckoning *sums, view *out)
{
    *out = (view){.asked = uf__explain_amount(message, UF_FIGURE_REQUESTED),
                  .total = uf__explain_amount(message, UF_FIGURE_TOTAL),
                  .device = uf__explain_amount(message, UF_FIGURE_DEVICE_FREE),
                  .allocated = uf__explain_amount(message, UF_FIGURE_ALLOCATED),
                  .sums = sums};
    bool can_compare = out->asked.is_known && out->device.is_known;
    int64_t spare = out->device.bytes - out->asked.bytes;
    out->is_larger =
        out->asked.is_known && out->total.is_known && out->asked.bytes > out->total.bytes;
    out->has_spilt =
        out->total.is_known && (out->allocated.bytes > out->total.bytes ||
                                (sums->reserved.is_known &&
                                 sums->reserved.bytes > out->total.bytes + sums->rounding_bytes));
    out->is_refused = can_compare && spare >= 0 && !out->is_larger;
    out->is_narrow = out->is_refused && (spare < NARROW_BYTES || spare < out->asked.bytes / 10);
    out->has_fragments = can_compare && spare < 0 && sums->covering.is_known && !out->is_larger &&
                         sums->covering.bytes >= out->asked.bytes && !out->has_spilt;
    uf_amount outside = sums->outside;
    if (!outside.is_known && message->form == UF_MESSAGE_A && sums->gap.is_known) {
        outside = sums->gap;
    }
    int64_t whole = message->form == UF_MESSAGE_P ? sums->limit.bytes : out->total.bytes;
    out->has_outside = outside.is_known && outside.bytes >= OUTSIDE_LEAST_BYTES && whole > 0 &&
                       outside.bytes >= whole / 100 * OUTSIDE_LEAST_PERCENT;
}

static void say_outside(uf_explanation *out, const view *at)
{
    const uf_reckoning *sums = at->sums;
    char who[160] = "";
    if (sums->own_outside.is_known && sums->foreign.is_known) {
        snprintf(who, sizeof who, "; %s of it in this process (context, libraries), %s elsewhere",
                 SIZE(sums->own_outside.bytes), SIZE(sums->foreign.bytes));
    }
    if (out->message.form == UF_MESSAGE_P) {
        add(out, UF_CAUSE_OUTSIDE_MEMORY, "%s are held by other allocations than PyTorch's own",
            SIZE(sums->outside.bytes));
        return;
    }
    const char *what = sums->outside.is_known
                           ? "is held outside PyTorch's allocator"
                           : "is neither free nor allocated by the program: held by others, or "
                             "cached in the pool";
    add(out, UF_CAUSE_OUTSIDE_MEMORY, "total %s - free %s - %s %s = %s %s%s", SIZE(at->total.bytes),
        SIZE(at->device.bytes), sums->reserved.is_known ? "reserved" : "allocated",
        SIZE(sums->reserved.is_known ? sums->reserved.bytes : at->allocated.bytes),
        SIZE(sums->gap.bytes), what, who);
}

static void say_fragments(uf_explanation *out, const view *at)
{
    int64_t unallocated = at->sums->covering.bytes - at->device.bytes;
    add(out, UF_CAUSE_FRAGMENTATION,
        "free %s + unallocated %s = %s, and %s were wanted: enough in all, but not in one piece",
        SIZE(at->device.bytes), SIZE(unallocated), SIZE(at->sums->covering.bytes),
        SIZE(at->asked.bytes));
}

static void say_refused(uf_explanation *out, const view *at)
{
    if (at->is_narrow) {
        add(out, UF_CAUSE_REFUSED_WITH_FREE_MEMORY,
            "free %s covers the %s wanted, but only just, and it was read after the failure",
            SIZE(at->device.bytes), SIZE(at->asked.bytes));
        return;
    }
    add(out, UF_CAUSE_REFUSED_WITH_FREE_MEMORY,
        "the driver shows %s free and %s were wanted: something other than the card said no",
        SIZE(at->device.bytes), SIZE(at->asked.bytes));
}

static void say_limit(uf_explanation *out, const view *at)
{
    const uf_reckoning *sums = at->sums;
    if (sums->is_limit_inferred) {
        add(out, UF_CAUSE_LIMIT,
            "reserved %s + %s would pass %.0f %% of the card (%s): it looks like a memory fraction",
            SIZE(sums->reserved.bytes), SIZE(at->asked.bytes), sums->limit_fraction * 100,
            SIZE(sums->limit.bytes));
        return;
    }
    add(out, UF_CAUSE_LIMIT, "reserved %s + %s would pass the limit of %s",
        SIZE(sums->reserved.bytes), SIZE(at->asked.bytes), SIZE(sums->limit.bytes));
}

/* A snapshot has the driver's figure, and no limit; what is reserved is that of its end. */
static void say_snapshot_limit(uf_explanation *out, const view *at)
{
    if (at->sums->limit.is_known) {
        add(out, UF_CAUSE_LIMIT, "the program ran under a limit of %s, and the driver had %s left",
            SIZE(at->sums->limit.bytes), SIZE(at->device.bytes));
        return;
    }
    add(out, UF_CAUSE_LIMIT,
        "the driver had %s left for %s: most likely a memory fraction, which no snapshot records",
        SIZE(at->device.bytes), SIZE(at->asked.bytes));
}

static void say_full(uf_explanation *out, const view *at)
{
    if (at->is_narrow) {
        add(out, UF_CAUSE_SIMPLY_FULL, "the card is as good as full: %s free of %s",
            SIZE(at->device.bytes), SIZE(at->total.bytes));
    } else if (at->sums->covering.is_known && at->asked.is_known) {
        add(out, UF_CAUSE_SIMPLY_FULL,
            "%s were wanted; free %s and all that is cached make %s: %s short",
            SIZE(at->asked.bytes), SIZE(at->device.bytes), SIZE(at->sums->covering.bytes),
            SIZE(at->asked.bytes - at->sums->covering.bytes));
    } else if (at->asked.is_known && at->device.is_known) {
        add(out, UF_CAUSE_SIMPLY_FULL, "%s were wanted and %s are free", SIZE(at->asked.bytes),
            SIZE(at->device.bytes));
    } else {
        add(out, UF_CAUSE_SIMPLY_FULL, "what is wanted does not fit beside what is allocated");
    }
}

static bool passes_limit(const view *at)
{
    const uf_reckoning *sums = at->sums;
    return sums->limit.is_known && at->asked.is_known && sums->reserved.is_known &&
           sums->reserved.bytes + at->asked.bytes > sums->limit.bytes - sums->rounding_bytes;
}

/* CUDA, ROCm and Intel, and cudaMallocAsync. */
static void native_causes(uf_explanation *out, const view *at)
{
    const uf_reckoning *sums = at->sums;
    if (at->is_larger) {
        add(out, UF_CAUSE_TOO_LARGE_FOR_CARD, "one request of %s, and the card has %s in all",
            SIZE(at->asked.bytes), SIZE(at->total.bytes));
    }
    if (at->has_spilt) {
        int64_t held = sums->reserved.is_known ? sums->reserved.bytes : at->allocated.bytes;
        add(out, UF_CAUSE_HOST_SPILL,
            "%s are held on a card of %s: the driver has moved at least %s into main memory",
            SIZE(held), SIZE(at->total.bytes), SIZE(held - at->total.bytes));
    }
    if (passes_limit(at) && !sums->is_limit_inferred) {
        say_limit(out, at);
    }
    bool is_snapshot = out->message.form == UF_MESSAGE_SNAPSHOT;
    if (is_snapshot && at->is_refused) {
        say_snapshot_limit(out, at);
    }
    /* Where the limit is known it is the limit that said no. */
    if (at->is_refused && !at->is_narrow && !(is_snapshot && passes_limit(at))) {
        say_refused(out, at);
    }
    if (passes_limit(at)) {
        say_limit(out, at);
    }
    int64_t unallocated = sums->covering.bytes - at->device.bytes;
    bool is_outside_first =
        at->has_outside && (!at->has_fragments || sums->gap.bytes > unallocated);
    if (is_outside_first) {
        say_outside(out, at);
    }
    if (at->has_fragments) {
        say_fragments(out, at);
    }
    if (at->has_outside) {
        say_outside(out, at);
    }
    if (at->is_narrow) {
        say_refused(out, at);
        say_full(out, at);
    }
    if (out->cause_count == 0 && at->asked.is_known && at->device.is_known &&
        sums->covering.is_known) {
        say_full(out, at);
    }
    if (out->cause_count == 0 && out->message.form == UF_MESSAGE_A && at->asked.is_known &&
        at->device.is_known) {
        say_full(out, at);
    }
}

/* Without the driver's figure nobody knows whether the rest of the card is free. */
static void blind_causes(uf_explanation *out, const view *at)
{
    const uf_reckoning *sums = at->sums;
    add(out, UF_CAUSE_INCOMPLETE_MESSAGE, "the message does not say how much the driver had free");
    if (at->is_larger || !at->total.is_known || !sums->reserved.is_known || !at->asked.is_known ||
        sums->reserved.bytes + at->asked.bytes > at->total.bytes) {
        return;
    }
    int64_t rest = at->total.bytes - sums->reserved.bytes;
    add(out, UF_CAUSE_REFUSED_WITH_FREE_MEMORY,
        "PyTorch holds %s of %s, so %s + %s would fit if nobody else holds memory",
        SIZE(sums->reserved.bytes), SIZE(at->total.bytes), SIZE(sums->reserved.bytes),
        SIZE(at->asked.bytes));
    add(out, UF_CAUSE_OUTSIDE_MEMORY, "or others hold more than %s of the %s that PyTorch does not",
        SIZE(rest - at->asked.bytes), SIZE(rest));
}

static void apple_causes(uf_explanation *out, const view *at)
{
    const uf_reckoning *sums = at->sums;
    int64_t held = sums->allocated.bytes + sums->outside.bytes;
    if (at->has_outside && sums->outside.bytes > sums->allocated.bytes) {
        say_outside(out, at);
    }
    if (sums->limit.is_known && at->asked.is_known) {
        add(out, UF_CAUSE_LIMIT, "allocated %s + other %s + wanted %s = %s, and %s are allowed",
            SIZE(sums->allocated.bytes), SIZE(sums->outside.bytes), SIZE(at->asked.bytes),
            SIZE(held + at->asked.bytes), SIZE(sums->limit.bytes));
    }
    if (at->has_outside) {
        say_outside(out, at);
    } else {
        add(out, UF_CAUSE_SIMPLY_FULL, "almost all of it is PyTorch's own: %s",
            SIZE(sums->allocated.bytes));
    }
}

static void vague_causes(uf_explanation *out, const view *at)
{
    const uf_message *message = &out->message;
    bool is_host = (message->signs & UF_SIGN_PINNED) != 0;
    if (is_host) {
        add(out, UF_CAUSE_HOST_MEMORY, "pinned main memory was asked for: the host refused");
    }
    switch (message->form) {
    case UF_MESSAGE_DRIVER:
        if (at->asked.is_known) {
            add(out, UF_CAUSE_SIMPLY_FULL, "the driver could not give %s", SIZE(at->asked.bytes));
        }
        add(out, UF_CAUSE_INCOMPLETE_MESSAGE,
            "the driver's error has no figures; it did not come from the caching allocator");
        add(out, UF_CAUSE_OUTSIDE_MEMORY,
            "whatever asked (a context, a library, a graph) lies outside the caching allocator");
        add(out, UF_CAUSE_HOST_MEMORY, "in WSL and for pinned memory it is the host that refused");
        break;
    case UF_MESSAGE_LIBRARY:
        add(out, UF_CAUSE_OUTSIDE_MEMORY,
            "%s: a library needs memory of its own, and the allocator had taken all but little",
            message->name);
        add(out, UF_CAUSE_INCOMPLETE_MESSAGE, "the error has no figures");
        break;
    case UF_MESSAGE_RMM:
    case UF_MESSAGE_CUPY:
        if ((message->signs & UF_SIGN_POOL_LIMIT) != 0 || at->sums->limit.is_known) {
            add(out, UF_CAUSE_LIMIT, "the pool has reached the maximum it was given");
        }
        add(out, UF_CAUSE_SIMPLY_FULL, "the pool could not grow");
        add(out, UF_CAUSE_INCOMPLETE_MESSAGE, "the error does not say how much was free");
        break;
    case UF_MESSAGE_TENSORFLOW:
    case UF_MESSAGE_XLA:
    case UF_MESSAGE_ONNXRUNTIME:
    case UF_MESSAGE_VLLM:
        add(out, UF_CAUSE_SIMPLY_FULL, "%s could not get the memory it wanted",
            uf__message_form_text(message->form));
        add(out, UF_CAUSE_INCOMPLETE_MESSAGE, "the error does not say who holds the card's memory");
        break;
    default:
        add(out, UF_CAUSE_INCOMPLETE_MESSAGE, "the message has no figures to reckon with");
        break;
    }
}

static void process_causes(const uf_explain_request *request, uf_explanation *out)
{
    const uf_message *message = &out->message;
    switch (message->form) {
    case UF_MESSAGE_KILLED:
        add(out, UF_CAUSE_HOST_MEMORY, "%s: %s", message->name,
            (message->signs & UF_SIGN_HOST_KILLER) != 0
                ? "main memory (or the container's share of it) ran out, not the GPU's"
                : "nearly always the host's memory killer; the GPU's memory never kills a process");
        break;
    case UF_MESSAGE_HOST:
        add(out, UF_CAUSE_HOST_MEMORY, "%s: main memory ran out%s", message->name,
            (message->signs & UF_SIGN_SHARED_MEMORY) != 0 ? " (its shared part)" : "");
        break;
    case UF_MESSAGE_ABORT:
        add(out, UF_CAUSE_NOT_AN_OOM, "%s: %s", message->name,
            (message->signs & UF_SIGN_SETTINGS) != 0
                ? "PyTorch refused its settings string and ended the process"
                : "the process ended itself; at import, a bad settings string does that");
        break;
    case UF_MESSAGE_HANG:
        add(out, UF_CAUSE_HOST_MEMORY,
            "loading stands still without an error: most often main memory is full and the host "
            "swaps");
        break;
    case UF_MESSAGE_ERROR:
        add(out, UF_CAUSE_NOT_AN_OOM, "%s: an error of another kind", message->name);
        break;
    case UF_MESSAGE_BUDGET:
        add(out, UF_CAUSE_NOT_AN_OOM, "a line about how memory will be divided; nothing failed");
        break;
    case UF_MESSAGE_T8:
        add(out, UF_CAUSE_NOT_AN_OOM,
            "a warning: the first try failed, PyTorch gave its cache back and went on");
        break;
    default:
        add(out, UF_CAUSE_NOT_AN_OOM, "%s",
            request->log != NULL ? "there is no out-of-memory message in this text"
                                 : "no request failed in the history of this snapshot");
        break;
    }
}

static void add_leak(const uf_explain_request *request, uf_explanation *out)
{
    const uf_growth *growth = out->growth;
    const uf_snapshot_state *state = request->snapshot;
    if (growth != NULL && (out->cause_count == 0 || out->causes[0] != UF_CAUSE_NOT_AN_OOM ||
                           out->message.form == UF_MESSAGE_GROWTH)) {
        add(out, UF_CAUSE_LEAK,
            "from line %" PRIu64 " to %" PRIu64 ", %" PRIu64 " times, it only grows: %s to %s",
            growth->first_line, growth->last_line, growth->count,
            SIZE((int64_t)growth->first_bytes), SIZE((int64_t)growth->last_bytes));
    }
    if (state != NULL && state->is_growing) {
        add(out, UF_CAUSE_LEAK, "the least that is live grows through the whole history: %s to %s",
            SIZE((int64_t)state->growth_from_bytes), SIZE((int64_t)state->growth_to_bytes));
    }
}

/* What could still be had from the driver: all it has, or what the limit leaves of it. */
static int64_t snapshot_room(const view *at)
{
    const uf_reckoning *sums = at->sums;
    int64_t rest = sums->limit.bytes - sums->reserved.bytes;
    bool is_limited = sums->limit.is_known && sums->reserved.is_known && rest < at->device.bytes;
    return !is_limited ? at->device.bytes : rest > 0 ? rest : 0;
}

/* The snapshot knows the largest hole; the message only the sum. */
static void add_snapshot(const uf_explain_request *request, uf_explanation *out, const view *at)
{
    const uf_snapshot_state *state = request->snapshot;
    if (state == NULL || !at->asked.is_known || state->pinned_count == 0 || at->is_larger) {
        return;
    }
    int64_t between = (int64_t)state->between_bytes, room = snapshot_room(at);
    bool is_of_failure = (int64_t)state->largest_cached_bytes < at->asked.bytes; /* not of later */
    if (out->message.form == UF_MESSAGE_SNAPSHOT && is_of_failure && room < at->asked.bytes &&
        room + between >= at->asked.bytes) {
        add(out, UF_CAUSE_FRAGMENTATION,
            "%s lie between live blocks, the largest piece has %s, and %s were wanted",
            SIZE(between), SIZE((int64_t)state->largest_cached_bytes), SIZE(at->asked.bytes));
    }
}

static bool is_native(uf_message_form form)
{
    return (form >= UF_MESSAGE_T1 && form <= UF_MESSAGE_X2 && form != UF_MESSAGE_T8) ||
           form == UF_MESSAGE_A || form == UF_MESSAGE_SUMMARY || form == UF_MESSAGE_SNAPSHOT;
}

void uf__explain_causes(const uf_explain_request *request, uf_explanation *out)
{
    const uf_message *message = &out->message;
    view at;
    judge(message, &out->reckoning, &at);
    if (message->form == UF_MESSAGE_GROWTH) {
        add_leak(request, out);
    } else if (message->form == UF_MESSAGE_BAD_SIZE) {
        add(out, UF_CAUSE_TOO_LARGE_FOR_CARD,
            "a request of 2^60 bytes or more: a size that was computed wrongly");
    } else if (message->form == UF_MESSAGE_P) {
        apple_causes(out, &at);
    } else if (is_native(message->form)) {
        bool is_blind = message->form == UF_MESSAGE_X0 || message->form == UF_MESSAGE_X1;
        if (out->reckoning.limit.is_known) {
            add_snapshot(request, out, &at); /* what fits under the limit failed for its holes */
        }
        native_causes(out, &at);
        if (is_blind) {
            blind_causes(out, &at);
        } else if ((message->signs & UF_SIGN_CUT) != 0 || out->cause_count == 0) {
            add(out, UF_CAUSE_INCOMPLETE_MESSAGE, "the message is cut: figures are missing");
        }
        add_snapshot(request, out, &at);
    } else if (message->form == UF_MESSAGE_T0 || message->form == UF_MESSAGE_BARE ||
               (message->form >= UF_MESSAGE_DRIVER && message->form <= UF_MESSAGE_VLLM)) {
        vague_causes(out, &at);
    } else {
        process_causes(request, out);
    }
    add_leak(request, out);
}
