/* SPDX-License-Identifier: MIT
 *
 * The best allocator settings for recorded programs, each proved by replay. Owns the search; what a
 * setting does is the replay's business, and what settings there are is the grid's.
 *
 * Without a limit or card:
 *   1. the popular settings and today's are searched for their smallest limit (bisection to 2 MiB,
 *      from the floor up)
 *   2. all others are replayed a little above the smallest of these; what fails there is no better
 *   3. of the survivors the likeliest one's limit is bisected; the others are run a little below
 *      it, and while any completes there the same goes on with those
 *   4. a little above the smallest limit of all, never above today's, the choice is made; the
 * winner's own smallest limit is then searched as in 1, and if larger limits fail the next best is
 * taken With a limit or card every setting is replayed there, and of those that complete one is
 * chosen. The unfrag policy is searched the same way, for comparison: it is no setting, and never
 * the choice.
 *
 * The choice: the least stall, then the least reserved, then today's settings, then the fewest
 * options and the shortest string. "The least" is meant up to what nobody would notice (UF_TUNE_*).
 * Hazardous settings are never chosen. Settings that a bound rules out, or that provably act like
 * another one, are not replayed.
 *
 * Stages depend only on earlier ones, never on the order of threads: same input, same answer. */
#ifndef UF_ADVISE_TUNE_H
#define UF_ADVISE_TUNE_H

#include "advise/grid.h"
#include "advise/probe.h"

#define UF_TUNE_ALLOWANCE_BYTES (UINT64_C(768) << 20)
#define UF_TUNE_SYNC_MS 1.0

/* What nobody would notice counts as equal: smallest limits that differ by less than 0.5 %,
 * reserved memory that differs by less than 3 %, stalls that differ by less than 1 %, or by less
 * than 0.5 % of the time that the recordings took. */
#define UF_TUNE_LIMIT_SLACK 0.005
#define UF_TUNE_RESERVED_SLACK 0.03
#define UF_TUNE_STALL_SLACK 0.01
#define UF_TUNE_TIME_SLACK 0.005

/* Today's settings are not left for a stall that is shorter by less than this. */
#define UF_TUNE_TODAY_MS 100.0

typedef struct uf_tune_options {
    const char *conf;          /* today's settings; NULL = as recorded (of the first program) */
    uint64_t limit_bytes;      /* a memory fraction that will be set; 0 = none */
    uint64_t card_bytes;       /* what the driver can hand out to the program; 0 = not asked */
    uint64_t card_total_bytes; /* that card's nominal memory; 0 = card_bytes */
    uint64_t total_bytes;      /* nominal memory elsewhere; 0 = as recorded */
    uint64_t allowance_bytes;  /* of a card, left to others; for the smallest card */
    double sync_ms;            /* what a wait for the device costs; negative = UF_TUNE_SYNC_MS */
    uf_conf_grammar grammar;   /* of the PyTorch release */
    uint16_t release;          /* 211 is 2.11; 0 = the grammar's newest */
    uint32_t thread_count;     /* 0 = one per core */
    bool is_exhaustive;        /* search every setting's smallest limit (slow; for tests) */
    /* Called after each replay, from any thread but one at a time; total is an estimate. False
     * stops with the best so far. May be NULL. */
    bool (*progress)(void *context, uint64_t done, uint64_t total);
    void *progress_context;
} uf_tune_options;

typedef struct uf_tune_entry {
    uint32_t point;   /* in grid.points */
    uf_probe_run run; /* at the place asked for, else at the smallest limit */
    uf_place place;   /* of run */
    uf_smallest smallest;
    uint64_t card_bytes; /* the smallest card it completes on; 0 = none or unknown */
    bool is_hazardous;
} uf_tune_entry;

/* One of several programs, under the best settings and under today's. */
typedef struct uf_tune_file {
    uint64_t peak_live_bytes, recorded_oom_count;
    uf_smallest best, baseline;
    uf_probe_run best_run, baseline_run; /* at the place asked for */
} uf_tune_file;

typedef struct uf_tune_result {
    uf_grid grid;
    uf_tune_entry *entries; /* best first */
    uint32_t entry_count;
    uint32_t baseline, best; /* in entries; UF_NONE if there is none (nothing fits) */
    uf_tune_entry unfrag;    /* PyTorch's settings aside: the unfrag policy; its point is UF_NONE */
    bool has_unfrag;         /* it was searched to the end */
    uf_tune_file *files;     /* by program */
    uint32_t file_count;
    bool is_interrupted;
    uint64_t peak_live_bytes; /* the floor: the worst program's */
    uint64_t held_bytes;      /* the same without blocks that wait for another stream */
    uint64_t recorded_oom_count;
    uint32_t tried_count;   /* settings replayed at least once */
    uint32_t skipped_count; /* settings decided without a replay */
    uint64_t replay_count, event_count;
    double seconds;
} uf_tune_result;

/* Tunes for program_count programs together (borrowed for the call): a setting must serve all.
 * Returns UF_OK, also if nothing fits; UF_ERROR_CONF (options->conf); UF_ERROR_HOST_MEMORY. An
 * interruption is UF_OK with is_interrupted and what was found so far. Settings recorded in the
 * programs that those releases do not take are left out: baseline is UF_NONE. The caller ends
 * *result with uf__tune_result_fini. */
uf_status uf__tune(const uf_program *const *programs, uint32_t program_count,
                   const uf_tune_options *options, uf_tune_result *result,
                   uf_error *error) UF_MUST_USE;
void uf__tune_result_fini(uf_tune_result *result);

#endif
