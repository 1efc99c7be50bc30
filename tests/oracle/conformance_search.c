/* SPDX-License-Identifier: MIT
 *
 * Conformance: which block serves a request, splitting, max_split_size and expandable segments
 * (sections 2 and 6, and 12 (b) (h) (n)). */
#include "oracle/bench.h"
#include "oracle/conformance.h"

#include <check.h>

/* A cached block of the given size on an otherwise fresh allocator; returns its address. */
static uint64_t cache_one(bench *b, const model_vtable *vtable, const char *conf, uint64_t bytes)
{
    bench_init(b, vtable, conf);
    uint64_t addr = bench_alloc(b, bytes);
    bench_free(b, addr);
    bench_forget(b);
    return addr;
}

static void below_the_limit_splits(const model_vtable *vtable)
{
    bench b;
    uint64_t addr = cache_one(&b, vtable, "max_split_size_mb:128", 100 * BENCH_MIB);
    ck_assert_uint_eq(bench_alloc(&b, 40 * BENCH_MIB), addr);
    ck_assert_uint_eq(bench_block_bytes(&b, addr + 40 * BENCH_MIB), 60 * BENCH_MIB);
    ck_assert_int_eq(bench_current(&b, STAT_INACTIVE_SPLIT), 1);
    bench_fini(&b);
}

static void oversize_is_left_alone(const model_vtable *vtable)
{
    bench b;
    uint64_t addr = cache_one(&b, vtable, "max_split_size_mb:128", 300 * BENCH_MIB);
    uint64_t other = bench_alloc(&b, 40 * BENCH_MIB);
    ck_assert_uint_ne(other, addr);
    ck_assert_uint_eq(bench_last(&b, UF_ACTION_SEGMENT_ALLOC)->size_bytes, 40 * BENCH_MIB);
    ck_assert_int_eq(bench_block_state(&b, addr), UF_BLOCK_INACTIVE);
    bench_fini(&b);
}

static void exactly_the_limit_is_oversize(const model_vtable *vtable)
{
    bench b;
    uint64_t addr = cache_one(&b, vtable, "max_split_size_mb:128", 128 * BENCH_MIB);
    ck_assert_int_eq(bench_stat(&b, STAT_OVERSIZE_SEGMENTS + STAT_CURRENT), 1);
    ck_assert_int_eq(bench_stat(&b, STAT_OVERSIZE_ALLOCATIONS + STAT_ALLOCATED), 1);
    ck_assert_int_eq(bench_stat(&b, STAT_OVERSIZE_ALLOCATIONS + STAT_FREED), 1);
    ck_assert_uint_ne(bench_alloc(&b, 100 * BENCH_MIB), addr);
    bench_fini(&b);
}

static void oversize_serves_nearly_its_size(const model_vtable *vtable)
{
    bench b;
    uint64_t addr = cache_one(&b, vtable, "max_split_size_mb:128", 300 * BENCH_MIB);
    ck_assert_uint_eq(bench_alloc(&b, 290 * BENCH_MIB), addr);
    ck_assert_uint_eq(bench_block_bytes(&b, addr), 300 * BENCH_MIB);
    bench_free(&b, addr);
    ck_assert_uint_ne(bench_alloc(&b, 280 * BENCH_MIB), addr);
    bench_fini(&b);
}

static void request_below_both_limits_is_unaffected(const model_vtable *vtable)
{
    static const char *const confs[] = {"max_split_size_mb:32", "max_split_size_mb:64"};
    for (size_t i = 0; i < 2; i++) {
        bench b;
        bench_init(&b, vtable, confs[i]);
        uint64_t addr = bench_alloc(&b, 30 * BENCH_MIB);
        ck_assert_uint_eq(bench_segment(&b, addr).total_bytes, 30 * BENCH_MIB);
        bench_free(&b, addr);
        ck_assert_uint_eq(bench_alloc(&b, 30 * BENCH_MIB), addr);
        bench_fini(&b);
    }
}

static void ties_go_to_the_lowest_address(const model_vtable *vtable)
{
    bench b;
    bench_init(&b, vtable, "");
    uint64_t one = bench_alloc(&b, 12 * BENCH_MIB);
    uint64_t two = bench_alloc(&b, 12 * BENCH_MIB);
    bench_free(&b, two);
    bench_free(&b, one);
    ck_assert_uint_eq(bench_alloc(&b, 11 * BENCH_MIB), one < two ? one : two);
    bench_fini(&b);
}

static void large_rest_of_1_mib_stays(const model_vtable *vtable)
{
    bench b;
    uint64_t addr = cache_one(&b, vtable, "", 20 * BENCH_MIB);
    ck_assert_uint_eq(bench_alloc(&b, 19 * BENCH_MIB), addr);
    ck_assert_uint_eq(bench_block_bytes(&b, addr), 20 * BENCH_MIB);
    bench_free(&b, addr);
    ck_assert_uint_eq(bench_alloc(&b, 19 * BENCH_MIB - 512), addr);
    ck_assert_uint_eq(bench_block_bytes(&b, addr), 19 * BENCH_MIB - 512);
    bench_fini(&b);
}

