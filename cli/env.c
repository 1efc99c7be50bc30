/* SPDX-License-Identifier: MIT
 *
 * unfrag env: the shell lines that switch unfrag on for all that a shell starts later. */
#include <argp.h>
#include <stdio.h>
#include <string.h>

#include "launch.h"
#include "run_options.h"
#include "verb.h"

typedef struct env_options {
    cli_run_options common;
    bool is_off;
} env_options;

static const struct argp_option option_list[] = {
    {"off", 'x', NULL, 0, "Print the lines that switch it off again", 0},
    {0},
};

static const char *const VARIABLES[] = {"UNFRAG_MODE", "UNFRAG_POLICY",  "UNFRAG_LIMIT",
                                        "UNFRAG_CONF", "UNFRAG_REQUIRE", "UNFRAG_VERBOSE"};

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    env_options *options = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &options->common;
        return 0;
    case 'x':
        options->is_off = true;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "'%s'? It takes options only: eval \"$(unfrag env)\"", argument);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* In single quotes, which keep everything but themselves. */
static void print_quoted(const char *text)
{
    putchar('\'');
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            fputs("'\\''", stdout);
        } else {
            putchar(*text);
        }
    }
    putchar('\'');
}

static void print_variables(const cli_variables *variables)
{
    for (size_t i = 0; i < variables->count; i++) {
        const cli_variable *item = &variables->items[i];
        printf("export %s=", item->name);
        if (strcmp(item->name, "PYTHONPATH") == 0) {
            /* As the shell has it at that time, with the hook in front. */
            const char *colon = strchr(item->value, ':');
            size_t length = colon != NULL ? (size_t)(colon - item->value) : strlen(item->value);
            item->value[length] = '\0';
            print_quoted(item->value);
            puts("${PYTHONPATH:+:$PYTHONPATH}");
        } else {
            print_quoted(item->value);
            putchar('\n');
        }
    }
}

/* The hook's entry leaves PYTHONPATH; what else is there stays. */
static void print_off(const cli_variables *variables)
{
    char *hook = variables->items[0].value;
    char *colon = strchr(hook, ':');
    if (colon != NULL) {
        *colon = '\0';
    }
    fputs("unfrag_hook=", stdout);
    print_quoted(hook);
    puts("\nPYTHONPATH=$(printf %s \":${PYTHONPATH-}:\" | "
         "awk -v RS=: -v hook=\"$unfrag_hook\" "
         "'NF && $0 != hook { printf \"%s%s\", gap, $0; gap = \":\" }')");
    puts("if [ -n \"$PYTHONPATH\" ]; then export PYTHONPATH; else unset PYTHONPATH; fi");
    fputs("unset unfrag_hook", stdout);
    for (size_t i = 0; i < sizeof VARIABLES / sizeof VARIABLES[0]; i++) {
        printf(" %s", VARIABLES[i]);
    }
    putchar('\n');
}

cli_exit cli_env(int argc, char **argv)
{
    env_options options = {0};
    static const struct argp_child children[] = {{&cli_run_argp, 0, NULL, 0}, {0}};
    static const struct argp parser = {
        .options = option_list,
        .parser = parse_option,
        .children = children,
        .doc = "Prints shell lines that switch unfrag on for every PyTorch program that the shell "
               "starts afterwards: eval \"$(unfrag env)\", in a service's start script, say."
               "\vThe lines are for sh, bash, dash, ksh and zsh."};
    if (argp_parse(&parser, argc, argv, 0, NULL, &options) != 0) {
        return CLI_EXIT_USAGE;
    }
    uf_error error = {0};
    cli_variables variables = {0};
    const char *policy = options.common.policy;
    bool is_stock = policy != NULL && strcmp(policy, "stock") == 0;
    uf_status status = cli_launch_variables(is_stock ? "stock" : "run", &variables, &error);
    if (status == UF_OK) {
        status = cli_run_variables(&options.common, &variables, &error);
    }
    if (status == UF_OK && options.is_off) {
        print_off(&variables);
    } else if (status == UF_OK) {
        print_variables(&variables);
    }
    cli_variables_fini(&variables);
    if (status == UF_ERROR_NOT_FOUND) {
        (void)cli_fail("env", &error);
        return CLI_EXIT_ENVIRONMENT;
    }
    return status == UF_OK ? CLI_EXIT_DONE : cli_fail("env", &error);
}
