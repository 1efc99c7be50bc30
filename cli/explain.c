/* SPDX-License-Identifier: MIT
 *
 * unfrag explain [FILE|-]: from an out-of-memory message to its cause and cure. Owns the options
 * and the reading; what it means is src/advise/'s business. */
#include "verb.h"

#include <argp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "advise/explain.h"
#include "base/error.h"
#include "exit_code.h"
#include "explain_report.h"
#include "input.h"
#include "progress.h"
#include "trace/input.h"

typedef struct explain_options {
    const char *input; /* NULL: standard input, or the snapshot alone */
    const char *snapshot;
    const char *conf;
    bool is_json;
} explain_options;

static const struct argp_option option_list[] = {
    {"snapshot", 's', "FILE", 0,
     "A memory snapshot of the same program: names what pins the memory. Without FILE or - the "
     "failure that it recorded is explained",
     0},
    {"conf", 'c', "STR", 0,
     "The settings in force (PYTORCH_CUDA_ALLOC_CONF), so that they are not advised again; "
     "by default those of the snapshot",
     0},
    {"json", 'j', NULL, 0, "Print one JSON object", 0},
    {0},
};

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    explain_options *options = state->input;
    switch (key) {
    case 's':
        options->snapshot = argument;
        return 0;
    case 'c':
        options->conf = argument;
        return 0;
    case 'j':
        options->is_json = true;
        return 0;
    case ARGP_KEY_ARG:
        if (state->arg_num > 0) {
            argp_error(state, "one FILE, and then there is '%s'", argument);
        }
        options->input = argument;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* Everything that is open during one explanation. */
typedef struct explain_work {
    uf_message_log *log;
    uf_trace *trace;
    uf_snapshot_state state;
    bool has_state;
    uf_conf conf;
    uint32_t named;
    bool has_conf;
} explain_work;

/* Is there text, and not something else? */
static uf_status check_text(const char *name, const uf_message_log *log, uf_error *error)
{
    if (log->is_snapshot) {
        return uf__error_set(error, UF_ERROR_BAD_INPUT,
                             "%s is a recording, not a text: give it with --snapshot", name);
    }
    if (log->byte_count == 0) {
        return uf__error_set(error, UF_ERROR_BAD_INPUT,
                             "%s is empty: give the program's output, with the error in it", name);
    }
    bool is_binary = !log->is_utf16 && log->message_count == 0 &&
                     log->nul_count + log->control_count > log->byte_count / 50;
    if (is_binary) {
        return uf__error_set(error, UF_ERROR_BAD_INPUT,
                             "%s is no text: give the program's output, with the error in it",
                             name);
    }
    return UF_OK;
}

static uf_status read_text(const char *path, explain_work *work, uf_error *error)
{
    cli_progress progress;
    cli_progress_init(&progress, "reading");
    uf_trace_read_options options = {.struct_size_bytes = sizeof options,
                                     .progress = cli_progress_update,
                                     .progress_context = &progress};
    uf__input *input = NULL;
    uf_status status = uf__input_open(path, &options, &input, error);
    if (status == UF_OK) {
        status = uf__message_scan(input, &work->log, error);
        uf__input_close(input);
    }
    cli_progress_fini(&progress);
    const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
    return status == UF_OK ? check_text(name, work->log, error) : status;
}

/* Any release's grammar will do: what is asked is only what is set. */
static uf_status read_conf(const char *text, bool must_be_valid, explain_work *work,
                           uf_error *error)
{
    static const uf_conf_grammar grammars[] = {UF_CONF_2_11, UF_CONF_2_0, UF_CONF_1_10};
    uf_status first = UF_OK;
    for (size_t i = 0; i < sizeof grammars / sizeof grammars[0]; i++) {
        uf_conf_reading reading = {.grammar = grammars[i], .is_at_import = true};
        uf_conf_report report = {0};
        uf__conf_init(&work->conf);
        uf_status status =
            uf__conf_read(&work->conf, text, &reading, &report, i == 0 ? error : NULL);
        /* Old releases took nonsense and ignored it: that is no setting. */
        if (status == UF_OK && (i == 0 || report.named != 0)) {
            work->named = report.named;
            work->has_conf = true;
            return UF_OK;
        }
        first = i == 0 ? status : first;
    }
    return must_be_valid ? first : UF_OK;
}

static uf_status read_snapshot(const explain_options *options, explain_work *work, uf_error *error)
{
    cli_input input;
    uf_status status = cli_input_find(options->snapshot, &input, error);
    if (status != UF_OK) {
        return status;
    }
    status = cli_input_read(&input, false, &work->trace, error);
    uint64_t limit_bytes = input.limit_bytes;
    cli_input_fini(&input);
    if (status != UF_OK) {
        return status;
    }
    const uf_message_group *worst = work->log != NULL ? uf__message_worst(work->log) : NULL;
    bool has_device = worst != NULL && worst->message.has_device;
    work->has_state =
        (has_device && uf__snapshot_examine(work->trace, worst->message.device, &work->state)) ||
        uf__snapshot_examine(work->trace, -1, &work->state);
    work->state.limit_bytes = limit_bytes;
    const uf_trace_settings *settings = &work->trace->settings;
    if (options->conf == NULL && settings->has_conf) {
        status = read_conf(uf_trace_string(work->trace, settings->conf), false, work, error);
    }
    return status;
}

static uf_status read_all(const explain_options *options, explain_work *work, uf_error *error)
{
    uf_status status = UF_OK;
    if (options->conf != NULL) {
        status = read_conf(options->conf, true, work, error);
    }
    if (status == UF_OK && (options->input != NULL || options->snapshot == NULL)) {
        status = read_text(options->input != NULL ? options->input : "-", work, error);
    }
    if (status == UF_OK && options->snapshot != NULL) {
        status = read_snapshot(options, work, error);
    }
    return status;
}

static cli_exit report(const explain_options *options, const explain_work *work)
{
    uf_explain_request request = {.log = work->log,
                                  .snapshot = work->has_state ? &work->state : NULL,
                                  .conf = work->has_conf ? &work->conf : NULL,
                                  .named = work->named};
    uf_explanation *explanation = malloc(sizeof *explanation);
    if (explanation == NULL) {
        uf_error error = {0};
        uf__error_set(&error, UF_ERROR_HOST_MEMORY, "no host memory for the explanation");
        return cli_fail("explain", &error);
    }
    uf__explain(&request, explanation);
    explain_view view = {.input = options->input != NULL      ? options->input
                                  : options->snapshot != NULL ? options->snapshot
                                                              : "-",
                         .log = work->log,
                         .snapshot = request.snapshot,
                         .trace = work->trace,
                         .explanation = explanation};
    bool is_written = true;
    if (options->is_json) {
        is_written = explain_report_json(&view);
    } else {
        explain_report_text(&view);
    }
    bool is_answered = explanation->is_oom || request.snapshot != NULL;
    free(explanation);
    return !is_written ? CLI_EXIT_ENVIRONMENT : is_answered ? CLI_EXIT_DONE : CLI_EXIT_NO;
}

cli_exit cli_explain(int argc, char **argv)
{
    explain_options options = {0};
    static const struct argp parser = {
        .options = option_list,
        .parser = parse_option,
        .args_doc = "[FILE|-]",
        .doc = "Explains an out-of-memory message: what the numbers mean, the cause, what to do."
               "\vFILE is any text with the message in it, such as a whole log, plain or "
               "compressed; without FILE, or with -, it is read from standard input. The exit code "
               "is 1 if the text has no out-of-memory message."};
    if (argp_parse(&parser, argc, argv, 0, NULL, &options) != 0) {
        return CLI_EXIT_USAGE;
    }
    if (options.input == NULL && options.snapshot == NULL && isatty(STDIN_FILENO)) {
        fputs("unfrag explain: paste the message, then press Ctrl-D\n", stderr);
    }
    uf_error error = {0};
    explain_work work = {0};
    uf_status status = read_all(&options, &work, &error);
    cli_exit code = status == UF_OK ? report(&options, &work) : cli_fail("explain", &error);
    uf_trace_destroy(work.trace);
    free(work.log);
    return code;
}
