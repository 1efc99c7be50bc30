/* SPDX-License-Identifier: MIT
 *
 * Pools, their shelves, streams, and redirections of allocations to private pools (spec 7). */
#include "alloc/give_back.h"
#include "alloc/paging.h"
#include "alloc/parts.h"

#include <stdlib.h>
#include <string.h>

bool uf__list_reserve(void **items, uint32_t *capacity, size_t item_bytes, uint32_t needed)
{
    if (needed <= *capacity) {
        return true;
    }
    uint32_t grown = *capacity < 4 ? 8 : *capacity * 2;
    grown = grown < needed ? needed : grown;
    void *moved = realloc(*items, (size_t)grown * item_bytes);
    if (moved == NULL) {
        return false;
    }
    memset((char *)moved + (size_t)*capacity * item_bytes, 0,
           (size_t)(grown - *capacity) * item_bytes);
    *items = moved;
    *capacity = grown;
    return true;
}

bool uf__index_insert(uf_index_list *list, uint32_t position, uint32_t value)
{
    if (!uf__list_reserve((void **)&list->items, &list->capacity, sizeof *list->items,
                          list->count + 1)) {
        return false;
    }
    memmove(&list->items[position + 1], &list->items[position],
            (list->count - position) * sizeof *list->items);
    list->items[position] = value;
    list->count++;
    return true;
}

uf_status uf__core_stream(uf_core *core, uint64_t handle, uint32_t *stream)
{
    for (uint32_t i = 0; i < core->stream_count; i++) {
        if (core->streams[i] == handle) {
            *stream = i;
            return UF_OK;
        }
    }
    uint32_t capacity = core->stream_capacity, count = core->stream_count;
    uf_index_list sorted = {core->streams_sorted, count, core->stream_capacity};
    if (!uf__list_reserve((void **)&core->streams, &capacity, sizeof *core->streams, count + 1)) {
        return UF_ERROR_HOST_MEMORY;
    }
    uint32_t position = 0;
    while (position < count && core->streams[sorted.items[position]] < handle) {
        position++;
    }
    core->streams[count] = handle;
    bool is_inserted = uf__index_insert(&sorted, position, count);
    core->streams_sorted = sorted.items;
    core->stream_capacity = capacity < sorted.capacity ? capacity : sorted.capacity;
    if (!is_inserted) {
        return UF_ERROR_HOST_MEMORY;
    }
    core->stream_count++;
    *stream = count;
    return UF_OK;
}

uf_status uf__shelf_get(uf_core *core, uint32_t pool, int pool_class, uint32_t stream,
                        uint32_t *shelf_index)
{
    uf_pool_class *of = &core->pools[pool].classes[pool_class];
    if (!uf__list_reserve((void **)&of->shelf_of_stream, &of->stream_capacity,
                          sizeof *of->shelf_of_stream, stream + 1)) {
        return UF_ERROR_HOST_MEMORY;
    }
    if (of->shelf_of_stream[stream] != 0) {
        *shelf_index = of->shelf_of_stream[stream] - 1;
        return UF_OK;
    }
    if (core->paging != NULL && !uf__paging_stream(core, stream)) {
        return UF_ERROR_HOST_MEMORY;
    }
    uint32_t index = 1;
    while (index < core->shelf_count && core->shelves[index] != NULL) {
        index++;
    }
    uf_shelf *shelf = calloc(1, sizeof *shelf);
    if (shelf == NULL || !uf__list_reserve((void **)&core->shelves, &core->shelf_capacity,
                                           sizeof(uf_shelf *), index + 1)) {
        free(shelf);
        return UF_ERROR_HOST_MEMORY;
    }
    shelf->pool = pool;
    shelf->pool_class = pool_class;
    shelf->stream = stream;
    core->shelves[index] = shelf;
    core->shelf_count = core->shelf_count > index + 1 ? core->shelf_count : index + 1;
    of->shelf_of_stream[stream] = index + 1;
    *shelf_index = index;
    return UF_OK;
}

uf_status uf__core_pool_create(uf_core *core, uint64_t id_high, uint64_t id_low, uint32_t *pool)
{
    uint32_t index = core->pool_count == 0 ? 0 : 1;
    while (index < core->pool_count && core->pools[index].is_known) {
        index++;
    }
    if (!uf__list_reserve((void **)&core->pools, &core->pool_capacity, sizeof *core->pools,
                          index + 1)) {
        return UF_ERROR_HOST_MEMORY;
    }
    core->pool_count = core->pool_count > index + 1 ? core->pool_count : index + 1;
    core->pools[index] = (uf_pool){.id = {id_high, id_low}, .use_count = 1, .is_known = true};
    *pool = index;
    return UF_OK;
}

bool uf__core_pool_find(const uf_core *core, uint64_t id_high, uint64_t id_low, uint32_t *pool)
{
    for (uint32_t i = 0; i < core->pool_count; i++) {
        const uf_pool *candidate = &core->pools[i];
        if (candidate->is_known && candidate->id[0] == id_high && candidate->id[1] == id_low) {
            *pool = i;
            return true;
        }
    }
    return false;
}

void uf__core_pool_retain(uf_core *core, uint32_t pool)
{
    core->pools[pool].use_count++;
}

void uf__core_pool_release(uf_core *core, uint32_t pool)
{
    core->pools[pool].use_count--;
}

static void shelf_destroy(uf_shelf *shelf)
{
    free(shelf->unmapped.items);
    free(shelf);
}

