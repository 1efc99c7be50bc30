/* SPDX-License-Identifier: MIT
 *
 * What lay where: read off the events, it must end in the very segments and blocks that PyTorch
 * wrote into the snapshot, and pass through the peaks that PyTorch counted. */
#include "report/history.h"

#include <inttypes.h>

#include "report/moment.h"
#include "unit/recordings.h"
#include "unit/suite.h"
#include "unit/trace_maker.h"

static maker m;

static uf_program *program_of(const uf_trace *trace, uint64_t limit_bytes)
{
    uf_program *program;
    uf_error error = {UF_OK, ""};
    uf_program_options options = {
        .struct_size_bytes = sizeof options, .limit_bytes = limit_bytes, .num_alloc_retries = -1};
    if (uf_program_create(trace, &options, &program, &error) != UF_OK) {
        ck_abort_msg("%s", error.text);
    }
    return program;
}

static void history_of(uf_history *history, const uf_program *program)
{
    uf_error error = {UF_OK, ""};
    if (uf__history_init(history, program, 1000, &error) != UF_OK) {
        ck_abort_msg("%s", error.text);
    }
}

static int by_addr(const void *a, const void *b)
{
    const uf_trace_segment *one = a, *other = b;
    return one->addr < other->addr ? -1 : one->addr > other->addr;
}

/* Every final block: address, size and state. */
static size_t count_block_differences(const uf_trace *trace, const uf_moment *end)
{
    uf_trace_segment *recorded = malloc(trace->segment_count * sizeof *recorded);
    size_t difference_count = 0;
    ck_assert_ptr_nonnull(recorded);
    memcpy(recorded, trace->segments, trace->segment_count * sizeof *recorded);
    qsort(recorded, trace->segment_count, sizeof *recorded, by_addr);
    ck_assert_uint_eq(end->segment_count, trace->segment_count);
    for (uint32_t s = 0; s < end->segment_count; s++) {
        const uf_trace_segment *mine = &end->segments[s], *its = &recorded[s];
        difference_count += mine->addr != its->addr || mine->total_bytes != its->total_bytes ||
                            mine->block_count != its->block_count || mine->stream != its->stream ||
                            mine->is_expandable != its->is_expandable;
        for (uint32_t b = 0; b < mine->block_count && b < its->block_count; b++) {
            const uf_trace_block *got = &end->blocks[mine->first_block + b];
            const uf_trace_block *expected = &trace->blocks[its->first_block + b];
            difference_count += got->addr != expected->addr ||
                                got->size_bytes != expected->size_bytes ||
                                got->state != expected->state;
        }
    }
    free(recorded);
    return difference_count;
}

static size_t count_level_differences(const char *name, const uf_history *history,
                                      const uf_stats *stats)
{
    const struct {
        uf_level level;
        const uf_stat *recorded;
    } pairs[] = {{UF_LEVEL_ALLOCATED, &stats->allocated_bytes.all},
                 {UF_LEVEL_ACTIVE, &stats->active_bytes.all},
                 {UF_LEVEL_RESERVED, &stats->reserved_bytes.all}};
    size_t difference_count = 0;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        uint64_t peak = history->peaks[pairs[i].level].bytes;
        uint64_t end = history->end_levels[pairs[i].level];
        if (peak != (uint64_t)pairs[i].recorded->peak ||
            end != (uint64_t)pairs[i].recorded->current) {
            printf("%s: level %d: peak %" PRIu64 ", recorded %" PRId64 "; end %" PRIu64
                   ", recorded %" PRId64 "\n",
                   name, (int)pairs[i].level, peak, pairs[i].recorded->peak, end,
                   pairs[i].recorded->current);
            difference_count++;
        }
    }
    return difference_count;
}

START_TEST(every_recording_ends_as_recorded_and_passes_through_the_recorded_peaks)
{
    static recording list[RECORDINGS_MAX];
    size_t count = recordings_list(list), difference_count = 0, compared_count = 0;
    for (size_t i = 0; i < count; i++) {
        uf_trace *trace = recording_read(&list[i]);
        uf_program *program = program_of(trace, list[i].limit_bytes);
        uf_stats stats = recording_stats(&list[i]);
        uf_history history;
        uf_moment end;
        history_of(&history, program);
        ck_assert_int_eq(uf__moment_init(&end, &history, UF_MOMENT_END, history.event_count - 1,
                                         list[i].limit_bytes),
                         UF_OK);
        size_t here = count_block_differences(trace, &end);
        bool is_whole = !uf_program_report_get(program)->has_lost_beginning;
        here += is_whole ? count_level_differences(list[i].name, &history, &stats) : 0;
        here += history.stray_count != 0;
        if (here > 0) {
            printf("%s: %zu differences, %" PRIu64 " strays\n", list[i].name, here,
                   history.stray_count);
        }
        for (int level = 0; level < UF_LEVEL_COUNT; level++) {
            ck_assert_uint_eq(end.levels[level], history.end_levels[level]);
        }
        ck_assert_uint_eq(history.peaks[UF_LEVEL_LIVE].bytes, program->peak_live_bytes);
        difference_count += here;
        compared_count += is_whole;
        uf__moment_fini(&end);
        uf__history_fini(&history);
        uf_program_destroy(program);
        uf_trace_destroy(trace);
    }
    ck_assert_uint_eq(difference_count, 0);
    ck_assert_uint_gt(compared_count, 10);
}
END_TEST

