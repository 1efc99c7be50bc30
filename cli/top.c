/* SPDX-License-Identifier: MIT
 *
 * unfrag top [PID]: watches processes. Owns the options and the choice between the live view,
 * tables and JSON. */
#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "exit_code.h"
#include "interrupt.h"
#include "number_option.h"
#include "top_order.h"
#include "top_report.h"
#include "top_view.h"
#include "verb.h"

typedef struct top_options {
    uint64_t pid; /* 0 = all */
    int64_t interval_ms;
    uint64_t count; /* 0 = without end */
    cli_top_sort sort;
    bool is_once, is_json;
} top_options;

static const struct argp_option option_list[] = {
    {"once", '1', NULL, 0, "Print one table and end", 0},
    {"json", 'j', NULL, 0, "Print one JSON object a line for each sample", 0},
    {"interval", 'i', "SECONDS", 0, "Time between samples, from 0.1 (default 1)", 0},
    {"count", 'n', "N", 0, "End after N samples", 0},
    {"sort", 's', "COLUMN", 0,
     "Sort by pid, reserved, active, allocated, largest, rate, hits, remaps or retries (default "
     "reserved)",
     0},
    {0},
};

static bool parse_interval(const char *text, int64_t *interval_ms)
{
    char *end;
    double seconds = strtod(text, &end);
    if (end == text || *end != '\0' || !(seconds >= 0.1 && seconds <= 3600.0)) {
        return false;
    }
    *interval_ms = (int64_t)(seconds * 1000.0 + 0.5);
    return true;
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    top_options *options = state->input;
    uf_error error = {0};
    switch (key) {
    case '1':
        options->is_once = true;
        return 0;
    case 'j':
        options->is_json = true;
        return 0;
    case 'i':
        if (!parse_interval(argument, &options->interval_ms)) {
            argp_error(state, "--interval is seconds from 0.1 to 3600, not '%s'", argument);
        }
        return 0;
    case 'n':
        if (cli_number_option("--count", argument, 1, 1000000000, &options->count, &error) !=
            UF_OK) {
            argp_error(state, "%s", error.text);
        }
        return 0;
    case 's':
        options->sort = cli_top_sort_find(argument);
        if (options->sort == CLI_TOP_SORT_COUNT) {
            argp_error(state,
                       "--sort knows pid, reserved, active, allocated, largest, rate, hits, "
                       "remaps and retries, not '%s'",
                       argument);
        }
        return 0;
    case ARGP_KEY_ARG:
        if (state->arg_num > 0) {
            argp_error(state, "one PID, and then there is '%s'", argument);
        }
        if (cli_number_option("PID", argument, 1, INT32_MAX, &options->pid, &error) != UF_OK) {
            argp_error(state, "%s", error.text);
        }
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void wait_ms(int64_t ms)
{
    struct timespec left = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
    while (!cli_is_interrupted() && nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}

/* One sample on standard output. */
static cli_exit print_sample(const top_options *options, cli_top_sample *sample)
{
    uf_error error = {0};
    if (cli_top_sample_read(sample, &error) != UF_OK) {
        return cli_fail_output("top", &error);
    }
    if (options->pid != 0) {
        cli_top_sample_keep(sample, (uint32_t)options->pid);
    }
    size_t *order = calloc(sample->pages.count + 1, sizeof *order);
    if (order == NULL) {
        (void)uf__error_set(&error, UF_ERROR_HOST_MEMORY, "no host memory to sort processes");
        return cli_fail("top", &error);
    }
    size_t count = cli_top_order(&sample->pages, options->sort, false, "", order);
    cli_exit code;
    if (options->pid != 0 && count == 0) {
        fprintf(stderr, "unfrag top: process %llu is not watched, or has ended\n",
                (unsigned long long)options->pid);
        code = CLI_EXIT_NO;
    } else {
        code = options->is_json ? cli_top_print_json(sample, order, count, stdout)
                                : cli_top_print_table(sample, order, count, stdout);
    }
    free(order);
    return code;
}

static cli_exit print_samples(const top_options *options)
{
    cli_top_sample sample = {0};
    cli_exit code = CLI_EXIT_DONE;
    for (uint64_t i = 0; code == CLI_EXIT_DONE && !cli_is_interrupted() &&
                         (options->count == 0 || i < options->count);
         i++) {
        if (i > 0) {
            wait_ms(options->interval_ms);
            if (cli_is_interrupted()) {
                break;
            }
            if (!options->is_json) {
                putchar('\n');
            }
        }
        code = print_sample(options, &sample);
        if (fflush(stdout) != 0) {
            break; /* main tells */
        }
    }
    cli_top_sample_fini(&sample);
    return code;
}

cli_exit cli_top(int argc, char **argv)
{
    top_options options = {.interval_ms = 1000, .sort = CLI_TOP_SORT_RESERVED};
    static const struct argp parser = {
        .options = option_list,
        .parser = parse_option,
        .args_doc = "[PID]",
        .doc = "Shows the memory of every process that is watched, or of one: a live view on a "
               "terminal, else a table."
               "\vh in the view lists its keys. The exit code is 1 if PID is not watched."};
    if (argp_parse(&parser, argc, argv, 0, NULL, &options) != 0) {
        return CLI_EXIT_USAGE;
    }
    bool is_terminal = isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1;
    if (!options.is_once && !options.is_json && is_terminal) {
        bool is_possible;
        cli_top_view *view = calloc(1, sizeof *view);
        if (view == NULL) {
            return CLI_EXIT_ENVIRONMENT;
        }
        view->only_pid = (uint32_t)options.pid;
        view->interval_ms = options.interval_ms;
        view->sort = options.sort;
        cli_exit code = cli_top_view_run(view, options.count, &is_possible);
        cli_top_sample_fini(&view->sample);
        free(view->order);
        free(view);
        if (is_possible) {
            return code;
        }
    }
    if (options.is_once || (options.count == 0 && !options.is_json && !is_terminal)) {
        options.count = 1;
    }
    return print_samples(&options);
}
