/* SPDX-License-Identifier: MIT
 *
 * Every status has the exit code that docs/exit-codes.md promises. */
#include "exit_code.h"

#include <check.h>

static const struct {
    uf_status status;
    cli_exit code;
} table[] = {
    {UF_OK, CLI_EXIT_DONE},
    {UF_ERROR_INVALID_ARGUMENT, CLI_EXIT_USAGE},
    {UF_ERROR_CONF, CLI_EXIT_USAGE},
    {UF_ERROR_HOST_MEMORY, CLI_EXIT_ENVIRONMENT},
    {UF_ERROR_OUT_OF_MEMORY, CLI_EXIT_NO},
    {UF_ERROR_REQUEST_TOO_LARGE, CLI_EXIT_NO},
    {UF_ERROR_DEVICE_MEMORY, CLI_EXIT_ENVIRONMENT},
    {UF_ERROR_DEVICE, CLI_EXIT_ENVIRONMENT},
    {UF_ERROR_FOREIGN_POINTER, CLI_EXIT_NO},
    {UF_ERROR_NOT_FOUND, CLI_EXIT_USAGE},
    {UF_ERROR_BUSY, CLI_EXIT_INTERNAL},
    {UF_ERROR_DAMAGED, CLI_EXIT_NO},
    {UF_ERROR_HAZARD, CLI_EXIT_NO},
    {UF_ERROR_BAD_INPUT, CLI_EXIT_INPUT},
    {UF_ERROR_IO, CLI_EXIT_INPUT},
    {UF_ERROR_UNSUPPORTED, CLI_EXIT_ENVIRONMENT},
    {UF_ERROR_INTERRUPTED, CLI_EXIT_INTERRUPTED},
    {UF_ERROR_INTERNAL, CLI_EXIT_INTERNAL},
};

#define TABLE_COUNT (sizeof table / sizeof table[0])

START_TEST(each_status_has_its_exit_code)
{
    ck_assert_int_eq((int)cli_exit_code(table[_i].status), (int)table[_i].code);
}
END_TEST

START_TEST(no_status_is_left_out_of_the_table)
{
    size_t status_count = 0;
#define COUNT_STATUS(name, value, text) status_count += 1;
    UF_STATUS_LIST(COUNT_STATUS)
#undef COUNT_STATUS
    ck_assert_uint_eq(status_count, TABLE_COUNT);
}
END_TEST

START_TEST(a_failed_write_is_the_environment_and_a_failed_read_the_input)
{
    uf_error error = {.status = UF_ERROR_IO, .text = "x"};
    ck_assert_int_eq((int)cli_fail("verb", &error), (int)CLI_EXIT_INPUT);
    ck_assert_int_eq((int)cli_fail_output("verb", &error), (int)CLI_EXIT_ENVIRONMENT);
    error.status = UF_ERROR_INVALID_ARGUMENT;
    ck_assert_int_eq((int)cli_fail_output("verb", &error), (int)CLI_EXIT_USAGE);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("exit_code");
    TCase *cases = tcase_create("exit_code");
    tcase_add_loop_test(cases, each_status_has_its_exit_code, 0, (int)TABLE_COUNT);
    tcase_add_test(cases, no_status_is_left_out_of_the_table);
    tcase_add_test(cases, a_failed_write_is_the_environment_and_a_failed_read_the_input);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed_count = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed_count == 0 ? 0 : 1;
}
