/* SPDX-License-Identifier: MIT
 *
 * Listing segments and blocks. */
#include "alloc/layout.h"

#include <stdlib.h>
#include <string.h>

#include "alloc/parts.h"

static void add_block(uf_layout_segment *segment, const uf_block *block)
{
    segment->total_bytes += block->size_bytes;
    segment->block_count++;
    if (block->life == UF_LIFE_ALLOCATED) {
        segment->allocated_bytes += block->size_bytes;
    }
    if (block->life != UF_LIFE_FREE) {
        segment->active_bytes += block->size_bytes;
        segment->requested_bytes += block->requested_bytes;
    }
}

/* Lists the mapped runs of one segment, from its first block. */
static uf_status add_runs(uf_layout *layout, const uf_core *core, uint32_t head)
{
    bool is_open = false;
    for (uint32_t index = head; index != UF_NO_BLOCK; index = core->blocks.items[index].next) {
        const uf_block *block = &core->blocks.items[index];
        if (!block->is_mapped) {
            is_open = false;
            continue;
        }
        if (!is_open) {
            if (!uf__list_reserve((void **)&layout->segments, &layout->segment_capacity,
                                  sizeof *layout->segments, layout->segment_count + 1)) {
                return UF_ERROR_HOST_MEMORY;
            }
            const uf_shelf *shelf = core->shelves[block->shelf];
            const uf_pool *pool = &core->pools[shelf->pool];
            layout->segments[layout->segment_count++] =
                (uf_layout_segment){.addr = block->addr,
                                    .stream = uf__shelf_stream(core, shelf),
                                    .pool_id = {pool->id[0], pool->id[1]},
                                    .pool = shelf->pool,
                                    .first_block = index,
                                    .is_large = shelf->pool_class == UF_CLASS_LARGE,
                                    .is_expandable = block->region != 0};
            is_open = true;
        }
        add_block(&layout->segments[layout->segment_count - 1], block);
    }
    return UF_OK;
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
        uf_status status = add_runs(layout, core, i);
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
