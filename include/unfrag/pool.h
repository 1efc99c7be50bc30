/* SPDX-License-Identifier: MIT
 *
 * Private pools of an allocator (unfrag/unfrag.h): memory that serves only what is allocated inside
 * them, routes that say which requests go inside, captures, and checkpoints that bring a pool back
 * to what it was, addresses included. The rules of unfrag.h hold here too.
 *
 * A pool has a use count: 1 from uf_pool_create on, 1 more for each uf_pool_retain, open scope or
 * route that was begun. At 0 it is dead: memory that is still handed out stays valid, and what it
 * caches goes back to the device with a later uf_empty_cache, or when memory is short.
 *
 * While any scope or route is open, nothing is asked of events and nothing waited for, in every
 * thread: no free that waits for another stream completes, and a request that finds no memory fails
 * without giving the cache back. That is PyTorch's rule, and what a capture needs. A scope of a
 * plain pool under UF_POLICY_UNFRAG does not count: captures have pools and routes of their own. */
#ifndef UNFRAG_POOL_H
#define UNFRAG_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <unfrag/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct uf_allocator uf_allocator;

/* What a pool's memory is made of. */
typedef enum uf_pool_kind {
    UF_POOL_DEFAULT, /* as outside: pages under UF_POLICY_UNFRAG */
    UF_POOL_PLAIN, /* segments of the driver's plain allocation (cuMemAlloc), for memory that is to
                      be registered, exported or shared between processes; never expandable, and
                      no page moves in or out. A request takes its room from what is cached. */
    UF_POOL_WHOLE  /* plain, and each request gets a segment of its own, of its size rounded up to
                      2 MiB */
} uf_pool_kind;

/* struct_size_bytes = sizeof(uf_pool_options); 0 elsewhere means default. */
typedef struct uf_pool_options {
    size_t struct_size_bytes;
    bool is_no_split;   /* every request gets a whole segment; under UF_POLICY_UNFRAG without
                           effect, but in plain pools */
    bool is_use_on_oom; /* requests outside may take its cached blocks before they fail; under
                           UF_POLICY_UNFRAG without effect */
    uint64_t id[2];     /* what snapshots and walks call it; {0, 0} = (0, n) */
    uf_pool_kind kind;
} uf_pool_options;

/* Makes a private pool (PyTorch's MemPool): memory that serves only what is allocated inside it.
 * options: borrowed for the call; NULL = defaults. pool_id: receives its number n, from 1;
 * snapshots show it as (0, n). Returns UF_OK; UF_ERROR_INVALID_ARGUMENT; UF_ERROR_HOST_MEMORY. The
 * caller ends it with uf_pool_destroy, or leaves that to uf_allocator_destroy. Thread-safe. Since
 * 0.1. Source: docs/internals/torch-policy.md section 7. */
UF_API uf_status uf_pool_create(uf_allocator *allocator, const uf_pool_options *options,
                                uint64_t *pool_id, uf_error *error) UF_MUST_USE;

/* Ends a private pool: what it caches goes back to the device at once, memory that is still handed
 * out stays valid, and its segments go back with a later uf_empty_cache.
 * pool_id: from uf_pool_create. Returns UF_OK; UF_ERROR_NOT_FOUND (no such pool, or destroyed
 * before); UF_ERROR_BUSY (some pool's scope is open, as PyTorch requires; nothing changes);
 * UF_ERROR_DEVICE and UF_ERROR_HOST_MEMORY (it is ended, and what it caches goes back later).
 * Thread-safe. Since 0.1. */
UF_API uf_status uf_pool_destroy(uf_allocator *allocator, uint64_t pool_id,
                                 uf_error *error) UF_MUST_USE;

/* Opens a pool's scope: what the calling thread allocates from now on belongs to the pool. Scopes
 * of several pools nest; the newest counts. As in PyTorch, while any scope is open no free that
 * waits for another stream completes, and a request that finds no memory fails without giving the
 * cache back, in every thread. pool_id: from uf_pool_create. Returns UF_OK; UF_ERROR_NOT_FOUND;
 * UF_ERROR_BUSY (that pool's scope is open already); UF_ERROR_HOST_MEMORY. Thread-safe. Since 0.1.
 */
UF_API uf_status uf_pool_begin(uf_allocator *allocator, uint64_t pool_id,
                               uf_error *error) UF_MUST_USE;

/* Closes a pool's scope, whichever thread opened it.
 * pool_id: from uf_pool_create. Returns UF_OK; UF_ERROR_NOT_FOUND (no scope of that pool is open).
 * Thread-safe. Since 0.1. */
UF_API uf_status uf_pool_end(uf_allocator *allocator, uint64_t pool_id,
                             uf_error *error) UF_MUST_USE;

/* Raises a pool's use count.
 * pool_id: from uf_pool_create. Returns UF_OK; UF_ERROR_NOT_FOUND (no such pool, or dead).
 * Thread-safe. Since 0.1. */
UF_API uf_status uf_pool_retain(uf_allocator *allocator, uint64_t pool_id,
                                uf_error *error) UF_MUST_USE;

/* Lowers a pool's use count (PyTorch's releasePool). At 0 the pool is dead. Unlike uf_pool_destroy
 * it gives nothing back at once, and may be called while scopes and routes of others are open.
 * pool_id: from uf_pool_create. Returns UF_OK; UF_ERROR_NOT_FOUND; UF_ERROR_BUSY (its last use is a
 * scope or route that is open). Thread-safe. Since 0.1. */
