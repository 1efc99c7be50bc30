/* SPDX-License-Identifier: MIT
 *
 * unfrag record -- COMMAND: a snapshot with history from an unchanged program, on PyTorch's own
 * allocator. Owns the options and what is said about the files; recording itself is
 * python/unfrag/record.py's. */
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "launch.h"
#include "number_option.h"
#include "verb.h"

typedef struct record_options {
    const char *output, *limit, *conf, *stacks, *signal;
    uint64_t entry_count;
    bool is_on_oom, is_forced, is_verbose;
    char *const *command;
} record_options;

static const struct argp_option option_list[] = {
    {"output", 'o', "FILE", 0,
     "Where to: unfrag.pickle by default. A second process that uses the GPU writes FILE with its "
     "number in the name",
     0},
    {"on-oom", 'O', NULL, 0, "Write at the first out-of-memory, and only then", 0},
    {"limit", 'l', "SIZE", 0, "The most PyTorch may hold from each GPU: 6GiB, or 90% of it", 0},
    {"conf", 'c', "STR", 0, "Record under these settings (PYTORCH_CUDA_ALLOC_CONF)", 0},
    {"entries", 'e', "N", 0, "Keep the newest N events; 5000000 by default", 0},
    {"stacks", 's', "KIND", 0, "python (default), all (C++ too), or none", 0},
    {"signal", 'S', "NAME", 0, "Also write when this signal comes; USR1 by default, none for no",
     0},
    {"force", 'f', NULL, 0, "Replace FILE if it exists", 0},
    {"verbose", 'v', NULL, 0, "Say when recording begins", 0},
    {0},
};

static error_t parse_text(int key, char *argument, struct argp_state *state)
{
    record_options *options = state->input;
    switch (key) {
    case 'o':
        options->output = argument;
        return 0;
    case 'l':
        options->limit = argument;
        return 0;
    case 'c':
        options->conf = argument;
        return 0;
    case 's':
        if (strcmp(argument, "python") != 0 && strcmp(argument, "all") != 0 &&
            strcmp(argument, "none") != 0) {
            argp_error(state, "--stacks knows 'python', 'all' and 'none', not '%s'", argument);
        }
        options->stacks = argument;
        return 0;
    case 'S':
        options->signal = strncmp(argument, "SIG", 3) == 0 ? argument + 3 : argument;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    record_options *options = state->input;
    uf_error error = {0};
    switch (key) {
    case 'O':
        options->is_on_oom = true;
        return 0;
    case 'f':
        options->is_forced = true;
        return 0;
    case 'v':
        options->is_verbose = true;
        return 0;
    case 'e':
        if (cli_number_option("--entries", argument, 1, UINT64_C(1) << 40, &options->entry_count,
                              &error) != UF_OK) {
            argp_error(state, "%s", error.text);
        }
        return 0;
    case ARGP_KEY_ARGS:
        options->command = state->argv + state->next;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "which program? As in: unfrag record -o run.pickle -- python main.py");
        return 0;
    default:
        return parse_text(key, argument, state);
    }
}

static uf_status variables_of(const record_options *options, const char *claim, cli_variables *list,
                              uf_error *error)
{
    uf_status status = cli_launch_variables("record", list, error);
    if (status == UF_OK && options->limit != NULL) {
        status = cli_launch_limit(options->limit, error);
    }
    if (status != UF_OK) {
        return status;
    }
    char entries[32];
    snprintf(entries, sizeof entries, "%" PRIu64, options->entry_count);
    cli_variables_set(list, "UNFRAG_RECORD_FILE", options->output);
    cli_variables_set(list, "UNFRAG_RECORD_CLAIM", claim);
    cli_variables_set(list, "UNFRAG_RECORD_ENTRIES", entries);
    cli_variables_set(list, "UNFRAG_RECORD_STACKS", options->stacks);
    cli_variables_set(list, "UNFRAG_RECORD_SIGNAL", options->signal);
    cli_variables_set(list, "UNFRAG_RECORD_ON_OOM", options->is_on_oom ? "1" : NULL);
    cli_variables_set(list, "UNFRAG_LIMIT", options->limit);
    if (options->conf != NULL) {
        cli_variables_set(list, "PYTORCH_CUDA_ALLOC_CONF", options->conf);
    }
    if (options->is_verbose) {
        cli_variables_set(list, "UNFRAG_VERBOSE", "1");
    }
    return UF_OK;
}

/* Says what came of it; the program's own exit code is kept where it failed. */
static cli_exit report(const record_options *options, const char *claim, int code)
{
    bool is_written = access(claim, F_OK) == 0;
    if (is_written) {
        return (cli_exit)code;
    }
    if (options->is_on_oom) {
        fprintf(stderr, "unfrag record: no out-of-memory came: nothing was written\n");
        return (cli_exit)code;
    }
    fprintf(stderr,
            "unfrag record: nothing was written: the program did not use the GPU through torch, or "
            "it ended by os._exit or a signal before it could (use --signal, or --on-oom)\n");
    return code != 0 ? (cli_exit)code : CLI_EXIT_NO;
}

static cli_exit start(const record_options *options)
{
    uf_error error = {0};
    cli_variables variables = {0};
    char claim[] = "/tmp/unfrag-record-XXXXXX";
    char *claimed = NULL;
    if (mkdtemp(claim) == NULL || asprintf(&claimed, "%s/written", claim) < 0) {
        (void)uf__error_set(&error, UF_ERROR_IO, "no folder under /tmp can be made: %s",
                            strerror(errno));
        (void)cli_fail("record", &error);
        return CLI_EXIT_ENVIRONMENT;
    }
    cli_launch launch = {.command = options->command,
                         .variables = &variables,
                         .verb = "record",
                         .output_descriptor = -1};
    cli_launch_end end;
    cli_exit code;
    uf_status status = variables_of(options, claimed, &variables, &error);
    if (status == UF_OK) {
        status = cli_launch_wait(&launch, &end, &error);
    }
    if (status == UF_OK) {
        cli_launch_explain(&launch, &end);
        code = report(options, claimed, cli_launch_code(&end));
    } else {
        (void)cli_fail("record", &error);
        code = status == UF_ERROR_NOT_FOUND ? CLI_EXIT_ENVIRONMENT : cli_exit_code(status);
    }
    (void)unlink(claimed);
    (void)rmdir(claim);
    free(claimed);
    cli_variables_fini(&variables);
    return code;
}

cli_exit cli_record(int argc, char **argv)
{
    record_options options = {
        .output = "unfrag.pickle", .stacks = "python", .signal = "USR1", .entry_count = 5000000};
    static const struct argp parser = {
        .options = option_list,
        .parser = parse_option,
        .args_doc = "[--] COMMAND...",
        .doc = "Runs a PyTorch program on PyTorch's own allocator and writes a snapshot with its "
               "history when it ends, for tune, explain, replay and report. Nothing in the program "
               "is changed."
               "\vThe exit code is the program's; 1 if it ended well and nothing was recorded."};
    if (argp_parse(&parser, argc, argv, ARGP_IN_ORDER, NULL, &options) != 0) {
        return CLI_EXIT_USAGE;
    }
    if (!options.is_forced && access(options.output, F_OK) == 0) {
        fprintf(stderr, "unfrag record: %s exists: --force replaces it, -o names another\n",
                options.output);
        return CLI_EXIT_USAGE;
    }
    return start(&options);
}
