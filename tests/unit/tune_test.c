/* SPDX-License-Identifier: MIT
 *
 * Tuning: every figure is the replay's, the smallest limit is one, answers do not depend on
 * threads, several programs, nothing that fits, interruption, bounds and settings that act alike.
 */
#include "advise/tune.h"

#include <string.h>

#include "advise/bound.h"
#include "suite.h"
#include "tune_sample.h"

#define MIB(n) ((uint64_t)(n) << 20)

typedef struct stopper {
    uint64_t left; /* replays until it stops */
    uint64_t call_count, last_done;
} stopper;

static bool stop_after(void *context, uint64_t done, uint64_t total)
{
    stopper *stop = context;
    ck_assert_uint_gt(total, done);
    ck_assert_uint_gt(done, stop->last_done);
    stop->last_done = done;
    stop->call_count++;
    return stop->left == 0 || stop->call_count < stop->left;
}

static void tune(const tune_sample *samples, uint32_t count, const uf_tune_options *options,
                 uf_tune_result *result)
{
    const uf_program *programs[4];
    for (uint32_t i = 0; i < count; i++) {
        programs[i] = samples[i].program;
    }
    uf_error error = {0};
    ck_assert_msg(uf__tune(programs, count, options, result, &error) == UF_OK, "%s", error.text);
}

static uf_tune_options options_for(uint32_t thread_count)
{
    return (uf_tune_options){
        .sync_ms = -1.0, .thread_count = thread_count, .allowance_bytes = UF_TUNE_ALLOWANCE_BYTES};
}

static const char *conf_of(const uf_tune_result *result, uint32_t index)
{
    return result->grid.points[result->entries[index].point].conf;
}

static void replay(const tune_sample *sample, const char *conf, const uf_place *place,
                   uf_replay_result *played)
{
    const uf_replay_options options = {.struct_size_bytes = sizeof options,
                                       .conf = conf,
                                       .limit_bytes = place->limit_bytes,
                                       .card_bytes = place->card_bytes,
                                       .total_bytes = place->total_bytes};
    ck_assert_int_eq(uf_replay_run(sample->program, &options, played, NULL), UF_OK);
}

static void check_run(const tune_sample *sample, const char *conf, const uf_place *place,
                      const uf_probe_run *run)
{
    uf_replay_result played;
    replay(sample, conf, place, &played);
    ck_assert_int_eq(played.has_oom, !run->is_complete);
    if (run->is_complete) {
        ck_assert_uint_eq(run->peak_reserved_bytes, played.peak_reserved_bytes);
        ck_assert_uint_eq(run->device_calls, played.device_calls);
        ck_assert_uint_eq(run->device_syncs, played.device_syncs);
        ck_assert_uint_eq(run->retry_count, played.retry_count);
        ck_assert(run->device_ms == played.device_ms);
        ck_assert_uint_eq(run->stream_wait_count, played.stream_wait_count);
        ck_assert(run->stream_wait_ms == played.stream_wait_ms);
        ck_assert(run->longest_stream_wait_ms == played.longest_stream_wait_ms);
        ck_assert(run->stall_ms == played.device_ms + (double)played.device_syncs +
                                       (played.stream_wait_ms > 0.0 ? played.stream_wait_ms : 0.0));
    } else {
        ck_assert_uint_eq(run->oom.event, played.first_oom.event);
        ck_assert_uint_eq(run->oom.segment_bytes, played.first_oom.segment_bytes);
        ck_assert_uint_eq(run->oom.reserved_bytes, played.first_oom.reserved_bytes);
    }
}

static const char *const names[] = {"graphs.default", "resnet-stacks", "multistream.expandable",
                                    "llm-ring"};

#define NAME_COUNT (sizeof names / sizeof names[0])

