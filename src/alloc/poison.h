/* SPDX-License-Identifier: MIT
 *
 * Which freed memory holds the filling of debug mode, by address, and whose it was. Bookkeeping
 * only: it fills and reads nothing. Guarded by whoever guards the debug mode.
 *
 *   freed        [  block A  ]      [   block B   ]
 *   handed out          [  C  ]
 *   afterwards   [ A's ]            [     B's     ]      two stretches */
#ifndef UF_ALLOC_POISON_H
#define UF_ALLOC_POISON_H

#include <stdbool.h>
#include <stdint.h>

typedef struct uf_poison {
    uint64_t addr, size_bytes;
    uint64_t origin_addr, origin_bytes; /* of the block that was freed; bytes as requested */
    uint64_t stream;                    /* its own, on which it was filled */
} uf_poison;

/* Stretches by address; they do not overlap. */
typedef struct uf_poison_map {
    uf_poison *items;
    uint32_t count, capacity;
} uf_poison_map;

/* More stretches than these are not kept: what is freed then is not looked at. */
enum { UF_POISON_MOST = 1 << 16 };

void uf__poison_fini(uf_poison_map *map);

/* The first stretch that ends behind addr; map->count if there is none. */
uint32_t uf__poison_find(const uf_poison_map *map, uint64_t addr);

/* Forgets [addr, addr + size_bytes). Where a stretch would fall into two and there is no room for
 * the second, that is forgotten too. */
void uf__poison_drop(uf_poison_map *map, uint64_t addr, uint64_t size_bytes);

/* Notes a stretch in the place of what was there. False if there is no room; nothing is known of
 * these addresses then. */
bool uf__poison_add(uf_poison_map *map, const uf_poison *poison);

#endif
