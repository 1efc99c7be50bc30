/* SPDX-License-Identifier: MIT
 *
 * Checkpoints of a pool, as CUDA graph trees need them: PyTorch takes the state of a graph's pool
 * after its capture and brings the pool back to it before the next graph is captured or run.
 *
 *   at the checkpoint   [ a ][ free ][ b ][     free     ]
 *   later               [   c   ][ d ][ free ][ e ]      ]
 *   all given back      [              free              ]
 *   restored            [ a ][ free ][ b ][     free     ]
 *
 * Under the torch policy the way back is PyTorch's: every block of the checkpoint is handed out in
 * order, so that a segment is cut exactly as it was, and the free ones are given back; the
 * statistics then count both. Under the unfrag policy free stretches may have no pages, and only
 * what was handed out is cut out of its hole. Runs under the core's guard; asks the device for
 * nothing. */
#include "alloc/checkpoint.h"

#include <stdlib.h>

#include "alloc/hole.h"
#include "alloc/parts.h"

static bool is_of_pool(const uf_core *core, uint32_t index, uint32_t pool)
{
    const uf_block *block = &core->blocks.items[index];
    return block->life != UF_LIFE_UNUSED && block->life != UF_LIFE_SHADOW && block->is_mapped &&
           core->shelves[block->shelf]->pool == pool;
}

static int by_addr(const void *a, const void *b)
{
    uint64_t x = ((const uf_checkpoint_block *)a)->addr, y = ((const uf_checkpoint_block *)b)->addr;
    return (x > y) - (x < y);
}

uf_status uf__checkpoint_take(const uf_core *core, uint32_t pool, uf_checkpoint *checkpoint)
{
    uint32_t count = 0;
    for (uint32_t i = 1; i < core->blocks.count; i++) {
        count += is_of_pool(core, i, pool);
    }
    uf_checkpoint_block *blocks = malloc(((size_t)count + 1) * sizeof *blocks);
    if (blocks == NULL) {
        return UF_ERROR_HOST_MEMORY;
    }
    uint32_t at = 0;
    for (uint32_t i = 1; i < core->blocks.count; i++) {
        if (is_of_pool(core, i, pool)) {
            const uf_block *block = &core->blocks.items[i];
            blocks[at++] =
                (uf_checkpoint_block){block->addr, block->size_bytes, block->requested_bytes,
                                      block->life != UF_LIFE_FREE};
        }
    }
    qsort(blocks, count, sizeof *blocks, by_addr);
    *checkpoint = (uf_checkpoint){blocks, count};
    return UF_OK;
}

void uf__checkpoint_fini(uf_checkpoint *checkpoint)
{
    free(checkpoint->blocks);
    *checkpoint = (uf_checkpoint){0};
}

uint32_t uf__checkpoint_allocated_count(const uf_core *core, uint32_t pool)
{
    uint32_t count = 0;
    for (uint32_t i = 1; i < core->blocks.count; i++) {
        count += is_of_pool(core, i, pool) && core->blocks.items[i].life == UF_LIFE_ALLOCATED;
    }
    return count;
}

/* Whether everything handed out in the pool can be given back at once. */
static bool is_quiet(const uf_core *core, uint32_t pool)
{
    for (uint32_t i = 1; i < core->blocks.count; i++) {
        const uf_block *block = &core->blocks.items[i];
        if (is_of_pool(core, i, pool) && (block->uses != 0 || (block->life != UF_LIFE_FREE &&
                                                               block->life != UF_LIFE_ALLOCATED))) {
            return false;
        }
    }
    return true;
}

/* Whether [addr, end) lies in one run of the pool's mapped blocks: blocks is the pool now. */
static bool is_held(const uf_checkpoint *now, uint64_t addr, uint64_t end, uint32_t *from)
{
    while (*from < now->count && now->blocks[*from].addr + now->blocks[*from].size_bytes <= addr) {
        ++*from;
    }
    uint32_t at = *from;
    if (at == now->count || now->blocks[at].addr > addr) {
        return false;
    }
    uint64_t held_end = now->blocks[at].addr + now->blocks[at].size_bytes;
    while (held_end < end && ++at < now->count && now->blocks[at].addr == held_end) {
        held_end += now->blocks[at].size_bytes;
    }
    return held_end >= end;
}

static bool are_held(bool is_paged, const uf_checkpoint *now, const uf_checkpoint *checkpoint)
{
    uint32_t from = 0;
    for (uint32_t i = 0; i < checkpoint->count; i++) {
        const uf_checkpoint_block *block = &checkpoint->blocks[i];
        if ((block->is_allocated || !is_paged) &&
            !is_held(now, block->addr, block->addr + block->size_bytes, &from)) {
            return false;
        }
    }
    return true;
}

/* Gives back everything that is handed out in the pool; none of it can fail (is_quiet). */
static void give_all(uf_core *core, uint32_t pool, uf_restored *restored, uint32_t *count)
{
    for (uint32_t i = 1; i < core->blocks.count; i++) {
        const uf_block *block = &core->blocks.items[i];
        if (is_of_pool(core, i, pool) && block->life == UF_LIFE_ALLOCATED) {
            restored[(*count)++] = (uf_restored){block->addr, block->requested_bytes, UF_NO_BLOCK};
            (void)!uf__core_free(core, i);
        }
    }
}

