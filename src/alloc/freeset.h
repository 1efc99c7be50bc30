/* SPDX-License-Identifier: MIT
 *
 * The free blocks of one shelf, ordered by (size, address). Holds indices into a block table and
 * uses the blocks' left and right links; owns no block. Guarded by whoever guards the core.
 *
 * Sizes fall into bins, 32 to each power of two above 16 KiB and one to each 512 bytes below. A bin
 * is a small treap; a bitmap of two levels finds the next bin that holds anything.
 *
 *   size    512  1024 ... 15872 | 16384 16896 ... 32256 | 32768 33792 ...
 *   bin       1     2 ...    31 |    32    33 ...    63 |    64    65 ...
 *                         |             |
 *                      treap of      treap of
 *                     one size       one size, further up of sizes within 1/32
 *
 * In the programs this is for, most bins hold one or two blocks, so an operation costs a few
 * instructions; with very many blocks in one bin it is logarithmic in their number. */
#ifndef UF_ALLOC_FREESET_H
#define UF_ALLOC_FREESET_H

#include "alloc/block.h"

#define UF_FREESET_UNIT_SHIFT 9
#define UF_FREESET_BIN_COUNT 1664
#define UF_FREESET_WORD_COUNT (UF_FREESET_BIN_COUNT / 64)

typedef struct uf_freeset {
    uint64_t summary; /* bit w: words[w] is not zero */
    uint64_t words[UF_FREESET_WORD_COUNT];
    uint32_t count;
    uint32_t roots[UF_FREESET_BIN_COUNT];
} uf_freeset;

static inline uint32_t uf__freeset_bin(uint64_t size_bytes)
{
    uint64_t units = size_bytes >> UF_FREESET_UNIT_SHIFT;
    if (units < 32) {
        return (uint32_t)units;
    }
    uint32_t log2 = 63u - (uint32_t)__builtin_clzll(units);
    return 32u * (log2 - 4u) + ((uint32_t)(units >> (log2 - 5u)) - 32u);
}

static inline uint32_t uf__freeset_priority(uint32_t index)
{
    return index * 0x9E3779B1u;
}

static inline bool uf__freeset_less(const uf_block *block, uint64_t size_bytes, uint64_t addr)
{
    return block->size_bytes < size_bytes ||
           (block->size_bytes == size_bytes && block->addr < addr);
}

static inline void uf__freeset_insert(uf_freeset *set, uf_block *blocks, uint32_t index)
{
    uf_block *block = &blocks[index];
    uint64_t size_bytes = block->size_bytes, addr = block->addr;
    uint32_t bin = uf__freeset_bin(size_bytes);
    uint32_t *link = &set->roots[bin];
    uint32_t node = *link;
    set->count++;
    if (node == UF_NO_BLOCK) {
        block->left = block->right = UF_NO_BLOCK;
        *link = index;
        set->words[bin >> 6] |= UINT64_C(1) << (bin & 63);
        set->summary |= UINT64_C(1) << (bin >> 6);
        return;
    }
    uint32_t priority = uf__freeset_priority(index);
    while (node != UF_NO_BLOCK && uf__freeset_priority(node) >= priority) {
        link = uf__freeset_less(&blocks[node], size_bytes, addr) ? &blocks[node].right
                                                                 : &blocks[node].left;
        node = *link;
    }
    *link = index;
    uint32_t *lower = &block->left, *upper = &block->right;
    while (node != UF_NO_BLOCK) {
        uf_block *here = &blocks[node];
        if (uf__freeset_less(here, size_bytes, addr)) {
            *lower = node;
            lower = &here->right;
            node = here->right;
        } else {
            *upper = node;
            upper = &here->left;
            node = here->left;
        }
    }
    *lower = *upper = UF_NO_BLOCK;
}