START_TEST(every_figure_is_that_of_the_replay)
{
    for (size_t n = 0; n < NAME_COUNT; n++) {
        tune_sample sample;
        tune_sample_open(&sample, names[n], 0);
        uf_tune_options options = options_for(2);
        uf_tune_result result;
        tune(&sample, 1, &options, &result);
        ck_assert_uint_ge(result.entry_count, 5);
        for (uint32_t i = 0; i < result.entry_count; i++) {
            const uf_tune_entry *entry = &result.entries[i];
            const char *conf = conf_of(&result, i);
            const uf_place limit = {.limit_bytes = entry->smallest.limit_bytes};
            const uf_place below = {.limit_bytes = limit.limit_bytes - UF_PROBE_GRANULE_BYTES};
            const uf_place unlimited = {0};
            ck_assert(entry->smallest.is_known && entry->run.is_complete);
            ck_assert_uint_eq(entry->place.limit_bytes, limit.limit_bytes);
            ck_assert_uint_eq(limit.limit_bytes % UF_PROBE_GRANULE_BYTES, 0);
            check_run(&sample, conf, &limit, &entry->run);
            check_run(&sample, conf, &limit, &entry->smallest.at);
            check_run(&sample, conf, &below, &entry->smallest.below);
            ck_assert_uint_ge(limit.limit_bytes, result.peak_live_bytes);
            ck_assert(entry->smallest.below.is_complete == entry->smallest.is_floor);
            ck_assert(!entry->smallest.is_floor || below.limit_bytes < result.peak_live_bytes);
            check_run(&sample, conf, &unlimited, &entry->smallest.unlimited);
        }
        uf__tune_result_fini(&result);
        tune_sample_close(&sample);
    }
}
END_TEST

/* Most of what this program holds at its peak waits for another stream. Far below the floor it
 * completes, by waiting; that is no smallest limit, and no card. */
START_TEST(what_only_waiting_for_other_streams_makes_possible_is_not_offered)
{
    tune_sample sample;
    tune_sample_open(&sample, "multistream.default", 0);
    uf_tune_options options = options_for(2);
    uf_tune_result result;
    tune(&sample, 1, &options, &result);
    const uf_tune_entry *best = &result.entries[result.best];
    ck_assert_uint_lt(result.held_bytes, result.peak_live_bytes / 20);
    ck_assert(best->smallest.is_floor && best->smallest.below.is_complete);
    ck_assert_uint_lt(best->smallest.limit_bytes - result.peak_live_bytes, UF_PROBE_GRANULE_BYTES);
    ck_assert_uint_gt(best->card_bytes, result.peak_live_bytes);
    uf_replay_result far_below;
    const uf_place place = {.limit_bytes = MIB(512)};
    replay(&sample, "", &place, &far_below);
    ck_assert(!far_below.has_oom);
    ck_assert_uint_gt(far_below.stream_wait_count, best->run.stream_wait_count);
    ck_assert(far_below.longest_stream_wait_ms > 500.0);
    ck_assert(far_below.stream_wait_ms >= far_below.longest_stream_wait_ms);
    replay(&sample, "", &(uf_place){0}, &far_below);
    ck_assert_uint_eq(far_below.stream_wait_count, 0);
    uf__tune_result_fini(&result);
    tune_sample_close(&sample);
}
END_TEST

START_TEST(the_best_needs_no_more_than_today_and_hardly_more_than_any)
{
    for (size_t n = 0; n < NAME_COUNT; n++) {
        tune_sample sample;
        tune_sample_open(&sample, names[n], 0);
        uf_tune_options options = options_for(2);
        uf_tune_result result;
        tune(&sample, 1, &options, &result);
        ck_assert_uint_eq(result.best, 0);
        ck_assert_uint_ne(result.baseline, UF_NONE);
        ck_assert_str_eq(conf_of(&result, result.baseline), uf_program_conf(sample.program));
        uint64_t best_bytes = result.entries[0].smallest.limit_bytes;
        ck_assert_uint_le(best_bytes, result.entries[result.baseline].smallest.limit_bytes);
        for (uint32_t i = 0; i < result.entry_count; i++) {
            double other = (double)result.entries[i].smallest.limit_bytes;
            ck_assert((double)best_bytes <= other * (1.0 + UF_TUNE_LIMIT_SLACK));
            ck_assert(!result.entries[i].is_hazardous || i != result.best);
        }
        ck_assert_uint_eq(result.tried_count + result.skipped_count, result.grid.count);
        uf__tune_result_fini(&result);
        tune_sample_close(&sample);
    }
}
END_TEST

