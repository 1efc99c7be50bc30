/* SPDX-License-Identifier: MIT
 *
 * One setting over some programs: what it does at a place, the smallest limit it keeps, the
 * smallest card it fits. Owns no memory; one thread at a time per probe. Knows nothing of other
 * settings. */
#ifndef UF_ADVISE_PROBE_H
#define UF_ADVISE_PROBE_H

#include <unfrag/replay.h>

#define UF_PROBE_GRANULE_BYTES (UINT64_C(2) << 20)

typedef struct uf_place {
    uint64_t limit_bytes; /* memory fraction; 0 = none */
    uint64_t card_bytes;  /* what the driver can hand out; 0 = enough */
    uint64_t total_bytes; /* nominal memory; 0 = as replay */
} uf_place;

/* What one run over all programs gave: sums, and the worst of peaks. */
typedef struct uf_probe_run {
    bool has_run, is_complete;
    bool is_undefined; /* the settings lead to what PyTorch leaves undefined */
    uint64_t peak_reserved_bytes;
    uint64_t device_calls, device_syncs, retry_count;
    uint64_t stream_wait_count; /* as uf_replay_result; times summed, -1 = unknown */
    double stream_wait_ms, longest_stream_wait_ms;
    uint64_t peak_frozen_bytes; /* as uf_replay_result, as the next: the worst of all */
    double moving_ms;           /* of device_ms: moving pages; 0 under the torch policy */
    double longest_move_ms;
    /* Stall: device_ms, sync_ms for each device_syncs, and stream_wait_ms. */
    double device_ms, stall_ms;
    uint32_t failed_program; /* where it failed; runs stop there */
    uf_oom oom;
} uf_probe_run;

typedef struct uf_smallest {
    bool is_known;
    bool is_at_most; /* the search was interrupted: a smaller one may do */
    bool has_gaps;   /* larger limits were seen to fail below it: the smallest safe one stands */
    bool is_floor;   /* it is the floor; one granule less completes, too: see uf__probe_smallest */
    uint64_t limit_bytes;   /* all programs complete here and, as far as tested, above */
    uf_probe_run unlimited; /* without a limit */
    uf_probe_run at;        /* at limit_bytes */
    uf_probe_run below;     /* the failing run one granule below; completes if is_floor */
} uf_smallest;

typedef struct uf_probe {
    const uf_program *const *programs; /* borrowed */
    uint32_t program_count;
    const char *conf; /* borrowed */
    uf_policy policy;
    uint64_t total_bytes;
    uint64_t bound_bytes; /* no limit below it can be kept; 0 = unknown */
    uint64_t floor_bytes; /* peak live of the worst program: no smallest limit is below it */
    /* No garbage collection, no expandable segments: under a limit as large as its peak without one
     * it does the same. */
    bool is_plain;
    double sync_ms;
    /* Called after each replay; false ends what is under way with UF_ERROR_INTERRUPTED. */
    bool (*poll)(void *context);
    void *poll_context;
    uint64_t replay_count, event_count; /* so far */
    bool is_hazardous;                  /* some run was undefined */
} uf_probe;

/* Replays all programs at a place, up to the first that fails. Returns UF_OK, also if one fails or
 * the settings are hazardous there; UF_ERROR_INTERRUPTED; UF_ERROR_HOST_MEMORY. */
uf_status uf__probe_run(uf_probe *probe, const uf_place *place, uf_probe_run *run,
                        uf_error *error) UF_MUST_USE;

/* No smallest limit is below it: the bound or the floor, in whole granules. */
uint64_t uf__probe_least(const uf_probe *probe);

/* Searches the smallest limit, to one granule, from the floor up: by bisection below the peak
 * without a limit; under the unfrag policy, which needs hardly more than the floor, in steps that
 * double. Below the floor a run may complete, too: by waiting for other streams, which have their
 * blocks counted in the floor, or by passing the limit by a part of an expandable page. That is
 * told (is_floor), not offered. A setting may fail at a limit and keep a smaller one: limits above
 * the result are tried at growing distances, and if one fails the search goes on above it. Unknown
 * if it fails without a limit. As uf__probe_run; on UF_ERROR_INTERRUPTED *smallest holds the best
 * so far. */
uf_status uf__probe_smallest(uf_probe *probe, uf_smallest *smallest, uf_error *error) UF_MUST_USE;

/* The smallest card of 4 to 80 GiB on which it completes, of which allowance_bytes are left to
 * others; tried from limit_bytes upwards. is_limited: a memory fraction is set to the rest. 0 =
 * none. As uf__probe_run. */
uf_status uf__probe_card(uf_probe *probe, uint64_t limit_bytes, uint64_t allowance_bytes,
                         bool is_limited, uint64_t *card_bytes, uf_error *error) UF_MUST_USE;

#endif