START_TEST(no_bucket_loses_a_peak)
{
    recording entry;
    uf_trace *trace = recording_read_named("resnet.default", &entry);
    uf_program *program = program_of(trace, 0);
    uf_history history;
    history_of(&history, program);
    const uf_timeline *timeline = &history.timeline;
    ck_assert_uint_le(timeline->bucket_count, 1000);
    ck_assert_uint_eq(timeline->bucket_events, 69); /* 68 476 events */
    for (int level = 0; level < UF_LEVEL_COUNT; level++) {
        uint64_t most = 0;
        for (uint32_t i = 0; i < timeline->bucket_count; i++) {
            ck_assert_uint_le(timeline->least[level][i], timeline->most[level][i]);
            most = timeline->most[level][i] > most ? timeline->most[level][i] : most;
        }
        ck_assert_uint_eq(most, history.peaks[level].bytes);
    }
    uf__history_fini(&history);
    uf_program_destroy(program);
    uf_trace_destroy(trace);
}
END_TEST

/* One segment of 20 MiB; a block of 2 MiB waits for another stream before it is gone. */
START_TEST(a_block_that_waits_is_active_and_not_allocated)
{
    maker_init(&m);
    maker_event(&m, UF_ACTION_SEGMENT_ALLOC, MAKER_BASE, 20 * MAKER_MIB);
    maker_event(&m, UF_ACTION_ALLOC, MAKER_BASE, 2 * MAKER_MIB - 100);
    maker_event(&m, UF_ACTION_FREE_REQUESTED, MAKER_BASE, 2 * MAKER_MIB - 100);
    maker_event(&m, UF_ACTION_ALLOC, MAKER_BASE + 2 * MAKER_MIB, 17 * MAKER_MIB + 1);
    maker_event(&m, UF_ACTION_FREE_COMPLETED, MAKER_BASE, 2 * MAKER_MIB - 100);
    uf_program *program = program_of(&m.trace, 0);
    uf_history history;
    history_of(&history, program);
    const uf_timeline *timeline = &history.timeline;
    ck_assert_uint_eq(history.span_count, 2);
    ck_assert_uint_eq(history.spans[0].from, 1);
    ck_assert_uint_eq(history.spans[0].freed, 2);
    ck_assert_uint_eq(history.spans[0].to, 4);
    ck_assert_uint_eq(timeline->most[UF_LEVEL_ALLOCATED][2], 0);
    ck_assert_uint_eq(timeline->most[UF_LEVEL_ACTIVE][2], 2 * MAKER_MIB);
    ck_assert_uint_eq(timeline->most[UF_LEVEL_LIVE][2], 2 * MAKER_MIB);
    /* What is left of the segment is under 1 MiB: it belongs to the block. */
    ck_assert_uint_eq(history.spans[1].size_bytes, 18 * MAKER_MIB);
    ck_assert_uint_eq(timeline->most[UF_LEVEL_LIVE][3], 19 * MAKER_MIB + 512);
    ck_assert_uint_eq(timeline->most[UF_LEVEL_ACTIVE][3], 20 * MAKER_MIB);
    ck_assert_uint_eq(history.end_levels[UF_LEVEL_RESERVED], 20 * MAKER_MIB);
    uf__history_fini(&history);
    uf_program_destroy(program);
}
END_TEST

