/* SPDX-License-Identifier: MIT
 *
 * What follows from one page: rates, shares, alarms, texts. */
#include <string.h>

#include "monitor/pages.h"
#include "suite.h"

static const int64_t SECOND = 1000000000;
static const uint64_t MIB = 1 << 20;

static uf_seen seen;

static void begin_page(const char *policy)
{
    memset(&seen, 0, sizeof seen);
    seen.page.updated_ns = 1000 * SECOND;
    seen.page.interval_ns = SECOND / 4;
    strcpy(seen.page.policy, policy);
}

static void note(int64_t time_ns, uint64_t active_bytes, uint64_t allocations)
{
    uf_monitor_page *page = &seen.page;
    page->history[page->history_next] = (uf_monitor_history){
        .time_ns = time_ns, .active_bytes = active_bytes, .allocation_count = allocations};
    page->history_next = (page->history_next + 1) % UF_MONITOR_HISTORY;
    page->history_count += page->history_count < UF_MONITOR_HISTORY;
}

START_TEST(the_rate_is_over_about_a_second_of_history)
{
    begin_page("torch");
    note(997 * SECOND, 0, 0);
    note(998 * SECOND, 0, 1000);
    note(1000 * SECOND - SECOND / 10, 0, 9000);
    seen.page.stats.allocation.all.allocated = 2000;
    uf__seen_judge(&seen, 1000 * SECOND);
    ck_assert_double_eq(seen.allocations_per_second, 500.0);
}
END_TEST

START_TEST(without_history_or_after_a_reset_the_rate_is_not_known)
{
    begin_page("torch");
    uf__seen_judge(&seen, 1000 * SECOND);
    ck_assert_double_lt(seen.allocations_per_second, 0.0);
    note(998 * SECOND, 0, 5000);
    seen.page.stats.allocation.all.allocated = 10;
    uf__seen_judge(&seen, 1000 * SECOND);
    ck_assert_double_lt(seen.allocations_per_second, 0.0);
}
END_TEST

START_TEST(history_that_went_round_is_read_from_its_oldest_entry)
{
    begin_page("torch");
    for (uint64_t i = 0; i < UF_MONITOR_HISTORY + 5; i++) {
        note((int64_t)i + 1, i, i);
    }
    ck_assert_uint_eq(uf__page_history(&seen.page, 0)->active_bytes, 5);
    ck_assert_uint_eq(uf__page_history(&seen.page, UF_MONITOR_HISTORY - 1)->active_bytes,
                      UF_MONITOR_HISTORY + 4);
}
END_TEST

START_TEST(hits_are_a_share_of_all_requests)
{
    begin_page("torch");
    uf__seen_judge(&seen, 0);
    ck_assert_double_lt(seen.hit_share, 0.0);
    seen.page.cache_hit_count = 30;
    seen.page.cache_miss_count = 10;
    uf__seen_judge(&seen, 0);
    ck_assert_double_eq(seen.hit_share, 0.75);
    seen.page.cache_miss_count = UF_MONITOR_UNKNOWN;
    uf__seen_judge(&seen, 0);
    ck_assert_double_lt(seen.hit_share, 0.0);
}
END_TEST

START_TEST(cached_memory_in_small_pieces_is_an_alarm_but_under_the_unfrag_policy)
{
    begin_page("torch");
    seen.page.stats.reserved_bytes.all.current = 1000;
    seen.page.stats.active_bytes.all.current = 500;
    seen.page.stats.allocated_bytes.all.current = 500;
    seen.page.stats.requested_bytes.all.current = 500;
    seen.page.largest_request_bytes = 100;
    uf__seen_judge(&seen, 0);
    ck_assert_double_eq(seen.fragmented_share, 0.4);
    ck_assert_uint_eq(seen.flags, UF_SEEN_FRAGMENTED);
    ck_assert_uint_eq(seen.cached_bytes, 500);
    seen.page.largest_request_bytes = 300;
    uf__seen_judge(&seen, 0);
    ck_assert_uint_eq(seen.flags, 0);
    strcpy(seen.page.policy, "unfrag");
    seen.page.largest_request_bytes = 0;
    uf__seen_judge(&seen, 0);
    ck_assert_uint_eq(seen.flags, 0);
}
END_TEST

START_TEST(where_the_largest_request_is_not_known_only_stuck_bytes_count)
{
    begin_page("stock");
    seen.page.stats.reserved_bytes.all.current = 1000;
    seen.page.largest_request_bytes = UF_MONITOR_UNKNOWN;
    uf__seen_judge(&seen, 0);
    ck_assert_uint_eq(seen.flags, 0);
    seen.page.stats.inactive_split_bytes.all.current = 300;
    uf__seen_judge(&seen, 0);
    ck_assert_uint_eq(seen.flags, UF_SEEN_FRAGMENTED);
}
END_TEST

