/* SPDX-License-Identifier: MIT
 *
 * Replays a recorded trace through the allocator: exactly as it was (verify), or under other
 * settings, limits and cards (what-if). No device is needed. */
#ifndef UNFRAG_REPLAY_H
#define UNFRAG_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

#include <unfrag/cost.h>
#include <unfrag/policy.h>
#include <unfrag/stats.h>
#include <unfrag/status.h>
#include <unfrag/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The H200 of the recordings; what a trace is taken to come from if nothing else is known. */
#define UF_RECORDED_TOTAL_BYTES UINT64_C(150109880320)

#define UF_EVENT_NONE UINT64_MAX

/* A trace made ready for replay: one device, requests linked to their frees, what events do not say
 * (empty_cache calls, private pools) inferred. Read-only once made; any number of threads may
 * replay it at once. It borrows the trace until destroyed. */
typedef struct uf_program uf_program;

/* How the trace was recorded. Zero means unknown or default, but for num_alloc_retries. */
typedef struct uf_program_options {
    size_t struct_size_bytes;
    uint32_t device;      /* position in uf_trace.devices */
    const char *conf;     /* settings in force when recorded; NULL = as the trace says */
    uint64_t limit_bytes; /* the memory fraction in bytes; 0 = none or unknown */
    uint64_t total_bytes; /* nominal memory of the device; 0 = UF_RECORDED_TOTAL_BYTES */
    /* num_alloc_retries of the recorded statistics decides between readings that the events leave
     * open (a flush by empty_cache, or by the allocation after it); -1 = unknown. */
    int64_t num_alloc_retries;
    /* Called now and then while the recording is followed; return false to stop
     * (UF_ERROR_INTERRUPTED). total is 0: how long it takes is not known. */
    bool (*progress)(void *context, uint64_t done, uint64_t total);
    void *progress_context;
} uf_program_options;

typedef enum uf_difference_kind {
    UF_DIFFERENCE_NONE,
    UF_DIFFERENCE_EVENT,    /* the model does something else at this event */
    UF_DIFFERENCE_SEGMENT,  /* final segments differ */
    UF_DIFFERENCE_BLOCK,    /* final blocks differ */
    UF_DIFFERENCE_UNDEFINED /* the settings lead to what PyTorch leaves undefined */
} uf_difference_kind;

typedef struct uf_difference {
    uf_difference_kind kind;
    uint64_t event; /* 0-based in the device's trace; UF_EVENT_NONE for the final state */
    char text[300]; /* expected and got, one line */
} uf_difference;

/* What following the recording showed. */
typedef struct uf_program_report {
    uint64_t event_count;        /* events of the device */
    uint64_t events_equal;       /* compared and equal, up to the first difference */
    bool is_equal;               /* all events, final segments and blocks */
    uf_difference difference;    /* the first one */
    bool has_lost_beginning;     /* the trace starts mid-life: the start state was rebuilt */
    bool has_given_up;           /* the search for private pools took too long: the difference may
                                    be one it would have explained */
    uint64_t unexplained_events; /* events on memory that the start state does not explain */
    uint64_t start_segment_count, start_block_count; /* rebuilt */
    uint64_t final_segment_count, final_block_count;
    uint64_t empty_cache_count; /* inferred calls */
    uint64_t pool_count;        /* private pools, recorded or inferred */
    uint64_t relabel_count;     /* segments that had to be moved to private pools */
    uint64_t oom_count;         /* recorded oom events */
    uint64_t stream_count;
    uf_stats stats; /* the model's, at the end; counted from the start of the trace */
    uint64_t device_calls, device_syncs;
    double device_ms;
    /* Contradictions in the trace itself. */
    uint64_t contradiction_count;
    uf_difference contradiction; /* the first one */
} uf_program_report;

/* Makes a program. options may be NULL. Returns UF_OK, also for traces that the model cannot follow
 * or that contradict themselves (see the report); UF_ERROR_CONF; UF_ERROR_INVALID_ARGUMENT (no such
 * device); UF_ERROR_UNSUPPORTED (over 2^28 allocations or 65535 streams); UF_ERROR_INTERRUPTED;
 * UF_ERROR_HOST_MEMORY.
 * *program is owned by the caller (uf_program_destroy). Thread-safe. Since 0.1. */
UF_API uf_status uf_program_create(const uf_trace *trace, const uf_program_options *options,
                                   uf_program **program, uf_error *error) UF_MUST_USE;
UF_API void uf_program_destroy(uf_program *program);

/* Borrowed until the program is destroyed. Since 0.1. */
UF_API const uf_program_report *uf_program_report_get(const uf_program *program);

/* The settings string that the recording ran with, "" = defaults. Borrowed. Since 0.1. */
UF_API const char *uf_program_conf(const uf_program *program);

typedef enum uf_on_oom { UF_ON_OOM_STOP, UF_ON_OOM_SKIP } uf_on_oom;

/* One stream's part of one pool: blocks never move between such parts. */
typedef struct uf_replay_group {
    uint64_t stream;
    uint64_t pool_id[2];   /* {0,0} = the default pool */
    bool is_inferred_pool; /* pool_id is a number of ours: the recording names none */
    uint64_t alloc_count;  /* in the whole recording */
    uint64_t peak_live_bytes;
    uint64_t end_active_bytes, end_reserved_bytes; /* at the end of the replay */
} uf_replay_group;

