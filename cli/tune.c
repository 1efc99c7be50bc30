/* SPDX-License-Identifier: MIT
 *
 * unfrag tune FILE...: reads the recordings, searches, reports. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "advise/tune.h"
#include "base/error.h"
#include "input.h"
#include "progress.h"
#include "tune_options.h"
#include "tune_report.h"
#include "verb.h"

typedef struct tune_work {
    const tune_options *options;
    uf_trace **traces;
    uf_program **programs;
    uint32_t count; /* made so far */
} tune_work;

/* The device asked for, or the first one with events. */
static uf_status choose_device(const tune_options *options, const uf_trace *trace,
                               const char *name, uint32_t *position, uf_error *error)
{
    for (uint32_t i = 0; i < trace->device_count; i++) {
        bool is_wanted = options->has_device ? trace->devices[i].device == options->device
                                             : trace->devices[i].count > 1;
        if (is_wanted) {
            *position = i;
            return UF_OK;
        }
    }
    return uf__error_set(error, UF_ERROR_BAD_INPUT,
                         "%s: no history of %s to replay; record one with "
                         "torch.cuda.memory._record_memory_history()",
                         name, options->has_device ? "that device" : "any device");
}

/* A recording whose events contradict each other proves nothing. */
static uf_status check_report(const uf_program *program, const char *name, uf_error *error)
{
    const uf_program_report *report = uf_program_report_get(program);
    if (report->contradiction_count > 0) {
        return uf__error_set(error, UF_ERROR_BAD_INPUT,
                             "%s contradicts itself at event %" PRIu64 ": %s", name,
                             report->contradiction.event, report->contradiction.text);
    }
    return UF_OK;
}

static uf_status add_input(tune_work *work, const char *name, uf_error *error)
{
    cli_input input;
    uf_status status = cli_input_find(name, &input, error);
    if (status != UF_OK) {
        return status;
    }
    uint32_t device = 0;
    status = cli_input_read(&input, true, &work->traces[work->count], error);
    uint64_t limit_bytes = input.limit_bytes;
    cli_input_fini(&input);
    if (status != UF_OK) {
        return status;
    }
    const uf_trace *trace = work->traces[work->count++];
    status = choose_device(work->options, trace, name, &device, error);
    if (status != UF_OK) {
        return status;
    }
    uf_program_options how = {.struct_size_bytes = sizeof how,
                              .device = device,
                              .limit_bytes = limit_bytes,
                              .total_bytes = work->options->total_bytes,
                              .num_alloc_retries = -1};
    uf_program **program = &work->programs[work->count - 1];
    status = uf_program_create(trace, &how, program, error);
    return status == UF_OK ? check_report(*program, name, error) : status;
}

static cli_exit search(const tune_work *work)
{
    const tune_options *options = work->options;
    uint64_t card_bytes = options->card_bytes;
    cli_progress progress;
    cli_progress_init(&progress, "tuning");
    uf_tune_options how = {.conf = options->conf,
                           .limit_bytes = options->limit_bytes,
                           .card_bytes = card_bytes == 0 ? 0 : card_bytes - options->allowance_bytes,
                           .total_bytes = options->total_bytes != 0 ? options->total_bytes
                                                                    : card_bytes,
                           .sync_ms = options->sync_ms,
                           .grammar = options->grammar,
                           .thread_count = options->thread_count,
                           .progress = cli_progress_update,
                           .progress_context = &progress};
    uf_error error = {0};
    uf_tune_result result;
    uf_status status = uf__tune((const uf_program *const *)work->programs, work->count, &how,
                                &result, &error);
    cli_progress_fini(&progress);
    if (status != UF_OK) {
        return cli_fail("tune", &error);
    }
    bool is_printed = options->is_json ? tune_report_json(options, &result)
                                       : tune_report_text(options, &result);
    cli_exit code = !is_printed              ? CLI_EXIT_ENVIRONMENT
                    : result.is_interrupted  ? CLI_EXIT_INTERRUPTED
                    : tune_has_answer(&result) ? CLI_EXIT_DONE
                                               : CLI_EXIT_NO;
    uf__tune_result_fini(&result);
    return code;
}

cli_exit cli_tune(int argc, char **argv)
{
    tune_options options;
    cli_exit code = tune_options_parse(argc, argv, &options);
    if (code != CLI_EXIT_DONE) {
        return code;
    }
    uf_error error = {0};
    tune_work work = {.options = &options,
                      .traces = calloc(options.input_count, sizeof(uf_trace *)),
                      .programs = calloc(options.input_count, sizeof(uf_program *))};
    uf_status status = work.traces != NULL && work.programs != NULL ? UF_OK : UF_ERROR_HOST_MEMORY;
    for (uint32_t i = 0; i < options.input_count && status == UF_OK; i++) {
        status = add_input(&work, options.inputs[i], &error);
    }
    if (status != UF_OK && error.status == UF_OK) {
        (void)uf__error_set(&error, status, "%s", uf_status_text(status));
    }
    code = status == UF_OK ? search(&work) : cli_fail("tune", &error);
    for (uint32_t i = 0; i < work.count; i++) {
        uf_program_destroy(work.programs[i]);
        uf_trace_destroy(work.traces[i]);
    }
    free(work.traces);
    free(work.programs);
    tune_options_fini(&options);
    return code;
}
