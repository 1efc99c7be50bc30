/* SPDX-License-Identifier: MIT
 *
 * Out-of-memory messages: figures, forms, groups, growth. Whole families: tests/explain/. */
#include "advise/message.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "advise/message_squeeze.h"
#include "base/size.h"

static uf_message_log *scan(const char *text)
{
    uf_message_log *log = NULL;
    uf_error error = {0};
    ck_assert_int_eq(uf__message_scan_memory(text, strlen(text), &log, &error), UF_OK);
    return log;
}

static void expect_figure(const char *text, uint64_t bytes, uint64_t rounding)
{
    uf_figure figure = {0};
    const char *end = text + strlen(text);
    ck_assert_ptr_eq(uf__figure_at(text, end, false, &figure), end);
    ck_assert(figure.is_known);
    ck_assert_uint_eq(figure.bytes, bytes);
    ck_assert_uint_eq(figure.rounding_bytes, rounding);
    ck_assert(uf__figure_before(text, end, &figure));
    ck_assert_uint_eq(figure.bytes, bytes);
}

START_TEST(a_figure_is_read_to_the_byte_forwards_and_backwards)
{
    expect_figure("22.00mib", 22 * UF_MIB, (UF_MIB / 100 + 1) / 2);
    expect_figure("0bytes", 0, 0);
    expect_figure("512bytes", 512, 0);
    expect_figure("195.50kib", 200192, (UF_KIB / 100 + 1) / 2);
    expect_figure("11.93gib", UINT64_C(12809739960), (UF_GIB / 100 + 1) / 2);
    expect_figure("9.07gb", UINT64_C(9738838344), (UF_GIB / 100 + 1) / 2);
    expect_figure("1,073,741,824bytes", UF_GIB, 0);
}
END_TEST

START_TEST(a_figure_backwards_stops_at_the_end_of_a_sentence)
{
    uf_figure figure = {0};
    const char *text = "inuse.39.58gib";
    ck_assert(uf__figure_before(text, text + strlen(text), &figure));
    ck_assert_uint_eq(figure.bytes, UINT64_C(42498701394));
    text = "inuse.0bytes";
    ck_assert(uf__figure_before(text, text + strlen(text), &figure));
    ck_assert_uint_eq(figure.bytes, 0);
    text = "nothing";
    ck_assert(!uf__figure_before(text, text + strlen(text), &figure));
}
END_TEST

START_TEST(two_to_the_64_is_no_figure)
{
    uf_figure figure = {true, 1, 1};
    const char *text = "17179869184.00gib";
    ck_assert_ptr_eq(uf__figure_at(text, text + strlen(text), false, &figure), text + strlen(text));
    ck_assert(!figure.is_known);
    text = "99999999999999999999999bytes";
    ck_assert_ptr_nonnull(uf__figure_at(text, text + strlen(text), false, &figure));
    ck_assert(!figure.is_known);
}
END_TEST

static void expect_squeezed(const char *text, const char *expected)
{
    char buffer[512];
    uf__squeeze squeeze;
    ck_assert(uf__squeeze_init(&squeeze, buffer, sizeof buffer));
    ck_assert_uint_eq(uf__squeeze_add(&squeeze, (const uint8_t *)text, strlen(text), true),
                      strlen(text));
    ck_assert_msg(squeeze.length == strlen(expected) &&
                      memcmp(buffer, expected, squeeze.length) == 0,
                  "'%s' gives '%.*s'", text, (int)squeeze.length, buffer);
    uf__squeeze_fini(&squeeze);
}

START_TEST(squeezing_drops_what_logs_add)
{
    expect_squeezed("Out of\r\n Memory", "outofmemory");
    expect_squeezed("\x1b[1;31mOut\x1b[0m of", "outof");
    expect_squeezed("\\u001b[31mOut\\nof", "outof");
    expect_squeezed("[rank0]: Out\n[rank0]: of", "outof");
    expect_squeezed("> Out\n> of", "outof");
    expect_squeezed("2024-06-22T15:13:25.079Z Out\n15:13:25,079 of", "outof");
    expect_squeezed("trainer-1  | Out", "out");
    expect_squeezed("(Worker pid=12) Out (of)", "out(of)");
    expect_squeezed("\xe2\x94\x82 Out\xc2\xa0of \xe2\x94\x82", "outof");
    expect_squeezed("`Out` \"of\" 'it'", "outofit");
    expect_squeezed("Killed\nKilled by", UF__SQUEEZE_KILLED "killedby");
    expect_squeezed("C:\\Lib\\site", "c:\\lib\\site");
}
END_TEST

