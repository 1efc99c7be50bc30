/* SPDX-License-Identifier: MIT
 *
 * Segments and blocks as a snapshot lists them. */
#include "alloc/layout.h"

#include "unit/core_bench.h"
#include "unit/suite.h"

static bench b;
static uf_layout layout;

static void take(void)
{
    ck_assert_int_eq(uf__layout_init(&layout, &b.core), UF_OK);
}

static void finish(void)
{
    uf__layout_fini(&layout);
    ck_assert_ptr_null(layout.segments);
    bench_fini(&b);
}

START_TEST(an_empty_core_has_no_segments)
{
    bench_init(&b, "", 0, 0);
    take();
    ck_assert_uint_eq(layout.segment_count, 0);
    finish();
}
END_TEST

START_TEST(segments_come_by_address_with_their_sums)
{
    uint32_t pool;
    bench_init(&b, "", 0, 0);
    ck_assert_int_eq(uf__core_pool_create(&b.core, 4, 0, &pool), UF_OK);
    uint32_t first = bench_alloc(&b, 1000), waiting = bench_alloc(&b, 700);
    (void)bench_alloc_in(&b, 3 * BENCH_MIB, 9, pool);
    ck_assert_int_eq(uf__core_use(&b.core, waiting, bench_stream(&b, 9)), UF_OK);
    bench_free(&b, waiting);
    take();
    ck_assert_uint_eq(layout.segment_count, 2);
    const uf_layout_segment *small = &layout.segments[0], *large = &layout.segments[1];
    ck_assert_uint_eq(small->addr, UF_SIM_FIRST_ADDR);
    ck_assert_uint_eq(small->total_bytes, 2 * BENCH_MIB);
    ck_assert_uint_eq(small->allocated_bytes, 1024);
    ck_assert_uint_eq(small->active_bytes, 2048);
    ck_assert_uint_eq(small->requested_bytes, 1700);
    ck_assert_uint_eq(small->first_block, first);
    ck_assert_uint_eq(small->block_count, 3);
    ck_assert(!small->is_large && !small->is_expandable);
    ck_assert_uint_eq(large->addr, UF_SIM_FIRST_ADDR + 2 * BENCH_MIB);
    ck_assert_uint_eq(large->stream, 9);
    ck_assert_uint_eq(large->pool_id[0], 4);
    ck_assert_uint_eq(large->pool, pool);
    ck_assert(large->is_large && !large->is_expandable);
    finish();
}
END_TEST

START_TEST(an_expandable_segment_is_one_entry_per_mapped_run)
{
    bench_init(&b, "expandable_segments:True", 0, 0);
    (void)bench_alloc(&b, 20 * BENCH_MIB);
    uint32_t hole = bench_alloc(&b, 60 * BENCH_MIB);
    (void)bench_alloc(&b, 5 * BENCH_MIB);
    bench_free(&b, hole);
    bench_empty(&b);
    take();
    ck_assert_uint_eq(layout.segment_count, 2);
    ck_assert_uint_eq(layout.segments[0].total_bytes, 20 * BENCH_MIB);
    ck_assert_uint_eq(layout.segments[0].block_count, 1);
    ck_assert_uint_eq(layout.segments[1].addr, UF_SIM_FIRST_ADDR + 80 * BENCH_MIB);
    ck_assert_uint_eq(layout.segments[1].total_bytes, 20 * BENCH_MIB);
    ck_assert_uint_eq(layout.segments[1].block_count, 2);
    ck_assert_uint_eq(layout.segments[1].active_bytes, 5 * BENCH_MIB);
    ck_assert(layout.segments[0].is_expandable && layout.segments[1].is_large);
    finish();
}
END_TEST

START_TEST(the_sum_of_all_segments_is_what_is_reserved)
{
    bench_init(&b, "", 0, 0);
    uint64_t random = 5, sum_bytes = 0;
    for (int i = 0; i < 200; i++) {
        uint32_t block = bench_alloc(&b, 1 + suite_random(&random) % (30 * BENCH_MIB));
        if (suite_random(&random) % 2 == 0) {
            bench_free(&b, block);
        }
    }
    take();
    for (uint32_t i = 0; i < layout.segment_count; i++) {
        sum_bytes += layout.segments[i].total_bytes;
        ck_assert(i == 0 || layout.segments[i - 1].addr < layout.segments[i].addr);
    }
    ck_assert_uint_eq(sum_bytes, b.core.total_bytes);
    ck_assert_uint_gt(layout.segment_count, 20);
    finish();
}
END_TEST

int main(void)
{
    return suite_run("layout", (const TTest *const[]){
                                   an_empty_core_has_no_segments,
                                   segments_come_by_address_with_their_sums,
                                   an_expandable_segment_is_one_entry_per_mapped_run,
                                   the_sum_of_all_segments_is_what_is_reserved,
                                   NULL,
                               });
}
