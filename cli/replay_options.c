/* SPDX-License-Identifier: MIT
 *
 * argp's table of the replay options, and the rules between them. */
#include "replay_options.h"

#include <argp.h>
#include <string.h>

#include "number_option.h"
#include "size_option.h"

enum option_key {
    KEY_POLICY = 256,
    KEY_CONF,
    KEY_LIMIT,
    KEY_CARD,
    KEY_TOTAL,
    KEY_DEVICE,
    KEY_FROM,
    KEY_TO,
    KEY_REPEAT,
    KEY_SHUFFLE,
    KEY_ON_OOM,
    KEY_LAG,
    KEY_COST,
    KEY_VERIFY,
    KEY_STATS,
    KEY_SUMMARY,
    KEY_COMPARE,
    KEY_JSON
};

/* A device that is more than an hour behind is a typing error. */
enum { MAX_LAG_MS = 3600 * 1000 };

static const struct argp_option option_list[] = {
    {NULL, 0, NULL, 0, "Under other settings or on another card (what-if):", 1},
    {"conf", KEY_CONF, "STR", 0,
     "Settings as in PYTORCH_CUDA_ALLOC_CONF, such as max_split_size_mb:128; without it, those of "
     "the recording",
     1},
    {"policy", KEY_POLICY, "NAME", 0,
     "The allocator's policy: torch, which is PyTorch's own and the default, or unfrag, which "
     "moves "
     "pages so that memory does not fragment",
     1},
    {"limit", KEY_LIMIT, "SIZE", 0,
     "Memory limit, as set by set_per_process_memory_fraction; 90% is of the card", 1},
    {"card", KEY_CARD, "SIZE", 0,
     "What the driver can hand out, all of it to PyTorch: a size, or a card's name such as \"RTX "
     "3060\"",
     1},
    {"total", KEY_TOTAL, "SIZE", 0, "The device's nominal memory, if not that of the recording", 1},
    {"on-oom", KEY_ON_OOM, "WHAT", 0, "When a request fails: stop (default), or skip it and go on",
     1},
    {"compare", KEY_COMPARE, NULL, 0,
     "One row for each of four common settings, the recording's, those of --conf, and the unfrag "
     "policy",
     1},
    {"lag", KEY_LAG, "MS", 0,
     "With --policy unfrag: how far the device is behind the program, in milliseconds of the "
     "recording (default 0)",
     1},
    {"cost", KEY_COST, "NAME", 0, "Whose driver times to charge: h200 (default) or a100", 1},
    {NULL, 0, NULL, 0, "Part of the recording:", 2},
    {"device", KEY_DEVICE, "N", 0, "The device to replay, if the recording has several", 2},
    {"from", KEY_FROM, "N", 0, "Report from this event on (numbers start at 0)", 2},
    {"to", KEY_TO, "N", 0, "Stop before this event", 2},
    {"repeat", KEY_REPEAT, "N", 0, "Play the steady part N times", 2},
    {"shuffle", KEY_SHUFFLE, "SEED", 0, "With --repeat: in another order each time", 2},
    {NULL, 0, NULL, 0, "Checking:", 3},
    {"verify", KEY_VERIFY, NULL, 0,
     "Same settings, same addresses: every event, statistic and final block must be equal", 3},
    {"stats", KEY_STATS, "FILE", 0,
     "With --verify: statistics to compare with (default: NAME.stats.json beside NAME.pickle*)", 3},
    {NULL, 0, NULL, 0, "Output:", 4},
    {"summary", KEY_SUMMARY, NULL, 0, "Also print the table of torch.cuda.memory_summary()", 4},
    {"json", KEY_JSON, NULL, 0, "Print one JSON object", 4},
    {0},
};

