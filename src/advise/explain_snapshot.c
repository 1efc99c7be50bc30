/* SPDX-License-Identifier: MIT
 *
 * Segments are walked once; the history once, for the failed request and for growth. */
#include "advise/explain_snapshot.h"

#include <string.h>

#include "base/size.h"

#define SMALL_PAGE_BYTES (2 * UF_MIB)
#define LARGE_PAGE_BYTES (20 * UF_MIB)
/* The history is cut into so many parts; the first ones load the program. */
#define PART_COUNT 12
#define LOADING_PARTS 3
#define LEAST_GROWTH_BYTES (64 * UF_MIB)

static bool is_private(const uf_trace_segment *segment)
{
    return segment->pool_id[0] != 0 || segment->pool_id[1] != 0;
}

/* The device of the last failure, else the one that holds most. */
static bool choose_device(const uf_trace *trace, int32_t *device)
{
    for (uint32_t i = 0; i < trace->device_count; i++) {
        const uf_trace_device *list = &trace->devices[i];
        for (uint64_t k = list->count; k-- > 0;) {
            if (trace->events[list->first + k].action == UF_ACTION_OOM) {
                *device = list->device;
                return true;
            }
        }
    }
    uint64_t best = 0;
    for (uint32_t i = 0; i < trace->segment_count; i++) {
        uint64_t sum = 0;
        for (uint32_t k = 0; k < trace->segment_count && k < 4096; k++) {
            bool is_same = trace->segments[k].device == trace->segments[i].device;
            sum += is_same ? trace->segments[k].total_bytes : 0;
        }
        if (sum > best) {
            best = sum;
            *device = trace->segments[i].device;
        }
        i += i >= 64 ? trace->segment_count : 0; /* a few segments tell */
    }
    return best > 0;
}

/* The whole pages inside [offset, offset + size). */
static uint64_t whole_pages(uint64_t offset, uint64_t size_bytes, uint64_t page_bytes)
{
    uint64_t first = (offset + page_bytes - 1) / page_bytes;
    uint64_t end = (offset + size_bytes) / page_bytes;
    return end > first ? (end - first) * page_bytes : 0;
}

/* Keeps the list sorted: most cached first. */
static void keep_pinned(uf_snapshot_state *state, const uf_snapshot_pinned *pinned)
{
    uint32_t at = state->pinned_count;
    state->pinned_all_count++;
    while (at > 0 && state->pinned[at - 1].cached_bytes < pinned->cached_bytes) {
        at--;
    }
    if (at == UF_SNAPSHOT_PINNED_CAPACITY) {
        return;
    }
    uint32_t count = state->pinned_count < UF_SNAPSHOT_PINNED_CAPACITY
                         ? state->pinned_count
                         : UF_SNAPSHOT_PINNED_CAPACITY - 1;
    memmove(&state->pinned[at + 1], &state->pinned[at], (count - at) * sizeof *state->pinned);
    state->pinned[at] = *pinned;
    state->pinned_count = count + 1;
}

static void examine_segment(const uf_trace *trace, const uf_trace_segment *segment,
                            uf_snapshot_state *state)
{
    uf_snapshot_pinned pinned = {.segment = segment};
    uint64_t in_pages = 0;
    uint64_t page_bytes = segment->is_large ? LARGE_PAGE_BYTES : SMALL_PAGE_BYTES;
    for (uint32_t i = 0; i < segment->block_count; i++) {
        const uf_trace_block *block = &trace->blocks[segment->first_block + i];
        if (block->state == UF_BLOCK_INACTIVE) {
            pinned.cached_bytes += block->size_bytes;
            in_pages += whole_pages(block->addr - segment->addr, block->size_bytes, page_bytes);
            if (block->size_bytes > pinned.largest_cached_bytes) {
                pinned.largest_cached_bytes = block->size_bytes;
            }
            continue;
        }
        pinned.live_bytes += block->size_bytes;
        pinned.live_count++;
        bool is_allocated = block->state == UF_BLOCK_ACTIVE_ALLOCATED;
        state->allocated_bytes += is_allocated ? block->size_bytes : 0;
        if (pinned.holder == NULL || block->size_bytes > pinned.holder->size_bytes) {
            pinned.holder = block;
        }
    }
    state->segment_count++;
    state->reserved_bytes += segment->total_bytes;
    state->active_bytes += pinned.live_bytes;
    state->cached_bytes += pinned.cached_bytes;
    uint64_t whole = segment->is_expandable   ? in_pages
                     : pinned.live_count == 0 ? pinned.cached_bytes
                                              : 0;
    if (is_private(segment)) {
        state->pool_bytes += pinned.cached_bytes;
    } else if (segment->stream != state->stream) {
        state->stream_bytes += pinned.cached_bytes;
    } else {
        state->whole_bytes += whole;
        state->between_bytes += pinned.cached_bytes - whole;
        if (pinned.largest_cached_bytes > state->largest_cached_bytes) {
            state->largest_cached_bytes = pinned.largest_cached_bytes;
        }
    }
    if (pinned.live_count > 0 && pinned.cached_bytes > whole) {
        keep_pinned(state, &pinned);
    }
}

