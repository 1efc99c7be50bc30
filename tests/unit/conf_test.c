/* SPDX-License-Identifier: MIT
 *
 * Settings strings of PyTorch 2.10 and later: what is accepted, what is refused, and what each
 * string comes to. */
#include "alloc/conf.h"

#include <check.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc/conf_option.h"
#include "base/size.h"

static uf_conf conf;
static uf_conf_report report;
static uf_error error;

static uf_status read_text(const char *text)
{
    uf_conf_reading reading = {.grammar = UF_CONF_2_11};
    memset(&error, 0, sizeof error);
    return uf__conf_read(&conf, text, &reading, &report, &error);
}

/* Reads the text into default settings. */
static void expect_accepted(const char *text)
{
    uf__conf_init(&conf);
    ck_assert_msg(read_text(text) == UF_OK, "'%s' was refused: %s", text, error.text);
    ck_assert_int_eq(report.fault, UF_CONF_FAULT_NONE);
    ck_assert_int_eq(report.exception, UF_CONF_RAISES_NOTHING);
}

static void expect_refused(const char *text, uf_conf_fault fault, uf_conf_exception exception,
                           size_t offset_bytes)
{
    uf__conf_init(&conf);
    ck_assert_msg(read_text(text) == UF_ERROR_CONF, "'%s' was accepted", text);
    ck_assert_int_eq(error.status, UF_ERROR_CONF);
    ck_assert_msg(report.fault == fault, "'%s' has fault %d: %s", text, report.fault, error.text);
    ck_assert_msg(report.exception == exception, "'%s' raises %d", text, report.exception);
    ck_assert_msg(report.offset_bytes == offset_bytes, "'%s' at %zu", text, report.offset_bytes);
}

static void expect_text(const char *part)
{
    ck_assert_msg(strstr(error.text, part) != NULL, "'%s' is not in: %s", part, error.text);
}

#define VALUE_ERROR UF_CONF_RAISES_VALUE_ERROR
#define INDEX_ERROR UF_CONF_RAISES_INDEX_ERROR
#define RUNTIME_ERROR UF_CONF_RAISES_RUNTIME_ERROR

START_TEST(defaults_are_those_of_pytorch)
{
    uf__conf_init(&conf);
    ck_assert_uint_eq(conf.max_split_size_bytes, UF_UNLIMITED);
    ck_assert_uint_eq(conf.max_non_split_rounding_bytes, 20 * UF_MIB);
    ck_assert_uint_eq(conf.large_segment_bytes, 20 * UF_MIB);
    ck_assert(conf.garbage_collection_threshold == 0.0);
    ck_assert(conf.per_process_memory_fraction == 1.0);
    for (int i = 0; i < UF_CONF_DIVISION_COUNT; i++) {
        ck_assert_uint_eq(conf.roundup_power2_divisions[i], 0);
    }
    ck_assert(!conf.is_expandable && !conf.can_reuse_in_capture && !conf.has_background_threads);
    ck_assert(!conf.has_host_register && !conf.can_release_lock && !conf.is_async_backend);
    ck_assert_uint_eq(conf.pinned_num_register_threads, 1);
    ck_assert_uint_eq(conf.pinned_reserve_segment_mb, 0);
}
END_TEST

START_TEST(every_option_sets_its_field)
{
    expect_accepted("large_segment_size_mb:32,max_split_size_mb:128,max_non_split_rounding_mb:64,"
                    "garbage_collection_threshold:0.8,roundup_power2_divisions:4,"
                    "expandable_segments:True,pinned_use_background_threads:True,backend:native,"
                    "release_lock_on_cudamalloc:True,pinned_use_cuda_host_register:True,"
                    "pinned_num_register_threads:8,pinned_reserve_segment_size_mb:100,"
                    "graph_capture_record_stream_reuse:True,per_process_memory_fraction:0.5");
    ck_assert_uint_eq(conf.large_segment_bytes, 32 * UF_MIB);
    ck_assert_uint_eq(conf.max_split_size_bytes, 128 * UF_MIB);
    ck_assert_uint_eq(conf.max_non_split_rounding_bytes, 64 * UF_MIB);
    ck_assert(conf.garbage_collection_threshold == 0.8);
    ck_assert_uint_eq(conf.roundup_power2_divisions[0], 4);
    ck_assert_uint_eq(conf.roundup_power2_divisions[15], 4);
    ck_assert(conf.is_expandable && conf.can_reuse_in_capture && conf.has_background_threads);
    ck_assert(conf.has_host_register && conf.can_release_lock && !conf.is_async_backend);
    ck_assert_uint_eq(conf.pinned_num_register_threads, 8);
    ck_assert_uint_eq(conf.pinned_reserve_segment_mb, 100);
    ck_assert(conf.per_process_memory_fraction == 0.5);
    ck_assert_uint_eq(report.named, (1u << UF_CONF_OPTION_COUNT) - 1);
    ck_assert_uint_eq(report.oddities, 0);
}
END_TEST

START_TEST(the_names_of_amd_builds_are_aliases)
{
    expect_accepted("release_lock_on_hipmalloc:True,pinned_use_hip_host_register:True");
    ck_assert(conf.can_release_lock && conf.has_host_register);
}
END_TEST

