/* SPDX-License-Identifier: MIT
 *
 * Requests are compared in order; parts are summed over the segments of the peaks. */
#include "report/difference.h"

#include <stdlib.h>
#include <string.h>

/* The next request at or after an event. */
static uint64_t next_request(const uf_history *history, uint64_t at)
{
    while (at < history->event_count && history->events[at].action != UF_ACTION_ALLOC) {
        at++;
    }
    return at;
}

static void compare_requests(uf_difference_report *report, const uf_history *const histories[2])
{
    uint64_t at[2] = {next_request(histories[0], 0), next_request(histories[1], 0)};
    bool is_equal = true;
    while (at[0] < histories[0]->event_count || at[1] < histories[1]->event_count) {
        bool has_both = at[0] < histories[0]->event_count && at[1] < histories[1]->event_count;
        is_equal = is_equal && has_both &&
                   histories[0]->events[at[0]].size_bytes == histories[1]->events[at[1]].size_bytes;
        report->equal_count += is_equal;
        for (int i = 0; i < 2; i++) {
            if (at[i] < histories[i]->event_count) {
                report->request_count[i]++;
                at[i] = next_request(histories[i], at[i] + 1);
            }
        }
    }
    report->is_same_program = is_equal && report->request_count[0] > 0;
}

static bool is_of(const uf_difference_part *part, const uf_trace_segment *segment)
{
    return part->stream == segment->stream && part->pool_id[0] == segment->pool_id[0] &&
           part->pool_id[1] == segment->pool_id[1] && part->is_small == !segment->is_large;
}

static bool add_segment(uf_difference_report *report, uint32_t *capacity,
                        const uf_trace_segment *segment, int side)
{
    uint32_t i = 0;
    while (i < report->part_count && !is_of(&report->parts[i], segment)) {
        i++;
    }
    if (i == *capacity) {
        uint32_t wanted = *capacity == 0 ? 16 : *capacity * 2;
        uf_difference_part *grown = realloc(report->parts, wanted * sizeof *grown);
        if (grown == NULL) {
            return false;
        }
        report->parts = grown;
        *capacity = wanted;
    }
    uf_difference_part *part = &report->parts[i];
    if (i == report->part_count) {
        *part = (uf_difference_part){.stream = segment->stream,
                                     .pool_id = {segment->pool_id[0], segment->pool_id[1]},
                                     .is_small = !segment->is_large};
        report->part_count++;
    }
    part->reserved_bytes[side] += segment->total_bytes;
    part->active_bytes[side] += segment->active_bytes;
    part->segment_count[side]++;
    return true;
}

static uint64_t distance(const uf_difference_part *part)
{
    return part->reserved_bytes[0] > part->reserved_bytes[1]
               ? part->reserved_bytes[0] - part->reserved_bytes[1]
               : part->reserved_bytes[1] - part->reserved_bytes[0];
}

static int by_distance(const void *a, const void *b)
{
    const uf_difference_part *one = a, *other = b;
    uint64_t here = distance(one), there = distance(other);
    if (here != there) {
        return here > there ? -1 : 1;
    }
    return one->stream != other->stream ? (one->stream < other->stream ? -1 : 1)
                                        : (int)one->is_small - (int)other->is_small;
}

uf_status uf__difference_init(uf_difference_report *report, const uf_history *const histories[2],
                              const uf_moment *const peaks[2])
{
    uint32_t capacity = 0;
    memset(report, 0, sizeof *report);
    compare_requests(report, histories);
    for (int side = 0; side < 2; side++) {
        for (uint32_t i = 0; i < peaks[side]->segment_count; i++) {
            if (!add_segment(report, &capacity, &peaks[side]->segments[i], side)) {
                return UF_ERROR_HOST_MEMORY;
            }
        }
    }
    if (report->part_count > 0) {
        qsort(report->parts, report->part_count, sizeof *report->parts, by_distance);
    }
    return UF_OK;
}

void uf__difference_fini(uf_difference_report *report)
{
    free(report->parts);
    memset(report, 0, sizeof *report);
}
