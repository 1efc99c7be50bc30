/* SPDX-License-Identifier: MIT
 *
 * The core's common path: what a request gets, what a free leaves. Sizes and orders in full are the
 * matter of the conformance tests. */
#include "alloc/core.h"

#include "unit/core_bench.h"
#include "unit/suite.h"

static bench b;

START_TEST(a_request_gets_the_front_of_a_segment_and_the_rest_stays_cached)
{
    bench_init(&b, "", 0, 0);
    uint32_t block = bench_alloc(&b, 1000);
    ck_assert_uint_eq(bench_addr(&b, block), UF_SIM_FIRST_ADDR);
    ck_assert_uint_eq(bench_bytes(&b, block), 1024);
    uint32_t rest = uf__core_block(&b.core, block)->next;
    ck_assert_uint_eq(bench_addr(&b, rest), UF_SIM_FIRST_ADDR + 1024);
    ck_assert_uint_eq(bench_bytes(&b, rest), 2 * BENCH_MIB - 1024);
    ck_assert_int_eq(uf__core_block(&b.core, rest)->life, UF_LIFE_FREE);
    bench_fini(&b);
}
END_TEST

START_TEST(freed_neighbours_become_one_block_again)
{
    bench_init(&b, "", 0, 0);
    uint32_t first = bench_alloc(&b, 512), middle = bench_alloc(&b, 512);
    uint32_t last = bench_alloc(&b, 512);
    bench_free(&b, first);
    bench_free(&b, last);
    ck_assert_int_eq(bench_current(&b, UF_COUNTER_INACTIVE_SPLIT), 2);
    ck_assert_int_eq(bench_current(&b, UF_COUNTER_INACTIVE_SPLIT_BYTES),
                     (int64_t)(2 * BENCH_MIB - 512));
    bench_free(&b, middle);
    ck_assert_uint_eq(bench_addr(&b, middle), UF_SIM_FIRST_ADDR);
    ck_assert_uint_eq(bench_bytes(&b, middle), 2 * BENCH_MIB);
    ck_assert_int_eq(bench_current(&b, UF_COUNTER_INACTIVE_SPLIT), 0);
    bench_fini(&b);
}
END_TEST

START_TEST(a_cached_block_keeps_the_requested_size_of_its_last_owner)
{
    bench_init(&b, "", 0, 0);
    uint32_t whole = bench_alloc(&b, BENCH_MIB);
    uint32_t rest = uf__core_block(&b.core, whole)->next;
    ck_assert_uint_eq(uf__core_block(&b.core, rest)->requested_bytes, 0);
    bench_free(&b, whole);
    uint32_t front = bench_alloc(&b, 700);
    ck_assert_uint_eq(uf__core_block(&b.core, front)->requested_bytes, 700);
    ck_assert_uint_eq(
        uf__core_block(&b.core, uf__core_block(&b.core, front)->next)->requested_bytes, BENCH_MIB);
    bench_fini(&b);
}
END_TEST

START_TEST(peeking_finds_what_allocating_takes_and_changes_nothing)
{
    bench_init(&b, "", 0, 0);
    ck_assert_uint_eq(uf__core_peek(&b.core, 512, 0, UF_DEFAULT_POOL), UF_NO_BLOCK);
    uint32_t block = bench_alloc(&b, 512);
    uint32_t rest = uf__core_block(&b.core, block)->next;
    uint32_t event_count = b.event_count;
    ck_assert_uint_eq(uf__core_peek(&b.core, 512, 0, UF_DEFAULT_POOL), rest);
    ck_assert_uint_eq(uf__core_peek(&b.core, BENCH_MIB + 1, 0, UF_DEFAULT_POOL), UF_NO_BLOCK);
    ck_assert_uint_eq(uf__core_peek(&b.core, 512, 5, UF_DEFAULT_POOL), UF_NO_BLOCK);
    ck_assert_uint_eq(b.event_count, event_count);
    bench_fini(&b);
}
END_TEST

START_TEST(events_come_in_the_order_of_what_happened)
{
    bench_init(&b, "", 0, 0);
    uint32_t block = bench_alloc(&b, 3 * BENCH_MIB);
    bench_free(&b, block);
    bench_empty(&b);
    static const uf_action expected[] = {UF_ACTION_SEGMENT_ALLOC, UF_ACTION_ALLOC,
                                         UF_ACTION_FREE_REQUESTED, UF_ACTION_FREE_COMPLETED,
                                         UF_ACTION_SEGMENT_FREE};
    ck_assert_uint_eq(b.event_count, 5);
    for (uint32_t i = 0; i < 5; i++) {
        ck_assert_int_eq(b.events[i].action, expected[i]);
        ck_assert_uint_eq(b.events[i].addr, UF_SIM_FIRST_ADDR);
    }
    ck_assert_uint_eq(b.events[0].size_bytes, 20 * BENCH_MIB);
    ck_assert_uint_eq(b.events[1].size_bytes, 3 * BENCH_MIB);
    bench_fini(&b);
}
END_TEST

