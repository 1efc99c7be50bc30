/* SPDX-License-Identifier: MIT
 *
 * Arithmetic of one statistic (PyTorch 2.11 behaviour). Guarded by whoever guards the numbers. */
#ifndef UF_ALLOC_STATS_H
#define UF_ALLOC_STATS_H

#include <unfrag/stats.h>

static inline void uf__stat_increase(uf_stat *stat, int64_t amount)
{
    stat->current += amount;
    stat->allocated += amount;
    if (stat->current > stat->peak) {
        stat->peak = stat->current;
    }
}

static inline void uf__stat_decrease(uf_stat *stat, int64_t amount)
{
    stat->current -= amount;
    stat->freed += amount;
}

/* reset_peak_memory_stats: every peak becomes the current value, the oversize groups included. */
void uf__stats_reset_peaks(uf_stats *stats);

/* reset_accumulated_memory_stats: allocated, freed and the five num_ counters become 0; current,
 * peak and max_split_size stay. */
void uf__stats_reset_totals(uf_stats *stats);

#endif
