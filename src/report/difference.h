/* SPDX-License-Identifier: MIT
 *
 * Two recordings side by side: do they ask for the same, and which part of memory holds more. Owns
 * its array. */
#ifndef UF_REPORT_DIFFERENCE_H
#define UF_REPORT_DIFFERENCE_H

#include "report/moment.h"

/* A part of the memory at each one's peak: the pool of one size class of one stream. */
typedef struct uf_difference_part {
    uint64_t stream;
    uint64_t pool_id[2];
    bool is_small;
    uint64_t reserved_bytes[2], active_bytes[2], segment_count[2]; /* of the first, the second */
} uf_difference_part;

typedef struct uf_difference_report {
    uint64_t request_count[2];
    uint64_t equal_count;      /* requests that both make, one by one from the start */
    bool is_same_program;      /* both make the same requests, all of them */
    uf_difference_part *parts; /* most difference in reserved memory first */
    uint32_t part_count;
} uf_difference_report;

/* peaks: of the moments of each history. UF_OK or UF_ERROR_HOST_MEMORY; fini in any case. */
uf_status uf__difference_init(uf_difference_report *report, const uf_history *const histories[2],
                              const uf_moment *const peaks[2]) UF_MUST_USE;
void uf__difference_fini(uf_difference_report *report);

#endif
