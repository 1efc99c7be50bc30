/* SPDX-License-Identifier: MIT
 *
 * The recorder's ring, and snapshots of a living allocator: what is written reads back, and the
 * allocator's model repeats its own snapshot. */
#include <unfrag/recorder.h>

#include <check.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <unfrag/replay.h>
#include <unfrag/trace.h>

#include "recorder/random_life.h"

#define TOTAL_BYTES (UINT64_C(24) << 30) /* the simulated device's default */

static uf_trace *snapshot_of(life *l, uf_recorder *recorder)
{
    char *data = NULL;
    size_t size_bytes = 0;
    uf_error error;
    uf_trace *trace = NULL;
    FILE *stream = open_memstream(&data, &size_bytes);
    ck_assert_ptr_nonnull(stream);
    uf_status status = uf_snapshot_write(l->allocator, recorder, stream, &error);
    ck_assert_msg(status == UF_OK, "%s", error.text);
    fclose(stream);
    status = uf_trace_read_memory(data, size_bytes, NULL, &trace, &error);
    ck_assert_msg(status == UF_OK, "%s", error.text);
    free(data);
    return trace;
}

typedef struct comparison {
    const uf_trace *trace;
    uint64_t segment, block;
} comparison;

static bool compare_segment(void *context, const uf_segment_info *want, const uf_block_info *blocks)
{
    comparison *c = context;
    ck_assert_uint_lt(c->segment, c->trace->segment_count);
    const uf_trace_segment *got = &c->trace->segments[c->segment++];
    ck_assert_uint_eq(got->addr, want->addr);
    ck_assert_uint_eq(got->total_bytes, want->total_bytes);
    ck_assert_uint_eq(got->allocated_bytes, want->allocated_bytes);
    ck_assert_uint_eq(got->active_bytes, want->active_bytes);
    ck_assert_uint_eq(got->requested_bytes, want->requested_bytes);
    ck_assert_uint_eq(got->stream, want->stream);
    ck_assert_uint_eq(got->pool_id[0], 0);
    ck_assert_uint_eq(got->pool_id[1], want->pool_id[1]);
    ck_assert_uint_eq(got->block_count, want->block_count);
    ck_assert(got->is_large == want->is_large && got->is_expandable == want->is_expandable);
    ck_assert(got->has_pool_id && got->has_requested);
    for (uint32_t i = 0; i < want->block_count; i++) {
        const uf_trace_block *block = &c->trace->blocks[c->block++];
        ck_assert_uint_eq(block->addr, blocks[i].addr);
        ck_assert_uint_eq(block->size_bytes, blocks[i].size_bytes);
        ck_assert_uint_eq(block->requested_bytes, blocks[i].requested_bytes);
        ck_assert_uint_eq(block->state, blocks[i].state);
        ck_assert(block->has_requested);
    }
    return true;
}

static void check_layout(life *l, const uf_trace *trace)
{
    comparison c = {.trace = trace};
    ck_assert_int_eq(uf_walk(l->allocator, compare_segment, &c, NULL), UF_OK);
    ck_assert_uint_eq(c.segment, trace->segment_count);
    ck_assert_uint_eq(c.block, trace->block_count);
    ck_assert_uint_eq(trace->oddities.unknown_key_count + trace->oddities.gap_count +
                          trace->oddities.unsorted_count + trace->oddities.unaligned_count +
                          trace->oddities.sum_mismatch_count + trace->oddities.unknown_action_count,
                      0);
}

static const life_options LIVES[] = {
    {.seed = 1, .conf = "", .step_count = 4000},
    {.seed = 2, .conf = "", .limit_bytes = UINT64_C(700) << 20, .step_count = 4000},
    {.seed = 3, .conf = "expandable_segments:True", .step_count = 4000},
    {.seed = 4,
     .conf = "expandable_segments:True",
     .limit_bytes = UINT64_C(600) << 20,
     .step_count = 4000},
    {.seed = 5,
     .conf = "max_split_size_mb:32,garbage_collection_threshold:0.6",
     .limit_bytes = UINT64_C(700) << 20,
     .step_count = 4000},
    {.seed = 6, .conf = "roundup_power2_divisions:[1:4,>:8]", .step_count = 4000},
    {.seed = 7, .conf = "large_segment_size_mb:64", .step_count = 4000},
    {.seed = 8, .conf = "", .step_count = 2000, .has_pools = true},
    {.seed = 9, .conf = "expandable_segments:True", .step_count = 2000, .has_pools = true},
    {.seed = 8, .conf = "", .step_count = 2000, .has_pools = true, .is_pool_mortal = true},
    {.seed = 9,
     .conf = "expandable_segments:True",
     .step_count = 2000,
     .has_pools = true,
     .is_pool_mortal = true},
};
#define LIFE_COUNT ((int)(sizeof LIVES / sizeof LIVES[0]))

