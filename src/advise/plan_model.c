/* SPDX-License-Identifier: MIT
 *
 * Reads model files: lines of words, some of which open a list that "end" closes. */
#include "advise/plan_model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "trace/input.h"

#define TEXT_BYTES_MAX (UINT64_C(64) << 20)
enum { WORD_CAPACITY = 64, TOKENS_MAX = 1 << 22 };

typedef struct parser {
    uf_plan_model *model;
    const char *at, *end;
    uint64_t line;
    uf_error *error;
} parser;

static uf_status bad(const parser *parse, const char *what, const char *word)
{
    return uf__error_set(parse->error, UF_ERROR_BAD_INPUT, "model file, line %" PRIu64 ": %s '%s'",
                         parse->line, what, word);
}

static uf_status no_memory(const parser *parse)
{
    return uf__error_set(parse->error, UF_ERROR_HOST_MEMORY, "no host memory for the model file");
}

/* The next word of this line; false at its end. */
static bool next_word(parser *parse, char *word)
{
    while (parse->at < parse->end && (*parse->at == ' ' || *parse->at == '\r')) {
        parse->at++;
    }
    size_t length = 0;
    while (parse->at < parse->end && *parse->at != ' ' && *parse->at != '\n' &&
           *parse->at != '\r') {
        if (length + 1 < WORD_CAPACITY) {
            word[length++] = *parse->at;
        }
        parse->at++;
    }
    word[length] = '\0';
    return length > 0;
}

static bool next_line(parser *parse)
{
    while (parse->at < parse->end && *parse->at != '\n') {
        parse->at++;
    }
    if (parse->at == parse->end) {
        return false;
    }
    parse->at++;
    parse->line++;
    return parse->at < parse->end;
}

static void rest_of_line(parser *parse, char *text, size_t capacity)
{
    while (parse->at < parse->end && *parse->at == ' ') {
        parse->at++;
    }
    size_t length = 0;
    while (parse->at < parse->end && *parse->at != '\n') {
        if (length + 1 < capacity) {
            text[length++] = *parse->at;
        }
        parse->at++;
    }
    text[length] = '\0';
}

/* The digits at text; false if there are none or too many. *end receives what follows. */
static bool read_number(const char *text, const char **end, uint64_t *value)
{
    uint64_t number = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++) {
        if (number > (UINT64_MAX - 9) / 10) {
            return false;
        }
        number = number * 10 + (uint64_t)(*at - '0');
    }
    *value = number;
    *end = at;
    return at != text;
}

static uf_status next_number(parser *parse, uint64_t minimum, uint64_t maximum, uint64_t *value)
{
    char word[WORD_CAPACITY];
    const char *end = word;
    if (!next_word(parse, word) || !read_number(word, &end, value) || *end != '\0' ||
        *value < minimum || *value > maximum) {
        return bad(parse, "not the number expected:", word);
    }
    return UF_OK;
}

/* Makes room for one more; false without memory. */
static bool grow(void **array, uint32_t count, uint32_t *capacity, size_t item_bytes)
{
    if (count < *capacity) {
        return true;
    }
    uint32_t wanted = *capacity == 0 ? 64 : *capacity * 2;
    void *grown = realloc(*array, wanted * item_bytes);
    if (grown == NULL) {
        return false;
    }
    *array = grown;
    *capacity = wanted;
    return true;
}

static bool find_term(const char *name, size_t length, uint8_t *term)
{
    for (uint32_t i = 0; i < UF_PLAN_TERM_COUNT; i++) {
        const char *known = uf__plan_term_name(i);
        if (strlen(known) == length && strncmp(known, name, length) == 0) {
            *term = (uint8_t)i;
            return true;
        }
    }
    return false;
}

