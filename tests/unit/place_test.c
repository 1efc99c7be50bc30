/* SPDX-License-Identifier: MIT
 *
 * Where a block goes: each rule of the choice by itself (docs/internals/unfrag-policy.md,
 * "Placement"). */
#include "alloc/place.h"

#include "alloc/epoch.h"
#include "unit/paging_bench.h"

enum { HOLES_MAX = 8 };

/* Holes of so many granules, all of stream 0, between blocks that stay. They are freed in order. */
static void make_holes(paging_bench *b, const uint64_t *granules, uint32_t count, uint32_t *holes)
{
    (void)paging_take(b, GRANULE, 0);
    for (uint32_t i = 0; i < count; i++) {
        holes[i] = paging_take(b, granules[i] * GRANULE, 0);
        (void)paging_take(b, GRANULE, 0);
    }
    for (uint32_t i = 0; i < count; i++) {
        paging_give(b, holes[i]);
    }
}

static uint64_t addr_of(const paging_bench *b, uint32_t index)
{
    return b->core.blocks.items[index].addr;
}

static uf_place choose(const paging_bench *b, uint32_t any, uint64_t bytes)
{
    return uf__place_choose(&b->core, paging_shelf(b, any), bytes);
}

/* Takes the pages of granules [from, to) of a hole away, for good. */
static void empty(paging_bench *b, uint32_t index, uint64_t from, uint64_t to)
{
    uf_block *hole = &b->core.blocks.items[index];
    const uf_stretch stretch = {hole->region, hole->addr + from * GRANULE,
                                hole->addr + to * GRANULE};
    ck_assert_int_eq(uf__pages_unmap(&b->core, &stretch), UF_OK);
    uf__hole_renew(&b->core, hole);
    while (b->core.paging->loose_count[UF_PAGE_SMALL] != 0) {
        ck_assert_int_eq(uf__page_destroy(&b->core, UF_PAGE_SMALL), UF_OK);
    }
    paging_check(b);
}

static void settle(paging_bench *b)
{
    ck_assert_int_eq(uf__epoch_close(&b->core), UF_OK);
    uf__sim_synchronize(&b->sim);
    ck_assert_int_eq(uf__epoch_poll(&b->core), UF_OK);
}

START_TEST(of_holes_that_cost_the_same_the_tightest_wins)
{
    for (uint64_t limit = 0; limit <= 256 * MIB; limit += 256 * MIB) {
        static const uint64_t granules[] = {6, 4, 7};
        paging_bench b;
        uint32_t holes[HOLES_MAX];
        paging_init(&b, limit);
        make_holes(&b, granules, 3, holes);
        uf_place place = choose(&b, holes[0], 4 * GRANULE);
        ck_assert_uint_eq(place.hole, holes[1]);
        ck_assert_uint_eq(place.cost, 0);
        place = choose(&b, holes[0], 5 * GRANULE);
        ck_assert_uint_eq(place.hole, holes[0]);
        ck_assert_uint_eq(place.addr, addr_of(&b, holes[0]));
        ck_assert_uint_eq(place.end, addr_of(&b, holes[0]) + 5 * GRANULE);
        paging_fini(&b);
    }
}
END_TEST

START_TEST(pages_that_are_there_outweigh_a_tighter_hole)
{
    static const uint64_t granules[] = {4, 6};
    paging_bench b;
    uint32_t holes[HOLES_MAX];
    paging_init(&b, 256 * MIB);
    make_holes(&b, granules, 2, holes);
    empty(&b, holes[0], 1, 4);
    uf_place place = choose(&b, holes[0], 4 * GRANULE);
    ck_assert_uint_eq(place.hole, holes[1]);
    ck_assert_uint_eq(place.cost, 0);
    paging_fini(&b);
}
END_TEST

