/* SPDX-License-Identifier: MIT
 *
 * Fills a page with the numbers of an allocator. Runs in two parts: what needs the allocator's lock
 * (look_locked), and what is done with it afterwards. */
#include "publish/sample.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "alloc/largest.h"
#include "alloc/paging.h"
#include "alloc/take.h"

static const int64_t ROWS_SHARE = 200, HISTORY_NS = 1000000000;

static int64_t clock_ns(void)
{
    struct timespec now;
    return clock_gettime(CLOCK_MONOTONIC, &now) == 0
               ? (int64_t)now.tv_sec * 1000000000 + now.tv_nsec
               : 0;
}

void uf__sampler_fini(uf_sampler *sampler)
{
    free(sampler->pools);
    free(sampler->streams);
    memset(sampler, 0, sizeof *sampler);
}

/* What one look at a core is to do, and what it found. */
typedef struct look {
    uf_sampler *sampler;
    uf_monitor_page *page;
    int64_t now_ns;
    bool has_rows;
} look;

static bool make_room(uf_sampler *sampler, const uf_core *core)
{
    if (core->pool_count > sampler->pool_capacity) {
        void *grown = realloc(sampler->pools, core->pool_count * sizeof *sampler->pools);
        if (grown == NULL) {
            return false;
        }
        sampler->pools = grown;
        sampler->pool_capacity = core->pool_count;
    }
    if (core->stream_count > sampler->stream_capacity) {
        void *grown = realloc(sampler->streams, core->stream_count * sizeof *sampler->streams);
        if (grown == NULL) {
            return false;
        }
        sampler->streams = grown;
        sampler->stream_capacity = core->stream_count;
    }
    return true;
}

static void begin_rows(uf_sampler *sampler, const uf_core *core)
{
    sampler->pool_count = core->pool_count;
    sampler->stream_count = core->stream_count;
    for (uint32_t i = 0; i < core->pool_count; i++) {
        const uf_pool *pool = &core->pools[i];
        uint32_t flags =
            (i != UF_DEFAULT_POOL ? UF_MONITOR_POOL_PRIVATE : 0u) |
            (pool->is_no_split ? UF_MONITOR_POOL_NO_SPLIT : 0u) |
            (pool->is_use_on_oom ? UF_MONITOR_POOL_USE_ON_OOM : 0u) |
            (i != UF_DEFAULT_POOL && pool->use_count == 0 ? UF_MONITOR_POOL_DESTROYED : 0u);
        sampler->pools[i] = (uf_monitor_pool_row){
            .id = {pool->id[0], pool->id[1]},
            .reserved_bytes = core->paging != NULL ? pool->mapped_bytes : 0,
            .flags = flags,
        };
    }
    if (core->paging != NULL) { /* the core counts pages of private pools alone */
        uint64_t others = 0;
        for (uint32_t i = 1; i < core->pool_count; i++) {
            others += core->pools[i].mapped_bytes;
        }
        sampler->pools[UF_DEFAULT_POOL].reserved_bytes = core->total_bytes - others;
    }
    for (uint32_t i = 0; i < core->stream_count; i++) {
        /* Pages of a hole belong to no stream in particular. */
        sampler->streams[i] = (uf_monitor_stream_row){
            .stream = core->streams[i],
            .reserved_bytes = core->paging != NULL ? UF_MONITOR_UNKNOWN : 0,
        };
    }
}

/* Bytes of a cached block that can be given back to the driver at once. */
static uint64_t releasable_bytes(const uf_core *core, const uf_block *block)
{
    if (core->shelves[block->shelf]->pool != UF_DEFAULT_POOL) {
        return 0;
    }
    if (block->region == 0) {
        return uf__block_is_split(block) ? 0 : block->size_bytes;
    }
    uint64_t page_bytes = core->regions[block->region].page_bytes;
    uint64_t from = block->addr - core->regions[block->region].addr, to = from + block->size_bytes;
    from = (from + page_bytes - 1) / page_bytes;
    to /= page_bytes;
    return to > from ? (to - from) * page_bytes : 0;
}

