/* SPDX-License-Identifier: MIT
 *
 * The chain an allocation goes down when no cached block fits (spec 3.2): garbage collection, a new
 * segment, other pools, oversize release, flush, and the out-of-memory end. Runs under the core's
 * guard, driver calls included: the chain's decisions depend on what each call leaves behind. */
#include "alloc/parts.h"

#include "alloc/rounding.h"

static uf_status create_segment(uf_core *core, const uf_request *request, uint32_t *block)
{
    const uf_device *device = core->device;
    uf_shelf *shelf = core->shelves[request->shelf];
    uint64_t addr;
    uf_status status = device->segment_create(device->context, request->segment_bytes,
                                              uf__shelf_stream(core, shelf), &addr);
    if (status == UF_ERROR_DEVICE_MEMORY) {
        return UF_ERROR_OUT_OF_MEMORY;
    }
    if (status != UF_OK) {
        return uf__core_device_failed(core, status);
    }
    uint32_t index = uf__block_take(&core->blocks);
    core->blocks.items[index] = (uf_block){.addr = addr,
                                           .size_bytes = request->segment_bytes,
                                           .shelf = request->shelf,
                                           .life = UF_LIFE_FREE,
                                           .is_mapped = true};
    core->total_bytes += request->segment_bytes;
    uf__counter_increase(&core->counters, UF_COUNTER_SEGMENT, shelf->pool_class, 1);
    uf__counter_increase(&core->counters, UF_COUNTER_RESERVED_BYTES, shelf->pool_class,
                         request->segment_bytes);
    if (request->segment_bytes >= core->conf.max_split_size_bytes) {
        uf__counter_single_increase(&core->counters.oversize_segments);
    }
    core->counters.num_device_alloc++;
    uf__plain_account(core, shelf->pool, request->segment_bytes, true);
    uf__emit(core, UF_ACTION_SEGMENT_ALLOC, addr, request->segment_bytes,
             uf__shelf_stream(core, shelf));
    *block = index;
    return UF_OK;
}

/* Spec 3.3. UF_ERROR_OUT_OF_MEMORY lets the chain go on. */
uf_status uf__core_new_segment(uf_core *core, const uf_request *request, bool is_retry,
                               uint32_t *block)
{
    if (is_retry) {
        core->counters.num_alloc_retries++;
    }
    if (core->limit_bytes != UF_UNLIMITED &&
        (core->total_bytes > core->limit_bytes ||
         request->segment_bytes > core->limit_bytes - core->total_bytes)) {
        return UF_ERROR_OUT_OF_MEMORY;
    }
    /* A flush may have spent what uf__core_alloc reserved: unmapping cuts blocks. */
    if (!uf__block_reserve(&core->blocks, UF_BLOCKS_PER_REQUEST)) {
        return UF_ERROR_HOST_MEMORY;
    }
    uf_status status = request->is_expandable ? uf__region_allocate(core, request, block)
                                              : create_segment(core, request, block);
    if (status == UF_OK && request->pool != UF_DEFAULT_POOL) {
        core->pools[request->pool].segment_count++;
    }
    return status;
}

/* Step D: private pools that may be raided. The request then belongs to that pool. */
static bool raid_pools(uf_core *core, uf_request *request, uint32_t *block)
{
    for (uint32_t i = 1; i < core->pool_count; i++) {
        const uf_pool *pool = &core->pools[i];
        const uf_pool_class *of = &pool->classes[request->pool_class];
        if (!pool->is_known || !pool->is_use_on_oom || request->stream >= of->stream_capacity ||
            of->shelf_of_stream[request->stream] == 0) {
            continue;
        }
        uf_request raid = *request;
        raid.pool = i;
        raid.shelf = of->shelf_of_stream[request->stream] - 1;
        raid.is_expandable = false;
        *block = uf__core_find(core, &raid, raid.shelf);
        if (*block != UF_NO_BLOCK) {
            *request = raid;
            return true;
        }
    }
    return false;
}

uf_status uf__core_out_of_memory(uf_core *core, const uf_request *request)
{
    uint64_t free_bytes = uf__core_device_free_bytes(core);
    uf__emit(core, UF_ACTION_OOM, free_bytes, request->rounded_bytes,
             core->streams[request->stream]);
    core->counters.num_ooms++;
    return UF_ERROR_OUT_OF_MEMORY;
}

uf_status uf__core_acquire(uf_core *core, uf_request *request, uint32_t *block)
{
    uf_status status = uf__core_collect_garbage(core);
    if (status != UF_OK) {
        return status;
    }
    status = uf__core_new_segment(core, request, false, block);
    if (status != UF_ERROR_OUT_OF_MEMORY) {
        return status;
    }
    if (request->pool == UF_DEFAULT_POOL && raid_pools(core, request, block)) {
        return UF_OK;
    }
    if (core->conf.max_split_size_bytes != UF_UNLIMITED) {
        bool is_enough = false;
        status = uf__core_release_oversize(core, request, &is_enough);
        if (status != UF_OK) {
            return status;
        }
        status =
            is_enough ? uf__core_new_segment(core, request, false, block) : UF_ERROR_OUT_OF_MEMORY;
        if (status != UF_ERROR_OUT_OF_MEMORY) {
            return status;
        }
    }
    if (core->redirection_count == 0 && request->pool == UF_DEFAULT_POOL) {
        status = uf__core_flush(core);
        if (status != UF_OK) {
            return status;
        }
        status = uf__core_new_segment(core, request, true, block);
        if (status != UF_ERROR_OUT_OF_MEMORY) {
            return status;
        }
    }
    return uf__core_out_of_memory(core, request);
}
