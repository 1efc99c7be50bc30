/* SPDX-License-Identifier: MIT
 *
 * Following: what is equal, and where and how a difference is told. */
#include "replay/follow.h"

#include "replay/rebuild.h"
#include "unit/follow_bench.h"
#include "unit/recordings.h"
#include "unit/suite.h"

#define MIB MAKER_MIB
#define BASE MAKER_BASE

static follow_bench f;

START_TEST(a_sound_trace_is_equal)
{
    maker_sample(&f.m);
    follow_bench_expect_equal(&f);
}
END_TEST

START_TEST(an_alloc_at_another_address_is_a_difference)
{
    maker_sample(&f.m);
    f.m.events[2].addr += 512;
    follow_bench_expect_difference(
        &f, UF_DIFFERENCE_EVENT, 2,
        "expected alloc of 2097152 bytes at 0x7f0000300200 on stream 0, the model does alloc of "
        "2097152 bytes at 0x7f0000300000");
}
END_TEST

START_TEST(a_segment_of_another_size_is_a_difference)
{
    maker_sample(&f.m);
    f.m.events[0].size_bytes = 22 * MIB;
    follow_bench_expect_difference(&f, UF_DIFFERENCE_EVENT, 0,
                                   "the model wants segment_alloc of 20971520 bytes");
}
END_TEST

START_TEST(an_event_on_another_stream_is_a_difference)
{
    maker_sample(&f.m);
    f.m.events[4].site = MAKER_STREAM_7;
    follow_bench_expect_difference(&f, UF_DIFFERENCE_EVENT, 4,
                                   "on stream 7, the model does free_completed");
}
END_TEST

START_TEST(a_segment_that_the_model_does_not_need_is_a_difference)
{
    maker_sample(&f.m);
    f.m.events[2].action = UF_ACTION_SEGMENT_ALLOC;
    f.m.events[2].addr = BASE + 100 * MIB;
    follow_bench_run(&f);
    ck_assert(f.follow.has_failed);
    ck_assert_uint_eq(f.follow.difference.event, 3);
    follow_bench_fini(&f);
    maker_sample(&f.m);
    f.m.events[5].addr = BASE + 100 * MIB;
    f.m.events[4].action = UF_ACTION_SEGMENT_ALLOC;
    f.m.events[4].size_bytes = 20 * MIB;
    f.m.events[4].addr = BASE + 100 * MIB;
    follow_bench_run(&f);
    ck_assert(f.follow.has_failed);
    follow_bench_fini(&f);
}
END_TEST

START_TEST(memory_taken_for_no_request_is_a_difference)
{
    maker_init(&f.m);
    maker_event(&f.m, UF_ACTION_SEGMENT_ALLOC, BASE, 20 * MIB);
    maker_event(&f.m, UF_ACTION_SNAPSHOT, 0, 0);
    follow_bench_expect_difference(&f, UF_DIFFERENCE_EVENT, 1,
                                   "memory was taken from the driver for no request");
}
END_TEST

START_TEST(a_free_of_what_was_not_allocated_is_a_difference)
{
    maker_sample(&f.m);
    maker_event(&f.m, UF_ACTION_FREE_REQUESTED, BASE + 100 * MIB, 512);
    maker_event(&f.m, UF_ACTION_FREE_COMPLETED, BASE + 100 * MIB, 512);
    follow_bench_expect_difference(&f, UF_DIFFERENCE_EVENT, 7, "not allocated before");
}
END_TEST

START_TEST(a_release_of_what_is_in_use_is_a_difference)
{
    maker_sample(&f.m);
    f.m.events[6] =
        (uf_event){.addr = BASE, .size_bytes = 20 * MIB, .action = UF_ACTION_SEGMENT_FREE};
    follow_bench_expect_difference(&f, UF_DIFFERENCE_EVENT, 6, "the model cannot release it");
}
END_TEST

/* 12 MiB come, go, and are given back before 14 MiB come. */
static void make_flush_before_request(void)
{
    maker_init(&f.m);
    maker_event(&f.m, UF_ACTION_SEGMENT_ALLOC, BASE, 12 * MIB);
    maker_event(&f.m, UF_ACTION_ALLOC, BASE, 12 * MIB);
    maker_free(&f.m, BASE, 12 * MIB);
    maker_event(&f.m, UF_ACTION_SEGMENT_FREE, BASE, 12 * MIB);
    maker_event(&f.m, UF_ACTION_SEGMENT_ALLOC, BASE + 50 * MIB, 14 * MIB);
    maker_event(&f.m, UF_ACTION_ALLOC, BASE + 50 * MIB, 14 * MIB);
    maker_segment(&f.m, BASE + 50 * MIB, true);
    maker_block(&f.m, 14 * MIB, 14 * MIB, UF_BLOCK_ACTIVE_ALLOCATED);
    f.assumptions.reading_count = 0;
}

