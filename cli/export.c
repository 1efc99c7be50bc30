/* SPDX-License-Identifier: MIT
 *
 * unfrag export: the numbers of all watched processes for Prometheus, by HTTP or in a file for
 * node_exporter. Owns the options; the format and the server are the monitor's. */
#include <argp.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/output.h"
#include "exit_code.h"
#include "interrupt.h"
#include "monitor/http.h"
#include "monitor/prometheus.h"
#include "top_sample.h"
#include "verb.h"

#define DEFAULT_ADDRESS "127.0.0.1:9469"

typedef struct export_options {
    const char *address; /* NULL = not asked for */
    const char *textfile;
    double interval_seconds;
    bool is_once;
} export_options;

static const struct argp_option option_list[] = {
    {"listen", 'l', "ADDRESS", 0,
     "Serve http://ADDRESS/metrics (default " DEFAULT_ADDRESS "; a port alone means 127.0.0.1)", 0},
    {"textfile", 't', "PATH", 0,
     "Write PATH again and again, whole each time, for node_exporter's textfile collector; - "
     "prints "
     "once to standard output",
     0},
    {"interval", 'i', "SECONDS", 0, "Time between writings of PATH, from 1 (default 15)", 0},
    {"once", '1', NULL, 0, "Write PATH once and end", 0},
    {0},
};

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    export_options *options = state->input;
    char *end;
    switch (key) {
    case 'l':
        options->address = argument;
        return 0;
    case 't':
        options->textfile = argument;
        return 0;
    case 'i':
        options->interval_seconds = strtod(argument, &end);
        if (end == argument || *end != '\0' ||
            !(options->interval_seconds >= 1.0 && options->interval_seconds <= 86400.0)) {
            argp_error(state, "--interval is seconds from 1 to 86400, not '%s'", argument);
        }
        return 0;
    case '1':
        options->is_once = true;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "'%s'? It takes options only", argument);
        return ARGP_ERR_UNKNOWN;
    case ARGP_KEY_END:
        if (options->address != NULL && options->textfile != NULL) {
            argp_error(state, "--listen or --textfile; for both, start two");
        }
        if (options->is_once && options->textfile == NULL) {
            argp_error(state, "--once is for --textfile");
        }
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static volatile sig_atomic_t has_terminate;

static void on_terminate(int number)
{
    (void)number;
    has_terminate = 1;
}

static void catch_terminate(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_terminate;
    sigemptyset(&action.sa_mask);
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGHUP, &action, NULL);
}

static bool is_ending(void)
{
    return has_terminate != 0 || cli_is_interrupted();
}

static uf_status write_metrics(cli_top_sample *sample, FILE *stream, uf_error *error)
{
    uf_status status = cli_top_sample_read(sample, error);
    if (status == UF_OK && !uf__prometheus_write(&sample->pages, &sample->cards, stream)) {
        status = uf__error_set(error, UF_ERROR_IO, "writing failed: %s", strerror(errno));
    }
    return status;
}

static const char *answer(void *context, const char *path, FILE *body)
{
    if (strcmp(path, "/metrics") == 0) {
        uf_error error = {0};
        if (write_metrics(context, body, &error) != UF_OK) {
            fprintf(stderr, "unfrag export: %s\n", error.text);
        }
        return "text/plain; version=0.0.4; charset=utf-8";
    }
    if (strcmp(path, "/") == 0) {
        fputs("<!doctype html><html lang=\"en\"><title>unfrag export</title>"
              "<p>unfrag " UF_VERSION ": <a href=\"/metrics\">metrics</a></p></html>\n",
              body);
        return "text/html; charset=utf-8";
    }
    return NULL;
}

static cli_exit serve(const export_options *options, cli_top_sample *sample)
{
    uf_error error = {0};
    char bound[UF_HTTP_ADDRESS_CAPACITY];
    int listener = -1;
    const char *address = options->address != NULL ? options->address : DEFAULT_ADDRESS;
    uf_status status = uf__http_listen(address, &listener, bound, &error);
    if (status != UF_OK) {
        return status == UF_ERROR_INVALID_ARGUMENT ? cli_fail("export", &error)
                                                   : cli_fail_output("export", &error);
    }
    fprintf(stderr, "unfrag export: serving http://%s/metrics\n", bound);
    const uf_http_handler handler = {.answer = answer, .is_ending = is_ending, .context = sample};
    status = uf__http_serve(listener, &handler, &error);
    close(listener);
    return status == UF_OK ? CLI_EXIT_DONE : cli_fail_output("export", &error);
}

static uf_status write_file(const char *path, cli_top_sample *sample, uf_error *error)
{
    uf_output output;
    uf_status status = uf__output_open(&output, path, true, error);
    if (status != UF_OK) {
        return status;
    }
    status = write_metrics(sample, output.stream, error);
    if (status != UF_OK) {
        uf__output_abandon(&output);
        return status;
    }
    return uf__output_commit(&output, error);
}

static void wait_seconds(double seconds)
{
    struct timespec left = {.tv_sec = (time_t)seconds};
    left.tv_nsec = (long)((seconds - (double)left.tv_sec) * 1e9);
    while (!is_ending() && nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}

static cli_exit write_files(const export_options *options, cli_top_sample *sample)
{
    bool is_once = options->is_once || strcmp(options->textfile, "-") == 0;
    for (;;) {
        uf_error error = {0};
        if (write_file(options->textfile, sample, &error) != UF_OK) {
            return cli_fail_output("export", &error);
        }
        if (is_once || is_ending()) {
            return CLI_EXIT_DONE;
        }
        wait_seconds(options->interval_seconds);
        if (is_ending()) {
            return CLI_EXIT_DONE;
        }
    }
}

cli_exit cli_export(int argc, char **argv)
{
    export_options options = {.interval_seconds = 15.0};
    static const struct argp parser = {
        .options = option_list,
        .parser = parse_option,
        .doc = "Gives the memory of every process that is watched to Prometheus: by HTTP on this "
               "machine only, unless told otherwise, or in a file."
               "\vIt runs until it is ended by Ctrl-C or SIGTERM."};
    if (argp_parse(&parser, argc, argv, 0, NULL, &options) != 0) {
        return CLI_EXIT_USAGE;
    }
    catch_terminate();
    cli_top_sample sample = {0};
    cli_exit code =
        options.textfile != NULL ? write_files(&options, &sample) : serve(&options, &sample);
    cli_top_sample_fini(&sample);
    return code;
}
