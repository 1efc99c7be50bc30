/* SPDX-License-Identifier: MIT
 *
 * The caching GPU memory allocator for C programs, over a device (unfrag/device.h). Any number of
 * allocators may exist; each has one lock of its own, and every function here may be called from
 * any thread at any time between uf_allocator_create and uf_allocator_destroy.
 *
 * Addresses and sizes are in bytes and 64 bits wide, whatever the host's pointers are. Streams are
 * named by their handles as integers, 0 = the default stream. Every `error` may be NULL; it is
 * filled only when a function returns something but UF_OK, and results are untouched then.
 *
 * Each function that takes an allocator may also return UF_ERROR_INVALID_ARGUMENT for NULL where
 * something must stand, and UF_ERROR_BUSY when it is called from inside on_event.
 *
 * A child made by fork has a copy of an allocator, not of the device's memory: it may end, and
 * should call nothing of it. If another thread was inside a call at that moment, a call in the
 * child waits for ever. */
#ifndef UNFRAG_UNFRAG_H
#define UNFRAG_UNFRAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <unfrag/debug.h>
#include <unfrag/device.h>
#include <unfrag/event.h>
#include <unfrag/policy.h>
#include <unfrag/pool.h>
#include <unfrag/stats.h>
#include <unfrag/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An allocator and all it holds from its device. Opaque; guards itself. */
typedef struct uf_allocator uf_allocator;

/* Something that happened, as a snapshot records it. */
typedef struct uf_allocator_event {
    uf_action action;
    uint64_t addr; /* of the block, segment or pages; for UF_ACTION_OOM the driver's free bytes */
    uint64_t size_bytes; /* requested bytes of blocks, else bytes; for UF_ACTION_OOM the block size
                            that was wanted */
    uint64_t stream;
} uf_allocator_event;

/* Called after each event took effect, under the allocator's lock so that events come in order and
 * one at a time. It must return soon; what it calls on the same allocator returns UF_ERROR_BUSY.
 * event is borrowed for the call. */
typedef void (*uf_allocator_callback)(void *context, const uf_allocator_event *event);

/* struct_size_bytes = sizeof(uf_allocator_options); 0 elsewhere means default. */
typedef struct uf_allocator_options {
    size_t struct_size_bytes;
    const uf_device *device; /* required; borrowed until uf_allocator_destroy */
    int32_t device_index;    /* what summaries and snapshots call the device; 0 to 1023 */
    uf_policy policy;
    const char *conf;     /* settings as in PYTORCH_CUDA_ALLOC_CONF (docs/settings.md), read with
                             PyTorch 2.11's grammar; copied; NULL = none. The environment is not
                             looked at. */
    uint64_t limit_bytes; /* most bytes to hold from the device; 0 = none */
    double fraction;      /* the limit as a share of the device's total, in (0, 1]; 0 = not given.
                             At most one of the two limits; without either,
                             per_process_memory_fraction of conf counts */
    /* Lowering max_split_size_mb below a piece of a split segment is normally refused
     * (uf_conf_set). With this it is done, and what would then release such a piece fails with
     * UF_ERROR_HAZARD. */
    bool can_lower_split_size;
    /* Under UF_POLICY_UNFRAG. Small pages are the device's granularity or a multiple of it. */
    uint64_t page_bytes;            /* a power of two from 4 KiB; 0 = 2 MiB */
    uint64_t large_page_bytes;      /* a multiple of page_bytes, up to 64 GiB; 0 = 16 page_bytes */
    uf_allocator_callback on_event; /* NULL = none */
    void *event_context;            /* borrowed until uf_allocator_destroy */
    /* The rest under UF_POLICY_UNFRAG. Growth leaves so many bytes of the device to other libraries
     * and programs; then pages are taken from what is cached, then streams are waited for, then the
     * request fails. UF_HEADROOM_NONE = none; 0 = on a device that is shared (device.h) the larger
     * of 256 MiB and 2 % of its memory, at most an eighth of it, and none on others. */
    uint64_t headroom_bytes;
    /* Without a limit: beyond so many percent of what has been active at most, pages of the cache
     * are taken before it grows, as long as that takes little time. 100 to 10000; 0 = 105. */
    uint32_t soft_percent;
    /* Cached pages go back to the device when they were not used for so long, or for so many frees.
     * Looked at when something is allocated; a page goes after at most an eighth more than that,
     * if the device is known to be done with it. 0 = never. */
    uint32_t collect_after_ms; /* needs a device with a clock */
    uint64_t collect_after_frees;
    /* What a small and a large page cost (uf_cost_probe); borrowed for the call; NULL = as the
     * device says, or the built-in table. is_cost_probed: measured now; where that cannot be done,
     * as if neither were given. */
    const uf_page_cost *page_costs;
    bool is_cost_probed;
    /* For programs that use memory on streams they did not name (uf_use_on_stream), as long as that
     * work is queued before the memory is given back: pages move only when the work is done that
     * was queued before the free on every stream this allocator has heard of. None of these may be
     * destroyed before the allocator is. */
    bool is_every_stream_watched;
    /* Under a limit: beyond 44/45 of it, and beyond 1.01 times what has been active at most and 16
     * MiB, pages of the cache are taken before it grows, as long as that takes little time and
     * nothing has to be waited for. A program that needs nearly all of its limit then holds little
     * more than it needs. Needs a device with a clock. */
    bool is_limit_spared;
    /* Debug mode (unfrag/debug.h, docs/debug.md): what is written behind blocks and into freed
     * ones, and wrong addresses, are found and reported. Slow: streams are waited for, and each
     * block is 512 bytes larger, also in statistics and events. */
    uf_damage_callback on_damage; /* NULL = none; counts in debug mode only */
    void *damage_context;         /* borrowed until uf_allocator_destroy */
    bool is_debug;
} uf_allocator_options;