START_TEST(the_empty_string_gives_defaults)
{
    uf_conf defaults;
    uf__conf_init(&defaults);
    expect_accepted("");
    ck_assert(uf__conf_is_equal(&conf, &defaults));
    expect_accepted(" \t\n");
    ck_assert(uf__conf_is_equal(&conf, &defaults));
    ck_assert_int_eq(read_text(NULL), UF_ERROR_INVALID_ARGUMENT);
}
END_TEST

START_TEST(blanks_are_dropped_even_inside_a_word)
{
    expect_accepted("expandable_segments:T r u e");
    ck_assert(conf.is_expandable);
    ck_assert_uint_eq(report.oddities, UF_CONF_ODD_INNER_BLANK);
    expect_accepted(" max_split\t_size_mb : 1\n2\v8 , expandable_segments\f:\rTrue ");
    ck_assert_uint_eq(conf.max_split_size_bytes, 128 * UF_MIB);
    ck_assert(conf.is_expandable);
    expect_accepted("garbage_collection_threshold:0.8, expandable_segments:True");
    ck_assert_uint_eq(report.oddities, 0);
}
END_TEST

START_TEST(separators_are_stepped_over_without_a_look)
{
    static const char *const texts[] = {"max_split_size_mb,128", "max_split_size_mb[128",
                                        "max_split_size_mb]128"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        expect_accepted(texts[i]);
        ck_assert_uint_eq(conf.max_split_size_bytes, 128 * UF_MIB);
        ck_assert_uint_eq(report.oddities, UF_CONF_ODD_SEPARATOR);
    }
    expect_accepted("max_split_size_mb:128:garbage_collection_threshold:0.8");
    ck_assert_uint_eq(conf.max_split_size_bytes, 128 * UF_MIB);
    ck_assert(conf.garbage_collection_threshold == 0.8);
    ck_assert_uint_eq(report.oddities, UF_CONF_ODD_SEPARATOR);
}
END_TEST

START_TEST(a_missing_token_is_a_runtime_error)
{
    expect_refused("max_split_size_mb", UF_CONF_FAULT_MISSING_TOKEN, RUNTIME_ERROR, 17);
    expect_text("max_split_size_mb");
    expect_text("at least 20");
    expect_refused("max_split_size_mb:", UF_CONF_FAULT_MISSING_TOKEN, RUNTIME_ERROR, 18);
    expect_refused("expandable_segments", UF_CONF_FAULT_MISSING_TOKEN, RUNTIME_ERROR, 19);
    expect_refused("backend:", UF_CONF_FAULT_MISSING_TOKEN, RUNTIME_ERROR, 8);
    expect_refused("large_segment_size_mb", UF_CONF_FAULT_MISSING_TOKEN, RUNTIME_ERROR, 21);
}
END_TEST

START_TEST(integers_are_the_longest_numeric_prefix)
{
    static const char *const texts[] = {"max_split_size_mb:128MB", "max_split_size_mb:128;x",
                                        "max_split_size_mb:128#c", "max_split_size_mb:128.9"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        expect_accepted(texts[i]);
        ck_assert_uint_eq(conf.max_split_size_bytes, 128 * UF_MIB);
        ck_assert_uint_eq(report.oddities, UF_CONF_ODD_TRAILING);
    }
    expect_accepted("max_split_size_mb:+128");
    ck_assert_uint_eq(conf.max_split_size_bytes, 128 * UF_MIB);
    ck_assert_uint_eq(report.oddities, 0);
    expect_accepted("max_split_size_mb:64#c");
    ck_assert_uint_eq(conf.max_split_size_bytes, 64 * UF_MIB);
    expect_accepted("max_split_size_mb:000000000000000000000000000000128");
    ck_assert_uint_eq(conf.max_split_size_bytes, 128 * UF_MIB);
}
END_TEST

START_TEST(minus_one_wraps_and_is_clamped)
{
    expect_accepted("max_split_size_mb:-1");
    ck_assert_uint_eq(conf.max_split_size_bytes, UINT64_MAX - UF_MIB + 1);
    ck_assert_uint_eq(report.oddities, UF_CONF_ODD_WRAPPED | UF_CONF_ODD_CLAMPED);
}
END_TEST

START_TEST(hexadecimal_reads_as_zero)
{
    expect_refused("max_split_size_mb:0x80", UF_CONF_FAULT_RANGE, VALUE_ERROR, 18);
}
END_TEST

START_TEST(no_digits_is_a_value_error_and_overflow_an_index_error)
{
    expect_refused("max_split_size_mb:abc", UF_CONF_FAULT_NOT_A_NUMBER, VALUE_ERROR, 18);
    expect_text("'abc'");
    expect_refused("max_split_size_mb::128", UF_CONF_FAULT_NOT_A_NUMBER, VALUE_ERROR, 18);
    expect_refused("max_split_size_mb:+-1", UF_CONF_FAULT_NOT_A_NUMBER, VALUE_ERROR, 18);
    expect_refused("max_split_size_mb:18446744073709551616", UF_CONF_FAULT_NUMBER_OVERFLOW,
                   INDEX_ERROR, 18);
    expect_refused("max_split_size_mb:-18446744073709551616", UF_CONF_FAULT_NUMBER_OVERFLOW,
                   INDEX_ERROR, 18);
    expect_accepted("max_split_size_mb:18446744073709551615");
}
END_TEST

