/* SPDX-License-Identifier: MIT
 *
 * What is given back to the driver, and in which order. */
#include "alloc/core.h"

#include "unit/core_fault.h"

static bench b;

START_TEST(a_flush_goes_large_before_small_then_by_stream_size_and_address)
{
    bench_init(&b, "", 0, 0);
    static const uint64_t streams[] = {50, 0, 50, 0, 0};
    static const uint64_t mib[] = {12, 14, 10, 10, 10};
    uint32_t blocks[5];
    uint32_t small = bench_alloc(&b, 512);
    for (int i = 0; i < 5; i++) {
        blocks[i] = bench_alloc_in(&b, mib[i] * BENCH_MIB, streams[i], UF_DEFAULT_POOL);
    }
    bench_free(&b, small);
    for (int i = 0; i < 5; i++) {
        bench_free(&b, blocks[i]);
    }
    bench_empty(&b);
    static const uint64_t order_mib[] = {10, 10, 14, 10, 12, 2};
    ck_assert_uint_eq(bench_seen(&b, UF_ACTION_SEGMENT_FREE), 6);
    for (uint32_t i = 0; i < 6; i++) {
        const bench_event *event = bench_nth(&b, UF_ACTION_SEGMENT_FREE, i);
        ck_assert_uint_eq(event->size_bytes, order_mib[i] * BENCH_MIB);
        ck_assert_uint_eq(event->stream, i == 3 || i == 4 ? 50 : 0);
    }
    ck_assert_uint_lt(bench_nth(&b, UF_ACTION_SEGMENT_FREE, 0)->addr,
                      bench_nth(&b, UF_ACTION_SEGMENT_FREE, 1)->addr);
    ck_assert_uint_eq(b.core.total_bytes, 0);
    bench_fini(&b);
}
END_TEST

START_TEST(a_segment_in_part_allocated_stays)
{
    bench_init(&b, "", 0, 0);
    uint32_t front = bench_alloc(&b, 3 * BENCH_MIB);
    (void)bench_alloc(&b, 3 * BENCH_MIB);
    bench_free(&b, front);
    bench_empty(&b);
    ck_assert_uint_eq(b.core.total_bytes, 20 * BENCH_MIB);
    ck_assert_int_eq(b.core.counters.num_device_free, 0);
    bench_fini(&b);
}
END_TEST

START_TEST(collection_frees_what_is_at_least_of_average_age)
{
    bench_init(&b, "garbage_collection_threshold:0.5", 100 * BENCH_MIB, 0);
    uint32_t young = bench_alloc(&b, 20 * BENCH_MIB), old = bench_alloc(&b, 20 * BENCH_MIB);
    (void)bench_alloc(&b, 20 * BENCH_MIB);
    uint64_t old_addr = bench_addr(&b, old);
    bench_free(&b, old);
    bench_free(&b, young);
    young = bench_alloc(&b, 20 * BENCH_MIB); /* the lowest address */
    bench_free(&b, young);
    (void)bench_alloc(&b, 21 * BENCH_MIB);
    ck_assert_uint_eq(bench_seen(&b, UF_ACTION_SEGMENT_FREE), 1);
    ck_assert_uint_eq(bench_nth(&b, UF_ACTION_SEGMENT_FREE, 0)->addr, old_addr);
    ck_assert_int_eq(b.core.counters.num_alloc_retries, 0);
    bench_fini(&b);
}
END_TEST

START_TEST(a_pass_of_the_collection_does_not_stop_at_its_target)
{
    bench_init(&b, "garbage_collection_threshold:0.5", 100 * BENCH_MIB, 0);
    uint32_t first = bench_alloc(&b, 20 * BENCH_MIB), second = bench_alloc(&b, 20 * BENCH_MIB);
    (void)bench_alloc(&b, 20 * BENCH_MIB);
    bench_free(&b, first);
    bench_free(&b, second);
    (void)bench_alloc(&b, 21 * BENCH_MIB); /* 10 MiB over the threshold, ages equal */
    ck_assert_uint_eq(bench_seen(&b, UF_ACTION_SEGMENT_FREE), 2);
    ck_assert_uint_eq(b.core.total_bytes, 42 * BENCH_MIB);
    bench_fini(&b);
}
END_TEST

START_TEST(collection_needs_a_limit)
{
    bench_init(&b, "garbage_collection_threshold:0.01", 0, 0);
    bench_free(&b, bench_alloc(&b, 20 * BENCH_MIB));
    (void)bench_alloc(&b, 21 * BENCH_MIB);
    ck_assert_uint_eq(bench_seen(&b, UF_ACTION_SEGMENT_FREE), 0);
    bench_fini(&b);
}
END_TEST

START_TEST(oversize_blocks_are_given_back_from_the_largest_down)
{
    bench_init(&b, "max_split_size_mb:32", 300 * BENCH_MIB, 0);
    uint32_t small = bench_alloc(&b, 40 * BENCH_MIB), middle = bench_alloc(&b, 60 * BENCH_MIB);
    uint32_t large = bench_alloc(&b, 80 * BENCH_MIB);
    bench_free(&b, small);
    bench_free(&b, middle);
    bench_free(&b, large);
    (void)bench_alloc(&b, 130 * BENCH_MIB);
    ck_assert_uint_eq(bench_seen(&b, UF_ACTION_SEGMENT_FREE), 2);
    ck_assert_uint_eq(bench_nth(&b, UF_ACTION_SEGMENT_FREE, 0)->size_bytes, 80 * BENCH_MIB);
    ck_assert_uint_eq(bench_nth(&b, UF_ACTION_SEGMENT_FREE, 1)->size_bytes, 60 * BENCH_MIB);
    ck_assert_int_eq(b.core.counters.num_alloc_retries, 0);
    bench_fini(&b);
}
END_TEST

