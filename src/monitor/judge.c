/* SPDX-License-Identifier: MIT
 *
 * What follows from one page: texts fit to be shown, ages, rates, shares, alarms. Pure. */
#include "monitor/pages.h"

#include <string.h>

static const int64_t SECOND_NS = 1000000000;

/* The length of the character at text if it may be shown, else 0. */
static size_t shown_length(const unsigned char *text)
{
    if (text[0] < 0x80) {
        return text[0] >= 0x20 && text[0] != 0x7F ? 1 : 0;
    }
    size_t length = text[0] >= 0xF0 ? 4 : text[0] >= 0xE0 ? 3 : 2;
    if (text[0] < 0xC2 || text[0] > 0xF4) {
        return 0;
    }
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xC0) != 0x80) {
            return 0;
        }
    }
    bool is_control = text[0] == 0xC2 && text[1] < 0xA0;
    bool is_overlong = (text[0] == 0xE0 && text[1] < 0xA0) || (text[0] == 0xF0 && text[1] < 0x90);
    bool is_surrogate = text[0] == 0xED && text[1] >= 0xA0;
    bool is_too_large = text[0] == 0xF4 && text[1] >= 0x90;
    /* Marks that turn the direction of writing could hide what a line says. */
    bool is_turning = text[0] == 0xE2 && ((text[1] == 0x80 && text[2] >= 0xAA && text[2] <= 0xAE) ||
                                          (text[1] == 0x81 && text[2] >= 0xA6 && text[2] <= 0xA9));
    return is_control || is_overlong || is_surrogate || is_too_large || is_turning ? 0 : length;
}

static void clean_text(char *text)
{
    unsigned char *at = (unsigned char *)text;
    while (*at != '\0') {
        size_t length = shown_length(at);
        if (length == 0) {
            *at = '?';
            length = 1;
        }
        at += length;
    }
}

static uint64_t known(int64_t value)
{
    return value < 0 ? UF_MONITOR_UNKNOWN : (uint64_t)value;
}

const uf_monitor_history *uf__page_history(const uf_monitor_page *page, uint32_t i)
{
    uint32_t first = page->history_count < UF_MONITOR_HISTORY ? 0 : page->history_next;
    return &page->history[(first + i) % UF_MONITOR_HISTORY];
}

/* Against the newest entry of the history that is nearly a second old. */
static double allocation_rate(const uf_seen *seen)
{
    const uf_monitor_page *page = &seen->page;
    for (uint32_t i = page->history_count; i-- > 0;) {
        const uf_monitor_history *entry = uf__page_history(page, i);
        if (entry->time_ns <= 0 || page->updated_ns <= 0 || entry->time_ns > page->updated_ns) {
            return -1.0;
        }
        int64_t elapsed_ns = page->updated_ns - entry->time_ns;
        if (elapsed_ns < SECOND_NS * 9 / 10) {
            continue;
        }
        bool is_counted = seen->allocation_count != UF_MONITOR_UNKNOWN &&
                          entry->allocation_count <= seen->allocation_count;
        return is_counted ? (double)(seen->allocation_count - entry->allocation_count) * 1e9 /
                                (double)elapsed_ns
                          : -1.0;
    }
    return -1.0;
}

static double hit_share(const uf_monitor_page *page)
{
    uint64_t hits = page->cache_hit_count, misses = page->cache_miss_count;
    bool is_known =
        hits != UF_MONITOR_UNKNOWN && misses != UF_MONITOR_UNKNOWN && (hits != 0 || misses != 0);
    return is_known ? (double)hits / ((double)hits + (double)misses) : -1.0;
}

/* Without the largest request, only what is stuck in segments is known not to be of use. Under the
 * unfrag policy cached memory serves any request, wherever it lies. */
