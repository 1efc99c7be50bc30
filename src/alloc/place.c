/* SPDX-License-Identifier: MIT
 *
 * Choosing a place. */
#include "alloc/place.h"

#include "alloc/epoch.h"

/* What moving costs: a small page, a large one, taking a large page apart. Ratios of measured
 * driver times (device/cost.c), in sixteenths of a small page. */
enum { COST_SMALL = 16, COST_LARGE = 26, COST_BREAK = 24 };

/* A large page that work may still use cannot be taken apart without waiting for it; during a
 * capture it cannot be taken apart at all. */
static const uint64_t COST_WAIT = UINT64_C(1) << 40, COST_NEVER = UINT64_C(1) << 50;

/* Holes up to so many times the tightest are compared, and so many of them. */
enum { SLACK = 2, CANDIDATE_LIMIT = 32 };

static uint64_t run_cost(const uf_core *core, uint64_t from, uint64_t to, const uf_stretch *inner)
{
    uint64_t count[UF_PAGE_SIZE_COUNT] = {0, 0};
    uf__pages_count(core, &(uf_stretch){inner->region, from, to}, inner, count);
    return count[UF_PAGE_LARGE] * COST_LARGE + count[UF_PAGE_SMALL] * COST_SMALL;
}

/* What it costs that a large page would lie half inside: its part inside is mapped anew. */
static uint64_t cut_cost(const uf_core *core, const uf_block *hole, uint64_t at, bool is_start)
{
    uint32_t page = uf__page_cut(core, hole->region, at);
    if (page == UF_NO_PAGE) {
        return 0;
    }
    uint64_t page_addr = core->paging->pages[page].addr;
    uint64_t inside_bytes =
        is_start ? page_addr + uf__page_bytes(core, page) - uf__granule_floor(core, at)
                 : uf__granule_ceil(core, at) - page_addr;
    uint64_t wait = 0;
    if (!uf__epoch_is_done(core, core->shelves[hole->shelf]->stream, hole->age_base)) {
        wait = core->redirection_count != 0 ? COST_NEVER : COST_WAIT;
    }
    return wait + COST_BREAK + inside_bytes / core->paging->bytes_of[UF_PAGE_SMALL] * COST_SMALL;
}

static uint64_t price(const uf_core *core, const uf_block *hole, uint64_t addr, uint64_t end)
{
    uint64_t granule = core->paging->bytes_of[UF_PAGE_SMALL];
    uf_stretch inner = uf__pages_inner(core, hole->region, addr, end);
    uint64_t to = uf__granule_ceil(core, end), run_from = to, cost = 0;
    uint64_t at = uf__granule_floor(core, addr);
    if (addr == hole->addr && hole->requested_bytes > addr) {
        at = uf__granule_floor(core, hole->requested_bytes); /* pages up to there */
    }
    for (; at < to; at += granule) {
        bool is_missing = uf__page_at(core, hole->region, at) == UF_NO_PAGE;
        if (is_missing && run_from > at) {
            run_from = at;
        } else if (!is_missing && run_from < at) {
            cost += run_cost(core, run_from, at, &inner);
            run_from = to;
        }
    }
    if (run_from < to) {
        cost += run_cost(core, run_from, to, &inner);
    }
    return cost + cut_cost(core, hole, addr, true) + cut_cost(core, hole, end, false);
}

static void consider(const uf_core *core, uint32_t hole, uint64_t addr, uint64_t end,
                     uf_place *best)
{
    uint64_t cost = price(core, &core->blocks.items[hole], addr, end);
    if (best->hole == UF_NO_BLOCK || cost < best->cost) {
        *best = (uf_place){.hole = hole, .addr = addr, .end = end, .cost = cost};
    }
}

/* The hole that a region ends with: all that was never placed. */
static bool is_last(const uf_core *core, const uf_block *hole)
{
    const uf_region *region = &core->regions[hole->region];
    return hole->addr + hole->size_bytes == region->addr + region->size_bytes;
}

static void consider_ends(const uf_core *core, uint32_t index, uint64_t size_bytes, uf_place *best)
{
    const uf_block *hole = &core->blocks.items[index];
    uint64_t end = hole->addr + hole->size_bytes;
    consider(core, index, hole->addr, hole->addr + size_bytes, best);
    if (!is_last(core, hole) && hole->size_bytes > size_bytes && best->cost != 0) {
        consider(core, index, end - size_bytes, end, best);
    }
}

uf_place uf__place_choose(const uf_core *core, const uf_shelf *shelf, uint64_t size_bytes)
{
    const uf_block *blocks = core->blocks.items;
    uf_place best = {0};
    uint32_t index = uf__freeset_at_least(&shelf->cached, blocks, size_bytes, 0);
    uint64_t tight_bytes = index == UF_NO_BLOCK ? 0 : blocks[index].size_bytes;
    for (int i = 0; i < CANDIDATE_LIMIT && index != UF_NO_BLOCK; i++) {
        const uf_block *hole = &blocks[index];
        if (best.hole != UF_NO_BLOCK &&
            (best.cost == 0 || is_last(core, hole) || hole->size_bytes / SLACK > tight_bytes)) {
            break;
        }
        consider_ends(core, index, size_bytes, &best);
        index = uf__freeset_after(&shelf->cached, blocks, index);
    }
    if (best.hole != UF_NO_BLOCK && best.cost >= COST_WAIT) {
        index = uf__freeset_before(&shelf->cached, blocks, UINT64_MAX >> 1, 0);
        consider_ends(core, index, size_bytes, &best);
        best.hole = best.cost >= COST_NEVER ? UF_NO_BLOCK : best.hole;
    }
    return best;
}
