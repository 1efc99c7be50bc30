/* SPDX-License-Identifier: MIT
 *
 * The JSON report of a replay (docs/replay.md lists the keys). Raw bytes; what is not known is
 * null. */
#include "replay_groups.h"
#include "replay_report.h"

#include <stdio.h>

#include "host_memory.h"
#include "json.h"

static void write_event(cli_json *json, const char *key, uint64_t event)
{
    if (event == UF_EVENT_NONE) {
        cli_json_null(json, key);
    } else {
        cli_json_uint64(json, key, event);
    }
}

/* 0 stands for "none given". */
static void write_bound(cli_json *json, const char *key, uint64_t bytes)
{
    if (bytes == 0) {
        cli_json_null(json, key);
    } else {
        cli_json_uint64(json, key, bytes);
    }
}

static void write_difference(cli_json *json, const char *key, const uf_difference *difference)
{
    static const char *const kinds[] = {
        [UF_DIFFERENCE_NONE] = "none",           [UF_DIFFERENCE_EVENT] = "event",
        [UF_DIFFERENCE_SEGMENT] = "segment",     [UF_DIFFERENCE_BLOCK] = "block",
        [UF_DIFFERENCE_UNDEFINED] = "undefined",
    };
    cli_json_object_begin(json, key);
    cli_json_string(json, "kind", kinds[difference->kind]);
    write_event(json, "event", difference->event);
    cli_json_string(json, "text", difference->text);
    cli_json_object_end(json);
}

static void write_oom(cli_json *json, const replay_view *view)
{
    const uf_replay_result *result = &view->result;
    if (!result->has_oom) {
        write_event(json, "first_oom_event", view->first_recorded_oom);
        cli_json_null(json, "first_oom");
        return;
    }
    const uf_oom *oom = &result->first_oom;
    cli_json_uint64(json, "first_oom_event", oom->event);
    cli_json_object_begin(json, "first_oom");
    cli_json_uint64(json, "event", oom->event);
    cli_json_uint64(json, "repetition", oom->repetition);
    cli_json_uint64(json, "requested_bytes", oom->requested_bytes);
    cli_json_uint64(json, "rounded_bytes", oom->rounded_bytes);
    cli_json_uint64(json, "segment_bytes", oom->segment_bytes);
    cli_json_uint64(json, "stream", oom->stream);
    cli_json_bool(json, "is_in_private_pool", oom->is_in_private_pool);
    cli_json_uint64(json, "allocated_bytes", oom->allocated_bytes);
    cli_json_uint64(json, "active_bytes", oom->active_bytes);
    cli_json_uint64(json, "reserved_bytes", oom->reserved_bytes);
    cli_json_uint64(json, "device_free_bytes", oom->device_free_bytes);
    cli_json_uint64(json, "largest_cached_block_bytes", oom->largest_free_block_bytes);
    if (replay_is_paged(view)) {
        cli_json_uint64(json, "pinned_bytes", oom->pinned_bytes);
        cli_json_uint64(json, "frozen_bytes", oom->frozen_bytes);
    } else {
        cli_json_null(json, "pinned_bytes");
        cli_json_null(json, "frozen_bytes");
    }
    cli_json_object_end(json);
}

void replay_bounds_json(cli_json *json, uint64_t card_bytes, uint64_t limit_bytes)
{
    write_bound(json, "limit_bytes", limit_bytes);
    write_bound(json, "card_bytes", card_bytes);
}

void replay_exact_json(cli_json *json, const replay_view *view)
{
    const uf_program_report *followed = view->followed;
    if (view->trace->form == UF_FORM_SCRIPT) { /* there is nothing to be equal to */
        cli_json_null(json, "is_exact");
        cli_json_null(json, "exact_until_event");
        return;
    }
    cli_json_bool(json, "is_exact", followed->is_equal);
    write_event(json, "exact_until_event",
                followed->is_equal ? UF_EVENT_NONE : followed->events_equal);
}

static void write_played(cli_json *json, const replay_view *view)
{
    cli_json_string(json, "input", view->options->input);
    cli_json_int64(json, "device", view->trace->devices[view->device_position].device);
    cli_json_string(json, "policy", replay_is_paged(view) ? "unfrag" : "torch");
    cli_json_string(json, "conf", replay_conf(view));
    cli_json_string(json, "cost", replay_cost_name(view));
    if (replay_is_paged(view)) {
        cli_json_uint64(json, "lag_ms", view->options->lag_ms);
    } else {
        cli_json_null(json, "lag_ms");
    }
    replay_bounds_json(json, view->run.card_bytes, view->limit_bytes);
    replay_exact_json(json, view);
}

