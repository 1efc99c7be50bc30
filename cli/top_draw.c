/* SPDX-License-Identifier: MIT
 *
 * Draws the live view. Works from 80 columns down to whatever there is, without colours, and
 * without characters beyond ASCII; colour never says what no word says. */
#include "top_view.h"

#include <curses.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "top_text.h"

enum { PAIR_ALARM = 1, PAIR_OURS, PAIR_OTHERS, PAIR_HEADING };
enum { WIDE_COLUMNS = 130, NUMBERS_COLUMNS = 78, SPARK_COLUMNS = 24 };

void cli_top_colors(cli_top_view *view)
{
    if (view->has_colors) {
        start_color();
        use_default_colors();
        init_pair(PAIR_ALARM, COLOR_RED, -1);
        init_pair(PAIR_OURS, COLOR_GREEN, -1);
        init_pair(PAIR_OTHERS, COLOR_YELLOW, -1);
        init_pair(PAIR_HEADING, COLOR_CYAN, -1);
    }
}

static attr_t color(const cli_top_view *view, int pair)
{
    return view->has_colors ? (attr_t)COLOR_PAIR(pair) : A_NORMAL;
}

/* A text from column x on, cut at the right edge; characters beyond ASCII only where the terminal
 * has them. */
static void put(const cli_top_view *view, int y, int x, attr_t attributes, const char *text)
{
    wchar_t line[512];
    size_t count = 0, capacity = sizeof line / sizeof line[0];
    int column = x;
    if (y < 0 || y >= LINES) {
        return;
    }
    while (*text != '\0' && count < capacity - 1) {
        wchar_t letter;
        int length = mbtowc(&letter, text, MB_CUR_MAX);
        if (length <= 0 || (length > 1 && !view->is_utf8)) {
            letter = L'?';
            length = length <= 0 ? 1 : length;
        }
        int width = wcwidth(letter);
        if (column + (width > 0 ? width : 0) > COLS) {
            break;
        }
        text += length;
        if (width >= 0) {
            column += width;
            line[count++] = letter;
        }
    }
    attron(attributes);
    mvaddnwstr(y, x, line, (int)count);
    attroff(attributes);
}

static void draw_bar(const cli_top_view *view, int y, int x, int width, const uf_card_use *card)
{
    char bar[256];
    if (width > (int)sizeof bar - 1) {
        width = (int)sizeof bar - 1;
    }
    bool is_known = card->total_bytes != UF_MONITOR_UNKNOWN && card->total_bytes > 0;
    double total = is_known ? (double)card->total_bytes : 1.0;
    double ours = is_known ? (double)card->ours_bytes / total : 0.0;
    double taken = card->taken_bytes != UF_MONITOR_UNKNOWN && is_known
                       ? (double)card->taken_bytes / total
                       : ours;
    ours = ours > 1.0 ? 1.0 : ours;
    taken = taken > 1.0 ? 1.0 : taken < ours ? ours : taken;
    int ours_cells = (int)(ours * width + 0.5), taken_cells = (int)(taken * width + 0.5);
    memset(bar, '|', (size_t)ours_cells);
    bar[ours_cells] = '\0';
    put(view, y, x, color(view, PAIR_OURS) | A_BOLD, bar);
    memset(bar, '#', (size_t)(taken_cells - ours_cells));
    bar[taken_cells - ours_cells] = '\0';
    put(view, y, x + ours_cells, color(view, PAIR_OTHERS), bar);
    memset(bar, ' ', (size_t)(width - taken_cells));
    bar[width - taken_cells] = '\0';
    put(view, y, x + taken_cells, A_NORMAL, bar);
}

