/* SPDX-License-Identifier: MIT
 *
 * The loop of the live view: sample, draw, wait for a key. The terminal is put back whatever ends
 * it; a signal is then raised again, so that who started us sees it. */
#include "top_view.h"

#include <curses.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "interrupt.h"

static volatile sig_atomic_t ending_signal;

static void note_signal(int number)
{
    ending_signal = number;
}

static const int ending_signals[] = {SIGTERM, SIGHUP, SIGQUIT};

enum { ENDING_COUNT = sizeof ending_signals / sizeof ending_signals[0] };

static void catch_signals(struct sigaction before[ENDING_COUNT])
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = note_signal;
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < ENDING_COUNT; i++) {
        (void)sigaction(ending_signals[i], &action, &before[i]);
    }
}

static void release_signals(const struct sigaction before[ENDING_COUNT])
{
    for (int i = 0; i < ENDING_COUNT; i++) {
        (void)sigaction(ending_signals[i], &before[i], NULL);
    }
    if (ending_signal != 0) {
        (void)raise((int)ending_signal);
    }
}

static int64_t now_ms(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The user's own character set: main.c has set one for counting columns. */
static bool is_utf8_terminal(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    const char *terminal = getenv("TERM");
    if (terminal != NULL && strncmp(terminal, "vt", 2) == 0) {
        return false;
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && value[0] != '\0') {
            return strcasestr(value, "utf-8") != NULL || strcasestr(value, "utf8") != NULL;
        }
    }
    return false;
}

static bool start_terminal(cli_top_view *view)
{
    const char *no_color = getenv("NO_COLOR"), *name = getenv("TERM");
    if (name == NULL || name[0] == '\0') {
        return false;
    }
    SCREEN *screen = newterm(NULL, stdout, stdin);
    if (screen == NULL) {
        return false;
    }
    if (tigetstr("cup") == NULL || tigetstr("cup") == (char *)-1) {
        endwin();
        delscreen(screen);
        return false;
    }
    view->is_utf8 = is_utf8_terminal();
    view->has_colors = has_colors() && (no_color == NULL || no_color[0] == '\0');
    cli_top_colors(view);
    cbreak();
    noecho();
    nonl();
    keypad(stdscr, true);
    set_escdelay(25);
    (void)curs_set(0);
    return true;
}

static void take_sample(cli_top_view *view)
{
    uf_error error = {0};
    view->notice[0] = '\0';
    if (cli_top_sample_read(&view->sample, &error) != UF_OK) {
        snprintf(view->notice, sizeof view->notice, "%.*s", (int)sizeof view->notice - 1,
                 error.text);
    }
    if (view->only_pid != 0) {
        cli_top_sample_keep(&view->sample, view->only_pid);
    }
    (void)cli_top_arrange(view);
}

static bool must_end(const cli_top_view *view)
{
    return view->is_quitting || ending_signal != 0 || cli_is_interrupted();
}

/* Handles keys until the time has come for the next sample. */
static void handle_keys(cli_top_view *view, int64_t until_ms)
{
    while (!must_end(view)) {
        int64_t left_ms = until_ms - now_ms();
        if (left_ms <= 0) {
            return;
        }
        timeout((int)(left_ms < 60000 ? left_ms : 60000));
        int key = getch();
        if (key == ERR) {
            continue; /* time is over, or a signal came */
        }
        int64_t interval_ms = view->interval_ms;
        if (key != KEY_RESIZE) {
            cli_top_key(view, key);
        }
        cli_top_draw(view);
        if (view->interval_ms != interval_ms) {
            return;
        }
    }
}

cli_exit cli_top_view_run(cli_top_view *view, uint64_t count, bool *is_possible)
{
    struct sigaction before[ENDING_COUNT];
    catch_signals(before); /* first: curses takes those that nobody has taken */
    *is_possible = start_terminal(view);
    if (!*is_possible) {
        release_signals(before);
        return CLI_EXIT_DONE;
    }
    for (uint64_t i = 0; !must_end(view) && (count == 0 || i < count); i++) {
        int64_t start_ms = now_ms();
        if (!view->is_paused) {
            take_sample(view);
        }
        cli_top_draw(view);
        handle_keys(view, start_ms + view->interval_ms);
    }
    endwin();
    release_signals(before);
    return CLI_EXIT_DONE;
}
