/* SPDX-License-Identifier: MIT
 *
 * Choosing a place. */
#include "alloc/place.h"

#include "alloc/epoch.h"
#include "alloc/take.h"

/* A large page that work may still use cannot be taken apart without waiting for it; during a
 * capture it cannot be taken apart at all. */
static const uint64_t COST_WAIT = UINT64_C(1) << 50, COST_NEVER = UINT64_C(1) << 60;

/* Shares of a cost: that of a page which is created below the limit, since every page is created
 * once; what is added where a hole would be cut into two. */
enum { GROWN_DIVISOR = 4, SPLIT_DIVISOR = 4 };

/* So many places are compared; without a limit, where holes have to stay tight, those in holes up
 * to so many times the tightest. */
enum { PRICE_LIMIT = 64, SLACK = 2 };

/* One search. */
typedef struct chooser {
    const uf_core *core;
    uint64_t size_bytes;
    uint64_t room_bytes; /* of pages that may be created */
    bool is_limited;
    uint64_t last_bound;
    uint32_t price_count; /* places looked at so far */
    uf_place best;
} chooser;

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* What it costs to get so many pages and to map them: loose ones first, then new ones. */
static uint64_t cost_of_pages(const chooser *search, const uint64_t count[UF_PAGE_SIZE_COUNT])
{
    const uf_paging *paging = search->core->paging;
    uint64_t room_bytes = search->room_bytes, cost = 0;
    for (int size = UF_PAGE_SIZE_COUNT; size-- > 0;) {
        uint64_t map = (uint64_t)paging->costs[size].map_ns;
        uint64_t loose = least(count[size], paging->loose_count[size]), rest = count[size] - loose;
        uint64_t grown = least(rest, room_bytes / paging->bytes_of[size]);
        room_bytes -= grown * paging->bytes_of[size];
        cost += loose * map + grown * map / (search->is_limited ? GROWN_DIVISOR : 1);
        cost += (rest - grown) * (map + (uint64_t)paging->costs[size].unmap_ns);
    }
    return cost;
}

/* Counts the pages that [addr, end) of a hole lacks; those that its edges cut lack too. False if
 * they are more than most_bytes: it stops there. */
static bool count_missing(const uf_core *core, const uf_block *hole, uint64_t addr, uint64_t end,
                          const uint32_t cuts[2], uint64_t most_bytes,
                          uint64_t count[UF_PAGE_SIZE_COUNT])
{
    uint64_t granule = core->paging->bytes_of[UF_PAGE_SMALL];
    uf_stretch inner = uf__pages_inner(core, hole->region, addr, end);
    uint64_t to = uf__granule_ceil(core, end), run_from = to;
    uint64_t at = uf__granule_floor(core, addr);
    if (addr == hole->addr && hole->requested_bytes > addr && cuts[1] == UF_NO_PAGE) {
        at = uf__granule_floor(core, hole->requested_bytes); /* pages up to there */
    }
    uint64_t missing_bytes = 0;
    while (at < to && missing_bytes <= most_bytes) {
        uint32_t page = uf__page_at(core, hole->region, at);
        bool is_missing = page == UF_NO_PAGE || page == cuts[0] || page == cuts[1];
        missing_bytes += is_missing ? granule : 0;
        if (is_missing && run_from > at) {
            run_from = at;
        } else if (!is_missing && run_from < at) {
            uf__pages_count(core, &(uf_stretch){hole->region, run_from, at}, &inner, count);
            run_from = to;
        }
        at += is_missing ? granule : uf__page_bytes(core, page);
    }
    if (run_from < to) {
        uf__pages_count(core, &(uf_stretch){hole->region, run_from, to}, &inner, count);
    }
    return missing_bytes <= most_bytes;
}

/* Places that lack more than so many bytes of pages cost more than the best so far. */
static uint64_t most_missing_bytes(const chooser *search)
{
    const uf_paging *paging = search->core->paging;
    uint64_t large_ns = (uint64_t)paging->costs[UF_PAGE_LARGE].map_ns;
    if (search->best.hole == UF_NO_BLOCK || large_ns == 0 || search->best.cost >= COST_WAIT) {
        return UINT64_MAX;
    }
    return (search->best.cost / large_ns + 1) * paging->bytes_of[UF_PAGE_LARGE] +
           paging->loose_bytes + search->room_bytes;
}

