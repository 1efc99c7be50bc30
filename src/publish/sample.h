/* SPDX-License-Identifier: MIT
 *
 * Fills a page with the numbers of an allocator, at one instant. The counters are a copy; counting
 * rows walks all blocks, so a sampler does that rarely enough to hold the allocator's lock for no
 * more than 1/200 of the time. Guarded by whoever owns the sampler. */
#ifndef UF_PUBLISH_SAMPLE_H
#define UF_PUBLISH_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include <unfrag/monitor.h>

#include "alloc/allocator.h"

typedef struct uf_sampler {
    uf_monitor_pool_row *pools; /* by the core's index */
    uf_monitor_stream_row *streams;
    uint32_t pool_count, pool_capacity, stream_count, stream_capacity;
    int64_t next_rows_ns;    /* not before this */
    int64_t next_history_ns; /* not before this */
} uf_sampler;

void uf__sampler_fini(uf_sampler *sampler);

/* Writes what the page says after `command`, but for publish_count and interval_ns; also policy and
 * device_index. The page keeps rows and history from before. is_forced: rows are counted whatever
 * that costs. Returns UF_OK; UF_ERROR_BUSY from inside the allocator's callback. */
uf_status uf__sampler_take(uf_sampler *sampler, uf_allocator *allocator, bool is_forced,
                           uf_monitor_page *page, uf_error *error) UF_MUST_USE;

#endif
