/* SPDX-License-Identifier: MIT
 *
 * The live view of `top`: its state, which top_keys.c changes and top_draw.c shows. The terminal is
 * curses'; one thread. */
#ifndef CLI_TOP_VIEW_H
#define CLI_TOP_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "exit_code.h"
#include "top_order.h"
#include "top_sample.h"

typedef enum cli_top_screen { CLI_TOP_LIST, CLI_TOP_DETAIL, CLI_TOP_HELP } cli_top_screen;

#define CLI_TOP_FILTER_CAPACITY 64

typedef struct cli_top_view {
    cli_top_sample sample;
    size_t *order; /* indices of the pages that are listed */
    size_t count, order_capacity;
    cli_top_sort sort;
    bool is_inverted, is_paused, is_typing, is_quitting;
    bool is_utf8, has_colors;
    cli_top_screen screen;
    char filter[CLI_TOP_FILTER_CAPACITY];
    size_t selected; /* into order */
    uint32_t selected_pid;
    int64_t selected_opened_ns;
    size_t first_shown; /* into order */
    unsigned first_row; /* of the detail's tables */
    unsigned page_rows; /* how many processes fit; set by drawing */
    uint32_t only_pid;  /* 0 = all */
    int64_t interval_ms;
    char notice[200]; /* why the last sample could not be read */
} cli_top_view;

/* Runs until the user quits, or count samples were shown (0 = without end), or a signal ends it.
 * The view's options are set; the rest is 0. *is_possible: false if this terminal has no way to
 * place the cursor; nothing was done then. */
cli_exit cli_top_view_run(cli_top_view *view, uint64_t count, bool *is_possible);

/* top_keys.c */
void cli_top_key(cli_top_view *view, int key);
/* Finds the selected process again, and what is listed; false if the host has no memory. */
bool cli_top_arrange(cli_top_view *view);
/* The selected process, NULL if there is none. */
const uf_seen *cli_top_selected(const cli_top_view *view);

/* top_draw.c */
void cli_top_draw(cli_top_view *view);
void cli_top_colors(cli_top_view *view);

#endif