static void judge_fragmentation(uf_seen *seen)
{
    const uf_monitor_page *page = &seen->page;
    uf_fragmentation result;
    uint64_t largest = page->largest_request_bytes;
    bool is_known = largest != UF_MONITOR_UNKNOWN;
    seen->fragmented_share = -1.0;
    if (uf_fragmentation_compute(&page->stats, is_known ? largest : 0, 0.0, &result, NULL) !=
            UF_OK ||
        strcmp(page->policy, "unfrag") == 0) {
        return;
    }
    seen->fragmented_share = is_known ? result.fragmented_share : result.stuck_share;
    if (seen->fragmented_share >= UF_FRAGMENTATION_ALARM_SHARE) {
        seen->flags |= UF_SEEN_FRAGMENTED;
    }
}

typedef struct span {
    uint64_t bottom, top;
} span;

/* Active memory over one of `parts` equal parts of the history. */
static span span_of(const uf_monitor_page *page, uint32_t part, uint32_t parts)
{
    span found = {UINT64_MAX, 0};
    uint32_t to = page->history_count * (part + 1) / parts;
    for (uint32_t i = page->history_count * part / parts; i < to; i++) {
        uint64_t bytes = uf__page_history(page, i)->active_bytes;
        found.bottom = bytes < found.bottom ? bytes : found.bottom;
        found.top = bytes > found.top ? bytes : found.top;
    }
    return found;
}

/* Steps of a training loop go up and down. What grows without a plateau has, from each quarter of
 * the history to the next, a higher top and a higher bottom, and rises within the last quarter. */
static bool is_growing(const uf_monitor_page *page)
{
    enum { QUARTERS = 4, ENTRIES_LEAST = 32 };
    const uint64_t growth_least = UINT64_C(16) << 20;
    if (page->history_count < ENTRIES_LEAST) {
        return false;
    }
    const span first = span_of(page, 0, QUARTERS);
    span before = first;
    for (uint32_t quarter = 1; quarter < QUARTERS; quarter++) {
        span now = span_of(page, quarter, QUARTERS);
        if (now.bottom <= before.bottom || now.top <= before.top || now.top > INT64_MAX) {
            return false;
        }
        before = now;
    }
    uint64_t growth = before.bottom - first.bottom;
    return growth >= growth_least && growth >= first.top / 50 &&
           span_of(page, 7, 8).top > span_of(page, 6, 8).top;
}

void uf__seen_judge(uf_seen *seen, int64_t now_ns)
{
    uf_monitor_page *page = &seen->page;
    clean_text(page->policy);
    clean_text(page->device_uuid);
    clean_text(page->device_name);
    clean_text(page->command);
    clean_text(page->conf);
    seen->flags = 0;
    seen->age_ns =
        page->updated_ns > 0 && page->updated_ns < now_ns ? now_ns - page->updated_ns : 0;
    int64_t patience_ns = 10 * SECOND_NS;
    if (page->interval_ns > SECOND_NS) {
        patience_ns = page->interval_ns < INT64_MAX / 10 ? 10 * page->interval_ns : INT64_MAX;
    }
    if (page->interval_ns > 0 && seen->age_ns > patience_ns) {
        seen->flags |= UF_SEEN_STALLED;
    }
    seen->reserved_bytes = known(page->stats.reserved_bytes.all.current);
    seen->active_bytes = known(page->stats.active_bytes.all.current);
    seen->allocated_bytes = known(page->stats.allocated_bytes.all.current);
    seen->requested_bytes = known(page->stats.requested_bytes.all.current);
    bool has_cached =
        seen->active_bytes <= seen->reserved_bytes && seen->reserved_bytes != UF_MONITOR_UNKNOWN;
    seen->cached_bytes =
        has_cached ? seen->reserved_bytes - seen->active_bytes : UF_MONITOR_UNKNOWN;
    seen->allocation_count = known(page->stats.allocation.all.allocated);
    seen->retry_count = known(page->stats.num_alloc_retries);
    seen->oom_count = known(page->stats.num_ooms);
    seen->allocations_per_second = allocation_rate(seen);
    seen->hit_share = hit_share(page);
    judge_fragmentation(seen);
    if (is_growing(page)) {
        seen->flags |= UF_SEEN_GROWING;
    }
}
