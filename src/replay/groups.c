/* SPDX-License-Identifier: MIT
 *
 * Tables by stream and pool. */
#include "replay/groups.h"

#include <stdlib.h>
#include <string.h>

#include "alloc/layout.h"

typedef struct uf_part {
    uint64_t alloc_count, live_bytes, peak_bytes;
} uf_part;

static uf_part *part_of(const uf_program *program, uf_part *parts, uint32_t id)
{
    return &parts[(size_t)program->alloc_pool[id] * program->stream_count +
                  program->alloc_stream[id]];
}

static void add_live(const uf_program *program, uf_part *parts, uint32_t id)
{
    uf_part *part = part_of(program, parts, id);
    part->alloc_count++;
    part->live_bytes += program->alloc_bytes[id];
    part->peak_bytes = part->live_bytes > part->peak_bytes ? part->live_bytes : part->peak_bytes;
}

static void measure_program(const uf_program *program, uf_part *parts)
{
    for (uint32_t i = 0; i < program->start_count; i++) {
        add_live(program, parts, program->start_ids[i]);
    }
    for (uint64_t at = 0; at < program->event_count; at++) {
        uf_op_kind kind = uf__op_kind(program->ops[at]);
        uint32_t id = uf__op_id(program->ops[at]);
        if (kind == UF_OP_ALLOC) {
            add_live(program, parts, id);
        } else if (kind == UF_OP_FREE || kind == UF_OP_COMPLETE || kind == UF_OP_COMPLETE_AFTER) {
            uf_part *part = part_of(program, parts, id);
            uint64_t bytes = program->alloc_bytes[id];
            part->live_bytes -= bytes < part->live_bytes ? bytes : part->live_bytes;
        }
    }
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
    size_t part_count = (size_t)program->pool_count * program->stream_count;
    uf_part *parts = calloc(part_count + 1, sizeof *parts);
    uf_layout layout;
    uf_status status = parts == NULL ? UF_ERROR_HOST_MEMORY : uf__layout_init(&layout, core);
    if (status != UF_OK) {
        free(parts);
        return status;
    }
    measure_program(program, parts);
    *count = 0;
    for (size_t i = 0; i < part_count; i++) {
        if (parts[i].alloc_count == 0) {
            continue;
        }
        if (*count < capacity) {
            const uf_program_pool *pool = &program->pools[i / program->stream_count];
            groups[*count] = (uf_replay_group){
                .stream = program->streams[i % program->stream_count],
                .pool_id = {pool->id[0], pool->id[1]},
                .is_inferred_pool = !pool->is_recorded && i / program->stream_count != 0,
                .alloc_count = parts[i].alloc_count,
                .peak_live_bytes = parts[i].peak_bytes};
            measure_end(&layout, &groups[*count]);
        }
        ++*count;
    }
    uf__layout_fini(&layout);
    free(parts);
    return UF_OK;
}
