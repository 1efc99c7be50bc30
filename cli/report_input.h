/* SPDX-License-Identifier: MIT
 *
 * A recording on its way into a report: read, followed, and everything found in it that the page
 * shows. */
#ifndef CLI_REPORT_INPUT_H
#define CLI_REPORT_INPUT_H

#include "report/columns.h"
#include "report/history.h"
#include "report/marks.h"
#include "report/moment.h"
#include "report/settings.h"
#include "report/sites.h"
#include "report/summary.h"
#include "report_options.h"

typedef struct report_input {
    const char *name; /* as on the command line; borrowed */
    uf_trace *trace;
    uf_program *program;  /* NULL: the snapshot has no history */
    uint64_t limit_bytes; /* the limit it was recorded under; 0 = none or unknown */
    uf_history history;
    uf_marks marks;
    uf_moments moments;
    uf_sites sites;
    uf_settings settings;
    uf_columns columns;
    uf_summary summary;
} report_input;

/* Reads a recording and finds everything. What it returns was not told yet, but for warnings, which
 * are on stderr. The caller ends it with report_input_close in any case. */
uf_status report_input_open(const report_options *options, const char *name, report_input *input,
                            uf_error *error) UF_MUST_USE;
void report_input_close(report_input *input);

#endif
