/* SPDX-License-Identifier: MIT
 *
 * Running the conformance lists, each statement as a test case of its own name. */
#include "oracle/conformance.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

static const model_vtable *model_under_test;
static const conformance_case *const lists[] = {conformance_sizes, conformance_search,
                                                conformance_chain, conformance_pools};

#define LIST_COUNT (sizeof lists / sizeof *lists)
#define LIST_ROOM 1000

/* _i is list * LIST_ROOM + place */
START_TEST(statement)
{
    lists[_i / LIST_ROOM][_i % LIST_ROOM].run(model_under_test);
}
END_TEST

int conformance_main(const model_vtable *vtable)
{
    model_under_test = vtable;
    Suite *suite = suite_create(vtable->name);
    for (size_t list = 0; list < LIST_COUNT; list++) {
        for (size_t i = 0; lists[list][i].name != NULL; i++) {
            int place = (int)(list * LIST_ROOM + i);
            TCase *test = tcase_create(lists[list][i].name);
            tcase_add_loop_test(test, statement, place, place + 1);
            suite_add_tcase(suite, test);
        }
    }
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed_count = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed_count == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
