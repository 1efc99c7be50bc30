/* SPDX-License-Identifier: MIT
 *
 * Sums the segments of a snapshot by device, pool and stream. Cached bytes are divided by what
 * holds them:
 *
 *   cached |... releasable ...|... stuck: a block beside them is active ...|... private pool ...|
 *
 * In expandable segments whole pages can be unmapped, so only parts of pages are stuck. */
#include "replay_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "replay_text.h"

#define SMALL_PAGE_BYTES (2 * UF_MIB)
#define LARGE_PAGE_BYTES (20 * UF_MIB)
#define MAX_ROWS_SHOWED 40

/* Segments of one device, pool and stream. */
typedef struct state_row {
    const uf_trace_segment *first; /* for device, pool and stream */
    uint64_t segment_count;
    uint64_t reserved_bytes, allocated_bytes, waiting_bytes, cached_bytes;
    uint64_t releasable_bytes, stuck_bytes, private_bytes; /* cached = their sum */
} state_row;

typedef struct state_rows {
    state_row *rows;
    size_t count;
    state_row sum;
} state_rows;

bool replay_state_is_all(const uf_trace *trace)
{
    for (uint32_t i = 0; i < trace->device_count; i++) {
        if (trace->devices[i].count > 1) {
            return false;
        }
    }
    return trace->form != UF_FORM_SCRIPT;
}

static bool is_private(const uf_trace_segment *segment)
{
    return segment->pool_id[0] != 0 || segment->pool_id[1] != 0;
}

static int compare_u64(uint64_t left, uint64_t right)
{
    return left < right ? -1 : left > right;
}

static int compare_keys(const uf_trace_segment *left, const uf_trace_segment *right)
{
    int order = left->device < right->device ? -1 : left->device > right->device;
    order = order != 0 ? order : compare_u64(left->pool_id[0], right->pool_id[0]);
    order = order != 0 ? order : compare_u64(left->pool_id[1], right->pool_id[1]);
    order = order != 0 ? order : compare_u64(left->stream, right->stream);
    return order != 0 ? order : (int)left->is_large - (int)right->is_large;
}

static int compare_segments(const void *left, const void *right)
{
    return compare_keys(*(const uf_trace_segment *const *)left,
                        *(const uf_trace_segment *const *)right);
}

/* The whole pages inside [offset, offset + size) of a segment that starts with a page. */
static uint64_t whole_pages(uint64_t offset, uint64_t size_bytes, uint64_t page_bytes)
{
    uint64_t first = (offset + page_bytes - 1) / page_bytes;
    uint64_t end = (offset + size_bytes) / page_bytes;
    return end > first ? (end - first) * page_bytes : 0;
}

static void add_segment(state_row *row, const uf_trace *trace, const uf_trace_segment *segment)
{
    uint64_t cached = 0, in_pages = 0, active = 0;
    uint64_t page_bytes = segment->is_large ? LARGE_PAGE_BYTES : SMALL_PAGE_BYTES;
    for (uint32_t i = 0; i < segment->block_count; i++) {
        const uf_trace_block *block = &trace->blocks[segment->first_block + i];
        if (block->state == UF_BLOCK_INACTIVE) {
            cached += block->size_bytes;
            in_pages += whole_pages(block->addr - segment->addr, block->size_bytes, page_bytes);
        } else {
            bool is_waiting = block->state == UF_BLOCK_ACTIVE_PENDING_FREE;
            *(is_waiting ? &row->waiting_bytes : &row->allocated_bytes) += block->size_bytes;
            active += block->size_bytes;
        }
    }
    row->segment_count += 1;
    row->reserved_bytes += segment->total_bytes;
    row->cached_bytes += cached;
    uint64_t releasable = segment->is_expandable ? in_pages : active == 0 ? cached : 0;
    if (is_private(segment)) {
        row->private_bytes += cached;
    } else {
        row->releasable_bytes += releasable;
        row->stuck_bytes += cached - releasable;
    }
}

