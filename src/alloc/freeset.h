/* SPDX-License-Identifier: MIT
 *
 * The free blocks of one shelf, ordered by (size, address). Holds indices into a block table and
 * uses the blocks' left and right links; owns no block. Guarded by whoever guards the core.
 *
 * Sizes fall into bins, 128 to each power of two above 64 KiB and one to each 512 bytes below. A
 * bin is a small treap; a bitmap of two levels finds the next bin that holds anything.
 *
 *   size    512  1024 ... 130560 | 131072 132096 ... 261120 | 262144 264192 ...
 *   bin       1     2 ...    255 |    256    257 ...    383 |    384    385 ...
 *                         |             |
 *                      treap of      treap of
 *                     one size       sizes within 1/128
 *
 * In the programs this is for, most bins hold one or two blocks, so an operation costs a few
 * instructions; with very many blocks in one bin it is logarithmic in their number. Every block
 * that is looked at is likely a cache miss: that is why the bins are narrow. */
#ifndef UF_ALLOC_FREESET_H
#define UF_ALLOC_FREESET_H

#include <stddef.h>

#include "alloc/block.h"

#define UF_FREESET_UNIT_SHIFT 9
#define UF_FREESET_OCTAVE_SHIFT 7
#define UF_FREESET_BIN_COUNT 4096      /* the last is for all from 255 * 2^39 bytes on */
#define UF_FREESET_EXACT_BIN_COUNT 256 /* bins of one size, if all are multiples of the unit */
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
    uint64_t at_least_one_octave = units | UINT64_C(1) << UF_FREESET_OCTAVE_SHIFT;
    uint32_t shift = 63u - UF_FREESET_OCTAVE_SHIFT - (uint32_t)__builtin_clzll(at_least_one_octave);
    uint32_t bin = (shift << UF_FREESET_OCTAVE_SHIFT) + (uint32_t)(units >> shift);
    return bin < UF_FREESET_BIN_COUNT ? bin : UF_FREESET_BIN_COUNT - 1;
}

static inline uint32_t uf__freeset_priority(uint32_t index)
{
    return index * 0x9E3779B1u;
}

/* As a number, for it is used as an index: a branch on it would be taken or not at random. */
static inline uint32_t uf__freeset_less(const uf_block *block, uint64_t size_bytes, uint64_t addr)
{
    uint32_t is_smaller = block->size_bytes < size_bytes, is_same = block->size_bytes == size_bytes;
    return is_smaller | (is_same & (uint32_t)(block->addr < addr));
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
        block->child[0] = block->child[1] = UF_NO_BLOCK;
        *link = index;
        set->words[bin >> 6] |= UINT64_C(1) << (bin & 63);
        set->summary |= UINT64_C(1) << (bin >> 6);
        return;
    }
    uint32_t priority = uf__freeset_priority(index);
    while (node != UF_NO_BLOCK && uf__freeset_priority(node) >= priority) {
        link = &blocks[node].child[uf__freeset_less(&blocks[node], size_bytes, addr)];
        node = *link;
    }
    *link = index;
    /* What was below is dealt out: what is less to one side, the rest to the other. */
    uint32_t *ends[2] = {&block->child[0], &block->child[1]};
    while (node != UF_NO_BLOCK) {
        uint32_t is_less = uf__freeset_less(&blocks[node], size_bytes, addr);
        *ends[1 - is_less] = node;
        ends[1 - is_less] = &blocks[node].child[is_less];
        node = blocks[node].child[is_less];
    }
    *ends[0] = *ends[1] = UF_NO_BLOCK;
}

/* Where a block stands in a set: its bin, and the link that leads to it. */
typedef struct uf_freeset_spot {
    uint32_t bin;
    uint32_t *link;
} uf_freeset_spot;

/* Removes the block at a spot that uf__freeset_find gave; nothing may have changed since. */
static inline void uf__freeset_remove_at(uf_freeset *set, uf_block *blocks, uf_freeset_spot spot)
{
    uint32_t bin = spot.bin, *link = spot.link;
    uint32_t lower = blocks[*link].child[0], upper = blocks[*link].child[1];
    set->count--;
    while (lower != UF_NO_BLOCK && upper != UF_NO_BLOCK) {
        if (uf__freeset_priority(lower) > uf__freeset_priority(upper)) {
            *link = lower;
            link = &blocks[lower].child[1];
            lower = *link;
        } else {
            *link = upper;
            link = &blocks[upper].child[0];
            upper = *link;
        }
    }
    *link = lower | upper; /* one of them is none */
    /* Without branches: nobody could predict them. */
    uint64_t is_empty = set->roots[bin] == UF_NO_BLOCK;
    uint64_t word = set->words[bin >> 6] & ~(is_empty << (bin & 63));
    set->words[bin >> 6] = word;
    set->summary &= ~((uint64_t)(word == 0) << (bin >> 6));
}

