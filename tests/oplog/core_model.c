/* SPDX-License-Identifier: MIT
 *
 * The core on a device whose addresses, capacity and finished events a test dictates. Owns that
 * device and the list of addresses handed out. Single-threaded. */
#include "oplog/core_model.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <unfrag/stats.h>

#include "alloc/core.h"
#include "alloc/layout.h"
#include "base/error.h"

#define CORE_STREAM_MAX 16
#define CORE_POOL_MAX 8192

typedef struct core_live {
    uint64_t addr;
    uint32_t block;
} core_live;

typedef struct core_state {
    uf_core core;
    uf_device device;
    model_config config;
    uf_conf conf;
    uint64_t held_bytes;     /* handed out by the device */
    uint64_t *event_streams; /* stream of event n at [n - 1] */
    size_t event_count, event_capacity;
    uint64_t done_number; /* on every stream */
    uint64_t done_streams[CORE_STREAM_MAX], done_numbers[CORE_STREAM_MAX];
    size_t done_count;
    core_live *live;
    size_t live_count, live_capacity;
    bool is_flushing; /* what a flush under way has not emptied yet, by index */
    uint32_t freeable[CORE_POOL_MAX];
    uint64_t freeable_ids[CORE_POOL_MAX][2];
    size_t freeable_count;
} core_state;

static uint64_t card_bytes(const core_state *s)
{
    return s->config.capacity_bytes != 0 ? s->config.capacity_bytes : s->config.total_bytes;
}

static uf_status device_memory_info(void *context, uint64_t *free_bytes, uint64_t *total_bytes)
{
    const core_state *s = context;
    *free_bytes = card_bytes(s) > s->held_bytes ? card_bytes(s) - s->held_bytes : 0;
    *total_bytes = s->config.total_bytes;
    return UF_OK;
}

/* Takes bytes of the card; false when there are not so many. */
static bool device_hold(core_state *s, uint64_t bytes)
{
    if (s->config.capacity_bytes != 0 && s->held_bytes + bytes > s->config.capacity_bytes) {
        return false;
    }
    s->held_bytes += bytes;
    return true;
}

static uf_status device_segment_create(void *context, uint64_t size_bytes, uint64_t stream,
                                       uint64_t *addr)
{
    core_state *s = context;
    if (!device_hold(s, size_bytes)) {
        return UF_ERROR_DEVICE_MEMORY;
    }
    if (!s->config.host.segment_addr(s->config.host.context, size_bytes, stream, addr)) {
        s->held_bytes -= size_bytes;
        return UF_ERROR_DEVICE_MEMORY;
    }
    return UF_OK;
}

static uf_status device_segment_destroy(void *context, uint64_t addr, uint64_t size_bytes)
{
    core_state *s = context;
    (void)addr;
    s->held_bytes -= size_bytes;
    return UF_OK;
}

static uf_status device_range_reserve(void *context, uint64_t size_bytes, uint64_t *addr)
{
    core_state *s = context;
    return s->config.host.reservation_addr(s->config.host.context, size_bytes, addr)
               ? UF_OK
               : UF_ERROR_DEVICE_MEMORY;
}

static uf_status device_range_release(void *context, uint64_t addr, uint64_t size_bytes)
{
    (void)context;
    (void)addr;
    (void)size_bytes;
    return UF_OK;
}

static uf_status device_pages_map(void *context, uint64_t addr, uint64_t size_bytes,
                                  uint64_t page_bytes)
{
    (void)addr;
    if (size_bytes == 0 || size_bytes % page_bytes != 0) {
        return UF_ERROR_DEVICE;
    }
    return device_hold(context, size_bytes) ? UF_OK : UF_ERROR_DEVICE_MEMORY;
}

static uf_status device_pages_unmap(void *context, uint64_t addr, uint64_t size_bytes,
                                    uint64_t page_bytes)
{
    core_state *s = context;
    (void)addr;
    if (size_bytes == 0 || size_bytes % page_bytes != 0) {
        return UF_ERROR_DEVICE;
    }
    s->held_bytes -= size_bytes;
    return UF_OK;
}

