/* SPDX-License-Identifier: MIT
 *
 * The JSON report of tune. */
#include <stdio.h>

#include "json.h"
#include "tune_report.h"

static void write_count(cli_json *json, const char *key, bool is_known, uint64_t value)
{
    if (is_known) {
        cli_json_uint64(json, key, value);
    } else {
        cli_json_null(json, key);
    }
}

static void write_ms(cli_json *json, const char *key, bool is_known, double value)
{
    if (is_known) {
        cli_json_double(json, key, value);
    } else {
        cli_json_null(json, key);
    }
}

static void write_failure(cli_json *json, const char *key, const tune_input *inputs,
                          const uf_probe_run *run)
{
    if (!run->has_run || run->is_complete || run->is_undefined || run->oom.segment_bytes == 0) {
        cli_json_null(json, key);
        return;
    }
    cli_json_object_begin(json, key);
    cli_json_string(json, "input", inputs[run->failed_program].name);
    cli_json_uint64(json, "event", run->oom.event);
    cli_json_uint64(json, "requested_bytes", run->oom.requested_bytes);
    cli_json_uint64(json, "segment_bytes", run->oom.segment_bytes);
    cli_json_uint64(json, "reserved_bytes", run->oom.reserved_bytes);
    cli_json_uint64(json, "allocated_bytes", run->oom.allocated_bytes);
    cli_json_object_end(json);
}

/* Is there room enough, and how much is left? */
static void write_fit(cli_json *json, const tune_options *options, const uf_tune_entry *entry)
{
    uint64_t room_bytes = tune_room_bytes(options);
    if (room_bytes == 0) {
        cli_json_null(json, "fits");
    } else {
        cli_json_bool(json, "fits", entry->run.is_complete);
    }
    if (room_bytes != 0 && entry->smallest.is_known) {
        cli_json_int64(json, "margin_bytes",
                       (int64_t)room_bytes - (int64_t)entry->smallest.limit_bytes);
    } else {
        cli_json_null(json, "margin_bytes");
    }
}

static void write_entry(cli_json *json, const char *key, const tune_options *options,
                        const tune_input *inputs, const uf_tune_result *result,
                        const uf_tune_entry *entry)
{
    if (entry == NULL) {
        cli_json_null(json, key);
        return;
    }
    const uf_probe_run *run = &entry->run, *unlimited = &entry->smallest.unlimited;
    bool is_paged = entry->point == UF_NONE; /* the unfrag policy: no setting */
    cli_json_object_begin(json, key);
    cli_json_string(json, "conf", is_paged ? "" : result->grid.points[entry->point].conf);
    cli_json_bool(json, "needs_limit", !is_paged && result->grid.points[entry->point].needs_limit);
    cli_json_bool(json, "is_hazardous", entry->is_hazardous);
    write_count(json, "smallest_limit_bytes", entry->smallest.is_known,
                entry->smallest.limit_bytes);
    cli_json_bool(json, "is_at_most", entry->smallest.is_at_most);
    cli_json_bool(json, "has_gaps", entry->smallest.has_gaps);
    cli_json_bool(json, "is_floor", entry->smallest.is_floor);
    write_count(json, "smallest_card_bytes", entry->card_bytes != 0, entry->card_bytes);
    write_fit(json, options, entry);
    write_count(json, "run_limit_bytes", entry->place.limit_bytes != 0, entry->place.limit_bytes);
    write_count(json, "run_card_bytes", entry->place.card_bytes != 0, entry->place.card_bytes);
    write_count(json, "run_total_bytes", entry->place.total_bytes != 0, entry->place.total_bytes);
    write_count(json, "peak_reserved_bytes", run->is_complete, run->peak_reserved_bytes);
    write_count(json, "device_calls", run->is_complete, run->device_calls);
    write_count(json, "device_syncs", run->is_complete, run->device_syncs);
    write_ms(json, "device_ms", run->is_complete, run->device_ms);
    write_ms(json, "stall_ms", run->is_complete, run->stall_ms);
    write_count(json, "num_alloc_retries", run->is_complete, run->retry_count);
    write_count(json, "stream_waits", run->is_complete, run->stream_wait_count);
    write_ms(json, "stream_wait_ms", run->is_complete && run->stream_wait_ms >= 0.0,
             run->stream_wait_ms);
    write_ms(json, "longest_stream_wait_ms", run->is_complete && run->longest_stream_wait_ms >= 0.0,
             run->longest_stream_wait_ms);
    write_count(json, "unlimited_peak_reserved_bytes", unlimited->is_complete,
                unlimited->peak_reserved_bytes);
    write_count(json, "peak_frozen_bytes", is_paged && run->is_complete, run->peak_frozen_bytes);
    write_ms(json, "device_moving_ms", is_paged && run->is_complete, run->moving_ms);
    write_ms(json, "longest_stall_ms", is_paged && run->is_complete, run->longest_move_ms);
    write_failure(json, "first_failure", inputs, run);
    write_failure(json, "failure_below", inputs, &entry->smallest.below);
    cli_json_object_end(json);
}

