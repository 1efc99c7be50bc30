/* SPDX-License-Identifier: MIT
 *
 * unfrag trial -- COMMAND: the program again and again in fresh processes, under several settings,
 * and how often each fails. Owns the options, the order of runs and the output. */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "alloc/conf.h"
#include "base/error.h"
#include "interrupt.h"
#include "json.h"
#include "launch.h"
#include "number_option.h"
#include "table.h"
#include "trial_result.h"
#include "verb.h"

enum { SETTINGS_MOST = 32 };

typedef struct trial_options {
    trial_setting settings[SETTINGS_MOST];
    size_t setting_count;
    const char *limit, *unit, *state, *logs;
    uint64_t run_count, timeout_seconds;
    bool is_json, has_no_baseline;
    char *const *command;
} trial_options;

/* What one trial works with. */
typedef struct trial {
    const trial_options *options;
    trial_results results;
    regex_t unit;
    FILE *state; /* NULL: none is kept */
    char folder[64];
} trial_work;

static const struct argp_option option_list[] = {
    {"conf", 'c', "STR", 0, "Try these settings (PYTORCH_CUDA_ALLOC_CONF); may be given often", 0},
    {"policy", 'p', "POLICY", 0, "Try unfrag's allocator, unfrag or torch; may be given twice", 0},
    {"no-default", 'D', NULL, 0, "Leave PyTorch's defaults out, which are tried first otherwise",
     0},
    {"limit", 'l', "SIZE", 0, "The most to hold from each GPU: 6GiB, or 90% of it", 0},
    {"runs", 'n', "N", 0, "Runs of each setting; 5 by default", 0},
    {"unit", 'u', "REGEX", 0,
     "What the program prints for each unit of work, such as an image: lines that match are "
     "counted",
     0},
    {"timeout", 't', "SECONDS", 0, "End a run after so long and count it as failed", 0},
    {"state", 's', "FILE", 0, "Keep results there, and go on from them if the file exists", 0},
    {"logs", 'L', "DIR", 0, "Keep what the runs print, a file for each", 0},
    {"json", 'j', NULL, 0, "Print one JSON object", 0},
    {0},
};

static void add_setting(struct argp_state *state, const char *policy, const char *conf)
{
    trial_options *options = state->input;
    if (options->setting_count == SETTINGS_MOST) {
        argp_error(state, "more than %d settings", SETTINGS_MOST);
    }
    trial_setting *setting = &options->settings[options->setting_count++];
    setting->policy = policy;
    setting->conf = conf;
    trial_setting_name(setting);
}

static void check_conf(struct argp_state *state, const char *text)
{
    uf_conf conf;
    uf_error error = {0};
    uf__conf_init(&conf);
    if (uf__conf_parse(&conf, text, UF_CONF_2_11, &error) != UF_OK) {
        argp_error(state, "--conf: %s", error.text);
    }
}

static error_t parse_number(struct argp_state *state, const char *name, const char *text,
                            uint64_t most, uint64_t *value)
{
    uf_error error = {0};
    if (cli_number_option(name, text, 1, most, value, &error) != UF_OK) {
        argp_error(state, "%s", error.text);
    }
    return 0;
}

static error_t parse_setting(int key, char *argument, struct argp_state *state)
{
    trial_options *options = state->input;
    switch (key) {
    case 'c':
        check_conf(state, argument);
        add_setting(state, NULL, argument);
        return 0;
    case 'p':
        if (strcmp(argument, "unfrag") != 0 && strcmp(argument, "torch") != 0) {
            argp_error(state, "--policy knows 'unfrag' and 'torch', not '%s'", argument);
        }
        add_setting(state, argument, "");
        return 0;
    case 'D':
        options->has_no_baseline = true;
        return 0;
    case ARGP_KEY_ARGS:
        options->command = state->argv + state->next;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "which program? As in: unfrag trial --policy unfrag -- python main.py");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    trial_options *options = state->input;
    switch (key) {
    case 'l':
        options->limit = argument;
        return 0;
    case 'n':
        return parse_number(state, "--runs", argument, 100000, &options->run_count);
    case 't':
        return parse_number(state, "--timeout", argument, 10000000, &options->timeout_seconds);
    case 'u':
        options->unit = argument;
        return 0;
    case 's':
        options->state = argument;
        return 0;
    case 'L':
        options->logs = argument;
        return 0;
    case 'j':
        options->is_json = true;
        return 0;
    default:
        return parse_setting(key, argument, state);
    }
}

