/* SPDX-License-Identifier: MIT
 *
 * The oracle's dealings with the driver: new segments (3.3), releases (3.7), the release of
 * oversize blocks (3.4), flushes (3.5) and garbage collection (5). Single-threaded. */
#include "oracle/state.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

oracle_segment *oracle_segment_create(oracle *o, const oracle_segment *like)
{
    o->segments =
        model_grow(o->segments, o->segment_count, &o->segment_capacity, sizeof(oracle_segment *));
    oracle_segment *segment = malloc(sizeof *segment);
    if (segment == NULL) {
        exit(5);
    }
    *segment = *like;
    o->segments[o->segment_count++] = segment;
    return segment;
}

void oracle_segment_destroy(oracle *o, oracle_segment *segment)
{
    for (size_t i = 0; i < o->segment_count; i++) {
        if (o->segments[i] == segment) {
            o->segments[i] = o->segments[--o->segment_count];
            break;
        }
    }
    free(segment);
}

/* 3.3 steps 5 and 6 */
static oracle_block *plain_alloc(oracle *o, const oracle_request *request)
{
    uint64_t bytes = request->segment_bytes;
    uint64_t addr = 0;
    if (o->config.capacity_bytes != 0 && o->total_bytes + bytes > o->config.capacity_bytes) {
        return NULL;
    }
    if (!o->config.host.segment_addr(o->config.host.context, bytes, request->stream, &addr)) {
        return NULL;
    }
    oracle_segment like = {
        .addr = addr, .size_bytes = bytes, .pool = request->pool, .stream = request->stream};
    oracle_segment *segment = oracle_segment_create(o, &like);
    oracle_block block = {.segment = segment,
                          .pool = request->pool,
                          .stream = request->stream,
                          .addr = addr,
                          .size_bytes = bytes,
                          .state = ORACLE_HELD};
    o->total_bytes += bytes;
    oracle_stat_change(o, STAT_SEGMENT, request->pool, 1);
    oracle_stat_change(o, STAT_RESERVED_BYTES, request->pool, (int64_t)bytes);
    if (bytes >= o->conf.max_split_size_bytes) {
        oracle_stat_oversize(o, STAT_OVERSIZE_SEGMENTS, 1);
    }
    o->stats[STAT_NUM_DEVICE_ALLOC]++;
    oracle_event(o, UF_ACTION_SEGMENT_ALLOC, addr, bytes, request->stream);
    return oracle_block_create(o, &block);
}

/* 3.3: returns the found block, in no set, or NULL. */
oracle_block *oracle_try_new(oracle *o, const oracle_request *request, bool is_retry)
{
    if (is_retry) {
        o->stats[STAT_NUM_ALLOC_RETRIES]++;
    }
    if (o->has_limit && o->total_bytes + request->segment_bytes > o->limit_bytes) {
        return NULL;
    }
    oracle_block *block =
        request->is_expandable ? oracle_expandable_alloc(o, request) : plain_alloc(o, request);
    if (block != NULL && request->pool->pair->is_private) {
        request->pool->pair->live_segment_count++;
    }
    return block;
}

/* 3.7 for a block that is a whole cudaMalloc segment. */
void oracle_release(oracle *o, oracle_block *block)
{
    uint64_t bytes = block->size_bytes;
    o->stats[STAT_NUM_DEVICE_FREE]++;
    oracle_event(o, UF_ACTION_SEGMENT_FREE, block->addr, bytes, block->stream);
    o->total_bytes -= bytes;
    if (block->pool->pair->is_private) {
        block->pool->pair->live_segment_count--;
    }
    oracle_stat_change(o, STAT_SEGMENT, block->pool, -1);
    oracle_stat_change(o, STAT_RESERVED_BYTES, block->pool, -(int64_t)bytes);
    if (bytes >= o->conf.max_split_size_bytes) {
        oracle_stat_oversize(o, STAT_OVERSIZE_SEGMENTS, -1);
    }
    oracle_segment_destroy(o, block->segment);
    oracle_block_destroy(o, block);
}

/* 5 step 4: one pass with a fixed average age; returns the bytes released. */
static uint64_t collect_pass(oracle *o, oracle_pool *pool, uint64_t *age_sum, uint64_t *count)
{
    double average = (double)*age_sum / (double)*count;
    uint64_t released = 0;
    size_t length = 0;
    oracle_block **list = oracle_cached_list(o, pool, &length);
    for (size_t i = 0; i < length; i++) {
        uint64_t age = pool->search_count - list[i]->age_base;
        if (!oracle_block_is_split(o, list[i]) && !oracle_block_is_expandable(list[i]) &&
            (double)age >= average) {
            released += list[i]->size_bytes;
            *age_sum -= age;
            *count -= 1;
            oracle_release(o, list[i]);
        }
    }
    free(list);
    return released;
}

/* 5 */
void oracle_collect_garbage(oracle *o)
{
    uint64_t threshold =
        (uint64_t)trunc(o->conf.garbage_collection_threshold * (double)o->limit_bytes);
    if (o->total_bytes <= threshold) {
        return;
    }
    uint64_t target = o->total_bytes - threshold;
    oracle_pool *pool = &o->pairs[0]->large;
    uint64_t age_sum = 0;
    uint64_t count = 0;
    for (size_t i = 0; i < o->block_count; i++) {
        oracle_block *block = o->blocks[i];
        if (block->state == ORACLE_CACHED && block->pool == pool &&
            !oracle_block_is_split(o, block)) {
            age_sum += pool->search_count - block->age_base;
            count++;
        }
    }
    uint64_t collected = 0;
    uint64_t last = 1;
    while (collected < target && last > 0 && count > 0) {
        last = collect_pass(o, pool, &age_sum, &count);
        collected += last;
    }
}

