/* SPDX-License-Identifier: MIT
 *
 * Scripts: the events that each command becomes, and the messages of wrong lines. */
#include <check.h>
#include <inttypes.h>
#include <string.h>

#include "base/size.h"
#include "trace/script.h"

static uf_status read_script(const char *text, size_t length, uf_trace **trace, uf_error *error)
{
    uf__input *input = NULL;
    uf_builder *builder = uf__builder_create();
    ck_assert_ptr_nonnull(builder);
    uf_status status = uf__input_open_memory(text, length, NULL, &input, error);
    if (status == UF_OK) {
        status = uf__script_read(input, builder, error);
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
    ck_assert_msg(read_script(text, strlen(text), &trace, &error) == UF_OK, "%s", error.text);
    ck_assert_int_eq(trace->form, UF_FORM_SCRIPT);
    ck_assert_uint_eq(trace->device_count, 1);
    ck_assert_uint_eq(trace->devices[0].count, trace->event_count);
    return trace;
}

static void expect_error(const char *text, const char *part)
{
    uf_trace *trace = NULL;
    uf_error error = {.status = UF_OK};
    ck_assert_msg(read_script(text, strlen(text), &trace, &error) == UF_ERROR_BAD_INPUT, "%s",
                  text);
    ck_assert_msg(strstr(error.text, part) != NULL, "'%s' lacks '%s'", error.text, part);
}

/* "alloc NAME SIZE" of an event, its stream behind an '@' unless 0. */
static void expect_event(const uf_trace *trace, uint64_t index, const char *text)
{
    ck_assert_uint_lt(index, trace->event_count);
    const uf_event *event = &trace->events[index];
    const uf_site *site = &trace->sites[event->site];
    const char *action = event->action == UF_ACTION_OTHER
                             ? uf_trace_string(trace, site->action_name)
                             : uf_action_name(event->action);
    char found[200];
    char stream[32] = "";
    if (site->stream != 0) {
        snprintf(stream, sizeof stream, "@%" PRIu64, site->stream);
    }
    snprintf(found, sizeof found, "%s %s %" PRIu64 "%s", action,
             uf_trace_string(trace, site->user_metadata), event->size_bytes, stream);
    ck_assert_str_eq(found, text);
    ck_assert_int_eq(event->time_us, UF_TIME_UNKNOWN);
}

START_TEST(an_alloc_and_its_free_are_three_events)
{
    uf_trace *trace = read_well("alloc A 1.5GiB\nfree A\n");
    ck_assert_uint_eq(trace->event_count, 3);
    expect_event(trace, 0, "alloc A 1610612736");
    expect_event(trace, 1, "free_requested A 1610612736");
    expect_event(trace, 2, "free_completed A 1610612736");
    ck_assert_uint_eq(trace->events[0].addr, UINT64_C(0x7f0000000000));
    ck_assert_uint_eq(trace->events[1].addr, trace->events[0].addr);
    ck_assert_uint_eq(trace->events[2].addr, trace->events[0].addr);
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(free_segments_are_all_requested_before_the_first_is_freed)
{
    uf_trace *trace = read_well("free-segment 256MiB\nsegment 64MiB\n\nalloc r 192MiB\n");
    ck_assert_uint_eq(trace->event_count, 7);
    expect_event(trace, 0, "alloc free-segment 268435456");
    expect_event(trace, 1, "alloc free-segment 67108864");
    expect_event(trace, 2, "free_requested free-segment 268435456");
    expect_event(trace, 3, "free_completed free-segment 268435456");
    expect_event(trace, 4, "free_requested free-segment 67108864");
    expect_event(trace, 5, "free_completed free-segment 67108864");
    expect_event(trace, 6, "alloc r 201326592");
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(free_segments_alone_are_events_too)
{
    uf_trace *trace = read_well("free-segment 20MiB");
    ck_assert_uint_eq(trace->event_count, 3);
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(blocks_never_overlap)
{
    uf_trace *trace = read_well("alloc a 1\nalloc b 513\nfree a\nalloc a 20000\nalloc c 512\n");
    ck_assert_uint_eq(trace->events[1].addr - trace->events[0].addr, 512);
    ck_assert_uint_eq(trace->events[4].addr - trace->events[1].addr, 1024);
    ck_assert_uint_eq(trace->events[5].addr - trace->events[4].addr, 20480);
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(card_limit_and_conf_are_kept)
{
    uf_trace *trace = read_well("card 24GiB # comment\nlimit 20 GiB\n"
                                "conf max_split_size_mb:128, expandable_segments:True  # x\n");
    ck_assert_uint_eq(trace->script_card_bytes, 24 * UF_GIB);
    ck_assert_uint_eq(trace->script_limit_bytes, 20 * UF_GIB);
    ck_assert(trace->settings.is_present);
    ck_assert(trace->settings.has_conf);
    ck_assert_str_eq(uf_trace_string(trace, trace->settings.conf),
                     "max_split_size_mb:128, expandable_segments:True");
    ck_assert_uint_eq(trace->event_count, 0);
    ck_assert(trace->has_device_traces);
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(streams_hold_until_changed_and_frees_keep_their_blocks_stream)
{
    uf_trace *trace = read_well("stream 7\nalloc a 512\nstream 0\nalloc b 512\nfree a\n");
    expect_event(trace, 0, "alloc a 512@7");
    expect_event(trace, 1, "alloc b 512");
    expect_event(trace, 2, "free_requested a 512@7");
    expect_event(trace, 3, "free_completed a 512@7");
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(a_block_used_elsewhere_is_free_at_the_next_sync)
{
    uf_trace *trace = read_well("alloc a 512\nalloc b 1024\nuse-on a 3\nuse-on b 0\nfree a\n"
                                "free b\nalloc a 2048\nsync\nfree a\nsync\n");
    ck_assert_uint_eq(trace->event_count, 9);
    expect_event(trace, 2, "free_requested a 512");
    expect_event(trace, 3, "free_requested b 1024");
    expect_event(trace, 4, "free_completed b 1024");
    expect_event(trace, 5, "alloc a 2048");
    expect_event(trace, 6, "free_completed a 512");
    expect_event(trace, 7, "free_requested a 2048");
    expect_event(trace, 8, "free_completed a 2048");
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(without_a_sync_the_free_never_completes)
{
    uf_trace *trace = read_well("alloc a 512\nuse-on a 3\nfree a\n");
    ck_assert_uint_eq(trace->event_count, 2);
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(empty_cache_is_an_event_of_its_own)
{
    uf_trace *trace = read_well("free-segment 10MiB\nempty-cache\nalloc a 1\n");
    ck_assert_uint_eq(trace->event_count, 5);
    expect_event(trace, 3, "empty_cache  0");
    ck_assert_int_eq(trace->events[3].action, UF_ACTION_OTHER);
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(line_ends_blanks_and_byte_order_marks_do_not_matter)
{
    uf_trace *trace = read_well("\xef\xbb\xbf# note\r\n\r\n\t alloc\tA   1KiB  \r\n"
                                "alloc A#x 512\r\nfree A#x\r\nfree A # done");
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(an_empty_script_is_an_empty_trace)
{
    uf_trace *trace = read_well("\n# nothing\n");
    ck_assert_uint_eq(trace->event_count, 0);
    uf_trace_destroy(trace);
}
END_TEST

static const struct {
    const char *text;
    const char *part;
} MISTAKES[] = {
    {"\n\nallocate A 5\n", "line 3: 'allocate' is no command of a script; there are card, limit"},
    {"alloc A\n", "line 1: something is missing; it is written 'alloc NAME SIZE'"},
    {"alloc A 5 6\n", "line 1: alloc: "},
    {"free A B\n", "line 1: too much: B; it is written 'free NAME'"},
    {"alloc A 5QiB\n", "line 1: alloc: "},
    {"alloc A 0\n", "at least 1 byte"},
    {"alloc A -5\n", "line 1: alloc: "},
    {"alloc A 5\nalloc A 6\n", "line 2: alloc A: it is allocated since line 1"},
    {"free A\n", "line 1: free A: nothing of that name has been allocated"},
    {"alloc A 5\nfree A\n\nfree A\n", "line 4: free A: it was freed in line 2 already"},
    {"alloc A 5\nfree A\nuse-on A 3\n", "line 3: use-on A: it was freed in line 2"},
    {"use-on B 3\n", "line 1: use-on B: nothing"},
    {"alloc A 5\nuse-on A x\n", "line 2: use-on: 'x' is no stream"},
    {"stream -1\n", "line 1: stream: '-1' is no stream"},
    {"stream 18446744073709551616\n", "is no stream"},
    {"card 5\ncard 5\n", "line 2: card was given in line 1 already"},
    {"limit 5\nlimit 5\n", "line 2: limit was given in line 1 already"},
    {"conf a:1\nconf a:1\n", "line 2: conf was given in line 1 already"},
    {"conf\n", "it is written 'conf SETTINGS'"},
    {"sync now\n", "too much: now"},
    {"alloc A 5\nfree-segment 64MiB\n", "line 2: free-segment: these lines describe the start"},
    {"free-segment 9MiB\n", "a multiple of 2 MiB, from 10 MiB up"},
    {"free-segment 4MiB\n", "a multiple of 2 MiB, from 10 MiB up"},
    {"alloc A 8388607TiB\nalloc B 8388607TiB\n", "line 1: with these"},
    {"alloc A\x01 5\n", "line 1 is no text (byte 0x01 in column 8)"},
};

START_TEST(a_mistake_is_named_with_its_line)
{
    expect_error(MISTAKES[_i].text, MISTAKES[_i].part);
}
END_TEST

START_TEST(a_line_of_4096_bytes_is_read_and_a_longer_one_refused)
{
    char text[5000];
    memset(text, 'x', sizeof text);
    text[0] = '#';
    text[4096] = '\n';
    text[4097] = '\0';
    uf_trace_destroy(read_well(text));
    text[4096] = '\0';
    uf_trace_destroy(read_well(text));
    text[4096] = 'x';
    text[4097] = '\n';
    text[4098] = '\0';
    expect_error(text, "line 1 of the script is longer than 4096 bytes");
    text[4097] = '\0';
    expect_error(text, "line 1 of the script is longer than 4096 bytes");
}
END_TEST

START_TEST(a_nul_byte_is_no_text)
{
    uf_trace *trace = NULL;
    uf_error error = {.status = UF_OK};
    ck_assert_int_eq(read_script("alloc\0A 5\n", 10, &trace, &error), UF_ERROR_BAD_INPUT);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("script");
    TCase *tests = tcase_create("script");
    tcase_add_test(tests, an_alloc_and_its_free_are_three_events);
    tcase_add_test(tests, free_segments_are_all_requested_before_the_first_is_freed);
    tcase_add_test(tests, free_segments_alone_are_events_too);
    tcase_add_test(tests, blocks_never_overlap);
    tcase_add_test(tests, card_limit_and_conf_are_kept);
    tcase_add_test(tests, streams_hold_until_changed_and_frees_keep_their_blocks_stream);
    tcase_add_test(tests, a_block_used_elsewhere_is_free_at_the_next_sync);
    tcase_add_test(tests, without_a_sync_the_free_never_completes);
    tcase_add_test(tests, empty_cache_is_an_event_of_its_own);
    tcase_add_test(tests, line_ends_blanks_and_byte_order_marks_do_not_matter);
    tcase_add_test(tests, an_empty_script_is_an_empty_trace);
    tcase_add_loop_test(tests, a_mistake_is_named_with_its_line, 0,
                        (int)(sizeof MISTAKES / sizeof MISTAKES[0]));
    tcase_add_test(tests, a_line_of_4096_bytes_is_read_and_a_longer_one_refused);
    tcase_add_test(tests, a_nul_byte_is_no_text);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed_count = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed_count == 0 ? 0 : 1;
}
