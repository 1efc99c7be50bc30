/* SPDX-License-Identifier: MIT
 *
 * The address map. */
#include "base/addrmap.h"

#include <stdlib.h>
#include <string.h>

static size_t home(const uf_addrmap *map, uint64_t addr)
{
    return (size_t)((addr >> 9 ^ addr << 23) * UINT64_C(0x9E3779B97F4A7C15) >> 32) &
           (map->capacity - 1);
}

void uf__addrmap_fini(uf_addrmap *map)
{
    free(map->entries);
    memset(map, 0, sizeof *map);
}

uint32_t *uf__addrmap_find(const uf_addrmap *map, uint64_t addr)
{
    if (map->capacity == 0) {
        return NULL;
    }
    for (size_t at = home(map, addr); map->entries[at].is_taken;
         at = (at + 1) & (map->capacity - 1)) {
        if (map->entries[at].addr == addr) {
            return &map->entries[at].value;
        }
    }
    return NULL;
}

static bool grow(uf_addrmap *map)
{
    uf_addrmap grown = {.capacity = map->capacity == 0 ? 64 : map->capacity * 2};
    grown.entries = calloc(grown.capacity, sizeof *grown.entries);
    if (grown.entries == NULL) {
        return false;
    }
    for (size_t i = 0; i < map->capacity; i++) {
        if (map->entries[i].is_taken) {
            size_t at = home(&grown, map->entries[i].addr);
            while (grown.entries[at].is_taken) {
                at = (at + 1) & (grown.capacity - 1);
            }
            grown.entries[at] = map->entries[i];
        }
    }
    grown.count = map->count;
    free(map->entries);
    *map = grown;
    return true;
}

bool uf__addrmap_reserve(uf_addrmap *map, size_t more)
{
    while ((map->count + more) * 2 > map->capacity) {
        if (!grow(map)) {
            return false;
        }
    }
    return true;
}

bool uf__addrmap_set(uf_addrmap *map, uint64_t addr, uint32_t value)
{
    if (map->count * 4 >= map->capacity && !grow(map)) {
        uint32_t *found = uf__addrmap_find(map, addr);
        if (found != NULL) {
            *found = value;
        }
        return found != NULL;
    }
    size_t at = home(map, addr);
    while (map->entries[at].is_taken) {
        if (map->entries[at].addr == addr) {
            map->entries[at].value = value;
            return true;
        }
        at = (at + 1) & (map->capacity - 1);
    }
    map->entries[at] = (uf_addrmap_entry){addr, value, true};
    map->count++;
    return true;
}

/* Empties a place; later members of its run move back so that no probe stops at the hole. */
static void empty(uf_addrmap *map, size_t hole)
{
    size_t mask = map->capacity - 1;
    map->count--;
    for (size_t at = (hole + 1) & mask; map->entries[at].is_taken; at = (at + 1) & mask) {
        size_t wanted = home(map, map->entries[at].addr);
        if (((at - wanted) & mask) >= ((at - hole) & mask)) {
            map->entries[hole] = map->entries[at];
            hole = at;
        }
    }
    map->entries[hole].is_taken = false;
}

bool uf__addrmap_take(uf_addrmap *map, uint64_t addr, uint32_t *value)
{
    if (map->capacity == 0) {
        return false;
    }
    size_t at = home(map, addr);
    while (map->entries[at].is_taken) {
        if (map->entries[at].addr == addr) {
            *value = map->entries[at].value;
            empty(map, at);
            return true;
        }
        at = (at + 1) & (map->capacity - 1);
    }
    return false;
}

bool uf__addrmap_remove(uf_addrmap *map, uint64_t addr)
{
    uint32_t value;
    return uf__addrmap_take(map, addr, &value);
}