/* [-]NUMBER[/NUMBER][*TERM] */
static uf_status read_part(const parser *parse, const char *word, uf_plan_formula *formula)
{
    const char *at = word;
    bool is_negative = *at == '-';
    at += is_negative ? 1 : 0;
    uint64_t numerator, denominator = 1;
    uint32_t part = formula->count;
    if (part == 2 || !read_number(at, &at, &numerator) || numerator > INT64_MAX) {
        return bad(parse, "no part of a formula:", word);
    }
    if (*at == '/' &&
        (!read_number(at + 1, &at, &denominator) || denominator == 0 || denominator > INT64_MAX)) {
        return bad(parse, "no fraction:", word);
    }
    formula->term[part] = 0;
    bool has_term = *at == '*';
    if ((has_term && !find_term(at + 1, strlen(at + 1), &formula->term[part])) ||
        (!has_term && *at != '\0')) {
        return bad(parse, "no term of a formula:", word);
    }
    formula->numerator[part] = is_negative ? -(int64_t)numerator : (int64_t)numerator;
    formula->denominator[part] = (int64_t)denominator;
    formula->count++;
    return UF_OK;
}

static uf_status read_formula(parser *parse)
{
    uf_plan_model *model = parse->model;
    char word[WORD_CAPACITY];
    if (!grow((void **)&model->formulas, model->formula_count, &model->formula_capacity,
              sizeof *model->formulas)) {
        return no_memory(parse);
    }
    uf_plan_formula formula = {0};
    uf_status status = UF_OK;
    while (status == UF_OK && next_word(parse, word)) {
        status = read_part(parse, word, &formula);
    }
    model->formulas[model->formula_count++] = formula;
    return status;
}

/* SIZE or SIZE*COUNT */
static uf_status add_sizes(parser *parse, uf_plan_module *module, const char *word)
{
    uint64_t bytes, count = 1;
    const char *at = word;
    bool is_good = read_number(at, &at, &bytes) && bytes > 0 && bytes < UINT64_C(1) << 44;
    is_good = is_good && (*at != '*' || read_number(at + 1, &at, &count)) && *at == '\0';
    if (!is_good || count > TOKENS_MAX || module->size_count + count > TOKENS_MAX) {
        return bad(parse, "no size of a module:", word);
    }
    for (uint64_t i = 0; i < count; i++) {
        if (!grow((void **)&module->sizes, module->size_count, &module->size_capacity,
                  sizeof *module->sizes)) {
            return no_memory(parse);
        }
        module->sizes[module->size_count++] = bytes;
        module->bytes += bytes;
    }
    return UF_OK;
}

static uf_status read_module(parser *parse)
{
    uf_plan_model *model = parse->model;
    char word[WORD_CAPACITY];
    if (model->module_count == UF_PLAN_MODULES_MAX || !next_word(parse, word)) {
        return bad(parse, "too many modules, or one without name", "");
    }
    uf_plan_module *module = &model->modules[model->module_count++];
    snprintf(module->name, sizeof module->name, "%.31s", word);
    module->is_resident = next_word(parse, word) && strcmp(word, "resident") == 0;
    uf_status status = UF_OK;
    bool is_open = true;
    while (status == UF_OK && is_open) {
        if (!next_line(parse)) {
            return bad(parse, "no end of module", module->name);
        }
        while (status == UF_OK && is_open && next_word(parse, word)) {
            is_open = strcmp(word, "end") != 0;
            status = is_open ? add_sizes(parse, module, word) : UF_OK;
        }
    }
    return status;
}

static uf_status find_module(const parser *parse, const char *name, size_t length, uint32_t *module)
{
    for (uint32_t i = 0; i < parse->model->module_count; i++) {
        const char *known = parse->model->modules[i].name;
        if (strlen(known) == length && strncmp(known, name, length) == 0) {
            *module = i;
            return UF_OK;
        }
    }
    return bad(parse, "no such module:", name);
}

/* =OLD>NEW */
static uf_status read_cast(const parser *parse, const char *text, uf_plan_token *token)
{
    const char *arrow = strchr(text, '>');
    if (arrow == NULL) {
        return bad(parse, "no cast:", text);
    }
    token->kind = UF_PLAN_CAST;
    uf_status status = find_module(parse, text, (size_t)(arrow - text), &token->first);
    if (status == UF_OK) {
        status = find_module(parse, arrow + 1, strlen(arrow + 1), &token->second);
    }
    if (status == UF_OK && parse->model->modules[token->first].size_count !=
                               parse->model->modules[token->second].size_count) {
        return bad(parse, "a cast between modules of different tensors:", text);
    }
    return status;
}

