/* SPDX-License-Identifier: MIT
 *
 * unfrag convert IN OUT: reads a trace of any form and writes it in another. Owns the choice of the
 * output's form; the formats themselves are the trace library's. */
#include "verb.h"

#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/output.h"
#include "base/size.h"
#include "compress.h"
#include "convert_form.h"
#include "exit_code.h"
#include "input.h"
#include "interrupt.h"
#include "json.h"
#include "number_option.h"
#include "table.h"

typedef enum convert_form {
    FORM_BY_NAME,
    FORM_UFT,
    FORM_PICKLE,
    FORM_PERFETTO,
    FORM_CSV,
    FORM_COUNT
} convert_form;

static const char *const form_names[FORM_COUNT] = {"", "uft", "pickle", "perfetto", "csv"};

/* The ends of file names; compression comes after them. */
static const struct {
    const char *end;
    convert_form form;
} name_ends[] = {{".uft", FORM_UFT},
                 {".pickle", FORM_PICKLE},
                 {".pkl", FORM_PICKLE},
                 {".perfetto.json", FORM_PERFETTO},
                 {".csv", FORM_CSV}};

typedef struct convert_options {
    const char *input;
    const char *output;
    convert_form form;
    cli_compression compression;
    bool is_forced;
    bool skip_stacks;
    bool is_json;
    cli_perfetto_bounds bounds;
} convert_options;

enum { KEY_POINTS = 256, KEY_BLOCKS };

static const struct argp_option option_list[] = {
    {"to", 't', "FORM", 0,
     "Write this form: uft (compact, ours), pickle (a snapshot for PyTorch's memory viewer), "
     "perfetto (for Perfetto and chrome://tracing) or csv; by default the name of OUT decides: "
     ".uft, .pickle, .pkl, .perfetto.json or .csv",
     0},
    {"force", 'f', NULL, 0, "Replace OUT if it exists", 0},
    {"skip-stacks", 's', NULL, 0, "Leave the call stacks out", 0},
    {"points", KEY_POINTS, "N", 0,
     "perfetto: slices of time per counter, each with its least and its largest value (default "
     "10000; 0 = every change)",
     0},
    {"blocks", KEY_BLOCKS, "N", 0, "perfetto: show the N largest blocks (default 5000)", 0},
    {"json", 'j', NULL, 0, "Print one JSON object about what was written", 0},
    {0},
};

