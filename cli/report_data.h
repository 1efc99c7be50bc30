/* SPDX-License-Identifier: MIT
 *
 * The JSON document inside the page, and the one that --json prints. */
#ifndef CLI_REPORT_DATA_H
#define CLI_REPORT_DATA_H

#include "json.h"
#include "report/difference.h"
#include "report_input.h"

typedef struct report_view {
    const report_options *options;
    const report_input *inputs;             /* options->input_count of them */
    const uf_difference_report *difference; /* NULL for one recording */
} report_view;

/* Everything that the page's scripts show besides the columns. */
bool report_data_write(const report_view *view, FILE *stream);

/* The settings as a member of an object. */
void report_settings_write(cli_json *json, const uf_settings *settings);

/* The difference as a member of an object; null for NULL. */
void report_difference_write(cli_json *json, const uf_difference_report *difference);

/* The summary for scripts. output: where the page is, page_bytes: its size. */
bool report_summary_json(const report_view *view, const char *output, uint64_t page_bytes);

/* The summary for people, on stdout. */
void report_summary_text(const report_view *view, const char *output, uint64_t page_bytes);

#endif
