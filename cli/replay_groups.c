/* SPDX-License-Identifier: MIT
 *
 * Adding groups up by stream and by pool. */
#include "replay_groups.h"

#include <inttypes.h>
#include <stdlib.h>

#include "replay_text.h"

enum { MAX_ROWS = 20 };

static uint32_t listed_count(const replay_view *view)
{
    return view->result.group_count < REPLAY_GROUP_CAPACITY ? view->result.group_count
                                                            : REPLAY_GROUP_CAPACITY;
}

static bool is_same_row(const uf_replay_group *a, const uf_replay_group *b, bool is_by_stream)
{
    return is_by_stream ? a->stream == b->stream
                        : a->pool_id[0] == b->pool_id[0] && a->pool_id[1] == b->pool_id[1];
}

/* Larger first: by what is reserved at the end, then by requests. */
static int compare_rows(const void *left, const void *right)
{
    const uf_replay_group *a = left, *b = right;
    if (a->end_reserved_bytes != b->end_reserved_bytes) {
        return a->end_reserved_bytes > b->end_reserved_bytes ? -1 : 1;
    }
    return (a->alloc_count < b->alloc_count) - (a->alloc_count > b->alloc_count);
}

/* Sums of the groups by stream or by pool; *count rows, the caller's to free. */
static uf_replay_group *sum_rows(const replay_view *view, bool is_by_stream, uint32_t *count)
{
    uint32_t group_count = listed_count(view);
    uf_replay_group *rows = calloc(group_count + 1u, sizeof *rows);
    *count = 0;
    for (uint32_t i = 0; i < group_count && rows != NULL; i++) {
        const uf_replay_group *group = &view->run.groups[i];
        uint32_t at = 0;
        while (at < *count && !is_same_row(&rows[at], group, is_by_stream)) {
            at++;
        }
        if (at == *count) {
            rows[(*count)++] = *group;
            continue;
        }
        rows[at].alloc_count += group->alloc_count;
        rows[at].end_active_bytes += group->end_active_bytes;
        rows[at].end_reserved_bytes += group->end_reserved_bytes;
    }
    if (rows != NULL) {
        qsort(rows, *count, sizeof *rows, compare_rows);
    }
    return rows;
}

static void add_row(cli_table *table, const uf_replay_group *row, bool is_by_stream)
{
    cli_table_row(table);
    stream_text stream;
    if (is_by_stream) {
        cli_table_cell(table, "%s", replay_stream_text(stream, row->stream));
    } else if (row->is_inferred_pool) {
        cli_table_cell(table, "private, inferred (%" PRIu64 ")", row->pool_id[1]);
    } else if ((row->pool_id[0] | row->pool_id[1]) == 0) {
        cli_table_cell(table, "default");
    } else {
        cli_table_cell(table, "(%" PRIu64 ",%" PRIu64 ")", row->pool_id[0], row->pool_id[1]);
    }
    cli_table_cell_count(table, row->alloc_count);
    cli_table_cell_size(table, row->end_reserved_bytes);
    cli_table_cell_size(table, row->end_active_bytes);
}

static bool print_by(const replay_view *view, bool is_by_stream)
{
    uint32_t count;
    uf_replay_group *rows = sum_rows(view, is_by_stream, &count);
    if (rows == NULL || count < 2) {
        free(rows);
        return rows != NULL;
    }
    cli_table *table = cli_table_create();
    cli_table_column(table, is_by_stream ? "stream" : "pool", CLI_LEFT);
    cli_table_column(table, "allocations", CLI_RIGHT);
    cli_table_column(table, "reserved at the end", CLI_RIGHT);
    cli_table_column(table, "of it active", CLI_RIGHT);
    for (uint32_t i = 0; i < count && i < MAX_ROWS; i++) {
        add_row(table, &rows[i], is_by_stream);
    }
    printf("\n");
    bool is_printed = cli_table_print(table, stdout);
    if (count > MAX_ROWS) {
        printf("and %" PRIu32 " more; --json lists all\n", count - MAX_ROWS);
    }
    cli_table_destroy(table);
    free(rows);
    return is_printed;
}

bool replay_groups_print(const replay_view *view)
{
    return print_by(view, true) && print_by(view, false);
}

void replay_groups_json(cli_json *json, const replay_view *view)
{
    cli_json_array_begin(json, "groups");
    for (uint32_t i = 0; i < listed_count(view); i++) {
        const uf_replay_group *group = &view->run.groups[i];
        cli_json_object_begin(json, NULL);
        cli_json_uint64(json, "stream", group->stream);
        if (group->is_inferred_pool) {
            cli_json_null(json, "pool_id");
            cli_json_uint64(json, "inferred_pool", group->pool_id[1]);
        } else {
            cli_json_array_begin(json, "pool_id");
            cli_json_uint64(json, NULL, group->pool_id[0]);
            cli_json_uint64(json, NULL, group->pool_id[1]);
            cli_json_array_end(json);
            cli_json_null(json, "inferred_pool");
        }
        cli_json_uint64(json, "allocs", group->alloc_count);
        cli_json_uint64(json, "peak_live_bytes", group->peak_live_bytes);
        cli_json_uint64(json, "end_active_bytes", group->end_active_bytes);
        cli_json_uint64(json, "end_reserved_bytes", group->end_reserved_bytes);
        cli_json_object_end(json);
    }
    cli_json_array_end(json);
}
