/* SPDX-License-Identifier: MIT
 *
 * Numbers as short texts. */
#include "top_text.h"

#include <stdio.h>
#include <string.h>

static const char *scaled(char text[CLI_TOP_TEXT_CAPACITY], double value, double step,
                          const char *const units[6])
{
    int unit = 0;
    while (value >= 999.5 && unit < 5) {
        value /= step;
        unit++;
    }
    int digits = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
    snprintf(text, CLI_TOP_TEXT_CAPACITY, "%.*f%s", digits, value, units[unit]);
    return text;
}

static const char *unknown(char text[CLI_TOP_TEXT_CAPACITY])
{
    return strcpy(text, "-");
}

const char *cli_top_size(char text[CLI_TOP_TEXT_CAPACITY], uint64_t bytes)
{
    static const char *const units[6] = {"B", "K", "M", "G", "T", "P"};
    return bytes == UF_MONITOR_UNKNOWN ? unknown(text) : scaled(text, (double)bytes, 1024, units);
}

const char *cli_top_count(char text[CLI_TOP_TEXT_CAPACITY], uint64_t count)
{
    return count == UF_MONITOR_UNKNOWN ? unknown(text) : cli_top_rate(text, (double)count);
}

const char *cli_top_rate(char text[CLI_TOP_TEXT_CAPACITY], double rate)
{
    static const char *const units[6] = {"", "k", "M", "G", "T", "P"};
    return rate < 0.0 ? unknown(text) : scaled(text, rate, 1000, units);
}

const char *cli_top_share(char text[CLI_TOP_TEXT_CAPACITY], double share)
{
    if (share < 0.0) {
        return unknown(text);
    }
    int percent = (int)(share * 100.0 + 0.5);
    snprintf(text, CLI_TOP_TEXT_CAPACITY, "%d%%", percent >= 100 && share < 1.0 ? 99 : percent);
    return text;
}

const char *cli_top_alarms(char text[64], unsigned flags)
{
    static const struct {
        unsigned flag;
        const char *word;
    } words[] = {{UF_SEEN_FRAGMENTED, "fragmented"},
                 {UF_SEEN_GROWING, "growing"},
                 {UF_SEEN_STALLED, "stalled"}};
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if ((flags & words[i].flag) != 0) {
            length += (size_t)snprintf(text + length, 64 - length, "%s%s", length > 0 ? ", " : "",
                                       words[i].word);
        }
    }
    return text;
}

void cli_top_sparkline(char *text, unsigned width, bool is_utf8, const uf_monitor_page *page)
{
    static const char *const blocks[8] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const letters[8] = {"_", ".", ":", "-", "=", "+", "*", "#"};
    uint32_t count = page->history_count < width ? page->history_count : width;
    uint32_t first = page->history_count - count;
    uint64_t most = 1;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t bytes = uf__page_history(page, first + i)->reserved_bytes;
        most = bytes > most && bytes != UF_MONITOR_UNKNOWN ? bytes : most;
    }
    memset(text, ' ', width - count);
    text[width - count] = '\0';
    char *end = text + (width - count);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t bytes = uf__page_history(page, first + i)->reserved_bytes;
        double share = (double)bytes / (double)most;
        int level = share >= 1.0 ? 7 : (int)(share * 8.0);
        const char *bar = bytes == UF_MONITOR_UNKNOWN ? " "
                          : is_utf8                   ? blocks[level]
                                                      : letters[level];
        end = stpcpy(end, bar);
    }
}
