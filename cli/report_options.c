/* SPDX-License-Identifier: MIT
 *
 * argp's table of the report options. */
#include "report_options.h"

#include <argp.h>
#include <string.h>

#include "number_option.h"
#include "size_option.h"

enum option_key {
    KEY_TITLE = 256,
    KEY_LIMIT,
    KEY_DEVICE,
    KEY_TUNE,
    KEY_NO_TUNE,
    KEY_SKIP_STACKS,
    KEY_JSON
};

static const struct argp_option option_list[] = {
    {NULL, 0, NULL, 0, "The page:", 1},
    {"output", 'o', "FILE", 0,
     "Write the page to FILE, or - for standard output; by default it is named after the input, in "
     "this folder",
     1},
    {"force", 'f', NULL, 0, "Replace the page if it exists", 1},
    {"title", KEY_TITLE, "TEXT", 0, "The page's title; by default the name of the input", 1},
    {NULL, 0, NULL, 0, "What is in it:", 2},
    {"device", KEY_DEVICE, "N", 0, "The device to show, if the recording has several", 2},
    {"limit", KEY_LIMIT, "SIZE", 0,
     "The memory limit it was recorded under, which a snapshot does not say", 2},
    {"tune", KEY_TUNE, NULL, 0, "Search for the best settings, as 'unfrag tune' does", 2},
    {"no-tune", KEY_NO_TUNE, NULL, 0, "Compare no settings", 2},
    {"skip-stacks", KEY_SKIP_STACKS, NULL, 0, "Leave the call stacks out", 2},
    {NULL, 0, NULL, 0, "Output:", 3},
    {"json", KEY_JSON, NULL, 0, "Print one JSON object with the summary", 3},
    {0},
};

static void require(struct argp_state *state, uf_status status, const uf_error *error)
{
    if (status != UF_OK) {
        argp_error(state, "%s", error->text);
    }
}

static void choose_tuning(struct argp_state *state, report_tuning tuning)
{
    report_options *options = state->input;
    if (options->tuning != REPORT_TUNE_AUTO && options->tuning != tuning) {
        argp_error(state, "--tune or --no-tune, not both");
    }
    options->tuning = tuning;
}

static void parse_device(struct argp_state *state, const char *text)
{
    report_options *options = state->input;
    uf_error error = {0};
    uint64_t device = 0;
    require(state, cli_number_option("--device", text, 0, INT32_MAX, &device, &error), &error);
    options->has_device = true;
    options->device = (int32_t)device;
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    report_options *options = state->input;
    uf_error error = {0};
    switch (key) {
    case 'o':
        options->output = text;
        return 0;
    case 'f':
        options->is_forced = true;
        return 0;
    case KEY_TITLE:
        options->title = text;
        return 0;
    case KEY_DEVICE:
        parse_device(state, text);
        return 0;
    case KEY_LIMIT:
        require(state, cli_size_option("--limit", text, 0, &options->limit_bytes, &error), &error);
        return 0;
    case KEY_TUNE:
        choose_tuning(state, REPORT_TUNE_SEARCH);
        return 0;
    case KEY_NO_TUNE:
        choose_tuning(state, REPORT_TUNE_NONE);
        return 0;
    case KEY_SKIP_STACKS:
        options->skip_stacks = true;
        return 0;
    case KEY_JSON:
        options->is_json = true;
        return 0;
    case ARGP_KEY_ARG:
        if (state->arg_num >= REPORT_INPUT_LIMIT) {
            argp_error(state, "one FILE, or two to compare, and then there is '%s'", text);
        }
        options->inputs[options->input_count++] = text;
        return 0;
    case ARGP_KEY_END:
        if (options->input_count == 0) {
            argp_error(state, "which recording (FILE)?");
        }
        if (options->is_json && options->output != NULL && strcmp(options->output, "-") == 0) {
            argp_error(state, "--json and the page cannot both go to standard output");
        }
        if (options->input_count == 2 && strcmp(options->inputs[0], "-") == 0 &&
            strcmp(options->inputs[1], "-") == 0) {
            argp_error(state, "standard input can be read once only");
        }
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

cli_exit report_options_parse(int argc, char **argv, report_options *options)
{
    static const struct argp parser = {
        .options = option_list,
        .parser = parse_option,
        .args_doc = "FILE [FILE]",
        .doc = "Makes one self-contained HTML page of a recording: what its memory did, where it "
               "was lost, and what would help. Two recordings are compared."
               "\vFILE is a snapshot, with or without history, or a .uft file, - for standard "
               "input, or @NAME for a recording that comes with unfrag. The page needs no network "
               "and runs in any current browser."};
    memset(options, 0, sizeof *options);
    return argp_parse(&parser, argc, argv, 0, NULL, options) == 0 ? CLI_EXIT_DONE : CLI_EXIT_USAGE;
}
