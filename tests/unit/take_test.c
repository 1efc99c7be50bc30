/* SPDX-License-Identifier: MIT
 *
 * Where pages come from, in which order, and what is left alone. */
#include "alloc/take.h"

#include "alloc/epoch.h"
#include "alloc/shadow.h"
#include "unit/paging_bench.h"

/* Bytes of pages that are mapped in a hole. */
static uint64_t mapped_in(const paging_bench *b, uint64_t addr, uint64_t bytes, uint32_t region)
{
    uint64_t mapped = 0;
    for (uint64_t at = addr; at < addr + bytes; at += GRANULE) {
        mapped += uf__page_at(&b->core, region, at) != UF_NO_PAGE ? GRANULE : 0;
    }
    return mapped;
}

typedef struct place {
    uint64_t addr;
    uint32_t region;
} place;

/* A hole of so many pages between blocks that stay. */
static place make_hole(paging_bench *b, uint64_t count, uint32_t stream)
{
    const uf_block *block = &b->core.blocks.items[paging_hole(b, count * GRANULE, stream)];
    return (place){block->addr, block->region};
}

/* Two of the same stream, the first one freed first; returns the number of that free. */
static uint64_t make_two(paging_bench *b, uint64_t count, place *first, place *second)
{
    uint32_t blocks[5];
    for (int i = 0; i < 5; i++) {
        blocks[i] = paging_take(b, (i % 2 == 0 ? 1 : count) * GRANULE, 0);
    }
    *first = (place){b->core.blocks.items[blocks[1]].addr, b->core.blocks.items[blocks[1]].region};
    *second = (place){b->core.blocks.items[blocks[3]].addr, b->core.blocks.items[blocks[3]].region};
    paging_give(b, blocks[1]);
    uint64_t number = b->core.paging->free_sequence;
    paging_give(b, blocks[3]);
    return number;
}

static uint64_t left(const paging_bench *b, const place *hole, uint64_t count)
{
    return mapped_in(b, hole->addr, count * GRANULE, hole->region) / GRANULE;
}

static void settle(paging_bench *b)
{
    ck_assert_int_eq(uf__epoch_close(&b->core), UF_OK);
    uf__sim_synchronize(&b->sim);
    ck_assert_int_eq(uf__epoch_poll(&b->core), UF_OK);
}

static void end(paging_bench *b)
{
    uf__sim_synchronize(&b->sim);
    ck_assert_int_eq(uf__take_undo(&b->core), UF_OK);
    ck_assert_uint_eq(b->core.paging->loose_bytes, 0);
    paging_fini(b);
}

static uint64_t loose(const paging_bench *b)
{
    return b->core.paging->loose_count[UF_PAGE_SMALL];
}

START_TEST(below_the_limit_pages_are_made_and_none_are_taken)
{
    paging_bench b;
    paging_init(&b, 64 * MIB);
    place hole = make_hole(&b, 4, 0);
    settle(&b);
    uint64_t held = b.core.total_bytes;
    ck_assert_int_eq(uf__take_pages(&b.core, 0, 0, 3), UF_OK);
    ck_assert_uint_eq(loose(&b), 3);
    ck_assert_uint_eq(b.core.total_bytes, held + 3 * GRANULE);
    ck_assert_uint_eq(left(&b, &hole, 4), 4);
    end(&b);
}
END_TEST

/* Twice what was ever active is held, none of it in use, and all but two pages of the limit. */
static void fill_nearly(paging_bench *b)
{
    for (uint32_t stream = 0; stream < 2; stream++) {
        uint32_t block = paging_take(b, 10 * LARGE, stream);
        paging_give(b, block);
    }
    b->core.limit_bytes = b->core.total_bytes + 2 * GRANULE;
    b->core.paging->is_limit_spared = true;
}

