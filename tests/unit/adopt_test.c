/* SPDX-License-Identifier: MIT
 *
 * Segments that were there before: what a core makes of them. */
#include "alloc/adopt.h"

#include "unit/core_bench.h"
#include "unit/suite.h"

#define BASE UINT64_C(0x7f0000000000)

static bench b;

static uf_adopt_block piece(uint64_t offset_bytes, uint64_t size_bytes, uf_life life)
{
    return (uf_adopt_block){.addr = BASE + offset_bytes,
                            .size_bytes = size_bytes,
                            .requested_bytes = life == UF_LIFE_FREE ? 0 : size_bytes - 12,
                            .life = (uint8_t)life,
                            .is_mapped = true};
}

static uf_status adopt(uf_adopt_block *blocks, uint32_t count, bool is_expandable)
{
    uf_adopt_segment segment = {.pool_class = UF_CLASS_LARGE,
                                .is_expandable = is_expandable,
                                .page_bytes = is_expandable ? 20 * BENCH_MIB : 0,
                                .blocks = blocks,
                                .block_count = count};
    uf_status status = uf__core_adopt(&b.core, &segment);
    b.sim.in_use_bytes = b.core.total_bytes;
    return status;
}

START_TEST(adopted_blocks_count_and_serve_and_merge)
{
    bench_init(&b, "", 0, 0);
    uf_adopt_block blocks[] = {piece(0, 4 * BENCH_MIB, UF_LIFE_ALLOCATED),
                               piece(4 * BENCH_MIB, 6 * BENCH_MIB, UF_LIFE_FREE),
                               piece(10 * BENCH_MIB, 10 * BENCH_MIB, UF_LIFE_ALLOCATED)};
    ck_assert_int_eq(adopt(blocks, 3, false), UF_OK);
    bench_check(&b);
    ck_assert_uint_eq(b.core.total_bytes, 20 * BENCH_MIB);
    ck_assert_int_eq(bench_current(&b, UF_COUNTER_ACTIVE), 2);
    ck_assert_int_eq(bench_current(&b, UF_COUNTER_ALLOCATED_BYTES), (int64_t)(14 * BENCH_MIB));
    ck_assert_int_eq(bench_current(&b, UF_COUNTER_REQUESTED_BYTES), (int64_t)(14 * BENCH_MIB - 24));
    ck_assert_int_eq(bench_current(&b, UF_COUNTER_INACTIVE_SPLIT), 1);
    ck_assert_int_eq(bench_current(&b, UF_COUNTER_SEGMENT), 1);
    ck_assert_int_eq(b.core.counters.num_device_alloc, 0);
    uint32_t block = bench_alloc(&b, 5 * BENCH_MIB);
    ck_assert_uint_eq(bench_addr(&b, block), BASE + 4 * BENCH_MIB);
    bench_free(&b, block);
    bench_free(&b, blocks[0].handle);
    bench_free(&b, blocks[2].handle);
    ck_assert_uint_eq(bench_bytes(&b, blocks[2].handle), 20 * BENCH_MIB);
    bench_empty(&b);
    ck_assert_uint_eq(b.core.total_bytes, 0);
    bench_fini(&b);
}
END_TEST

START_TEST(an_adopted_reservation_grows_like_any_other)
{
    bench_init(&b, "expandable_segments:True", 0, 0);
    uf_adopt_block blocks[] = {
        piece(0, 15 * BENCH_MIB, UF_LIFE_ALLOCATED),
        piece(15 * BENCH_MIB, 5 * BENCH_MIB, UF_LIFE_FREE),
        {.addr = BASE + 20 * BENCH_MIB, .size_bytes = 920 * BENCH_MIB, .life = UF_LIFE_FREE}};
    ck_assert_int_eq(adopt(blocks, 3, true), UF_OK);
    bench_check(&b);
    b.range_count = 1;
    ck_assert_uint_eq(b.core.total_bytes, 20 * BENCH_MIB);
    ck_assert_int_eq(bench_current(&b, UF_COUNTER_SEGMENT), 0);
    ck_assert_int_eq(bench_current(&b, UF_COUNTER_INACTIVE_SPLIT), 0);
    uint32_t block = bench_alloc(&b, 40 * BENCH_MIB);
    ck_assert_uint_eq(bench_addr(&b, block), BASE + 15 * BENCH_MIB);
    ck_assert_uint_eq(b.core.total_bytes, 60 * BENCH_MIB);
    bench_fini(&b);
}
END_TEST

