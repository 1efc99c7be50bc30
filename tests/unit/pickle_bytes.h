/* SPDX-License-Identifier: MIT
 *
 * For tests: pickles written by hand, as C string literals with embedded NULs, and a reader's
 * refusal checked in one call. */
#ifndef UF_TESTS_PICKLE_BYTES_H
#define UF_TESTS_PICKLE_BYTES_H

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <unfrag/trace.h>

/* A literal and its length. */
#define BYTES(literal) (literal), (sizeof(literal) - 1)

static inline uf_trace *read_bytes(const char *data, size_t size_bytes)
{
    uf_trace *trace = NULL;
    uf_error error = {0};
    uf_status status = uf_trace_read_memory(data, size_bytes, NULL, &trace, &error);
    ck_assert_msg(status == UF_OK, "%s: %s", uf_status_name(status), error.text);
    ck_assert_ptr_nonnull(trace);
    return trace;
}

static inline void expect_refusal(const char *data, size_t size_bytes, const char *part)
{
    uf_trace *trace = NULL;
    uf_error error = {0};
    uf_status status = uf_trace_read_memory(data, size_bytes, NULL, &trace, &error);
    ck_assert_msg(status == UF_ERROR_BAD_INPUT, "%s instead of a refusal with '%s'",
                  uf_status_name(status), part);
    ck_assert_int_eq(error.status, UF_ERROR_BAD_INPUT);
    ck_assert_ptr_null(trace);
    ck_assert_msg(strstr(error.text, part) != NULL, "'%s' lacks '%s'", error.text, part);
}

/* Runs a suite of one case and returns the program's exit status. */
static inline int run_case(const char *name, const TTest *const *tests, size_t count)
{
    TCase *test_case = tcase_create(name);
    for (size_t i = 0; i < count; i++)
        tcase_add_test(test_case, tests[i]);
    Suite *suite = suite_create(name);
    suite_add_tcase(suite, test_case);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
