/* SPDX-License-Identifier: MIT
 *
 * The allocator's common path: search, split, hand out, free, merge. Section numbers refer to the
 * description of PyTorch's allocator in docs/internals/torch-policy.md. */
#include "alloc/core.h"

#include <stdlib.h>
#include <string.h>

#include "alloc/paging.h"
#include "alloc/parts.h"
#include "alloc/rounding.h"

/* The common path is one piece of code in each of its two entries: what calls cost would be a third
 * of it. */
#define UF_ALWAYS_INLINE static inline __attribute__((always_inline))

static inline uint64_t effective_bytes(const uf_block *blocks, uint32_t index)
{
    const uf_block *block = &blocks[index];
    uint64_t bytes = block->size_bytes;
    if (block->next != UF_NO_BLOCK && !blocks[block->next].is_mapped) {
        bytes += blocks[block->next].size_bytes;
    }
    return bytes;
}

/* Step 2 of the search: the shelf has regions, so candidates may be expandable. */
static uint32_t choose_among_regions(const uf_core *core, const uf_shelf *shelf, uint32_t index,
                                     bool is_expandable)
{
    const uf_block *blocks = core->blocks.items;
    if (!is_expandable) {
        while (index != UF_NO_BLOCK && blocks[index].region != 0) {
            index = uf__freeset_after(&shelf->cached, blocks, index);
        }
        return index;
    }
    while (blocks[index].region != 0) {
        uint32_t after = uf__freeset_after(&shelf->cached, blocks, index);
        if (after == UF_NO_BLOCK ||
            effective_bytes(blocks, after) >= effective_bytes(blocks, index)) {
            break;
        }
        index = after;
    }
    return index;
}

/* What the search makes of the first block that is large enough. */
static inline uint32_t accept(const uf_core *core, const uf_shelf *shelf, uint32_t index,
                              uint64_t rounded_bytes, bool is_expandable)
{
    const uf_block *blocks = core->blocks.items;
    if (__builtin_expect(blocks[index].region != 0, 0) && core->paging == NULL) {
        index = choose_among_regions(core, shelf, index, is_expandable);
        if (index == UF_NO_BLOCK) {
            return UF_NO_BLOCK;
        }
    }
    uint64_t max_split = core->conf.max_split_size_bytes;
    uint64_t size_bytes = blocks[index].size_bytes;
    if (rounded_bytes < max_split) {
        return size_bytes >= max_split ? UF_NO_BLOCK : index;
    }
    uint64_t rounding = core->conf.max_non_split_rounding_bytes;
    bool is_too_large =
        rounding < UINT64_MAX - rounded_bytes && size_bytes >= rounded_bytes + rounding;
    return is_too_large ? UF_NO_BLOCK : index;
}

uint32_t uf__core_search(const uf_core *core, const uf_shelf *shelf, uint64_t rounded_bytes,
                         bool is_expandable)
{
    uint32_t index = uf__freeset_at_least(&shelf->cached, core->blocks.items, rounded_bytes, 0);
    return index == UF_NO_BLOCK ? UF_NO_BLOCK
                                : accept(core, shelf, index, rounded_bytes, is_expandable);
}

static inline bool is_gc_armed(const uf_core *core)
{
    return core->limit_bytes != UF_UNLIMITED && core->conf.garbage_collection_threshold > 0.0;
}

/* The common path's own copies of find, shelve and merge are inlined: together they are most of an
 * allocation. */
UF_ALWAYS_INLINE uint32_t find(uf_core *core, const uf_request *request, uint32_t shelf_index)
{
    uf_shelf *shelf = core->shelves[shelf_index];
    if (is_gc_armed(core)) {
        core->pools[shelf->pool].classes[shelf->pool_class].search_count++;
    }
    uf_block *blocks = core->blocks.items;
    uint64_t rounded_bytes = request->rounded_bytes;
    uf_freeset_spot spot;
    uint32_t first = uf__freeset_find(&shelf->cached, blocks, rounded_bytes, &spot);
    if (first == UF_NO_BLOCK) {
        return UF_NO_BLOCK;
    }
    uint32_t index = accept(core, shelf, first, rounded_bytes, request->is_expandable);
    if (index == first) {
        uf__freeset_remove_at(&shelf->cached, blocks, spot);
    } else if (index != UF_NO_BLOCK) {
        uf__freeset_remove(&shelf->cached, blocks, index);
    }
    return index;
}

