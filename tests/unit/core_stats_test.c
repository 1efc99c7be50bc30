/* SPDX-License-Identifier: MIT
 *
 * From the core's counters to the statistics people see. */
#include "alloc/core.h"

#include "unit/core_bench.h"
#include "unit/suite.h"

static bench b;

static void expect(uf_stat stat, int64_t current, int64_t peak, int64_t allocated, int64_t freed)
{
    ck_assert_int_eq(stat.current, current);
    ck_assert_int_eq(stat.peak, peak);
    ck_assert_int_eq(stat.allocated, allocated);
    ck_assert_int_eq(stat.freed, freed);
}

/* 1000 bytes and 3 MiB allocated, 2000 bytes freed, all of it once more freed but for 1000. */
static void play(void)
{
    bench_init(&b, "", 0, 0);
    (void)bench_alloc(&b, 1000);
    uint32_t small = bench_alloc(&b, 2000), large = bench_alloc(&b, 3 * BENCH_MIB);
    bench_free(&b, small);
    bench_free(&b, large);
}

START_TEST(counts_are_by_pool_and_in_all)
{
    play();
    uf_stats stats;
    uf__core_stats(&b.core, &stats);
    expect(stats.allocation.all, 1, 3, 3, 2);
    expect(stats.allocation.small_pool, 1, 2, 2, 1);
    expect(stats.allocation.large_pool, 0, 1, 1, 1);
    expect(stats.active.all, 1, 3, 3, 2);
    expect(stats.segment.all, 2, 2, 2, 0);
    expect(stats.inactive_split.small_pool, 1, 1, 1, 0);
    expect(stats.inactive_split.large_pool, 0, 1, 1, 1);
    bench_fini(&b);
}
END_TEST

START_TEST(bytes_are_blocks_requests_and_segments)
{
    play();
    uf_stats stats;
    uf__core_stats(&b.core, &stats);
    int64_t mib = (int64_t)BENCH_MIB;
    expect(stats.allocated_bytes.all, 1024, 3072 + 3 * mib, 3072 + 3 * mib, 2048 + 3 * mib);
    expect(stats.requested_bytes.all, 1000, 3000 + 3 * mib, 3000 + 3 * mib, 2000 + 3 * mib);
    expect(stats.active_bytes.small_pool, 1024, 3072, 3072, 2048);
    expect(stats.reserved_bytes.all, 22 * mib, 22 * mib, 22 * mib, 0);
    expect(stats.reserved_bytes.large_pool, 20 * mib, 20 * mib, 20 * mib, 0);
    expect(stats.inactive_split_bytes.small_pool, 2 * mib - 1024, 2 * mib - 1024,
           2 * mib - 1024 + 2048, 1024 + 2048 - 1024);
    ck_assert_int_eq(stats.num_device_alloc, 2);
    ck_assert_int_eq(stats.num_device_free, 0);
    bench_fini(&b);
}
END_TEST

START_TEST(after_a_reset_freed_counts_from_zero)
{
    play();
    uf__counters_reset_accumulated(&b.core.counters);
    uf_stats stats;
    uf__core_stats(&b.core, &stats);
    expect(stats.allocation.all, 1, 3, 0, 0);
    uint32_t block = bench_alloc(&b, 512);
    bench_free(&b, block);
    uf__core_stats(&b.core, &stats);
    expect(stats.allocation.all, 1, 3, 1, 1);
    expect(stats.allocated_bytes.small_pool, 1024, 3072, 512, 512);
    bench_fini(&b);
}
END_TEST

START_TEST(the_split_limit_shown_is_the_one_at_the_start)
{
    uf_stats stats;
    bench_init(&b, "", 0, 0);
    uf_conf conf = bench_conf("max_split_size_mb:64");
    uf__core_conf_set(&b.core, &conf);
    uf__core_stats(&b.core, &stats);
    ck_assert_int_eq(stats.max_split_size, -1);
    bench_fini(&b);
    bench_init(&b, "max_split_size_mb:64", 0, 0);
    uf__core_stats(&b.core, &stats);
    ck_assert_int_eq(stats.max_split_size, (int64_t)(64 * BENCH_MIB));
    bench_fini(&b);
}
END_TEST

START_TEST(oversize_blocks_and_segments_are_counted)
{
    bench_init(&b, "max_split_size_mb:64", 0, 0);
    uint32_t block = bench_alloc(&b, 64 * BENCH_MIB);
    (void)bench_alloc(&b, 64 * BENCH_MIB - 512);
    uf_stats stats;
    uf__core_stats(&b.core, &stats);
    expect(stats.oversize_allocations, 2, 2, 2, 0); /* 64 MiB - 512 gets a whole 64 MiB */
    expect(stats.oversize_segments, 2, 2, 2, 0);
    bench_free(&b, block);
    bench_empty(&b);
    uf__core_stats(&b.core, &stats);
    expect(stats.oversize_allocations, 1, 2, 2, 1);
    expect(stats.oversize_segments, 1, 2, 2, 1);
    ck_assert_int_eq(stats.num_sync_all_streams, 1);
    bench_fini(&b);
}
END_TEST

int main(void)
{
    return suite_run("core_stats", (const TTest *const[]){
                                       counts_are_by_pool_and_in_all,
                                       bytes_are_blocks_requests_and_segments,
                                       after_a_reset_freed_counts_from_zero,
                                       the_split_limit_shown_is_the_one_at_the_start,
                                       oversize_blocks_and_segments_are_counted,
                                       NULL,
                                   });
}
