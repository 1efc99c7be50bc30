/* SPDX-License-Identifier: MIT
 *
 * unfrag run -- COMMAND: a program and its children on unfrag's allocator. Owns the options and the
 * exit code, which is the program's. */
#include <argp.h>
#include <stdlib.h>
#include <string.h>

#include "launch.h"
#include "run_options.h"
#include "verb.h"

typedef struct run_options {
    cli_run_options common;
    char *const *command;
} run_options;

/* NOLINTNEXTLINE(readability-non-const-parameter): the type is argp's */
static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    (void)argument;
    run_options *options = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &options->common;
        return 0;
    case ARGP_KEY_ARGS:
        options->command = state->argv + state->next;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "which program? As in: unfrag run -- python main.py");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static cli_exit start(const run_options *options)
{
    uf_error error = {0};
    cli_variables variables = {0};
    const char *policy = options->common.policy;
    bool is_stock = policy != NULL && strcmp(policy, "stock") == 0;
    cli_launch launch = {.command = options->command,
                         .variables = &variables,
                         .verb = "run",
                         .output_descriptor = -1};
    cli_launch_end end;
    uf_status status = cli_launch_variables(is_stock ? "stock" : "run", &variables, &error);
    if (status == UF_OK) {
        status = cli_run_variables(&options->common, &variables, &error);
    }
    if (status == UF_OK) {
        status = cli_launch_wait(&launch, &end, &error);
    }
    cli_exit code;
    if (status == UF_OK) {
        cli_launch_explain(&launch, &end);
        code = (cli_exit)cli_launch_code(&end);
    } else {
        code = status == UF_ERROR_NOT_FOUND ? CLI_EXIT_ENVIRONMENT : cli_exit_code(status);
        (void)cli_fail("run", &error);
    }
    cli_variables_fini(&variables);
    return code;
}

cli_exit cli_run(int argc, char **argv)
{
    run_options options = {0};
    static const struct argp_child children[] = {{&cli_run_argp, 0, NULL, 0}, {0}};
    static const struct argp parser = {
        .parser = parse_option,
        .children = children,
        .args_doc = "[--] COMMAND...",
        .doc = "Runs a PyTorch program, and the programs that it starts, on unfrag's allocator, "
               "without changing a line of it."
               "\vThe exit code is the program's, or 128 + the number of the signal that ended it. "
               "UNFRAG_DISABLE=1 switches everything off."};
    if (argp_parse(&parser, argc, argv, ARGP_IN_ORDER, NULL, &options) != 0) {
        return CLI_EXIT_USAGE;
    }
    return start(&options);
}
