/* SPDX-License-Identifier: MIT
 *
 * The text report of a replay: what was played, the peaks, the verdict. */
#include "replay_report.h"

#include <inttypes.h>
#include <stdio.h>

#include "replay_fit.h"
#include "replay_groups.h"
#include "replay_text.h"

double replay_waste_percent(const uf_replay_result *result)
{
    if (result->peak_live_bytes == 0) {
        return 0.0;
    }
    double live = (double)result->peak_live_bytes;
    return ((double)result->peak_reserved_bytes - live) / live * 100.0;
}

const char *replay_conf(const replay_view *view)
{
    const char *recorded = replay_is_paged(view) ? "" : uf_program_conf(view->program);
    return view->run.conf != NULL ? view->run.conf : recorded;
}

const char *replay_cost_name(const replay_view *view)
{
    return view->run.cost_model == UF_COST_A100 ? "a100" : "h200";
}

double replay_moving_ms(const uf_replay_result *result)
{
    double moving_ms = result->device_ms - result->device_first_ms - result->device_emptied_ms;
    return moving_ms > 0.0 ? moving_ms : 0.0; /* differences of times that are sums */
}

bool replay_is_inexact(const replay_view *view)
{
    return view->trace->form != UF_FORM_SCRIPT && !view->followed->is_equal;
}

/* The limit a program ran under is not in its snapshot. */
static bool is_limit_unknown(const replay_view *view)
{
    return view->options->limit_bytes == 0 && view->input->limit_bytes == 0;
}

void replay_print_inexact(const replay_view *view)
{
    const uf_program_report *followed = view->followed;
    count_text event;
    if (!replay_is_inexact(view) || followed->contradiction_count > 0) {
        return;
    }
    printf("NOT EXACT      ");
    if (followed->difference.event == UF_EVENT_NONE) {
        printf("in the final state");
    } else if (followed->events_equal == 0) {
        printf("from the first event on");
    } else {
        printf("after event %s", cli_count_format(event, followed->events_equal - 1));
    }
    printf(": %s", followed->difference.text);
    printf("%s\n",
           is_limit_unknown(view) ? "; recorded under a limit? repeat with --limit SIZE" : "");
}

static void print_memory(const replay_view *view)
{
    size_text limit, card, near;
    const char *separator = "";
    printf("memory         ");
    if (view->run.card_bytes != 0) {
        printf("card of %s", SIZE(card, view->run.card_bytes));
        separator = ", ";
    } else if (view->limit_bytes == 0 && view->trace->form == UF_FORM_SCRIPT) {
        printf("no bound (the script names no card)");
    } else if (view->limit_bytes == 0 && replay_is_paged(view)) {
        printf("no limit");
    } else if (view->limit_bytes == 0) {
        printf("as when recorded (a limit is not in the file)");
    }
    if (view->limit_bytes != 0) {
        printf("%slimit %s%s", separator, SIZE(limit, view->limit_bytes),
               view->is_limit_recorded      ? " (as recorded)"
               : view->run.limit_bytes == 0 ? " (by the settings)"
                                            : "");
    }
    printf("\n");
    if (view->followed->oom_count > 0 && view->limit_bytes == 0 && view->run.card_bytes == 0) {
        printf("               requests failed when recorded: it probably ran under a limit near "
               "%s; give --limit\n",
               SIZE(near, view->recorded_peak_bytes));
    }
}

static void print_settings(const replay_view *view)
{
    const char *conf = replay_conf(view);
    if (replay_is_paged(view)) {
        printf("policy         unfrag: pages move to where blocks are\n");
        if (view->options->lag_ms != 0) {
            printf("device         %" PRIu64 " ms behind the program\n", view->options->lag_ms);
        }
        if (conf[0] != '\0') {
            printf("settings       %s (the rounding alone counts)\n", conf);
        }
        return;
    }
    printf("settings       %s%s\n", conf[0] != '\0' ? conf : "PyTorch's defaults",
           view->run.conf != NULL                ? ""
           : view->trace->form == UF_FORM_SCRIPT ? " (by the script)"
                                                 : " (as recorded)");
}