static inline void uf__freeset_remove(uf_freeset *set, uf_block *blocks, uint32_t index)
{
    const uf_block *block = &blocks[index];
    uint32_t bin = uf__freeset_bin(block->size_bytes);
    uint32_t *link = &set->roots[bin];
    while (*link != index) {
        uf_block *here = &blocks[*link];
        link = &here->child[uf__freeset_less(here, block->size_bytes, block->addr)];
    }
    uf__freeset_remove_at(set, blocks, (uf_freeset_spot){bin, link});
}

/* Returns the first bin from `bin` on that holds a block, or UF_FREESET_BIN_COUNT. Both levels are
 * looked at in any case, since no branch could be predicted. */
static inline uint32_t uf__freeset_next_bin(const uf_freeset *set, uint32_t bin)
{
    uint32_t word = bin >> 6;
    uint64_t bits = set->words[word] & (~UINT64_C(0) << (bin & 63));
    uint64_t summary = set->summary & (~UINT64_C(0) << word << 1);
    if (__builtin_expect((bits | summary) == 0, 0)) {
        return UF_FREESET_BIN_COUNT;
    }
    uint32_t later_word = (uint32_t)__builtin_ctzll(summary | UINT64_C(1) << 63);
    uint64_t later_bits = set->words[later_word];
    word = bits != 0 ? word : later_word;
    bits = bits != 0 ? bits : later_bits;
    return (word << 6) + (uint32_t)__builtin_ctzll(bits);
}

static inline uint32_t uf__freeset_leftmost(const uf_block *blocks, uint32_t node)
{
    while (blocks[node].child[0] != UF_NO_BLOCK) {
        node = blocks[node].child[0];
    }
    return node;
}

/* Returns the first bin above `bin` that holds a block, or UF_FREESET_BIN_COUNT. */
static inline uint32_t uf__freeset_bin_after(const uf_freeset *set, uint32_t bin)
{
    return bin + 1 == UF_FREESET_BIN_COUNT ? UF_FREESET_BIN_COUNT
                                           : uf__freeset_next_bin(set, bin + 1);
}

/* Returns the first block not less than (size_bytes, addr), or UF_NO_BLOCK. */
static inline uint32_t uf__freeset_at_least(const uf_freeset *set, const uf_block *blocks,
                                            uint64_t size_bytes, uint64_t addr)
{
    uint32_t bin = uf__freeset_bin(size_bytes);
    uint32_t node = set->roots[bin], found = UF_NO_BLOCK;
    while (node != UF_NO_BLOCK) {
        uint32_t is_less = uf__freeset_less(&blocks[node], size_bytes, addr);
        found = is_less ? found : node;
        node = blocks[node].child[is_less];
    }
    if (found != UF_NO_BLOCK) {
        return found;
    }
    bin = uf__freeset_bin_after(set, bin);
    return bin == UF_FREESET_BIN_COUNT ? UF_NO_BLOCK
                                       : uf__freeset_leftmost(blocks, set->roots[bin]);
}

/* Returns the block after `index` in the order, or UF_NO_BLOCK. */
static inline uint32_t uf__freeset_after(const uf_freeset *set, const uf_block *blocks,
                                         uint32_t index)
{
    return uf__freeset_at_least(set, blocks, blocks[index].size_bytes, blocks[index].addr + 1);
}

/* Returns the first block of at least size_bytes and where it stands, or UF_NO_BLOCK. */
static inline uint32_t uf__freeset_find(uf_freeset *set, uf_block *blocks, uint64_t size_bytes,
                                        uf_freeset_spot *spot)
{
    uint32_t own_bin = uf__freeset_bin(size_bytes);
    uint32_t bin = uf__freeset_next_bin(set, own_bin), *link, *found = NULL;
    if (bin == own_bin && bin >= UF_FREESET_EXACT_BIN_COUNT) {
        for (link = &set->roots[bin]; *link != UF_NO_BLOCK;) {
            uf_block *here = &blocks[*link];
            uint32_t is_less = here->size_bytes < size_bytes;
            found = is_less ? found : link;
            link = &here->child[is_less];
        }
        bin = found != NULL ? bin : uf__freeset_bin_after(set, bin);
    }
    if (__builtin_expect(bin == UF_FREESET_BIN_COUNT, 0)) {
        return UF_NO_BLOCK;
    }
    if (found == NULL) { /* the first of a bin in which all are large enough */
        found = &set->roots[bin];
        while (blocks[*found].child[0] != UF_NO_BLOCK) {
            found = &blocks[*found].child[0];
        }
    }
    *spot = (uf_freeset_spot){bin, found};
    return *found;
}

/* Returns the last block less than (size_bytes, addr), or UF_NO_BLOCK. */
uint32_t uf__freeset_before(const uf_freeset *set, const uf_block *blocks, uint64_t size_bytes,
                            uint64_t addr);

/* Writes the indices of all blocks in order; indices must have room for set->count. */
void uf__freeset_list(const uf_freeset *set, const uf_block *blocks, uint32_t *indices);

#endif
