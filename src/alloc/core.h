/* SPDX-License-Identifier: MIT
 *
 * The allocator core under the `torch` policy: blocks, pools, streams, the allocation chain. It
 * owns all of an allocator's state; it must not know who calls it (public API, replay, tests). It
 * has no lock of its own: the caller serialises.
 *
 *   core -> pool (default, private ...) -> class (small, large) -> shelf, one per stream
 *                                                                    |- free set of blocks
 *                                                                    `- unmapped blocks (regions)
 *
 * Blocks never move between shelves. Accounting identities that uf__core_check proves:
 *   total_bytes       = sum of mapped blocks        = counter reserved_bytes (small + large)
 *   active_bytes      = sum of allocated, pending and deferred blocks
 *   allocated_bytes   = sum of allocated blocks
 *   inactive_split    = free mapped blocks with a neighbour, outside expandable segments */
#ifndef UF_ALLOC_CORE_H
#define UF_ALLOC_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <unfrag/device.h>
#include <unfrag/event.h>
#include <unfrag/stats.h>
#include <unfrag/status.h>

#include "alloc/block.h"
#include "alloc/conf.h"
#include "alloc/counters.h"
#include "alloc/freeset.h"

#define UF_DEFAULT_POOL 0u

typedef struct uf_index_list {
    uint32_t *items;
    uint32_t count, capacity;
} uf_index_list;

/* Blocks of one pool, class and stream that may serve each other's requests. */
typedef struct uf_shelf {
    uf_freeset cached;
    uf_index_list unmapped; /* unmapped blocks of regions, by address */
    uint32_t pool;
    uint32_t stream; /* index into core.streams */
    int pool_class;
    uint32_t region_count; /* expandable segments that belong here */
} uf_shelf;

typedef struct uf_pool_class {
    uint64_t search_count;     /* ages, spec 5 */
    uint32_t *shelf_of_stream; /* shelf index + 1, 0 = none yet */
    uint32_t stream_capacity;
} uf_pool_class;

typedef struct uf_pool {
    uint64_t id[2];  /* what snapshots show */
    uint64_t handle; /* what callers of the public allocator hold; 0 elsewhere */
    int64_t use_count;
    int64_t segment_count; /* live segments as PyTorch counts them (spec 7.7) */
    uint64_t mapped_bytes; /* of pages and plain segments, under the unfrag policy */
    bool is_known;         /* the slot holds a pool */
    bool is_no_split, is_use_on_oom;
    bool is_never_expandable; /* segments of its own even where expandable ones are on (spec 7.4) */
    bool is_plain;            /* never expandable, and no pages under the unfrag policy (plain.h) */
    bool is_whole;            /* plain, and each request gets a segment of its own size */
    uf_pool_class classes[UF_CLASS_COUNT];
} uf_pool;

/* An expandable segment. */
typedef struct uf_region {
    uint64_t addr, size_bytes, page_bytes;
    uint32_t shelf;  /* 0 and page_bytes 0 = the slot is vacant */
    uint32_t *pages; /* under paging: the page at each granule (paging.h) */
    uint32_t page_capacity;
    uint64_t before_bytes, behind_bytes; /* reserved around it, so that it begins at a page */
    bool is_stuck; /* at the end of the core: something in it could not be unmapped */
} uf_region;

typedef struct uf_use {
    uint32_t stream;
    bool is_from_redirection; /* added while a redirection was under way */
    bool has_event;           /* recorded, and not seen to be done */
    bool is_done;
    uint64_t event;
} uf_use;

/* Other streams that use a block, and its place among the blocks that wait. */
typedef struct uf_uses {
    uint32_t block;
    uint32_t prev, next; /* in the pending or the deferred list; next links vacant records too */
    uint32_t count, capacity;
    uint32_t tag;     /* the caller's name for the block, of external uses */
    bool is_external; /* completes only when the caller says so (replay of a recording) */
    uf_use *items;
} uf_uses;

typedef struct uf_uses_list {
    uint32_t first, last;
} uf_uses_list;

/* Called for each event, after it took effect. For UF_ACTION_OOM addr is the driver's free bytes.
 * Must not call the core. */
typedef void (*uf_event_hook)(void *context, uf_action action, uint64_t addr, uint64_t size_bytes,
                              uint64_t stream);

/* Chooses the order in which waiting blocks complete: returns the address of the next one, false to
 * leave the rest to the core. is_flush tells a flush, which waits, from routine processing. */
typedef bool (*uf_order_hook)(void *context, bool is_flush, uint64_t *addr);

/* Chooses which private pool a flush empties next; false = no more. Without a hook a flush empties
 * all pools of use_count 0, by index. */
typedef bool (*uf_pool_hook)(void *context, uint32_t *pool);

struct uf_paging;

