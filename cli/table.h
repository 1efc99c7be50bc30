/* SPDX-License-Identifier: MIT
 *
 * Aligned text tables, over libsmartcols. The output is the same on a terminal and in a file, but
 * for a bold heading on a terminal (never with NO_COLOR set). One table belongs to one thread. */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <unfrag/status.h>

typedef enum cli_align { CLI_LEFT, CLI_RIGHT } cli_align;

typedef struct cli_table cli_table;

/* Returns NULL if the host has no memory. The other functions accept that NULL, and a failure in
 * any of them is remembered: cli_table_print reports it. */
cli_table *cli_table_create(void);
void cli_table_destroy(cli_table *table);

/* Columns first, from left to right; then rows, and cells from left to right. */
void cli_table_column(cli_table *table, const char *heading, cli_align align);
void cli_table_row(cli_table *table);
void cli_table_cell(cli_table *table, const char *format, ...) UF_PRINTF(2, 3);
/* "512 B", "1.50 GiB" */
void cli_table_cell_size(cli_table *table, uint64_t bytes);
/* "1 234 567": groups of three */
void cli_table_cell_count(cli_table *table, uint64_t count);

/* Prints to stream. Returns false if the host had no memory at some point. */
bool cli_table_print(cli_table *table, FILE *stream);

/* Room for every text cli_count_format writes. */
#define CLI_COUNT_TEXT_CAPACITY 32

/* Writes a count in groups of three digits and returns buffer. */
const char *cli_count_format(char buffer[CLI_COUNT_TEXT_CAPACITY], uint64_t count);

/* May escape sequences go to this stream? A terminal, no NO_COLOR, and TERM is not "dumb". */
bool cli_can_style(FILE *stream);

#endif