START_TEST(doubles_are_the_longest_numeric_prefix)
{
    expect_accepted("garbage_collection_threshold:0.5x");
    ck_assert(conf.garbage_collection_threshold == 0.5);
    ck_assert_uint_eq(report.oddities, UF_CONF_ODD_TRAILING);
    expect_accepted("per_process_memory_fraction:.5");
    ck_assert(conf.per_process_memory_fraction == 0.5);
    expect_accepted("garbage_collection_threshold:8e-1");
    ck_assert(conf.garbage_collection_threshold == 0.8);
    /* 80% is 80, which is out of range. */
    expect_refused("garbage_collection_threshold:80%", UF_CONF_FAULT_RANGE, VALUE_ERROR, 29);
    expect_refused("garbage_collection_threshold:x", UF_CONF_FAULT_NOT_A_NUMBER, VALUE_ERROR, 29);
    expect_refused("garbage_collection_threshold:1e999", UF_CONF_FAULT_NUMBER_OVERFLOW, INDEX_ERROR,
                   29);
}
END_TEST

START_TEST(the_locale_s_decimal_comma_does_not_matter)
{
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "C.UTF-8"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (setlocale(LC_ALL, names[i]) != NULL) {
            break;
        }
    }
    expect_accepted("garbage_collection_threshold:0.75");
    ck_assert(conf.garbage_collection_threshold == 0.75);
    ck_assert_uint_eq(report.oddities, 0);
    setlocale(LC_ALL, "C");
}
END_TEST

START_TEST(booleans_are_exactly_true_or_false)
{
    expect_accepted("expandable_segments:True");
    ck_assert(conf.is_expandable);
    expect_accepted("expandable_segments:True,expandable_segments:False");
    ck_assert(!conf.is_expandable);
    static const char *const texts[] = {"expandable_segments:true",  "expandable_segments:1",
                                        "expandable_segments:TRUE",  "expandable_segments:yes",
                                        "expandable_segments:True;", "expandable_segments:[True"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        expect_refused(texts[i], UF_CONF_FAULT_BOOLEAN, VALUE_ERROR, 20);
        expect_text("True or False");
    }
}
END_TEST

START_TEST(keys_are_case_sensitive_and_unknown_keys_are_refused)
{
    expect_refused("Max_Split_Size_MB:128", UF_CONF_FAULT_UNKNOWN_OPTION, VALUE_ERROR, 0);
    expect_text("did you mean 'max_split_size_mb'?");
    expect_refused("max_split_size:128", UF_CONF_FAULT_UNKNOWN_OPTION, VALUE_ERROR, 0);
    expect_text("did you mean 'max_split_size_mb'?");
    expect_refused("max_split:128", UF_CONF_FAULT_UNKNOWN_OPTION, VALUE_ERROR, 0);
    expect_text("did you mean 'max_split_size_mb'?");
    expect_refused("expandable_segment:True", UF_CONF_FAULT_UNKNOWN_OPTION, VALUE_ERROR, 0);
    expect_text("did you mean 'expandable_segments'?");
    expect_refused("garbage_colection_treshold:0.8", UF_CONF_FAULT_UNKNOWN_OPTION, VALUE_ERROR, 0);
    expect_text("did you mean 'garbage_collection_threshold'?");
    expect_refused("foo:1", UF_CONF_FAULT_UNKNOWN_OPTION, VALUE_ERROR, 0);
    expect_text("known are large_segment_size_mb, max_split_size_mb");
    static const char *const later[] = {
        "throw_on_cudamalloc_oom:True", "pinned_free_catch_all:True",
        "expandable_segments_reserve:1", "expandable_segments_reserve_by_class:1"};
    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++) {
        expect_refused(later[i], UF_CONF_FAULT_UNKNOWN_OPTION, VALUE_ERROR, 0);
    }
}
END_TEST

START_TEST(a_trailing_comma_is_accepted_and_any_other_extra_one_refused)
{
    expect_accepted("max_split_size_mb:128,");
    ck_assert_uint_eq(conf.max_split_size_bytes, 128 * UF_MIB);
    expect_refused(",max_split_size_mb:128", UF_CONF_FAULT_UNKNOWN_OPTION, VALUE_ERROR, 0);
    expect_text("remove the extra ','");
    expect_refused("backend:native,,garbage_collection_threshold:0.8", UF_CONF_FAULT_UNKNOWN_OPTION,
                   VALUE_ERROR, 15);
}
END_TEST

START_TEST(quotes_are_part_of_the_key_and_fail)
{
    expect_refused("\"max_split_size_mb:128\"", UF_CONF_FAULT_UNKNOWN_OPTION, VALUE_ERROR, 0);
    expect_text("quotes");
    expect_refused("'expandable_segments:True'", UF_CONF_FAULT_UNKNOWN_OPTION, VALUE_ERROR, 0);
}
END_TEST

