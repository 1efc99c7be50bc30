/* SPDX-License-Identifier: MIT
 *
 * The statistics' names and the layout list that every model of the tests shares. Knows no model.
 * Single-threaded. */
#include "oplog/model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const group_names[STAT_GROUP_COUNT] = {
    "allocation",      "segment",        "active",       "inactive_split",
    "allocated_bytes", "reserved_bytes", "active_bytes", "inactive_split_bytes",
    "requested_bytes",
};
static const char *const pool_names[] = {"all", "small_pool", "large_pool"};
static const char *const part_names[] = {"current", "peak", "allocated", "freed"};
static const char *const plain_names[] = {
    "num_alloc_retries", "num_ooms",        "num_sync_all_streams",
    "num_device_alloc",  "num_device_free", "max_split_size",
};

size_t model_stat_index(model_stat_group group, int pool, int part)
{
    return (size_t)group * 12 + (size_t)pool * 4 + (size_t)part;
}

void model_stat_name(size_t index, char *text)
{
    if (index < STAT_OVERSIZE_ALLOCATIONS) {
        (void)snprintf(text, 64, "%s.%s.%s", group_names[index / 12], pool_names[index / 4 % 3],
                       part_names[index % 4]);
    } else if (index < STAT_NUM_ALLOC_RETRIES) {
        (void)snprintf(text, 64, "oversize_%s.%s",
                       index < STAT_OVERSIZE_SEGMENTS ? "allocations" : "segments",
                       part_names[index % 4]);
    } else {
        (void)snprintf(text, 64, "%s", plain_names[index - STAT_NUM_ALLOC_RETRIES]);
    }
}

void *model_grow(void *items, size_t count, size_t *capacity, size_t item_size)
{
    if (count < *capacity) {
        return items;
    }
    size_t larger = *capacity == 0 ? 64 : *capacity * 2;
    void *grown = realloc(items, larger * item_size);
    if (grown == NULL) {
        (void)fprintf(stderr, "no host memory for %zu items of %zu bytes\n", larger, item_size);
        exit(5);
    }
    *capacity = larger;
    return grown;
}

void model_layout_segment(model_layout *layout, const model_segment *segment)
{
    layout->segments = model_grow(layout->segments, layout->segment_count,
                                  &layout->segment_capacity, sizeof *layout->segments);
    model_segment *copy = &layout->segments[layout->segment_count++];
    *copy = *segment;
    copy->total_bytes = copy->allocated_bytes = copy->active_bytes = copy->requested_bytes = 0;
    copy->first_block = layout->block_count;
    copy->block_count = 0;
}

void model_layout_block(model_layout *layout, const model_block *block)
{
    layout->blocks = model_grow(layout->blocks, layout->block_count, &layout->block_capacity,
                                sizeof *layout->blocks);
    layout->blocks[layout->block_count++] = *block;
    model_segment *segment = &layout->segments[layout->segment_count - 1];
    segment->block_count++;
    segment->total_bytes += block->size_bytes;
    if (block->state == UF_BLOCK_ACTIVE_ALLOCATED) {
        segment->allocated_bytes += block->size_bytes;
    }
    if (block->state != UF_BLOCK_INACTIVE) {
        segment->active_bytes += block->size_bytes;
        segment->requested_bytes += block->requested_bytes;
    }
}

void model_layout_clear(model_layout *layout)
{
    layout->segment_count = layout->block_count = 0;
}

void model_layout_fini(model_layout *layout)
{
    free(layout->segments);
    free(layout->blocks);
    *layout = (model_layout){0};
}

static bool segment_equal(const model_segment *a, const model_segment *b)
{
    return a->addr == b->addr && a->total_bytes == b->total_bytes &&
           a->allocated_bytes == b->allocated_bytes && a->active_bytes == b->active_bytes &&
           a->requested_bytes == b->requested_bytes && a->stream == b->stream &&
           a->pool_id[0] == b->pool_id[0] && a->pool_id[1] == b->pool_id[1] &&
           a->block_count == b->block_count && a->is_large == b->is_large &&
           a->is_expandable == b->is_expandable;
}

static int segment_text(const model_segment *s, char *text, size_t size)
{
    return snprintf(text, size,
                    "0x%" PRIx64 " of %" PRIu64 " bytes, %s%s, stream 0x%" PRIx64 ", pool (%" PRIu64
                    ",%" PRIu64 "), %zu blocks, allocated %" PRIu64 ", active %" PRIu64
                    ", requested %" PRIu64,
                    s->addr, s->total_bytes, s->is_large ? "large" : "small",
                    s->is_expandable ? " expandable" : "", s->stream, s->pool_id[0], s->pool_id[1],
                    s->block_count, s->allocated_bytes, s->active_bytes, s->requested_bytes);
}

static bool block_equal(const model_block *a, const model_block *b)
{
    return a->addr == b->addr && a->size_bytes == b->size_bytes &&
           a->requested_bytes == b->requested_bytes && a->state == b->state;
}

static bool blocks_equal(const model_layout *expected, const model_layout *got, size_t count,
                         char *text, size_t size)
{
    for (size_t i = 0; i < count && i < got->block_count; i++) {
        const model_block *e = &expected->blocks[i];
        const model_block *g = &got->blocks[i];
        if (!block_equal(e, g)) {
            (void)snprintf(text, size,
                           "block %zu: expected 0x%" PRIx64 " size %" PRIu64 " requested %" PRIu64
                           " state %d, got 0x%" PRIx64 " size %" PRIu64 " requested %" PRIu64
                           " state %d",
                           i, e->addr, e->size_bytes, e->requested_bytes, (int)e->state, g->addr,
                           g->size_bytes, g->requested_bytes, (int)g->state);
            return false;
        }
    }
    return true;
}

bool model_layout_equal(const model_layout *expected, const model_layout *got, char *text,
                        size_t size)
{
    for (size_t i = 0; i < expected->segment_count && i < got->segment_count; i++) {
        const model_segment *e = &expected->segments[i];
        if (!segment_equal(e, &got->segments[i])) {
            if (e->addr == got->segments[i].addr &&
                !blocks_equal(expected, got, e->first_block + e->block_count, text, size)) {
                return false;
            }
            char one[240];
            char two[240];
            (void)segment_text(e, one, sizeof one);
            (void)segment_text(&got->segments[i], two, sizeof two);
            (void)snprintf(text, size, "segment %zu: expected %s; got %s", i, one, two);
            return false;
        }
    }
    if (expected->segment_count != got->segment_count ||
        expected->block_count != got->block_count) {
        (void)snprintf(text, size, "expected %zu segments with %zu blocks, got %zu with %zu",
                       expected->segment_count, expected->block_count, got->segment_count,
                       got->block_count);
        return false;
    }
    return blocks_equal(expected, got, expected->block_count, text, size);
}
