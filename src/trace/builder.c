/* SPDX-License-Identifier: MIT
 *
 * Fills a uf_trace. Owns the growing arrays of the trace under construction and one hash index for
 * each of strings, frames, stacks and sites. Knows nothing of file formats. One builder belongs to
 * one reader; no lock. */
#include "trace/builder.h"

#include <stdlib.h>
#include <string.h>

#include "trace/array.h"
#include "trace/oddities.h"
#include "trace/strings.h"

struct uf_builder {
    uf_trace *trace;
    uint64_t seed; /* of the hashes; differs from run to run, results do not depend on it */
    uint64_t event_capacity, device_capacity, site_capacity, segment_capacity, block_capacity;
    uint64_t frame_capacity, frame_id_capacity, stack_capacity, annotation_capacity;
    uf__strings strings; /* data and offsets belong to the trace */
    uf__index frames, stacks, sites;
};

uf_builder *uf__builder_create(void)
{
    uf_builder *builder = calloc(1, sizeof *builder);
    if (builder == NULL)
        return NULL;
    builder->seed = uf__hash_mix((uint64_t)(uintptr_t)builder);
    builder->strings.seed = builder->seed;
    builder->trace = calloc(1, sizeof *builder->trace);
    uint32_t id;
    if (builder->trace == NULL || !uf__builder_string(builder, "", 0, &id)) {
        uf__builder_destroy(builder);
        return NULL;
    }
    builder->trace->settings.conf = UF_NONE;
    builder->trace->oddities.first_unknown_key = UF_NONE;
    return builder;
}

void uf__builder_destroy(uf_builder *builder)
{
    if (builder == NULL)
        return;
    uf_trace_destroy(builder->trace);
    builder->strings.data = NULL;
    builder->strings.offsets = NULL;
    uf__strings_fini(&builder->strings);
    uf__index_fini(&builder->frames);
    uf__index_fini(&builder->stacks);
    uf__index_fini(&builder->sites);
    free(builder);
}

uf_trace *uf__builder_trace(uf_builder *builder)
{
    return builder->trace;
}

/* Makes room for one item more. Returns the array, NULL when there is no room. */
static void *grow_by_one(void *items, uint64_t *capacity, uint64_t count, size_t item_bytes)
{
    if (count < *capacity)
        return items;
    return uf__array_grow(items, capacity, count + 1, item_bytes);
}

bool uf__builder_string(uf_builder *builder, const char *text, size_t length, uint32_t *id)
{
    bool is_ok = uf__strings_intern(&builder->strings, text, length, id);
    builder->trace->string_data = builder->strings.data;
    builder->trace->string_offsets = builder->strings.offsets;
    builder->trace->string_count = builder->strings.count;
    return is_ok;
}

bool uf__builder_frame(uf_builder *builder, const uf_frame *frame, uint32_t *id)
{
    uf_trace *trace = builder->trace;
    uint32_t hash = uf__hash_bytes(frame, sizeof *frame, builder->seed);
    uint64_t place = uf__index_begin(&builder->frames, hash);
    uint32_t found;
    while ((found = uf__index_next(&builder->frames, hash, &place)) != UF_NONE) {
        if (memcmp(&trace->frames[found], frame, sizeof *frame) == 0) {
            *id = found;
            return true;
        }
    }
    if (trace->frame_count >= UF_NONE - 1)
        return false;
    uf_frame *frames =
        grow_by_one(trace->frames, &builder->frame_capacity, trace->frame_count, sizeof *frames);
    if (frames == NULL)
        return false;
    trace->frames = frames;
    if (!uf__index_add(&builder->frames, hash, trace->frame_count))
        return false;
    frames[trace->frame_count] = *frame;
    *id = trace->frame_count++;
    return true;
}

static bool stack_append(uf_builder *builder, const uint32_t *frame_ids, uint32_t count)
{
    uf_trace *trace = builder->trace;
    if (trace->stack_count >= UF_NONE - 1)
        return false;
    uf_stack *stacks =
        grow_by_one(trace->stacks, &builder->stack_capacity, trace->stack_count, sizeof *stacks);
    if (stacks == NULL)
        return false;
    trace->stacks = stacks;
    if (trace->frame_id_count + count > builder->frame_id_capacity) {
        uint32_t *ids = uf__array_grow(trace->frame_ids, &builder->frame_id_capacity,
                                       trace->frame_id_count + count, sizeof *ids);
        if (ids == NULL)
            return false;
        trace->frame_ids = ids;
    }
    if (count > 0)
        memcpy(trace->frame_ids + trace->frame_id_count, frame_ids, count * sizeof *frame_ids);
    memset(&stacks[trace->stack_count], 0, sizeof *stacks);
    stacks[trace->stack_count].first = trace->frame_id_count;
    stacks[trace->stack_count].count = count;
    return true;
}

bool uf__builder_stack(uf_builder *builder, const uint32_t *frame_ids, uint32_t count, uint32_t *id)
{
    uf_trace *trace = builder->trace;
    size_t size_bytes = (size_t)count * sizeof *frame_ids;
    uint32_t hash = uf__hash_bytes(frame_ids, size_bytes, builder->seed);
    uint64_t place = uf__index_begin(&builder->stacks, hash);
    uint32_t found;
    while ((found = uf__index_next(&builder->stacks, hash, &place)) != UF_NONE) {
        const uf_stack *stack = &trace->stacks[found];
        if (stack->count == count &&
            (count == 0 || memcmp(trace->frame_ids + stack->first, frame_ids, size_bytes) == 0)) {
            *id = found;
            return true;
        }
    }
    if (!stack_append(builder, frame_ids, count) ||
        !uf__index_add(&builder->stacks, hash, trace->stack_count))
        return false;
    trace->frame_id_count += count;
    *id = trace->stack_count++;
    return true;
}

