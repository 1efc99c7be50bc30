/* SPDX-License-Identifier: MIT
 *
 * Copies the layout of a core. */
#include "alloc/walk.h"

#include <stdlib.h>
#include <string.h>

#include "alloc/layout.h"

static uf_block_state state_of(const uf_block *block)
{
    if (block->life == UF_LIFE_ALLOCATED) {
        return UF_BLOCK_ACTIVE_ALLOCATED;
    }
    return block->life == UF_LIFE_FREE ? UF_BLOCK_INACTIVE : UF_BLOCK_ACTIVE_PENDING_FREE;
}

static void copy_blocks(uf_walk_copy *copy, const uf_core *core, const uf_layout_segment *from)
{
    uint32_t index = from->first_block;
    for (uint32_t i = 0; i < from->block_count; i++) {
        const uf_block *block = uf__core_block(core, index);
        bool is_hole = core->paging != NULL && block->region != 0 && block->life == UF_LIFE_FREE;
        uint64_t addr = block->addr > from->addr ? block->addr : from->addr;
        uint64_t end = block->addr + block->size_bytes, last = from->addr + from->total_bytes;
        copy->blocks[copy->block_count++] =
            (uf_block_info){.addr = addr,
                            .size_bytes = (end < last ? end : last) - addr,
                            .requested_bytes = is_hole ? 0 : block->requested_bytes,
                            .state = state_of(block)};
        index = block->next;
    }
}

uf_status uf__walk_copy_init(uf_walk_copy *copy, const uf_core *core)
{
    uf_layout layout;
    uf_status status = uf__layout_init(&layout, core);
    if (status != UF_OK) {
        return status;
    }
    uint64_t block_count = 0;
    for (uint32_t i = 0; i < layout.segment_count; i++) {
        block_count += layout.segments[i].block_count;
    }
    *copy =
        (uf_walk_copy){.segments = calloc((size_t)layout.segment_count + 1, sizeof *copy->segments),
                       .blocks = calloc((size_t)block_count + 1, sizeof *copy->blocks)};
    if (copy->segments == NULL || copy->blocks == NULL) {
        uf__walk_copy_fini(copy);
        uf__layout_fini(&layout);
        return UF_ERROR_HOST_MEMORY;
    }
    for (uint32_t i = 0; i < layout.segment_count; i++) {
        const uf_layout_segment *from = &layout.segments[i];
        copy->segments[copy->segment_count++] =
            (uf_segment_info){.addr = from->addr,
                              .total_bytes = from->total_bytes,
                              .allocated_bytes = from->allocated_bytes,
                              .active_bytes = from->active_bytes,
                              .requested_bytes = from->requested_bytes,
                              .stream = from->stream,
                              .pool_id = {from->pool_id[0], from->pool_id[1]},
                              .block_count = from->block_count,
                              .is_large = from->is_large,
                              .is_expandable = from->is_expandable};
        copy_blocks(copy, core, from);
    }
    uf__layout_fini(&layout);
    return UF_OK;
}

void uf__walk_copy_fini(uf_walk_copy *copy)
{
    free(copy->segments);
    free(copy->blocks);
    memset(copy, 0, sizeof *copy);
}