static void add_row(state_row *sum, const state_row *row)
{
    sum->segment_count += row->segment_count;
    sum->reserved_bytes += row->reserved_bytes;
    sum->allocated_bytes += row->allocated_bytes;
    sum->waiting_bytes += row->waiting_bytes;
    sum->cached_bytes += row->cached_bytes;
    sum->releasable_bytes += row->releasable_bytes;
    sum->stuck_bytes += row->stuck_bytes;
    sum->private_bytes += row->private_bytes;
}

static bool make_rows(const uf_trace *trace, state_rows *state)
{
    memset(state, 0, sizeof *state);
    size_t count = trace->segment_count;
    const uf_trace_segment **sorted = calloc(count + 1, sizeof(const uf_trace_segment *));
    state->rows = calloc(count + 1, sizeof *state->rows);
    if (sorted == NULL || state->rows == NULL) {
        free(sorted);
        free(state->rows);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        sorted[i] = &trace->segments[i];
    }
    qsort(sorted, count, sizeof(const uf_trace_segment *), compare_segments);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || compare_keys(sorted[i - 1], sorted[i]) != 0) {
            state->rows[state->count++].first = sorted[i];
        }
        add_segment(&state->rows[state->count - 1], trace, sorted[i]);
    }
    for (size_t i = 0; i < state->count; i++) {
        add_row(&state->sum, &state->rows[i]);
    }
    free(sorted);
    return true;
}

static void pool_name(const uf_trace_segment *segment, char *buffer, size_t capacity)
{
    const char *kind = segment->is_large ? "large" : "small";
    if (is_private(segment)) {
        snprintf(buffer, capacity, "%s, private (%" PRIu64 ",%" PRIu64 ")", kind,
                 segment->pool_id[0], segment->pool_id[1]);
    } else {
        snprintf(buffer, capacity, "%s", kind);
    }
}

static bool print_rows(const state_rows *state)
{
    static const char *const headings[] = {"segments", "reserved",   "allocated", "waiting",
                                           "cached",   "releasable", "stuck",     "private"};
    cli_table *table = cli_table_create();
    cli_table_column(table, "device", CLI_RIGHT);
    cli_table_column(table, "pool", CLI_LEFT);
    cli_table_column(table, "stream", CLI_RIGHT);
    for (size_t i = 0; i < sizeof headings / sizeof headings[0]; i++) {
        cli_table_column(table, headings[i], CLI_RIGHT);
    }
    for (size_t i = 0; i < state->count && i < MAX_ROWS_SHOWED; i++) {
        const state_row *row = &state->rows[i];
        char pool[96];
        stream_text stream;
        pool_name(row->first, pool, sizeof pool);
        cli_table_row(table);
        cli_table_cell(table, "%" PRId32, row->first->device);
        cli_table_cell(table, "%s", pool);
        cli_table_cell(table, "%s", replay_stream_text(stream, row->first->stream));
        cli_table_cell_count(table, row->segment_count);
        cli_table_cell_size(table, row->reserved_bytes);
        cli_table_cell_size(table, row->allocated_bytes);
        cli_table_cell_size(table, row->waiting_bytes);
        cli_table_cell_size(table, row->cached_bytes);
        cli_table_cell_size(table, row->releasable_bytes);
        cli_table_cell_size(table, row->stuck_bytes);
        cli_table_cell_size(table, row->private_bytes);
    }
    bool is_printed = cli_table_print(table, stdout);
    cli_table_destroy(table);
    if (state->count > MAX_ROWS_SHOWED) {
        printf("... and %zu more\n", state->count - MAX_ROWS_SHOWED);
    }
    return is_printed;
}

static void print_reason(const char *what, uint64_t bytes, const char *why)
{
    char size[UF_SIZE_TEXT_CAPACITY];
    if (bytes > 0) {
        printf("%-11s %10s   %s\n", what, uf__size_format(size, sizeof size, bytes), why);
    }
}