bool uf__builder_site(uf_builder *builder, const uf_site *site, uint32_t *id)
{
    uf_trace *trace = builder->trace;
    uf_site clean = *site;
    memset(clean.reserved, 0, sizeof clean.reserved);
    uint32_t hash = uf__hash_bytes(&clean, sizeof clean, builder->seed);
    uint64_t place = uf__index_begin(&builder->sites, hash);
    uint32_t found;
    while ((found = uf__index_next(&builder->sites, hash, &place)) != UF_NONE) {
        if (memcmp(&trace->sites[found], &clean, sizeof clean) == 0) {
            *id = found;
            return true;
        }
    }
    if (trace->site_count >= UF_NONE - 1)
        return false;
    uf_site *sites =
        grow_by_one(trace->sites, &builder->site_capacity, trace->site_count, sizeof *sites);
    if (sites == NULL)
        return false;
    trace->sites = sites;
    if (!uf__index_add(&builder->sites, hash, trace->site_count))
        return false;
    sites[trace->site_count] = clean;
    *id = trace->site_count++;
    return true;
}

bool uf__builder_device(uf_builder *builder, int32_t device)
{
    uf_trace *trace = builder->trace;
    if (trace->device_count >= UF_NONE - 1)
        return false;
    uf_trace_device *devices = grow_by_one(trace->devices, &builder->device_capacity,
                                           trace->device_count, sizeof *devices);
    if (devices == NULL)
        return false;
    trace->devices = devices;
    memset(&devices[trace->device_count], 0, sizeof *devices);
    devices[trace->device_count].device = device;
    devices[trace->device_count].first = trace->event_count;
    trace->device_count++;
    return true;
}

bool uf__builder_event(uf_builder *builder, const uf_event *event)
{
    uf_trace *trace = builder->trace;
    uf_event *events =
        grow_by_one(trace->events, &builder->event_capacity, trace->event_count, sizeof *events);
    if (events == NULL)
        return false;
    trace->events = events;
    if (trace->device_count == 0 && !uf__builder_device(builder, 0))
        return false;
    events[trace->event_count++] = *event;
    trace->devices[trace->device_count - 1].count++;
    return true;
}

bool uf__builder_segment(uf_builder *builder, const uf_trace_segment *segment)
{
    uf_trace *trace = builder->trace;
    if (trace->segment_count >= UF_NONE - 1)
        return false;
    uf_trace_segment *segments = grow_by_one(trace->segments, &builder->segment_capacity,
                                             trace->segment_count, sizeof *segments);
    if (segments == NULL)
        return false;
    trace->segments = segments;
    segments[trace->segment_count] = *segment;
    segments[trace->segment_count].first_block = trace->block_count;
    segments[trace->segment_count].block_count = 0;
    trace->segment_count++;
    return true;
}

bool uf__builder_block(uf_builder *builder, const uf_trace_block *block)
{
    uf_trace *trace = builder->trace;
    if (trace->segment_count == 0)
        return false;
    uf_trace_segment *segment = &trace->segments[trace->segment_count - 1];
    if (segment->block_count >= UF_NONE - 1)
        return false;
    uf_trace_block *blocks =
        grow_by_one(trace->blocks, &builder->block_capacity, trace->block_count, sizeof *blocks);
    if (blocks == NULL)
        return false;
    trace->blocks = blocks;
    blocks[trace->block_count++] = *block;
    segment->block_count++;
    return true;
}

bool uf__builder_annotation(uf_builder *builder, const uf_annotation *annotation)
{
    uf_trace *trace = builder->trace;
    if (trace->annotation_count >= UF_NONE - 1)
        return false;
    uf_annotation *annotations = grow_by_one(trace->annotations, &builder->annotation_capacity,
                                             trace->annotation_count, sizeof *annotations);
    if (annotations == NULL)
        return false;
    trace->annotations = annotations;
    annotations[trace->annotation_count++] = *annotation;
    return true;
}

bool uf__builder_adopt_events(uf_builder *builder, uf_event *events, uint64_t count)
{
    uf_trace *trace = builder->trace;
    if (trace->event_count > 0)
        return false;
    free(trace->events);
    trace->events = events;
    builder->event_capacity = count;
    return true;
}

bool uf__builder_extend(uf_builder *builder, uint64_t count)
{
    uf_trace *trace = builder->trace;
    if (trace->device_count == 0 || count > builder->event_capacity - trace->event_count)
        return false;
    trace->event_count += count;
    trace->devices[trace->device_count - 1].count += count;
    return true;
}

static void trim(uf_trace *trace)
{
    trace->events = uf__array_trim(trace->events, trace->event_count, sizeof *trace->events);
    trace->blocks = uf__array_trim(trace->blocks, trace->block_count, sizeof *trace->blocks);
    trace->frame_ids =
        uf__array_trim(trace->frame_ids, trace->frame_id_count, sizeof *trace->frame_ids);
}

bool uf__builder_finish(uf_builder *builder, uf_trace **trace)
{
    trim(builder->trace);
    if (!uf__oddities_count(builder->trace))
        return false;
    *trace = builder->trace;
    builder->trace = NULL;
    uf__builder_destroy(builder);
    return true;
}
