/* SPDX-License-Identifier: MIT
 *
 * Filled stretches of freed memory: noting, cutting, finding. */
#include "alloc/poison.h"

#include <stdlib.h>
#include <string.h>

#include "alloc/parts.h"

void uf__poison_fini(uf_poison_map *map)
{
    free(map->items);
    *map = (uf_poison_map){0};
}

static uint64_t end_of(const uf_poison *poison)
{
    return poison->addr + poison->size_bytes;
}

uint32_t uf__poison_find(const uf_poison_map *map, uint64_t addr)
{
    uint32_t low = 0, high = map->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (end_of(&map->items[middle]) > addr) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

/* Puts an item at a position; false if there is no room. */
static bool insert(uf_poison_map *map, uint32_t at, const uf_poison *poison)
{
    if (map->count >= UF_POISON_MOST || !uf__list_reserve((void **)&map->items, &map->capacity,
                                                          sizeof *map->items, map->count + 1)) {
        return false;
    }
    memmove(&map->items[at + 1], &map->items[at], (map->count - at) * sizeof *map->items);
    map->items[at] = *poison;
    map->count++;
    return true;
}

void uf__poison_drop(uf_poison_map *map, uint64_t addr, uint64_t size_bytes)
{
    uint64_t end = addr + size_bytes;
    uint32_t first = uf__poison_find(map, addr), behind;
    if (first < map->count && map->items[first].addr < addr) {
        uf_poison rear = map->items[first];
        map->items[first].size_bytes = addr - rear.addr;
        first++;
        if (end_of(&rear) > end) {
            rear.size_bytes = end_of(&rear) - end;
            rear.addr = end;
            (void)insert(map, first, &rear);
            return;
        }
    }
    for (behind = first; behind < map->count && end_of(&map->items[behind]) <= end;) {
        behind++;
    }
    if (behind < map->count && map->items[behind].addr < end) {
        uf_poison *last = &map->items[behind];
        last->size_bytes = end_of(last) - end;
        last->addr = end;
    }
    if (behind != first) {
        memmove(&map->items[first], &map->items[behind],
                (map->count - behind) * sizeof *map->items);
        map->count -= behind - first;
    }
}

bool uf__poison_add(uf_poison_map *map, const uf_poison *poison)
{
    uf__poison_drop(map, poison->addr, poison->size_bytes);
    return insert(map, uf__poison_find(map, poison->addr), poison);
}
