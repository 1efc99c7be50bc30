/* SPDX-License-Identifier: MIT
 *
 * A copy of the core's segments and blocks as the public interface shows them. Owns the copy; once
 * made, it needs neither the core nor its guard. */
#ifndef UF_ALLOC_WALK_H
#define UF_ALLOC_WALK_H

#include <unfrag/unfrag.h>

#include "alloc/core.h"

/* The blocks of segments[0], then those of segments[1], and so on. */
typedef struct uf_walk_copy {
    uf_segment_info *segments;
    uf_block_info *blocks;
    uint64_t segment_count, block_count;
} uf_walk_copy;

/* Under the core's guard. UF_OK or UF_ERROR_HOST_MEMORY; the copy needs no fini after a failure. */
uf_status uf__walk_copy_init(uf_walk_copy *copy, const uf_core *core) UF_MUST_USE;
void uf__walk_copy_fini(uf_walk_copy *copy);

#endif