static void print_played(const replay_view *view)
{
    const uf_program_report *followed = view->followed;
    const uf_replay_result *result = &view->result;
    count_text events, played, allocs;
    printf("recording      %s, device %" PRId32 "\n", view->options->input,
           view->trace->devices[view->device_position].device);
    printf("events         %s", cli_count_format(events, followed->event_count));
    if (result->event_count != followed->event_count) {
        printf(" recorded, %s played", cli_count_format(played, result->event_count));
    }
    printf(", %s allocation%s; %" PRIu64 " stream%s, %" PRIu64 " private pool%s\n",
           cli_count_format(allocs, result->alloc_count), replay_plural(result->alloc_count),
           followed->stream_count, replay_plural(followed->stream_count), followed->pool_count,
           replay_plural(followed->pool_count));
    print_settings(view);
    print_memory(view);
}

/* What stands behind the peak of reserved: a share of peak live only if all was played. */
static void print_waste(const replay_view *view)
{
    const uf_replay_result *result = &view->result;
    if (result->has_oom && view->run.on_oom == UF_ON_OOM_STOP) {
        printf("until the request that failed\n");
    } else if (result->has_oom) {
        printf("without the requests that failed\n");
    } else if (view->options->is_verify && !view->followed->is_equal) {
        printf("until the first difference\n");
    } else {
        printf("%.1f %% over peak live\n", replay_waste_percent(result));
    }
}

/* The unfrag policy gives back no cache; all that it does twice is to wait for other streams. */
static void print_retries(const replay_view *view)
{
    const uf_replay_result *result = &view->result;
    count_text retries;
    if (!replay_is_paged(view)) {
        printf("retries        %10s   requests that gave the cache back and tried again\n",
               cli_count_format(retries, result->retry_count));
    } else if (result->retry_count > 0) {
        printf("waited         %10s   request%s that had to wait for blocks on other streams\n",
               cli_count_format(retries, result->retry_count), replay_plural(result->retry_count));
    }
}

static void print_moving(const uf_replay_result *result)
{
    double moving_ms = replay_moving_ms(result);
    printf("first mapping  %7.1f ms   of it, for memory that was not held before\n",
           result->device_first_ms);
    if (result->device_emptied_ms > 0.0) {
        printf("empty_cache    %7.1f ms   of it, for giving back what those calls asked for\n",
               result->device_emptied_ms);
    }
    printf("moving pages   %7.1f ms   of it", moving_ms);
    if (result->recorded_ms > 0.0) {
        printf(", %.2f %% of the time recorded", moving_ms / result->recorded_ms * 100.0);
    }
    printf("; at most %.1f ms in one request\n", result->longest_stall_ms);
}

static void print_driver(const replay_view *view)
{
    const uf_replay_result *result = &view->result;
    count_text calls, syncs;
    printf("driver calls   %10s   %.1f ms by the latency model%s, %s wait%s for the device\n",
           cli_count_format(calls, result->device_calls), result->device_ms,
           view->run.cost_model == UF_COST_A100 ? " of an A100" : "",
           cli_count_format(syncs, result->device_syncs), replay_plural(result->device_syncs));
    if (replay_is_paged(view)) {
        print_moving(result);
    }
}

static void print_peaks(const replay_view *view)
{
    const uf_replay_result *result = &view->result;
    bool is_part = view->options->from_event != 0 || view->options->to_event != 0;
    size_text live, active, reserved, frozen, end_reserved, end_active;
    count_text calls;
    printf("\n");
    printf("peak live      %10s   the floor: what the program itself held at once (%s)\n",
           SIZE(live, result->peak_live_bytes),
           is_part ? "in this part" : "of the whole recording");
    printf("peak active    %10s   with rounding, and blocks that wait for other streams\n",
           SIZE(active, result->peak_active_bytes));
    printf("peak reserved  %10s   ", SIZE(reserved, result->peak_reserved_bytes));
    print_waste(view);
    if (replay_is_paged(view) && result->peak_frozen_bytes > 0) {
        printf("peak frozen    %10s   in private pools (graphs), where pages never move\n",
               SIZE(frozen, result->peak_frozen_bytes));
    }
    printf("at the end     %10s   reserved, %s of it active\n",
           SIZE(end_reserved, result->end_reserved_bytes),
           SIZE(end_active, result->end_active_bytes));
    print_retries(view);
    print_driver(view);
    if (result->stream_wait_count > 0) {
        printf("forced waits   %10s   for other streams, whose blocks the recording let wait",
               cli_count_format(calls, result->stream_wait_count));
        if (result->stream_wait_ms >= 0.0) {
            printf("; %.0f to %.0f ms", result->longest_stream_wait_ms, result->stream_wait_ms);
        }
        printf("\n");
    }
}

