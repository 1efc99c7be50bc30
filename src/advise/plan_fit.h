/* SPDX-License-Identifier: MIT
 *
 * Makes a model file from recordings of one program at several sizes: the same requests in the same
 * order, each fitted over the recordings. Owns the fitting; docs/plan-model.md has the format. */
#ifndef UF_ADVISE_PLAN_FIT_H
#define UF_ADVISE_PLAN_FIT_H

#include <unfrag/replay.h>

#include "advise/plan_model.h"

typedef struct uf_plan_sample {
    const uf_program *program; /* borrowed for the call */
    const char *name;          /* for messages; borrowed */
    uf_plan_shape shape;
    uint32_t options; /* bit o: uf_plan_option o was on */
} uf_plan_sample;

typedef struct uf_plan_fit_report {
    uint32_t family_count;  /* kinds of runs, told apart by the order of their requests */
    uint32_t formula_count; /* different ones */
    uint64_t token_count;
    uint64_t exact_count, loose_count; /* sizes that follow a formula to the byte, and nearly */
    uint64_t worst_bytes;              /* the largest difference among the latter */
} uf_plan_fit_report;

/* Fits. name: the model's. multiple: what width and height are multiples of. *text: the model file,
 * owned by the caller (free). Returns UF_OK; UF_ERROR_INVALID_ARGUMENT (fewer than two recordings,
 * or all of one size and batch); UF_ERROR_BAD_INPUT (recordings that were described alike request
 * differently: the error names both and where); UF_ERROR_HOST_MEMORY. */
uf_status uf__plan_fit(const uf_plan_sample *samples, uint32_t sample_count, const char *name,
                       uint32_t multiple, char **text, size_t *length, uf_plan_fit_report *report,
                       uf_error *error) UF_MUST_USE;

/* One size over the recordings that share a request. */
typedef struct uf_plan_fitted {
    uf_plan_formula formula;
    bool is_exact;
    double error; /* the largest, as a share of the size */
    uint64_t error_bytes;
} uf_plan_fitted;

/* The simplest formula: a multiple of one term, or of one term and a constant, that gives every
 * size to the byte; failing that the term and constant of least error, never below a recorded size.
 * is_work: a workspace, whose growth 2^31 elements end. */
void uf__plan_fit_sizes(const uf_plan_terms *terms, const uint64_t *sizes, uint32_t count,
                        bool is_work, uf_plan_fitted *fitted);

#endif
