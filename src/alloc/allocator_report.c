/* SPDX-License-Identifier: MIT
 *
 * What the public allocator tells about itself: statistics, summary, fragmentation, the check, and
 * the walk. Guarded by the allocator's lock. */
#include "alloc/allocator_parts.h"

#include <inttypes.h>

#include "alloc/largest.h"
#include "alloc/walk.h"
#include "base/error.h"

uf_status uf_stats_get(uf_allocator *allocator, uf_stats *stats, uf_error *error)
{
    if (stats == NULL) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT, "uf_stats_get: stats is NULL");
    }
    uf_status status = uf__allocator_enter(allocator, error);
    if (status == UF_OK) {
        uf__core_stats(&allocator->core, stats);
        uf__allocator_leave(allocator);
    }
    return status;
}

uf_status uf_stats_reset_peak(uf_allocator *allocator, uf_error *error)
{
    uf_status status = uf__allocator_enter(allocator, error);
    if (status == UF_OK) {
        uf__counters_reset_peak(&allocator->core.counters);
        uf__allocator_leave(allocator);
    }
    return status;
}

uf_status uf_stats_reset_accumulated(uf_allocator *allocator, uf_error *error)
{
    uf_status status = uf__allocator_enter(allocator, error);
    if (status == UF_OK) {
        uf__counters_reset_accumulated(&allocator->core.counters);
        uf__allocator_leave(allocator);
    }
    return status;
}

uf_status uf_summary(uf_allocator *allocator, bool is_abbreviated, char *buffer, size_t capacity,
                     size_t *length, uf_error *error)
{
    uf_stats stats;
    uf_status status = uf_stats_get(allocator, &stats, error);
    if (status == UF_OK && buffer == NULL && capacity > 0) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT, "uf_summary: buffer is NULL");
    }
    if (status == UF_OK) {
        status = uf_summary_write(&stats, allocator->options.device_index, is_abbreviated, buffer,
                                  capacity, length, error);
    }
    return status;
}

uf_status uf_fragmentation_get(uf_allocator *allocator, double alarm_share,
                               uf_fragmentation *result, uf_error *error)
{
    if (result == NULL) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "uf_fragmentation_get: result is NULL");
    }
    uf_status status = uf__allocator_enter(allocator, error);
    if (status != UF_OK) {
        return status;
    }
    uf_stats stats;
    uf__core_stats(&allocator->core, &stats);
    uint64_t largest_bytes = uf__largest_request_bytes(&allocator->core);
    uf__allocator_leave(allocator);
    return uf_fragmentation_compute(&stats, largest_bytes, alarm_share, result, error);
}

static bool is_boundary(const uf_core *core, uint32_t index)
{
    return index == UF_NO_BLOCK || !uf__core_block(core, index)->is_mapped;
}

static uf_block_place place_of(const uf_core *core, uint32_t index)
{
    const uf_block *block = uf__core_block(core, index);
    const uf_shelf *shelf = core->shelves[block->shelf];
    uf_block_place place = {.addr = block->addr,
                            .size_bytes = block->size_bytes,
                            .requested_bytes = block->requested_bytes,
                            .stream = core->streams[shelf->stream],
                            .pool_id = core->pools[shelf->pool].handle,
                            .segment_addr = block->addr,
                            .segment_bytes = block->size_bytes};
    if (core->paging != NULL) {
        return place; /* pages around it may not be there, or go */
    }
    for (uint32_t i = block->prev; !is_boundary(core, i); i = uf__core_block(core, i)->prev) {
        place.segment_addr = uf__core_block(core, i)->addr;
        place.segment_bytes += uf__core_block(core, i)->size_bytes;
    }
    for (uint32_t i = block->next; !is_boundary(core, i); i = uf__core_block(core, i)->next) {
        place.segment_bytes += uf__core_block(core, i)->size_bytes;
    }
    return place;
}

