/* SPDX-License-Identifier: MIT
 *
 * Private pools and their scopes in the public allocator. Guarded by the allocator's lock. */
#include "alloc/allocator_parts.h"

#include <inttypes.h>
#include <string.h>

#include "alloc/parts.h"
#include "base/error.h"

static bool takes(const pool_scope *scope, uint64_t stream)
{
    if (scope->filter != NULL) {
        return scope->filter(scope->context, stream);
    }
    return scope->is_capture ? scope->stream == stream
                             : pthread_equal(scope->thread, pthread_self()) != 0;
}

uint32_t uf__scope_search_locked(const uf_allocator *allocator, uint64_t stream)
{
    for (uint32_t i = allocator->scope_count; i > 0; i--) {
        if (takes(&allocator->scopes[i - 1], stream)) {
            return allocator->scopes[i - 1].pool;
        }
    }
    return UF_DEFAULT_POOL;
}

static uf_status pool_create_locked(uf_allocator *allocator, const uf_pool_options *options,
                                    uint64_t *pool_id, uf_error *error)
{
    uf_core *core = &allocator->core;
    if ((uint32_t)options->kind > UF_POOL_WHOLE) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "there is no kind of pool %d; use UF_POOL_DEFAULT (%d), UF_POOL_PLAIN "
                             "(%d) or UF_POOL_WHOLE (%d)",
                             (int)options->kind, (int)UF_POOL_DEFAULT, (int)UF_POOL_PLAIN,
                             (int)UF_POOL_WHOLE);
    }
    uint64_t handle = allocator->pool_count + 1, high = options->id[0], low = options->id[1];
    uint32_t pool = UF_DEFAULT_POOL;
    if (high == 0 && low == 0) {
        low = handle;
    }
    if (uf__core_pool_find(core, high, low, &pool)) {
        return uf__error_set(error, UF_ERROR_BUSY,
                             "there is a pool (%" PRIu64 ", %" PRIu64 ") already, or memory of one",
                             high, low);
    }
    uf_status status = uf__core_pool_create(core, high, low, &pool);
    if (status != UF_OK) {
        return uf__explain(error, status, "making a pool");
    }
    uf_pool *made = &core->pools[pool];
    made->is_plain = made->is_never_expandable = options->kind != UF_POOL_DEFAULT;
    made->is_whole = options->kind == UF_POOL_WHOLE;
    made->is_no_split = options->is_no_split || made->is_whole;
    made->is_use_on_oom = options->is_use_on_oom;
    made->handle = handle;
    allocator->pool_count = handle;
    *pool_id = handle;
    return UF_OK;
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
    status = pool_create_locked(allocator, &options, pool_id, error);
    uf__allocator_leave(allocator);
    return status;
}

uf_status uf__pool_find_locked(const uf_allocator *allocator, uint64_t pool_id, uint32_t *pool,
                               uf_error *error)
{
    const uf_core *core = &allocator->core;
    for (uint32_t i = 1; i < core->pool_count && pool_id != 0; i++) {
        if (core->pools[i].is_known && core->pools[i].handle == pool_id &&
            core->pools[i].use_count > 0) {
            *pool = i;
            return UF_OK;
        }
    }
    return uf__error_set(error, UF_ERROR_NOT_FOUND,
                         "there is no pool %" PRIu64 ", or it was destroyed; %" PRIu64
                         " were made so far",
                         pool_id, allocator->pool_count);
}

