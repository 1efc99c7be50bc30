/* SPDX-License-Identifier: MIT
 *
 * Settings strings of PyTorch 1.10 to 2.9, releases and their grammars, and strings as people
 * posted them, read by every grammar. */
#include "alloc/conf.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"

static uf_conf conf;
static uf_conf_report report;
static uf_error error;

static uf_status read_text(const char *text, uf_conf_grammar grammar, uint16_t release)
{
    uf_conf_reading reading = {.grammar = grammar, .release = release, .is_at_import = true};
    uf__conf_init(&conf);
    memset(&error, 0, sizeof error);
    return uf__conf_read(&conf, text, &reading, &report, &error);
}

static void expect_accepted(uf_conf_grammar grammar, const char *text)
{
    ck_assert_msg(read_text(text, grammar, 0) == UF_OK, "'%s' was refused: %s", text, error.text);
}

static void expect_refused(uf_conf_grammar grammar, const char *text, uf_conf_fault fault,
                           size_t offset_bytes)
{
    ck_assert_msg(read_text(text, grammar, 0) == UF_ERROR_CONF, "'%s' was accepted", text);
    ck_assert_msg(report.fault == fault, "'%s' has fault %d: %s", text, report.fault, error.text);
    ck_assert_msg(report.offset_bytes == offset_bytes, "'%s' at %zu", text, report.offset_bytes);
    ck_assert_int_eq(report.exception, UF_CONF_RAISES_RUNTIME_ERROR);
}

static void expect_text(const char *part)
{
    ck_assert_msg(strstr(error.text, part) != NULL, "'%s' is not in: %s", part, error.text);
}

START_TEST(before_2_10_only_the_space_is_dropped)
{
    expect_accepted(UF_CONF_2_0, "max_split_ size_mb : 1 28 , expandable_segments:True");
    ck_assert_uint_eq(conf.max_split_size_bytes, 128 * UF_MIB);
    ck_assert(conf.is_expandable);
    expect_refused(UF_CONF_2_0, "max_split_size_mb\t:128", UF_CONF_FAULT_UNKNOWN_OPTION, 0);
    expect_refused(UF_CONF_2_0, "expandable_segments:\tTrue", UF_CONF_FAULT_BOOLEAN, 20);
    /* A number may have blanks in front of it. */
    expect_accepted(UF_CONF_2_0, "max_split_size_mb:\t128");
    expect_accepted(UF_CONF_2_0, "");
}
END_TEST

START_TEST(before_2_10_separators_are_checked)
{
    expect_refused(UF_CONF_2_0, "max_split_size_mb,128", UF_CONF_FAULT_SEPARATOR, 17);
    expect_text("a ':' must stand");
    expect_refused(UF_CONF_2_0, "max_split_size_mb:128:garbage_collection_threshold:0.8",
                   UF_CONF_FAULT_SEPARATOR, 21);
    expect_refused(UF_CONF_2_0, "max_split_size_mb:128;garbage_collection_threshold:0.8",
                   UF_CONF_FAULT_SEPARATOR, 50);
    expect_text("separated by ',' and not by ';'");
    ck_assert_uint_eq(conf.max_split_size_bytes, 128 * UF_MIB);
    expect_refused(UF_CONF_2_0, "max_split_size_mb", UF_CONF_FAULT_MISSING_TOKEN, 17);
    expect_refused(UF_CONF_2_0, "max_split_size_mb:", UF_CONF_FAULT_MISSING_TOKEN, 18);
    expect_accepted(UF_CONF_2_0, "max_split_size_mb:128,");
    expect_refused(UF_CONF_2_0, "backend:native,,garbage_collection_threshold:0.8",
                   UF_CONF_FAULT_UNKNOWN_OPTION, 15);
    expect_refused(UF_CONF_2_0, "roundup_power2_divisions:[64,8]", UF_CONF_FAULT_SEPARATOR, 28);
    expect_refused(UF_CONF_2_0, "roundup_power2_divisions:[64:8:1:2]", UF_CONF_FAULT_SEPARATOR, 30);
}
END_TEST