START_TEST(unmapped_blocks_of_two_reservations_are_listed_by_address)
{
    bench_init(&b, "expandable_segments:True", 0, 0);
    uf_adopt_block high[] = {{.addr = BASE, .size_bytes = 20 * BENCH_MIB, .life = UF_LIFE_FREE},
                             piece(20 * BENCH_MIB, 20 * BENCH_MIB, UF_LIFE_ALLOCATED)};
    uf_adopt_block low[] = {
        {.addr = 40 * BENCH_MIB, .size_bytes = 20 * BENCH_MIB, .life = UF_LIFE_FREE},
        {.addr = 60 * BENCH_MIB,
         .size_bytes = 20 * BENCH_MIB,
         .life = UF_LIFE_ALLOCATED,
         .is_mapped = true}};
    ck_assert_int_eq(adopt(high, 2, true), UF_OK);
    ck_assert_int_eq(adopt(low, 2, true), UF_OK);
    bench_check(&b);
    b.range_count = 2;
    ck_assert_uint_eq(bench_addr(&b, bench_alloc(&b, 20 * BENCH_MIB)), 40 * BENCH_MIB);
    ck_assert_uint_eq(bench_addr(&b, bench_alloc(&b, 20 * BENCH_MIB)), BASE);
    bench_fini(&b);
}
END_TEST

START_TEST(oversize_memory_is_counted)
{
    bench_init(&b, "max_split_size_mb:64", 0, 0);
    uf_adopt_block blocks[] = {piece(0, 70 * BENCH_MIB, UF_LIFE_ALLOCATED)};
    ck_assert_int_eq(adopt(blocks, 1, false), UF_OK);
    bench_check(&b);
    ck_assert_int_eq(b.core.counters.oversize_allocations.current, 1);
    ck_assert_int_eq(b.core.counters.oversize_segments.current, 1);
    bench_fini(&b);
}
END_TEST

/* After a refusal the core is only to be ended. */
static void refuse(uf_adopt_block *blocks, uint32_t count)
{
    bench_init(&b, "", 0, 0);
    ck_assert_int_eq(adopt(blocks, count, false), UF_ERROR_BAD_INPUT);
    uf__core_fini(&b.core);
}

START_TEST(gaps_overlaps_empty_blocks_and_empty_segments_are_refused)
{
    uf_adopt_block gap[] = {piece(0, 512, UF_LIFE_ALLOCATED), piece(1024, 512, UF_LIFE_FREE)};
    refuse(gap, 2);
    uf_adopt_block overlap[] = {piece(0, 1024, UF_LIFE_ALLOCATED), piece(512, 512, UF_LIFE_FREE)};
    refuse(overlap, 2);
    uf_adopt_block empty[] = {piece(0, 512, UF_LIFE_ALLOCATED), piece(512, 0, UF_LIFE_FREE)};
    refuse(empty, 2);
    refuse(empty, 0);
}
END_TEST

int main(void)
{
    return suite_run("adopt", (const TTest *const[]){
                                  adopted_blocks_count_and_serve_and_merge,
                                  an_adopted_reservation_grows_like_any_other,
                                  unmapped_blocks_of_two_reservations_are_listed_by_address,
                                  oversize_memory_is_counted,
                                  gaps_overlaps_empty_blocks_and_empty_segments_are_refused,
                                  NULL,
                              });
}
