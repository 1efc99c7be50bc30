/* SPDX-License-Identifier: MIT
 *
 * The oracle's frees (4): immediate, waiting for events of other streams, and deferred while a
 * redirection is under way. Single-threaded. */
#include "oracle/state.h"

#include <inttypes.h>
#include <stdlib.h>

static oracle_block *find_allocated(const oracle *o, uint64_t addr)
{
    for (size_t i = 0; i < o->block_count; i++) {
        if (o->blocks[i]->addr == addr && o->blocks[i]->state == ORACLE_ALLOCATED) {
            return o->blocks[i];
        }
    }
    return NULL;
}

/* 4.2 */
static void complete(oracle *o, oracle_block *block)
{
    oracle_event(o, UF_ACTION_FREE_COMPLETED, block->addr, block->requested_bytes, block->stream);
    uint64_t size = block->size_bytes;
    int64_t net_count = 0;
    int64_t net_bytes = 0;
    block->users.count = block->redirected_users.count = block->event_streams.count = 0;
    block->is_deferred = false;
    block->state = ORACLE_HELD;
    uint64_t absorbed = oracle_merge(o, block, oracle_block_prev(o, block));
    net_count -= absorbed > 0 ? 1 : 0;
    net_bytes -= (int64_t)absorbed;
    absorbed = oracle_merge(o, block, oracle_block_next(o, block));
    net_count -= absorbed > 0 ? 1 : 0;
    net_bytes -= (int64_t)absorbed;
    oracle_block_cache(block);
    if (oracle_block_is_split(o, block)) {
        net_count += 1;
        net_bytes += (int64_t)block->size_bytes;
    }
    if (!oracle_block_is_expandable(block)) {
        oracle_stat_change(o, STAT_INACTIVE_SPLIT, block->pool, net_count);
        oracle_stat_change(o, STAT_INACTIVE_SPLIT_BYTES, block->pool, net_bytes);
    }
    oracle_stat_change(o, STAT_ACTIVE, block->pool, -1);
    oracle_stat_change(o, STAT_ACTIVE_BYTES, block->pool, -(int64_t)size);
    oracle_stat_change(o, STAT_REQUESTED_BYTES, block->pool, -(int64_t)block->requested_bytes);
}

/* One event for each stream in the set, which is emptied. */
static void record_events(oracle *o, oracle_block *block)
{
    for (size_t i = 0; i < block->users.count; i++) {
        block->event_streams.items[i] = block->users.items[i];
        block->events[i] = ++o->event_number;
    }
    block->event_streams.count = block->users.count;
    block->users.count = block->redirected_users.count = 0;
}

/* 4.1 */
uf_status oracle_free(oracle *o, uint64_t addr, uf_error *error)
{
    if (addr == 0) {
        return UF_OK;
    }
    oracle_block *block = find_allocated(o, addr);
    if (block == NULL) {
        return uf__error_set(error, UF_ERROR_FOREIGN_POINTER, "0x%" PRIx64 " is not allocated",
                             addr);
    }
    oracle_stat_change(o, STAT_ALLOCATION, block->pool, -1);
    oracle_stat_change(o, STAT_ALLOCATED_BYTES, block->pool, -(int64_t)block->size_bytes);
    oracle_event(o, UF_ACTION_FREE_REQUESTED, addr, block->requested_bytes, block->stream);
    if (block->size_bytes >= o->conf.max_split_size_bytes) {
        oracle_stat_oversize(o, STAT_OVERSIZE_ALLOCATIONS, -1);
    }
    if (block->users.count == 0) {
        complete(o, block);
        return UF_OK;
    }
    block->state = ORACLE_WAITING;
    block->freed_number = ++o->freed_number;
    if (o->redirection_count > 0) {
        block->is_deferred = true;
    } else {
        record_events(o, block);
    }
    return UF_OK;
}

/* 4.4 */
uf_status oracle_record_stream(oracle *o, uint64_t addr, uint64_t stream, uf_error *error)
{
    oracle_block *block = find_allocated(o, addr);
    if (block == NULL || stream == block->stream) {
        return UF_OK;
    }
    bool has_room = oracle_streams_add(&block->users, stream);
    if (o->redirection_count > 0) {
        has_room = has_room && oracle_streams_add(&block->redirected_users, stream);
    }
    if (!has_room) {
        return uf__error_set(error, UF_ERROR_UNSUPPORTED, "the oracle tracks %d streams a block",
                             ORACLE_STREAM_MAX);
    }
    return UF_OK;
}

static bool event_is_done(const oracle *o, uint64_t stream, uint64_t number)
{
    for (size_t i = 0; i < o->done_streams.count; i++) {
        if (o->done_streams.items[i] == stream && o->done_numbers[i] >= number) {
            return true;
        }
    }
    return o->done_number >= number;
}

static bool events_are_done(const oracle *o, const oracle_block *block)
{
    for (size_t i = 0; i < block->event_streams.count; i++) {
        if (!event_is_done(o, block->event_streams.items[i], block->events[i])) {
            return false;
        }
    }
    return true;
}

