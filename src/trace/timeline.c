/* SPDX-License-Identifier: MIT
 *
 * A trace's memory over its events. Sums wrap rather than overflow: a trace that contradicts itself
 * shows as one. */
#include "trace/timeline.h"

#include <string.h>

static const char *const level_names[UF_LEVEL_COUNT] = {"allocated", "active", "live", "reserved"};

const char *uf__level_name(uf_level level)
{
    return level_names[level];
}

static int64_t sum(int64_t a, uint64_t b)
{
    return (int64_t)((uint64_t)a + b);
}

static uint64_t rounded(uint64_t bytes)
{
    return (bytes + 511) & ~UINT64_C(511);
}

/* sign: 1, or all ones for -1. */
static void add(int64_t levels[UF_LEVEL_COUNT], uf_level level, uint64_t bytes, uint64_t sign)
{
    levels[level] = sum(levels[level], bytes * sign);
}

static void apply(const uf_event *event, int64_t levels[UF_LEVEL_COUNT])
{
    const uint64_t plus = 1, minus = UINT64_MAX;
    switch (event->action) {
    case UF_ACTION_ALLOC:
        add(levels, UF_LEVEL_ALLOCATED, event->size_bytes, plus);
        add(levels, UF_LEVEL_ACTIVE, event->size_bytes, plus);
        add(levels, UF_LEVEL_LIVE, rounded(event->size_bytes), plus);
        break;
    case UF_ACTION_FREE_REQUESTED:
        add(levels, UF_LEVEL_ALLOCATED, event->size_bytes, minus);
        break;
    case UF_ACTION_FREE_COMPLETED:
        add(levels, UF_LEVEL_ACTIVE, event->size_bytes, minus);
        add(levels, UF_LEVEL_LIVE, rounded(event->size_bytes), minus);
        break;
    case UF_ACTION_SEGMENT_ALLOC:
    case UF_ACTION_SEGMENT_MAP:
        add(levels, UF_LEVEL_RESERVED, event->size_bytes, plus);
        break;
    case UF_ACTION_SEGMENT_FREE:
    case UF_ACTION_SEGMENT_UNMAP:
        add(levels, UF_LEVEL_RESERVED, event->size_bytes, minus);
        break;
    default:
        break;
    }
}

/* Expandable segments show as their mapped parts; what was asked for is kept by blocks. */
static bool add_final(const uf_trace *trace, int32_t device, int64_t levels[UF_LEVEL_COUNT])
{
    bool has_segment = false;
    for (uint32_t i = 0; i < trace->segment_count; i++) {
        const uf_trace_segment *segment = &trace->segments[i];
        if (segment->device != device) {
            continue;
        }
        has_segment = true;
        add(levels, UF_LEVEL_RESERVED, segment->total_bytes, 1);
        for (uint32_t j = 0; j < segment->block_count; j++) {
            const uf_trace_block *block = &trace->blocks[segment->first_block + j];
            uint64_t bytes = block->has_requested ? block->requested_bytes : block->size_bytes;
            bool is_allocated = block->state == UF_BLOCK_ACTIVE_ALLOCATED;
            if (is_allocated || block->state == UF_BLOCK_ACTIVE_PENDING_FREE) {
                add(levels, UF_LEVEL_ALLOCATED, is_allocated ? bytes : 0, 1);
                add(levels, UF_LEVEL_ACTIVE, bytes, 1);
                add(levels, UF_LEVEL_LIVE, rounded(bytes), 1);
            }
        }
    }
    return has_segment;
}

static int64_t first_time_of(const uf_trace *trace, const uf_trace_device *device)
{
    for (uint64_t i = 0; i < device->count; i++) {
        int64_t time_us = trace->events[device->first + i].time_us;
        if (time_us != UF_TIME_UNKNOWN) {
            return time_us;
        }
    }
    return UF_TIME_UNKNOWN;
}

/* All devices count from the same moment. */
static int64_t find_first_time(const uf_trace *trace, const uf_trace_device *device)
{
    int64_t first_us = first_time_of(trace, device);
    for (uint32_t i = 0; i < trace->device_count && first_us != UF_TIME_UNKNOWN; i++) {
        int64_t other_us = first_time_of(trace, &trace->devices[i]);
        first_us = other_us != UF_TIME_UNKNOWN && other_us < first_us ? other_us : first_us;
    }
    return first_us;
}

void uf__timeline_begin(uf_timeline *timeline, const uf_trace *trace, uint32_t device_list)
{
    *timeline = (uf_timeline){.trace = trace, .device = &trace->devices[device_list]};
    const uf_trace_device *device = timeline->device;
    int64_t change[UF_LEVEL_COUNT] = {0}, last[UF_LEVEL_COUNT] = {0};
    bool has_segment_event = false;
    for (uint64_t i = 0; i < device->count; i++) {
        const uf_event *event = &trace->events[device->first + i];
        apply(event, change);
        has_segment_event = has_segment_event || event->action == UF_ACTION_SEGMENT_ALLOC ||
                            event->action == UF_ACTION_SEGMENT_MAP;
    }
    bool has_segment = add_final(trace, device->device, last);
    timeline->has_reserved = has_segment || has_segment_event;
    for (int i = 0; i < UF_LEVEL_COUNT; i++) {
        int64_t start = (int64_t)((uint64_t)last[i] - (uint64_t)change[i]);
        timeline->levels[i] = start > 0 ? start : 0; /* a script's end is not recorded */
    }
    timeline->first_time_us = find_first_time(trace, device);
}

const uf_event *uf__timeline_step(uf_timeline *timeline, int64_t *time_us)
{
    if (timeline->next == timeline->device->count) {
        return NULL;
    }
    const uf_event *event = &timeline->trace->events[timeline->device->first + timeline->next];
    if (timeline->first_time_us == UF_TIME_UNKNOWN) {
        timeline->last_time_us = (int64_t)timeline->next;
    } else if (event->time_us != UF_TIME_UNKNOWN && event->time_us >= timeline->first_time_us) {
        int64_t since = (int64_t)((uint64_t)event->time_us - (uint64_t)timeline->first_time_us);
        if (since > timeline->last_time_us) {
            timeline->last_time_us = since;
        }
    }
    timeline->next++;
    apply(event, timeline->levels);
    *time_us = timeline->last_time_us;
    return event;
}