uint32_t uf__core_find(uf_core *core, const uf_request *request, uint32_t shelf_index)
{
    return find(core, request, shelf_index);
}

UF_ALWAYS_INLINE void shelve(uf_core *core, uint32_t index)
{
    uf_block *block = &core->blocks.items[index];
    uf_shelf *shelf = core->shelves[block->shelf];
    if (core->paging == NULL) {
        block->age_base = core->pools[shelf->pool].classes[shelf->pool_class].search_count;
    }
    uf__freeset_insert(&shelf->cached, core->blocks.items, index);
}

void uf__core_shelve(uf_core *core, uint32_t index)
{
    shelve(core, index);
}

static inline bool should_split(const uf_core *core, const uf_request *request,
                                const uf_shelf *shelf, const uf_block *block)
{
    uint64_t rest_bytes = block->size_bytes - request->rounded_bytes;
    if (rest_bytes < UF_MIN_BLOCK_BYTES || core->pools[shelf->pool].is_no_split) {
        return block->region != 0 && core->paging != NULL && rest_bytes >= UF_MIN_BLOCK_BYTES;
    }
    if (shelf->pool_class == UF_CLASS_SMALL || request->is_expandable) {
        return true;
    }
    return request->rounded_bytes < core->conf.max_split_size_bytes &&
           rest_bytes > UF_SMALL_MAX_BYTES;
}

/* Cuts the front of a block off as a block of its own; the old one becomes the rest, keeps its
 * stale requested size and goes back to the free set. */
UF_ALWAYS_INLINE uint32_t split(uf_core *core, uint32_t index, uint64_t front_bytes)
{
    uint32_t front_index = uf__block_take(&core->blocks);
    uf_block *blocks = core->blocks.items;
    uf_block *rest = &blocks[index], *front = &blocks[front_index];
    *front = (uf_block){.addr = rest->addr,
                        .size_bytes = front_bytes,
                        .prev = rest->prev,
                        .next = index,
                        .shelf = rest->shelf,
                        .region = rest->region,
                        .is_mapped = true};
    if (rest->prev != UF_NO_BLOCK) {
        blocks[rest->prev].next = front_index;
    }
    rest->prev = front_index;
    rest->addr += front_bytes;
    rest->size_bytes -= front_bytes;
    rest->life = UF_LIFE_FREE;
    shelve(core, index);
    return front_index;
}

/* Spec 2.5: splits if told, marks, counts. The block is in no set. */
UF_ALWAYS_INLINE uint32_t hand_out(uf_core *core, uint32_t index, uint64_t rounded_bytes,
                                   uint64_t requested_bytes, bool is_cut)
{
    uf_block *block = &core->blocks.items[index];
    const uf_shelf *shelf = core->shelves[block->shelf];
    uf_counters *counters = &core->counters;
    int c = shelf->pool_class;
    int64_t was_split = uf__block_is_split(block), is_plain = block->region == 0;
    int64_t size_bytes = (int64_t)block->size_bytes, net = -was_split, net_bytes;
    net_bytes = -was_split * size_bytes;
    if (is_cut) {
        index = split(core, index, rounded_bytes);
        net += 1; /* the rest is one more, whose bytes stay */
        net_bytes += size_bytes - (int64_t)rounded_bytes;
        block = &core->blocks.items[index];
    }
    uf__counter_change(counters, UF_COUNTER_INACTIVE_SPLIT, c, is_plain * net);
    uf__counter_change(counters, UF_COUNTER_INACTIVE_SPLIT_BYTES, c, is_plain * net_bytes);
    block->life = UF_LIFE_ALLOCATED;
    block->requested_bytes = requested_bytes;
    uf__emit(core, UF_ACTION_ALLOC, block->addr, requested_bytes, uf__shelf_stream(core, shelf));
    uf__counters_hand_out(counters, c, block->size_bytes, requested_bytes);
    if (block->size_bytes >= core->conf.max_split_size_bytes) {
        uf__counter_single_increase(&counters->oversize_allocations);
    }
    return index;
}

