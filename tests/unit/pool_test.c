/* SPDX-License-Identifier: MIT
 *
 * Pools, streams and redirections. */
#include "alloc/core.h"

#include "unit/core_bench.h"
#include "unit/suite.h"

static bench b;

START_TEST(a_stream_is_registered_once_and_sorted_by_handle)
{
    bench_init(&b, "", 0, 0);
    static const uint64_t handles[] = {500, 3, UINT64_C(1) << 63, 77, 3, 500};
    static const uint32_t expected[] = {1, 2, 3, 4, 2, 1};
    for (int i = 0; i < 6; i++) {
        ck_assert_uint_eq(bench_stream(&b, handles[i]), expected[i]);
    }
    ck_assert_uint_eq(b.core.stream_count, 5);
    for (uint32_t i = 1; i < 5; i++) {
        ck_assert_uint_lt(b.core.streams[b.core.streams_sorted[i - 1]],
                          b.core.streams[b.core.streams_sorted[i]]);
    }
    bench_fini(&b);
}
END_TEST

START_TEST(a_thousand_streams_have_a_thousand_places)
{
    bench_init(&b, "", 0, 0);
    for (uint64_t i = 1; i <= 1000; i++) {
        ck_assert_uint_eq(bench_stream(&b, 100000 - i), i);
    }
    ck_assert_uint_eq(bench_stream(&b, 100000 - 500), 500);
    (void)bench_alloc_in(&b, 512, 100000 - 1000, UF_DEFAULT_POOL);
    ck_assert_uint_eq(b.core.stream_count, 1001);
    bench_fini(&b);
}
END_TEST

START_TEST(a_pool_is_found_by_both_halves_of_its_id)
{
    uint32_t first, second, found;
    bench_init(&b, "", 0, 0);
    ck_assert_int_eq(uf__core_pool_create(&b.core, 0, 5, &first), UF_OK);
    ck_assert_int_eq(uf__core_pool_create(&b.core, 5, 0, &second), UF_OK);
    ck_assert(uf__core_pool_find(&b.core, 0, 5, &found));
    ck_assert_uint_eq(found, first);
    ck_assert(uf__core_pool_find(&b.core, 5, 0, &found));
    ck_assert_uint_eq(found, second);
    ck_assert(uf__core_pool_find(&b.core, 0, 0, &found));
    ck_assert_uint_eq(found, UF_DEFAULT_POOL);
    ck_assert(!uf__core_pool_find(&b.core, 5, 5, &found));
    bench_fini(&b);
}
END_TEST

START_TEST(pools_share_no_memory)
{
    uint32_t pool;
    bench_init(&b, "", 0, 0);
    ck_assert_int_eq(uf__core_pool_create(&b.core, 0, 1, &pool), UF_OK);
    bench_free(&b, bench_alloc(&b, 512));
    (void)bench_alloc_in(&b, 512, 0, pool);
    ck_assert_uint_eq(b.core.total_bytes, 4 * BENCH_MIB);
    ck_assert_int_eq(b.core.pools[pool].segment_count, 1);
    bench_fini(&b);
}
END_TEST

START_TEST(a_pool_that_is_forgotten_leaves_its_slot)
{
    uint32_t pool, again;
    bench_init(&b, "", 0, 0);
    ck_assert_int_eq(uf__core_pool_create(&b.core, 0, 1, &pool), UF_OK);
    bench_free(&b, bench_alloc_in(&b, 512, 0, pool));
    uf__core_pool_release(&b.core, pool);
    ck_assert_int_eq(uf__core_pool_flush(&b.core, pool), UF_OK);
    ck_assert(!b.core.pools[pool].is_known);
    ck_assert_int_eq(uf__core_pool_create(&b.core, 0, 2, &again), UF_OK);
    ck_assert_uint_eq(again, pool);
    ck_assert_int_eq(b.core.pools[again].use_count, 1);
    (void)bench_alloc_in(&b, 512, 0, again);
    bench_fini(&b);
}
END_TEST

START_TEST(a_pool_with_live_memory_is_not_forgotten)
{
    uint32_t pool, found;
    bench_init(&b, "", 0, 0);
    ck_assert_int_eq(uf__core_pool_create(&b.core, 0, 1, &pool), UF_OK);
    uint32_t block = bench_alloc_in(&b, 512, 0, pool);
    uf__core_pool_release(&b.core, pool);
    ck_assert_int_eq(uf__core_pool_flush(&b.core, pool), UF_OK);
    ck_assert(uf__core_pool_find(&b.core, 0, 1, &found));
    bench_free(&b, block);
    bench_empty(&b);
    ck_assert(!uf__core_pool_find(&b.core, 0, 1, &found));
    ck_assert_uint_eq(b.core.total_bytes, 0);
    bench_fini(&b);
}
END_TEST

