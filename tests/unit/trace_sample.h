/* SPDX-License-Identifier: MIT
 *
 * For tests of the trace formats: a small trace in which every field is used, and a comparison of
 * two traces that names the first difference. */
#ifndef UF_TESTS_TRACE_SAMPLE_H
#define UF_TESTS_TRACE_SAMPLE_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/builder.h"

#define SAMPLE_REQUIRE(condition)                                                   \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "%s:%d: sample: %s\n", __FILE__, __LINE__, #condition); \
            exit(2);                                                                \
        }                                                                           \
    } while (0)

static inline uint32_t sample_string(uf_builder *builder, const char *text)
{
    uint32_t id;
    SAMPLE_REQUIRE(uf__builder_string(builder, text, strlen(text), &id));
    return id;
}

static inline uint32_t sample_stack(uf_builder *builder, uint32_t frame_count)
{
    uint32_t ids[64] = {0};
    for (uint32_t i = 0; i < frame_count; i++) {
        char name[32];
        snprintf(name, sizeof name, "function_%u", i);
        uf_frame frame;
        memset(&frame, 0, sizeof frame);
        frame.filename = sample_string(builder, i % 2 == 0 ? "C:\\a b\\\xc3\xa4.py" : "/x/y.py");
        frame.name = sample_string(builder, name);
        frame.line = i == 3 ? -1 : (int64_t)i * 1000;
        SAMPLE_REQUIRE(uf__builder_frame(builder, &frame, &ids[i]));
    }
    uint32_t id;
    SAMPLE_REQUIRE(uf__builder_stack(builder, ids, frame_count, &id));
    return id;
}

static inline uint32_t sample_site(uf_builder *builder, uint64_t stream, uint32_t stack,
                                   bool has_pool_id, uint32_t action_name)
{
    uf_site site;
    memset(&site, 0, sizeof site);
    site.stream = stream;
    site.has_pool_id = has_pool_id;
    site.pool_id[0] = has_pool_id ? 7 : 0;
    site.stack = stack;
    site.compile_context = sample_string(builder, "N/A");
    site.user_metadata = stack == UF_NONE ? UF_NONE : sample_string(builder, "");
    site.action_name = action_name;
    uint32_t id;
    SAMPLE_REQUIRE(uf__builder_site(builder, &site, &id));
    return id;
}

static inline void sample_event(uf_builder *builder, uf_action action, uint64_t addr,
                                uint64_t size_bytes, int64_t time_us, uint32_t site)
{
    uf_event event;
    memset(&event, 0, sizeof event);
    event.action = (uint8_t)action;
    event.addr = addr;
    event.size_bytes = size_bytes;
    event.time_us = time_us;
    event.site = site;
    SAMPLE_REQUIRE(uf__builder_event(builder, &event));
}

static inline void sample_segments(uf_builder *builder, uint32_t stack)
{
    uf_trace_segment segment;
    memset(&segment, 0, sizeof segment);
    segment.device = 1;
    segment.addr = UINT64_C(0x7f1234000000);
    segment.total_bytes = 20971520;
    segment.allocated_bytes = 1024;
    segment.active_bytes = 1536;
    segment.requested_bytes = 1001;
    segment.stream = UINT64_C(94523463463456);
    segment.pool_id[0] = 0;
    segment.pool_id[1] = 3;
    segment.has_pool_id = segment.has_requested = segment.is_large = true;
    segment.stack = stack;
    SAMPLE_REQUIRE(uf__builder_segment(builder, &segment));
    uint64_t addr = segment.addr;
    for (uint32_t i = 0; i < 5; i++) {
        uf_trace_block block;
        memset(&block, 0, sizeof block);
        block.addr = addr + (i == 4 ? 512 : 0);
        block.size_bytes = 512;
        block.has_requested = i != 3;
        block.requested_bytes = i == 3 ? 0 : i == 2 ? 99999 : 512 - i;
        block.state = (uint8_t)(i % 4);
        block.stack = i == 1 ? stack : UF_NONE;
        SAMPLE_REQUIRE(uf__builder_block(builder, &block));
        addr = block.addr + block.size_bytes;
    }
    memset(&segment, 0, sizeof segment);
    segment.addr = 512;
    segment.is_expandable = true;
    segment.stack = UF_NONE;
    SAMPLE_REQUIRE(uf__builder_segment(builder, &segment));
}