#define UF_HEADROOM_NONE UINT64_MAX

/* Makes an allocator. It takes nothing from the device yet.
 * options: borrowed for the call, required. allocator: receives it. error: may be NULL.
 * Under UF_POLICY_UNFRAG only roundup_power2_divisions and per_process_memory_fraction of conf
 * count. Returns UF_OK; UF_ERROR_INVALID_ARGUMENT (no device, a device without a function it must
 * have, two limits, a fraction outside (0, 1], a device_index outside 0 to 1023, page sizes that
 * are none, a struct_size_bytes that is none); UF_ERROR_CONF; UF_ERROR_UNSUPPORTED (no such policy,
 * backend:cudaMallocAsync, expandable_segments or UF_POLICY_UNFRAG on a device that cannot map,
 * collect_after_ms on one without a clock);
 * UF_ERROR_DEVICE; UF_ERROR_HOST_MEMORY. *allocator is owned by the caller (uf_allocator_destroy).
 * Thread-safe. Since 0.1. */
UF_API uf_status uf_allocator_create(const uf_allocator_options *options, uf_allocator **allocator,
                                     uf_error *error) UF_MUST_USE;

/* Ends an allocator: waits for the streams that still use freed blocks, then gives everything back
 * to the device, addresses that are still handed out included.
 * allocator: NULL is accepted. Ownership ends; no other thread may be inside a call on it. Events
 * of segments given back still reach on_event. Since 0.1. */
UF_API void uf_allocator_destroy(uf_allocator *allocator);

/* Allocates device memory. First the frees whose streams are done are completed; then a cached
 * block serves the request, or a new segment does, after giving cached ones back if need be. bytes:
 * from 0 to 2^60 - 1; 0 gives address 0 and counts nothing. stream: the handle of the stream that
 * the memory is for. addr: receives the address, a multiple of 512. Returns UF_OK;
 * UF_ERROR_OUT_OF_MEMORY (the limit or the driver refuses; the text has the numbers);
 * UF_ERROR_REQUEST_TOO_LARGE; UF_ERROR_HAZARD (see can_lower_split_size); UF_ERROR_DEVICE;
 * UF_ERROR_HOST_MEMORY. The memory belongs to the caller until uf_free. Thread-safe. Since 0.1.
 * Source: PyTorch 2.11's allocator, docs/internals/torch-policy.md sections 1 to 3. */
UF_API uf_status uf_alloc(uf_allocator *allocator, uint64_t bytes, uint64_t stream, uint64_t *addr,
                          uf_error *error) UF_MUST_USE;

/* Gives memory back. Work queued on its own stream may still use it; it is reused at once by later
 * requests of that stream. Other streams must have been named by uf_use_on_stream: the block then
 * waits until their work queued so far is done.
 * addr: as uf_alloc gave it; 0 is accepted and does nothing.
 * Returns UF_OK; UF_ERROR_FOREIGN_POINTER (not handed out by this allocator, or given back before;
 * nothing changes); UF_ERROR_DEVICE (an event could not be recorded; the address is given back all
 * the same); in debug mode UF_ERROR_DAMAGED (bytes behind its end were written; the address is
 * given back all the same). Thread-safe. Since 0.1. Source: docs/internals/torch-policy.md
 * section 4. */
