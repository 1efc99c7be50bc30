/* SPDX-License-Identifier: MIT
 *
 * The arithmetic of running statistics and their resets, seen through the statistics derived from
 * them. */
#include "alloc/counters.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "alloc/core.h"

static uf_core core;

static uf_stats derive(void)
{
    uf_stats stats;
    uf__core_stats(&core, &stats);
    return stats;
}

START_TEST(one_statistic_counts_up_down_and_its_peak)
{
    memset(&core, 0, sizeof core);
    uf_counters *counters = &core.counters;
    uf__counter_increase(counters, UF_COUNTER_ALLOCATED_BYTES, UF_CLASS_SMALL, 10);
    uf__counter_increase(counters, UF_COUNTER_ALLOCATED_BYTES, UF_CLASS_SMALL, 5);
    uf__counter_decrease(counters, UF_COUNTER_ALLOCATED_BYTES, UF_CLASS_SMALL, 12);
    uf__counter_increase(counters, UF_COUNTER_ALLOCATED_BYTES, UF_CLASS_SMALL, 2);
    uf_stat stat = derive().allocated_bytes.small_pool;
    ck_assert_int_eq(stat.current, 5);
    ck_assert_int_eq(stat.peak, 15);
    ck_assert_int_eq(stat.allocated, 17);
    ck_assert_int_eq(stat.freed, 12);
    ck_assert_int_eq(derive().allocated_bytes.large_pool.allocated, 0);
}
END_TEST

START_TEST(the_peak_of_all_is_not_the_sum_of_the_peaks)
{
    memset(&core, 0, sizeof core);
    uf_counters *counters = &core.counters;
    uf__counter_increase(counters, UF_COUNTER_ACTIVE_BYTES, UF_CLASS_SMALL, 10);
    uf__counter_decrease(counters, UF_COUNTER_ACTIVE_BYTES, UF_CLASS_SMALL, 10);
    uf__counter_increase(counters, UF_COUNTER_ACTIVE_BYTES, UF_CLASS_LARGE, 7);
    uf_stats stats = derive();
    ck_assert_int_eq(stats.active_bytes.small_pool.peak, 10);
    ck_assert_int_eq(stats.active_bytes.large_pool.peak, 7);
    ck_assert_int_eq(stats.active_bytes.all.peak, 10);
    ck_assert_int_eq(stats.active_bytes.all.allocated, 17);
    ck_assert_int_eq(stats.active_bytes.all.freed, 10);
    ck_assert_int_eq(stats.active_bytes.all.current, 7);
}
END_TEST

START_TEST(a_single_statistic_counts_by_one)
{
    memset(&core, 0, sizeof core);
    uf__counter_single_increase(&core.counters.oversize_segments);
    uf__counter_single_increase(&core.counters.oversize_segments);
    uf__counter_single_decrease(&core.counters.oversize_segments);
    uf_stat stat = derive().oversize_segments;
    ck_assert_int_eq(stat.current, 1);
    ck_assert_int_eq(stat.peak, 2);
    ck_assert_int_eq(stat.allocated, 2);
    ck_assert_int_eq(stat.freed, 1);
}
END_TEST

/* Every statistic differs from every other. */
static void count_differently(void)
{
    memset(&core, 0, sizeof core);
    uf_counters *counters = &core.counters;
    for (uint64_t id = 0; id < UF_COUNTER_COUNT; id++) {
        for (int c = 0; c < UF_CLASS_COUNT; c++) {
            uint64_t step = 100 * (id + 1) + 10 * (uint64_t)c;
            uf__counter_increase(counters, (uf_counter_id)id, c, 5 * step);
            uf__counter_decrease(counters, (uf_counter_id)id, c, 3 * step);
            uf__counter_increase(counters, (uf_counter_id)id, c, step);
        }
    }
    for (int i = 0; i < 9; i++) {
        uf__counter_single_increase(&counters->oversize_allocations);
        uf__counter_single_increase(&counters->oversize_segments);
    }
    uf__counter_single_decrease(&counters->oversize_allocations);
    counters->num_alloc_retries = 1;
    counters->num_ooms = 2;
    counters->num_sync_all_streams = 3;
    counters->num_device_alloc = 4;
    counters->num_device_free = 5;
    core.max_split_size_at_start = 77;
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text);
    return length >= strlen(end) && strcmp(text + length - strlen(end), end) == 0;
}

START_TEST(resetting_peaks_makes_every_peak_the_current_value)
{
    count_differently();
    uf_stats before = derive();
    uf__counters_reset_peak(&core.counters);
    uf_stats after = derive();
    for (size_t i = 0; i < uf_stats_count(); i++) {
        const char *key;
        int64_t value, expected;
        ck_assert(uf_stats_entry(&after, i, &key, &value));
        /* allocated, current, freed, peak: current stands two places ahead of peak. */
        ck_assert(uf_stats_entry(&before, ends_with(key, ".peak") ? i - 2 : i, NULL, &expected));
        ck_assert_msg(value == expected, "%s", key);
    }
}
END_TEST

START_TEST(resetting_totals_leaves_current_peak_and_max_split_size)
{
    count_differently();
    uf_stats before = derive();
    uf__counters_reset_accumulated(&core.counters);
    uf_stats after = derive();
    for (size_t i = 0; i < uf_stats_count(); i++) {
        const char *key;
        int64_t value, expected;
        ck_assert(uf_stats_entry(&after, i, &key, &value));
        ck_assert(uf_stats_entry(&before, i, NULL, &expected));
        if (ends_with(key, ".allocated") || ends_with(key, ".freed") ||
            strncmp(key, "num_", 4) == 0) {
            expected = 0;
        }
        ck_assert_msg(value == expected, "%s", key);
    }
}
END_TEST

START_TEST(what_is_counted_after_a_reset_starts_at_nothing)
{
    count_differently();
    uf__counters_reset_accumulated(&core.counters);
    uf__counters_reset_peak(&core.counters);
    uf__counter_increase(&core.counters, UF_COUNTER_ACTIVE, UF_CLASS_LARGE, 3);
    uf__counter_decrease(&core.counters, UF_COUNTER_ACTIVE, UF_CLASS_LARGE, 4);
    uf_stats stats = derive();
    ck_assert_int_eq(stats.active.large_pool.allocated, 3);
    ck_assert_int_eq(stats.active.large_pool.freed, 4);
    ck_assert_int_eq(stats.active.large_pool.current, 3 * 310 - 1);
    ck_assert_int_eq(stats.active.large_pool.peak, 3 * 310 + 3);
}
END_TEST

int main(void)
{
    TCase *arithmetic = tcase_create("arithmetic");
    tcase_add_test(arithmetic, one_statistic_counts_up_down_and_its_peak);
    tcase_add_test(arithmetic, the_peak_of_all_is_not_the_sum_of_the_peaks);
    tcase_add_test(arithmetic, a_single_statistic_counts_by_one);
    TCase *resets = tcase_create("resets");
    tcase_add_test(resets, resetting_peaks_makes_every_peak_the_current_value);
    tcase_add_test(resets, resetting_totals_leaves_current_peak_and_max_split_size);
    tcase_add_test(resets, what_is_counted_after_a_reset_starts_at_nothing);
    Suite *suite = suite_create("counters");
    suite_add_tcase(suite, arithmetic);
    suite_add_tcase(suite, resets);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
