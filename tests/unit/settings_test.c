/* SPDX-License-Identifier: MIT
 *
 * Settings side by side: each has the smallest limit that `tune` finds for it, however little is
 * searched. */
#include "report/settings.h"

#include "unit/recordings.h"
#include "unit/suite.h"

static uf_settings settings_of(const uf_program *program, uf_effort effort)
{
    uf_settings settings;
    uf_error error = {UF_OK, ""};
    const uf_settings_options options = {.effort = effort, .thread_count = 2};
    if (uf__settings_init(&settings, program, &options, &error) != UF_OK) {
        ck_abort_msg("%s", error.text);
    }
    return settings;
}

static const uf_settings_row *row_of(const uf_settings *settings, const char *conf, bool is_unfrag)
{
    for (uint32_t i = 0; i < settings->count; i++) {
        const uf_settings_row *row = &settings->rows[i];
        if (row->is_unfrag == is_unfrag && strcmp(row->conf, conf) == 0) {
            return row;
        }
    }
    ck_abort_msg("there is no row '%s'", conf);
    return NULL;
}

START_TEST(smallest_limits_are_those_of_tune)
{
    recording entry;
    uf_trace *trace = recording_read_named("resnet-stacks", &entry);
    uf_program *program = recording_program(&entry, trace, -1);
    uf_settings limits = settings_of(program, UF_EFFORT_LIMITS);
    uf_settings few = settings_of(program, UF_EFFORT_FEW);
    uf_settings peaks = settings_of(program, UF_EFFORT_PEAKS);
    const uf_tune_options how = {.allowance_bytes = UF_TUNE_ALLOWANCE_BYTES,
                                 .sync_ms = UF_TUNE_SYNC_MS,
                                 .grammar = UF_CONF_2_11};
    uf_tune_result tuned;
    uf_error error = {UF_OK, ""};
    const uf_program *const programs[] = {program};
    ck_assert_int_eq(uf__tune(programs, 1, &how, &tuned, &error), UF_OK);
    uint32_t compared_count = 0;
    for (uint32_t i = 0; i < tuned.entry_count; i++) {
        const uf_tune_entry *entry_of = &tuned.entries[i];
        const uf_grid_point *point = &tuned.grid.points[entry_of->point];
        if (!point->is_popular) {
            continue;
        }
        const uf_settings_row *row = row_of(&limits, point->conf, false);
        ck_assert_uint_eq(row->smallest_limit_bytes, entry_of->smallest.limit_bytes);
        ck_assert_uint_eq(row->card_bytes, entry_of->card_bytes);
        const uf_settings_row *plain = row_of(&peaks, point->conf, false);
        ck_assert(plain->has_peak && !plain->has_smallest);
        ck_assert_uint_eq(plain->peak_reserved_bytes,
                          entry_of->smallest.unlimited.peak_reserved_bytes);
        compared_count++;
    }
    ck_assert_uint_ge(compared_count, 4);
    ck_assert_uint_eq(row_of(&limits, "", true)->smallest_limit_bytes,
                      tuned.unfrag.smallest.limit_bytes);
    ck_assert_uint_eq(row_of(&few, "expandable_segments:True", false)->smallest_limit_bytes,
                      row_of(&limits, "expandable_segments:True", false)->smallest_limit_bytes);
    ck_assert(!row_of(&few, "max_split_size_mb:128", false)->has_smallest);
    ck_assert(row_of(&few, "", false)->is_today && row_of(&few, "", false)->has_smallest);
    uf__tune_result_fini(&tuned);
    uf__settings_fini(&limits);
    uf__settings_fini(&few);
    uf__settings_fini(&peaks);
    uf_program_destroy(program);
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(much_is_searched_for_little_and_little_for_much)
{
    ck_assert_int_eq(uf__settings_effort(1000), UF_EFFORT_LIMITS);
    ck_assert_int_eq(uf__settings_effort(500000), UF_EFFORT_FEW);
    ck_assert_int_eq(uf__settings_effort(657185), UF_EFFORT_FEW);
    ck_assert_int_eq(uf__settings_effort(5000000), UF_EFFORT_PEAKS);
}
END_TEST

START_TEST(settings_that_pytorch_does_not_know_are_refused)
{
    recording entry;
    uf_trace *trace = recording_read_named("graphs.default", &entry);
    uf_program *program = recording_program(&entry, trace, -1);
    uf_settings settings;
    uf_error error = {UF_OK, ""};
    const uf_settings_options options = {.effort = UF_EFFORT_LIMITS, .conf = "no_such_option:1"};
    ck_assert_int_eq(uf__settings_init(&settings, program, &options, &error), UF_ERROR_CONF);
    uf__settings_fini(&settings);
    uf_program_destroy(program);
    uf_trace_destroy(trace);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {smallest_limits_are_those_of_tune,
                                  much_is_searched_for_little_and_little_for_much,
                                  settings_that_pytorch_does_not_know_are_refused, NULL};
    return suite_run("settings", tests);
}
