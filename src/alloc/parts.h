/* SPDX-License-Identifier: MIT
 *
 * What the core's files ask of each other. Not for anyone outside src/alloc.
 *
 *   core.c     search, split, free, merge: the common path
 *   acquire.c  what happens when no cached block fits (spec 3.2)
 *   release.c  giving segments back: flush, garbage collection, oversize release
 *   region.c   expandable segments
 *   pending.c  blocks that wait for other streams
 *   pool.c     pools, shelves, streams, redirections
 *   core_copy.c  a copy of it all
 *   checkpoint.c  a pool as it was */
#ifndef UF_ALLOC_PARTS_H
#define UF_ALLOC_PARTS_H

#include "alloc/core.h"

/* What one request may take from the block table: one block for the rest of a split, one for a new
 * segment, two for a mapping's edges. Reserved before the search and again before the driver is
 * asked. */
#define UF_BLOCKS_PER_REQUEST 4u

/* A request on its way through the chain. */
typedef struct uf_request {
    uint64_t bytes;         /* as asked for */
    uint64_t rounded_bytes; /* block size wanted */
    uint64_t segment_bytes; /* what the limit is tested with */
    uint32_t stream, pool;
    int pool_class;
    uint32_t shelf;
    bool is_expandable; /* expandable_on of the spec */
} uf_request;

static inline void uf__emit(const uf_core *core, uf_action action, uint64_t addr,
                            uint64_t size_bytes, uint64_t stream)
{
    if (__builtin_expect(core->event_hook != NULL, 0)) {
        core->event_hook(core->event_context, action, addr, size_bytes, stream);
    }
}

static inline uint64_t uf__shelf_stream(const uf_core *core, const uf_shelf *shelf)
{
    return core->streams[shelf->stream];
}

/* core.c */

/* Spec 2.3 without the removal: the block that serves rounded_bytes, or UF_NO_BLOCK. */
uint32_t uf__core_search(const uf_core *core, const uf_shelf *shelf, uint64_t rounded_bytes,
                         bool is_expandable);
/* Spec 2.3 with search counter and removal. */
uint32_t uf__core_find(uf_core *core, const uf_request *request, uint32_t shelf);
/* Puts a free block into its shelf's free set, under the torch policy with a fresh age. */
void uf__core_shelve(uf_core *core, uint32_t block);
/* Spec 4.3: absorbs a free neighbour with the same mapping on either side; a mapped neighbour
 * leaves the free set, an unmapped one the unmapped list. Returns the sizes absorbed, 0 = none. */
typedef struct uf_merged {
    uint64_t prev_bytes, next_bytes;
} uf_merged;
uf_merged uf__core_merge(uf_core *core, uint32_t block);
/* Hands out the front of a free block that is in no set; what is left over goes back to its set
 * under the index that the block had. One block must be in reserve. */
uint32_t uf__core_hand_out(uf_core *core, uint32_t block, uint64_t size_bytes,
                           uint64_t requested_bytes);
/* Spec 4.2. */
void uf__core_complete_block(uf_core *core, uint32_t block);

/* acquire.c: steps B to G. *block is out of every set and whole. */
/* One new segment, or a region's pages, if the limit and the driver allow it. */
uf_status uf__core_new_segment(uf_core *core, const uf_request *request, bool is_retry,
                               uint32_t *block) UF_MUST_USE;
uf_status uf__core_acquire(uf_core *core, uf_request *request, uint32_t *block) UF_MUST_USE;

/* Counts and emits a failure, as every chain ends; returns UF_ERROR_OUT_OF_MEMORY. */
uf_status uf__core_out_of_memory(uf_core *core, const uf_request *request) UF_MUST_USE;

/* plain.c: whether *block, found for a request in a plain pool, is to serve it; else a new segment
 * is had for it. */
