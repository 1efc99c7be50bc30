/* SPDX-License-Identifier: MIT
 *
 * Where in address space a block goes: where the pages that it lacks cost least to bring there, by
 * the costs of the device's calls. Changes nothing. Guarded by whoever guards the core.
 *
 * At equal cost the tightest hole wins, whatever is mapped there: that keeps large holes whole, and
 * with them the number of edges at which parts of pages are lost. While there is room below the
 * limit, and where there is no limit, blocks go to the ends of holes only; then the bounds of pages
 * inside are places too. */
#ifndef UF_ALLOC_PLACE_H
#define UF_ALLOC_PLACE_H

#include "alloc/paging.h"

typedef struct uf_place {
    uint32_t hole;      /* UF_NO_BLOCK = no hole is long enough */
    uint64_t addr, end; /* of the block to be */
    uint64_t cost;      /* of bringing pages there, in nanoseconds, with what a cut hole adds */
} uf_place;

/* The place for size_bytes among the holes of a shelf. */
uf_place uf__place_choose(const uf_core *core, const uf_shelf *shelf, uint64_t size_bytes);

#endif