START_TEST(the_last_of_the_limit_is_left_while_holes_have_idle_pages)
{
    paging_bench b;
    paging_init(&b, 512 * MIB);
    fill_nearly(&b);
    settle(&b);
    uint64_t held = b.core.total_bytes;
    ck_assert_int_eq(uf__take_pages(&b.core, 0, 0, 3), UF_OK);
    ck_assert_uint_eq(loose(&b), 3);
    ck_assert_uint_le(b.core.total_bytes, held);
    ck_assert_uint_eq(uf__take_available_bytes(&b.core),
                      uf__take_cached_bytes(&b.core) + b.core.limit_bytes - b.core.total_bytes);
    end(&b);
}
END_TEST

START_TEST(the_last_of_the_limit_is_used_unless_it_is_spared)
{
    paging_bench b;
    paging_init(&b, 512 * MIB);
    fill_nearly(&b);
    settle(&b);
    uint64_t held = b.core.total_bytes;
    b.core.paging->is_limit_spared = false;
    ck_assert_int_eq(uf__take_pages(&b.core, 0, 0, 2), UF_OK);
    ck_assert_uint_eq(b.core.total_bytes, held + 2 * GRANULE);
    end(&b);
}
END_TEST

START_TEST(the_last_of_the_limit_is_used_before_anything_is_waited_for)
{
    paging_bench b;
    paging_init(&b, 512 * MIB);
    fill_nearly(&b);
    uint32_t third;
    ck_assert_int_eq(uf__core_stream(&b.core, 128, &third), UF_OK);
    uint64_t held = b.core.total_bytes, waits = b.waits.count;
    ck_assert_int_eq(uf__take_pages(&b.core, third, 0, 2), UF_OK);
    ck_assert_uint_eq(b.waits.count, waits);
    ck_assert_uint_eq(b.core.total_bytes, held + 2 * GRANULE);
    end(&b);
}
END_TEST

START_TEST(the_last_of_the_limit_is_used_when_moving_has_cost_too_much)
{
    paging_bench b;
    paging_init(&b, 512 * MIB);
    fill_nearly(&b);
    settle(&b);
    uint64_t held = b.core.total_bytes;
    b.core.paging->moved_count = UINT32_MAX;
    ck_assert_int_eq(uf__take_pages(&b.core, 0, 0, 2), UF_OK);
    ck_assert_uint_eq(b.core.total_bytes, held + 2 * GRANULE);
    ck_assert_uint_eq(uf__take_cached_bytes(&b.core), 20 * LARGE + 2 * GRANULE);
    end(&b);
}
END_TEST

START_TEST(a_peak_of_active_bytes_gets_the_last_of_the_limit)
{
    paging_bench b;
    paging_init(&b, 512 * MIB);
    fill_nearly(&b);
    settle(&b);
    uint64_t held = b.core.total_bytes;
    b.core.paging->peak_active_bytes = b.core.limit_bytes - 4 * GRANULE;
    ck_assert_int_eq(uf__take_pages(&b.core, 0, 0, 2), UF_OK);
    ck_assert_uint_eq(b.core.total_bytes, held + 2 * GRANULE);
    ck_assert_uint_eq(uf__take_cached_bytes(&b.core), 20 * LARGE + 2 * GRANULE);
    end(&b);
}
END_TEST

START_TEST(at_the_limit_the_hole_that_was_freed_longest_ago_gives_first)
{
    paging_bench b;
    paging_init(&b, 64 * MIB);
    place first, second;
    (void)make_two(&b, 3, &first, &second);
    settle(&b);
    b.core.limit_bytes = b.core.total_bytes;
    ck_assert_int_eq(uf__take_pages(&b.core, 0, 0, 2), UF_OK);
    ck_assert_uint_eq(left(&b, &first, 3), 1);
    ck_assert_uint_eq(left(&b, &second, 3), 3);
    ck_assert_uint_eq(b.core.paging->shadow_count, 0); /* idle: unmapped */
    ck_assert_int_eq(uf__take_pages(&b.core, 0, 0, 4), UF_OK);
    ck_assert_uint_eq(left(&b, &first, 3), 0);
    ck_assert_uint_eq(left(&b, &second, 3), 2);
    ck_assert_uint_eq(loose(&b), 4); /* what was loose counts */
    end(&b);
}
END_TEST

