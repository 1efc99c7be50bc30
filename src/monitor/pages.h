/* SPDX-License-Identifier: MIT
 *
 * The pages of all processes that can be seen, read at one moment, and what follows from one page
 * alone: its age, rates, alarms. Pages are not believed: every number may be anything. One thread.
 */
#ifndef UF_MONITOR_PAGES_H
#define UF_MONITOR_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <unfrag/monitor.h>
#include <unfrag/stats.h>

typedef enum uf_seen_flag {
    UF_SEEN_STALLED = 1u << 0,    /* not updated for ten seconds or ten intervals */
    UF_SEEN_FRAGMENTED = 1u << 1, /* much is cached that no large request can have */
    UF_SEEN_GROWING = 1u << 2     /* active memory rises and has found no plateau */
} uf_seen_flag;

/* UF_MONITOR_UNKNOWN, or a negative share or rate: not known. */
typedef struct uf_seen {
    uf_monitor_page page;
    unsigned flags;
    int64_t age_ns; /* since the last sample */
    uint64_t reserved_bytes, active_bytes, allocated_bytes, requested_bytes, cached_bytes;
    uint64_t allocation_count, retry_count, oom_count;
    double allocations_per_second;
    double hit_share;        /* of all requests so far */
    double fragmented_share; /* of reserved */
} uf_seen;

typedef struct uf_pages {
    uf_seen *items; /* by pid, then by name */
    size_t count, capacity;
} uf_pages;

/* Reads all pages of living processes. directory: NULL = $UNFRAG_MONITOR_DIR, or else every
 * directory of pages that can be read: this user's, for root everybody's. At most 1024 pages.
 * Returns UF_OK, also if there are none; UF_ERROR_IO (a directory that was named cannot be read);
 * UF_ERROR_HOST_MEMORY. The caller ends *pages with uf__pages_fini; what was in it is reused. */
uf_status uf__pages_read(const char *directory, uf_pages *pages, uf_error *error) UF_MUST_USE;
void uf__pages_fini(uf_pages *pages);

/* Completes what follows from seen->page. now_ns: CLOCK_MONOTONIC. Also makes its texts fit to be
 * shown: valid UTF-8 without control characters. */
void uf__seen_judge(uf_seen *seen, int64_t now_ns);

/* The i-th entry of the page's history, 0 = the oldest. i < page->history_count. */
const uf_monitor_history *uf__page_history(const uf_monitor_page *page, uint32_t i);

#endif
