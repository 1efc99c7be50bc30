/* SPDX-License-Identifier: MIT
 *
 * The device that keeps books. */
#include "oracle/ledger.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

void ledger_break(ledger *l, const char *format, ...)
{
    va_list arguments;
    if (l->broken[0] != '\0') {
        return;
    }
    va_start(arguments, format);
    (void)vsnprintf(l->broken, sizeof l->broken, format, arguments);
    va_end(arguments);
}

ledger_range *ledger_range_at(ledger *l, uint64_t addr)
{
    for (uint32_t i = l->last_range; i < l->last_range + l->range_count; i++) {
        uint32_t index = i < l->range_count ? i : i - l->range_count;
        ledger_range *range = &l->ranges[index];
        if (addr >= range->addr && addr - range->addr < range->size_bytes) {
            l->last_range = index;
            return range;
        }
    }
    return NULL;
}

ledger_granule *ledger_at(const ledger *l, uint64_t addr)
{
    const ledger_range *range = ledger_range_at((ledger *)l, addr);
    return range == NULL ? NULL : ledger_granule_of(l, range, addr);
}

static uint32_t *bucket_of(ledger *l, uint64_t name)
{
    return &l->bucket[name * UINT64_C(0x9e3779b97f4a7c15) >> 52];
}

static ledger_handle *handle_find(ledger *l, uint64_t name, uint32_t *index)
{
    for (uint32_t at = *bucket_of(l, name); at != 0; at = l->handles[at - 1].next) {
        if (l->handles[at - 1].name == name) {
            *index = at - 1;
            return &l->handles[at - 1];
        }
    }
    ledger_break(l, "there is no handle 0x%" PRIx64, name);
    return NULL;
}

static uint32_t stream_index(ledger *l, uint64_t handle)
{
    for (uint32_t i = 0; i < l->stream_count; i++) {
        if (l->stream_of[i] == handle) {
            return i;
        }
    }
    if (l->stream_count == LEDGER_STREAMS) {
        abort();
    }
    l->stream_of[l->stream_count] = handle;
    return l->stream_count++;
}

static void done(ledger *l, uint32_t stream, uint64_t at)
{
    l->done_at[stream] = later(l->done_at[stream], at);
}

void ledger_busy(ledger *l, uint64_t addr, uint64_t size_bytes, uint32_t stream, uint64_t when)
{
    const ledger_range *range = ledger_range_at(l, addr);
    for (uint64_t at = addr / l->granule_bytes * l->granule_bytes; at < addr + size_bytes;
         at += l->granule_bytes) {
        const bool is_inside = range != NULL && at - range->addr < range->size_bytes;
        ledger_granule *granule = is_inside ? ledger_granule_of(l, range, at) : NULL;
        if (granule == NULL || granule->handle == 0) {
            ledger_break(l, "a freed block had no page at 0x%" PRIx64, at);
            return;
        }
        uint64_t *busy_at = l->handles[granule->handle - 1].busy_at;
        granule->busy_at = later(granule->busy_at, when);
        busy_at[stream] = later(busy_at[stream], when);
    }
}

void ledger_synchronize(ledger *l)
{
    for (uint32_t i = 0; i < LEDGER_STREAMS; i++) {
        l->done_at[i] = l->clock;
    }
}

static uf_status memory_info(void *context, uint64_t *free_bytes, uint64_t *total_bytes)
{
    ledger *l = context;
    return l->below->memory_info(l->below->context, free_bytes, total_bytes);
}

static uf_status segment_create(void *context, uint64_t size_bytes, uint64_t stream, uint64_t *addr)
{
    ledger *l = context;
    ledger_break(l, "a plain segment is made");
    return l->below->segment_create(l->below->context, size_bytes, stream, addr);
}

static uf_status segment_destroy(void *context, uint64_t addr, uint64_t size_bytes)
{
    ledger *l = context;
    ledger_break(l, "a plain segment is destroyed");
    return l->below->segment_destroy(l->below->context, addr, size_bytes);
}

static uf_status range_reserve(void *context, uint64_t size_bytes, uint64_t *addr)
{
    ledger *l = context;
    uint32_t i = 0;
    uf_status status = l->below->range_reserve(l->below->context, size_bytes, addr);
    l->call_count++;
    if (status != UF_OK) {
        return status;
    }
    while (i < LEDGER_RANGES && l->ranges[i].size_bytes != 0) {
        i++;
    }
    ledger_granule *granules = calloc(size_bytes / l->granule_bytes, sizeof *granules);
    if (i == LEDGER_RANGES || granules == NULL) {
        (void)printf("the ledger is full: %u ranges\n", i);
        exit(5);
    }
    if (*addr % l->granule_bytes != 0) {
        ledger_break(l, "a range at 0x%" PRIx64 " is not aligned", *addr);
    }
    l->range_count = l->range_count > i + 1 ? l->range_count : i + 1;
    l->ranges[i] = (ledger_range){
        .addr = *addr, .size_bytes = size_bytes, .tag = l->tag, .granules = granules};
    return UF_OK;
}