static uf_status pool_destroy_locked(uf_allocator *allocator, uint64_t pool_id, uf_error *error)
{
    uf_core *core = &allocator->core;
    uint32_t pool = UF_DEFAULT_POOL;
    uf_status status = uf__pool_find_locked(allocator, pool_id, &pool, error);
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

static uf_status scope_open_locked(uf_allocator *allocator, uint64_t pool_id, pool_scope scope,
                                   uf_error *error)
{
    uf_status status = uf__pool_find_locked(allocator, pool_id, &scope.pool, error);
    if (status != UF_OK) {
        return status;
    }
    if (!uf__list_reserve((void **)&allocator->scopes, &allocator->scope_capacity,
                          sizeof *allocator->scopes, allocator->scope_count + 1)) {
        return uf__explain_host_memory(error, "opening a pool's scope");
    }
    uf_core *core = &allocator->core;
    bool is_of_thread = scope.filter == NULL && !scope.is_capture;
    scope.is_untold = is_of_thread && core->paging != NULL && core->pools[scope.pool].is_plain;
    for (uint32_t i = 0; i < allocator->scope_count; i++) {
        status = allocator->scopes[i].pool == scope.pool ? UF_ERROR_BUSY : status;
    }
    if (scope.is_untold && status == UF_OK) {
        uf__core_pool_retain(core, scope.pool);
    } else if (status == UF_OK) {
        status = uf__core_redirect_begin(core, scope.pool);
    }
    if (status == UF_ERROR_BUSY) {
        return uf__error_set(error, status,
                             "a scope or route of pool %" PRIu64 " is open already; one at a time",
                             pool_id);
    }
    if (status == UF_OK) {
        allocator->scopes[allocator->scope_count++] = scope;
    }
    return uf__explain(error, status, "opening a pool's scope");
}

uf_status uf_pool_begin(uf_allocator *allocator, uint64_t pool_id, uf_error *error)
{
    uf_status status = uf__allocator_enter(allocator, error);
    if (status == UF_OK) {
        status =
            scope_open_locked(allocator, pool_id, (pool_scope){.thread = pthread_self()}, error);
        uf__allocator_leave(allocator);
    }
    return status;
}

typedef enum scope_kind { SCOPE_OF_THREAD, SCOPE_ROUTE, SCOPE_CAPTURE } scope_kind;

static scope_kind kind_of(const pool_scope *scope)
{
    return scope->filter != NULL ? SCOPE_ROUTE
           : scope->is_capture   ? SCOPE_CAPTURE
                                 : SCOPE_OF_THREAD;
}

static uf_status scope_close_locked(uf_allocator *allocator, uint64_t pool_id, scope_kind kind,
                                    uf_error *error)
{
    static const char *const NAME[] = {"scope", "route", "capture"};
    const uf_core *core = &allocator->core;
    uint32_t at = 0;
    while (at < allocator->scope_count &&
           (core->pools[allocator->scopes[at].pool].handle != pool_id ||
            kind_of(&allocator->scopes[at]) != kind)) {
        at++;
    }
    if (at == allocator->scope_count) {
        return uf__error_set(error, UF_ERROR_NOT_FOUND, "no %s of pool %" PRIu64 " is open",
                             NAME[kind], pool_id);
    }
    uint32_t pool = allocator->scopes[at].pool;
    uf_status status =
        allocator->scopes[at].is_untold ? UF_OK : uf__core_redirect_end(&allocator->core, pool);
    if (status != UF_OK) {
        return uf__explain(error, UF_ERROR_INTERNAL, "closing a pool's scope");
    }
    if (kind != SCOPE_ROUTE) {
        uf__core_pool_release(&allocator->core, pool);
    }
    allocator->scope_count--;
    memmove(&allocator->scopes[at], &allocator->scopes[at + 1],
            (allocator->scope_count - at) * sizeof *allocator->scopes);
    return UF_OK;
}

static uf_status scope_close(uf_allocator *allocator, uint64_t pool_id, scope_kind kind,
                             uf_error *error)
{
    uf_status status = uf__allocator_enter(allocator, error);
    if (status == UF_OK) {
        status = scope_close_locked(allocator, pool_id, kind, error);
        uf__allocator_leave(allocator);
    }
    return status;
}

uf_status uf_pool_end(uf_allocator *allocator, uint64_t pool_id, uf_error *error)
{
    return scope_close(allocator, pool_id, SCOPE_OF_THREAD, error);
}

uf_status uf_route_end(uf_allocator *allocator, uint64_t pool_id, uf_error *error)
{
    return scope_close(allocator, pool_id, SCOPE_ROUTE, error);
}

uf_status uf_capture_end(uf_allocator *allocator, uint64_t pool_id, uf_error *error)
{
    return scope_close(allocator, pool_id, SCOPE_CAPTURE, error);
}

uf_status uf_route_begin(uf_allocator *allocator, uint64_t pool_id, uf_route_filter filter,
                         void *context, uf_error *error)
{
    if (filter == NULL) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT, "uf_route_begin: filter is NULL");
    }
    uf_status status = uf__allocator_enter(allocator, error);
    if (status == UF_OK) {
        const pool_scope scope = {.filter = filter, .context = context};
        status = scope_open_locked(allocator, pool_id, scope, error);
        uf__allocator_leave(allocator);
    }
    return status;
}

