/* SPDX-License-Identifier: MIT
 *
 * The oracle's expandable segments (6): choosing where to grow, mapping and unmapping whole pages.
 * Single-threaded. */
#include "oracle/state.h"

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* 6.3 step 1: "not allocated, no events, empty stream set". */
static bool is_usable(const oracle_block *block)
{
    return block != NULL && (block->state == ORACLE_CACHED || block->state == ORACLE_UNMAPPED);
}

static bool has_room(const oracle *o, const oracle_block *block, uint64_t bytes)
{
    uint64_t sum = 0;
    while (sum < bytes && is_usable(block)) {
        sum += block->size_bytes;
        block = oracle_block_next(o, block);
    }
    return sum >= bytes;
}

/* The unmapped block of the request's pool and stream with the lowest address above addr. */
static oracle_block *unmapped_after(const oracle *o, const oracle_request *request, uint64_t addr)
{
    oracle_block *lowest = NULL;
    for (size_t i = 0; i < o->block_count; i++) {
        oracle_block *block = o->blocks[i];
        if (block->state == ORACLE_UNMAPPED && block->pool == request->pool &&
            block->stream == request->stream && block->addr > addr &&
            (lowest == NULL || block->addr < lowest->addr)) {
            lowest = block;
        }
    }
    return lowest;
}

/* 6.1 */
static oracle_block *create_segment(oracle *o, const oracle_request *request)
{
    uint64_t page = request->pool->is_small ? ORACLE_SMALL_SEGMENT : o->conf.large_segment_bytes;
    uint64_t wanted = o->config.total_bytes + o->config.total_bytes / 8;
    uint64_t size = (wanted + page - 1) / page * page;
    uint64_t addr = 0;
    if (!o->config.host.reservation_addr(o->config.host.context, size, &addr)) {
        return NULL;
    }
    oracle_segment like = {.addr = addr,
                           .size_bytes = size,
                           .page_bytes = page,
                           .pool = request->pool,
                           .stream = request->stream};
    oracle_segment *segment = oracle_segment_create(o, &like);
    oracle_block block = {.segment = segment,
                          .pool = request->pool,
                          .stream = request->stream,
                          .addr = addr,
                          .size_bytes = size,
                          .state = ORACLE_UNMAPPED};
    return oracle_block_create(o, &block);
}

/* 6.3 steps 1 and 2 */
static oracle_block *find_candidate(oracle *o, const oracle_request *request)
{
    oracle_block *unmapped = unmapped_after(o, request, 0);
    while (unmapped != NULL) {
        oracle_block *start = oracle_block_prev(o, unmapped);
        if (!is_usable(start)) {
            start = unmapped;
        }
        if (has_room(o, start, request->rounded_bytes)) {
            return start;
        }
        unmapped = unmapped_after(o, request, unmapped->addr);
    }
    return create_segment(o, request);
}

/* 6.4: maps at the start of an unmapped block; false = the driver has no memory. */
static bool map(oracle *o, oracle_block *block, uint64_t bytes)
{
    uint64_t page = block->segment->page_bytes;
    uint64_t length = (bytes + page - 1) / page * page;
    uint64_t addr = block->addr;
    if (o->config.capacity_bytes != 0 && o->total_bytes + length > o->config.capacity_bytes) {
        return false;
    }
    if (length < block->size_bytes) {
        oracle_block rest = {.segment = block->segment,
                             .pool = block->pool,
                             .stream = block->stream,
                             .addr = addr + length,
                             .size_bytes = block->size_bytes - length,
                             .state = ORACLE_UNMAPPED};
        block->size_bytes = length;
        (void)oracle_block_create(o, &rest);
    }
    block->state = ORACLE_CACHED;
    (void)oracle_merge(o, block, oracle_block_prev(o, block));
    (void)oracle_merge(o, block, oracle_block_next(o, block));
    oracle_block_cache(block);
    o->total_bytes += length;
    oracle_stat_change(o, STAT_RESERVED_BYTES, block->pool, (int64_t)length);
    o->stats[STAT_NUM_DEVICE_ALLOC]++;
    oracle_event(o, UF_ACTION_SEGMENT_MAP, addr, length, block->stream);
    return true;
}

/* 6.3 */
oracle_block *oracle_expandable_alloc(oracle *o, const oracle_request *request)
{
    uint64_t wanted = request->rounded_bytes;
    oracle_block *candidate = find_candidate(o, request);
    if (candidate == NULL) {
        return NULL;
    }
    if (candidate->state == ORACLE_UNMAPPED &&
        !map(o, candidate, min_u64(candidate->size_bytes, wanted))) {
        return NULL;
    }
    while (candidate->size_bytes < wanted) {
        oracle_block *next = oracle_block_next(o, candidate);
        if (next == NULL) {
            return NULL; /* larger than the whole reservation, on a card without end */
        }
        if (!map(o, next, min_u64(wanted - candidate->size_bytes, next->size_bytes))) {
            return NULL;
        }
        candidate = next; /* it absorbed the old candidate */
    }
    candidate->state = ORACLE_HELD;
    return candidate;
}

/* A cached piece beside the unmapped middle. */
static void keep_piece(oracle *o, const oracle_block *block, uint64_t addr, uint64_t bytes)
{
    if (bytes == 0) {
        return;
    }
    oracle_block piece = {.segment = block->segment,
                          .pool = block->pool,
                          .stream = block->stream,
                          .addr = addr,
                          .size_bytes = bytes};
    oracle_block_cache(oracle_block_create(o, &piece));
}

/* 6.5: unmaps the whole pages of a cached block, and destroys a segment with nothing else in it. */
void oracle_unmap(oracle *o, oracle_block *block)
{
    uint64_t page = block->segment->page_bytes;
    uint64_t base = block->segment->addr;
    uint64_t block_end = block->addr + block->size_bytes;
    uint64_t start = base + (block->addr - base + page - 1) / page * page;
    uint64_t end = base + (block_end - base) / page * page;
    if (end > start) {
        keep_piece(o, block, block->addr, start - block->addr);
        keep_piece(o, block, end, block_end - end);
        block->addr = start;
        block->size_bytes = end - start;
        block->state = ORACLE_UNMAPPED;
        (void)oracle_merge(o, block, oracle_block_prev(o, block));
        (void)oracle_merge(o, block, oracle_block_next(o, block));
        o->total_bytes -= end - start;
        oracle_stat_change(o, STAT_RESERVED_BYTES, block->pool, -(int64_t)(end - start));
        if (block->pool->pair->is_private) {
            block->pool->pair->live_segment_count--;
        }
        o->stats[STAT_NUM_DEVICE_FREE]++;
        oracle_event(o, UF_ACTION_SEGMENT_UNMAP, start, end - start, block->stream);
    }
    if (!oracle_block_is_split(o, block)) {
        oracle_segment_destroy(o, block->segment);
        oracle_block_destroy(o, block);
    }
}