/* FORMULA, then ?TERM%DIVISOR, !TERM%DIVISOR, ?over or !over */
static uf_status read_sized(const parser *parse, const char *word, uf_plan_token *token)
{
    uint64_t formula, divisor;
    const char *at = word + 1;
    token->kind = word[0] == 'a' ? UF_PLAN_ALLOC : UF_PLAN_WORK;
    if (!read_number(at, &at, &formula) || formula >= parse->model->formula_count) {
        return bad(parse, "no such formula:", word);
    }
    token->first = (uint32_t)formula;
    if (*at == '\0') {
        return UF_OK;
    }
    bool is_wanted = *at == '?';
    if (token->kind != UF_PLAN_WORK || (!is_wanted && *at != '!')) {
        return bad(parse, "no condition:", word);
    }
    if (strcmp(at + 1, "over") == 0) {
        token->when = is_wanted ? UF_PLAN_IF_OVER : UF_PLAN_IF_NOT_OVER;
        return UF_OK;
    }
    const char *percent = strchr(at, '%');
    if (percent == NULL || !find_term(at + 1, (size_t)(percent - at - 1), &token->term) ||
        !read_number(percent + 1, &percent, &divisor) || divisor == 0 || divisor > 255) {
        return bad(parse, "no condition:", word);
    }
    token->divisor = (uint8_t)divisor;
    token->when = is_wanted ? UF_PLAN_IF_DIVIDES : UF_PLAN_IF_NOT;
    return UF_OK;
}

/* f: how many requests ago. */
static uf_status read_give(const parser *parse, const char *word, const uf_plan_block *block,
                           uf_plan_token *token)
{
    uint64_t back;
    const char *at = word + 1;
    if (!read_number(at, &at, &back) || *at != '\0' || back == 0 || back > block->alloc_count) {
        return bad(parse, "no request that far back:", word);
    }
    token->kind = UF_PLAN_GIVE;
    token->first = block->alloc_count - (uint32_t)back;
    return UF_OK;
}

uint32_t uf__plan_model_block_name(const uf_plan_model *model, const char *name)
{
    for (uint32_t i = 0; i < model->block_name_count; i++) {
        if (strcmp(model->block_names[i], name) == 0) {
            return i;
        }
    }
    return UINT32_MAX;
}

static uf_status add_block_name(const parser *parse, const char *name, uint32_t *index)
{
    uf_plan_model *model = parse->model;
    *index = uf__plan_model_block_name(model, name);
    if (*index != UINT32_MAX) {
        return UF_OK;
    }
    if (model->block_name_count == UF_PLAN_STEPS_MAX) {
        return bad(parse, "too many kinds of blocks:", name);
    }
    *index = model->block_name_count++;
    snprintf(model->block_names[*index], UF_PLAN_NAME_CAPACITY, "%.31s", name);
    return UF_OK;
}

/* xBLOCK.EXPORT */
static uf_status read_take(const parser *parse, char *word, uf_plan_token *token)
{
    char *dot = strrchr(word, '.');
    uint64_t number;
    const char *at = dot == NULL ? word : dot + 1;
    if (dot == NULL || !read_number(at, &at, &number) || number > TOKENS_MAX) {
        return bad(parse, "no export:", word);
    }
    *dot = '\0';
    token->kind = UF_PLAN_TAKE;
    token->second = (uint32_t)number;
    return add_block_name(parse, word + 1, &token->first);
}

static uf_status read_token(const parser *parse, char *word, uf_plan_block *block)
{
    if (block->token_count == TOKENS_MAX || !grow((void **)&block->tokens, block->token_count,
                                                  &block->token_capacity, sizeof *block->tokens)) {
        return no_memory(parse);
    }
    uf_plan_token token = {0};
    uf_status status;
    switch (word[0]) {
    case 'a':
    case 'w':
        status = read_sized(parse, word, &token);
        block->alloc_count += token.kind == UF_PLAN_ALLOC ? 1 : 0;
        break;
    case 'f':
        status = read_give(parse, word, block, &token);
        break;
    case 'x':
        status = read_take(parse, word, &token);
        break;
    case '+':
    case '-':
        token.kind = word[0] == '+' ? UF_PLAN_IN : UF_PLAN_OUT;
        status = find_module(parse, word + 1, strlen(word + 1), &token.first);
        break;
    case 'e':
        token.kind = UF_PLAN_EMPTY;
        status = word[1] == '\0' ? UF_OK : bad(parse, "no token:", word);
        break;
    case '=':
        status = read_cast(parse, word + 1, &token);
        break;
    case '!':
        token.when = UF_PLAN_IF_RESIDENT;
        status = word[1] == '=' ? read_cast(parse, word + 2, &token) : bad(parse, "no cast:", word);
        break;
    default:
        status = bad(parse, "no token:", word);
    }
    block->tokens[block->token_count++] = token;
    return status;
}

