/* SPDX-License-Identifier: MIT
 *
 * The part of the invariant checker that is about pages: each page has one place, each active block
 * has pages, no large page lies half inside a block, and the sums agree. Changes nothing. */
#include "alloc/paging_check.h"

#include <inttypes.h>

#include "base/error.h"

static uf_status broken(uf_error *error, const char *what, uint64_t index)
{
    return uf__error_set(error, UF_ERROR_INTERNAL,
                         "allocator check: %s (block, page or region %" PRIu64 ")", what, index);
}

/* Every granule of the region's table names the page that is mapped there. */
static uf_status check_table(const uf_core *core, uint32_t region_index, uint64_t *mapped_bytes,
                             uf_error *error)
{
    const uf_paging *paging = core->paging;
    const uf_region *region = &core->regions[region_index];
    for (uint32_t i = 0; i < region->page_capacity; i++) {
        uint32_t page = region->pages[i];
        uint64_t addr = region->addr + (uint64_t)i * region->page_bytes;
        if (page == UF_NO_PAGE) {
            continue;
        }
        if (page >= paging->page_count || !paging->pages[page].is_there ||
            paging->pages[page].is_loose) {
            return broken(error, "a granule names a page that is not mapped", page);
        }
        if (addr < paging->pages[page].addr ||
            addr >= paging->pages[page].addr + uf__page_bytes(core, page)) {
            return broken(error, "a granule names a page that is mapped elsewhere", page);
        }
        *mapped_bytes += region->page_bytes;
    }
    return UF_OK;
}

static uf_status check_hole(const uf_core *core, uint32_t index, uf_error *error)
{
    const uf_block *hole = &core->blocks.items[index];
    uint64_t granule = core->paging->bytes_of[UF_PAGE_SMALL];
    if (hole->requested_bytes < hole->addr ||
        hole->requested_bytes > hole->addr + hole->size_bytes) {
        return broken(error, "a hole's known pages end outside it", index);
    }
    for (uint64_t at = uf__granule_floor(core, hole->addr); at < hole->requested_bytes;
         at += granule) {
        if (uf__page_at(core, hole->region, at) == UF_NO_PAGE) {
            return broken(error, "a hole has no page where one is known", index);
        }
    }
    return UF_OK;
}

static uf_status check_active(const uf_core *core, uint32_t index, uf_error *error)
{
    const uf_block *block = &core->blocks.items[index];
    uint64_t end = block->addr + block->size_bytes;
    for (uint64_t at = uf__granule_floor(core, block->addr); at < end;
         at += core->paging->bytes_of[UF_PAGE_SMALL]) {
        uint32_t page = uf__page_at(core, block->region, at);
        if (page == UF_NO_PAGE) {
            return broken(error, "an active block has no page somewhere", index);
        }
        uint64_t page_addr = core->paging->pages[page].addr;
        if (core->paging->pages[page].size == UF_PAGE_LARGE &&
            (page_addr < block->addr || page_addr + uf__page_bytes(core, page) > end)) {
            return broken(error, "a large page lies half inside a block", index);
        }
    }
    return UF_OK;
}

static uf_status check_loose(const uf_core *core, uint64_t plain_bytes, uf_error *error)
{
    const uf_paging *paging = core->paging;
    uint64_t loose_bytes = 0, total_bytes = 0;
    for (int size = 0; size < UF_PAGE_SIZE_COUNT; size++) {
        uint32_t count = 0;
        for (uint32_t i = paging->loose[size]; i != UF_NO_PAGE && count <= paging->page_count;
             i = paging->pages[i].next) {
            count++;
            if (!paging->pages[i].is_loose || paging->pages[i].size != size) {
                return broken(error, "the list of loose pages is wrong", i);
            }
        }
        if (count != paging->loose_count[size]) {
            return broken(error, "the count of loose pages is wrong", count);
        }
        loose_bytes += count * paging->bytes_of[size];
    }
    for (uint32_t i = 1; i < paging->page_count; i++) {
        total_bytes += paging->pages[i].is_there ? uf__page_bytes(core, i) : 0;
    }
    if (loose_bytes != paging->loose_bytes || total_bytes + plain_bytes != core->total_bytes) {
        return broken(error, "the bytes of all pages are not what is held", total_bytes);
    }
    return UF_OK;
}

uf_status uf__paging_check(const uf_core *core, uint64_t plain_bytes,
                           int64_t reserved_bytes[UF_CLASS_COUNT], uf_error *error)
{
    uint64_t mapped_bytes = 0;
    uf_status status = check_loose(core, plain_bytes, error);
    for (uint32_t i = 1; i < core->region_count && status == UF_OK; i++) {
        if (core->regions[i].page_bytes != 0) {
            uint64_t before = mapped_bytes;
            status = check_table(core, i, &mapped_bytes, error);
            reserved_bytes[core->shelves[core->regions[i].shelf]->pool_class] +=
                (int64_t)(mapped_bytes - before);
        }
    }
    for (uint32_t i = 1; i < core->blocks.count && status == UF_OK; i++) {
        const uf_block *block = &core->blocks.items[i];
        if (block->life == UF_LIFE_SHADOW) {
            uf_stretch run = {block->region, block->addr, block->addr};
            if (uf__paging_next_run(core, &run, block->addr + block->size_bytes)) {
                status = broken(error, "a shadow has pages", i);
            }
        } else if (block->life != UF_LIFE_UNUSED && block->region != 0) {
            status = block->life == UF_LIFE_FREE ? check_hole(core, i, error)
                                                 : check_active(core, i, error);
        }
    }
    reserved_bytes[UF_CLASS_LARGE] += (int64_t)core->paging->loose_bytes;
    if (status == UF_OK &&
        mapped_bytes + core->paging->loose_bytes + plain_bytes != core->total_bytes) {
        return broken(error, "mapped and loose pages are not all pages", mapped_bytes);
    }
    return status;
}