static void write_left(cli_json *json, const replay_view *view)
{
    const uf_replay_result *result = &view->result;
    bool is_known = view->run.card_bytes >= result->peak_reserved_bytes && !result->has_oom;
    if (view->run.card_bytes != 0 && is_known) {
        cli_json_uint64(json, "card_left_bytes",
                        view->run.card_bytes - result->peak_reserved_bytes);
    } else {
        cli_json_null(json, "card_left_bytes");
    }
}

/* What device_ms consists of; PyTorch's allocator does not know these parts. */
static void write_moving(cli_json *json, const replay_view *view)
{
    static const char *const keys[] = {"device_first_ms", "device_emptied_ms", "device_moving_ms",
                                       "longest_stall_ms"};
    const uf_replay_result *result = &view->result;
    const double values[] = {result->device_first_ms, result->device_emptied_ms,
                             replay_moving_ms(result), result->longest_stall_ms};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (replay_is_paged(view)) {
            cli_json_double(json, keys[i], values[i]);
        } else {
            cli_json_null(json, keys[i]);
        }
    }
}

static void write_result(cli_json *json, const replay_view *view)
{
    const uf_replay_result *result = &view->result;
    cli_json_uint64(json, "events", result->event_count);
    cli_json_uint64(json, "allocs", result->alloc_count);
    cli_json_uint64(json, "peak_live_bytes", result->peak_live_bytes);
    cli_json_uint64(json, "peak_allocated_bytes", result->peak_allocated_bytes);
    cli_json_uint64(json, "peak_active_bytes", result->peak_active_bytes);
    cli_json_uint64(json, "peak_reserved_bytes", result->peak_reserved_bytes);
    if (replay_is_paged(view)) {
        cli_json_uint64(json, "peak_frozen_bytes", result->peak_frozen_bytes);
    } else {
        cli_json_null(json, "peak_frozen_bytes");
    }
    cli_json_uint64(json, "end_active_bytes", result->end_active_bytes);
    cli_json_uint64(json, "end_reserved_bytes", result->end_reserved_bytes);
    cli_json_uint64(json, "num_ooms", result->oom_count);
    cli_json_uint64(json, "num_alloc_retries", result->retry_count);
    cli_json_uint64(json, "recorded_ooms", result->recorded_oom_count);
    write_oom(json, view);
    cli_json_uint64(json, "device_calls", result->device_calls);
    cli_json_uint64(json, "device_syncs", result->device_syncs);
    cli_json_double(json, "device_ms", result->device_ms);
    cli_json_uint64(json, "stream_waits", result->stream_wait_count);
    if (result->stream_wait_ms >= 0.0) {
        cli_json_double(json, "stream_wait_ms", result->stream_wait_ms);
        cli_json_double(json, "longest_stream_wait_ms", result->longest_stream_wait_ms);
    } else {
        cli_json_null(json, "stream_wait_ms");
        cli_json_null(json, "longest_stream_wait_ms");
    }
    write_moving(json, view);
    if (result->recorded_ms >= 0.0) {
        cli_json_double(json, "recorded_ms", result->recorded_ms);
    } else {
        cli_json_null(json, "recorded_ms");
    }
}

static void write_speed(cli_json *json, const replay_view *view)
{
    double seconds = (double)view->result.elapsed_ns / 1e9;
    cli_json_double(json, "seconds", seconds);
    if (seconds > 0.0) {
        cli_json_double(json, "events_per_second", (double)view->result.event_count / seconds);
    } else {
        cli_json_null(json, "events_per_second");
    }
    cli_json_double(json, "read_seconds", (double)view->read_ns / 1e9);
    cli_json_double(json, "prepare_seconds", (double)view->prepare_ns / 1e9);
    cli_json_uint64(json, "input_bytes", view->trace->input_bytes);
    cli_json_uint64(json, "decoded_bytes", view->trace->decoded_bytes);
    uint64_t peak_bytes;
    if (cli_host_peak(&peak_bytes)) {
        cli_json_uint64(json, "host_peak_bytes", peak_bytes);
    } else {
        cli_json_null(json, "host_peak_bytes");
    }
}