static inline void sample_settings(uf_builder *builder)
{
    uf_trace_settings *settings = &uf__builder_trace(builder)->settings;
    settings->is_present = settings->has_conf = settings->has_max_split_size = true;
    settings->has_gc_threshold = settings->has_expandable = settings->has_divisions = true;
    settings->conf = sample_string(builder, "max_split_size_mb:128,expandable_segments:True");
    settings->max_split_size_bytes = -1;
    settings->gc_threshold = 0.8;
    settings->is_expandable = true;
    for (uint64_t i = 0; i < 16; i++) {
        settings->divisions[i] = i * i;
    }
    settings->pinned_num_register_threads = 8;
    settings->release_lock_on_cudamalloc = true;
    settings->graph_capture_record_stream_reuse = true;
    settings->has_other = 15;
}

/* Fills a builder; each kind of thing is there, with values at the edges of its range. */
static inline void sample_fill(uf_builder *builder)
{
    uint32_t stack = sample_stack(builder, 5);
    uint32_t empty = sample_stack(builder, 0);
    uint32_t plain = sample_site(builder, 0, UF_NONE, false, UF_NONE);
    uint32_t with_stack = sample_site(builder, UINT64_C(1) << 47, stack, true, UF_NONE);
    uint32_t with_empty = sample_site(builder, 3, empty, false, UF_NONE);
    uint32_t other = sample_site(builder, 3, empty, false, sample_string(builder, "workspace"));
    uint64_t addr = UINT64_C(0x7f1234000000);
    int64_t now = INT64_C(1796068220266732);
    SAMPLE_REQUIRE(uf__builder_device(builder, 0));
    SAMPLE_REQUIRE(uf__builder_device(builder, 1));
    sample_event(builder, UF_ACTION_SEGMENT_ALLOC, addr, 20971520, now, plain);
    sample_event(builder, UF_ACTION_ALLOC, addr, 512, now + 5, with_stack);
    sample_event(builder, UF_ACTION_ALLOC, addr + 512, 1, now + 4, with_stack);
    sample_event(builder, UF_ACTION_ALLOC, addr + 1025, 1, UF_TIME_UNKNOWN, with_empty);
    sample_event(builder, UF_ACTION_FREE_REQUESTED, addr, 512, now + 9, with_empty);
    sample_event(builder, UF_ACTION_FREE_COMPLETED, addr, 512, now + 9, with_empty);
    sample_event(builder, UF_ACTION_SNAPSHOT, 0, 1024, now + 10, plain);
    sample_event(builder, UF_ACTION_OOM, UINT64_C(85899345920), 1 << 30, now + 11, plain);
    sample_event(builder, UF_ACTION_SEGMENT_MAP, addr, 512, now + 12, plain);
    sample_event(builder, UF_ACTION_SEGMENT_UNMAP, UINT64_MAX, UINT64_MAX, now + 13, plain);
    sample_event(builder, UF_ACTION_SEGMENT_FREE, 0, 0, now + 14, plain);
    sample_event(builder, UF_ACTION_OTHER, UINT64_C(1) << 63, 70000, now + 15, other);
    SAMPLE_REQUIRE(uf__builder_device(builder, 2));
    sample_event(builder, UF_ACTION_ALLOC, 0, 0, 0, plain);
    sample_segments(builder, stack);
    sample_settings(builder);
    uf_annotation annotation;
    memset(&annotation, 0, sizeof annotation);
    annotation.name = sample_string(builder, "Optimizer.step");
    annotation.stage = sample_string(builder, "START");
    annotation.device = 1;
    annotation.time_us = now;
    SAMPLE_REQUIRE(uf__builder_annotation(builder, &annotation));
    annotation.stage = sample_string(builder, "END");
    annotation.time_us = UF_TIME_UNKNOWN;
    SAMPLE_REQUIRE(uf__builder_annotation(builder, &annotation));
    uf__builder_trace(builder)->has_device_traces = true;
}

