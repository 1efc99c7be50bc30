/* SPDX-License-Identifier: MIT
 *
 * What lay where, and when: every allocation and every range held from the driver of one device,
 * with the events between which it was there, and the levels of memory over time. Read off the
 * recorded events alone: of the allocator only the rule is needed by which it cuts a cached block.
 *
 *   address |   [ span: a block, from..to ]        [ span ]
 *           |          [ span .............]  <- pending between freed and to
 *           |[ extent: held from the driver ................ ]
 *           +-------------------------------------------------- event
 *
 * Owns its arrays; borrows the trace and the program. Read-only once made. */
#ifndef UF_REPORT_HISTORY_H
#define UF_REPORT_HISTORY_H

#include <unfrag/trace.h>

#include "replay/program.h"
#include "report/timeline.h"

#define UF_HISTORY_END UINT32_MAX /* still there when the recording ended */

/* One allocation. Events are numbers in the device's trace; it is there after the event `from` and
 * gone after the event `to`. What was there before the first event has from 0 and is_start. */
typedef struct uf_span {
    uint64_t addr, size_bytes; /* of the block */
    uint64_t requested_bytes;
    uint32_t from;
    uint32_t freed; /* its free was requested: from here on it only waits for another stream */
    uint32_t to;
    uint32_t stack;  /* in trace.stacks, or UF_NONE */
    uint16_t stream; /* index into program streams */
    uint16_t pool;   /* index into program pools, 0 = the default pool */
    bool is_start;
} uf_span;

/* A range held from the driver: a segment, or a mapped part of an expandable one. */
typedef struct uf_extent {
    uint64_t addr, size_bytes;
    uint32_t from, to;
    uint16_t stream;
    uint16_t pool;
    bool is_expandable;
    bool is_small; /* of the small pool, as far as its size or the snapshot says */
    bool is_start;
} uf_extent;

typedef struct uf_peak {
    uint64_t bytes;
    uint64_t event;                  /* the first one after which it was reached */
    uint64_t levels[UF_LEVEL_COUNT]; /* all levels then */
} uf_peak;

/* A request that failed. */
typedef struct uf_failure {
    uint64_t event;
    uint64_t wanted_bytes, device_free_bytes; /* as recorded */
    uint64_t levels[UF_LEVEL_COUNT];
} uf_failure;

typedef struct uf_history {
    const uf_trace *trace;     /* borrowed */
    const uf_program *program; /* borrowed; NULL for a snapshot without history */
    const uf_event *events;    /* of the device */
    uint64_t event_count;
    int32_t device;
    uf_span *spans; /* in the order of from */
    uint64_t span_count, span_capacity;
    uf_extent *extents; /* in the order of from */
    uint64_t extent_count, extent_capacity;
    uint64_t *streams; /* handles, by index; of a snapshot without history too */
    uint32_t stream_count;
    uint64_t (*pools)[2];
    uint32_t pool_count;
    uf_timeline timeline;
    uf_peak peaks[UF_LEVEL_COUNT];
    uf_peak most_cached; /* reserved - active */
    uint64_t end_levels[UF_LEVEL_COUNT];
    uf_failure *failures; /* all of them */
    uint64_t failure_count, failure_capacity;
    uint64_t stray_count; /* events on memory that nothing explains */
} uf_history;

/* Walks the program's events. Returns UF_OK; UF_ERROR_UNSUPPORTED (2^31 events or more);
 * UF_ERROR_HOST_MEMORY. fini in any case. */
uf_status uf__history_init(uf_history *history, const uf_program *program, uint32_t bucket_limit,
                           uf_error *error) UF_MUST_USE;

/* The final state of a snapshot without events: everything is there from the start to the end. */
uf_status uf__history_init_state(uf_history *history, const uf_trace *trace, int32_t device,
                                 uf_error *error) UF_MUST_USE;

void uf__history_fini(uf_history *history);

/* Is it there after this event? */
static inline bool uf__span_is_at(const uf_span *span, uint64_t event)
{
    return span->from <= event && event < span->to;
}

static inline bool uf__extent_is_at(const uf_extent *extent, uint64_t event)
{
    return extent->from <= event && event < extent->to;
}

#endif