START_TEST(idle_pages_come_before_those_that_the_own_stream_may_use)
{
    paging_bench b;
    paging_init(&b, 64 * MIB);
    place idle = make_hole(&b, 2, 1);
    settle(&b);
    place busy = make_hole(&b, 3, 0);
    b.core.limit_bytes = b.core.total_bytes;
    ck_assert_int_eq(uf__take_pages(&b.core, 0, 0, 2), UF_OK);
    ck_assert_uint_eq(left(&b, &idle, 2), 0);
    ck_assert_uint_eq(left(&b, &busy, 3), 3);
    ck_assert_uint_eq(b.core.paging->shadow_count, 0);
    /* Then its own, which leave a shadow and wait for nothing. */
    ck_assert_int_eq(uf__take_pages(&b.core, 0, 0, 4), UF_OK);
    ck_assert_uint_eq(left(&b, &busy, 3), 1);
    ck_assert_uint_eq(b.core.paging->shadow_count, 1);
    ck_assert_uint_eq(b.waits.count, 0);
    end(&b);
}
END_TEST

START_TEST(pages_of_another_stream_at_work_are_waited_for)
{
    paging_bench b;
    paging_init(&b, 64 * MIB);
    place busy = make_hole(&b, 3, 1);
    b.core.limit_bytes = b.core.total_bytes;
    ck_assert_int_eq(uf__take_pages(&b.core, 0, 0, 1), UF_OK);
    ck_assert_uint_eq(b.waits.count, 1);
    ck_assert_uint_eq(b.core.paging->shadow_count, 0); /* never used in two places by two streams */
    ck_assert_uint_eq(left(&b, &busy, 3), 2);
    end(&b);
}
END_TEST

START_TEST(when_nothing_is_left_the_request_fails_and_what_was_taken_is_loose)
{
    paging_bench b;
    paging_init(&b, 64 * MIB);
    (void)make_hole(&b, 3, 0);
    (void)make_hole(&b, 2, 1);
    b.core.limit_bytes = b.core.total_bytes + 2 * GRANULE;
    ck_assert_uint_eq(uf__take_cached_bytes(&b.core), 5 * GRANULE);
    ck_assert_uint_eq(uf__take_available_bytes(&b.core), 7 * GRANULE);
    ck_assert_int_eq(uf__take_pages(&b.core, 0, 0, 8), UF_ERROR_OUT_OF_MEMORY);
    ck_assert_uint_eq(loose(&b), 7);
    ck_assert_uint_eq(uf__take_available_bytes(&b.core), 7 * GRANULE); /* none was lost */
    ck_assert_int_eq(uf__take_pages(&b.core, 0, 0, 7), UF_OK);
    end(&b);
}
END_TEST

START_TEST(pages_of_a_pool_that_lives_are_left_alone)
{
    paging_bench b;
    uint32_t pool, block;
    paging_init(&b, 64 * MIB);
    ck_assert_int_eq(uf__core_pool_create(&b.core, 0, 1, &pool), UF_OK);
    ck_assert_int_eq(uf__core_alloc(&b.core, 4 * GRANULE, 0, pool, &block), UF_OK);
    place inside = {b.core.blocks.items[block].addr, b.core.blocks.items[block].region};
    paging_give(&b, block);
    settle(&b);
    b.core.limit_bytes = b.core.total_bytes;
    ck_assert_uint_eq(uf__take_cached_bytes(&b.core), 0);
    ck_assert_int_eq(uf__take_pages(&b.core, 0, 0, 1), UF_ERROR_OUT_OF_MEMORY);
    ck_assert_uint_eq(left(&b, &inside, 4), 4);
    uf__core_pool_release(&b.core, pool);
    ck_assert_uint_eq(uf__take_cached_bytes(&b.core), 4 * GRANULE);
    ck_assert_int_eq(uf__take_pages(&b.core, 0, 0, 1), UF_OK);
    ck_assert_uint_eq(left(&b, &inside, 4), 3);
    end(&b);
}
END_TEST