static void set_variables(const trial_work *trial, const trial_setting *setting,
                          cli_variables *list)
{
    cli_variables_set(list, "UNFRAG_TRIAL_FOLDER", trial->folder);
    cli_variables_set(list, "UNFRAG_LIMIT", trial->options->limit);
    cli_variables_set(list, "UNFRAG_DISABLE", NULL);
    cli_variables_set(list, "PYTORCH_ALLOC_CONF", NULL);
    cli_variables_set(list, "PYTORCH_CUDA_ALLOC_CONF",
                      setting->conf[0] != '\0' ? setting->conf : NULL);
    cli_variables_set(list, "UNFRAG_POLICY", setting->policy);
    cli_variables_set(list, "UNFRAG_REQUIRE", setting->policy != NULL ? "1" : NULL);
    cli_variables_set(list, "UNFRAG_CONF", NULL);
}

/* Lines of the run's output that are units of work. */
static int64_t count_units(const trial_work *trial, FILE *output)
{
    if (trial->options->unit == NULL) {
        return -1;
    }
    char *line = NULL;
    size_t capacity = 0;
    int64_t count = 0;
    rewind(output);
    while (getline(&line, &capacity, output) > 0) {
        line[strcspn(line, "\n")] = '\0';
        count += regexec(&trial->unit, line, 0, NULL, 0) == 0;
    }
    free(line);
    return count;
}

static FILE *open_output(const trial_work *trial, size_t setting, uint64_t number)
{
    if (trial->options->logs == NULL) {
        return tmpfile();
    }
    char path[4096];
    snprintf(path, sizeof path, "%s/setting-%zu-run-%" PRIu64 ".log", trial->options->logs,
             setting + 1, number + 1);
    return fopen(path, "w+");
}

static void tell_run(const trial_work *trial, const trial_run *run)
{
    const trial_options *options = trial->options;
    fprintf(stderr, "unfrag trial: %zu of %" PRIu64 ": %s: ", trial->results.count + 1,
            options->run_count * options->setting_count, options->settings[run->setting].name);
    if (!run->is_failed) {
        fputs("done", stderr);
    } else if (run->signal != 0) {
        fprintf(stderr, "FAILED (%s)", strsignal(run->signal));
    } else {
        fprintf(stderr, "FAILED (%s)",
                run->exit_code < 0      ? "timeout"
                : run->oom_count > 0    ? "out of memory"
                : run->exit_code == 127 ? "exit code 127: is the command there?"
                                        : "exit code not 0");
    }
    fprintf(stderr, ", %.1f s\n", run->seconds);
}

/* One run. *is_stopped: Ctrl-C came, and the run does not count. */
static uf_status make_run(trial_work *trial, size_t setting, uint64_t number, bool *is_stopped,
                          uf_error *error)
{
    const trial_options *options = trial->options;
    cli_variables variables = {0};
    bool is_ours = options->settings[setting].policy != NULL;
    uf_status status = cli_launch_variables(is_ours ? "trial" : "trial-stock", &variables, error);
    FILE *output = status == UF_OK ? open_output(trial, setting, number) : NULL;
    if (status == UF_OK && output == NULL) {
        status =
            uf__error_set(error, UF_ERROR_IO, "no file for what a run prints: %s", strerror(errno));
    }
    cli_launch_end end = {0};
    if (status == UF_OK) {
        set_variables(trial, &options->settings[setting], &variables);
        cli_launch launch = {.command = options->command,
                             .variables = &variables,
                             .verb = "trial",
                             .output_descriptor = fileno(output),
                             .is_interruptible = true,
                             .timeout_seconds = (double)options->timeout_seconds};
        status = cli_launch_wait(&launch, &end, error);
    }
    *is_stopped = end.is_interrupted || cli_is_interrupted();
    if (status == UF_OK && !*is_stopped) {
        trial_run run = {.setting = setting,
                         .number = number,
                         .is_failed = end.signal != 0 || end.exit_code != 0 || end.is_timeout,
                         .exit_code = end.is_timeout ? -1 : end.exit_code,
                         .signal = end.is_timeout ? 0 : end.signal,
                         .seconds = end.seconds,
                         .unit_count = count_units(trial, output)};
        trial_numbers_read(trial->folder, &run);
        tell_run(trial, &run);
        if (!trial_results_add(&trial->results, &run)) {
            status = uf__error_set(error, UF_ERROR_HOST_MEMORY, "no host memory");
        } else if (trial->state != NULL &&
                   !trial_run_write(trial->state, &run, &options->settings[setting])) {
            status = uf__error_set(error, UF_ERROR_IO, "%s cannot be written", options->state);
        }
    }
    if (output != NULL) {
        (void)fclose(output);
    }
    cli_variables_fini(&variables);
    return status;
}

