/* SPDX-License-Identifier: MIT
 *
 * The allocator's statistics, under the names and with the meaning of torch.cuda.memory_stats()
 * (PyTorch 2.11), and what they say about fragmentation. Plain numbers: nothing here belongs to an
 * allocator, allocates memory or takes a lock. */
#ifndef UNFRAG_STATS_H
#define UNFRAG_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <unfrag/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The nine groups, in PyTorch's order: name, unit, sentence. */
#define UF_STATS_GROUP_LIST(X)                                                      \
    X(allocation, count, "blocks handed out and not yet given back")                \
    X(segment, count, "segments held from the driver (0 with expandable segments)") \
    X(active, count, "blocks handed out or waiting for another stream")             \
    X(inactive_split, count, "cached blocks that share a segment with others")      \
    X(allocated_bytes, bytes, "bytes of the blocks of `allocation`")                \
    X(reserved_bytes, bytes, "bytes held from the driver")                          \
    X(active_bytes, bytes, "bytes of the blocks of `active`")                       \
    X(inactive_split_bytes, bytes, "bytes of the blocks of `inactive_split`")       \
    X(requested_bytes, bytes, "bytes that callers asked for, of the blocks of `active`")

/* Groups that are not divided by pool; they count blocks and segments of at least
 * max_split_size_mb. */
#define UF_STATS_OVERSIZE_LIST(X)                                                     \
    X(oversize_allocations, count, "blocks of at least max_split_size_mb handed out") \
    X(oversize_segments, count, "segments of at least max_split_size_mb held")

/* Plain counters, in PyTorch's order. */
#define UF_STATS_COUNTER_LIST(X)                                                               \
    X(num_alloc_retries, count, "requests that gave all cached segments back and tried again") \
    X(num_ooms, count, "requests that failed for lack of memory")                              \
    X(max_split_size, bytes, "max_split_size_mb when the device was set up; -1 is unlimited")  \
    X(num_sync_all_streams, count, "waits for all recorded events")                            \
    X(num_device_alloc, count, "driver allocations and mappings")                              \
    X(num_device_free, count, "driver releases and unmappings")

/* One statistic over time: increase(x) adds x to current and allocated and raises peak to current,
 * decrease(x) takes x from current and adds it to freed. */
typedef struct uf_stat {
    int64_t current;
    int64_t peak;
    int64_t allocated;
    int64_t freed;
} uf_stat;

/* One statistic by pool: all = small_pool + large_pool, except for the peaks. */
typedef struct uf_stat_group {
    uf_stat all;
    uf_stat small_pool;
    uf_stat large_pool;
} uf_stat_group;

typedef struct uf_stats {
#define UF_STATS_MEMBER(name, unit, text) uf_stat_group name;
    UF_STATS_GROUP_LIST(UF_STATS_MEMBER)
#undef UF_STATS_MEMBER
#define UF_STATS_MEMBER(name, unit, text) uf_stat name;
    UF_STATS_OVERSIZE_LIST(UF_STATS_MEMBER)
#undef UF_STATS_MEMBER
#define UF_STATS_MEMBER(name, unit, text) int64_t name;
    UF_STATS_COUNTER_LIST(UF_STATS_MEMBER)
#undef UF_STATS_MEMBER
} uf_stats;

/* Returns the number of keys that uf_stats_entry enumerates: 122. Thread-safe. Since 0.1. */
UF_API size_t uf_stats_count(void);

/* Gives one key and its value, in the order of torch.cuda.memory_stats(): sorted by key, from
 * "active.all.allocated" at index 0 to "segment.small_pool.peak".
 * stats: borrowed for the call. index: from 0 to uf_stats_count() - 1. key, value: either may be
 * NULL. Returns false, and sets nothing, for an index beyond the end. *key is static text.
 * Thread-safe on distinct or unchanging stats. Since 0.1. */
UF_API bool uf_stats_entry(const uf_stats *stats, size_t index, const char **key, int64_t *value);

/* Looks a value up by its key, such as "reserved_bytes.all.peak".
 * stats, key: borrowed for the call. Returns false, and leaves *value alone, for an unknown key.
 * Thread-safe on distinct or unchanging stats. Since 0.1. */
UF_API bool uf_stats_find(const uf_stats *stats, const char *key, int64_t *value);

/* Stores a value by its key, as when reading a recorded memory_stats(). Returns false for an
 * unknown key. stats, key: borrowed for the call. Since 0.1. */
UF_API bool uf_stats_set(uf_stats *stats, const char *key, int64_t value);

/* Room for every text uf_summary_write writes, its NUL included. */
#define UF_SUMMARY_CAPACITY 16384

/* Writes the text of torch.cuda.memory_summary(), to the character.
 * stats: borrowed for the call. device: the device's index. is_abbreviated: one row per statistic
 * instead of one more per pool. buffer, capacity: receives the text and a NUL; UF_SUMMARY_CAPACITY
 * bytes are always enough. length: receives the length without the NUL; may be NULL.
 * Returns UF_OK, or UF_ERROR_INVALID_ARGUMENT if the text does not fit (the buffer then holds an
 * empty text, if it holds anything). Thread-safe. Since 0.1. */
UF_API uf_status uf_summary_write(const uf_stats *stats, int32_t device, bool is_abbreviated,
                                  char *buffer, size_t capacity, size_t *length,
                                  uf_error *error) UF_MUST_USE;

/* The share of reserved bytes from which fragmentation counts as an alarm, unless told. */
#define UF_FRAGMENTATION_ALARM_SHARE 0.30

/* What the statistics say about fragmentation. Shares are from 0 to 1. All byte counts are of this
 * allocator on this device.
 *
 *   reserved  |############ allocated ############|## waiting ##|........... cached ...........|
 *                  requested + rounding                          |. stuck .|     whole segments |
 *                                                                |... fragmented ...| largest  |
 */
typedef struct uf_fragmentation {
    int64_t reserved_bytes; /* held from the driver */
    int64_t cached_bytes;   /* held, and no block needs it: reserved - active */
    double cached_share;    /* of reserved */

    int64_t stuck_bytes; /* cached in partly used segments: cannot be given back to the driver.
                            0 by definition with expandable segments */
    double stuck_share;  /* of reserved */

    int64_t rounding_bytes; /* active - requested: lost to rounding sizes up */
    double rounding_share;  /* of active */

    int64_t waiting_bytes; /* active - allocated: freed by the program, another stream still uses
                              it */

    uint64_t largest_request_bytes; /* the largest request the cache can serve as it is; 0 if that
                                       is not known */
    int64_t fragmented_bytes; /* cached - largest_request: cached, and yet not in one piece. All of
                                 the cache where largest_request is not known */
    double fragmented_share;  /* of reserved */

    double alarm_share; /* the threshold that was used */
    bool is_alarm;      /* fragmented_share >= alarm_share */
} uf_fragmentation;

/* Computes *result from statistics.
 * stats: borrowed for the call. largest_request_bytes: the largest request that the cache can
 * serve without the driver's help, 0 if not known (from statistics alone it is not).
 * alarm_share: a share of reserved in (0, 1], or 0 for UF_FRAGMENTATION_ALARM_SHARE.
 * Returns UF_OK, or UF_ERROR_INVALID_ARGUMENT for a share outside that range or statistics that
 * contradict themselves (requested above active, allocated above active, active above reserved,
 * or negative). Pure; thread-safe. Since 0.1. */
UF_API uf_status uf_fragmentation_compute(const uf_stats *stats, uint64_t largest_request_bytes,
                                          double alarm_share, uf_fragmentation *result,
                                          uf_error *error) UF_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
