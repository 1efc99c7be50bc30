/* SPDX-License-Identifier: MIT
 *
 * Adds pages to cards. A page names its card by uuid; a number alone means nothing, because
 * CUDA_VISIBLE_DEVICES renumbers, unless there is only one card. */
#include "monitor/card_use.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static void copy_nvml(uf_card_use *card, const uf_nvml_card *from, int32_t index)
{
    *card = (uf_card_use){.index = index,
                          .total_bytes = UF_MONITOR_UNKNOWN,
                          .taken_bytes = UF_MONITOR_UNKNOWN,
                          .others_bytes = UF_MONITOR_UNKNOWN};
    if ((from->valid & UF_NVML_HAS_NAME) != 0) {
        snprintf(card->name, sizeof card->name, "%s", from->name);
    }
    if ((from->valid & UF_NVML_HAS_UUID) != 0) {
        snprintf(card->uuid, sizeof card->uuid, "%s", from->uuid);
    }
    if ((from->valid & UF_NVML_HAS_MEMORY) != 0) {
        card->total_bytes = from->total_bytes;
        if (from->free_bytes <= from->total_bytes) {
            card->taken_bytes = from->total_bytes - from->free_bytes;
        }
    }
}

size_t uf__cards_find(const uf_cards *cards, const uf_monitor_page *page)
{
    size_t driver_count = 0, only = SIZE_MAX;
    for (size_t i = 0; i < cards->count; i++) {
        const uf_card_use *card = &cards->items[i];
        if (page->device_uuid[0] != '\0' && strcmp(card->uuid, page->device_uuid) == 0) {
            return i;
        }
        if (card->index >= 0) {
            driver_count++;
            only = i;
        }
    }
    if (page->device_uuid[0] == '\0' && driver_count == 1) {
        return only;
    }
    for (size_t i = 0; i < cards->count && page->device_uuid[0] == '\0'; i++) {
        const uf_card_use *card = &cards->items[i];
        if (card->index < 0 && card->uuid[0] == '\0' &&
            strcmp(card->name, page->device_name) == 0 &&
            card->total_bytes == page->device_total_bytes) {
            return i;
        }
    }
    return SIZE_MAX;
}

static void add_page_card(uf_cards *cards, const uf_monitor_page *page)
{
    uf_card_use *card = &cards->items[cards->count++];
    *card = (uf_card_use){.index = -1,
                          .total_bytes = page->device_total_bytes,
                          .taken_bytes = UF_MONITOR_UNKNOWN,
                          .others_bytes = UF_MONITOR_UNKNOWN};
    snprintf(card->name, sizeof card->name, "%s", page->device_name);
    snprintf(card->uuid, sizeof card->uuid, "%s", page->device_uuid);
}

/* Without the driver's word the newest page's has to do. */
static void add_page(uf_card_use *card, const uf_seen *seen)
{
    if (seen->reserved_bytes != UF_MONITOR_UNKNOWN &&
        card->ours_bytes <= UINT64_MAX - 1 - seen->reserved_bytes) {
        card->ours_bytes += seen->reserved_bytes;
    }
    card->ours_count++;
    if (card->index < 0 && seen->page.device_free_bytes <= card->total_bytes &&
        card->total_bytes != UF_MONITOR_UNKNOWN) {
        card->taken_bytes = card->total_bytes - seen->page.device_free_bytes;
    }
}

static bool has_page(const uf_pages *pages, uint32_t pid)
{
    for (size_t i = 0; i < pages->count; i++) {
        if (pages->items[i].page.pid == pid) {
            return true;
        }
    }
    return false;
}

static void count_others(uf_card_use *card, const uf_nvml_card *from, const uf_pages *pages)
{
    if ((from->valid & UF_NVML_HAS_PROCESSES) == 0) {
        return;
    }
    uint64_t bytes = 0;
    bool is_known = true;
    for (size_t i = 0; i < from->process_count; i++) {
        const uf_nvml_process *process = &from->processes[i];
        if (!has_page(pages, process->pid)) {
            card->others_count++;
            is_known = is_known && process->has_bytes;
            bytes += process->bytes;
        }
    }
    card->others_bytes = is_known ? bytes : UF_MONITOR_UNKNOWN;
}

uf_status uf__cards_count(const uf_nvml *nvml, const uf_pages *pages, uf_cards *cards,
                          uf_error *error)
{
    size_t driver_count = nvml != NULL ? nvml->card_count : 0;
    *cards = (uf_cards){.items = calloc(driver_count + pages->count + 1, sizeof *cards->items)};
    if (cards->items == NULL) {
        return uf__error_set(error, UF_ERROR_HOST_MEMORY, "no host memory to list cards");
    }
    for (size_t i = 0; i < driver_count; i++) {
        copy_nvml(&cards->items[i], &nvml->cards[i], (int32_t)i);
        count_others(&cards->items[i], &nvml->cards[i], pages);
    }
    cards->count = driver_count;
    for (size_t i = 0; i < pages->count; i++) {
        size_t at = uf__cards_find(cards, &pages->items[i].page);
        if (at == SIZE_MAX) {
            at = cards->count;
            add_page_card(cards, &pages->items[i].page);
        }
        add_page(&cards->items[at], &pages->items[i]);
    }
    return UF_OK;
}

void uf__cards_fini(uf_cards *cards)
{
    free(cards->items);
    *cards = (uf_cards){0};
}
