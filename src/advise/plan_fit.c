/* SPDX-License-Identifier: MIT
 *
 * Matches recordings and writes the model file. Workspaces, which are freed by the very next event,
 * are no part of the order: libraries choose them by shape.
 *
 *   recording      A  A  w  F  A  F ...     tokens: requests and what is given back
 *   the same,      A  A     F  A  F ...     -> one family: each request has a size in both
 *   larger         A  A  w  F  A  F ... */
#include "advise/plan_fit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "replay/program.h"

enum { SAMPLES_MAX = 64, VARIANT_BITS = 6, BATCH_BIT = 1, PADDED_BIT = 2, WORDS_PER_LINE = 24 };

/* What the bits of a variant mean; those that are no option of the pipeline in the middle. */
static const char choices_line[] =
    "choices attention-slicing batch padded offload vae-slicing vae-tiling\n";

typedef enum mark { MARK_ALLOC, MARK_FREE } mark;

/* The run is shown in parts: each goes up from the level between images or stages and comes back.
 */
enum { PARTS_MAX = 12 };
#define PART_LOW 0.01  /* share of the way from the base to the peak: a part ends below it ... */
#define PART_HIGH 0.03 /* ... after having been above this */

/* One token: for a request its size, for what is given back the token of its request. */
typedef struct token {
    uint64_t value;
    uint64_t work_first; /* workspaces before it: works[work_first ...) */
    uint32_t work_count;
    uint8_t mark;
    bool is_after_empty; /* empty_cache before it */
} token;

typedef struct sequence {
    token *tokens;
    uint64_t count;
    uint64_t *works;
    uint64_t work_count;
    uf_plan_terms terms;
    uint32_t variant;
    uint32_t family;
    uint64_t part_firsts[PARTS_MAX + 2]; /* [0] is the loading; one more bounds the last */
    uint32_t part_count;
} sequence;

typedef struct fit {
    const uf_plan_sample *samples;
    sequence *sequences;
    uint32_t count;
    uint32_t family_count;
    uf_plan_formula *formulas;
    uint32_t formula_count, formula_capacity;
    uf_plan_fit_report *report;
    FILE *body; /* blocks; formulas are known after them and stand before */
    uint64_t column;
    uf_error *error;
} fit;

static uf_status no_memory(const fit *of)
{
    return uf__error_set(of->error, UF_ERROR_HOST_MEMORY, "no host memory to fit a model");
}

static uint32_t variant_of(const uf_plan_sample *sample, const uf_plan_terms *terms)
{
    static const uf_plan_option bits[VARIANT_BITS] = {
        UF_PLAN_ATTENTION_SLICING, UF_PLAN_OPTION_COUNT, UF_PLAN_OPTION_COUNT,
        UF_PLAN_OFFLOAD,           UF_PLAN_VAE_SLICING,  UF_PLAN_VAE_TILING};
    uint32_t variant = 0;
    for (uint32_t i = 0; i < VARIANT_BITS; i++) {
        bool is_set = i == BATCH_BIT    ? sample->shape.batch > 1
                      : i == PADDED_BIT ? terms->values[2 * 7] != terms->values[2 * 5]
                                        : (sample->options >> bits[i] & 1) != 0;
        variant |= is_set ? UINT32_C(1) << i : 0;
    }
    return variant;
}

/* Is the request of event `at` given back by the next event that does something? */
static bool is_work(const uf_program *program, uint64_t at)
{
    uint32_t id = uf__op_id(program->ops[at]);
    for (at++; at < program->event_count; at++) {
        uf_op_kind kind = uf__op_kind(program->ops[at]);
        if (kind != UF_OP_NONE) {
            return (kind == UF_OP_FREE || kind == UF_OP_FREE_LATER) &&
                   uf__op_id(program->ops[at]) == id;
        }
    }
    return false;
}

static void add_token(sequence *into, mark kind, uint64_t value, uint64_t *work_first)
{
    bool is_after_empty = into->tokens[into->count].is_after_empty;
    into->tokens[into->count++] = (token){.value = value,
                                          .work_first = *work_first,
                                          .work_count = (uint32_t)(into->work_count - *work_first),
                                          .mark = (uint8_t)kind,
                                          .is_after_empty = is_after_empty};
    *work_first = into->work_count;
}

