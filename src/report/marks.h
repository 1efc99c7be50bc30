/* SPDX-License-Identifier: MIT
 *
 * What happened besides allocations: requests that failed, and cached memory given back to the
 * driver. Owns its array. */
#ifndef UF_REPORT_MARKS_H
#define UF_REPORT_MARKS_H

#include "report/history.h"

typedef enum uf_mark_kind {
    UF_MARK_OOM,   /* a request failed */
    UF_MARK_RETRY, /* memory was given back, and the request then made again */
    UF_MARK_EMPTY, /* empty_cache, or the end of a pool */
    UF_MARK_KIND_COUNT
} uf_mark_kind;

typedef struct uf_mark {
    uf_mark_kind kind;
    uint32_t event;
    uint64_t bytes;      /* asked for by what failed; else given back */
    uint64_t free_bytes; /* UF_MARK_OOM: free on the device, as recorded */
} uf_mark;

typedef struct uf_marks {
    uf_mark *items; /* in order; at most the limit of each kind, those with most bytes */
    uint32_t count;
    uint64_t counts[UF_MARK_KIND_COUNT]; /* how many there are */
} uf_marks;

/* Finds them in the program's events; keeps up to kind_limit of each kind. UF_OK or
 * UF_ERROR_HOST_MEMORY; fini in any case. */
uf_status uf__marks_init(uf_marks *marks, const uf_history *history,
                         uint32_t kind_limit) UF_MUST_USE;
void uf__marks_fini(uf_marks *marks);

#endif
