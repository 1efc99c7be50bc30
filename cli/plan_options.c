/* SPDX-License-Identifier: MIT
 *
 * argp's table of the plan options. */
#include "plan_options.h"

#include <argp.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "nearest.h"
#include "number_option.h"
#include "size_option.h"

enum option_key {
    KEY_SIZE = 256,
    KEY_BATCH,
    KEY_OFFLOAD,
    KEY_ATTENTION_SLICING,
    KEY_VAE_SLICING,
    KEY_VAE_TILING,
    KEY_DTYPE,
    KEY_WEIGHTS,
    KEY_POLICY,
    KEY_CONF,
    KEY_CARD,
    KEY_ALLOWANCE,
    KEY_FROM,
    KEY_DESCRIBE,
    KEY_NAME,
    KEY_MULTIPLE,
    KEY_JSON
};

enum { SIDE_MAX = 1 << 16, BATCH_MAX = 1 << 10 };

static const struct argp_option option_list[] = {
    {NULL, 0, NULL, 0, "What is run:", 1},
    {"size", KEY_SIZE, "WxH", 0, "Width and height of an image, such as 1024x1024", 1},
    {"batch", KEY_BATCH, "N", 0, "Images at once (default 1)", 1},
    {"offload", KEY_OFFLOAD, NULL, 0, "With enable_model_cpu_offload()", 1},
    {"attention-slicing", KEY_ATTENTION_SLICING, NULL, 0, "With enable_attention_slicing()", 1},
    {"vae-slicing", KEY_VAE_SLICING, NULL, 0, "With vae.enable_slicing()", 1},
    {"vae-tiling", KEY_VAE_TILING, NULL, 0, "With vae.enable_tiling()", 1},
    {"dtype", KEY_DTYPE, "TYPE", 0, "bf16, fp16 or fp32; other than recorded: scaled, not measured",
     1},
    {"weights", KEY_WEIGHTS, "PATH", 0,
     "Weight files (a folder, or one file such as a fine-tune's): their headers give the weights' "
     "part; without MODEL, that alone",
     1},
    {NULL, 0, NULL, 0, "Where it must run:", 2},
    {"card", KEY_CARD, "SIZE", 0,
     "The card: a size, or a name such as \"RTX 3060\"; without --size: the largest sizes and "
     "batches that fit it",
     2},
    {"conf", KEY_CONF, "STR", 0, "PYTORCH_CUDA_ALLOC_CONF of the program (default: none)", 2},
    {"policy", KEY_POLICY, "NAME", 0,
     "The allocator's policy: torch, which is PyTorch's own and the default, or unfrag", 2},
    {"allowance", KEY_ALLOWANCE, "SIZE", 0,
     "Memory of a card that CUDA's context and libraries take (default 768MiB)", 2},
    {NULL, 0, NULL, 0, "Other models, from recordings:", 3},
    {"from", KEY_FROM, "FILE", 0, "A recording to fit; give two or more, of different sizes", 3},
    {"describe", KEY_DESCRIBE, "TEXT", 0,
     "What the recording before it shows: WxH[,batch=N][,OPTION...]", 3},
    {"name", KEY_NAME, "NAME", 0, "The fitted model's name (default: model)", 3},
    {"multiple", KEY_MULTIPLE, "N", 0, "What width and height are multiples of (default 8)", 3},
    {"output", 'o', "FILE", 0, "Write the fitted model to FILE, to be named as MODEL later", 3},
    {NULL, 0, NULL, 0, "Output:", 4},
    {"json", KEY_JSON, NULL, 0, "Print one JSON object", 4},
    {0},
};

typedef struct parse_state {
    plan_options *options;
    const char *card, *allowance;
} parse_state;

static void require(struct argp_state *state, uf_status status, const uf_error *error)
{
    if (status != UF_OK) {
        argp_error(state, "%s", error->text);
    }
}

/* WxH; returns what follows, or NULL if it is none. */
static const char *read_size(const char *text, uf_plan_shape *shape)
{
    uint64_t sides[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        const char *start = text;
        while (*text >= '0' && *text <= '9' && sides[i] <= SIDE_MAX) {
            sides[i] = sides[i] * 10 + (uint64_t)(*text - '0');
            text++;
        }
        if (text == start || sides[i] == 0 || sides[i] > SIDE_MAX) {
            return NULL;
        }
        if (i == 0 && *text != 'x' && *text != 'X') {
            return NULL;
        }
        text += i == 0 ? 1 : 0;
    }
    shape->width = (uint32_t)sides[0];
    shape->height = (uint32_t)sides[1];
    return text;
}

