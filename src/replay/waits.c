/* SPDX-License-Identifier: MIT
 *
 * Who waited for whom, and how long at most. */
#include "replay/waits.h"

#include <stdlib.h>

uf_status uf__waits_put_off(uf_waits *waits, uint32_t alloc_count, uint32_t id)
{
    if (waits->flush_of == NULL) {
        waits->flush_of = calloc(alloc_count + 1u, sizeof *waits->flush_of);
        if (waits->flush_of == NULL) {
            return UF_ERROR_HOST_MEMORY;
        }
    }
    waits->flush_of[id] = waits->count;
    return UF_OK;
}

uf_status uf__waits_flush(uf_waits *waits, uint64_t event, int64_t time_us)
{
    if (waits->count == waits->capacity) {
        uint32_t capacity = waits->capacity == 0 ? 16 : waits->capacity * 2;
        uf_wait *grown = realloc(waits->flushes, capacity * sizeof *grown);
        if (grown == NULL) {
            return UF_ERROR_HOST_MEMORY;
        }
        waits->flushes = grown;
        waits->capacity = capacity;
    }
    waits->flushes[waits->count++] = (uf_wait){.event = event, .time_us = time_us};
    return UF_OK;
}

void uf__waits_done(uf_waits *waits, uint32_t id, uint64_t event, int64_t time_us)
{
    uint32_t index = waits->flush_of[id];
    if (index >= waits->count || waits->flushes[index].event >= event) {
        return; /* not by a flush, or by one that the recording made, too */
    }
    uf_wait *flush = &waits->flushes[index];
    flush->is_early = true;
    if (time_us == UF_TIME_UNKNOWN || flush->time_us == UF_TIME_UNKNOWN) {
        waits->is_untimed = true;
    } else if (time_us - flush->time_us > flush->length_us) {
        flush->length_us = time_us - flush->time_us;
    }
}

void uf__waits_sum(const uf_waits *waits, uf_replay_result *result)
{
    int64_t sum_us = 0, longest_us = 0;
    for (uint32_t i = waits->first; i < waits->count; i++) {
        const uf_wait *flush = &waits->flushes[i];
        result->stream_wait_count += flush->is_early;
        sum_us += flush->length_us;
        longest_us = flush->length_us > longest_us ? flush->length_us : longest_us;
    }
    result->stream_wait_ms = waits->is_untimed ? -1.0 : (double)sum_us / 1e3;
    result->longest_stream_wait_ms = waits->is_untimed ? -1.0 : (double)longest_us / 1e3;
}

void uf__waits_fini(uf_waits *waits)
{
    free(waits->flush_of);
    free(waits->flushes);
    *waits = (uf_waits){0};
}
