/* SPDX-License-Identifier: MIT
 *
 * Private pools and their scopes in the public allocator. Guarded by the allocator's lock. */
#include "alloc/allocator_parts.h"

#include <inttypes.h>
#include <string.h>

#include "alloc/parts.h"
#include "base/error.h"

uint32_t uf__scope_pool_locked(const uf_allocator *allocator)
{
    for (uint32_t i = allocator->scope_count; i > 0; i--) {
        const pool_scope *scope = &allocator->scopes[i - 1];
        if (pthread_equal(scope->thread, pthread_self())) {
            return scope->pool;
        }
    }
    return UF_DEFAULT_POOL;
}

uf_status uf_pool_create(uf_allocator *allocator, const uf_pool_options *given, uint64_t *pool_id,
                         uf_error *error)
{
    uf_pool_options options = {0};
    if (pool_id == NULL || (given != NULL && !uf__take_struct(&options, sizeof options, given))) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "uf_pool_create: pool_id is NULL, or options.struct_size_bytes is not "
                             "sizeof(uf_pool_options), %zu",
                             sizeof options);
    }
    uf_status status = uf__allocator_enter(allocator, error);
    if (status != UF_OK) {
        return status;
    }
    uint32_t pool;
    status = uf__core_pool_create(&allocator->core, 0, allocator->pool_count + 1, &pool);
    if (status == UF_OK) {
        allocator->core.pools[pool].is_no_split = options.is_no_split;
        allocator->core.pools[pool].is_use_on_oom = options.is_use_on_oom;
        *pool_id = ++allocator->pool_count;
    }
    uf__allocator_leave(allocator);
    return uf__explain(error, status, "making a pool");
}

/* A pool's use count is 1 from its creation to its destruction, and 1 more per scope; a pool at 0
 * is known to the core alone. */
static uf_status find_pool_locked(const uf_allocator *allocator, uint64_t pool_id, uint32_t *pool,
                                  uf_error *error)
{
    bool is_found = pool_id != 0 && uf__core_pool_find(&allocator->core, 0, pool_id, pool) &&
                    allocator->core.pools[*pool].use_count > 0;
    return is_found ? UF_OK
                    : uf__error_set(error, UF_ERROR_NOT_FOUND,
                                    "there is no pool %" PRIu64 ", or it was destroyed; %" PRIu64
                                    " were made so far",
                                    pool_id, allocator->pool_count);
}

static uf_status pool_destroy_locked(uf_allocator *allocator, uint64_t pool_id, uf_error *error)
{
    uf_core *core = &allocator->core;
    uint32_t pool;
    uf_status status = find_pool_locked(allocator, pool_id, &pool, error);
    if (status != UF_OK) {
        return status;
    }
    if (allocator->scope_count > 0) {
        return uf__error_set(error, UF_ERROR_BUSY,
                             "pool %" PRIu64 " cannot be destroyed while %" PRIu32
                             " pool scope(s) are open (PyTorch would abort); close them first",
                             pool_id, allocator->scope_count);
    }
    core->pools[pool].is_use_on_oom = false;
    uf__core_pool_release(core, pool);
    return uf__explain(error, uf__core_pool_flush(core, pool), "giving a pool's cache back");
}

uf_status uf_pool_destroy(uf_allocator *allocator, uint64_t pool_id, uf_error *error)
{
    uf_status status = uf__allocator_enter(allocator, error);
    if (status == UF_OK) {
        status = pool_destroy_locked(allocator, pool_id, error);
        uf__allocator_leave(allocator);
    }
    return status;
}

static uf_status pool_begin_locked(uf_allocator *allocator, uint64_t pool_id, uf_error *error)
{
    uint32_t pool;
    uf_status status = find_pool_locked(allocator, pool_id, &pool, error);
    if (status != UF_OK) {
        return status;
    }
    if (!uf__list_reserve((void **)&allocator->scopes, &allocator->scope_capacity,
                          sizeof *allocator->scopes, allocator->scope_count + 1)) {
        return uf__explain_host_memory(error, "opening a pool's scope");
    }
    status = uf__core_redirect_begin(&allocator->core, pool);
    if (status == UF_ERROR_BUSY) {
        return uf__error_set(error, status,
                             "a scope of pool %" PRIu64 " is open already; one at a time", pool_id);
    }
    if (status == UF_OK) {
        allocator->scopes[allocator->scope_count++] = (pool_scope){pool, pthread_self()};
    }
    return uf__explain(error, status, "opening a pool's scope");
}

uf_status uf_pool_begin(uf_allocator *allocator, uint64_t pool_id, uf_error *error)
{
    uf_status status = uf__allocator_enter(allocator, error);
    if (status == UF_OK) {
        status = pool_begin_locked(allocator, pool_id, error);
        uf__allocator_leave(allocator);
    }
    return status;
}

static uf_status pool_end_locked(uf_allocator *allocator, uint64_t pool_id, uf_error *error)
{
    uint32_t pool;
    uf_status status = find_pool_locked(allocator, pool_id, &pool, error);
    if (status != UF_OK) {
        return status;
    }
    uint32_t at = 0;
    while (at < allocator->scope_count && allocator->scopes[at].pool != pool) {
        at++;
    }
    if (at == allocator->scope_count || uf__core_redirect_end(&allocator->core, pool) != UF_OK) {
        return uf__error_set(error, UF_ERROR_NOT_FOUND, "no scope of pool %" PRIu64 " is open",
                             pool_id);
    }
    uf__core_pool_release(&allocator->core, pool);
    allocator->scope_count--;
    memmove(&allocator->scopes[at], &allocator->scopes[at + 1],
            (allocator->scope_count - at) * sizeof *allocator->scopes);
    return UF_OK;
}

uf_status uf_pool_end(uf_allocator *allocator, uint64_t pool_id, uf_error *error)
{
    uf_status status = uf__allocator_enter(allocator, error);
    if (status == UF_OK) {
        status = pool_end_locked(allocator, pool_id, error);
        uf__allocator_leave(allocator);
    }
    return status;
}