START_TEST(during_a_capture_only_what_is_known_to_be_idle_is_taken)
{
    paging_bench b;
    uint32_t pool;
    paging_init(&b, 64 * MIB);
    place idle = make_hole(&b, 2, 1);
    settle(&b);
    place busy = make_hole(&b, 3, 0);
    b.core.limit_bytes = b.core.total_bytes;
    ck_assert_int_eq(uf__core_pool_create(&b.core, 0, 1, &pool), UF_OK);
    ck_assert_int_eq(uf__core_redirect_begin(&b.core, pool), UF_OK);
    ck_assert_int_eq(uf__take_pages(&b.core, 0, 0, 3), UF_ERROR_OUT_OF_MEMORY);
    ck_assert_uint_eq(left(&b, &idle, 2), 0);
    ck_assert_uint_eq(left(&b, &busy, 3), 3);
    ck_assert_uint_eq(b.waits.count, 0);
    ck_assert_int_eq(uf__core_redirect_end(&b.core, pool), UF_OK);
    end(&b);
}
END_TEST

START_TEST(a_large_page_is_given_back_for_small_ones)
{
    paging_bench b;
    paging_init(&b, 256 * MIB);
    place large = make_hole(&b, 2 * LARGE / GRANULE, 0);
    ck_assert_int_eq(b.core.paging->pages[uf__page_at(&b.core, large.region, large.addr)].size,
                     UF_PAGE_LARGE);
    settle(&b);
    b.core.limit_bytes = b.core.total_bytes;
    uint64_t held = b.core.total_bytes;
    ck_assert_int_eq(uf__take_pages(&b.core, 0, 0, 5), UF_OK);
    ck_assert_uint_eq(loose(&b), 5);
    ck_assert_uint_eq(b.releases.count, 1);
    ck_assert_uint_le(b.core.total_bytes, held);
    ck_assert_uint_eq(left(&b, &large, 2 * LARGE / GRANULE), LARGE / GRANULE);
    end(&b);
}
END_TEST

START_TEST(small_ones_become_a_large_one_where_that_is_cheap)
{
    paging_bench b;
    paging_init(&b, 64 * MIB);
    (void)make_hole(&b, 8, 0);
    settle(&b);
    b.core.limit_bytes = b.core.total_bytes;
    b.core.paging->costs[UF_PAGE_SMALL] = (uf_page_cost){.map_ns = INT64_C(1) << 40};
    uint64_t held = b.core.total_bytes;
    ck_assert_int_eq(uf__take_pages(&b.core, 0, 1, 0), UF_OK);
    ck_assert_uint_eq(loose(&b), 0);
    ck_assert_uint_eq(b.core.paging->loose_count[UF_PAGE_LARGE], 1);
    ck_assert_uint_eq(b.releases.count, 8);
    ck_assert_uint_eq(b.core.total_bytes, held);
    end(&b);
}
END_TEST

START_TEST(a_driver_that_is_full_makes_small_pages_of_a_large_one)
{
    paging_bench b;
    paging_init(&b, 0);
    (void)make_hole(&b, 2 * LARGE / GRANULE, 0);
    settle(&b);
    b.sim.capacity_bytes = b.sim.in_use_bytes;
    ck_assert_int_eq(uf__take_pages(&b.core, 0, 0, 5), UF_OK);
    ck_assert_uint_eq(loose(&b), 5);
    ck_assert_uint_eq(b.releases.count, 1);
    end(&b);
}
END_TEST

START_TEST(a_page_with_as_many_shadows_as_can_be_counted_is_left_alone)
{
    paging_bench b;
    paging_init(&b, 64 * MIB);
    place hole = make_hole(&b, 3, 0);
    settle(&b);
    b.core.limit_bytes = b.core.total_bytes;
    uf_page *full = &b.core.paging->pages[uf__page_at(&b.core, hole.region, hole.addr + GRANULE)];
    full->shadow_count = UINT8_MAX;
    ck_assert_int_eq(uf__take_pages(&b.core, 0, 0, 3), UF_ERROR_OUT_OF_MEMORY);
    ck_assert_uint_eq(loose(&b), 2);
    ck_assert(!full->is_loose);
    full->shadow_count = 0;
    ck_assert_int_eq(uf__take_pages(&b.core, 0, 0, 3), UF_OK);
    end(&b);
}
END_TEST