START_TEST(before_2_10_integers_have_32_bits_with_a_sign)
{
    expect_accepted(UF_CONF_2_0, "max_split_size_mb:2147483647");
    ck_assert_uint_eq(conf.max_split_size_bytes, UINT64_C(2147483647) * UF_MIB);
    expect_refused(UF_CONF_2_0, "max_split_size_mb:2147483648", UF_CONF_FAULT_NUMBER_OVERFLOW, 18);
    expect_refused(UF_CONF_2_0, "max_split_size_mb:-2147483649", UF_CONF_FAULT_NUMBER_OVERFLOW, 18);
    expect_refused(UF_CONF_2_0, "max_split_size_mb:x", UF_CONF_FAULT_NOT_A_NUMBER, 18);
    /* A negative number turns into a huge unsigned one. */
    expect_accepted(UF_CONF_2_0, "max_split_size_mb:-1");
    ck_assert_uint_eq(conf.max_split_size_bytes, UINT64_MAX - UF_MIB + 1);
    ck_assert_uint_eq(report.oddities, UF_CONF_ODD_WRAPPED | UF_CONF_ODD_CLAMPED);
    expect_accepted(UF_CONF_2_0, "max_split_size_mb:128MB");
}
END_TEST

START_TEST(before_2_10_sizes_must_be_above_20)
{
    expect_refused(UF_CONF_2_0, "max_split_size_mb:20", UF_CONF_FAULT_RANGE, 18);
    expect_text("an integer of at least 21 MB");
    expect_accepted(UF_CONF_2_0, "max_split_size_mb:21");
    expect_refused(UF_CONF_2_0, "max_non_split_rounding_mb:20", UF_CONF_FAULT_RANGE, 26);
    expect_accepted(UF_CONF_2_0, "max_non_split_rounding_mb:21");
    expect_refused(UF_CONF_1_10, "max_split_size_mb:20", UF_CONF_FAULT_RANGE, 18);
    expect_accepted(UF_CONF_1_10, "max_split_size_mb:21");
}
END_TEST

START_TEST(before_2_10_the_rounding_survives_another_call)
{
    uf_conf_reading reading = {.grammar = UF_CONF_2_0};
    expect_accepted(UF_CONF_2_0, "max_non_split_rounding_mb:64,max_split_size_mb:128");
    ck_assert_int_eq(uf__conf_read(&conf, "", &reading, NULL, NULL), UF_OK);
    ck_assert_uint_eq(conf.max_non_split_rounding_bytes, 64 * UF_MIB);
    ck_assert_uint_eq(conf.max_split_size_bytes, UF_UNLIMITED);
}
END_TEST

START_TEST(before_2_10_the_fill_item_overwrites_its_boundary_s_own_entry)
{
    expect_accepted(UF_CONF_2_0, "roundup_power2_divisions:[64:8,>:2,128:4]");
    ck_assert_uint_eq(conf.roundup_power2_divisions[5], 8);
    ck_assert_uint_eq(conf.roundup_power2_divisions[6], 2);
    ck_assert_uint_eq(conf.roundup_power2_divisions[7], 4);
    ck_assert_uint_eq(conf.roundup_power2_divisions[15], 2);
    expect_accepted(UF_CONF_2_0, "roundup_power2_divisions:[>:4]");
    ck_assert_uint_eq(conf.roundup_power2_divisions[0], 4);
    expect_refused(UF_CONF_2_0, "roundup_power2_divisions:[64:8", UF_CONF_FAULT_MISSING_TOKEN, 30);
    expect_accepted(UF_CONF_2_0, "roundup_power2_divisions:[64:8,]");
    expect_accepted(UF_CONF_2_0, "roundup_power2_divisions:16");
    expect_refused(UF_CONF_2_0, "roundup_power2_divisions:-1", UF_CONF_FAULT_RANGE, 25);
}
END_TEST

START_TEST(before_2_10_newer_options_are_unknown)
{
    expect_refused(UF_CONF_2_0, "per_process_memory_fraction:0.5", UF_CONF_FAULT_UNKNOWN_OPTION, 0);
    expect_text("known from PyTorch 2.10 on");
    expect_refused(UF_CONF_2_0, "large_segment_size_mb:32", UF_CONF_FAULT_UNKNOWN_OPTION, 0);
    expect_text("known from PyTorch 2.11 on");
    ck_assert_int_eq(read_text("expandable_segments:True", UF_CONF_2_0, 200), UF_ERROR_CONF);
    expect_text("known from PyTorch 2.1 on");
    ck_assert_int_eq(read_text("expandable_segments:True", UF_CONF_2_0, 201), UF_OK);
}
END_TEST