/* Returns the next line. */
static int draw_cards(const cli_top_view *view, int y)
{
    enum { NAME_COLUMNS = 18, FIGURES_COLUMNS = 40, BAR_LEAST = 8 };
    for (size_t i = 0; i < view->sample.cards.count && y < LINES - 8; i++, y++) {
        const uf_card_use *card = &view->sample.cards.items[i];
        char line[300], total[CLI_TOP_TEXT_CAPACITY], ours[CLI_TOP_TEXT_CAPACITY];
        char others[CLI_TOP_TEXT_CAPACITY], taken[CLI_TOP_TEXT_CAPACITY], index[16] = "-";
        if (card->index >= 0) {
            snprintf(index, sizeof index, "%" PRId32, card->index);
        }
        snprintf(line, sizeof line, "%2.3s %-*.*s", index, NAME_COLUMNS - 4, NAME_COLUMNS - 4,
                 card->name[0] != '\0' ? card->name : "card");
        put(view, y, 0, A_BOLD, line);
        int width = COLS - NAME_COLUMNS - FIGURES_COLUMNS - 2;
        width = width < BAR_LEAST ? BAR_LEAST : width > 100 ? 100 : width;
        put(view, y, NAME_COLUMNS, A_NORMAL, "[");
        draw_bar(view, y, NAME_COLUMNS + 1, width, card);
        snprintf(line, sizeof line, "] %s of %s, ours %s, others %s",
                 cli_top_size(taken, card->taken_bytes), cli_top_size(total, card->total_bytes),
                 cli_top_size(ours, card->ours_bytes), cli_top_size(others, card->others_bytes));
        put(view, y, NAME_COLUMNS + 1 + width, A_NORMAL, line);
    }
    return y;
}

static const struct {
    const char *heading;
    int width;
    cli_top_sort sort; /* CLI_TOP_SORT_COUNT: not by this */
} columns[] = {
    {"PID", 7, CLI_TOP_SORT_PID},         {"DEV", 3, CLI_TOP_SORT_COUNT},
    {"POLICY", 6, CLI_TOP_SORT_COUNT},    {"RESERV", 7, CLI_TOP_SORT_RESERVED},
    {"ACTIVE", 7, CLI_TOP_SORT_ACTIVE},   {"ALLOC'D", 7, CLI_TOP_SORT_ALLOCATED},
    {"LARGEST", 7, CLI_TOP_SORT_LARGEST}, {"ALLOC/S", 7, CLI_TOP_SORT_RATE},
    {"HITS", 5, CLI_TOP_SORT_HITS},       {"REMAPS", 6, CLI_TOP_SORT_REMAPS},
    {"RETRY", 5, CLI_TOP_SORT_RETRIES},
};

enum { COLUMN_COUNT = sizeof columns / sizeof columns[0] };

static void draw_heading(const cli_top_view *view, int y)
{
    char cell[32], all[512];
    int x = 0;
    memset(all, ' ', sizeof all);
    all[COLS < (int)sizeof all - 1 ? COLS : (int)sizeof all - 1] = '\0';
    put(view, y, 0, A_REVERSE, all);
    for (int i = 0; i < COLUMN_COUNT; i++) {
        bool is_sorted = columns[i].sort == view->sort;
        snprintf(cell, sizeof cell, "%*s", columns[i].width, columns[i].heading);
        put(view, y, x, A_REVERSE | (is_sorted ? A_BOLD | A_UNDERLINE : 0), cell);
        x += columns[i].width + 1;
    }
    if (COLS >= WIDE_COLUMNS) {
        snprintf(cell, sizeof cell, "%-*s", SPARK_COLUMNS, "RESERVED OVER TIME");
        put(view, y, x, A_REVERSE, cell);
        put(view, y, x + SPARK_COLUMNS + 1, A_REVERSE, "COMMAND");
    }
}

static void format_numbers(char line[160], const uf_seen *seen)
{
    const uf_monitor_page *page = &seen->page;
    char text[8][CLI_TOP_TEXT_CAPACITY];
    snprintf(
        line, 160, "%7" PRIu32 " %3" PRId32 " %-6.6s %7s %7s %7s %7s %7s %5s %6s %5s", page->pid,
        page->device_index > 999 || page->device_index < -99 ? -1 : page->device_index,
        page->policy[0] != '\0' ? page->policy : "-", cli_top_size(text[0], seen->reserved_bytes),
        cli_top_size(text[1], seen->active_bytes), cli_top_size(text[2], seen->allocated_bytes),
        cli_top_size(text[3], page->largest_allocatable_bytes),
        cli_top_rate(text[4], seen->allocations_per_second),
        cli_top_share(text[5], seen->hit_share), cli_top_count(text[6], page->remap_count),
        cli_top_count(text[7], seen->retry_count));
}

