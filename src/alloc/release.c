/* SPDX-License-Identifier: MIT
 *
 * Giving segments back to the driver: one segment, garbage collection (spec 5), oversize release
 * (spec 3.4) and the flush (spec 3.5). Decides what to release; never why. */
#include "alloc/parts.h"
#include "alloc/shadow.h"

#include <stdlib.h>

/* Spec 3.7. The block is free, whole, not expandable. */
static uf_status release_segment(uf_core *core, uint32_t index)
{
    uf_block *block = &core->blocks.items[index];
    uf_shelf *shelf = core->shelves[block->shelf];
    uint64_t addr = block->addr, size_bytes = block->size_bytes;
    uf_status status = core->device->segment_destroy(core->device->context, addr, size_bytes);
    if (status != UF_OK) {
        return uf__core_device_failed(core, status);
    }
    core->counters.num_device_free++;
    core->release_sequence_count++;
    uf__freeset_remove(&shelf->cached, core->blocks.items, index);
    core->total_bytes -= size_bytes;
    if (shelf->pool != UF_DEFAULT_POOL) {
        core->pools[shelf->pool].segment_count--;
    }
    uf__plain_account(core, shelf->pool, size_bytes, false);
    uf__counter_decrease(&core->counters, UF_COUNTER_SEGMENT, shelf->pool_class, 1);
    uf__counter_decrease(&core->counters, UF_COUNTER_RESERVED_BYTES, shelf->pool_class, size_bytes);
    if (size_bytes >= core->conf.max_split_size_bytes) {
        uf__counter_single_decrease(&core->counters.oversize_segments);
    }
    uf__emit(core, UF_ACTION_SEGMENT_FREE, addr, size_bytes, uf__shelf_stream(core, shelf));
    uf__block_give(&core->blocks, index);
    return UF_OK;
}

/* Lists the free blocks of a pool class in order: streams by handle, then size, then address. */
static uf_status list_free(const uf_core *core, const uf_pool_class *of, uint32_t **indices,
                           uint32_t *count)
{
    uint32_t total_count = 0;
    for (uint32_t i = 0; i < of->stream_capacity; i++) {
        if (of->shelf_of_stream[i] != 0) {
            total_count += core->shelves[of->shelf_of_stream[i] - 1]->cached.count;
        }
    }
    *count = total_count;
    *indices = malloc(((size_t)total_count + 1) * sizeof **indices);
    if (*indices == NULL) {
        return UF_ERROR_HOST_MEMORY;
    }
    uint32_t filled = 0;
    for (uint32_t i = 0; i < core->stream_count; i++) {
        uint32_t stream = core->streams_sorted[i];
        if (stream < of->stream_capacity && of->shelf_of_stream[stream] != 0) {
            const uf_shelf *shelf = core->shelves[of->shelf_of_stream[stream] - 1];
            uf__freeset_list(&shelf->cached, core->blocks.items, *indices + filled);
            filled += shelf->cached.count;
        }
    }
    return UF_OK;
}

/* The release_pool of spec 3.5: plain segments that are wholly free at once, then whole free pages
 * of expandable segments. */
static uf_status release_class(uf_core *core, uint32_t pool, int pool_class)
{
    uint32_t *indices, count, expandable_count = 0;
    uf_status status = list_free(core, &core->pools[pool].classes[pool_class], &indices, &count);
    if (status != UF_OK) {
        return status;
    }
    for (uint32_t i = 0; i < count && status == UF_OK; i++) {
        const uf_block *block = &core->blocks.items[indices[i]];
        if (block->region != 0) {
            indices[expandable_count++] = indices[i];
        } else if (!uf__block_is_split(block)) {
            status = release_segment(core, indices[i]);
        }
    }
    for (uint32_t i = 0; i < expandable_count && status == UF_OK; i++) {
        status = core->paging == NULL ? uf__region_unmap_block(core, indices[i])
                                      : uf__paged_release(core, indices[i]);
    }
    free(indices);
    return status;
}

