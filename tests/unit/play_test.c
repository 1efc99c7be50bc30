/* SPDX-License-Identifier: MIT
 *
 * What-if replay: under the recorded settings it repeats the recording; under others its result is
 * whole, reproducible, and says what did not fit. */
#include "replay/play.h"

#include <inttypes.h>

#include "unit/recordings.h"
#include "unit/suite.h"
#include "unit/trace_maker.h"

static maker m;

static uf_replay_result run(const uf_program *program, const uf_replay_options *options)
{
    uf_replay_result result;
    uf_error error = {UF_OK, ""};
    if (uf_replay_run(program, options, &result, &error) != UF_OK) {
        ck_abort_msg("%s", error.text);
    }
    return result;
}

static uf_replay_options defaults(void)
{
    return (uf_replay_options){.struct_size_bytes = sizeof(uf_replay_options)};
}

/* What a what-if run cannot know: flushes that released nothing left no event, and requests that
 * failed in the recording are not made again, nor is the memory given back that they gave back:
 * what the program asked for is the same all the same. */
static bool is_left_out(const char *key, bool has_oom)
{
    bool is_demand = strncmp(key, "allocation.", 11) == 0 || strncmp(key, "active.", 7) == 0 ||
                     strncmp(key, "requested_bytes.", 16) == 0 ||
                     strcmp(key, "max_split_size") == 0;
    return strcmp(key, "num_sync_all_streams") == 0 || (has_oom && !is_demand);
}

static size_t count_differences(const char *name, const uf_stats *recorded, const uf_stats *played)
{
    size_t count = 0;
    for (size_t i = 0; i < uf_stats_count(); i++) {
        const char *key;
        int64_t expected, got;
        ck_assert(uf_stats_entry(recorded, i, &key, &expected));
        ck_assert(uf_stats_find(played, key, &got));
        if (expected != got && !is_left_out(key, recorded->num_ooms != 0)) {
            printf("%s: %s is %" PRId64 ", recorded %" PRId64 "\n", name, key, got, expected);
            count++;
        }
    }
    return count;
}

START_TEST(under_recorded_settings_every_recording_repeats_itself)
{
    static recording list[RECORDINGS_MAX];
    size_t count = recordings_list(list), difference_count = 0, compared_count = 0;
    for (size_t i = 0; i < count; i++) {
        uf_stats recorded = recording_stats(&list[i]);
        uf_trace *trace = recording_read(&list[i]);
        uf_program *program = recording_program(&list[i], trace, recorded.num_alloc_retries);
        uf_replay_options options = defaults();
        options.limit_bytes = list[i].limit_bytes;
        options.on_oom = UF_ON_OOM_SKIP;
        uf_replay_result result = run(program, &options);
        ck_assert_uint_eq(result.event_count, list[i].event_count);
        ck_assert(!result.has_oom);
        ck_assert_uint_ge(result.peak_active_bytes, result.peak_live_bytes);
        if (!uf_program_report_get(program)->has_lost_beginning) {
            difference_count += count_differences(list[i].name, &recorded, &result.stats);
            ck_assert_uint_eq(result.recorded_oom_count, (uint64_t)recorded.num_ooms);
            ck_assert(list[i].limit_bytes == 0 ||
                      result.peak_reserved_bytes <= list[i].limit_bytes);
            compared_count++;
        }
        uf_program_destroy(program);
        uf_trace_destroy(trace);
    }
    ck_assert_uint_eq(difference_count, 0);
    ck_assert_uint_ge(compared_count, 14);
}
END_TEST

START_TEST(the_result_is_whole)
{
    maker_sample(&m);
    uf_program *program = maker_program(&m, NULL);
    uf_replay_result result = run(program, NULL);
    ck_assert_uint_eq(result.event_count, 7);
    ck_assert_uint_eq(result.alloc_count, 3);
    ck_assert_uint_eq(result.peak_live_bytes, 5 * MAKER_MIB);
    ck_assert_uint_eq(result.peak_active_bytes, 5 * MAKER_MIB);
    ck_assert_uint_eq(result.peak_allocated_bytes, 5 * MAKER_MIB);
    ck_assert_uint_eq(result.peak_reserved_bytes, 20 * MAKER_MIB);
    ck_assert_uint_eq(result.end_reserved_bytes, 20 * MAKER_MIB);
    ck_assert_uint_eq(result.end_active_bytes, 1572864 + 2 * MAKER_MIB);
    ck_assert_uint_eq(result.oom_count, 0);
    ck_assert_uint_eq(result.retry_count, 0);
    ck_assert(!result.has_oom);
    ck_assert_uint_eq(result.device_calls, 1);
    ck_assert_uint_eq(result.device_syncs, 0);
    ck_assert_double_eq(result.device_ms, 0.032);
    ck_assert_uint_eq(result.steady_first_event, UF_EVENT_NONE);
    ck_assert_int_eq(result.stats.allocation.all.allocated, 3);
    ck_assert_int_eq(result.fragmentation.cached_bytes, (int64_t)(18 * MAKER_MIB - 1572864));
    uf_program_destroy(program);
}
END_TEST

