/* SPDX-License-Identifier: MIT
 *
 * The arithmetic. What the printed numbers are:
 *
 *     total |........ allocated ........|. cached .|.... outside ....|. driver-free .|
 *           |---------- reserved ------------------|
 *
 * T1 prints cached; T2, T3 and X0 print reserved; later releases print unallocated = reserved -
 * allocated. From 2.4 on the cached blocks of private pools are counted as allocated. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "advise/explain_parts.h"

#define FAR_BYTES (INT64_C(1) << 60)

uf_amount uf__explain_amount(const uf_message *message, uf_figure_kind kind)
{
    const uf_figure *figure = &message->figures[kind];
    bool is_known = figure->is_known && figure->bytes < (uint64_t)FAR_BYTES;
    return (uf_amount){is_known, is_known ? (int64_t)figure->bytes : 0};
}

uf_amount uf__explain_unallocated(const uf_explanation *explanation)
{
    const uf_message *message = &explanation->message;
    uf_amount printed = uf__explain_amount(message, UF_FIGURE_UNALLOCATED);
    if (!printed.is_known) {
        printed = uf__explain_amount(message, UF_FIGURE_CACHED);
    }
    uf_amount allocated = uf__explain_amount(message, UF_FIGURE_ALLOCATED);
    uf_amount reserved = uf__explain_amount(message, UF_FIGURE_RESERVED);
    if (!printed.is_known && allocated.is_known && reserved.is_known &&
        reserved.bytes >= allocated.bytes) {
        return (uf_amount){true, reserved.bytes - allocated.bytes};
    }
    return printed;
}

uf_size_text uf__explain_size(int64_t bytes)
{
    uf_size_text size;
    uint64_t magnitude = bytes < 0 ? 0 - (uint64_t)bytes : (uint64_t)bytes;
    size.text[0] = '-';
    uf__size_format(size.text + (bytes < 0), sizeof size.text - 1, magnitude);
    return size;
}

static UF_PRINTF(2, 3) void contradict(uf_explanation *explanation, const char *format, ...)
{
    if (explanation->contradiction_count < UF_EXPLAIN_CONTRADICTION_CAPACITY) {
        va_list list;
        va_start(list, format);
        vsnprintf(explanation->contradictions[explanation->contradiction_count++], UF_EXPLAIN_TEXT,
                  format, list);
        va_end(list);
    }
}

static uf_amount known(int64_t bytes)
{
    return (uf_amount){true, bytes};
}

static void reckon_reserved(const uf_message *message, uf_reckoning *out)
{
    uf_amount allocated = uf__explain_amount(message, UF_FIGURE_ALLOCATED);
    uf_amount reserved = uf__explain_amount(message, UF_FIGURE_RESERVED);
    uf_amount cached = uf__explain_amount(message, UF_FIGURE_CACHED);
    uf_amount unallocated = uf__explain_amount(message, UF_FIGURE_UNALLOCATED);
    uf_amount pools = uf__explain_amount(message, UF_FIGURE_PRIVATE);
    if (!allocated.is_known) {
        out->reserved = reserved;
        out->cached = unallocated.is_known ? unallocated : cached;
        return;
    }
    out->allocated = known(allocated.bytes - (pools.is_known ? pools.bytes : 0));
    if (reserved.is_known) {
        out->reserved = reserved;
        out->cached = known(reserved.bytes - allocated.bytes);
    } else if (cached.is_known) {
        out->reserved = known(allocated.bytes + cached.bytes);
        out->cached = cached;
    } else if (unallocated.is_known) {
        out->reserved = known(allocated.bytes + unallocated.bytes);
        out->cached = known(out->reserved.bytes - out->allocated.bytes);
    }
}

static void reckon_rounding(const uf_message *message, uf_reckoning *out)
{
    for (size_t i = 0; i < UF_FIGURE_COUNT; i++) {
        if (i != UF_FIGURE_REQUESTED && i != UF_FIGURE_OTHERS && message->figures[i].is_known) {
            out->rounding_bytes += (int64_t)message->figures[i].rounding_bytes;
        }
    }
    out->rounding_bytes += out->rounding_bytes / 8 + 1;
}

/* The tensor behind a request: PyTorch names the segment it wanted (since 1.2 or so). */
static void reckon_wanted(const uf_message *message, uf_reckoning *out)
{
    uf_amount asked = uf__explain_amount(message, UF_FIGURE_REQUESTED);
    bool is_native = message->form >= UF_MESSAGE_T1 && message->form <= UF_MESSAGE_X2 &&
                     message->form != UF_MESSAGE_T8;
    if (!asked.is_known || !is_native) {
        return;
    }
    int64_t mib = (int64_t)UF_MIB;
    if (asked.bytes == 2 * mib) {
        out->least_wanted = known(1);
        out->most_wanted = known(mib);
    } else if (asked.bytes == 20 * mib) {
        out->least_wanted = known(mib + 1);
        out->most_wanted = known(20 * mib);
    } else if (asked.bytes >= 10 * mib &&
               (asked.bytes > (int64_t)UF_GIB || asked.bytes % (2 * mib) == 0)) {
        out->least_wanted = known(asked.bytes - 2 * mib + 1);
        out->most_wanted = asked;
    }
    out->is_segment = out->most_wanted.is_known;
}