START_TEST(an_equals_sign_is_refused_with_the_right_spelling)
{
    expect_refused("max_split_size_mb=512", UF_CONF_FAULT_UNKNOWN_OPTION, VALUE_ERROR, 0);
    expect_text("write max_split_size_mb:VALUE");
}
END_TEST

START_TEST(of_duplicate_keys_the_last_one_counts)
{
    expect_accepted("max_split_size_mb:128,max_split_size_mb:256");
    ck_assert_uint_eq(conf.max_split_size_bytes, 256 * UF_MIB);
    ck_assert_uint_eq(report.oddities, UF_CONF_ODD_REPEATED);
}
END_TEST

START_TEST(an_error_leaves_what_stands_before_it_applied)
{
    expect_refused("max_split_size_mb:128,expandable_segments:maybe,garbage_collection_threshold:"
                   "0.5",
                   UF_CONF_FAULT_BOOLEAN, VALUE_ERROR, 42);
    ck_assert_uint_eq(conf.max_split_size_bytes, 128 * UF_MIB);
    ck_assert(conf.garbage_collection_threshold == 0.0);
    expect_refused("max_split_size_mb:128;garbage_collection_threshold:0.8",
                   UF_CONF_FAULT_UNKNOWN_OPTION, VALUE_ERROR, 51);
    ck_assert_uint_eq(conf.max_split_size_bytes, 128 * UF_MIB);
    expect_text("'0.8'");
    expect_text("separated by ',' and not by ';'");
}
END_TEST

START_TEST(at_run_time_the_generic_reader_goes_first)
{
    /* A fault in an option of the CUDA reader comes after all generic options are applied ... */
    expect_refused("pinned_num_register_threads:3,max_split_size_mb:128", UF_CONF_FAULT_RANGE,
                   VALUE_ERROR, 28);
    ck_assert_uint_eq(conf.max_split_size_bytes, 128 * UF_MIB);
    /* ... and a fault in a generic one before any CUDA option is. */
    expect_refused("release_lock_on_cudamalloc:True,max_split_size_mb:1", UF_CONF_FAULT_RANGE,
                   VALUE_ERROR, 50);
    ck_assert(!conf.can_release_lock);
}
END_TEST

START_TEST(at_import_the_cuda_reader_goes_first)
{
    uf_conf_reading reading = {.grammar = UF_CONF_2_11, .is_at_import = true};
    uf__conf_init(&conf);
    ck_assert_int_eq(uf__conf_read(&conf, "release_lock_on_cudamalloc:True,max_split_size_mb:1",
                                   &reading, &report, &error),
                     UF_ERROR_CONF);
    ck_assert(conf.can_release_lock);
    uf__conf_init(&conf);
    ck_assert_int_eq(uf__conf_read(&conf, "pinned_num_register_threads:3,max_split_size_mb:128",
                                   &reading, &report, &error),
                     UF_ERROR_CONF);
    ck_assert_uint_eq(conf.max_split_size_bytes, UF_UNLIMITED);
}
END_TEST

START_TEST(max_split_size_has_the_large_segment_as_its_minimum)
{
    expect_accepted("max_split_size_mb:20");
    ck_assert_uint_eq(conf.max_split_size_bytes, 20 * UF_MIB);
    expect_refused("max_split_size_mb:19", UF_CONF_FAULT_RANGE, VALUE_ERROR, 18);
    expect_text("an integer of at least 20 MB");
    expect_refused("max_split_size_mb:10", UF_CONF_FAULT_RANGE, VALUE_ERROR, 18);
    expect_accepted("max_non_split_rounding_mb:20");
    expect_refused("max_non_split_rounding_mb:19", UF_CONF_FAULT_RANGE, VALUE_ERROR, 26);
}
END_TEST

START_TEST(large_segment_size_counts_wherever_it_stands)
{
    expect_accepted("max_split_size_mb:11,large_segment_size_mb:11");
    ck_assert_uint_eq(conf.max_split_size_bytes, 11 * UF_MIB);
    ck_assert_uint_eq(conf.large_segment_bytes, 11 * UF_MIB);
    ck_assert_uint_eq(conf.max_non_split_rounding_bytes, 11 * UF_MIB);
    expect_refused("max_split_size_mb:30,large_segment_size_mb:32", UF_CONF_FAULT_RANGE,
                   VALUE_ERROR, 18);
    expect_text("at least 32");
    ck_assert_uint_eq(conf.large_segment_bytes, 32 * UF_MIB);
    expect_refused("large_segment_size_mb:10", UF_CONF_FAULT_RANGE, VALUE_ERROR, 22);
    expect_text("at least 11");
    expect_refused("large_segment_size_mb:5", UF_CONF_FAULT_RANGE, VALUE_ERROR, 22);
}
END_TEST

