/* SPDX-License-Identifier: MIT
 *
 * A progress bar on stderr: only on a terminal, only for work of more than a second, and gone when
 * the work is done. One bar at a time. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct cli_progress {
    const char *label; /* borrowed until cli_progress_fini */
    int64_t start_ns;
    int64_t drawn_ns; /* when it was drawn last */
    bool is_terminal;
    bool is_drawn;
} cli_progress;

void cli_progress_init(cli_progress *progress, const char *label);

/* Reports done of total (0 = unknown). The context is a cli_progress: the function fits
 * uf_trace_read_options.progress. Returns false once Ctrl-C was pressed. */
bool cli_progress_update(void *context, uint64_t done, uint64_t total);

/* Removes the bar. */
void cli_progress_fini(cli_progress *progress);

#endif
