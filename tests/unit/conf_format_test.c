/* SPDX-License-Identifier: MIT
 *
 * Settings to text and back, and the table of options. */
#include "alloc/conf.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc/conf_option.h"
#include "base/size.h"

/* Reads the text, writes the settings, compares with `expected`, reads that, compares again. */
static void expect_format(const char *text, const char *expected)
{
    uf_conf conf, again;
    uf_error error;
    char written[UF_CONF_TEXT_CAPACITY];
    uf_conf_reading reading = {.grammar = UF_CONF_2_11, .is_at_import = true};
    uf__conf_init(&conf);
    uf__conf_init(&again);
    ck_assert_int_eq(uf__conf_read(&conf, text, &reading, NULL, NULL), UF_OK);
    ck_assert_msg(uf__conf_format(&conf, written, sizeof written, &error) == UF_OK, "%s",
                  error.text);
    ck_assert_str_eq(written, expected);
    ck_assert_int_eq(uf__conf_read(&again, written, &reading, NULL, NULL), UF_OK);
    ck_assert(uf__conf_is_equal(&conf, &again));
}

START_TEST(defaults_are_the_empty_string)
{
    expect_format("", "");
    expect_format("expandable_segments:False,backend:native,per_process_memory_fraction:1", "");
    expect_format("max_non_split_rounding_mb:20,large_segment_size_mb:20", "");
    expect_format("large_segment_size_mb:32,max_non_split_rounding_mb:32",
                  "large_segment_size_mb:32");
}
END_TEST

START_TEST(each_option_is_written_with_its_value)
{
    expect_format("max_split_size_mb:128", "max_split_size_mb:128");
    expect_format("max_split_size_mb:-1", "max_split_size_mb:17592186044415");
    expect_format("garbage_collection_threshold:8e-1", "garbage_collection_threshold:0.8");
    expect_format("per_process_memory_fraction:0.16016016016016016",
                  "per_process_memory_fraction:0.16016016016016016");
    expect_format("per_process_memory_fraction:0", "per_process_memory_fraction:0");
    expect_format("backend:cudaMallocAsync", "backend:cudaMallocAsync");
    expect_format(" expandable_segments : True,max_split_size_mb:64#c",
                  "max_split_size_mb:64,expandable_segments:True");
    expect_format("release_lock_on_hipmalloc:True", "release_lock_on_cudamalloc:True");
}
END_TEST

#define ROUNDUP "roundup_power2_divisions:"

START_TEST(a_table_of_divisions_is_written_as_the_shortest_list)
{
    expect_format(ROUNDUP "[]", "");
    expect_format(ROUNDUP "4", ROUNDUP "4");
    expect_format(ROUNDUP "[32768:4]", ROUNDUP "4");
    expect_format(ROUNDUP "[>:4]", ROUNDUP "[>:4]");
    expect_format(ROUNDUP "[1:0,>:4]", ROUNDUP "[>:4]");
    expect_format(ROUNDUP "[1:2,>:4]", ROUNDUP "[1:2,>:4]");
    expect_format(ROUNDUP "[64:8,256:4]", ROUNDUP "[64:8,256:4]");
    expect_format(ROUNDUP "[512:2,64:8]", ROUNDUP "[512:2,64:8]");
    expect_format(ROUNDUP "[64:8,>:2,128:4]", ROUNDUP "[64:8,128:4,>:2]");
    expect_format(ROUNDUP "[256:1,512:2,1024:4,>:8]", ROUNDUP "[256:1,>:2,1024:4,>:8]");
    expect_format(ROUNDUP "[512:0,>:8]", ROUNDUP "[512:0,>:8]");
    expect_format(ROUNDUP "[1:2,>:4,256:8,>:16]", ROUNDUP "[1:2,>:4,256:8,>:16]");
    expect_format(ROUNDUP "[1:0,4:2]", ROUNDUP "[1:0,4:2]");
}
END_TEST

/* Any table at all comes back. */
START_TEST(random_tables_survive_the_round_trip)
{
    uint64_t state = 42;
    for (int round = 0; round < 5000; round++) {
        uf_conf conf, again;
        char text[UF_CONF_TEXT_CAPACITY];
        uf__conf_init(&conf);
        uf__conf_init(&again);
        for (int i = 0; i < UF_CONF_DIVISION_COUNT; i++) {
            static const uint64_t values[] = {0, 1, 2, 4, UINT64_C(1) << 63, 1024, 8, 16};
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            bool is_run = i > 0 && (state >> 40) % 3 != 0;
            conf.roundup_power2_divisions[i] =
                is_run ? conf.roundup_power2_divisions[i - 1]
                       : values[(state >> 33) % (1u + (unsigned)round % 8)];
        }
        if (uf__conf_format(&conf, text, sizeof text, NULL) != UF_OK ||
            uf__conf_parse(&again, text, UF_CONF_2_11, NULL) != UF_OK ||
            !uf__conf_is_equal(&conf, &again)) {
            ck_abort_msg("round %d: %s", round, text);
        }
    }
}
END_TEST