/* The sample as a finished trace; the caller destroys it. */
static inline uf_trace *sample_create(void)
{
    uf_builder *builder = uf__builder_create();
    SAMPLE_REQUIRE(builder != NULL);
    sample_fill(builder);
    uf_trace *trace = NULL;
    SAMPLE_REQUIRE(uf__builder_finish(builder, &trace));
    return trace;
}

static inline bool array_differs(const char *name, const void *a, const void *b, uint64_t a_count,
                                 uint64_t b_count, size_t item_bytes, char *text, size_t capacity)
{
    if (a_count != b_count) {
        snprintf(text, capacity, "%s: %" PRIu64 " and %" PRIu64, name, a_count, b_count);
        return true;
    }
    for (uint64_t i = 0; i < a_count; i++) {
        if (memcmp((const char *)a + i * item_bytes, (const char *)b + i * item_bytes,
                   item_bytes) != 0) {
            snprintf(text, capacity, "%s: item %" PRIu64 " of %" PRIu64, name, i, a_count);
            return true;
        }
    }
    return false;
}

static inline bool settings_differ(const uf_trace_settings *a, const uf_trace_settings *b)
{
    return a->is_present != b->is_present || a->has_conf != b->has_conf ||
           a->has_max_split_size != b->has_max_split_size ||
           a->has_gc_threshold != b->has_gc_threshold || a->has_expandable != b->has_expandable ||
           a->has_divisions != b->has_divisions || a->conf != b->conf ||
           a->max_split_size_bytes != b->max_split_size_bytes ||
           memcmp(&a->gc_threshold, &b->gc_threshold, sizeof a->gc_threshold) != 0 ||
           a->is_expandable != b->is_expandable ||
           memcmp(a->divisions, b->divisions, sizeof a->divisions) != 0 ||
           a->pinned_num_register_threads != b->pinned_num_register_threads ||
           a->release_lock_on_cudamalloc != b->release_lock_on_cudamalloc ||
           a->pinned_use_cuda_host_register != b->pinned_use_cuda_host_register ||
           a->graph_capture_record_stream_reuse != b->graph_capture_record_stream_reuse ||
           a->has_other != b->has_other;
}

/* Field by field and id by id, all but the form, the oddities and the figures of the reading.
 * Returns "" for equal traces, else what differs first; static text. */
static inline const char *trace_difference(const uf_trace *a, const uf_trace *b)
{
    static char text[200];
#define DIFFERS(field, count)                                                             \
    array_differs(#field, a->field, b->field, a->count, b->count, sizeof *a->field, text, \
                  sizeof text)
    if (DIFFERS(string_offsets, string_count) || DIFFERS(frames, frame_count) ||
        DIFFERS(frame_ids, frame_id_count) || DIFFERS(stacks, stack_count) ||
        DIFFERS(sites, site_count) || DIFFERS(devices, device_count) ||
        DIFFERS(events, event_count) || DIFFERS(segments, segment_count) ||
        DIFFERS(blocks, block_count) || DIFFERS(annotations, annotation_count)) {
        return text;
    }
#undef DIFFERS
    if (memcmp(a->string_data, b->string_data, a->string_offsets[a->string_count]) != 0) {
        return "string_data";
    }
    if (settings_differ(&a->settings, &b->settings)) {
        return "settings";
    }
    if (a->has_device_traces != b->has_device_traces || a->total_bytes != b->total_bytes ||
        a->script_card_bytes != b->script_card_bytes ||
        a->script_limit_bytes != b->script_limit_bytes) {
        return "has_device_traces or a total";
    }
    return "";
}

#endif
