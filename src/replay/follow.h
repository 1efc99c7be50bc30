/* SPDX-License-Identifier: MIT
 *
 * Following a recording: the allocator model executes what the events ask for, on a device that
 * answers as the recorded one did, and everything it does is compared with the events. Following
 * writes down in the program what events do not say. One run under one set of assumptions; choosing
 * the assumptions is infer.c's business. */
#ifndef UF_REPLAY_FOLLOW_H
#define UF_REPLAY_FOLLOW_H

#include "alloc/core.h"
#include "device/sim.h"
#include "replay/handles.h"
#include "replay/program.h"
#include "replay/ranges.h"

/* A label says which pool a range belongs to: an index into program->pools. */
#define UF_LABEL_UNKNOWN UINT16_MAX

typedef enum uf_reading {
    UF_READING_DEFAULT,
    UF_READING_EXPLICIT,  /* an empty_cache call stands before the request */
    UF_READING_IN_CALL,   /* the request itself flushed */
    UF_READING_REDIRECTED /* the request ran inside a redirection: no flush */
} uf_reading;

typedef struct uf_forced_reading {
    uint64_t event; /* where the group of events starts */
    uf_reading reading;
} uf_forced_reading;

/* What a run takes for granted. */
typedef struct uf_assumptions {
    uint16_t *labels;  /* by creator, plus 1, 0 = unknown: event_count + start segments entries, of
                          which only those of events that create memory are ever touched; those of
                          start segments must be known */
    uint8_t *is_bound; /* the label is recorded and must not change */
    bool has_private;  /* any label is a private pool */
    uf_forced_reading *readings;
    size_t reading_count, reading_capacity;
} uf_assumptions;

static inline uint16_t uf__label(const uf_assumptions *assumptions, uint64_t creator)
{
    return (uint16_t)(assumptions->labels[creator] - 1u);
}

static inline void uf__label_set(uf_assumptions *assumptions, uint64_t creator, uint16_t label)
{
    assumptions->labels[creator] = (uint16_t)(label + 1u);
}

typedef struct uf_follow {
    uf_program *program;
    const uf_assumptions *assumptions;
    uf_core core;
    uf_sim sim;
    uf_device device; /* the sim behind a recording's answers */
    uf_handles blocks;
    uf_ranges ranges;
    uint64_t cursor;           /* the next event the core has to produce */
    uint64_t group_first;      /* the group of events under way */
    uint64_t group_last;       /* its last event: the alloc or oom */
    uint64_t settled_count;    /* events whose flush or group is done without a difference */
    uint64_t peak_total_bytes; /* the recording's */
    uint32_t label_count;
    uint32_t *pool_of_label; /* core pool index + 1, 0 = not made yet */
    uint64_t *label_last_event;
    bool *is_retired;          /* by label: the pool's memory may be released */
    uint64_t last_flush_event; /* the latest explicit flush, UF_EVENT_NONE = none */
    bool has_failed;           /* stop: difference is set, or status */
    uf_status status;
    uf_difference difference;
    /* Who may be labelled wrongly, by creator; UF_EVENT_NONE = nobody. */
    uint64_t suspect_recorded, suspect_model, suspect_released;
    uint64_t released_creator;    /* of the memory released last */
    bool has_kept_suspect;        /* suspect_model is a segment that the recording kept */
    uint64_t stray_release_count; /* given back by the flush that differs, 0 = none differs */
    bool is_in_request;           /* the core is executing a request */
    bool has_lead; /* the group under way starts with releases that can be read both ways */
    uf_reading lead_reading; /* and how they were read */
    /* Groups whose reading events leave open, in order, for the statistics to decide. */
    uint64_t *open_in_call, *open_explicit;
    size_t open_in_call_count, open_explicit_count, open_in_call_capacity, open_explicit_capacity;
    uint64_t empty_cache_count;
} uf_follow;

/* Follows the whole recording or up to the first difference. Returns UF_ERROR_HOST_MEMORY or UF_OK;
 * follow->difference tells. fini in any case. */
uf_status uf__follow_run(uf_follow *follow, uf_program *program,
                         const uf_assumptions *assumptions) UF_MUST_USE;

/* The same in pieces: begin stands before the first event; go stops between two groups of events,
 * at `until` or behind it, or at the first difference, or at the end, where it compares the final
 * state. A copy goes on by itself, also under other assumptions on what is still to come; false if
 * the host has no memory left. fini in any case. */
uf_status uf__follow_begin(uf_follow *follow, uf_program *program,
                           const uf_assumptions *assumptions) UF_MUST_USE;
uf_status uf__follow_go(uf_follow *follow, uint64_t until) UF_MUST_USE;
bool uf__follow_copy(uf_follow *to, const uf_follow *from) UF_MUST_USE;

void uf__follow_fini(uf_follow *follow);

/* tape.c: makes follow->device, which answers as the recording does. */
void uf__tape_init(uf_follow *follow);

/* Stops the run with a difference at an event. */
void uf__follow_fail(uf_follow *follow, uint64_t event, const char *format, ...) UF_PRINTF(3, 4);

/* compare.c: the final segments and blocks against the recording; sets follow->difference. */
uf_status uf__follow_compare_end(uf_follow *follow) UF_MUST_USE;

/* rebuild.c: puts the start state of a trace that begins mid-life into the core. */
uf_status uf__follow_restore(uf_follow *follow, const uf_start *start) UF_MUST_USE;

#endif