static uint64_t price(const chooser *search, const uf_block *hole, uint64_t addr, uint64_t end)
{
    const uf_core *core = search->core;
    uint64_t count[UF_PAGE_SIZE_COUNT] = {0, 0};
    const uint32_t cuts[2] = {uf__page_cut(core, hole->region, addr),
                              uf__page_cut(core, hole->region, end)};
    if (!count_missing(core, hole, addr, end, cuts, most_missing_bytes(search), count)) {
        return UINT64_MAX;
    }
    uint64_t cost = cost_of_pages(search, count);
    for (int i = 0; i < 2; i++) {
        if (cuts[i] != UF_NO_PAGE && (i == 0 || cuts[1] != cuts[0])) {
            cost += (uint64_t)core->paging->costs[UF_PAGE_LARGE].unmap_ns;
        }
    }
    if ((cuts[0] | cuts[1]) != UF_NO_PAGE &&
        !uf__epoch_is_done(core, core->shelves[hole->shelf]->stream, hole->age_base)) {
        cost += core->redirection_count != 0 ? COST_NEVER : COST_WAIT;
    }
    return cost;
}

static void consider(chooser *search, uint32_t index, uint64_t addr)
{
    const uf_block *hole = &search->core->blocks.items[index];
    uint64_t end = addr + search->size_bytes, hole_end = hole->addr + hole->size_bytes;
    if (addr < hole->addr || end > hole_end) {
        return;
    }
    search->price_count++;
    uint64_t cost = price(search, hole, addr, end);
    if (addr != hole->addr && end != hole_end && cost < COST_WAIT) {
        cost += cost / SPLIT_DIVISOR;
    }
    if (search->best.hole == UF_NO_BLOCK || cost < search->best.cost) {
        search->best = (uf_place){.hole = index, .addr = addr, .end = end, .cost = cost};
    }
}

/* The hole that a region ends with: all that was never placed. */
static bool is_last(const uf_core *core, const uf_block *hole)
{
    const uf_region *region = &core->regions[hole->region];
    return hole->addr + hole->size_bytes == region->addr + region->size_bytes;
}

/* A block that begins or ends at a bound. */
static void consider_bound(chooser *search, uint32_t index, uint64_t bound)
{
    if (bound != search->last_bound) {
        search->last_bound = bound;
        consider(search, index, bound);
        if (bound - search->core->blocks.items[index].addr >= search->size_bytes) {
            consider(search, index, bound - search->size_bytes);
        }
    }
}

/* Where the pages of a hole begin and end, and the large ones among them: an edge of a block there
 * cuts no page. */
static void consider_bounds(chooser *search, uint32_t index)
{
    const uf_core *core = search->core;
    const uf_block *hole = &core->blocks.items[index];
    uf_stretch run = {hole->region, hole->addr, hole->addr};
    while (search->price_count < PRICE_LIMIT &&
           uf__paging_next_run(core, &run, hole->addr + hole->size_bytes)) {
        consider_bound(search, index, run.from);
        for (uint64_t at = run.from; at < run.to && search->price_count < PRICE_LIMIT;) {
            uint32_t page = uf__page_at(core, hole->region, at);
            uint64_t next = uf__granule_floor(core, at) + uf__page_bytes(core, page);
            if (core->paging->pages[page].size == UF_PAGE_LARGE) {
                consider_bound(search, index, at);
                consider_bound(search, index, next);
            }
            at = next;
        }
        consider_bound(search, index, run.to);
    }
}

static void consider_hole(chooser *search, uint32_t index)
{
    const uf_core *core = search->core;
    const uf_block *hole = &core->blocks.items[index];
    consider(search, index, hole->addr);
    if (hole->size_bytes > search->size_bytes && search->best.cost != 0) {
        if (!is_last(core, hole)) {
            consider(search, index, hole->addr + hole->size_bytes - search->size_bytes);
        }
        if (search->is_limited && search->room_bytes < search->size_bytes) {
            consider_bounds(search, index);
        }
    }
}

uf_place uf__place_choose(const uf_core *core, const uf_shelf *shelf, uint64_t size_bytes)
{
    const uf_block *blocks = core->blocks.items;
    chooser search = {.core = core,
                      .size_bytes = size_bytes,
                      .room_bytes = uf__take_room(core),
                      .is_limited = core->limit_bytes != UF_UNLIMITED};
    uf_place *best = &search.best;
    uint32_t index = uf__freeset_at_least(&shelf->cached, blocks, size_bytes, 0);
    uint64_t tight_bytes = index == UF_NO_BLOCK ? 0 : blocks[index].size_bytes;
    while (index != UF_NO_BLOCK && search.price_count < PRICE_LIMIT) {
        if (best->hole != UF_NO_BLOCK &&
            (best->cost == 0 ||
             (!search.is_limited && blocks[index].size_bytes / SLACK > tight_bytes))) {
            break;
        }
        consider_hole(&search, index);
        index = uf__freeset_after(&shelf->cached, blocks, index);
    }
    if (best->hole != UF_NO_BLOCK && best->cost >= COST_WAIT) {
        index = uf__freeset_before(&shelf->cached, blocks, UINT64_MAX >> 1, 0);
        consider_hole(&search, index);
        best->hole = best->cost >= COST_NEVER ? UF_NO_BLOCK : best->hole;
    }
    return *best;
}