/* What the block requests and does not give back. Giving back twice is refused. */
static uf_status find_exports(const parser *parse, uf_plan_block *block)
{
    uint8_t *is_given = calloc(block->alloc_count + 1u, 1);
    block->exports = calloc(block->alloc_count + 1u, sizeof *block->exports);
    uf_status status = is_given == NULL || block->exports == NULL ? no_memory(parse) : UF_OK;
    for (uint32_t i = 0; i < block->token_count && status == UF_OK; i++) {
        const uf_plan_token *token = &block->tokens[i];
        if (token->kind == UF_PLAN_GIVE) {
            if (is_given[token->first]) {
                status =
                    bad(parse, "given back twice in block", parse->model->block_names[block->name]);
            }
            is_given[token->first] = 1;
        }
    }
    for (uint32_t i = 0; i < block->alloc_count && status == UF_OK; i++) {
        if (!is_given[i]) {
            block->exports[block->export_count++] = i;
        }
    }
    free(is_given);
    return status;
}

static uf_status read_block(parser *parse)
{
    uf_plan_model *model = parse->model;
    char word[WORD_CAPACITY];
    uint64_t variant;
    const char *end;
    if (model->block_count == UF_PLAN_BLOCKS_MAX || !next_word(parse, word)) {
        return bad(parse, "too many blocks, or one without name", "");
    }
    uf_plan_block *block = &model->blocks[model->block_count++];
    uf_status status = add_block_name(parse, word, &block->name);
    while (status == UF_OK && next_word(parse, word)) {
        bool is_good = read_number(word, &end, &variant) && *end == '\0' && variant < 64;
        status = is_good ? UF_OK : bad(parse, "no variant:", word);
        block->variants |= is_good ? UINT64_C(1) << variant : 0;
    }
    bool is_open = true;
    while (status == UF_OK && is_open) {
        if (!next_line(parse)) {
            return bad(parse, "no end of block", model->block_names[block->name]);
        }
        while (status == UF_OK && is_open && next_word(parse, word)) {
            is_open = strcmp(word, "end") != 0;
            status = is_open ? read_token(parse, word, block) : UF_OK;
        }
    }
    return status == UF_OK ? find_exports(parse, block) : status;
}

static uf_status read_choices(parser *parse)
{
    uf_plan_model *model = parse->model;
    char word[WORD_CAPACITY];
    while (next_word(parse, word)) {
        uint32_t i = model->choice_count;
        uf_plan_option option = uf__plan_option_find(word);
        if (i == UF_PLAN_CHOICES_MAX) {
            return bad(parse, "too many choices:", word);
        }
        if (option != UF_PLAN_OPTION_COUNT) {
            model->choices[i] = UF_PLAN_CHOICE_OPTION;
            model->choice_options[i] = (uint8_t)option;
        } else if (strcmp(word, "batch") == 0) {
            model->choices[i] = UF_PLAN_CHOICE_BATCH;
        } else if (strcmp(word, "padded") == 0) {
            model->choices[i] = UF_PLAN_CHOICE_PADDED;
        } else {
            return bad(parse, "no choice:", word);
        }
        model->choice_count++;
    }
    return UF_OK;
}

static uint32_t phase_of(uf_plan_model *model, const char *name)
{
    uint32_t i = 0;
    while (i < model->phase_count && strcmp(model->phase_names[i], name) != 0) {
        i++;
    }
    if (i == model->phase_count && i < UF_PLAN_STEPS_MAX) {
        snprintf(model->phase_names[i], UF_PLAN_NAME_CAPACITY, "%.31s", name);
        model->phase_count++;
    }
    return i;
}