static inline void uf__freeset_remove(uf_freeset *set, uf_block *blocks, uint32_t index)
{
    const uf_block *block = &blocks[index];
    uint32_t bin = uf__freeset_bin(block->size_bytes);
    uint32_t *link = &set->roots[bin];
    set->count--;
    while (*link != index) {
        uf_block *here = &blocks[*link];
        link = uf__freeset_less(here, block->size_bytes, block->addr) ? &here->right : &here->left;
    }
    uint32_t lower = block->left, upper = block->right;
    while (lower != UF_NO_BLOCK && upper != UF_NO_BLOCK) {
        if (uf__freeset_priority(lower) > uf__freeset_priority(upper)) {
            *link = lower;
            link = &blocks[lower].right;
            lower = *link;
        } else {
            *link = upper;
            link = &blocks[upper].left;
            upper = *link;
        }
    }
    *link = lower != UF_NO_BLOCK ? lower : upper;
    if (set->roots[bin] == UF_NO_BLOCK) {
        set->words[bin >> 6] &= ~(UINT64_C(1) << (bin & 63));
        if (set->words[bin >> 6] == 0) {
            set->summary &= ~(UINT64_C(1) << (bin >> 6));
        }
    }
}

/* Returns the first bin above `bin` that holds a block, or UF_FREESET_BIN_COUNT. */
static inline uint32_t uf__freeset_next_bin(const uf_freeset *set, uint32_t bin)
{
    bin++;
    uint32_t word = bin >> 6;
    if (word >= UF_FREESET_WORD_COUNT) {
        return UF_FREESET_BIN_COUNT;
    }
    uint64_t bits = set->words[word] & (~UINT64_C(0) << (bin & 63));
    if (bits == 0) {
        uint64_t summary = word == 63 ? 0 : set->summary & (~UINT64_C(0) << (word + 1));
        if (summary == 0) {
            return UF_FREESET_BIN_COUNT;
        }
        word = (uint32_t)__builtin_ctzll(summary);
        bits = set->words[word];
    }
    return (word << 6) + (uint32_t)__builtin_ctzll(bits);
}

static inline uint32_t uf__freeset_leftmost(const uf_block *blocks, uint32_t node)
{
    while (blocks[node].left != UF_NO_BLOCK) {
        node = blocks[node].left;
    }
    return node;
}

/* Returns the first block not less than (size_bytes, addr), or UF_NO_BLOCK. */
static inline uint32_t uf__freeset_at_least(const uf_freeset *set, const uf_block *blocks,
                                            uint64_t size_bytes, uint64_t addr)
{
    uint32_t bin = uf__freeset_bin(size_bytes);
    uint32_t node = set->roots[bin], found = UF_NO_BLOCK;
    while (node != UF_NO_BLOCK) {
        if (uf__freeset_less(&blocks[node], size_bytes, addr)) {
            node = blocks[node].right;
        } else {
            found = node;
            node = blocks[node].left;
        }
    }
    if (found != UF_NO_BLOCK) {
        return found;
    }
    bin = uf__freeset_next_bin(set, bin);
    return bin == UF_FREESET_BIN_COUNT ? UF_NO_BLOCK
                                       : uf__freeset_leftmost(blocks, set->roots[bin]);
}

/* Returns the block after `index` in the order, or UF_NO_BLOCK. */
static inline uint32_t uf__freeset_after(const uf_freeset *set, const uf_block *blocks,
                                         uint32_t index)
{
    return uf__freeset_at_least(set, blocks, blocks[index].size_bytes, blocks[index].addr + 1);
}

/* Returns the last block less than (size_bytes, addr), or UF_NO_BLOCK. */
uint32_t uf__freeset_before(const uf_freeset *set, const uf_block *blocks, uint64_t size_bytes,
                            uint64_t addr);

/* Writes the indices of all blocks in order; indices must have room for set->count. */
void uf__freeset_list(const uf_freeset *set, const uf_block *blocks, uint32_t *indices);

#endif
