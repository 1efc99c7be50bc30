/* SPDX-License-Identifier: MIT
 *
 * Requests to block sizes and block sizes to segments, against the documented examples and a slow
 * second calculation. */
#include "alloc/rounding.h"

#include <check.h>
#include <inttypes.h>
#include <stdlib.h>

static uf_conf with_divisions(uint64_t divisions)
{
    uf_conf conf;
    uf__conf_init(&conf);
    for (size_t i = 0; i < UF_CONF_DIVISION_COUNT; i++) {
        conf.roundup_power2_divisions[i] = divisions;
    }
    return conf;
}

/* The rule in plain words, with divisions and loops. */
static uint64_t slow_round(const uf_conf *conf, uint64_t bytes)
{
    unsigned log2 = 0;
    if (bytes < 512) {
        return 512;
    }
    while ((bytes >> log2) > 1) {
        log2++;
    }
    int index = (int)log2 - 20;
    index = index < 0 ? 0 : index > 15 ? 15 : index;
    uint64_t divisions = conf->roundup_power2_divisions[index];
    uint64_t step = 512;
    if (divisions > 1 && bytes > 512 * divisions) {
        uint64_t floor = UINT64_C(1) << log2;
        if (bytes == floor) {
            return bytes;
        }
        step = floor / divisions;
    }
    return (bytes + step - 1) / step * step;
}

START_TEST(without_divisions_sizes_are_multiples_of_512)
{
    uf_conf conf = with_divisions(0);
    ck_assert_uint_eq(uf__round_request(&conf, 1), 512);
    ck_assert_uint_eq(uf__round_request(&conf, 511), 512);
    ck_assert_uint_eq(uf__round_request(&conf, 512), 512);
    ck_assert_uint_eq(uf__round_request(&conf, 513), 1024);
    ck_assert_uint_eq(uf__round_request(&conf, 1048577), 1049088);
    ck_assert_uint_eq(uf__round_request(&conf, 10485759), 10485760);
    ck_assert_uint_eq(uf__round_request(&conf, (UINT64_C(1) << 60) - 1), UINT64_C(1) << 60);
}
END_TEST

START_TEST(divisions_round_as_the_examples_say)
{
    uf_conf four = with_divisions(4);
    uf_conf eight = with_divisions(8);
    ck_assert_uint_eq(uf__round_request(&four, 1200), 1536);
    ck_assert_uint_eq(uf__round_request(&four, 2048), 2048);
    ck_assert_uint_eq(uf__round_request(&four, 2049), 2560);
    ck_assert_uint_eq(uf__round_request(&eight, 4097), 4608);
    ck_assert_uint_eq(uf__round_request(&eight, 4096), 4096);
    ck_assert_uint_eq(uf__round_request(&four, 3145729), 3670016);
}
END_TEST

START_TEST(one_division_is_the_same_as_none)
{
    uf_conf none = with_divisions(0);
    uf_conf one = with_divisions(1);
    for (uint64_t bytes = 1; bytes < 100000; bytes += 37) {
        ck_assert_uint_eq(uf__round_request(&one, bytes), uf__round_request(&none, bytes));
    }
}
END_TEST

START_TEST(the_division_index_goes_by_the_unrounded_size)
{
    ck_assert_uint_eq(uf__division_index(1), 0);
    ck_assert_uint_eq(uf__division_index(UF_MIB), 0);
    ck_assert_uint_eq(uf__division_index(2 * UF_MIB - 1), 0);
    ck_assert_uint_eq(uf__division_index(2 * UF_MIB), 1);
    ck_assert_uint_eq(uf__division_index(4 * UF_MIB - 1), 1);
    ck_assert_uint_eq(uf__division_index(16 * UF_GIB), 14);
    ck_assert_uint_eq(uf__division_index(32 * UF_GIB), 15);
    ck_assert_uint_eq(uf__division_index((UINT64_C(1) << 60) - 1), 15);
    uf_conf conf = with_divisions(0);
    conf.roundup_power2_divisions[7] = 8;
    ck_assert_uint_eq(uf__round_request(&conf, 128 * UF_MIB + 1), 144 * UF_MIB);
    ck_assert_uint_eq(uf__round_request(&conf, 256 * UF_MIB + 1), 256 * UF_MIB + 512);
    ck_assert_uint_eq(uf__round_request(&conf, 128 * UF_MIB - 1), 128 * UF_MIB);
}
END_TEST

