/* SPDX-License-Identifier: MIT
 *
 * What `unfrag explain` shows, as text of one screen or as JSON. Decides nothing. */
#ifndef CLI_EXPLAIN_REPORT_H
#define CLI_EXPLAIN_REPORT_H

#include <stdbool.h>

#include <unfrag/trace.h>

#include "advise/explain.h"

/* All borrowed for the call; log and snapshot may be NULL. */
typedef struct explain_view {
    const char *input;
    const uf_message_log *log;
    const uf_snapshot_state *snapshot;
    const uf_trace *trace; /* of the snapshot */
    const uf_explanation *explanation;
} explain_view;

void explain_report_text(const explain_view *view);
/* Returns false if it could not be written. */
bool explain_report_json(const explain_view *view);

/* The first frame of a block's stack that is not PyTorch's own, else the first; NULL if no stack
 * was recorded. */
const uf_frame *explain_frame(const uf_trace *trace, const uf_trace_block *block);

#endif
