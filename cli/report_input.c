/* SPDX-License-Identifier: MIT
 *
 * Reading, following, finding. */
#include "report_input.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "input.h"
#include "interrupt.h"
#include "progress.h"
#include "replay/program.h"
#include "replay_stats.h"

/* What a page holds: as much as a browser shows smoothly. */
enum { BUCKET_LIMIT = 1 << 17, SPAN_LIMIT = 400000, STACK_LIMIT = 20000, MARK_LIMIT = 500 };

static bool has_segments(const uf_trace *trace, int32_t device)
{
    for (uint32_t i = 0; i < trace->segment_count; i++) {
        if (trace->segments[i].device == device) {
            return true;
        }
    }
    return false;
}

/* The device asked for, else the first with a history, else the one that holds something. position:
 * UF_NONE if there are no events of it. */
static uf_status choose_device(const report_options *options, const report_input *input,
                               uint32_t *position, int32_t *device, uf_error *error)
{
    const uf_trace *trace = input->trace;
    *position = UF_NONE;
    for (uint32_t i = 0; i < trace->device_count; i++) {
        bool is_wanted = !options->has_device || trace->devices[i].device == options->device;
        if (is_wanted && trace->devices[i].count > 1) {
            *position = i;
            *device = trace->devices[i].device;
            return UF_OK;
        }
    }
    for (uint32_t i = 0; i < trace->segment_count && !options->has_device; i++) {
        *device = trace->segments[i].device;
        return UF_OK;
    }
    if (options->has_device && has_segments(trace, options->device)) {
        *device = options->device;
        return UF_OK;
    }
    if (options->has_device) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "--device %" PRId32 ": %s has nothing of such a device",
                             options->device, input->name);
    }
    return uf__error_set(error, UF_ERROR_BAD_INPUT,
                         "%s has neither events nor segments, so there is nothing to show",
                         input->name);
}

static void tell_other_devices(const report_options *options, const report_input *input,
                               uint32_t position)
{
    const uf_trace *trace = input->trace;
    for (uint32_t i = 0; i < trace->device_count && !options->has_device; i++) {
        if (i != position && trace->devices[i].count > 1) {
            fprintf(stderr,
                    "unfrag report: %s: device %" PRId32 " has %" PRIu64
                    " events of its own: --device %" PRId32 " shows them\n",
                    input->name, trace->devices[i].device, trace->devices[i].count,
                    trace->devices[i].device);
        }
    }
}

static bool go_on(void *context, uint64_t done, uint64_t total)
{
    (void)context;
    (void)done;
    (void)total;
    return !cli_is_interrupted();
}

static uf_status follow(report_input *input, uint32_t position, int64_t retry_count,
                        uf_error *error)
{
    uf_program_options how = {.struct_size_bytes = sizeof how,
                              .device = position,
                              .limit_bytes = input->limit_bytes,
                              .total_bytes = input->trace->total_bytes,
                              .num_alloc_retries = retry_count,
                              .progress = go_on};
    uf_status status = uf_program_create(input->trace, &how, &input->program, error);
    if (status != UF_OK) {
        return status;
    }
    const uf_program_report *report = uf_program_report_get(input->program);
    if (report->contradiction_count > 0) {
        return uf__error_set(error, UF_ERROR_BAD_INPUT,
                             "%s contradicts itself at event %" PRIu64 ": %s", input->name,
                             report->contradiction.event, report->contradiction.text);
    }
    return UF_OK;
}

/* In a script nothing has an address until it is replayed. */
static uf_status refuse_script(const report_input *input, uf_error *error)
{
    return uf__error_set(error, UF_ERROR_BAD_INPUT,
                         "%s is a script: it says what is asked for, not where it came to lie, so "
                         "there is no map to draw; 'unfrag replay' plays it",
                         input->name);
}

