/* SPDX-License-Identifier: MIT
 *
 * A start state in the core that follows a recording: small traces that begin mid-life. */
#include <unfrag/replay.h>

#include "replay/follow.h"
#include "replay/rebuild.h"
#include "unit/suite.h"
#include "unit/trace_maker.h"

#define MIB MAKER_MIB
#define BASE MAKER_BASE

static maker m;

static uf_program *expect_equal(const uf_program_options *options)
{
    uf_program *program = maker_program(&m, options);
    const uf_program_report *report = uf_program_report_get(program);
    if (!report->is_equal) {
        ck_abort_msg("%s", report->difference.text);
    }
    ck_assert(report->has_lost_beginning);
    ck_assert_uint_eq(report->events_equal, report->event_count);
    return program;
}

START_TEST(a_trace_cut_after_its_first_events_is_equal)
{
    maker_sample(&m);
    m.devices[0].first = 3;
    m.devices[0].count -= 3;
    uf_program *program = expect_equal(NULL);
    const uf_program_report *report = uf_program_report_get(program);
    ck_assert_uint_eq(report->start_segment_count, 1);
    ck_assert_uint_eq(report->start_block_count, 3);
    ck_assert_int_eq(report->stats.reserved_bytes.all.current, (int64_t)(20 * MIB));
    ck_assert_int_eq(report->stats.segment.all.current, 1);
    uf_program_destroy(program);
}
END_TEST

START_TEST(a_block_that_waited_when_the_trace_began_waits)
{
    maker_init(&m);
    maker_event(&m, UF_ACTION_ALLOC, BASE + 512, 512);
    maker_event(&m, UF_ACTION_FREE_COMPLETED, BASE, 400);
    maker_event(&m, UF_ACTION_ALLOC, BASE, 512);
    maker_segment(&m, BASE, false);
    maker_block(&m, 512, 512, UF_BLOCK_ACTIVE_ALLOCATED);
    maker_block(&m, 512, 512, UF_BLOCK_ACTIVE_ALLOCATED);
    maker_block(&m, 2 * MIB - 1024, 0, UF_BLOCK_INACTIVE);
    uf_program *program = expect_equal(NULL);
    ck_assert_uint_eq(uf_program_report_get(program)->start_block_count, 2);
    uf_program_destroy(program);
}
END_TEST

START_TEST(a_segment_given_back_later_was_there_before)
{
    maker_init(&m);
    maker_event(&m, UF_ACTION_ALLOC, BASE, 512);
    maker_free(&m, BASE, 512);
    maker_event(&m, UF_ACTION_SEGMENT_FREE, BASE, 2 * MIB);
    uf_program *program = expect_equal(NULL);
    const uf_program_report *report = uf_program_report_get(program);
    ck_assert_uint_eq(report->start_segment_count, 1);
    ck_assert_uint_eq(report->empty_cache_count, 1);
    ck_assert_uint_eq(report->final_segment_count, 0);
    uf_program_destroy(program);
}
END_TEST

/* Two runs of mapped pages with a hole; a request maps the hole. */
START_TEST(runs_of_one_reservation_are_one_again)
{
    maker_init(&m);
    maker_event(&m, UF_ACTION_SEGMENT_MAP, BASE + 20 * MIB, 20 * MIB);
    maker_event(&m, UF_ACTION_ALLOC, BASE + 15 * MIB, 25 * MIB);
    maker_segment(&m, BASE, true)->is_expandable = true;
    maker_block(&m, 15 * MIB, 15 * MIB, UF_BLOCK_ACTIVE_ALLOCATED);
    maker_block(&m, 25 * MIB, 25 * MIB, UF_BLOCK_ACTIVE_ALLOCATED);
    maker_block(&m, 20 * MIB, 20 * MIB, UF_BLOCK_ACTIVE_ALLOCATED);
    uf_program_options options = {.struct_size_bytes = sizeof options,
                                  .conf = "expandable_segments:True",
                                  .num_alloc_retries = -1};
    uf_program *program = expect_equal(&options);
    const uf_program_report *report = uf_program_report_get(program);
    ck_assert_uint_eq(report->start_segment_count, 2);
    ck_assert_uint_eq(report->final_segment_count, 1);
    ck_assert_int_eq(report->stats.segment.all.current, 0);
    uf_program_destroy(program);
}
END_TEST

/* A reservation of the default pool and one of a private pool, the second at a distance; each holds
 * 20 MiB at the start, and maps and hands out 20 MiB more. */