/* Sizes are kept as text until all options are there: 90% is of a card named later. */
typedef struct parse_state {
    replay_options *options;
    const char *limit, *card, *total;
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

static int choose(struct argp_state *state, const char *option, const char *text, const char *first,
                  const char *second)
{
    if (strcmp(text, first) == 0) {
        return 0;
    }
    if (strcmp(text, second) != 0) {
        argp_error(state, "%s knows '%s' and '%s', not '%s'", option, first, second, text);
    }
    return 1;
}

/* The options that choose a part of the recording. */
static error_t parse_part(int key, char *text, struct argp_state *state)
{
    replay_options *options = ((parse_state *)state->input)->options;
    switch (key) {
    case KEY_DEVICE:
        options->has_device = true;
        options->device = (int32_t)number(state, "--device", text, 0, INT32_MAX);
        return 0;
    case KEY_FROM:
        options->from_event = number(state, "--from", text, 0, UINT64_MAX);
        return 0;
    case KEY_TO:
        options->to_event = number(state, "--to", text, 1, UINT64_MAX);
        return 0;
    case KEY_REPEAT:
        options->repeat_count = (uint32_t)number(state, "--repeat", text, 1, UINT32_MAX);
        return 0;
    case KEY_SHUFFLE:
        options->has_shuffle = true;
        options->shuffle_seed = number(state, "--shuffle", text, 0, UINT64_MAX);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse_flag(int key, struct argp_state *state)
{
    replay_options *options = ((parse_state *)state->input)->options;
    switch (key) {
    case KEY_VERIFY:
        options->is_verify = true;
        return 0;
    case KEY_SUMMARY:
        options->is_summary = true;
        return 0;
    case KEY_COMPARE:
        options->is_compare = true;
        return 0;
    case KEY_JSON:
        options->is_json = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse_what_if(int key, char *text, struct argp_state *state)
{
    parse_state *parse = state->input;
    replay_options *options = parse->options;
    switch (key) {
    case KEY_POLICY:
        options->policy = (replay_policy)choose(state, "--policy", text, "torch", "unfrag");
        return 0;
    case KEY_CONF:
        options->conf = text;
        return 0;
    case KEY_LIMIT:
        parse->limit = text;
        return 0;
    case KEY_CARD:
        parse->card = text;
        return 0;
    case KEY_TOTAL:
        parse->total = text;
        return 0;
    case KEY_ON_OOM:
        options->has_on_oom = true;
        options->on_oom = (replay_on_oom)choose(state, "--on-oom", text, "stop", "skip");
        return 0;
    case KEY_LAG:
        options->has_lag = true;
        options->lag_ms = number(state, "--lag", text, 0, MAX_LAG_MS);
        return 0;
    case KEY_COST:
        options->cost = (replay_cost)choose(state, "--cost", text, "h200", "a100");
        return 0;
    case KEY_STATS:
        options->stats_path = text;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void resolve_sizes(struct argp_state *state)
{
    parse_state *parse = state->input;
    replay_options *options = parse->options;
    uf_error error = {0};
    if (parse->card != NULL) {
        require(state, cli_card_option("--card", parse->card, &options->card_bytes, &error),
                &error);
    }
    if (parse->total != NULL) {
        require(state, cli_size_option("--total", parse->total, 0, &options->total_bytes, &error),
                &error);
    }
    if (parse->limit != NULL) {
        uint64_t whole = options->card_bytes != 0 ? options->card_bytes : options->total_bytes;
        require(state,
                cli_size_option("--limit", parse->limit, whole, &options->limit_bytes, &error),
                &error);
    }
}

/* Options that say nothing together are refused rather than ignored. */
static void check_together(struct argp_state *state)
{
    const replay_options *options = ((parse_state *)state->input)->options;
    if (options->to_event != 0 && options->to_event <= options->from_event) {
        argp_error(state, "--to is not after --from: no event is left");
    }
    if (options->repeat_count > 1 && (options->from_event != 0 || options->to_event != 0)) {
        argp_error(state, "--repeat plays the whole recording: no --from and no --to with it");
    }
    if (options->is_verify && (options->from_event != 0 || options->to_event != 0)) {
        argp_error(state, "--verify compares the whole recording: no --from and no --to with it");
    }
    if (options->has_shuffle && options->repeat_count < 2) {
        argp_error(state, "--shuffle needs --repeat 2 or more");
    }
    if (options->stats_path != NULL && !options->is_verify) {
        argp_error(state, "--stats needs --verify");
    }
    if (options->is_verify && (options->repeat_count > 1 || options->has_on_oom)) {
        argp_error(state, "--verify follows the recording: no --repeat and no --on-oom with it");
    }
    if (options->is_verify && options->policy != REPLAY_TORCH) {
        argp_error(state, "--verify compares with PyTorch: no --policy unfrag with it");
    }
    if (options->is_verify && options->cost != REPLAY_COST_H200) {
        argp_error(state, "--verify compares with the recording: no --cost with it");
    }
    if (options->has_lag && options->policy != REPLAY_UNFRAG) {
        argp_error(state, "--lag needs --policy unfrag: PyTorch's allocator does not depend on it");
    }
    if (options->is_compare && options->policy != REPLAY_TORCH) {
        argp_error(state, "--compare has a row for each policy: no --policy unfrag with it");
    }
    if (options->is_compare && (options->is_verify || options->is_summary)) {
        argp_error(state, "--compare prints a table of its own: no --verify or --summary with it");
    }
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    replay_options *options = ((parse_state *)state->input)->options;
    switch (key) {
    case ARGP_KEY_ARG:
        if (state->arg_num > 0) {
            argp_error(state, "one recording at a time, and then there is '%s'", text);
        }
        options->input = text;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "which recording? A file, - for standard input, or @NAME");
        return 0;
    case ARGP_KEY_END:
        resolve_sizes(state);
        check_together(state);
        return 0;
    default:
        break;
    }
    error_t result = parse_flag(key, state);
    if (result == ARGP_ERR_UNKNOWN) {
        result = parse_part(key, text, state);
    }
    return result == ARGP_ERR_UNKNOWN ? parse_what_if(key, text, state) : result;
}

cli_exit replay_options_parse(int argc, char **argv, replay_options *options)
{
    memset(options, 0, sizeof *options);
    options->repeat_count = 1;
    parse_state parse = {.options = options};
    static const struct argp parser = {
        .options = option_list,
        .parser = parse_option,
        .args_doc = "FILE",
        .doc = "Plays a recording of a program's GPU memory again: as it was, or as it would have "
               "been under other settings or on another card."
               "\vFILE is a PyTorch snapshot, a .uft file or a script, plain or compressed; - is "
               "standard input, @NAME a recording that comes with unfrag."};
    return argp_parse(&parser, argc, argv, 0, NULL, &parse) == 0 ? CLI_EXIT_DONE : CLI_EXIT_USAGE;
}