static inline uf_status request_init(uf_core *core, uf_request *request, uint64_t bytes,
                                     uint32_t stream, uint32_t pool)
{
    uint64_t rounded = uf__round_request(&core->conf, bytes);
    request->bytes = bytes;
    request->rounded_bytes = rounded;
    request->stream = stream;
    request->pool = pool;
    request->pool_class = rounded <= UF_SMALL_MAX_BYTES ? UF_CLASS_SMALL : UF_CLASS_LARGE;
    request->is_expandable = uf__core_can_expand(core, pool) || uf__core_is_paged(core, pool);
    const uf_pool_class *pool_class = &core->pools[pool].classes[request->pool_class];
    if (__builtin_expect(
            stream < pool_class->stream_capacity && pool_class->shelf_of_stream[stream] != 0, 1)) {
        request->shelf = pool_class->shelf_of_stream[stream] - 1;
        return UF_OK;
    }
    return uf__shelf_get(core, pool, request->pool_class, stream, &request->shelf);
}

uf_status uf__core_alloc(uf_core *core, uint64_t bytes, uint32_t stream, uint32_t pool,
                         uint32_t *block)
{
    if (bytes >= UF_REQUEST_LIMIT_BYTES) {
        return UF_ERROR_REQUEST_TOO_LARGE;
    }
    if (!uf__block_reserve(&core->blocks, UF_BLOCKS_PER_REQUEST)) {
        return UF_ERROR_HOST_MEMORY;
    }
    uf_request request;
    uf_status status = request_init(core, &request, bytes, stream, pool);
    if (status != UF_OK) {
        return status;
    }
    uint32_t index = find(core, &request, request.shelf);
    if (__builtin_expect(core->pools[pool].is_plain, 0)) {
        status = uf__plain_serve(core, &request, &index);
    } else if (__builtin_expect(core->paging != NULL, 0)) {
        if (index == UF_NO_BLOCK || !uf__paged_is_ready(core, &request, index)) {
            status = uf__paged_acquire(core, &request, &index);
            core->counters.num_cache_misses += status == UF_OK;
        }
    } else if (__builtin_expect(index == UF_NO_BLOCK, 0)) {
        request.segment_bytes = uf__segment_bytes(&core->conf, request.rounded_bytes);
        status = uf__core_acquire(core, &request, &index);
        core->counters.num_cache_misses += status == UF_OK;
    }
    if (status != UF_OK) {
        return status;
    }
    const uf_block *found = &core->blocks.items[index];
    bool is_cut = should_split(core, &request, core->shelves[found->shelf], found);
    *block = hand_out(core, index, request.rounded_bytes, bytes, is_cut);
    return UF_OK;
}

uf_status uf__core_reserve(uf_core *core, uint64_t bytes, uint32_t stream, uint32_t pool)
{
    uf_request request;
    if (!uf__block_reserve(&core->blocks, UF_BLOCKS_PER_REQUEST)) {
        return UF_ERROR_HOST_MEMORY;
    }
    uf_status status = request_init(core, &request, bytes, stream, pool);
    return status == UF_OK ? uf__paged_reserve(core, &request) : status;
}

uint32_t uf__core_hand_out(uf_core *core, uint32_t index, uint64_t size_bytes,
                           uint64_t requested_bytes)
{
    bool is_cut = core->blocks.items[index].size_bytes > size_bytes;
    return hand_out(core, index, size_bytes, requested_bytes, is_cut);
}

uint32_t uf__core_peek(const uf_core *core, uint64_t bytes, uint32_t stream, uint32_t pool)
{
    uint64_t rounded = uf__round_request(&core->conf, bytes);
    int pool_class = rounded <= UF_SMALL_MAX_BYTES ? UF_CLASS_SMALL : UF_CLASS_LARGE;
    const uf_pool_class *of = &core->pools[pool].classes[pool_class];
    if (stream >= of->stream_capacity || of->shelf_of_stream[stream] == 0) {
        return UF_NO_BLOCK;
    }
    return uf__core_search(core, core->shelves[of->shelf_of_stream[stream] - 1], rounded,
                           uf__core_can_expand(core, pool));
}

