/* SPDX-License-Identifier: MIT
 *
 * The chain of the `unfrag` policy: choose a place, see to it that there are pages everywhere
 * under it, hand it out. */
#include "alloc/hole.h"
#include "alloc/place.h"
#include "alloc/shadow.h"
#include "alloc/take.h"
#include "base/size.h"

/* Address space of a region, in devices: holes that no request fits stay behind, so it must be far
 * larger than what can be mapped at once. */
enum { DEVICES_PER_REGION = 4 }; /* of the default pool; of a private pool half as much */

bool uf__paged_is_ready(const uf_core *core, const uf_request *request, uint32_t index)
{
    const uf_block *hole = &core->blocks.items[index];
    uint64_t end = hole->addr + request->rounded_bytes;
    return end <= hole->requested_bytes && (request->pool_class == UF_CLASS_SMALL ||
                                            uf__page_cut(core, hole->region, end) == UF_NO_PAGE);
}

void uf__paged_freed(uf_core *core, uint32_t index, uint64_t backed_end)
{
    uf_block *hole = &core->blocks.items[index];
    hole->requested_bytes = backed_end;
    hole->age_base = ++core->paging->free_sequence;
    core->paging->last_free[core->shelves[hole->shelf]->stream] = hole->age_base;
}

uint64_t uf__paged_backed_end(const uf_core *core, uint32_t index)
{
    const uf_block *blocks = core->blocks.items, *block = &blocks[index];
    const uf_block *prev = &blocks[block->prev], *next = &blocks[block->next];
    if (block->prev != UF_NO_BLOCK && prev->life == UF_LIFE_FREE &&
        prev->requested_bytes < block->addr) {
        return prev->requested_bytes;
    }
    return block->next != UF_NO_BLOCK && next->life == UF_LIFE_FREE ? next->requested_bytes
                                                                    : uf__block_end(block);
}

/* The next stretch of [*at, to) without pages; false if there is none. */
static bool next_gap(const uf_core *core, uint32_t region, uint64_t *at, uint64_t to,
                     uf_stretch *gap)
{
    uint64_t granule = core->paging->bytes_of[UF_PAGE_SMALL], from = *at;
    while (from < to && uf__page_at(core, region, from) != UF_NO_PAGE) {
        from += granule;
    }
    uint64_t end = from;
    while (end < to && uf__page_at(core, region, end) == UF_NO_PAGE) {
        end += granule;
    }
    *gap = (uf_stretch){region, from, end};
    *at = end;
    return from < end;
}

/* Takes a large page out that an edge of the block would cut; work that may still use it has to be
 * waited for, since other pages come to the same addresses. */
static uf_status take_apart(uf_core *core, uint32_t index, uint64_t edge)
{
    uf_block *hole = &core->blocks.items[index];
    uint32_t region = hole->region, page = uf__page_cut(core, region, edge);
    if (page == UF_NO_PAGE) {
        return UF_OK;
    }
    uf_status status = uf__epoch_wait(core, core->shelves[hole->shelf]->stream, hole->age_base);
    if (status != UF_OK) {
        return status;
    }
    uint64_t addr = core->paging->pages[page].addr;
    core->paging->moved_count++;
    return uf__pages_unmap(core, &(uf_stretch){region, addr, addr + uf__page_bytes(core, page)});
}

/* Sees to it that [addr, end) has pages. It is in no hole that is in a set, and no edge of it cuts
 * a large page. */
static uf_status back(uf_core *core, uint32_t index, uint64_t addr, uint64_t end)
{
    const uf_block *block = &core->blocks.items[index];
    uint32_t region = block->region, stream = core->shelves[block->shelf]->stream;
    uf_stretch inner = uf__pages_inner(core, region, addr, end);
    uint64_t to = uf__granule_ceil(core, end), count[UF_PAGE_SIZE_COUNT] = {0, 0};
    uf_stretch gap, whole = {region, uf__granule_floor(core, addr), to};
    uf_status status = uf__pages_open(core, &whole);
    if (status != UF_OK) {
        return status;
    }
    for (uint64_t at = uf__granule_floor(core, addr); next_gap(core, region, &at, to, &gap);) {
        uf__pages_count(core, &gap, &inner, count);
    }
    if ((count[UF_PAGE_SMALL] | count[UF_PAGE_LARGE]) != 0) {
        status = uf__take_pages(core, stream, count[UF_PAGE_LARGE], count[UF_PAGE_SMALL]);
    }
    for (uint64_t at = uf__granule_floor(core, addr);
         status == UF_OK && next_gap(core, region, &at, to, &gap);) {
        status = uf__pages_map(core, &gap, &inner);
    }
    return status;
}