static void streams_do_not_share(const model_vtable *vtable)
{
    bench b;
    uint64_t addr = cache_one(&b, vtable, "", 20 * BENCH_MIB);
    ck_assert_uint_ne(bench_alloc_on(&b, 20 * BENCH_MIB, 7), addr);
    ck_assert_uint_eq(bench_alloc(&b, 20 * BENCH_MIB), addr);
    bench_fini(&b);
}

static void expandable_mode_splits_old_blocks(const model_vtable *vtable)
{
    bench b;
    uint64_t addr = cache_one(&b, vtable, "", 20 * BENCH_MIB);
    bench_conf(&b, "expandable_segments:True");
    ck_assert_uint_eq(bench_alloc(&b, 20 * BENCH_MIB - 512), addr);
    ck_assert_uint_eq(bench_block_bytes(&b, addr + 20 * BENCH_MIB - 512), 512);
    ck_assert_uint_eq(bench_count(&b, UF_ACTION_SEGMENT_MAP), 0);
    bench_fini(&b);
}

static void oversize_expandable_block_serves(const model_vtable *vtable)
{
    bench b;
    uint64_t addr =
        cache_one(&b, vtable, "expandable_segments:True,max_split_size_mb:64", 100 * BENCH_MIB);
    ck_assert_uint_eq(bench_alloc(&b, 10 * BENCH_MIB), addr);
    ck_assert_uint_eq(bench_count(&b, UF_ACTION_SEGMENT_MAP), 0);
    ck_assert_int_eq(bench_stat(&b, STAT_NUM_DEVICE_ALLOC), 1);
    bench_fini(&b);
}

static void expandable_counts_no_segments(const model_vtable *vtable)
{
    bench b;
    bench_init(&b, vtable, "expandable_segments:True,max_split_size_mb:64");
    uint64_t one = bench_alloc(&b, 100 * BENCH_MIB);
    uint64_t two = bench_alloc(&b, 3 * BENCH_MIB);
    uint64_t three = bench_alloc(&b, 100);
    bench_free(&b, one);
    bench_free(&b, three);
    bench_empty_cache(&b);
    bench_free(&b, two);
    ck_assert_int_eq(bench_stat(&b, model_stat_index(STAT_SEGMENT, STAT_ALL, STAT_ALLOCATED)), 0);
    ck_assert_int_eq(
        bench_stat(&b, model_stat_index(STAT_INACTIVE_SPLIT, STAT_ALL, STAT_ALLOCATED)), 0);
    ck_assert_int_eq(bench_stat(&b, STAT_OVERSIZE_SEGMENTS + STAT_ALLOCATED), 0);
    ck_assert_int_eq(bench_stat(&b, STAT_OVERSIZE_ALLOCATIONS + STAT_ALLOCATED), 1);
    bench_fini(&b);
}

static void mapping_can_exceed_the_limit(const model_vtable *vtable)
{
    bench b;
    bench_init(&b, vtable, "expandable_segments:True");
    bench_limit(&b, 13 * BENCH_MIB);
    (void)bench_alloc(&b, 12 * BENCH_MIB);
    ck_assert_int_eq(bench_current(&b, STAT_RESERVED_BYTES), (int64_t)(20 * BENCH_MIB));
    ck_assert_uint_eq(bench_last(&b, UF_ACTION_SEGMENT_MAP)->size_bytes, 20 * BENCH_MIB);
    bench_fini(&b);
}

static void limit_ignores_the_cached_tail(const model_vtable *vtable)
{
    bench b;
    bench_init(&b, vtable, "expandable_segments:True");
    bench_limit(&b, 60 * BENCH_MIB);
    uint64_t addr = bench_alloc(&b, 40 * BENCH_MIB);
    bench_free(&b, addr);
    uint64_t head = bench_alloc(&b, 19 * BENCH_MIB); /* leaves a cached tail of 21 MiB */
    ck_assert_uint_eq(head, addr);
    bench_forget(&b);
    (void)bench_alloc(&b, 40 * BENCH_MIB);
    ck_assert_int_eq(bench_stat(&b, STAT_NUM_ALLOC_RETRIES), 1);
    ck_assert_uint_eq(bench_count(&b, UF_ACTION_SEGMENT_UNMAP), 1);
    ck_assert_uint_eq(bench_last(&b, UF_ACTION_SEGMENT_UNMAP)->size_bytes, 20 * BENCH_MIB);
    bench_fini(&b);
}

static void switching_off_leaves_expandable_blocks_unused(const model_vtable *vtable)
{
    bench b;
    uint64_t addr = cache_one(&b, vtable, "expandable_segments:True", 20 * BENCH_MIB);
    bench_conf(&b, "expandable_segments:False");
    ck_assert_uint_ne(bench_alloc(&b, 20 * BENCH_MIB), addr);
    ck_assert_uint_eq(bench_count(&b, UF_ACTION_SEGMENT_ALLOC), 1);
    bench_empty_cache(&b);
    ck_assert_uint_eq(bench_count(&b, UF_ACTION_SEGMENT_UNMAP), 1);
    bench_fini(&b);
}

