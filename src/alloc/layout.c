/* SPDX-License-Identifier: MIT
 *
 * Listing segments and blocks. */
#include "alloc/layout.h"

#include <stdlib.h>
#include <string.h>

#include "alloc/paging.h"

/* Adds a block, or the part of a hole that has pages. */
static void add_piece(uf_layout_segment *segment, const uf_block *block, uint64_t size_bytes)
{
    segment->total_bytes += size_bytes;
    segment->block_count++;
    if (block->life == UF_LIFE_ALLOCATED) {
        segment->allocated_bytes += block->size_bytes;
    }
    if (block->life != UF_LIFE_FREE) {
        segment->active_bytes += block->size_bytes;
        segment->requested_bytes += block->requested_bytes;
    }
}

static uf_status open_segment(uf_layout *layout, const uf_core *core, uint32_t index, uint64_t addr)
{
    if (!uf__list_reserve((void **)&layout->segments, &layout->segment_capacity,
                          sizeof *layout->segments, layout->segment_count + 1)) {
        return UF_ERROR_HOST_MEMORY;
    }
    const uf_block *block = &core->blocks.items[index];
    const uf_shelf *shelf = core->shelves[block->shelf];
    const uf_pool *pool = &core->pools[shelf->pool];
    layout->segments[layout->segment_count++] =
        (uf_layout_segment){.addr = addr,
                            .stream = uf__shelf_stream(core, shelf),
                            .pool_id = {pool->id[0], pool->id[1]},
                            .pool = shelf->pool,
                            .first_block = index,
                            .is_large = shelf->pool_class == UF_CLASS_LARGE,
                            .is_expandable = block->region != 0};
    return UF_OK;
}

/* Lists the mapped runs of one segment, from its first block. */
static uf_status add_runs(uf_layout *layout, const uf_core *core, uint32_t head)
{
    bool is_open = false;
    uf_status status = UF_OK;
    for (uint32_t index = head; index != UF_NO_BLOCK && status == UF_OK;
         index = core->blocks.items[index].next) {
        const uf_block *block = &core->blocks.items[index];
        if (!block->is_mapped) {
            is_open = false;
            continue;
        }
        if (!is_open) {
            status = open_segment(layout, core, index, block->addr);
            is_open = true;
        }
        if (status == UF_OK) {
            add_piece(&layout->segments[layout->segment_count - 1], block, block->size_bytes);
        }
    }
    return status;
}

/* The same where holes have pages in places (paging.h). */
static uf_status add_paged_runs(uf_layout *layout, const uf_core *core, uint32_t head)
{
    uint64_t open_end = 0; /* where the segment under way ends, 0 = none is */
    uf_status status = UF_OK;
    for (uint32_t index = head; index != UF_NO_BLOCK && status == UF_OK;
         index = core->blocks.items[index].next) {
        const uf_block *block = &core->blocks.items[index];
        uf_stretch run = {block->region, block->addr, block->addr};
        uint64_t end = block->addr + block->size_bytes;
        while (status == UF_OK && uf__paging_next_run(core, &run, end)) {
            if (run.from != open_end) {
                status = open_segment(layout, core, index, run.from);
            }
            if (status == UF_OK) {
                add_piece(&layout->segments[layout->segment_count - 1], block, run.to - run.from);
            }
            open_end = run.to;
        }
    }
    return status;
}

static int compare_segments(const void *left, const void *right)
{
    const uf_layout_segment *a = left, *b = right;
    return (a->addr > b->addr) - (a->addr < b->addr);
}

uf_status uf__layout_init(uf_layout *layout, const uf_core *core)
{
    memset(layout, 0, sizeof *layout);
    for (uint32_t i = 1; i < core->blocks.count; i++) {
        const uf_block *block = &core->blocks.items[i];
        if (block->life == UF_LIFE_UNUSED || block->prev != UF_NO_BLOCK) {
            continue;
        }
        uf_status status = core->paging == NULL || core->blocks.items[i].region == 0
                               ? add_runs(layout, core, i)
                               : add_paged_runs(layout, core, i);
        if (status != UF_OK) {
            uf__layout_fini(layout);
            return status;
        }
    }
    if (layout->segment_count > 1) {
        qsort(layout->segments, layout->segment_count, sizeof *layout->segments, compare_segments);
    }
    return UF_OK;
}

void uf__layout_fini(uf_layout *layout)
{
    free(layout->segments);
    memset(layout, 0, sizeof *layout);
}
