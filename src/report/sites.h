/* SPDX-License-Identifier: MIT
 *
 * Where memory is allocated: the recorded call stacks, by what they held when most was live. Owns
 * its array. */
#ifndef UF_REPORT_SITES_H
#define UF_REPORT_SITES_H

#include "report/history.h"

typedef struct uf_report_site {
    uint32_t stack;                    /* in trace.stacks */
    uint64_t peak_bytes, peak_count;   /* block sizes, and blocks, when most was live */
    uint64_t alloc_bytes, alloc_count; /* over the whole recording */
    uint64_t largest_bytes;
} uf_report_site;

typedef struct uf_sites {
    uf_report_site *items; /* most at the peak first, then most over all */
    uint32_t count;
    uint64_t unknown_peak_bytes; /* of blocks without a stack */
} uf_sites;

/* UF_OK or UF_ERROR_HOST_MEMORY; fini in any case. */
uf_status uf__sites_init(uf_sites *sites, const uf_history *history) UF_MUST_USE;
void uf__sites_fini(uf_sites *sites);

/* The innermost frame of a stack that is not PyTorch's own, else the innermost; NULL if there is
 * none. Borrowed from the trace. */
const uf_frame *uf__sites_frame(const uf_trace *trace, uint32_t stack);

#endif
