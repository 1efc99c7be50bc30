/* SPDX-License-Identifier: MIT
 *
 * The segments and blocks of one moment of a history, and what they say: how much of the cached
 * memory lies between live blocks, which segments are pinned and by what, and, where a request
 * failed, why and what to do. Owns its copy of the state. */
#ifndef UF_REPORT_MOMENT_H
#define UF_REPORT_MOMENT_H

#include "advise/explain.h"
#include "report/history.h"
#include "report/marks.h"

typedef enum uf_moment_kind {
    UF_MOMENT_PEAK, /* the first at which most was reserved */
    UF_MOMENT_OOM,  /* a request failed */
    UF_MOMENT_END
} uf_moment_kind;

typedef struct uf_moment {
    uf_moment_kind kind;
    uint64_t event;        /* the state after it */
    uint64_t wanted_bytes; /* UF_MOMENT_OOM: asked for */
    uf_trace_segment *segments;
    uint32_t segment_count;
    uf_trace_block *blocks; /* by address in their segments; cached ones between */
    uint64_t block_count;
    uint32_t *span_of_block; /* UF_NONE for cached ones */
    uint64_t levels[UF_LEVEL_COUNT];
    uf_snapshot_state state;     /* borrows from the arrays above */
    uf_explanation *explanation; /* UF_MOMENT_OOM only, else NULL */
} uf_moment;

/* limit_bytes: the memory fraction in force, 0 = unknown. UF_OK or UF_ERROR_HOST_MEMORY; fini in
 * any case. */
uf_status uf__moment_init(uf_moment *moment, const uf_history *history, uf_moment_kind kind,
                          uint64_t event, uint64_t limit_bytes) UF_MUST_USE;
void uf__moment_fini(uf_moment *moment);

#define UF_MOMENT_LIMIT 8

typedef struct uf_moments {
    uf_moment items[UF_MOMENT_LIMIT]; /* the peak, failures in order, the end */
    uint32_t count;
} uf_moments;

/* The peak; the first failure, the last, and of the others those that asked for most; the end. As
 * uf__moment_init. */
uf_status uf__moments_init(uf_moments *moments, const uf_history *history, const uf_marks *marks,
                           uint64_t limit_bytes) UF_MUST_USE;
void uf__moments_fini(uf_moments *moments);

/* The last failure that is there, or NULL. */
const uf_moment *uf__moments_failure(const uf_moments *moments);

#endif