static uf_status device_stream_wait(void *context, uint64_t stream)
{
    (void)context;
    (void)stream;
    return UF_OK;
}

static uf_status device_event_record(void *context, uint64_t stream, uint64_t *event)
{
    core_state *s = context;
    s->event_streams =
        model_grow(s->event_streams, s->event_count, &s->event_capacity, sizeof *s->event_streams);
    s->event_streams[s->event_count++] = stream;
    *event = s->event_count;
    return UF_OK;
}

static uf_status device_event_query(void *context, uint64_t event, bool *is_done)
{
    const core_state *s = context;
    if (event == 0 || event > s->event_count) {
        return UF_ERROR_DEVICE;
    }
    *is_done = event <= s->done_number;
    for (size_t i = 0; i < s->done_count; i++) {
        *is_done = *is_done || (s->done_streams[i] == s->event_streams[event - 1] &&
                                event <= s->done_numbers[i]);
    }
    return UF_OK;
}

/* Everything up to event number on a stream is done. */
static uf_status stream_done(core_state *s, uint64_t stream, uint64_t number)
{
    size_t i = 0;
    while (i < s->done_count && s->done_streams[i] != stream) {
        i++;
    }
    if (i == CORE_STREAM_MAX) {
        return UF_ERROR_UNSUPPORTED;
    }
    if (i == s->done_count) {
        s->done_streams[s->done_count++] = stream;
        s->done_numbers[i] = 0;
    }
    if (number > s->done_numbers[i]) {
        s->done_numbers[i] = number;
    }
    return UF_OK;
}

static uf_status device_event_wait(void *context, uint64_t event)
{
    core_state *s = context;
    if (event == 0 || event > s->event_count) {
        return UF_ERROR_DEVICE;
    }
    return stream_done(s, s->event_streams[event - 1], event);
}

static const uf_device device_functions = {
    .struct_size_bytes = sizeof(uf_device),
    .memory_info = device_memory_info,
    .segment_create = device_segment_create,
    .segment_destroy = device_segment_destroy,
    .range_reserve = device_range_reserve,
    .range_release = device_range_release,
    .pages_map = device_pages_map,
    .pages_unmap = device_pages_unmap,
    .stream_wait = device_stream_wait,
    .event_record = device_event_record,
    .event_query = device_event_query,
    .event_wait = device_event_wait,
};

static void on_event(void *context, uf_action action, uint64_t addr, uint64_t size_bytes,
                     uint64_t stream)
{
    const core_state *s = context;
    if (s->config.host.event != NULL) {
        s->config.host.event(s->config.host.context, action, addr, size_bytes, stream);
    }
}

static bool on_order(void *context, bool is_flush, uint64_t *addr)
{
    const core_state *s = context;
    (void)is_flush;
    return s->config.host.completion != NULL &&
           s->config.host.completion(s->config.host.context, NULL, 0, addr);
}

/* Offers the freeable pools to the host until each was emptied once. A flush frees the pools that
 * are freeable when it begins. */
static bool on_pool(void *context, uint32_t *pool)
{
    core_state *s = context;
    if (!s->is_flushing) {
        s->is_flushing = true;
        s->freeable_count = 0;
        for (uint32_t i = 1; i < s->core.pool_count && s->freeable_count < CORE_POOL_MAX; i++) {
            const uf_pool *candidate = &s->core.pools[i];
            if (candidate->is_known && candidate->use_count == 0) {
                memcpy(s->freeable_ids[s->freeable_count], candidate->id, sizeof candidate->id);
                s->freeable[s->freeable_count++] = i;
            }
        }
    }
    size_t count = s->freeable_count;
    if (count == 0) {
        s->is_flushing = false;
        return false;
    }
    size_t index = 0;
    if (s->config.host.pool != NULL && count > 1) {
        index = s->config.host.pool(s->config.host.context, (const uint64_t(*)[2])s->freeable_ids,
                                    count);
        index = index < count ? index : 0;
    }
    *pool = s->freeable[index];
    s->freeable_count--;
    memmove(&s->freeable[index], &s->freeable[index + 1],
            (s->freeable_count - index) * sizeof *s->freeable);
    memmove(&s->freeable_ids[index], &s->freeable_ids[index + 1],
            (s->freeable_count - index) * sizeof *s->freeable_ids);
    return true;
}