START_TEST(before_2_10_thresholds_and_booleans_have_the_same_ranges)
{
    expect_refused(UF_CONF_2_0, "garbage_collection_threshold:0", UF_CONF_FAULT_RANGE, 29);
    expect_refused(UF_CONF_2_0, "garbage_collection_threshold:1", UF_CONF_FAULT_RANGE, 29);
    expect_refused(UF_CONF_2_0, "garbage_collection_threshold:nan", UF_CONF_FAULT_RANGE, 29);
    expect_refused(UF_CONF_2_0, "expandable_segments:true", UF_CONF_FAULT_BOOLEAN, 20);
    expect_refused(UF_CONF_2_0, "pinned_num_register_threads:256", UF_CONF_FAULT_RANGE, 28);
    expect_refused(UF_CONF_2_0, "backend:cuda", UF_CONF_FAULT_BACKEND, 8);
}
END_TEST

START_TEST(before_2_0_items_stand_between_commas_or_blanks)
{
    expect_accepted(UF_CONF_1_10, " max_split_size_mb:128\tgarbage_collection_threshold:0.8,,"
                                  "roundup_power2_divisions:4,");
    ck_assert_uint_eq(conf.max_split_size_bytes, 128 * UF_MIB);
    ck_assert(conf.garbage_collection_threshold == 0.8);
    ck_assert_uint_eq(conf.roundup_power2_divisions[15], 4);
    ck_assert_uint_eq(report.oddities, 0);
    expect_accepted(UF_CONF_1_10, "max_split_size_mb::128:77");
    ck_assert_uint_eq(conf.max_split_size_bytes, 128 * UF_MIB);
}
END_TEST

START_TEST(before_2_0_an_item_without_a_value_is_ignored)
{
    static const char *const texts[] = {"max_split_size_mb=512", "max_split_size_mb", "nonsense",
                                        "max_split_size_mb:", "a;b c"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        expect_accepted(UF_CONF_1_10, texts[i]);
        ck_assert_uint_eq(conf.max_split_size_bytes, UF_UNLIMITED);
        ck_assert_uint_eq(report.oddities, UF_CONF_ODD_IGNORED);
        ck_assert_uint_eq(report.named, 0);
    }
    /* A blank behind the colon divides the item. */
    expect_accepted(UF_CONF_1_10, "max_split_size_mb: 128");
    ck_assert_uint_eq(conf.max_split_size_bytes, UF_UNLIMITED);
}
END_TEST

START_TEST(before_2_0_an_unknown_name_is_refused)
{
    expect_refused(UF_CONF_1_10, "max_split_size_mb:128,expandable_segments:True",
                   UF_CONF_FAULT_UNKNOWN_OPTION, 22);
    expect_text("known from PyTorch 2.1 on");
    ck_assert_uint_eq(conf.max_split_size_bytes, 128 * UF_MIB);
    expect_refused(UF_CONF_1_10, ":128", UF_CONF_FAULT_UNKNOWN_OPTION, 0);
    expect_refused(UF_CONF_1_10, "max_split_size_mb:x", UF_CONF_FAULT_NOT_A_NUMBER, 18);
    expect_refused(UF_CONF_1_10, "roundup_power2_divisions:[256:1]", UF_CONF_FAULT_NOT_A_NUMBER,
                   25);
    ck_assert_int_eq(read_text("garbage_collection_threshold:0.8", UF_CONF_1_10, 110),
                     UF_ERROR_CONF);
}
END_TEST

static void expect_release(const char *version, uf_conf_grammar grammar, unsigned release)
{
    uf_conf_grammar found;
    uint16_t number;
    ck_assert_msg(uf__conf_release_find(version, &found, &number, &error) == UF_OK, "%s", version);
    ck_assert_int_eq(found, grammar);
    ck_assert_uint_eq(number, release);
    ck_assert_int_eq(uf__conf_grammar_find(version, &found, NULL), UF_OK);
    ck_assert_int_eq(found, grammar);
}