/* Mapped parts that touch are one; a part in their middle is given back. */
START_TEST(an_expandable_segment_grows_and_is_cut)
{
    maker_init(&m);
    for (uint64_t i = 0; i < 3; i++) {
        maker_event(&m, UF_ACTION_SEGMENT_MAP, MAKER_BASE + i * 20 * MAKER_MIB, 20 * MAKER_MIB);
    }
    maker_event(&m, UF_ACTION_ALLOC, MAKER_BASE, 10 * MAKER_MIB);
    maker_event(&m, UF_ACTION_ALLOC, MAKER_BASE + 10 * MAKER_MIB, 45 * MAKER_MIB);
    maker_event(&m, UF_ACTION_ALLOC, MAKER_BASE + 55 * MAKER_MIB, 5 * MAKER_MIB);
    maker_event(&m, UF_ACTION_FREE_REQUESTED, MAKER_BASE + 10 * MAKER_MIB, 45 * MAKER_MIB);
    maker_event(&m, UF_ACTION_FREE_COMPLETED, MAKER_BASE + 10 * MAKER_MIB, 45 * MAKER_MIB);
    maker_event(&m, UF_ACTION_SEGMENT_UNMAP, MAKER_BASE + 20 * MAKER_MIB, 20 * MAKER_MIB);
    uf_program *program = program_of(&m.trace, 0);
    uf_history history;
    uf_moment before, after;
    history_of(&history, program);
    ck_assert_uint_eq(history.stray_count, 0);
    ck_assert_int_eq(uf__moment_init(&before, &history, UF_MOMENT_PEAK, 5, 0), UF_OK);
    ck_assert_uint_eq(before.segment_count, 1);
    ck_assert_uint_eq(before.segments[0].total_bytes, 60 * MAKER_MIB);
    ck_assert_uint_eq(before.block_count, 3);
    ck_assert_int_eq(uf__moment_init(&after, &history, UF_MOMENT_END, 8, 0), UF_OK);
    ck_assert_uint_eq(after.segment_count, 2);
    ck_assert_uint_eq(after.segments[0].total_bytes, 20 * MAKER_MIB);
    ck_assert_uint_eq(after.segments[1].addr, MAKER_BASE + 40 * MAKER_MIB);
    ck_assert_uint_eq(after.levels[UF_LEVEL_RESERVED], 40 * MAKER_MIB);
    ck_assert_uint_eq(after.levels[UF_LEVEL_ACTIVE], 15 * MAKER_MIB);
    uf__moment_fini(&before);
    uf__moment_fini(&after);
    uf__history_fini(&history);
    uf_program_destroy(program);
}
END_TEST

/* Frees of nothing, blocks in the middle of others, segments of no size: counted, survived. */
START_TEST(events_that_nothing_explains_are_counted)
{
    maker_init(&m);
    maker_event(&m, UF_ACTION_SEGMENT_ALLOC, MAKER_BASE, 2 * MAKER_MIB);
    maker_event(&m, UF_ACTION_ALLOC, MAKER_BASE, 1024);
    maker_event(&m, UF_ACTION_ALLOC, MAKER_BASE, 1024);
    maker_event(&m, UF_ACTION_FREE_COMPLETED, MAKER_BASE + 4096, 1024);
    maker_event(&m, UF_ACTION_SEGMENT_FREE, MAKER_BASE, 2 * MAKER_MIB);
    maker_event(&m, UF_ACTION_SEGMENT_ALLOC, MAKER_BASE + 40 * MAKER_MIB, 0);
    maker_event(&m, UF_ACTION_SEGMENT_UNMAP, UINT64_MAX - 512, 4096);
    uf_program *program = program_of(&m.trace, 0);
    uf_history history;
    history_of(&history, program);
    ck_assert_uint_ge(history.stray_count, 4);
    ck_assert_uint_eq(history.peaks[UF_LEVEL_RESERVED].bytes, 2 * MAKER_MIB + 512); /* the last */
    uf__history_fini(&history);
    uf_program_destroy(program);
}
END_TEST

START_TEST(a_snapshot_without_events_is_its_own_end)
{
    recording entry;
    uf_trace *trace = recording_read_named("resnet-stacks", &entry);
    uf_error error = {UF_OK, ""};
    uf_history history;
    uf_moment end;
    ck_assert_int_eq(uf__history_init_state(&history, trace, 0, &error), UF_OK);
    ck_assert_int_eq(uf__moment_init(&end, &history, UF_MOMENT_END, 0, 0), UF_OK);
    ck_assert_uint_eq(count_block_differences(trace, &end), 0);
    ck_assert_uint_eq(history.event_count, 0);
    uf__moment_fini(&end);
    uf__history_fini(&history);
    uf_trace_destroy(trace);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_recording_ends_as_recorded_and_passes_through_the_recorded_peaks,
        no_bucket_loses_a_peak,
        a_block_that_waits_is_active_and_not_allocated,
        an_expandable_segment_grows_and_is_cut,
        events_that_nothing_explains_are_counted,
        a_snapshot_without_events_is_its_own_end,
        NULL};
    return suite_run("history", tests);
}
