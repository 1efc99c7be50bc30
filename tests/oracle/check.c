/* SPDX-License-Identifier: MIT
 *
 * The oracle's layout as a snapshot shows it (10.2), and its own invariants. Changes nothing.
 * Single-threaded. */
#include "oracle/state.h"

#include <inttypes.h>
#include <stdlib.h>

static int addr_compare(const void *a, const void *b)
{
    const oracle_block *one = *(const oracle_block *const *)a;
    const oracle_block *two = *(const oracle_block *const *)b;
    return one->addr < two->addr ? -1 : one->addr > two->addr;
}

/* All blocks by address; the caller frees the array. */
static oracle_block **sorted_blocks(const oracle *o)
{
    oracle_block **list = malloc((o->block_count + 1) * sizeof *list);
    if (list == NULL) {
        exit(5);
    }
    for (size_t i = 0; i < o->block_count; i++) {
        list[i] = o->blocks[i];
    }
    qsort(list, o->block_count, sizeof *list, addr_compare);
    return list;
}

static uf_block_state snapshot_state(oracle_block_state state)
{
    if (state == ORACLE_ALLOCATED) {
        return UF_BLOCK_ACTIVE_ALLOCATED;
    }
    return state == ORACLE_WAITING ? UF_BLOCK_ACTIVE_PENDING_FREE : UF_BLOCK_INACTIVE;
}

void oracle_walk(const oracle *o, model_layout *layout)
{
    oracle_block **list = sorted_blocks(o);
    const oracle_block *last = NULL;
    for (size_t i = 0; i < o->block_count; i++) {
        const oracle_block *block = list[i];
        if (block->state == ORACLE_UNMAPPED) {
            last = NULL;
            continue;
        }
        if (last == NULL || last->segment != block->segment) {
            const oracle_pair *pair = block->pool->pair;
            model_segment segment = {.addr = block->addr,
                                     .stream = block->stream,
                                     .pool_id = {pair->id[0], pair->id[1]},
                                     .is_large = !block->pool->is_small,
                                     .is_expandable = oracle_block_is_expandable(block)};
            model_layout_segment(layout, &segment);
        }
        model_layout_block(layout, &(model_block){.addr = block->addr,
                                                  .size_bytes = block->size_bytes,
                                                  .requested_bytes = block->requested_bytes,
                                                  .state = snapshot_state(block->state)});
        last = block;
    }
    free(list);
}

typedef struct totals {
    int64_t reserved, active, allocated, inactive_split;
    int64_t active_count, allocated_count, inactive_split_count;
} totals;

static void count_block(const oracle_block *block, totals *t)
{
    int64_t size = (int64_t)block->size_bytes;
    t->reserved += block->state == ORACLE_UNMAPPED ? 0 : size;
    if (block->state == ORACLE_ALLOCATED) {
        t->allocated += size;
        t->allocated_count++;
    }
    if (block->state == ORACLE_ALLOCATED || block->state == ORACLE_WAITING) {
        t->active += size;
        t->active_count++;
    }
    /* Not by neighbours, as where it is counted: a block alone in its segment is all of it. */
    if (block->state == ORACLE_CACHED && !oracle_block_is_expandable(block) &&
        block->size_bytes != block->segment->size_bytes) {
        t->inactive_split += size;
        t->inactive_split_count++;
    }
}

static uf_status check_sum(const oracle *o, model_stat_group group, int64_t sum, uf_error *error)
{
    int64_t value = o->stats[model_stat_index(group, STAT_ALL, STAT_CURRENT)];
    if (value != sum) {
        return uf__error_set(error, UF_ERROR_INTERNAL,
                             "statistic group %d is %" PRId64 ", the blocks sum to %" PRId64,
                             (int)group, value, sum);
    }
    return UF_OK;
}

/* Every segment is filled without gaps by blocks of its pool and stream. */
static uf_status check_tiling(const oracle *o, uf_error *error)
{
    uint64_t segment_sum = 0;
    uint64_t block_sum = 0;
    for (size_t i = 0; i < o->segment_count; i++) {
        segment_sum += o->segments[i]->size_bytes;
    }
    oracle_block **list = sorted_blocks(o);
    uf_status status = UF_OK;
    for (size_t i = 0; i < o->block_count && status == UF_OK; i++) {
        const oracle_block *block = list[i];
        const oracle_segment *segment = block->segment;
        const oracle_block *above = i + 1 < o->block_count ? list[i + 1] : NULL;
        bool is_above_next = above != NULL && above->segment == segment &&
                             above->addr == block->addr + block->size_bytes;
        const oracle_block *next = is_above_next ? above : NULL;
        bool is_last = block->addr + block->size_bytes == segment->addr + segment->size_bytes;
        bool is_mergeable = next != NULL && next->state == block->state &&
                            (block->state == ORACLE_CACHED || block->state == ORACLE_UNMAPPED);
        block_sum += block->size_bytes;
        if (block->size_bytes == 0 || block->size_bytes % ORACLE_MIN_BLOCK != 0 ||
            is_last != (next == NULL) || is_mergeable || block->pool != segment->pool ||
            block->stream != segment->stream || block->state == ORACLE_HELD) {
            status = uf__error_set(error, UF_ERROR_INTERNAL, "block 0x%" PRIx64 " is out of place",
                                   block->addr);
        }
    }
    free(list);
    if (status == UF_OK && segment_sum != block_sum) {
        status = uf__error_set(error, UF_ERROR_INTERNAL, "blocks do not fill the segments");
    }
    return status;
}

uf_status oracle_check(const oracle *o, uf_error *error)
{
    totals t = {0};
    for (size_t i = 0; i < o->block_count; i++) {
        count_block(o->blocks[i], &t);
    }
    uf_status status = check_tiling(o, error);
    const struct {
        model_stat_group group;
        int64_t sum;
    } sums[] = {{STAT_RESERVED_BYTES, t.reserved},
                {STAT_RESERVED_BYTES, (int64_t)o->total_bytes},
                {STAT_ACTIVE_BYTES, t.active},
                {STAT_ALLOCATED_BYTES, t.allocated},
                {STAT_INACTIVE_SPLIT_BYTES, t.inactive_split},
                {STAT_ACTIVE, t.active_count},
                {STAT_ALLOCATION, t.allocated_count},
                {STAT_INACTIVE_SPLIT, t.inactive_split_count}};
    for (size_t i = 0; status == UF_OK && i < sizeof sums / sizeof *sums; i++) {
        status = check_sum(o, sums[i].group, sums[i].sum, error);
    }
    return status;
}
