/* SPDX-License-Identifier: MIT
 *
 * Where in address space a block goes: into one of the tightest holes, at the end of it where the
 * fewest pages have to move. Changes nothing. Guarded by whoever guards the core.
 *
 * The tightest hole whatever is mapped there, not the one with the most pages: that keeps the large
 * holes whole, and with them the number of edges at which parts of pages are lost. Among holes that
 * are nearly as tight the cheapest wins. */
#ifndef UF_ALLOC_PLACE_H
#define UF_ALLOC_PLACE_H

#include "alloc/paging.h"

typedef struct uf_place {
    uint32_t hole;      /* UF_NO_BLOCK = no hole is long enough */
    uint64_t addr, end; /* of the block to be */
    uint64_t cost;      /* of the pages to move, in sixteenths of one small page */
} uf_place;

/* The place for size_bytes among the holes of a shelf. */
uf_place uf__place_choose(const uf_core *core, const uf_shelf *shelf, uint64_t size_bytes);

#endif