/* Releasing a piece of a cudaMalloc segment is what PyTorch leaves undefined (3.4, hazard). */
static uf_status release_checked(oracle *o, oracle_block *block, uf_error *error)
{
    if (oracle_block_is_split(o, block)) {
        return uf__error_set(error, UF_ERROR_HAZARD,
                             "the oversize block 0x%" PRIx64 " of %" PRIu64
                             " bytes would be released, but is only a piece of its segment",
                             block->addr, block->size_bytes);
    }
    oracle_release(o, block);
    return UF_OK;
}

/* 3.4 step 3 */
static uf_status release_downwards(oracle *o, const oracle_request *request, oracle_key key,
                                   bool *is_enough, uf_error *error)
{
    uint64_t wanted = key.size_bytes;
    uint64_t released = 0;
    oracle_block *block = oracle_cached_before(o, request->pool, key);
    while (block != NULL && released < wanted &&
           block->size_bytes >= o->conf.max_split_size_bytes && block->stream == request->stream) {
        oracle_block *below = oracle_cached_before(o, request->pool, oracle_block_key(block));
        if (!oracle_block_is_expandable(block)) {
            uint64_t bytes = block->size_bytes;
            uf_status status = release_checked(o, block, error);
            if (status != UF_OK) {
                return status;
            }
            released += bytes;
        }
        block = below;
    }
    *is_enough = released >= wanted;
    return UF_OK;
}

/* 3.4 */
uf_status oracle_release_oversize(oracle *o, const oracle_request *request, bool *is_enough,
                                  uf_error *error)
{
    uint64_t max_split = o->conf.max_split_size_bytes;
    uint64_t wanted = request->rounded_bytes > max_split ? request->rounded_bytes : max_split;
    oracle_key key = {request->stream, wanted, 0};
    oracle_block *block = oracle_cached_from(o, request->pool, key);
    if (block != NULL && block->stream == request->stream && !oracle_block_is_expandable(block)) {
        *is_enough = true;
        return release_checked(o, block, error);
    }
    return release_downwards(o, request, key, is_enough, error);
}

/* 3.5, release_pool */
void oracle_release_pool(oracle *o, oracle_pool *pool)
{
    size_t count = 0;
    oracle_block **list = oracle_cached_list(o, pool, &count);
    for (size_t i = 0; i < count; i++) {
        if (!oracle_block_is_expandable(list[i]) && !oracle_block_is_split(o, list[i])) {
            oracle_release(o, list[i]);
            list[i] = NULL;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (list[i] != NULL && oracle_block_is_expandable(list[i])) {
            oracle_unmap(o, list[i]);
        }
    }
    free(list);
}

static bool pair_is_freeable(const oracle_pair *pair, const oracle_pair *only)
{
    return pair->is_private && pair->is_known && pair->use_count == 0 &&
           (only == NULL || pair == only);
}

/* The freeable pools in the host's order, or as created. is_seen: one flag per pair. */
static oracle_pair *next_freeable(const oracle *o, const oracle_pair *only, const bool *is_seen)
{
    uint64_t ids[256][2];
    oracle_pair *pairs[256];
    size_t count = 0;
    for (size_t i = 0; i < o->pair_count && count < 256; i++) {
        if (pair_is_freeable(o->pairs[i], only) && !is_seen[i]) {
            ids[count][0] = o->pairs[i]->id[0];
            ids[count][1] = o->pairs[i]->id[1];
            pairs[count++] = o->pairs[i];
        }
    }
    if (count == 0) {
        return NULL;
    }
    size_t index = 0;
    if (o->config.host.pool != NULL && count > 1) {
        index = o->config.host.pool(o->config.host.context, (const uint64_t(*)[2])ids, count);
    }
    return pairs[index < count ? index : 0];
}

/* 7.2: a pool is forgotten when no segment is left. PyTorch asks the count of 7.7 alone, and for
 * expandable pools can forget one whose blocks live on; that is not imitated. */
static bool pair_has_blocks(const oracle *o, const oracle_pair *pair)
{
    for (size_t i = 0; i < o->block_count; i++) {
        if (o->blocks[i]->pool->pair == pair) {
            return true;
        }
    }
    return pair->live_segment_count != 0;
}

/* 3.5: only = NULL is the id (0,0). */
void oracle_flush(oracle *o, const oracle_pair *only)
{
    if (only == NULL && o->redirection_count == 0) {
        oracle_wait_for_events(o, NULL);
        oracle_release_pool(o, &o->pairs[0]->large);
        oracle_release_pool(o, &o->pairs[0]->small);
    }
    bool *is_seen = calloc(o->pair_count, sizeof *is_seen);
    if (is_seen == NULL) {
        exit(5);
    }
    oracle_pair *pair = next_freeable(o, only, is_seen);
    while (pair != NULL) {
        for (size_t i = 0; i < o->pair_count; i++) {
            is_seen[i] = is_seen[i] || o->pairs[i] == pair;
        }
        if (only != NULL) {
            oracle_wait_for_events(o, pair);
        }
        oracle_release_pool(o, &pair->small);
        oracle_release_pool(o, &pair->large);
        pair->is_known = pair_has_blocks(o, pair);
        pair = next_freeable(o, only, is_seen);
    }
    free(is_seen);
}
