/* SPDX-License-Identifier: MIT
 *
 * The largest cached block and the largest request. */
#include "alloc/largest.h"

#include "alloc/parts.h"
#include "alloc/rounding.h"
#include "alloc/take.h"

static uint32_t last_free(const uf_core *core, const uf_shelf *shelf)
{
    return shelf->cached.count == 0
               ? UF_NO_BLOCK
               : uf__freeset_before(&shelf->cached, core->blocks.items, UINT64_MAX, UINT64_MAX);
}

uint64_t uf__largest_block_bytes(const uf_core *core, uint32_t pool, int pool_class,
                                 uint32_t stream)
{
    if (core->paging != NULL) {
        return uf__take_available_bytes(core); /* pages go where they are wanted */
    }
    const uf_pool_class *of = &core->pools[pool].classes[pool_class];
    if (stream >= of->stream_capacity || of->shelf_of_stream[stream] == 0) {
        return 0;
    }
    uint32_t index = last_free(core, core->shelves[of->shelf_of_stream[stream] - 1]);
    return index == UF_NO_BLOCK ? 0 : core->blocks.items[index].size_bytes;
}

/* The largest request of a class whose block size is at most size_bytes; 0 = none. */
static uint64_t request_for(const uf_conf *conf, int pool_class, uint64_t size_bytes)
{
    uint64_t bytes = size_bytes < UF_REQUEST_LIMIT_BYTES ? size_bytes : UF_REQUEST_LIMIT_BYTES - 1;
    if (pool_class == UF_CLASS_SMALL && bytes > UF_SMALL_MAX_BYTES) {
        bytes = UF_SMALL_MAX_BYTES;
    }
    bytes = uf__round_down_power2(bytes, UF_MIN_BLOCK_BYTES);
    if (bytes > 0 && uf__round_request(conf, bytes) > bytes) {
        /* Only divisions round a multiple of 512 up; the step below the result is the answer. */
        uint64_t divisions = conf->roundup_power2_divisions[uf__division_index(bytes)];
        unsigned log2 = uf__floor_log2(bytes), divisions_log2 = uf__floor_log2(divisions);
        unsigned step_log2 = divisions_log2 < log2 ? log2 - divisions_log2 : log2;
        bytes = uf__round_down_power2(bytes, UINT64_C(1) << step_log2);
    }
    return pool_class == UF_CLASS_LARGE && bytes <= UF_SMALL_MAX_BYTES ? 0 : bytes;
}

/* Blocks from the largest down. A block that the search refuses for its largest request, it refuses
 * for all that only this block could serve. */
static uint64_t largest_of_shelf(const uf_core *core, const uf_shelf *shelf)
{
    const uf_block *blocks = core->blocks.items;
    uint32_t index = last_free(core, shelf);
    while (index != UF_NO_BLOCK) {
        uint64_t bytes = request_for(&core->conf, shelf->pool_class, blocks[index].size_bytes);
        if (bytes == 0) {
            return 0;
        }
        uint64_t rounded_bytes = uf__round_request(&core->conf, bytes);
        if (uf__core_search(core, shelf, rounded_bytes, uf__core_can_expand(core, shelf->pool)) !=
            UF_NO_BLOCK) {
            return bytes;
        }
        index = uf__freeset_before(&shelf->cached, blocks, blocks[index].size_bytes,
                                   blocks[index].addr);
    }
    return 0;
}

uint64_t uf__largest_request_bytes(const uf_core *core)
{
    uint64_t largest_bytes = 0;
    if (core->paging != NULL) {
        return uf__take_available_bytes(core);
    }
    for (uint32_t i = 1; i < core->shelf_count; i++) {
        uint64_t bytes = core->shelves[i] == NULL ? 0 : largest_of_shelf(core, core->shelves[i]);
        largest_bytes = bytes > largest_bytes ? bytes : largest_bytes;
    }
    return largest_bytes;
}