static void write_fragmentation(cli_json *json, const uf_fragmentation *state)
{
    cli_json_object_begin(json, "fragmentation");
    cli_json_int64(json, "cached_bytes", state->cached_bytes);
    cli_json_int64(json, "stuck_bytes", state->stuck_bytes);
    cli_json_int64(json, "rounding_bytes", state->rounding_bytes);
    cli_json_int64(json, "waiting_bytes", state->waiting_bytes);
    if (state->largest_request_bytes == 0) {
        cli_json_null(json, "largest_request_bytes"); /* not known */
        cli_json_null(json, "fragmented_bytes");
        cli_json_null(json, "fragmented_share");
        cli_json_null(json, "is_alarm");
    } else {
        cli_json_uint64(json, "largest_request_bytes", state->largest_request_bytes);
        cli_json_int64(json, "fragmented_bytes", state->fragmented_bytes);
        cli_json_double(json, "fragmented_share", state->fragmented_share);
        cli_json_bool(json, "is_alarm", state->is_alarm);
    }
    cli_json_object_end(json);
}

static void write_followed(cli_json *json, const uf_program_report *followed)
{
    cli_json_object_begin(json, "recording");
    cli_json_uint64(json, "events", followed->event_count);
    cli_json_uint64(json, "streams", followed->stream_count);
    cli_json_uint64(json, "private_pools", followed->pool_count);
    cli_json_uint64(json, "empty_cache_calls", followed->empty_cache_count);
    cli_json_uint64(json, "relabelled_segments", followed->relabel_count);
    cli_json_bool(json, "has_lost_beginning", followed->has_lost_beginning);
    cli_json_uint64(json, "unexplained_events", followed->unexplained_events);
    cli_json_uint64(json, "contradictions", followed->contradiction_count);
    if (followed->contradiction_count > 0) {
        write_difference(json, "first_contradiction", &followed->contradiction);
    } else {
        cli_json_null(json, "first_contradiction");
    }
    cli_json_object_end(json);
}

static void write_verify(cli_json *json, const replay_view *view)
{
    const uf_program_report *followed = view->followed;
    cli_json_bool(json, "is_equal", view->is_good);
    cli_json_uint64(json, "events_equal", followed->events_equal);
    if (followed->is_equal) {
        cli_json_null(json, "first_difference");
    } else {
        write_difference(json, "first_difference", &followed->difference);
    }
    if (!view->is_compared) {
        cli_json_null(json, "statistics_equal");
        return;
    }
    const replay_stats_comparison *comparison = &view->comparison;
    cli_json_uint64(json, "statistics_compared", comparison->compared_count);
    cli_json_uint64(json, "statistics_equal", comparison->equal_count);
    bool has_difference = comparison->first_difference[0] != '\0';
    cli_json_string(json, "first_statistics_difference",
                    has_difference ? comparison->first_difference : NULL);
    cli_json_int64(json, "sync_all_streams_missing",
                   comparison->sync_recorded - comparison->sync_model);
}

static void write_stats(cli_json *json, const uf_stats *stats)
{
    const char *key;
    int64_t value;
    cli_json_object_begin(json, "stats");
    for (size_t i = 0; uf_stats_entry(stats, i, &key, &value); i++) {
        cli_json_int64(json, key, value);
    }
    cli_json_object_end(json);
}

bool replay_report_json(const replay_view *view)
{
    cli_json json;
    cli_json_init(&json, stdout);
    cli_json_object_begin(&json, NULL);
    write_played(&json, view);
    if (view->is_as_recorded) {
        cli_json_null(&json, "fits"); /* nothing was asked */
    } else if (!view->options->is_verify) {
        cli_json_bool(&json, "fits", !view->result.has_oom);
    }
    write_left(&json, view);
    write_result(&json, view);
    if (view->options->is_verify) {
        write_verify(&json, view);
    }
    write_followed(&json, view->followed);
    write_fragmentation(&json, &view->result.fragmentation);
    replay_groups_json(&json, view);
    if (view->options->is_summary) {
        write_stats(&json, &view->result.stats);
    }
    write_speed(&json, view);
    cli_json_object_end(&json);
    return cli_json_finish(&json);
}
