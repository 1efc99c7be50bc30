/* SPDX-License-Identifier: MIT
 *
 * What keys do in the live view: those of htop and nvtop where there is a like. */
#include "top_view.h"

#include <curses.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_ESCAPE = 27, KEY_ASCII_DELETE = 127, INTERVAL_LEAST_MS = 100, INTERVAL_MOST_MS = 60000 };

const uf_seen *cli_top_selected(const cli_top_view *view)
{
    return view->selected < view->count ? &view->sample.pages.items[view->order[view->selected]]
                                        : NULL;
}

static void note_selected(cli_top_view *view)
{
    const uf_seen *seen = cli_top_selected(view);
    if (seen != NULL) {
        view->selected_pid = seen->page.pid;
        view->selected_opened_ns = seen->page.opened_unix_ns;
    }
}

bool cli_top_arrange(cli_top_view *view)
{
    size_t wanted = view->sample.pages.count + 1;
    if (wanted > view->order_capacity) {
        size_t *grown = realloc(view->order, wanted * sizeof *grown);
        if (grown == NULL) {
            return false;
        }
        view->order = grown;
        view->order_capacity = wanted;
    }
    view->count = cli_top_order(&view->sample.pages, view->sort, view->is_inverted, view->filter,
                                view->order);
    for (size_t i = 0; i < view->count; i++) {
        const uf_monitor_page *page = &view->sample.pages.items[view->order[i]].page;
        if (page->pid == view->selected_pid && page->opened_unix_ns == view->selected_opened_ns) {
            view->selected = i;
        }
    }
    if (view->selected >= view->count) {
        view->selected = view->count > 0 ? view->count - 1 : 0;
    }
    note_selected(view);
    return true;
}

static void go(cli_top_view *view, long by)
{
    if (view->screen == CLI_TOP_DETAIL) {
        view->first_row = by < 0 && (unsigned long)-by > view->first_row
                              ? 0
                              : (unsigned)((long)view->first_row + by);
        return;
    }
    long to = (long)view->selected + by, last = view->count > 0 ? (long)view->count - 1 : 0;
    view->selected = (size_t)(to < 0 ? 0 : to > last ? last : to);
    note_selected(view);
}

static void sort_by(cli_top_view *view, cli_top_sort sort)
{
    view->sort = sort;
    (void)cli_top_arrange(view);
}

/* While a filter is typed. */
static void type(cli_top_view *view, int key)
{
    size_t length = strlen(view->filter);
    if (key == '\n' || key == '\r' || key == KEY_ENTER) {
        view->is_typing = false;
    } else if (key == KEY_ESCAPE) {
        view->is_typing = false;
        view->filter[0] = '\0';
    } else if (key == KEY_BACKSPACE || key == KEY_ASCII_DELETE || key == '\b') {
        while (length > 0 && ((unsigned char)view->filter[--length] & 0xC0) == 0x80) {
        }
        view->filter[length] = '\0';
    } else if (key >= ' ' && key < 256 && length + 1 < sizeof view->filter) {
        view->filter[length] = (char)key;
        view->filter[length + 1] = '\0';
    }
    (void)cli_top_arrange(view);
}

static bool movement_key(cli_top_view *view, int key)
{
    long page = view->page_rows > 0 ? (long)view->page_rows : 1;
    switch (key) {
    case KEY_UP:
    case 'k':
        go(view, -1);
        return true;
    case KEY_DOWN:
    case 'j':
        go(view, 1);
        return true;
    case KEY_PPAGE:
        go(view, -page);
        return true;
    case KEY_NPAGE:
        go(view, page);
        return true;
    case KEY_HOME:
    case 'g':
        go(view, -100000);
        return true;
    case KEY_END:
    case 'G':
        go(view, 100000);
        return true;
    default:
        return false;
    }
}

static bool sort_key(cli_top_view *view, int key)
{
    switch (key) {
    case KEY_F(6):
    case '>':
    case '.':
        sort_by(view, (cli_top_sort)((view->sort + 1) % CLI_TOP_SORT_COUNT));
        return true;
    case '<':
    case ',':
        sort_by(view, (cli_top_sort)((view->sort + CLI_TOP_SORT_COUNT - 1) % CLI_TOP_SORT_COUNT));
        return true;
    case 'M':
        sort_by(view, CLI_TOP_SORT_RESERVED);
        return true;
    case 'N':
        sort_by(view, CLI_TOP_SORT_PID);
        return true;
    case 'P':
        sort_by(view, CLI_TOP_SORT_RATE);
        return true;
    case 'I':
        view->is_inverted = !view->is_inverted;
        sort_by(view, view->sort);
        return true;
    default:
        return false;
    }
}

static void leave_screen(cli_top_view *view)
{
    if (view->screen != CLI_TOP_LIST) {
        view->screen = CLI_TOP_LIST;
    } else if (view->filter[0] != '\0') {
        view->filter[0] = '\0';
        (void)cli_top_arrange(view);
    }
}

static void other_key(cli_top_view *view, int key)
{
    switch (key) {
    case KEY_F(1):
    case 'h':
    case '?':
        view->screen = view->screen == CLI_TOP_HELP ? CLI_TOP_LIST : CLI_TOP_HELP;
        break;
    case KEY_F(3):
    case KEY_F(4):
    case '/':
    case '\\':
        view->screen = CLI_TOP_LIST;
        view->is_typing = true;
        break;
    case '\n':
    case '\r':
    case KEY_ENTER:
    case KEY_RIGHT:
    case 'l':
        if (view->screen == CLI_TOP_LIST && view->count > 0) {
            view->screen = CLI_TOP_DETAIL;
            view->first_row = 0;
        }
        break;
    case KEY_ESCAPE:
    case KEY_LEFT:
    case KEY_BACKSPACE:
    case KEY_ASCII_DELETE:
        leave_screen(view);
        break;
    case ' ':
    case 'p':
    case 'Z':
        view->is_paused = !view->is_paused;
        break;
    case '+':
    case '=':
        view->interval_ms =
            view->interval_ms * 2 < INTERVAL_MOST_MS ? view->interval_ms * 2 : INTERVAL_MOST_MS;
        break;
    case '-':
        view->interval_ms =
            view->interval_ms / 2 > INTERVAL_LEAST_MS ? view->interval_ms / 2 : INTERVAL_LEAST_MS;
        break;
    case 'q':
    case 'Q':
    case KEY_F(10):
        view->is_quitting = true;
        break;
    default:
        break;
    }
}

void cli_top_key(cli_top_view *view, int key)
{
    if (view->is_typing) {
        type(view, key);
    } else if (!movement_key(view, key) && !sort_key(view, key)) {
        other_key(view, key);
    }
}
