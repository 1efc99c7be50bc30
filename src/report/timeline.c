/* SPDX-License-Identifier: MIT
 *
 * Buckets of the timeline. */
#include "report/timeline.h"

#include <stdlib.h>
#include <string.h>

uf_status uf__timeline_init(uf_timeline *timeline, uint64_t event_count, uint32_t bucket_limit)
{
    memset(timeline, 0, sizeof *timeline);
    timeline->event_count = event_count;
    timeline->bucket_events =
        event_count <= bucket_limit ? 1 : (event_count + bucket_limit - 1) / bucket_limit;
    timeline->bucket_count =
        (uint32_t)((event_count + timeline->bucket_events - 1) / timeline->bucket_events);
    size_t room = timeline->bucket_count + (size_t)1;
    timeline->time_us = calloc(room, sizeof *timeline->time_us);
    timeline->alloc_count = calloc(room, sizeof *timeline->alloc_count);
    bool is_good = timeline->time_us != NULL && timeline->alloc_count != NULL;
    for (int level = 0; level < UF_LEVEL_COUNT; level++) {
        timeline->least[level] = calloc(room, sizeof *timeline->least[level]);
        timeline->most[level] = calloc(room, sizeof *timeline->most[level]);
        is_good = is_good && timeline->least[level] != NULL && timeline->most[level] != NULL;
    }
    return is_good ? UF_OK : UF_ERROR_HOST_MEMORY;
}

void uf__timeline_fini(uf_timeline *timeline)
{
    for (int level = 0; level < UF_LEVEL_COUNT; level++) {
        free(timeline->least[level]);
        free(timeline->most[level]);
    }
    free(timeline->time_us);
    free(timeline->alloc_count);
    memset(timeline, 0, sizeof *timeline);
}

void uf__timeline_note(uf_timeline *timeline, uint64_t event, int64_t time_us, uint64_t alloc_count,
                       const uint64_t levels[UF_LEVEL_COUNT])
{
    uint64_t bucket = event / timeline->bucket_events;
    bool is_first = event % timeline->bucket_events == 0;
    if (is_first) {
        timeline->time_us[bucket] = time_us;
        timeline->alloc_count[bucket] = alloc_count;
    }
    for (int level = 0; level < UF_LEVEL_COUNT; level++) {
        uint64_t *least = &timeline->least[level][bucket], *most = &timeline->most[level][bucket];
        *least = is_first || levels[level] < *least ? levels[level] : *least;
        *most = is_first || levels[level] > *most ? levels[level] : *most;
    }
}
