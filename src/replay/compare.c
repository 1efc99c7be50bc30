/* SPDX-License-Identifier: MIT
 *
 * The model's final segments and blocks against the recorded ones. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "alloc/layout.h"
#include "replay/follow.h"

typedef struct uf_recorded {
    const uf_trace_segment **items; /* by address */
    uint32_t count;
} uf_recorded;

static int compare_addr(const void *left, const void *right)
{
    const uf_trace_segment *a = *(const uf_trace_segment *const *)left;
    const uf_trace_segment *b = *(const uf_trace_segment *const *)right;
    return (a->addr > b->addr) - (a->addr < b->addr);
}

static bool recorded_init(uf_recorded *recorded, const uf_program *program)
{
    const uf_trace *trace = program->trace;
    recorded->count = 0;
    recorded->items = malloc((trace->segment_count + 1u) * sizeof(uf_trace_segment *));
    if (recorded->items == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < trace->segment_count; i++) {
        if (trace->segments[i].device == program->device) {
            recorded->items[recorded->count++] = &trace->segments[i];
        }
    }
    qsort(recorded->items, recorded->count, sizeof(uf_trace_segment *), compare_addr);
    return true;
}

static const char *state_name(uf_block_state state)
{
    switch (state) {
    case UF_BLOCK_ACTIVE_ALLOCATED:
        return "active_allocated";
    case UF_BLOCK_ACTIVE_PENDING_FREE:
        return "active_pending_free";
    case UF_BLOCK_INACTIVE:
        return "inactive";
    case UF_BLOCK_OTHER:
        break;
    }
    return "other";
}

static uf_block_state state_of(const uf_block *block)
{
    switch ((uf_life)block->life) {
    case UF_LIFE_ALLOCATED:
        return UF_BLOCK_ACTIVE_ALLOCATED;
    case UF_LIFE_PENDING:
    case UF_LIFE_DEFERRED:
        return UF_BLOCK_ACTIVE_PENDING_FREE;
    case UF_LIFE_FREE:
    case UF_LIFE_UNUSED:
    case UF_LIFE_SHADOW:
        break;
    }
    return UF_BLOCK_INACTIVE;
}

/* Blocks freed before the trace began keep a requested size that nothing recorded. */
static bool is_requested_equal(const uf_follow *follow, const uf_trace_block *recorded,
                               const uf_block *block)
{
    return !recorded->has_requested || recorded->requested_bytes == block->requested_bytes ||
           (follow->program->start != NULL && block->life == UF_LIFE_FREE);
}

static void compare_blocks(uf_follow *follow, const uf_trace_segment *segment,
                           const uf_layout_segment *model)
{
    const uf_trace *trace = follow->program->trace;
    uint32_t index = model->first_block;
    for (uint32_t b = 0; b < segment->block_count && !follow->has_failed; b++) {
        const uf_trace_block *recorded = &trace->blocks[segment->first_block + b];
        const uf_block *block = uf__core_block(&follow->core, index);
        bool is_same = b < model->block_count && block->addr == recorded->addr &&
                       block->size_bytes == recorded->size_bytes &&
                       state_of(block) == (uf_block_state)recorded->state &&
                       is_requested_equal(follow, recorded, block);
        if (!is_same) {
            uf__follow_fail(follow, UF_EVENT_NONE,
                            "final block expected: 0x%" PRIx64 ", %" PRIu64
                            " bytes, requested %" PRIu64 ", %s; the model has 0x%" PRIx64
                            ", %" PRIu64 " bytes, requested %" PRIu64 ", %s",
                            recorded->addr, recorded->size_bytes, recorded->requested_bytes,
                            state_name((uf_block_state)recorded->state), block->addr,
                            block->size_bytes, block->requested_bytes, state_name(state_of(block)));
            follow->difference.kind = UF_DIFFERENCE_BLOCK;
        }
        index = block->next;
    }
    if (!follow->has_failed && segment->block_count != model->block_count) {
        uf__follow_fail(follow, UF_EVENT_NONE,
                        "final segment 0x%" PRIx64 " expected with %" PRIu32
                        " blocks, the model has %" PRIu32,
                        segment->addr, segment->block_count, model->block_count);
        follow->difference.kind = UF_DIFFERENCE_BLOCK;
    }
}

static bool is_segment_equal(const uf_trace_segment *segment, const uf_layout_segment *model)
{
    return segment->addr == model->addr && segment->total_bytes == model->total_bytes &&
           segment->stream == model->stream && segment->is_large == model->is_large &&
           segment->is_expandable == model->is_expandable &&
           segment->allocated_bytes == model->allocated_bytes &&
           segment->active_bytes == model->active_bytes &&
           (!segment->has_requested || segment->requested_bytes == model->requested_bytes) &&
           (!segment->has_pool_id ||
            (segment->pool_id[0] == model->pool_id[0] && segment->pool_id[1] == model->pool_id[1]));
}

static void fail_segment(uf_follow *follow, const uf_trace_segment *segment,
                         const uf_layout_segment *model)
{
    char expected[144] = "none", found[144] = "none";
    if (segment != NULL) {
        snprintf(expected, sizeof expected,
                 "0x%" PRIx64 ", %" PRIu64 " bytes, stream %" PRIu64 ", pool (%" PRIu64 ",%" PRIu64
                 "), %" PRIu64 " allocated, %" PRIu64 " active",
                 segment->addr, segment->total_bytes, segment->stream, segment->pool_id[0],
                 segment->pool_id[1], segment->allocated_bytes, segment->active_bytes);
    }
    if (model != NULL) {
        snprintf(found, sizeof found,
                 "0x%" PRIx64 ", %" PRIu64 " bytes, stream %" PRIu64 ", pool (%" PRIu64 ",%" PRIu64
                 "), %" PRIu64 " allocated, %" PRIu64 " active",
                 model->addr, model->total_bytes, model->stream, model->pool_id[0],
                 model->pool_id[1], model->allocated_bytes, model->active_bytes);
    }
    uf__follow_fail(follow, UF_EVENT_NONE, "final segment expected: %s; the model has %s", expected,
                    found);
    follow->difference.kind = UF_DIFFERENCE_SEGMENT;
}

uf_status uf__follow_compare_end(uf_follow *follow)
{
    uf_layout layout;
    uf_recorded recorded;
    uf_status status = uf__layout_init(&layout, &follow->core);
    if (status != UF_OK) {
        return status;
    }
    if (!recorded_init(&recorded, follow->program)) {
        uf__layout_fini(&layout);
        return UF_ERROR_HOST_MEMORY;
    }
    follow->program->report.final_segment_count = layout.segment_count;
    follow->program->report.final_block_count = 0;
    for (uint32_t i = 0; i < layout.segment_count; i++) {
        follow->program->report.final_block_count += layout.segments[i].block_count;
    }
    uint32_t count = recorded.count > layout.segment_count ? recorded.count : layout.segment_count;
    for (uint32_t i = 0; i < count && !follow->has_failed; i++) {
        const uf_trace_segment *segment = i < recorded.count ? recorded.items[i] : NULL;
        const uf_layout_segment *model = i < layout.segment_count ? &layout.segments[i] : NULL;
        if (segment == NULL || model == NULL || !is_segment_equal(segment, model)) {
            fail_segment(follow, segment, model);
        } else {
            compare_blocks(follow, segment, model);
        }
    }
    free(recorded.items);
    uf__layout_fini(&layout);
    return UF_OK;
}
