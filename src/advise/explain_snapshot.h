/* SPDX-License-Identifier: MIT
 *
 * What a snapshot says about the memory that is reserved and not allocated: where it lies, what
 * pins it, and whether the program's memory grows. Knows nothing of messages. */
#ifndef UF_ADVISE_EXPLAIN_SNAPSHOT_H
#define UF_ADVISE_EXPLAIN_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>

#include <unfrag/trace.h>

#define UF_SNAPSHOT_PINNED_CAPACITY 10

/* A segment with cached bytes that cannot go back to the driver. */
typedef struct uf_snapshot_pinned {
    const uf_trace_segment *segment; /* borrowed from the trace */
    uint64_t cached_bytes, largest_cached_bytes;
    uint64_t live_bytes, live_count;
    const uf_trace_block *holder; /* the largest block that holds it; borrowed */
} uf_snapshot_pinned;

typedef struct uf_snapshot_state {
    int32_t device;
    uint64_t total_bytes; /* 0 = the snapshot does not say */
    uint64_t limit_bytes; /* a memory fraction, where the caller knows it; no snapshot has it */
    uint64_t segment_count, reserved_bytes, allocated_bytes, active_bytes, cached_bytes;
    /* cached = the sum of these */
    uint64_t between_bytes;        /* beside live blocks in the same segment (or page) */
    uint64_t whole_bytes;          /* whole segments or pages: goes back on demand */
    uint64_t stream_bytes;         /* in segments of another stream than the failed request's */
    uint64_t pool_bytes;           /* in private pools */
    uint64_t largest_cached_bytes; /* for the stream, outside private pools */
    uint64_t stream;               /* of the failed request, else the one with most reserved */
    uf_snapshot_pinned pinned[UF_SNAPSHOT_PINNED_CAPACITY]; /* most cached first */
    uint32_t pinned_count;
    uint64_t pinned_all_count;
    bool has_oom;
    uint64_t oom_count, oom_event; /* the last one */
    uint64_t oom_requested_bytes, oom_device_free_bytes;
    bool is_growing; /* the least live memory of each part of the history is above the one before */
    uint64_t growth_from_bytes, growth_to_bytes;
} uf_snapshot_state;

/* Looks at one device: the given one, or with device < 0 the one that failed last, else the one
 * that holds most. Returns false if the snapshot has nothing of it. Thread-safe. */
bool uf__snapshot_examine(const uf_trace *trace, int32_t device, uf_snapshot_state *state);

#endif
