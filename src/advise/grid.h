/* SPDX-License-Identifier: MIT
 *
 * The settings that tuning tries: a fixed grid of PYTORCH_CUDA_ALLOC_CONF strings, without those
 * that are inert or harmful together. Knows nothing of programs or replays. */
#ifndef UF_ADVISE_GRID_H
#define UF_ADVISE_GRID_H

#include <stdbool.h>
#include <stdint.h>

#include "alloc/conf.h"

#define UF_GRID_CONF_CAPACITY 160

typedef struct uf_grid_point {
    char conf[UF_GRID_CONF_CAPACITY];
    bool is_popular;  /* shown in every table, so that a person sees why */
    bool needs_limit; /* garbage collection: inert unless a memory fraction is set */
    uint32_t roundup_divisions; /* 0 = none: how far requests are rounded up */
} uf_grid_point;

typedef struct uf_grid {
    uf_grid_point *points; /* [0] is the default, "" */
    uint32_t count, capacity;
} uf_grid;

/* Fills in the grid. grammar: options that those releases lack are left out. has_limit: whether a
 * memory fraction will be set; without one garbage collection is left out as inert. Returns UF_OK or
 * UF_ERROR_HOST_MEMORY. */
uf_status uf__grid_init(uf_grid *grid, uf_conf_grammar grammar, bool has_limit) UF_MUST_USE;

/* Adds a setting by its string unless it is there; *index is its place. */
uf_status uf__grid_add(uf_grid *grid, const char *conf, uint32_t *index) UF_MUST_USE;

void uf__grid_fini(uf_grid *grid);

#endif
