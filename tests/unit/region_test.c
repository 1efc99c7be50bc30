/* SPDX-License-Identifier: MIT
 *
 * Expandable segments: mapping, growing, unmapping, and what is left when the driver fails. */
#include "alloc/core.h"

#include "unit/core_fault.h"

static const char EXPANDABLE[] = "expandable_segments:True";

static bench b;

START_TEST(the_first_request_reserves_nine_eighths_of_the_card_and_maps_one_page)
{
    bench_init(&b, EXPANDABLE, 0, 0);
    uint32_t block = bench_alloc(&b, 3 * BENCH_MIB);
    ck_assert_uint_eq(bench_bytes(&b, block), 3 * BENCH_MIB);
    ck_assert_uint_eq(b.core.total_bytes, 20 * BENCH_MIB);
    ck_assert_uint_eq(b.core.regions[1].page_bytes, 20 * BENCH_MIB);
    ck_assert_uint_eq(b.core.regions[1].size_bytes, 922 * 20 * BENCH_MIB); /* 18 GiB and a bit */
    ck_assert_int_eq(bench_current(&b, UF_COUNTER_SEGMENT), 0);
    ck_assert_int_eq(b.core.counters.num_device_alloc, 1);
    ck_assert_uint_eq(b.range_count, 1);
    bench_fini(&b);
}
END_TEST

START_TEST(small_requests_have_pages_of_two_mib_in_a_region_of_their_own)
{
    bench_init(&b, EXPANDABLE, 0, 0);
    (void)bench_alloc(&b, 512);
    (void)bench_alloc(&b, 2 * BENCH_MIB);
    ck_assert_uint_eq(b.core.regions[1].page_bytes, 2 * BENCH_MIB);
    ck_assert_uint_eq(b.core.regions[2].page_bytes, 20 * BENCH_MIB);
    ck_assert_uint_eq(b.core.total_bytes, 22 * BENCH_MIB);
    bench_fini(&b);
}
END_TEST

START_TEST(growing_maps_only_what_the_free_end_lacks)
{
    bench_init(&b, EXPANDABLE, 0, 0);
    uint32_t first = bench_alloc(&b, 15 * BENCH_MIB), second = bench_alloc(&b, 60 * BENCH_MIB);
    ck_assert_uint_eq(bench_addr(&b, second), bench_addr(&b, first) + 15 * BENCH_MIB);
    const bench_event *map = bench_nth(&b, UF_ACTION_SEGMENT_MAP, 1);
    ck_assert_uint_eq(map->addr, bench_addr(&b, first) + 20 * BENCH_MIB);
    ck_assert_uint_eq(map->size_bytes, 60 * BENCH_MIB);
    ck_assert_uint_eq(b.core.total_bytes, 80 * BENCH_MIB);
    bench_fini(&b);
}
END_TEST

START_TEST(only_whole_pages_inside_a_free_block_are_unmapped)
{
    bench_init(&b, EXPANDABLE, 0, 0);
    uint32_t first = bench_alloc(&b, 15 * BENCH_MIB), second = bench_alloc(&b, 60 * BENCH_MIB);
    uint64_t base = bench_addr(&b, first);
    (void)bench_alloc(&b, 5 * BENCH_MIB);
    bench_free(&b, second);
    bench_empty(&b);
    const bench_event *unmap = bench_nth(&b, UF_ACTION_SEGMENT_UNMAP, 0);
    ck_assert_uint_eq(unmap->addr, base + 20 * BENCH_MIB);
    ck_assert_uint_eq(unmap->size_bytes, 40 * BENCH_MIB);
    ck_assert_uint_eq(b.core.total_bytes, 40 * BENCH_MIB);
    ck_assert_int_eq(b.core.counters.num_device_free, 1);
    ck_assert_uint_eq(bench_bytes(&b, uf__core_block(&b.core, first)->next), 5 * BENCH_MIB);
    /* 55 MiB fit the gap of 5 + 40 + 15 MiB again. */
    uint32_t again = bench_alloc(&b, 55 * BENCH_MIB);
    ck_assert_uint_eq(bench_addr(&b, again), base + 15 * BENCH_MIB);
    bench_fini(&b);
}
END_TEST