UF_API uf_status uf_free(uf_allocator *allocator, uint64_t addr, uf_error *error) UF_MUST_USE;

/* Says that another stream uses the memory too (PyTorch's record_stream), before it is given back.
 * addr: as uf_alloc gave it; 0 is accepted and does nothing. stream: the other stream's handle; its
 * own stream, or one named before, changes nothing.
 * Returns UF_OK; UF_ERROR_FOREIGN_POINTER; UF_ERROR_HOST_MEMORY. Thread-safe. Since 0.1. */
UF_API uf_status uf_use_on_stream(uf_allocator *allocator, uint64_t addr, uint64_t stream,
                                  uf_error *error) UF_MUST_USE;

/* Gives cached segments and pages back to the device, after waiting for blocks that other streams
 * still use (PyTorch's empty_cache). Inside a pool's scope only pools that were destroyed are
 * emptied.
 * Returns UF_OK; UF_ERROR_DEVICE; UF_ERROR_HOST_MEMORY. Thread-safe. Since 0.1. */
UF_API uf_status uf_empty_cache(uf_allocator *allocator, uf_error *error) UF_MUST_USE;

/* Maps memory ahead of time: afterwards so many bytes are cached in one piece where a request of
 * that size on that stream would go, so that it is served without a driver call, unless other
 * requests or uf_trim take the memory first. If that is so already, nothing happens. Under
 * UF_POLICY_UNFRAG new pages are made as long as the limit and the device allow it, then cached
 * ones are moved; no statistic but reserved_bytes changes, and smaller requests may have to
 * exchange a large page for small ones. Under UF_POLICY_TORCH it is what programs do by hand: one
 * block of that size is allocated and freed, as events and statistics show. bytes: below 2^60; 0
 * does nothing. stream: the handle of the stream that the memory is for; the pool is the one that a
 * request of the calling thread would get. Returns UF_OK; UF_ERROR_OUT_OF_MEMORY;
 * UF_ERROR_REQUEST_TOO_LARGE; UF_ERROR_HAZARD; UF_ERROR_DEVICE; UF_ERROR_HOST_MEMORY; on failure
 * nothing is reserved. Thread-safe. Since 0.1. */
UF_API uf_status uf_reserve(uf_allocator *allocator, uint64_t bytes, uint64_t stream,
                            uf_error *error) UF_MUST_USE;

/* Gives cached memory back to the device until at most keep_bytes of it are cached, or until no
 * more can be given back. Cached is what uf_usage_get calls so. Under UF_POLICY_UNFRAG pages go,
 * those cached longest first, and work of a page's own stream is waited for where too few are idle;
 * under UF_POLICY_TORCH whole segments that no block is in, and pages of expandable segments, the
 * largest first. Unlike uf_empty_cache it does not wait for freed blocks that other streams use:
 * they are not cached yet. While a pool's scope or route is open, idle pages go under
 * UF_POLICY_UNFRAG, and nothing but dead pools under UF_POLICY_TORCH.
 * keep_bytes: 0 = give all back. released_bytes: receives how many bytes were given back; may be
 * NULL. Returns UF_OK, also if more than keep_bytes stay cached; UF_ERROR_DEVICE;
 * UF_ERROR_HOST_MEMORY. Thread-safe. Since 0.1. */
UF_API uf_status uf_trim(uf_allocator *allocator, uint64_t keep_bytes, uint64_t *released_bytes,
                         uf_error *error) UF_MUST_USE;

/* Freezes the pages under a block: for memory that is exported or registered with a network card or
 * another library, which goes on using the physical pages. As long as it is pinned its addresses
 * keep their pages, also after uf_free: the free then takes effect when the last pin goes, and
 * until then the memory is neither handed out again nor given back (another machine may still write
 * to it). Pins count: each needs its uf_unpin.
 * addr: as uf_alloc gave it, and not given back yet. Returns UF_OK; UF_ERROR_FOREIGN_POINTER;
 * UF_ERROR_HOST_MEMORY. Thread-safe. Since 0.1. */
