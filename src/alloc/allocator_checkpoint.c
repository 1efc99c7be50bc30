/* SPDX-License-Identifier: MIT
 *
 * Checkpoints of pools in the public allocator: who holds which address before and after. Guarded
 * by the allocator's lock; the caller is told outside it. */
#include "alloc/allocator_parts.h"

#include <inttypes.h>
#include <stdlib.h>

#include "alloc/checkpoint.h"
#include "base/error.h"

struct uf_pool_checkpoint {
    const uf_allocator *allocator; /* only compared */
    uint64_t pool_id;
    uf_checkpoint blocks;
    uint32_t allocated_count;
};

uf_status uf_pool_checkpoint_create(uf_allocator *allocator, uint64_t pool_id,
                                    uf_pool_checkpoint **checkpoint, uf_error *error)
{
    if (checkpoint == NULL) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "uf_pool_checkpoint_create: checkpoint is NULL");
    }
    uf_pool_checkpoint *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return uf__explain_host_memory(error, "taking a checkpoint");
    }
    uf_status status = uf__allocator_enter(allocator, error);
    if (status == UF_OK) {
        uint32_t pool = UF_DEFAULT_POOL;
        status = uf__pool_find_locked(allocator, pool_id, &pool, error);
        if (status == UF_OK) {
            status = uf__explain(error, uf__checkpoint_take(&allocator->core, pool, &made->blocks),
                                 "taking a checkpoint");
        }
        uf__allocator_leave(allocator);
    }
    if (status != UF_OK) {
        free(made);
        return status;
    }
    made->allocator = allocator;
    made->pool_id = pool_id;
    for (uint32_t i = 0; i < made->blocks.count; i++) {
        made->allocated_count += made->blocks.blocks[i].is_allocated;
    }
    *checkpoint = made;
    return UF_OK;
}

void uf_pool_checkpoint_destroy(uf_pool_checkpoint *checkpoint)
{
    if (checkpoint != NULL) {
        uf__checkpoint_fini(&checkpoint->blocks);
        free(checkpoint);
    }
}

static uf_status explain(uf_error *error, uf_status status, uint64_t pool_id)
{
    switch (status) {
    case UF_ERROR_BUSY:
        return uf__error_set(
            error, status,
            "pool %" PRIu64 " cannot go back to a checkpoint: another stream uses "
            "a block of it, a free of one waits for a stream, or one is pinned; let their work "
            "be done and allocate once outside the pool, then try again",
            pool_id);
    case UF_ERROR_HAZARD:
        return uf__error_set(error, status,
                             "pool %" PRIu64 " cannot go back to a checkpoint: memory that was "
                             "handed out then has been given back to the device since",
                             pool_id);
    default:
        return uf__explain(error, status, "going back to a checkpoint");
    }
}

/* Makes room in the map of addresses, so that noting what is handed out cannot fail. */
static bool reserve_addresses_locked(uf_allocator *allocator, uint32_t count)
{
    return uf__addrmap_reserve(&allocator->blocks, (size_t)count);
}

static uf_status restore_locked(uf_allocator *allocator, const uf_pool_checkpoint *checkpoint,
                                uf_restored **restored, uint32_t *count, uf_error *error)
{
    uint32_t pool = UF_DEFAULT_POOL;
    uf_status status = uf__pool_find_locked(allocator, checkpoint->pool_id, &pool, error);
    if (status != UF_OK) {
        return status;
    }
    if (uf__pin_is_in_locked(allocator, pool)) {
        return explain(error, UF_ERROR_BUSY, checkpoint->pool_id);
    }
    size_t room = (size_t)uf__checkpoint_allocated_count(&allocator->core, pool) +
                  checkpoint->allocated_count;
    uf_restored *list = malloc((room + 1) * sizeof *list);
    if (list == NULL || !reserve_addresses_locked(allocator, checkpoint->allocated_count)) {
        free(list);
        return uf__explain_host_memory(error, "going back to a checkpoint");
    }
    status = uf__checkpoint_restore(&allocator->core, pool, &checkpoint->blocks, list, count);
    if (status != UF_OK) {
        free(list);
        return explain(error, status, checkpoint->pool_id);
    }
    for (uint32_t i = 0; i < *count; i++) {
        if (list[i].block == UF_NO_BLOCK) {
            (void)uf__addrmap_remove(&allocator->blocks, list[i].addr);
        } else {
            (void)uf__addrmap_set(&allocator->blocks, list[i].addr, list[i].block);
            if (allocator->debug != NULL) {
                uf__debugging_adopt_locked(allocator, list[i].block);
            }
        }
        if (list[i].requested_bytes >= allocator->guard_bytes) {
            list[i].requested_bytes -= allocator->guard_bytes;
        }
    }
    *restored = list;
    return UF_OK;
}

uf_status uf_pool_checkpoint_restore(uf_allocator *allocator, const uf_pool_checkpoint *checkpoint,
                                     uf_restore_callback callback, void *context, uf_error *error)
{
    if (checkpoint == NULL || checkpoint->allocator != allocator) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "uf_pool_checkpoint_restore: checkpoint is NULL, or of another "
                             "allocator");
    }
    uf_status status = uf__allocator_enter(allocator, error);
    if (status != UF_OK) {
        return status;
    }
    uf_restored *restored = NULL;
    uint32_t count = 0;
    status = restore_locked(allocator, checkpoint, &restored, &count, error);
    uf__allocator_leave(allocator);
    for (uint32_t i = 0; i < count && callback != NULL; i++) {
        callback(context, restored[i].addr, restored[i].requested_bytes,
                 restored[i].block != UF_NO_BLOCK);
    }
    free(restored);
    return status;
}
