/* SPDX-License-Identifier: MIT
 *
 * Assumptions where events are silent: private pools, and who flushed. */
#include <unfrag/replay.h>

#include "unit/recordings.h"
#include "unit/suite.h"
#include "unit/trace_maker.h"

#define MIB MAKER_MIB
#define BASE MAKER_BASE

static maker m;

/* A second segment of 2 MiB is taken although the first is wholly cached: it was for another pool.
 */
static void make_private(void)
{
    maker_init(&m);
    maker_event(&m, UF_ACTION_SEGMENT_ALLOC, BASE, 2 * MIB);
    maker_event(&m, UF_ACTION_ALLOC, BASE, 512);
    maker_free(&m, BASE, 512);
    maker_event(&m, UF_ACTION_SEGMENT_ALLOC, BASE + 2 * MIB, 2 * MIB);
    maker_event(&m, UF_ACTION_ALLOC, BASE + 2 * MIB, 512);
    maker_segment(&m, BASE, false);
    maker_block(&m, 2 * MIB, 512, UF_BLOCK_INACTIVE);
}

START_TEST(a_segment_taken_beside_a_fitting_block_is_private)
{
    make_private();
    maker_event(&m, UF_ACTION_ALLOC, BASE, 512);
    maker_event(&m, UF_ACTION_ALLOC, BASE + 2 * MIB + 512, 512);
    maker_free(&m, BASE, 512);
    maker_free(&m, BASE + 2 * MIB, 512);
    maker_free(&m, BASE + 2 * MIB + 512, 512);
    maker_event(&m, UF_ACTION_SEGMENT_FREE, BASE + 2 * MIB, 2 * MIB);
    uf_program *program = maker_program(&m, NULL);
    const uf_program_report *report = uf_program_report_get(program);
    if (!report->is_equal) {
        ck_abort_msg("%s", report->difference.text);
    }
    ck_assert_uint_eq(report->pool_count, 1);
    ck_assert_uint_eq(report->relabel_count, 1);
    ck_assert_uint_eq(report->empty_cache_count, 0);
    ck_assert_int_eq(uf__op_kind(program->ops[14]), UF_OP_POOL_DROP);
    uf_program_destroy(program);
}
END_TEST

START_TEST(final_pool_ids_bind)
{
    make_private();
    uf_trace_segment *segment = maker_segment(&m, BASE + 2 * MIB, false);
    segment->pool_id[0] = 3;
    maker_block(&m, 512, 512, UF_BLOCK_ACTIVE_ALLOCATED);
    maker_block(&m, 2 * MIB - 512, 0, UF_BLOCK_INACTIVE);
    uf_program *program = maker_program(&m, NULL);
    const uf_program_report *report = uf_program_report_get(program);
    ck_assert(report->is_equal);
    ck_assert_uint_eq(report->pool_count, 1);
    ck_assert_uint_eq(report->relabel_count, 0);
    ck_assert_uint_eq(program->pools[program->alloc_pool[1]].id[0], 3);
    uf_program_destroy(program);
}
END_TEST

START_TEST(pool_ids_of_events_bind)
{
    make_private();
    m.events[4].site = m.events[5].site = MAKER_POOL_5;
    uf_trace_segment *segment = maker_segment(&m, BASE + 2 * MIB, false);
    segment->pool_id[1] = 5;
    maker_block(&m, 512, 512, UF_BLOCK_ACTIVE_ALLOCATED);
    maker_block(&m, 2 * MIB - 512, 0, UF_BLOCK_INACTIVE);
    uf_program *program = maker_program(&m, NULL);
    const uf_program_report *report = uf_program_report_get(program);
    ck_assert(report->is_equal);
    ck_assert_uint_eq(report->pool_count, 1);
    ck_assert_uint_eq(report->relabel_count, 0);
    uf_program_destroy(program);
}
END_TEST

START_TEST(a_difference_that_nothing_explains_stays_the_first_one)
{
    maker_sample(&m);
    m.events[2].addr += 512;
    uf_program *program = maker_program(&m, NULL);
    const uf_program_report *report = uf_program_report_get(program);
    ck_assert(!report->is_equal);
    ck_assert_uint_eq(report->difference.event, 2);
    ck_assert_uint_eq(report->events_equal, 2);
    uf_program_destroy(program);
}
END_TEST

START_TEST(the_recorded_retries_decide_who_flushed)
{
    maker_init(&m);
    maker_event(&m, UF_ACTION_SEGMENT_ALLOC, BASE, 12 * MIB);
    maker_event(&m, UF_ACTION_ALLOC, BASE, 12 * MIB);
    maker_free(&m, BASE, 12 * MIB);
    maker_event(&m, UF_ACTION_SEGMENT_FREE, BASE, 12 * MIB);
    maker_event(&m, UF_ACTION_SEGMENT_ALLOC, BASE + 50 * MIB, 14 * MIB);
    maker_event(&m, UF_ACTION_ALLOC, BASE + 50 * MIB, 14 * MIB);
    maker_segment(&m, BASE + 50 * MIB, true);
    maker_block(&m, 14 * MIB, 14 * MIB, UF_BLOCK_ACTIVE_ALLOCATED);
    for (int64_t retries = 0; retries < 2; retries++) {
        uf_program_options options = {.struct_size_bytes = sizeof options,
                                      .num_alloc_retries = retries};
        uf_program *program = maker_program(&m, &options);
        const uf_program_report *report = uf_program_report_get(program);
        ck_assert(report->is_equal);
        ck_assert_int_eq(report->stats.num_alloc_retries, retries);
        ck_assert_uint_eq(report->empty_cache_count, retries == 0);
        uf_program_destroy(program);
    }
}
END_TEST

START_TEST(the_recorded_graphs_have_as_many_pools_as_they_need)
{
    static const char *const names[] = {"graphs.default", "graphs.expandable"};
    for (int i = 0; i < 2; i++) {
        recording entry;
        uf_trace *trace = recording_read_named(names[i], &entry);
        uf_program *program = recording_program(&entry, trace, -1);
        const uf_program_report *report = uf_program_report_get(program);
        ck_assert(report->is_equal);
        ck_assert_uint_gt(report->pool_count, 4);
        ck_assert_uint_le(report->relabel_count, 23);
        ck_assert_uint_le(report->pool_count, 23);
        uf_program_destroy(program);
        uf_trace_destroy(trace);
    }
}
END_TEST

int main(void)
{
    return suite_run("infer", (const TTest *const[]){
                                  a_segment_taken_beside_a_fitting_block_is_private,
                                  final_pool_ids_bind,
                                  pool_ids_of_events_bind,
                                  a_difference_that_nothing_explains_stays_the_first_one,
                                  the_recorded_retries_decide_who_flushed,
                                  the_recorded_graphs_have_as_many_pools_as_they_need,
                                  NULL,
                              });
}
