/* SPDX-License-Identifier: MIT
 *
 * Draws the progress bar, at most ten times a second. */
#include "progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "interrupt.h"

#define NS_PER_SECOND INT64_C(1000000000)
#define QUIET_NS NS_PER_SECOND
#define REDRAW_NS (NS_PER_SECOND / 10)
#define BAR_WIDTH 30

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

void cli_progress_init(cli_progress *progress, const char *label)
{
    memset(progress, 0, sizeof *progress);
    progress->label = label;
    progress->start_ns = now_ns();
    const char *terminal = getenv("TERM");
    bool is_dumb = terminal == NULL || strcmp(terminal, "dumb") == 0;
    progress->is_terminal = !is_dumb && isatty(STDERR_FILENO) == 1;
}

static void draw(cli_progress *progress, uint64_t done, uint64_t total)
{
    double share = total > 0 ? (double)done / (double)total : 0.0;
    share = share > 1.0 ? 1.0 : share;
    int filled = (int)(share * BAR_WIDTH);
    static const char hashes[] = "##############################";
    if (total > 0) {
        fprintf(stderr, "\r%s [%.*s%*s] %3.0f %%\033[K", progress->label, filled, hashes,
                BAR_WIDTH - filled, "", share * 100.0);
    } else {
        fprintf(stderr, "\r%s %" PRIu64 "\033[K", progress->label, done);
    }
    fflush(stderr);
    progress->is_drawn = true;
}

bool cli_progress_update(void *context, uint64_t done, uint64_t total)
{
    cli_progress *progress = context;
    if (progress->is_terminal) {
        int64_t now = now_ns();
        if (now - progress->start_ns > QUIET_NS && now - progress->drawn_ns > REDRAW_NS) {
            progress->drawn_ns = now;
            draw(progress, done, total);
        }
    }
    return !cli_is_interrupted();
}

void cli_progress_fini(cli_progress *progress)
{
    if (progress->is_drawn) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
        progress->is_drawn = false;
    }
}