static bool has_blocks(const uf_core *core, uint32_t shelf)
{
    for (uint32_t i = 1; i < core->blocks.count; i++) {
        if (core->blocks.items[i].life != UF_LIFE_UNUSED && core->blocks.items[i].shelf == shelf) {
            return true;
        }
    }
    return false;
}

/* PyTorch forgets a pool by a count that can be off (spec 7.7); memory that is still there keeps
 * ours known. */
void uf__pool_forget(uf_core *core, uint32_t index)
{
    uf_pool *pool = &core->pools[index];
    for (int c = 0; c < UF_CLASS_COUNT; c++) {
        for (uint32_t i = 0; i < pool->classes[c].stream_capacity; i++) {
            uint32_t shelf = pool->classes[c].shelf_of_stream[i];
            if (shelf != 0 && has_blocks(core, shelf - 1)) {
                return;
            }
        }
    }
    for (int c = 0; c < UF_CLASS_COUNT; c++) {
        for (uint32_t i = 0; i < pool->classes[c].stream_capacity; i++) {
            uint32_t shelf = pool->classes[c].shelf_of_stream[i];
            if (shelf != 0) {
                shelf_destroy(core->shelves[shelf - 1]);
                core->shelves[shelf - 1] = NULL;
            }
        }
        free(pool->classes[c].shelf_of_stream);
    }
    *pool = (uf_pool){0};
}

uf_status uf__core_redirect_begin(uf_core *core, uint32_t pool)
{
    for (uint32_t i = 0; i < core->redirection_count; i++) {
        if (core->redirections[i] == pool) {
            return UF_ERROR_BUSY;
        }
    }
    if (!uf__list_reserve((void **)&core->redirections, &core->redirection_capacity,
                          sizeof *core->redirections, core->redirection_count + 1)) {
        return UF_ERROR_HOST_MEMORY;
    }
    core->redirections[core->redirection_count++] = pool;
    uf__core_pool_retain(core, pool);
    return UF_OK;
}

uf_status uf__core_redirect_end(uf_core *core, uint32_t pool)
{
    for (uint32_t i = 0; i < core->redirection_count; i++) {
        if (core->redirections[i] == pool) {
            core->redirection_count--;
            memmove(&core->redirections[i], &core->redirections[i + 1],
                    (core->redirection_count - i) * sizeof *core->redirections);
            return UF_OK;
        }
    }
    return UF_ERROR_NOT_FOUND;
}

uint32_t uf__core_redirect_pool(const uf_core *core)
{
    return core->redirection_count == 0 ? UF_DEFAULT_POOL
                                        : core->redirections[core->redirection_count - 1];
}

/* Gives every segment and page back; there is nobody left to tell of failures. */
static void give_all_back(uf_core *core, bool is_paged)
{
    const uf_device *device = core->device;
    for (uint32_t i = 1; i < core->blocks.count; i++) {
        const uf_block *block = &core->blocks.items[i];
        if (block->life == UF_LIFE_UNUSED || block->prev != UF_NO_BLOCK) {
            continue;
        }
        uint64_t run_addr = block->addr, run_bytes = 0;
        const uf_region *region = block->region != 0 ? &core->regions[block->region] : NULL;
        bool is_stuck = region != NULL && region->is_stuck;
        for (uint32_t at = i;; at = core->blocks.items[at].next) {
            const uf_block *piece = &core->blocks.items[at];
            bool is_end = at == UF_NO_BLOCK || !piece->is_mapped;
            if (is_end && run_bytes != 0 && region != NULL && is_paged) {
                /* paging has given its pages back */
            } else if (is_end && run_bytes != 0 && region != NULL) {
                is_stuck |= !uf__pages_give_back(device, run_addr, run_bytes, region->page_bytes);
            } else if (is_end && run_bytes != 0) {
                (void)uf__segment_give_back(device, run_addr, run_bytes);
            }
            if (at == UF_NO_BLOCK) {
                break;
            }
            run_addr = is_end || run_bytes == 0 ? piece->addr : run_addr;
            run_bytes = is_end ? 0 : run_bytes + piece->size_bytes;
        }
        if (region != NULL && !is_stuck) {
            (void)uf__range_give_back(device, region->addr - region->before_bytes,
                                      uf__region_reserved_bytes(region));
        }
    }
}

void uf__core_fini(uf_core *core)
{
    if (core->blocks.items != NULL && core->device != NULL) {
        bool is_paged = core->paging != NULL;
        uf__paging_fini(core);
        give_all_back(core, is_paged);
    }
    for (uint32_t i = 0; i < core->pool_count; i++) {
        free(core->pools[i].classes[0].shelf_of_stream);
        free(core->pools[i].classes[1].shelf_of_stream);
    }
    for (uint32_t i = 1; i < core->shelf_count; i++) {
        if (core->shelves[i] != NULL) {
            shelf_destroy(core->shelves[i]);
        }
    }
    for (uint32_t i = 0; i < core->uses_count; i++) {
        free(core->uses[i].items);
    }
    free(core->shelves);
    free(core->pools);
    free(core->streams);
    free(core->streams_sorted);
    for (uint32_t i = 1; i < core->region_count; i++) {
        free(core->regions[i].pages);
    }
    free(core->regions);
    free(core->uses);
    free(core->redirections);
    uf__block_table_fini(&core->blocks);
    memset(core, 0, sizeof *core);
}