UF_API uf_status uf_pool_release(uf_allocator *allocator, uint64_t pool_id,
                                 uf_error *error) UF_MUST_USE;

/* Changes is_no_split and is_use_on_oom of a pool; later requests feel it.
 * pool_id: from uf_pool_create. Returns UF_OK; UF_ERROR_NOT_FOUND. Thread-safe. Since 0.1. */
UF_API uf_status uf_pool_change(uf_allocator *allocator, uint64_t pool_id, bool is_no_split,
                                bool is_use_on_oom, uf_error *error) UF_MUST_USE;

/* Whether a request for a stream takes a route. Called under the allocator's lock by the thread
 * that allocates; must not call the allocator. */
typedef bool (*uf_route_filter)(void *context, uint64_t stream);

/* Opens a route: from now on requests that the filter accepts, of every thread, are served by the
 * pool. Scopes and routes are asked from the newest to the oldest; the first that accepts decides.
 * The pool's use count rises by 1 and stays so after uf_route_end (PyTorch's beginAllocateToPool).
 * pool_id: from uf_pool_create. filter: required. context: handed on, borrowed until uf_route_end.
 * Returns UF_OK; UF_ERROR_INVALID_ARGUMENT; UF_ERROR_NOT_FOUND; UF_ERROR_BUSY (a scope or route of
 * that pool is open already); UF_ERROR_HOST_MEMORY. Thread-safe. Since 0.1.
 * Source: docs/internals/torch-policy.md section 7.3. */
UF_API uf_status uf_route_begin(uf_allocator *allocator, uint64_t pool_id, uf_route_filter filter,
                                void *context, uf_error *error) UF_MUST_USE;

/* Closes a route, whichever thread opened it. The pool's use count stays.
 * Returns UF_OK; UF_ERROR_NOT_FOUND (no route of that pool is open). Thread-safe. Since 0.1. */
UF_API uf_status uf_route_end(uf_allocator *allocator, uint64_t pool_id,
                              uf_error *error) UF_MUST_USE;

/* For a stream that is about to be captured: makes a pool, and opens a route to it for requests on
 * that stream. What the captured graph uses keeps its addresses and pages, allocated or freed,
 * until the pool is dead. stream: the handle. pool_id: receives the pool; the caller ends it with
 * uf_pool_destroy or uf_pool_release when the graph is destroyed, after uf_capture_end.
 * Returns UF_OK; UF_ERROR_INVALID_ARGUMENT; UF_ERROR_HOST_MEMORY. Thread-safe. Since 0.1. */
UF_API uf_status uf_capture_begin(uf_allocator *allocator, uint64_t stream, uint64_t *pool_id,
                                  uf_error *error) UF_MUST_USE;

/* Ends what uf_capture_begin began; the pool lives on.
 * Returns UF_OK; UF_ERROR_NOT_FOUND (no capture into that pool is open). Thread-safe. Since 0.1. */
UF_API uf_status uf_capture_end(uf_allocator *allocator, uint64_t pool_id,
                                uf_error *error) UF_MUST_USE;

/* What a pool had handed out at one moment. Opaque. */
typedef struct uf_pool_checkpoint uf_pool_checkpoint;

/* Notes which blocks of a pool are handed out (PyTorch's getCheckpointState).
 * pool_id: from uf_pool_create. checkpoint: receives it, owned by the caller
 * (uf_pool_checkpoint_destroy); it may outlive the allocator. Returns UF_OK;
 * UF_ERROR_INVALID_ARGUMENT; UF_ERROR_NOT_FOUND; UF_ERROR_HOST_MEMORY. Thread-safe. Since 0.1. */
UF_API uf_status uf_pool_checkpoint_create(uf_allocator *allocator, uint64_t pool_id,
                                           uf_pool_checkpoint **checkpoint,
                                           uf_error *error) UF_MUST_USE;

/* Called for each address that a restore gives back (is_handed_out false) or hands out, outside the
 * allocator's lock; it may use the allocator. */
typedef void (*uf_restore_callback)(void *context, uint64_t addr, uint64_t requested_bytes,
                                    bool is_handed_out);

/* Brings a pool back to a checkpoint: everything handed out in it is given back, and then what was
 * handed out at the checkpoint is handed out again, at the same addresses and of the same sizes
 * (PyTorch's setCheckpointPoolState). Contents are not touched. An address that was handed out
 * before and is after is reported twice, first as given back.
 * checkpoint: of a pool of this allocator; borrowed for the call. callback: may be NULL; called for
 * all addresses given back, then for all handed out. Returns UF_OK; UF_ERROR_INVALID_ARGUMENT;
 * UF_ERROR_NOT_FOUND (the pool is dead); UF_ERROR_BUSY (a block of the pool is used by another
 * stream, or a free of it waits for one; nothing changes); UF_ERROR_HAZARD (memory that the
 * checkpoint names is no longer held; nothing changes); UF_ERROR_HOST_MEMORY (nothing changes).
 * Thread-safe. Since 0.1. */
UF_API uf_status uf_pool_checkpoint_restore(uf_allocator *allocator,
                                            const uf_pool_checkpoint *checkpoint,
                                            uf_restore_callback callback, void *context,
                                            uf_error *error) UF_MUST_USE;

/* Frees a checkpoint. NULL is accepted. Since 0.1. */
UF_API void uf_pool_checkpoint_destroy(uf_pool_checkpoint *checkpoint);

#ifdef __cplusplus
}
#endif
#endif
