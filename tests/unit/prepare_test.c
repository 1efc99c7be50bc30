/* SPDX-License-Identifier: MIT
 *
 * From a trace to a program: settings, devices, and what is not an error. */
#include <unfrag/replay.h>

#include <string.h>

#include "unit/suite.h"
#include "unit/trace_maker.h"

static maker m;

START_TEST(a_sound_trace_makes_an_equal_program)
{
    maker_sample(&m);
    uf_program *program = maker_program(&m, NULL);
    const uf_program_report *report = uf_program_report_get(program);
    ck_assert(report->is_equal);
    ck_assert_int_eq(report->difference.kind, UF_DIFFERENCE_NONE);
    ck_assert_uint_eq(report->event_count, 7);
    ck_assert_uint_eq(report->events_equal, 7);
    ck_assert(!report->has_lost_beginning);
    ck_assert_uint_eq(report->final_segment_count, 1);
    ck_assert_uint_eq(report->final_block_count, 4);
    ck_assert_int_eq(report->stats.allocation.all.current, 2);
    ck_assert_str_eq(uf_program_conf(program), "");
    uf_program_destroy(program);
}
END_TEST

START_TEST(settings_of_the_caller_win_over_those_of_the_trace)
{
    static char text[] = "\0max_split_size_mb:64";
    static uint64_t offsets[] = {0, 1, sizeof text};
    maker_sample(&m);
    m.trace.string_data = text;
    m.trace.string_offsets = offsets;
    m.trace.string_count = 2;
    m.trace.settings.has_conf = true;
    m.trace.settings.conf = 1;
    uf_program *program = maker_program(&m, NULL);
    ck_assert_str_eq(uf_program_conf(program), "max_split_size_mb:64");
    ck_assert_uint_eq(program->conf.max_split_size_bytes, 64 * MAKER_MIB);
    uf_program_destroy(program);
    uf_program_options options = {
        .struct_size_bytes = sizeof options, .conf = "", .num_alloc_retries = -1};
    program = maker_program(&m, &options);
    ck_assert_str_eq(uf_program_conf(program), "");
    ck_assert_uint_eq(program->conf.max_split_size_bytes, UF_UNLIMITED);
    uf_program_destroy(program);
}
END_TEST

START_TEST(single_values_in_the_trace_count_without_a_settings_string)
{
    maker_sample(&m);
    m.trace.settings.has_max_split_size = m.trace.settings.has_gc_threshold = true;
    m.trace.settings.has_expandable = m.trace.settings.is_expandable = true;
    m.trace.settings.max_split_size_bytes = (int64_t)(100 * MAKER_MIB);
    m.trace.settings.gc_threshold = 0.7;
    uf_program *program = maker_program(&m, NULL);
    ck_assert_uint_eq(program->conf.max_split_size_bytes, 100 * MAKER_MIB);
    ck_assert_double_eq(program->conf.garbage_collection_threshold, 0.7);
    ck_assert(program->conf.is_expandable);
    uf_program_destroy(program);
    m.trace.settings.max_split_size_bytes = -1;
    program = maker_program(&m, NULL);
    ck_assert_uint_eq(program->conf.max_split_size_bytes, UF_UNLIMITED);
    uf_program_destroy(program);
}
END_TEST

START_TEST(a_wrong_string_of_the_caller_is_an_error_one_of_the_trace_is_not)
{
    static char text[] = "\0no_such_option:1";
    static uint64_t offsets[] = {0, 1, sizeof text};
    uf_program *program = NULL;
    uf_error error = {UF_OK, ""};
    maker_sample(&m);
    uf_program_options options = {.struct_size_bytes = sizeof options, .conf = "no_such_option:1"};
    ck_assert_int_eq(uf_program_create(&m.trace, &options, &program, &error), UF_ERROR_CONF);
    ck_assert_ptr_null(program);
    ck_assert_ptr_nonnull(strstr(error.text, "no_such_option"));
    m.trace.string_data = text;
    m.trace.string_offsets = offsets;
    m.trace.string_count = 2;
    m.trace.settings.has_conf = true;
    m.trace.settings.conf = 1;
    program = maker_program(&m, NULL);
    ck_assert(uf_program_report_get(program)->is_equal);
    uf_program_destroy(program);
}
END_TEST

