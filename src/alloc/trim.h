/* SPDX-License-Identifier: MIT
 *
 * Giving cached memory back to the device: down to a size, or by age. Decides how much; what goes
 * first is the business of take.c and release.c. Guarded by whoever guards the core. */
#ifndef UF_ALLOC_TRIM_H
#define UF_ALLOC_TRIM_H

#include "alloc/core.h"

enum { UF_AGE_MARKS = 16 };

/* When pages of holes go back by themselves: all 0 = never. */
typedef struct uf_collect_rule {
    int64_t after_ns;     /* since the hole was freed */
    uint64_t after_frees; /* as many frees later */
} uf_collect_rule;

/* What is remembered between two looks. Holes know the number of the free that made them; the marks
 * tell when that was. */
typedef struct uf_collector {
    uf_collect_rule rule;
    uint64_t last_sequence; /* frees so far, at the last look */
    int64_t last_ns;
    uint64_t mark_sequence[UF_AGE_MARKS];
    int64_t mark_ns[UF_AGE_MARKS]; /* 0 = none */
    uint32_t next_mark;
} uf_collector;

/* Bytes that are cached and can be given back or moved: under the unfrag policy pages that touch no
 * active block and are not frozen, under the torch policy reserved - active. */
uint64_t uf__trim_cached_bytes(const uf_core *core);

/* Gives cached memory back until at most keep_bytes are cached, or nothing more can be given.
 * *released_bytes receives how much went, also on failure. Returns UF_OK; UF_ERROR_DEVICE;
 * UF_ERROR_HOST_MEMORY. */
uf_status uf__trim(uf_core *core, uint64_t keep_bytes, uint64_t *released_bytes) UF_MUST_USE;

/* Under the unfrag policy: gives back the pages that are idle and old enough, if it is time to
 * look. Waits for nothing. */
uf_status uf__collect(uf_core *core, uf_collector *collector) UF_MUST_USE;

#endif
