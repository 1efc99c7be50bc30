/* SPDX-License-Identifier: MIT
 *
 * The blocks of all segments at one moment, while events are walked: cached blocks that touch are
 * one. Found by address, both from below and from above. Owns its arrays; not thread-safe. */
#ifndef UF_REPORT_BLOCKMAP_H
#define UF_REPORT_BLOCKMAP_H

#include "base/addrmap.h"

#include <unfrag/status.h>

/* Owners: blocks of one plain segment have its number; all parts of expandable ones have this. */
#define UF_OWNER_EXPANDABLE UINT32_MAX

#define UF_BLOCKMAP_CACHED UINT32_MAX /* the span of a cached block */
#define UF_BLOCKMAP_NONE UINT32_MAX   /* no such block */

typedef struct uf_blockmap_block {
    uint64_t addr, size_bytes;
    uint32_t owner;
    uint32_t span; /* the allocation in it, or UF_BLOCKMAP_CACHED */
} uf_blockmap_block;

typedef struct uf_blockmap {
    uf_blockmap_block *blocks; /* vacant ones have size 0 and are linked by owner */
    uint32_t count, capacity, vacant;
    uf_addrmap by_addr, by_end;
} uf_blockmap;

void uf__blockmap_init(uf_blockmap *map);
void uf__blockmap_fini(uf_blockmap *map);

/* Adds a block. A cached one joins cached neighbours of the same owner. Returns false if the host
 * has no memory left. */
bool uf__blockmap_add(uf_blockmap *map, uf_blockmap_block block) UF_MUST_USE;

/* The block that starts at addr, or UF_BLOCKMAP_NONE. */
uint32_t uf__blockmap_find(const uf_blockmap *map, uint64_t addr);

/* Cuts a cached block: its front of size_bytes becomes the allocation `span`, the rest stays
 * cached. False as above. */
bool uf__blockmap_take(uf_blockmap *map, uint32_t block, uint64_t size_bytes,
                       uint32_t span) UF_MUST_USE;

/* An allocation ends: its block is cached and joins its neighbours. False as above. */
bool uf__blockmap_give(uf_blockmap *map, uint32_t block) UF_MUST_USE;

/* Takes [addr, addr + size_bytes) out of the cached block that holds it, wherever that starts;
 * *is_found: there was one. False as above. */
bool uf__blockmap_remove(uf_blockmap *map, uint64_t addr, uint64_t size_bytes,
                         bool *is_found) UF_MUST_USE;

#endif
