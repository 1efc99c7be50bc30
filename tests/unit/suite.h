/* SPDX-License-Identifier: MIT
 *
 * The main part of a test program of the check library: one suite, one case, a list of tests. Knows
 * nothing of what is tested; single-threaded. */
#ifndef UF_TESTS_SUITE_H
#define UF_TESTS_SUITE_H

#include <check.h>
#include <stdlib.h>

/* Runs the tests of a list that ends with NULL; each may take `seconds`. Returns the exit code. */
static inline int suite_run_for(const char *noun, const TTest *const *tests, double seconds)
{
    Suite *suite = suite_create(noun);
    TCase *tcase = tcase_create(noun);
    tcase_set_timeout(tcase, seconds);
    for (; *tests != NULL; tests++) {
        tcase_add_test(tcase, *tests);
    }
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static inline int suite_run(const char *noun, const TTest *const *tests)
{
    return suite_run_for(noun, tests, 60);
}

/* splitmix64: the same numbers on every machine. */
static inline uint64_t suite_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

#endif
