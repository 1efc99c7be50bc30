/* SPDX-License-Identifier: MIT
 *
 * Pages: creating, mapping, unmapping, giving back. */
#include "alloc/paging.h"

#include <stdlib.h>
#include <string.h>

#include "alloc/give_back.h"
#include "alloc/shadow.h"
#include "device/cost.h"

/* Loose pages count as reserved by this class. */
enum { UF_LOOSE_CLASS = UF_CLASS_LARGE };

uf_status uf__paging_init(uf_core *core, uint64_t granule_bytes, uint64_t large_bytes)
{
    core->paging = calloc(1, sizeof *core->paging);
    if (core->paging == NULL) {
        return UF_ERROR_HOST_MEMORY;
    }
    core->paging->bytes_of[UF_PAGE_SMALL] = granule_bytes;
    core->paging->bytes_of[UF_PAGE_LARGE] = large_bytes;
    for (int size = 0; size < UF_PAGE_SIZE_COUNT; size++) {
        uint64_t bytes = core->paging->bytes_of[size];
        uf_page_cost *cost = &core->paging->costs[size];
        uf__cost_page(uf__cost_table(UF_COST_H200), bytes, cost);
        if (core->device->page_cost != NULL) {
            uf_status status = core->device->page_cost(core->device->context, bytes, cost);
            if (status != UF_OK) {
                free(core->paging);
                core->paging = NULL;
                return status;
            }
        }
    }
    return UF_OK;
}

static uf_region *region_of(uf_core *core, uint64_t addr)
{
    uint32_t i = 1;
    while (addr < core->regions[i].addr ||
           addr - core->regions[i].addr >= core->regions[i].size_bytes) {
        i++; /* every mapped page lies in one */
    }
    return &core->regions[i];
}

/* What a stream that could not be waited for may still use stays mapped. */
static void unmap_last(uf_core *core, uint64_t addr, uint64_t bytes, uint64_t handle_count)
{
    uf_region *region = region_of(core, addr);
    bool is_lost = core->paging->epochs[core->shelves[region->shelf]->stream].is_lost;
    if (is_lost || !uf__mapping_give_back(core->device, addr, bytes, handle_count)) {
        region->is_stuck = true;
    }
}

/* A page of 2 MiB, by the measured driver times (device/cost.c), and some. */
static const int64_t MOVE_NS = 50000;
enum { SOFT_PERCENT = 105 };

void uf__paging_settings(uf_core *core, const uf_core_config *config)
{
    uf_paging *paging = core->paging;
    const uf_page_cost *costs = config->page_costs;
    paging->headroom_bytes = config->headroom_bytes;
    paging->is_every_stream_watched = config->is_every_stream_watched;
    paging->is_limit_spared = config->is_limit_spared;
    paging->soft_percent = config->soft_percent == 0 ? SOFT_PERCENT : config->soft_percent;
    paging->tight_percent = 100 + (paging->soft_percent - 100) * 2 / 5;
    paging->move_ns =
        costs == NULL ? MOVE_NS : costs[UF_PAGE_SMALL].unmap_ns + costs[UF_PAGE_SMALL].map_ns;
    paging->move_ns = paging->move_ns <= 0 ? 1 : paging->move_ns;
    for (int size = 0; size < UF_PAGE_SIZE_COUNT && costs != NULL; size++) {
        paging->costs[size] = costs[size];
    }
}

void uf__paging_fini(uf_core *core)
{
    if (core->paging == NULL) {
        return;
    }
    uf__epoch_end(core);
    for (uint32_t i = 0; i < core->paging->shadow_count; i++) {
        const uf_shadow *shadow = &core->paging->shadows[i];
        const uf_block *block = &core->blocks.items[shadow->block];
        unmap_last(core, block->addr, block->size_bytes, shadow->page_count);
    }
    for (uint32_t i = 1; i < core->paging->page_count; i++) {
        const uf_page *page = &core->paging->pages[i];
        uint64_t bytes = core->paging->bytes_of[page->size];
        if (page->is_there && !page->is_loose) {
            unmap_last(core, page->addr, bytes, 1);
        }
        if (page->is_there) {
            (void)uf__handle_give_back(core->device, page->handle, bytes);
        }
    }
    for (uint32_t i = 0; i < core->paging->shadow_count; i++) {
        free(core->paging->shadows[i].pages);
    }
    free(core->paging->shadows);
    free(core->paging->epochs);
    free(core->paging->last_free);
    free(core->paging->pages);
    free(core->paging);
    core->paging = NULL;
}