static uf_status capture_begin_locked(uf_allocator *allocator, uint64_t stream, uint64_t *pool_id,
                                      uf_error *error)
{
    const uf_pool_options options = {.struct_size_bytes = sizeof options};
    uint64_t handle;
    uf_status status = pool_create_locked(allocator, &options, &handle, error);
    if (status != UF_OK) {
        return status;
    }
    const pool_scope scope = {.is_capture = true, .stream = stream};
    status = scope_open_locked(allocator, handle, scope, error);
    if (status == UF_OK) {
        *pool_id = handle;
        return UF_OK;
    }
    uint32_t pool = UF_DEFAULT_POOL;
    if (uf__pool_find_locked(allocator, handle, &pool, NULL) == UF_OK) {
        uf__core_pool_release(&allocator->core, pool);
        uf__pool_forget(&allocator->core, pool);
    }
    return status;
}

uf_status uf_capture_begin(uf_allocator *allocator, uint64_t stream, uint64_t *pool_id,
                           uf_error *error)
{
    if (pool_id == NULL) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT, "uf_capture_begin: pool_id is NULL");
    }
    uf_status status = uf__allocator_enter(allocator, error);
    if (status == UF_OK) {
        status = capture_begin_locked(allocator, stream, pool_id, error);
        uf__allocator_leave(allocator);
    }
    return status;
}

uf_status uf_pool_retain(uf_allocator *allocator, uint64_t pool_id, uf_error *error)
{
    uf_status status = uf__allocator_enter(allocator, error);
    if (status == UF_OK) {
        uint32_t pool = UF_DEFAULT_POOL;
        status = uf__pool_find_locked(allocator, pool_id, &pool, error);
        if (status == UF_OK) {
            uf__core_pool_retain(&allocator->core, pool);
        }
        uf__allocator_leave(allocator);
    }
    return status;
}

static bool is_scope_open(const uf_allocator *allocator, uint32_t pool)
{
    for (uint32_t i = 0; i < allocator->scope_count; i++) {
        if (allocator->scopes[i].pool == pool) {
            return true;
        }
    }
    return false;
}

static uf_status pool_release_locked(uf_allocator *allocator, uint64_t pool_id, uf_error *error)
{
    uint32_t pool = UF_DEFAULT_POOL;
    uf_status status = uf__pool_find_locked(allocator, pool_id, &pool, error);
    if (status != UF_OK) {
        return status;
    }
    if (allocator->core.pools[pool].use_count == 1 && is_scope_open(allocator, pool)) {
        return uf__error_set(error, UF_ERROR_BUSY,
                             "the last use of pool %" PRIu64 " is a scope or route that is open; "
                             "close it first",
                             pool_id);
    }
    uf__core_pool_release(&allocator->core, pool);
    return UF_OK;
}

uf_status uf_pool_release(uf_allocator *allocator, uint64_t pool_id, uf_error *error)
{
    uf_status status = uf__allocator_enter(allocator, error);
    if (status == UF_OK) {
        status = pool_release_locked(allocator, pool_id, error);
        uf__allocator_leave(allocator);
    }
    return status;
}

uf_status uf_pool_change(uf_allocator *allocator, uint64_t pool_id, bool is_no_split,
                         bool is_use_on_oom, uf_error *error)
{
    uf_status status = uf__allocator_enter(allocator, error);
    if (status == UF_OK) {
        uint32_t pool = UF_DEFAULT_POOL;
        status = uf__pool_find_locked(allocator, pool_id, &pool, error);
        if (status == UF_OK) {
            uf_pool *changed = &allocator->core.pools[pool];
            changed->is_no_split = is_no_split || changed->is_whole;
            changed->is_use_on_oom = is_use_on_oom;
        }
        uf__allocator_leave(allocator);
    }
    return status;
}
