/* SPDX-License-Identifier: MIT
 *
 * New peaks, and resets of the running statistics. */
#include "alloc/counters.h"

#include <stddef.h>

void uf__counter_raise(uf_counters *counters, uf_counter_id id, int pool_class)
{
    uf_counter *counter = &counters->counters[id];
    uf_counter_mark *mark = &counters->marks[id];
    int64_t own = uf__counter_current(counters, id, pool_class);
    int64_t all = uf__counter_all(counters, id);
    if (own > mark->peak[pool_class]) {
        mark->peak[pool_class] = own;
        counter->room[pool_class] = 0;
    }
    if (all > mark->peak_all) {
        mark->peak_all = all;
        counter->room_all = 0;
    }
}

void uf__counters_raise_handed_out(uf_counters *counters, int pool_class)
{
    static const uf_counter_id HANDED_OUT[] = {UF_COUNTER_ALLOCATION, UF_COUNTER_ALLOCATED_BYTES,
                                               UF_COUNTER_ACTIVE, UF_COUNTER_ACTIVE_BYTES,
                                               UF_COUNTER_REQUESTED_BYTES};
    for (size_t i = 0; i < sizeof HANDED_OUT / sizeof HANDED_OUT[0]; i++) {
        uf__counter_raise(counters, HANDED_OUT[i], pool_class);
    }
}

void uf__counters_reset_peak(uf_counters *counters)
{
    for (uint32_t id = 0; id < UF_COUNTER_COUNT; id++) {
        uf_counter *counter = &counters->counters[id];
        uf_counter_mark *mark = &counters->marks[id];
        for (int c = 0; c < UF_CLASS_COUNT; c++) {
            mark->peak[c] = uf__counter_current(counters, (uf_counter_id)id, c);
            counter->room[c] = 0;
        }
        mark->peak_all = uf__counter_all(counters, (uf_counter_id)id);
        counter->room_all = 0;
    }
    counters->oversize_allocations.peak = counters->oversize_allocations.current;
    counters->oversize_segments.peak = counters->oversize_segments.current;
}

static void reset_single(uf_counter_single *counter)
{
    counter->allocated = 0;
    counter->freed_base = counter->current;
}

void uf__counters_reset_accumulated(uf_counters *counters)
{
    for (uint32_t id = 0; id < UF_COUNTER_COUNT; id++) {
        for (int c = 0; c < UF_CLASS_COUNT; c++) {
            counters->counters[id].allocated[c] = 0;
            counters->marks[id].freed_base[c] = uf__counter_current(counters, (uf_counter_id)id, c);
        }
    }
    reset_single(&counters->oversize_allocations);
    reset_single(&counters->oversize_segments);
    counters->num_alloc_retries = 0;
    counters->num_ooms = 0;
    counters->num_sync_all_streams = 0;
    counters->num_device_alloc = 0;
    counters->num_device_free = 0;
    counters->num_cache_misses = 0;
}