bool uf__paging_stream(uf_core *core, uint32_t stream)
{
    uf_paging *paging = core->paging;
    if (!uf__list_reserve((void **)&paging->epochs, &paging->epochs_capacity,
                          sizeof *paging->epochs, stream + 1) ||
        !uf__list_reserve((void **)&paging->last_free, &paging->last_free_capacity,
                          sizeof *paging->last_free, stream + 1)) {
        return false;
    }
    paging->stream_count = paging->stream_count > stream ? paging->stream_count : stream + 1;
    return true;
}

static void loosen(uf_paging *paging, uint32_t index)
{
    uf_page *page = &paging->pages[index];
    page->is_loose = true;
    page->next = paging->loose[page->size];
    paging->loose[page->size] = index;
    paging->loose_count[page->size]++;
    paging->loose_bytes += paging->bytes_of[page->size];
}

static uint32_t take_loose(uf_paging *paging, uf_page_size size)
{
    uint32_t index = paging->loose[size];
    paging->loose[size] = paging->pages[index].next;
    paging->loose_count[size]--;
    paging->loose_bytes -= paging->bytes_of[size];
    paging->pages[index].is_loose = false;
    return index;
}

bool uf__paging_has_shadowed_loose(const uf_core *core)
{
    const uf_paging *paging = core->paging;
    for (int size = 0; size < UF_PAGE_SIZE_COUNT && paging->shadow_count != 0; size++) {
        for (uint32_t i = paging->loose[size]; i != UF_NO_PAGE; i = paging->pages[i].next) {
            if (paging->pages[i].shadow_count != 0) {
                return true;
            }
        }
    }
    return false;
}

uf_status uf__page_create(uf_core *core, uf_page_size size)
{
    uf_paging *paging = core->paging;
    uint32_t index = paging->page_vacant;
    if (index == UF_NO_PAGE) {
        index = paging->page_count == 0 ? 1 : paging->page_count;
        if (!uf__list_reserve((void **)&paging->pages, &paging->page_capacity,
                              sizeof *paging->pages, index + 1)) {
            return UF_ERROR_HOST_MEMORY;
        }
    }
    uint64_t handle;
    uf_status status =
        core->device->handle_create(core->device->context, paging->bytes_of[size], &handle);
    if (status != UF_OK) {
        return status == UF_ERROR_DEVICE_MEMORY ? UF_ERROR_OUT_OF_MEMORY
                                                : uf__core_device_failed(core, status);
    }
    if (index == paging->page_vacant) {
        paging->page_vacant = paging->pages[index].next;
    } else {
        paging->page_count = index + 1;
    }
    paging->pages[index] = (uf_page){.handle = handle, .size = (uint8_t)size, .is_there = true};
    loosen(paging, index);
    core->total_bytes += paging->bytes_of[size];
    uf__counter_increase(&core->counters, UF_COUNTER_RESERVED_BYTES, UF_LOOSE_CLASS,
                         paging->bytes_of[size]);
    core->counters.num_device_alloc++;
    return UF_OK;
}

uf_status uf__page_destroy(uf_core *core, uf_page_size size)
{
    uf_paging *paging = core->paging;
    uf_status status = UF_OK;
    if (paging->pages[paging->loose[size]].shadow_count != 0) {
        status = uf__shadow_settle_loose(core); /* or the driver would keep the memory */
    }
    if (status != UF_OK) {
        return status;
    }
    uint32_t index = take_loose(paging, size);
    uf_page *page = &paging->pages[index];
    status =
        core->device->handle_release(core->device->context, page->handle, paging->bytes_of[size]);
    if (status != UF_OK) {
        loosen(paging, index);
        return uf__core_device_failed(core, status);
    }
    *page = (uf_page){.next = paging->page_vacant};
    paging->page_vacant = index;
    core->total_bytes -= paging->bytes_of[size];
    uf__counter_decrease(&core->counters, UF_COUNTER_RESERVED_BYTES, UF_LOOSE_CLASS,
                         paging->bytes_of[size]);
    core->counters.num_device_free++;
    core->release_sequence_count++;
    return UF_OK;
}

static void note(uf_region *region, uint64_t addr, uint64_t bytes, uint32_t page)
{
    uint64_t first = (addr - region->addr) / region->page_bytes;
    for (uint64_t i = 0; i < bytes / region->page_bytes; i++) {
        region->pages[first + i] = page;
    }
}