START_TEST(a_block_serves_only_its_own_stream)
{
    bench_init(&b, "", 0, 0);
    uint32_t block = bench_alloc_in(&b, 512, 9, UF_DEFAULT_POOL);
    ck_assert_uint_eq(uf__core_block_stream(&b.core, block), 9);
    uint32_t other = bench_alloc(&b, 512);
    ck_assert_uint_eq(bench_seen(&b, UF_ACTION_SEGMENT_ALLOC), 2);
    ck_assert_uint_eq(uf__core_block_stream(&b.core, other), 0);
    bench_fini(&b);
}
END_TEST

START_TEST(a_request_of_two_to_the_sixty_fails_and_leaves_no_mark)
{
    bench_init(&b, "", 0, 0);
    bench_refuse(&b, UINT64_C(1) << 60, UF_ERROR_REQUEST_TOO_LARGE);
    ck_assert_uint_eq(b.event_count, 0);
    ck_assert_int_eq(b.core.counters.num_ooms, 0);
    bench_refuse(&b, (UINT64_C(1) << 60) - 1, UF_ERROR_OUT_OF_MEMORY);
    ck_assert_int_eq(b.core.counters.num_ooms, 1);
    bench_fini(&b);
}
END_TEST

START_TEST(a_fraction_sets_the_limit_and_one_removes_it)
{
    bench_init(&b, "", 0, 0);
    ck_assert_uint_eq(b.core.limit_bytes, UF_UNLIMITED);
    ck_assert_int_eq(uf__core_fraction_set(&b.core, 0.3), UF_OK);
    ck_assert_uint_eq(b.core.limit_bytes, (uint64_t)(0.3 * (double)(16 * BENCH_GIB)));
    ck_assert_int_eq(uf__core_fraction_set(&b.core, 1.5), UF_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(uf__core_fraction_set(&b.core, -0.1), UF_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(uf__core_fraction_set(&b.core, 0.0 / 1.0), UF_OK);
    ck_assert_uint_eq(b.core.limit_bytes, 0);
    ck_assert_int_eq(uf__core_fraction_set(&b.core, 1.0), UF_OK);
    ck_assert_uint_eq(b.core.limit_bytes, UF_UNLIMITED);
    bench_fini(&b);
}
END_TEST

START_TEST(a_limit_at_the_start_wins_over_the_fraction_in_the_settings)
{
    bench_init(&b, "per_process_memory_fraction:0.5", 0, 0);
    ck_assert_uint_eq(b.core.limit_bytes, 8 * BENCH_GIB);
    bench_fini(&b);
    bench_init(&b, "per_process_memory_fraction:0.5", 123, 0);
    ck_assert_uint_eq(b.core.limit_bytes, 123);
    bench_fini(&b);
}
END_TEST

START_TEST(settings_at_run_time_count_for_what_comes_after)
{
    bench_init(&b, "", 0, 0);
    uint32_t block = bench_alloc(&b, 1200);
    ck_assert_uint_eq(bench_bytes(&b, block), 1536);
    uf_conf conf = bench_conf("roundup_power2_divisions:2");
    uf__core_conf_set(&b.core, &conf);
    uint32_t other = bench_alloc(&b, 1200);
    ck_assert_uint_eq(bench_bytes(&b, other), 1536);
    ck_assert_uint_eq(bench_bytes(&b, bench_alloc(&b, 2049)), 3072);
    bench_fini(&b);
}
END_TEST

START_TEST(a_device_that_cannot_say_its_size_makes_no_core)
{
    bench_init(&b, "", 0, 0);
    b.fail_at = b.call_count + 1;
    uf_core core;
    uf_core_config config = {.device = &b.device};
    ck_assert_int_eq(uf__core_init(&core, &config), UF_ERROR_DEVICE);
    config.device_total_bytes = BENCH_GIB;
    ck_assert_int_eq(uf__core_init(&core, &config), UF_OK);
    ck_assert_uint_eq(core.device_total_bytes, BENCH_GIB);
    uf__core_fini(&core);
    bench_fini(&b);
}
END_TEST

START_TEST(free_bytes_of_a_device_that_fails_read_as_none)
{
    bench_init(&b, "", 0, 0);
    (void)bench_alloc(&b, 512);
    ck_assert_uint_eq(uf__core_device_free_bytes(&b.core), 16 * BENCH_GIB - 2 * BENCH_MIB);
    b.fail_at = b.call_count + 1;
    ck_assert_uint_eq(uf__core_device_free_bytes(&b.core), 0);
    bench_fini(&b);
}
END_TEST

int main(void)
{
    return suite_run("core", (const TTest *const[]){
                                 a_request_gets_the_front_of_a_segment_and_the_rest_stays_cached,
                                 freed_neighbours_become_one_block_again,
                                 a_cached_block_keeps_the_requested_size_of_its_last_owner,
                                 peeking_finds_what_allocating_takes_and_changes_nothing,
                                 events_come_in_the_order_of_what_happened,
                                 a_block_serves_only_its_own_stream,
                                 a_request_of_two_to_the_sixty_fails_and_leaves_no_mark,
                                 a_fraction_sets_the_limit_and_one_removes_it,
                                 a_limit_at_the_start_wins_over_the_fraction_in_the_settings,
                                 settings_at_run_time_count_for_what_comes_after,
                                 a_device_that_cannot_say_its_size_makes_no_core,
                                 free_bytes_of_a_device_that_fails_read_as_none,
                                 NULL,
                             });
}