/* Returns the bytes that could be given back, of a core without paging. */
static uint64_t count_blocks(uf_sampler *sampler, const uf_core *core)
{
    uint64_t releasable = 0;
    bool is_paged = core->paging != NULL;
    for (uint32_t i = 1; i < core->blocks.count; i++) {
        const uf_block *block = &core->blocks.items[i];
        if (block->life == UF_LIFE_UNUSED || block->life == UF_LIFE_SHADOW) {
            continue;
        }
        const uf_shelf *shelf = core->shelves[block->shelf];
        uf_monitor_pool_row *pool = &sampler->pools[shelf->pool];
        uf_monitor_stream_row *stream = &sampler->streams[shelf->stream];
        if (!is_paged && block->is_mapped) {
            pool->reserved_bytes += block->size_bytes;
            stream->reserved_bytes += block->size_bytes;
        }
        if (block->region == 0 && block->prev == UF_NO_BLOCK) {
            pool->segment_count++;
            stream->segment_count++;
        }
        if (block->life == UF_LIFE_FREE) {
            releasable += !is_paged && block->is_mapped ? releasable_bytes(core, block) : 0;
            continue;
        }
        pool->block_count++;
        stream->block_count++;
        pool->active_bytes += block->size_bytes;
        stream->active_bytes += block->size_bytes;
        pool->requested_bytes += block->requested_bytes;
        stream->requested_bytes += block->requested_bytes;
        if (block->life == UF_LIFE_ALLOCATED) {
            pool->allocated_bytes += block->size_bytes;
            stream->allocated_bytes += block->size_bytes;
        }
    }
    return releasable;
}

static void count_regions(uf_sampler *sampler, const uf_core *core)
{
    for (uint32_t i = 1; i < core->region_count; i++) {
        const uf_region *region = &core->regions[i];
        if (region->page_bytes != 0) {
            const uf_shelf *shelf = core->shelves[region->shelf];
            sampler->pools[shelf->pool].segment_count++;
            sampler->streams[shelf->stream].segment_count++;
        }
    }
}

static uint64_t room_bytes(const uf_core *core, const uf_monitor_page *page)
{
    uint64_t room = core->limit_bytes == UF_UNLIMITED       ? UINT64_MAX
                    : core->total_bytes < core->limit_bytes ? core->limit_bytes - core->total_bytes
                                                            : 0;
    return page->device_free_bytes < room ? page->device_free_bytes : room;
}

/* What a request can have at most; not known if the device does not tell and no limit is set. */
static uint64_t allocatable_bytes(const uf_core *core, const uf_monitor_page *page,
                                  uint64_t releasable)
{
    uint64_t room = room_bytes(core, page);
    if (room == UF_MONITOR_UNKNOWN) {
        return UF_MONITOR_UNKNOWN;
    }
    if (core->paging == NULL) {
        uint64_t fresh = room + releasable;
        return fresh > page->largest_request_bytes ? fresh : page->largest_request_bytes;
    }
    uint64_t available = uf__take_available_bytes(core);
    if (core->limit_bytes != UF_UNLIMITED && core->total_bytes < core->limit_bytes) {
        available -= core->limit_bytes - core->total_bytes; /* it counts the room, too */
    }
    return available + room;
}

static void ask_device(const uf_core *core, uf_monitor_page *page)
{
    uint64_t free_bytes, total_bytes;
    bool is_known =
        core->device->memory_info(core->device->context, &free_bytes, &total_bytes) == UF_OK;
    page->device_free_bytes = is_known ? free_bytes : UF_MONITOR_UNKNOWN;
    page->device_total_bytes = core->device_total_bytes;
}

static uf_status look_locked(void *context, const uf_allocator_view *view)
{
    look *seen = context;
    uf_monitor_page *page = seen->page;
    const uf_core *core = view->core;
    memset(page->conf, 0, sizeof page->conf);
    strncpy(page->conf, view->conf, sizeof page->conf - 1);
    memset(page->policy, 0, sizeof page->policy);
    strcpy(page->policy, core->paging != NULL ? "unfrag" : "torch");
    page->device_index = view->device_index;
    page->limit_bytes = core->limit_bytes == UF_UNLIMITED ? 0 : core->limit_bytes;
    uf__core_stats(core, &page->stats);
    page->cache_miss_count = (uint64_t)core->counters.num_cache_misses;
    page->cache_hit_count =
        (uint64_t)(page->stats.allocation.all.allocated - core->counters.num_cache_misses);
    page->remap_count = core->paging != NULL ? core->paging->moved_count : 0;
    page->frozen_bytes = core->paging != NULL ? uf__paging_frozen_bytes(core) : 0;
    ask_device(core, page);
    if (seen->now_ns < seen->sampler->next_rows_ns || !make_room(seen->sampler, core)) {
        return UF_OK;
    }
    int64_t start_ns = clock_ns();
    begin_rows(seen->sampler, core);
    uint64_t releasable = count_blocks(seen->sampler, core);
    count_regions(seen->sampler, core);
    page->largest_request_bytes = uf__largest_request_bytes(core);
    page->largest_allocatable_bytes = allocatable_bytes(core, page, releasable);
    seen->has_rows = true;
    seen->sampler->next_rows_ns = seen->now_ns + ROWS_SHARE * (clock_ns() - start_ns);
    return UF_OK;
}