static inline bool can_absorb(const uf_block *blocks, uint32_t neighbour, bool is_mapped)
{
    return neighbour != UF_NO_BLOCK && blocks[neighbour].life == UF_LIFE_FREE &&
           blocks[neighbour].is_mapped == is_mapped;
}

static inline void leave_set(uf_core *core, uint32_t index)
{
    const uf_block *block = &core->blocks.items[index];
    if (block->is_mapped) {
        uf__freeset_remove(&core->shelves[block->shelf]->cached, core->blocks.items, index);
    } else {
        uf__unmapped_remove(core, index);
    }
}

UF_ALWAYS_INLINE uf_merged merge(uf_core *core, uint32_t index)
{
    uf_block *blocks = core->blocks.items;
    uf_block *block = &blocks[index];
    uf_merged merged = {0, 0};
    uint32_t prev = block->prev, next = block->next;
    if (can_absorb(blocks, prev, block->is_mapped)) {
        leave_set(core, prev);
        merged.prev_bytes = blocks[prev].size_bytes;
        block->addr = blocks[prev].addr;
        block->size_bytes += merged.prev_bytes;
        block->prev = blocks[prev].prev;
        if (block->prev != UF_NO_BLOCK) {
            blocks[block->prev].next = index;
        }
        uf__block_give(&core->blocks, prev);
    }
    if (can_absorb(blocks, next, block->is_mapped)) {
        leave_set(core, next);
        merged.next_bytes = blocks[next].size_bytes;
        block->size_bytes += merged.next_bytes;
        block->next = blocks[next].next;
        if (block->next != UF_NO_BLOCK) {
            blocks[block->next].prev = index;
        }
        uf__block_give(&core->blocks, next);
    }
    return merged;
}

uf_merged uf__core_merge(uf_core *core, uint32_t index)
{
    return merge(core, index);
}

/* Makes a block a free one, merged with its neighbours. */
UF_ALWAYS_INLINE uf_merged give_to_shelf(uf_core *core, uint32_t index)
{
    uf_block *block = &core->blocks.items[index];
    bool is_paged = core->paging != NULL && block->region != 0;
    uint64_t backed_end = is_paged ? uf__paged_backed_end(core, index) : 0;
    uf_merged merged = merge(core, index);
    block->life = UF_LIFE_FREE;
    if (is_paged) {
        uf__paged_freed(core, index, backed_end);
    }
    shelve(core, index);
    return merged;
}

UF_ALWAYS_INLINE void complete(uf_core *core, uint32_t index)
{
    uf_block *block = &core->blocks.items[index];
    const uf_shelf *shelf = core->shelves[block->shelf];
    uf_counters *counters = &core->counters;
    uint64_t size_bytes = block->size_bytes, requested_bytes = block->requested_bytes;
    int c = shelf->pool_class;
    uf__emit(core, UF_ACTION_FREE_COMPLETED, block->addr, requested_bytes,
             uf__shelf_stream(core, shelf));
    uf_merged merged = give_to_shelf(core, index);
    if (block->region == 0) {
        int64_t net = -(int64_t)(merged.prev_bytes != 0) - (int64_t)(merged.next_bytes != 0);
        int64_t net_bytes = -(int64_t)(merged.prev_bytes + merged.next_bytes);
        int64_t is_split = uf__block_is_split(block);
        net += is_split;
        net_bytes += is_split * (int64_t)block->size_bytes;
        uf__counter_change(counters, UF_COUNTER_INACTIVE_SPLIT, c, net);
        uf__counter_change(counters, UF_COUNTER_INACTIVE_SPLIT_BYTES, c, net_bytes);
    }
    uf__counter_decrease(counters, UF_COUNTER_ACTIVE, c, 1);
    uf__counter_decrease(counters, UF_COUNTER_ACTIVE_BYTES, c, size_bytes);
    uf__counter_decrease(counters, UF_COUNTER_REQUESTED_BYTES, c, requested_bytes);
}

