/* SPDX-License-Identifier: MIT
 *
 * Blocks by address. A block is in both maps as long as its size is not 0. */
#include "report/blockmap.h"

#include <stdlib.h>
#include <string.h>

void uf__blockmap_init(uf_blockmap *map)
{
    memset(map, 0, sizeof *map);
    map->vacant = UF_BLOCKMAP_NONE;
}

void uf__blockmap_fini(uf_blockmap *map)
{
    free(map->blocks);
    uf__addrmap_fini(&map->by_addr);
    uf__addrmap_fini(&map->by_end);
    uf__blockmap_init(map);
}

static uint64_t end_of(const uf_blockmap_block *block)
{
    return block->addr + block->size_bytes;
}

static uint32_t slot(uf_blockmap *map)
{
    uint32_t index = map->vacant;
    if (index != UF_BLOCKMAP_NONE) {
        map->vacant = map->blocks[index].owner;
        return index;
    }
    if (map->count == map->capacity) {
        uint32_t capacity = map->capacity == 0 ? 256 : map->capacity * 2;
        uf_blockmap_block *grown =
            capacity == 0 ? NULL : realloc(map->blocks, capacity * sizeof *grown);
        if (grown == NULL) {
            return UF_BLOCKMAP_NONE;
        }
        map->blocks = grown;
        map->capacity = capacity;
    }
    return map->count++;
}

static void drop(uf_blockmap *map, uint32_t index)
{
    map->blocks[index] = (uf_blockmap_block){.owner = map->vacant, .span = UF_BLOCKMAP_CACHED};
    map->vacant = index;
}

static bool enter(uf_blockmap *map, uint32_t index)
{
    const uf_blockmap_block *block = &map->blocks[index];
    return uf__addrmap_set(&map->by_addr, block->addr, index) &&
           uf__addrmap_set(&map->by_end, end_of(block), index);
}

static void leave(uf_blockmap *map, uint32_t index)
{
    const uf_blockmap_block *block = &map->blocks[index];
    uf__addrmap_remove(&map->by_addr, block->addr);
    uf__addrmap_remove(&map->by_end, end_of(block));
}

uint32_t uf__blockmap_find(const uf_blockmap *map, uint64_t addr)
{
    const uint32_t *found = uf__addrmap_find(&map->by_addr, addr);
    return found != NULL ? *found : UF_BLOCKMAP_NONE;
}

/* A cached neighbour of the same owner, taken out of the maps, or UF_BLOCKMAP_NONE. */
static uint32_t take_neighbour(uf_blockmap *map, const uf_addrmap *index_of, uint64_t addr,
                               uint32_t owner)
{
    const uint32_t *found = uf__addrmap_find(index_of, addr);
    if (found == NULL || map->blocks[*found].span != UF_BLOCKMAP_CACHED ||
        map->blocks[*found].owner != owner) {
        return UF_BLOCKMAP_NONE;
    }
    uint32_t index = *found;
    leave(map, index);
    return index;
}

/* A cached block that is in no map takes its cached neighbours in, and is entered. */
static bool join(uf_blockmap *map, uint32_t index)
{
    uf_blockmap_block *block = &map->blocks[index];
    uint32_t below = take_neighbour(map, &map->by_end, block->addr, block->owner);
    uint32_t above = take_neighbour(map, &map->by_addr, end_of(block), block->owner);
    if (below != UF_BLOCKMAP_NONE) {
        block->addr = map->blocks[below].addr;
        block->size_bytes += map->blocks[below].size_bytes;
        drop(map, below);
    }
    if (above != UF_BLOCKMAP_NONE) {
        block->size_bytes += map->blocks[above].size_bytes;
        drop(map, above);
    }
    return enter(map, index);
}

bool uf__blockmap_add(uf_blockmap *map, uf_blockmap_block block)
{
    uint32_t index = slot(map);
    if (index == UF_BLOCKMAP_NONE) {
        return false;
    }
    map->blocks[index] = block;
    return block.span == UF_BLOCKMAP_CACHED ? join(map, index) : enter(map, index);
}

bool uf__blockmap_take(uf_blockmap *map, uint32_t block, uint64_t size_bytes, uint32_t span)
{
    uf_blockmap_block *whole = &map->blocks[block];
    uint64_t rest_bytes = whole->size_bytes - size_bytes;
    if (rest_bytes == 0) {
        whole->span = span;
        return true;
    }
    uf_blockmap_block front = {whole->addr, size_bytes, whole->owner, span};
    leave(map, block);
    whole->addr += size_bytes;
    whole->size_bytes = rest_bytes;
    return enter(map, block) && uf__blockmap_add(map, front);
}

bool uf__blockmap_give(uf_blockmap *map, uint32_t block)
{
    leave(map, block);
    map->blocks[block].span = UF_BLOCKMAP_CACHED;
    return join(map, block);
}

/* The cached block that holds all of [addr, addr + size_bytes). */
static uint32_t find_holder(const uf_blockmap *map, uint64_t addr, uint64_t size_bytes)
{
    const uint32_t *above = uf__addrmap_find(&map->by_end, addr + size_bytes);
    uint32_t candidates[] = {uf__blockmap_find(map, addr),
                             above != NULL ? *above : UF_BLOCKMAP_NONE};
    for (uint32_t i = 0; i < 2 + map->count; i++) {
        uint32_t index = i < 2 ? candidates[i] : i - 2;
        const uf_blockmap_block *block = &map->blocks[index];
        if (index != UF_BLOCKMAP_NONE && block->span == UF_BLOCKMAP_CACHED && block->addr <= addr &&
            end_of(block) >= addr + size_bytes && block->size_bytes > 0) {
            return index;
        }
    }
    return UF_BLOCKMAP_NONE;
}

bool uf__blockmap_remove(uf_blockmap *map, uint64_t addr, uint64_t size_bytes, bool *is_found)
{
    uint32_t index = size_bytes > 0 ? find_holder(map, addr, size_bytes) : UF_BLOCKMAP_NONE;
    *is_found = index != UF_BLOCKMAP_NONE;
    if (!*is_found) {
        return true;
    }
    uf_blockmap_block held = map->blocks[index];
    leave(map, index);
    drop(map, index);
    uf_blockmap_block front = held, back = held;
    front.size_bytes = addr - held.addr;
    back.addr = addr + size_bytes;
    back.size_bytes = end_of(&held) - back.addr;
    return (front.size_bytes == 0 || uf__blockmap_add(map, front)) &&
           (back.size_bytes == 0 || uf__blockmap_add(map, back));
}
