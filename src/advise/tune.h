/* SPDX-License-Identifier: MIT
 *
 * The best allocator settings for recorded programs, each proved by replay. Owns the search; what a
 * setting does is the replay's business, and what settings there are is the grid's.
 *
 * Without a limit or card:
 *   1. the popular settings and today's are searched for their smallest limit (bisection to 2 MiB)
 *   2. all others are replayed at the smallest of these; what fails there cannot be better
 *   3. the survivors are searched together: bisection on the limit, dropping what fails where
 *      another completes
 *   4. of those that complete at the smallest limit of all, the one with the least stall wins
 * With a limit or card every setting is replayed there: of those that fit, the least stall, then the
 * least reserved wins.
 *
 * Stages depend only on earlier ones, never on the order of threads: same input, same answer. */
#ifndef UF_ADVISE_TUNE_H
#define UF_ADVISE_TUNE_H

#include <unfrag/replay.h>

#include "advise/grid.h"

#define UF_TUNE_GRANULE_BYTES (UINT64_C(2) << 20)
#define UF_TUNE_ALLOWANCE_BYTES (UINT64_C(768) << 20)
#define UF_TUNE_SYNC_MS 1.0

typedef struct uf_tune_options {
    const char *conf;         /* today's settings; NULL = as recorded (of the first program) */
    uint64_t limit_bytes;     /* a memory fraction that will be set; 0 = none */
    uint64_t card_bytes;      /* what the driver can hand out to the program; 0 = not asked */
    uint64_t total_bytes;     /* nominal memory of the device; 0 = as replay */
    double sync_ms;           /* what a wait for the device costs; negative = UF_TUNE_SYNC_MS */
    uf_conf_grammar grammar;  /* the PyTorch release's */
    uint32_t thread_count;    /* 0 = one per core */
    bool is_exhaustive;       /* search every setting's smallest limit (slow; for tests) */
    /* Called after each replay of a setting; false stops with the best so far. */
    bool (*progress)(void *context, uint64_t done, uint64_t total);
    void *progress_context;
} uf_tune_options;

/* What one run of a setting over all programs gave: sums, and the worst of peaks. */
typedef struct uf_tune_run {
    bool has_run, is_complete;
    bool is_undefined; /* the settings lead to what PyTorch leaves undefined */
    uint64_t peak_reserved_bytes;
    uint64_t device_calls, device_syncs, retry_count;
    double device_ms, stall_ms;
    uint32_t failed_program; /* where it failed first */
    uf_oom oom;
} uf_tune_run;

typedef struct uf_tune_entry {
    uint32_t point;        /* in grid.points */
    uf_tune_run free_run;  /* no limit, no card */
    uf_tune_run run;       /* at run_limit_bytes, or on the card */
    uint64_t run_limit_bytes; /* the limit asked for, or the entry's smallest limit */
    bool has_smallest;     /* smallest_limit_bytes was searched */
    bool has_gaps;         /* larger limits were seen to fail below it: the smallest safe one stands */
    uint64_t smallest_limit_bytes; /* all programs complete here and, as far as tested, above */
    uf_tune_run below;     /* the run 2 MiB below: how it fails there */
} uf_tune_entry;

typedef struct uf_tune_result {
    uf_grid grid;
    uf_tune_entry *entries; /* best first */
    uint32_t entry_count;
    uint32_t baseline, best; /* in entries; UF_NONE if there is none (nothing fits) */
    bool is_interrupted;
    uint64_t peak_live_bytes; /* the worst program's */
    uint64_t recorded_oom_count;
    uint32_t tried_count;  /* settings replayed at least once */
    uint64_t replay_count, event_count;
    double seconds;
} uf_tune_result;

/* Tunes for program_count programs together (borrowed for the call): a setting must serve all.
 * Returns UF_OK, also if nothing fits; UF_ERROR_CONF (options->conf); UF_ERROR_HOST_MEMORY. An
 * interruption is UF_OK with is_interrupted and what was found so far. The caller ends *result with
 * uf__tune_result_fini. */
uf_status uf__tune(const uf_program *const *programs, uint32_t program_count,
                   const uf_tune_options *options, uf_tune_result *result,
                   uf_error *error) UF_MUST_USE;
void uf__tune_result_fini(uf_tune_result *result);

/* The smallest card of 4 to 80 GiB whose memory less allowance_bytes holds limit_bytes; 0 = none. */
uint64_t uf__tune_card(uint64_t limit_bytes, uint64_t allowance_bytes);

#endif
