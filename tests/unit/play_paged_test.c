/* SPDX-License-Identifier: MIT
 *
 * Replay under the unfrag policy: what counts of the settings, what the times are made of, which
 * terms a failure names, and the search for the smallest limit against trying every one. */
#include "advise/probe.h"
#include "unit/suite.h"
#include "unit/tune_sample.h"

#define MIB (UINT64_C(1) << 20)

static uf_replay_result play(const tune_sample *sample, const uf_replay_options *options)
{
    uf_replay_result result;
    uf_error error = {UF_OK, ""};
    if (uf_replay_run(sample->program, options, &result, &error) != UF_OK) {
        ck_abort_msg("%s", error.text);
    }
    return result;
}

static uf_replay_options paged(void)
{
    return (uf_replay_options){.struct_size_bytes = sizeof(uf_replay_options),
                               .policy = UF_POLICY_UNFRAG};
}

START_TEST(of_the_settings_the_rounding_alone_counts)
{
    tune_sample sample;
    tune_sample_open(&sample, "resnet-stacks", 0);
    uf_replay_options options = paged();
    uf_replay_result plain = play(&sample, &options);
    options.conf =
        "expandable_segments:True,max_split_size_mb:32,per_process_memory_fraction:0.001";
    uf_replay_result ignored = play(&sample, &options);
    ck_assert(!ignored.has_oom);
    ck_assert_uint_eq(ignored.peak_reserved_bytes, plain.peak_reserved_bytes);
    ck_assert_uint_eq(ignored.device_calls, plain.device_calls);
    options.conf = "roundup_power2_divisions:2";
    ck_assert_uint_gt(play(&sample, &options).peak_active_bytes, plain.peak_active_bytes);
    tune_sample_close(&sample);
}
END_TEST

START_TEST(a_range_counts_its_own_driver_time_and_both_parts_are_the_whole)
{
    tune_sample sample;
    tune_sample_open(&sample, "resnet-stacks", 0);
    uf_replay_options options = paged();
    options.limit_bytes = 2420 * MIB;
    uf_replay_result whole = play(&sample, &options);
    ck_assert(!whole.has_oom);
    options.to_event = 5000;
    uf_replay_result first = play(&sample, &options);
    options.from_event = 5000;
    options.to_event = 0;
    uf_replay_result second = play(&sample, &options);
    ck_assert_double_gt(second.device_ms, 0.0);
    ck_assert_double_eq_tol(first.device_ms + second.device_ms, whole.device_ms, 1e-6);
    ck_assert_double_eq_tol(first.device_first_ms + second.device_first_ms, whole.device_first_ms,
                            1e-6);
    double longer_ms = first.longest_stall_ms > second.longest_stall_ms ? first.longest_stall_ms
                                                                        : second.longest_stall_ms;
    ck_assert_double_eq_tol(longer_ms, whole.longest_stall_ms, 1e-9);
    ck_assert_double_le(first.recorded_ms + second.recorded_ms, whole.recorded_ms);
    ck_assert_double_gt(first.recorded_ms + second.recorded_ms, whole.recorded_ms * 0.9);
    tune_sample_close(&sample);
}
END_TEST

START_TEST(another_machine_charges_other_times_for_the_same_calls)
{
    tune_sample sample;
    tune_sample_open(&sample, "resnet-stacks", 0);
    uf_replay_options options = paged();
    options.limit_bytes = 2420 * MIB;
    uf_replay_result h200 = play(&sample, &options);
    options.cost_model = UF_COST_A100;
    uf_replay_result a100 = play(&sample, &options);
    ck_assert_uint_eq(a100.device_calls, h200.device_calls);
    ck_assert_double_gt(a100.device_first_ms, h200.device_first_ms);
    tune_sample_close(&sample);
}
END_TEST

START_TEST(a_failure_names_the_pages_that_no_request_can_have)
{
    tune_sample sample;
    tune_sample_open(&sample, "graphs.default", 0);
    for (uint64_t limit_mib = 64; limit_mib < 600; limit_mib += 46) {
        uf_replay_options options = paged();
        options.limit_bytes = limit_mib * MIB;
        uf_replay_result result = play(&sample, &options);
        ck_assert(result.has_oom);
        const uf_oom *oom = &result.first_oom;
        /* A block may touch one page more than its size takes. */
        ck_assert_uint_gt(oom->pinned_bytes + oom->segment_bytes + 2 * MIB, options.limit_bytes);
        ck_assert_uint_le(oom->pinned_bytes, oom->reserved_bytes);
        ck_assert_uint_ge(oom->pinned_bytes, oom->active_bytes);
        ck_assert_uint_ge(oom->pinned_bytes, oom->frozen_bytes);
    }
    tune_sample_close(&sample);
}
END_TEST

/* The first limit from the floor up that is kept, one granule at a time. */
static uint64_t smallest_by_trying(const tune_sample *sample, uint64_t floor_bytes)
{
    uint64_t granule = UF_PROBE_GRANULE_BYTES;
    uf_replay_options options = paged();
    options.limit_bytes = (floor_bytes + granule - 1) / granule * granule;
    while (play(sample, &options).has_oom) {
        options.limit_bytes += granule;
    }
    return options.limit_bytes;
}

START_TEST(the_smallest_limit_is_the_one_that_trying_all_finds)
{
    static const char *const names[] = {"graphs.default", "graphs.expandable", "resnet-stacks",
                                        "multistream.default"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        tune_sample sample;
        tune_sample_open(&sample, names[i], 0);
        const uf_program *program = sample.program;
        uf_replay_options options = paged();
        uint64_t floor_bytes = play(&sample, &options).peak_live_bytes;
        uf_probe probe = {.programs = &program,
                          .program_count = 1,
                          .policy = UF_POLICY_UNFRAG,
                          .floor_bytes = floor_bytes};
        uf_smallest smallest;
        uf_error error = {UF_OK, ""};
        ck_assert_int_eq(uf__probe_smallest(&probe, &smallest, &error), UF_OK);
        ck_assert(smallest.is_known && smallest.at.is_complete);
        ck_assert_uint_eq(smallest.limit_bytes, smallest_by_trying(&sample, floor_bytes));
        ck_assert(smallest.is_floor == smallest.below.is_complete);
        ck_assert_uint_lt(probe.replay_count, 48);
        tune_sample_close(&sample);
    }
}
END_TEST

int main(void)
{
    return suite_run("play_paged",
                     (const TTest *const[]){
                         of_the_settings_the_rounding_alone_counts,
                         a_range_counts_its_own_driver_time_and_both_parts_are_the_whole,
                         another_machine_charges_other_times_for_the_same_calls,
                         a_failure_names_the_pages_that_no_request_can_have,
                         the_smallest_limit_is_the_one_that_trying_all_finds,
                         NULL,
                     });
}