static uf_status make_sequence(const fit *of, uint32_t index)
{
    const uf_program *program = of->samples[index].program;
    sequence *into = &of->sequences[index];
    uint64_t capacity = program->event_count + program->start_count + 1;
    uint64_t *token_of = calloc(program->alloc_count + 1u, sizeof *token_of);
    into->tokens = calloc(capacity, sizeof *into->tokens);
    into->works = calloc(capacity, sizeof *into->works);
    if (token_of == NULL || into->tokens == NULL || into->works == NULL) {
        free(token_of);
        return no_memory(of);
    }
    uint64_t work_first = 0;
    for (uint32_t i = 0; i < program->start_count; i++) {
        token_of[program->start_ids[i]] = into->count;
        add_token(into, MARK_ALLOC, program->alloc_bytes[program->start_ids[i]], &work_first);
    }
    uint32_t skipped = UINT32_MAX; /* the workspace whose end is still to come */
    for (uint64_t at = 0; at < program->event_count; at++) {
        uf_op_kind kind = uf__op_kind(program->ops[at]);
        uint32_t id = uf__op_id(program->ops[at]);
        if (kind == UF_OP_ALLOC && is_work(program, at)) {
            into->works[into->work_count++] = program->alloc_bytes[id];
            skipped = id;
        } else if (kind == UF_OP_ALLOC) {
            token_of[id] = into->count;
            add_token(into, MARK_ALLOC, program->alloc_bytes[id], &work_first);
        } else if ((kind == UF_OP_FREE || kind == UF_OP_FREE_LATER) && id != skipped) {
            add_token(into, MARK_FREE, token_of[id], &work_first);
        } else if (kind == UF_OP_EMPTY) {
            into->tokens[into->count].is_after_empty = true;
        }
    }
    free(token_of);
    uf__plan_terms_set(&into->terms, &of->samples[index].shape);
    into->variant = variant_of(&of->samples[index], &into->terms);
    return UF_OK;
}

/* The first token that differs in kind or reference; the count if none does. */
static uint64_t first_difference(const sequence *a, const sequence *b)
{
    uint64_t count = a->count < b->count ? a->count : b->count;
    uint64_t at = 0;
    while (at < count && a->tokens[at].mark == b->tokens[at].mark &&
           (a->tokens[at].mark != MARK_FREE || a->tokens[at].value == b->tokens[at].value)) {
        at++;
    }
    return at == count && a->count == b->count ? UINT64_MAX : at;
}

static uf_status find_families(fit *of)
{
    for (uint32_t i = 0; i < of->count; i++) {
        sequence *one = &of->sequences[i];
        one->family = of->family_count;
        for (uint32_t j = 0; j < i; j++) {
            const sequence *other = &of->sequences[j];
            uint64_t at = first_difference(one, other);
            if (at == UINT64_MAX) {
                one->family = other->family;
            } else if (one->variant == other->variant) {
                return uf__error_set(
                    of->error, UF_ERROR_BAD_INPUT,
                    "%s and %s are described alike (options, one image or several, padding) but "
                    "differ from request or free number %" PRIu64 " on, workspaces aside: "
                    "record both with the same program, options and number of steps",
                    of->samples[j].name, of->samples[i].name, at);
            }
        }
        of->family_count += one->family == of->family_count ? 1 : 0;
    }
    return UF_OK;
}

static bool is_same_formula(const uf_plan_formula *a, const uf_plan_formula *b)
{
    bool is_same = a->count == b->count;
    for (uint32_t i = 0; i < a->count && is_same; i++) {
        is_same = a->term[i] == b->term[i] && a->numerator[i] == b->numerator[i] &&
                  a->denominator[i] == b->denominator[i];
    }
    return is_same;
}

