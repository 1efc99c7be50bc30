/* SPDX-License-Identifier: MIT
 *
 * The snapshot writer: our reader takes what it writes for the same trace. That Python does too is
 * checked in tests/write/. */
#include <check.h>

#include "trace_sample.h"

typedef struct bytes {
    char *data;
    size_t size;
} bytes;

static bytes write_pickle(const uf_trace *trace)
{
    bytes file = {NULL, 0};
    uf_error error = {.status = UF_OK};
    FILE *stream = open_memstream(&file.data, &file.size);
    ck_assert_ptr_nonnull(stream);
    ck_assert_msg(uf_trace_write_pickle(trace, stream, &error) == UF_OK, "%s", error.text);
    ck_assert_int_eq(fclose(stream), 0);
    return file;
}

static uf_trace *read_back(bytes file)
{
    uf_trace *trace = NULL;
    uf_error error = {.status = UF_OK};
    ck_assert_msg(uf_trace_read_memory(file.data, file.size, NULL, &trace, &error) == UF_OK, "%s",
                  error.text);
    ck_assert_int_eq(trace->form, UF_FORM_PICKLE);
    return trace;
}

/* The sample's ids come in an order of their own, and its empty stack becomes none, so two passes
 * are compared: what the first one reads must be what the second one reads. */
static void ck_settles(const uf_trace *trace)
{
    bytes first = write_pickle(trace);
    uf_trace *once = read_back(first);
    bytes second = write_pickle(once);
    uf_trace *twice = read_back(second);
    ck_assert_str_eq(trace_difference(once, twice), "");
    ck_assert_uint_eq(once->event_count, trace->event_count);
    ck_assert_uint_eq(once->block_count, trace->block_count);
    uf_trace_destroy(twice);
    uf_trace_destroy(once);
    free(first.data);
    free(second.data);
}

/* The sample without what a snapshot cannot say: sizes of 2^60 and more. */
static uf_trace *create_plain(void)
{
    uf_trace *trace = sample_create();
    for (uint64_t i = 0; i < trace->event_count; i++) {
        trace->events[i].size_bytes &= (UINT64_C(1) << 60) - 1;
    }
    return trace;
}

START_TEST(the_sample_settles)
{
    uf_trace *trace = create_plain();
    ck_settles(trace);
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(every_event_comes_back)
{
    uf_trace *trace = create_plain();
    bytes file = write_pickle(trace);
    uf_trace *again = read_back(file);
    ck_assert_uint_eq(again->device_count, trace->device_count);
    ck_assert_uint_eq(again->event_count, trace->event_count);
    for (uint64_t i = 0; i < trace->event_count; i++) {
        const uf_event *a = &trace->events[i];
        const uf_event *b = &again->events[i];
        const uf_site *a_site = &trace->sites[a->site];
        const uf_site *b_site = &again->sites[b->site];
        ck_assert_uint_eq(a->addr, b->addr);
        ck_assert_uint_eq(a->size_bytes, b->size_bytes);
        ck_assert_int_eq(a->time_us, b->time_us);
        ck_assert_uint_eq(a->action, b->action);
        ck_assert_uint_eq(a_site->stream, b_site->stream);
        ck_assert_int_eq(a_site->has_pool_id, b_site->has_pool_id);
        ck_assert_uint_eq(a_site->pool_id[0], b_site->pool_id[0]);
        ck_assert_str_eq(uf_trace_string(trace, a_site->compile_context),
                         uf_trace_string(again, b_site->compile_context));
        ck_assert_str_eq(uf_trace_string(trace, a_site->action_name),
                         uf_trace_string(again, b_site->action_name));
    }
    ck_assert_str_eq(uf_trace_string(trace, trace->settings.conf),
                     uf_trace_string(again, again->settings.conf));
    ck_assert_uint_eq(again->settings.divisions[15], 225);
    ck_assert_int_eq(again->settings.has_other, 15);
    free(file.data);
    uf_trace_destroy(again);
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(an_empty_trace_is_an_empty_snapshot)
{
    uf_builder *builder = uf__builder_create();
    uf_trace *trace = NULL;
    ck_assert(uf__builder_finish(builder, &trace));
    bytes file = write_pickle(trace);
    static const char EXPECTED[] = "\x80\x04\x95\x28\0\0\0\0\0\0\0}(\x8c\x08segments\x94]"
                                   "\x8c\x14"
                                   "external_annotations\x94]u.";
    ck_assert_uint_eq(file.size, sizeof EXPECTED - 1);
    ck_assert_mem_eq(file.data, EXPECTED, file.size);
    free(file.data);
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(long_strings_and_lists_settle)
{
    uf_builder *builder = uf__builder_create();
    sample_fill(builder);
    uf_site site;
    memset(&site, 0, sizeof site);
    site.stack = site.action_name = site.compile_context = UF_NONE;
    for (size_t length = 200; length < 3000000; length = length * 3 + 1) {
        char *text = malloc(length);
        memset(text, 'y', length);
        ck_assert(uf__builder_string(builder, text, length, &site.user_metadata));
        free(text);
        uint32_t id;
        ck_assert(uf__builder_site(builder, &site, &id));
        for (uint64_t i = 0; i < 2000; i++) {
            sample_event(builder, UF_ACTION_ALLOC, i << 20, i, (int64_t)i, id);
        }
    }
    uf_trace *trace = NULL;
    ck_assert(uf__builder_finish(builder, &trace));
    for (uint64_t i = 0; i < trace->event_count; i++) {
        trace->events[i].size_bytes &= (UINT64_C(1) << 60) - 1;
    }
    ck_settles(trace);
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(a_full_disk_is_an_io_error)
{
    uf_trace *trace = sample_create();
    FILE *stream = fopen("/dev/full", "wb");
    ck_assert_ptr_nonnull(stream);
    uf_error error = {.status = UF_OK};
    ck_assert_int_eq(uf_trace_write_pickle(trace, stream, &error), UF_ERROR_IO);
    ck_assert_msg(strstr(error.text, "No space") != NULL, "%s", error.text);
    fclose(stream);
    uf_trace_destroy(trace);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("snapshot_write");
    TCase *tests = tcase_create("snapshot_write");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, the_sample_settles);
    tcase_add_test(tests, every_event_comes_back);
    tcase_add_test(tests, an_empty_trace_is_an_empty_snapshot);
    tcase_add_test(tests, long_strings_and_lists_settle);
    tcase_add_test(tests, a_full_disk_is_an_io_error);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed_count = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed_count == 0 ? 0 : 1;
}
