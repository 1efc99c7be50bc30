/* SPDX-License-Identifier: MIT
 *
 * Finding pieces that a lower max_split_size would take for whole segments. */
#include "alloc/hazard.h"

uint32_t uf__hazard_find(const uf_core *core, uint64_t max_split_bytes)
{
    uint32_t found = UF_NO_BLOCK;
    for (uint32_t i = 1; i < core->blocks.count; i++) {
        const uf_block *block = uf__core_block(core, i);
        if (block->life == UF_LIFE_UNUSED || block->region != 0 || !uf__block_is_split(block) ||
            block->size_bytes < max_split_bytes) {
            continue;
        }
        if (found == UF_NO_BLOCK || block->size_bytes > uf__core_block(core, found)->size_bytes) {
            found = i;
        }
    }
    return found;
}

uint64_t uf__hazard_segment_bytes(const uf_core *core, uint32_t index)
{
    while (uf__core_block(core, index)->prev != UF_NO_BLOCK) {
        index = uf__core_block(core, index)->prev;
    }
    uint64_t bytes = 0;
    for (; index != UF_NO_BLOCK; index = uf__core_block(core, index)->next) {
        bytes += uf__core_block(core, index)->size_bytes;
    }
    return bytes;
}
