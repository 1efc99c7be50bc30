/* SPDX-License-Identifier: MIT
 *
 * Status names and error records. */
#include "base/error.h"

#include <stdint.h>
#include <string.h>

#include "unit/suite.h"

typedef struct status_row {
    uf_status status;
    int value;
    const char *name, *text;
} status_row;

static const status_row rows[] = {
#define ROW(name, value, text) {name, value, #name, text},
    UF_STATUS_LIST(ROW)
#undef ROW
};
enum { ROW_COUNT = sizeof rows / sizeof rows[0] };

START_TEST(every_status_has_its_name_and_a_sentence)
{
    for (size_t i = 0; i < ROW_COUNT; i++) {
        ck_assert_int_eq((int)rows[i].status, rows[i].value);
        ck_assert_str_eq(uf_status_name(rows[i].status), rows[i].name);
        ck_assert_str_eq(uf_status_text(rows[i].status), rows[i].text);
        ck_assert_uint_gt(strlen(rows[i].text), 3);
    }
}
END_TEST

START_TEST(no_two_statuses_share_a_value)
{
    for (size_t i = 1; i < ROW_COUNT; i++) {
        ck_assert_int_gt(rows[i].value, rows[i - 1].value);
    }
    ck_assert_int_eq(rows[0].value, 0);
}
END_TEST

START_TEST(an_unknown_status_is_said_to_be_unknown)
{
    int unknown = 12345;
    uf_status status;
    memcpy(&status, &unknown, sizeof status);
    ck_assert_str_eq(uf_status_name(status), "UF_ERROR_UNKNOWN");
    ck_assert_str_eq(uf_status_text(status), "unknown status");
}
END_TEST

START_TEST(a_record_keeps_status_and_text)
{
    uf_error error = {UF_OK, "before"};
    uf_status status = uf__error_set(&error, UF_ERROR_IO, "%s: %d of %d bytes", "x.uft", 3, 16);
    ck_assert_int_eq(status, UF_ERROR_IO);
    ck_assert_int_eq(error.status, UF_ERROR_IO);
    ck_assert_str_eq(error.text, "x.uft: 3 of 16 bytes");
}
END_TEST

START_TEST(without_a_record_only_the_status_is_returned)
{
    ck_assert_int_eq(uf__error_set(NULL, UF_ERROR_CONF, "%d", 1), UF_ERROR_CONF);
}
END_TEST

START_TEST(a_text_that_is_too_long_is_cut)
{
    char word[700];
    memset(word, 'a', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    uf_error error;
    ck_assert_int_eq(uf__error_set(&error, UF_ERROR_IO, "%s", word), UF_ERROR_IO);
    ck_assert_uint_eq(strlen(error.text), sizeof error.text - 1);
}
END_TEST

int main(void)
{
    return suite_run("error", (const TTest *const[]){
                                  every_status_has_its_name_and_a_sentence,
                                  no_two_statuses_share_a_value,
                                  an_unknown_status_is_said_to_be_unknown,
                                  a_record_keeps_status_and_text,
                                  without_a_record_only_the_status_is_returned,
                                  a_text_that_is_too_long_is_cut,
                                  NULL,
                              });
}
