/* SPDX-License-Identifier: MIT
 *
 * What is known of a setting without a replay: the least it must hold, and which of its options
 * change nothing for these programs. Knows nothing of the search that uses it. */
#ifndef UF_ADVISE_BOUND_H
#define UF_ADVISE_BOUND_H

#include <unfrag/replay.h>

#include "alloc/conf.h"

/* What rounding alone says of a setting over some programs. */
typedef struct uf_bound {
    uint64_t held_bytes;    /* the worst program's peak of rounded requests that are not freed */
    uint64_t largest_bytes; /* the largest rounded request */
    bool has_middle;        /* requests over 1 and under 10 MiB: large_segment_size_mb matters */
    bool is_rounding_inert; /* roundup_power2_divisions rounds none of the requests further */
} uf_bound;

/* Depends on conf->roundup_power2_divisions only. */
void uf__bound_compute(const uf_program *const *programs, uint32_t program_count,
                       const uf_conf *conf, uf_bound *bound);

/* A limit below this cannot be kept. With expandable segments a limit may be passed by less than
 * one page. */
uint64_t uf__bound_limit(const uf_bound *bound, const uf_conf *conf);

/* Sets options that change nothing to one value, so that settings which act alike become equal:
 *   roundup_power2_divisions that round nothing; large_segment_size_mb without a request it is for;
 *   max_split_size_mb above every segment; max_non_split_rounding_mb that allows every segment. */
void uf__bound_simplify(const uf_bound *bound, uf_conf *conf);

#endif