uf_status uf_block_get(uf_allocator *allocator, uint64_t addr, uf_block_place *place,
                       uf_error *error)
{
    if (place == NULL) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT, "uf_block_get: place is NULL");
    }
    uf_status status = uf__allocator_enter(allocator, error);
    if (status != UF_OK) {
        return status;
    }
    const uint32_t *found = uf__addrmap_find(&allocator->blocks, addr);
    if (found == NULL) {
        status = uf__error_set(error, UF_ERROR_FOREIGN_POINTER,
                               "address 0x%" PRIx64 " is not one that this allocator handed out, "
                               "or it was given back before",
                               addr);
    } else {
        *place = place_of(&allocator->core, *found);
        place->requested_bytes -= allocator->guard_bytes;
    }
    uf__allocator_leave(allocator);
    return status;
}

/* The map holds the allocated blocks, all of them, and nothing else. */
static uf_status check_map_locked(const uf_allocator *allocator, uf_error *error)
{
    const uf_core *core = &allocator->core;
    size_t count = 0, pinned_count = 0;
    for (uint32_t i = 1; i < core->blocks.count; i++) {
        const uf_block *block = uf__core_block(core, i);
        if (block->life != UF_LIFE_ALLOCATED) {
            continue;
        }
        const uint32_t *found = uf__addrmap_find(&allocator->blocks, block->addr);
        if (found == NULL && uf__pin_is_freed_locked(allocator, i)) {
            pinned_count++;
            continue;
        }
        if (found == NULL || *found != i) {
            return uf__error_set(error, UF_ERROR_INTERNAL,
                                 "allocator check: the block at 0x%" PRIx64
                                 " is allocated, and its address is not known",
                                 block->addr);
        }
        count++;
    }
    return count == allocator->blocks.count && pinned_count == allocator->freed_pin_count
               ? UF_OK
               : uf__error_set(error, UF_ERROR_INTERNAL,
                               "allocator check: %zu addresses are handed out, %zu blocks are "
                               "allocated",
                               allocator->blocks.count, count);
}

uf_status uf_check(uf_allocator *allocator, uf_error *error)
{
    uf_status status = uf__allocator_enter(allocator, error);
    if (status != UF_OK) {
        return status;
    }
    status = uf__core_check(&allocator->core, error);
    if (status == UF_ERROR_HOST_MEMORY) {
        uf__explain_host_memory(error, "checking an allocator");
    }
    if (status == UF_OK) {
        status = check_map_locked(allocator, error);
    }
    uint32_t told_count = 0;
    for (uint32_t i = 0; i < allocator->scope_count; i++) {
        told_count += !allocator->scopes[i].is_untold;
    }
    if (status == UF_OK && told_count != allocator->core.redirection_count) {
        status = uf__error_set(error, UF_ERROR_INTERNAL,
                               "allocator check: %" PRIu32 " pool scopes, %" PRIu32 " redirections",
                               told_count, allocator->core.redirection_count);
    }
    if (status == UF_OK && allocator->debug != NULL) {
        uf__debugging_look_locked(allocator);
        status = uf__debug_tell_first(allocator->debug, error);
    }
    uf__allocator_leave(allocator);
    return status;
}

uf_status uf__allocator_look(uf_allocator *allocator, uf_allocator_look look, void *context,
                             uf_error *error)
{
    uf_status status = uf__allocator_enter(allocator, error);
    if (status == UF_OK) {
        const uf_allocator_view view = {.core = &allocator->core,
                                        .conf = allocator->conf,
                                        .device_index = allocator->options.device_index};
        status = look(context, &view);
        uf__allocator_leave(allocator);
    }
    return status;
}

static uf_status copy_layout(void *context, const uf_allocator_view *view)
{
    return uf__walk_copy_init(context, view->core);
}

uf_status uf_walk(uf_allocator *allocator, uf_walk_callback callback, void *context,
                  uf_error *error)
{
    if (callback == NULL) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT, "uf_walk: callback is NULL");
    }
    uf_walk_copy copy;
    uf_status status = uf__allocator_look(allocator, copy_layout, &copy, error);
    if (status != UF_OK) {
        return status == UF_ERROR_HOST_MEMORY
                   ? uf__explain_host_memory(error, "walking an allocator")
                   : status;
    }
    const uf_block_info *blocks = copy.blocks;
    for (uint64_t i = 0; i < copy.segment_count; i++) {
        if (!callback(context, &copy.segments[i], blocks)) {
            break;
        }
        blocks += copy.segments[i].block_count;
    }
    uf__walk_copy_fini(&copy);
    return UF_OK;
}