START_TEST(retaining_and_releasing_balance)
{
    uint32_t pool;
    bench_init(&b, "", 0, 0);
    ck_assert_int_eq(uf__core_pool_create(&b.core, 0, 1, &pool), UF_OK);
    uf__core_pool_retain(&b.core, pool);
    ck_assert_int_eq(b.core.pools[pool].use_count, 2);
    uf__core_pool_release(&b.core, pool);
    uf__core_pool_release(&b.core, pool);
    ck_assert_int_eq(b.core.pools[pool].use_count, 0);
    bench_fini(&b);
}
END_TEST

START_TEST(the_newest_redirection_decides_and_each_pool_is_redirected_to_once)
{
    uint32_t first, second;
    bench_init(&b, "", 0, 0);
    ck_assert_int_eq(uf__core_pool_create(&b.core, 0, 1, &first), UF_OK);
    ck_assert_int_eq(uf__core_pool_create(&b.core, 0, 2, &second), UF_OK);
    ck_assert_uint_eq(uf__core_redirect_pool(&b.core), UF_DEFAULT_POOL);
    ck_assert_int_eq(uf__core_redirect_begin(&b.core, first), UF_OK);
    ck_assert_int_eq(uf__core_redirect_begin(&b.core, second), UF_OK);
    ck_assert_int_eq(uf__core_redirect_begin(&b.core, first), UF_ERROR_BUSY);
    ck_assert_int_eq(b.core.pools[first].use_count, 2);
    ck_assert_uint_eq(uf__core_redirect_pool(&b.core), second);
    ck_assert_int_eq(uf__core_redirect_end(&b.core, first), UF_OK);
    ck_assert_uint_eq(uf__core_redirect_pool(&b.core), second);
    ck_assert_int_eq(uf__core_redirect_end(&b.core, first), UF_ERROR_NOT_FOUND);
    ck_assert_int_eq(uf__core_redirect_end(&b.core, second), UF_OK);
    ck_assert_uint_eq(uf__core_redirect_pool(&b.core), UF_DEFAULT_POOL);
    bench_fini(&b);
}
END_TEST

START_TEST(a_pool_without_splits_hands_out_whole_segments)
{
    uint32_t pool;
    bench_init(&b, "", 0, 0);
    ck_assert_int_eq(uf__core_pool_create(&b.core, 0, 1, &pool), UF_OK);
    b.core.pools[pool].is_no_split = true;
    ck_assert_uint_eq(bench_bytes(&b, bench_alloc_in(&b, 100, 0, pool)), 2 * BENCH_MIB);
    ck_assert_uint_eq(bench_bytes(&b, bench_alloc_in(&b, 3 * BENCH_MIB, 0, pool)), 20 * BENCH_MIB);
    ck_assert_int_eq(bench_current(&b, UF_COUNTER_ALLOCATED_BYTES), (int64_t)(22 * BENCH_MIB));
    bench_fini(&b);
}
END_TEST

START_TEST(the_end_of_a_core_gives_everything_back)
{
    uint32_t pool;
    bench_init(&b, "expandable_segments:True", 0, 0);
    ck_assert_int_eq(uf__core_pool_create(&b.core, 0, 1, &pool), UF_OK);
    uint32_t hole = bench_alloc(&b, 60 * BENCH_MIB);
    (void)bench_alloc(&b, 30 * BENCH_MIB);
    (void)bench_alloc_in(&b, 30 * BENCH_MIB, 9, pool);
    (void)bench_alloc_in(&b, 512, 9, pool);
    bench_free(&b, hole);
    bench_empty(&b); /* unmapped space between two mapped runs */
    uf_conf conf = bench_conf("");
    uf__core_conf_set(&b.core, &conf);
    (void)bench_alloc(&b, 30 * BENCH_MIB);
    uint32_t waiting = bench_alloc(&b, 512);
    ck_assert_int_eq(uf__core_use(&b.core, waiting, bench_stream(&b, 9)), UF_OK);
    bench_free(&b, waiting);
    bench_fini(&b);
    ck_assert_ptr_null(b.core.blocks.items);
}
END_TEST

int main(void)
{
    return suite_run("pool", (const TTest *const[]){
                                 a_stream_is_registered_once_and_sorted_by_handle,
                                 a_thousand_streams_have_a_thousand_places,
                                 a_pool_is_found_by_both_halves_of_its_id,
                                 pools_share_no_memory,
                                 a_pool_that_is_forgotten_leaves_its_slot,
                                 a_pool_with_live_memory_is_not_forgotten,
                                 retaining_and_releasing_balance,
                                 the_newest_redirection_decides_and_each_pool_is_redirected_to_once,
                                 a_pool_without_splits_hands_out_whole_segments,
                                 the_end_of_a_core_gives_everything_back,
                                 NULL,
                             });
}