START_TEST(a_free_block_within_one_page_stays_mapped)
{
    bench_init(&b, EXPANDABLE, 0, 0);
    uint32_t block = bench_alloc(&b, 15 * BENCH_MIB);
    (void)bench_alloc(&b, 2 * BENCH_MIB);
    bench_free(&b, block);
    bench_empty(&b);
    ck_assert_uint_eq(b.core.total_bytes, 20 * BENCH_MIB);
    ck_assert_uint_eq(bench_seen(&b, UF_ACTION_SEGMENT_UNMAP), 0);
    bench_fini(&b);
}
END_TEST

START_TEST(an_empty_region_goes_back_and_its_slot_is_taken_again)
{
    bench_init(&b, EXPANDABLE, 0, 0);
    bench_free(&b, bench_alloc(&b, 30 * BENCH_MIB));
    bench_empty(&b);
    ck_assert_uint_eq(b.range_count, 0);
    ck_assert_uint_eq(b.core.total_bytes, 0);
    (void)bench_alloc(&b, 30 * BENCH_MIB);
    ck_assert_uint_eq(b.range_count, 1);
    ck_assert_uint_eq(b.core.region_count, 2);
    bench_fini(&b);
}
END_TEST

START_TEST(a_mapping_that_fails_leaves_its_reservation_to_the_next)
{
    bench_init(&b, EXPANDABLE, 0, 64 * BENCH_MIB);
    bench_refuse(&b, 100 * BENCH_MIB, UF_ERROR_OUT_OF_MEMORY);
    ck_assert_uint_eq(b.range_count, 1);
    ck_assert_uint_eq(b.core.total_bytes, 0);
    (void)bench_alloc(&b, 50 * BENCH_MIB);
    ck_assert_uint_eq(b.range_count, 1);
    ck_assert_uint_eq(b.core.total_bytes, 60 * BENCH_MIB);
    bench_fini(&b);
}
END_TEST

START_TEST(more_than_the_reservation_is_out_of_memory)
{
    bench_init(&b, EXPANDABLE, 0, 0);
    bench_refuse(&b, 19 * BENCH_GIB, UF_ERROR_OUT_OF_MEMORY);
    ck_assert_uint_eq(b.core.total_bytes, 0);
    ck_assert_uint_eq(b.range_count, 2); /* one per try; PyTorch keeps them too */
    bench_fini(&b);
}
END_TEST

START_TEST(a_device_that_cannot_map_says_so)
{
    bench_init(&b, EXPANDABLE, 0, 0);
    b.device.pages_map = NULL;
    bench_refuse(&b, 512, UF_ERROR_UNSUPPORTED);
    ck_assert_int_eq(b.core.device_status, UF_ERROR_UNSUPPORTED);
    bench_fini(&b);
}
END_TEST

START_TEST(the_stream_is_waited_for_before_its_pages_go)
{
    bench_init(&b, EXPANDABLE, 0, 0);
    bench_free(&b, bench_alloc(&b, 30 * BENCH_MIB));
    uint64_t sync_count = b.sim.sync_count;
    bench_empty(&b);
    ck_assert_uint_eq(b.sim.sync_count, sync_count + 1);
    bench_fini(&b);
}
END_TEST

START_TEST(switched_off_regions_are_not_extended_but_still_given_back)
{
    bench_init(&b, EXPANDABLE, 0, 0);
    bench_free(&b, bench_alloc(&b, 30 * BENCH_MIB));
    uf_conf conf = bench_conf("");
    uf__core_conf_set(&b.core, &conf);
    (void)bench_alloc(&b, 30 * BENCH_MIB);
    ck_assert_int_eq(bench_current(&b, UF_COUNTER_SEGMENT), 1);
    ck_assert_uint_eq(b.core.total_bytes, 70 * BENCH_MIB);
    bench_empty(&b);
    ck_assert_uint_eq(b.core.total_bytes, 30 * BENCH_MIB);
    bench_fini(&b);
}
END_TEST

