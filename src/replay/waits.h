/* SPDX-License-Identifier: MIT
 *
 * Waits for other streams: where a flush of the model ends frees before the recording saw them
 * done, the program stands still until that work is. Owned by one replay; knows nothing of cores.
 *
 *   free_requested .... flush of the model ............ free_completed, recorded
 *                       |<------- at most this long ----->|                        */
#ifndef UF_REPLAY_WAITS_H
#define UF_REPLAY_WAITS_H

#include <unfrag/replay.h>

typedef struct uf_wait {
    uint64_t event;
    int64_t time_us;
    int64_t length_us; /* the longest of the frees it ended early */
    bool is_early;     /* it did end one */
} uf_wait;

typedef struct uf_waits {
    uint32_t *flush_of; /* by allocation: flushes before its free; NULL until one was put off */
    uf_wait *flushes;
    uint32_t count, capacity;
    uint32_t first;  /* flushes before it are not counted */
    bool is_untimed; /* some time is not known */
} uf_waits;

static inline bool uf__waits_has_any(const uf_waits *waits)
{
    return waits->flush_of != NULL;
}

/* A free waits for another stream. UF_OK or UF_ERROR_HOST_MEMORY. */
uf_status uf__waits_put_off(uf_waits *waits, uint32_t alloc_count, uint32_t id) UF_MUST_USE;

/* A request at an event flushed: all frees that waited are done. As above. */
uf_status uf__waits_flush(uf_waits *waits, uint64_t event, int64_t time_us) UF_MUST_USE;

/* The recording completes a free that a flush has ended already. */
void uf__waits_done(uf_waits *waits, uint32_t id, uint64_t event, int64_t time_us);

/* Into result->stream_wait_* and longest_stream_wait_ms. */
void uf__waits_sum(const uf_waits *waits, uf_replay_result *result);

void uf__waits_fini(uf_waits *waits);

#endif