static void start_value_of_max_split_size_is_kept(const model_vtable *vtable)
{
    bench b;
    bench_init(&b, vtable, "");
    bench_conf(&b, "max_split_size_mb:64");
    ck_assert_int_eq(bench_stat(&b, STAT_MAX_SPLIT_SIZE), -1);
    bench_fini(&b);
    bench_init(&b, vtable, "max_split_size_mb:64");
    bench_conf(&b, "");
    ck_assert_int_eq(bench_stat(&b, STAT_MAX_SPLIT_SIZE), (int64_t)(64 * BENCH_MIB));
    bench_fini(&b);
}

static void nothing_is_counted_before_the_first_request(const model_vtable *vtable)
{
    bench b;
    bench_init(&b, vtable, "");
    for (size_t i = 0; i < MODEL_STAT_COUNT; i++) {
        ck_assert_int_eq(bench_stat(&b, i), i == STAT_MAX_SPLIT_SIZE ? -1 : 0);
    }
    bench_fini(&b);
}

/* active >= allocation; active_bytes >= allocated_bytes, and both cover what was asked for;
 * reserved is what the segments have. 1000 bytes are a block of 1024, 3 MiB are a block as they
 * are. */
static void statistics_contain_each_other(const model_vtable *vtable)
{
    static const int64_t large = (int64_t)(3 * BENCH_MIB);
    static const struct {
        int64_t allocation, active, allocated, active_bytes, requested;
    } expected[] = {
        {2, 2, large + 1024, large + 1024, large + 1000},
        {1, 2, large, large + 1024, large + 1000}, /* freed, another stream still uses it */
        {1, 2, large, large + 1024, large + 1000}, /* done, and nobody has looked */
        {1, 1, large, large, large},               /* flushed */
    };
    bench b;
    bench_init(&b, vtable, "");
    uint64_t small = bench_alloc(&b, 1000);
    (void)bench_alloc(&b, 3 * BENCH_MIB);
    bench_use(&b, small, 7);
    for (size_t step = 0; step < sizeof expected / sizeof *expected; step++) {
        if (step == 1) {
            bench_free(&b, small);
        } else if (step == 2) {
            bench_synchronize(&b);
        } else if (step == 3) {
            bench_empty_cache(&b);
        }
        ck_assert_int_eq(bench_current(&b, STAT_ALLOCATION), expected[step].allocation);
        ck_assert_int_eq(bench_current(&b, STAT_ACTIVE), expected[step].active);
        ck_assert_int_eq(bench_current(&b, STAT_ALLOCATED_BYTES), expected[step].allocated);
        ck_assert_int_eq(bench_current(&b, STAT_ACTIVE_BYTES), expected[step].active_bytes);
        ck_assert_int_eq(bench_current(&b, STAT_REQUESTED_BYTES), expected[step].requested);
        ck_assert_int_eq(bench_current(&b, STAT_RESERVED_BYTES),
                         (int64_t)((step < 3 ? 22 : 20) * BENCH_MIB));
    }
    bench_fini(&b);
}

const conformance_case conformance_search[] = {
    {"cached_100_mib_is_split_for_40_mib_below_max_split_size", below_the_limit_splits},
    {"cached_300_mib_is_left_alone_above_max_split_size", oversize_is_left_alone},
    {"block_of_exactly_max_split_size_is_oversize", exactly_the_limit_is_oversize},
    {"oversize_300_mib_serves_290_mib_but_not_280", oversize_serves_nearly_its_size},
    {"request_of_30_mib_is_the_same_with_limits_of_32_and_64",
     request_below_both_limits_is_unaffected},
    {"equal_sizes_are_served_from_the_lowest_address", ties_go_to_the_lowest_address},
    {"rest_of_1_mib_stays_in_a_large_block", large_rest_of_1_mib_stays},
    {"cached_block_serves_its_own_stream_only", streams_do_not_share},
    {"expandable_mode_splits_an_old_block_down_to_512", expandable_mode_splits_old_blocks},
    {"oversize_expandable_block_serves_10_mib_without_mapping", oversize_expandable_block_serves},
    {"expandable_run_counts_no_segments", expandable_counts_no_segments},
    {"mapping_12_mib_exceeds_a_limit_of_13_mib", mapping_can_exceed_the_limit},
    {"limit_refuses_40_mib_although_20_more_would_do", limit_ignores_the_cached_tail},
    {"expandable_blocks_are_skipped_when_switched_off",
     switching_off_leaves_expandable_blocks_unused},
    {"statistics_are_0_before_the_first_request", nothing_is_counted_before_the_first_request},
    {"active_covers_allocated_and_reserved_is_what_segments_have", statistics_contain_each_other},
    {"max_split_size_statistic_keeps_its_start_value", start_value_of_max_split_size_is_kept},
    {NULL, NULL},
};
