/* SPDX-License-Identifier: MIT
 *
 * JSON: the parser's values, its bounds and messages, and snapshots whose tuples are lists. */
#include <check.h>
#include <locale.h>

#include "trace/json.h"
#include "trace_sample.h"

/* Wide enough for what one test parses. */
static uf__store store;
static const uf__reducer NO_REDUCER = {.context = NULL};

static void open_store(void)
{
    uf__store_init(&store);
}

static void close_store(void)
{
    uf__store_fini(&store);
}

static uf_status parse_bytes(const char *text, size_t length, uf__value *value, uf_error *error)
{
    uf__input *input = NULL;
    uf_status status = uf__input_open_memory(text, length, NULL, &input, error);
    if (status == UF_OK) {
        status = uf__json_parse(input, &store, &NO_REDUCER, value, error);
    }
    uf__input_close(input);
    return status;
}

static uf__value parse(const char *text)
{
    uf__value value = UF__VALUE_NOTHING;
    uf_error error = {.status = UF_OK};
    ck_assert_msg(parse_bytes(text, strlen(text), &value, &error) == UF_OK, "%s", error.text);
    return value;
}

static void expect_error(const char *text, const char *part)
{
    uf__value value;
    uf_error error = {.status = UF_OK};
    ck_assert_msg(parse_bytes(text, strlen(text), &value, &error) == UF_ERROR_BAD_INPUT, "%s",
                  text);
    ck_assert_msg(strstr(error.text, part) != NULL, "'%s' lacks '%s'", error.text, part);
}

static void expect_string(uf__value value, const char *text)
{
    ck_assert_int_eq(uf__value_tag(value), UF__TAG_STRING);
    uint32_t id = (uint32_t)uf__value_payload(value);
    ck_assert_uint_eq(uf__strings_length(&store.strings, id), strlen(text));
    ck_assert_str_eq(uf__strings_text(&store.strings, id), text);
}

static void expect_i64(const char *text, int64_t expected)
{
    int64_t number;
    ck_assert(uf__store_as_i64(&store, parse(text), &number));
    ck_assert_int_eq(number, expected);
}

START_TEST(integers_keep_all_64_bits)
{
    expect_i64("0", 0);
    expect_i64(" -0 ", 0);
    expect_i64("-1", -1);
    expect_i64("576460752303423487", INT64_C(576460752303423487));
    expect_i64("576460752303423488", INT64_C(576460752303423488));
    expect_i64("-576460752303423488", INT64_C(-576460752303423488));
    expect_i64("-576460752303423489", INT64_C(-576460752303423489));
    expect_i64("9223372036854775807", INT64_MAX);
    expect_i64("-9223372036854775808", INT64_MIN);
    uint64_t number;
    ck_assert(uf__store_as_u64(&store, parse("18446744073709551615"), &number));
    ck_assert_uint_eq(number, UINT64_MAX);
    ck_assert(!uf__store_as_i64(&store, parse("-18446744073709551615"), &(int64_t){0}));
    ck_assert_uint_eq(parse("18446744073709551616"), UF__VALUE_HUGE);
}
END_TEST

START_TEST(floats_do_not_depend_on_the_locale)
{
    double number;
    setlocale(LC_ALL, "de_DE.UTF-8"); /* where there is one */
    ck_assert(uf__store_as_double(&store, parse("0.8"), &number));
    ck_assert(number == 0.8);
    ck_assert(uf__store_as_double(&store, parse("-1.5e+3"), &number));
    ck_assert(number == -1500.0);
    ck_assert(uf__store_as_double(&store, parse("1E2"), &number));
    ck_assert(number == 100.0);
    setlocale(LC_ALL, "C");
}
END_TEST

START_TEST(words_are_constants)
{
    ck_assert_uint_eq(parse("true"), UF__VALUE_TRUE);
    ck_assert_uint_eq(parse("\xef\xbb\xbf"
                            "false\r\n"),
                      UF__VALUE_FALSE);
    ck_assert_uint_eq(parse("\tnull"), UF__VALUE_NONE);
    ck_assert_uint_eq(parse("[ ]"), UF__VALUE_EMPTY);
}
END_TEST

