/* SPDX-License-Identifier: MIT
 *
 * A hash map from device addresses to 32-bit indices: open addressing, linear probing. Owns its
 * table. Not thread-safe. */
#ifndef UF_BASE_ADDRMAP_H
#define UF_BASE_ADDRMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct uf_addrmap_entry {
    uint64_t addr;
    uint32_t value;
    bool is_taken;
} uf_addrmap_entry;

typedef struct uf_addrmap {
    uf_addrmap_entry *entries;
    size_t capacity; /* a power of two, or 0 */
    size_t count;
} uf_addrmap;

void uf__addrmap_fini(uf_addrmap *map);

/* Returns the place of addr's value, or NULL. Valid until the next insertion or removal. */
uint32_t *uf__addrmap_find(const uf_addrmap *map, uint64_t addr);

/* Sets addr's value. False if the host has no memory left; the map is unchanged then. */
bool uf__addrmap_set(uf_addrmap *map, uint64_t addr, uint32_t value);

/* Makes room for `more` new addresses: setting them cannot fail then. False if the host has no
 * memory left. */
bool uf__addrmap_reserve(uf_addrmap *map, size_t more);

/* Removes addr; false if it was not there. */
bool uf__addrmap_remove(uf_addrmap *map, uint64_t addr);

/* Removes addr and gives its value; false, and *value is left alone, if it was not there. */
bool uf__addrmap_take(uf_addrmap *map, uint64_t addr, uint32_t *value);

#endif