static void check_report(const uf_program_report *report, const uf_stats *stats)
{
    ck_assert_msg(report->is_equal, "event %" PRIu64 ": %s", report->difference.event,
                  report->difference.text);
    ck_assert_uint_eq(report->events_equal, report->event_count);
    ck_assert_uint_eq(report->contradiction_count, 0);
    ck_assert(!report->has_lost_beginning);
    /* Every statistic but those that the events do not tell: waits without an effect. */
    for (size_t i = 0; i < uf_stats_count(); i++) {
        const char *key;
        int64_t want, got;
        ck_assert(uf_stats_entry(stats, i, &key, &want));
        ck_assert(uf_stats_find(&report->stats, key, &got));
        if (strcmp(key, "num_sync_all_streams") != 0 && strcmp(key, "num_alloc_retries") != 0) {
            ck_assert_msg(got == want, "%s: %" PRId64 ", not %" PRId64, key, got, want);
        }
    }
}

START_TEST(the_model_repeats_its_own_snapshot)
{
    const life_options *options = &LIVES[_i];
    life l;
    uf_error error;
    uf_stats stats;
    uint64_t entry_count, lost_count;
    ck_assert_msg(life_init(&l, options, &error), "%s", error.text);
    uf_recorder_count(l.recorder, &entry_count, &lost_count);
    ck_assert_uint_gt(entry_count, options->step_count);
    ck_assert_uint_eq(lost_count, 0);
    ck_assert_int_eq(uf_stats_get(l.allocator, &stats, &error), UF_OK);
    uf_trace *trace = snapshot_of(&l, l.recorder);
    ck_assert_uint_eq(trace->event_count, entry_count);
    check_layout(&l, trace);
    uf_program *program = NULL;
    uf_program_options recorded = {.struct_size_bytes = sizeof recorded,
                                   .limit_bytes = options->limit_bytes,
                                   .total_bytes = TOTAL_BYTES,
                                   .num_alloc_retries = stats.num_alloc_retries};
    ck_assert_msg(uf_program_create(trace, &recorded, &program, &error) == UF_OK, "%s", error.text);
    ck_assert_str_eq(uf_program_conf(program), options->conf);
    check_report(uf_program_report_get(program), &stats);
    uf_program_destroy(program);
    uf_trace_destroy(trace);
    life_fini(&l);
}
END_TEST

START_TEST(settings_are_written_as_pytorch_writes_them)
{
    static const char CONF[] = "max_split_size_mb:64,garbage_collection_threshold:0.8,"
                               "roundup_power2_divisions:[4:2,>:8],"
                               "release_lock_on_cudamalloc:True";
    const life_options options = {.seed = 1, .conf = CONF, .step_count = 1};
    life l;
    uf_error error;
    ck_assert_msg(life_init(&l, &options, &error), "%s", error.text);
    uf_trace *trace = snapshot_of(&l, NULL);
    const uf_trace_settings *settings = &trace->settings;
    ck_assert(settings->is_present && settings->has_conf && settings->has_max_split_size);
    ck_assert(settings->has_gc_threshold && settings->has_expandable && settings->has_divisions);
    ck_assert_uint_eq(settings->has_other, 15);
    ck_assert_str_eq(uf_trace_string(trace, settings->conf), CONF);
    ck_assert_int_eq(settings->max_split_size_bytes, 64 << 20);
    ck_assert(settings->gc_threshold == 0.8 && !settings->is_expandable);
    static const uint64_t DIVISIONS[16] = {2, 2, 2, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8};
    ck_assert_mem_eq(settings->divisions, DIVISIONS, sizeof DIVISIONS);
    ck_assert_uint_eq(settings->pinned_num_register_threads, 1);
    ck_assert(settings->release_lock_on_cudamalloc);
    uf_trace_destroy(trace);
    /* A change at run time shows in the next snapshot; a refused one does not. */
    ck_assert_int_eq(uf_conf_set(l.allocator, "expandable_segments:True", &error), UF_OK);
    ck_assert_int_eq(uf_conf_set(l.allocator, "no_such_option:1", &error), UF_ERROR_CONF);
    trace = snapshot_of(&l, NULL);
    ck_assert_str_eq(uf_trace_string(trace, trace->settings.conf), "expandable_segments:True");
    ck_assert_int_eq(trace->settings.max_split_size_bytes, -1);
    ck_assert(trace->settings.is_expandable);
    uf_trace_destroy(trace);
    life_fini(&l);
}
END_TEST