START_TEST(escapes_become_utf8)
{
    expect_string(parse("\"\""), "");
    expect_string(parse("\"C:\\\\a\\/b \\\"x\\\" \\b\\f\\n\\r\\t\""), "C:\\a/b \"x\" \b\f\n\r\t");
    expect_string(parse("\"\\u00e4\\u20AC\\ud83d\\ude00\""),
                  "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
    expect_string(parse("\"\\ud83d.\\ude00\""), "\xed\xa0\xbd.\xed\xb8\x80");
    expect_string(parse("\"\\ud83d\\u0041\""), "\xed\xa0\xbd"
                                               "A");
    expect_string(parse("\"\xc3\xa4\xff\""), "\xc3\xa4\xff");
}
END_TEST

START_TEST(a_string_of_a_megabyte_crosses_windows)
{
    size_t length = 1000000;
    char *text = malloc(length + 3);
    memset(text, 'x', length + 2);
    text[0] = text[length + 1] = '"';
    text[length + 2] = '\0';
    uf__value value = parse(text);
    ck_assert_uint_eq(uf__strings_length(&store.strings, (uint32_t)uf__value_payload(value)),
                      length);
    memcpy(text + 500000, "\\n", 2);
    value = parse(text);
    ck_assert_uint_eq(uf__strings_length(&store.strings, (uint32_t)uf__value_payload(value)),
                      length - 1);
    free(text);
}
END_TEST

START_TEST(lists_of_any_length_keep_their_order)
{
    for (unsigned count = 1; count < 5000; count = count * 2 + 1) {
        char *text = malloc(count * 8 + 8);
        size_t length = 0;
        text[length++] = '[';
        for (unsigned i = 0; i < count; i++) {
            length += (size_t)sprintf(text + length, "%s%u", i == 0 ? "" : ",", i);
        }
        strcpy(text + length, "]");
        uf__value list = parse(text);
        free(text);
        uf__list_walk walk;
        ck_assert(uf__list_walk_begin(&walk, &store, list));
        uf__value value;
        for (uint64_t i = 0; i < count; i++) {
            uint64_t number;
            ck_assert(uf__list_walk_next(&walk, &store, &value));
            ck_assert(uf__store_as_u64(&store, value, &number));
            ck_assert_uint_eq(number, i);
        }
        ck_assert(!uf__list_walk_next(&walk, &store, &value));
    }
}
END_TEST

START_TEST(dictionaries_keep_their_pairs)
{
    uf__value dict = parse("{\"a\" : 1, \"b\":{}, \"a\":[[7,8]]}");
    ck_assert_int_eq(uf__value_tag(dict), UF__TAG_DICT);
    const uf__object *object = uf__store_object(&store, dict);
    ck_assert_uint_eq(object->count, 6);
    expect_string(object->items[0], "a");
    expect_string(object->items[2], "b");
    ck_assert_int_eq(uf__value_tag(object->items[3]), UF__TAG_DICT);
    ck_assert_int_eq(uf__value_tag(object->items[5]), UF__TAG_LIST);
}
END_TEST

static const struct {
    const char *text;
    const char *part;
} MISTAKES[] = {
    {"", "ends early, after 0 bytes"},
    {"[1,", "ends early"},
    {"{\"a\"", "ends early"},
    {"\"abc", "ends early"},
    {"\"abc\\", "ends early"},
    {"[1 2]", "at byte 3: ',' or ']' should stand here"},
    {"{\"a\" 1}", "at byte 5: ':' should stand here"},
    {"{\"a\":1 \"b\"}", "',' or '}' should stand here"},
    {"{1:2}", "a key in quotes"},
    {"{\"a\":1,}", "a key in quotes"},
    {"[1,]", "no value starts here"},
    {"[}", "no value starts here"},
    {"]", "at byte 0: no value starts here"},
    {"01", "'01' is no number"},
    {"1.", "'1.' is no number"},
    {"-", "'-' is no number"},
    {"1e", "'1e' is no number"},
    {"1.5.5", "is no number"},
    {"NaN", "no value starts here"},
    {"nul", "no value starts here"},
    {"\"\\x\"", "an escape that JSON does not know"},
    {"\"\\u12g4\"", "an escape that JSON does not know"},
    {"\"a\nb\"", "a control character"},
    {"1 2", "at byte 2: something follows the end"},
    {"1111111111111111111111111111111111111111111111111111111111111111", "more than 63"},
};

START_TEST(a_mistake_is_named_with_its_place)
{
    expect_error(MISTAKES[_i].text, MISTAKES[_i].part);
}
END_TEST

START_TEST(nesting_is_bounded)
{
    char text[2 * UF__JSON_DEPTH_MAX + 3];
    memset(text, '[', UF__JSON_DEPTH_MAX);
    memset(text + UF__JSON_DEPTH_MAX, ']', UF__JSON_DEPTH_MAX);
    text[2 * UF__JSON_DEPTH_MAX] = '\0';
    parse(text);
    memset(text, '[', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    expect_error(text, "at byte 64: more than 64 lists and dictionaries");
}
END_TEST

static uf_status read_json(const char *text, uf_trace **trace, uf_error *error)
{
    uf__input *input = NULL;
    uf_builder *builder = uf__builder_create();
    ck_assert_ptr_nonnull(builder);
    uf_status status = uf__input_open_memory(text, strlen(text), NULL, &input, error);
    if (status == UF_OK) {
        status = uf__json_read(input, builder, error);
    }
    if (status == UF_OK) {
        ck_assert(uf__builder_finish(builder, trace));
    } else {
        uf__builder_destroy(builder);
    }
    uf__input_close(input);
    return status;
}

static uf_trace *read_well(const char *text)
{
    uf_trace *trace = NULL;
    uf_error error = {.status = UF_OK};
    ck_assert_msg(read_json(text, &trace, &error) == UF_OK, "%s", error.text);
    ck_assert_int_eq(trace->form, UF_FORM_JSON);
    return trace;
}

START_TEST(a_snapshot_whose_tuples_are_lists_is_read)
{
    uf_trace *trace = read_well(
        "{\"segments\": [{\"device\": 1, \"address\": 139995398537216, \"total_size\": 2097152,"
        " \"allocated_size\": 512, \"active_size\": 512, \"requested_size\": 500,"
        " \"stream\": 0, \"segment_type\": \"small\", \"segment_pool_id\": [0, 7],"
        " \"is_expandable\": false, \"frames\": [], \"blocks\": ["
        "{\"address\": 139995398537216, \"size\": 512, \"requested_size\": 500,"
        " \"state\": \"active_allocated\", \"frames\": [{\"name\": \"f\","
        " \"filename\": \"a.py\", \"line\": 7}]},"
        "{\"address\": 139995398537728, \"size\": 2096640, \"requested_size\": 0,"
        " \"state\": \"inactive\", \"frames\": []}]}],"
        "\"device_traces\": [[], [{\"action\": \"alloc\", \"addr\": 139995398537216,"
        " \"size\": 500, \"stream\": 0, \"time_us\": 1796067240266732},"
        "{\"action\": \"oom\", \"device_free\": 124398469120, \"size\": 408552960,"
        " \"stream\": 3, \"novelty\": {\"x\": [1]}}]],"
        "\"allocator_settings\": {\"PYTORCH_CUDA_ALLOC_CONF\": \"max_split_size_mb:128\","
        " \"garbage_collection_threshold\": 0.8},"
        "\"external_annotations\": [{\"stage\": \"START\", \"name\": \"s\", \"device\": 1,"
        " \"time_us\": 5}]}");
    ck_assert_uint_eq(trace->segment_count, 1);
    ck_assert_uint_eq(trace->segments[0].pool_id[1], 7);
    ck_assert_uint_eq(trace->block_count, 2);
    ck_assert_uint_eq(trace->blocks[1].addr, UINT64_C(139995398537728));
    ck_assert_uint_eq(trace->stacks[trace->blocks[0].stack].count, 1);
    ck_assert_uint_eq(trace->device_count, 2);
    ck_assert_uint_eq(trace->devices[1].count, 2);
    ck_assert_int_eq(trace->events[0].time_us, INT64_C(1796067240266732));
    ck_assert_uint_eq(trace->events[1].addr, UINT64_C(124398469120));
    ck_assert_uint_eq(trace->oddities.unknown_key_count, 1);
    ck_assert_str_eq(uf_trace_string(trace, trace->oddities.first_unknown_key), "novelty");
    ck_assert(trace->settings.gc_threshold == 0.8);
    ck_assert_uint_eq(trace->annotation_count, 1);
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(a_bare_list_of_segments_is_read)
{
    uf_trace *trace =
        read_well("\n[{\"address\": 1024, \"total_size\": 1024, \"stream\": 0, \"device\": 0,"
                  " \"segment_type\": \"large\", \"allocated_size\": 0, \"active_size\": 0,"
                  " \"blocks\": [{\"size\": 1024, \"state\": \"inactive\"}]}]\n");
    ck_assert_uint_eq(trace->segment_count, 1);
    ck_assert_uint_eq(trace->blocks[0].addr, 1024);
    ck_assert(!trace->has_device_traces);
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(json_that_is_no_snapshot_is_refused)
{
    static const char *const TEXTS[] = {"{}",     "{\"a\": 1}", "7",
                                        "[1, 2]", "\"x\"",      "{\"segments\": 5}"};
    for (size_t i = 0; i < sizeof TEXTS / sizeof TEXTS[0]; i++) {
        uf_trace *trace = NULL;
        uf_error error = {.status = UF_OK};
        uf_status status = read_json(TEXTS[i], &trace, &error);
        ck_assert_msg(status == UF_ERROR_BAD_INPUT, "%s: %s", TEXTS[i], uf_status_name(status));
        ck_assert_int_ne(error.text[0], '\0');
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("json");
    TCase *tests = tcase_create("json");
    tcase_add_checked_fixture(tests, open_store, close_store);
    tcase_add_test(tests, integers_keep_all_64_bits);
    tcase_add_test(tests, floats_do_not_depend_on_the_locale);
    tcase_add_test(tests, words_are_constants);
    tcase_add_test(tests, escapes_become_utf8);
    tcase_add_test(tests, a_string_of_a_megabyte_crosses_windows);
    tcase_add_test(tests, lists_of_any_length_keep_their_order);
    tcase_add_test(tests, dictionaries_keep_their_pairs);
    tcase_add_loop_test(tests, a_mistake_is_named_with_its_place, 0,
                        (int)(sizeof MISTAKES / sizeof MISTAKES[0]));
    tcase_add_test(tests, nesting_is_bounded);
    tcase_add_test(tests, a_snapshot_whose_tuples_are_lists_is_read);
    tcase_add_test(tests, a_bare_list_of_segments_is_read);
    tcase_add_test(tests, json_that_is_no_snapshot_is_refused);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed_count = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed_count == 0 ? 0 : 1;
}