static uf_status range_release(void *context, uint64_t addr, uint64_t size_bytes)
{
    ledger *l = context;
    ledger_range *range = ledger_range_at(l, addr);
    uf_status status = l->below->range_release(l->below->context, addr, size_bytes);
    l->call_count++;
    if (status == UF_OK) {
        if (range == NULL || range->addr != addr || range->size_bytes != size_bytes ||
            range->mapped_count != 0) {
            ledger_break(l, "a range is released that is not there or has pages");
            return status;
        }
        free(range->granules);
        *range = (ledger_range){0};
    }
    return status;
}

static uf_status pages_map(void *context, uint64_t addr, uint64_t size_bytes, uint64_t page_bytes)
{
    ledger *l = context;
    ledger_break(l, "pages_map is called");
    return l->below->pages_map(l->below->context, addr, size_bytes, page_bytes);
}

static uf_status pages_unmap(void *context, uint64_t addr, uint64_t size_bytes, uint64_t page_bytes)
{
    ledger *l = context;
    ledger_break(l, "pages_unmap is called");
    return l->below->pages_unmap(l->below->context, addr, size_bytes, page_bytes);
}

static uf_status stream_wait(void *context, uint64_t stream)
{
    ledger *l = context;
    uf_status status = l->below->stream_wait(l->below->context, stream);
    if (status == UF_OK) {
        done(l, stream_index(l, stream), l->clock);
    }
    return status;
}

static uf_status event_record(void *context, uint64_t stream, uint64_t *event)
{
    ledger *l = context;
    uf_status status = l->below->event_record(l->below->context, stream, event);
    uint32_t i = 0;
    while (i < LEDGER_EVENTS && l->events[i].is_there) {
        i++;
    }
    if (i == LEDGER_EVENTS) {
        ledger_break(l, "%d events are recorded and none is asked for", LEDGER_EVENTS);
    } else if (status == UF_OK) {
        l->events[i] = (ledger_event){*event, l->clock, stream_index(l, stream), true};
    }
    return status;
}

static void event_done(ledger *l, uint64_t event)
{
    for (uint32_t i = 0; i < LEDGER_EVENTS; i++) {
        if (l->events[i].is_there && l->events[i].name == event) {
            done(l, l->events[i].stream, l->events[i].at);
            l->events[i].is_there = false;
            return;
        }
    }
    ledger_break(l, "event 0x%" PRIx64 " was never recorded, or is consumed", event);
}

static uf_status event_query(void *context, uint64_t event, bool *is_done)
{
    ledger *l = context;
    uf_status status = l->below->event_query(l->below->context, event, is_done);
    if (status == UF_OK && *is_done) {
        event_done(l, event);
    }
    return status;
}

static uf_status event_wait(void *context, uint64_t event)
{
    ledger *l = context;
    uf_status status = l->below->event_wait(l->below->context, event);
    if (status == UF_OK) {
        event_done(l, event);
    }
    return status;
}

static uf_status handle_create(void *context, uint64_t size_bytes, uint64_t *handle)
{
    ledger *l = context;
    uf_status status = l->below->handle_create(l->below->context, size_bytes, handle);
    l->call_count++;
    if (status != UF_OK) {
        return status;
    }
    uint32_t i = l->vacant == 0 ? l->handle_count : l->vacant - 1, *bucket = bucket_of(l, *handle);
    if (l->vacant != 0) {
        l->vacant = l->handles[i].next;
    }
    if (i == l->handle_capacity) {
        l->handle_capacity = l->handle_capacity == 0 ? 64 : l->handle_capacity * 2;
        l->handles = realloc(l->handles, l->handle_capacity * sizeof *l->handles);
        if (l->handles == NULL) {
            exit(5);
        }
    }
    l->handle_count = l->handle_count > i + 1 ? l->handle_count : i + 1;
    l->handles[i] = (ledger_handle){.name = *handle,
                                    .size_bytes = size_bytes,
                                    .next = *bucket,
                                    .is_named = true,
                                    .is_there = true};
    *bucket = i + 1;
    l->held_bytes += size_bytes;
    l->named_bytes += size_bytes;
    if (l->held_bytes > l->limit_bytes) {
        ledger_break(l, "a page is made beyond the limit: %" PRIu64 " of %" PRIu64 " bytes held",
                     l->held_bytes, l->limit_bytes);
    }
    return UF_OK;
}

static void handle_drop(ledger *l, ledger_handle *handle)
{
    if (!handle->is_named && handle->mapping_count == 0) {
        handle->is_there = false;
        handle->next = l->vacant;
        l->vacant = (uint32_t)(handle - l->handles) + 1;
        l->held_bytes -= handle->size_bytes;
    }
}

static uf_status handle_release(void *context, uint64_t name, uint64_t size_bytes)
{
    ledger *l = context;
    uint32_t index = 0;
    ledger_handle *handle = handle_find(l, name, &index);
    uf_status status = l->below->handle_release(l->below->context, name, size_bytes);
    l->call_count++;
    if (status != UF_OK || handle == NULL) {
        return status;
    }
    if (handle->size_bytes != size_bytes || handle->mapping_count != 0) {
        ledger_break(l, "a handle is released that is mapped or of another size");
    }
    uint32_t *link = bucket_of(l, name);
    while (*link != index + 1) {
        link = &l->handles[*link - 1].next;
    }
    *link = handle->next;
    handle->is_named = false;
    l->named_bytes -= size_bytes;
    handle_drop(l, handle);
    return status;
}