static void parse_size(struct argp_state *state, plan_options *options, const char *text)
{
    const char *rest = read_size(text, &options->question.job.shape);
    if (rest == NULL || *rest != '\0') {
        argp_error(state, "--size is WIDTHxHEIGHT in pixels, such as 1024x1024, not '%s'", text);
    }
    options->has_size = true;
}

static uint32_t number(struct argp_state *state, const char *option, const char *text,
                       uint64_t maximum)
{
    uf_error error = {0};
    uint64_t value = 1;
    require(state, cli_number_option(option, text, 1, maximum, &value, &error), &error);
    return (uint32_t)value;
}

static void parse_dtype(struct argp_state *state, plan_options *options, const char *text)
{
    static const char *const names[] = {"fp16", "bf16", "fp32"};
    static const uf_plan_dtype dtypes[] = {UF_PLAN_DTYPE_FP16, UF_PLAN_DTYPE_BF16,
                                           UF_PLAN_DTYPE_FP32};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(text, names[i]) == 0) {
            options->question.job.dtype = dtypes[i];
            options->dtype = names[i];
            return;
        }
    }
    argp_error(state, "--dtype is one of bf16, fp16, fp32, not '%s'", text);
}

static void describe_word(struct argp_state *state, plan_from *from, const char *word)
{
    static const char *const names[] = {"offload", "attention-slicing", "vae-slicing",
                                        "vae-tiling"};
    uf_plan_option option = uf__plan_option_find(word);
    if (strncmp(word, "batch=", 6) == 0) {
        from->shape.batch = number(state, "--describe batch", word + 6, BATCH_MAX);
    } else if (option != UF_PLAN_OPTION_COUNT) {
        from->options |= UINT32_C(1) << option;
    } else {
        const char *near = cli_nearest(word, names, sizeof names / sizeof names[0]);
        argp_error(state,
                   "--describe knows batch=N, offload, attention-slicing, vae-slicing and "
                   "vae-tiling, not '%s'%s%s%s",
                   word, near != NULL ? ", did you mean '" : "", near != NULL ? near : "",
                   near != NULL ? "'?" : "");
    }
}

static void parse_describe(struct argp_state *state, plan_options *options, char *text)
{
    if (options->from_count == 0 || options->from[options->from_count - 1].is_described) {
        argp_error(state, "--describe tells of the --from before it");
        return;
    }
    plan_from *from = &options->from[options->from_count - 1];
    const char *rest = read_size(text, &from->shape);
    if (rest == NULL || (*rest != '\0' && *rest != ',')) {
        argp_error(state,
                   "--describe begins with WIDTHxHEIGHT, such as 1024x1024,batch=2, not "
                   "'%s'",
                   text);
        return;
    }
    from->is_described = true;
    from->shape.batch = 1;
    char *saved = NULL;
    char *words = text + (rest - text);
    for (char *word = strtok_r(words, ",", &saved); word != NULL;
         word = strtok_r(NULL, ",", &saved)) {
        describe_word(state, from, word);
    }
}

static void add_from(struct argp_state *state, plan_options *options, const char *text)
{
    if (options->from_count == PLAN_FROM_MAX) {
        argp_error(state, "at most %d recordings are fitted", PLAN_FROM_MAX);
        return;
    }
    options->from[options->from_count++] = (plan_from){.input = text};
}

static void finish(struct argp_state *state)
{
    parse_state *parse = state->input;
    plan_options *options = parse->options;
    uf_error error = {0};
    if (parse->card != NULL) {
        require(state,
                cli_card_option("--card", parse->card, &options->question.card_bytes, &error),
                &error);
    }
    if (parse->allowance != NULL) {
        require(state,
                cli_size_option("--allowance", parse->allowance, options->question.card_bytes,
                                &options->question.allowance_bytes, &error),
                &error);
    }
    for (uint32_t i = 0; i < options->from_count; i++) {
        if (!options->from[i].is_described) {
            argp_error(state, "what does %s show? Add --describe WxH[,batch=N][,OPTION...]",
                       options->from[i].input);
        }
    }
    bool is_weights_alone =
        options->weights != NULL && options->model == NULL && options->from_count == 0;
    if (is_weights_alone) {
        return;
    }
    bool has_question = options->has_size || options->question.card_bytes != 0;
    if (options->model == NULL && options->from_count == 0) {
        argp_error(state, "which model? z-image-turbo, sdxl, a model file, or --from recordings");
    } else if (options->model != NULL && options->from_count != 0) {
        argp_error(state, "a MODEL or --from recordings, not both");
    } else if (!has_question && options->output == NULL) {
        argp_error(state, "which --size? Without one, --card SIZE lists what fits");
    }
}