void uf__core_complete_block(uf_core *core, uint32_t index)
{
    complete(core, index);
}

uf_status uf__core_free(uf_core *core, uint32_t index)
{
    uf_block *block = &core->blocks.items[index];
    /* Whether they can be merged is asked soon, and they are likely not in the cache. */
    __builtin_prefetch(&core->blocks.items[block->prev]);
    __builtin_prefetch(&core->blocks.items[block->next]);
    const uf_shelf *shelf = core->shelves[block->shelf];
    uf_counters *counters = &core->counters;
    uf__counter_decrease(counters, UF_COUNTER_ALLOCATION, shelf->pool_class, 1);
    uf__counter_decrease(counters, UF_COUNTER_ALLOCATED_BYTES, shelf->pool_class,
                         block->size_bytes);
    uf__emit(core, UF_ACTION_FREE_REQUESTED, block->addr, block->requested_bytes,
             uf__shelf_stream(core, shelf));
    if (block->size_bytes >= core->conf.max_split_size_bytes) {
        uf__counter_single_decrease(&counters->oversize_allocations);
    }
    if (__builtin_expect(block->uses != 0, 0)) {
        return uf__pending_free(core, index);
    }
    complete(core, index);
    return UF_OK;
}

bool uf__core_can_set_aside(const uf_core *core, uint32_t index)
{
    const uf_block *blocks = core->blocks.items, *block = &blocks[index];
    uint64_t rest_bytes =
        can_absorb(blocks, block->next, true) ? blocks[block->next].size_bytes : 0;
    /* A block in front would be merged too; pools may be gone; ages and oversize counts would tell,
     * and of an oversize block no piece would be cut; what waits is looked at before each
     * allocation. */
    return core->shelves[block->shelf]->pool == UF_DEFAULT_POOL && block->uses == 0 &&
           !can_absorb(blocks, block->prev, true) &&
           core->conf.garbage_collection_threshold <= 0.0 &&
           block->size_bytes + rest_bytes < core->conf.max_split_size_bytes &&
           (core->pending.first | core->deferred.first) == 0;
}

/* What freeing the block does to the statistics of split segments; allocating it does the reverse.
 */
static inline void count_split(uf_core *core, const uf_block *block, int pool_class, int64_t sign)
{
    const uf_block *blocks = core->blocks.items;
    if (block->region != 0) {
        return;
    }
    bool has_rest = can_absorb(blocks, block->next, true);
    int64_t rest_bytes = has_rest ? (int64_t)blocks[block->next].size_bytes : 0;
    uint32_t behind = has_rest ? blocks[block->next].next : block->next;
    int64_t is_split = block->prev != UF_NO_BLOCK || behind != UF_NO_BLOCK;
    int64_t net_bytes = is_split * ((int64_t)block->size_bytes + rest_bytes) - rest_bytes;
    uf__counter_change(&core->counters, UF_COUNTER_INACTIVE_SPLIT, pool_class,
                       sign * (is_split - has_rest));
    uf__counter_change(&core->counters, UF_COUNTER_INACTIVE_SPLIT_BYTES, pool_class,
                       sign * net_bytes);
}

void uf__core_set_aside(uf_core *core, uint32_t index)
{
    const uf_block *block = &core->blocks.items[index];
    const uf_shelf *shelf = core->shelves[block->shelf];
    uf_counters *counters = &core->counters;
    int c = shelf->pool_class;
    uf__counter_decrease(counters, UF_COUNTER_ALLOCATION, c, 1);
    uf__counter_decrease(counters, UF_COUNTER_ALLOCATED_BYTES, c, block->size_bytes);
    uf__emit(core, UF_ACTION_FREE_REQUESTED, block->addr, block->requested_bytes,
             uf__shelf_stream(core, shelf));
    uf__emit(core, UF_ACTION_FREE_COMPLETED, block->addr, block->requested_bytes,
             uf__shelf_stream(core, shelf));
    count_split(core, block, c, 1);
    uf__counter_decrease(counters, UF_COUNTER_ACTIVE, c, 1);
    uf__counter_decrease(counters, UF_COUNTER_ACTIVE_BYTES, c, block->size_bytes);
    uf__counter_decrease(counters, UF_COUNTER_REQUESTED_BYTES, c, block->requested_bytes);
}

