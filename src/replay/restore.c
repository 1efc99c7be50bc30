/* SPDX-License-Identifier: MIT
 *
 * Putting a rebuilt start state into the core that follows a recording. */
#include <stdlib.h>
#include <string.h>

#include "alloc/rounding.h"
#include "replay/follow.h"
#include "replay/rebuild.h"

/* What is known of a reservation that the trace does not show from its beginning. Reservations do
 * not overlap, each is as long as the next, and programs fill them from below. */
typedef struct uf_reach {
    uint64_t reserved_bytes;
    uint64_t low, high; /* where other runs of the start state leave room for it */
} uf_reach;

/* Runs of one reservation that are further apart than this would have a hole of half the card. */
static uint64_t widest_hole_bytes(uint64_t reserved_bytes)
{
    return reserved_bytes / 2;
}

static bool is_pool_known(const uf_follow *follow, uint32_t run)
{
    return follow->assumptions->is_bound[follow->program->event_count + run] != 0;
}

static uint16_t label_of(const uf_follow *follow, uint32_t run)
{
    return uf__label(follow->assumptions, follow->program->event_count + run);
}

/* Whether run `other` lies in the reservation of run `first`, of which a part ends at `end`. */
static bool is_same_region(const uf_follow *follow, const uf_start *start, uint32_t first,
                           uint32_t other, uint64_t end, uint64_t reserved_bytes)
{
    const uf_start_segment *a = &start->segments[first], *b = &start->segments[other];
    bool is_other_pool = is_pool_known(follow, first) && is_pool_known(follow, other) &&
                         label_of(follow, first) != label_of(follow, other);
    return b->is_expandable && b->stream == a->stream && b->is_large == a->is_large &&
           !is_other_pool && b->end - a->addr <= reserved_bytes &&
           b->addr - end <= widest_hole_bytes(reserved_bytes);
}

/* The lowest address that the recording maps within reach below a run, and nearer to it than to the
 * run below: the reservation starts there or below. */
static uint64_t region_base(const uf_program *program, const uf_start_segment *segment,
                            const uf_reach *reach)
{
    uint64_t base = segment->addr;
    for (uint64_t i = 0; i < program->event_count; i++) {
        const uf_event *event = &program->events[i];
        bool is_near = event->addr < base && event->addr >= reach->low &&
                       segment->end - event->addr <= reach->reserved_bytes &&
                       segment->addr - event->addr <= widest_hole_bytes(reach->reserved_bytes) &&
                       (event->size_bytes != UF_SMALL_SEGMENT_BYTES) == segment->is_large &&
                       program->trace->sites[event->site].stream == segment->stream;
        if (event->action == UF_ACTION_SEGMENT_MAP && is_near) {
            base = event->addr;
        }
    }
    return base;
}

typedef struct uf_pieces {
    uf_adopt_block *blocks;
    uint32_t *allocs;
    bool *is_waiting;
    uint32_t count, capacity;
} uf_pieces;

static bool push(uf_pieces *pieces, const uf_adopt_block *block, uint32_t alloc, bool is_waiting)
{
    if (pieces->count == pieces->capacity) {
        uint32_t capacity = pieces->capacity == 0 ? 64 : pieces->capacity * 2;
        uf_adopt_block *blocks = realloc(pieces->blocks, capacity * sizeof *blocks);
        pieces->blocks = blocks == NULL ? pieces->blocks : blocks;
        uint32_t *allocs = realloc(pieces->allocs, capacity * sizeof *allocs);
        pieces->allocs = allocs == NULL ? pieces->allocs : allocs;
        bool *waits = realloc(pieces->is_waiting, capacity * sizeof *waits);
        pieces->is_waiting = waits == NULL ? pieces->is_waiting : waits;
        if (blocks == NULL || allocs == NULL || waits == NULL) {
            return false;
        }
        pieces->capacity = capacity;
    }
    pieces->blocks[pieces->count] = *block;
    pieces->allocs[pieces->count] = alloc;
    pieces->is_waiting[pieces->count++] = is_waiting;
    return true;
}

static bool push_unmapped(uf_pieces *pieces, uint64_t addr, uint64_t end)
{
    uf_adopt_block gap = {.addr = addr, .size_bytes = end - addr, .life = UF_LIFE_FREE};
    return end <= addr || push(pieces, &gap, UF_NONE, false);
}

static bool push_segment(uf_pieces *pieces, const uf_start_segment *segment)
{
    bool is_good = true;
    for (uint32_t i = 0; i < segment->block_count && is_good; i++) {
        is_good = push(pieces, &segment->blocks[i], segment->allocs[i], segment->is_waiting[i]);
    }
    return is_good;
}

/* The whole reservation that begins with start->segments[first]: runs and unmapped space. *label is
 * its pool's: that of a run whose pool is known, if there is one. */