/* Moves reserved bytes from one class's counter to another's. */
static void reserve(uf_core *core, int to_class, int from_class, uint64_t bytes)
{
    if (to_class != from_class) {
        uf__counter_decrease(&core->counters, UF_COUNTER_RESERVED_BYTES, from_class, bytes);
        uf__counter_increase(&core->counters, UF_COUNTER_RESERVED_BYTES, to_class, bytes);
    }
}

uint64_t uf__paging_frozen_bytes(const uf_core *core)
{
    uint64_t bytes = 0;
    for (uint32_t i = 1; i < core->pool_count; i++) {
        bool is_alive = core->pools[i].is_known && core->pools[i].use_count > 0;
        bytes += is_alive ? core->pools[i].mapped_bytes : 0;
    }
    return bytes;
}

void uf__paging_note_frozen(uf_core *core)
{
    uint64_t frozen_bytes = uf__paging_frozen_bytes(core);
    if (frozen_bytes > core->paging->peak_frozen_bytes) {
        core->paging->peak_frozen_bytes = frozen_bytes;
    }
}

static void account(uf_core *core, const uf_stretch *stretch, bool is_mapped)
{
    const uf_shelf *shelf = core->shelves[core->regions[stretch->region].shelf];
    uint64_t bytes = stretch->to - stretch->from;
    reserve(core, is_mapped ? shelf->pool_class : UF_LOOSE_CLASS,
            is_mapped ? UF_LOOSE_CLASS : shelf->pool_class, bytes);
    if (shelf->pool != UF_DEFAULT_POOL) {
        core->pools[shelf->pool].mapped_bytes += is_mapped ? bytes : -bytes;
        uf__paging_note_frozen(core);
    }
    uf__emit(core, is_mapped ? UF_ACTION_SEGMENT_MAP : UF_ACTION_SEGMENT_UNMAP, stretch->from,
             bytes, uf__shelf_stream(core, shelf));
}

/* A block below so many large pages gets small ones: it is more often cut than moved whole. */
enum { LARGE_PAGES_AT_LEAST = 2 };

uf_stretch uf__pages_inner(const uf_core *core, uint32_t region, uint64_t addr, uint64_t end)
{
    /* A captured graph may write to any address of a private pool that ever had a page, so none
     * may lose it for a moment: no page there may be one that an edge could cut. */
    const uf_shelf *shelf = core->shelves[core->regions[region].shelf];
    bool is_worth_it = shelf->pool == UF_DEFAULT_POOL && shelf->pool_class == UF_CLASS_LARGE &&
                       end - addr >= LARGE_PAGES_AT_LEAST * core->paging->bytes_of[UF_PAGE_LARGE];
    return (uf_stretch){region, uf__granule_ceil(core, addr),
                        is_worth_it ? uf__granule_floor(core, end) : uf__granule_ceil(core, addr)};
}

void uf__pages_count(const uf_core *core, const uf_stretch *stretch, const uf_stretch *inner,
                     uint64_t count[UF_PAGE_SIZE_COUNT])
{
    const uint64_t *bytes_of = core->paging->bytes_of;
    uint64_t low = stretch->from > inner->from ? stretch->from : inner->from;
    uint64_t high = stretch->to < inner->to ? stretch->to : inner->to;
    uint64_t large = high > low ? (high - low) / bytes_of[UF_PAGE_LARGE] : 0;
    count[UF_PAGE_LARGE] += large;
    count[UF_PAGE_SMALL] +=
        (stretch->to - stretch->from - large * bytes_of[UF_PAGE_LARGE]) / bytes_of[UF_PAGE_SMALL];
}

static void close(uf_core *core, const uf_stretch *stretch)
{
    for (uint64_t addr = stretch->from; addr < stretch->to;) {
        uint32_t page = uf__page_at(core, stretch->region, addr);
        core->paging->closed_count += !core->paging->pages[page].is_closed;
        core->paging->pages[page].is_closed = true;
        addr += uf__page_bytes(core, page);
    }
}

static void open_page(uf_paging *paging, uint32_t page)
{
    paging->closed_count -= paging->pages[page].is_closed;
    paging->pages[page].is_closed = false;
}