START_TEST(a_full_ring_keeps_the_newest_events)
{
    const life_options all = {.seed = 3, .conf = "", .step_count = 3000};
    life_options some = all;
    some.max_entry_count = 1500; /* no power of two: the last growth is a short one */
    life whole, cut;
    uf_error error;
    uint64_t whole_count, cut_count, lost_count;
    ck_assert_msg(life_init(&whole, &all, &error), "%s", error.text);
    ck_assert_msg(life_init(&cut, &some, &error), "%s", error.text);
    uf_recorder_count(whole.recorder, &whole_count, NULL);
    uf_recorder_count(cut.recorder, &cut_count, &lost_count);
    ck_assert_uint_eq(cut_count, 1500);
    ck_assert_uint_eq(lost_count, whole_count - 1500);
    uf_trace *a = snapshot_of(&whole, whole.recorder), *b = snapshot_of(&cut, cut.recorder);
    ck_assert_uint_eq(b->event_count, 1500);
    for (uint64_t i = 0; i < 1500; i++) {
        const uf_event *want = &a->events[whole_count - 1500 + i], *got = &b->events[i];
        ck_assert_uint_eq(got->addr, want->addr);
        ck_assert_uint_eq(got->size_bytes, want->size_bytes);
        ck_assert_uint_eq(got->action, want->action);
        ck_assert_int_eq(got->time_us, want->time_us);
        ck_assert_uint_eq(b->sites[got->site].stream, a->sites[want->site].stream);
    }
    uf_program *program = NULL;
    const uf_program_options recorded = {
        .struct_size_bytes = sizeof recorded, .total_bytes = TOTAL_BYTES, .num_alloc_retries = -1};
    ck_assert_int_eq(uf_program_create(b, &recorded, &program, &error), UF_OK);
    ck_assert(uf_program_report_get(program)->has_lost_beginning);
    uf_program_destroy(program);
    uf_trace_destroy(a);
    uf_trace_destroy(b);
    life_fini(&whole);
    life_fini(&cut);
}
END_TEST

START_TEST(a_snapshot_event_shows_in_later_snapshots)
{
    const life_options options = {.seed = 3, .conf = "", .step_count = 100};
    life l;
    uf_error error;
    uf_stats stats;
    ck_assert_msg(life_init(&l, &options, &error), "%s", error.text);
    ck_assert_int_eq(uf_stats_get(l.allocator, &stats, &error), UF_OK);
    uf_trace *first = snapshot_of(&l, l.recorder), *second = snapshot_of(&l, l.recorder);
    ck_assert_uint_eq(second->event_count, first->event_count + 1);
    const uf_event *last = &second->events[first->event_count];
    ck_assert_int_eq(last->action, UF_ACTION_SNAPSHOT);
    ck_assert_uint_eq(last->addr, 0);
    ck_assert_uint_eq(last->size_bytes, (uint64_t)stats.active_bytes.all.current);
    ck_assert_str_eq(uf_trace_string(second, second->sites[last->site].compile_context), "N/A");
    uf_trace_destroy(first);
    uf_trace_destroy(second);
    uf_recorder_clear(l.recorder);
    uint64_t kept = 1, lost = 1;
    uf_recorder_count(l.recorder, &kept, &lost);
    ck_assert_uint_eq(kept + lost, 0);
    life_fini(&l);
}
END_TEST

START_TEST(times_come_from_the_callers_clock)
{
    const life_options options = {.seed = 3, .conf = "", .step_count = 50};
    life l;
    uf_error error;
    ck_assert_msg(life_init(&l, &options, &error), "%s", error.text);
    uf_trace *trace = snapshot_of(&l, l.recorder);
    ck_assert_uint_gt(trace->event_count, 50);
    for (uint64_t i = 0; i < trace->event_count; i++) {
        ck_assert_int_eq(trace->events[i].time_us,
                         INT64_C(1700000000000000) + ((int64_t)i + 1) * 1000);
    }
    uf_trace_destroy(trace);
    life_fini(&l);
}
END_TEST

