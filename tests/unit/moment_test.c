/* SPDX-License-Identifier: MIT
 *
 * A moment of a history says what `explain` says of a snapshot taken there, and why a request
 * failed; marks and differences count what happened. */
#include "report/moment.h"

#include <inttypes.h>

#include "report/difference.h"
#include "report/sites.h"
#include "unit/recordings.h"
#include "unit/suite.h"
#include "unit/trace_maker.h"

static maker m;

typedef struct sample {
    recording entry;
    uf_trace *trace;
    uf_program *program;
    uf_history history;
    uf_marks marks;
    uf_moments moments;
} sample;

static void sample_open(sample *made, const char *name)
{
    uf_error error = {UF_OK, ""};
    made->trace = recording_read_named(name, &made->entry);
    made->program = recording_program(&made->entry, made->trace, -1);
    ck_assert_int_eq(uf__history_init(&made->history, made->program, 1000, &error), UF_OK);
    ck_assert_int_eq(uf__marks_init(&made->marks, &made->history, 100), UF_OK);
    ck_assert_int_eq(
        uf__moments_init(&made->moments, &made->history, &made->marks, made->entry.limit_bytes),
        UF_OK);
}

static void sample_close(sample *made)
{
    uf__moments_fini(&made->moments);
    uf__marks_fini(&made->marks);
    uf__history_fini(&made->history);
    uf_program_destroy(made->program);
    uf_trace_destroy(made->trace);
}

START_TEST(the_end_is_examined_as_the_snapshot_itself)
{
    const char *const names[] = {"zimage-1024.default", "train.split128", "multistream.expandable"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        static sample made;
        uf_snapshot_state expected;
        sample_open(&made, names[i]);
        ck_assert(uf__snapshot_examine(made.trace, 0, &expected));
        const uf_snapshot_state *got = &made.moments.items[made.moments.count - 1].state;
        ck_assert_uint_eq(got->segment_count, expected.segment_count);
        ck_assert_uint_eq(got->reserved_bytes, expected.reserved_bytes);
        ck_assert_uint_eq(got->allocated_bytes, expected.allocated_bytes);
        ck_assert_uint_eq(got->cached_bytes, expected.cached_bytes);
        ck_assert_uint_eq(got->between_bytes, expected.between_bytes);
        ck_assert_uint_eq(got->whole_bytes, expected.whole_bytes);
        ck_assert_uint_eq(got->stream_bytes, expected.stream_bytes);
        ck_assert_uint_eq(got->pinned_all_count, expected.pinned_all_count);
        for (uint32_t k = 0; k < expected.pinned_count; k++) {
            ck_assert_uint_eq(got->pinned[k].cached_bytes, expected.pinned[k].cached_bytes);
        }
        sample_close(&made);
    }
}
END_TEST

START_TEST(the_peak_is_where_most_was_reserved)
{
    static sample made;
    sample_open(&made, "sdxl-mixed.default.cap14GiB");
    const uf_moment *peak = &made.moments.items[0];
    ck_assert_int_eq(peak->kind, UF_MOMENT_PEAK);
    ck_assert_uint_eq(peak->levels[UF_LEVEL_RESERVED], UINT64_C(15032385536));
    ck_assert_uint_eq(peak->event, made.history.peaks[UF_LEVEL_RESERVED].event);
    ck_assert_uint_eq(peak->state.cached_bytes,
                      peak->levels[UF_LEVEL_RESERVED] - peak->levels[UF_LEVEL_ACTIVE]);
    sample_close(&made);
}
END_TEST

/* 89 failures are recorded; the last one had 10.06 GiB in use, asked for 1.32 and had 14. */
START_TEST(a_failure_for_holes_is_fragmentation_and_one_for_fullness_is_the_limit)
{
    static sample made;
    sample_open(&made, "sdxl-mixed.default.cap14GiB");
    ck_assert_uint_eq(made.marks.counts[UF_MARK_OOM], 89);
    ck_assert_uint_eq(made.history.failure_count, 89);
    const uf_moment *last = uf__moments_failure(&made.moments);
    ck_assert_uint_eq(last->event, 183558);
    ck_assert_int_eq(last->explanation->causes[0], UF_CAUSE_FRAGMENTATION);
    ck_assert_uint_lt(last->state.largest_cached_bytes, last->wanted_bytes);
    ck_assert_uint_le(last->levels[UF_LEVEL_ACTIVE] + last->wanted_bytes, made.entry.limit_bytes);
    const uf_moment *first = &made.moments.items[1];
    ck_assert_int_eq(first->kind, UF_MOMENT_OOM);
    ck_assert_int_eq(first->explanation->causes[0], UF_CAUSE_LIMIT);
    ck_assert_uint_gt(first->levels[UF_LEVEL_ACTIVE] + first->wanted_bytes, made.entry.limit_bytes);
    for (uint32_t i = 2; i < made.moments.count; i++) { /* the peak stands first */
        ck_assert_uint_lt(made.moments.items[i - 1].event, made.moments.items[i].event + 1);
        const uf_explanation *explanation = made.moments.items[i].explanation;
        for (uint32_t k = 0; explanation != NULL && k < explanation->cause_count; k++) {
            /* where the limit is known it is not the card that refused */
            ck_assert_int_ne(explanation->causes[k], UF_CAUSE_REFUSED_WITH_FREE_MEMORY);
        }
    }
    sample_close(&made);
}
END_TEST