START_TEST(a_line_is_known_by_number)
{
    char buffer[64];
    uf__squeeze squeeze;
    uint64_t line = 0;
    size_t offset = 0;
    ck_assert(uf__squeeze_init(&squeeze, buffer, sizeof buffer));
    const char *text = "one\n\n\ntwo\nthree";
    ck_assert_uint_eq(uf__squeeze_add(&squeeze, (const uint8_t *)text, strlen(text), true), 15);
    uf__squeeze_line(&squeeze, 4, &line, &offset);
    ck_assert_uint_eq(line, 4);
    ck_assert_uint_eq(offset, 3);
    uf__squeeze_drop(&squeeze, 5);
    uf__squeeze_line(&squeeze, 0, &line, &offset);
    ck_assert_uint_eq(line, 4);
    uf__squeeze_line(&squeeze, 2, &line, &offset);
    ck_assert_uint_eq(line, 5);
    uf__squeeze_fini(&squeeze);
}
END_TEST

#define OLD(ask, live)                                                                     \
    "CUDA out of memory. Tried to allocate " ask " (GPU 1; 8.00 GiB total capacity; " live \
    " already allocated; 1.00 MiB free; 7.50 GiB reserved in total by PyTorch)\n"

START_TEST(equal_messages_are_one_group_and_the_worst_is_kept)
{
    uf_message_log *log = scan(OLD("2.00 MiB", "7.00 GiB") OLD("1.00 GiB", "7.00 GiB")
                                   OLD("2.00 MiB", "7.00 GiB") "Killed\n");
    ck_assert_uint_eq(log->group_count, 3);
    ck_assert_uint_eq(log->message_count, 4);
    ck_assert_uint_eq(log->groups[0].count, 2);
    ck_assert_uint_eq(log->groups[0].first_line, 1);
    ck_assert_uint_eq(log->groups[0].last_line, 3);
    const uf_message_group *worst = uf__message_worst(log);
    ck_assert_int_eq(worst->message.form, UF_MESSAGE_T2);
    ck_assert_uint_eq(worst->message.figures[UF_FIGURE_REQUESTED].bytes, UF_GIB);
    ck_assert_int_eq(worst->message.device, 1);
    ck_assert_uint_eq(worst->first_line, 2);
    free(log);
}
END_TEST

START_TEST(more_kinds_than_room_keep_the_worst)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    for (int i = 0; i < 500; i++) {
        fprintf(stream, OLD("%d.00 MiB", "7.00 GiB"), (i * 7) % 500 + 1);
    }
    fclose(stream);
    uf_message_log *log = scan(text);
    ck_assert_uint_eq(log->group_count, UF_MESSAGE_GROUP_CAPACITY);
    ck_assert_uint_eq(log->message_count, 500);
    ck_assert_uint_eq(uf__message_worst(log)->message.figures[UF_FIGURE_REQUESTED].bytes,
                      500 * UF_MIB);
    free(log);
    free(text);
}
END_TEST

START_TEST(a_steady_series_is_growth_and_a_plateau_is_none)
{
    static const struct {
        uint64_t first, step, period;
        bool is_steady;
    } cases[] = {{1000, 100, 1000, true},
                 {1000, 0, 1000, false},
                 {1000, 100, 4, false},
                 {100000, 1, 1000, false}};
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        char text[4096] = "";
        for (uint64_t i = 0; i < 40; i++) {
            uint64_t value = cases[k].first + cases[k].step * (i % cases[k].period);
            sprintf(text + strlen(text), "step %d allocated %d MiB\n", (int)i, (int)value);
        }
        uf_message_log *log = scan(text);
        ck_assert_uint_eq(log->growth_count, 1);
        ck_assert_uint_eq(log->growths[0].count, 40);
        ck_assert_msg(uf__growth_is_steady(&log->growths[0], 4) == cases[k].is_steady, "case %zu",
                      k);
        free(log);
    }
}
END_TEST

START_TEST(an_empty_text_has_nothing)
{
    uf_message_log *log = scan("");
    ck_assert_uint_eq(log->byte_count, 0);
    ck_assert_ptr_null(uf__message_worst(log));
    free(log);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("message");
    TCase *all = tcase_create("all");
    tcase_add_test(all, a_figure_is_read_to_the_byte_forwards_and_backwards);
    tcase_add_test(all, a_figure_backwards_stops_at_the_end_of_a_sentence);
    tcase_add_test(all, two_to_the_64_is_no_figure);
    tcase_add_test(all, squeezing_drops_what_logs_add);
    tcase_add_test(all, a_line_is_known_by_number);
    tcase_add_test(all, equal_messages_are_one_group_and_the_worst_is_kept);
    tcase_add_test(all, more_kinds_than_room_keep_the_worst);
    tcase_add_test(all, a_steady_series_is_growth_and_a_plateau_is_none);
    tcase_add_test(all, an_empty_text_has_nothing);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed_count = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed_count == 0 ? 0 : 1;
}
