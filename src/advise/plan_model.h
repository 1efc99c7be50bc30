/* SPDX-License-Identifier: MIT
 *
 * A model file of plan: what a program requests and gives back, in order, with each size as a
 * formula of width, height and batch. Owns the parsed file; what a request comes to is
 * plan_stream.h's business. Read-only once read. The format is docs/plan-model.md. */
#ifndef UF_ADVISE_PLAN_MODEL_H
#define UF_ADVISE_PLAN_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include <unfrag/status.h>

#define UF_PLAN_NAME_CAPACITY 32
#define UF_PLAN_MODULES_MAX 16
#define UF_PLAN_BLOCKS_MAX 256
#define UF_PLAN_STEPS_MAX 32
#define UF_PLAN_CHOICES_MAX 6

/* Options of a pipeline, cheapest in time first: sets of them are compared in this order. */
#define UF_PLAN_OPTION_LIST(X)                        \
    X(UF_PLAN_VAE_SLICING, "vae-slicing")             \
    X(UF_PLAN_VAE_TILING, "vae-tiling")               \
    X(UF_PLAN_ATTENTION_SLICING, "attention-slicing") \
    X(UF_PLAN_OFFLOAD, "offload")

typedef enum uf_plan_option {
#define UF_PLAN_OPTION_ENUM(name, text) name,
    UF_PLAN_OPTION_LIST(UF_PLAN_OPTION_ENUM)
#undef UF_PLAN_OPTION_ENUM
        UF_PLAN_OPTION_COUNT
} uf_plan_option;

/* "vae-slicing" and so on; static text. */
const char *uf__plan_option_name(uf_plan_option option);
/* UF_PLAN_OPTION_COUNT if there is none of that name. */
uf_plan_option uf__plan_option_find(const char *name);

/* What a size is a multiple of. p0 ... p5: pixels at 1/1 ... 1/32 of width and height, rounded up;
 * r4: p4 rounded up to 32; q4: r4 + 32; s4, s5: squares of p4, p5. With b: times the batch.
 * m0, m1: p0, p1 times as many images as 2^31 elements hold with 256, 512 channels. */
#define UF_PLAN_BASE_LIST(X) X(1) X(p0) X(p1) X(p2) X(p3) X(p4) X(p5) X(r4) X(q4) X(s4) X(s5)

enum { UF_PLAN_BASE_COUNT = 11, UF_PLAN_TERM_COUNT = 2 * UF_PLAN_BASE_COUNT + 2 };

typedef struct uf_plan_shape {
    uint32_t width, height, batch;
} uf_plan_shape;

/* Values of all terms; term 2 * base is per block, 2 * base + 1 times the batch, then m0, m1. */
typedef struct uf_plan_terms {
    uint64_t values[UF_PLAN_TERM_COUNT];
    bool is_over; /* an activation of 256 channels has over 2^31 elements */
} uf_plan_terms;

void uf__plan_terms_set(uf_plan_terms *terms, const uf_plan_shape *shape);
/* The name of a term, such as "p3b"; static text. */
const char *uf__plan_term_name(uint32_t term);

/* A sum of up to two terms. */
typedef struct uf_plan_formula {
    int64_t numerator[2], denominator[2];
    uint8_t term[2];
    uint8_t count;
} uf_plan_formula;

/* Rounded to the nearest byte; at least 1. */
uint64_t uf__plan_formula_value(const uf_plan_formula *formula, const uf_plan_terms *terms);

typedef enum uf_plan_token_kind {
    UF_PLAN_ALLOC, /* formula */
    UF_PLAN_WORK,  /* formula: requested and given back at once, if the condition holds */
    UF_PLAN_GIVE,  /* the block's own request number first */
    UF_PLAN_TAKE,  /* export number second of the block name first */
    UF_PLAN_IN,    /* module: requested (with offload) */
    UF_PLAN_OUT,   /* module: given back (with offload) */
    UF_PLAN_EMPTY, /* empty_cache */
    UF_PLAN_CAST   /* module first becomes module second, tensor by tensor */
} uf_plan_token_kind;