UF_API uf_status uf_pin(uf_allocator *allocator, uint64_t addr, uf_error *error) UF_MUST_USE;

/* Takes one pin away. If it was the last one and the memory was freed meanwhile, it is given back
 * now, as by uf_free.
 * addr: as it was pinned. Returns UF_OK; UF_ERROR_NOT_FOUND (not pinned); UF_ERROR_DEVICE and
 * UF_ERROR_DAMAGED (as uf_free; the pin is gone all the same). Thread-safe. Since 0.1. */
UF_API uf_status uf_unpin(uf_allocator *allocator, uint64_t addr, uf_error *error) UF_MUST_USE;

/* Sets the most bytes to hold from the device. Releases nothing; later requests feel it.
 * limit_bytes: 0 removes the limit. Returns UF_OK. Thread-safe. Since 0.1. */
UF_API uf_status uf_limit_set(uf_allocator *allocator, uint64_t limit_bytes,
                              uf_error *error) UF_MUST_USE;

/* The same as a share of the device's total bytes (set_per_process_memory_fraction), rounded down.
 * fraction: from 0 to 1; 1 removes the limit. Returns UF_OK; UF_ERROR_INVALID_ARGUMENT (outside, or
 * not a number). Thread-safe. Since 0.1. */
UF_API uf_status uf_fraction_set(uf_allocator *allocator, double fraction,
                                 uf_error *error) UF_MUST_USE;

/* Changes settings while the allocator runs. Options that the string does not name keep their value
 * or return to the default, as docs/settings.md says; blocks that exist are not changed. All or
 * nothing: on failure the settings in force stay (PyTorch would keep those before the bad one).
 * conf: as in PYTORCH_CUDA_ALLOC_CONF; borrowed for the call; "" = defaults.
 * Returns UF_OK; UF_ERROR_CONF; UF_ERROR_UNSUPPORTED (expandable_segments on a device that cannot
 * map); UF_ERROR_HAZARD (max_split_size_mb would fall to the size of a piece of a split segment, or
 * below: PyTorch may then release memory that is in use; the text names the piece. See
 * can_lower_split_size); UF_ERROR_HOST_MEMORY. Thread-safe. Since 0.1.
 * Source: docs/internals/torch-policy.md sections 3.4 and 9. */
UF_API uf_status uf_conf_set(uf_allocator *allocator, const char *conf,
                             uf_error *error) UF_MUST_USE;

/* Gives all statistics of one instant, as torch.cuda.memory_stats().
 * stats: receives them. Returns UF_OK. Thread-safe. Since 0.1. */
UF_API uf_status uf_stats_get(uf_allocator *allocator, uf_stats *stats,
                              uf_error *error) UF_MUST_USE;

/* Makes every peak the current value (reset_peak_memory_stats). Returns UF_OK. Thread-safe.
 * Since 0.1. */
UF_API uf_status uf_stats_reset_peak(uf_allocator *allocator, uf_error *error) UF_MUST_USE;

/* Makes the allocated and freed totals and the num_ counters 0; current values, peaks and
 * max_split_size stay (reset_accumulated_memory_stats). Returns UF_OK. Thread-safe. Since 0.1. */
UF_API uf_status uf_stats_reset_accumulated(uf_allocator *allocator, uf_error *error) UF_MUST_USE;

/* Where the memory is:
 *
 *   reserved  |#### active ####|~~~~ frozen ~~~~|........ cached ........|
 *   device    |############# reserved ##########|.. outside ..|.. free ..|
 */
typedef struct uf_usage {
    uint64_t reserved_bytes; /* held from the device = active + frozen + cached */
    uint64_t active_bytes;   /* under blocks that are handed out or wait for another stream; whole
                                pages under UF_POLICY_UNFRAG */
    uint64_t cached_bytes;   /* serves any request (UF_POLICY_UNFRAG), or some (UF_POLICY_TORCH) */
    uint64_t frozen_bytes;   /* can serve nobody else: pages of private pools that live, active or
                                not (UF_POLICY_UNFRAG), and pinned_bytes */
    uint64_t pinned_bytes;   /* freed, but pinned still; but those in pools */
    uint64_t limit_bytes;    /* 0 = none */
    uint64_t headroom_bytes; /* that growth leaves to others; 0 = none */
    uint64_t device_free_bytes;
    uint64_t outside_bytes; /* of the device, neither free nor held by this allocator */
} uf_usage;

