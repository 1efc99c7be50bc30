/* SPDX-License-Identifier: MIT
 *
 * A sample as tables: cards, then processes. */
#include "top_report.h"

#include <inttypes.h>
#include <string.h>

#include "table.h"
#include "top_text.h"

static bool print_cards(const uf_cards *cards, FILE *stream)
{
    cli_table *table = cli_table_create();
    cli_table_column(table, "CARD", CLI_LEFT);
    cli_table_column(table, "NAME", CLI_LEFT);
    cli_table_column(table, "TOTAL", CLI_RIGHT);
    cli_table_column(table, "TAKEN", CLI_RIGHT);
    cli_table_column(table, "WATCHED", CLI_RIGHT);
    cli_table_column(table, "OTHERS", CLI_RIGHT);
    for (size_t i = 0; i < cards->count; i++) {
        const uf_card_use *card = &cards->items[i];
        char text[CLI_TOP_TEXT_CAPACITY];
        cli_table_row(table);
        if (card->index >= 0) {
            cli_table_cell(table, "%" PRId32, card->index);
        } else {
            cli_table_cell(table, "-");
        }
        cli_table_cell(table, "%s", card->name[0] != '\0' ? card->name : "-");
        cli_table_cell(table, "%s", cli_top_size(text, card->total_bytes));
        cli_table_cell(table, "%s", cli_top_size(text, card->taken_bytes));
        cli_table_cell(table, "%s", cli_top_size(text, card->ours_bytes));
        cli_table_cell(table, "%s", cli_top_size(text, card->others_bytes));
    }
    bool is_printed = cli_table_print(table, stream);
    cli_table_destroy(table);
    return is_printed;
}

static void add_process(cli_table *table, const uf_seen *seen)
{
    const uf_monitor_page *page = &seen->page;
    char text[CLI_TOP_TEXT_CAPACITY], alarms[64];
    cli_table_row(table);
    cli_table_cell(table, "%" PRIu32, page->pid);
    cli_table_cell(table, "%" PRId32, page->device_index);
    cli_table_cell(table, "%s", page->policy[0] != '\0' ? page->policy : "-");
    cli_table_cell(table, "%s", cli_top_size(text, seen->reserved_bytes));
    cli_table_cell(table, "%s", cli_top_size(text, seen->active_bytes));
    cli_table_cell(table, "%s", cli_top_size(text, seen->allocated_bytes));
    cli_table_cell(table, "%s", cli_top_size(text, page->largest_allocatable_bytes));
    cli_table_cell(table, "%s", cli_top_rate(text, seen->allocations_per_second));
    cli_table_cell(table, "%s", cli_top_share(text, seen->hit_share));
    cli_table_cell(table, "%s", cli_top_count(text, page->remap_count));
    cli_table_cell(table, "%s", cli_top_count(text, seen->retry_count));
    cli_table_cell(table, "%s", cli_top_count(text, seen->oom_count));
    cli_top_alarms(alarms, seen->flags);
    cli_table_cell(table, "%s", alarms[0] != '\0' ? alarms : "-");
    cli_table_cell(table, "%s", page->command);
}

static bool print_processes(const cli_top_sample *sample, const size_t *order, size_t count,
                            FILE *stream)
{
    static const char *const numbers[] = {"RESERVED", "ACTIVE", "ALLOCATED", "LARGEST", "ALLOC/S",
                                          "HITS",     "REMAPS", "RETRIES",   "OOMS"};
    cli_table *table = cli_table_create();
    cli_table_column(table, "PID", CLI_RIGHT);
    cli_table_column(table, "DEV", CLI_RIGHT);
    cli_table_column(table, "POLICY", CLI_LEFT);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        cli_table_column(table, numbers[i], CLI_RIGHT);
    }
    cli_table_column(table, "ALARM", CLI_LEFT);
    cli_table_column(table, "COMMAND", CLI_LEFT);
    for (size_t i = 0; i < count; i++) {
        add_process(table, &sample->pages.items[order[i]]);
    }
    bool is_printed = cli_table_print(table, stream);
    cli_table_destroy(table);
    return is_printed;
}

cli_exit cli_top_print_table(const cli_top_sample *sample, const size_t *order, size_t count,
                             FILE *stream)
{
    bool is_printed = true;
    if (sample->cards.count > 0) {
        is_printed = print_cards(&sample->cards, stream);
        fputc('\n', stream);
    }
    if (count > 0) {
        is_printed = print_processes(sample, order, count, stream) && is_printed;
    } else {
        fputs("no process to show\n", stream);
    }
    if (!is_printed) {
        uf_error error = {.status = UF_ERROR_HOST_MEMORY};
        strcpy(error.text, "no host memory to print a table");
        return cli_fail("top", &error);
    }
    return CLI_EXIT_DONE;
}
