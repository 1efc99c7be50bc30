/* SPDX-License-Identifier: MIT
 *
 * A trace's memory over its events, device by device, without a replay: what callers asked for and
 * what was held, event by event. The state before the first event follows from the state after the
 * last. Read-only on the trace; one thread. */
#ifndef UF_TRACE_TIMELINE_H
#define UF_TRACE_TIMELINE_H

#include <unfrag/trace.h>

typedef enum uf_level {
    UF_LEVEL_ALLOCATED, /* requested bytes of blocks handed out */
    UF_LEVEL_ACTIVE,    /* the same, and of blocks that wait for another stream */
    UF_LEVEL_LIVE,      /* active, each block rounded up to 512 */
    UF_LEVEL_RESERVED,  /* held from the driver */
    UF_LEVEL_COUNT
} uf_level;

typedef struct uf_timeline {
    const uf_trace *trace;
    const uf_trace_device *device;
    uint64_t next; /* the next event, counted within the device */
    int64_t levels[UF_LEVEL_COUNT];
    int64_t first_time_us; /* UF_TIME_UNKNOWN: events have no times, and are a microsecond apart */
    int64_t last_time_us;
    bool has_reserved; /* the trace says anything about segments of this device */
} uf_timeline;

const char *uf__level_name(uf_level level);

/* Before the first event of a device's list (an index into trace->devices). */
void uf__timeline_begin(uf_timeline *timeline, const uf_trace *trace, uint32_t device_list);

/* Goes over one event; NULL at the end. *time_us: since the first event, never falling. */
const uf_event *uf__timeline_step(uf_timeline *timeline, int64_t *time_us);

#endif