static uf_status formula_number(fit *of, const uf_plan_formula *formula, uint32_t *number)
{
    for (uint32_t i = 0; i < of->formula_count; i++) {
        if (is_same_formula(&of->formulas[i], formula)) {
            *number = i;
            return UF_OK;
        }
    }
    if (of->formula_count == of->formula_capacity) {
        uint32_t wanted = of->formula_capacity == 0 ? 256 : of->formula_capacity * 2;
        uf_plan_formula *grown = realloc(of->formulas, wanted * sizeof *grown);
        if (grown == NULL) {
            return no_memory(of);
        }
        of->formulas = grown;
        of->formula_capacity = wanted;
    }
    of->formulas[of->formula_count] = *formula;
    *number = of->formula_count++;
    return UF_OK;
}

/* Sizes of a request over the family's recordings; which < 0: of the request itself, else of its
 * workspace number which. */
static uint32_t gather(const fit *of, uint32_t family, uint64_t at, int64_t which,
                       uf_plan_terms *terms, uint64_t *sizes)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < of->count; i++) {
        const sequence *one = &of->sequences[i];
        if (one->family != family) {
            continue;
        }
        const token *has = &one->tokens[at];
        if (which < 0 || which < (int64_t)has->work_count) {
            terms[count] = one->terms;
            sizes[count++] = which < 0 ? has->value : one->works[has->work_first + (uint64_t)which];
        }
    }
    return count;
}

static void end_word(fit *of)
{
    of->column++;
    fputc(of->column % WORDS_PER_LINE == 0 ? '\n' : ' ', of->body);
}

static uf_status write_sized(fit *of, uint32_t family, uint64_t at, int64_t which)
{
    uf_plan_terms terms[SAMPLES_MAX];
    uint64_t sizes[SAMPLES_MAX];
    uf_plan_fitted fitted;
    uint32_t count = gather(of, family, at, which, terms, sizes), number = 0;
    uf__plan_fit_sizes(terms, sizes, count, which >= 0, &fitted);
    uf_status status = formula_number(of, &fitted.formula, &number);
    fprintf(of->body, "%c%" PRIu32, which < 0 ? 'a' : 'w', number);
    end_word(of);
    of->report->token_count++;
    of->report->exact_count += fitted.is_exact ? 1 : 0;
    of->report->loose_count += fitted.is_exact ? 0 : 1;
    if (fitted.error_bytes > of->report->worst_bytes) {
        of->report->worst_bytes = fitted.error_bytes;
    }
    return status;
}

static uint32_t works_before(const fit *of, uint32_t family, uint64_t at)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < of->count; i++) {
        const sequence *one = &of->sequences[i];
        if (one->family == family && one->tokens[at].work_count > most) {
            most = one->tokens[at].work_count;
        }
    }
    return most;
}

/* An empty_cache that releases nothing leaves no trace, so one recording is enough. */
static bool is_empty_before(const fit *of, uint32_t family, uint64_t at)
{
    bool is_empty = false;
    for (uint32_t i = 0; i < of->count; i++) {
        is_empty = is_empty || (of->sequences[i].family == family &&
                                of->sequences[i].tokens[at].is_after_empty);
    }
    return is_empty;
}

/* Where requests stand: in which part, as which request of it, as which of those that outlive it.
 */
typedef struct place {
    uint32_t part, request, export;
} place;

static void find_places(const sequence *shape, place *places)
{
    for (uint32_t part = 0; part < shape->part_count; part++) {
        uint32_t requests = 0, exports = 0;
        uint64_t from = shape->part_firsts[part], to = shape->part_firsts[part + 1];
        for (uint64_t at = from; at < to; at++) {
            if (shape->tokens[at].mark == MARK_ALLOC) {
                places[at] = (place){.part = part, .request = requests++, .export = 1};
            } else if (shape->tokens[at].value >= from) {
                places[shape->tokens[at].value].export = 0;
            }
        }
        for (uint64_t at = from; at < to; at++) {
            if (shape->tokens[at].mark == MARK_ALLOC) {
                places[at].export = places[at].export != 0 ? exports++ : 0;
            }
        }
    }
}

static void part_name(uint32_t part, char name[UF_PLAN_NAME_CAPACITY])
{
    if (part == 0) {
        snprintf(name, UF_PLAN_NAME_CAPACITY, "load");
    } else {
        snprintf(name, UF_PLAN_NAME_CAPACITY, "part_%" PRIu32, part);
    }
}

