/* SPDX-License-Identifier: MIT
 *
 * The known hazard of PyTorch's allocator (spec 3.4): oversize release takes a free block of at
 * least max_split_size for a whole segment. That holds as long as such blocks are never split;
 * lowering the setting while larger pieces of split segments exist breaks it. Read-only on the
 * core. */
#ifndef UF_ALLOC_HAZARD_H
#define UF_ALLOC_HAZARD_H

#include "alloc/core.h"

/* The largest piece of a split plain segment, cached or not, of at least max_split_bytes; the first
 * of equals; UF_NO_BLOCK = there is none. Smaller pieces may still merge into such a one later: the
 * release itself checks again (release.c). */
uint32_t uf__hazard_find(const uf_core *core, uint64_t max_split_bytes);

/* The size of the segment that a block of a plain segment belongs to. */
uint64_t uf__hazard_segment_bytes(const uf_core *core, uint32_t block);

#endif
