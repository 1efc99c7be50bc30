/* SPDX-License-Identifier: MIT
 *
 * Rebuilding the start state. See rebuild.h for the reasoning. */
#include "replay/rebuild.h"

#include <stdlib.h>
#include <string.h>

#include "alloc/rounding.h"
#include "base/addrmap.h"
#include "replay/ranges.h"

/* Where a range at the start comes from: a final segment (its index), or a release (event index).
 */
static const uint64_t FROM_EVENT = UINT64_C(1) << 63;

/* A block that was live at the start. */
typedef struct uf_survivor {
    uint64_t addr, size_bytes, next_addr; /* next_addr: the next survivor's, or the segment's end */
    uint32_t alloc;
    bool is_exact, is_gone, is_requested, is_waiting;
} uf_survivor;

typedef struct uf_rebuild {
    uf_program *program;
    uf_ranges ranges;
    uf_survivor *survivors;      /* by address */
    uint32_t *survivor_of_alloc; /* index + 1, 0 = none */
    uf_addrmap final_blocks;     /* index into trace->blocks by address */
} uf_rebuild;

static bool is_release(const uf_event *event)
{
    return event->action == UF_ACTION_SEGMENT_FREE || event->action == UF_ACTION_SEGMENT_UNMAP;
}

static bool is_acquisition(const uf_event *event)
{
    return event->action == UF_ACTION_SEGMENT_ALLOC || event->action == UF_ACTION_SEGMENT_MAP;
}

/* Final ranges, with every acquisition taken back and every release undone. */
static bool find_ranges(uf_rebuild *rebuild)
{
    const uf_program *program = rebuild->program;
    const uf_trace *trace = program->trace;
    uint64_t unused_bytes;
    bool is_good = true;
    for (uint32_t s = 0; s < trace->segment_count && is_good; s++) {
        const uf_trace_segment *segment = &trace->segments[s];
        if (segment->device == program->device) {
            is_good = uf__ranges_add(&rebuild->ranges, segment->addr, segment->total_bytes, s);
        }
    }
    for (uint64_t i = program->event_count; i-- > 0 && is_good;) {
        const uf_event *event = &program->events[i];
        if (is_acquisition(event)) {
            is_good =
                uf__ranges_remove(&rebuild->ranges, event->addr, event->size_bytes, &unused_bytes);
        } else if (is_release(event)) {
            is_good =
                uf__ranges_add(&rebuild->ranges, event->addr, event->size_bytes, i | FROM_EVENT);
        }
    }
    return is_good;
}

static bool add_segment(uf_rebuild *rebuild, uf_start *start, const uf_range *range)
{
    uf_program *program = rebuild->program;
    uf_start_segment made = {.addr = range->addr, .end = range->end};
    if ((range->creator & FROM_EVENT) == 0) {
        const uf_trace_segment *segment = &program->trace->segments[range->creator];
        made.stream = segment->stream;
        made.is_large = segment->is_large;
        made.is_expandable = segment->is_expandable;
        if (segment->has_pool_id &&
            !uf__program_pool_find(program, segment->pool_id, &made.label)) {
            return false;
        }
    } else {
        const uf_event *event = &program->events[range->creator & ~FROM_EVENT];
        const uf_site *site = &program->trace->sites[event->site];
        made.stream = site->stream;
        made.is_expandable = event->action == UF_ACTION_SEGMENT_UNMAP;
        made.is_large = made.is_expandable
                            ? event->size_bytes % program->conf.large_segment_bytes == 0
                            : event->size_bytes > UF_SMALL_SEGMENT_BYTES;
        if (site->has_pool_id && !uf__program_pool_find(program, site->pool_id, &made.label)) {
            return false;
        }
    }
    uf_start_segment *last =
        start->segment_count == 0 ? NULL : &start->segments[start->segment_count - 1];
    if (last != NULL && last->is_expandable && made.is_expandable && last->end == made.addr &&
        last->stream == made.stream) {
        last->end = made.end; /* one run of mapped pages */
        return true;
    }
    if (start->segment_count == start->segment_capacity) {
        uint32_t capacity = start->segment_capacity == 0 ? 64 : start->segment_capacity * 2;
        uf_start_segment *grown = realloc(start->segments, capacity * sizeof *grown);
        if (grown == NULL) {
            return false;
        }
        start->segments = grown;
        start->segment_capacity = capacity;
    }
    start->segments[start->segment_count++] = made;
    return true;
}