START_TEST(sizes_are_clamped_below_2_to_the_64)
{
    expect_accepted("max_split_size_mb:17592186044415");
    ck_assert_uint_eq(conf.max_split_size_bytes, UINT64_MAX - UF_MIB + 1);
    ck_assert_uint_eq(report.oddities, 0);
    ck_assert_int_eq((int64_t)conf.max_split_size_bytes, -1048576);
    expect_accepted("max_split_size_mb:17592186044416");
    ck_assert_uint_eq(conf.max_split_size_bytes, UINT64_MAX - UF_MIB + 1);
    ck_assert_uint_eq(report.oddities, UF_CONF_ODD_CLAMPED);
    expect_accepted("max_non_split_rounding_mb:17592186044417");
    ck_assert_uint_eq(conf.max_non_split_rounding_bytes, UINT64_MAX - UF_MIB + 1);
}
END_TEST

START_TEST(the_threshold_lies_strictly_between_0_and_1)
{
    static const char *const texts[] = {
        "garbage_collection_threshold:0",    "garbage_collection_threshold:0.0",
        "garbage_collection_threshold:1",    "garbage_collection_threshold:1.0",
        "garbage_collection_threshold:-0.5", "garbage_collection_threshold:nan",
        "garbage_collection_threshold:inf"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        expect_refused(texts[i], UF_CONF_FAULT_RANGE, VALUE_ERROR, 29);
        expect_text("above 0 and below 1");
    }
    expect_accepted("garbage_collection_threshold:0.999999");
}
END_TEST

START_TEST(the_fraction_lies_from_0_to_1)
{
    expect_accepted("per_process_memory_fraction:0");
    ck_assert(conf.per_process_memory_fraction == 0.0);
    expect_accepted("per_process_memory_fraction:1.0");
    expect_refused("per_process_memory_fraction:1.1", UF_CONF_FAULT_RANGE, VALUE_ERROR, 28);
    expect_refused("per_process_memory_fraction:-0.1", UF_CONF_FAULT_RANGE, VALUE_ERROR, 28);
    expect_refused("per_process_memory_fraction:nan", UF_CONF_FAULT_RANGE, VALUE_ERROR, 28);
}
END_TEST

START_TEST(register_threads_are_a_power_of_two_up_to_128)
{
    expect_accepted("pinned_num_register_threads:128");
    ck_assert_uint_eq(conf.pinned_num_register_threads, 128);
    expect_refused("pinned_num_register_threads:256", UF_CONF_FAULT_RANGE, VALUE_ERROR, 28);
    expect_refused("pinned_num_register_threads:3", UF_CONF_FAULT_RANGE, VALUE_ERROR, 28);
    expect_refused("pinned_num_register_threads:0", UF_CONF_FAULT_RANGE, VALUE_ERROR, 28);
    expect_text("a power of two from 1 to 128");
    expect_refused("pinned_reserve_segment_size_mb:0", UF_CONF_FAULT_RANGE, VALUE_ERROR, 31);
    expect_accepted("pinned_reserve_segment_size_mb:1");
}
END_TEST

/* The table after reading roundup_power2_divisions:value, by index. */
static void expect_divisions(const char *value, const uint64_t expected[UF_CONF_DIVISION_COUNT])
{
    char text[200];
    snprintf(text, sizeof text, "roundup_power2_divisions:%s", value);
    expect_accepted(text);
    for (int i = 0; i < UF_CONF_DIVISION_COUNT; i++) {
        ck_assert_msg(conf.roundup_power2_divisions[i] == expected[i], "%s: entry %d is %llu", text,
                      i, (unsigned long long)conf.roundup_power2_divisions[i]);
    }
}

#define DIVISIONS(...) ((const uint64_t[UF_CONF_DIVISION_COUNT]){__VA_ARGS__})

START_TEST(a_single_number_of_divisions_fills_the_table)
{
    expect_divisions("4", DIVISIONS(4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4));
    expect_divisions("1", DIVISIONS(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1));
    expect_refused("roundup_power2_divisions:0", UF_CONF_FAULT_RANGE, VALUE_ERROR, 25);
    expect_refused("roundup_power2_divisions:3", UF_CONF_FAULT_RANGE, VALUE_ERROR, 25);
    expect_text("a power of two");
}
END_TEST

START_TEST(a_list_of_divisions_is_worked_through_from_left_to_right)
{
    expect_divisions("[64:8,256:4]", DIVISIONS(8, 8, 8, 8, 8, 8, 8, 0, 4));
    expect_divisions("[512:2,64:8]", DIVISIONS(2, 2, 2, 2, 2, 2, 8, 2, 2, 2));
    expect_divisions("[64:8,>:2,128:4]", DIVISIONS(8, 8, 8, 8, 8, 8, 8, 4, 2, 2, 2, 2, 2, 2, 2, 2));
    expect_divisions("[>:4]", DIVISIONS(0, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4));
    expect_divisions("[]", DIVISIONS(0));
    expect_divisions("[256:1,512:2,1024:4,>:8]",
                     DIVISIONS(1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 4, 8, 8, 8, 8, 8));
    expect_divisions("[512:0,>:8]", DIVISIONS(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 8, 8, 8, 8, 8));
    expect_divisions("[65536:4]", DIVISIONS(4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4));
    expect_divisions("[32768:4,>:2]", DIVISIONS(4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4));
}
END_TEST

