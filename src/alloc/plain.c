/* SPDX-License-Identifier: MIT
 *
 * Plain and whole pools: segments from the driver's plain allocation, for memory that is to be
 * registered, exported or shared, which mapped pages cannot be everywhere. Under the torch policy a
 * plain pool is one whose segments are never expandable. Under the unfrag policy its segments stand
 * beside the pages: nothing moves in or out of them, so what a living pool holds is frozen, and a
 * new one takes its room from what is cached in pages. */
#include "alloc/paging.h"
#include "alloc/rounding.h"
#include "alloc/take.h"
#include "alloc/trim.h"

void uf__plain_account(uf_core *core, uint32_t pool, uint64_t bytes, bool is_made)
{
    if (core->paging != NULL) {
        core->pools[pool].mapped_bytes += is_made ? bytes : -bytes;
        uf__paging_note_frozen(core);
    }
}

uf_status uf__plain_release_dead(uf_core *core)
{
    uf_status status = UF_OK;
    for (uint32_t i = 1; core->redirection_count == 0 && i < core->pool_count && status == UF_OK;
         i++) {
        const uf_pool *pool = &core->pools[i];
        if (pool->is_known && pool->is_plain && pool->use_count == 0) {
            status = uf__core_pool_empty(core, i);
        }
    }
    return status;
}

/* Gives cached pages back until a segment fits under the limit, or so many bytes of them where it
 * is the driver that has none. */
static uf_status make_room(uf_core *core, uint64_t bytes)
{
    uint64_t limit = core->limit_bytes, total = core->total_bytes;
    uint64_t room = limit != UF_UNLIMITED && total < limit ? limit - total : 0;
    uint64_t missing = room < bytes ? bytes - room : bytes;
    uint64_t cached = uf__take_cached_bytes(core), released_bytes;
    return uf__trim(core, cached > missing ? cached - missing : 0, &released_bytes);
}

static uf_status acquire_beside_pages(uf_core *core, const uf_request *request, uint32_t *block)
{
    uf_status status = uf__core_new_segment(core, request, false, block);
    if (status != UF_ERROR_OUT_OF_MEMORY) {
        return status;
    }
    uint64_t before_bytes = core->total_bytes;
    status = make_room(core, request->segment_bytes);
    if (status == UF_OK) {
        status = core->total_bytes < before_bytes
                     ? uf__core_new_segment(core, request, false, block)
                     : UF_ERROR_OUT_OF_MEMORY;
    }
    return status == UF_ERROR_OUT_OF_MEMORY ? uf__core_out_of_memory(core, request) : status;
}

uf_status uf__plain_serve(uf_core *core, uf_request *request, uint32_t *block)
{
    bool is_whole = core->pools[request->pool].is_whole;
    request->segment_bytes = is_whole
                                 ? uf__round_up_power2(request->rounded_bytes, UF_ROUND_LARGE_BYTES)
                                 : uf__segment_bytes(&core->conf, request->rounded_bytes);
    if (*block != UF_NO_BLOCK && is_whole &&
        core->blocks.items[*block].size_bytes != request->segment_bytes) {
        uf__core_shelve(core, *block); /* the smallest that is large enough is of another size */
        *block = UF_NO_BLOCK;
    }
    if (*block != UF_NO_BLOCK) {
        return UF_OK;
    }
    uf_status status = core->paging != NULL ? acquire_beside_pages(core, request, block)
                                            : uf__core_acquire(core, request, block);
    core->counters.num_cache_misses += status == UF_OK;
    return status;
}
