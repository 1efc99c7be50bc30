/* SPDX-License-Identifier: MIT
 *
 * A trace as a sequence of operations, one per recorded event, in 4 bytes each. Owns the operations
 * and the table of allocations; borrows the trace.
 *
 *   events  segment_alloc  alloc  free_requested free_completed  segment_free  segment_free  ...
 *   ops     NONE           ALLOC7 FREE7          NONE            EMPTY         NONE          ...
 */
#ifndef UF_REPLAY_PROGRAM_H
#define UF_REPLAY_PROGRAM_H

#include <unfrag/replay.h>

#include "alloc/conf.h"

typedef enum uf_op_kind {
    UF_OP_NONE,
    UF_OP_ALLOC,      /* id = allocation */
    UF_OP_FREE,       /* requested and completed at once */
    UF_OP_FREE_LATER, /* requested; completes at UF_OP_COMPLETE or in a flush */
    UF_OP_COMPLETE,
    UF_OP_COMPLETE_AFTER, /* completed inside the next allocation's flush, or after it */
    UF_OP_EMPTY,          /* empty_cache */
    UF_OP_POOL_DROP,      /* id = pool: it dies, and what it cached is released */
    UF_OP_POOL_RETIRE,    /* id = pool: the next flush may release what it caches */
    UF_OP_OOM             /* recorded failure; not replayed in a what-if run */
} uf_op_kind;

#define UF_OP_KIND_BITS 4
#define UF_OP_ID_LIMIT (UINT32_C(1) << 28)

static inline uint32_t uf__op(uf_op_kind kind, uint32_t id)
{
    return (id << UF_OP_KIND_BITS) | (uint32_t)kind;
}

static inline uf_op_kind uf__op_kind(uint32_t op)
{
    return (uf_op_kind)(op & ((1u << UF_OP_KIND_BITS) - 1));
}

static inline uint32_t uf__op_id(uint32_t op)
{
    return op >> UF_OP_KIND_BITS;
}

typedef struct uf_program_pool {
    uint64_t id[2];
    bool is_recorded; /* the id comes from the trace */
} uf_program_pool;

typedef struct uf_start uf_start; /* rebuild.h */

struct uf_program {
    const uf_trace *trace;
    const uf_event *events; /* of the device */
    uint64_t event_count;
    int32_t device;         /* index as recorded */
    uint32_t *ops;          /* one per event */
    uint64_t *alloc_bytes;  /* requested, by allocation */
    uint16_t *alloc_stream; /* index into streams; zeros are never written */
    uint16_t *alloc_pool;   /* index into pools; zeros are never written over zeros */
    uint32_t alloc_count;
    uint32_t *start_ids;   /* allocations that were live when the trace began */
    uint64_t *start_addrs; /* their recorded addresses */
    uint32_t start_count;
    uint64_t *streams;
    uint32_t stream_count;
    uf_program_pool *pools; /* [0] is the default pool */
    uint32_t pool_count;
    uf_start *start; /* where the trace begins mid-life, else NULL */
    uint64_t peak_live_bytes;
    uint64_t followed_count; /* events followed while looking for assumptions, trials included */
    uf_conf conf;
    char *conf_text;
    uf_program_options options;
    uf_program_report report;
};

/* Links frees to allocations and finds what the address order alone shows. Fills everything but
 * what following infers. */
uf_status uf__program_link(uf_program *program, uf_error *error) UF_MUST_USE;

/* Index of a stream handle; registers it. False if the host has no memory or there are too many. */
bool uf__program_stream(uf_program *program, uint64_t handle, uint32_t *stream);

/* The pool of a recorded id; registers it. False as above. */
bool uf__program_pool_find(uf_program *program, const uint64_t id[2], uint32_t *pool);

/* Registers a pool; id NULL = inferred. False as above. */
bool uf__program_pool(uf_program *program, const uint64_t id[2], uint32_t *pool);

#endif
