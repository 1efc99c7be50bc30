/* SPDX-License-Identifier: MIT
 *
 * The settings that tuning tries: a fixed grid of PYTORCH_CUDA_ALLOC_CONF strings, without those
 * that are inert or harmful together. Knows nothing of programs or replays. */
#ifndef UF_ADVISE_GRID_H
#define UF_ADVISE_GRID_H

#include <stdbool.h>
#include <stdint.h>

#include "alloc/conf.h"

typedef struct uf_grid_point {
    char *conf;            /* owned */
    uf_conf values;        /* what it comes to */
    uint32_t option_count; /* options named: fewer are simpler */
    bool is_popular;       /* shown in every table, so that a person sees why */
    bool needs_limit;      /* garbage collection: inert unless a memory fraction is set */
} uf_grid_point;

typedef struct uf_grid {
    uf_grid_point *points; /* [0] is the default, "" */
    uint32_t count, capacity;
} uf_grid;

/* Fills in the grid. grammar and release (211 is 2.11, 0 the grammar's newest): what those releases
 * refuse is left out. has_limit: whether a memory fraction will be set; without one garbage
 * collection is left out as inert, but for the popular setting that has it. Returns UF_OK or
 * UF_ERROR_HOST_MEMORY; the caller ends it with uf__grid_fini either way. */
uf_status uf__grid_init(uf_grid *grid, uf_conf_grammar grammar, uint16_t release,
                        bool has_limit) UF_MUST_USE;

/* Adds a setting by its string unless it is there; *index is its place. UF_ERROR_CONF if those
 * releases, or the replay, do not take it; UF_ERROR_HOST_MEMORY. */
uf_status uf__grid_add(uf_grid *grid, const char *conf, uf_conf_grammar grammar, uint16_t release,
                       uint32_t *index, uf_error *error) UF_MUST_USE;

void uf__grid_fini(uf_grid *grid);

#endif