static int compare_survivors(const void *left, const void *right)
{
    const uf_survivor *a = left, *b = right;
    return (a->addr > b->addr) - (a->addr < b->addr);
}

static bool list_survivors(uf_rebuild *rebuild)
{
    const uf_program *program = rebuild->program;
    rebuild->survivors = calloc(program->start_count + 1u, sizeof *rebuild->survivors);
    rebuild->survivor_of_alloc =
        calloc(program->alloc_count + 1u, sizeof *rebuild->survivor_of_alloc);
    if (rebuild->survivors == NULL || rebuild->survivor_of_alloc == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < program->start_count; i++) {
        rebuild->survivors[i] =
            (uf_survivor){.addr = program->start_addrs[i], .alloc = program->start_ids[i]};
    }
    qsort(rebuild->survivors, program->start_count, sizeof *rebuild->survivors, compare_survivors);
    for (uint32_t i = 0; i < program->start_count; i++) {
        rebuild->survivor_of_alloc[rebuild->survivors[i].alloc] = i + 1;
    }
    return true;
}

static uf_survivor *first_from(const uf_rebuild *rebuild, uint64_t addr)
{
    uint32_t low = 0, high = rebuild->program->start_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (rebuild->survivors[middle].addr < addr) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return &rebuild->survivors[low];
}

/* Sizes as far as the start alone shows them. */
static void measure_plainly(uf_rebuild *rebuild, const uf_start_segment *segment)
{
    const uf_program *program = rebuild->program;
    uf_survivor *end = rebuild->survivors + program->start_count;
    for (uf_survivor *at = first_from(rebuild, segment->addr); at < end && at->addr < segment->end;
         at++) {
        uint64_t rounded = uf__round_request(&program->conf, program->alloc_bytes[at->alloc]);
        at->next_addr = at + 1 < end && at[1].addr < segment->end ? at[1].addr : segment->end;
        uint64_t room_bytes = at->next_addr - at->addr;
        bool is_plain_large = segment->is_large && !segment->is_expandable;
        if (rounded >= room_bytes) {
            at->size_bytes = room_bytes;
            at->is_exact = true;
        } else if (!is_plain_large) {
            at->size_bytes = rounded;
            at->is_exact = true;
        } else if (room_bytes - rounded <= UF_SMALL_MAX_BYTES ||
                   rounded >= program->conf.max_split_size_bytes) {
            at->size_bytes = room_bytes; /* a free block here is always larger */
            at->is_exact = true;
        } else {
            at->size_bytes = rounded;
        }
    }
}

/* Final blocks that were there all along show their size. */
static void measure_by_end(uf_rebuild *rebuild)
{
    const uf_program *program = rebuild->program;
    const uf_trace *trace = program->trace;
    for (uint32_t s = 0; s < trace->segment_count; s++) {
        const uf_trace_segment *segment = &trace->segments[s];
        for (uint32_t b = 0; segment->device == program->device && b < segment->block_count; b++) {
            const uf_trace_block *block = &trace->blocks[segment->first_block + b];
            uf_survivor *found = first_from(rebuild, block->addr);
            bool is_same = found < rebuild->survivors + program->start_count &&
                           found->addr == block->addr && !found->is_gone;
            if (is_same && block->state != UF_BLOCK_INACTIVE) {
                found->size_bytes = block->size_bytes;
                found->is_exact = true;
                found->is_waiting =
                    block->state == UF_BLOCK_ACTIVE_PENDING_FREE && !found->is_requested;
            }
        }
    }
}

