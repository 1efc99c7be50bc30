/* SPDX-License-Identifier: MIT
 *
 * Statistics by key, and what they say about fragmentation. Owns the sorted list of
 * keys; knows nothing of how an allocator counts. Pure functions, no lock. */
#include <unfrag/stats.h>

#include <string.h>

#include "base/error.h"

typedef struct stats_key {
    const char *name;
    size_t offset; /* of an int64_t in uf_stats */
} stats_key;

/* clang-format off */
#define ENTRY(name, member) {name, offsetof(uf_stats, member)},
#define STAT(name, member)                                                                         \
    ENTRY(name ".allocated", member.allocated)                                                     \
    ENTRY(name ".current", member.current)                                                         \
    ENTRY(name ".freed", member.freed)                                                             \
    ENTRY(name ".peak", member.peak)
#define GROUP(member)                                                                              \
    STAT(#member ".all", member.all)                                                               \
    STAT(#member ".large_pool", member.large_pool)                                                 \
    STAT(#member ".small_pool", member.small_pool)
#define OVERSIZE(member) STAT(#member, member)
#define COUNTER(member) ENTRY(#member, member)

/* Sorted by name, byte by byte ('.' is below '_'); a test checks order and completeness. */
static const stats_key keys[] = {
    GROUP(active)
    GROUP(active_bytes)
    GROUP(allocated_bytes)
    GROUP(allocation)
    GROUP(inactive_split)
    GROUP(inactive_split_bytes)
    COUNTER(max_split_size)
    COUNTER(num_alloc_retries)
    COUNTER(num_device_alloc)
    COUNTER(num_device_free)
    COUNTER(num_ooms)
    COUNTER(num_sync_all_streams)
    OVERSIZE(oversize_allocations)
    OVERSIZE(oversize_segments)
    GROUP(requested_bytes)
    GROUP(reserved_bytes)
    GROUP(segment)
};
/* clang-format on */

#define KEY_COUNT (sizeof keys / sizeof keys[0])

_Static_assert(sizeof(uf_stats) == KEY_COUNT * sizeof(int64_t), "a statistic has no key");

static int64_t value_at(const uf_stats *stats, const stats_key *key)
{
    int64_t value;
    memcpy(&value, (const char *)stats + key->offset, sizeof value);
    return value;
}

static const stats_key *find_key(const char *name)
{
    size_t low = 0;
    size_t high = KEY_COUNT;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, keys[middle].name);
        if (order == 0) {
            return &keys[middle];
        }
        if (order < 0) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return NULL;
}

size_t uf_stats_count(void)
{
    return KEY_COUNT;
}

bool uf_stats_entry(const uf_stats *stats, size_t index, const char **key, int64_t *value)
{
    if (index >= KEY_COUNT) {
        return false;
    }
    if (key != NULL) {
        *key = keys[index].name;
    }
    if (value != NULL) {
        *value = value_at(stats, &keys[index]);
    }
    return true;
}

bool uf_stats_find(const uf_stats *stats, const char *key, int64_t *value)
{
    const stats_key *found = find_key(key);
    if (found == NULL) {
        return false;
    }
    *value = value_at(stats, found);
    return true;
}

bool uf_stats_set(uf_stats *stats, const char *key, int64_t value)
{
    const stats_key *found = find_key(key);
    if (found == NULL) {
        return false;
    }
    memcpy((char *)stats + found->offset, &value, sizeof value);
    return true;
}

static double share_of(int64_t part, int64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0.0;
}

uf_status uf_fragmentation_compute(const uf_stats *stats, uint64_t largest_request_bytes,
                                   double alarm_share, uf_fragmentation *result, uf_error *error)
{
    int64_t reserved = stats->reserved_bytes.all.current;
    int64_t active = stats->active_bytes.all.current;
    int64_t allocated = stats->allocated_bytes.all.current;
    int64_t requested = stats->requested_bytes.all.current;
    int64_t stuck = stats->inactive_split_bytes.all.current;
    if (alarm_share == 0.0) {
        alarm_share = UF_FRAGMENTATION_ALARM_SHARE;
    }
    if (!(alarm_share > 0.0 && alarm_share <= 1.0)) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "an alarm share of %g was given; it is a share of the reserved bytes "
                             "above 0 and up to 1, such as 0.30",
                             alarm_share);
    }
    if (requested < 0 || allocated < 0 || stuck < 0 || requested > active || allocated > active ||
        active > reserved || stuck > reserved - active) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "the statistics contradict themselves: requested %lld, allocated "
                             "%lld, active %lld, stuck %lld, reserved %lld bytes",
                             (long long)requested, (long long)allocated, (long long)active,
                             (long long)stuck, (long long)reserved);
    }
    uf_fragmentation out = {0};
    out.reserved_bytes = reserved;
    out.cached_bytes = reserved - active;
    out.cached_share = share_of(out.cached_bytes, reserved);
    out.stuck_bytes = stuck;
    out.stuck_share = share_of(stuck, reserved);
    out.rounding_bytes = active - requested;
    out.rounding_share = share_of(out.rounding_bytes, active);
    out.waiting_bytes = active - allocated;
    out.largest_request_bytes = largest_request_bytes;
    /* A largest request above the cache is possible (unmapped pages count towards it). */
    out.fragmented_bytes = largest_request_bytes >= (uint64_t)out.cached_bytes
                               ? 0
                               : out.cached_bytes - (int64_t)largest_request_bytes;
    out.fragmented_share = share_of(out.fragmented_bytes, reserved);
    out.alarm_share = alarm_share;
    out.is_alarm = out.fragmented_bytes > 0 && out.fragmented_share >= alarm_share;
    *result = out;
    return UF_OK;
}