static void check_equal(const uf_tune_result *a, const uf_tune_result *b)
{
    ck_assert_uint_eq(a->entry_count, b->entry_count);
    ck_assert_uint_eq(a->best, b->best);
    ck_assert_uint_eq(a->baseline, b->baseline);
    ck_assert_uint_eq(a->tried_count, b->tried_count);
    ck_assert_uint_eq(a->replay_count, b->replay_count);
    ck_assert_uint_eq(a->event_count, b->event_count);
    for (uint32_t i = 0; i < a->entry_count; i++) {
        const uf_tune_entry *left = &a->entries[i], *right = &b->entries[i];
        ck_assert_uint_eq(left->point, right->point);
        ck_assert_uint_eq(left->card_bytes, right->card_bytes);
        ck_assert_uint_eq(left->smallest.limit_bytes, right->smallest.limit_bytes);
        ck_assert_int_eq(left->smallest.has_gaps, right->smallest.has_gaps);
        ck_assert(left->run.stall_ms == right->run.stall_ms);
        ck_assert_uint_eq(left->run.peak_reserved_bytes, right->run.peak_reserved_bytes);
    }
}

START_TEST(the_answer_does_not_depend_on_the_number_of_threads)
{
    static const uint32_t thread_counts[] = {1, 2, 5};
    for (int is_there = 0; is_there < 2; is_there++) {
        tune_sample sample;
        tune_sample_open(&sample, "resnet-stacks", 0);
        uf_tune_result results[3];
        for (size_t t = 0; t < 3; t++) {
            uf_tune_options options = options_for(thread_counts[t]);
            options.limit_bytes = is_there ? MIB(2440) : 0;
            tune(&sample, 1, &options, &results[t]);
            check_equal(&results[0], &results[t]);
        }
        for (size_t t = 0; t < 3; t++) {
            uf__tune_result_fini(&results[t]);
        }
        tune_sample_close(&sample);
    }
}
END_TEST

START_TEST(on_a_card_the_chosen_setting_fits_and_has_the_least_stall)
{
    tune_sample sample;
    tune_sample_open(&sample, "train.default", 12000);
    uf_tune_options options = options_for(2);
    uf_tune_result result;
    tune(&sample, 1, &options, &result); /* where today's just fits */
    options.card_bytes = result.entries[result.baseline].smallest.limit_bytes;
    options.card_total_bytes = options.card_bytes + UF_TUNE_ALLOWANCE_BYTES;
    options.is_exhaustive = true;
    uf__tune_result_fini(&result);
    tune(&sample, 1, &options, &result);
    ck_assert_uint_eq(result.best, 0);
    const uf_tune_entry *best = &result.entries[0];
    ck_assert(best->run.is_complete);
    ck_assert_uint_eq(best->place.card_bytes, options.card_bytes);
    ck_assert_uint_eq(best->place.total_bytes, options.card_total_bytes);
    uint32_t complete_count = 0;
    const uf_event *events = sample.trace->events;
    double recording_ms = (double)(events[12000 - 1].time_us - events[0].time_us) / 1e3;
    for (uint32_t i = 0; i < result.entry_count; i++) {
        const uf_tune_entry *entry = &result.entries[i];
        complete_count += entry->run.is_complete;
        check_run(&sample, conf_of(&result, i), &entry->place, &entry->run);
        ck_assert(!entry->run.is_complete ||
                  best->run.stall_ms <= entry->run.stall_ms * (1.0 + UF_TUNE_STALL_SLACK) +
                                            recording_ms * UF_TUNE_TIME_SLACK);
    }
    ck_assert_uint_gt(complete_count, 1);
    uf__tune_result_fini(&result);
    tune_sample_close(&sample);
}
END_TEST

START_TEST(the_smallest_card_is_one_it_completes_on)
{
    tune_sample sample;
    tune_sample_open(&sample, "train.default", 12000);
    uf_tune_options options = options_for(2);
    uf_tune_result result;
    tune(&sample, 1, &options, &result);
    for (uint32_t i = 0; i < result.entry_count; i++) {
        const uf_tune_entry *entry = &result.entries[i];
        uint64_t rest_bytes = entry->card_bytes - UF_TUNE_ALLOWANCE_BYTES;
        bool needs_limit = result.grid.points[entry->point].needs_limit;
        const uf_place place = {.limit_bytes = needs_limit ? rest_bytes : 0,
                                .card_bytes = rest_bytes,
                                .total_bytes = entry->card_bytes};
        uf_replay_result played;
        replay(&sample, conf_of(&result, i), &place, &played);
        ck_assert(!played.has_oom);
        ck_assert_uint_le(entry->smallest.limit_bytes, rest_bytes);
    }
    uf__tune_result_fini(&result);
    tune_sample_close(&sample);
}
END_TEST