/* The first request placed behind a block while it lives begins where the block ends. */
static void measure_by_events(uf_rebuild *rebuild)
{
    const uf_program *program = rebuild->program;
    uf_survivor *end = rebuild->survivors + program->start_count;
    for (uint64_t i = 0; i < program->event_count; i++) {
        uf_op_kind kind = uf__op_kind(program->ops[i]);
        uint32_t id = uf__op_id(program->ops[i]);
        bool is_end = kind == UF_OP_FREE || kind == UF_OP_COMPLETE;
        if (is_end && rebuild->survivor_of_alloc[id] != 0) {
            uf_survivor *gone = &rebuild->survivors[rebuild->survivor_of_alloc[id] - 1];
            bool is_waiting = program->events[i].action == UF_ACTION_FREE_COMPLETED &&
                              kind == UF_OP_FREE && !gone->is_gone;
            gone->is_waiting = is_waiting;
            gone->is_gone = true;
        } else if (kind == UF_OP_FREE_LATER && rebuild->survivor_of_alloc[id] != 0) {
            rebuild->survivors[rebuild->survivor_of_alloc[id] - 1].is_requested = true;
        } else if (kind == UF_OP_ALLOC) {
            uint64_t addr = program->events[i].addr;
            uf_survivor *before = first_from(rebuild, addr);
            if (before == rebuild->survivors) {
                continue;
            }
            before--;
            bool is_behind = before < end && addr < before->next_addr && !before->is_exact &&
                             !before->is_gone && addr >= before->addr + before->size_bytes;
            if (is_behind) {
                before->size_bytes = addr - before->addr;
                before->is_exact = true;
            }
        }
    }
}

static bool add_block(uf_start *start, uf_start_segment *segment, const uf_adopt_block *block,
                      uint32_t alloc, bool is_waiting)
{
    if (segment->block_count == segment->block_capacity) {
        uint32_t capacity = segment->block_capacity == 0 ? 8 : segment->block_capacity * 2;
        uf_adopt_block *blocks = realloc(segment->blocks, capacity * sizeof *blocks);
        segment->blocks = blocks == NULL ? segment->blocks : blocks;
        uint32_t *allocs = realloc(segment->allocs, capacity * sizeof *allocs);
        segment->allocs = allocs == NULL ? segment->allocs : allocs;
        bool *waits = realloc(segment->is_waiting, capacity * sizeof *waits);
        segment->is_waiting = waits == NULL ? segment->is_waiting : waits;
        if (blocks == NULL || allocs == NULL || waits == NULL) {
            return false;
        }
        segment->block_capacity = capacity;
    }
    segment->blocks[segment->block_count] = *block;
    segment->allocs[segment->block_count] = alloc;
    segment->is_waiting[segment->block_count++] = is_waiting;
    start->block_count++;
    return true;
}

/* The requested size that a block free all along still shows at the end. */
static uint64_t stale_requested(const uf_rebuild *rebuild, uint64_t addr, uint64_t size_bytes)
{
    const uint32_t *found = uf__addrmap_find(&rebuild->final_blocks, addr);
    const uf_trace_block *block = found == NULL ? NULL : &rebuild->program->trace->blocks[*found];
    return block != NULL && block->size_bytes == size_bytes ? block->requested_bytes : 0;
}

/* Final blocks by address. */
static bool index_final(uf_rebuild *rebuild)
{
    const uf_program *program = rebuild->program;
    const uf_trace *trace = program->trace;
    bool is_good = true;
    for (uint32_t s = 0; s < trace->segment_count; s++) {
        const uf_trace_segment *segment = &trace->segments[s];
        for (uint32_t b = 0;
             segment->device == program->device && b < segment->block_count && is_good; b++) {
            uint64_t at = segment->first_block + b;
            is_good = at <= UINT32_MAX &&
                      uf__addrmap_set(&rebuild->final_blocks, trace->blocks[at].addr, (uint32_t)at);
        }
    }
    return is_good;
}

