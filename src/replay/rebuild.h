/* SPDX-License-Identifier: MIT
 *
 * The state a trace began with, where it begins mid-life: a ring that overflowed, or a recording
 * that was switched on late. Found from the final segments and the events.
 *
 *   segments at the start = final ones - those the events create + those the events give back
 *   blocks at the start   = those freed without an alloc event, and final ones no event mentions
 *   everything between them was free
 *
 * A block's size is exact in small and expandable pools, where requests are cut to measure, and for
 * blocks that are still there at the end. In large plain segments up to 1 MiB behind a request can
 * belong to it; there the first request placed behind it shows where it ends. What no event shows
 * is taken for free. */
#ifndef UF_REPLAY_REBUILD_H
#define UF_REPLAY_REBUILD_H

#include "alloc/adopt.h"
#include "replay/program.h"

typedef struct uf_start_segment {
    uint64_t addr, end;
    uint64_t stream;
    uint32_t label; /* index into program->pools */
    bool is_large, is_expandable;
    uf_adopt_block *blocks; /* free ones included; unmapped space is not */
    uint32_t *allocs;       /* allocation of each block, UF_NONE = free */
    bool *is_waiting;       /* freed before, not completed yet */
    uint32_t block_count, block_capacity;
} uf_start_segment;

struct uf_start {
    uf_start_segment *segments; /* by address */
    uint32_t segment_count, segment_capacity;
    uint64_t block_count;
    uint64_t stray_count; /* start blocks outside every segment */
};

/* Sets program->start if the trace begins mid-life, leaves it NULL if it explains itself from
 * nothing. UF_ERROR_HOST_MEMORY or UF_OK. */
uf_status uf__rebuild(uf_program *program) UF_MUST_USE;
void uf__start_destroy(uf_start *start); /* NULL accepted */

#endif