START_TEST(marks_tell_retries_from_emptied_caches)
{
    maker_init(&m);
    uint64_t second = MAKER_BASE + 100 * MAKER_MIB;
    maker_event(&m, UF_ACTION_SEGMENT_ALLOC, MAKER_BASE, 20 * MAKER_MIB);
    maker_event(&m, UF_ACTION_ALLOC, MAKER_BASE, 20 * MAKER_MIB);
    maker_free(&m, MAKER_BASE, 20 * MAKER_MIB);
    maker_event(&m, UF_ACTION_SEGMENT_FREE, MAKER_BASE, 20 * MAKER_MIB);
    maker_event(&m, UF_ACTION_SEGMENT_ALLOC, second, 40 * MAKER_MIB);
    maker_event(&m, UF_ACTION_ALLOC, second, 40 * MAKER_MIB);
    maker_event(&m, UF_ACTION_OOM, 7 * MAKER_MIB, 60 * MAKER_MIB);
    maker_free(&m, second, 40 * MAKER_MIB);
    maker_event(&m, UF_ACTION_SEGMENT_FREE, second, 40 * MAKER_MIB);
    maker_event(&m, UF_ACTION_SNAPSHOT, 0, 0);
    uf_program *program = maker_program(&m, NULL);
    uf_history history;
    uf_marks marks;
    uf_error error = {UF_OK, ""};
    ck_assert_int_eq(uf__history_init(&history, program, 100, &error), UF_OK);
    ck_assert_int_eq(uf__marks_init(&marks, &history, 10), UF_OK);
    ck_assert_uint_eq(marks.count, 3);
    ck_assert_int_eq(marks.items[0].kind, UF_MARK_RETRY);
    ck_assert_uint_eq(marks.items[0].event, 4);
    ck_assert_uint_eq(marks.items[0].bytes, 20 * MAKER_MIB);
    ck_assert_int_eq(marks.items[1].kind, UF_MARK_OOM);
    ck_assert_uint_eq(marks.items[1].bytes, 60 * MAKER_MIB);
    ck_assert_uint_eq(marks.items[1].free_bytes, 7 * MAKER_MIB);
    ck_assert_int_eq(marks.items[2].kind, UF_MARK_EMPTY);
    ck_assert_uint_eq(history.failures[0].levels[UF_LEVEL_ACTIVE], 40 * MAKER_MIB);
    uf__marks_fini(&marks);
    uf__history_fini(&history);
    uf_program_destroy(program);
}
END_TEST

START_TEST(two_settings_of_one_program_make_the_same_requests)
{
    static sample first, second;
    uf_difference_report report;
    sample_open(&first, "train.default");
    sample_open(&second, "train.split128");
    const uf_history *const histories[] = {&first.history, &second.history};
    const uf_moment *const peaks[] = {&first.moments.items[0], &second.moments.items[0]};
    ck_assert_int_eq(uf__difference_init(&report, histories, peaks), UF_OK);
    ck_assert(report.is_same_program);
    ck_assert_uint_eq(report.equal_count, first.program->alloc_count);
    uint64_t reserved_bytes[2] = {0, 0};
    for (uint32_t i = 0; i < report.part_count; i++) {
        reserved_bytes[0] += report.parts[i].reserved_bytes[0];
        reserved_bytes[1] += report.parts[i].reserved_bytes[1];
    }
    ck_assert_uint_eq(reserved_bytes[0], UINT64_C(11689525248)); /* as recorded */
    ck_assert_uint_eq(reserved_bytes[1], UINT64_C(40976252928));
    uf__difference_fini(&report);
    sample_close(&first);
    sample_close(&second);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        the_end_is_examined_as_the_snapshot_itself,
        the_peak_is_where_most_was_reserved,
        a_failure_for_holes_is_fragmentation_and_one_for_fullness_is_the_limit,
        marks_tell_retries_from_emptied_caches,
        two_settings_of_one_program_make_the_same_requests,
        NULL};
    return suite_run("moment", tests);
}