START_TEST(a_release_before_a_request_can_be_read_both_ways)
{
    static const uf_reading readings[] = {UF_READING_DEFAULT, UF_READING_IN_CALL,
                                          UF_READING_EXPLICIT};
    for (int i = 0; i < 3; i++) {
        make_flush_before_request();
        f.readings[0] = (uf_forced_reading){4, readings[i]};
        f.assumptions.reading_count = 1;
        follow_bench_run(&f);
        ck_assert(!f.follow.has_failed);
        bool is_in_call = readings[i] != UF_READING_EXPLICIT;
        ck_assert_int_eq(f.follow.core.counters.num_alloc_retries, is_in_call);
        ck_assert_uint_eq(f.follow.empty_cache_count, !is_in_call);
        ck_assert_uint_eq(f.follow.open_in_call_count, is_in_call);
        ck_assert_uint_eq(f.follow.open_explicit_count, !is_in_call);
        ck_assert_int_eq(uf__op_kind(f.program->ops[4]), is_in_call ? UF_OP_NONE : UF_OP_EMPTY);
        follow_bench_fini(&f);
    }
}
END_TEST

START_TEST(a_request_that_could_not_have_flushed_was_preceded_by_empty_cache)
{
    make_flush_before_request();
    /* The recording held more later, so nothing forced this request to flush. */
    maker_event(&f.m, UF_ACTION_SEGMENT_ALLOC, BASE + 100 * MIB, 40 * MIB);
    maker_event(&f.m, UF_ACTION_ALLOC, BASE + 100 * MIB, 40 * MIB);
    maker_segment(&f.m, BASE + 100 * MIB, true);
    maker_block(&f.m, 40 * MIB, 40 * MIB, UF_BLOCK_ACTIVE_ALLOCATED);
    follow_bench_run(&f);
    ck_assert(!f.follow.has_failed);
    ck_assert_int_eq(f.follow.core.counters.num_alloc_retries, 0);
    ck_assert_uint_eq(f.follow.empty_cache_count, 1);
    follow_bench_fini(&f);
}
END_TEST

START_TEST(a_recorded_failure_fails_in_the_model_too)
{
    maker_init(&f.m);
    maker_event(&f.m, UF_ACTION_SEGMENT_ALLOC, BASE, 12 * MIB);
    maker_event(&f.m, UF_ACTION_ALLOC, BASE, 12 * MIB);
    maker_event(&f.m, UF_ACTION_OOM, 12345, 600 * MIB);
    maker_segment(&f.m, BASE, true);
    maker_block(&f.m, 12 * MIB, 12 * MIB, UF_BLOCK_ACTIVE_ALLOCATED);
    follow_bench_run(&f);
    ck_assert(!f.follow.has_failed);
    ck_assert_int_eq(f.follow.core.counters.num_ooms, 1);
    ck_assert_int_eq(f.follow.core.counters.num_alloc_retries, 1);
    follow_bench_fini(&f);
}
END_TEST

START_TEST(delayed_frees_complete_where_the_recording_says)
{
    maker_init(&f.m);
    maker_event(&f.m, UF_ACTION_SEGMENT_ALLOC, BASE, 2 * MIB);
    maker_event(&f.m, UF_ACTION_ALLOC, BASE, 512);
    maker_event(&f.m, UF_ACTION_FREE_REQUESTED, BASE, 512);
    maker_event(&f.m, UF_ACTION_ALLOC, BASE + 512, 512);
    maker_event(&f.m, UF_ACTION_FREE_COMPLETED, BASE, 512);
    maker_event(&f.m, UF_ACTION_ALLOC, BASE, 512);
    maker_event(&f.m, UF_ACTION_FREE_REQUESTED, BASE, 512);
    maker_segment(&f.m, BASE, false);
    maker_block(&f.m, 512, 512, UF_BLOCK_ACTIVE_PENDING_FREE);
    maker_block(&f.m, 512, 512, UF_BLOCK_ACTIVE_ALLOCATED);
    maker_block(&f.m, 2 * MIB - 1024, 0, UF_BLOCK_INACTIVE);
    follow_bench_expect_equal(&f);
}
END_TEST

START_TEST(a_label_puts_a_segment_into_a_private_pool)
{
    uint32_t label;
    maker_init(&f.m);
    maker_event(&f.m, UF_ACTION_SEGMENT_ALLOC, BASE, 2 * MIB);
    maker_event(&f.m, UF_ACTION_ALLOC, BASE, 512);
    maker_event(&f.m, UF_ACTION_SEGMENT_ALLOC, BASE + 2 * MIB, 2 * MIB);
    maker_event(&f.m, UF_ACTION_ALLOC, BASE + 2 * MIB, 512);
    f.program = maker_link(&f.m);
    ck_assert(uf__program_pool(f.program, NULL, &label));
    f.labels[2] = (uint16_t)(label + 1); /* as uf__label_set */
    f.assumptions =
        (uf_assumptions){.labels = f.labels, .is_bound = f.is_bound, .has_private = true};
    ck_assert_int_eq(uf__follow_run(&f.follow, f.program, &f.assumptions), UF_OK);
    ck_assert_uint_eq(f.follow.cursor, 4);
    ck_assert_uint_eq(f.program->alloc_pool[0], 0);
    ck_assert_uint_eq(f.program->alloc_pool[1], label);
    ck_assert_uint_eq(f.follow.label_last_event[label], 3);
    follow_bench_fini(&f);
}
END_TEST

