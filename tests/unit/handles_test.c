/* SPDX-License-Identifier: MIT
 *
 * Which block each allocation has: copies share until one writes. */
#include "replay/handles.h"

#include "unit/suite.h"

START_TEST(what_was_never_set_has_no_block)
{
    uf_handles handles;
    ck_assert(uf__handles_init(&handles, 5000));
    ck_assert_uint_eq(uf__handles_get(&handles, 0), UF_NO_BLOCK);
    ck_assert_uint_eq(uf__handles_get(&handles, 4999), UF_NO_BLOCK);
    ck_assert(uf__handles_set(&handles, 4999, 3));
    ck_assert_uint_eq(uf__handles_get(&handles, 4999), 3);
    ck_assert_uint_eq(uf__handles_get(&handles, 4998), UF_NO_BLOCK);
    uf__handles_fini(&handles);
}
END_TEST

START_TEST(a_copy_and_its_original_change_apart)
{
    uf_handles original, copy;
    ck_assert(uf__handles_init(&original, 2000));
    ck_assert(uf__handles_set(&original, 1, 11));
    ck_assert(uf__handles_set(&original, 1500, 12));
    ck_assert(uf__handles_copy(&copy, &original));
    ck_assert(uf__handles_set(&copy, 1, 21));
    ck_assert(uf__handles_set(&original, 1500, 22));
    ck_assert_uint_eq(uf__handles_get(&original, 1), 11);
    ck_assert_uint_eq(uf__handles_get(&copy, 1), 21);
    ck_assert_uint_eq(uf__handles_get(&original, 1500), 22);
    ck_assert_uint_eq(uf__handles_get(&copy, 1500), 12);
    uf__handles_fini(&original);
    ck_assert_uint_eq(uf__handles_get(&copy, 1500), 12);
    uf__handles_fini(&copy);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {what_was_never_set_has_no_block,
                                  a_copy_and_its_original_change_apart, NULL};
    return suite_run("handles", tests);
}