static void model_destroy(void *model)
{
    core_state *s = model;
    if (s != NULL) {
        s->config.host.event = NULL;
        uf__core_fini(&s->core);
        free(s->event_streams);
        free(s->live);
        free(s);
    }
}

static uf_status model_create(const model_config *config, void **model, uf_error *error)
{
    core_state *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return UF_ERROR_HOST_MEMORY;
    }
    s->config = *config;
    s->device = device_functions;
    s->device.context = s;
    uf__conf_init(&s->conf);
    uf_status status = UF_OK;
    if (config->conf != NULL) {
        status = uf__conf_parse(&s->conf, config->conf, UF_CONF_2_11, error);
    }
    if (status == UF_OK) {
        status =
            uf__core_init(&s->core, &(uf_core_config){.device = &s->device,
                                                      .conf = &s->conf,
                                                      .device_total_bytes = config->total_bytes,
                                                      .event_hook = on_event,
                                                      .event_context = s,
                                                      .order_hook = on_order,
                                                      .order_context = s});
    }
    if (status != UF_OK) {
        free(s);
        return status;
    }
    s->core.pool_hook = on_pool;
    s->core.pool_context = s;
    *model = s;
    return UF_OK;
}

static uf_status model_alloc(void *model, uint64_t bytes, uint64_t stream, uint64_t *addr,
                             uf_error *error)
{
    core_state *s = model;
    uint32_t stream_index = 0;
    uint32_t block = UF_NO_BLOCK;
    (void)error;
    s->is_flushing = false;
    if (bytes == 0) {
        *addr = 0;
        return UF_OK;
    }
    uf_status status = uf__core_stream(&s->core, stream, &stream_index);
    if (status == UF_OK && bytes < UINT64_C(1) << 60) {
        status = uf__core_process(&s->core);
    }
    if (status == UF_OK) {
        status =
            uf__core_alloc(&s->core, bytes, stream_index, uf__core_redirect_pool(&s->core), &block);
    }
    if (status != UF_OK) {
        return status;
    }
    *addr = uf__core_block(&s->core, block)->addr;
    s->live = model_grow(s->live, s->live_count, &s->live_capacity, sizeof *s->live);
    s->live[s->live_count++] = (core_live){*addr, block};
    return UF_OK;
}

/* The place of an address in the list, live_count if it is not there. */
static size_t find_live(const core_state *s, uint64_t addr)
{
    size_t i = 0;
    while (i < s->live_count && s->live[i].addr != addr) {
        i++;
    }
    return i;
}

static uf_status model_free(void *model, uint64_t addr, uf_error *error)
{
    core_state *s = model;
    if (addr == 0) {
        return UF_OK;
    }
    size_t i = find_live(s, addr);
    if (i == s->live_count) {
        return uf__error_set(error, UF_ERROR_FOREIGN_POINTER, "0x%" PRIx64 " is not allocated",
                             addr);
    }
    uint32_t block = s->live[i].block;
    s->live[i] = s->live[--s->live_count];
    return uf__core_free(&s->core, block);
}

static uf_status model_record_stream(void *model, uint64_t addr, uint64_t stream, uf_error *error)
{
    core_state *s = model;
    (void)error;
    size_t i = find_live(s, addr);
    if (i == s->live_count) {
        return UF_OK;
    }
    uint32_t stream_index = 0;
    uf_status status = uf__core_stream(&s->core, stream, &stream_index);
    return status == UF_OK ? uf__core_use(&s->core, s->live[i].block, stream_index) : status;
}

