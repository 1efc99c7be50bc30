/* SPDX-License-Identifier: MIT
 *
 * What happens when no cached block fits, and what is left when the driver fails on the way. */
#include "alloc/core.h"

#include "unit/core_fault.h"

static bench b;

START_TEST(a_miss_takes_a_segment_from_the_driver)
{
    bench_init(&b, "", 0, 0);
    (void)bench_alloc(&b, 11 * BENCH_MIB);
    ck_assert_uint_eq(b.core.total_bytes, 12 * BENCH_MIB);
    ck_assert_int_eq(b.core.counters.num_device_alloc, 1);
    ck_assert_int_eq(bench_current(&b, UF_COUNTER_SEGMENT), 1);
    ck_assert_uint_eq(bench_nth(&b, UF_ACTION_SEGMENT_ALLOC, 0)->size_bytes, 12 * BENCH_MIB);
    bench_fini(&b);
}
END_TEST

START_TEST(beyond_the_limit_the_driver_is_not_asked)
{
    bench_init(&b, "", 40 * BENCH_MIB, 0);
    (void)bench_alloc(&b, 30 * BENCH_MIB);
    uint64_t call_count = b.sim.call_count;
    bench_refuse(&b, 20 * BENCH_MIB - 100, UF_ERROR_OUT_OF_MEMORY);
    ck_assert_uint_eq(b.sim.call_count, call_count);
    ck_assert_int_eq(b.core.counters.num_alloc_retries, 1);
    ck_assert_int_eq(b.core.counters.num_ooms, 1);
    const bench_event *oom = bench_nth(&b, UF_ACTION_OOM, 0);
    ck_assert_uint_eq(oom->size_bytes, 20 * BENCH_MIB);
    ck_assert_uint_eq(oom->addr, 16 * BENCH_GIB - 30 * BENCH_MIB);
    bench_fini(&b);
}
END_TEST

START_TEST(a_segment_that_just_fits_the_limit_is_taken)
{
    bench_init(&b, "", 50 * BENCH_MIB, 0);
    (void)bench_alloc(&b, 30 * BENCH_MIB);
    (void)bench_alloc(&b, 20 * BENCH_MIB);
    ck_assert_uint_eq(b.core.total_bytes, 50 * BENCH_MIB);
    bench_fini(&b);
}
END_TEST

START_TEST(a_refusal_of_the_driver_gives_the_cache_back_and_tries_again)
{
    bench_init(&b, "", 0, 64 * BENCH_MIB);
    bench_free(&b, bench_alloc(&b, 40 * BENCH_MIB));
    (void)bench_alloc(&b, 50 * BENCH_MIB);
    ck_assert_int_eq(b.core.counters.num_alloc_retries, 1);
    ck_assert_int_eq(b.core.counters.num_ooms, 0);
    ck_assert_int_eq(b.core.counters.num_sync_all_streams, 1);
    ck_assert_uint_eq(b.core.total_bytes, 50 * BENCH_MIB);
    bench_fini(&b);
}
END_TEST

START_TEST(a_request_of_a_private_pool_gives_nothing_back)
{
    uint32_t pool, block;
    bench_init(&b, "", 64 * BENCH_MIB, 0);
    bench_free(&b, bench_alloc(&b, 40 * BENCH_MIB));
    ck_assert_int_eq(uf__core_pool_create(&b.core, 0, 1, &pool), UF_OK);
    ck_assert_int_eq(bench_try(&b, 50 * BENCH_MIB, 0, pool, &block), UF_ERROR_OUT_OF_MEMORY);
    ck_assert_int_eq(b.core.counters.num_alloc_retries, 0);
    ck_assert_uint_eq(b.core.total_bytes, 40 * BENCH_MIB);
    bench_fini(&b);
}
END_TEST

START_TEST(during_a_redirection_the_default_pool_gives_nothing_back)
{
    uint32_t pool;
    bench_init(&b, "", 64 * BENCH_MIB, 0);
    bench_free(&b, bench_alloc(&b, 40 * BENCH_MIB));
    ck_assert_int_eq(uf__core_pool_create(&b.core, 0, 1, &pool), UF_OK);
    ck_assert_int_eq(uf__core_redirect_begin(&b.core, pool), UF_OK);
    bench_refuse(&b, 50 * BENCH_MIB, UF_ERROR_OUT_OF_MEMORY);
    ck_assert_int_eq(b.core.counters.num_alloc_retries, 0);
    ck_assert_int_eq(uf__core_redirect_end(&b.core, pool), UF_OK);
    (void)bench_alloc(&b, 50 * BENCH_MIB);
    ck_assert_int_eq(b.core.counters.num_alloc_retries, 1);
    bench_fini(&b);
}
END_TEST