START_TEST(a_trailing_comma_in_the_list_is_accepted)
{
    expect_divisions("[64:8,]", DIVISIONS(8, 8, 8, 8, 8, 8, 8));
    expect_accepted("roundup_power2_divisions:[64:8,],max_split_size_mb:128");
    ck_assert_uint_eq(conf.max_split_size_bytes, 128 * UF_MIB);
}
END_TEST

START_TEST(a_list_without_end_is_refused_with_the_table_partly_set)
{
    expect_refused("roundup_power2_divisions:[64:8", UF_CONF_FAULT_MISSING_TOKEN, RUNTIME_ERROR,
                   30);
    ck_assert_uint_eq(conf.roundup_power2_divisions[6], 8);
    expect_refused("roundup_power2_divisions:[64:8,", UF_CONF_FAULT_MISSING_TOKEN, RUNTIME_ERROR,
                   31);
    expect_refused("roundup_power2_divisions:[", UF_CONF_FAULT_MISSING_TOKEN, RUNTIME_ERROR, 26);
    expect_refused("roundup_power2_divisions:[64", UF_CONF_FAULT_MISSING_TOKEN, RUNTIME_ERROR, 28);
    expect_refused("roundup_power2_divisions", UF_CONF_FAULT_MISSING_TOKEN, RUNTIME_ERROR, 24);
}
END_TEST

START_TEST(bad_boundaries_and_bad_divisions_are_refused)
{
    expect_refused("roundup_power2_divisions:[3:4]", UF_CONF_FAULT_RANGE, VALUE_ERROR, 26);
    expect_refused("roundup_power2_divisions:[0:4]", UF_CONF_FAULT_RANGE, VALUE_ERROR, 26);
    expect_refused("roundup_power2_divisions:[4:3]", UF_CONF_FAULT_RANGE, VALUE_ERROR, 28);
    expect_refused("roundup_power2_divisions:[x:4]", UF_CONF_FAULT_NOT_A_NUMBER, VALUE_ERROR, 26);
    expect_refused("roundup_power2_divisions:[4:x]", UF_CONF_FAULT_NOT_A_NUMBER, VALUE_ERROR, 28);
    expect_refused("roundup_power2_divisions:[4:]", UF_CONF_FAULT_NOT_A_NUMBER, VALUE_ERROR, 28);
    expect_refused("roundup_power2_divisions:]", UF_CONF_FAULT_NOT_A_NUMBER, VALUE_ERROR, 25);
}
END_TEST

START_TEST(some_options_are_reset_by_every_call_and_others_stay)
{
    expect_accepted("large_segment_size_mb:32,max_split_size_mb:128,max_non_split_rounding_mb:64,"
                    "garbage_collection_threshold:0.8,roundup_power2_divisions:4,"
                    "expandable_segments:True,pinned_use_background_threads:True,"
                    "release_lock_on_cudamalloc:True,pinned_use_cuda_host_register:True,"
                    "pinned_num_register_threads:8,pinned_reserve_segment_size_mb:100,"
                    "graph_capture_record_stream_reuse:True,per_process_memory_fraction:0.5");
    ck_assert_int_eq(read_text(""), UF_OK);
    ck_assert_uint_eq(conf.max_split_size_bytes, UF_UNLIMITED);
    ck_assert(conf.garbage_collection_threshold == 0.0);
    ck_assert_uint_eq(conf.roundup_power2_divisions[3], 0);
    ck_assert_uint_eq(conf.max_non_split_rounding_bytes, 32 * UF_MIB);
    ck_assert_uint_eq(conf.large_segment_bytes, 32 * UF_MIB);
    ck_assert(conf.is_expandable && conf.can_reuse_in_capture && conf.has_background_threads);
    ck_assert(conf.has_host_register && conf.can_release_lock);
    ck_assert_uint_eq(conf.pinned_num_register_threads, 8);
    ck_assert_uint_eq(conf.pinned_reserve_segment_mb, 100);
    ck_assert(conf.per_process_memory_fraction == 0.5);
    /* The minimum follows the large segment that stayed. */
    ck_assert_int_eq(read_text("max_split_size_mb:31"), UF_ERROR_CONF);
    ck_assert_int_eq(read_text("max_split_size_mb:32"), UF_OK);
}
END_TEST

START_TEST(the_reset_flags_of_the_table_are_what_the_parser_does)
{
    for (size_t i = 0; i < UF_CONF_OPTION_COUNT; i++) {
        static const char *const values[UF_CONF_OPTION_COUNT] = {
            "32",     "128",  "64",   "0.8", "4",   "True", "True",
            "native", "True", "True", "8",   "100", "True", "0.5"};
        const uf_conf_option *option = uf__conf_option_at(i);
        uf_conf before;
        char text[100];
        ck_assert_int_eq(option->id, (int)i);
        snprintf(text, sizeof text, "%s:%s", option->name, values[i]);
        expect_accepted(text);
        before = conf;
        ck_assert_int_eq(read_text(""), UF_OK);
        bool is_kept = uf__conf_is_equal(&conf, &before);
        ck_assert_msg(is_kept == !option->is_reset, "%s", option->name);
    }
}
END_TEST

