/* SPDX-License-Identifier: MIT
 *
 * The state a trace began with, found by walking it backwards from its final segments. */
#ifndef UF_REPLAY_REBUILD_H
#define UF_REPLAY_REBUILD_H

#include "replay/program.h"

typedef struct uf_start_block {
    uint64_t addr, size_bytes, requested_bytes;
    uint32_t alloc; /* allocation, UF_NONE if free */
    bool is_waiting;
} uf_start_block;

typedef struct uf_start_segment {
    uint64_t addr, size_bytes, stream;
    uint64_t first_block;
    uint32_t block_count;
    uint32_t pool; /* label */
    bool is_large, is_expandable;
} uf_start_segment;

struct uf_start {
    uf_start_segment *segments;
    uf_start_block *blocks;
    uint32_t segment_count;
    uint64_t block_count;
};

/* Sets program->start if the trace begins mid-life, leaves it NULL if it explains itself from
 * nothing. */
uf_status uf__rebuild(uf_program *program) UF_MUST_USE;
void uf__start_destroy(uf_start *start); /* NULL accepted */

#endif