static void set_option(plan_options *options, uf_plan_option option)
{
    options->question.job.options |= UINT32_C(1) << option;
}

static error_t parse_job_option(int key, const char *text, struct argp_state *state)
{
    plan_options *options = ((parse_state *)state->input)->options;
    switch (key) {
    case KEY_SIZE:
        parse_size(state, options, text);
        return 0;
    case KEY_BATCH:
        options->question.job.shape.batch = number(state, "--batch", text, BATCH_MAX);
        options->has_batch = true;
        return 0;
    case KEY_OFFLOAD:
        set_option(options, UF_PLAN_OFFLOAD);
        return 0;
    case KEY_ATTENTION_SLICING:
        set_option(options, UF_PLAN_ATTENTION_SLICING);
        return 0;
    case KEY_VAE_SLICING:
        set_option(options, UF_PLAN_VAE_SLICING);
        return 0;
    case KEY_VAE_TILING:
        set_option(options, UF_PLAN_VAE_TILING);
        return 0;
    case KEY_WEIGHTS:
        options->weights = text;
        return 0;
    case KEY_DTYPE:
        parse_dtype(state, options, text);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse_fit_option(int key, char *text, struct argp_state *state)
{
    plan_options *options = ((parse_state *)state->input)->options;
    switch (key) {
    case KEY_FROM:
        add_from(state, options, text);
        return 0;
    case KEY_DESCRIBE:
        parse_describe(state, options, text);
        return 0;
    case KEY_NAME:
        options->name = text;
        return 0;
    case KEY_MULTIPLE:
        options->multiple = number(state, "--multiple", text, 4096);
        return 0;
    case 'o':
        options->output = text;
        return 0;
    default:
        return parse_job_option(key, text, state);
    }
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    parse_state *parse = state->input;
    switch (key) {
    case KEY_CARD:
        parse->card = text;
        return 0;
    case KEY_ALLOWANCE:
        parse->allowance = text;
        return 0;
    case KEY_CONF:
        parse->options->question.conf = text;
        return 0;
    case KEY_POLICY:
        if (strcmp(text, "unfrag") == 0) {
            parse->options->question.policy = UF_POLICY_UNFRAG;
        } else if (strcmp(text, "torch") == 0) {
            parse->options->question.policy = UF_POLICY_TORCH;
        } else {
            argp_error(state, "--policy knows 'torch' and 'unfrag', not '%s'", text);
        }
        return 0;
    case KEY_JSON:
        parse->options->is_json = true;
        return 0;
    case ARGP_KEY_ARG:
        if (parse->options->model != NULL) {
            argp_error(state, "one MODEL at a time: '%s' is the second", text);
        }
        parse->options->model = text;
        return 0;
    case ARGP_KEY_END:
        finish(state);
        return 0;
    default:
        return parse_fit_option(key, text, state);
    }
}

cli_exit plan_options_parse(int argc, char **argv, plan_options *options)
{
    memset(options, 0, sizeof *options);
    options->question.allowance_bytes = UF_PLAN_ALLOWANCE_BYTES;
    options->question.job.shape.batch = 1;
    options->name = "model";
    options->multiple = 8;
    parse_state parse = {.options = options};
    static const struct argp parser = {
        .options = option_list,
        .parser = parse_option,
        .args_doc = "MODEL --size WxH\nMODEL --card SIZE\n--from FILE --describe TEXT --from FILE "
                    "--describe TEXT...",
        .doc = "Says whether a model fits a card: peak memory by phase, what the allocator "
               "reserves for it, which options help, and the smallest card."
               "\vMODEL is z-image-turbo, sdxl (and its fine-tunes), or a model file that --output "
               "wrote. No GPU is needed."};
    return argp_parse(&parser, argc, argv, 0, NULL, &parse) == 0 ? CLI_EXIT_DONE : CLI_EXIT_USAGE;
}
