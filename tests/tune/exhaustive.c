/* SPDX-License-Identifier: MIT
 *
 * The pruned search against the exhaustive one over the same grid, on recordings (the first part of
 * the long ones): the chosen setting's smallest limit is within 1 % of the best of all, is that
 * which the exhaustive search finds for it, and stalls no longer than it may at that limit. */
#include "advise/tune.h"

#include <string.h>

#include "suite.h"
#include "tune_sample.h"

typedef struct subject {
    const char *name;
    uint64_t event_count; /* 0 = all */
} subject;

static const subject subjects[] = {{"graphs.default", 0},          {"multistream.expandable", 4000},
                                   {"resnet-stacks", 0},           {"train.default", 12000},
                                   {"train.split128", 12000},      {"zimage-1024.default", 12000},
                                   {"sdxl-1024-b4.default", 12000}};

static void tune(const tune_sample *sample, bool is_exhaustive, uf_tune_result *result)
{
    const uf_program *program = sample->program;
    const uf_tune_options options = {.sync_ms = -1.0,
                                     .allowance_bytes = UF_TUNE_ALLOWANCE_BYTES,
                                     .is_exhaustive = is_exhaustive};
    ck_assert_int_eq(uf__tune(&program, 1, &options, result, NULL), UF_OK);
}

static const char *conf_of(const uf_tune_result *result, const uf_tune_entry *entry)
{
    return result->grid.points[entry->point].conf;
}

static const uf_tune_entry *entry_of(const uf_tune_result *result, const char *conf)
{
    for (uint32_t i = 0; i < result->entry_count; i++) {
        if (strcmp(conf_of(result, &result->entries[i]), conf) == 0) {
            return &result->entries[i];
        }
    }
    ck_abort_msg("%s is not in the exhaustive result", conf);
}

/* The exhaustive search gives every setting's smallest limit; among those that keep the chosen
 * one's limit none stalls much less there. */
static void check_stall(const tune_sample *sample, const uf_tune_result *all,
                        const uf_tune_entry *best)
{
    const uf_program *program = sample->program;
    uf_place place = {.limit_bytes = best->smallest.limit_bytes};
    uint64_t last = sample->trace->devices[0].count - 1;
    double recording_ms =
        (double)(sample->trace->events[last].time_us - sample->trace->events[0].time_us) / 1e3;
    for (uint32_t i = 0; i < all->entry_count; i++) {
        const uf_tune_entry *entry = &all->entries[i];
        if (!entry->smallest.is_known || entry->is_hazardous ||
            entry->smallest.limit_bytes > place.limit_bytes) {
            continue;
        }
        uf_probe probe = {.programs = &program,
                          .program_count = 1,
                          .conf = conf_of(all, entry),
                          .sync_ms = UF_TUNE_SYNC_MS};
        uf_probe_run run = {0};
        ck_assert_int_eq(uf__probe_run(&probe, &place, &run, NULL), UF_OK);
        ck_assert_msg(!run.is_complete ||
                          best->smallest.at.stall_ms <= run.stall_ms * 1.01 + recording_ms * 0.01,
                      "%s stalls %.1f ms", probe.conf, run.stall_ms);
    }
}

START_TEST(the_chosen_setting_is_within_one_percent_of_exhaustive_search)
{
    for (size_t s = 0; s < sizeof subjects / sizeof subjects[0]; s++) {
        tune_sample sample;
        tune_sample_open(&sample, subjects[s].name, subjects[s].event_count);
        uf_tune_result pruned, all;
        tune(&sample, false, &pruned);
        tune(&sample, true, &all);
        ck_assert_uint_eq(all.entry_count, all.grid.count);
        ck_assert_uint_lt(pruned.event_count, all.event_count / 2);
        const uf_tune_entry *best = &pruned.entries[pruned.best];
        const uf_tune_entry *same = entry_of(&all, conf_of(&pruned, best));
        ck_assert_uint_eq(best->smallest.limit_bytes, same->smallest.limit_bytes);
        uint64_t least_bytes = UINT64_MAX;
        for (uint32_t i = 0; i < all.entry_count; i++) {
            const uf_tune_entry *entry = &all.entries[i];
            bool is_less = entry->smallest.is_known && !entry->is_hazardous &&
                           entry->smallest.limit_bytes < least_bytes;
            least_bytes = is_less ? entry->smallest.limit_bytes : least_bytes;
        }
        ck_assert_msg((double)best->smallest.limit_bytes <= 1.01 * (double)least_bytes,
                      "%s: %s needs %.1f MiB, the best %.1f MiB", subjects[s].name,
                      conf_of(&pruned, best), (double)best->smallest.limit_bytes / 1048576.0,
                      (double)least_bytes / 1048576.0);
        check_stall(&sample, &all, best);
        printf("%s: %s, %.4f of the best, %.1f %% of the events\n", subjects[s].name,
               conf_of(&pruned, best), (double)best->smallest.limit_bytes / (double)least_bytes,
               100.0 * (double)pruned.event_count / (double)all.event_count);
        uf__tune_result_fini(&pruned);
        uf__tune_result_fini(&all);
        tune_sample_close(&sample);
    }
}
END_TEST

int main(void)
{
    const TTest *tests[] = {the_chosen_setting_is_within_one_percent_of_exhaustive_search, NULL};
    return suite_run_for("exhaustive", tests, 300);
}
