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

static void write_failure(cli_json *json, const char *key, const uf_tune_run *run)
{
    if (!run->has_run || run->is_complete || run->is_undefined) {
        cli_json_null(json, key);
        return;
    }
    cli_json_object_begin(json, key);
    cli_json_uint64(json, "program", run->failed_program);
    cli_json_uint64(json, "event", run->oom.event);
    cli_json_uint64(json, "requested_bytes", run->oom.requested_bytes);
    cli_json_uint64(json, "segment_bytes", run->oom.segment_bytes);
    cli_json_uint64(json, "reserved_bytes", run->oom.reserved_bytes);
    cli_json_uint64(json, "allocated_bytes", run->oom.allocated_bytes);
    cli_json_object_end(json);
}

static void write_entry(cli_json *json, const char *key, const tune_options *options,
                        const uf_tune_result *result, uint32_t index)
{
    if (index == UF_NONE) {
        cli_json_null(json, key);
        return;
    }
    const uf_tune_entry *entry = &result->entries[index];
    const uf_tune_run *run = &entry->run;
    bool has_place = options->limit_bytes != 0 || options->card_bytes != 0;
    cli_json_object_begin(json, key);
    cli_json_string(json, "conf", result->grid.points[entry->point].conf);
    cli_json_bool(json, "needs_limit", result->grid.points[entry->point].needs_limit);
    write_count(json, "smallest_limit_bytes", entry->has_smallest, entry->smallest_limit_bytes);
    cli_json_bool(json, "has_gaps", entry->has_gaps);
    bool is_free_known = entry->free_run.has_run && entry->free_run.is_complete;
    uint64_t peak_bytes = has_place ? run->peak_reserved_bytes : entry->free_run.peak_reserved_bytes;
    write_count(json, "peak_reserved_bytes", has_place ? run->is_complete : is_free_known,
                peak_bytes);
    write_count(json, "run_limit_bytes", entry->run_limit_bytes != 0, entry->run_limit_bytes);
    if (has_place) {
        cli_json_bool(json, "fits", run->is_complete);
    } else {
        cli_json_null(json, "fits");
    }
    write_count(json, "device_calls", run->is_complete, run->device_calls);
    write_count(json, "device_syncs", run->is_complete, run->device_syncs);
    if (run->is_complete) {
        cli_json_double(json, "device_ms", run->device_ms);
        cli_json_double(json, "stall_ms", run->stall_ms);
    } else {
        cli_json_null(json, "device_ms");
        cli_json_null(json, "stall_ms");
    }
    write_count(json, "num_alloc_retries", run->is_complete, run->retry_count);
    write_failure(json, "first_failure", run);
    write_failure(json, "failure_below", &entry->below);
    uint64_t card_bytes = uf__tune_card(entry->smallest_limit_bytes, options->allowance_bytes);
    write_count(json, "smallest_card_bytes", entry->has_smallest && card_bytes != 0, card_bytes);
    cli_json_object_end(json);
}

bool tune_report_json(const tune_options *options, const uf_tune_result *result)
{
    cli_json json;
    cli_json_init(&json, stdout);
    cli_json_object_begin(&json, NULL);
    cli_json_array_begin(&json, "inputs");
    for (uint32_t i = 0; i < options->input_count; i++) {
        cli_json_string(&json, NULL, options->inputs[i]);
    }
    cli_json_array_end(&json);
    write_count(&json, "limit_bytes", options->limit_bytes != 0, options->limit_bytes);
    write_count(&json, "card_bytes", options->card_bytes != 0, options->card_bytes);
    cli_json_uint64(&json, "allowance_bytes", options->allowance_bytes);
    cli_json_bool(&json, "has_answer", tune_has_answer(result));
    cli_json_bool(&json, "is_interrupted", result->is_interrupted);
    cli_json_uint64(&json, "peak_live_bytes", result->peak_live_bytes);
    cli_json_uint64(&json, "recorded_ooms", result->recorded_oom_count);
    write_entry(&json, "baseline", options, result, result->baseline);
    write_entry(&json, "best", options, result, result->best);
    cli_json_null(&json, "unfrag"); /* that policy is not in this version */
    cli_json_uint64(&json, "tried", result->tried_count);
    cli_json_uint64(&json, "replays", result->replay_count);
    cli_json_uint64(&json, "events_replayed", result->event_count);
    cli_json_double(&json, "seconds", result->seconds);
    cli_json_array_begin(&json, "ranking");
    for (uint32_t i = 0; i < result->entry_count; i++) {
        write_entry(&json, NULL, options, result, i);
    }
    cli_json_array_end(&json);
    cli_json_object_end(&json);
    return cli_json_finish(&json);
}
