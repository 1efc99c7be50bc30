/* SPDX-License-Identifier: MIT
 *
 * Telling the form of an input by its content, the options, and failing allocations. */
#include <unfrag/trace.h>

#include <unistd.h>

#include "pickle_bytes.h"

#define EMPTY_SNAPSHOT "\x80\2}X\10\0\0\0segments]s."

START_TEST(each_form_is_told_by_its_first_bytes)
{
    uf_trace *trace = read_bytes(BYTES(EMPTY_SNAPSHOT));
    ck_assert_int_eq(trace->form, UF_FORM_PICKLE);
    uf_trace_destroy(trace);
    trace = read_bytes(BYTES("(dp0\nS'segments'\n(lp1\ns.")); /* protocol 0 */
    ck_assert_int_eq(trace->form, UF_FORM_PICKLE);
    uf_trace_destroy(trace);
    trace = read_bytes(BYTES("}U\10segments]s.")); /* protocol 1 */
    ck_assert_int_eq(trace->form, UF_FORM_PICKLE);
    uf_trace_destroy(trace);
    trace = read_bytes(BYTES(" \n{\"segments\": [], \"device_traces\": []}\n"));
    ck_assert_int_eq(trace->form, UF_FORM_JSON);
    uf_trace_destroy(trace);
    trace = read_bytes(BYTES("# a comment\n\nalloc a 5MiB\nfree a\n"));
    ck_assert_int_eq(trace->form, UF_FORM_SCRIPT);
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(what_is_no_trace_is_refused_with_a_reason)
{
    char zeros[4096] = {0};
    expect_refusal("", 0, "empty");
    expect_refusal(NULL, 0, "empty");
    expect_refusal(zeros, sizeof zeros, "not a pickle");
    expect_refusal(zeros, 1, "0x00");
    expect_refusal(BYTES("Hello, World\n"), "this is text");
    expect_refusal(BYTES("<html></html>"), "this is text");
    expect_refusal(BYTES("\n\n  \n"), "this is text");
    expect_refusal(BYTES("torch.OutOfMemoryError: CUDA out of memory."), "this is text");
    expect_refusal(BYTES("allok a 5MiB\n"), "line 1");
    expect_refusal(BYTES("PK\3\4rest of the archive"), "torch.save");
    expect_refusal(BYTES("\x7f"
                         "ELF\2\1\1"),
                   "not a pickle");
    expect_refusal(BYTES("\x1f\x8b\x08\0\0\0\0\0\0\3\3\0\0\0\0\0\0\0\0\0"), "after decompression");
    expect_refusal(BYTES("\x80"), "ends early");
    expect_refusal(BYTES("{"), "JSON");
    expect_refusal(BYTES("\x89UFT\r\n\x1a\n"), "");
}
END_TEST

START_TEST(a_file_is_named_in_messages)
{
    char path[] = "/tmp/unfrag-read-test-XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, "\x80\2N.", 4), 4);
    uf_trace *trace = NULL;
    uf_error error;
    ck_assert_int_eq(uf_trace_read(path, NULL, &trace, &error), UF_ERROR_BAD_INPUT);
    ck_assert_msg(strncmp(error.text, path, strlen(path)) == 0, "%s", error.text);
    ck_assert_msg(strstr(error.text, ": a pickle, but not") != NULL, "%s", error.text);
    ck_assert_int_eq(uf_trace_read(path, NULL, &trace, NULL), UF_ERROR_BAD_INPUT);
    ck_assert_int_eq(pwrite(fd, BYTES(EMPTY_SNAPSHOT), 0), sizeof EMPTY_SNAPSHOT - 1);
    ck_assert_int_eq(uf_trace_read(path, NULL, &trace, &error), UF_OK);
    ck_assert_uint_eq(trace->input_bytes, sizeof EMPTY_SNAPSHOT - 1);
    ck_assert_uint_eq(trace->decoded_bytes, sizeof EMPTY_SNAPSHOT - 1);
    uf_trace_destroy(trace);
    close(fd);
    unlink(path);
    ck_assert_int_eq(uf_trace_read(path, NULL, &trace, &error), UF_ERROR_IO);
}
END_TEST

START_TEST(arguments_and_options_are_checked)
{
    uf_trace *trace = NULL;
    uf_error error;
    uf_trace_read_options options = {0};
    ck_assert_int_eq(uf_trace_read(NULL, NULL, &trace, &error), UF_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(uf_trace_read("x", NULL, NULL, &error), UF_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(uf_trace_read_memory(NULL, 1, NULL, &trace, &error),
                     UF_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(uf_trace_read_memory(BYTES(EMPTY_SNAPSHOT), &options, &trace, &error),
                     UF_ERROR_INVALID_ARGUMENT);
    options.struct_size_bytes = sizeof options + 8;
    ck_assert_int_eq(uf_trace_read_memory(BYTES(EMPTY_SNAPSHOT), &options, &trace, &error),
                     UF_ERROR_INVALID_ARGUMENT);
    ck_assert_ptr_null(trace);
    options.struct_size_bytes = sizeof options.struct_size_bytes; /* an older caller */
    ck_assert_int_eq(uf_trace_read_memory(BYTES(EMPTY_SNAPSHOT), &options, &trace, &error), UF_OK);
    uf_trace_destroy(trace);
}
END_TEST

static bool stop(void *context, uint64_t done_bytes, uint64_t total_bytes)
{
    (void)done_bytes;
    (void)total_bytes;
    return --*(int *)context > 0;
}

START_TEST(a_reading_can_be_interrupted_at_each_call)
{
    uf_trace *trace = NULL;
    uf_error error;
    int left = 0, stops = 0;
    uf_trace_read_options options = {
        .struct_size_bytes = sizeof options, .progress = stop, .progress_context = &left};
    for (int calls = 1; calls < 10; calls++) {
        left = calls;
        uf_status status = uf_trace_read_memory(BYTES(EMPTY_SNAPSHOT), &options, &trace, &error);
        if (status == UF_OK)
            break;
        ck_assert_int_eq(status, UF_ERROR_INTERRUPTED);
        ck_assert_ptr_null(trace);
        stops++;
    }
    ck_assert_int_ge(stops, 2);
    ck_assert_ptr_nonnull(trace);
    uf_trace_destroy(trace);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        each_form_is_told_by_its_first_bytes,
        what_is_no_trace_is_refused_with_a_reason,
        a_file_is_named_in_messages,
        arguments_and_options_are_checked,
        a_reading_can_be_interrupted_at_each_call,
    };
    return run_case("read", tests, sizeof tests / sizeof tests[0]);
}
