/* SPDX-License-Identifier: MIT
 *
 * Text tables without a terminal: aligned, never cut, no escape sequences. */
#include "table.h"

#include <check.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

static char *print_to_text(cli_table *table)
{
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    ck_assert_ptr_nonnull(stream);
    bool is_printed = cli_table_print(table, stream);
    fclose(stream);
    cli_table_destroy(table);
    ck_assert(is_printed);
    return text;
}

START_TEST(numbers_are_aligned_right_and_lines_end_without_blanks)
{
    cli_table *table = cli_table_create();
    cli_table_column(table, "setting", CLI_LEFT);
    cli_table_column(table, "retries", CLI_RIGHT);
    cli_table_column(table, "fits", CLI_LEFT);
    cli_table_row(table);
    cli_table_cell(table, "default");
    cli_table_cell_count(table, 1234567);
    cli_table_cell(table, "yes");
    cli_table_row(table);
    cli_table_cell(table, "max_split_size_mb:%d", 128);
    cli_table_cell_count(table, 0);
    cli_table_cell(table, "no");
    char *text = print_to_text(table);
    ck_assert_str_eq(text, "setting                  retries  fits\n"
                           "default                1 234 567  yes\n"
                           "max_split_size_mb:128          0  no\n");
    free(text);
}
END_TEST

START_TEST(a_wide_table_is_not_cut)
{
    cli_table *table = cli_table_create();
    char wide[301];
    memset(wide, 'x', 300);
    wide[300] = '\0';
    cli_table_column(table, "name", CLI_LEFT);
    cli_table_column(table, "size", CLI_RIGHT);
    cli_table_row(table);
    cli_table_cell(table, "%s", wide);
    cli_table_cell_size(table, UINT64_C(1) << 34);
    char *text = print_to_text(table);
    ck_assert_ptr_nonnull(strstr(text, wide));
    ck_assert_ptr_nonnull(strstr(text, "16.00 GiB\n"));
    free(text);
}
END_TEST

START_TEST(a_table_that_had_no_memory_is_reported_when_printed)
{
    cli_table_column(NULL, "name", CLI_LEFT);
    cli_table_row(NULL);
    cli_table_cell(NULL, "x");
    ck_assert(!cli_table_print(NULL, stdout));
    cli_table_destroy(NULL);
}
END_TEST

START_TEST(counts_come_in_groups_of_three)
{
    static const struct {
        uint64_t count;
        const char *text;
    } cases[] = {{0, "0"},
                 {999, "999"},
                 {1000, "1 000"},
                 {246555, "246 555"},
                 {UINT64_MAX, "18 446 744 073 709 551 615"}};
    char text[CLI_COUNT_TEXT_CAPACITY];
    ck_assert_str_eq(cli_count_format(text, cases[_i].count), cases[_i].text);
}
END_TEST

int main(void)
{
    setlocale(LC_CTYPE, "C.UTF-8");
    Suite *suite = suite_create("table");
    TCase *cases = tcase_create("table");
    tcase_add_test(cases, numbers_are_aligned_right_and_lines_end_without_blanks);
    tcase_add_test(cases, a_wide_table_is_not_cut);
    tcase_add_test(cases, a_table_that_had_no_memory_is_reported_when_printed);
    tcase_add_loop_test(cases, counts_come_in_groups_of_three, 0, 5);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed_count = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed_count == 0 ? 0 : 1;
}