static void expect_two_reservations(uint64_t distance_bytes)
{
    const uint64_t other = BASE + distance_bytes;
    maker_init(&m);
    maker_event(&m, UF_ACTION_SEGMENT_MAP, BASE + 20 * MIB, 20 * MIB);
    maker_event(&m, UF_ACTION_ALLOC, BASE + 20 * MIB, 20 * MIB);
    maker_event_at(&m, UF_ACTION_SEGMENT_MAP, other + 20 * MIB, 20 * MIB, MAKER_POOL_5);
    maker_event_at(&m, UF_ACTION_ALLOC, other + 20 * MIB, 20 * MIB, MAKER_POOL_5);
    for (int i = 0; i < 2; i++) {
        uf_trace_segment *segment = maker_segment(&m, i == 0 ? BASE : other, true);
        segment->is_expandable = true;
        segment->pool_id[1] = i == 0 ? 0 : 5;
        maker_block(&m, 20 * MIB, 20 * MIB, UF_BLOCK_ACTIVE_ALLOCATED);
        maker_block(&m, 20 * MIB, 20 * MIB, UF_BLOCK_ACTIVE_ALLOCATED);
    }
    uf_program_options options = {.struct_size_bytes = sizeof options,
                                  .conf = "expandable_segments:True",
                                  .num_alloc_retries = -1};
    uf_program *program = expect_equal(&options);
    ck_assert_uint_eq(uf_program_report_get(program)->pool_count, 1);
    uf_program_destroy(program);
}

/* What is mapped behind the first run lies within reach below the second, which begins higher. */
START_TEST(a_reservation_does_not_begin_in_its_neighbour)
{
    expect_two_reservations(8053 * 20 * MIB);
}
END_TEST

/* The second run is within reach of the first, but a hole of nearly a card is none. */
START_TEST(runs_far_apart_are_two_reservations)
{
    expect_two_reservations(8000 * 20 * MIB);
}
END_TEST

START_TEST(private_segments_start_in_their_pool)
{
    maker_init(&m);
    maker_event(&m, UF_ACTION_SEGMENT_ALLOC, BASE + 2 * MIB, 2 * MIB);
    maker_event(&m, UF_ACTION_ALLOC, BASE + 2 * MIB, 512);
    maker_segment(&m, BASE, false)->pool_id[0] = 1;
    maker_block(&m, 512, 512, UF_BLOCK_ACTIVE_ALLOCATED);
    maker_block(&m, 2 * MIB - 512, 0, UF_BLOCK_INACTIVE);
    maker_segment(&m, BASE + 2 * MIB, false);
    maker_block(&m, 512, 512, UF_BLOCK_ACTIVE_ALLOCATED);
    maker_block(&m, 2 * MIB - 512, 0, UF_BLOCK_INACTIVE);
    uf_program *program = expect_equal(NULL);
    ck_assert_uint_eq(uf_program_report_get(program)->pool_count, 1);
    uf_program_destroy(program);
}
END_TEST

/* In a plain large segment up to 1 MiB behind a request may belong to it: what follows shows it. */
START_TEST(the_first_request_behind_a_block_shows_where_it_ends)
{
    maker_init(&m);
    maker_event(&m, UF_ACTION_ALLOC, BASE + 4 * MIB, 2 * MIB);
    maker_free(&m, BASE, 3 * MIB + 512 * 1024);
    maker_event(&m, UF_ACTION_ALLOC, BASE, 4 * MIB);
    maker_segment(&m, BASE, true);
    maker_block(&m, 4 * MIB, 4 * MIB, UF_BLOCK_ACTIVE_ALLOCATED);
    maker_block(&m, 2 * MIB, 2 * MIB, UF_BLOCK_ACTIVE_ALLOCATED);
    maker_block(&m, 14 * MIB, 0, UF_BLOCK_INACTIVE);
    uf_program *program = expect_equal(NULL);
    ck_assert_uint_eq(program->start->segments[0].blocks[0].size_bytes, 4 * MIB);
    uf_program_destroy(program);
}
END_TEST

START_TEST(a_start_that_cannot_be_is_told)
{
    maker_init(&m);
    maker_free(&m, BASE, 512);
    maker_free(&m, BASE + 2 * MIB - 512, 4096); /* beyond the end of its segment */
    maker_segment(&m, BASE, false);
    maker_block(&m, 2 * MIB, 0, UF_BLOCK_INACTIVE);
    uf_program *program = maker_program(&m, NULL);
    const uf_program_report *report = uf_program_report_get(program);
    ck_assert_int_ne(report->difference.kind, UF_DIFFERENCE_UNDEFINED);
    ck_assert_uint_eq(report->start_segment_count, 1);
    uf_program_destroy(program);
}
END_TEST

int main(void)
{
    return suite_run("restore", (const TTest *const[]){
                                    a_trace_cut_after_its_first_events_is_equal,
                                    a_block_that_waited_when_the_trace_began_waits,
                                    a_segment_given_back_later_was_there_before,
                                    runs_of_one_reservation_are_one_again,
                                    a_reservation_does_not_begin_in_its_neighbour,
                                    runs_far_apart_are_two_reservations,
                                    private_segments_start_in_their_pool,
                                    the_first_request_behind_a_block_shows_where_it_ends,
                                    a_start_that_cannot_be_is_told,
                                    NULL,
                                });
}
