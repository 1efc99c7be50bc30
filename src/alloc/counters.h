/* SPDX-License-Identifier: MIT
 *
 * The running statistics of a core, kept so that a change costs a few instructions. What the public
 * uf_stats shows (stats.h) is derived from them. Guarded by whoever guards the core.
 *
 * A statistic is kept as its peak and its room, which is how far it is below the peak:
 *
 *   0 ........ current ............ peak
 *              |<------ room ------>|      current = peak - room
 *
 * so that an increase has only to look whether the room went below 0, and nearly always that is all
 * it does. Kept per class (small, large):  room, peak, allocated.  For both together:  room, peak.
 * Derived:  current;  freed = allocated - current + freed_base;  all = small + large, but for the
 * peak. */
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

/* What a change of a statistic touches. */
typedef struct uf_counter {
    int64_t room[UF_CLASS_COUNT], room_all;
    int64_t allocated[UF_CLASS_COUNT];
} uf_counter;

/* What only a new peak and a reset touch. */
typedef struct uf_counter_mark {
    int64_t peak[UF_CLASS_COUNT], peak_all;
    int64_t freed_base[UF_CLASS_COUNT];
} uf_counter_mark;

/* A statistic that is kept for both classes together, and changes by one. */
typedef struct uf_counter_single {
    int64_t current, peak, allocated, freed_base;
} uf_counter_single;

typedef struct uf_counters {
    uf_counter counters[UF_COUNTER_COUNT];
    uf_counter_mark marks[UF_COUNTER_COUNT];
    uf_counter_single oversize_allocations, oversize_segments;
    int64_t num_alloc_retries, num_ooms, num_sync_all_streams, num_device_alloc, num_device_free;
    int64_t num_cache_misses; /* requests that were served, but not at once from a cached block */
} uf_counters;

/* Takes amount off the rooms; the result is below 0 if one of them is, and then the caller has to
 * call uf__counter_raise. All arithmetic wraps, as in PyTorch. */
static inline int64_t uf__counter_add(uf_counters *counters, uf_counter_id id, int pool_class,
                                      uint64_t amount)
{
    uf_counter *counter = &counters->counters[id];
    int64_t own = (int64_t)((uint64_t)counter->room[pool_class] - amount);
    int64_t all = (int64_t)((uint64_t)counter->room_all - amount);
    counter->room[pool_class] = own;
    counter->room_all = all;
    counter->allocated[pool_class] = (int64_t)((uint64_t)counter->allocated[pool_class] + amount);
    return own | all;
}

/* Peaks that were passed become the current values. */
void uf__counter_raise(uf_counters *counters, uf_counter_id id, int pool_class);
void uf__counters_raise_handed_out(uf_counters *counters, int pool_class);

static inline void uf__counter_increase(uf_counters *counters, uf_counter_id id, int pool_class,
                                        uint64_t amount)
{
    if (__builtin_expect(uf__counter_add(counters, id, pool_class, amount) < 0, 0)) {
        uf__counter_raise(counters, id, pool_class);
    }
}

/* A block is handed out: five statistics and one look at their rooms. */
static inline void uf__counters_hand_out(uf_counters *counters, int pool_class, uint64_t size_bytes,
                                         uint64_t requested_bytes)
{
    int64_t lowest =
        uf__counter_add(counters, UF_COUNTER_ALLOCATION, pool_class, 1) |
        uf__counter_add(counters, UF_COUNTER_ALLOCATED_BYTES, pool_class, size_bytes) |
        uf__counter_add(counters, UF_COUNTER_ACTIVE, pool_class, 1) |
        uf__counter_add(counters, UF_COUNTER_ACTIVE_BYTES, pool_class, size_bytes) |
        uf__counter_add(counters, UF_COUNTER_REQUESTED_BYTES, pool_class, requested_bytes);
    if (__builtin_expect(lowest < 0, 0)) {
        uf__counters_raise_handed_out(counters, pool_class);
    }
}

static inline void uf__counter_decrease(uf_counters *counters, uf_counter_id id, int pool_class,
                                        uint64_t amount)
{
    uf_counter *counter = &counters->counters[id];
    counter->room[pool_class] = (int64_t)((uint64_t)counter->room[pool_class] + amount);
    counter->room_all = (int64_t)((uint64_t)counter->room_all + amount);
}

/* One increase, one decrease, or nothing, by the sign of net; without a branch on it. */
static inline void uf__counter_change(uf_counters *counters, uf_counter_id id, int pool_class,
                                      int64_t net)
{
    uf_counter *counter = &counters->counters[id];
    int64_t own = (int64_t)((uint64_t)counter->room[pool_class] - (uint64_t)net);
    int64_t all = (int64_t)((uint64_t)counter->room_all - (uint64_t)net);
    counter->room[pool_class] = own;
    counter->room_all = all;
    counter->allocated[pool_class] =
        (int64_t)((uint64_t)counter->allocated[pool_class] + (uint64_t)(net > 0 ? net : 0));
    if (__builtin_expect((own | all) < 0, 0)) {
        uf__counter_raise(counters, id, pool_class);
    }
}

static inline int64_t uf__counter_current(const uf_counters *counters, uf_counter_id id,
                                          int pool_class)
{
    return (int64_t)((uint64_t)counters->marks[id].peak[pool_class] -
                     (uint64_t)counters->counters[id].room[pool_class]);
}

static inline int64_t uf__counter_all(const uf_counters *counters, uf_counter_id id)
{
    return (int64_t)((uint64_t)counters->marks[id].peak_all -
                     (uint64_t)counters->counters[id].room_all);
}

static inline void uf__counter_single_increase(uf_counter_single *counter)
{
    counter->current++;
    counter->allocated++;
    if (counter->current > counter->peak) {
        counter->peak = counter->current;
    }
}

static inline void uf__counter_single_decrease(uf_counter_single *counter)
{
    counter->current--;
}

/* peak := current everywhere. */
void uf__counters_reset_peak(uf_counters *counters);

/* allocated := 0 and freed := 0 everywhere, and the five num_ counters := 0. */
void uf__counters_reset_accumulated(uf_counters *counters);

#endif