uf_status uf__plain_serve(uf_core *core, uf_request *request, uint32_t *block) UF_MUST_USE;
/* Plain segments counted into their pool, or out of it, under the unfrag policy. */
void uf__plain_account(uf_core *core, uint32_t pool, uint64_t bytes, bool is_made);
/* Gives back what dead plain pools have cached, unless an allocation is redirected. */
uf_status uf__plain_release_dead(uf_core *core) UF_MUST_USE;

/* release.c */
uf_status uf__core_collect_garbage(uf_core *core) UF_MUST_USE;
uf_status uf__core_release_oversize(uf_core *core, const uf_request *request,
                                    bool *is_enough) UF_MUST_USE;
uf_status uf__core_flush(uf_core *core) UF_MUST_USE;

/* region.c */
uf_status uf__region_allocate(uf_core *core, const uf_request *request,
                              uint32_t *block) UF_MUST_USE;
uf_status uf__region_unmap_block(uf_core *core, uint32_t block) UF_MUST_USE;
void uf__unmapped_remove(uf_core *core, uint32_t block);
uf_status uf__unmapped_insert(uf_core *core, uint32_t block) UF_MUST_USE;
/* Reserves address space for a shelf; *block is its one unmapped block. */
uf_status uf__region_create(uf_core *core, uint32_t shelf, uint64_t page_bytes, uint64_t size_bytes,
                            uint32_t *block) UF_MUST_USE;

/* Gives up the address space of a region that is one block without memory. */
uf_status uf__region_destroy(uf_core *core, uint32_t block) UF_MUST_USE;

/* paged.c: the chain of the unfrag policy, in place of acquire.c's. *block holds the hole that the
 * search found and took out, or UF_NO_BLOCK; it receives a block that begins where the request goes
 * and has its pages. */
uf_status uf__paged_acquire(uf_core *core, const uf_request *request, uint32_t *block) UF_MUST_USE;
/* Sees to it that a hole is ready for a request, without handing it out. */
uf_status uf__paged_reserve(uf_core *core, const uf_request *request) UF_MUST_USE;
/* Whether the front of a hole can be handed out as it is. */
bool uf__paged_is_ready(const uf_core *core, const uf_request *request, uint32_t block);
/* Up to which address the hole has pages that a block becomes when it is freed. */
uint64_t uf__paged_backed_end(const uf_core *core, uint32_t block);
/* Notes that a block became a hole just now. */
void uf__paged_freed(uf_core *core, uint32_t block, uint64_t backed_end);
/* Gives up regions in which nothing is left, and dead pools that had them. */
uf_status uf__paged_sweep(uf_core *core) UF_MUST_USE;
/* Gives the whole pages of a hole back to the driver, and its region if that is all there is. */
uf_status uf__paged_release(uf_core *core, uint32_t block) UF_MUST_USE;

/* pending.c */
uf_status uf__pending_complete_all(uf_core *core, uint32_t only_pool) UF_MUST_USE;
uf_status uf__pending_free(uf_core *core, uint32_t block) UF_MUST_USE;
void uf__uses_drop(uf_core *core, uint32_t block);
#define UF_ANY_POOL UINT32_MAX

/* pool.c */
uf_status uf__shelf_get(uf_core *core, uint32_t pool, int pool_class, uint32_t stream,
                        uint32_t *shelf) UF_MUST_USE;
void uf__pool_forget(uf_core *core, uint32_t pool);
/* Makes room for `needed` items. */
bool uf__list_reserve(void **items, uint32_t *capacity, size_t item_bytes, uint32_t needed);
bool uf__index_insert(uf_index_list *list, uint32_t position, uint32_t value);

static inline uint64_t uf__region_reserved_bytes(const uf_region *region)
{
    return region->before_bytes + region->size_bytes + region->behind_bytes;
}

/* The driver failed for another reason than memory: remember the first, report it. */
static inline uf_status uf__core_device_failed(uf_core *core, uf_status status)
{
    if (core->device_status == UF_OK) {
        core->device_status = status;
    }
    return status;
}

#endif
