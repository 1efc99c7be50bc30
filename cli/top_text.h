/* SPDX-License-Identifier: MIT
 *
 * Numbers of a page as short texts; "-" where they are not known. Pure. */
#ifndef CLI_TOP_TEXT_H
#define CLI_TOP_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "monitor/pages.h"

#define CLI_TOP_TEXT_CAPACITY 32

/* "512B", "1.50G", "23.4G", "140G": binary units, five characters at most. */
const char *cli_top_size(char text[CLI_TOP_TEXT_CAPACITY], uint64_t bytes);
/* "17", "99.9k", "1.25M": decimal, five characters at most. */
const char *cli_top_count(char text[CLI_TOP_TEXT_CAPACITY], uint64_t count);
/* The same of a rate; negative = not known. */
const char *cli_top_rate(char text[CLI_TOP_TEXT_CAPACITY], double rate);
/* "99%"; negative = not known. Never 100% unless it is. */
const char *cli_top_share(char text[CLI_TOP_TEXT_CAPACITY], double share);

/* "fragmented, growing"; "" if nothing is to be said. */
const char *cli_top_alarms(char text[64], unsigned flags);

/* The newest `width` seconds of reserved memory as a row of bars, scaled to their largest; padded
 * with blanks at the left. capacity: at least 3 * width + 1. */
void cli_top_sparkline(char *text, unsigned width, bool is_utf8, const uf_monitor_page *page);

#endif