/* Setting after setting, then the next round: what drifts meanwhile is the same for all. */
static uf_status make_runs(trial_work *trial, bool *is_stopped, uf_error *error)
{
    const trial_options *options = trial->options;
    for (uint64_t number = 0; number < options->run_count; number++) {
        for (size_t setting = 0; setting < options->setting_count; setting++) {
            if (trial_results_has(&trial->results, setting, number)) {
                continue;
            }
            uf_status status = make_run(trial, setting, number, is_stopped, error);
            if (status != UF_OK || *is_stopped) {
                return status;
            }
        }
    }
    return UF_OK;
}

static void cell_known(cli_table *table, double value, const char *format)
{
    if (isnan(value)) {
        cli_table_cell(table, "-");
    } else if (format == NULL) {
        cli_table_cell_size(table, (uint64_t)value);
    } else {
        /* Each format is one of ours, with one double. */
        char text[64];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(text, sizeof text, format, value);
#pragma GCC diagnostic pop
        cli_table_cell(table, "%s", text);
    }
}

static bool print_table(const trial_work *trial)
{
    cli_table *table = cli_table_create();
    cli_table_column(table, "setting", CLI_LEFT);
    static const char *const columns[] = {"runs",  "failed",        "rate",    "95 % interval",
                                          "units", "peak reserved", "seconds", "retries"};
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        cli_table_column(table, columns[i], CLI_RIGHT);
    }
    for (size_t i = 0; i < trial->options->setting_count; i++) {
        trial_summary sum;
        trial_summarise(&trial->results, i, &sum);
        cli_table_row(table);
        cli_table_cell(table, "%s", trial->options->settings[i].name);
        cli_table_cell_count(table, sum.run_count);
        cli_table_cell_count(table, sum.failure_count);
        if (sum.run_count == 0) {
            cli_table_cell(table, "-");
            cli_table_cell(table, "-");
        } else {
            cli_table_cell(table, "%.0f %%", 100 * sum.rate);
            cli_table_cell(table, "%.0f to %.0f %%", 100 * sum.rate_low, 100 * sum.rate_high);
        }
        cell_known(table, sum.unit_count, "%.0f");
        cell_known(table, sum.peak_reserved_bytes, NULL);
        cell_known(table, sum.seconds, "%.1f");
        cell_known(table, sum.retry_count, "%.0f");
    }
    bool is_printed = cli_table_print(table, stdout);
    cli_table_destroy(table);
    return is_printed;
}

static void print_json(const trial_work *trial)
{
    cli_json json;
    cli_json_init(&json, stdout);
    cli_json_object_begin(&json, NULL);
    cli_json_uint64(&json, "runs_wanted", trial->options->run_count);
    cli_json_string(&json, "limit", trial->options->limit);
    cli_json_array_begin(&json, "settings");
    for (size_t i = 0; i < trial->options->setting_count; i++) {
        trial_summary sum;
        trial_summarise(&trial->results, i, &sum);
        cli_json_object_begin(&json, NULL);
        cli_json_string(&json, "setting", trial->options->settings[i].name);
        cli_json_uint64(&json, "runs", sum.run_count);
        cli_json_uint64(&json, "failures", sum.failure_count);
        cli_json_uint64(&json, "out_of_memory", sum.oom_run_count);
        cli_json_double(&json, "failure_rate", sum.rate);
        cli_json_double(&json, "failure_rate_low", sum.rate_low);
        cli_json_double(&json, "failure_rate_high", sum.rate_high);
        cli_json_double(&json, "units", sum.unit_count);
        cli_json_double(&json, "peak_reserved_bytes", sum.peak_reserved_bytes);
        cli_json_double(&json, "seconds", sum.seconds);
        cli_json_double(&json, "num_alloc_retries", sum.retry_count);
        cli_json_object_end(&json);
    }
    cli_json_array_end(&json);
    cli_json_object_end(&json);
    (void)cli_json_finish(&json);
}

/* The command and the limit as one text; owned by the caller. */
static char *describe(const trial_options *options)
{
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    if (stream == NULL) {
        return NULL;
    }
    fprintf(stream, "limit %s:", options->limit != NULL ? options->limit : "none");
    for (size_t i = 0; options->command[i] != NULL; i++) {
        fprintf(stream, " %s", options->command[i]);
    }
    (void)fclose(stream);
    return text;
}

