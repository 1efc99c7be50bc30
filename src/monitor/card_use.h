/* SPDX-License-Identifier: MIT
 *
 * The cards and who holds their memory: processes with a page, and others as the driver tells.
 * What is not told is UF_MONITOR_UNKNOWN. One thread. */
#ifndef UF_MONITOR_CARD_USE_H
#define UF_MONITOR_CARD_USE_H

#include "device/nvml.h"
#include "monitor/pages.h"

typedef struct uf_card_use {
    int32_t index;  /* the driver's; -1 = a card that only pages speak of */
    char name[128]; /* "" = not known */
    char uuid[96];  /* "" = not known */
    uint64_t total_bytes;
    uint64_t taken_bytes;  /* held by anybody, the driver included */
    uint64_t ours_bytes;   /* reserved by processes with a page */
    uint64_t others_bytes; /* held by processes without one */
    uint32_t ours_count, others_count;
} uf_card_use;

typedef struct uf_cards {
    uf_card_use *items;
    size_t count;
} uf_cards;

/* nvml may be NULL: not asked. The caller ends *cards with uf__cards_fini, whatever is returned.
 * UF_OK or UF_ERROR_HOST_MEMORY. */
uf_status uf__cards_count(const uf_nvml *nvml, const uf_pages *pages, uf_cards *cards,
                          uf_error *error) UF_MUST_USE;
void uf__cards_fini(uf_cards *cards);

/* The card a page is on: an index into cards->items, or SIZE_MAX. */
size_t uf__cards_find(const uf_cards *cards, const uf_monitor_page *page);

#endif