START_TEST(the_backend_is_fixed_at_import)
{
    expect_accepted("backend:native");
    expect_refused("backend:cudaMallocAsync", UF_CONF_FAULT_BACKEND, RUNTIME_ERROR, 8);
    expect_text("when torch was imported");
    expect_refused("backend:nosuch", UF_CONF_FAULT_BACKEND, VALUE_ERROR, 8);
    expect_text("native or cudaMallocAsync");
    uf_conf_reading reading = {.grammar = UF_CONF_2_11, .is_at_import = true};
    uf__conf_init(&conf);
    ck_assert_int_eq(uf__conf_read(&conf, "backend:cudaMallocAsync", &reading, &report, &error),
                     UF_OK);
    ck_assert(conf.is_async_backend);
    ck_assert_int_eq(read_text("backend:cudaMallocAsync"), UF_OK);
    ck_assert_int_eq(read_text("backend:native"), UF_ERROR_CONF);
    ck_assert_int_eq(
        uf__conf_read(&conf, "backend:native,backend:cudaMallocAsync", &reading, &report, &error),
        UF_ERROR_CONF);
}
END_TEST

static void expect_abort(const char *text, bool would_abort)
{
    uf_status status = uf__conf_backend_scan(text, NULL, &error);
    ck_assert_msg((status == UF_ERROR_CONF) == would_abort, "'%s'", text);
    uf_conf_reading reading = {.grammar = UF_CONF_2_11, .is_at_import = true};
    uf_conf defaults;
    uf__conf_init(&conf);
    uf__conf_init(&defaults);
    status = uf__conf_read(&conf, text, &reading, &report, &error);
    ck_assert_int_eq(report.exception == UF_CONF_ABORTS_IMPORT, would_abort);
    if (would_abort) {
        ck_assert_int_eq(status, UF_ERROR_CONF);
        ck_assert(uf__conf_is_equal(&conf, &defaults));
        expect_text("exit code 134");
    }
}

START_TEST(an_unfinished_string_aborts_the_process_at_import)
{
    expect_abort("max_split_size_mb:128;garbage_collection_threshold:0.8", true);
    expect_text("separated by ','");
    expect_abort("max_split_size_mb", true);
    expect_abort("roundup_power2_divisions:[64:8", true);
    expect_abort("backend", true);
    expect_abort("", false);
    expect_abort("max_split_size_mb:128;x", false);
    expect_abort("max_split_size_mb:128", false);
    expect_abort("nonsense:1,more:[a:b]", false);
    /* Nothing behind `backend` is looked at. */
    expect_abort("backend:native,max_split_size_mb", false);
    bool is_async = false;
    ck_assert_int_eq(
        uf__conf_backend_scan("expandable_segments:True,backend:cudaMallocAsync", &is_async, NULL),
        UF_OK);
    ck_assert(is_async);
    ck_assert_int_eq(
        uf__conf_backend_scan("backend:native,backend:cudaMallocAsync", &is_async, NULL), UF_OK);
    ck_assert(!is_async);
    ck_assert_int_eq(uf__conf_backend_scan(NULL, NULL, NULL), UF_ERROR_INVALID_ARGUMENT);
}
END_TEST

typedef struct item_log {
    size_t count;
    uf_conf_item items[8];
} item_log;

static void log_item(void *context, const uf_conf_item *item)
{
    item_log *log = context;
    if (log->count < 8) {
        log->items[log->count] = *item;
    }
    log->count++;
}

START_TEST(each_accepted_item_is_reported_once_with_its_place)
{
    item_log log = {0};
    uf_conf_reading reading = {.grammar = UF_CONF_2_11, .on_item = log_item, .context = &log};
    uf__conf_init(&conf);
    ck_assert_int_eq(uf__conf_read(&conf,
                                   "max_split_size_mb:128MB,large_segment_size_mb:32,"
                                   "release_lock_on_cudamalloc,True,"
                                   "roundup_power2_divisions:[64:8]",
                                   &reading, NULL, NULL),
                     UF_OK);
    ck_assert_uint_eq(log.count, 4);
    ck_assert_int_eq(log.items[0].option, UF_CONF_LARGE_SEGMENT_SIZE);
    ck_assert_uint_eq(log.items[0].offset_bytes, 24);
    ck_assert_int_eq(log.items[1].option, UF_CONF_MAX_SPLIT_SIZE);
    ck_assert_uint_eq(log.items[1].offset_bytes, 0);
    ck_assert_uint_eq(log.items[1].value_offset_bytes, 18);
    ck_assert_uint_eq(log.items[1].end_offset_bytes, 23);
    ck_assert_uint_eq(log.items[1].oddities, UF_CONF_ODD_TRAILING);
    ck_assert_int_eq(log.items[2].option, UF_CONF_ROUNDUP_POWER2_DIVISIONS);
    ck_assert_uint_eq(log.items[2].end_offset_bytes, 112);
    ck_assert_int_eq(log.items[3].option, UF_CONF_RELEASE_LOCK);
    ck_assert_uint_eq(log.items[3].oddities, UF_CONF_ODD_SEPARATOR);
}
END_TEST

