/* SPDX-License-Identifier: MIT
 *
 * Who holds a card's memory: what the driver tells, and what pages tell. */
#include "monitor/card_use.h"

#include <string.h>

#include "suite.h"

static uf_seen items[3];
static uf_pages pages = {.items = items};
static uf_nvml_process processes[3];
static uf_nvml_card driver_cards[2];
static uf_nvml nvml = {.cards = driver_cards};
static uf_cards cards;

static void begin(void)
{
    memset(items, 0, sizeof items);
    memset(driver_cards, 0, sizeof driver_cards);
    memset(processes, 0, sizeof processes);
    pages.count = 0;
    nvml.card_count = 0;
}

static void add_page(uint32_t pid, const char *uuid, uint64_t reserved_bytes)
{
    uf_seen *seen = &items[pages.count++];
    seen->page.pid = pid;
    strcpy(seen->page.device_uuid, uuid);
    seen->reserved_bytes = reserved_bytes;
    seen->page.device_total_bytes = 1000;
    seen->page.device_free_bytes = 700;
}

static void add_card(const char *uuid)
{
    uf_nvml_card *card = &driver_cards[nvml.card_count++];
    card->valid = UF_NVML_HAS_UUID | UF_NVML_HAS_MEMORY | UF_NVML_HAS_PROCESSES;
    strcpy(card->uuid, uuid);
    card->total_bytes = 1000;
    card->free_bytes = 400;
    card->processes = processes;
}

static void count_cards(const uf_nvml *asked)
{
    ck_assert_int_eq(uf__cards_count(asked, &pages, &cards, NULL), UF_OK);
}

START_TEST(pages_are_ours_and_the_drivers_other_processes_are_others)
{
    begin();
    add_card("GPU-a");
    processes[0] = (uf_nvml_process){.pid = 10, .has_bytes = true, .bytes = 300};
    processes[1] = (uf_nvml_process){.pid = 20, .has_bytes = true, .bytes = 120};
    driver_cards[0].process_count = 2;
    add_page(10, "GPU-a", 250);
    add_page(10, "GPU-a", 20);
    count_cards(&nvml);
    ck_assert_uint_eq(cards.count, 1);
    ck_assert_uint_eq(cards.items[0].ours_bytes, 270);
    ck_assert_uint_eq(cards.items[0].others_bytes, 120);
    ck_assert_uint_eq(cards.items[0].taken_bytes, 600);
    ck_assert_uint_eq(cards.items[0].others_count, 1);
    uf__cards_fini(&cards);
}
END_TEST

START_TEST(what_the_driver_does_not_tell_is_not_known)
{
    begin();
    add_card("GPU-a");
    processes[0] = (uf_nvml_process){.pid = 20, .has_bytes = false};
    driver_cards[0].process_count = 1;
    count_cards(&nvml);
    ck_assert_uint_eq(cards.items[0].others_bytes, UF_MONITOR_UNKNOWN);
    uf__cards_fini(&cards);
    driver_cards[0].valid = 0;
    count_cards(&nvml);
    ck_assert_uint_eq(cards.items[0].others_bytes, UF_MONITOR_UNKNOWN);
    ck_assert_uint_eq(cards.items[0].total_bytes, UF_MONITOR_UNKNOWN);
    ck_assert_uint_eq(cards.items[0].taken_bytes, UF_MONITOR_UNKNOWN);
    uf__cards_fini(&cards);
}
END_TEST

START_TEST(without_the_driver_pages_tell_of_their_card)
{
    begin();
    add_page(10, "GPU-a", 250);
    add_page(11, "GPU-b", 100);
    add_page(12, "GPU-a", UF_MONITOR_UNKNOWN);
    count_cards(NULL);
    ck_assert_uint_eq(cards.count, 2);
    ck_assert_int_eq(cards.items[0].index, -1);
    ck_assert_uint_eq(cards.items[0].ours_bytes, 250);
    ck_assert_uint_eq(cards.items[0].ours_count, 2);
    ck_assert_uint_eq(cards.items[0].total_bytes, 1000);
    ck_assert_uint_eq(cards.items[0].taken_bytes, 300);
    ck_assert_uint_eq(cards.items[0].others_bytes, UF_MONITOR_UNKNOWN);
    uf__cards_fini(&cards);
}
END_TEST

START_TEST(a_page_without_a_uuid_is_on_the_only_card_or_on_one_of_its_own)
{
    begin();
    add_card("GPU-a");
    add_page(10, "", 250);
    count_cards(&nvml);
    ck_assert_uint_eq(cards.count, 1);
    ck_assert_uint_eq(cards.items[0].ours_bytes, 250);
    uf__cards_fini(&cards);
    add_card("GPU-b");
    count_cards(&nvml);
    ck_assert_uint_eq(cards.count, 3);
    ck_assert_uint_eq(cards.items[0].ours_bytes, 0);
    ck_assert_int_eq(cards.items[2].index, -1);
    ck_assert_uint_eq(cards.items[2].ours_bytes, 250);
    uf__cards_fini(&cards);
}
END_TEST

int main(void)
{
    return suite_run("card_use", (const TTest *const[]){
                                     pages_are_ours_and_the_drivers_other_processes_are_others,
                                     what_the_driver_does_not_tell_is_not_known,
                                     without_the_driver_pages_tell_of_their_card,
                                     a_page_without_a_uuid_is_on_the_only_card_or_on_one_of_its_own,
                                     NULL,
                                 });
}