static void parse_bound(const char *option, const char *argument, uint64_t *value,
                        struct argp_state *state)
{
    uf_error error = {0};
    if (cli_number_option(option, argument, 0, 100000000, value, &error) != UF_OK) {
        argp_error(state, "%s", error.text);
    }
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    convert_options *options = state->input;
    switch (key) {
    case 't':
        options->form = FORM_COUNT;
        for (int i = FORM_UFT; i < FORM_COUNT; i++) {
            options->form = strcmp(argument, form_names[i]) == 0 ? (convert_form)i : options->form;
        }
        if (options->form == FORM_COUNT) {
            argp_error(state, "--to knows 'uft', 'pickle', 'perfetto' and 'csv', not '%s'",
                       argument);
        }
        return 0;
    case KEY_POINTS:
        parse_bound("--points", argument, &options->bounds.points, state);
        return 0;
    case KEY_BLOCKS:
        parse_bound("--blocks", argument, &options->bounds.blocks, state);
        return 0;
    case 'f':
        options->is_forced = true;
        return 0;
    case 's':
        options->skip_stacks = true;
        return 0;
    case 'j':
        options->is_json = true;
        return 0;
    case ARGP_KEY_ARG:
        if (state->arg_num == 0) {
            options->input = argument;
        } else if (state->arg_num == 1) {
            options->output = argument;
        } else {
            argp_error(state, "one IN and one OUT, and then there is '%s'", argument);
        }
        return 0;
    case ARGP_KEY_END:
        if (options->output == NULL) {
            argp_error(state, "which trace (IN), and where to (OUT)?");
        }
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static bool ends_with(const char *text, size_t length, const char *suffix)
{
    size_t suffix_length = strlen(suffix);
    return length > suffix_length &&
           strncmp(text + length - suffix_length, suffix, suffix_length) == 0;
}

/* The form from OUT's name, unless --to has said it. */
static bool choose_form(convert_options *options, uf_error *error)
{
    size_t length;
    const char *output = options->output;
    options->compression = cli_compression_of(output, &length);
    if (options->form != FORM_BY_NAME) {
        return true;
    }
    for (size_t i = 0; i < sizeof name_ends / sizeof name_ends[0]; i++) {
        if (ends_with(output, length, name_ends[i].end)) {
            options->form = name_ends[i].form;
            return true;
        }
    }
    uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                  "the form of '%s' is not clear from its name: end it in .uft, .pickle, .pkl, "
                  ".perfetto.json or .csv (and .gz, .xz or .zst to compress), or say --to uft, "
                  "--to pickle, --to perfetto or --to csv",
                  output);
    return false;
}

static uf_status write_form(const convert_options *options, const uf_trace *trace, FILE *stream,
                            uf_error *error)
{
    switch (options->form) {
    case FORM_UFT:
        return uf_trace_write_uft(trace, stream, error);
    case FORM_PERFETTO:
        return cli_perfetto_write(trace, &options->bounds, stream, error);
    case FORM_CSV:
        return cli_csv_write(trace, stream, error);
    default:
        return uf_trace_write_pickle(trace, stream, error);
    }
}

static uf_status write_trace(const convert_options *options, const uf_trace *trace, FILE *target,
                             uf_error *error)
{
    FILE *stream = NULL;
    uf_status status = cli_compress_open(target, options->compression, &stream, error);
    if (status != UF_OK) {
        return status;
    }
    status = write_form(options, trace, stream, error);
    errno = 0;
    if (fclose(stream) != 0 && status == UF_OK) {
        status = uf__error_set(error, UF_ERROR_IO, "%s: writing failed: %s", options->output,
                               errno != 0 ? strerror(errno) : "the file is not complete");
    }
    if (status == UF_OK && cli_is_interrupted()) {
        status = uf__error_set(error, UF_ERROR_INTERRUPTED, "interrupted");
    }
    return status;
}

static cli_exit report(const convert_options *options, const uf_trace *trace)
{
    const char *form = form_names[options->form];
    if (options->is_json) {
        cli_json json;
        cli_json_init(&json, stdout);
        cli_json_object_begin(&json, NULL);
        cli_json_string(&json, "input", options->input);
        cli_json_string(&json, "output", options->output);
        cli_json_string(&json, "form", form);
        cli_json_uint64(&json, "events", trace->event_count);
        cli_json_uint64(&json, "segments", trace->segment_count);
        cli_json_uint64(&json, "blocks", trace->block_count);
        cli_json_uint64(&json, "stacks", trace->stack_count);
        cli_json_object_end(&json);
        return cli_json_finish(&json) ? CLI_EXIT_DONE : CLI_EXIT_ENVIRONMENT;
    }
    char events[CLI_COUNT_TEXT_CAPACITY], blocks[CLI_COUNT_TEXT_CAPACITY];
    printf("%s: %s, %s events, %" PRIu32 " segments, %s blocks\n", options->output, form,
           cli_count_format(events, trace->event_count), trace->segment_count,
           cli_count_format(blocks, trace->block_count));
    return CLI_EXIT_DONE;
}

/* Reads IN and writes it to an output that is open; what it returns has been told. */
static cli_exit convert(const convert_options *options, const cli_input *input, uf_output *output)
{
    uf_error error = {0};
    uf_trace *trace = NULL;
    if (cli_input_read(input, options->skip_stacks, &trace, &error) != UF_OK) {
        uf__output_abandon(output);
        return cli_fail("convert", &error);
    }
    cli_exit code;
    bool is_standard = output->is_standard;
    if (write_trace(options, trace, output->stream, &error) != UF_OK) {
        uf__output_abandon(output);
        code = cli_fail_output("convert", &error);
    } else if (uf__output_commit(output, &error) != UF_OK) {
        code = cli_fail_output("convert", &error);
    } else {
        code = is_standard ? CLI_EXIT_DONE : report(options, trace);
    }
    uf_trace_destroy(trace);
    return code;
}

/* The output is opened before anything is read: nobody waits minutes to hear that it exists. */
static cli_exit open_and_convert(const convert_options *options, const cli_input *input)
{
    uf_error error = {0};
    uf_output output;
    if (uf__output_open(&output, options->output, options->is_forced, &error) == UF_OK) {
        return convert(options, input, &output);
    }
    struct stat found;
    bool is_file = stat(options->output, &found) == 0 && !S_ISDIR(found.st_mode);
    if (error.status == UF_ERROR_INVALID_ARGUMENT && !options->is_forced && is_file) {
        uf__error_set(&error, UF_ERROR_INVALID_ARGUMENT, "%s exists; --force replaces it",
                      options->output);
    }
    return cli_fail_output("convert", &error);
}

cli_exit cli_convert(int argc, char **argv)
{
    convert_options options = {.bounds = {.points = 10000, .blocks = 5000}};
    static const struct argp parser = {
        .options = option_list,
        .parser = parse_option,
        .args_doc = "IN OUT",
        .doc = "Converts a recording between trace formats."
               "\vIN is a file of any form, - for standard input, or @NAME for a recording that "
               "comes with unfrag. OUT is a file or - for standard output."};
    if (argp_parse(&parser, argc, argv, 0, NULL, &options) != 0) {
        return CLI_EXIT_USAGE;
    }
    uf_error error = {0};
    if (!choose_form(&options, &error)) {
        return cli_fail("convert", &error);
    }
    cli_input input;
    if (cli_input_find(options.input, &input, &error) != UF_OK) {
        return cli_fail("convert", &error);
    }
    cli_exit code = open_and_convert(&options, &input);
    cli_input_fini(&input);
    return code;
}