START_TEST(the_fast_rule_agrees_with_the_slow_one)
{
    uint64_t state = 20240229;
    for (unsigned log2 = 0; log2 <= 20; log2++) {
        uf_conf conf = with_divisions(log2 == 0 ? 0 : UINT64_C(1) << log2);
        for (int i = 0; i < 20000; i++) {
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            uint64_t bytes = (state >> 4) >> (state >> 58);
            bytes = bytes % (UINT64_C(1) << 59) + 1;
            uint64_t rounded = uf__round_request(&conf, bytes);
            /* An assertion of check is slow; only a difference is worth one. */
            if (rounded != slow_round(&conf, bytes) || rounded < bytes || rounded % 512 != 0) {
                ck_abort_msg("%" PRIu64 " by 2^%u comes to %" PRIu64, bytes, log2, rounded);
            }
        }
    }
}
END_TEST

START_TEST(absurdly_many_divisions_stay_defined)
{
    uf_conf plain = with_divisions(UINT64_C(1) << 54);
    ck_assert_uint_eq(uf__round_request(&plain, 5000), 5120);
    /* 512 * 2^55 wraps to 0 in PyTorch: every size is above it. */
    uf_conf wrapped = with_divisions(UINT64_C(1) << 55);
    ck_assert_uint_eq(uf__round_request(&wrapped, 5000), 8192);
    ck_assert_uint_eq(uf__round_request(&wrapped, 4096), 4096);
    uf_conf largest = with_divisions(UINT64_C(1) << 63);
    ck_assert_uint_eq(uf__round_request(&largest, (UINT64_C(1) << 60) - 1), UINT64_C(1) << 60);
}
END_TEST

START_TEST(a_segment_has_one_of_three_sizes)
{
    uf_conf conf = with_divisions(0);
    ck_assert_uint_eq(uf__segment_bytes(&conf, 512), 2097152);
    ck_assert_uint_eq(uf__segment_bytes(&conf, 1048576), 2097152);
    ck_assert_uint_eq(uf__segment_bytes(&conf, 1049088), 20971520);
    ck_assert_uint_eq(uf__segment_bytes(&conf, 10485760 - 512), 20971520);
    ck_assert_uint_eq(uf__segment_bytes(&conf, 10485760), 10485760);
    ck_assert_uint_eq(uf__segment_bytes(&conf, 10486272), 12582912);
    ck_assert_uint_eq(uf__segment_bytes(&conf, 12582912), 12582912);
    ck_assert_uint_eq(uf__segment_bytes(&conf, UINT64_C(1) << 60), UINT64_C(1) << 60);
    ck_assert(uf__is_small(1048576) && !uf__is_small(1049088));
}
END_TEST

START_TEST(ten_mib_and_one_byte_leave_2096640_bytes_over)
{
    uf_conf conf = with_divisions(0);
    uint64_t rounded = uf__round_request(&conf, 10485761);
    ck_assert_uint_eq(uf__segment_bytes(&conf, rounded) - rounded, 2096640);
}
END_TEST

START_TEST(a_larger_large_segment_leaves_the_ten_mib_bound_alone)
{
    uf_conf conf = with_divisions(0);
    conf.large_segment_bytes = 64 * UF_MIB;
    ck_assert_uint_eq(uf__segment_bytes(&conf, 1049088), 64 * UF_MIB);
    ck_assert_uint_eq(uf__segment_bytes(&conf, 10485760), 10485760);
}
END_TEST

int main(void)
{
    TCase *rounding = tcase_create("rounding");
    tcase_add_test(rounding, without_divisions_sizes_are_multiples_of_512);
    tcase_add_test(rounding, divisions_round_as_the_examples_say);
    tcase_add_test(rounding, one_division_is_the_same_as_none);
    tcase_add_test(rounding, the_division_index_goes_by_the_unrounded_size);
    tcase_add_test(rounding, the_fast_rule_agrees_with_the_slow_one);
    tcase_add_test(rounding, absurdly_many_divisions_stay_defined);
    tcase_add_test(rounding, a_segment_has_one_of_three_sizes);
    tcase_add_test(rounding, ten_mib_and_one_byte_leave_2096640_bytes_over);
    tcase_add_test(rounding, a_larger_large_segment_leaves_the_ten_mib_bound_alone);
    Suite *suite = suite_create("rounding");
    suite_add_tcase(suite, rounding);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
