/* SPDX-License-Identifier: MIT
 *
 * Lost beginnings: every bundled recording is cut at many points, and what is left must still be
 * followed to its end. The cuts that are not are listed; the list must not grow. */
#include <unfrag/replay.h>

#include <inttypes.h>

#include "replay/program.h"
#include "unit/recordings.h"
#include "unit/suite.h"
#include "unit/trace_maker.h"

/* Where the recordings are cut, in thousandths of their events. */
static const uint64_t cuts[] = {100, 125, 200, 250, 300, 375, 400, 500,
                                600, 625, 700, 750, 800, 875, 900};

typedef struct exception {
    const char *name;
    uint64_t cut;
    const char *why;
} exception;

/* What the cut takes away for good, and the events behind it need. */
static const exception exceptions[] = {
    {"graphs.expandable", 900, "reservations of private pools that nothing binds any more"},
};

static const exception *find_exception(const char *name, uint64_t cut)
{
    for (size_t i = 0; i < sizeof exceptions / sizeof exceptions[0]; i++) {
        if (strcmp(exceptions[i].name, name) == 0 && exceptions[i].cut == cut) {
            return &exceptions[i];
        }
    }
    return NULL;
}

/* One cut of a recording; false if it is not followed to the end. */
static bool follow_cut(const recording *entry, uf_trace *trace, uint64_t first)
{
    uf_trace_device *device = &trace->devices[0];
    uf_trace_device whole = *device;
    device->first += first;
    device->count -= first;
    uf_program *program = recording_program(entry, trace, -1);
    *device = whole;
    const uf_program_report *report = uf_program_report_get(program);
    bool is_equal = report->is_equal && report->events_equal == whole.count - first;
    ck_assert(report->has_lost_beginning);
    ck_assert(report->unexplained_events == 0 || !is_equal);
    ck_assert_uint_eq(report->contradiction_count, 0);
    ck_assert_uint_gt(report->start_block_count, 0);
    if (!is_equal) {
        printf("%s cut at event %" PRIu64 ": %s\n", entry->name, first, report->difference.text);
    }
    uf_program_destroy(program);
    return is_equal;
}

START_TEST(cut_recordings_are_followed_to_the_end)
{
    static recording list[RECORDINGS_MAX];
    size_t count = recordings_list(list), failed_count = 0;
    for (size_t i = 0; i < count; i++) {
        uf_trace *trace = recording_read(&list[i]);
        for (size_t c = 0; c < sizeof cuts / sizeof cuts[0]; c++) {
            uint64_t first = trace->devices[0].count * cuts[c] / 1000;
            const exception *known = find_exception(list[i].name, cuts[c]);
            if (!follow_cut(&list[i], trace, first) && known == NULL) {
                printf("%s at %" PRIu64 " of 1000 is not a known exception\n", list[i].name,
                       cuts[c]);
                failed_count++;
            }
        }
        uf_trace_destroy(trace);
    }
    ck_assert_uint_eq(failed_count, 0);
}
END_TEST

START_TEST(a_recording_with_its_beginning_has_no_start_state)
{
    recording entry;
    uf_trace *trace = recording_read_named("resnet-stacks", &entry);
    uf_program *program = recording_program(&entry, trace, -1);
    ck_assert(!uf_program_report_get(program)->has_lost_beginning);
    ck_assert_ptr_null(program->start);
    uf_program_destroy(program);
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(the_ring_that_overflowed_is_explained_whole)
{
    recording entry;
    uf_trace *trace = recording_read_named("llm-ring", &entry);
    uf_program *program = recording_program(&entry, trace, -1);
    const uf_program_report *report = uf_program_report_get(program);
    ck_assert(report->is_equal && report->has_lost_beginning);
    ck_assert_uint_eq(report->events_equal, 5000);
    ck_assert_uint_eq(report->start_segment_count, 182);
    ck_assert_uint_eq(report->start_block_count, 453);
    ck_assert_uint_eq(report->unexplained_events, 0);
    uf_program_destroy(program);
    uf_trace_destroy(trace);
}
END_TEST

/* What a cut trace plays in a what-if run is the program's, not the start state's: it runs. */
START_TEST(a_cut_recording_can_be_played_under_other_settings)
{
    recording entry;
    uf_error error = {UF_OK, ""};
    uf_trace *trace = recording_read_named("multistream.default", &entry);
    trace->devices[0].first += 3000;
    trace->devices[0].count -= 3000;
    uf_program *program = recording_program(&entry, trace, -1);
    uf_replay_options options = {.struct_size_bytes = sizeof options,
                                 .conf = "expandable_segments:True"};
    uf_replay_result result;
    ck_assert_int_eq(uf_replay_run(program, &options, &result, &error), UF_OK);
    ck_assert_uint_eq(result.event_count, entry.event_count - 3000);
    ck_assert(!result.has_oom);
    ck_assert_uint_ge(result.peak_reserved_bytes, result.peak_active_bytes);
    ck_assert_uint_ge(result.peak_active_bytes, result.peak_live_bytes);
    uf_program_destroy(program);
    uf_trace_destroy(trace);
}
END_TEST

int main(void)
{
    return suite_run_for("rebuild",
                         (const TTest *const[]){
                             cut_recordings_are_followed_to_the_end,
                             a_recording_with_its_beginning_has_no_start_state,
                             the_ring_that_overflowed_is_explained_whole,
                             a_cut_recording_can_be_played_under_other_settings,
                             NULL,
                         },
                         600);
}