START_TEST(a_page_that_may_be_created_costs_a_quarter_of_its_mapping)
{
    static const uint64_t granules[] = {4};
    paging_bench b;
    uint32_t holes[HOLES_MAX];
    paging_init(&b, 256 * MIB);
    make_holes(&b, granules, 1, holes);
    empty(&b, holes[0], 0, 4);
    const uf_page_cost *cost = &b.core.paging->costs[UF_PAGE_SMALL];
    uint64_t map = (uint64_t)cost->map_ns, unmap = (uint64_t)cost->unmap_ns;
    ck_assert_uint_eq(choose(&b, holes[0], 4 * GRANULE).cost, 4 * map / 4);
    /* Three may be created, the fourth comes out of a hole. */
    b.core.limit_bytes = b.core.total_bytes + 3 * GRANULE;
    ck_assert_uint_eq(choose(&b, holes[0], 4 * GRANULE).cost, 3 * map / 4 + map + unmap);
    /* A loose one is there already. */
    ck_assert_int_eq(uf__page_create(&b.core, UF_PAGE_SMALL), UF_OK);
    ck_assert_uint_eq(choose(&b, holes[0], 4 * GRANULE).cost, map + 2 * map / 4 + map + unmap);
    ck_assert_int_eq(uf__page_destroy(&b.core, UF_PAGE_SMALL), UF_OK);
    paging_fini(&b);
}
END_TEST

START_TEST(a_block_goes_to_the_end_of_a_hole_where_fewer_pages_are_missing)
{
    static const uint64_t granules[] = {6};
    paging_bench b;
    uint32_t holes[HOLES_MAX];
    paging_init(&b, 256 * MIB);
    make_holes(&b, granules, 1, holes);
    empty(&b, holes[0], 0, 3);
    uf_place place = choose(&b, holes[0], 3 * GRANULE);
    ck_assert_uint_eq(place.hole, holes[0]);
    ck_assert_uint_eq(place.addr, addr_of(&b, holes[0]) + 3 * GRANULE);
    ck_assert_uint_eq(place.cost, 0);
    paging_fini(&b);
}
END_TEST

START_TEST(the_middle_of_a_hole_is_a_place_only_when_there_is_no_room_to_grow)
{
    static const uint64_t granules[] = {12};
    paging_bench b;
    uint32_t holes[HOLES_MAX];
    paging_init(&b, 256 * MIB);
    make_holes(&b, granules, 1, holes);
    empty(&b, holes[0], 0, 4);
    empty(&b, holes[0], 8, 12);
    uint64_t addr = addr_of(&b, holes[0]);
    uf_place place = choose(&b, holes[0], 5 * GRANULE);
    ck_assert(place.addr == addr || place.end == addr + 12 * GRANULE);
    b.core.limit_bytes = b.core.total_bytes; /* whatever is missing has to be moved */
    const uf_page_cost *cost = &b.core.paging->costs[UF_PAGE_SMALL];
    uint64_t page_ns = (uint64_t)(cost->map_ns + cost->unmap_ns);
    place = choose(&b, holes[0], 5 * GRANULE);
    ck_assert(place.addr == addr + 4 * GRANULE || place.end == addr + 8 * GRANULE);
    ck_assert_uint_eq(place.cost, page_ns + page_ns / 4); /* one page, and the cut */
    paging_fini(&b);
}
END_TEST