/* A limit that is set but not printed (before 2.10 or so): the reserve stops right below a round
 * share of the card although the driver has plenty. */
static void infer_limit(const uf_message *message, uf_reckoning *out)
{
    uf_amount asked = uf__explain_amount(message, UF_FIGURE_REQUESTED);
    uf_amount total = uf__explain_amount(message, UF_FIGURE_TOTAL);
    uf_amount device = uf__explain_amount(message, UF_FIGURE_DEVICE_FREE);
    if (!asked.is_known || !total.is_known || !device.is_known || !out->reserved.is_known ||
        device.bytes < asked.bytes + total.bytes / 20) {
        return;
    }
    for (int percent = 5; percent < 100; percent += 5) {
        int64_t limit = total.bytes / 100 * percent;
        int64_t over = out->reserved.bytes + asked.bytes - limit;
        if (over + out->rounding_bytes > 0 && over < asked.bytes + out->rounding_bytes &&
            limit - out->reserved.bytes < total.bytes / 1000) {
            out->limit = known(limit);
            out->is_limit_inferred = true;
            out->limit_fraction = percent / 100.0;
            return;
        }
    }
}

static void reckon_processes(const uf_message *message, uf_reckoning *out)
{
    uf_amount process = uf__explain_amount(message, UF_FIGURE_PROCESS);
    uf_amount total = uf__explain_amount(message, UF_FIGURE_TOTAL);
    uf_amount device = uf__explain_amount(message, UF_FIGURE_DEVICE_FREE);
    /* A single process by number that holds all of the reserve can only be this one. */
    uf_amount numbered = uf__explain_amount(message, UF_FIGURE_OTHERS);
    if (!process.is_known && message->process_count == 1 && numbered.is_known &&
        out->reserved.is_known && numbered.bytes >= out->reserved.bytes) {
        process = numbered;
    }
    if (process.is_known && out->reserved.is_known && process.bytes >= out->reserved.bytes) {
        out->own_outside = known(process.bytes - out->reserved.bytes);
    }
    if (process.is_known && total.is_known && device.is_known &&
        total.bytes - device.bytes >= process.bytes) {
        out->foreign = known(total.bytes - device.bytes - process.bytes);
    }
}

