/* SPDX-License-Identifier: MIT
 *
 * A history as columns of numbers, the form in which it travels inside a page. Decides what is left
 * out where there is too much: blocks that are small and short-lived. The page's reader of it is
 * page/data.js; docs/internals/report.md describes the order of the columns. */
#ifndef UF_REPORT_COLUMNS_H
#define UF_REPORT_COLUMNS_H

#include "report/history.h"
#include "report/pack.h"

typedef struct uf_columns {
    uf_pack pack;
    uint64_t span_count;          /* spans that are in it */
    uint64_t skipped_count;       /* that are not */
    uint64_t skipped_bytes_most;  /* the largest block left out */
    uint64_t skipped_events_most; /* the longest life of a block left out, in events */
    uint64_t lane_bytes;          /* height of the map: every address that was ever held, once */
    uint32_t *stacks;             /* the stacks it refers to, by number there; most memory first */
    uint32_t stack_count;
    uint32_t *numbers; /* the other way: by stack of the trace; UF_NONE = left out */
} uf_columns;

/* Keeps up to span_limit spans and stack_limit stacks. UF_OK or UF_ERROR_HOST_MEMORY; fini in any
 * case. */
uf_status uf__columns_init(uf_columns *columns, const uf_history *history, uint64_t span_limit,
                           uint32_t stack_limit) UF_MUST_USE;
void uf__columns_fini(uf_columns *columns);

#endif
