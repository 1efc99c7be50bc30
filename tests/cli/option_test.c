/* SPDX-License-Identifier: MIT
 *
 * Values of options: sizes, percentages, cards, numbers; and the nearest name. */
#include <check.h>

#include "base/size.h"
#include "nearest.h"
#include "number_option.h"
#include "size_option.h"

START_TEST(a_size_needs_no_card_and_a_percentage_does)
{
    uf_error error = {0};
    uint64_t bytes = 7;
    ck_assert_int_eq(cli_size_option("--limit", "24GiB", 0, &bytes, &error), UF_OK);
    ck_assert_uint_eq(bytes, 24 * UF_GIB);
    ck_assert_int_eq(cli_size_option("--limit", "50%", 24 * UF_GIB, &bytes, &error), UF_OK);
    ck_assert_uint_eq(bytes, 12 * UF_GIB);
    ck_assert_int_eq(cli_size_option("--limit", "50%", 0, &bytes, &error),
                     UF_ERROR_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.text, "--card"));
    ck_assert_uint_eq(bytes, 12 * UF_GIB);
}
END_TEST

START_TEST(a_size_that_is_none_names_the_option)
{
    static const char *const bad[] = {"", "x", "-1", "0", "24 GB of memory", "1e3"};
    uf_error error = {0};
    uint64_t bytes = 7;
    ck_assert_int_eq(cli_size_option("--limit", bad[_i], 0, &bytes, &error),
                     UF_ERROR_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.text, "--limit"));
    ck_assert_uint_eq(bytes, 7);
}
END_TEST

START_TEST(a_card_is_a_size_or_a_name)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {
        {"24GiB", 24 * UF_GIB},   {"25769803776", 24 * UF_GIB}, {"RTX 3060", 12 * UF_GIB},
        {"rtx3060", 12 * UF_GIB}, {"4090", 24 * UF_GIB},        {"RTX 3080 12GB", 12 * UF_GIB},
        {"9000000", 9000000},
    };
    uf_error error = {0};
    uint64_t bytes = 0;
    ck_assert_int_eq(cli_card_option("--card", good[_i].text, &bytes, &error), UF_OK);
    ck_assert_uint_eq(bytes, good[_i].bytes);
}
END_TEST

START_TEST(a_card_that_is_unknown_names_the_option)
{
    static const char *const bad[] = {"", "RTX 9999 Ultra", "24GX", "0"};
    uf_error error = {0};
    uint64_t bytes = 7;
    ck_assert_int_eq(cli_card_option("--card", bad[_i], &bytes, &error), UF_ERROR_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.text, "--card"));
    ck_assert_uint_eq(bytes, 7);
}
END_TEST

START_TEST(a_number_is_taken_whole_and_within_its_range)
{
    uf_error error = {0};
    uint64_t value = 0;
    ck_assert_int_eq(cli_number_option("--repeat", "12", 1, 100, &value, &error), UF_OK);
    ck_assert_uint_eq(value, 12);
    static const char *const bad[] = {"",   "0",  "101", "-3",
                                      "+3", "1x", " 1",  "99999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_int_eq(cli_number_option("--repeat", bad[i], 1, 100, &value, &error),
                         UF_ERROR_INVALID_ARGUMENT);
        ck_assert_ptr_nonnull(strstr(error.text, "--repeat"));
    }
    ck_assert_uint_eq(value, 12);
}
END_TEST

START_TEST(the_nearest_name_is_found_if_it_is_near)
{
    static const char *const names[] = {"replay", "convert"};
    ck_assert_str_eq(cli_nearest("repaly", names, 2), "replay");
    ck_assert_str_eq(cli_nearest("CONVERTS", names, 2), "convert");
    ck_assert_ptr_null(cli_nearest("frobnicate", names, 2));
    ck_assert_ptr_null(cli_nearest("replay", names, 0));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("option");
    TCase *cases = tcase_create("option");
    tcase_add_test(cases, a_size_needs_no_card_and_a_percentage_does);
    tcase_add_loop_test(cases, a_size_that_is_none_names_the_option, 0, 6);
    tcase_add_loop_test(cases, a_card_is_a_size_or_a_name, 0, 7);
    tcase_add_loop_test(cases, a_card_that_is_unknown_names_the_option, 0, 4);
    tcase_add_test(cases, a_number_is_taken_whole_and_within_its_range);
    tcase_add_test(cases, the_nearest_name_is_found_if_it_is_near);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed_count = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed_count == 0 ? 0 : 1;
}
