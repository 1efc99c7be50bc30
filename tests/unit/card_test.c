/* SPDX-License-Identifier: MIT
 *
 * Cards by name. */
#include "base/card.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "base/spelling.h"

static void expect_card(const char *name, const char *found, unsigned gib)
{
    const uf_card *card = NULL;
    uf_error error;
    ck_assert_msg(uf__card_find(name, &card, &error) == UF_OK, "'%s' was not found: %s", name,
                  error.text);
    ck_assert_str_eq(card->name, found);
    ck_assert_msg(card->memory_bytes == gib * UF_GIB, "'%s' has %llu bytes", name,
                  (unsigned long long)card->memory_bytes);
}

static void expect_unknown(const char *name, const char *text)
{
    const uf_card *card = NULL;
    uf_error error;
    ck_assert_int_eq(uf__card_find(name, &card, &error), UF_ERROR_NOT_FOUND);
    ck_assert_ptr_null(card);
    ck_assert_msg(strstr(error.text, text) != NULL, "'%s' is not in: %s", text, error.text);
}

START_TEST(a_card_is_found_in_every_usual_spelling)
{
    expect_card("RTX 3060", "RTX 3060", 12);
    expect_card("rtx3060", "RTX 3060", 12);
    expect_card("NVIDIA GeForce RTX 3060", "RTX 3060", 12);
    expect_card("3060", "RTX 3060", 12);
    expect_card("RTX-3060-Ti", "RTX 3060 Ti", 8);
    expect_card("rtx 3060ti", "RTX 3060 Ti", 8);
    expect_card("4090", "RTX 4090", 24);
    expect_card("GTX 1660 SUPER", "GTX 1660 Super", 6);
    expect_card("RTX 5090", "RTX 5090", 32);
    expect_card("1080ti", "GTX 1080 Ti", 11);
}
END_TEST

START_TEST(a_driver_s_own_name_is_found)
{
    expect_card("NVIDIA A100-SXM4-80GB", "A100", 80);
    expect_card("NVIDIA A100-PCIE-40GB", "A100", 40);
    expect_card("NVIDIA H100 80GB HBM3", "H100", 80);
    expect_card("NVIDIA H100 NVL", "H100 NVL", 94);
    expect_card("Tesla T4", "T4", 16);
    expect_card("Tesla V100-SXM2-32GB", "V100", 32);
    expect_card("NVIDIA H200", "H200", 141);
    expect_card("NVIDIA L40S", "L40S", 48);
    expect_card("NVIDIA RTX A6000", "RTX A6000", 48);
    expect_card("NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada", 48);
    expect_card("NVIDIA GeForce GTX 1660 Ti with Max-Q Design", "GTX 1660 Ti", 6);
    expect_card("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "RTX PRO 6000 Blackwell", 96);
}
END_TEST

START_TEST(a_laptop_card_has_the_laptop_s_size)
{
    expect_card("NVIDIA GeForce RTX 3060 Laptop GPU", "RTX 3060 Laptop", 6);
    expect_card("RTX 4090 Laptop", "RTX 4090 Laptop", 16);
    expect_card("RTX 4080 mobile", "RTX 4080 Laptop", 12);
    expect_card("RTX 5070 Ti Laptop GPU", "RTX 5070 Ti Laptop", 12);
}
END_TEST

START_TEST(a_size_in_the_name_chooses_among_versions)
{
    expect_card("RTX 3080", "RTX 3080", 10);
    expect_card("RTX 3080 12GB", "RTX 3080", 12);
    expect_card("RTX 3080 (12 GiB)", "RTX 3080", 12);
    expect_card("rtx3080-12g", "RTX 3080", 12);
    expect_card("RTX 3060 8GB", "RTX 3060", 8);
    expect_card("RTX 4060 Ti", "RTX 4060 Ti", 8);
    expect_card("RTX 4060 Ti 16GB", "RTX 4060 Ti", 16);
    expect_unknown("RTX 3080 20GB", "10 GiB and 12 GiB, not with 20 GiB");
}
END_TEST

START_TEST(an_unknown_card_names_the_nearest)
{
    expect_unknown("RTX 3065", "RTX 3060");
    expect_unknown("RTX 409O", "RTX 4090");
    expect_unknown("", "empty");
    expect_unknown("NVIDIA GeForce", "empty");
    expect_unknown("24GB", "empty");
    const uf_card *card = NULL;
    ck_assert_int_eq(uf__card_find(NULL, &card, NULL), UF_ERROR_NOT_FOUND);
}
END_TEST

START_TEST(a_very_long_name_is_only_unknown)
{
    char name[4000];
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = '\0';
    expect_unknown(name, "no card is known");
    for (size_t i = 1; i + 1 < sizeof name; i += 2) {
        name[i] = ' ';
    }
    expect_unknown(name, "no card is known");
}
END_TEST

START_TEST(every_card_of_the_table_is_found_by_its_own_name_and_size)
{
    ck_assert_uint_ge(uf__card_count(), 60);
    for (size_t i = 0; i < uf__card_count(); i++) {
        const uf_card *card = uf__card_at(i);
        char name[80];
        snprintf(name, sizeof name, "%s %uGB", card->name, (unsigned)(card->memory_bytes / UF_GIB));
        expect_card(name, card->name, (unsigned)(card->memory_bytes / UF_GIB));
        for (size_t j = 0; j < i; j++) {
            ck_assert_msg(strcmp(uf__card_at(j)->name, card->name) != 0 ||
                              uf__card_at(j)->memory_bytes != card->memory_bytes,
                          "%s stands there twice", name);
        }
    }
}
END_TEST

START_TEST(a_slip_of_the_pen_has_distance_one)
{
    ck_assert_uint_eq(uf__spelling_distance("", 0, "abc"), 3);
    ck_assert_uint_eq(uf__spelling_distance("abc", 3, "abc"), 0);
    ck_assert_uint_eq(uf__spelling_distance("ABC", 3, "abc"), 0);
    ck_assert_uint_eq(uf__spelling_distance("acb", 3, "abc"), 1);
    ck_assert_uint_eq(uf__spelling_distance("ab", 2, "abc"), 1);
    ck_assert_uint_eq(uf__spelling_distance("abxc", 4, "abc"), 1);
    ck_assert_uint_eq(uf__spelling_distance("axc", 3, "abc"), 1);
    ck_assert_uint_eq(uf__spelling_distance("kitten", 6, "sitting"), 3);
    ck_assert(uf__spelling_is_near(3, "abc", 1));
    ck_assert(!uf__spelling_is_near(3, "abc", 2));
}
END_TEST

int main(void)
{
    TCase *names = tcase_create("card");
    tcase_add_test(names, a_card_is_found_in_every_usual_spelling);
    tcase_add_test(names, a_driver_s_own_name_is_found);
    tcase_add_test(names, a_laptop_card_has_the_laptop_s_size);
    tcase_add_test(names, a_size_in_the_name_chooses_among_versions);
    tcase_add_test(names, an_unknown_card_names_the_nearest);
    tcase_add_test(names, a_very_long_name_is_only_unknown);
    tcase_add_test(names, every_card_of_the_table_is_found_by_its_own_name_and_size);
    tcase_add_test(names, a_slip_of_the_pen_has_distance_one);
    Suite *suite = suite_create("card");
    suite_add_tcase(suite, names);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