START_TEST(a_pool_that_may_be_raided_is_raided_before_anything_is_given_back)
{
    uint32_t pool;
    bench_init(&b, "", 100 * BENCH_MIB, 0);
    ck_assert_int_eq(uf__core_pool_create(&b.core, 0, 1, &pool), UF_OK);
    uint32_t lent = bench_alloc_in(&b, 60 * BENCH_MIB, 0, pool);
    uint64_t addr = bench_addr(&b, lent);
    bench_free(&b, lent);
    bench_refuse(&b, 58 * BENCH_MIB, UF_ERROR_OUT_OF_MEMORY);
    b.core.pools[pool].is_use_on_oom = true;
    int64_t retry_count = b.core.counters.num_alloc_retries;
    uint32_t block = bench_alloc(&b, 58 * BENCH_MIB);
    ck_assert_uint_eq(bench_addr(&b, block), addr);
    ck_assert_uint_eq(bench_bytes(&b, block), 58 * BENCH_MIB);
    ck_assert_int_eq(b.core.counters.num_alloc_retries, retry_count);
    bench_fini(&b);
}
END_TEST

START_TEST(one_oversize_block_given_back_can_be_enough_without_a_retry)
{
    bench_init(&b, "max_split_size_mb:64", 150 * BENCH_MIB, 0);
    bench_free(&b, bench_alloc(&b, 130 * BENCH_MIB));
    (void)bench_alloc(&b, 100 * BENCH_MIB); /* 130 MiB leave more than 20 MiB over */
    ck_assert_uint_eq(bench_seen(&b, UF_ACTION_SEGMENT_FREE), 1);
    ck_assert_int_eq(b.core.counters.num_alloc_retries, 0);
    ck_assert_uint_eq(b.core.total_bytes, 100 * BENCH_MIB);
    bench_fini(&b);
}
END_TEST

START_TEST(another_failure_of_the_driver_is_reported_at_once)
{
    bench_init(&b, "", 0, 0);
    bench_free(&b, bench_alloc(&b, 512));
    b.fail_at = b.call_count + 1;
    bench_refuse(&b, 30 * BENCH_MIB, UF_ERROR_DEVICE);
    ck_assert_int_eq(b.core.device_status, UF_ERROR_DEVICE);
    ck_assert_int_eq(b.core.counters.num_ooms, 0);
    ck_assert_int_eq(b.core.counters.num_alloc_retries, 0);
    ck_assert_uint_eq(b.core.total_bytes, 2 * BENCH_MIB);
    (void)bench_alloc(&b, 30 * BENCH_MIB);
    bench_fini(&b);
}
END_TEST

START_TEST(a_driver_that_cannot_give_back_is_reported_by_the_request)
{
    bench_init(&b, "", 0, 64 * BENCH_MIB);
    bench_free(&b, bench_alloc(&b, 40 * BENCH_MIB));
    b.fail_at = b.call_count + 2; /* after the refusal */
    bench_refuse(&b, 50 * BENCH_MIB, UF_ERROR_DEVICE);
    ck_assert_uint_eq(b.core.total_bytes, 40 * BENCH_MIB);
    ck_assert_int_eq(b.core.counters.num_device_free, 0);
    bench_fini(&b);
}
END_TEST

START_TEST(whichever_driver_call_fails_the_core_stays_consistent)
{
    static const fault_plan plan = {
        .conf = "", .limit_bytes = 400 * BENCH_MIB, .max_bytes = 60 * BENCH_MIB, .seed = 1};
    ck_assert_uint_gt(fault_drive(&plan), 60);
}
END_TEST

START_TEST(whichever_driver_call_fails_on_a_full_card_the_core_stays_consistent)
{
    static const fault_plan plan = {
        .conf = "", .card_bytes = 300 * BENCH_MIB, .max_bytes = 60 * BENCH_MIB, .seed = 2};
    ck_assert_uint_gt(fault_drive(&plan), 60);
}
END_TEST

int main(void)
{
    return suite_run("acquire",
                     (const TTest *const[]){
                         a_miss_takes_a_segment_from_the_driver,
                         beyond_the_limit_the_driver_is_not_asked,
                         a_segment_that_just_fits_the_limit_is_taken,
                         a_refusal_of_the_driver_gives_the_cache_back_and_tries_again,
                         a_request_of_a_private_pool_gives_nothing_back,
                         during_a_redirection_the_default_pool_gives_nothing_back,
                         a_pool_that_may_be_raided_is_raided_before_anything_is_given_back,
                         one_oversize_block_given_back_can_be_enough_without_a_retry,
                         another_failure_of_the_driver_is_reported_at_once,
                         a_driver_that_cannot_give_back_is_reported_by_the_request,
                         whichever_driver_call_fails_the_core_stays_consistent,
                         whichever_driver_call_fails_on_a_full_card_the_core_stays_consistent,
                         NULL,
                     });
}