/* The largest first, by what is reserved, then by what is active. */
static int compare_bytes(uint64_t a_reserved, uint64_t b_reserved, uint64_t a_active,
                         uint64_t b_active)
{
    if (a_reserved != b_reserved) {
        return a_reserved < b_reserved ? 1 : -1;
    }
    return (a_active < b_active) - (a_active > b_active);
}

static int compare_pools(const void *left, const void *right)
{
    const uf_monitor_pool_row *a = left, *b = right;
    int order =
        compare_bytes(a->reserved_bytes, b->reserved_bytes, a->active_bytes, b->active_bytes);
    return order != 0 ? order : (a->id[1] > b->id[1]) - (a->id[1] < b->id[1]);
}

static int compare_streams(const void *left, const void *right)
{
    const uf_monitor_stream_row *a = left, *b = right;
    int order =
        compare_bytes(a->reserved_bytes, b->reserved_bytes, a->active_bytes, b->active_bytes);
    return order != 0 ? order : (a->stream > b->stream) - (a->stream < b->stream);
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static void show_rows(uf_sampler *sampler, uf_monitor_page *page)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < sampler->pool_count; i++) {
        /* The slot of a pool that was forgotten has no segments and no blocks. */
        const uf_monitor_pool_row row = sampler->pools[i];
        if (row.reserved_bytes != 0 || row.block_count != 0 ||
            (row.flags & UF_MONITOR_POOL_DESTROYED) == 0) {
            sampler->pools[count++] = row;
        }
    }
    page->pool_count = count;
    qsort(sampler->pools, count, sizeof *sampler->pools, compare_pools);
    count = 0;
    for (uint32_t i = 0; i < sampler->stream_count; i++) {
        const uf_monitor_stream_row row = sampler->streams[i];
        if (row.reserved_bytes != 0 || row.block_count != 0) {
            sampler->streams[count++] = row;
        }
    }
    page->stream_count = count;
    qsort(sampler->streams, count, sizeof *sampler->streams, compare_streams);
    page->pool_row_count = least(page->pool_count, UF_MONITOR_POOL_ROWS);
    page->stream_row_count = least(page->stream_count, UF_MONITOR_STREAM_ROWS);
    memcpy(page->pools, sampler->pools, page->pool_row_count * sizeof *page->pools);
    memcpy(page->streams, sampler->streams, page->stream_row_count * sizeof *page->streams);
}

static void note_history(uf_sampler *sampler, int64_t now_ns, uf_monitor_page *page)
{
    if (now_ns < sampler->next_history_ns) {
        return;
    }
    sampler->next_history_ns = now_ns + HISTORY_NS;
    page->history[page->history_next] = (uf_monitor_history){
        .time_ns = now_ns,
        .reserved_bytes = (uint64_t)page->stats.reserved_bytes.all.current,
        .active_bytes = (uint64_t)page->stats.active_bytes.all.current,
        .allocated_bytes = (uint64_t)page->stats.allocated_bytes.all.current,
        .requested_bytes = (uint64_t)page->stats.requested_bytes.all.current,
        .allocation_count = (uint64_t)page->stats.allocation.all.allocated,
    };
    page->history_next = (page->history_next + 1) % UF_MONITOR_HISTORY;
    page->history_count += page->history_count < UF_MONITOR_HISTORY;
}

uf_status uf__sampler_take(uf_sampler *sampler, uf_allocator *allocator, bool is_forced,
                           uf_monitor_page *page, uf_error *error)
{
    const int64_t now_ns = clock_ns();
    if (is_forced) {
        sampler->next_rows_ns = 0;
    }
    look seen = {.sampler = sampler, .page = page, .now_ns = now_ns};
    uf_status status = uf__allocator_look(allocator, look_locked, &seen, error);
    if (status != UF_OK) {
        return status;
    }
    struct timespec now;
    page->updated_ns = now_ns;
    if (clock_gettime(CLOCK_REALTIME, &now) == 0) {
        page->updated_unix_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    }
    if (seen.has_rows) {
        page->rows_updated_ns = now_ns;
        show_rows(sampler, page);
    }
    note_history(sampler, now_ns, page);
    return UF_OK;
}