static uf_status handle_map(void *context, uint64_t addr, uint64_t name, uint64_t size_bytes)
{
    ledger *l = context;
    uint32_t index = 0;
    ledger_handle *handle = handle_find(l, name, &index);
    ledger_range *range = ledger_range_at(l, addr);
    uf_status status = l->below->handle_map(l->below->context, addr, name, size_bytes);
    l->call_count++;
    if (status != UF_OK || handle == NULL) {
        return status;
    }
    if (range == NULL || addr % l->granule_bytes != 0 || handle->size_bytes != size_bytes ||
        addr + size_bytes > range->addr + range->size_bytes) {
        ledger_break(l, "a handle is mapped at 0x%" PRIx64 ", off its place", addr);
        return status;
    }
    for (uint64_t at = addr; at < addr + size_bytes; at += l->granule_bytes) {
        ledger_granule *granule = ledger_at(l, at);
        if (granule->handle != 0) {
            ledger_break(l, "a handle is mapped over another one at 0x%" PRIx64, at);
        }
        *granule = (ledger_granule){.handle = index + 1, .is_first = at == addr};
    }
    range->mapped_count += size_bytes / l->granule_bytes;
    handle->mapping_count++;
    return status;
}

static uf_status range_access(void *context, uint64_t addr, uint64_t size_bytes,
                              uint64_t handle_count)
{
    ledger *l = context;
    uf_status status = l->below->range_access(l->below->context, addr, size_bytes, handle_count);
    uint64_t count = 0;
    l->call_count++;
    for (uint64_t at = addr; status == UF_OK && at < addr + size_bytes; at += l->granule_bytes) {
        ledger_granule *granule = ledger_at(l, at);
        if (granule == NULL || granule->handle == 0) {
            ledger_break(l, "access is asked for at 0x%" PRIx64 ", where nothing is", at);
            return status;
        }
        granule->has_access = true;
        count += granule->is_first;
    }
    if (status == UF_OK && count != handle_count) {
        ledger_break(l, "access to %" PRIu64 " handles, told %" PRIu64, count, handle_count);
    }
    return status;
}

static uf_status range_unmap(void *context, uint64_t addr, uint64_t size_bytes,
                             uint64_t handle_count)
{
    ledger *l = context;
    ledger_range *range = ledger_range_at(l, addr);
    uf_status status = l->below->range_unmap(l->below->context, addr, size_bytes, handle_count);
    uint64_t count = 0;
    l->call_count++;
    l->unmap_count += handle_count;
    for (uint64_t at = addr; status == UF_OK && at < addr + size_bytes; at += l->granule_bytes) {
        ledger_granule *granule = ledger_at(l, at);
        if (granule == NULL || granule->handle == 0 || (at == addr && !granule->is_first)) {
            ledger_break(l, "something is unmapped at 0x%" PRIx64 " that is no whole handle", at);
            return status;
        }
        if (granule->touch_count != 0 && !l->is_ending) {
            ledger_break(l, "0x%" PRIx64 " is unmapped under an active block", at);
        }
        if (granule->busy_at > l->done_at[range->tag.stream]) {
            ledger_break(l, "0x%" PRIx64 " is unmapped while stream %" PRIu32 " may use it", at,
                         range->tag.stream);
        }
        if (granule->is_first) {
            ledger_handle *handle = &l->handles[granule->handle - 1];
            handle->mapping_count--;
            handle_drop(l, handle);
            count++;
        }
        range->mapped_count--;
        *granule = (ledger_granule){0};
    }
    if (status == UF_OK && count != handle_count) {
        ledger_break(l, "%" PRIu64 " handles are unmapped, told %" PRIu64, count, handle_count);
    }
    return status;
}

void ledger_init(ledger *l, const uf_device *below, uint64_t granule_bytes)
{
    memset(l, 0, sizeof *l);
    l->below = below;
    l->granule_bytes = granule_bytes;
    l->limit_bytes = UINT64_MAX;
    l->device = (uf_device){.struct_size_bytes = sizeof(uf_device),
                            .context = l,
                            .memory_info = memory_info,
                            .segment_create = segment_create,
                            .segment_destroy = segment_destroy,
                            .range_reserve = range_reserve,
                            .range_release = range_release,
                            .pages_map = pages_map,
                            .pages_unmap = pages_unmap,
                            .stream_wait = stream_wait,
                            .event_record = event_record,
                            .event_query = event_query,
                            .event_wait = event_wait,
                            .handle_create = handle_create,
                            .handle_release = handle_release,
                            .handle_map = handle_map,
                            .range_access = range_access,
                            .range_unmap = range_unmap};
}

void ledger_fini(ledger *l)
{
    for (uint32_t i = 0; i < l->range_count; i++) {
        free(l->ranges[i].granules);
    }
    free(l->handles);
}