START_TEST(several_programs_get_one_setting_that_serves_all)
{
    tune_sample samples[3];
    tune_sample_open(&samples[0], "graphs.default", 0);
    tune_sample_open(&samples[1], "resnet-stacks", 0);
    tune_sample_open(&samples[2], "llm-ring", 0);
    uf_tune_options options = options_for(2);
    uf_tune_result result;
    tune(samples, 3, &options, &result);
    ck_assert_uint_eq(result.file_count, 3);
    ck_assert_uint_eq(result.best, 0);
    uint64_t worst_bytes = 0;
    const uf_place limit = {.limit_bytes = result.entries[0].smallest.limit_bytes};
    uint64_t call_count = 0;
    for (uint32_t i = 0; i < 3; i++) {
        const uf_tune_file *file = &result.files[i];
        uf_replay_result played;
        replay(&samples[i], conf_of(&result, 0), &limit, &played);
        ck_assert(!played.has_oom);
        call_count += played.device_calls;
        ck_assert(file->best.is_known && file->baseline.is_known);
        const uf_place own = {.limit_bytes = file->best.limit_bytes};
        check_run(&samples[i], conf_of(&result, 0), &own, &file->best.at);
        worst_bytes = file->best.limit_bytes > worst_bytes ? file->best.limit_bytes : worst_bytes;
    }
    ck_assert_uint_eq(worst_bytes, limit.limit_bytes);
    ck_assert_uint_eq(call_count, result.entries[0].run.device_calls);
    uf__tune_result_fini(&result);
    for (uint32_t i = 0; i < 3; i++) {
        tune_sample_close(&samples[i]);
    }
}
END_TEST

START_TEST(nothing_fits_below_what_the_program_holds)
{
    tune_sample sample;
    tune_sample_open(&sample, "resnet-stacks", 0);
    uf_tune_options options = options_for(2);
    options.limit_bytes = MIB(500);
    uf_tune_result result;
    tune(&sample, 1, &options, &result);
    ck_assert_uint_eq(result.best, UF_NONE);
    ck_assert_uint_ge(result.entry_count, 5);
    ck_assert_uint_gt(result.skipped_count, 100); /* their bound is above the limit */
    for (uint32_t i = 0; i < result.entry_count; i++) {
        const uf_tune_entry *entry = &result.entries[i];
        ck_assert(!entry->run.is_complete && entry->run.has_run);
        ck_assert_uint_gt(entry->run.oom.segment_bytes, 0);
        ck_assert(entry->smallest.is_known); /* what it would take */
    }
    uf__tune_result_fini(&result);
    tune_sample_close(&sample);
}
END_TEST

START_TEST(an_interruption_keeps_the_best_so_far)
{
    tune_sample sample;
    tune_sample_open(&sample, "resnet-stacks", 0);
    uint32_t answer_count = 0;
    for (uint64_t left = 1; left < 400; left += 37) {
        for (uint32_t thread_count = 1; thread_count < 3; thread_count++) {
            stopper stop = {.left = left};
            uf_tune_options options = options_for(thread_count);
            options.progress = stop_after;
            options.progress_context = &stop;
            uf_tune_result result;
            tune(&sample, 1, &options, &result);
            ck_assert_int_eq(result.is_interrupted, stop.call_count >= left);
            ck_assert_uint_le(stop.call_count, left + thread_count);
            answer_count += result.best != UF_NONE;
            if (result.best != UF_NONE) {
                const uf_tune_entry *best = &result.entries[result.best];
                const uf_place place = {.limit_bytes = best->smallest.limit_bytes};
                uf_replay_result played;
                ck_assert(best->smallest.is_known);
                replay(&sample, conf_of(&result, result.best), &place, &played);
                ck_assert(!played.has_oom);
            }
            uf__tune_result_fini(&result);
        }
    }
    ck_assert_uint_gt(answer_count, 10);
    tune_sample_close(&sample);
}
END_TEST