/* Under a limit pages that are left over wait for the next request: creating them again costs more.
 * Those that work may still use at an old address would make it wait. */
static bool can_keep_loose(const uf_core *core)
{
    return core->limit_bytes != UF_UNLIMITED && !uf__paging_has_shadowed_loose(core);
}

static uf_status occupy(uf_core *core, const uf_place *place, uint32_t *block)
{
    if (!uf__block_reserve(&core->blocks, UF_BLOCKS_PER_REQUEST)) {
        return UF_ERROR_HOST_MEMORY;
    }
    uf_status status = take_apart(core, place->hole, place->addr);
    if (status == UF_OK) {
        status = take_apart(core, place->hole, place->end);
    }
    uf__hole_renew(core, &core->blocks.items[place->hole]);
    if (status == UF_OK) {
        uint32_t index = uf__hole_cut_out(core, place->hole, place->addr, place->end);
        core->blocks.items[index].life = UF_LIFE_ALLOCATED;
        status = back(core, index, place->addr, place->end);
        if (status == UF_OK) {
            *block = index;
        } else {
            uf__hole_put(core, index);
        }
    }
    if (core->paging->loose_bytes != 0 && (status != UF_OK || !can_keep_loose(core))) {
        (void)!uf__take_undo(
            core); /* what cannot be given back stays loose, for the next request */
    }
    return status;
}

static uf_status region_create(uf_core *core, const uf_request *request)
{
    uint64_t granule = core->paging->bytes_of[UF_PAGE_SMALL], bytes;
    uint64_t devices =
        request->pool == UF_DEFAULT_POOL ? DEVICES_PER_REGION : DEVICES_PER_REGION / 2;
    uint32_t head;
    if (core->device_total_bytes > UINT64_MAX / (2 * DEVICES_PER_REGION) ||
        !uf__round_up_checked(core->device_total_bytes * devices, granule, &bytes) ||
        bytes < request->rounded_bytes) {
        return UF_ERROR_OUT_OF_MEMORY; /* more than the device has */
    }
    uf_status status = uf__paged_sweep(core);
    if (status != UF_OK) {
        return status;
    }
    return uf__block_reserve(&core->blocks, UF_BLOCKS_PER_REQUEST)
               ? uf__region_create(core, request->shelf, granule, bytes, &head)
               : UF_ERROR_HOST_MEMORY;
}

/* Marks where the streams are, so that what the device has caught up with is known to be idle. */
static uf_status look_around(uf_core *core)
{
    uf_status status = uf__epoch_poll(core);
    if (status == UF_OK) {
        status = uf__epoch_close(core);
    }
    if (status == UF_OK) {
        status = uf__epoch_poll(core);
    }
    return status == UF_OK ? uf__shadow_clear(core) : status;
}

static uf_status try_place(uf_core *core, const uf_request *request, uint32_t *block)
{
    const uf_shelf *shelf = core->shelves[request->shelf];
    uf_place place = uf__place_choose(core, shelf, request->rounded_bytes);
    if (place.hole == UF_NO_BLOCK) {
        uf_status status = region_create(core, request);
        if (status != UF_OK) {
            return status;
        }
        place = uf__place_choose(core, shelf, request->rounded_bytes);
    }
    return occupy(core, &place, block);
}

static void note_want(uf_core *core, uint64_t bytes)
{
    uf_paging *paging = core->paging;
    uint64_t active_bytes =
        (uint64_t)uf__counter_all(&core->counters, UF_COUNTER_ACTIVE_BYTES) + bytes;
    if (paging->peak_active_bytes == 0 && core->device->clock_ns != NULL) {
        paging->start_ns = core->device->clock_ns(core->device->context);
    }
    if (active_bytes > paging->peak_active_bytes) {
        paging->peak_active_bytes = active_bytes;
    }
}