/* Whether a program fits a card is a question about its history. */
static void print_no_verdict(void)
{
    printf("\nno verdict: no history is recorded, so there is nothing to replay on a card. Record "
           "one:\n"
           "    torch.cuda.memory._record_memory_history(max_entries=5_000_000)\n"
           "before the part that matters, then "
           "torch.cuda.memory._dump_snapshot(\"snapshot.pickle\").\n");
}

static bool print_text(const uf_trace *trace, const char *input, const state_rows *state)
{
    if (trace->segment_count == 0) {
        printf("%s: an empty snapshot: no history, and nothing was held from the driver.\n", input);
        return true;
    }
    printf("%s: a state without history; nothing to replay.\n", input);
    if (trace->settings.has_conf) {
        const char *conf = uf_trace_string(trace, trace->settings.conf);
        printf("settings: %s\n", conf[0] != '\0' ? conf : "PyTorch's defaults");
    }
    printf("\n");
    bool is_printed = print_rows(state);
    printf("\n");
    const state_row *sum = &state->sum;
    print_reason("reserved", sum->reserved_bytes, "held from the driver");
    print_reason("cached", sum->cached_bytes, "of it, and no block needs it:");
    print_reason("releasable", sum->releasable_bytes, "empty_cache would give it back");
    print_reason("stuck", sum->stuck_bytes,
                 "an active block in the same segment (or page) holds it");
    print_reason("private", sum->private_bytes,
                 "kept by a CUDA graph's or user's pool until it dies");
    print_reason("waiting", sum->waiting_bytes,
                 "freed by the program; another stream still uses it");
    return is_printed;
}

static void write_figures(cli_json *json, const state_row *row)
{
    cli_json_uint64(json, "segments", row->segment_count);
    cli_json_uint64(json, "reserved_bytes", row->reserved_bytes);
    cli_json_uint64(json, "allocated_bytes", row->allocated_bytes);
    cli_json_uint64(json, "waiting_bytes", row->waiting_bytes);
    cli_json_uint64(json, "cached_bytes", row->cached_bytes);
    cli_json_uint64(json, "releasable_bytes", row->releasable_bytes);
    cli_json_uint64(json, "stuck_bytes", row->stuck_bytes);
    cli_json_uint64(json, "private_bytes", row->private_bytes);
}

static bool print_json(const uf_trace *trace, const char *input, const state_rows *state)
{
    cli_json json;
    cli_json_init(&json, stdout);
    cli_json_object_begin(&json, NULL);
    cli_json_string(&json, "input", input);
    cli_json_bool(&json, "is_state", true);
    cli_json_null(&json, "fits"); /* without a history there is no verdict */
    cli_json_uint64(&json, "events", trace->event_count);
    write_figures(&json, &state->sum);
    cli_json_array_begin(&json, "pools");
    for (size_t i = 0; i < state->count; i++) {
        const uf_trace_segment *first = state->rows[i].first;
        cli_json_object_begin(&json, NULL);
        cli_json_int64(&json, "device", first->device);
        cli_json_string(&json, "kind", first->is_large ? "large" : "small");
        cli_json_array_begin(&json, "pool_id");
        cli_json_uint64(&json, NULL, first->pool_id[0]);
        cli_json_uint64(&json, NULL, first->pool_id[1]);
        cli_json_array_end(&json);
        cli_json_uint64(&json, "stream", first->stream);
        write_figures(&json, &state->rows[i]);
        cli_json_object_end(&json);
    }
    cli_json_array_end(&json);
    cli_json_object_end(&json);
    return cli_json_finish(&json);
}

bool replay_state_print(const uf_trace *trace, const char *input, bool is_question, bool is_json)
{
    state_rows state;
    if (!make_rows(trace, &state)) {
        return false;
    }
    bool is_printed = is_json ? print_json(trace, input, &state) : print_text(trace, input, &state);
    free(state.rows);
    if (is_question && !is_json) {
        print_no_verdict();
    }
    return is_printed;
}