/* Each freed block of 60 MiB loses its middle pages in the flush and becomes three: the block table
 * fills up between the request's start and its segment. */
static void flush_of_many_pieces(bool is_expandable_after, uint32_t extra_count)
{
    enum { PIECE_COUNT = 62 };
    uint32_t freed[PIECE_COUNT];
    bench_init(&b, EXPANDABLE, 0, 0);
    for (uint32_t i = 0; i < extra_count; i++) {
        (void)bench_alloc(&b, 20 * BENCH_MIB);
    }
    for (uint32_t i = 0; i < PIECE_COUNT; i++) {
        (void)bench_alloc(&b, 15 * BENCH_MIB);
        freed[i] = bench_alloc(&b, 60 * BENCH_MIB);
    }
    (void)bench_alloc(&b, 15 * BENCH_MIB);
    for (uint32_t i = 0; i < PIECE_COUNT; i++) {
        bench_free(&b, freed[i]);
    }
    uf_conf conf = bench_conf(is_expandable_after ? EXPANDABLE : "");
    uf__core_conf_set(&b.core, &conf);
    uf__core_limit_set(&b.core, b.core.total_bytes);
    /* A plain segment of 1008 MiB is split: one more block. */
    uint64_t bytes = 1006 * BENCH_MIB + 512 * BENCH_KIB;
    uint32_t block = bench_alloc(&b, bytes);
    ck_assert_uint_eq(bench_bytes(&b, block), bytes);
    ck_assert_uint_eq(bench_seen(&b, UF_ACTION_SEGMENT_UNMAP), PIECE_COUNT);
    ck_assert_uint_le(b.core.blocks.count, b.core.blocks.capacity);
    bench_fini(&b);
}

START_TEST(a_flush_of_many_pieces_leaves_room_for_the_segment_after_it)
{
    for (uint32_t extra_count = 0; extra_count < 40; extra_count++) {
        flush_of_many_pieces(false, extra_count);
        flush_of_many_pieces(true, extra_count);
    }
}
END_TEST

START_TEST(whichever_driver_call_fails_the_regions_stay_consistent)
{
    static const fault_plan plan = {.conf = "expandable_segments:True",
                                    .limit_bytes = 400 * BENCH_MIB,
                                    .max_bytes = 60 * BENCH_MIB,
                                    .seed = 4};
    ck_assert_uint_gt(fault_drive(&plan), 60);
}
END_TEST

START_TEST(whichever_driver_call_fails_on_a_full_card_the_regions_stay_consistent)
{
    static const fault_plan plan = {.conf = "expandable_segments:True,max_split_size_mb:32",
                                    .card_bytes = 300 * BENCH_MIB,
                                    .max_bytes = 60 * BENCH_MIB,
                                    .seed = 5};
    ck_assert_uint_gt(fault_drive(&plan), 60);
}
END_TEST

int main(void)
{
    return suite_run("region",
                     (const TTest *const[]){
                         the_first_request_reserves_nine_eighths_of_the_card_and_maps_one_page,
                         small_requests_have_pages_of_two_mib_in_a_region_of_their_own,
                         growing_maps_only_what_the_free_end_lacks,
                         only_whole_pages_inside_a_free_block_are_unmapped,
                         a_free_block_within_one_page_stays_mapped,
                         an_empty_region_goes_back_and_its_slot_is_taken_again,
                         a_mapping_that_fails_leaves_its_reservation_to_the_next,
                         more_than_the_reservation_is_out_of_memory,
                         a_device_that_cannot_map_says_so,
                         the_stream_is_waited_for_before_its_pages_go,
                         switched_off_regions_are_not_extended_but_still_given_back,
                         a_flush_of_many_pieces_leaves_room_for_the_segment_after_it,
                         whichever_driver_call_fails_the_regions_stay_consistent,
                         whichever_driver_call_fails_on_a_full_card_the_regions_stay_consistent,
                         NULL,
                     });
}