START_TEST(releasing_a_part_of_a_segment_is_a_hazard_and_is_refused)
{
    bench_init(&b, "", 120 * BENCH_MIB, 0);
    bench_free(&b, bench_alloc(&b, 100 * BENCH_MIB));
    uint32_t front = bench_alloc(&b, 40 * BENCH_MIB);
    (void)bench_alloc(&b, 60 * BENCH_MIB);
    bench_free(&b, front);
    uf_conf conf = bench_conf("max_split_size_mb:32");
    uf__core_conf_set(&b.core, &conf);
    bench_refuse(&b, 50 * BENCH_MIB, UF_ERROR_HAZARD);
    ck_assert_uint_eq(bench_seen(&b, UF_ACTION_SEGMENT_FREE), 0);
    ck_assert_uint_eq(b.core.total_bytes, 100 * BENCH_MIB);
    bench_fini(&b);
}
END_TEST

START_TEST(a_flush_that_fails_half_way_has_released_the_first_half)
{
    bench_init(&b, "", 0, 0);
    uint32_t first = bench_alloc(&b, 12 * BENCH_MIB), second = bench_alloc(&b, 14 * BENCH_MIB);
    bench_free(&b, first);
    bench_free(&b, second);
    b.fail_at = b.call_count + 2;
    ck_assert_int_eq(uf__core_empty_cache(&b.core), UF_ERROR_DEVICE);
    bench_check(&b);
    ck_assert_uint_eq(b.core.total_bytes, 14 * BENCH_MIB);
    ck_assert_int_eq(b.core.counters.num_device_free, 1);
    bench_empty(&b);
    ck_assert_uint_eq(b.core.total_bytes, 0);
    bench_fini(&b);
}
END_TEST

START_TEST(a_pool_in_use_keeps_its_cache_through_a_flush)
{
    uint32_t pool;
    bench_init(&b, "", 0, 0);
    ck_assert_int_eq(uf__core_pool_create(&b.core, 1, 0, &pool), UF_OK);
    bench_free(&b, bench_alloc_in(&b, 512, 0, pool));
    bench_free(&b, bench_alloc_in(&b, 12 * BENCH_MIB, 0, pool));
    bench_empty(&b);
    ck_assert_uint_eq(b.core.total_bytes, 14 * BENCH_MIB);
    uf__core_pool_release(&b.core, pool);
    bench_empty(&b);
    ck_assert_uint_eq(b.core.total_bytes, 0);
    /* Private pools go small before large. */
    ck_assert_uint_eq(bench_nth(&b, UF_ACTION_SEGMENT_FREE, 0)->size_bytes, 2 * BENCH_MIB);
    ck_assert(!uf__core_pool_find(&b.core, 1, 0, &pool));
    bench_fini(&b);
}
END_TEST

START_TEST(the_death_of_a_pool_empties_that_pool_alone)
{
    uint32_t dying, living;
    bench_init(&b, "", 0, 0);
    ck_assert_int_eq(uf__core_pool_create(&b.core, 0, 1, &dying), UF_OK);
    ck_assert_int_eq(uf__core_pool_create(&b.core, 0, 2, &living), UF_OK);
    bench_free(&b, bench_alloc_in(&b, 512, 0, dying));
    bench_free(&b, bench_alloc_in(&b, 512, 0, living));
    bench_free(&b, bench_alloc(&b, 512));
    ck_assert_int_eq(uf__core_pool_flush(&b.core, dying), UF_OK); /* its use count is 1 */
    ck_assert_uint_eq(b.core.total_bytes, 6 * BENCH_MIB);
    uf__core_pool_release(&b.core, dying);
    ck_assert_int_eq(uf__core_redirect_begin(&b.core, living), UF_OK);
    ck_assert_int_eq(uf__core_pool_flush(&b.core, dying), UF_ERROR_BUSY);
    ck_assert_int_eq(uf__core_redirect_end(&b.core, living), UF_OK);
    ck_assert_int_eq(uf__core_pool_flush(&b.core, dying), UF_OK);
    ck_assert_uint_eq(b.core.total_bytes, 4 * BENCH_MIB);
    ck_assert_int_eq(b.core.counters.num_sync_all_streams, 1);
    bench_fini(&b);
}
END_TEST

START_TEST(whichever_driver_call_fails_with_oversize_and_collection_the_core_stays_consistent)
{
    static const fault_plan plan = {.conf = "max_split_size_mb:32,garbage_collection_threshold:0.6",
                                    .limit_bytes = 350 * BENCH_MIB,
                                    .max_bytes = 70 * BENCH_MIB,
                                    .seed = 3};
    ck_assert_uint_gt(fault_drive(&plan), 60);
}
END_TEST

int main(void)
{
    return suite_run(
        "release",
        (const TTest *const[]){
            a_flush_goes_large_before_small_then_by_stream_size_and_address,
            a_segment_in_part_allocated_stays,
            collection_frees_what_is_at_least_of_average_age,
            a_pass_of_the_collection_does_not_stop_at_its_target,
            collection_needs_a_limit,
            oversize_blocks_are_given_back_from_the_largest_down,
            releasing_a_part_of_a_segment_is_a_hazard_and_is_refused,
            a_flush_that_fails_half_way_has_released_the_first_half,
            a_pool_in_use_keeps_its_cache_through_a_flush,
            the_death_of_a_pool_empties_that_pool_alone,
            whichever_driver_call_fails_with_oversize_and_collection_the_core_stays_consistent,
            NULL,
        });
}