static void write_given(const fit *of, const sequence *shape, uint64_t at, uint32_t part,
                        uint32_t requested, const place *places)
{
    const place *own = &places[shape->tokens[at].value];
    char name[UF_PLAN_NAME_CAPACITY];
    if (own->part == part) {
        fprintf(of->body, "f%" PRIu32, requested - own->request);
    } else {
        part_name(own->part, name);
        fprintf(of->body, "x%s.%" PRIu32, name, own->export);
    }
}

/* The block of a part. What an earlier block requested is taken by its number there. */
static uf_status write_tokens(fit *of, uint32_t family, const sequence *shape, uint32_t part,
                              const place *places)
{
    uf_status status = UF_OK;
    uint32_t requested = 0;
    for (uint64_t at = shape->part_firsts[part];
         at < shape->part_firsts[part + 1] && status == UF_OK; at++) {
        if (is_empty_before(of, family, at)) {
            fputc('e', of->body);
            end_word(of);
        }
        uint32_t works = works_before(of, family, at);
        for (uint32_t i = 0; i < works && status == UF_OK; i++) {
            status = write_sized(of, family, at, i);
        }
        if (shape->tokens[at].mark == MARK_ALLOC) {
            status = status == UF_OK ? write_sized(of, family, at, -1) : status;
            requested++;
        } else {
            write_given(of, shape, at, part, requested, places);
            end_word(of);
        }
    }
    return status;
}

static uint64_t live_after(const sequence *shape, uint64_t at, uint64_t live_bytes)
{
    const token *one = &shape->tokens[at];
    return one->mark == MARK_ALLOC ? live_bytes + one->value
                                   : live_bytes - shape->tokens[one->value].value;
}

/* Everything up to the first thing given back is the loading. */
static void find_parts(sequence *shape)
{
    uint64_t load_end = 0, live_bytes = 0;
    while (load_end < shape->count && shape->tokens[load_end].mark == MARK_ALLOC) {
        live_bytes = live_after(shape, load_end++, live_bytes);
    }
    uint64_t base_bytes = live_bytes, peak_bytes = live_bytes, level = live_bytes;
    uint64_t tail = shape->count - (shape->count - load_end) / 20;
    for (uint64_t at = load_end; at < tail; at++) {
        level = live_after(shape, at, level);
        base_bytes = level < base_bytes ? level : base_bytes;
        peak_bytes = level > peak_bytes ? level : peak_bytes;
    }
    double span = (double)(peak_bytes - base_bytes);
    bool was_high = false;
    shape->part_firsts[1] = load_end;
    shape->part_count = load_end < shape->count ? 2 : 1;
    for (uint64_t at = load_end; at < tail; at++) {
        live_bytes = live_after(shape, at, live_bytes);
        double share = live_bytes <= base_bytes ? 0.0 : (double)(live_bytes - base_bytes) / span;
        was_high = was_high || share > PART_HIGH;
        if (was_high && share < PART_LOW && shape->part_count < PARTS_MAX) {
            shape->part_firsts[shape->part_count++] = at + 1;
            was_high = false;
        }
    }
    shape->part_firsts[shape->part_count] = shape->count;
}

static uint64_t family_variants(const fit *of, uint32_t family)
{
    uint64_t variants = 0;
    for (uint32_t i = 0; i < of->count; i++) {
        variants |= of->sequences[i].family == family ? UINT64_C(1) << of->sequences[i].variant : 0;
    }
    return variants;
}

/* A variant that was not recorded is served by the family of one that differs in padding, failing
 * that in the number of images. */
static uint64_t widened(const fit *of, uint32_t family)
{
    static const uint32_t tried[] = {0, 1u << PADDED_BIT, 1u << BATCH_BIT,
                                     1u << BATCH_BIT | 1u << PADDED_BIT};
    uint64_t served = 0;
    for (uint32_t variant = 0; variant < 1u << VARIANT_BITS; variant++) {
        uint32_t owner = UINT32_MAX;
        for (size_t t = 0; t < sizeof tried / sizeof tried[0] && owner == UINT32_MAX; t++) {
            for (uint32_t f = 0; f < of->family_count && owner == UINT32_MAX; f++) {
                owner = (family_variants(of, f) >> (variant ^ tried[t]) & 1) != 0 ? f : owner;
            }
        }
        served |= owner == family ? UINT64_C(1) << variant : 0;
    }
    return served;
}

