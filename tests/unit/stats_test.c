/* SPDX-License-Identifier: MIT
 *
 * Statistics by key, and what they say about fragmentation. */
#include <unfrag/stats.h>

#include <check.h>
#include <stdlib.h>
#include <string.h>

START_TEST(there_are_122_keys_in_sorted_order)
{
    uf_stats stats = {0};
    const char *previous = "";
    const char *key = NULL;
    int64_t value = 5;
    ck_assert_uint_eq(uf_stats_count(), 122);
    for (size_t i = 0; i < 122; i++) {
        ck_assert(uf_stats_entry(&stats, i, &key, &value));
        ck_assert_msg(strcmp(previous, key) < 0, "%s stands before %s", previous, key);
        ck_assert_int_eq(value, 0);
        previous = key;
    }
    value = 5;
    ck_assert(!uf_stats_entry(&stats, 122, &key, &value));
    ck_assert(!uf_stats_entry(&stats, SIZE_MAX, &key, &value));
    ck_assert_str_eq(key, previous);
    ck_assert_int_eq(value, 5);
    ck_assert(uf_stats_entry(&stats, 0, &key, NULL));
    ck_assert_str_eq(key, "active.all.allocated");
    ck_assert(uf_stats_entry(&stats, 121, &key, NULL));
    ck_assert_str_eq(key, "segment.small_pool.peak");
}
END_TEST

START_TEST(every_key_leads_to_a_number_of_its_own)
{
    uf_stats stats = {0};
    for (size_t i = 0; i < uf_stats_count(); i++) {
        const char *key;
        ck_assert(uf_stats_entry(&stats, i, &key, NULL));
        ck_assert(uf_stats_set(&stats, key, (int64_t)i + 1000));
    }
    for (size_t i = 0; i < uf_stats_count(); i++) {
        const char *key;
        int64_t value;
        ck_assert(uf_stats_entry(&stats, i, &key, &value));
        ck_assert_int_eq(value, (int64_t)i + 1000);
        ck_assert(uf_stats_find(&stats, key, &value));
        ck_assert_int_eq(value, (int64_t)i + 1000);
    }
}
END_TEST

START_TEST(keys_name_the_field_they_say)
{
    uf_stats stats = {0};
    int64_t value = 0;
    stats.allocation.all.current = 1;
    stats.reserved_bytes.large_pool.peak = 2;
    stats.inactive_split_bytes.small_pool.allocated = 3;
    stats.oversize_segments.freed = 4;
    stats.num_sync_all_streams = 5;
    stats.max_split_size = -1;
    ck_assert(uf_stats_find(&stats, "allocation.all.current", &value) && value == 1);
    ck_assert(uf_stats_find(&stats, "reserved_bytes.large_pool.peak", &value) && value == 2);
    ck_assert(uf_stats_find(&stats, "inactive_split_bytes.small_pool.allocated", &value) &&
              value == 3);
    ck_assert(uf_stats_find(&stats, "oversize_segments.freed", &value) && value == 4);
    ck_assert(uf_stats_find(&stats, "num_sync_all_streams", &value) && value == 5);
    ck_assert(uf_stats_find(&stats, "max_split_size", &value) && value == -1);
    value = 9;
    ck_assert(!uf_stats_find(&stats, "allocated.all.current", &value));
    ck_assert(!uf_stats_find(&stats, "", &value));
    ck_assert(!uf_stats_find(&stats, "zzz", &value));
    ck_assert_int_eq(value, 9);
    ck_assert(!uf_stats_set(&stats, "num_oom_rejections", 1));
}
END_TEST

/* 1000 reserved, 600 active, 500 allocated, 450 requested, 150 stuck. */
static uf_stats fragmented_stats(void)
{
    uf_stats stats = {0};
    stats.reserved_bytes.all.current = 1000;
    stats.active_bytes.all.current = 600;
    stats.allocated_bytes.all.current = 500;
    stats.requested_bytes.all.current = 450;
    stats.inactive_split_bytes.all.current = 150;
    return stats;
}

static bool is_near(double a, double b)
{
    return a - b < 1e-12 && b - a < 1e-12;
}

