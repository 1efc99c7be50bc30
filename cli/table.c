/* SPDX-License-Identifier: MIT
 *
 * A thin wrapper of libsmartcols: no truncation at the terminal's width, so that a table reads the
 * same everywhere. */
#include "table.h"

#include <inttypes.h>
#include <libsmartcols.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"

struct cli_table {
    struct libscols_table *columns; /* owned */
    struct libscols_line *line;     /* the row being filled; owned by the table */
    size_t next_column_index;
    bool has_failed;
};

cli_table *cli_table_create(void)
{
    cli_table *table = calloc(1, sizeof *table);
    if (table == NULL) {
        return NULL;
    }
    scols_init_debug(0);
    table->columns = scols_new_table();
    if (table->columns == NULL) {
        free(table);
        return NULL;
    }
    scols_table_set_termforce(table->columns, SCOLS_TERMFORCE_NEVER);
    scols_table_set_column_separator(table->columns, "  ");
    return table;
}

void cli_table_destroy(cli_table *table)
{
    if (table != NULL) {
        scols_unref_table(table->columns);
        free(table);
    }
}

void cli_table_column(cli_table *table, const char *heading, cli_align align)
{
    if (table == NULL) {
        return;
    }
    int flags = align == CLI_RIGHT ? SCOLS_FL_RIGHT : 0;
    if (scols_table_new_column(table->columns, heading, 0, flags) == NULL) {
        table->has_failed = true;
    }
}

void cli_table_row(cli_table *table)
{
    if (table == NULL) {
        return;
    }
    table->line = scols_table_new_line(table->columns, NULL);
    table->next_column_index = 0;
    table->has_failed = table->has_failed || table->line == NULL;
}

void cli_table_cell(cli_table *table, const char *format, ...)
{
    if (table == NULL || table->line == NULL) {
        return;
    }
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (scols_line_set_data(table->line, table->next_column_index, text) != 0) {
        table->has_failed = true;
    }
    table->next_column_index += 1;
}

void cli_table_cell_size(cli_table *table, uint64_t bytes)
{
    char text[UF_SIZE_TEXT_CAPACITY];
    cli_table_cell(table, "%s", uf__size_format(text, sizeof text, bytes));
}

void cli_table_cell_count(cli_table *table, uint64_t count)
{
    char text[CLI_COUNT_TEXT_CAPACITY];
    cli_table_cell(table, "%s", cli_count_format(text, count));
}

/* The table as text; then line by line, without the blanks smartcols leaves at a line's end. */
bool cli_table_print(cli_table *table, FILE *stream)
{
    if (table == NULL || table->has_failed) {
        return false;
    }
    char *text = NULL;
    if (scols_print_table_to_string(table->columns, &text) != 0 || text == NULL) {
        return false;
    }
    bool is_heading = true;
    bool can_style = cli_can_style(stream);
    for (char *line = text; *line != '\0';) {
        size_t full_length = strcspn(line, "\n");
        size_t length = full_length;
        while (length > 0 && line[length - 1] == ' ') {
            length -= 1;
        }
        const char *style = is_heading && can_style ? "\033[1m" : "";
        const char *reset = is_heading && can_style ? "\033[0m" : "";
        fprintf(stream, "%s%.*s%s\n", style, (int)length, line, reset);
        is_heading = false;
        line += full_length + (line[full_length] == '\n');
    }
    free(text);
    return true;
}

const char *cli_count_format(char buffer[CLI_COUNT_TEXT_CAPACITY], uint64_t count)
{
    char digits[CLI_COUNT_TEXT_CAPACITY];
    int length = snprintf(digits, sizeof digits, "%" PRIu64, count);
    char *out = buffer;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0) {
            *out++ = ' ';
        }
        *out++ = digits[i];
    }
    *out = '\0';
    return buffer;
}

bool cli_can_style(FILE *stream)
{
    const char *no_color = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");
    bool is_refused = no_color != NULL && no_color[0] != '\0';
    bool is_dumb = terminal == NULL || strcmp(terminal, "dumb") == 0;
    return !is_refused && !is_dumb && isatty(fileno(stream)) == 1;
}
