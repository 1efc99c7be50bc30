/* SPDX-License-Identifier: MIT
 *
 * From the core's running counters to the statistics people see. */
#include "alloc/core.h"

#include <stddef.h>
#include <string.h>

static uf_stat stat_of(int64_t current, int64_t peak, int64_t allocated, int64_t freed_base)
{
    return (uf_stat){.current = current,
                     .peak = peak,
                     .allocated = allocated,
                     .freed =
                         (int64_t)((uint64_t)allocated - (uint64_t)current + (uint64_t)freed_base)};
}

static uf_stat stat_of_single(const uf_counter_single *counter)
{
    return stat_of(counter->current, counter->peak, counter->allocated, counter->freed_base);
}

static uf_stat stat_of_class(const uf_counters *counters, uf_counter_id id, int pool_class)
{
    return stat_of(
        uf__counter_current(counters, id, pool_class), counters->marks[id].peak[pool_class],
        counters->counters[id].allocated[pool_class], counters->marks[id].freed_base[pool_class]);
}

/* Wraps, as PyTorch's counters do. */
static int64_t sum(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static uf_stat_group group_of(const uf_counters *counters, uf_counter_id id)
{
    uf_stat_group group = {.small_pool = stat_of_class(counters, id, UF_CLASS_SMALL),
                           .large_pool = stat_of_class(counters, id, UF_CLASS_LARGE)};
    group.all = (uf_stat){.current = sum(group.small_pool.current, group.large_pool.current),
                          .peak = counters->marks[id].peak_all,
                          .allocated = sum(group.small_pool.allocated, group.large_pool.allocated),
                          .freed = sum(group.small_pool.freed, group.large_pool.freed)};
    return group;
}

void uf__core_stats(const uf_core *core, uf_stats *stats)
{
    const uf_counters *counters = &core->counters;
    memset(stats, 0, sizeof *stats);
    stats->allocation = group_of(counters, UF_COUNTER_ALLOCATION);
    stats->segment = group_of(counters, UF_COUNTER_SEGMENT);
    stats->active = group_of(counters, UF_COUNTER_ACTIVE);
    stats->inactive_split = group_of(counters, UF_COUNTER_INACTIVE_SPLIT);
    stats->allocated_bytes = group_of(counters, UF_COUNTER_ALLOCATED_BYTES);
    stats->reserved_bytes = group_of(counters, UF_COUNTER_RESERVED_BYTES);
    stats->active_bytes = group_of(counters, UF_COUNTER_ACTIVE_BYTES);
    stats->inactive_split_bytes = group_of(counters, UF_COUNTER_INACTIVE_SPLIT_BYTES);
    stats->requested_bytes = group_of(counters, UF_COUNTER_REQUESTED_BYTES);
    stats->oversize_allocations = stat_of_single(&counters->oversize_allocations);
    stats->oversize_segments = stat_of_single(&counters->oversize_segments);
    stats->num_alloc_retries = counters->num_alloc_retries;
    stats->num_ooms = counters->num_ooms;
    stats->max_split_size = core->max_split_size_at_start;
    stats->num_sync_all_streams = counters->num_sync_all_streams;
    stats->num_device_alloc = counters->num_device_alloc;
    stats->num_device_free = counters->num_device_free;
}