static uf_status model_synchronize(void *model, bool is_all, uint64_t stream)
{
    core_state *s = model;
    if (is_all) {
        s->done_number = s->event_count;
        return UF_OK;
    }
    return stream_done(s, stream, s->event_count);
}

static uf_status model_empty_cache(void *model, uf_error *error)
{
    core_state *s = model;
    (void)error;
    s->is_flushing = false;
    return uf__core_empty_cache(&s->core);
}

static uf_status model_set_fraction(void *model, double fraction, uf_error *error)
{
    core_state *s = model;
    (void)error;
    return uf__core_fraction_set(&s->core, fraction);
}

static uf_status model_set_conf(void *model, const char *conf, uf_error *error)
{
    core_state *s = model;
    uf_status status = uf__conf_parse(&s->conf, conf, UF_CONF_2_11, error);
    if (status == UF_OK) {
        uf__core_conf_set(&s->core, &s->conf);
    }
    return status;
}

static uf_status model_pool_create(void *model, const uint64_t id[2],
                                   const model_pool_options *options, uf_error *error)
{
    core_state *s = model;
    uint32_t pool = 0;
    (void)error;
    uf_status status = uf__core_pool_create(&s->core, id[0], id[1], &pool);
    if (status == UF_OK && options != NULL) {
        s->core.pools[pool].is_use_on_oom = options->is_use_on_oom;
        s->core.pools[pool].is_no_split = options->is_no_split;
        s->core.pools[pool].is_never_expandable = options->is_never_expandable;
    }
    return status;
}

static uf_status find_pool(const core_state *s, const uint64_t id[2], uint32_t *pool,
                           uf_error *error)
{
    if (!uf__core_pool_find(&s->core, id[0], id[1], pool)) {
        return uf__error_set(error, UF_ERROR_NOT_FOUND, "no pool (%" PRIu64 ",%" PRIu64 ")", id[0],
                             id[1]);
    }
    return UF_OK;
}

static uf_status model_pool_begin(void *model, const uint64_t id[2], uf_error *error)
{
    core_state *s = model;
    uint32_t pool = 0;
    uf_status status = find_pool(s, id, &pool, error);
    if (status == UF_OK) {
        status = uf__core_redirect_begin(&s->core, pool);
    }
    return status;
}

static uf_status model_pool_end(void *model, const uint64_t id[2], uf_error *error)
{
    core_state *s = model;
    uint32_t pool = 0;
    uf_status status = find_pool(s, id, &pool, error);
    if (status == UF_OK) {
        status = uf__core_redirect_end(&s->core, pool);
    }
    if (status == UF_OK) {
        uf__core_pool_release(&s->core, pool); /* as use_mem_pool does, spec 7.2 */
    }
    return status;
}

static uf_status model_pool_destroy(void *model, const uint64_t id[2], uf_error *error)
{
    core_state *s = model;
    uint32_t pool = 0;
    uf_status status = find_pool(s, id, &pool, error);
    if (status == UF_OK && s->core.redirection_count > 0) {
        return uf__error_set(error, UF_ERROR_BUSY, "a redirection is under way");
    }
    if (status == UF_OK) {
        s->core.pools[pool].is_use_on_oom = false;
        uf__core_pool_release(&s->core, pool);
        status = uf__core_pool_flush(&s->core, pool);
    }
    return status;
}

#define CORE_STAT_ROOM (sizeof(uf_stats) / sizeof(int64_t))

/* Where uf_stats keeps each statistic, found by its name; CORE_STAT_ROOM where it has none. */
static void find_places(size_t places[MODEL_STAT_COUNT])
{
    for (size_t i = 0; i < MODEL_STAT_COUNT; i++) {
        char name[64];
        union {
            uf_stats stats;
            int64_t numbers[CORE_STAT_ROOM];
        } probe = {.numbers = {0}};
        model_stat_name(i, name);
        (void)uf_stats_set(&probe.stats, name, 1);
        places[i] = 0;
        while (places[i] < CORE_STAT_ROOM && probe.numbers[places[i]] == 0) {
            places[i]++;
        }
    }
}