START_TEST(settings_that_no_string_yields_are_refused)
{
    uf_conf conf;
    uf_error error;
    char text[UF_CONF_TEXT_CAPACITY] = "untouched";
    uf__conf_init(&conf);
    conf.max_split_size_bytes = 128 * UF_MIB + 512;
    ck_assert_int_eq(uf__conf_format(&conf, text, sizeof text, &error), UF_ERROR_INVALID_ARGUMENT);
    ck_assert(strstr(error.text, "max_split_size_mb:128") != NULL);
    uf__conf_init(&conf);
    conf.max_split_size_bytes = 10 * UF_MIB;
    ck_assert_int_eq(uf__conf_format(&conf, text, sizeof text, &error), UF_ERROR_INVALID_ARGUMENT);
    uf__conf_init(&conf);
    conf.garbage_collection_threshold = 2.0;
    ck_assert_int_eq(uf__conf_format(&conf, text, sizeof text, &error), UF_ERROR_INVALID_ARGUMENT);
    conf.garbage_collection_threshold = 0.0 / 0.0;
    ck_assert_int_eq(uf__conf_format(&conf, text, sizeof text, &error), UF_ERROR_INVALID_ARGUMENT);
    uf__conf_init(&conf);
    conf.roundup_power2_divisions[3] = 3;
    ck_assert_int_eq(uf__conf_format(&conf, text, sizeof text, &error), UF_ERROR_INVALID_ARGUMENT);
    ck_assert_str_eq(text, "untouched");
}
END_TEST

START_TEST(a_buffer_that_is_too_small_stays_untouched)
{
    uf_conf conf;
    char text[30] = "untouched";
    uf__conf_init(&conf);
    conf.max_split_size_bytes = 128 * UF_MIB;
    ck_assert_int_eq(uf__conf_format(&conf, text, 21, NULL), UF_ERROR_INVALID_ARGUMENT);
    ck_assert_str_eq(text, "untouched");
    ck_assert_int_eq(uf__conf_format(&conf, text, 22, NULL), UF_OK);
    ck_assert_str_eq(text, "max_split_size_mb:128");
}
END_TEST

START_TEST(the_table_is_complete_and_its_defaults_are_true)
{
    uf_conf defaults;
    uf__conf_init(&defaults);
    for (size_t i = 0; i < UF_CONF_OPTION_COUNT; i++) {
        const uf_conf_option *option = uf__conf_option_at(i);
        char range[200];
        ck_assert_int_eq(option->id, (int)i);
        ck_assert_ptr_nonnull(option->name);
        ck_assert_ptr_nonnull(option->help);
        ck_assert_ptr_nonnull(option->unit);
        ck_assert_uint_ge(option->since, 110);
        ck_assert_uint_le(option->since, 211);
        uf__conf_option_range(option, UF_CONF_2_11, defaults.large_segment_bytes, range,
                              sizeof range);
        ck_assert_uint_gt(strlen(range), 5);
        /* A default that is a value is accepted, and changes nothing. */
        if (strcmp(option->default_text, "unlimited") != 0 &&
            strcmp(option->default_text, "off") != 0 && option->default_text[0] != 'l' &&
            option->type != UF_CONF_TYPE_DIVISIONS) {
            uf_conf conf;
            char text[100];
            uf__conf_init(&conf);
            snprintf(text, sizeof text, "%s:%s", option->name, option->default_text);
            ck_assert_int_eq(uf__conf_parse(&conf, text, UF_CONF_2_11, NULL), UF_OK);
            ck_assert_msg(uf__conf_is_equal(&conf, &defaults), "%s", text);
        }
    }
}
END_TEST

int main(void)
{
    TCase *format = tcase_create("format");
    tcase_add_test(format, defaults_are_the_empty_string);
    tcase_add_test(format, each_option_is_written_with_its_value);
    tcase_add_test(format, a_table_of_divisions_is_written_as_the_shortest_list);
    tcase_add_test(format, random_tables_survive_the_round_trip);
    tcase_add_test(format, settings_that_no_string_yields_are_refused);
    tcase_add_test(format, a_buffer_that_is_too_small_stays_untouched);
    tcase_add_test(format, the_table_is_complete_and_its_defaults_are_true);
    Suite *suite = suite_create("conf_format");
    suite_add_tcase(suite, format);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
