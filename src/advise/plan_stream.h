/* SPDX-License-Identifier: MIT
 *
 * What a model requests and gives back at a size, batch and set of options: the model's blocks laid
 * out one after the other, as the operations of a replay. Owns the operations; which sizes and
 * options make sense is plan.h's business. One thread per stream. */
#ifndef UF_ADVISE_PLAN_STREAM_H
#define UF_ADVISE_PLAN_STREAM_H

#include <unfrag/replay.h>

#include "advise/plan_model.h"

/* Bytes of an element beside the two that models are recorded with. */
typedef enum uf_plan_dtype {
    UF_PLAN_DTYPE_RECORDED,
    UF_PLAN_DTYPE_FP16,
    UF_PLAN_DTYPE_BF16,
    UF_PLAN_DTYPE_FP32
} uf_plan_dtype;

typedef struct uf_plan_job {
    uf_plan_shape shape;
    uint32_t options; /* bit o: uf_plan_option o is on */
    uf_plan_dtype dtype;
    double weights_ratio; /* other weights than the model's own, as a multiple; 0 = 1 */
} uf_plan_job;

typedef struct uf_plan_phase {
    uint64_t peak_bytes;    /* live, rounded up to 512 a request */
    uint64_t weights_bytes; /* of these, weights */
    uint64_t event_count;
} uf_plan_phase;

typedef struct uf_plan_stream {
    uint32_t *ops;
    uint64_t event_count, event_capacity;
    uint64_t *alloc_bytes;
    uint32_t alloc_count;
    uint64_t alloc_capacity;
    uf_plan_phase phases[UF_PLAN_STEPS_MAX]; /* by phase of the model */
    uint32_t peak_phase;
    uint64_t peak_bytes;         /* live */
    uint64_t weights_bytes;      /* of all modules, on the card or not */
    uint64_t most_weights_bytes; /* on the card at one time */
    bool is_tiled, is_sliced;    /* the decoding */
    bool is_scaled;              /* sizes are scaled to another dtype than the recorded one */
    bool is_over;                /* some activation has over 2^31 elements */
} uf_plan_stream;

/* Lays out a job. Returns UF_OK; UF_ERROR_UNSUPPORTED (the model has no recording of this kind);
 * UF_ERROR_BAD_INPUT (the model contradicts itself); UF_ERROR_HOST_MEMORY. The caller ends *stream
 * with uf__plan_stream_fini, whatever was returned. */
uf_status uf__plan_stream_build(const uf_plan_model *model, const uf_plan_job *job,
                                uf_plan_stream *stream, uf_error *error) UF_MUST_USE;
void uf__plan_stream_fini(uf_plan_stream *stream);

/* Replays it under a policy and settings (NULL = default) on a card (0 = one that is large enough).
 * Returns what uf_replay_run returns. */
uf_status uf__plan_stream_replay(const uf_plan_stream *stream, uf_policy policy, const char *conf,
                                 uint64_t card_bytes, uf_replay_result *result,
                                 uf_error *error) UF_MUST_USE;

#endif