/* Removes the streams that were added during a redirection. */
static void drop_redirected_users(oracle_block *block)
{
    size_t kept = 0;
    for (size_t i = 0; i < block->users.count; i++) {
        if (!oracle_streams_has(&block->redirected_users, block->users.items[i])) {
            block->users.items[kept++] = block->users.items[i];
        }
    }
    block->users.count = kept;
    block->redirected_users.count = 0;
}

/* Which waiting blocks a batch completes. */
typedef struct batch {
    bool (*is_ready)(const oracle *o, const oracle_block *block, const oracle_pair *only);
    const oracle_pair *only;
} batch;

static bool is_ready_without_users(const oracle *o, const oracle_block *block,
                                   const oracle_pair *only)
{
    (void)o;
    (void)only;
    return block->is_deferred && block->users.count == 0;
}

static bool is_ready_by_events(const oracle *o, const oracle_block *block, const oracle_pair *only)
{
    (void)only;
    return !block->is_deferred && events_are_done(o, block);
}

static bool is_ready_by_waiting(const oracle *o, const oracle_block *block, const oracle_pair *only)
{
    (void)o;
    return !block->is_deferred && (only == NULL || block->pool->pair == only);
}

/* Everything up to event number on a stream is complete. */
static bool stream_done(oracle *o, uint64_t stream, uint64_t number)
{
    size_t known = o->done_streams.count;
    if (!oracle_streams_add(&o->done_streams, stream)) {
        return false;
    }
    for (size_t i = 0; i < o->done_streams.count; i++) {
        if (i == known) {
            o->done_numbers[i] = 0;
        }
        if (o->done_streams.items[i] == stream && o->done_numbers[i] < number) {
            o->done_numbers[i] = number;
        }
    }
    return true;
}

/* Chooses among the ready blocks: the host's wish, else the one freed first. */
static oracle_block *choose(const oracle *o, const batch *b, uint64_t *addrs)
{
    oracle_block *chosen = NULL;
    size_t count = 0;
    for (size_t i = 0; i < o->block_count; i++) {
        oracle_block *block = o->blocks[i];
        if (block->state == ORACLE_WAITING && b->is_ready(o, block, b->only)) {
            addrs[count++] = block->addr;
            if (chosen == NULL || block->freed_number < chosen->freed_number) {
                chosen = block;
            }
        }
    }
    uint64_t wish = 0;
    const model_host *host = &o->config.host;
    if (count < 2 || host->completion == NULL ||
        !host->completion(host->context, addrs, count, &wish)) {
        return chosen;
    }
    for (size_t i = 0; i < o->block_count; i++) {
        oracle_block *block = o->blocks[i];
        if (block->state == ORACLE_WAITING && block->addr == wish &&
            b->is_ready(o, block, b->only)) {
            return block;
        }
    }
    return chosen;
}

static void complete_batch(oracle *o, const batch *b)
{
    uint64_t *addrs = malloc((o->block_count + 1) * sizeof *addrs);
    if (addrs == NULL) {
        exit(5);
    }
    oracle_block *block = choose(o, b, addrs);
    while (block != NULL) {
        complete(o, block);
        block = choose(o, b, addrs);
    }
    free(addrs);
}

/* The deferred block that was freed first, or NULL. The recording of events in that order is a
 * choice: PyTorch's is a hash order. */
static oracle_block *first_deferred(const oracle *o)
{
    oracle_block *first = NULL;
    for (size_t i = 0; i < o->block_count; i++) {
        oracle_block *block = o->blocks[i];
        if (block->state == ORACLE_WAITING && block->is_deferred &&
            (first == NULL || block->freed_number < first->freed_number)) {
            first = block;
        }
    }
    return first;
}

/* 4.6, the end of the deferral. */
static void end_deferral(oracle *o)
{
    for (size_t i = 0; i < o->block_count; i++) {
        if (o->blocks[i]->state == ORACLE_WAITING && o->blocks[i]->is_deferred) {
            drop_redirected_users(o->blocks[i]);
        }
    }
    complete_batch(o, &(batch){is_ready_without_users, NULL});
    for (oracle_block *block = first_deferred(o); block != NULL; block = first_deferred(o)) {
        record_events(o, block);
        block->is_deferred = false;
    }
}

/* 4.4, the routine step before an allocation without redirection. */
void oracle_process_events(oracle *o)
{
    end_deferral(o);
    complete_batch(o, &(batch){is_ready_by_events, NULL});
}

/* 4.5; only = NULL waits for all pools' blocks. */
void oracle_wait_for_events(oracle *o, const oracle_pair *only)
{
    o->stats[STAT_NUM_SYNC_ALL_STREAMS]++;
    end_deferral(o);
    for (size_t i = 0; i < o->block_count; i++) {
        const oracle_block *block = o->blocks[i];
        if (block->state == ORACLE_WAITING && (only == NULL || block->pool->pair == only)) {
            for (size_t k = 0; k < block->event_streams.count; k++) {
                (void)stream_done(o, block->event_streams.items[k], block->events[k]);
            }
        }
    }
    complete_batch(o, &(batch){is_ready_by_waiting, only});
}

uf_status oracle_synchronize(oracle *o, bool is_all, uint64_t stream)
{
    if (is_all) {
        o->done_number = o->event_number;
        return UF_OK;
    }
    return stream_done(o, stream, o->event_number) ? UF_OK : UF_ERROR_UNSUPPORTED;
}