START_TEST(every_release_has_a_grammar)
{
    expect_release("2.11", UF_CONF_2_11, 211);
    expect_release("2.11.0+cu130", UF_CONF_2_11, 211);
    expect_release("2.10.1", UF_CONF_2_10, 210);
    expect_release("2.9", UF_CONF_2_0, 209);
    expect_release("2.0.1", UF_CONF_2_0, 200);
    expect_release("1.13", UF_CONF_1_10, 113);
    expect_release("1.10.2", UF_CONF_1_10, 110);
    expect_release("2.12.0a0+git1234567", UF_CONF_2_11, 212);
    expect_release("2.12a0", UF_CONF_2_11, 212);
    expect_release("v2.4", UF_CONF_2_0, 204);
    expect_release("3.0", UF_CONF_2_11, 300);
    static const char *const bad[] = {"",       "2",    "x",     "2.",   "1.9",  "0.4", "-2.1",
                                      "2.1111", "2,11", "999.1", "2.1x", " 2.1", "2.1 "};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uf_conf_grammar grammar;
        ck_assert_msg(uf__conf_grammar_find(bad[i], &grammar, &error) == UF_ERROR_INVALID_ARGUMENT,
                      "'%s'", bad[i]);
    }
    uf_conf_grammar grammar;
    ck_assert_int_eq(uf__conf_grammar_find(NULL, &grammar, NULL), UF_ERROR_INVALID_ARGUMENT);
}
END_TEST

/* One line of conf-strings.tsv: number, a letter per release, string. */
static void check_line(char *line)
{
    static const char *const versions[] = {"1.10", "1.12", "1.13", "2.0",
                                           "2.1",  "2.9",  "2.10", "2.11"};
    char *number = strtok(line, "\t");
    char *letters = strtok(NULL, "\t");
    char *text = strtok(NULL, "\n");
    ck_assert_ptr_nonnull(text);
    ck_assert_uint_eq(strlen(letters), 8);
    for (size_t i = 0; i < 8; i++) {
        uf_conf_grammar grammar;
        uint16_t release;
        ck_assert_int_eq(uf__conf_release_find(versions[i], &grammar, &release, NULL), UF_OK);
        bool is_accepted = read_text(text, grammar, release) == UF_OK;
        ck_assert_msg(is_accepted == (letters[i] != 'x'), "%s in %s: '%s' %s", number, versions[i],
                      text, error.text);
        if (is_accepted) {
            ck_assert_msg((report.named == 0) == (letters[i] == 'i'), "%s", number);
        }
    }
}

START_TEST(strings_as_people_posted_them_are_read_as_each_release_did)
{
    FILE *file = fopen(TEST_DATA_DIR "/conf-strings.tsv", "r");
    char line[512];
    int line_count = 0;
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof line, file) != NULL) {
        if (line[0] != '#') {
            check_line(line);
            line_count++;
        }
    }
    fclose(file);
    ck_assert_int_eq(line_count, 24);
}
END_TEST

int main(void)
{
    TCase *old = tcase_create("before 2.10");
    tcase_add_test(old, before_2_10_only_the_space_is_dropped);
    tcase_add_test(old, before_2_10_separators_are_checked);
    tcase_add_test(old, before_2_10_integers_have_32_bits_with_a_sign);
    tcase_add_test(old, before_2_10_sizes_must_be_above_20);
    tcase_add_test(old, before_2_10_the_rounding_survives_another_call);
    tcase_add_test(old, before_2_10_the_fill_item_overwrites_its_boundary_s_own_entry);
    tcase_add_test(old, before_2_10_newer_options_are_unknown);
    tcase_add_test(old, before_2_10_thresholds_and_booleans_have_the_same_ranges);
    TCase *oldest = tcase_create("before 2.0");
    tcase_add_test(oldest, before_2_0_items_stand_between_commas_or_blanks);
    tcase_add_test(oldest, before_2_0_an_item_without_a_value_is_ignored);
    tcase_add_test(oldest, before_2_0_an_unknown_name_is_refused);
    TCase *releases = tcase_create("releases");
    tcase_add_test(releases, every_release_has_a_grammar);
    tcase_add_test(releases, strings_as_people_posted_them_are_read_as_each_release_did);
    Suite *suite = suite_create("conf_old");
    suite_add_tcase(suite, old);
    suite_add_tcase(suite, oldest);
    suite_add_tcase(suite, releases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
