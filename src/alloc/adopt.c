/* SPDX-License-Identifier: MIT
 *
 * Adopting segments. */
#include "alloc/adopt.h"

#include "alloc/parts.h"

static void count(uf_core *core, int pool_class, const uf_block *block)
{
    uf_counters *counters = &core->counters;
    if (!block->is_mapped) {
        return;
    }
    core->total_bytes += block->size_bytes;
    uf__counter_increase(counters, UF_COUNTER_RESERVED_BYTES, pool_class, block->size_bytes);
    if (block->life == UF_LIFE_FREE) {
        if (block->region == 0 && uf__block_is_split(block)) {
            uf__counter_increase(counters, UF_COUNTER_INACTIVE_SPLIT, pool_class, 1);
            uf__counter_increase(counters, UF_COUNTER_INACTIVE_SPLIT_BYTES, pool_class,
                                 block->size_bytes);
        }
        return;
    }
    uf__counter_increase(counters, UF_COUNTER_ALLOCATION, pool_class, 1);
    uf__counter_increase(counters, UF_COUNTER_ALLOCATED_BYTES, pool_class, block->size_bytes);
    uf__counter_increase(counters, UF_COUNTER_ACTIVE, pool_class, 1);
    uf__counter_increase(counters, UF_COUNTER_ACTIVE_BYTES, pool_class, block->size_bytes);
    uf__counter_increase(counters, UF_COUNTER_REQUESTED_BYTES, pool_class, block->requested_bytes);
    if (block->size_bytes >= core->conf.max_split_size_bytes) {
        uf__counter_single_increase(&counters->oversize_allocations);
    }
}

static uf_status add_region(uf_core *core, const uf_adopt_segment *segment, uint32_t shelf,
                            uint32_t *region)
{
    const uf_adopt_block *last = &segment->blocks[segment->block_count - 1];
    uint64_t addr = segment->blocks[0].addr;
    *region = core->region_count > 1 ? core->region_count : 1;
    if (!uf__list_reserve((void **)&core->regions, &core->region_capacity, sizeof *core->regions,
                          *region + 1)) {
        return UF_ERROR_HOST_MEMORY;
    }
    core->region_count = *region + 1;
    core->regions[*region] = (uf_region){.addr = addr,
                                         .size_bytes = last->addr + last->size_bytes - addr,
                                         .page_bytes = segment->page_bytes,
                                         .shelf = shelf};
    core->shelves[shelf]->region_count++;
    return UF_OK;
}

static uf_status add_block(uf_core *core, const uf_adopt_segment *segment, uint32_t at,
                           uint32_t shelf, uint32_t region)
{
    uf_adopt_block *wanted = &segment->blocks[at];
    bool is_touching = at == 0 || wanted[-1].addr + wanted[-1].size_bytes == wanted->addr;
    if (wanted->size_bytes == 0 || !is_touching) {
        return UF_ERROR_BAD_INPUT;
    }
    if (!uf__block_reserve(&core->blocks, 1)) {
        return UF_ERROR_HOST_MEMORY;
    }
    uint32_t index = uf__block_take(&core->blocks);
    uint32_t prev = at == 0 ? UF_NO_BLOCK : wanted[-1].handle;
    core->blocks.items[index] = (uf_block){.addr = wanted->addr,
                                           .size_bytes = wanted->size_bytes,
                                           .requested_bytes = wanted->requested_bytes,
                                           .prev = prev,
                                           .shelf = shelf,
                                           .region = region,
                                           .life = wanted->life,
                                           .is_mapped = wanted->is_mapped};
    if (prev != UF_NO_BLOCK) {
        core->blocks.items[prev].next = index;
    }
    wanted->handle = index;
    return UF_OK;
}

uf_status uf__core_adopt(uf_core *core, uf_adopt_segment *segment)
{
    uint32_t shelf, region = 0;
    if (segment->block_count == 0) {
        return UF_ERROR_BAD_INPUT;
    }
    uf_status status =
        uf__shelf_get(core, segment->pool, segment->pool_class, segment->stream, &shelf);
    if (status != UF_OK) {
        return status;
    }
    if (segment->is_expandable) {
        status = add_region(core, segment, shelf, &region);
    }
    for (uint32_t i = 0; i < segment->block_count && status == UF_OK; i++) {
        status = add_block(core, segment, i, shelf, region);
    }
    uf_index_list *unmapped = &core->shelves[shelf]->unmapped;
    for (uint32_t i = 0; i < segment->block_count && status == UF_OK; i++) {
        uint32_t index = segment->blocks[i].handle;
        const uf_block *block = &core->blocks.items[index];
        count(core, segment->pool_class, block);
        if (block->is_mapped && block->life == UF_LIFE_FREE) {
            uf__core_shelve(core, index);
        } else if (!block->is_mapped) {
            uint32_t position = 0;
            while (position < unmapped->count &&
                   core->blocks.items[unmapped->items[position]].addr < block->addr) {
                position++;
            }
            status = uf__index_insert(unmapped, position, index) ? UF_OK : UF_ERROR_HOST_MEMORY;
        }
    }
    if (status == UF_OK && !segment->is_expandable) {
        const uf_adopt_block *last = &segment->blocks[segment->block_count - 1];
        uf__counter_increase(&core->counters, UF_COUNTER_SEGMENT, segment->pool_class, 1);
        if (last->addr + last->size_bytes - segment->blocks[0].addr >=
            core->conf.max_split_size_bytes) {
            uf__counter_single_increase(&core->counters.oversize_segments);
        }
    }
    if (segment->pool != UF_DEFAULT_POOL) {
        core->pools[segment->pool].segment_count++;
    }
    return status;
}
