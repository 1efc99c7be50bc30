/* SPDX-License-Identifier: MIT
 *
 * The state of one search, and its two ways. See tune.h. The calling thread owns it between stages;
 * during a stage each job owns the candidate of its index, and the lock guards the counts. */
#ifndef UF_ADVISE_SEARCH_H
#define UF_ADVISE_SEARCH_H

#include <pthread.h>

#include "advise/bound.h"
#include "advise/tune.h"

/* What is known of one grid point while the search runs. */
typedef struct uf_candidate {
    uf_probe probe;
    uf_smallest smallest;
    uf_probe_run run; /* the latest at a stage's place */
    uint64_t run_limit_bytes;
    uint64_t kept_bytes;   /* the smallest limit a stage saw it keep; 0 = none */
    uint64_t failed_bytes; /* the largest limit a stage saw it fail at */
    uint64_t card_bytes;
    uint32_t twin;    /* an earlier point that acts alike; UF_NONE */
    bool is_alive;    /* still in the running */
    bool is_reported; /* gets an entry whatever it gave */
    bool is_proved;   /* its smallest limit was searched on its own */
} uf_candidate;

typedef struct uf_search {
    const uf_program *const *programs;
    uint32_t program_count;
    const uf_tune_options *options;
    uf_tune_result *result;
    uf_candidate *candidates; /* by grid point */
    uint32_t *chosen;         /* grid points of the stage under way */
    uint32_t chosen_count;
    uint32_t baseline;   /* grid point of today's settings; UF_NONE */
    uint32_t best;       /* grid point of the winner; UF_NONE */
    uf_place place;      /* of the stage under way */
    double recording_ms; /* how long the recordings took; 0 = unknown */
    pthread_mutex_t lock;
    uint64_t done_count, estimated_count; /* replays; guarded by lock */
} uf_search;

/* Is the search for a given limit or card? */
static inline bool uf__search_has_place(const uf_search *search)
{
    return search->options->limit_bytes != 0 || search->options->card_bytes != 0;
}

/* The limit and card asked for. */
uf_place uf__search_place(const uf_search *search);

/* Finds the winner and what is reported. UF_OK; UF_ERROR_INTERRUPTED, with the best so far;
 * UF_ERROR_HOST_MEMORY. */
uf_status uf__search_run(uf_search *search, uf_error *error) UF_MUST_USE;

/* Are a's settings simpler than b's? Those that need no limit are, then those with fewer options,
 * then shorter strings. A strict order. */
bool uf__search_is_simpler(const uf_search *search, uint32_t a, uint32_t b);

/* The point that stands for a point: itself, or its twin. */
static inline uint32_t uf__search_origin(const uf_search *search, uint32_t point)
{
    return search->candidates[point].twin != UF_NONE ? search->candidates[point].twin : point;
}

#endif
