/* SPDX-License-Identifier: MIT
 *
 * The public allocator: a core, a lock, and the map from addresses to blocks. It owns what callers
 * may hold (addresses, pool ids, scopes of threads) and knows nothing of how a request is served.
 * For the allocator's own files:
 *
 *   allocator.c         creation, requests, limits, settings
 *   allocator_entry.c   lock, structs of callers, texts of failures
 *   allocator_cache.c   memory ahead of time and back, pins
 *   allocator_pool.c    private pools, their scopes, routes and captures
 *   allocator_checkpoint.c  pools brought back to what they were
 *   allocator_report.c  statistics, check, walk
 *   allocator_debug.c   debug mode */
#ifndef UF_ALLOC_ALLOCATOR_PARTS_H
#define UF_ALLOC_ALLOCATOR_PARTS_H

#include <pthread.h>

#include "alloc/allocator.h"
#include "alloc/debug.h"
#include "alloc/trim.h"
#include "base/addrmap.h"
#include "base/lock.h"

/* An open scope or route to a pool, oldest first. The core has a redirection for each, but for
 * scopes of plain pools under the unfrag policy: nothing is captured there, and so streams may be
 * asked and waited for as ever. */
typedef struct pool_scope {
    uint32_t pool;
    bool is_capture;
    bool is_untold;         /* the core has none */
    pthread_t thread;       /* of a scope: whose requests it takes */
    uf_route_filter filter; /* of a route; NULL = a scope, or a capture */
    void *context;
    uint64_t stream; /* of a capture: the one whose requests it takes */
} pool_scope;

/* A pinned address. */
typedef struct uf_pin_record {
    uint64_t addr;
    uint32_t block;
    uint32_t count;
    bool is_freed; /* by its owner: given back when the last pin goes */
} uf_pin_record;

/* The last block that was handed out, if nothing was called since but uf_free for it, and uf_alloc
 * for as much (core.h, uf__core_set_aside). A program that gives back what it took last and takes
 * as much again, as most temporary tensors are, touches neither sets nor the map of addresses. */
typedef struct uf_aside {
    uint64_t addr; /* 0 = none */
    uint64_t bytes, stream;
    uint32_t block;
    bool is_freed; /* and still in the map of addresses, and outside every set */
} uf_aside;

enum { UF_CACHE_LINE = 64 };

/* Everything but `options` and `callback_thread` is guarded by the lock, which has a cache line to
 * itself: threads that wait for it look at it again and again. */
struct uf_allocator {
    uf_allocator_options options; /* constant; conf is not kept there */
    /* The thread that is inside on_event, 0 = none: what it calls on the allocator is refused. */
    _Atomic uintptr_t callback_thread;
    char space_before[UF_CACHE_LINE];
    uf_lock lock;
    char space_behind[UF_CACHE_LINE];
    uint32_t last_stream; /* of the last request: most come from the same one */
    uf_aside aside;
    uf_core core;
    uf_addrmap blocks; /* handed out: address to block index */
    char *conf;        /* the last settings string */
    pool_scope *scopes;
    uint32_t scope_count, scope_capacity;
    uint64_t pool_count; /* private pools ever made */
    uf_pin_record *pins;
    uint32_t pin_count, pin_capacity, freed_pin_count;
    bool is_collecting; /* pages go back by age */
    uf_collector collector;
    uf_debug *debug;      /* NULL: not in debug mode */
    uint64_t guard_bytes; /* asked for beyond each request, in debug mode; else 0 */
};

/* Tells why uf__allocator_enter refused. */
uf_status uf__explain_refusal(const uf_allocator *allocator, uf_error *error);

/* Frees the block that was set aside, if one was, and forgets it. */
void uf__aside_free_locked(uf_allocator *allocator);
static inline void uf__aside_settle_locked(uf_allocator *allocator)
{
    if (__builtin_expect(allocator->aside.is_freed, 0)) {
        uf__aside_free_locked(allocator);
    }
    allocator->aside.addr = 0;
}

