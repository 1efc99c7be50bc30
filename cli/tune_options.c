/* SPDX-License-Identifier: MIT
 *
 * argp's table of the tune options. */
#include "tune_options.h"

#include <argp.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "advise/tune.h"
#include "number_option.h"
#include "size_option.h"

enum option_key {
    KEY_CONF = 256,
    KEY_LIMIT,
    KEY_CARD,
    KEY_TOTAL,
    KEY_ALLOWANCE,
    KEY_SYNC_COST,
    KEY_TORCH,
    KEY_THREADS,
    KEY_DEVICE,
    KEY_JSON
};

static const struct argp_option option_list[] = {
    {NULL, 0, NULL, 0, "Where it must run:", 1},
    {"card", KEY_CARD, "SIZE", 0,
     "The card: a size, or a name such as \"RTX 3060\"; what CUDA and its libraries take is "
     "subtracted (--allowance)",
     1},
    {"limit", KEY_LIMIT, "SIZE", 0,
     "A memory limit that will be set by set_per_process_memory_fraction; 90% is of the card", 1},
    {"total", KEY_TOTAL, "SIZE", 0, "The device's nominal memory, if not that of the recording", 1},
    {"allowance", KEY_ALLOWANCE, "SIZE", 0,
     "Memory of a card that CUDA's context and libraries take (default 768MiB)", 1},
    {NULL, 0, NULL, 0, "What to compare with and how:", 2},
    {"conf", KEY_CONF, "STR", 0, "Today's settings; without it, those of the recording", 2},
    {"torch", KEY_TORCH, "VERSION", 0, "The PyTorch release to tune for (default 2.11)", 2},
    {"sync-cost", KEY_SYNC_COST, "MS", 0,
     "What one wait for the device costs the program, in milliseconds (default 1)", 2},
    {"device", KEY_DEVICE, "N", 0, "The device to tune for, if a recording has several", 2},
    {"threads", KEY_THREADS, "N", 0, "Threads to search with (default: one per core)", 2},
    {NULL, 0, NULL, 0, "Output:", 3},
    {"json", KEY_JSON, NULL, 0, "Print one JSON object", 3},
    {0},
};

/* Sizes are kept as text until all options are there: 90% is of a card named later. */
typedef struct parse_state {
    tune_options *options;
    const char *limit, *card, *total, *allowance;
} parse_state;

static void require(struct argp_state *state, uf_status status, const uf_error *error)
{
    if (status != UF_OK) {
        argp_error(state, "%s", error->text);
    }
}

static uint64_t number(struct argp_state *state, const char *option, const char *text,
                       uint64_t minimum, uint64_t maximum)
{
    uf_error error = {0};
    uint64_t value = minimum;
    require(state, cli_number_option(option, text, minimum, maximum, &value, &error), &error);
    return value;
}

static void parse_sync_cost(struct argp_state *state, const char *text)
{
    tune_options *options = ((parse_state *)state->input)->options;
    char *end;
    options->sync_ms = strtod(text, &end);
    bool is_number = end != text && *end == '\0' && isfinite(options->sync_ms);
    if (!is_number || options->sync_ms < 0.0 || options->sync_ms > 1e6) {
        argp_error(state, "--sync-cost is a number of milliseconds from 0 to 1000000, not '%s'",
                   text);
    }
}

static void resolve_sizes(struct argp_state *state)
{
    parse_state *parse = state->input;
    tune_options *options = parse->options;
    uf_error error = {0};
    if (parse->card != NULL) {
        require(state, cli_card_option("--card", parse->card, &options->card_bytes, &error),
                &error);
    }
    if (parse->total != NULL) {
        require(state, cli_size_option("--total", parse->total, 0, &options->total_bytes, &error),
                &error);
    }
    if (parse->allowance != NULL) {
        require(state,
                cli_size_option("--allowance", parse->allowance, options->card_bytes,
                                &options->allowance_bytes, &error),
                &error);
    }
    if (parse->limit != NULL) {
        require(state,
                cli_size_option("--limit", parse->limit, options->card_bytes, &options->limit_bytes,
                                &error),
                &error);
    }
    if (options->card_bytes != 0 && options->allowance_bytes >= options->card_bytes) {
        argp_error(state, "--allowance leaves nothing of the card");
    }
}

static void add_input(struct argp_state *state, const char *text)
{
    tune_options *options = ((parse_state *)state->input)->options;
    const char **grown =
        realloc(options->inputs, (options->input_count + 1u) * sizeof *options->inputs);
    if (grown == NULL) {
        argp_failure(state, CLI_EXIT_ENVIRONMENT, 0, "no memory for the list of recordings");
        return;
    }
    options->inputs = grown;
    options->inputs[options->input_count++] = text;
}

static error_t parse_size_option(int key, const char *text, parse_state *parse)
{
    switch (key) {
    case KEY_LIMIT:
        parse->limit = text;
        return 0;
    case KEY_CARD:
        parse->card = text;
        return 0;
    case KEY_TOTAL:
        parse->total = text;
        return 0;
    case KEY_ALLOWANCE:
        parse->allowance = text;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    parse_state *parse = state->input;
    tune_options *options = parse->options;
    uf_error error = {0};
    switch (key) {
    case KEY_CONF:
        options->conf = text;
        return 0;
    case KEY_SYNC_COST:
        parse_sync_cost(state, text);
        return 0;
    case KEY_TORCH:
        options->torch = text;
        require(state, uf__conf_release_find(text, &options->grammar, &options->release, &error),
                &error);
        return 0;
    case KEY_THREADS:
        options->thread_count = (uint32_t)number(state, "--threads", text, 1, 64);
        return 0;
    case KEY_DEVICE:
        options->has_device = true;
        options->device = (int32_t)number(state, "--device", text, 0, INT32_MAX);
        return 0;
    case KEY_JSON:
        options->is_json = true;
        return 0;
    case ARGP_KEY_ARG:
        add_input(state, text);
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "which recording? A file, - for standard input, or @NAME");
        return 0;
    case ARGP_KEY_END:
        resolve_sizes(state);
        return 0;
    default:
        return parse_size_option(key, text, parse);
    }
}

cli_exit tune_options_parse(int argc, char **argv, tune_options *options)
{
    memset(options, 0, sizeof *options);
    options->sync_ms = -1.0;
    options->allowance_bytes = UF_TUNE_ALLOWANCE_BYTES;
    parse_state parse = {.options = options};
    static const struct argp parser = {
        .options = option_list,
        .parser = parse_option,
        .args_doc = "FILE...",
        .doc = "Finds the PYTORCH_CUDA_ALLOC_CONF that serves a recorded program best, and the "
               "smallest limit and card it fits, and proves both by replay."
               "\vFILE is a PyTorch snapshot, a .uft file or a script, plain or compressed; - is "
               "standard input, @NAME a recording that comes with unfrag. Several recordings get "
               "one setting that serves all of them."};
    return argp_parse(&parser, argc, argv, 0, NULL, &parse) == 0 ? CLI_EXIT_DONE : CLI_EXIT_USAGE;
}

void tune_options_fini(tune_options *options)
{
    free(options->inputs);
    options->inputs = NULL;
}
