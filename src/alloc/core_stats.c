/* SPDX-License-Identifier: MIT
 *
 * From the core's running counters to the statistics people see. */
#include "alloc/core.h"

#include <stddef.h>
#include <string.h>

static uf_stat stat_of(const uf_counter_class *counter)
{
    return (uf_stat){.current = counter->current,
                     .peak = counter->peak,
                     .allocated = counter->allocated,
                     .freed = (int64_t)((uint64_t)counter->allocated - (uint64_t)counter->current +
                                        (uint64_t)counter->freed_base)};
}

/* Wraps, as PyTorch's counters do. */
static int64_t sum(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static uf_stat_group group_of(const uf_counter *counter)
{
    uf_stat_group group = {.small_pool = stat_of(&counter->of[UF_CLASS_SMALL]),
                           .large_pool = stat_of(&counter->of[UF_CLASS_LARGE])};
    group.all = (uf_stat){.current = sum(group.small_pool.current, group.large_pool.current),
                          .peak = counter->peak_all,
                          .allocated = sum(group.small_pool.allocated, group.large_pool.allocated),
                          .freed = sum(group.small_pool.freed, group.large_pool.freed)};
    return group;
}

void uf__core_stats(const uf_core *core, uf_stats *stats)
{
    const uf_counters *counters = &core->counters;
    memset(stats, 0, sizeof *stats);
    stats->allocation = group_of(&counters->counters[UF_COUNTER_ALLOCATION]);
    stats->segment = group_of(&counters->counters[UF_COUNTER_SEGMENT]);
    stats->active = group_of(&counters->counters[UF_COUNTER_ACTIVE]);
    stats->inactive_split = group_of(&counters->counters[UF_COUNTER_INACTIVE_SPLIT]);
    stats->allocated_bytes = group_of(&counters->counters[UF_COUNTER_ALLOCATED_BYTES]);
    stats->reserved_bytes = group_of(&counters->counters[UF_COUNTER_RESERVED_BYTES]);
    stats->active_bytes = group_of(&counters->counters[UF_COUNTER_ACTIVE_BYTES]);
    stats->inactive_split_bytes = group_of(&counters->counters[UF_COUNTER_INACTIVE_SPLIT_BYTES]);
    stats->requested_bytes = group_of(&counters->counters[UF_COUNTER_REQUESTED_BYTES]);
    stats->oversize_allocations = stat_of(&counters->oversize_allocations);
    stats->oversize_segments = stat_of(&counters->oversize_segments);
    stats->num_alloc_retries = counters->num_alloc_retries;
    stats->num_ooms = counters->num_ooms;
    stats->max_split_size = core->max_split_size_at_start;
    stats->num_sync_all_streams = counters->num_sync_all_streams;
    stats->num_device_alloc = counters->num_device_alloc;
    stats->num_device_free = counters->num_device_free;
}