/* The first half of uf__allocator_enter: a block may be set aside. */
UF_MUST_USE static inline uf_status uf__allocator_lock(uf_allocator *allocator, uf_error *error)
{
    if (__builtin_expect(allocator == NULL, 0)) {
        return uf__explain_refusal(allocator, error);
    }
    /* Only this thread can have stored its own name: waiting for itself, it would wait for ever. */
    uintptr_t caller = atomic_load_explicit(&allocator->callback_thread, memory_order_relaxed);
    if (__builtin_expect(caller != 0, 0) && caller == (uintptr_t)pthread_self()) {
        return uf__explain_refusal(allocator, error);
    }
    uf__lock_take(&allocator->lock);
    return UF_OK;
}

/* Takes the lock. UF_ERROR_INVALID_ARGUMENT for NULL; UF_ERROR_BUSY from inside the callback. */
UF_MUST_USE static inline uf_status uf__allocator_enter(uf_allocator *allocator, uf_error *error)
{
    uf_status status = uf__allocator_lock(allocator, error);
    if (status == UF_OK) {
        uf__aside_settle_locked(allocator);
    }
    return status;
}

static inline void uf__allocator_leave(uf_allocator *allocator)
{
    uf__lock_give(&allocator->lock);
}

/* Fill *error for a status of which no more is known, and return it; `what` was being done. */
uf_status uf__explain(uf_error *error, uf_status status, const char *what);
/* The same with what the device's driver said. */
uf_status uf__explain_device(const uf_device *device, uf_error *error, uf_status status,
                             const char *what);
uf_status uf__explain_host_memory(uf_error *error, const char *what);

/* Copies a struct of the caller's, which may be shorter or longer than ours: what is missing is 0.
 * False if it has no size, or bytes set that we do not know. */
bool uf__take_struct(void *own, size_t own_bytes, const void *given);

/* The pool of the newest scope or route that takes a request of the calling thread for a stream, or
 * UF_DEFAULT_POOL. */
uint32_t uf__scope_search_locked(const uf_allocator *allocator, uint64_t stream);
static inline uint32_t uf__scope_pool_locked(const uf_allocator *allocator, uint64_t stream)
{
    return allocator->scope_count == 0 ? UF_DEFAULT_POOL
                                       : uf__scope_search_locked(allocator, stream);
}

/* Whether a pin keeps a block that its owner gives back now; the rest is the pin's business then.
 */
bool uf__pin_keeps_locked(uf_allocator *allocator, uint64_t addr);
/* Whether a pin keeps that block, which its owner has given back. */
bool uf__pin_is_freed_locked(const uf_allocator *allocator, uint32_t block);
/* Whether a block of that pool is pinned. */
bool uf__pin_is_in_locked(const uf_allocator *allocator, uint32_t pool);
/* Bytes of such blocks, but those in private pools whose pages are frozen anyway. */
uint64_t uf__pin_freed_bytes_locked(const uf_allocator *allocator);

/* Debug mode, allocator_debug.c. Begins it; false if the host has no memory left. */
bool uf__debugging_begin(uf_allocator *allocator);
void uf__debugging_end(uf_allocator *allocator);
/* The rest only where allocator->debug is there. A block is about to be handed out; or came to be
 * so by going back to a checkpoint. */
uf_status uf__debugging_hand_out_locked(uf_allocator *allocator, uint32_t block,
                                        uf_error *error) UF_MUST_USE;
void uf__debugging_adopt_locked(uf_allocator *allocator, uint32_t block);
void uf__debugging_event_locked(uf_allocator *allocator, uf_action action, uint64_t addr,
                                uint64_t size_bytes);
/* Looks at everything, unless something may be captured. */
void uf__debugging_look_locked(uf_allocator *allocator);

/* The pool that a caller means. UF_ERROR_NOT_FOUND. */
uf_status uf__pool_find_locked(const uf_allocator *allocator, uint64_t pool_id, uint32_t *pool,
                               uf_error *error) UF_MUST_USE;

#endif
