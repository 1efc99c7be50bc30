/* SPDX-License-Identifier: MIT
 *
 * Four levels of memory over the events of a recording, in buckets of equally many events. Each
 * bucket keeps the least and the most of each level, so that no peak is lost however far it is
 * thinned out. Owns its arrays; not thread-safe. */
#ifndef UF_REPORT_TIMELINE_H
#define UF_REPORT_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#include <unfrag/status.h>

typedef enum uf_level {
    UF_LEVEL_LIVE,      /* requested bytes of active blocks, each rounded up to 512 */
    UF_LEVEL_ALLOCATED, /* block sizes */
    UF_LEVEL_ACTIVE,    /* and blocks that wait for another stream */
    UF_LEVEL_RESERVED,  /* held from the driver */
    UF_LEVEL_COUNT
} uf_level;

typedef struct uf_timeline {
    uint64_t event_count;
    uint64_t bucket_events; /* events of each bucket; the last may have fewer */
    uint32_t bucket_count;
    uint64_t *least[UF_LEVEL_COUNT], *most[UF_LEVEL_COUNT]; /* by bucket */
    int64_t *time_us;      /* of each bucket's first event; UF_TIME_UNKNOWN where not recorded */
    uint64_t *alloc_count; /* allocations before each bucket: what two recordings have in common */
} uf_timeline;

/* At most bucket_limit buckets. UF_OK or UF_ERROR_HOST_MEMORY; fini in any case. */
uf_status uf__timeline_init(uf_timeline *timeline, uint64_t event_count,
                            uint32_t bucket_limit) UF_MUST_USE;
void uf__timeline_fini(uf_timeline *timeline);

/* The levels after an event, and how many allocations came before it; events come in order, each
 * once. */
void uf__timeline_note(uf_timeline *timeline, uint64_t event, int64_t time_us, uint64_t alloc_count,
                       const uint64_t levels[UF_LEVEL_COUNT]);

#endif
