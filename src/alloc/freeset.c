/* SPDX-License-Identifier: MIT
 *
 * The free set's rarer questions. */
#include "alloc/freeset.h"

static uint32_t last_less(const uf_block *blocks, uint32_t node, uint64_t size_bytes, uint64_t addr)
{
    uint32_t found = UF_NO_BLOCK;
    while (node != UF_NO_BLOCK) {
        uint32_t is_less = uf__freeset_less(&blocks[node], size_bytes, addr);
        found = is_less ? node : found;
        node = blocks[node].child[is_less];
    }
    return found;
}

uint32_t uf__freeset_before(const uf_freeset *set, const uf_block *blocks, uint64_t size_bytes,
                            uint64_t addr)
{
    uint32_t bin = uf__freeset_bin(size_bytes);
    uint32_t found = last_less(blocks, set->roots[bin], size_bytes, addr);
    while (found == UF_NO_BLOCK && bin > 0) {
        bin--;
        found = last_less(blocks, set->roots[bin], size_bytes, addr);
    }
    return found;
}

void uf__freeset_list(const uf_freeset *set, const uf_block *blocks, uint32_t *indices)
{
    if (set->count == 0) {
        return;
    }
    uint32_t index = uf__freeset_at_least(set, blocks, 0, 0);
    for (uint32_t i = 0; index != UF_NO_BLOCK; i++) {
        indices[i] = index;
        index = uf__freeset_after(set, blocks, index);
    }
}