static void open_block(fit *of, const char *name, uint64_t variants)
{
    fprintf(of->body, "block %s", name);
    for (uint32_t variant = 0; variant < 1u << VARIANT_BITS; variant++) {
        if ((variants >> variant & 1) != 0) {
            fprintf(of->body, " %" PRIu32, variant);
        }
    }
    fputc('\n', of->body);
    of->column = 0;
}

static sequence *shape_of(const fit *of, uint32_t family)
{
    uint32_t i = 0;
    while (of->sequences[i].family != family) {
        i++;
    }
    return &of->sequences[i];
}

static uf_status write_family(fit *of, uint32_t family)
{
    const sequence *shape = shape_of(of, family);
    char name[UF_PLAN_NAME_CAPACITY];
    place *places = calloc(shape->count + 1, sizeof *places);
    uf_status status = places == NULL ? no_memory(of) : UF_OK;
    uint64_t variants = widened(of, family);
    if (status == UF_OK) {
        find_places(shape, places);
    }
    for (uint32_t part = 0; part < shape->part_count && status == UF_OK; part++) {
        part_name(part, name);
        open_block(of, name, variants);
        status = write_tokens(of, family, shape, part, places);
        fputs("\nend\n", of->body);
    }
    free(places);
    return status;
}

/* Families with another number of parts are not split: their parts would not be the same. */
static uint32_t find_all_parts(const fit *of)
{
    uint32_t count = 0;
    bool is_same = true;
    for (uint32_t f = 0; f < of->family_count; f++) {
        sequence *shape = shape_of(of, f);
        find_parts(shape);
        is_same = is_same && (f == 0 || shape->part_count == count);
        count = shape->part_count;
    }
    for (uint32_t f = 0; f < of->family_count && !is_same; f++) {
        sequence *shape = shape_of(of, f);
        shape->part_count = 2;
        shape->part_firsts[2] = shape->count;
    }
    return is_same ? count : 2;
}

static void write_part(FILE *out, const uf_plan_formula *formula, uint32_t part)
{
    fprintf(out, " %" PRId64, formula->numerator[part]);
    if (formula->denominator[part] != 1) {
        fprintf(out, "/%" PRId64, formula->denominator[part]);
    }
    if (formula->term[part] != 0) {
        fprintf(out, "*%s", uf__plan_term_name(formula->term[part]));
    }
}

static void write_program(uint32_t part_count, FILE *out)
{
    char name[UF_PLAN_NAME_CAPACITY];
    fputs("program", out);
    for (uint32_t part = 0; part < part_count; part++) {
        part_name(part, name);
        fprintf(out, " %s/%s", name, name);
    }
    fputc('\n', out);
}

static void write_head(const fit *of, const char *name, uint32_t multiple, FILE *out)
{
    uint64_t min_pixels = UINT64_MAX, max_pixels = 0;
    uint32_t min_side = UINT32_MAX, max_side = 0, max_batch = 0, options = 0;
    for (uint32_t i = 0; i < of->count; i++) {
        const uf_plan_shape *shape = &of->samples[i].shape;
        uint64_t pixels = (uint64_t)shape->width * shape->height;
        uint32_t low = shape->width < shape->height ? shape->width : shape->height;
        uint32_t high = shape->width < shape->height ? shape->height : shape->width;
        min_pixels = pixels < min_pixels ? pixels : min_pixels;
        max_pixels = pixels > max_pixels ? pixels : max_pixels;
        min_side = low < min_side ? low : min_side;
        max_side = high > max_side ? high : max_side;
        max_batch = shape->batch > max_batch ? shape->batch : max_batch;
        options |= of->samples[i].options;
    }
    fprintf(out, "unfrag-model 1\nname %s\ntitle %s\norigin %" PRIu32 " recordings\n", name, name,
            of->count);
    fprintf(out, "dtype own\nmultiple %" PRIu32 "\n", multiple);
    fprintf(out, "recorded %" PRIu32 " %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu32 "\n%s",
            min_side, max_side, min_pixels, max_pixels, max_batch, choices_line);
    for (uint32_t i = 0; i < UF_PLAN_OPTION_COUNT; i++) {
        if ((options >> i & 1) != 0) {
            fprintf(out, "option %s\n", uf__plan_option_name((uf_plan_option)i));
        }
    }
}

