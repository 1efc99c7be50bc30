/* SPDX-License-Identifier: MIT
 *
 * The text of torch.cuda.memory_summary(), to the character (PyTorch 2.11 behaviour). Owns the
 * layout; reads nothing but a uf_stats. Pure, no lock.
 *
 * Every line is 75 characters between two '|'. A column's unit is chosen by its `all` value, so
 * that the rows below it share the unit, and each of the four columns has its own. */
#include <unfrag/stats.h>

#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"

#define RULE_WIDTH 75
#define COLUMN_COUNT 4
#define CELL_CAPACITY 32

typedef struct text_writer {
    char *buffer;
    size_t capacity;
    size_t length; /* of the whole text, also where it does not fit */
} text_writer;

/* How a kind of number is scaled: while the reference value is at least `limit`, go to the next
 * unit and divide by `divisor`. */
typedef struct cell_scale {
    double limit;
    int64_t divisor;
    int width;
    unsigned unit_count;
    const char *units[6];
} cell_scale;

static const cell_scale size_scale = {
    768.0 * 1024.0, 1024, 6, 6, {"B  ", "KiB", "MiB", "GiB", "TiB", "PiB"}};
static const cell_scale count_scale = {750.0 * 1000.0, 1000, 7, 3, {"  ", "K ", "M "}};

typedef struct summary_row {
    const char *label;
    size_t offset; /* of a uf_stat_group, or of a uf_stat, in uf_stats */
    const cell_scale *scale;
} summary_row;

static const summary_row group_rows[] = {
    {"Allocated memory", offsetof(uf_stats, allocated_bytes), &size_scale},
    {"Active memory", offsetof(uf_stats, active_bytes), &size_scale},
    {"Requested memory", offsetof(uf_stats, requested_bytes), &size_scale},
    {"GPU reserved memory", offsetof(uf_stats, reserved_bytes), &size_scale},
    {"Non-releasable memory", offsetof(uf_stats, inactive_split_bytes), &size_scale},
    {"Allocations", offsetof(uf_stats, allocation), &count_scale},
    {"Active allocs", offsetof(uf_stats, active), &count_scale},
    {"GPU reserved segments", offsetof(uf_stats, segment), &count_scale},
    {"Non-releasable allocs", offsetof(uf_stats, inactive_split), &count_scale},
};

static const summary_row oversize_rows[] = {
    {"Oversize allocations", offsetof(uf_stats, oversize_allocations), &count_scale},
    {"Oversize GPU segments", offsetof(uf_stats, oversize_segments), &count_scale},
};

static void write_text(text_writer *out, const char *format, ...) UF_PRINTF(2, 3);

static void write_text(text_writer *out, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    bool has_room = out->length < out->capacity;
    int added = vsnprintf(has_room ? out->buffer + out->length : NULL,
                          has_room ? out->capacity - out->length : 0, format, arguments);
    va_end(arguments);
    out->length += added > 0 ? (size_t)added : 0;
}

static void write_rule(text_writer *out, char character)
{
    char rule[RULE_WIDTH + 1];
    for (int i = 0; i < RULE_WIDTH; i++) {
        rule[i] = character;
    }
    rule[RULE_WIDTH] = '\0';
    write_text(out, "|%s|\n", rule);
}

static int64_t divide_floor(int64_t value, int64_t divisor)
{
    int64_t quotient = value / divisor;
    return value % divisor < 0 ? quotient - 1 : quotient;
}

static void format_cell(char cell[CELL_CAPACITY], const cell_scale *scale, int64_t value,
                        int64_t reference)
{
    double left = (double)reference;
    unsigned unit = 0;
    while (unit + 1 < scale->unit_count && left >= scale->limit) {
        value = divide_floor(value, scale->divisor);
        left /= (double)scale->divisor;
        unit++;
    }
    snprintf(cell, CELL_CAPACITY, "%*lld %s", scale->width, (long long)value, scale->units[unit]);
}

static void write_row(text_writer *out, const char *label, const cell_scale *scale,
                      const uf_stat *stat, const uf_stat *reference)
{
    char cells[COLUMN_COUNT][CELL_CAPACITY];
    format_cell(cells[0], scale, stat->current, reference->current);
    format_cell(cells[1], scale, stat->peak, reference->peak);
    format_cell(cells[2], scale, stat->allocated, reference->allocated);
    format_cell(cells[3], scale, stat->freed, reference->freed);
    write_text(out, "| %-21s | %s | %s | %s | %s |\n", label, cells[0], cells[1], cells[2],
               cells[3]);
}

static void write_rows(text_writer *out, const uf_stats *stats, bool is_abbreviated)
{
    for (size_t i = 0; i < sizeof group_rows / sizeof group_rows[0]; i++) {
        const summary_row *row = &group_rows[i];
        const uf_stat_group *group = (const void *)((const char *)stats + row->offset);
        write_rule(out, '-');
        write_row(out, row->label, row->scale, &group->all, &group->all);
        if (!is_abbreviated) {
            write_row(out, "      from large pool", row->scale, &group->large_pool, &group->all);
            write_row(out, "      from small pool", row->scale, &group->small_pool, &group->all);
        }
    }
    for (size_t i = 0; i < sizeof oversize_rows / sizeof oversize_rows[0]; i++) {
        const summary_row *row = &oversize_rows[i];
        const uf_stat *stat = (const void *)((const char *)stats + row->offset);
        write_rule(out, '-');
        write_row(out, row->label, row->scale, stat, stat);
    }
}

uf_status uf_summary_write(const uf_stats *stats, int32_t device, bool is_abbreviated, char *buffer,
                           size_t capacity, size_t *length, uf_error *error)
{
    text_writer out = {buffer, capacity, 0};
    write_rule(&out, '=');
    write_text(&out, "|%-17s PyTorch CUDA memory summary, device ID %-17d |\n", "", (int)device);
    write_rule(&out, '-');
    write_text(&out, "|%12sCUDA OOMs: %-12lld | %7scudaMalloc retries: %-8lld  |\n", "",
               (long long)stats->num_ooms, "", (long long)stats->num_alloc_retries);
    write_rule(&out, '=');
    write_text(&out, "|%8sMetric%9s| Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |\n", "",
               "");
    write_rows(&out, stats, is_abbreviated);
    write_rule(&out, '=');
    if (out.length >= capacity) {
        if (capacity > 0) {
            buffer[0] = '\0';
        }
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "the memory summary takes %zu bytes and the buffer has %zu; "
                             "UF_SUMMARY_CAPACITY bytes are always enough",
                             out.length + 1, capacity);
    }
    if (length != NULL) {
        *length = out.length;
    }
    return UF_OK;
}