/* History, alarms, command; from column x on. */
static void draw_tail(const cli_top_view *view, const uf_seen *seen, int y, int x,
                      attr_t attributes)
{
    char spark[3 * SPARK_COLUMNS + 1], alarms[64];
    cli_top_sparkline(spark, SPARK_COLUMNS, view->is_utf8, &seen->page);
    put(view, y, x, attributes, spark);
    x += SPARK_COLUMNS + 1;
    cli_top_alarms(alarms, seen->flags);
    if (alarms[0] != '\0') {
        char word[80];
        snprintf(word, sizeof word, "! %s", alarms);
        put(view, y, x, attributes | color(view, PAIR_ALARM) | A_BOLD, word);
        x += (int)strlen(word) + 2;
    }
    put(view, y, x, attributes, seen->page.command[0] != '\0' ? seen->page.command : "-");
}

static void draw_processes(cli_top_view *view, int y, int end)
{
    int height = COLS >= WIDE_COLUMNS ? 1 : 2;
    view->page_rows = end > y ? (unsigned)((end - y) / height) : 0;
    if (view->count == 0) {
        put(view, y + 1, 2, A_NORMAL,
            view->filter[0] != '\0' ? "no process matches the filter (Esc ends it)"
                                    : "no process is watched: start one with unfrag run, or with "
                                      "uf_monitor_open in C");
        return;
    }
    if (view->selected < view->first_shown) {
        view->first_shown = view->selected;
    }
    if (view->page_rows > 0 && view->selected >= view->first_shown + view->page_rows) {
        view->first_shown = view->selected - view->page_rows + 1;
    }
    for (size_t i = view->first_shown; i < view->count && y + height <= end; i++, y += height) {
        const uf_seen *seen = &view->sample.pages.items[view->order[i]];
        attr_t attributes = i == view->selected ? A_REVERSE : A_NORMAL;
        char line[160];
        format_numbers(line, seen);
        put(view, y, 0, attributes, line);
        if (height == 1) {
            draw_tail(view, seen, y, NUMBERS_COLUMNS, A_NORMAL);
        } else {
            draw_tail(view, seen, y + 1, 12, A_NORMAL);
        }
    }
}

static int draw_detail_head(const cli_top_view *view, const uf_seen *seen, int y)
{
    const uf_monitor_page *page = &seen->page;
    char line[512], a[CLI_TOP_TEXT_CAPACITY], b[CLI_TOP_TEXT_CAPACITY], c[CLI_TOP_TEXT_CAPACITY];
    char d[CLI_TOP_TEXT_CAPACITY], e[CLI_TOP_TEXT_CAPACITY], alarms[64];
    snprintf(line, sizeof line, "%" PRIu32 "  %s", page->pid, page->command);
    put(view, y++, 0, A_BOLD, line);
    snprintf(line, sizeof line, "device %" PRId32 " %s, policy %s, settings %s", page->device_index,
             page->device_name, page->policy, page->conf[0] != '\0' ? page->conf : "none");
    put(view, y++, 0, A_NORMAL, line);
    snprintf(line, sizeof line, "reserved %s  active %s  allocated %s  requested %s  limit %s",
             cli_top_size(a, seen->reserved_bytes), cli_top_size(b, seen->active_bytes),
             cli_top_size(c, seen->allocated_bytes), cli_top_size(d, seen->requested_bytes),
             page->limit_bytes == 0 ? "none" : cli_top_size(e, page->limit_bytes));
    put(view, y++, 0, A_NORMAL, line);
    snprintf(line, sizeof line, "cached %s  frozen %s  largest from cache %s  largest at all %s",
             cli_top_size(a, seen->cached_bytes), cli_top_size(b, page->frozen_bytes),
             cli_top_size(c, page->largest_request_bytes),
             cli_top_size(d, page->largest_allocatable_bytes));
    put(view, y++, 0, A_NORMAL, line);
    snprintf(line, sizeof line, "allocations %s  per second %s  hits %s  misses %s  fragmented %s",
             cli_top_count(a, seen->allocation_count),
             cli_top_rate(b, seen->allocations_per_second), cli_top_share(c, seen->hit_share),
             cli_top_count(d, page->cache_miss_count), cli_top_share(e, seen->fragmented_share));
    put(view, y++, 0, A_NORMAL, line);
    snprintf(line, sizeof line, "remaps %s  retries %s  out of memory %s  sampled %.1f s ago",
             cli_top_count(a, page->remap_count), cli_top_count(b, seen->retry_count),
             cli_top_count(c, seen->oom_count), (double)seen->age_ns / 1e9);
    put(view, y++, 0, A_NORMAL, line);
    cli_top_alarms(alarms, seen->flags);
    if (alarms[0] != '\0') {
        snprintf(line, sizeof line, "! %s", alarms);
        put(view, y++, 0, color(view, PAIR_ALARM) | A_BOLD, line);
    }
    char spark[3 * UF_MONITOR_HISTORY + 1];
    unsigned width =
        COLS - 22 < UF_MONITOR_HISTORY ? (unsigned)(COLS > 30 ? COLS - 22 : 8) : UF_MONITOR_HISTORY;
    cli_top_sparkline(spark, width, view->is_utf8, page);
    put(view, y, 0, A_NORMAL, "reserved over time  ");
    put(view, y++, 20, color(view, PAIR_OURS), spark);
    return y + 1;
}

