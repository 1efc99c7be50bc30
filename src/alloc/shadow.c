/* SPDX-License-Identifier: MIT
 *
 * Shadows: leaving and taking away old mappings. */
#include "alloc/shadow.h"

#include <stdlib.h>

#include "alloc/epoch.h"
#include "alloc/hole.h"

uf_status uf__shadow_cast(uf_core *core, uint32_t hole, const uf_stretch *stretch)
{
    uf_paging *paging = core->paging;
    uint64_t granule = paging->bytes_of[UF_PAGE_SMALL];
    uint32_t *pages = malloc((size_t)((stretch->to - stretch->from) / granule) * sizeof *pages);
    if (pages == NULL || !uf__block_reserve(&core->blocks, 2) ||
        !uf__list_reserve((void **)&paging->shadows, &paging->shadow_capacity,
                          sizeof *paging->shadows, paging->shadow_count + 1)) {
        free(pages);
        return UF_ERROR_HOST_MEMORY;
    }
    uint64_t sequence = core->blocks.items[hole].age_base;
    uint32_t stream = core->shelves[core->blocks.items[hole].shelf]->stream, count = 0;
    for (uint64_t addr = stretch->from; addr < stretch->to; count++) {
        pages[count] = uf__page_at(core, stretch->region, addr);
        addr += uf__page_bytes(core, pages[count]);
        paging->pages[pages[count]].shadow_count++;
    }
    uf__pages_lift(core, stretch);
    uint32_t block = uf__hole_cut_out(core, hole, stretch->from, stretch->to);
    core->blocks.items[block].life = UF_LIFE_SHADOW;
    paging->shadows[paging->shadow_count++] = (uf_shadow){block, stream, sequence, count, pages};
    return UF_OK;
}

/* The mapping goes, and the addresses join the holes beside them. */
static uf_status take_away(uf_core *core, uint32_t index)
{
    uf_paging *paging = core->paging;
    uf_shadow *shadow = &paging->shadows[index];
    const uf_block *block = &core->blocks.items[shadow->block];
    uf_status status = core->device->range_unmap(core->device->context, block->addr,
                                                 block->size_bytes, shadow->page_count);
    if (status != UF_OK) {
        return uf__core_device_failed(core, status);
    }
    for (uint32_t i = 0; i < shadow->page_count; i++) {
        paging->pages[shadow->pages[i]].shadow_count--;
    }
    uf__hole_put(core, shadow->block);
    free(shadow->pages);
    *shadow = paging->shadows[--paging->shadow_count];
    return UF_OK;
}

uf_status uf__shadow_clear(uf_core *core)
{
    uf_paging *paging = core->paging;
    for (uint32_t i = paging->shadow_count; i-- > 0;) {
        const uf_shadow *shadow = &paging->shadows[i];
        if (uf__epoch_is_done(core, shadow->stream, shadow->sequence)) {
            uf_status status = take_away(core, i);
            if (status != UF_OK) {
                return status;
            }
        }
    }
    return UF_OK;
}

uf_status uf__shadow_wait(uf_core *core)
{
    uf_paging *paging = core->paging;
    for (uint32_t i = 0; i < paging->shadow_count; i++) {
        uf_status status =
            uf__epoch_wait(core, paging->shadows[i].stream, paging->shadows[i].sequence);
        if (status != UF_OK) {
            return status;
        }
    }
    return uf__shadow_clear(core);
}

static bool has_loose_page(const uf_core *core, const uf_shadow *shadow)
{
    for (uint32_t i = 0; i < shadow->page_count; i++) {
        if (core->paging->pages[shadow->pages[i]].is_loose) {
            return true;
        }
    }
    return false;
}

uf_status uf__shadow_settle_loose(uf_core *core)
{
    uf_status status = uf__shadow_clear(core);
    for (uint32_t i = 0; i < core->paging->shadow_count && status == UF_OK; i++) {
        const uf_shadow *shadow = &core->paging->shadows[i];
        if (has_loose_page(core, shadow)) {
            status = uf__epoch_wait(core, shadow->stream, shadow->sequence);
        }
    }
    return status == UF_OK ? uf__shadow_clear(core) : status;
}
