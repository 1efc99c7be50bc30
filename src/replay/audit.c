/* SPDX-License-Identifier: MIT
 *
 * Contradictions of a trace with itself. */
#include "replay/audit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "alloc/freeset.h"

static void contradict(uf_program *program, uint64_t event, const char *text)
{
    uf_program_report *report = &program->report;
    if (report->contradiction_count++ != 0) {
        return;
    }
    report->contradiction.kind = event == UF_EVENT_NONE ? UF_DIFFERENCE_BLOCK : UF_DIFFERENCE_EVENT;
    report->contradiction.event = event;
    snprintf(report->contradiction.text, sizeof report->contradiction.text, "%s", text);
}

/* The live blocks of a trace, ordered by address. They live in a free set of one size, whose order
 * is then by address alone; the true size is kept in requested_bytes. */
typedef struct uf_live {
    uf_block_table blocks;
    uf_freeset *set;
} uf_live;

enum { SET_KEY_BYTES = 512 };

static uint32_t live_before(const uf_live *live, uint64_t addr)
{
    return uf__freeset_before(live->set, live->blocks.items, SET_KEY_BYTES, addr);
}

static uint32_t live_from(const uf_live *live, uint64_t addr)
{
    return uf__freeset_at_least(live->set, live->blocks.items, SET_KEY_BYTES, addr);
}

static void live_remove(uf_live *live, uint32_t index)
{
    uf__freeset_remove(live->set, live->blocks.items, index);
    uf__block_give(&live->blocks, index);
}

static bool live_add(uf_live *live, uint64_t addr, uint64_t size_bytes)
{
    if (!uf__block_reserve(&live->blocks, 1)) {
        return false;
    }
    uint32_t index = uf__block_take(&live->blocks);
    live->blocks.items[index] =
        (uf_block){.addr = addr, .size_bytes = SET_KEY_BYTES, .requested_bytes = size_bytes};
    uf__freeset_insert(live->set, live->blocks.items, index);
    return true;
}

/* A live block that shares bytes with [addr, addr + size_bytes), or UF_NO_BLOCK. */
static uint32_t live_overlap(const uf_live *live, uint64_t addr, uint64_t size_bytes)
{
    uint32_t before = live_before(live, addr), from = live_from(live, addr);
    const uf_block *blocks = live->blocks.items;
    if (before != UF_NO_BLOCK && addr - blocks[before].addr < blocks[before].requested_bytes) {
        return before;
    }
    return from != UF_NO_BLOCK && blocks[from].addr - addr < size_bytes ? from : UF_NO_BLOCK;
}

static bool audit_alloc(uf_program *program, uf_live *live, uint64_t at)
{
    const uf_event *event = &program->events[at];
    uint32_t other;
    while (event->size_bytes != 0 &&
           (other = live_overlap(live, event->addr, event->size_bytes)) != UF_NO_BLOCK) {
        char text[200];
        const uf_block *block = &live->blocks.items[other];
        snprintf(text, sizeof text,
                 "alloc of %" PRIu64 " bytes at 0x%" PRIx64 " overlaps %" PRIu64
                 " bytes at 0x%" PRIx64 " that are allocated",
                 event->size_bytes, event->addr, block->requested_bytes, block->addr);
        contradict(program, at, text);
        live_remove(live, other);
    }
    return live_add(live, event->addr, event->size_bytes);
}

static void audit_completion(uf_live *live, uint64_t addr)
{
    uint32_t index = live_from(live, addr);
    if (index != UF_NO_BLOCK && live->blocks.items[index].addr == addr) {
        live_remove(live, index);
    }
}

/* Every block that the events leave live must be active at the end, and the other way round. */
static void audit_end(uf_program *program, const uf_live *live)
{
    const uf_trace *trace = program->trace;
    uint64_t active_count = 0, matched_count = 0;
    for (uint32_t s = 0; s < trace->segment_count; s++) {
        const uf_trace_segment *segment = &trace->segments[s];
        for (uint32_t b = 0; segment->device == program->device && b < segment->block_count; b++) {
            const uf_trace_block *block = &trace->blocks[segment->first_block + b];
            bool is_active = block->state == UF_BLOCK_ACTIVE_ALLOCATED ||
                             block->state == UF_BLOCK_ACTIVE_PENDING_FREE;
            uint32_t index = is_active ? live_from(live, block->addr) : UF_NO_BLOCK;
            active_count += is_active;
            matched_count += index != UF_NO_BLOCK && live->blocks.items[index].addr == block->addr;
        }
    }
    char text[200];
    if (live->set->count != matched_count && active_count + trace->segment_count != 0) {
        snprintf(text, sizeof text,
                 "the events leave %" PRIu32 " blocks allocated, the final segments have %" PRIu64
                 " active blocks, %" PRIu64 " of them at the same addresses",
                 live->set->count, active_count, matched_count);
        contradict(program, UF_EVENT_NONE, text);
    }
}

uf_status uf__audit(uf_program *program)
{
    if (program->report.is_equal) {
        return UF_OK;
    }
    uf_live live = {.set = calloc(1, sizeof *live.set)};
    bool is_good = live.set != NULL && uf__block_table_init(&live.blocks);
    for (uint64_t at = 0; at < program->event_count && is_good; at++) {
        const uf_event *event = &program->events[at];
        if (event->action == UF_ACTION_ALLOC) {
            is_good = audit_alloc(program, &live, at);
        } else if (event->action == UF_ACTION_FREE_COMPLETED) {
            audit_completion(&live, event->addr);
        }
    }
    if (is_good && program->report.contradiction_count == 0) {
        audit_end(program, &live);
    }
    uf__block_table_fini(&live.blocks);
    free(live.set);
    return is_good ? UF_OK : UF_ERROR_HOST_MEMORY;
}