/* Tells where the memory is at this instant. Asks the device.
 * usage: receives it. Returns UF_OK; UF_ERROR_DEVICE. Thread-safe. Since 0.1. */
UF_API uf_status uf_usage_get(uf_allocator *allocator, uf_usage *usage,
                              uf_error *error) UF_MUST_USE;

/* Writes the text of torch.cuda.memory_summary() for this allocator.
 * is_abbreviated: one row per statistic instead of one more per pool. buffer, capacity: receives
 * the text and a NUL; UF_SUMMARY_CAPACITY bytes are always enough. length: receives the length
 * without the NUL; may be NULL. Returns UF_OK; UF_ERROR_INVALID_ARGUMENT if the text does not fit
 * (the buffer then holds an empty text, if it holds anything). Thread-safe. Since 0.1. */
UF_API uf_status uf_summary(uf_allocator *allocator, bool is_abbreviated, char *buffer,
                            size_t capacity, size_t *length, uf_error *error) UF_MUST_USE;

/* Says how fragmented the memory is; largest_request_bytes is the largest request, of any stream
 * and pool, that cached blocks serve without the driver. alarm_share: a share of reserved in (0,
 * 1], or 0 for UF_FRAGMENTATION_ALARM_SHARE. result: receives it. Returns UF_OK;
 * UF_ERROR_INVALID_ARGUMENT (another share). Thread-safe. Since 0.1. */
UF_API uf_status uf_fragmentation_get(uf_allocator *allocator, double alarm_share,
                                      uf_fragmentation *result, uf_error *error) UF_MUST_USE;

/* Proves the allocator's accounting: walks every block, set and list and compares them with each
 * other and with the counters. In debug mode it then waits for the streams and looks at every guard
 * and all freed memory. Slow; for tests and for finding stray writes.
 * Returns UF_OK; UF_ERROR_INTERNAL with the first violation; UF_ERROR_DAMAGED with the first damage
 * that no status told before (each is told once); UF_ERROR_HOST_MEMORY. Thread-safe. Since 0.1. */
UF_API uf_status uf_check(uf_allocator *allocator, uf_error *error) UF_MUST_USE;

/* Where an address lies. */
typedef struct uf_block_place {
    uint64_t addr, size_bytes; /* of the block */
    uint64_t requested_bytes;
    uint64_t stream;                      /* the one it was allocated for */
    uint64_t pool_id;                     /* 0 = the default pool */
    uint64_t segment_addr, segment_bytes; /* of its segment or, with expandable segments, of the
                                             mapped run around it; under UF_POLICY_UNFRAG the
                                             block's own: what is around it may go */
} uf_block_place;

/* Tells about memory that is handed out.
 * addr: as uf_alloc gave it. place: receives it. Returns UF_OK; UF_ERROR_FOREIGN_POINTER (not
 * handed out by this allocator). Thread-safe. Since 0.1. */
UF_API uf_status uf_block_get(uf_allocator *allocator, uint64_t addr, uf_block_place *place,
                              uf_error *error) UF_MUST_USE;

typedef struct uf_block_info {
    uint64_t addr, size_bytes;
    uint64_t requested_bytes; /* of an inactive block: what its last owner asked for, or 0 */
    uf_block_state state;
} uf_block_info;

/* A segment, or one run of mapped pages of an expandable segment. */
typedef struct uf_segment_info {
    uint64_t addr, total_bytes;
    uint64_t allocated_bytes, active_bytes;
    uint64_t requested_bytes; /* of active blocks */
    uint64_t stream;
    uint64_t pool_id[2]; /* {0, 0} = the default pool */
    uint32_t block_count;
    bool is_large; /* pool class */
    bool is_expandable;
} uf_segment_info;

/* Receives one segment and its segment->block_count blocks, by address and without gaps; both are
 * borrowed for the call. Returns false to stop the walk. Called outside the allocator's lock: it
 * may use the allocator. */
typedef bool (*uf_walk_callback)(void *context, const uf_segment_info *segment,
                                 const uf_block_info *blocks);

/* Shows all segments and blocks of one instant, in the order of a snapshot: by address.
 * callback: called for each segment; context: handed on to it. Returns UF_OK, also when the
 * callback stopped the walk; UF_ERROR_HOST_MEMORY. Thread-safe. Since 0.1. */
UF_API uf_status uf_walk(uf_allocator *allocator, uf_walk_callback callback, void *context,
                         uf_error *error) UF_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