static uf_status open_state(trial_work *trial, uf_error *error)
{
    const trial_options *options = trial->options;
    char *what = describe(options);
    if (what == NULL) {
        return uf__error_set(error, UF_ERROR_HOST_MEMORY, "no host memory");
    }
    uf_status status = trial_results_read(&trial->results, options->state, what, options->settings,
                                          options->setting_count, error);
    bool is_new = access(options->state, F_OK) != 0;
    if (status == UF_OK) {
        trial->state = fopen(options->state, "a");
        if (trial->state == NULL || (is_new && !trial_head_write(trial->state, what))) {
            status = uf__error_set(error, UF_ERROR_IO, "%s cannot be written: %s", options->state,
                                   strerror(errno));
        }
    }
    if (status == UF_OK && trial->results.count > 0) {
        fprintf(stderr, "unfrag trial: %zu runs are in %s: going on from there\n",
                trial->results.count, options->state);
    }
    free(what);
    return status;
}

static cli_exit run(trial_work *trial)
{
    uf_error error = {0};
    uf_status status = UF_OK;
    const trial_options *options = trial->options;
    bool is_stopped = false;
    if (options->limit != NULL) {
        status = cli_launch_limit(options->limit, &error);
    }
    if (status == UF_OK && options->state != NULL) {
        status = open_state(trial, &error);
    }
    if (status == UF_OK) {
        status = make_runs(trial, &is_stopped, &error);
    }
    if (status == UF_OK || trial->results.count > 0) {
        if (options->is_json) {
            print_json(trial);
        } else if (!print_table(trial)) {
            return CLI_EXIT_ENVIRONMENT;
        }
    }
    if (status != UF_OK) {
        (void)cli_fail("trial", &error);
        return status == UF_ERROR_NOT_FOUND ? CLI_EXIT_ENVIRONMENT : cli_exit_code(status);
    }
    return is_stopped ? CLI_EXIT_INTERRUPTED : CLI_EXIT_DONE;
}

static cli_exit start(trial_options *options)
{
    trial_work trial = {.options = options, .folder = "/tmp/unfrag-trial-XXXXXX"};
    uf_error error = {0};
    if (options->unit != NULL && regcomp(&trial.unit, options->unit, REG_EXTENDED) != 0) {
        fprintf(stderr,
                "unfrag trial: --unit: '%s' is no regular expression (as grep -E has them)\n",
                options->unit);
        return CLI_EXIT_USAGE;
    }
    if (mkdtemp(trial.folder) == NULL) {
        (void)uf__error_set(&error, UF_ERROR_IO, "no folder under /tmp can be made: %s",
                            strerror(errno));
        (void)cli_fail("trial", &error);
        return CLI_EXIT_ENVIRONMENT;
    }
    cli_exit code = run(&trial);
    trial_run rest;
    trial_numbers_read(trial.folder, &rest); /* of a run that was stopped */
    (void)rmdir(trial.folder);
    if (options->unit != NULL) {
        regfree(&trial.unit);
    }
    if (trial.state != NULL) {
        (void)fclose(trial.state);
    }
    trial_results_fini(&trial.results);
    return code;
}

cli_exit cli_trial(int argc, char **argv)
{
    trial_options *options = calloc(1, sizeof *options);
    if (options == NULL) {
        return CLI_EXIT_ENVIRONMENT;
    }
    options->run_count = 5;
    options->settings[0].conf = "";
    trial_setting_name(&options->settings[0]);
    options->setting_count = 1;
    static const struct argp parser = {
        .options = option_list,
        .parser = parse_option,
        .args_doc = "[--] COMMAND...",
        .doc = "Runs a PyTorch program several times in fresh processes for each of several "
               "settings, and says how often each fails, with the 95 % interval, how far it comes, "
               "and what it costs."
               "\vA run has failed if it does not end with exit code 0. Ctrl-C prints the table so "
               "far; --state FILE lets a later call go on."};
    cli_exit code = CLI_EXIT_USAGE;
    if (argp_parse(&parser, argc, argv, ARGP_IN_ORDER, NULL, options) == 0) {
        if (options->has_no_baseline) {
            options->setting_count--;
            memmove(&options->settings[0], &options->settings[1],
                    options->setting_count * sizeof options->settings[0]);
        }
        if (options->setting_count > 0) {
            code = start(options);
        } else {
            fprintf(stderr,
                    "unfrag trial: --no-default leaves nothing: name a --conf or --policy\n");
        }
    }
    free(options);
    return code;
}
