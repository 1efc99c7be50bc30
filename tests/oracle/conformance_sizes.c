/* SPDX-License-Identifier: MIT
 *
 * Conformance: sizes and rounding (section 1, and 12 (l) (m) (p)). */
#include "oracle/bench.h"
#include "oracle/conformance.h"

#include <check.h>

/* What one request on a fresh allocator gets. */
static void check_fresh(const model_vtable *vtable, const char *conf, uint64_t bytes,
                        uint64_t block_bytes, uint64_t segment_bytes, bool is_large)
{
    bench b;
    bench_init(&b, vtable, conf);
    uint64_t addr = bench_alloc(&b, bytes);
    ck_assert_uint_eq(bench_block_bytes(&b, addr), block_bytes);
    ck_assert_uint_eq(bench_segment(&b, addr).total_bytes, segment_bytes);
    ck_assert_int_eq(bench_segment(&b, addr).is_large, is_large);
    ck_assert_uint_eq(bench_last(&b, UF_ACTION_ALLOC)->size_bytes, bytes);
    uint64_t rest = bench_block_bytes(&b, addr + block_bytes);
    ck_assert_uint_eq(rest, segment_bytes - block_bytes);
    bench_fini(&b);
}

static void one_mib_is_small(const model_vtable *vtable)
{
    check_fresh(vtable, "", BENCH_MIB, BENCH_MIB, 2 * BENCH_MIB, false);
}

static void one_mib_plus_1_is_large(const model_vtable *vtable)
{
    check_fresh(vtable, "", BENCH_MIB + 1, 1049088, 20 * BENCH_MIB, true);
}

static void ten_mib_minus_512_splits(const model_vtable *vtable)
{
    check_fresh(vtable, "", 10 * BENCH_MIB - 512, 10 * BENCH_MIB - 512, 20 * BENCH_MIB, true);
}

static void ten_mib_minus_1_has_its_own(const model_vtable *vtable)
{
    check_fresh(vtable, "", 10 * BENCH_MIB - 1, 10 * BENCH_MIB, 10 * BENCH_MIB, true);
}

static void ten_mib_plus_1_leaves_a_rest(const model_vtable *vtable)
{
    check_fresh(vtable, "", 10 * BENCH_MIB + 1, 12 * BENCH_MIB - 2096640, 12 * BENCH_MIB, true);
}

static void zero_bytes_do_nothing(const model_vtable *vtable)
{
    bench b;
    bench_init(&b, vtable, "");
    ck_assert_uint_eq(bench_alloc(&b, 0), 0);
    ck_assert_uint_eq(b.seen.count, 0);
    for (size_t i = 0; i < STAT_MAX_SPLIT_SIZE; i++) {
        ck_assert_int_eq(bench_stat(&b, i), 0);
    }
    bench_free(&b, 0);
    bench_fini(&b);
}

static void giant_request_leaves_no_trace(const model_vtable *vtable)
{
    bench b;
    bench_init(&b, vtable, "");
    ck_assert_int_eq(bench_refuse(&b, UINT64_C(1) << 60), UF_ERROR_REQUEST_TOO_LARGE);
    ck_assert_int_eq(bench_refuse(&b, UINT64_MAX), UF_ERROR_REQUEST_TOO_LARGE);
    ck_assert_uint_eq(b.seen.count, 0);
    ck_assert_int_eq(bench_stat(&b, STAT_NUM_OOMS), 0);
    bench_fini(&b);
}

static void largest_request_runs_out(const model_vtable *vtable)
{
    bench b;
    bench_init(&b, vtable, "");
    bench_limit(&b, 100 * BENCH_MIB);
    ck_assert_int_eq(bench_refuse(&b, (UINT64_C(1) << 60) - 1), UF_ERROR_OUT_OF_MEMORY);
    ck_assert_int_eq(bench_stat(&b, STAT_NUM_OOMS), 1);
    ck_assert_int_eq(bench_stat(&b, STAT_NUM_ALLOC_RETRIES), 1);
    ck_assert_uint_eq(bench_last(&b, UF_ACTION_OOM)->size_bytes, UINT64_C(1) << 60);
    bench_fini(&b);
}

/* The block size of one request. */
static uint64_t rounded(const model_vtable *vtable, const char *conf, uint64_t bytes)
{
    bench b;
    bench_init(&b, vtable, conf);
    uint64_t size = bench_block_bytes(&b, bench_alloc(&b, bytes));
    bench_fini(&b);
    return size;
}

static void one_division_does_nothing(const model_vtable *vtable)
{
    static const uint64_t sizes[] = {1, 511, 513, 1200, 2049, 100000, 3 * BENCH_MIB + 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        ck_assert_uint_eq(rounded(vtable, "roundup_power2_divisions:1", sizes[i]),
                          rounded(vtable, "", sizes[i]));
    }
}

static void four_divisions_round(const model_vtable *vtable)
{
    const char *conf = "roundup_power2_divisions:4";
    ck_assert_uint_eq(rounded(vtable, conf, 1200), 1536);
    ck_assert_uint_eq(rounded(vtable, conf, 2048), 2048);
    ck_assert_uint_eq(rounded(vtable, conf, 2049), 2560);
    ck_assert_uint_eq(rounded(vtable, conf, 3 * BENCH_MIB + 1), 3 * BENCH_MIB + BENCH_MIB / 2);
}

static void eight_divisions_round(const model_vtable *vtable)
{
    const char *conf = "roundup_power2_divisions:8";
    ck_assert_uint_eq(rounded(vtable, conf, 4096), 4096);
    ck_assert_uint_eq(rounded(vtable, conf, 4097), 4608);
}

static void divisions_go_by_request_size(const model_vtable *vtable)
{
    const char *conf = "roundup_power2_divisions:[2:4]";
    ck_assert_uint_eq(rounded(vtable, conf, 2 * BENCH_MIB - 1024 - 1), 2 * BENCH_MIB);
    ck_assert_uint_eq(rounded(vtable, conf, 2 * BENCH_MIB + 1), 5 * BENCH_MIB / 2);
    ck_assert_uint_eq(rounded(vtable, conf, 4 * BENCH_MIB + 1), 4 * BENCH_MIB + 512);
    ck_assert_uint_eq(rounded(vtable, "roundup_power2_divisions:[>:4]", BENCH_MIB + 1),
                      BENCH_MIB + 512);
}

const conformance_case conformance_sizes[] = {
    {"request_of_1_mib_is_served_by_a_2_mib_segment_of_the_small_pool", one_mib_is_small},
    {"request_of_1_mib_plus_1_splits_a_20_mib_segment", one_mib_plus_1_is_large},
    {"request_of_10_mib_minus_512_splits_a_20_mib_segment", ten_mib_minus_512_splits},
    {"request_of_10_mib_minus_1_gets_a_segment_of_10_mib", ten_mib_minus_1_has_its_own},
    {"request_of_10_mib_plus_1_leaves_2096640_bytes_of_12_mib", ten_mib_plus_1_leaves_a_rest},
    {"request_of_0_bytes_gets_null_and_no_event", zero_bytes_do_nothing},
    {"request_of_2_to_the_60_changes_no_counter", giant_request_leaves_no_trace},
    {"request_of_2_to_the_60_minus_1_runs_out_of_memory", largest_request_runs_out},
    {"one_division_rounds_as_none", one_division_does_nothing},
    {"four_divisions_round_1200_to_1536", four_divisions_round},
    {"eight_divisions_keep_4096_and_round_4097_to_4608", eight_divisions_round},
    {"divisions_are_chosen_by_the_request_size", divisions_go_by_request_size},
    {NULL, NULL},
};