typedef enum uf_plan_when {
    UF_PLAN_ALWAYS,
    UF_PLAN_IF_DIVIDES,
    UF_PLAN_IF_NOT,
    UF_PLAN_IF_OVER,
    UF_PLAN_IF_NOT_OVER,
    UF_PLAN_IF_RESIDENT
} uf_plan_when;

typedef struct uf_plan_token {
    uint8_t kind, when;
    uint8_t term, divisor; /* of the condition */
    uint32_t first, second;
} uf_plan_token;

typedef struct uf_plan_block {
    uint32_t name;     /* index into block_names */
    uint64_t variants; /* bit v: serves variant v */
    uf_plan_token *tokens;
    uint32_t token_count, token_capacity;
    uint32_t alloc_count;
    uint32_t *exports; /* own requests that outlive the block, in order */
    uint32_t export_count;
} uf_plan_block;

typedef struct uf_plan_module {
    char name[UF_PLAN_NAME_CAPACITY];
    bool is_resident; /* loaded first, without offload */
    uint64_t *sizes;
    uint32_t size_count, size_capacity;
    uint64_t bytes;
} uf_plan_module;

typedef enum uf_plan_choice {
    UF_PLAN_CHOICE_OPTION, /* option */
    UF_PLAN_CHOICE_BATCH,  /* more than one image */
    UF_PLAN_CHOICE_PADDED  /* p4 is no multiple of 32 */
} uf_plan_choice;

typedef struct uf_plan_model {
    char name[UF_PLAN_NAME_CAPACITY];
    char title[128], origin[160];
    char dtype[8];
    uint32_t multiple; /* width and height are multiples of it */
    uint32_t recorded_min_side, recorded_max_side, recorded_max_batch;
    uint64_t recorded_min_pixels, recorded_max_pixels;
    bool has_option[UF_PLAN_OPTION_COUNT];
    bool is_inert[UF_PLAN_OPTION_COUNT]; /* the pipeline takes the option and does nothing */
    uint32_t choice_count;
    uint8_t choices[UF_PLAN_CHOICES_MAX], choice_options[UF_PLAN_CHOICES_MAX];
    bool has_decoder;
    uint32_t tile_side, tile_step; /* of the VAE's tiling, in pixels */
    uint32_t decoder_element_bytes;
    uf_plan_module modules[UF_PLAN_MODULES_MAX];
    uint32_t module_count;
    uf_plan_formula *formulas;
    uint32_t formula_count, formula_capacity;
    char block_names[UF_PLAN_STEPS_MAX][UF_PLAN_NAME_CAPACITY];
    uint32_t block_name_count;
    uf_plan_block *blocks;
    uint32_t block_count;
    uint32_t step_blocks[UF_PLAN_STEPS_MAX]; /* names of blocks in the order they run */
    uint32_t step_phases[UF_PLAN_STEPS_MAX];
    uint32_t step_count;
    char phase_names[UF_PLAN_STEPS_MAX][UF_PLAN_NAME_CAPACITY]; /* [0] is "load" */
    uint32_t phase_count;
} uf_plan_model;

/* Reads a model file, plain or compressed. Returns UF_OK; UF_ERROR_IO; UF_ERROR_BAD_INPUT (the
 * error names the line); UF_ERROR_HOST_MEMORY. *model: owned by the caller, ended with
 * uf__plan_model_destroy; untouched on failure. */
uf_status uf__plan_model_read(const char *path, uf_plan_model **model, uf_error *error) UF_MUST_USE;
/* The same from text. */
uf_status uf__plan_model_parse(const char *text, size_t length, uf_plan_model **model,
                               uf_error *error) UF_MUST_USE;
void uf__plan_model_destroy(uf_plan_model *model); /* NULL accepted */

/* The block of a name that serves a variant; NULL if none was recorded. */
const uf_plan_block *uf__plan_model_block(const uf_plan_model *model, uint32_t name,
                                          uint64_t variant);
/* UINT32_MAX if there is none. */
uint32_t uf__plan_model_block_name(const uf_plan_model *model, const char *name);

#endif