static bool gather_region(const uf_follow *follow, const uf_start *start, uint32_t first,
                          bool *is_done, uint64_t page_bytes, uf_pieces *pieces, uint16_t *label)
{
    const uf_start_segment *segment = &start->segments[first];
    uint64_t total = follow->program->options.total_bytes;
    uf_reach reach = {(total + total / 8 + page_bytes - 1) / page_bytes * page_bytes,
                      first == 0 ? 0 : start->segments[first - 1].end, UINT64_MAX};
    uint64_t base = region_base(follow->program, segment, &reach), at = base;
    bool is_good = true;
    for (uint32_t i = first; i < start->segment_count && is_good; i++) {
        const uf_start_segment *run = &start->segments[i];
        bool is_ours =
            !is_done[i] && is_same_region(follow, start, first, i, i == first ? run->addr : at,
                                          reach.reserved_bytes);
        if (!is_ours) {
            reach.high = reach.high == UINT64_MAX && run->addr >= at ? run->addr : reach.high;
            continue;
        }
        is_done[i] = true;
        reach.high = UINT64_MAX;
        *label = is_pool_known(follow, i) ? label_of(follow, i) : *label;
        is_good = push_unmapped(pieces, at, run->addr) && push_segment(pieces, run);
        at = run->end;
    }
    uint64_t end = base + reach.reserved_bytes;
    end = end < reach.high ? end : reach.high;
    return is_good && push_unmapped(pieces, at, end > at ? end : at);
}

static uf_status adopt(uf_follow *follow, const uf_start_segment *segment, uint16_t label,
                       uint64_t page_bytes, uf_pieces *pieces)
{
    uint32_t stream, pool = UF_DEFAULT_POOL;
    uf_status status = uf__core_stream(&follow->core, segment->stream, &stream);
    if (status == UF_OK && label != 0) {
        const uf_program_pool *known = &follow->program->pools[label];
        if (!uf__core_pool_find(&follow->core, known->id[0], known->id[1], &pool)) {
            status = uf__core_pool_create(&follow->core, known->id[0], known->id[1], &pool);
            follow->pool_of_label[label] = pool + 1;
        }
    }
    if (status != UF_OK) {
        return status;
    }
    uf_adopt_segment adopted = {.stream = stream,
                                .pool = pool,
                                .pool_class = segment->is_large ? UF_CLASS_LARGE : UF_CLASS_SMALL,
                                .is_expandable = segment->is_expandable,
                                .page_bytes = page_bytes,
                                .blocks = pieces->blocks,
                                .block_count = pieces->count};
    status = uf__core_adopt(&follow->core, &adopted);
    for (uint32_t i = 0; i < pieces->count && status == UF_OK; i++) {
        if (pieces->allocs[i] == UF_NONE) {
            continue;
        }
        uint32_t block = pieces->blocks[i].handle, id = pieces->allocs[i];
        status = uf__handles_set(&follow->blocks, id, block) ? UF_OK : UF_ERROR_HOST_MEMORY;
        if (pieces->is_waiting[i] && status == UF_OK) {
            status = uf__core_use_external(&follow->core, block, id);
            status = status == UF_OK ? uf__core_free(&follow->core, block) : status;
        }
    }
    return status;
}

uf_status uf__follow_restore(uf_follow *follow, const uf_start *start)
{
    uf_event_hook hook = follow->core.event_hook;
    follow->core.event_hook = NULL; /* nothing of this is recorded */
    bool *is_done = calloc(start->segment_count + 1u, sizeof *is_done);
    uf_pieces pieces = {0};
    uf_status status = is_done == NULL ? UF_ERROR_HOST_MEMORY : UF_OK;
    for (uint32_t i = 0; i < start->segment_count && status == UF_OK; i++) {
        const uf_start_segment *segment = &start->segments[i];
        status = uf__ranges_add(&follow->ranges, segment->addr, segment->end - segment->addr,
                                follow->program->event_count + i)
                     ? UF_OK
                     : UF_ERROR_HOST_MEMORY;
        if (status != UF_OK || is_done[i]) {
            continue;
        }
        uint64_t page_bytes =
            segment->is_large ? follow->program->conf.large_segment_bytes : UF_SMALL_SEGMENT_BYTES;
        pieces.count = 0;
        uint16_t label = label_of(follow, i);
        bool is_good = segment->is_expandable
                           ? gather_region(follow, start, i, is_done, page_bytes, &pieces, &label)
                           : push_segment(&pieces, segment);
        status =
            is_good ? adopt(follow, segment, label, page_bytes, &pieces) : UF_ERROR_HOST_MEMORY;
    }
    free(is_done);
    free(pieces.blocks);
    free(pieces.allocs);
    free(pieces.is_waiting);
    follow->core.event_hook = hook;
    follow->sim.in_use_bytes = follow->core.total_bytes;
    if (status == UF_ERROR_BAD_INPUT) {
        uf__follow_fail(follow, 0, "the final segments and the events do not make a start state");
        status = UF_OK;
    }
    return status;
}