START_TEST(release_2_10_knows_no_large_segment_size_and_keeps_the_rounding)
{
    uf__conf_init(&conf);
    ck_assert_int_eq(uf__conf_parse(&conf, "max_non_split_rounding_mb:64", UF_CONF_2_10, NULL),
                     UF_OK);
    ck_assert_int_eq(uf__conf_parse(&conf, "max_split_size_mb:20", UF_CONF_2_10, NULL), UF_OK);
    ck_assert_uint_eq(conf.max_non_split_rounding_bytes, 64 * UF_MIB);
    ck_assert_int_eq(uf__conf_parse(&conf, "large_segment_size_mb:32", UF_CONF_2_10, &error),
                     UF_ERROR_CONF);
    expect_text("known from PyTorch 2.11 on");
    ck_assert_int_eq(uf__conf_parse(&conf, "per_process_memory_fraction:0.5", UF_CONF_2_10, &error),
                     UF_OK);
    ck_assert(conf.per_process_memory_fraction == 0.5);
}
END_TEST

START_TEST(hostile_bytes_reach_the_error_text_only_in_printable_form)
{
    expect_refused("\x1b[31mevil\x07:1", UF_CONF_FAULT_UNKNOWN_OPTION, VALUE_ERROR, 0);
    for (const char *c = error.text; *c != '\0'; c++) {
        ck_assert(*c >= ' ' && *c <= '~');
    }
    char text[5000];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    expect_refused(text, UF_CONF_FAULT_UNKNOWN_OPTION, VALUE_ERROR, 0);
    expect_text("xxx...");
}
END_TEST

int main(void)
{
    TCase *lexical = tcase_create("lexical");
    tcase_add_test(lexical, defaults_are_those_of_pytorch);
    tcase_add_test(lexical, every_option_sets_its_field);
    tcase_add_test(lexical, the_names_of_amd_builds_are_aliases);
    tcase_add_test(lexical, the_empty_string_gives_defaults);
    tcase_add_test(lexical, blanks_are_dropped_even_inside_a_word);
    tcase_add_test(lexical, separators_are_stepped_over_without_a_look);
    tcase_add_test(lexical, a_missing_token_is_a_runtime_error);
    tcase_add_test(lexical, integers_are_the_longest_numeric_prefix);
    tcase_add_test(lexical, minus_one_wraps_and_is_clamped);
    tcase_add_test(lexical, hexadecimal_reads_as_zero);
    tcase_add_test(lexical, no_digits_is_a_value_error_and_overflow_an_index_error);
    tcase_add_test(lexical, doubles_are_the_longest_numeric_prefix);
    tcase_add_test(lexical, the_locale_s_decimal_comma_does_not_matter);
    tcase_add_test(lexical, booleans_are_exactly_true_or_false);
    tcase_add_test(lexical, keys_are_case_sensitive_and_unknown_keys_are_refused);
    tcase_add_test(lexical, a_trailing_comma_is_accepted_and_any_other_extra_one_refused);
    tcase_add_test(lexical, quotes_are_part_of_the_key_and_fail);
    tcase_add_test(lexical, an_equals_sign_is_refused_with_the_right_spelling);
    tcase_add_test(lexical, of_duplicate_keys_the_last_one_counts);
    tcase_add_test(lexical, hostile_bytes_reach_the_error_text_only_in_printable_form);
    TCase *values = tcase_create("values");
    tcase_add_test(values, an_error_leaves_what_stands_before_it_applied);
    tcase_add_test(values, at_run_time_the_generic_reader_goes_first);
    tcase_add_test(values, at_import_the_cuda_reader_goes_first);
    tcase_add_test(values, max_split_size_has_the_large_segment_as_its_minimum);
    tcase_add_test(values, large_segment_size_counts_wherever_it_stands);
    tcase_add_test(values, sizes_are_clamped_below_2_to_the_64);
    tcase_add_test(values, the_threshold_lies_strictly_between_0_and_1);
    tcase_add_test(values, the_fraction_lies_from_0_to_1);
    tcase_add_test(values, register_threads_are_a_power_of_two_up_to_128);
    tcase_add_test(values, a_single_number_of_divisions_fills_the_table);
    tcase_add_test(values, a_list_of_divisions_is_worked_through_from_left_to_right);
    tcase_add_test(values, a_trailing_comma_in_the_list_is_accepted);
    tcase_add_test(values, a_list_without_end_is_refused_with_the_table_partly_set);
    tcase_add_test(values, bad_boundaries_and_bad_divisions_are_refused);
    TCase *calls = tcase_create("calls");
    tcase_add_test(calls, some_options_are_reset_by_every_call_and_others_stay);
    tcase_add_test(calls, the_reset_flags_of_the_table_are_what_the_parser_does);
    tcase_add_test(calls, the_backend_is_fixed_at_import);
    tcase_add_test(calls, an_unfinished_string_aborts_the_process_at_import);
    tcase_add_test(calls, each_accepted_item_is_reported_once_with_its_place);
    tcase_add_test(calls, release_2_10_knows_no_large_segment_size_and_keeps_the_rounding);
    Suite *suite = suite_create("conf");
    suite_add_tcase(suite, lexical);
    suite_add_tcase(suite, values);
    suite_add_tcase(suite, calls);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
