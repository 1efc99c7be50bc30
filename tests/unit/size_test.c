/* SPDX-License-Identifier: MIT
 *
 * Sizes: text to bytes, bytes to text, arithmetic that cannot wrap. */
#include "base/size.h"

#include <check.h>
#include <stdlib.h>

static void expect_bytes(const char *text, uint64_t expected)
{
    uint64_t bytes = 77;
    uf_error error;
    ck_assert_msg(uf__size_parse(text, &bytes, &error) == UF_OK, "'%s' was refused", text);
    ck_assert_msg(bytes == expected, "'%s' is %llu", text, (unsigned long long)bytes);
}

static void expect_refused(const char *text)
{
    uint64_t bytes = 77;
    uf_error error = {UF_OK, ""};
    ck_assert_int_eq(uf__size_parse(text, &bytes, &error), UF_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(error.status, UF_ERROR_INVALID_ARGUMENT);
    ck_assert_msg(error.text[0] != '\0', "no text for '%s'", text);
    ck_assert_uint_eq(bytes, 77);
    ck_assert_int_eq(uf__size_parse(text, &bytes, NULL), UF_ERROR_INVALID_ARGUMENT);
}

START_TEST(every_unit_is_binary_in_every_spelling)
{
    expect_bytes("0", 0);
    expect_bytes("4096", 4096);
    expect_bytes("4096B", 4096);
    expect_bytes("20KiB", 20480);
    expect_bytes("512MiB", 536870912);
    expect_bytes("24GiB", UINT64_C(25769803776));
    expect_bytes("1.5GiB", 1610612736);
    expect_bytes("24GB", UINT64_C(25769803776));
    expect_bytes("24G", UINT64_C(25769803776));
    expect_bytes("24gib", UINT64_C(25769803776));
    expect_bytes("24 GiB", UINT64_C(25769803776));
    expect_bytes("  512m  ", 536870912);
    expect_bytes("512MB", 536870912);
    expect_bytes("2TiB", UINT64_C(2199023255552));
    expect_bytes("1PiB", UINT64_C(1125899906842624));
    expect_bytes("+1k", 1024);
    expect_bytes(".5KiB", 512);
    expect_bytes("1.KiB", 1024);
}
END_TEST

START_TEST(a_fraction_is_rounded_to_the_nearest_byte)
{
    expect_bytes("0.1KiB", 102);
    expect_bytes("0.3KiB", 307);
    expect_bytes("23.42GiB", UINT64_C(25147033518));
    expect_bytes("1.0000000000000000009KiB", 1024);
}
END_TEST

START_TEST(the_largest_size_is_one_byte_below_2_to_the_64)
{
    expect_bytes("18446744073709551615", UINT64_MAX);
    expect_bytes("16383PiB", UINT64_C(16383) << 50);
    expect_refused("18446744073709551616");
    expect_refused("16384PiB");
    expect_refused("99999999999999999999999999GiB");
    expect_refused("18446744073709551615.9KiB");
}
END_TEST

START_TEST(what_is_no_size_is_refused)
{
    expect_refused(NULL);
    expect_refused("");
    expect_refused("   ");
    expect_refused("-1GiB");
    expect_refused("nan");
    expect_refused("inf");
    expect_refused("GiB");
    expect_refused(".");
    expect_refused("12QiB");
    expect_refused("12GiBx");
    expect_refused("12GiB 3");
    expect_refused("12i");
    expect_refused("1.5");
    expect_refused("1.5B");
    expect_refused("1e9");
    expect_refused("0x10");
    expect_refused("1,5GiB");
    expect_refused("90%");
}
END_TEST

START_TEST(a_share_is_of_the_whole_and_rounded_down)
{
    uint64_t bytes = 0;
    ck_assert_int_eq(uf__size_parse_of("90%", 25769803776, &bytes, NULL), UF_OK);
    ck_assert_uint_eq(bytes, UINT64_C(23192823398));
    ck_assert_int_eq(uf__size_parse_of("100 %", UINT64_MAX, &bytes, NULL), UF_OK);
    ck_assert_uint_eq(bytes, UINT64_MAX);
    ck_assert_int_eq(uf__size_parse_of("0%", UINT64_MAX, &bytes, NULL), UF_OK);
    ck_assert_uint_eq(bytes, 0);
    ck_assert_int_eq(uf__size_parse_of("12.5%", 1000, &bytes, NULL), UF_OK);
    ck_assert_uint_eq(bytes, 125);
    ck_assert_int_eq(uf__size_parse_of("2GiB", 1000, &bytes, NULL), UF_OK);
    ck_assert_uint_eq(bytes, UINT64_C(2147483648));
    ck_assert_int_eq(uf__size_parse_of("100.1%", 1000, &bytes, NULL), UF_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(uf__size_parse_of("-1%", 1000, &bytes, NULL), UF_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(uf__size_parse_of("90%%", 1000, &bytes, NULL), UF_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(uf__size_parse_of("%", 1000, &bytes, NULL), UF_ERROR_INVALID_ARGUMENT);
    ck_assert_uint_eq(bytes, UINT64_C(2147483648));
}
END_TEST

static void expect_text(uint64_t bytes, const char *expected)
{
    char buffer[UF_SIZE_TEXT_CAPACITY];
    ck_assert_str_eq(uf__size_format(buffer, sizeof buffer, bytes), expected);
}

START_TEST(bytes_are_written_with_two_decimals_in_the_largest_unit)
{
    expect_text(0, "0 B");
    expect_text(512, "512 B");
    expect_text(1023, "1023 B");
    expect_text(1024, "1.00 KiB");
    expect_text(1536, "1.50 KiB");
    expect_text(536870912, "512.00 MiB");
    expect_text(UINT64_C(25147033518), "23.42 GiB");
    expect_text(UINT64_C(150109880320), "139.80 GiB");
    expect_text(UINT64_MAX, "16.00 EiB");
}
END_TEST

START_TEST(a_size_that_rounds_to_1024_is_written_in_the_next_unit)
{
    expect_text(UINT64_C(1048575), "1.00 MiB");
    expect_text(UINT64_C(1073741823), "1.00 GiB");
    expect_text(UINT64_C(1048576) - 6, "1023.99 KiB");
}
END_TEST

START_TEST(a_short_buffer_cuts_the_text)
{
    char buffer[5] = "xxxx";
    ck_assert_str_eq(uf__size_format(buffer, sizeof buffer, 536870912), "512.");
    ck_assert_ptr_eq(uf__size_format(buffer, 0, 1), buffer);
    ck_assert_str_eq(buffer, "512.");
}
END_TEST

START_TEST(checked_arithmetic_refuses_to_wrap)
{
    uint64_t result = 5;
    ck_assert(uf__add_checked(UINT64_MAX - 1, 1, &result));
    ck_assert_uint_eq(result, UINT64_MAX);
    ck_assert(!uf__add_checked(UINT64_MAX, 1, &result));
    ck_assert(uf__multiply_checked(UINT64_C(1) << 32, UINT32_MAX, &result));
    ck_assert_uint_eq(result, UINT64_C(0xffffffff00000000));
    ck_assert(!uf__multiply_checked(UINT64_C(1) << 32, UINT64_C(1) << 32, &result));
    ck_assert_uint_eq(result, UINT64_C(0xffffffff00000000));
    ck_assert(uf__subtract_checked(5, 5, &result));
    ck_assert_uint_eq(result, 0);
    ck_assert(!uf__subtract_checked(5, 6, &result));
    ck_assert(uf__round_up_checked(1, 512, &result));
    ck_assert_uint_eq(result, 512);
    ck_assert(uf__round_up_checked(512, 512, &result));
    ck_assert_uint_eq(result, 512);
    ck_assert(uf__round_up_checked(7, 3, &result));
    ck_assert_uint_eq(result, 9);
    ck_assert(!uf__round_up_checked(UINT64_MAX, 512, &result));
    ck_assert(!uf__round_up_checked(1, 0, &result));
    ck_assert_uint_eq(result, 9);
}
END_TEST

START_TEST(powers_of_two_are_rounded_by_masks)
{
    ck_assert_uint_eq(uf__round_up_power2(513, 512), 1024);
    ck_assert_uint_eq(uf__round_up_power2(0, 512), 0);
    ck_assert_uint_eq(uf__round_down_power2(1023, 512), 512);
    ck_assert(uf__is_power2(1) && uf__is_power2(UINT64_C(1) << 63));
    ck_assert(!uf__is_power2(0) && !uf__is_power2(3));
    ck_assert_uint_eq(uf__floor_log2(1), 0);
    ck_assert_uint_eq(uf__floor_log2(1023), 9);
    ck_assert_uint_eq(uf__floor_log2(UINT64_MAX), 63);
}
END_TEST

int main(void)
{
    TCase *sizes = tcase_create("size");
    tcase_add_test(sizes, every_unit_is_binary_in_every_spelling);
    tcase_add_test(sizes, a_fraction_is_rounded_to_the_nearest_byte);
    tcase_add_test(sizes, the_largest_size_is_one_byte_below_2_to_the_64);
    tcase_add_test(sizes, what_is_no_size_is_refused);
    tcase_add_test(sizes, a_share_is_of_the_whole_and_rounded_down);
    tcase_add_test(sizes, bytes_are_written_with_two_decimals_in_the_largest_unit);
    tcase_add_test(sizes, a_size_that_rounds_to_1024_is_written_in_the_next_unit);
    tcase_add_test(sizes, a_short_buffer_cuts_the_text);
    tcase_add_test(sizes, checked_arithmetic_refuses_to_wrap);
    tcase_add_test(sizes, powers_of_two_are_rounded_by_masks);
    Suite *suite = suite_create("size");
    suite_add_tcase(suite, sizes);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