/* Row number `row` of the detail's two tables as text; false beyond the last. */
static bool detail_row(const uf_monitor_page *page, unsigned row, char line[200], bool *is_heading)
{
    char a[CLI_TOP_TEXT_CAPACITY], b[CLI_TOP_TEXT_CAPACITY], c[CLI_TOP_TEXT_CAPACITY];
    char d[CLI_TOP_TEXT_CAPACITY], name[48];
    *is_heading = row == 0 || row == page->pool_row_count + 2;
    line[0] = '\0';
    if (*is_heading) {
        snprintf(line, 200, "%-22s %8s %8s %8s %9s %8s %7s", row == 0 ? "POOL" : "STREAM", "RESERV",
                 "ACTIVE", "ALLOC'D", "REQUESTED", "SEGMENTS", "BLOCKS");
        return true;
    }
    if (row <= page->pool_row_count) {
        const uf_monitor_pool_row *pool = &page->pools[row - 1];
        snprintf(name, sizeof name, "%" PRIu64 ":%" PRIu64 "%s", pool->id[0], pool->id[1],
                 (pool->flags & UF_MONITOR_POOL_DESTROYED) != 0 ? " (ended)"
                 : (pool->flags & UF_MONITOR_POOL_PRIVATE) != 0 ? " private"
                                                                : " default");
        snprintf(line, 200, "%-22.22s %8s %8s %8s %9s %8" PRIu32 " %7" PRIu32, name,
                 cli_top_size(a, pool->reserved_bytes), cli_top_size(b, pool->active_bytes),
                 cli_top_size(c, pool->allocated_bytes), cli_top_size(d, pool->requested_bytes),
                 pool->segment_count, pool->block_count);
        return true;
    }
    if (row == page->pool_row_count + 1) {
        return true;
    }
    unsigned at = row - page->pool_row_count - 3;
    if (at >= page->stream_row_count) {
        return false;
    }
    const uf_monitor_stream_row *stream = &page->streams[at];
    snprintf(name, sizeof name, "0x%" PRIx64 "%s", stream->stream,
             stream->stream == 0 ? " default" : "");
    snprintf(line, 200, "%-22.22s %8s %8s %8s %9s %8" PRIu32 " %7" PRIu32, name,
             cli_top_size(a, stream->reserved_bytes), cli_top_size(b, stream->active_bytes),
             cli_top_size(c, stream->allocated_bytes), cli_top_size(d, stream->requested_bytes),
             stream->segment_count, stream->block_count);
    return true;
}