START_TEST(a_request_of_two_to_the_sixty_is_a_difference)
{
    maker_init(&f.m);
    maker_event(&f.m, UF_ACTION_SEGMENT_ALLOC, BASE, 2 * MIB);
    maker_event(&f.m, UF_ACTION_ALLOC, BASE, UINT64_C(1) << 60);
    follow_bench_run(&f);
    ck_assert(f.follow.has_failed);
    ck_assert_ptr_nonnull(strstr(f.follow.difference.text, "2^60"));
    follow_bench_fini(&f);
}
END_TEST

/* Runs to the end, in two ways: at one go, and by a copy made on the way, of which the original is
 * gone by then. */
static void follow_by_copy(uf_program *program, uint64_t copied_at)
{
    static uint16_t labels[10000];
    static uint8_t is_bound[10000];
    uf_assumptions assumptions = {.labels = labels, .is_bound = is_bound};
    uf_follow whole, first, copy;
    uf_error error = {UF_OK, ""};
    uf_stats of_whole, of_copy;
    ck_assert_uint_lt(program->event_count, 9000);
    memset(labels, 0, sizeof labels);
    for (uint32_t i = 0; program->start != NULL && i < program->start->segment_count; i++) {
        ck_assert_uint_lt(program->event_count + i, 10000);
        uf__label_set(&assumptions, program->event_count + i,
                      (uint16_t)program->start->segments[i].label);
    }
    ck_assert_int_eq(uf__follow_run(&whole, program, &assumptions), UF_OK);
    ck_assert_int_eq(uf__follow_begin(&first, program, &assumptions), UF_OK);
    ck_assert_int_eq(uf__follow_go(&first, copied_at), UF_OK);
    if (!first.has_failed) {
        ck_assert(uf__follow_copy(&copy, &first));
        ck_assert_int_eq(uf__follow_go(&first, copied_at + 50), UF_OK); /* leaves the copy alone */
        uf__follow_fini(&first);
        ck_assert_msg(uf__core_check(&copy.core, &error) == UF_OK, "%s", error.text);
        ck_assert_int_eq(uf__follow_go(&copy, UINT64_MAX), UF_OK);
        ck_assert_uint_eq(copy.cursor, whole.cursor);
        ck_assert_str_eq(copy.difference.text, whole.difference.text);
        uf__core_stats(&whole.core, &of_whole);
        uf__core_stats(&copy.core, &of_copy);
        ck_assert_mem_eq(&of_copy, &of_whole, sizeof of_copy);
        ck_assert_uint_eq(copy.sim.call_count, whole.sim.call_count);
        uf__follow_fini(&copy);
    } else {
        uf__follow_fini(&first);
    }
    uf__follow_fini(&whole);
}

START_TEST(a_copy_goes_on_as_the_run_itself)
{
    static recording list[RECORDINGS_MAX];
    size_t count = recordings_list(list);
    size_t tried_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (list[i].event_count >= 9000) {
            continue;
        }
        uf_trace *trace = recording_read(&list[i]);
        uf_program *program = recording_program(&list[i], trace, -1);
        for (uint64_t part = 1; part < 8; part++) {
            follow_by_copy(program, list[i].event_count * part / 8);
        }
        tried_count++;
        uf_program_destroy(program);
        uf_trace_destroy(trace);
    }
    ck_assert_uint_gt(tried_count, 0);
}
END_TEST

int main(void)
{
    return suite_run("follow",
                     (const TTest *const[]){
                         a_sound_trace_is_equal,
                         an_alloc_at_another_address_is_a_difference,
                         a_segment_of_another_size_is_a_difference,
                         an_event_on_another_stream_is_a_difference,
                         a_segment_that_the_model_does_not_need_is_a_difference,
                         memory_taken_for_no_request_is_a_difference,
                         a_free_of_what_was_not_allocated_is_a_difference,
                         a_release_of_what_is_in_use_is_a_difference,
                         a_release_before_a_request_can_be_read_both_ways,
                         a_request_that_could_not_have_flushed_was_preceded_by_empty_cache,
                         a_recorded_failure_fails_in_the_model_too,
                         delayed_frees_complete_where_the_recording_says,
                         a_label_puts_a_segment_into_a_private_pool,
                         a_request_of_two_to_the_sixty_is_a_difference,
                         a_copy_goes_on_as_the_run_itself,
                         NULL,
                     });
}