START_TEST(a_snapshot_of_a_second_device_has_its_number)
{
    uf_sim *sim = NULL;
    uf_recorder *recorder = NULL;
    uint64_t addr;
    life l = {0};
    ck_assert_int_eq(uf_sim_create(NULL, &sim, NULL), UF_OK);
    ck_assert_int_eq(uf_recorder_create(NULL, &recorder, NULL), UF_OK);
    const uf_allocator_options options = {.struct_size_bytes = sizeof options,
                                          .device = uf_sim_device(sim),
                                          .device_index = 2,
                                          .on_event = uf_recorder_event,
                                          .event_context = recorder};
    ck_assert_int_eq(uf_allocator_create(&options, &l.allocator, NULL), UF_OK);
    ck_assert_int_eq(uf_alloc(l.allocator, 5, 0, &addr, NULL), UF_OK);
    uf_trace *trace = snapshot_of(&l, recorder);
    ck_assert_uint_eq(trace->device_count, 3);
    ck_assert_uint_eq(trace->devices[2].count, 2);
    ck_assert_int_eq(trace->devices[2].device, 2);
    ck_assert_int_eq(trace->segments[0].device, 2);
    ck_assert_int_gt(trace->events[0].time_us, INT64_C(1700000000000000)); /* CLOCK_REALTIME */
    uf_trace_destroy(trace);
    uf_allocator_destroy(l.allocator);
    uf_recorder_destroy(recorder);
    uf_sim_destroy(sim);
}
END_TEST

static void write_inside(void *context, const uf_allocator_event *event)
{
    uf_allocator **allocator = context;
    (void)event;
    if (*allocator != NULL) {
        ck_assert_int_eq(uf_snapshot_write(*allocator, NULL, stdout, NULL), UF_ERROR_BUSY);
    }
}

START_TEST(what_cannot_be_is_refused)
{
    uf_sim *sim = NULL;
    uf_recorder *recorder = NULL;
    uf_allocator *allocator = NULL;
    uf_error error;
    uint64_t addr;
    uf_recorder_options ring = {0};
    ck_assert_int_eq(uf_recorder_create(NULL, NULL, &error), UF_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(uf_recorder_create(&ring, &recorder, &error), UF_ERROR_INVALID_ARGUMENT);
    ring = (uf_recorder_options){.struct_size_bytes = sizeof ring, .max_entry_count = UINT64_MAX};
    ck_assert_int_eq(uf_recorder_create(&ring, &recorder, &error), UF_ERROR_INVALID_ARGUMENT);
    ck_assert_ptr_null(recorder);
    uf_recorder_destroy(NULL);
    ck_assert_int_eq(uf_sim_create(NULL, &sim, NULL), UF_OK);
    const uf_allocator_options options = {.struct_size_bytes = sizeof options,
                                          .device = uf_sim_device(sim),
                                          .on_event = write_inside,
                                          .event_context = &allocator};
    ck_assert_int_eq(uf_allocator_create(&options, &allocator, NULL), UF_OK);
    ck_assert_int_eq(uf_alloc(allocator, 5, 0, &addr, NULL), UF_OK);
    ck_assert_int_eq(uf_snapshot_write(NULL, NULL, stdout, &error), UF_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(uf_snapshot_write(allocator, NULL, NULL, &error), UF_ERROR_INVALID_ARGUMENT);
    FILE *full = fopen("/dev/full", "wb");
    if (full != NULL) {
        ck_assert_int_eq(uf_snapshot_write(allocator, NULL, full, &error), UF_ERROR_IO);
        fclose(full);
    }
    uf_allocator_destroy(allocator);
    uf_sim_destroy(sim);
}
END_TEST

int main(void)
{
    TCase *snapshots = tcase_create("snapshots");
    tcase_set_timeout(snapshots, 60);
    tcase_add_loop_test(snapshots, the_model_repeats_its_own_snapshot, 0, LIFE_COUNT);
    tcase_add_test(snapshots, settings_are_written_as_pytorch_writes_them);
    tcase_add_test(snapshots, a_full_ring_keeps_the_newest_events);
    tcase_add_test(snapshots, a_snapshot_event_shows_in_later_snapshots);
    tcase_add_test(snapshots, times_come_from_the_callers_clock);
    tcase_add_test(snapshots, a_snapshot_of_a_second_device_has_its_number);
    tcase_add_test(snapshots, what_cannot_be_is_refused);
    Suite *suite = suite_create("recorder");
    suite_add_tcase(suite, snapshots);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
