/* SPDX-License-Identifier: MIT
 *
 * Expandable segments, called regions here: reserved address space into which pages are mapped as
 * blocks need them (spec 6). Owns the regions and the lists of unmapped blocks.
 *
 *   region  |<------------------------ reserved address space ------------------------->|
 *   blocks  [ allocated ][ free, mapped ][ unmapped ][ allocated ][ unmapped ............. ]
 *   pages   |    G    |    G    |    G   |           |   G   |
 */
#include "alloc/parts.h"

#include <stdlib.h>
#include <string.h>

#include "alloc/give_back.h"
#include "alloc/rounding.h"

static uint32_t unmapped_position(const uf_core *core, const uf_index_list *list, uint64_t addr)
{
    uint32_t low = 0, high = list->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (core->blocks.items[list->items[middle]].addr < addr) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

uf_status uf__unmapped_insert(uf_core *core, uint32_t index)
{
    const uf_block *block = &core->blocks.items[index];
    uf_index_list *list = &core->shelves[block->shelf]->unmapped;
    return uf__index_insert(list, unmapped_position(core, list, block->addr), index)
               ? UF_OK
               : UF_ERROR_HOST_MEMORY;
}

void uf__unmapped_remove(uf_core *core, uint32_t index)
{
    const uf_block *block = &core->blocks.items[index];
    uf_index_list *list = &core->shelves[block->shelf]->unmapped;
    uint32_t position = unmapped_position(core, list, block->addr);
    list->count--;
    memmove(&list->items[position], &list->items[position + 1],
            (list->count - position) * sizeof *list->items);
}

/* G * ceil((total + total / 8) / G). */
static bool reservation_bytes(const uf_core *core, uint64_t page_bytes, uint64_t *bytes)
{
    uint64_t total = core->device_total_bytes;
    return uf__add_checked(total, total / 8, bytes) &&
           uf__round_up_checked(*bytes, page_bytes, bytes);
}

/* A range that begins at no multiple of the page is given back for one with room to begin later. */
static uf_status align(const uf_core *core, uint64_t page_bytes, uint64_t size_bytes,
                       uint64_t *addr, uint64_t *before_bytes)
{
    const uf_device *device = core->device;
    uint64_t reserved = 0;
    if (!uf__range_give_back(device, *addr, size_bytes)) {
        return UF_ERROR_DEVICE;
    }
    uf_status status = device->range_reserve(device->context, size_bytes + page_bytes, &reserved);
    if (status == UF_OK) {
        *before_bytes = (page_bytes - reserved % page_bytes) % page_bytes;
        *addr = reserved + *before_bytes;
    }
    return status;
}

uf_status uf__region_create(uf_core *core, uint32_t shelf_index, uint64_t page_bytes,
                            uint64_t size_bytes, uint32_t *block)
{
    uf_shelf *shelf = core->shelves[shelf_index];
    uint64_t addr;
    uint32_t region = 1;
    while (region < core->region_count && core->regions[region].page_bytes != 0) {
        region++;
    }
    if (!uf__list_reserve((void **)&core->regions, &core->region_capacity, sizeof *core->regions,
                          region + 1) ||
        !uf__list_reserve((void **)&shelf->unmapped.items, &shelf->unmapped.capacity,
                          sizeof *shelf->unmapped.items, shelf->unmapped.count + 1)) {
        return UF_ERROR_HOST_MEMORY;
    }
    uint64_t before_bytes = 0, behind_bytes = 0;
    uf_status status = core->device->range_reserve(core->device->context, size_bytes, &addr);
    if (status == UF_OK && core->paging != NULL && addr % page_bytes != 0) {
        status = align(core, page_bytes, size_bytes, &addr, &before_bytes);
        behind_bytes = page_bytes - before_bytes;
    }
    if (status != UF_OK) {
        return status == UF_ERROR_DEVICE_MEMORY ? UF_ERROR_OUT_OF_MEMORY
                                                : uf__core_device_failed(core, status);
    }
    core->region_count = core->region_count > region + 1 ? core->region_count : region + 1;
    core->regions[region] = (uf_region){.addr = addr,
                                        .size_bytes = size_bytes,
                                        .page_bytes = page_bytes,
                                        .shelf = shelf_index,
                                        .before_bytes = before_bytes,
                                        .behind_bytes = behind_bytes};
    shelf->region_count++;
    uint32_t index = uf__block_take(&core->blocks);
    core->blocks.items[index] = (uf_block){.addr = addr,
                                           .size_bytes = size_bytes,
                                           .shelf = shelf_index,
                                           .region = region,
                                           .life = UF_LIFE_FREE,
                                           .is_mapped = core->paging != NULL,
                                           .requested_bytes = core->paging != NULL ? addr : 0};
    *block = index;
    if (core->paging != NULL) {
        uf__core_shelve(core, index);
        return UF_OK;
    }
    return uf__unmapped_insert(core, index);
}

static uf_status region_create(uf_core *core, uint32_t shelf, uint32_t *block)
{
    uint64_t page_bytes = core->shelves[shelf]->pool_class == UF_CLASS_SMALL
                              ? UF_SMALL_SEGMENT_BYTES
                              : core->conf.large_segment_bytes;
    uint64_t size_bytes;
    if (core->device->range_reserve == NULL || core->device->pages_map == NULL) {
        return uf__core_device_failed(core, UF_ERROR_UNSUPPORTED);
    }
    if (!reservation_bytes(core, page_bytes, &size_bytes)) {
        return UF_ERROR_HOST_MEMORY;
    }
    return uf__region_create(core, shelf, page_bytes, size_bytes, block);
}

uf_status uf__region_destroy(uf_core *core, uint32_t index)
{
    uint32_t region_index = core->blocks.items[index].region;
    uf_region region = core->regions[region_index];
    uf_status status =
        core->device->range_release(core->device->context, region.addr - region.before_bytes,
                                    uf__region_reserved_bytes(&region));
    if (status != UF_OK) {
        return uf__core_device_failed(core, status);
    }
    if (core->paging != NULL) {
        uf__freeset_remove(&core->shelves[region.shelf]->cached, core->blocks.items, index);
    } else {
        uf__unmapped_remove(core, index);
    }
    free(region.pages);
    core->shelves[region.shelf]->region_count--;
    core->regions[region_index] = (uf_region){0};
    uf__block_give(&core->blocks, index);
    return UF_OK;
}

/* Spec 6.4: maps length_bytes, rounded up to pages, at the front of an unmapped block. The result
 * is one free mapped block, merged with free mapped neighbours, in the free set. */
static uf_status map_front(uf_core *core, uint32_t index, uint64_t length_bytes)
{
    if (!uf__block_reserve(&core->blocks, 1)) {
        return UF_ERROR_HOST_MEMORY;
    }
    uf_block *block = &core->blocks.items[index];
    uf_shelf *shelf = core->shelves[block->shelf];
    const uf_region *region = &core->regions[block->region];
    uint64_t addr = block->addr, mapped_bytes;
    if (!uf__round_up_checked(length_bytes, region->page_bytes, &mapped_bytes)) {
        return UF_ERROR_OUT_OF_MEMORY;
    }
    uf_status status =
        core->device->pages_map(core->device->context, addr, mapped_bytes, region->page_bytes);
    if (status != UF_OK) {
        return status == UF_ERROR_DEVICE_MEMORY ? UF_ERROR_OUT_OF_MEMORY
                                                : uf__core_device_failed(core, status);
    }
    uf__unmapped_remove(core, index);
    if (mapped_bytes < block->size_bytes) {
        uint32_t rest_index = uf__block_take(&core->blocks);
        block = &core->blocks.items[index];
        core->blocks.items[rest_index] = (uf_block){.addr = addr + mapped_bytes,
                                                    .size_bytes = block->size_bytes - mapped_bytes,
                                                    .prev = index,
                                                    .next = block->next,
                                                    .shelf = block->shelf,
                                                    .region = block->region,
                                                    .life = UF_LIFE_FREE};
        if (block->next != UF_NO_BLOCK) {
            core->blocks.items[block->next].prev = rest_index;
        }
        block->next = rest_index;
        block->size_bytes = mapped_bytes;
        status = uf__unmapped_insert(core, rest_index); /* cannot fail: one was just removed */
    }
    block->is_mapped = true;
    uf__core_merge(core, index);
    uf__core_shelve(core, index);
    core->total_bytes += mapped_bytes;
    uf__counter_increase(&core->counters, UF_COUNTER_RESERVED_BYTES, shelf->pool_class,
                         mapped_bytes);
    core->counters.num_device_alloc++;
    uf__emit(core, UF_ACTION_SEGMENT_MAP, addr, mapped_bytes, uf__shelf_stream(core, shelf));
    return status;
}

static bool is_usable(const uf_core *core, uint32_t index)
{
    return index != UF_NO_BLOCK && core->blocks.items[index].life == UF_LIFE_FREE;
}

/* Step 1 of spec 6.3: the first run of usable blocks around an unmapped one that is long enough. */
static uint32_t find_candidate(const uf_core *core, const uf_shelf *shelf, uint64_t rounded_bytes)
{
    const uf_block *blocks = core->blocks.items;
    for (uint32_t i = 0; i < shelf->unmapped.count; i++) {
        uint32_t start = shelf->unmapped.items[i];
        if (is_usable(core, blocks[start].prev)) {
            start = blocks[start].prev;
        }
        uint64_t sum_bytes = 0;
        for (uint32_t index = start; is_usable(core, index); index = blocks[index].next) {
            sum_bytes += blocks[index].size_bytes;
            if (sum_bytes >= rounded_bytes) {
                return start;
            }
        }
    }
    return UF_NO_BLOCK;
}

/* Steps 3 and 4 of spec 6.3: maps until the candidate is long enough; *index follows it. */
static uf_status map_until(uf_core *core, uint32_t *index, uint64_t wanted_bytes)
{
    uint64_t size_bytes = core->blocks.items[*index].size_bytes;
    uf_status status = UF_OK;
    if (!core->blocks.items[*index].is_mapped) {
        status = map_front(core, *index, size_bytes < wanted_bytes ? size_bytes : wanted_bytes);
    }
    while (status == UF_OK && core->blocks.items[*index].size_bytes < wanted_bytes) {
        uint64_t missing_bytes = wanted_bytes - core->blocks.items[*index].size_bytes;
        uint32_t next = core->blocks.items[*index].next;
        if (next == UF_NO_BLOCK) {
            return UF_ERROR_OUT_OF_MEMORY; /* larger than the whole reservation */
        }
        uint64_t next_bytes = core->blocks.items[next].size_bytes;
        status = map_front(core, next, next_bytes < missing_bytes ? next_bytes : missing_bytes);
        *index = status == UF_OK ? next : *index; /* mapping merged the candidate into it */
    }
    return status;
}

uf_status uf__region_allocate(uf_core *core, const uf_request *request, uint32_t *block)
{
    uf_shelf *shelf = core->shelves[request->shelf];
    uint32_t index = find_candidate(core, shelf, request->rounded_bytes);
    uf_status status = UF_OK;
    if (index == UF_NO_BLOCK) {
        status = region_create(core, request->shelf, &index);
        if (status != UF_OK) {
            return status;
        }
    }
    status = map_until(core, &index, request->rounded_bytes);
    if (status == UF_OK) {
        uf__freeset_remove(&shelf->cached, core->blocks.items, index);
        *block = index;
        return UF_OK;
    }
    return status; /* what was reserved or mapped so far stays, as in PyTorch */
}

/* Cuts a free piece of size_bytes off the front or keeps the front and cuts the rest off; the new
 * block is free and mapped with no requested size. */
static uint32_t cut(uf_core *core, uint32_t index, uint64_t addr, uint64_t size_bytes,
                    uint32_t prev, uint32_t next)
{
    uint32_t piece = uf__block_take(&core->blocks);
    uf_block *blocks = core->blocks.items;
    blocks[piece] = (uf_block){.addr = addr,
                               .size_bytes = size_bytes,
                               .prev = prev,
                               .next = next,
                               .shelf = blocks[index].shelf,
                               .region = blocks[index].region,
                               .life = UF_LIFE_FREE,
                               .is_mapped = true};
    if (prev != UF_NO_BLOCK) {
        blocks[prev].next = piece;
    }
    if (next != UF_NO_BLOCK) {
        blocks[next].prev = piece;
    }
    uf__core_shelve(core, piece);
    return piece;
}

uf_status uf__region_unmap_block(uf_core *core, uint32_t index)
{
    if (!uf__block_reserve(&core->blocks, 2)) {
        return UF_ERROR_HOST_MEMORY;
    }
    uf_block *block = &core->blocks.items[index];
    uf_shelf *shelf = core->shelves[block->shelf];
    const uf_region *region = &core->regions[block->region];
    uint64_t page_bytes = region->page_bytes, addr = block->addr;
    uint64_t end = addr + block->size_bytes;
    uint64_t from = region->addr + (addr - region->addr + page_bytes - 1) / page_bytes * page_bytes;
    uint64_t to = region->addr + (end - region->addr) / page_bytes * page_bytes;
    if (from >= to) {
        return UF_OK;
    }
    if (!uf__list_reserve((void **)&shelf->unmapped.items, &shelf->unmapped.capacity,
                          sizeof *shelf->unmapped.items, shelf->unmapped.count + 1)) {
        return UF_ERROR_HOST_MEMORY;
    }
    uint64_t stream = uf__shelf_stream(core, shelf);
    const uf_device *device = core->device;
    uf_status status = device->stream_wait(device->context, stream);
    if (status == UF_OK) {
        status = device->pages_unmap(device->context, from, to - from, page_bytes);
    }
    if (status != UF_OK) {
        return uf__core_device_failed(core, status);
    }
    uf__freeset_remove(&shelf->cached, core->blocks.items, index);
    block->addr = from;
    block->size_bytes = to - from;
    if (addr < from) {
        uint32_t before = cut(core, index, addr, from - addr, block->prev, index);
        core->blocks.items[index].prev = before;
    }
    if (to < end) {
        uint32_t after = cut(core, index, to, end - to, index, core->blocks.items[index].next);
        core->blocks.items[index].next = after;
    }
    block = &core->blocks.items[index];
    block->is_mapped = false;
    uf__core_merge(core, index);
    status = uf__unmapped_insert(core, index);
    core->total_bytes -= to - from;
    core->release_sequence_count++;
    core->counters.num_device_free++;
    uf__counter_decrease(&core->counters, UF_COUNTER_RESERVED_BYTES, shelf->pool_class, to - from);
    if (shelf->pool != UF_DEFAULT_POOL) {
        core->pools[shelf->pool].segment_count--;
    }
    uf__emit(core, UF_ACTION_SEGMENT_UNMAP, from, to - from, stream);
    if (status == UF_OK && !uf__block_is_split(&core->blocks.items[index])) {
        status = uf__region_destroy(core, index);
    }
    return status;
}