START_TEST(a_device_that_is_not_there_is_an_error)
{
    uf_program *program = NULL;
    uf_error error = {UF_OK, ""};
    maker_sample(&m);
    uf_program_options options = {.struct_size_bytes = sizeof options, .device = 1};
    ck_assert_int_eq(uf_program_create(&m.trace, &options, &program, &error),
                     UF_ERROR_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.text, "1 devices"));
    ck_assert_ptr_null(program);
}
END_TEST

START_TEST(each_device_has_its_own_events_and_segments)
{
    maker_sample(&m);
    m.trace.device_count = 2;
    m.devices[1] = (uf_trace_device){.device = 3, .first = m.trace.event_count, .count = 2};
    m.events[m.trace.event_count++] = (uf_event){
        .addr = MAKER_BASE, .size_bytes = 2 * MAKER_MIB, .action = UF_ACTION_SEGMENT_ALLOC};
    m.events[m.trace.event_count++] =
        (uf_event){.addr = MAKER_BASE, .size_bytes = 512, .action = UF_ACTION_ALLOC};
    maker_segment(&m, MAKER_BASE, false)->device = 3;
    maker_block(&m, 512, 512, UF_BLOCK_ACTIVE_ALLOCATED);
    maker_block(&m, 2 * MAKER_MIB - 512, 0, UF_BLOCK_INACTIVE);
    for (uint32_t device = 0; device < 2; device++) {
        uf_program_options options = {
            .struct_size_bytes = sizeof options, .device = device, .num_alloc_retries = -1};
        uf_program *program = maker_program(&m, &options);
        const uf_program_report *report = uf_program_report_get(program);
        ck_assert(report->is_equal);
        ck_assert_uint_eq(report->event_count, device == 0 ? 7 : 2);
        ck_assert_int_eq(program->device, device == 0 ? 0 : 3);
        uf_program_destroy(program);
    }
}
END_TEST

START_TEST(an_empty_trace_makes_an_empty_program)
{
    maker_init(&m);
    m.trace.device_count = 0;
    uf_program *program = maker_program(&m, NULL);
    uf_replay_result result;
    uf_error error = {UF_OK, ""};
    ck_assert_uint_eq(uf_program_report_get(program)->event_count, 0);
    ck_assert_int_eq(uf_replay_run(program, NULL, &result, &error), UF_OK);
    ck_assert_uint_eq(result.event_count, 0);
    ck_assert_uint_eq(result.peak_reserved_bytes, 0);
    uf_program_destroy(program);
    uf_program_destroy(NULL);
}
END_TEST

START_TEST(the_nominal_memory_is_the_callers_the_traces_or_that_of_the_recordings)
{
    maker_sample(&m);
    uf_program *program = maker_program(&m, NULL);
    ck_assert_uint_eq(program->options.total_bytes, UF_RECORDED_TOTAL_BYTES);
    uf_program_destroy(program);
    m.trace.total_bytes = 1 << 30;
    program = maker_program(&m, NULL);
    ck_assert_uint_eq(program->options.total_bytes, 1 << 30);
    uf_program_destroy(program);
    uf_program_options options = {
        .struct_size_bytes = sizeof options, .total_bytes = 5, .num_alloc_retries = -1};
    program = maker_program(&m, &options);
    ck_assert_uint_eq(program->options.total_bytes, 5);
    uf_program_destroy(program);
}
END_TEST

int main(void)
{
    return suite_run("prepare",
                     (const TTest *const[]){
                         a_sound_trace_makes_an_equal_program,
                         settings_of_the_caller_win_over_those_of_the_trace,
                         single_values_in_the_trace_count_without_a_settings_string,
                         a_wrong_string_of_the_caller_is_an_error_one_of_the_trace_is_not,
                         a_device_that_is_not_there_is_an_error,
                         each_device_has_its_own_events_and_segments,
                         an_empty_trace_makes_an_empty_program,
                         the_nominal_memory_is_the_callers_the_traces_or_that_of_the_recordings,
                         NULL,
                     });
}