uf_status uf__paged_acquire(uf_core *core, const uf_request *request, uint32_t *block)
{
    if (*block != UF_NO_BLOCK) {
        uf__core_shelve(core, *block);
    }
    note_want(core, request->rounded_bytes);
    core->paging->is_looked_up = false;
    uf_status status = look_around(core);
    if (status == UF_OK) {
        status = try_place(core, request, block);
    }
    if (status == UF_ERROR_OUT_OF_MEMORY) {
        uint64_t before_bytes = core->total_bytes;
        status = uf__plain_release_dead(core);
        if (status == UF_OK) {
            status = core->total_bytes < before_bytes ? try_place(core, request, block)
                                                      : UF_ERROR_OUT_OF_MEMORY;
        }
    }
    if (status == UF_ERROR_OUT_OF_MEMORY && core->redirection_count == 0 &&
        (core->pending.first | core->deferred.first) != 0) {
        core->counters.num_alloc_retries++;
        status = uf__pending_complete_all(core, UF_ANY_POOL);
        if (status == UF_OK) {
            status = try_place(core, request, block);
        }
    }
    return status == UF_ERROR_OUT_OF_MEMORY ? uf__core_out_of_memory(core, request) : status;
}

static uf_status reserve(uf_core *core, const uf_request *request)
{
    uint32_t index = UF_NO_BLOCK;
    uf_status status = try_place(core, request, &index);
    if (status == UF_OK) {
        /* As if it was freed just now: work may still be queued on pages that it got. */
        uf_block *block = &core->blocks.items[index];
        block->age_base = ++core->paging->free_sequence;
        core->paging->last_free[core->shelves[block->shelf]->stream] = block->age_base;
        uf__hole_put(core, index);
    }
    return status;
}

uf_status uf__paged_reserve(uf_core *core, const uf_request *request)
{
    uint32_t index = uf__core_find(core, request, request->shelf);
    bool is_ready = index != UF_NO_BLOCK && uf__paged_is_ready(core, request, index);
    if (index != UF_NO_BLOCK) {
        uf__core_shelve(core, index);
    }
    if (is_ready) {
        return UF_OK;
    }
    uf_status status = look_around(core);
    if (status == UF_OK && core->limit_bytes != UF_UNLIMITED &&
        uf__take_available_bytes(core) < request->rounded_bytes) {
        return UF_ERROR_OUT_OF_MEMORY; /* before anything moves */
    }
    core->paging->is_reserving = true;
    core->paging->is_looked_up = false;
    status = status == UF_OK ? reserve(core, request) : status;
    core->paging->is_reserving = false;
    return status;
}

/* Whether a hole is a whole region in which nothing is mapped. */
static bool is_empty_region(const uf_core *core, uint32_t index)
{
    const uf_block *hole = &core->blocks.items[index];
    uf_stretch run = {hole->region, hole->addr, hole->addr};
    return !uf__block_is_split(hole) && !uf__paging_next_run(core, &run, uf__block_end(hole));
}

uf_status uf__paged_release(uf_core *core, uint32_t index)
{
    uf_block *hole = &core->blocks.items[index];
    uf_status waited = uf__epoch_wait(core, core->shelves[hole->shelf]->stream, hole->age_base);
    if (waited != UF_OK) {
        return waited == UF_ERROR_BUSY ? UF_OK : waited;
    }
    uf_stretch run = {hole->region, 0, uf__granule_ceil(core, hole->addr)};
    uint64_t to = uf__granule_floor(core, uf__block_end(hole));
    uf_status status = UF_OK;
    while (status == UF_OK && uf__paging_next_run(core, &run, to)) {
        status = uf__pages_unmap(core, &run);
    }
    uf__hole_renew(core, hole);
    uf_status undone = uf__take_undo(core);
    status = status == UF_OK ? undone : status;
    return status == UF_OK && is_empty_region(core, index) ? uf__region_destroy(core, index)
                                                           : status;
}

uf_status uf__paged_sweep(uf_core *core)
{
    uf_status status = UF_OK;
    for (uint32_t i = 1; i < core->blocks.count && status == UF_OK; i++) {
        const uf_block *block = &core->blocks.items[i];
        if (block->life == UF_LIFE_FREE && block->region != 0 && is_empty_region(core, i)) {
            uint32_t pool = core->shelves[block->shelf]->pool;
            status = uf__region_destroy(core, i);
            if (pool != UF_DEFAULT_POOL && core->pools[pool].use_count == 0) {
                uf__pool_forget(core, pool);
            }
        }
    }
    return status;
}