/* BLOCK/PHASE ... */
static uf_status read_program(parser *parse)
{
    uf_plan_model *model = parse->model;
    char word[WORD_CAPACITY];
    uf_status status = UF_OK;
    while (status == UF_OK && next_word(parse, word)) {
        char *slash = strchr(word, '/');
        if (slash == NULL || model->step_count == UF_PLAN_STEPS_MAX) {
            return bad(parse, "no BLOCK/PHASE, or too many:", word);
        }
        *slash = '\0';
        uint32_t phase = phase_of(model, slash + 1);
        if (phase == UF_PLAN_STEPS_MAX) {
            return bad(parse, "too many phases:", slash + 1);
        }
        model->step_phases[model->step_count] = phase;
        status = add_block_name(parse, word, &model->step_blocks[model->step_count]);
        model->step_count++;
    }
    return status;
}

static uf_status read_recorded(parser *parse)
{
    uf_plan_model *model = parse->model;
    uint64_t numbers[5] = {0};
    uf_status status = UF_OK;
    for (int i = 0; i < 5 && status == UF_OK; i++) {
        status = next_number(parse, 1, UINT32_MAX, &numbers[i]);
    }
    model->recorded_min_side = (uint32_t)numbers[0];
    model->recorded_max_side = (uint32_t)numbers[1];
    model->recorded_min_pixels = numbers[2];
    model->recorded_max_pixels = numbers[3];
    model->recorded_max_batch = (uint32_t)numbers[4];
    return status;
}

static uf_status read_decoder(parser *parse)
{
    uf_plan_model *model = parse->model;
    uint64_t side = 0, step = 0, bytes = 0;
    uf_status status = next_number(parse, 8, 1 << 16, &side);
    status = status == UF_OK ? next_number(parse, 8, side, &step) : status;
    status = status == UF_OK ? next_number(parse, 1, 8, &bytes) : status;
    model->has_decoder = true;
    model->tile_side = (uint32_t)side;
    model->tile_step = (uint32_t)step;
    model->decoder_element_bytes = (uint32_t)bytes;
    return status;
}

/* NAME, or NAME inert */
static uf_status read_option(parser *parse)
{
    char word[WORD_CAPACITY];
    (void)next_word(parse, word);
    uf_plan_option option = uf__plan_option_find(word);
    if (option == UF_PLAN_OPTION_COUNT) {
        return bad(parse, "no option:", word);
    }
    bool is_inert = next_word(parse, word) && strcmp(word, "inert") == 0;
    parse->model->has_option[option] = !is_inert;
    parse->model->is_inert[option] = is_inert;
    return UF_OK;
}

static uf_status read_text_line(parser *parse, const char *key)
{
    uf_plan_model *model = parse->model;
    uint64_t number = 0;
    uf_status status = UF_OK;
    if (strcmp(key, "name") == 0) {
        rest_of_line(parse, model->name, sizeof model->name);
    } else if (strcmp(key, "title") == 0) {
        rest_of_line(parse, model->title, sizeof model->title);
    } else if (strcmp(key, "origin") == 0) {
        rest_of_line(parse, model->origin, sizeof model->origin);
    } else if (strcmp(key, "dtype") == 0) {
        rest_of_line(parse, model->dtype, sizeof model->dtype);
    } else if (strcmp(key, "multiple") == 0) {
        status = next_number(parse, 1, 4096, &number);
        model->multiple = (uint32_t)number;
    } else {
        status = bad(parse, "no such line:", key);
    }
    return status;
}

static uf_status read_line(parser *parse)
{
    static const struct {
        const char *key;
        uf_status (*read)(parser *parse);
    } lines[] = {{"formula", read_formula}, {"module", read_module},   {"block", read_block},
                 {"choices", read_choices}, {"program", read_program}, {"recorded", read_recorded},
                 {"decoder", read_decoder}, {"option", read_option}};
    char word[WORD_CAPACITY];
    if (!next_word(parse, word) || word[0] == '#') {
        return UF_OK;
    }
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        if (strcmp(word, lines[i].key) == 0) {
            return lines[i].read(parse);
        }
    }
    return read_text_line(parse, word);
}