static void find_contradictions(uf_explanation *explanation)
{
    const uf_message *message = &explanation->message;
    const uf_reckoning *out = &explanation->reckoning;
    uf_amount total = uf__explain_amount(message, UF_FIGURE_TOTAL);
    uf_amount device = uf__explain_amount(message, UF_FIGURE_DEVICE_FREE);
    uf_amount allocated = uf__explain_amount(message, UF_FIGURE_ALLOCATED);
    uf_amount process = uf__explain_amount(message, UF_FIGURE_PROCESS);
    uf_amount pools = uf__explain_amount(message, UF_FIGURE_PRIVATE);
    int64_t slack = out->rounding_bytes;
    if (total.is_known && device.is_known && device.bytes > total.bytes + slack) {
        contradict(explanation, "more is free (%s) than the card has (%s)",
                   uf__explain_size(device.bytes).text, uf__explain_size(total.bytes).text);
    }
    if (out->reserved.is_known && allocated.is_known &&
        out->reserved.bytes + slack < allocated.bytes) {
        contradict(explanation, "more is allocated (%s) than reserved (%s)",
                   uf__explain_size(allocated.bytes).text,
                   uf__explain_size(out->reserved.bytes).text);
    }
    bool has_spilt =
        total.is_known && out->reserved.is_known && out->reserved.bytes > total.bytes + slack;
    if (out->gap.is_known && out->gap.bytes < -slack && !has_spilt) {
        contradict(explanation, "free and reserved together exceed the card by %s",
                   uf__explain_size(-out->gap.bytes).text);
    }
    if (process.is_known && out->reserved.is_known && !has_spilt &&
        process.bytes + slack < out->reserved.bytes) {
        contradict(explanation,
                   "the driver counts less for this process (%s) than the allocator holds (%s)",
                   uf__explain_size(process.bytes).text,
                   uf__explain_size(out->reserved.bytes).text);
    }
    if (pools.is_known && allocated.is_known && pools.bytes > allocated.bytes + slack) {
        contradict(explanation, "private pools (%s) exceed what is allocated (%s)",
                   uf__explain_size(pools.bytes).text, uf__explain_size(allocated.bytes).text);
    }
}

/* Apple: allocated + other allocations stand against a watermark, not against a card. */
static void reckon_apple(const uf_message *message, uf_reckoning *out)
{
    out->allocated = uf__explain_amount(message, UF_FIGURE_ALLOCATED);
    out->outside = uf__explain_amount(message, UF_FIGURE_OUTSIDE);
    out->limit = uf__explain_amount(message, UF_FIGURE_ALLOWED);
}

void uf__explain_reckon(uf_explanation *explanation)
{
    const uf_message *message = &explanation->message;
    uf_reckoning *out = &explanation->reckoning;
    *out = (uf_reckoning){0};
    reckon_rounding(message, out);
    if (message->form == UF_MESSAGE_P) {
        reckon_apple(message, out);
        return;
    }
    reckon_reserved(message, out);
    reckon_wanted(message, out);
    out->limit = uf__explain_amount(message, UF_FIGURE_ALLOWED);
    if (out->cached.bytes < 0) {
        bool is_rounding = out->cached.bytes >= -out->rounding_bytes;
        out->cached = (uf_amount){is_rounding, 0};
    }
    uf_amount total = uf__explain_amount(message, UF_FIGURE_TOTAL);
    uf_amount device = uf__explain_amount(message, UF_FIGURE_DEVICE_FREE);
    uf_amount asked = uf__explain_amount(message, UF_FIGURE_REQUESTED);
    /* The share that only this message's own pools can give back is no help to others. */
    uf_amount pools = uf__explain_amount(message, UF_FIGURE_PRIVATE);
    int64_t usable = out->cached.bytes - (pools.is_known ? pools.bytes : 0);
    bool is_held_known = out->reserved.is_known || message->form == UF_MESSAGE_A;
    int64_t held = out->reserved.is_known ? out->reserved.bytes : out->allocated.bytes;
    if (total.is_known && device.is_known && is_held_known &&
        (out->reserved.is_known || out->allocated.is_known)) {
        out->gap = known(total.bytes - device.bytes - held);
    }
    if (device.is_known && out->cached.is_known) {
        out->covering = known(device.bytes + (usable > 0 ? usable : 0));
    }
    if (out->gap.is_known && out->reserved.is_known && out->gap.bytes >= -out->rounding_bytes) {
        out->outside = known(out->gap.bytes > 0 ? out->gap.bytes : 0);
    }
    if (asked.is_known && device.is_known && asked.bytes > device.bytes) {
        out->missing = known(asked.bytes - device.bytes);
    }
    reckon_processes(message, out);
    find_contradictions(explanation);
    if (!out->limit.is_known && explanation->contradiction_count == 0) {
        infer_limit(message, out);
    }
}