/* One request is served by one block of its own stream and pool, so what is beside the largest one
 * cannot help it, wherever that lies. */
static void print_fragmentation(const uf_fragmentation *state)
{
    if (!state->is_alarm || state->largest_request_bytes == 0 || state->cached_bytes <= 0) {
        return;
    }
    size_text cached, fragmented, largest;
    printf("fragmentation  at the end %s are cached; the largest request they can serve is %s,\n"
           "               so %s (%.0f %% of reserved) do not help it\n",
           SIZE(cached, (uint64_t)state->cached_bytes), SIZE(largest, state->largest_request_bytes),
           SIZE(fragmented, (uint64_t)state->fragmented_bytes), state->fragmented_share * 100.0);
}

static void print_range(const replay_view *view)
{
    const uf_replay_result *result = &view->result;
    count_text recorded;
    if (view->is_as_recorded && result->oom_count > 0) {
        printf("failed         %10s   request%s, as recorded\n",
               cli_count_format(recorded, result->oom_count), replay_plural(result->oom_count));
    } else if (result->recorded_oom_count > 0 && !view->options->is_verify) {
        printf("note           %s request%s failed when this was recorded; counted, not replayed: "
               "the\n"
               "               program took another way after that\n",
               cli_count_format(recorded, result->recorded_oom_count),
               replay_plural(result->recorded_oom_count));
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

static void print_lost_beginning(const uf_program_report *followed)
{
    if (!followed->has_lost_beginning) {
        return;
    }
    count_text segments, blocks, count, first, last;
    uint64_t unexplained = followed->unexplained_events;
    printf("beginning      lost: %s segments and %s blocks of it were rebuilt; %s events are not "
           "explained by them",
           cli_count_format(segments, followed->start_segment_count),
           cli_count_format(blocks, followed->start_block_count),
           cli_count_format(count, unexplained));
    if (unexplained > 0) {
        printf(": %s to %s", cli_count_format(first, followed->event_count - unexplained),
               cli_count_format(last, followed->event_count - 1));
    }
    printf("\n");
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
    if (view->followed->has_given_up) {
        printf("gave up        the search for what the events do not say took too long: it may be "
               "equal all the same\n");
    }
    printf("\n%s\n", view->is_good ? "Equal to the recording." : "Not equal to the recording.");
    if (!followed->is_equal && followed->contradiction_count == 0 && is_limit_unknown(view)) {
        printf("Recorded under a limit? Repeat with --limit SIZE.\n");
    }
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

/* A verdict that is bad news comes before figures that are not the recording's. */
bool replay_report_text(const replay_view *view)
{
    bool is_verify = view->options->is_verify;
    print_played(view);
    if (!is_verify) {
        replay_print_inexact(view);
    }
    print_lost_beginning(view->followed);
    print_contradictions(view->followed);
    if (is_verify && !view->is_good) {
        print_verify(view);
    }
    print_peaks(view);
    if (!replay_is_paged(view)) { /* elsewhere what is cached serves any request */
        print_fragmentation(&view->result.fragmentation);
    }
    print_range(view);
    bool is_printed = replay_groups_print(view);
    if (!is_verify) {
        replay_fit_print(view);
    } else if (view->is_good) {
        print_verify(view);
    }
    if (view->options->is_summary) {
        printf("\n");
        return is_printed &&
               replay_report_summary(&view->result.stats,
                                     view->trace->devices[view->device_position].device);
    }
    return is_printed;
}
