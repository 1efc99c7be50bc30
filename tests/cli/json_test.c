/* SPDX-License-Identifier: MIT
 *
 * The JSON writer: layout, escapes, numbers, and its refusal of wrong nesting. */
#include "json.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>

static FILE *stream;
static char *text;
static size_t text_length;
static cli_json json;

static void set_up(void)
{
    stream = open_memstream(&text, &text_length);
    ck_assert_ptr_nonnull(stream);
    cli_json_init(&json, stream);
}

static void tear_down(void)
{
    fclose(stream);
    free(text);
    text = NULL;
}

static void expect_document(const char *expected)
{
    ck_assert(cli_json_finish(&json));
    ck_assert_str_eq(text, expected);
}

START_TEST(an_object_nests_objects_and_arrays)
{
    cli_json_object_begin(&json, NULL);
    cli_json_uint64(&json, "events", 3);
    cli_json_object_begin(&json, "empty");
    cli_json_object_end(&json);
    cli_json_array_begin(&json, "list");
    cli_json_int64(&json, NULL, -1);
    cli_json_bool(&json, NULL, true);
    cli_json_null(&json, NULL);
    cli_json_array_end(&json);
    cli_json_object_end(&json);
    expect_document("{\n  \"events\": 3,\n  \"empty\": {},\n  \"list\": [\n    -1,\n    true,\n"
                    "    null\n  ]\n}\n");
}
END_TEST

START_TEST(numbers_keep_every_digit)
{
    cli_json_array_begin(&json, NULL);
    cli_json_uint64(&json, NULL, UINT64_MAX);
    cli_json_int64(&json, NULL, INT64_MIN);
    cli_json_double(&json, NULL, 0.1);
    cli_json_double(&json, NULL, 1.0 / 3.0);
    cli_json_array_end(&json);
    expect_document("[\n  18446744073709551615,\n  -9223372036854775808,\n  0.1,\n"
                    "  0.3333333333333333\n]\n");
}
END_TEST

START_TEST(a_number_that_is_not_finite_is_null)
{
    cli_json_array_begin(&json, NULL);
    cli_json_double(&json, NULL, (double)INFINITY);
    cli_json_double(&json, NULL, (double)NAN);
    cli_json_array_end(&json);
    expect_document("[\n  null,\n  null\n]\n");
}
END_TEST

START_TEST(keys_and_strings_are_escaped)
{
    cli_json_object_begin(&json, NULL);
    cli_json_string(&json, "a\"b", "tab\t, \\, line\n, \x01, \x7f");
    cli_json_string(&json, "none", NULL);
    cli_json_string_bytes(&json, "zero", "a\0b", 3);
    cli_json_object_end(&json);
    expect_document("{\n  \"a\\\"b\": \"tab\\t, \\\\, line\\n, \\u0001, \\u007f\",\n"
                    "  \"none\": null,\n  \"zero\": \"a\\u0000b\"\n}\n");
}
END_TEST

#define BAD "\xef\xbf\xbd" /* U+FFFD in UTF-8 */

START_TEST(valid_utf8_is_kept_and_the_rest_is_replaced)
{
    static const struct {
        const char *input, *expected;
    } cases[] = {
        {"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"\xff", BAD},
        {"a\x80", "a" BAD},
        {"\xc0\xaf", BAD BAD},                 /* overlong */
        {"\xe0\x80\xaf", BAD BAD BAD},         /* overlong */
        {"\xed\xa0\x80", BAD BAD BAD},         /* a surrogate */
        {"\xf4\x90\x80\x80", BAD BAD BAD BAD}, /* above U+10FFFF */
        {"\xe2\x82", BAD BAD},                 /* cut short */
    };
    cli_json_string(&json, NULL, cases[_i].input);
    char expected[64];
    snprintf(expected, sizeof expected, "\"%s\"\n", cases[_i].expected);
    expect_document(expected);
}
END_TEST

START_TEST(nesting_too_deep_is_reported_at_the_end)
{
    for (unsigned i = 0; i <= CLI_JSON_MAX_DEPTH; i++) {
        cli_json_array_begin(&json, NULL);
    }
    ck_assert(!cli_json_finish(&json));
}
END_TEST

START_TEST(what_is_not_closed_is_reported_at_the_end)
{
    cli_json_object_begin(&json, NULL);
    ck_assert(!cli_json_finish(&json));
    cli_json_object_end(&json);
    cli_json_object_end(&json);
    ck_assert(!cli_json_finish(&json));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("json");
    TCase *cases = tcase_create("json");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_test(cases, an_object_nests_objects_and_arrays);
    tcase_add_test(cases, numbers_keep_every_digit);
    tcase_add_test(cases, a_number_that_is_not_finite_is_null);
    tcase_add_test(cases, keys_and_strings_are_escaped);
    tcase_add_loop_test(cases, valid_utf8_is_kept_and_the_rest_is_replaced, 0, 8);
    tcase_add_test(cases, nesting_too_deep_is_reported_at_the_end);
    tcase_add_test(cases, what_is_not_closed_is_reported_at_the_end);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed_count = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed_count == 0 ? 0 : 1;
}
