/* SPDX-License-Identifier: MIT
 *
 * Resets of the running statistics. */
#include "alloc/counters.h"

void uf__counters_reset_peak(uf_counters *counters)
{
    for (int id = 0; id < UF_COUNTER_COUNT; id++) {
        uf_counter *counter = &counters->counters[id];
        for (int c = 0; c < UF_CLASS_COUNT; c++) {
            counter->of[c].peak = counter->of[c].current;
        }
        counter->peak_all = counter->of[0].current + counter->of[1].current;
    }
    counters->oversize_allocations.peak = counters->oversize_allocations.current;
    counters->oversize_segments.peak = counters->oversize_segments.current;
}

static void reset_accumulated(uf_counter_class *counter)
{
    counter->allocated = 0;
    counter->freed_base = counter->current;
}

void uf__counters_reset_accumulated(uf_counters *counters)
{
    for (int id = 0; id < UF_COUNTER_COUNT; id++) {
        for (int c = 0; c < UF_CLASS_COUNT; c++) {
            reset_accumulated(&counters->counters[id].of[c]);
        }
    }
    reset_accumulated(&counters->oversize_allocations);
    reset_accumulated(&counters->oversize_segments);
    counters->num_alloc_retries = 0;
    counters->num_ooms = 0;
    counters->num_sync_all_streams = 0;
    counters->num_device_alloc = 0;
    counters->num_device_free = 0;
    counters->num_cache_misses = 0;
}
