/* SPDX-License-Identifier: MIT
 *
 * Putting a segment that exists already, with its blocks, into a core: how a replay starts from the
 * middle of a program's life. Counts current values and peaks, not totals. */
#ifndef UF_ALLOC_ADOPT_H
#define UF_ALLOC_ADOPT_H

#include "alloc/core.h"

typedef struct uf_adopt_block {
    uint64_t addr, size_bytes, requested_bytes;
    uint8_t life; /* UF_LIFE_FREE, UF_LIFE_ALLOCATED; a waiting block is freed afterwards */
    bool is_mapped;
    uint32_t handle; /* out: the block's index */
} uf_adopt_block;

typedef struct uf_adopt_segment {
    uint32_t stream, pool; /* core indices */
    int pool_class;
    bool is_expandable;
    uint64_t page_bytes;    /* of an expandable segment */
    uf_adopt_block *blocks; /* gap-free, by address; the whole reservation if expandable */
    uint32_t block_count;
} uf_adopt_segment;

/* UF_OK; UF_ERROR_BAD_INPUT if the blocks have gaps, overlap or are empty; UF_ERROR_HOST_MEMORY.
 * After a failure the core must only be destroyed. */
uf_status uf__core_adopt(uf_core *core, uf_adopt_segment *segment) UF_MUST_USE;

#endif
