/* SPDX-License-Identifier: MIT
 *
 * Short texts of the live view, and its order of processes. */
#include "top_text.h"

#include <check.h>
#include <string.h>

#include "../unit/suite.h"
#include "top_order.h"

START_TEST(sizes_take_five_characters)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {{0, "0B"},
                 {999, "999B"},
                 {1000, "0.98K"},
                 {1536, "1.50K"},
                 {UINT64_C(25125558682), "23.4G"},
                 {UINT64_C(140) << 30, "140G"},
                 {UINT64_C(1023) << 30, "1.00T"},
                 {UINT64_C(1) << 62, "4096P"},
                 {UF_MONITOR_UNKNOWN, "-"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[CLI_TOP_TEXT_CAPACITY];
        ck_assert_str_eq(cli_top_size(text, cases[i].bytes), cases[i].text);
    }
}
END_TEST

START_TEST(counts_rates_and_shares_are_short_and_never_rounded_up_to_all)
{
    char text[CLI_TOP_TEXT_CAPACITY];
    ck_assert_str_eq(cli_top_count(text, 17), "17");
    ck_assert_str_eq(cli_top_count(text, 99900), "99.9k");
    ck_assert_str_eq(cli_top_count(text, UF_MONITOR_UNKNOWN), "-");
    ck_assert_str_eq(cli_top_rate(text, 1250000.0), "1.25M");
    ck_assert_str_eq(cli_top_rate(text, -1.0), "-");
    ck_assert_str_eq(cli_top_share(text, 1.0), "100%");
    ck_assert_str_eq(cli_top_share(text, 0.9999), "99%");
    ck_assert_str_eq(cli_top_share(text, 0.126), "13%");
    ck_assert_str_eq(cli_top_share(text, -1.0), "-");
}
END_TEST

START_TEST(alarms_are_words)
{
    char text[64];
    ck_assert_str_eq(cli_top_alarms(text, 0), "");
    ck_assert_str_eq(cli_top_alarms(text, UF_SEEN_FRAGMENTED | UF_SEEN_GROWING | UF_SEEN_STALLED),
                     "fragmented, growing, stalled");
}
END_TEST

START_TEST(a_sparkline_is_scaled_to_its_largest_and_ends_with_now)
{
    static uf_monitor_page page;
    char text[3 * 6 + 1];
    static const uint64_t bytes[] = {0, 50, 100, UF_MONITOR_UNKNOWN, 100};
    for (uint32_t i = 0; i < 5; i++) {
        page.history[i].reserved_bytes = bytes[i];
    }
    page.history_count = page.history_next = 5;
    cli_top_sparkline(text, 6, false, &page);
    ck_assert_str_eq(text, " _=# #");
    cli_top_sparkline(text, 2, true, &page);
    ck_assert_str_eq(text, " █");
}
END_TEST

static uf_seen items[3];
static const uf_pages pages = {.items = items, .count = 3};

static void set_items(void)
{
    static const uint64_t reserved[] = {100, UF_MONITOR_UNKNOWN, 300};
    static const char *const commands[] = {"python Train.py", "server", "python infer.py"};
    for (uint32_t i = 0; i < 3; i++) {
        items[i].page.pid = 10 + i;
        items[i].reserved_bytes = reserved[i];
        strcpy(items[i].page.command, commands[i]);
        strcpy(items[i].page.policy, "torch");
    }
}

START_TEST(the_largest_come_first_and_the_unknown_last)
{
    size_t order[3];
    set_items();
    ck_assert_uint_eq(cli_top_order(&pages, CLI_TOP_SORT_RESERVED, false, "", order), 3);
    ck_assert_uint_eq(order[0], 2);
    ck_assert_uint_eq(order[1], 0);
    ck_assert_uint_eq(order[2], 1);
    ck_assert_uint_eq(cli_top_order(&pages, CLI_TOP_SORT_RESERVED, true, "", order), 3);
    ck_assert_uint_eq(order[0], 0);
    ck_assert_uint_eq(order[2], 1);
    ck_assert_uint_eq(cli_top_order(&pages, CLI_TOP_SORT_PID, false, "", order), 3);
    ck_assert_uint_eq(order[0], 0);
}
END_TEST

START_TEST(a_filter_knows_commands_pids_policies_and_alarms)
{
    size_t order[3];
    set_items();
    ck_assert_uint_eq(cli_top_order(&pages, CLI_TOP_SORT_PID, false, "TRAIN", order), 1);
    ck_assert_uint_eq(cli_top_order(&pages, CLI_TOP_SORT_PID, false, "12", order), 1);
    ck_assert_uint_eq(order[0], 2);
    ck_assert_uint_eq(cli_top_order(&pages, CLI_TOP_SORT_PID, false, "torch", order), 3);
    ck_assert_uint_eq(cli_top_order(&pages, CLI_TOP_SORT_PID, false, "growing", order), 0);
    items[1].flags = UF_SEEN_GROWING;
    ck_assert_uint_eq(cli_top_order(&pages, CLI_TOP_SORT_PID, false, "growing", order), 1);
    items[1].flags = 0;
}
END_TEST

START_TEST(sorts_have_names)
{
    ck_assert_int_eq(cli_top_sort_find("rate"), CLI_TOP_SORT_RATE);
    ck_assert_int_eq(cli_top_sort_find("Rate"), CLI_TOP_SORT_COUNT);
    ck_assert_str_eq(cli_top_sort_name(CLI_TOP_SORT_LARGEST), "largest");
}
END_TEST

int main(void)
{
    return suite_run("top_text", (const TTest *const[]){
                                     sizes_take_five_characters,
                                     counts_rates_and_shares_are_short_and_never_rounded_up_to_all,
                                     alarms_are_words,
                                     a_sparkline_is_scaled_to_its_largest_and_ends_with_now,
                                     the_largest_come_first_and_the_unknown_last,
                                     a_filter_knows_commands_pids_policies_and_alarms,
                                     sorts_have_names,
                                     NULL,
                                 });
}
