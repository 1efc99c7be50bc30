/* SPDX-License-Identifier: MIT
 *
 * The text report of a replay: what was played, the peaks, the verdict. */
#include "replay_report.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/size.h"
#include "table.h"

typedef char size_text[UF_SIZE_TEXT_CAPACITY];
typedef char count_text[CLI_COUNT_TEXT_CAPACITY];

#define SIZE(buffer, bytes) uf__size_format(buffer, sizeof(buffer), bytes)

double replay_waste_percent(const uf_replay_result *result)
{
    if (result->peak_live_bytes == 0) {
        return 0.0;
    }
    double live = (double)result->peak_live_bytes;
    return ((double)result->peak_reserved_bytes - live) / live * 100.0;
}

static void print_played(const replay_view *view)
{
    const uf_program_report *followed = view->followed;
    const char *conf = view->run.conf != NULL ? view->run.conf : uf_program_conf(view->program);
    count_text events, played, allocs;
    size_text limit, card;
    printf("recording      %s, device %" PRId32 "\n", view->options->input,
           view->trace->devices[view->device_position].device);
    printf("events         %s", cli_count_format(events, followed->event_count));
    if (view->result.event_count != followed->event_count) {
        printf(" recorded, %s played", cli_count_format(played, view->result.event_count));
    }
    printf(", %s allocations; %" PRIu64 " streams, %" PRIu64 " private pools\n",
           cli_count_format(allocs, view->result.alloc_count), followed->stream_count,
           followed->pool_count);
    printf("settings       %s%s\n", conf[0] != '\0' ? conf : "PyTorch's defaults",
           view->run.conf == NULL ? " (as recorded)" : "");
    uint64_t card_bytes = view->run.card_bytes;
    uint64_t limit_bytes = view->run.limit_bytes;
    printf("memory         ");
    if (card_bytes != 0) {
        printf("card of %s", SIZE(card, card_bytes));
    } else {
        printf("more than enough (no --card given)");
    }
    if (limit_bytes != 0) {
        printf(", limit %s%s", SIZE(limit, limit_bytes),
               view->is_limit_recorded ? " (as recorded)" : "");
    }
    printf("\n");
}

static void print_peaks(const replay_view *view)
{
    const uf_replay_result *result = &view->result;
    size_text live, active, reserved, end_reserved, end_active;
    count_text calls, syncs, retries;
    printf("\n");
    printf("peak live      %10s   the floor: what the program itself held at once\n",
           SIZE(live, result->peak_live_bytes));
    printf("peak active    %10s   with rounding, and blocks that wait for other streams\n",
           SIZE(active, result->peak_active_bytes));
    printf("peak reserved  %10s   ", SIZE(reserved, result->peak_reserved_bytes));
    if (view->result.has_oom && view->run.on_oom == UF_ON_OOM_STOP) {
        printf("until the request that failed\n");
    } else {
        printf("%.1f %% over peak live\n", replay_waste_percent(result));
    }
    printf("at the end     %10s   reserved, %s of it active\n",
           SIZE(end_reserved, result->end_reserved_bytes),
           SIZE(end_active, result->end_active_bytes));
    printf("retries        %10s   requests that gave the cache back and tried again\n",
           cli_count_format(retries, result->retry_count));
    printf("driver calls   %10s   %.1f ms by the latency model, %s waits for the device\n",
           cli_count_format(calls, result->device_calls), result->device_ms,
           cli_count_format(syncs, result->device_syncs));
}

static void print_fragmentation(const uf_fragmentation *state)
{
    if (!state->is_alarm || state->largest_request_bytes == 0) {
        return;
    }
    size_text fragmented, largest;
    printf("fragmentation  %.0f %% of reserved is cached in pieces: %s, and the largest request "
           "it can serve is %s\n",
           state->fragmented_share * 100.0, SIZE(fragmented, (uint64_t)state->fragmented_bytes),
           SIZE(largest, state->largest_request_bytes));
}

static void print_range(const replay_view *view)
{
    const uf_replay_result *result = &view->result;
    count_text recorded;
    if (view->is_as_recorded && result->oom_count > 0) {
        printf("failed         %10s   requests, as recorded\n",
               cli_count_format(recorded, result->oom_count));
    } else if (result->recorded_oom_count > 0 && !view->options->is_verify) {
        printf("note           %s requests failed when this was recorded; they are counted, not "
               "replayed: the program took another way after them\n",
               cli_count_format(recorded, result->recorded_oom_count));
    }
    if (view->options->repeat_count > 1) {
        count_text first;
        if (result->steady_first_event == UF_EVENT_NONE) {
            printf("repeated       no steady part was found: played once\n");
        } else {
            printf("repeated       the steady part, from event %s in %" PRIu64 " pieces, %" PRIu32
                   " times%s\n",
                   cli_count_format(first, result->steady_first_event), result->steady_piece_count,
                   view->options->repeat_count,
                   view->options->has_shuffle ? ", in another order each time" : "");
        }
    }
}