START_TEST(a_bad_string_of_today_is_an_error)
{
    tune_sample sample;
    tune_sample_open(&sample, "graphs.default", 0);
    const uf_program *program = sample.program;
    uf_tune_options options = options_for(1);
    options.conf = "max_split_size_mb:7";
    uf_tune_result result;
    uf_error error = {0};
    ck_assert_int_eq(uf__tune(&program, 1, &options, &result, &error), UF_ERROR_CONF);
    ck_assert(strstr(error.text, "max_split_size_mb") != NULL);
    tune_sample_close(&sample);
}
END_TEST

START_TEST(todays_string_counts_as_the_popular_one_it_acts_like)
{
    tune_sample sample;
    tune_sample_open(&sample, "graphs.default", 0);
    uf_tune_options options = options_for(2);
    options.conf = "max_split_size_mb:4000";
    uf_tune_result result;
    tune(&sample, 1, &options, &result);
    const uf_tune_entry *today = &result.entries[result.baseline];
    ck_assert_str_eq(conf_of(&result, result.baseline), "max_split_size_mb:4000");
    for (uint32_t i = 0; i < result.entry_count; i++) {
        if (conf_of(&result, i)[0] == '\0') {
            ck_assert_uint_eq(result.entries[i].smallest.limit_bytes, today->smallest.limit_bytes);
            ck_assert(result.entries[i].run.stall_ms == today->run.stall_ms);
        }
    }
    uf__tune_result_fini(&result);
    tune_sample_close(&sample);
}
END_TEST

/* The two claims that let settings be skipped, on every point of the grid. */
START_TEST(bounds_hold_and_settings_that_act_alike_do)
{
    tune_sample sample;
    tune_sample_open(&sample, "multistream.default", 0);
    const uf_program *program = sample.program;
    uf_grid grid;
    ck_assert_int_eq(uf__grid_init(&grid, UF_CONF_2_11, 0, true), UF_OK);
    uf_conf *simplified = calloc(grid.count, sizeof *simplified);
    uf_replay_result *played = calloc(grid.count, sizeof *played);
    uint32_t pair_count = 0;
    for (uint32_t i = 0; i < grid.count; i++) {
        uf_bound bound;
        uf__bound_compute(&program, 1, &grid.points[i].values, &bound);
        simplified[i] = grid.points[i].values;
        uf__bound_simplify(&bound, &simplified[i]);
        const uf_place place = {.limit_bytes = MIB(1200)};
        replay(&sample, grid.points[i].conf, &place, &played[i]);
        uint64_t least_bytes = uf__bound_limit(&bound, &grid.points[i].values);
        ck_assert_uint_gt(least_bytes, MIB(64));
        const uf_place below = {.limit_bytes = least_bytes - 1};
        uf_replay_result failed;
        replay(&sample, grid.points[i].conf, &below, &failed);
        ck_assert(failed.has_oom);
        for (uint32_t j = 0; j < i; j++) {
            if (uf__conf_is_equal(&simplified[i], &simplified[j])) {
                pair_count++;
                ck_assert_uint_eq(played[i].peak_reserved_bytes, played[j].peak_reserved_bytes);
                ck_assert_uint_eq(played[i].device_calls, played[j].device_calls);
                ck_assert_uint_eq(played[i].device_syncs, played[j].device_syncs);
                ck_assert_uint_eq(played[i].retry_count, played[j].retry_count);
            }
        }
    }
    ck_assert_uint_gt(pair_count, 20);
    free(simplified);
    free(played);
    uf__grid_fini(&grid);
    tune_sample_close(&sample);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {every_figure_is_that_of_the_replay,
                            what_only_waiting_for_other_streams_makes_possible_is_not_offered,
                            the_best_needs_no_more_than_today_and_hardly_more_than_any,
                            the_answer_does_not_depend_on_the_number_of_threads,
                            on_a_card_the_chosen_setting_fits_and_has_the_least_stall,
                            the_smallest_card_is_one_it_completes_on,
                            several_programs_get_one_setting_that_serves_all,
                            nothing_fits_below_what_the_program_holds,
                            an_interruption_keeps_the_best_so_far,
                            a_bad_string_of_today_is_an_error,
                            todays_string_counts_as_the_popular_one_it_acts_like,
                            bounds_hold_and_settings_that_act_alike_do,
                            NULL};
    return suite_run("tune", tests);
}