uf_status uf__pages_open(uf_core *core, const uf_stretch *stretch)
{
    uint64_t granule = core->paging->bytes_of[UF_PAGE_SMALL];
    for (uint64_t at = stretch->from; core->paging->closed_count != 0 && at < stretch->to;
         at += granule) {
        uint32_t page = uf__page_at(core, stretch->region, at);
        if (page == UF_NO_PAGE || !core->paging->pages[page].is_closed) {
            continue;
        }
        uf_status status = core->device->range_access(
            core->device->context, core->paging->pages[page].addr, uf__page_bytes(core, page), 1);
        if (status != UF_OK) {
            return uf__core_device_failed(core, status);
        }
        open_page(core->paging, page);
    }
    return UF_OK;
}

uf_status uf__pages_map(uf_core *core, const uf_stretch *stretch, const uf_stretch *inner)
{
    uf_paging *paging = core->paging;
    uf_region *region = &core->regions[stretch->region];
    const uf_device *device = core->device;
    uint64_t from = stretch->from, to = stretch->to, count = 0, addr = from;
    uint64_t large_to = inner->to < to ? inner->to : to;
    if (!uf__list_reserve((void **)&region->pages, &region->page_capacity, sizeof *region->pages,
                          (uint32_t)((to - region->addr) / region->page_bytes))) {
        return UF_ERROR_HOST_MEMORY;
    }
    uf_status status = UF_OK;
    while (addr < to && status == UF_OK) {
        bool is_large = paging->loose_count[UF_PAGE_LARGE] != 0 && addr >= inner->from &&
                        addr + paging->bytes_of[UF_PAGE_LARGE] <= large_to;
        uint32_t page = take_loose(paging, is_large ? UF_PAGE_LARGE : UF_PAGE_SMALL);
        uint64_t bytes = uf__page_bytes(core, page);
        status = device->handle_map(device->context, addr, paging->pages[page].handle, bytes);
        if (status != UF_OK) {
            loosen(paging, page);
            break;
        }
        paging->pages[page].addr = addr;
        note(region, addr, bytes, page);
        addr += bytes;
        count++;
    }
    if (status == UF_OK) {
        status = device->range_access(device->context, from, to - from, count);
    }
    if (status == UF_OK) {
        account(core, stretch, true);
        return UF_OK;
    }
    if (addr > from) {
        uf_stretch mapped = {stretch->region, from, addr};
        account(core, &mapped, true); /* what cannot be unmapped stays, as a part of the hole */
        if (uf__pages_unmap(core, &mapped) != UF_OK) {
            close(core, &mapped);
        }
    }
    return uf__core_device_failed(core, status);
}

bool uf__paging_next_run(const uf_core *core, uf_stretch *run, uint64_t end)
{
    const uf_region *region = &core->regions[run->region];
    uint64_t granule = region->page_bytes;
    uint64_t known_to = region->addr + (uint64_t)region->page_capacity * granule;
    end = end < known_to ? end : known_to;
    uint64_t from = run->to;
    while (from < end && uf__page_at(core, run->region, from) == UF_NO_PAGE) {
        from = uf__granule_floor(core, from) + granule;
    }
    uint64_t to = from;
    while (to < end && uf__page_at(core, run->region, to) != UF_NO_PAGE) {
        to = uf__granule_floor(core, to) + granule;
    }
    run->from = from;
    run->to = to < end ? to : end;
    return from < end;
}

void uf__pages_lift(uf_core *core, const uf_stretch *stretch)
{
    uf_region *region = &core->regions[stretch->region];
    for (uint64_t addr = stretch->from; addr < stretch->to;) {
        uint32_t page = uf__page_at(core, stretch->region, addr);
        uint64_t bytes = uf__page_bytes(core, page);
        note(region, addr, bytes, UF_NO_PAGE);
        open_page(core->paging, page);
        loosen(core->paging, page);
        addr += bytes;
    }
    account(core, stretch, false);
}

uf_status uf__pages_unmap(uf_core *core, const uf_stretch *stretch)
{
    uint64_t count = 0;
    for (uint64_t addr = stretch->from; addr < stretch->to; count++) {
        addr += uf__page_bytes(core, uf__page_at(core, stretch->region, addr));
    }
    uf_status status = core->device->range_unmap(core->device->context, stretch->from,
                                                 stretch->to - stretch->from, count);
    if (status != UF_OK) {
        return uf__core_device_failed(core, status);
    }
    uf__pages_lift(core, stretch);
    return UF_OK;
}