typedef struct uf_core {
    uf_block_table blocks;
    uf_shelf **shelves; /* by shelf index; freed shelves are NULL */
    uint32_t shelf_count, shelf_capacity;
    uf_pool *pools; /* [0] is the default pool */
    uint32_t pool_count, pool_capacity;
    uint64_t *streams;        /* handles, by stream index */
    uint32_t *streams_sorted; /* stream indices by handle */
    uint32_t stream_count, stream_capacity;
    uf_region *regions; /* [0] unused */
    uint32_t region_count, region_capacity;
    uf_uses *uses; /* [0] unused */
    uint32_t uses_count, uses_capacity, uses_vacant;
    uf_uses_list pending, deferred;
    uint32_t *redirections; /* pool indices, newest last */
    uint32_t redirection_count, redirection_capacity;
    uint64_t total_bytes; /* held from the driver */
    uint64_t limit_bytes; /* UF_UNLIMITED = none */
    uint64_t device_total_bytes;
    uint64_t release_sequence_count; /* segments released or unmapped so far */
    uf_conf conf;
    int64_t max_split_size_at_start; /* what memory_stats() shows for ever */
    uf_counters counters;
    const uf_device *device;
    uf_event_hook event_hook;
    void *event_context;
    uf_order_hook order_hook;
    void *order_context;
    uf_pool_hook pool_hook;
    void *pool_context;
    struct uf_paging *paging; /* the unfrag policy's pages; NULL under the torch policy */
    uf_status device_status;  /* the first device failure that was not out-of-memory */
} uf_core;

typedef struct uf_core_config {
    const uf_device *device;     /* borrowed until fini */
    const uf_conf *conf;         /* copied; NULL = defaults */
    uint64_t device_total_bytes; /* sizes the expandable reservation; 0 = ask the device */
    bool is_paged;               /* the unfrag policy; the device must be able to map handles */
    uint64_t granule_bytes, large_page_bytes; /* page sizes, if is_paged */
    uint64_t headroom_bytes;                  /* of the device left to others, if is_paged */
    uint32_t soft_percent;                    /* the soft bound, if is_paged; 0 = the default */
    bool is_every_stream_watched;             /* epoch.h */
    bool is_limit_spared;                     /* take.c */
    const uf_page_cost *page_costs; /* of a small and a large page, if is_paged; NULL = built in */
    uint64_t limit_bytes;           /* 0 = none (but conf.per_process_memory_fraction applies) */
    uf_event_hook event_hook;       /* may be NULL */
    void *event_context;
    uf_order_hook order_hook; /* may be NULL */
    void *order_context;
} uf_core_config;

/* Returns UF_OK, UF_ERROR_HOST_MEMORY or the device's failure. */
uf_status uf__core_init(uf_core *core, const uf_core_config *config) UF_MUST_USE;

/* Makes *to a core in the same state, with storage of its own, and without a device: the caller
 * sets to->device and the hooks' contexts before anything but fini. A core of no device gives
 * nothing back when it ends. False if the host has no memory left; *to is empty then. */
bool uf__core_copy(uf_core *to, const uf_core *from);

/* Drops all bookkeeping; what is held from the device is given back first. */
void uf__core_fini(uf_core *core);

/* Finds or registers a stream handle. UF_ERROR_HOST_MEMORY. */
uf_status uf__core_stream(uf_core *core, uint64_t handle, uint32_t *stream) UF_MUST_USE;

/* Allocates bytes for a stream in a pool. In a private pool the flush of step F is skipped, as
 * during a redirection. Returns UF_OK; UF_ERROR_OUT_OF_MEMORY; UF_ERROR_REQUEST_TOO_LARGE;
 * UF_ERROR_HAZARD (a release that PyTorch leaves undefined, spec 3.4); UF_ERROR_DEVICE;
 * UF_ERROR_HOST_MEMORY. *block is a handle, valid until uf__core_free. */
uf_status uf__core_alloc(uf_core *core, uint64_t bytes, uint32_t stream, uint32_t pool,
                         uint32_t *block) UF_MUST_USE;

/* What uf__core_alloc would find in the free sets now, without touching anything: a block, or
 * UF_NO_BLOCK if it would turn to the driver. */
uint32_t uf__core_peek(const uf_core *core, uint64_t bytes, uint32_t stream, uint32_t pool);

/* Completes the frees whose events are done (spec 4.4); the routine step before an allocation. */
uf_status uf__core_process_waiting(uf_core *core) UF_MUST_USE;
UF_MUST_USE static inline uf_status uf__core_process(uf_core *core)
{
    bool is_waiting = (core->pending.first | core->deferred.first) != 0;
    return __builtin_expect(is_waiting, 0) ? uf__core_process_waiting(core) : UF_OK;
}

/* Frees a block: at once if no other stream used it, else when their events are done. */
uf_status uf__core_free(uf_core *core, uint32_t block) UF_MUST_USE;

/* The shortcut for a block that is given back and asked for again with nothing between: to free it
 * and to allocate as much for its stream is to undo the last change and to do it once more, so
 * blocks and sets stay as they are, and only statistics and events tell of it.
 *   uf__core_can_set_aside  whether that holds for the block that uf__core_alloc handed out last,
 *                           if the core was called for nothing since
 *   uf__core_set_aside      its free; only the next two may follow
 *   uf__core_take_up        the allocation that hands it out again, of the same requested size
 *   uf__core_shelve_aside   no allocation came: the rest of the free */