static uf_status empty_pool(uf_core *core, uint32_t pool)
{
    uf_status status = release_class(core, pool, UF_CLASS_SMALL);
    if (status == UF_OK) {
        status = release_class(core, pool, UF_CLASS_LARGE);
    }
    if (status == UF_OK && core->pools[pool].segment_count == 0) {
        uf__pool_forget(core, pool);
    }
    return status;
}

/* Under the unfrag policy what a dead pool has cached serves any request, and stays. */
uf_status uf__core_pool_empty(uf_core *core, uint32_t pool)
{
    return uf__core_is_paged(core, pool) ? UF_OK : empty_pool(core, pool);
}

uf_status uf__core_flush(uf_core *core)
{
    uf_status status = UF_OK;
    if (core->redirection_count == 0) {
        status = uf__pending_complete_all(core, UF_ANY_POOL);
        if (status == UF_OK && core->paging != NULL) {
            status = uf__shadow_wait(core); /* holes must not grow together while they are listed */
        }
        if (status == UF_OK) {
            status = release_class(core, UF_DEFAULT_POOL, UF_CLASS_LARGE);
        }
        if (status == UF_OK) {
            status = release_class(core, UF_DEFAULT_POOL, UF_CLASS_SMALL);
        }
    }
    uint32_t pool, last = UF_ANY_POOL;
    while (core->pool_hook != NULL && status == UF_OK &&
           core->pool_hook(core->pool_context, &pool)) {
        uint64_t before = core->release_sequence_count;
        status = empty_pool(core, pool);
        if (core->release_sequence_count == before && pool == last) {
            break; /* named twice, and nothing left in it */
        }
        last = pool;
    }
    for (uint32_t i = 1; core->pool_hook == NULL && i < core->pool_count && status == UF_OK; i++) {
        if (core->pools[i].is_known && core->pools[i].use_count == 0) {
            status = empty_pool(core, i);
        }
    }
    return status;
}

uf_status uf__core_empty_cache(uf_core *core)
{
    return uf__core_flush(core);
}

uf_status uf__core_pool_flush(uf_core *core, uint32_t pool)
{
    if (core->pools[pool].use_count != 0) {
        return UF_OK;
    }
    if (core->redirection_count != 0) {
        return UF_ERROR_BUSY; /* PyTorch aborts here (spec 4.5) */
    }
    uf_status status = uf__pending_complete_all(core, pool);
    return status == UF_OK ? uf__core_pool_empty(core, pool) : status;
}

static uint64_t age_of(const uf_core *core, const uf_block *block)
{
    return core->pools[UF_DEFAULT_POOL].classes[UF_CLASS_LARGE].search_count - block->age_base;
}

/* One pass: releases what is at least of average age. */
static uf_status collect_pass(uf_core *core, uint32_t *indices, uint32_t *count, uint64_t *age_sum,
                              uint64_t *unsplit_count, uint64_t *freed_bytes)
{
    double average = (double)*age_sum / (double)*unsplit_count;
    uint32_t kept = 0;
    uf_status status = UF_OK;
    for (uint32_t i = 0; i < *count; i++) {
        const uf_block *block = &core->blocks.items[indices[i]];
        bool is_due = status == UF_OK && !uf__block_is_split(block) && block->region == 0 &&
                      (double)age_of(core, block) >= average;
        if (!is_due) {
            indices[kept++] = indices[i];
            continue;
        }
        *freed_bytes += block->size_bytes;
        *age_sum -= age_of(core, block);
        *unsplit_count -= 1;
        status = release_segment(core, indices[i]);
    }
    *count = kept;
    return status;
}

uf_status uf__core_collect_garbage(uf_core *core)
{
    double threshold = core->conf.garbage_collection_threshold;
    if (core->limit_bytes == UF_UNLIMITED || threshold <= 0.0) {
        return UF_OK;
    }
    uint64_t target_total = (uint64_t)(threshold * (double)core->limit_bytes);
    if (core->total_bytes <= target_total) {
        return UF_OK;
    }
    uint64_t target_bytes = core->total_bytes - target_total, freed_bytes = 0;
    uint32_t *indices, count;
    uf_status status =
        list_free(core, &core->pools[UF_DEFAULT_POOL].classes[UF_CLASS_LARGE], &indices, &count);
    if (status != UF_OK) {
        return status;
    }
    uint64_t age_sum = 0, unsplit_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uf_block *block = &core->blocks.items[indices[i]];
        if (!uf__block_is_split(block)) {
            age_sum += age_of(core, block);
            unsplit_count++;
        }
    }
    bool has_progress = true;
    while (status == UF_OK && freed_bytes < target_bytes && has_progress && unsplit_count > 0) {
        uint64_t before = unsplit_count;
        status = collect_pass(core, indices, &count, &age_sum, &unsplit_count, &freed_bytes);
        has_progress = unsplit_count < before;
    }
    free(indices);
    return status;
}