static uf_status write_model(fit *of, const char *name, uint32_t multiple, char **text,
                             size_t *length)
{
    char *blocks = NULL;
    size_t block_length = 0;
    of->body = open_memstream(&blocks, &block_length);
    uf_status status = of->body == NULL ? no_memory(of) : UF_OK;
    uint32_t part_count = find_all_parts(of);
    for (uint32_t f = 0; f < of->family_count && status == UF_OK; f++) {
        status = write_family(of, f);
    }
    if (of->body != NULL && fclose(of->body) != 0 && status == UF_OK) {
        status = no_memory(of);
    }
    FILE *out = status == UF_OK ? open_memstream(text, length) : NULL;
    if (out != NULL) {
        write_head(of, name, multiple, out);
        write_program(part_count, out);
        for (uint32_t i = 0; i < of->formula_count; i++) {
            fputs("formula", out);
            for (uint32_t part = 0; part < of->formulas[i].count; part++) {
                write_part(out, &of->formulas[i], part);
            }
            fputc('\n', out);
        }
        fwrite(blocks, 1, block_length, out);
        status = fclose(out) == 0 ? UF_OK : no_memory(of);
    }
    free(blocks);
    of->report->formula_count = of->formula_count;
    of->report->family_count = of->family_count;
    return status == UF_OK && out == NULL ? no_memory(of) : status;
}

static uf_status check_samples(const uf_plan_sample *samples, uint32_t count, uf_error *error)
{
    if (count < 2 || count > SAMPLES_MAX) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "a model takes 2 to %d recordings, not %" PRIu32, SAMPLES_MAX, count);
    }
    uint32_t some_batch = 0;
    bool is_batch_varied = false;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t batch = samples[i].shape.batch;
        is_batch_varied = is_batch_varied || (batch > 1 && some_batch != 0 && batch != some_batch);
        some_batch = batch > 1 ? batch : some_batch;
    }
    if (some_batch != 0 && !is_batch_varied) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "every recording of several images has a batch of %" PRIu32 ": how "
                             "memory grows with the batch needs another one, such as %" PRIu32,
                             some_batch, some_batch == 2 ? 4 : 2);
    }
    bool is_varied = false;
    for (uint32_t i = 1; i < count; i++) {
        is_varied = is_varied || samples[i].shape.width != samples[0].shape.width ||
                    samples[i].shape.height != samples[0].shape.height;
    }
    if (!is_varied) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "all recordings have one size: how memory grows with it needs two");
    }
    return UF_OK;
}

uf_status uf__plan_fit(const uf_plan_sample *samples, uint32_t sample_count, const char *name,
                       uint32_t multiple, char **text, size_t *length, uf_plan_fit_report *report,
                       uf_error *error)
{
    *report = (uf_plan_fit_report){0};
    uf_status status = check_samples(samples, sample_count, error);
    if (status != UF_OK) {
        return status;
    }
    fit of = {.samples = samples, .count = sample_count, .report = report, .error = error};
    of.sequences = calloc(sample_count, sizeof *of.sequences);
    status = of.sequences == NULL ? no_memory(&of) : UF_OK;
    for (uint32_t i = 0; i < sample_count && status == UF_OK; i++) {
        status = make_sequence(&of, i);
    }
    status = status == UF_OK ? find_families(&of) : status;
    status = status == UF_OK ? write_model(&of, name, multiple, text, length) : status;
    for (uint32_t i = 0; of.sequences != NULL && i < sample_count; i++) {
        free(of.sequences[i].tokens);
        free(of.sequences[i].works);
    }
    free(of.sequences);
    free(of.formulas);
    return status;
}