START_TEST(where_no_large_page_is_left_small_ones_serve)
{
    paging_bench b;
    paging_init(&b, 64 * MIB);
    (void)make_hole(&b, 9, 0);
    settle(&b);
    b.core.limit_bytes = b.core.total_bytes;
    b.core.paging->costs[UF_PAGE_LARGE].create_ns = INT64_C(1) << 40; /* nobody makes one of them */
    ck_assert_int_eq(uf__take_pages(&b.core, 0, 1, 1), UF_OK);
    ck_assert_uint_eq(loose(&b), 9);
    ck_assert_uint_eq(b.core.paging->loose_count[UF_PAGE_LARGE], 0);
    ck_assert_uint_le(b.core.total_bytes, b.core.limit_bytes);
    end(&b);
}
END_TEST

START_TEST(pages_that_are_left_over_are_given_back)
{
    paging_bench b;
    paging_init(&b, 64 * MIB);
    ck_assert_int_eq(uf__take_pages(&b.core, 0, 1, 3), UF_OK);
    ck_assert_uint_eq(b.core.paging->loose_bytes, LARGE + 3 * GRANULE);
    b.releases.failing_count = 1;
    ck_assert_int_eq(uf__take_undo(&b.core), UF_ERROR_DEVICE);
    ck_assert_uint_gt(b.core.paging->loose_bytes, 0); /* none is lost */
    ck_assert_uint_eq(b.core.total_bytes, b.core.paging->loose_bytes);
    ck_assert_int_eq(uf__take_undo(&b.core), UF_OK);
    ck_assert_uint_eq(b.core.total_bytes, 0);
    paging_fini(&b);
}
END_TEST

START_TEST(by_age_only_holes_freed_so_long_ago_give)
{
    paging_bench b;
    uint64_t taken;
    paging_init(&b, 64 * MIB);
    place first, second;
    uint64_t number = make_two(&b, 3, &first, &second);
    /* Not idle, and it must not wait. */
    ck_assert_int_eq(uf__take_from_cache(&b.core, UF_PAGE_SMALL, 9, number, false, &taken), UF_OK);
    ck_assert_uint_eq(taken, 0);
    settle(&b);
    ck_assert_int_eq(uf__take_from_cache(&b.core, UF_PAGE_SMALL, 9, number, false, &taken), UF_OK);
    ck_assert_uint_eq(taken, 3);
    ck_assert_uint_eq(left(&b, &first, 3), 0);
    ck_assert_uint_eq(left(&b, &second, 3), 3);
    end(&b);
}
END_TEST

int main(void)
{
    return suite_run("take", (const TTest *const[]){
                                 below_the_limit_pages_are_made_and_none_are_taken,
                                 the_last_of_the_limit_is_left_while_holes_have_idle_pages,
                                 the_last_of_the_limit_is_used_unless_it_is_spared,
                                 the_last_of_the_limit_is_used_before_anything_is_waited_for,
                                 the_last_of_the_limit_is_used_when_moving_has_cost_too_much,
                                 a_peak_of_active_bytes_gets_the_last_of_the_limit,
                                 at_the_limit_the_hole_that_was_freed_longest_ago_gives_first,
                                 idle_pages_come_before_those_that_the_own_stream_may_use,
                                 pages_of_another_stream_at_work_are_waited_for,
                                 when_nothing_is_left_the_request_fails_and_what_was_taken_is_loose,
                                 pages_of_a_pool_that_lives_are_left_alone,
                                 during_a_capture_only_what_is_known_to_be_idle_is_taken,
                                 a_large_page_is_given_back_for_small_ones,
                                 small_ones_become_a_large_one_where_that_is_cheap,
                                 a_driver_that_is_full_makes_small_pages_of_a_large_one,
                                 a_page_with_as_many_shadows_as_can_be_counted_is_left_alone,
                                 where_no_large_page_is_left_small_ones_serve,
                                 pages_that_are_left_over_are_given_back,
                                 by_age_only_holes_freed_so_long_ago_give,
                                 NULL,
                             });
}