const uf_plan_block *uf__plan_model_block(const uf_plan_model *model, uint32_t name,
                                          uint64_t variant)
{
    for (uint32_t i = 0; i < model->block_count; i++) {
        const uf_plan_block *block = &model->blocks[i];
        if (block->name == name && (block->variants >> variant & 1) != 0) {
            return block;
        }
    }
    return NULL;
}

static uf_status check_whole(const parser *parse)
{
    const uf_plan_model *model = parse->model;
    if (model->name[0] == '\0' || model->step_count == 0 || model->recorded_max_batch == 0 ||
        model->multiple == 0) {
        return bad(parse, "the file lacks one of name, program, recorded, multiple", "");
    }
    for (uint32_t i = 0; i < model->step_count; i++) {
        bool is_there = false;
        for (uint32_t j = 0; j < model->block_count; j++) {
            is_there = is_there || model->blocks[j].name == model->step_blocks[i];
        }
        if (!is_there) {
            return bad(parse, "no block of the program's",
                       model->block_names[model->step_blocks[i]]);
        }
    }
    return UF_OK;
}

uf_status uf__plan_model_parse(const char *text, size_t length, uf_plan_model **model,
                               uf_error *error)
{
    static const char head[] = "unfrag-model 1\n";
    parser parse = {.at = text, .end = text + length, .line = 1, .error = error};
    if (length < sizeof head || strncmp(text, head, sizeof head - 1) != 0) {
        return uf__error_set(error, UF_ERROR_BAD_INPUT,
                             "not a model file of plan: it does not begin with 'unfrag-model 1'");
    }
    parse.model = calloc(1, sizeof *parse.model);
    uf_plan_block *blocks = calloc(UF_PLAN_BLOCKS_MAX, sizeof *blocks);
    if (parse.model == NULL || blocks == NULL) {
        free(parse.model);
        free(blocks);
        return no_memory(&parse);
    }
    parse.model->blocks = blocks;
    (void)phase_of(parse.model, "load");
    uf_status status = UF_OK;
    while (status == UF_OK && next_line(&parse)) {
        status = read_line(&parse);
    }
    status = status == UF_OK ? check_whole(&parse) : status;
    if (status != UF_OK) {
        uf__plan_model_destroy(parse.model);
        return status;
    }
    *model = parse.model;
    return UF_OK;
}

static uf_status read_all(uf__input *input, char **text, size_t *length, uf_error *error)
{
    size_t capacity = 0;
    while (true) {
        uf_status status = uf__input_ensure(input, UF__INPUT_ENSURE_BYTES, error);
        size_t count = uf__input_at_hand(input);
        if (status != UF_OK || count == 0) {
            return status;
        }
        if (*length + count > TEXT_BYTES_MAX) {
            return uf__error_set(error, UF_ERROR_BAD_INPUT, "a model file of over 64 MiB");
        }
        if (*length + count > capacity) {
            capacity = 2 * (*length + count);
            char *grown = realloc(*text, capacity);
            if (grown == NULL) {
                return uf__error_set(error, UF_ERROR_HOST_MEMORY,
                                     "no host memory for the model file");
            }
            *text = grown;
        }
        memcpy(*text + *length, input->cursor, count);
        input->cursor += count;
        *length += count;
    }
}

uf_status uf__plan_model_read(const char *path, uf_plan_model **model, uf_error *error)
{
    uf__input *input = NULL;
    char *text = NULL;
    size_t length = 0;
    uf_status status = uf__input_open(path, NULL, &input, error);
    if (status == UF_OK) {
        status = read_all(input, &text, &length, error);
        uf__input_close(input);
    }
    if (status == UF_OK) {
        status = uf__plan_model_parse(text == NULL ? "" : text, length, model, error);
    }
    free(text);
    return status;
}

void uf__plan_model_destroy(uf_plan_model *model)
{
    if (model == NULL) {
        return;
    }
    for (uint32_t i = 0; i < model->block_count; i++) {
        free(model->blocks[i].tokens);
        free(model->blocks[i].exports);
    }
    for (uint32_t i = 0; i < model->module_count; i++) {
        free(model->modules[i].sizes);
    }
    free(model->blocks);
    free(model->formulas);
    free(model);
}
