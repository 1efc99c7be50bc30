/* SPDX-License-Identifier: MIT
 *
 * The oracle's requests: rounding (1), best fit (2.3), splitting (2.4) and handing a block out
 * (2.5). Knows nothing of where segments come from. Single-threaded. */
#include "oracle/state.h"

static unsigned floor_log2(uint64_t value)
{
    unsigned result = 0;
    while (value > 1) {
        value /= 2;
        result++;
    }
    return result;
}

static uint64_t round_up(uint64_t value, uint64_t step)
{
    return (value + step - 1) / step * step;
}

/* 1.3 */
static uint64_t divisions_for(const oracle *o, uint64_t bytes)
{
    unsigned log = floor_log2(bytes);
    unsigned index = log < 20 ? 0 : log - 20;
    if (index > 15) {
        index = 15;
    }
    return o->conf.roundup_power2_divisions[index];
}

/* 1.2 */
uint64_t oracle_round(const oracle *o, uint64_t bytes)
{
    if (bytes < ORACLE_MIN_BLOCK) {
        return ORACLE_MIN_BLOCK;
    }
    uint64_t divisions = divisions_for(o, bytes);
    if (divisions > 1 && bytes > ORACLE_MIN_BLOCK * divisions) {
        uint64_t power = UINT64_C(1) << floor_log2(bytes);
        if (power == bytes) {
            return bytes;
        }
        return round_up(bytes, power / divisions);
    }
    return round_up(bytes, ORACLE_MIN_BLOCK);
}

/* 1.4 */
uint64_t oracle_segment_bytes(const oracle *o, uint64_t rounded_bytes)
{
    if (rounded_bytes <= ORACLE_SMALL_MAX) {
        return ORACLE_SMALL_SEGMENT;
    }
    if (rounded_bytes < ORACLE_MIN_LARGE) {
        return o->conf.large_segment_bytes;
    }
    return round_up(rounded_bytes, ORACLE_ROUND_LARGE);
}

/* 2.3 step 2: what an expandable block could grow to. */
static uint64_t effective_bytes(const oracle *o, const oracle_block *block)
{
    const oracle_block *next = oracle_block_next(o, block);
    if (next != NULL && next->state == ORACLE_UNMAPPED) {
        return block->size_bytes + next->size_bytes;
    }
    return block->size_bytes;
}

/* 2.3 step 2 with expandable segments on. */
static oracle_block *walk_effective(const oracle *o, const oracle_request *request,
                                    oracle_block *block)
{
    while (oracle_block_is_expandable(block)) {
        oracle_block *next = oracle_cached_after(o, request->pool, oracle_block_key(block));
        if (next == NULL || next->stream != request->stream ||
            effective_bytes(o, next) >= effective_bytes(o, block)) {
            break;
        }
        block = next;
    }
    return block;
}

/* 2.3 step 2 with expandable segments off. */
static oracle_block *skip_expandable(const oracle *o, const oracle_request *request,
                                     oracle_block *block)
{
    while (block != NULL && block->stream == request->stream && oracle_block_is_expandable(block)) {
        block = oracle_cached_after(o, request->pool, oracle_block_key(block));
    }
    return block != NULL && block->stream == request->stream ? block : NULL;
}

/* 2.3 */
oracle_block *oracle_find(oracle *o, const oracle_request *request)
{
    if (o->has_limit && o->conf.garbage_collection_threshold > 0) {
        request->pool->search_count++;
    }
    uint64_t rounded = request->rounded_bytes;
    oracle_block *block =
        oracle_cached_from(o, request->pool, (oracle_key){request->stream, rounded, 0});
    if (block == NULL || block->stream != request->stream) {
        return NULL;
    }
    if (oracle_block_is_expandable(block)) {
        block = request->is_expandable ? walk_effective(o, request, block)
                                       : skip_expandable(o, request, block);
        if (block == NULL) {
            return NULL;
        }
    }
    uint64_t max_split = o->conf.max_split_size_bytes;
    if (rounded < max_split && block->size_bytes >= max_split) {
        return NULL;
    }
    if (rounded >= max_split &&
        block->size_bytes >= rounded + o->conf.max_non_split_rounding_bytes) {
        return NULL;
    }
    block->state = ORACLE_HELD;
    return block;
}

/* 2.4 */
static bool should_split(const oracle *o, const oracle_request *request, const oracle_block *block)
{
    uint64_t rest = block->size_bytes - request->rounded_bytes;
    if (request->pool->pair->is_no_split) {
        return false;
    }
    if (request->pool->is_small || request->is_expandable) {
        return rest >= ORACLE_MIN_BLOCK;
    }
    return request->rounded_bytes < o->conf.max_split_size_bytes && rest > ORACLE_SMALL_MAX;
}

/* 2.5 step 2: returns the front; the given object becomes the rest. */
static oracle_block *split(oracle *o, const oracle_request *request, oracle_block *block,
                           bool was_split)
{
    oracle_block like = {.segment = block->segment,
                         .pool = block->pool,
                         .stream = block->stream,
                         .addr = block->addr,
                         .size_bytes = request->rounded_bytes,
                         .state = ORACLE_HELD};
    block->addr += request->rounded_bytes;
    block->size_bytes -= request->rounded_bytes;
    oracle_block_cache(block);
    if (!oracle_block_is_expandable(block)) {
        if (was_split) {
            oracle_stat_change(o, STAT_INACTIVE_SPLIT_BYTES, request->pool,
                               -(int64_t)request->rounded_bytes);
        } else {
            oracle_stat_change(o, STAT_INACTIVE_SPLIT, request->pool, 1);
            oracle_stat_change(o, STAT_INACTIVE_SPLIT_BYTES, request->pool,
                               (int64_t)block->size_bytes);
        }
    }
    return oracle_block_create(o, &like);
}

/* 2.5: returns the block handed out, which is a new object if the found one was split. */
oracle_block *oracle_hand_out(oracle *o, const oracle_request *request, oracle_block *block)
{
    bool was_split = oracle_block_is_split(o, block);
    if (should_split(o, request, block)) {
        block = split(o, request, block, was_split);
    } else if (was_split && !oracle_block_is_expandable(block)) {
        oracle_stat_change(o, STAT_INACTIVE_SPLIT, request->pool, -1);
        oracle_stat_change(o, STAT_INACTIVE_SPLIT_BYTES, request->pool,
                           -(int64_t)block->size_bytes);
    }
    block->state = ORACLE_ALLOCATED;
    block->requested_bytes = request->requested_bytes;
    oracle_event(o, UF_ACTION_ALLOC, block->addr, block->requested_bytes, block->stream);
    oracle_stat_change(o, STAT_ALLOCATION, request->pool, 1);
    oracle_stat_change(o, STAT_ALLOCATED_BYTES, request->pool, (int64_t)block->size_bytes);
    oracle_stat_change(o, STAT_ACTIVE, request->pool, 1);
    oracle_stat_change(o, STAT_ACTIVE_BYTES, request->pool, (int64_t)block->size_bytes);
    oracle_stat_change(o, STAT_REQUESTED_BYTES, request->pool, (int64_t)block->requested_bytes);
    if (block->size_bytes >= o->conf.max_split_size_bytes) {
        oracle_stat_oversize(o, STAT_OVERSIZE_ALLOCATIONS, 1);
    }
    return block;
}
