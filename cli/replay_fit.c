/* SPDX-License-Identifier: MIT
 *
 * The verdict. A request fails for one of three reasons:
 *
 *   live blocks + request > bound         too large: no setting helps
 *   live blocks + its segment > bound     rounding: a segment is larger than what it is for
 *   otherwise                             fragmentation: a setting may help
 *
 * where the bound is the limit or the card, whichever refused. */
#include "replay_fit.h"

#include <inttypes.h>
#include <stdio.h>

#include "advise/tune.h"
#include "replay_text.h"

const uint64_t replay_context_bytes = UF_TUNE_ALLOWANCE_BYTES;

bool replay_fit_is_tight(const replay_view *view, const uf_replay_result *result)
{
    uint64_t card_bytes = view->options->card_bytes;
    return card_bytes != 0 && !result->has_oom && result->peak_reserved_bytes <= card_bytes &&
           card_bytes - result->peak_reserved_bytes < replay_context_bytes;
}

static void print_tight(const replay_view *view)
{
    uint64_t card_bytes = view->options->card_bytes;
    size_text left;
    if (!replay_fit_is_tight(view, &view->result)) {
        return;
    }
    printf("It is tight: %s of the card are left, and CUDA's context and libraries take about\n"
           "%" PRIu64 " MiB, which a replay does not subtract. This does: ",
           SIZE(left, card_bytes - view->result.peak_reserved_bytes),
           replay_context_bytes / UF_MIB);
    replay_print_tune(card_bytes, view->options->limit_bytes, view->options->input);
    printf("\n");
}

/* What refused: the limit, or the card. */
typedef struct bound {
    const char *name;
    uint64_t bytes;
} bound;

static bound find_bound(const replay_view *view)
{
    const uf_oom *oom = &view->result.first_oom;
    bool is_limit =
        view->limit_bytes != 0 && oom->reserved_bytes + oom->segment_bytes > view->limit_bytes;
    bool has_card = view->run.card_bytes != 0;
    bound found = {"card",
                   has_card ? view->run.card_bytes : oom->reserved_bytes + oom->device_free_bytes};
    if (is_limit && (!has_card || view->limit_bytes <= found.bytes)) {
        found = (bound){"limit", view->limit_bytes};
    }
    return found;
}

static void print_reason(const replay_view *view)
{
    const uf_oom *oom = &view->result.first_oom;
    bound of = find_bound(view);
    uint64_t cached_bytes = oom->reserved_bytes - oom->active_bytes;
    bool is_whole = view->options->from_event == 0 && view->options->to_event == 0;
    size_text live, bytes, cached, active, largest;
    SIZE(bytes, of.bytes);
    SIZE(cached, cached_bytes);
    SIZE(active, oom->active_bytes);
    printf("why            ");
    if (is_whole && view->result.peak_live_bytes > of.bytes) {
        printf("too large: the program itself holds %s at once (peak live), more than the\n"
               "               %s of %s; no setting helps\n",
               SIZE(live, view->result.peak_live_bytes), of.name, bytes);
    } else if (oom->active_bytes + oom->rounded_bytes > of.bytes) {
        printf("too large: %s in active blocks and this request are more than the\n"
               "               %s of %s together\n",
               active, of.name, bytes);
    } else if (cached_bytes >= oom->rounded_bytes) {
        printf("fragmentation: %s are cached, enough for it, but no piece that it may\n"
               "               take is large enough (the largest is %s), and the %s of %s\n"
               "               leaves no room for a new segment\n",
               cached, SIZE(largest, oom->largest_free_block_bytes), of.name, bytes);
    } else if (oom->active_bytes + oom->segment_bytes > of.bytes) {
        printf(
            "rounding: the request alone would fit, but PyTorch asks the driver for a segment of\n"
            "               %s, and with %s in active blocks the %s of %s has no room for that\n",
            SIZE(largest, oom->segment_bytes), active, of.name, bytes);
    } else {
        printf("fragmentation: with %s in active blocks it would fit the %s of %s, but\n"
               "               another %s are cached, in pieces that are too small for it (the\n"
               "               largest is %s) and cannot be given back\n",
               active, of.name, bytes, cached, SIZE(largest, oom->largest_free_block_bytes));
    }
}

/* Under the unfrag policy: what cannot be moved, and what the request needs besides. */
static void print_terms(const replay_view *view)
{
    const uf_oom *oom = &view->result.first_oom;
    bound of = find_bound(view);
    size_text bytes, active, pinned, frozen, rounded, needed;
    printf("needs          %s rounded, %s in whole pages\n", SIZE(rounded, oom->rounded_bytes),
           SIZE(needed, oom->segment_bytes));
    printf("at that moment %s active, on pages of %s", SIZE(active, oom->active_bytes),
           SIZE(pinned, oom->pinned_bytes));
    if (oom->frozen_bytes != 0) {
        printf(", %s of them frozen in private pools", SIZE(frozen, oom->frozen_bytes));
    }
    printf("\nwhy            these pages cannot be moved, and with those that the request needs "
           "they\n               exceed the %s of %s\n",
           of.name, SIZE(bytes, of.bytes));
}

static void print_oom(const replay_view *view)
{
    const uf_oom *oom = &view->result.first_oom;
    size_text requested, rounded, segment, allocated, active, reserved, left, cached, largest;
    count_text event, bytes;
    stream_text stream;
    printf("It does not fit: ");
    if (view->options->repeat_count > 1) {
        printf("repetition %" PRIu32 " of %" PRIu32 ", ", oom->repetition + 1,
               view->options->repeat_count);
    }
    printf("event %s of the recording fails.\n", cli_count_format(event, oom->event));
    printf("request        %s (%s bytes) on stream %s%s\n", SIZE(requested, oom->requested_bytes),
           cli_count_format(bytes, oom->requested_bytes), replay_stream_text(stream, oom->stream),
           oom->is_in_private_pool ? ", in a private pool" : "");
    if (replay_is_paged(view)) {
        print_terms(view);
        return;
    }
    printf("needs          %s rounded, %s from the driver\n", SIZE(rounded, oom->rounded_bytes),
           SIZE(segment, oom->segment_bytes));
    printf("at that moment %s allocated, %s active, %s reserved\n",
           SIZE(allocated, oom->allocated_bytes), SIZE(active, oom->active_bytes),
           SIZE(reserved, oom->reserved_bytes));
    printf("cached         %s, the largest piece that it could take %s\n",
           SIZE(cached, oom->reserved_bytes - oom->active_bytes),
           SIZE(largest, oom->largest_free_block_bytes));
    if (view->run.card_bytes != 0) {
        printf("left on card   %s\n", SIZE(left, oom->device_free_bytes));
    }
    print_reason(view);
}

void replay_fit_print(const replay_view *view)
{
    const uf_replay_result *result = &view->result;
    bool has_bound = view->run.card_bytes != 0 || view->limit_bytes != 0;
    count_text events, failures;
    printf("\n");
    if (result->has_oom) {
        print_oom(view);
        if (view->run.on_oom == UF_ON_OOM_SKIP) {
            printf("in all         %s request%s failed\n",
                   cli_count_format(failures, result->oom_count), replay_plural(result->oom_count));
        }
        printf("\nTry: ");
        replay_print_tune(view->run.card_bytes, view->run.limit_bytes, view->options->input);
        printf("\n");
    } else if (has_bound && !view->is_as_recorded) {
        printf("It fits.\n");
        print_tight(view);
    }
    double seconds = (double)result->elapsed_ns / 1e9;
    printf("Replayed %s events in %.3f s.\n", cli_count_format(events, result->event_count),
           seconds);
}
