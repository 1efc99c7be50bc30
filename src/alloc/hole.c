/* SPDX-License-Identifier: MIT
 *
 * Holes: cutting, merging, and what is known of their pages. */
#include "alloc/hole.h"

void uf__hole_renew(const uf_core *core, uf_block *hole)
{
    uint64_t granule = core->paging->bytes_of[UF_PAGE_SMALL], end = uf__block_end(hole);
    uint64_t at = uf__granule_floor(core, hole->addr);
    uint32_t page = uf__page_at(core, hole->region, at);
    while (at < end && page != UF_NO_PAGE && !core->paging->pages[page].is_closed) {
        at += granule;
        page = uf__page_at(core, hole->region, at);
    }
    hole->requested_bytes = at < hole->addr ? hole->addr : at > end ? end : at;
}

uf_stretch uf__hole_granules(const uf_core *core, const uf_block *hole)
{
    return (uf_stretch){.region = hole->region,
                        .from = uf__granule_ceil(core, hole->addr),
                        .to = uf__granule_floor(core, uf__block_end(hole))};
}

/* Cuts a block that is in no set at addr; returns the rear one. */
static uint32_t cut(uf_core *core, uint32_t index, uint64_t addr)
{
    uint32_t rear_index = uf__block_take(&core->blocks);
    uf_block *blocks = core->blocks.items, *front = &blocks[index], *rear = &blocks[rear_index];
    *rear = *front;
    rear->addr = addr;
    rear->size_bytes = uf__block_end(front) - addr;
    rear->prev = index;
    front->size_bytes = addr - front->addr;
    front->next = rear_index;
    if (rear->next != UF_NO_BLOCK) {
        blocks[rear->next].prev = rear_index;
    }
    return rear_index;
}

static void put_alone(uf_core *core, uint32_t index)
{
    core->blocks.items[index].life = UF_LIFE_FREE;
    uf__hole_renew(core, &core->blocks.items[index]);
    uf__core_shelve(core, index);
}

uint32_t uf__hole_cut_out(uf_core *core, uint32_t index, uint64_t addr, uint64_t end)
{
    uf_shelf *shelf = core->shelves[core->blocks.items[index].shelf];
    uf__freeset_remove(&shelf->cached, core->blocks.items, index);
    if (core->blocks.items[index].addr < addr) {
        uint32_t rear = cut(core, index, addr);
        put_alone(core, index);
        index = rear;
    }
    if (uf__block_end(&core->blocks.items[index]) > end) {
        put_alone(core, cut(core, index, end));
    }
    return index;
}

void uf__hole_put(uf_core *core, uint32_t index)
{
    uf_block *blocks = core->blocks.items, *block = &blocks[index];
    const uint32_t beside[2] = {block->prev, block->next};
    for (int i = 0; i < 2; i++) {
        const uf_block *other = &blocks[beside[i]];
        if (beside[i] != UF_NO_BLOCK && other->life == UF_LIFE_FREE &&
            other->age_base > block->age_base) {
            block->age_base = other->age_base; /* the youngest counts for all */
        }
    }
    (void)uf__core_merge(core, index);
    put_alone(core, index);
}