bool uf__core_can_set_aside(const uf_core *core, uint32_t block);
void uf__core_set_aside(uf_core *core, uint32_t block);
void uf__core_take_up(uf_core *core, uint32_t block);
void uf__core_shelve_aside(uf_core *core, uint32_t block);

/* Another stream uses the block (spec 4.4). Own stream or repeated: nothing happens. */
uf_status uf__core_use(uf_core *core, uint32_t block, uint32_t stream) UF_MUST_USE;

/* The replay's way: the block, when freed, waits until uf__core_complete is called for it. */
uf_status uf__core_use_external(uf_core *core, uint32_t block, uint32_t tag) UF_MUST_USE;
/* Whether the block waits, and under that tag: not completed by a flush since. */
bool uf__core_is_waiting(const uf_core *core, uint32_t block, uint32_t tag);

/* Completes the free of a waiting block now. */
void uf__core_complete(uf_core *core, uint32_t block);

/* Flush of the default pools and all freeable private pools (spec 3.5 with id (0,0)). */
uf_status uf__core_empty_cache(uf_core *core) UF_MUST_USE;

/* Under the unfrag policy: sees to it that a request of so many bytes would be served without a
 * driver call. UF_ERROR_OUT_OF_MEMORY, which is not counted; UF_ERROR_DEVICE;
 * UF_ERROR_HOST_MEMORY. */
uf_status uf__core_reserve(uf_core *core, uint64_t bytes, uint32_t stream,
                           uint32_t pool) UF_MUST_USE;

/* Under the torch policy: gives whole cached segments back until at most keep_bytes are cached. */
uf_status uf__core_trim(uf_core *core, uint64_t keep_bytes) UF_MUST_USE;

/* Private pools (spec 7). A pool index stays valid until the pool is forgotten. */
uf_status uf__core_pool_create(uf_core *core, uint64_t id_high, uint64_t id_low,
                               uint32_t *pool) UF_MUST_USE;
bool uf__core_pool_find(const uf_core *core, uint64_t id_high, uint64_t id_low, uint32_t *pool);
void uf__core_pool_retain(uf_core *core, uint32_t pool);
void uf__core_pool_release(uf_core *core, uint32_t pool); /* use_count - 1 */
/* Flush with a private id: what the death of a MemPool does after its release. */
uf_status uf__core_pool_flush(uf_core *core, uint32_t pool) UF_MUST_USE;
/* Empties one freeable pool and nothing else; counts no synchronisation. */
uf_status uf__core_pool_empty(uf_core *core, uint32_t pool) UF_MUST_USE;
/* A redirection (spec 7.3): new allocations of the caller belong to pool. UF_ERROR_BUSY twice. */
uf_status uf__core_redirect_begin(uf_core *core, uint32_t pool) UF_MUST_USE;
uf_status uf__core_redirect_end(uf_core *core, uint32_t pool) UF_MUST_USE;
/* The pool an allocation goes to now: the newest redirection's, or the default pool. */
uint32_t uf__core_redirect_pool(const uf_core *core);

/* limit_bytes = UF_UNLIMITED removes the limit. Releases nothing. */
void uf__core_limit_set(uf_core *core, uint64_t limit_bytes);
/* set_per_process_memory_fraction: trunc(fraction * total), none at 1.0. */
uf_status uf__core_fraction_set(uf_core *core, double fraction) UF_MUST_USE;
/* Takes over settings at run time. */
void uf__core_conf_set(uf_core *core, const uf_conf *conf);

/* Walks everything and proves the identities above. UF_ERROR_INTERNAL with the first violation. */
uf_status uf__core_check(const uf_core *core, uf_error *error) UF_MUST_USE;

/* The statistics as torch.cuda.memory_stats() shows them. */
void uf__core_stats(const uf_core *core, uf_stats *stats);

/* Bytes of the driver's that are free, for messages and the oom event. 0 if the device fails. */
uint64_t uf__core_device_free_bytes(const uf_core *core);

/* Whether a request in that pool may grow expandable segments: expandable_on of the spec. */
static inline bool uf__core_can_expand(const uf_core *core, uint32_t pool)
{
    return core->conf.is_expandable && !core->pools[pool].is_never_expandable;
}

/* Whether what is allocated in that pool consists of pages: under the unfrag policy, but for plain
 * pools. Of a block: whether it lies in a region. */
static inline bool uf__core_is_paged(const uf_core *core, uint32_t pool)
{
    return core->paging != NULL && !core->pools[pool].is_plain;
}

static inline const uf_block *uf__core_block(const uf_core *core, uint32_t block)
{
    return &core->blocks.items[block];
}

static inline uint64_t uf__core_block_stream(const uf_core *core, uint32_t block)
{
    return core->streams[core->shelves[core->blocks.items[block].shelf]->stream];
}

#endif