/* Releasing a part of a segment would take live memory with it. */
static uf_status release_if_whole(uf_core *core, uint32_t index)
{
    return uf__block_is_split(&core->blocks.items[index]) ? UF_ERROR_HAZARD
                                                          : release_segment(core, index);
}

uf_status uf__core_release_oversize(uf_core *core, const uf_request *request, bool *is_enough)
{
    uf_shelf *shelf = core->shelves[request->shelf];
    uint64_t max_split = core->conf.max_split_size_bytes, freed_bytes = 0;
    uint64_t key = request->rounded_bytes > max_split ? request->rounded_bytes : max_split;
    uint32_t index = uf__freeset_at_least(&shelf->cached, core->blocks.items, key, 0);
    *is_enough = false;
    if (index != UF_NO_BLOCK && core->blocks.items[index].region == 0) {
        uf_status status = release_if_whole(core, index);
        *is_enough = status == UF_OK;
        return status;
    }
    uint64_t addr = index == UF_NO_BLOCK ? UINT64_MAX : core->blocks.items[index].addr;
    uint64_t size_bytes = index == UF_NO_BLOCK ? UINT64_MAX : core->blocks.items[index].size_bytes;
    index = uf__freeset_before(&shelf->cached, core->blocks.items, size_bytes, addr);
    while (index != UF_NO_BLOCK && freed_bytes < key) {
        const uf_block *block = &core->blocks.items[index];
        size_bytes = block->size_bytes;
        addr = block->addr;
        if (size_bytes < max_split) {
            break;
        }
        if (block->region == 0) {
            uf_status status = release_if_whole(core, index);
            if (status != UF_OK) {
                return status;
            }
            freed_bytes += size_bytes;
        }
        index = uf__freeset_before(&shelf->cached, core->blocks.items, size_bytes, addr);
    }
    *is_enough = freed_bytes >= key;
    return UF_OK;
}

static bool is_trimmed(const uf_core *core, uint64_t keep_bytes)
{
    uint64_t active_bytes = (uint64_t)uf__counter_all(&core->counters, UF_COUNTER_ACTIVE_BYTES);
    return core->total_bytes - active_bytes <= keep_bytes;
}

/* Of each stream the largest first. */
static uf_status trim_class(uf_core *core, int pool_class, uint64_t keep_bytes)
{
    uint32_t *indices, count;
    uf_status status =
        list_free(core, &core->pools[UF_DEFAULT_POOL].classes[pool_class], &indices, &count);
    if (status != UF_OK) {
        return status;
    }
    for (uint32_t i = count; i-- > 0 && status == UF_OK && !is_trimmed(core, keep_bytes);) {
        const uf_block *block = &core->blocks.items[indices[i]];
        if (block->region != 0) {
            status = uf__region_unmap_block(core, indices[i]);
        } else if (!uf__block_is_split(block)) {
            status = release_segment(core, indices[i]);
        }
    }
    free(indices);
    return status;
}

uf_status uf__core_trim(uf_core *core, uint64_t keep_bytes)
{
    uf_status status = UF_OK;
    for (uint32_t i = 1; i < core->pool_count && status == UF_OK; i++) {
        if (core->pools[i].is_known && core->pools[i].use_count == 0 &&
            !is_trimmed(core, keep_bytes)) {
            status = empty_pool(core, i);
        }
    }
    const int classes[2] = {UF_CLASS_LARGE, UF_CLASS_SMALL};
    for (int i = 0; i < 2 && status == UF_OK && core->redirection_count == 0; i++) {
        status = trim_class(core, classes[i], keep_bytes);
    }
    return status;
}