typedef struct place {
    uint64_t addr;
    uint32_t index;
} place;

static int by_place(const void *a, const void *b)
{
    uint64_t x = ((const place *)a)->addr, y = ((const place *)b)->addr;
    return (x > y) - (x < y);
}

/* Lists the pool's blocks, which are all free, by address. */
static uint32_t list_places(const uf_core *core, uint32_t pool, place *places)
{
    uint32_t count = 0;
    for (uint32_t i = 1; i < core->blocks.count; i++) {
        if (is_of_pool(core, i, pool)) {
            places[count++] = (place){core->blocks.items[i].addr, i};
        }
    }
    qsort(places, count, sizeof *places, by_place);
    return count;
}

static uint32_t take_front(uf_core *core, uint32_t index, uint64_t size_bytes,
                           uint64_t requested_bytes)
{
    uf__freeset_remove(&core->shelves[core->blocks.items[index].shelf]->cached, core->blocks.items,
                       index);
    return uf__core_hand_out(core, index, size_bytes, requested_bytes);
}

/* Takes the checkpoint's block out of the free block around it. *filler receives the stretch before
 * it, where that had to be handed out too. */
static uint32_t take_out(uf_core *core, uint32_t index, const uf_checkpoint_block *wanted,
                         uint32_t *filler)
{
    *filler = UF_NO_BLOCK;
    if (core->paging != NULL && core->blocks.items[index].region != 0) {
        uint64_t end = wanted->addr + wanted->size_bytes;
        index = uf__hole_cut_out(core, index, wanted->addr, end);
        return uf__core_hand_out(core, index, wanted->size_bytes, wanted->requested_bytes);
    }
    uint64_t before_bytes = wanted->addr - core->blocks.items[index].addr;
    if (before_bytes != 0) {
        *filler = take_front(core, index, before_bytes, before_bytes);
    }
    return take_front(core, index, wanted->size_bytes, wanted->requested_bytes);
}

/* What the restore needs besides: allocated before anything changes. */
typedef struct way_back {
    place *places;
    uint32_t *temporary; /* handed out on the way, to be given back */
} way_back;

static void hand_all_out(uf_core *core, uint32_t pool, const uf_checkpoint *checkpoint,
                         const way_back *scratch, uf_restored *restored, uint32_t *restored_count)
{
    uint32_t place_count = list_places(core, pool, scratch->places);
    uint32_t at = 0, index = UF_NO_BLOCK, temporary_count = 0;
    for (uint32_t i = 0; i < checkpoint->count; i++) {
        const uf_checkpoint_block *wanted = &checkpoint->blocks[i];
        if (!wanted->is_allocated && uf__core_is_paged(core, pool)) {
            continue;
        }
        while (at + 1 < place_count && scratch->places[at + 1].addr <= wanted->addr) {
            index = scratch->places[++at].index;
        }
        index = index == UF_NO_BLOCK ? scratch->places[at].index : index;
        uint32_t filler, made = take_out(core, index, wanted, &filler);
        index = core->blocks.items[made].next; /* what is left of the free block */
        if (filler != UF_NO_BLOCK) {
            scratch->temporary[temporary_count++] = filler;
        }
        if (wanted->is_allocated) {
            restored[(*restored_count)++] =
                (uf_restored){wanted->addr, wanted->requested_bytes, made};
        } else {
            scratch->temporary[temporary_count++] = made;
        }
    }
    for (uint32_t i = 0; i < temporary_count; i++) {
        (void)!uf__core_free(core, scratch->temporary[i]);
    }
}

uf_status uf__checkpoint_restore(uf_core *core, uint32_t pool, const uf_checkpoint *checkpoint,
                                 uf_restored *restored, uint32_t *restored_count)
{
    uf_checkpoint now;
    if (!is_quiet(core, pool)) {
        return UF_ERROR_BUSY;
    }
    uf_status status = uf__checkpoint_take(core, pool, &now);
    if (status != UF_OK) {
        return status;
    }
    bool is_possible = are_held(uf__core_is_paged(core, pool), &now, checkpoint);
    way_back scratch = {malloc(((size_t)now.count + 1) * sizeof(place)),
                        malloc((2 * (size_t)checkpoint->count + 1) * sizeof(uint32_t))};
    bool has_room = scratch.places != NULL && scratch.temporary != NULL &&
                    uf__block_reserve(&core->blocks, 2 * checkpoint->count + 2);
    uf__checkpoint_fini(&now);
    if (is_possible && has_room) {
        *restored_count = 0;
        give_all(core, pool, restored, restored_count);
        hand_all_out(core, pool, checkpoint, &scratch, restored, restored_count);
    }
    free(scratch.places);
    free(scratch.temporary);
    return !is_possible ? UF_ERROR_HAZARD : has_room ? UF_OK : UF_ERROR_HOST_MEMORY;
}
