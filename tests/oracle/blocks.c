/* SPDX-License-Identifier: MIT
 *
 * The oracle's blocks: the one array of them, neighbours and orders by scanning it, merging, and
 * the arithmetic of statistics. Knows no requests and no driver. Single-threaded. */
#include "oracle/state.h"

#include <stdlib.h>

void oracle_event(oracle *o, uf_action action, uint64_t addr, uint64_t size_bytes, uint64_t stream)
{
    if (o->config.host.event != NULL) {
        o->config.host.event(o->config.host.context, action, addr, size_bytes, stream);
    }
}

/* 8.2: increase for a positive change, decrease for a negative one. */
static void stat_change(int64_t *first, int64_t change)
{
    first[STAT_CURRENT] += change;
    if (change >= 0) {
        if (first[STAT_CURRENT] > first[STAT_PEAK]) {
            first[STAT_PEAK] = first[STAT_CURRENT];
        }
        first[STAT_ALLOCATED] += change;
    } else {
        first[STAT_FREED] -= change;
    }
}

void oracle_stat_change(oracle *o, model_stat_group group, const oracle_pool *pool, int64_t change)
{
    int class = pool->is_small ? STAT_SMALL_POOL : STAT_LARGE_POOL;
    stat_change(&o->stats[model_stat_index(group, STAT_ALL, 0)], change);
    stat_change(&o->stats[model_stat_index(group, class, 0)], change);
}

void oracle_stat_oversize(oracle *o, size_t first, int64_t change)
{
    stat_change(&o->stats[first], change);
}

oracle_block *oracle_block_create(oracle *o, const oracle_block *like)
{
    o->blocks = model_grow(o->blocks, o->block_count, &o->block_capacity, sizeof(oracle_block *));
    oracle_block *block = malloc(sizeof *block);
    if (block == NULL) {
        exit(5);
    }
    *block = *like;
    o->blocks[o->block_count++] = block;
    return block;
}

void oracle_block_destroy(oracle *o, oracle_block *block)
{
    for (size_t i = 0; i < o->block_count; i++) {
        if (o->blocks[i] == block) {
            o->blocks[i] = o->blocks[--o->block_count];
            break;
        }
    }
    free(block);
}

oracle_block *oracle_block_prev(const oracle *o, const oracle_block *block)
{
    for (size_t i = 0; i < o->block_count; i++) {
        oracle_block *other = o->blocks[i];
        if (other->segment == block->segment && other->addr + other->size_bytes == block->addr) {
            return other;
        }
    }
    return NULL;
}

oracle_block *oracle_block_next(const oracle *o, const oracle_block *block)
{
    for (size_t i = 0; i < o->block_count; i++) {
        oracle_block *other = o->blocks[i];
        if (other->segment == block->segment && block->addr + block->size_bytes == other->addr) {
            return other;
        }
    }
    return NULL;
}

bool oracle_block_is_split(const oracle *o, const oracle_block *block)
{
    return oracle_block_prev(o, block) != NULL || oracle_block_next(o, block) != NULL;
}

bool oracle_block_is_expandable(const oracle_block *block)
{
    return block->segment->page_bytes != 0;
}

oracle_key oracle_block_key(const oracle_block *block)
{
    return (oracle_key){block->stream, block->size_bytes, block->addr};
}

/* 2.2: stream, then size, then address. */
static int key_compare(oracle_key a, oracle_key b)
{
    if (a.stream != b.stream) {
        return a.stream < b.stream ? -1 : 1;
    }
    if (a.size_bytes != b.size_bytes) {
        return a.size_bytes < b.size_bytes ? -1 : 1;
    }
    if (a.addr != b.addr) {
        return a.addr < b.addr ? -1 : 1;
    }
    return 0;
}

/* The lowest cached block whose comparison with key is at least least. */
static oracle_block *cached_lowest(const oracle *o, const oracle_pool *pool, oracle_key key,
                                   int least)
{
    oracle_block *lowest = NULL;
    for (size_t i = 0; i < o->block_count; i++) {
        oracle_block *block = o->blocks[i];
        if (block->state != ORACLE_CACHED || block->pool != pool ||
            key_compare(oracle_block_key(block), key) < least) {
            continue;
        }
        if (lowest == NULL || key_compare(oracle_block_key(block), oracle_block_key(lowest)) < 0) {
            lowest = block;
        }
    }
    return lowest;
}

oracle_block *oracle_cached_from(const oracle *o, const oracle_pool *pool, oracle_key key)
{
    return cached_lowest(o, pool, key, 0);
}

oracle_block *oracle_cached_after(const oracle *o, const oracle_pool *pool, oracle_key key)
{
    return cached_lowest(o, pool, key, 1);
}

oracle_block *oracle_cached_before(const oracle *o, const oracle_pool *pool, oracle_key key)
{
    oracle_block *highest = NULL;
    for (size_t i = 0; i < o->block_count; i++) {
        oracle_block *block = o->blocks[i];
        if (block->state != ORACLE_CACHED || block->pool != pool ||
            key_compare(oracle_block_key(block), key) >= 0) {
            continue;
        }
        if (highest == NULL ||
            key_compare(oracle_block_key(block), oracle_block_key(highest)) > 0) {
            highest = block;
        }
    }
    return highest;
}

static int block_compare(const void *a, const void *b)
{
    return key_compare(oracle_block_key(*(oracle_block *const *)a),
                       oracle_block_key(*(oracle_block *const *)b));
}

oracle_block **oracle_cached_list(const oracle *o, const oracle_pool *pool, size_t *count)
{
    oracle_block **list = malloc((o->block_count + 1) * sizeof *list);
    if (list == NULL) {
        exit(5);
    }
    *count = 0;
    for (size_t i = 0; i < o->block_count; i++) {
        if (o->blocks[i]->state == ORACLE_CACHED && o->blocks[i]->pool == pool) {
            list[(*count)++] = o->blocks[i];
        }
    }
    qsort(list, *count, sizeof *list, block_compare);
    return list;
}

/* 4.3: block absorbs the neighbour if it may; returns the bytes absorbed. "Not allocated, no
 * outstanding events, no other streams" is what cached and unmapped mean. is_mapped tells the
 * survivor's side. */
uint64_t oracle_merge(oracle *o, oracle_block *block, oracle_block *neighbour)
{
    oracle_block_state wanted = block->state == ORACLE_UNMAPPED ? ORACLE_UNMAPPED : ORACLE_CACHED;
    if (neighbour == NULL || neighbour->state != wanted) {
        return 0;
    }
    uint64_t bytes = neighbour->size_bytes;
    if (neighbour->addr < block->addr) {
        block->addr = neighbour->addr;
    }
    block->size_bytes += bytes;
    oracle_block_destroy(o, neighbour);
    return bytes;
}

/* Enters the set of cached blocks, which makes the block young. */
void oracle_block_cache(oracle_block *block)
{
    block->state = ORACLE_CACHED;
    block->age_base = block->pool->search_count;
}

bool oracle_streams_has(const oracle_streams *streams, uint64_t stream)
{
    for (size_t i = 0; i < streams->count; i++) {
        if (streams->items[i] == stream) {
            return true;
        }
    }
    return false;
}

/* Adds to a set; false when there is no room. */
bool oracle_streams_add(oracle_streams *streams, uint64_t stream)
{
    if (oracle_streams_has(streams, stream)) {
        return true;
    }
    if (streams->count == ORACLE_STREAM_MAX) {
        return false;
    }
    streams->items[streams->count++] = stream;
    return true;
}