static bool fill_segment(uf_rebuild *rebuild, uf_start *start, uf_start_segment *segment)
{
    const uf_program *program = rebuild->program;
    const uf_survivor *end = rebuild->survivors + program->start_count;
    uint64_t at = segment->addr;
    const uf_survivor *survivor = first_from(rebuild, segment->addr);
    while (at < segment->end) {
        bool is_last = survivor >= end || survivor->addr >= segment->end;
        uint64_t next = is_last ? segment->end : survivor->addr;
        if (next > at) {
            uf_adopt_block gap = {.addr = at,
                                  .size_bytes = next - at,
                                  .requested_bytes = stale_requested(rebuild, at, next - at),
                                  .life = UF_LIFE_FREE,
                                  .is_mapped = true};
            if (!add_block(start, segment, &gap, UF_NONE, false)) {
                return false;
            }
            at = next;
        }
        if (!is_last) {
            uf_adopt_block block = {.addr = survivor->addr,
                                    .size_bytes = survivor->size_bytes,
                                    .requested_bytes = program->alloc_bytes[survivor->alloc],
                                    .life = UF_LIFE_ALLOCATED,
                                    .is_mapped = true};
            if (!add_block(start, segment, &block, survivor->alloc, survivor->is_waiting)) {
                return false;
            }
            at += survivor->size_bytes;
            survivor++;
        }
    }
    return true;
}

static bool rebuild_start(uf_rebuild *rebuild, uf_start *start)
{
    const uf_program *program = rebuild->program;
    uint64_t placed_count = 0;
    bool is_good = true;
    for (size_t i = 0; i < rebuild->ranges.count && is_good; i++) {
        is_good = add_segment(rebuild, start, &rebuild->ranges.items[i]);
    }
    for (uint32_t i = 0; i < start->segment_count && is_good; i++) {
        measure_plainly(rebuild, &start->segments[i]);
    }
    if (is_good) {
        measure_by_events(rebuild);
        measure_by_end(rebuild);
    }
    for (uint32_t i = 0; i < start->segment_count && is_good; i++) {
        is_good = fill_segment(rebuild, start, &start->segments[i]);
        for (uint32_t b = 0; is_good && b < start->segments[i].block_count; b++) {
            placed_count += start->segments[i].allocs[b] != UF_NONE;
        }
    }
    start->stray_count = program->start_count - placed_count;
    return is_good;
}

uf_status uf__rebuild(uf_program *program)
{
    uf_rebuild rebuild = {.program = program};
    uf_start *start = NULL;
    bool is_good = find_ranges(&rebuild);
    if (is_good && (rebuild.ranges.count > 0 || program->start_count > 0)) {
        start = calloc(1, sizeof *start);
        is_good = start != NULL && list_survivors(&rebuild) && index_final(&rebuild) &&
                  rebuild_start(&rebuild, start);
    }
    uf__ranges_fini(&rebuild.ranges);
    free(rebuild.survivors);
    free(rebuild.survivor_of_alloc);
    uf__addrmap_fini(&rebuild.final_blocks);
    if (!is_good) {
        uf__start_destroy(start);
        return UF_ERROR_HOST_MEMORY;
    }
    program->start = start;
    if (start != NULL) {
        program->report.has_lost_beginning = true;
        program->report.start_segment_count = start->segment_count;
        program->report.start_block_count = start->block_count;
    }
    return UF_OK;
}

void uf__start_destroy(uf_start *start)
{
    if (start == NULL) {
        return;
    }
    for (uint32_t i = 0; i < start->segment_count; i++) {
        free(start->segments[i].blocks);
        free(start->segments[i].allocs);
        free(start->segments[i].is_waiting);
    }
    free(start->segments);
    free(start);
}