static void print_oom(const uf_oom *oom, uint32_t repeat_count)
{
    size_text requested, rounded, segment, allocated, active, reserved, device_free, largest;
    count_text event;
    printf("event %s", cli_count_format(event, oom->event));
    if (repeat_count > 1) {
        printf(" of repetition %" PRIu32, oom->repetition + 1);
    }
    printf(" asks for %s (%" PRIu64 " bytes; %s rounded, %s from the driver) on stream %" PRIu64
           "%s.\n",
           SIZE(requested, oom->requested_bytes), oom->requested_bytes,
           SIZE(rounded, oom->rounded_bytes), SIZE(segment, oom->segment_bytes), oom->stream,
           oom->is_in_private_pool ? " in a private pool" : "");
    printf("At that moment: allocated %s, active %s, reserved %s, free on the card %s; the largest "
           "cached block it could take is %s.\n",
           SIZE(allocated, oom->allocated_bytes), SIZE(active, oom->active_bytes),
           SIZE(reserved, oom->reserved_bytes), SIZE(device_free, oom->device_free_bytes),
           SIZE(largest, oom->largest_free_block_bytes));
}

static void print_fit(const replay_view *view)
{
    const uf_replay_result *result = &view->result;
    bool has_bound = view->run.card_bytes != 0 || view->run.limit_bytes != 0;
    count_text events, failures;
    printf("\n");
    if (result->has_oom) {
        printf("It does not fit: ");
        print_oom(&result->first_oom, view->options->repeat_count);
        if (view->run.on_oom == UF_ON_OOM_SKIP) {
            printf("%s requests failed in all.\n", cli_count_format(failures, result->oom_count));
        }
    } else if (has_bound && !view->is_as_recorded) {
        printf("It fits.\n");
    }
    double seconds = (double)result->elapsed_ns / 1e9;
    printf("Replayed %s events in %.3f s.\n", cli_count_format(events, result->event_count),
           seconds);
}

static void print_lost_beginning(const uf_program_report *followed)
{
    if (!followed->has_lost_beginning) {
        return;
    }
    count_text segments, blocks, unexplained;
    printf("beginning      lost: %s segments and %s blocks of it were rebuilt; %s events are not "
           "explained by them\n",
           cli_count_format(segments, followed->start_segment_count),
           cli_count_format(blocks, followed->start_block_count),
           cli_count_format(unexplained, followed->unexplained_events));
}

static void print_difference(const char *title, const uf_difference *difference)
{
    count_text event;
    if (difference->event == UF_EVENT_NONE) {
        printf("%-14s final state: %s\n", title, difference->text);
    } else {
        printf("%-14s event %s: %s\n", title, cli_count_format(event, difference->event),
               difference->text);
    }
}

static void print_statistics(const replay_view *view)
{
    const replay_stats_comparison *comparison = &view->comparison;
    if (!view->is_compared) {
        printf("statistics     not compared: %s\n",
               view->recorded->is_there ? "the recording's beginning is lost"
                                        : "there is no file of recorded statistics");
        return;
    }
    printf("statistics     %zu of %zu equal\n", comparison->equal_count,
           comparison->compared_count);
    if (comparison->first_difference[0] != '\0') {
        printf("differs        %s\n", comparison->first_difference);
    }
    if (comparison->sync_model != comparison->sync_recorded) {
        printf("note           num_sync_all_streams: recorded %" PRId64 ", replayed %" PRId64
               " (an empty_cache that releases nothing leaves no event)\n",
               comparison->sync_recorded, comparison->sync_model);
    }
}

static void print_verify(const replay_view *view)
{
    const uf_program_report *followed = view->followed;
    count_text equal, events, segments, blocks, flushes, relabels;
    printf("\n");
    printf("verify         %s of %s events equal\n",
           cli_count_format(equal, followed->events_equal),
           cli_count_format(events, followed->event_count));
    if (!followed->is_equal) {
        print_difference("differs", &followed->difference);
    } else {
        printf("final state    %s segments and %s blocks equal\n",
               cli_count_format(segments, followed->final_segment_count),
               cli_count_format(blocks, followed->final_block_count));
    }
    printf("inferred       %s calls of empty_cache; %s segments moved to private pools\n",
           cli_count_format(flushes, followed->empty_cache_count),
           cli_count_format(relabels, followed->relabel_count));
    print_statistics(view);
    printf("\n%s\n", view->is_good ? "Equal to the recording." : "Not equal to the recording.");
}

static void print_contradictions(const uf_program_report *followed)
{
    if (followed->contradiction_count == 0) {
        return;
    }
    count_text count;
    printf("contradictions %s in the recording itself; the first one:\n",
           cli_count_format(count, followed->contradiction_count));
    print_difference("", &followed->contradiction);
}

bool replay_report_summary(const uf_stats *stats, int32_t device)
{
    char text[UF_SUMMARY_CAPACITY];
    uf_error error;
    if (uf_summary_write(stats, device, false, text, sizeof text, NULL, &error) != UF_OK) {
        return false;
    }
    fputs(text, stdout);
    return true;
}

bool replay_report_text(const replay_view *view)
{
    print_played(view);
    print_lost_beginning(view->followed);
    print_contradictions(view->followed);
    print_peaks(view);
    print_fragmentation(&view->result.fragmentation);
    print_range(view);
    if (view->options->is_verify) {
        print_verify(view);
    } else {
        print_fit(view);
    }
    if (view->options->is_summary) {
        printf("\n");
        return replay_report_summary(&view->result.stats,
                                     view->trace->devices[view->device_position].device);
    }
    return true;
}
