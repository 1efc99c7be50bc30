/* SPDX-License-Identifier: MIT
 *
 * Holes: the free blocks of the `unfrag` policy (paging.h), cut and put back. A hole keeps in
 * requested_bytes the address up to which it is known to have pages from its start on. Guarded by
 * whoever guards the core. */
#ifndef UF_ALLOC_HOLE_H
#define UF_ALLOC_HOLE_H

#include "alloc/paging.h"

static inline uint64_t uf__block_end(const uf_block *block)
{
    return block->addr + block->size_bytes;
}

/* Takes [addr, end) out of a hole that is in its set; what is left of the hole before and behind
 * stays in holes, the one before with the hole's index. Returns the block of [addr, end), which is
 * in no set. Two blocks must have been reserved. */
uint32_t uf__hole_cut_out(uf_core *core, uint32_t hole, uint64_t addr, uint64_t end);

/* Makes a block that is in no set a hole, one with the holes that it touches. */
void uf__hole_put(uf_core *core, uint32_t block);

/* Finds out anew up to where a hole has pages. */
void uf__hole_renew(const uf_core *core, uf_block *hole);

/* The granules that lie wholly in a hole. */
uf_stretch uf__hole_granules(const uf_core *core, const uf_block *hole);

#endif
