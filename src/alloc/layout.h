/* SPDX-License-Identifier: MIT
 *
 * The core's segments and blocks as a list, in the order and form of a snapshot: by address, an
 * expandable segment as one entry per run of mapped blocks. Read-only on the core. */
#ifndef UF_ALLOC_LAYOUT_H
#define UF_ALLOC_LAYOUT_H

#include "alloc/core.h"

typedef struct uf_layout_segment {
    uint64_t addr, total_bytes;
    uint64_t allocated_bytes, active_bytes, requested_bytes; /* requested of active blocks */
    uint64_t stream;
    uint64_t pool_id[2];
    uint32_t pool;
    /* Head of the run; follow next while the addresses are inside. Under the unfrag policy the
     * first and the last block may reach beyond the segment, where nothing is mapped. */
    uint32_t first_block;
    uint32_t block_count;
    bool is_large, is_expandable;
} uf_layout_segment;

typedef struct uf_layout {
    uf_layout_segment *segments;
    uint32_t segment_count, segment_capacity;
} uf_layout;

uf_status uf__layout_init(uf_layout *layout, const uf_core *core) UF_MUST_USE;
void uf__layout_fini(uf_layout *layout);

#endif
