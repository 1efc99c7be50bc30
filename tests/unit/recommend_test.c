/* SPDX-License-Identifier: MIT
 *
 * Looking settings up by card, in a small table. */
#include "advise/recommend.h"

#include "unit/folder.h"
#include "unit/suite.h"

#define GIB (UINT64_C(1) << 30)
#define HEAD                                                                 \
    "recording\twhat\tcard_bytes\tconf\tneeds_limit\tsmallest_limit_bytes\t" \
    "default_smallest_limit_bytes\tallowance_bytes\tleast_conf\tleast_limit_bytes\n"
/* 8 GiB: nothing. 12 GiB: e:1, needs 10 + 1 GiB. 24 GiB: the defaults, which need 22.5 + 1; the
 * least of all are those of e:1 again. */
#define ROWS                                                                                \
    "a\tA\t8589934592\t(none)\t0\t10737418240\t24159191040\t1073741824\te:1\t10737418240\n" \
    "a\tA\t12884901888\te:1\t0\t10737418240\t24159191040\t1073741824\te:1\t10737418240\n"   \
    "a\tA\t25769803776\t(default)\t0\t24159191040\t24159191040\t1073741824\te:1\t10737418240\n"

static uf_recommendations list;

static uf_status read_for(const char *text, uint64_t card_bytes)
{
    uf_error error = {0};
    folder_create();
    folder_write_text("cards.tsv", text);
    uf_status status =
        uf__recommendations_read(folder_path("cards.tsv"), card_bytes, &list, &error);
    folder_destroy();
    return status;
}

START_TEST(a_card_gets_the_answer_of_its_class)
{
    ck_assert_int_eq(read_for(HEAD ROWS, 12 * GIB), UF_OK);
    ck_assert_uint_eq(list.count, 1);
    ck_assert_uint_eq(list.items[0].class_bytes, 12 * GIB);
    ck_assert(list.items[0].fits && !list.items[0].default_fits);
    ck_assert_str_eq(list.items[0].conf, "e:1");
    ck_assert_uint_eq(list.items[0].need_bytes, 11 * GIB);
    ck_assert_str_eq(uf__recommendations_conf(&list), "e:1");
    uf__recommendations_fini(&list);
}
END_TEST

START_TEST(a_driver_that_tells_a_little_less_is_of_the_same_class)
{
    ck_assert_int_eq(read_for(HEAD ROWS, 12 * GIB - GIB / 2), UF_OK);
    ck_assert_uint_eq(list.items[0].class_bytes, 12 * GIB);
    uf__recommendations_fini(&list);
    ck_assert_int_eq(read_for(HEAD ROWS, 11 * GIB), UF_OK);
    ck_assert_uint_eq(list.items[0].class_bytes, 8 * GIB);
    ck_assert(!list.items[0].fits);
    ck_assert_ptr_null(uf__recommendations_conf(&list));
    uf__recommendations_fini(&list);
}
END_TEST

START_TEST(settings_that_need_the_whole_class_give_way_to_the_least)
{
    ck_assert_int_eq(read_for(HEAD ROWS, 24 * GIB), UF_OK);
    ck_assert(list.items[0].fits);
    ck_assert_str_eq(list.items[0].conf, "");
    uf__recommendations_fini(&list);
    ck_assert_int_eq(read_for(HEAD ROWS, 23 * GIB), UF_OK);
    ck_assert_uint_eq(list.items[0].class_bytes, 24 * GIB);
    ck_assert(list.items[0].fits && !list.items[0].default_fits);
    ck_assert_str_eq(list.items[0].conf, "e:1");
    uf__recommendations_fini(&list);
}
END_TEST

START_TEST(a_card_outside_all_classes_takes_the_nearest_inside)
{
    ck_assert_int_eq(read_for(HEAD ROWS, 140 * GIB), UF_OK);
    ck_assert_uint_eq(list.items[0].class_bytes, 24 * GIB);
    uf__recommendations_fini(&list);
    ck_assert_int_eq(read_for(HEAD ROWS, 4 * GIB), UF_OK);
    ck_assert_uint_eq(list.items[0].class_bytes, 8 * GIB);
    ck_assert(!list.items[0].fits);
    uf__recommendations_fini(&list);
}
END_TEST

START_TEST(what_is_no_table_is_refused)
{
    ck_assert_int_eq(read_for("name\tconf\n", GIB), UF_ERROR_BAD_INPUT);
    uf__recommendations_fini(&list);
    ck_assert_int_eq(read_for(HEAD "a\tA\t1\n", GIB), UF_ERROR_BAD_INPUT);
    uf__recommendations_fini(&list);
}
END_TEST

START_TEST(the_bundled_table_is_one)
{
    uf_error error = {0};
    ck_assert_int_eq(
        uf__recommendations_read(PROJECT_DATA_DIR "/cards.tsv", 24 * GIB, &list, &error), UF_OK);
    ck_assert_uint_ge(list.count, 6);
    uf__recommendations_fini(&list);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {a_card_gets_the_answer_of_its_class,
                                  a_driver_that_tells_a_little_less_is_of_the_same_class,
                                  settings_that_need_the_whole_class_give_way_to_the_least,
                                  a_card_outside_all_classes_takes_the_nearest_inside,
                                  what_is_no_table_is_refused,
                                  the_bundled_table_is_one,
                                  NULL};
    return suite_run("recommend", tests);
}
