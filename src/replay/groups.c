/* SPDX-License-Identifier: MIT
 *
 * Tables by stream and pool. */
#include "replay/groups.h"

#include <stdlib.h>
#include <string.h>

#include "alloc/layout.h"
#include "base/addrmap.h"

typedef struct uf_part {
    uint64_t alloc_count, live_bytes, peak_bytes;
    uint32_t pool, stream;
} uf_part;

/* The pairs of pool and stream that occur; few of all that could. */
typedef struct uf_parts {
    const uf_program *program;
    uf_part *items;
    uint32_t count, capacity;
    uf_addrmap index; /* pool and stream -> item */
} uf_parts;

/* NULL if the host has no memory left. */
static uf_part *part_of(uf_parts *parts, uint32_t id)
{
    uint32_t pool = parts->program->alloc_pool[id], stream = parts->program->alloc_stream[id];
    uint64_t key = (uint64_t)pool << 25 | (uint64_t)stream << 9;
    const uint32_t *found = uf__addrmap_find(&parts->index, key);
    if (found != NULL) {
        return &parts->items[*found];
    }
    if (parts->count == parts->capacity) {
        uint32_t capacity = parts->capacity == 0 ? 64 : parts->capacity * 2;
        uf_part *grown = realloc(parts->items, capacity * sizeof *grown);
        if (grown == NULL) {
            return NULL;
        }
        parts->items = grown;
        parts->capacity = capacity;
    }
    if (!uf__addrmap_set(&parts->index, key, parts->count)) {
        return NULL;
    }
    parts->items[parts->count] = (uf_part){.pool = pool, .stream = stream};
    return &parts->items[parts->count++];
}

static bool add_live(uf_parts *parts, uint32_t id)
{
    uf_part *part = part_of(parts, id);
    if (part == NULL) {
        return false;
    }
    part->alloc_count++;
    part->live_bytes += parts->program->alloc_bytes[id];
    part->peak_bytes = part->live_bytes > part->peak_bytes ? part->live_bytes : part->peak_bytes;
    return true;
}

static bool measure_program(uf_parts *parts)
{
    const uf_program *program = parts->program;
    bool is_good = true;
    for (uint32_t i = 0; i < program->start_count && is_good; i++) {
        is_good = add_live(parts, program->start_ids[i]);
    }
    for (uint64_t at = 0; at < program->event_count && is_good; at++) {
        uf_op_kind kind = uf__op_kind(program->ops[at]);
        uint32_t id = uf__op_id(program->ops[at]);
        if (kind == UF_OP_ALLOC) {
            is_good = add_live(parts, id);
        } else if (kind == UF_OP_FREE || kind == UF_OP_COMPLETE || kind == UF_OP_COMPLETE_AFTER) {
            uf_part *part = part_of(parts, id);
            uint64_t bytes = program->alloc_bytes[id];
            is_good = part != NULL;
            if (is_good) {
                part->live_bytes -= bytes < part->live_bytes ? bytes : part->live_bytes;
            }
        }
    }
    return is_good;
}

static int compare_parts(const void *left, const void *right)
{
    const uf_part *a = left, *b = right;
    if (a->pool != b->pool) {
        return a->pool < b->pool ? -1 : 1;
    }
    return (a->stream > b->stream) - (a->stream < b->stream);
}

static void measure_end(const uf_layout *layout, uf_replay_group *group)
{
    for (uint32_t i = 0; i < layout->segment_count; i++) {
        const uf_layout_segment *segment = &layout->segments[i];
        if (segment->stream == group->stream && segment->pool_id[0] == group->pool_id[0] &&
            segment->pool_id[1] == group->pool_id[1]) {
            group->end_active_bytes += segment->active_bytes;
            group->end_reserved_bytes += segment->total_bytes;
        }
    }
}

uf_status uf__groups_measure(const uf_program *program, const uf_core *core,
                             uf_replay_group *groups, uint32_t capacity, uint32_t *count)
{
    uf_parts parts = {.program = program};
    uf_layout layout;
    uf_status status = uf__layout_init(&layout, core);
    if (status != UF_OK) {
        return status;
    }
    if (measure_program(&parts)) {
        if (parts.count > 0) {
            qsort(parts.items, parts.count, sizeof *parts.items, compare_parts);
        }
        *count = parts.count;
    } else {
        status = UF_ERROR_HOST_MEMORY;
    }
    for (uint32_t i = 0; i < parts.count && i < capacity && status == UF_OK; i++) {
        const uf_part *part = &parts.items[i];
        const uf_program_pool *pool = &program->pools[part->pool];
        groups[i] = (uf_replay_group){.stream = program->streams[part->stream],
                                      .pool_id = {pool->id[0], pool->id[1]},
                                      .is_inferred_pool = !pool->is_recorded && part->pool != 0,
                                      .alloc_count = part->alloc_count,
                                      .peak_live_bytes = part->peak_bytes};
        measure_end(&layout, &groups[i]);
    }
    uf__layout_fini(&layout);
    uf__addrmap_fini(&parts.index);
    free(parts.items);
    return status;
}