void uf__core_take_up(uf_core *core, uint32_t index)
{
    uf_block *blocks = core->blocks.items, *block = &blocks[index];
    const uf_shelf *shelf = core->shelves[block->shelf];
    if (block->region == 0 || core->paging == NULL) {
        /* What is left of a merged block keeps the size that was requested of it last. */
        uint64_t *stale = &blocks[block->next].requested_bytes;
        *stale = can_absorb(blocks, block->next, true) ? block->requested_bytes : *stale;
    }
    count_split(core, block, shelf->pool_class, -1);
    uf__emit(core, UF_ACTION_ALLOC, block->addr, block->requested_bytes,
             uf__shelf_stream(core, shelf));
    uf__counters_hand_out(&core->counters, shelf->pool_class, block->size_bytes,
                          block->requested_bytes);
}

void uf__core_shelve_aside(uf_core *core, uint32_t index)
{
    (void)give_to_shelf(core, index);
}

/* Under the unfrag policy only the rounding of sizes counts; the rest is about whole segments. */
static void take_conf(uf_core *core, const uf_conf *conf)
{
    if (core->paging == NULL) {
        core->conf = *conf;
        return;
    }
    uf__conf_init(&core->conf);
    core->conf.per_process_memory_fraction = conf->per_process_memory_fraction;
    memcpy(core->conf.roundup_power2_divisions, conf->roundup_power2_divisions,
           sizeof core->conf.roundup_power2_divisions);
}

uf_status uf__core_init(uf_core *core, const uf_core_config *config)
{
    memset(core, 0, sizeof *core);
    core->device = config->device;
    core->event_hook = config->event_hook;
    core->event_context = config->event_context;
    core->order_hook = config->order_hook;
    core->order_context = config->order_context;
    uf__conf_init(&core->conf);
    if (config->is_paged) {
        uf_status status = uf__paging_init(core, config->granule_bytes, config->large_page_bytes);
        if (status != UF_OK) {
            return status;
        }
        uf__paging_settings(core, config);
    }
    if (config->conf != NULL) {
        take_conf(core, config->conf);
    }
    core->max_split_size_at_start = (int64_t)core->conf.max_split_size_bytes;
    core->device_total_bytes = config->device_total_bytes;
    if (core->device_total_bytes == 0) {
        uint64_t free_bytes;
        uf_status status = core->device->memory_info(core->device->context, &free_bytes,
                                                     &core->device_total_bytes);
        if (status != UF_OK) {
            uf__paging_fini(core);
            return status;
        }
    }
    core->limit_bytes = UF_UNLIMITED;
    uint32_t stream, pool;
    if (!uf__block_table_init(&core->blocks) || uf__core_pool_create(core, 0, 0, &pool) != UF_OK ||
        uf__core_stream(core, 0, &stream) != UF_OK) {
        uf__core_fini(core);
        return UF_ERROR_HOST_MEMORY;
    }
    if (config->limit_bytes != 0) {
        core->limit_bytes = config->limit_bytes;
        return UF_OK;
    }
    return uf__core_fraction_set(core, core->conf.per_process_memory_fraction);
}

void uf__core_limit_set(uf_core *core, uint64_t limit_bytes)
{
    core->limit_bytes = limit_bytes;
}

uf_status uf__core_fraction_set(uf_core *core, double fraction)
{
    if (!(fraction >= 0.0 && fraction <= 1.0)) {
        return UF_ERROR_INVALID_ARGUMENT;
    }
    core->limit_bytes =
        fraction < 1.0 ? (uint64_t)(fraction * (double)core->device_total_bytes) : UF_UNLIMITED;
    return UF_OK;
}

void uf__core_conf_set(uf_core *core, const uf_conf *conf)
{
    take_conf(core, conf);
}

uint64_t uf__core_device_free_bytes(const uf_core *core)
{
    uint64_t free_bytes = 0, total_bytes = 0;
    if (core->device->memory_info(core->device->context, &free_bytes, &total_bytes) != UF_OK) {
        return 0;
    }
    return free_bytes;
}
