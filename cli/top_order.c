/* SPDX-License-Identifier: MIT
 *
 * Sorting and filtering. Insertion sort: there are a few processes, and the order is stable. */
#include "top_order.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "top_text.h"

static const char *const sort_names[CLI_TOP_SORT_COUNT] = {
#define CLI_TOP_SORT_NAME(name, word) [CLI_TOP_SORT_##name] = word,
    CLI_TOP_SORT_LIST(CLI_TOP_SORT_NAME)
#undef CLI_TOP_SORT_NAME
};

const char *cli_top_sort_name(cli_top_sort sort)
{
    return sort_names[sort];
}

cli_top_sort cli_top_sort_find(const char *name)
{
    int i = 0;
    while (i < CLI_TOP_SORT_COUNT && strcmp(sort_names[i], name) != 0) {
        i++;
    }
    return (cli_top_sort)i;
}

static double number(uint64_t value)
{
    return value == UF_MONITOR_UNKNOWN ? -1.0 : (double)value;
}

/* Larger comes first; negative = not known. */
static double sort_value(const uf_seen *seen, cli_top_sort sort)
{
    switch (sort) {
    case CLI_TOP_SORT_RESERVED:
        return number(seen->reserved_bytes);
    case CLI_TOP_SORT_ACTIVE:
        return number(seen->active_bytes);
    case CLI_TOP_SORT_ALLOCATED:
        return number(seen->allocated_bytes);
    case CLI_TOP_SORT_LARGEST:
        return number(seen->page.largest_allocatable_bytes);
    case CLI_TOP_SORT_RATE:
        return seen->allocations_per_second;
    case CLI_TOP_SORT_HITS:
        return seen->hit_share;
    case CLI_TOP_SORT_REMAPS:
        return number(seen->page.remap_count);
    case CLI_TOP_SORT_RETRIES:
        return number(seen->retry_count);
    case CLI_TOP_SORT_PID:
    default:
        return (double)UINT32_MAX - (double)seen->page.pid;
    }
}

static bool comes_before(const uf_seen *a, const uf_seen *b, cli_top_sort sort, bool is_inverted)
{
    double of_a = sort_value(a, sort), of_b = sort_value(b, sort);
    if ((of_a < 0.0) != (of_b < 0.0)) {
        return of_b < 0.0;
    }
    return is_inverted ? of_a < of_b : of_a > of_b;
}

static bool is_listed(const uf_seen *seen, const char *filter)
{
    char pid[16], alarms[64];
    snprintf(pid, sizeof pid, "%" PRIu32, seen->page.pid);
    return filter[0] == '\0' || strcasestr(seen->page.command, filter) != NULL ||
           strcmp(pid, filter) == 0 || strcasestr(seen->page.policy, filter) != NULL ||
           strcasestr(cli_top_alarms(alarms, seen->flags), filter) != NULL;
}

size_t cli_top_order(const uf_pages *pages, cli_top_sort sort, bool is_inverted, const char *filter,
                     size_t *order)
{
    size_t count = 0;
    for (size_t i = 0; i < pages->count; i++) {
        if (!is_listed(&pages->items[i], filter)) {
            continue;
        }
        size_t at = count++;
        while (at > 0 &&
               comes_before(&pages->items[i], &pages->items[order[at - 1]], sort, is_inverted)) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = i;
    }
    return count;
}