START_TEST(a_leak_under_a_training_step_is_growth)
{
    begin_page("torch");
    for (uint64_t i = 0; i < 40; i++) {
        note((int64_t)i + 1, (1000 + (i % 2) * 500 + i * 2) * MIB, i);
    }
    uf__seen_judge(&seen, 0);
    ck_assert_uint_eq(seen.flags, UF_SEEN_GROWING);
}
END_TEST

START_TEST(a_plateau_or_a_few_samples_are_no_growth)
{
    begin_page("torch");
    for (uint64_t i = 0; i < 40; i++) {
        note((int64_t)i + 1, (i < 30 ? i * 100 : 3000) * MIB, i);
    }
    uf__seen_judge(&seen, 0);
    ck_assert_uint_eq(seen.flags, 0);
    begin_page("torch");
    for (uint64_t i = 0; i < 31; i++) {
        note((int64_t)i + 1, i * 100 * MIB, i);
    }
    uf__seen_judge(&seen, 0);
    ck_assert_uint_eq(seen.flags, 0);
    begin_page("torch"); /* a step, up and down */
    for (uint64_t i = 0; i < 100; i++) {
        note((int64_t)i + 1, (1000 + (i * 7919 % 500)) * MIB, i);
    }
    uf__seen_judge(&seen, 0);
    ck_assert_uint_eq(seen.flags, 0);
}
END_TEST

START_TEST(no_news_for_ten_seconds_or_ten_intervals_is_stalled)
{
    begin_page("torch");
    uf__seen_judge(&seen, 1010 * SECOND);
    ck_assert_uint_eq(seen.flags, 0);
    uf__seen_judge(&seen, 1010 * SECOND + 1);
    ck_assert_uint_eq(seen.flags, UF_SEEN_STALLED);
    ck_assert_int_eq(seen.age_ns, 10 * SECOND + 1);
    seen.page.interval_ns = 3 * SECOND;
    uf__seen_judge(&seen, 1030 * SECOND);
    ck_assert_uint_eq(seen.flags, 0);
    seen.page.interval_ns = 0; /* when the program likes */
    uf__seen_judge(&seen, 9000 * SECOND);
    ck_assert_uint_eq(seen.flags, 0);
}
END_TEST

START_TEST(texts_lose_what_a_terminal_would_obey)
{
    begin_page("torch");
    strcpy(seen.page.command, "a\033[2Jb\x7f\nc \xc2\x9b"
                              "d \xff \xe2\x80\xae \xed\xa0\x80 \xc3\xa9 \xe2\x82\xac");
    uf__seen_judge(&seen, 0);
    ck_assert_str_eq(seen.page.command, "a?[2Jb??c ??d ? ??? ??? \xc3\xa9 \xe2\x82\xac");
}
END_TEST

START_TEST(a_character_cut_at_the_end_is_no_overrun)
{
    begin_page("torch");
    memset(seen.page.command, 'a', sizeof seen.page.command - 1);
    seen.page.command[sizeof seen.page.command - 2] = '\xe2';
    uf__seen_judge(&seen, 0);
    ck_assert_int_eq(seen.page.command[sizeof seen.page.command - 2], '?');
}
END_TEST

START_TEST(unknown_and_impossible_numbers_are_not_known)
{
    begin_page("stock");
    seen.page.stats.reserved_bytes.all.current = INT64_MIN;
    seen.page.stats.active_bytes.all.current = 5;
    seen.page.stats.num_ooms = -1;
    uf__seen_judge(&seen, 0);
    ck_assert_uint_eq(seen.reserved_bytes, UF_MONITOR_UNKNOWN);
    ck_assert_uint_eq(seen.cached_bytes, UF_MONITOR_UNKNOWN);
    ck_assert_uint_eq(seen.oom_count, UF_MONITOR_UNKNOWN);
    ck_assert_double_lt(seen.fragmented_share, 0.0);
}
END_TEST

int main(void)
{
    return suite_run("judge",
                     (const TTest *const[]){
                         the_rate_is_over_about_a_second_of_history,
                         without_history_or_after_a_reset_the_rate_is_not_known,
                         history_that_went_round_is_read_from_its_oldest_entry,
                         hits_are_a_share_of_all_requests,
                         cached_memory_in_small_pieces_is_an_alarm_but_under_the_unfrag_policy,
                         where_the_largest_request_is_not_known_only_stuck_bytes_count,
                         a_leak_under_a_training_step_is_growth,
                         a_plateau_or_a_few_samples_are_no_growth,
                         no_news_for_ten_seconds_or_ten_intervals_is_stalled,
                         texts_lose_what_a_terminal_would_obey,
                         a_character_cut_at_the_end_is_no_overrun,
                         unknown_and_impossible_numbers_are_not_known,
                         NULL,
                     });
}