START_TEST(a_cut_through_a_large_page_is_paid_for)
{
    static const uint64_t granules[] = {2 * LARGE / GRANULE, 2 * LARGE / GRANULE - 2};
    paging_bench b;
    uint32_t holes[HOLES_MAX];
    paging_init(&b, 256 * MIB);
    make_holes(&b, granules, 2, holes);
    settle(&b);
    uint32_t page =
        uf__page_at(&b.core, b.core.blocks.items[holes[0]].region, addr_of(&b, holes[0]));
    ck_assert_int_eq(b.core.paging->pages[page].size, UF_PAGE_LARGE);
    uf_place whole = choose(&b, holes[0], LARGE);
    ck_assert_uint_eq(whole.cost, 0);
    /* Small pages: nothing is cut. It is taken out of the way. */
    ck_assert_uint_eq(choose(&b, holes[0], 3 * GRANULE).hole, holes[1]);
    uint32_t small = UF_NO_BLOCK;
    ck_assert_int_eq(uf__core_alloc(&b.core, granules[1] * GRANULE, 0, UF_DEFAULT_POOL, &small),
                     UF_OK);
    ck_assert_uint_eq(addr_of(&b, small), addr_of(&b, holes[1]));
    b.core.limit_bytes = b.core.total_bytes;
    const uf_paging *paging = b.core.paging;
    uint64_t small_ns =
        (uint64_t)(paging->costs[UF_PAGE_SMALL].map_ns + paging->costs[UF_PAGE_SMALL].unmap_ns);
    ck_assert_uint_ne(choose(&b, holes[0], 3 * GRANULE).hole, holes[0]);
    /* One page goes out of the way, and one granule of it is wanted. */
    uf_place cut = choose(&b, holes[0], LARGE + GRANULE);
    ck_assert_uint_eq(cut.hole, holes[0]);
    ck_assert_uint_eq(cut.cost, small_ns + (uint64_t)paging->costs[UF_PAGE_LARGE].unmap_ns);
    paging_fini(&b);
}
END_TEST

START_TEST(a_large_page_that_work_may_use_is_not_cut_while_there_are_other_places)
{
    static const uint64_t granules[] = {2 * LARGE / GRANULE};
    paging_bench b;
    uint32_t holes[HOLES_MAX];
    paging_init(&b, 256 * MIB);
    make_holes(&b, granules, 1, holes);
    b.core.limit_bytes = b.core.total_bytes;
    uf_place place = choose(&b, holes[0], LARGE + GRANULE);
    ck_assert_uint_ne(place.hole, holes[0]); /* beyond all blocks, where nothing ever was */
    settle(&b);
    place = choose(&b, holes[0], LARGE + GRANULE);
    ck_assert_uint_eq(place.hole, holes[0]);
    paging_fini(&b);
}
END_TEST

START_TEST(without_a_limit_holes_stay_tight)
{
    static const uint64_t granules[] = {4, 9, 8};
    paging_bench b;
    uint32_t holes[HOLES_MAX];
    paging_init(&b, 0);
    make_holes(&b, granules, 3, holes);
    empty(&b, holes[0], 0, 4);
    /* Twice the tightest is looked at, and it has pages. */
    ck_assert_uint_eq(choose(&b, holes[0], 4 * GRANULE).hole, holes[2]);
    empty(&b, holes[2], 0, 8);
    /* More than that is not, though it would cost nothing. */
    ck_assert_uint_eq(choose(&b, holes[0], 4 * GRANULE).hole, holes[0]);
    b.core.limit_bytes = 256 * MIB;
    ck_assert_uint_eq(choose(&b, holes[0], 4 * GRANULE).hole, holes[1]);
    paging_fini(&b);
}
END_TEST

START_TEST(no_hole_is_long_enough)
{
    static const uint64_t granules[] = {4};
    paging_bench b;
    uint32_t holes[HOLES_MAX];
    paging_init(&b, 256 * MIB);
    make_holes(&b, granules, 1, holes);
    ck_assert_uint_eq(choose(&b, holes[0], UINT64_C(1) << 50).hole, UF_NO_BLOCK);
    paging_fini(&b);
}
END_TEST

int main(void)
{
    return suite_run("place",
                     (const TTest *const[]){
                         of_holes_that_cost_the_same_the_tightest_wins,
                         pages_that_are_there_outweigh_a_tighter_hole,
                         a_page_that_may_be_created_costs_a_quarter_of_its_mapping,
                         a_block_goes_to_the_end_of_a_hole_where_fewer_pages_are_missing,
                         the_middle_of_a_hole_is_a_place_only_when_there_is_no_room_to_grow,
                         a_cut_through_a_large_page_is_paid_for,
                         a_large_page_that_work_may_use_is_not_cut_while_there_are_other_places,
                         without_a_limit_holes_stay_tight,
                         no_hole_is_long_enough,
                         NULL,
                     });
}