static const uf_trace_device *history_of(const uf_trace *trace, int32_t device)
{
    for (uint32_t i = 0; i < trace->device_count; i++) {
        if (trace->devices[i].device == device && trace->devices[i].count > 0) {
            return &trace->devices[i];
        }
    }
    return NULL;
}

static void find_oom(const uf_trace *trace, const uf_trace_device *list, uf_snapshot_state *state)
{
    for (uint64_t i = 0; i < list->count; i++) {
        const uf_event *event = &trace->events[list->first + i];
        if (event->action == UF_ACTION_OOM) {
            state->has_oom = true;
            state->oom_count++;
            state->oom_event = i;
            state->oom_requested_bytes = event->size_bytes;
            state->oom_device_free_bytes = event->addr;
            if (event->site < trace->site_count) {
                state->stream = trace->sites[event->site].stream;
            }
        }
    }
}

/* The stream that holds most: where no failure says whose request it was. */
static void choose_stream(const uf_trace *trace, uf_snapshot_state *state)
{
    uint64_t best = 0;
    for (uint32_t i = 0; i < trace->segment_count && i < 256; i++) {
        const uf_trace_segment *segment = &trace->segments[i];
        uint64_t sum = 0;
        for (uint32_t k = 0; k < trace->segment_count; k++) {
            const uf_trace_segment *other = &trace->segments[k];
            bool is_same = other->device == state->device && other->stream == segment->stream;
            sum += is_same ? other->total_bytes : 0;
        }
        if (segment->device == state->device && sum > best) {
            best = sum;
            state->stream = segment->stream;
        }
    }
}

/* The least live memory of each part of the history; relative to its start. */
static void find_growth(const uf_trace *trace, const uf_trace_device *list,
                        uf_snapshot_state *state)
{
    int64_t least[PART_COUNT], live = 0, peak = 0;
    if (list->count < PART_COUNT * 16) {
        return;
    }
    for (uint64_t i = 0; i < list->count; i++) {
        const uf_event *event = &trace->events[list->first + i];
        size_t part = (size_t)(i * PART_COUNT / list->count);
        bool is_first = i == 0 || (size_t)((i - 1) * PART_COUNT / list->count) != part;
        int64_t size = event->size_bytes < (UINT64_C(1) << 48) ? (int64_t)event->size_bytes : 0;
        live += event->action == UF_ACTION_ALLOC ? size : 0;
        live -= event->action == UF_ACTION_FREE_COMPLETED ? size : 0;
        least[part] = is_first || live < least[part] ? live : least[part];
        peak = live > peak ? live : peak;
    }
    int64_t from = least[LOADING_PARTS], to = least[PART_COUNT - 1];
    bool is_growing = to - from >= (int64_t)LEAST_GROWTH_BYTES && to - from >= peak / 20;
    for (size_t i = LOADING_PARTS + 1; i < PART_COUNT; i++) {
        is_growing =
            is_growing && least[i] > least[i - 1] && least[i] - least[i - 1] < (to - from) / 2;
    }
    int64_t start = (int64_t)state->active_bytes - live;
    if (is_growing && from + start >= 0) {
        state->is_growing = true;
        state->growth_from_bytes = (uint64_t)(from + start);
        state->growth_to_bytes = (uint64_t)(to + start);
    }
}

bool uf__snapshot_examine(const uf_trace *trace, int32_t device, uf_snapshot_state *state)
{
    memset(state, 0, sizeof *state);
    state->device = device;
    if (device < 0 && !choose_device(trace, &state->device)) {
        return false;
    }
    state->total_bytes = trace->total_bytes;
    choose_stream(trace, state);
    const uf_trace_device *list = history_of(trace, state->device);
    if (list != NULL) {
        find_oom(trace, list, state);
    }
    for (uint32_t i = 0; i < trace->segment_count; i++) {
        if (trace->segments[i].device == state->device) {
            examine_segment(trace, &trace->segments[i], state);
        }
    }
    if (list != NULL) {
        find_growth(trace, list, state);
    }
    return state->segment_count > 0 || list != NULL;
}