typedef struct uf_replay_options {
    size_t struct_size_bytes;
    /* NULL = as recorded. Under UF_POLICY_UNFRAG NULL = defaults, and of a string that is given
     * roundup_power2_divisions alone counts. */
    const char *conf;
    uint64_t limit_bytes;  /* memory fraction in bytes; 0 = none */
    uint64_t card_bytes;   /* what the driver can hand out; 0 = as total */
    uint64_t total_bytes;  /* nominal memory; 0 = the card, or UF_RECORDED_TOTAL_BYTES */
    uint64_t from_event;   /* statistics start here; what comes before is played, not counted */
    uint64_t to_event;     /* the first event not played; 0 = the end */
    uint32_t repeat_count; /* plays the steady part this often in all; 0 and 1 = once */
    bool is_shuffled;      /* repetitions take the steady part's pieces in another order */
    uint64_t shuffle_seed;
    uf_on_oom on_oom;
    uf_policy policy;
    int64_t device_lag_us; /* under UF_POLICY_UNFRAG: how far the device is behind the program: what
                              is queued is done one to two such times later, in the recording's
                              time; 0 = it has always reached it */
    uf_cost_model cost_model; /* whose driver times are charged */
    bool is_checked;          /* run the invariant checker after every event (slow) */
    uf_replay_group *groups;  /* caller's; receives up to group_capacity entries; may be NULL */
    uint32_t group_capacity;
    /* Called now and then with events done and in all; return false to stop. */
    bool (*progress)(void *context, uint64_t done, uint64_t total);
    void *progress_context;
} uf_replay_options;

/* The state in which a request failed. */
typedef struct uf_oom {
    uint64_t event;           /* 0-based in the device's trace */
    uint32_t repetition;      /* 0-based */
    uint64_t requested_bytes; /* as the program asked */
    uint64_t rounded_bytes;
    uint64_t segment_bytes; /* what was wanted from the driver; under UF_POLICY_UNFRAG the request
                               in whole small pages */
    uint64_t stream;
    uint64_t allocated_bytes, active_bytes, reserved_bytes;
    uint64_t device_free_bytes;
    uint64_t largest_free_block_bytes; /* cached, for this stream and pool */
    /* Under UF_POLICY_UNFRAG, else 0: of reserved, what no request can have (pages under active
     * blocks, and in private pools); of that, what is in private pools. */
    uint64_t pinned_bytes, frozen_bytes;
    bool is_in_private_pool;
} uf_oom;

typedef struct uf_replay_result {
    uint64_t event_count; /* events played, repetitions included */
    uint64_t alloc_count;
    uint64_t peak_live_bytes; /* the floor: requested bytes of active blocks, rounded up to 512 */
    uint64_t peak_active_bytes, peak_allocated_bytes, peak_reserved_bytes;
    uint64_t end_reserved_bytes, end_active_bytes;
    uint64_t oom_count, retry_count;
    bool has_oom;
    uf_oom first_oom;
    uint64_t recorded_oom_count; /* oom events in the range: counted, not replayed */
    uint64_t device_calls, device_syncs;
    double device_ms;
    /* Flushes that ended a free before the recording did: there the program waits for another
     * stream, each time at most until the recording saw it done. The sum of these times, and the
     * longest (-1 = the trace has no times); program time alone, so what they cost in all is
     * between the longest and the sum. */
    uint64_t stream_wait_count;
    double stream_wait_ms, longest_stream_wait_ms;
    /* 0 under the torch policy, which knows no such parts. The rest of device_ms is moving pages.
     */
    double device_first_ms;     /* of device_ms: mapping memory that was not held before */
    double device_emptied_ms;   /* of device_ms: giving back what empty_cache calls asked for */
    double longest_stall_ms;    /* the most that one request spent moving pages */
    uint64_t peak_frozen_bytes; /* most in private pools at once; 0 under the torch policy */
    double recorded_ms;         /* how long what was played took when recorded; -1 = unknown */
    int64_t elapsed_ns;         /* replay alone */
    uf_stats stats;
    uf_fragmentation fragmentation; /* at the end */
    uint32_t group_count;           /* how many groups there are, whatever the capacity */
    uint64_t steady_first_event;    /* where the repeated part starts; UF_EVENT_NONE if once */
    uint64_t steady_end_event;      /* the first event after it */
    uint64_t steady_piece_count;
} uf_replay_result;

/* Replays a program. options may be NULL. Returns UF_OK, also when a request failed (has_oom);
 * UF_ERROR_CONF; UF_ERROR_INVALID_ARGUMENT; UF_ERROR_HAZARD (the settings make PyTorch release
 * memory that is in use); UF_ERROR_HOST_MEMORY; UF_ERROR_INTERRUPTED. Thread-safe on one program.
 * Since 0.1. */
UF_API uf_status uf_replay_run(const uf_program *program, const uf_replay_options *options,
                               uf_replay_result *result, uf_error *error) UF_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
