/* SPDX-License-Identifier: MIT
 *
 * unfrag tune FILE...: reads the recordings, searches, reports. */
#include <stdlib.h>

#include "advise/tune.h"
#include "base/error.h"
#include "progress.h"
#include "tune_input.h"
#include "tune_options.h"
#include "tune_report.h"
#include "verb.h"

static cli_exit search(const tune_options *options, const tune_input *inputs,
                       const uf_program *const *programs)
{
    uint64_t card_bytes = options->card_bytes;
    cli_progress progress;
    cli_progress_init(&progress, "tuning");
    uf_tune_options how = {.conf = options->conf,
                           .limit_bytes = options->limit_bytes,
                           .card_bytes =
                               card_bytes == 0 ? 0 : card_bytes - options->allowance_bytes,
                           .card_total_bytes = card_bytes,
                           .total_bytes = options->total_bytes,
                           .allowance_bytes = options->allowance_bytes,
                           .sync_ms = options->sync_ms,
                           .grammar = options->grammar,
                           .release = options->release,
                           .thread_count = options->thread_count,
                           .progress = cli_progress_update,
                           .progress_context = &progress};
    uf_error error = {0};
    uf_tune_result result;
    uf_status status = uf__tune(programs, options->input_count, &how, &result, &error);
    cli_progress_fini(&progress);
    if (status != UF_OK) {
        return cli_fail("tune", &error);
    }
    bool is_printed = options->is_json ? tune_report_json(options, inputs, &result)
                                       : tune_report_text(options, inputs, &result);
    cli_exit code = !is_printed                ? CLI_EXIT_ENVIRONMENT
                    : result.is_interrupted    ? CLI_EXIT_INTERRUPTED
                    : tune_has_answer(&result) ? CLI_EXIT_DONE
                                               : CLI_EXIT_NO;
    uf__tune_result_fini(&result);
    return code;
}

/* What can be refused before minutes are spent on reading. */
static uf_status check_conf(const tune_options *options, uf_error *error)
{
    const uf_conf_reading reading = {
        .grammar = options->grammar, .release = options->release, .is_at_import = true};
    uf_conf conf;
    uf__conf_init(&conf);
    uf_status status =
        options->conf == NULL ? UF_OK : uf__conf_read(&conf, options->conf, &reading, NULL, error);
    if (status == UF_OK && conf.is_async_backend) {
        return uf__error_set(error, UF_ERROR_CONF,
                             "--conf: backend:cudaMallocAsync is the driver's allocator, which is "
                             "not imitated: name the settings of PyTorch's own");
    }
    return status;
}

static cli_exit tune(const tune_options *options, tune_input *inputs, const uf_program **programs)
{
    uf_error error = {0};
    uf_status status = check_conf(options, &error);
    uint32_t count = 0;
    while (count < options->input_count && status == UF_OK) {
        status = tune_input_open(options, options->inputs[count], &inputs[count], &error);
        programs[count] = inputs[count].program;
        count++;
    }
    cli_exit code = status == UF_OK ? search(options, inputs, programs) : cli_fail("tune", &error);
    for (uint32_t i = 0; i < count; i++) {
        tune_input_close(&inputs[i]);
    }
    return code;
}

cli_exit cli_tune(int argc, char **argv)
{
    tune_options options;
    cli_exit code = tune_options_parse(argc, argv, &options);
    if (code != CLI_EXIT_DONE) {
        tune_options_fini(&options);
        return code;
    }
    tune_input *inputs = calloc(options.input_count, sizeof *inputs);
    const uf_program **programs = calloc(options.input_count, sizeof(uf_program *));
    if (inputs != NULL && programs != NULL) {
        code = tune(&options, inputs, programs);
    } else {
        const uf_error error = {UF_ERROR_HOST_MEMORY, "no memory for the list of recordings"};
        code = cli_fail("tune", &error);
    }
    free(inputs);
    free(programs);
    tune_options_fini(&options);
    return code;
}