static void draw_detail(cli_top_view *view, int y, int end)
{
    const uf_seen *seen = cli_top_selected(view);
    if (seen == NULL) {
        put(view, y + 1, 2, A_NORMAL, "the process has ended (Esc goes back)");
        return;
    }
    y = draw_detail_head(view, seen, y);
    unsigned rows = seen->page.pool_row_count + seen->page.stream_row_count + 3;
    unsigned fit = end > y ? (unsigned)(end - y) : 0;
    view->page_rows = fit;
    if (view->first_row + fit > rows) {
        view->first_row = rows > fit ? rows - fit : 0;
    }
    char line[200];
    bool is_heading;
    for (unsigned row = view->first_row; y < end && detail_row(&seen->page, row, line, &is_heading);
         row++, y++) {
        put(view, y, 0, is_heading ? A_REVERSE : A_NORMAL, line);
    }
}

static void draw_help(const cli_top_view *view, int y)
{
    static const char *const lines[] = {
        "Up Down k j PgUp PgDn Home End   select a process, move in its tables",
        "Enter Right l                    pools, streams and all figures of a process",
        "Esc Left Backspace               back; in the list: end the filter",
        "/ \\ F4                           filter by command, pid, policy or alarm",
        "< > F6                           sort by the column before, after",
        "M  N  P                          sort by reserved, pid, allocations per second",
        "I                                invert the order",
        "Space p Z                        pause",
        "+ -                              sample half as often, twice as often",
        "h ? F1                           this help",
        "q F10 Ctrl-C                     quit",
        "",
        "LARGEST  the largest request that could be served now",
        "HITS     share of all requests that the cache served",
        "RETRY    requests before which the whole cache was given back",
        "card     | watched processes   # all else that the driver counts",
        "! fragmented  much is cached that no large request can have",
        "! growing     active memory keeps rising",
        "! stalled     no news from the process",
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        put(view, y + 1 + (int)i, 2, A_NORMAL, lines[i]);
    }
}

static void draw_title(const cli_top_view *view)
{
    char line[300], alarm_text[48] = "";
    size_t alarms = 0;
    for (size_t i = 0; i < view->sample.pages.count; i++) {
        alarms += view->sample.pages.items[i].flags != 0;
    }
    if (alarms > 0) {
        snprintf(alarm_text, sizeof alarm_text, ", %zu with an alarm", alarms);
    }
    snprintf(line, sizeof line, "unfrag top: %zu of %zu processes%s, every %.3g s, by %s%s%s",
             view->count, view->sample.pages.count, alarm_text, (double)view->interval_ms / 1000.0,
             cli_top_sort_name(view->sort), view->is_inverted ? " inverted" : "",
             view->is_paused ? "  PAUSED" : "");
    put(view, 0, 0, A_BOLD, line);
}

static void draw_foot(const cli_top_view *view)
{
    char line[300];
    if (view->is_typing || (view->filter[0] != '\0' && view->screen == CLI_TOP_LIST)) {
        snprintf(line, sizeof line, "filter: %s%s", view->filter,
                 view->is_typing ? "_   (Enter keeps it, Esc ends it)" : "   (Esc ends it)");
    } else if (view->notice[0] != '\0') {
        snprintf(line, sizeof line, "%s", view->notice);
    } else {
        snprintf(line, sizeof line, "%s",
                 view->screen == CLI_TOP_LIST
                     ? "h help  Enter details  / filter  < > sort  I invert  Space pause  q quit"
                     : "Esc back  h help  Space pause  q quit");
    }
    put(view, LINES - 1, 0, color(view, PAIR_HEADING), line);
}

void cli_top_draw(cli_top_view *view)
{
    erase();
    draw_title(view);
    int y = 1;
    switch (view->screen) {
    case CLI_TOP_LIST:
        y = draw_cards(view, y);
        draw_heading(view, y);
        draw_processes(view, y + 1, LINES - 1);
        break;
    case CLI_TOP_DETAIL:
        draw_detail(view, y, LINES - 1);
        break;
    case CLI_TOP_HELP:
        draw_help(view, y);
        break;
    }
    draw_foot(view);
    refresh();
}