static void model_stats(void *model, int64_t values[MODEL_STAT_COUNT])
{
    static size_t places[MODEL_STAT_COUNT];
    static bool is_ready = false; /* names cost more than all the rest of a step */
    const core_state *s = model;
    union {
        uf_stats stats;
        int64_t numbers[CORE_STAT_ROOM];
    } now;
    if (!is_ready) {
        find_places(places);
        is_ready = true;
    }
    uf__core_stats(&s->core, &now.stats);
    for (size_t i = 0; i < MODEL_STAT_COUNT; i++) {
        values[i] = places[i] < CORE_STAT_ROOM ? now.numbers[places[i]] : INT64_MIN;
    }
}

static uf_block_state snapshot_state(uint8_t life)
{
    if (life == UF_LIFE_ALLOCATED) {
        return UF_BLOCK_ACTIVE_ALLOCATED;
    }
    return life == UF_LIFE_FREE ? UF_BLOCK_INACTIVE : UF_BLOCK_ACTIVE_PENDING_FREE;
}

static void walk_segment(const core_state *s, const uf_layout_segment *from, model_layout *layout)
{
    model_segment segment = {.addr = from->addr,
                             .stream = from->stream,
                             .pool_id = {from->pool_id[0], from->pool_id[1]},
                             .is_large = from->is_large,
                             .is_expandable = from->is_expandable};
    model_layout_segment(layout, &segment);
    uint32_t index = from->first_block;
    for (uint32_t i = 0; i < from->block_count && index != UF_NO_BLOCK; i++) {
        const uf_block *block = uf__core_block(&s->core, index);
        model_layout_block(layout, &(model_block){.addr = block->addr,
                                                  .size_bytes = block->size_bytes,
                                                  .requested_bytes = block->requested_bytes,
                                                  .state = snapshot_state(block->life)});
        index = block->next;
    }
    /* what the layout itself says counts, so that a wrong sum there shows */
    model_segment *copy = &layout->segments[layout->segment_count - 1];
    copy->total_bytes = from->total_bytes;
    copy->allocated_bytes = from->allocated_bytes;
    copy->active_bytes = from->active_bytes;
    copy->requested_bytes = from->requested_bytes;
}

static void model_walk(void *model, model_layout *layout)
{
    const core_state *s = model;
    uf_layout from;
    if (uf__layout_init(&from, &s->core) != UF_OK) {
        return;
    }
    for (uint32_t i = 0; i < from.segment_count; i++) {
        walk_segment(s, &from.segments[i], layout);
    }
    uf__layout_fini(&from);
}

static uf_status model_check(void *model, uf_error *error)
{
    const core_state *s = model;
    uf_status status = uf__core_check(&s->core, error);
    if (status == UF_OK && s->core.total_bytes != s->held_bytes) {
        return uf__error_set(error, UF_ERROR_INTERNAL,
                             "the core holds %" PRIu64 " bytes, the device gave %" PRIu64,
                             s->core.total_bytes, s->held_bytes);
    }
    return status;
}

const model_vtable core_model = {
    .name = "core",
    .create = model_create,
    .destroy = model_destroy,
    .alloc = model_alloc,
    .free_block = model_free,
    .record_stream = model_record_stream,
    .synchronize = model_synchronize,
    .empty_cache = model_empty_cache,
    .set_fraction = model_set_fraction,
    .set_conf = model_set_conf,
    .pool_create = model_pool_create,
    .pool_begin = model_pool_begin,
    .pool_end = model_pool_end,
    .pool_destroy = model_pool_destroy,
    .stats = model_stats,
    .walk = model_walk,
    .check = model_check,
};
