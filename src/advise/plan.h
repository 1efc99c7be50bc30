/* SPDX-License-Identifier: MIT
 *
 * Will it fit? A model, a size, a batch and options in; peak memory by phase, what each allocator
 * reserves for it, which options help, and the smallest card out. Owns the verdict and what it
 * rests on: the allowance for CUDA, the margin for the model's error. Knows no command line. */
#ifndef UF_ADVISE_PLAN_H
#define UF_ADVISE_PLAN_H

#include "advise/plan_stream.h"

/* What CUDA's context and libraries take of a card; as tune has it. */
#define UF_PLAN_ALLOWANCE_BYTES (UINT64_C(768) << 20)

/* A plan counts on so much more reserved memory than the replay gives: between the recordings, and
 * beyond them. */
#define UF_PLAN_MARGIN 0.01
#define UF_PLAN_MARGIN_BEYOND 0.02

/* The largest batch that is answered, for models recorded with several images but less than half of
 * it; a model that was recorded with one image only answers for one. */
#define UF_PLAN_BATCH_MAX 8

typedef struct uf_plan_question {
    uf_plan_job job;
    uf_policy policy;
    const char *conf;         /* NULL = PyTorch's default settings */
    uint64_t card_bytes;      /* 0 = not asked */
    uint64_t allowance_bytes; /* of a card, left to CUDA and its libraries */
} uf_plan_question;

/* One set of options. */
typedef struct uf_plan_figure {
    uint32_t options; /* bit o: uf_plan_option o is on */
    uint64_t peak_bytes, reserved_bytes;
    uint64_t needed_bytes; /* a card must have so much: reserved, margin, allowance */
} uf_plan_figure;

/* What turning one option the other way would give. */
typedef struct uf_plan_effect {
    bool is_asked; /* the option is on in the question */
    bool is_there; /* the model has it; otherwise there is no figure */
    uf_plan_figure other;
} uf_plan_effect;

typedef struct uf_plan_answer {
    uf_plan_phase phases[UF_PLAN_STEPS_MAX]; /* by phase of the model */
    uint32_t peak_phase;
    uint64_t weights_bytes, most_weights_bytes;
    uf_plan_figure asked; /* under the question's settings */
    uint64_t default_reserved_bytes, expandable_reserved_bytes;
    bool has_unfrag; /* reserved under the unfrag policy is known */
    uint64_t unfrag_reserved_bytes;
    bool is_beyond; /* the recorded range */
    bool is_over;   /* activations of over 2^31 elements: libraries split the work */
    bool is_dtype_scaled;
    double margin; /* share of reserved memory */
    bool fits;     /* meaningful if a card was asked about */
    int64_t margin_bytes;
    uint64_t smallest_card_bytes; /* of the usual sizes; 0 = none */
    uf_plan_effect effects[UF_PLAN_OPTION_COUNT];
    bool has_cheapest; /* some set of options fits the card */
    uf_plan_figure cheapest;
    bool has_leanest; /* the set that needs least, where none fits or no card was asked about */
    uf_plan_figure leanest;
} uf_plan_answer;

/* Refuses sizes, batches and options that the model does not have, or that are far from its
 * recordings: UF_ERROR_INVALID_ARGUMENT, with what is allowed. */
uf_status uf__plan_check(const uf_plan_model *model, const uf_plan_job *job,
                         uf_error *error) UF_MUST_USE;

/* Answers. Returns UF_OK; what uf__plan_check returns; UF_ERROR_CONF; what laying out and replay
 * return. */
uf_status uf__plan(const uf_plan_model *model, const uf_plan_question *question,
                   uf_plan_answer *answer, uf_error *error) UF_MUST_USE;

/* The figure of one job: its own options. */
uf_status uf__plan_figure(const uf_plan_model *model, const uf_plan_question *question,
                          uf_plan_figure *figure, uf_error *error) UF_MUST_USE;

/* The largest batch of the question's size and options that fits its card; 0 = none. */
uf_status uf__plan_largest_batch(const uf_plan_model *model, const uf_plan_question *question,
                                 uint32_t *batch, uf_error *error) UF_MUST_USE;

/* The largest batch that uf__plan_check lets pass. */
uint32_t uf__plan_batch_limit(const uf_plan_model *model);

/* Sizes that people ask for, within the model's range, from small to large. */
#define UF_PLAN_SIZES_MAX 16
uint32_t uf__plan_usual_sizes(const uf_plan_model *model, uf_plan_shape sizes[UF_PLAN_SIZES_MAX]);

#endif
