/* SPDX-License-Identifier: MIT
 *
 * A report in a few plain sentences: what happened, what was lost, why it failed, what to do. Pure
 * functions of what was found; the sentences on failures are those of `explain`. */
#ifndef UF_REPORT_SUMMARY_H
#define UF_REPORT_SUMMARY_H

#include "report/moment.h"
#include "report/settings.h"

#define UF_SUMMARY_TEXT 480
#define UF_SUMMARY_LINES 12

typedef struct uf_summary {
    char headline[UF_SUMMARY_TEXT];
    char points[UF_SUMMARY_LINES][UF_SUMMARY_TEXT];
    uint32_t point_count;
    char advice[UF_SUMMARY_LINES][UF_SUMMARY_TEXT];
    uint32_t advice_count;
    uint64_t lost_bytes; /* peak reserved - peak live */
} uf_summary;

typedef struct uf_summary_request {
    const uf_history *history;
    const uf_marks *marks;
    const uf_moments *moments;
    const uf_settings *settings;
    uint64_t limit_bytes; /* 0 = none or unknown */
} uf_summary_request;

void uf__summary_make(const uf_summary_request *request, uf_summary *summary);

#endif