static const uf_tune_entry *entry_at(const uf_tune_result *result, uint32_t index)
{
    return index == UF_NONE ? NULL : &result->entries[index];
}

static void write_file_part(cli_json *json, const char *key, const tune_options *options,
                            const uf_smallest *smallest, const uf_probe_run *run)
{
    cli_json_object_begin(json, key);
    write_count(json, "smallest_limit_bytes", smallest->is_known, smallest->limit_bytes);
    write_count(json, "unlimited_peak_reserved_bytes", smallest->unlimited.is_complete,
                smallest->unlimited.peak_reserved_bytes);
    if (tune_room_bytes(options) != 0 && run->has_run) {
        cli_json_bool(json, "fits", run->is_complete);
    } else {
        cli_json_null(json, "fits");
    }
    cli_json_object_end(json);
}

static void write_inputs(cli_json *json, const tune_options *options, const tune_input *inputs,
                         const uf_tune_result *result)
{
    cli_json_array_begin(json, "inputs");
    for (uint32_t i = 0; i < result->file_count; i++) {
        const uf_tune_file *file = &result->files[i];
        const uf_program_report *report = uf_program_report_get(inputs[i].program);
        cli_json_object_begin(json, NULL);
        cli_json_string(json, "input", inputs[i].name);
        cli_json_uint64(json, "events", report->event_count);
        cli_json_uint64(json, "peak_live_bytes", file->peak_live_bytes);
        cli_json_uint64(json, "recorded_ooms", file->recorded_oom_count);
        cli_json_uint64(json, "private_pools", report->pool_count);
        cli_json_bool(json, "is_followed", report->is_equal);
        cli_json_bool(json, "has_lost_beginning", report->has_lost_beginning);
        if (result->file_count > 1) {
            write_file_part(json, "best", options, &file->best, &file->best_run);
            write_file_part(json, "baseline", options, &file->baseline, &file->baseline_run);
        }
        cli_json_object_end(json);
    }
    cli_json_array_end(json);
}

bool tune_report_json(const tune_options *options, const tune_input *inputs,
                      const uf_tune_result *result)
{
    cli_json json;
    cli_json_init(&json, stdout);
    cli_json_object_begin(&json, NULL);
    write_inputs(&json, options, inputs, result);
    write_count(&json, "limit_bytes", options->limit_bytes != 0, options->limit_bytes);
    write_count(&json, "card_bytes", options->card_bytes != 0, options->card_bytes);
    cli_json_uint64(&json, "allowance_bytes", options->allowance_bytes);
    cli_json_bool(&json, "has_answer", tune_has_answer(result));
    cli_json_bool(&json, "is_interrupted", result->is_interrupted);
    cli_json_uint64(&json, "peak_live_bytes", result->peak_live_bytes);
    cli_json_uint64(&json, "peak_held_bytes", result->held_bytes);
    cli_json_uint64(&json, "recorded_ooms", result->recorded_oom_count);
    write_entry(&json, "baseline", options, inputs, result, entry_at(result, result->baseline));
    write_entry(&json, "best", options, inputs, result, entry_at(result, result->best));
    write_entry(&json, "unfrag", options, inputs, result,
                result->has_unfrag ? &result->unfrag : NULL);
    cli_json_uint64(&json, "tried", result->tried_count);
    cli_json_uint64(&json, "skipped", result->skipped_count);
    cli_json_uint64(&json, "replays", result->replay_count);
    cli_json_uint64(&json, "events_replayed", result->event_count);
    cli_json_double(&json, "seconds", result->seconds);
    cli_json_array_begin(&json, "ranking");
    for (uint32_t i = 0; i < result->entry_count; i++) {
        write_entry(&json, NULL, options, inputs, result, &result->entries[i]);
    }
    cli_json_array_end(&json);
    cli_json_object_end(&json);
    return cli_json_finish(&json);
}
