/* SPDX-License-Identifier: MIT
 *
 * The running statistics of a core, kept so that a change costs a few additions. What the public
 * uf_stats shows (stats.h) is derived from them. Guarded by whoever guards the core.
 *
 * Kept per class (small, large):  current, peak, allocated.   Kept for both together: peak.
 * Derived:  freed = allocated - current + freed_base;  all = small + large, but for the peak. */
#ifndef UF_ALLOC_COUNTERS_H
#define UF_ALLOC_COUNTERS_H

#include <stdint.h>

enum { UF_CLASS_SMALL = 0, UF_CLASS_LARGE = 1, UF_CLASS_COUNT = 2 };

typedef enum uf_counter_id {
    UF_COUNTER_ALLOCATION,
    UF_COUNTER_SEGMENT,
    UF_COUNTER_ACTIVE,
    UF_COUNTER_INACTIVE_SPLIT,
    UF_COUNTER_ALLOCATED_BYTES,
    UF_COUNTER_RESERVED_BYTES,
    UF_COUNTER_ACTIVE_BYTES,
    UF_COUNTER_INACTIVE_SPLIT_BYTES,
    UF_COUNTER_REQUESTED_BYTES,
    UF_COUNTER_COUNT
} uf_counter_id;

typedef struct uf_counter_class {
    int64_t current, peak, allocated, freed_base;
} uf_counter_class;

typedef struct uf_counter {
    uf_counter_class of[UF_CLASS_COUNT];
    int64_t peak_all;
} uf_counter;

typedef struct uf_counters {
    uf_counter counters[UF_COUNTER_COUNT];
    uf_counter_class oversize_allocations, oversize_segments;
    int64_t num_alloc_retries, num_ooms, num_sync_all_streams, num_device_alloc, num_device_free;
    int64_t num_cache_misses; /* requests that were served, but not at once from a cached block */
} uf_counters;

static inline void uf__counter_increase(uf_counters *counters, uf_counter_id id, int pool_class,
                                        uint64_t amount)
{
    uf_counter *counter = &counters->counters[id];
    uf_counter_class *own = &counter->of[pool_class];
    own->current = (int64_t)((uint64_t)own->current + amount);
    own->allocated = (int64_t)((uint64_t)own->allocated + amount); /* wraps, as in PyTorch */
    if (own->current > own->peak) {
        own->peak = own->current;
    }
    int64_t all = (int64_t)((uint64_t)own->current + (uint64_t)counter->of[1 - pool_class].current);
    if (all > counter->peak_all) {
        counter->peak_all = all;
    }
}

static inline void uf__counter_decrease(uf_counters *counters, uf_counter_id id, int pool_class,
                                        uint64_t amount)
{
    int64_t *current = &counters->counters[id].of[pool_class].current;
    *current = (int64_t)((uint64_t)*current - amount);
}

static inline void uf__counter_single_increase(uf_counter_class *counter)
{
    counter->current++;
    counter->allocated++;
    if (counter->current > counter->peak) {
        counter->peak = counter->current;
    }
}

static inline void uf__counter_single_decrease(uf_counter_class *counter)
{
    counter->current--;
}

static inline int64_t uf__counter_all(const uf_counters *counters, uf_counter_id id)
{
    const uf_counter *counter = &counters->counters[id];
    return (int64_t)((uint64_t)counter->of[0].current + (uint64_t)counter->of[1].current);
}

/* peak := current everywhere. */
void uf__counters_reset_peak(uf_counters *counters);

/* allocated := 0 and freed := 0 everywhere, and the five num_ counters := 0. */
void uf__counters_reset_accumulated(uf_counters *counters);

#endif