START_TEST(other_settings_change_what_is_reserved)
{
    maker_sample(&m);
    uf_program *program = maker_program(&m, NULL);
    uf_replay_options options = defaults();
    options.conf = "roundup_power2_divisions:1,expandable_segments:True";
    options.is_checked = true;
    uf_replay_result result = run(program, &options);
    ck_assert_int_eq(result.stats.segment.all.allocated, 0);
    ck_assert_uint_eq(result.peak_reserved_bytes, 20 * MAKER_MIB);
    ck_assert_uint_eq(result.device_calls, 1 + 3); /* a reservation; one page */
    uf_program_destroy(program);
}
END_TEST

START_TEST(wrong_options_are_refused)
{
    uf_replay_result result = {.event_count = 77};
    uf_error error = {UF_OK, ""};
    maker_sample(&m);
    uf_program *program = maker_program(&m, NULL);
    uf_replay_options options = defaults();
    options.conf = "max_split_size_mb:seven";
    ck_assert_int_eq(uf_replay_run(program, &options, &result, &error), UF_ERROR_CONF);
    options = defaults();
    options.from_event = 8;
    ck_assert_int_eq(uf_replay_run(program, &options, &result, &error), UF_ERROR_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.text, "event 8"));
    ck_assert_uint_eq(result.event_count, 77);
    uf_program_destroy(program);
}
END_TEST

START_TEST(a_range_counts_its_own_events_and_plays_what_comes_before)
{
    maker_sample(&m);
    uf_program *program = maker_program(&m, NULL);
    uf_replay_options options = defaults();
    options.from_event = 3;
    uf_replay_result result = run(program, &options);
    ck_assert_uint_eq(result.event_count, 4);
    ck_assert_uint_eq(result.alloc_count, 1);
    ck_assert_uint_eq(result.device_calls, 0);
    ck_assert_int_eq(result.stats.allocation.all.allocated, 1);
    ck_assert_int_eq(result.stats.allocation.all.current, 2);
    ck_assert_uint_eq(result.peak_live_bytes, 5 * MAKER_MIB);
    options.from_event = 5;
    result = run(program, &options);
    ck_assert_uint_eq(result.peak_live_bytes, 1572864 + 2 * MAKER_MIB);
    options = defaults();
    options.to_event = 3;
    result = run(program, &options);
    ck_assert_uint_eq(result.event_count, 3);
    ck_assert_uint_eq(result.end_active_bytes, 5 * MAKER_MIB);
    options.from_event = 7;
    options.to_event = 0;
    result = run(program, &options);
    ck_assert_uint_eq(result.event_count, 0);
    uf_program_destroy(program);
}
END_TEST

START_TEST(two_halves_of_a_recording_are_the_whole)
{
    recording entry;
    uf_trace *trace = recording_read_named("resnet.default", &entry);
    uf_program *program = recording_program(&entry, trace, -1);
    uint64_t middle = entry.event_count / 2;
    uf_replay_options options = defaults();
    uf_replay_result whole = run(program, &options);
    options.to_event = middle;
    uf_replay_result first = run(program, &options);
    options.to_event = 0;
    options.from_event = middle;
    uf_replay_result second = run(program, &options);
    ck_assert_uint_eq(first.event_count + second.event_count, whole.event_count);
    ck_assert_uint_eq(first.alloc_count + second.alloc_count, whole.alloc_count);
    ck_assert_uint_eq(first.device_calls + second.device_calls, whole.device_calls);
    ck_assert_int_eq(first.stats.allocated_bytes.all.allocated +
                         second.stats.allocated_bytes.all.allocated,
                     whole.stats.allocated_bytes.all.allocated);
    ck_assert_uint_eq(second.end_reserved_bytes, whole.end_reserved_bytes);
    uint64_t peak_bytes = first.peak_live_bytes > second.peak_live_bytes ? first.peak_live_bytes
                                                                         : second.peak_live_bytes;
    ck_assert_uint_eq(peak_bytes, whole.peak_live_bytes);
    uf_program_destroy(program);
    uf_trace_destroy(trace);
}
END_TEST