START_TEST(fragmentation_is_told_apart_by_cause)
{
    uf_stats stats = fragmented_stats();
    uf_fragmentation result;
    ck_assert_int_eq(uf_fragmentation_compute(&stats, 250, 0.0, &result, NULL), UF_OK);
    ck_assert_int_eq(result.reserved_bytes, 1000);
    ck_assert_int_eq(result.cached_bytes, 400);
    ck_assert(is_near(result.cached_share, 0.4));
    ck_assert_int_eq(result.stuck_bytes, 150);
    ck_assert(is_near(result.stuck_share, 0.15));
    ck_assert_int_eq(result.rounding_bytes, 150);
    ck_assert(is_near(result.rounding_share, 0.25));
    ck_assert_int_eq(result.waiting_bytes, 100);
    ck_assert_uint_eq(result.largest_request_bytes, 250);
    ck_assert_int_eq(result.fragmented_bytes, 150);
    ck_assert(is_near(result.fragmented_share, 0.15));
    ck_assert(is_near(result.alarm_share, 0.30));
    ck_assert(!result.is_alarm);
}
END_TEST

START_TEST(the_alarm_rings_from_its_share_of_reserved_on)
{
    uf_stats stats = fragmented_stats();
    uf_fragmentation result;
    ck_assert_int_eq(uf_fragmentation_compute(&stats, 101, 0.0, &result, NULL), UF_OK);
    ck_assert(!result.is_alarm);
    ck_assert_int_eq(uf_fragmentation_compute(&stats, 100, 0.0, &result, NULL), UF_OK);
    ck_assert(result.is_alarm);
    ck_assert_int_eq(uf_fragmentation_compute(&stats, 100, 0.31, &result, NULL), UF_OK);
    ck_assert(!result.is_alarm);
    /* Not known: all of the cache counts. */
    ck_assert_int_eq(uf_fragmentation_compute(&stats, 0, 0.4, &result, NULL), UF_OK);
    ck_assert(result.is_alarm);
    ck_assert_int_eq(result.fragmented_bytes, 400);
}
END_TEST

START_TEST(a_cache_in_one_piece_is_not_fragmented)
{
    uf_stats stats = fragmented_stats();
    uf_fragmentation result;
    ck_assert_int_eq(uf_fragmentation_compute(&stats, 400, 0.0, &result, NULL), UF_OK);
    ck_assert_int_eq(result.fragmented_bytes, 0);
    ck_assert_int_eq(uf_fragmentation_compute(&stats, UINT64_MAX, 0.0, &result, NULL), UF_OK);
    ck_assert_int_eq(result.fragmented_bytes, 0);
    ck_assert(!result.is_alarm);
    memset(&stats, 0, sizeof stats);
    ck_assert_int_eq(uf_fragmentation_compute(&stats, 0, 0.0, &result, NULL), UF_OK);
    ck_assert(result.cached_share == 0.0 && result.rounding_share == 0.0 && !result.is_alarm);
}
END_TEST

START_TEST(impossible_statistics_and_shares_are_refused)
{
    uf_fragmentation result = {.reserved_bytes = 7};
    static const double shares[] = {-0.1, 1.1, 0.0 / 0.0, 1.0 / 0.0};
    uf_stats stats = fragmented_stats();
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        ck_assert_int_eq(uf_fragmentation_compute(&stats, 0, shares[i], &result, NULL),
                         UF_ERROR_INVALID_ARGUMENT);
    }
    stats.requested_bytes.all.current = 601;
    ck_assert_int_eq(uf_fragmentation_compute(&stats, 0, 0.0, &result, NULL),
                     UF_ERROR_INVALID_ARGUMENT);
    stats = fragmented_stats();
    stats.active_bytes.all.current = 1001;
    ck_assert_int_eq(uf_fragmentation_compute(&stats, 0, 0.0, &result, NULL),
                     UF_ERROR_INVALID_ARGUMENT);
    stats = fragmented_stats();
    stats.inactive_split_bytes.all.current = -1;
    ck_assert_int_eq(uf_fragmentation_compute(&stats, 0, 0.0, &result, NULL),
                     UF_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(result.reserved_bytes, 7);
}
END_TEST

int main(void)
{
    TCase *keys = tcase_create("keys");
    tcase_add_test(keys, there_are_122_keys_in_sorted_order);
    tcase_add_test(keys, every_key_leads_to_a_number_of_its_own);
    tcase_add_test(keys, keys_name_the_field_they_say);
    TCase *fragmentation = tcase_create("fragmentation");
    tcase_add_test(fragmentation, fragmentation_is_told_apart_by_cause);
    tcase_add_test(fragmentation, the_alarm_rings_from_its_share_of_reserved_on);
    tcase_add_test(fragmentation, a_cache_in_one_piece_is_not_fragmented);
    tcase_add_test(fragmentation, impossible_statistics_and_shares_are_refused);
    Suite *suite = suite_create("stats");
    suite_add_tcase(suite, keys);
    suite_add_tcase(suite, fragmentation);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
