/* SPDX-License-Identifier: MIT
 *
 * Which processes `top` lists, and in what order. Pure. */
#ifndef CLI_TOP_ORDER_H
#define CLI_TOP_ORDER_H

#include <stdbool.h>
#include <stddef.h>

#include "monitor/pages.h"

#define CLI_TOP_SORT_LIST(X)  \
    X(PID, "pid")             \
    X(RESERVED, "reserved")   \
    X(ACTIVE, "active")       \
    X(ALLOCATED, "allocated") \
    X(LARGEST, "largest")     \
    X(RATE, "rate")           \
    X(HITS, "hits")           \
    X(REMAPS, "remaps")       \
    X(RETRIES, "retries")

typedef enum cli_top_sort {
#define CLI_TOP_SORT_ENUM(name, word) CLI_TOP_SORT_##name,
    CLI_TOP_SORT_LIST(CLI_TOP_SORT_ENUM)
#undef CLI_TOP_SORT_ENUM
        CLI_TOP_SORT_COUNT
} cli_top_sort;

const char *cli_top_sort_name(cli_top_sort sort);
/* CLI_TOP_SORT_COUNT if there is none of that name. */
cli_top_sort cli_top_sort_find(const char *name);

/* Puts the indices of the pages to list into order[pages->count]; returns how many. The largest
 * come first, by pid the smallest; what is not known comes last. filter: part of a command, a pid,
 * a policy or an alarm, in any case of letters; "" = all. */
size_t cli_top_order(const uf_pages *pages, cli_top_sort sort, bool is_inverted, const char *filter,
                     size_t *order);

#endif