static uf_status read_trace(const report_options *options, const cli_input *found,
                            report_input *input, uf_error *error)
{
    uint32_t position = UF_NONE;
    int32_t device = 0;
    replay_recorded recorded = {0};
    uf_status status = cli_input_read(found, options->skip_stacks, &input->trace, error);
    if (status == UF_OK && input->trace->form == UF_FORM_SCRIPT) {
        status = refuse_script(input, error);
    }
    if (status == UF_OK) {
        status = choose_device(options, input, &position, &device, error);
    }
    if (status != UF_OK) {
        return status;
    }
    tell_other_devices(options, input, position);
    input->limit_bytes = options->limit_bytes != 0 ? options->limit_bytes : found->limit_bytes;
    if (position == UF_NONE) {
        return uf__history_init_state(&input->history, input->trace, device, error);
    }
    if (found->stats_path != NULL &&
        replay_recorded_read(found->stats_path, &recorded, NULL) != UF_OK) {
        replay_recorded_fini(&recorded); /* they are a courtesy */
        memset(&recorded, 0, sizeof recorded);
    }
    status =
        follow(input, position, recorded.is_there ? recorded.stats.num_alloc_retries : -1, error);
    replay_recorded_fini(&recorded);
    return status == UF_OK ? uf__history_init(&input->history, input->program, BUCKET_LIMIT, error)
                           : status;
}

static uf_status compare_settings(const report_options *options, report_input *input,
                                  uf_error *error)
{
    bool is_wanted =
        input->program != NULL && options->tuning != REPORT_TUNE_NONE && options->input_count == 1;
    uf_effort effort = !is_wanted ? UF_EFFORT_NONE
                       : options->tuning == REPORT_TUNE_SEARCH
                           ? UF_EFFORT_SEARCH
                           : uf__settings_effort(input->history.event_count);
    cli_progress progress;
    cli_progress_init(&progress, "comparing");
    uf_settings_options how = {.effort = effort,
                               .event_count = input->history.event_count,
                               .total_bytes = input->trace->total_bytes,
                               .progress = cli_progress_update,
                               .progress_context = &progress};
    uf_status status = UF_OK;
    if (effort != UF_EFFORT_NONE) {
        status = uf__settings_init(&input->settings, input->program, &how, error);
    }
    cli_progress_fini(&progress);
    return status;
}

static uf_status find_everything(const report_options *options, report_input *input,
                                 uf_error *error)
{
    const uf_history *history = &input->history;
    uf_status status = uf__marks_init(&input->marks, history, MARK_LIMIT);
    if (status == UF_OK) {
        status = uf__moments_init(&input->moments, history, &input->marks, input->limit_bytes);
    }
    if (status == UF_OK) {
        status = uf__sites_init(&input->sites, history);
    }
    if (status == UF_OK) {
        status = uf__columns_init(&input->columns, history, SPAN_LIMIT, STACK_LIMIT);
    }
    if (status != UF_OK) {
        return uf__error_set(error, status, "%s: no host memory for the page", input->name);
    }
    status = compare_settings(options, input, error);
    if (status == UF_OK && cli_is_interrupted()) {
        status = uf__error_set(error, UF_ERROR_INTERRUPTED, "interrupted");
    }
    if (status == UF_OK) {
        const uf_summary_request request = {.history = history,
                                            .marks = &input->marks,
                                            .moments = &input->moments,
                                            .settings = &input->settings,
                                            .limit_bytes = input->limit_bytes};
        uf__summary_make(&request, &input->summary);
    }
    return status;
}

uf_status report_input_open(const report_options *options, const char *name, report_input *input,
                            uf_error *error)
{
    memset(input, 0, sizeof *input);
    input->name = name;
    cli_input found;
    uf_status status = cli_input_find(name, &found, error);
    if (status != UF_OK) {
        return status;
    }
    status = read_trace(options, &found, input, error);
    cli_input_fini(&found);
    return status == UF_OK ? find_everything(options, input, error) : status;
}

void report_input_close(report_input *input)
{
    uf__columns_fini(&input->columns);
    uf__settings_fini(&input->settings);
    uf__sites_fini(&input->sites);
    uf__moments_fini(&input->moments);
    uf__marks_fini(&input->marks);
    uf__history_fini(&input->history);
    uf_program_destroy(input->program);
    uf_trace_destroy(input->trace);
    memset(input, 0, sizeof *input);
}