static void expect_same(const uf_replay_result *a, const uf_replay_result *b)
{
    ck_assert_uint_eq(a->event_count, b->event_count);
    ck_assert_uint_eq(a->alloc_count, b->alloc_count);
    ck_assert_uint_eq(a->device_calls, b->device_calls);
    ck_assert_double_eq(a->device_ms, b->device_ms);
    ck_assert_mem_eq(&a->stats, &b->stats, sizeof a->stats);
}

START_TEST(repetitions_are_reproducible_with_and_without_shuffling)
{
    recording entry;
    uf_trace *trace = recording_read_named("zimage-1024.expandable", &entry);
    uf_program *program = recording_program(&entry, trace, -1);
    uf_replay_options options = defaults();
    uf_replay_result once = run(program, &options);
    options.repeat_count = 4;
    uf_replay_result plain = run(program, &options), again = run(program, &options);
    expect_same(&plain, &again);
    ck_assert_uint_ne(plain.steady_first_event, UF_EVENT_NONE);
    ck_assert_uint_ge(plain.steady_piece_count, 2);
    ck_assert_uint_eq(plain.event_count,
                      once.event_count + 3 * (plain.steady_end_event - plain.steady_first_event));
    ck_assert_uint_eq(plain.peak_live_bytes, once.peak_live_bytes);
    options.is_shuffled = true;
    options.shuffle_seed = 5;
    uf_replay_result shuffled = run(program, &options), same = run(program, &options);
    expect_same(&shuffled, &same);
    ck_assert_uint_eq(shuffled.event_count, plain.event_count);
    uf_program_destroy(program);
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(another_seed_gives_another_order)
{
    recording entry;
    uf_trace *trace = recording_read_named("train.default", &entry);
    uf_program *program = recording_program(&entry, trace, -1);
    uf_replay_options options = defaults();
    options.repeat_count = 3;
    options.is_shuffled = true;
    uf_stats seen[3];
    for (uint64_t seed = 0; seed < 3; seed++) {
        options.shuffle_seed = seed;
        seen[seed] = run(program, &options).stats;
    }
    ck_assert(memcmp(&seen[0], &seen[1], sizeof seen[0]) != 0 ||
              memcmp(&seen[0], &seen[2], sizeof seen[0]) != 0);
    uf_program_destroy(program);
    uf_trace_destroy(trace);
}
END_TEST

/* Blocks of 40 and 30 MiB, both alive; the first goes, 10 MiB come. */
static uf_program *make_tight(void)
{
    maker_init(&m);
    maker_event(&m, UF_ACTION_SEGMENT_ALLOC, MAKER_BASE, 40 * MAKER_MIB);
    maker_event(&m, UF_ACTION_ALLOC, MAKER_BASE, 40 * MAKER_MIB);
    uint64_t second = MAKER_BASE + 100 * MAKER_MIB;
    maker_event(&m, UF_ACTION_SEGMENT_ALLOC, second, 30 * MAKER_MIB);
    maker_event(&m, UF_ACTION_ALLOC, second, 30 * MAKER_MIB - 5);
    maker_free(&m, MAKER_BASE, 40 * MAKER_MIB);
    maker_event(&m, UF_ACTION_ALLOC, MAKER_BASE, 10 * MAKER_MIB);
    maker_free(&m, second, 30 * MAKER_MIB - 5);
    return maker_program(&m, NULL);
}

START_TEST(a_request_that_fails_stops_the_run_and_is_described)
{
    uf_program *program = make_tight();
    uf_replay_options options = defaults();
    options.limit_bytes = 60 * MAKER_MIB;
    options.card_bytes = 1000 * MAKER_MIB;
    uf_replay_result result = run(program, &options);
    ck_assert(result.has_oom);
    ck_assert_uint_eq(result.oom_count, 1);
    ck_assert_uint_eq(result.retry_count, 1);
    ck_assert_uint_eq(result.event_count, 4);
    const uf_oom *oom = &result.first_oom;
    ck_assert_uint_eq(oom->event, 3);
    ck_assert_uint_eq(oom->repetition, 0);
    ck_assert_uint_eq(oom->requested_bytes, 30 * MAKER_MIB - 5);
    ck_assert_uint_eq(oom->rounded_bytes, 30 * MAKER_MIB);
    ck_assert_uint_eq(oom->segment_bytes, 30 * MAKER_MIB);
    ck_assert_uint_eq(oom->allocated_bytes, 40 * MAKER_MIB);
    ck_assert_uint_eq(oom->active_bytes, 40 * MAKER_MIB);
    ck_assert_uint_eq(oom->reserved_bytes, 40 * MAKER_MIB);
    ck_assert_uint_eq(oom->device_free_bytes, 960 * MAKER_MIB);
    ck_assert_uint_eq(oom->largest_free_block_bytes, 0);
    ck_assert(!oom->is_in_private_pool);
    uf_program_destroy(program);
}
END_TEST

START_TEST(skip_goes_on_without_the_request_that_failed)
{
    uf_program *program = make_tight();
    uf_replay_options options = defaults();
    options.card_bytes = 60 * MAKER_MIB;
    options.on_oom = UF_ON_OOM_SKIP;
    options.is_checked = true;
    uf_replay_result result = run(program, &options);
    ck_assert(result.has_oom);
    ck_assert_uint_eq(result.oom_count, 1);
    ck_assert_uint_eq(result.first_oom.event, 3);
    ck_assert_uint_eq(result.event_count, 9);
    ck_assert_uint_eq(result.alloc_count, 3);
    ck_assert_uint_eq(result.end_active_bytes, 10 * MAKER_MIB);
    uf_program_destroy(program);
}
END_TEST

/* Where streams are waited for, a flush can end a wait earlier than the recording did; the peak of
 * live bytes is then no floor, so the recordings of several streams are not asked. */
START_TEST(below_peak_live_nothing_fits)
{
    static const char *const names[] = {"resnet.default", "resnet-stacks", "graphs.expandable",
                                        "graphs.default", "train.split128"};
    static const char *const confs[] = {"", "expandable_segments:True", "max_split_size_mb:64"};
    for (size_t i = 0; i < 5; i++) {
        recording entry;
        uf_trace *trace = recording_read_named(names[i], &entry);
        uf_program *program = recording_program(&entry, trace, -1);
        for (size_t c = 0; c < 3; c++) {
            uf_replay_options options = defaults();
            options.conf = confs[c];
            options.card_bytes = program->peak_live_bytes - 1;
            uf_replay_result result = run(program, &options);
            ck_assert(result.has_oom);
            ck_assert_uint_lt(result.event_count, entry.event_count);
        }
        uf_program_destroy(program);
        uf_trace_destroy(trace);
    }
}
END_TEST

/* A segment of 64 MiB for 2 MiB leaves a piece of 62 MiB: oversize, and part of a segment. No
 * settings string allows that, a trace can say it. */
START_TEST(what_pytorch_leaves_undefined_is_a_hazard)
{
    static char text[] = "\0large_segment_size_mb:64";
    static uint64_t offsets[] = {0, 1, sizeof text};
    uf_replay_result result = {.event_count = 77};
    uf_error error = {UF_OK, ""};
    maker_init(&m);
    maker_event(&m, UF_ACTION_ALLOC, MAKER_BASE, 2 * MAKER_MIB);
    maker_event(&m, UF_ACTION_ALLOC, MAKER_BASE + 100 * MAKER_MIB, 31 * MAKER_MIB);
    m.trace.string_data = text;
    m.trace.string_offsets = offsets;
    m.trace.string_count = 2;
    m.trace.settings.has_conf = m.trace.settings.has_max_split_size = true;
    m.trace.settings.conf = 1;
    m.trace.settings.max_split_size_bytes = (int64_t)(32 * MAKER_MIB);
    uf_program *program = maker_program(&m, NULL);
    uf_replay_options options = defaults();
    options.limit_bytes = 80 * MAKER_MIB;
    ck_assert_int_eq(uf_replay_run(program, &options, &result, &error), UF_ERROR_HAZARD);
    ck_assert_int_eq(error.status, UF_ERROR_HAZARD);
    ck_assert_ptr_nonnull(strstr(error.text, "segment in use"));
    ck_assert_uint_eq(result.event_count, 77);
    uf_program_destroy(program);
}
END_TEST

START_TEST(a_script_is_played_like_a_recording)
{
    static const char text[] = "card 24GiB\n"
                               "free-segment 256MiB\n"
                               "free-segment 64MiB\n"
                               "free-segment 32MiB\n"
                               "free-segment 128MiB\n"
                               "alloc a 192MiB\n"
                               "free a\n"
                               "empty-cache\n";
    uf_trace *trace;
    uf_error error = {UF_OK, ""};
    if (uf_trace_read_memory(text, sizeof text - 1, NULL, &trace, &error) != UF_OK) {
        ck_abort_msg("%s", error.text);
    }
    uf_program *program;
    ck_assert_int_eq(uf_program_create(trace, NULL, &program, &error), UF_OK);
    uf_replay_options options = defaults();
    options.card_bytes = trace->script_card_bytes;
    options.is_checked = true;
    uf_replay_result result = run(program, &options);
    ck_assert_uint_eq(result.peak_reserved_bytes, 480 * MAKER_MIB);
    ck_assert_uint_eq(result.peak_live_bytes, 480 * MAKER_MIB); /* all five at first */
    ck_assert_uint_eq(result.end_reserved_bytes, 0);
    options.conf = "max_split_size_mb:128";
    result = run(program, &options);
    ck_assert_uint_eq(result.peak_reserved_bytes, 672 * MAKER_MIB);
    uf_program_destroy(program);
    uf_trace_destroy(trace);
}
END_TEST

typedef struct progress {
    uint64_t calls, done, total;
    bool is_stopping;
} progress;

static bool on_progress(void *context, uint64_t done, uint64_t total)
{
    progress *seen = context;
    seen->calls++;
    seen->done = done;
    seen->total = total;
    return !seen->is_stopping;
}

START_TEST(progress_is_told_and_can_stop_the_run)
{
    recording entry;
    uf_replay_result result;
    uf_error error = {UF_OK, ""};
    progress seen = {0};
    uf_trace *trace = recording_read_named("sdxl-mixed.default.cap14GiB", &entry);
    uf_program *program = recording_program(&entry, trace, -1);
    uf_replay_options options = defaults();
    options.progress = on_progress;
    options.progress_context = &seen;
    options.repeat_count = 3;
    (void)run(program, &options);
    ck_assert_uint_ge(seen.calls, 2);
    ck_assert_uint_gt(seen.total, entry.event_count);
    ck_assert_uint_le(seen.done, seen.total);
    seen.is_stopping = true;
    ck_assert_int_eq(uf_replay_run(program, &options, &result, &error), UF_ERROR_INTERRUPTED);
    uf_program_destroy(program);
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(every_small_recording_is_sound_after_every_event_under_other_settings)
{
    static const char *const names[] = {"graphs.default", "graphs.expandable", "llm-ring",
                                        "multistream.default"};
    static const char *const confs[] = {"expandable_segments:True", "",
                                        "max_split_size_mb:64,garbage_collection_threshold:0.6"};
    for (size_t i = 0; i < 4; i++) {
        recording entry;
        uf_trace *trace = recording_read_named(names[i], &entry);
        uf_program *program = recording_program(&entry, trace, -1);
        for (size_t c = 0; c < 3; c++) {
            uf_replay_options options = defaults();
            options.conf = confs[c];
            options.is_checked = entry.event_count <= 2000;
            options.limit_bytes = program->peak_live_bytes + program->peak_live_bytes / 8;
            options.on_oom = UF_ON_OOM_SKIP;
            uf_replay_result result = run(program, &options);
            ck_assert_uint_eq(result.event_count, entry.event_count);
            ck_assert_uint_le(result.stats.num_ooms == 0 ? result.peak_reserved_bytes : 0,
                              options.limit_bytes + 20 * MAKER_MIB);
        }
        uf_program_destroy(program);
        uf_trace_destroy(trace);
    }
}
END_TEST

int main(void)
{
    return suite_run_for("play",
                         (const TTest *const[]){
                             under_recorded_settings_every_recording_repeats_itself,
                             the_result_is_whole,
                             other_settings_change_what_is_reserved,
                             wrong_options_are_refused,
                             a_range_counts_its_own_events_and_plays_what_comes_before,
                             two_halves_of_a_recording_are_the_whole,
                             repetitions_are_reproducible_with_and_without_shuffling,
                             another_seed_gives_another_order,
                             a_request_that_fails_stops_the_run_and_is_described,
                             skip_goes_on_without_the_request_that_failed,
                             below_peak_live_nothing_fits,
                             what_pytorch_leaves_undefined_is_a_hazard,
                             a_script_is_played_like_a_recording,
                             progress_is_told_and_can_stop_the_run,
                             every_small_recording_is_sound_after_every_event_under_other_settings,
                             NULL,
                         },
                         300);
}
