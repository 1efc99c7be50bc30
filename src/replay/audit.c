/* SPDX-License-Identifier: MIT
 *
 * Contradictions of a trace with itself. */
#include "replay/audit.h"

#include <inttypes.h>
#include <stdio.h>

#include "replay/ranges.h"

static void contradict(uf_program *program, uint64_t event, const char *text)
{
    uf_program_report *report = &program->report;
    if (report->contradiction_count++ != 0) {
        return;
    }
    report->contradiction.kind =
        event == UF_EVENT_NONE ? UF_DIFFERENCE_BLOCK : UF_DIFFERENCE_EVENT;
    report->contradiction.event = event;
    snprintf(report->contradiction.text, sizeof report->contradiction.text, "%s", text);
}

static bool audit_alloc(uf_program *program, uf_ranges *live, uint64_t at)
{
    const uf_event *event = &program->events[at];
    uint64_t removed_bytes;
    if (event->size_bytes == 0) {
        return true;
    }
    if (!uf__ranges_remove(live, event->addr, event->size_bytes, &removed_bytes)) {
        return false;
    }
    if (removed_bytes != 0) {
        char text[160];
        snprintf(text, sizeof text,
                 "alloc of %" PRIu64 " bytes at 0x%" PRIx64 " overlaps %" PRIu64
                 " bytes that are allocated", event->size_bytes, event->addr, removed_bytes);
        contradict(program, at, text);
    }
    return uf__ranges_add(live, event->addr, event->size_bytes, at);
}

/* Every block that the events leave live must be active at the end, and the other way round. */
static void audit_end(uf_program *program, const uf_ranges *live)
{
    const uf_trace *trace = program->trace;
    uint64_t active_count = 0, matched_count = 0;
    for (uint32_t s = 0; s < trace->segment_count; s++) {
        const uf_trace_segment *segment = &trace->segments[s];
        for (uint32_t b = 0; segment->device == program->device && b < segment->block_count; b++) {
            const uf_trace_block *block = &trace->blocks[segment->first_block + b];
            bool is_active = block->state == UF_BLOCK_ACTIVE_ALLOCATED ||
                             block->state == UF_BLOCK_ACTIVE_PENDING_FREE;
            const uf_range *range = is_active ? uf__ranges_find(live, block->addr) : NULL;
            active_count += is_active;
            matched_count += range != NULL && range->addr == block->addr;
        }
    }
    char text[200];
    if (live->count != matched_count && active_count + trace->segment_count != 0) {
        snprintf(text, sizeof text,
                 "the events leave %zu blocks allocated, the final segments have %" PRIu64
                 " active blocks, %" PRIu64 " of them at the same addresses",
                 live->count, active_count, matched_count);
        contradict(program, UF_EVENT_NONE, text);
    }
}

uf_status uf__audit(uf_program *program)
{
    if (program->report.is_equal) {
        return UF_OK;
    }
    uf_ranges live = {0};
    bool is_good = true;
    uint64_t unused_bytes;
    for (uint64_t at = 0; at < program->event_count && is_good; at++) {
        const uf_event *event = &program->events[at];
        if (event->action == UF_ACTION_ALLOC) {
            is_good = audit_alloc(program, &live, at);
        } else if (event->action == UF_ACTION_FREE_COMPLETED) {
            is_good = uf__ranges_remove(&live, event->addr, event->size_bytes, &unused_bytes);
        }
    }
    if (is_good && program->report.contradiction_count == 0) {
        audit_end(program, &live);
    }
    uf__ranges_fini(&live);
    return is_good ? UF_OK : UF_ERROR_HOST_MEMORY;
}
