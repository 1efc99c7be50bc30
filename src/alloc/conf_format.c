/* SPDX-License-Identifier: MIT
 *
 * Settings to the shortest string that yields them from defaults (2.11 grammar). Only the table's
 * options, in the table's order. No lock. */
#include "alloc/conf.h"

#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc/conf_option.h"
#include "base/error.h"
#include "base/size.h"

#define NUMBER_CAPACITY 32

typedef struct text_writer {
    char *buffer;
    size_t capacity;
    size_t length; /* also of what did not fit */
} text_writer;

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

static size_t decimal_length(uint64_t value)
{
    size_t length = 1;
    for (; value >= 10; value /= 10) {
        length++;
    }
    return length;
}

/* The fewest digits that read back as the same double, with a '.' in any locale. */
static void format_share(char buffer[NUMBER_CAPACITY], double share)
{
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t previous = c_locale == (locale_t)0 ? (locale_t)0 : uselocale(c_locale);
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(buffer, NUMBER_CAPACITY, "%.*g", digits, share);
        if (strtod(buffer, NULL) == share) {
            break;
        }
    }
    if (c_locale != (locale_t)0) {
        uselocale(previous);
        freelocale(c_locale);
    }
}

/* The shortest list for a table, by dynamic programming over the index. The state in front of an
 * entry is the value that the last fill item (`>`) left there; it is one of `fills`. An entry that
 * differs from it is named; behind a named entry the fill may change. The first named entry also
 * fills everything below it. */
typedef struct division_plan {
    const uint64_t *table;
    uint64_t fills[UF_CONF_DIVISION_COUNT + 1]; /* 0 and the values of the table */
    size_t fill_count;
    size_t cost[UF_CONF_DIVISION_COUNT + 1][UF_CONF_DIVISION_COUNT + 1];
    size_t next_fill[UF_CONF_DIVISION_COUNT][UF_CONF_DIVISION_COUNT + 1];
    bool is_named[UF_CONF_DIVISION_COUNT][UF_CONF_DIVISION_COUNT + 1];
} division_plan;

/* "boundary:divisions," */
static size_t entry_cost(const division_plan *plan, size_t index)
{
    return decimal_length(UINT64_C(1) << index) + 2 + decimal_length(plan->table[index]);
}

/* ">:divisions," or nothing */
static size_t fill_cost(const division_plan *plan, size_t from, size_t to)
{
    return from == to ? 0 : 3 + decimal_length(plan->fills[to]);
}

static void add_fill(division_plan *plan, uint64_t divisions)
{
    for (size_t i = 0; i < plan->fill_count; i++) {
        if (plan->fills[i] == divisions) {
            return;
        }
    }
    plan->fills[plan->fill_count++] = divisions;
}

/* Cost of entry `index` and all behind it if it is named while `fill` is in force. */
static size_t named_cost(const division_plan *plan, size_t index, size_t fill, size_t *next_fill)
{
    size_t best = SIZE_MAX;
    for (size_t to = 0; to < plan->fill_count; to++) {
        size_t cost =
            entry_cost(plan, index) + fill_cost(plan, fill, to) + plan->cost[index + 1][to];
        /* Of equal ones, keep the fill: a list without `>` is easier to read. */
        if (cost < best || (cost == best && to == fill)) {
            best = cost;
            *next_fill = to;
        }
    }
    return best;
}

static void plan_list(division_plan *plan, const uint64_t *table)
{
    memset(plan, 0, sizeof *plan);
    plan->table = table;
    add_fill(plan, 0);
    for (size_t i = 0; i < UF_CONF_DIVISION_COUNT; i++) {
        add_fill(plan, table[i]);
    }
    for (size_t i = UF_CONF_DIVISION_COUNT; i-- > 1;) {
        for (size_t fill = 0; fill < plan->fill_count; fill++) {
            size_t cost = named_cost(plan, i, fill, &plan->next_fill[i][fill]);
            plan->is_named[i][fill] = true;
            if (table[i] == plan->fills[fill] && plan->cost[i + 1][fill] <= cost) {
                cost = plan->cost[i + 1][fill];
                plan->is_named[i][fill] = false;
                plan->next_fill[i][fill] = fill;
            }
            plan->cost[i][fill] = cost;
        }
    }
}

/* Writes the entries from `index` on while `fill` is in force. */
static void write_entries(text_writer *out, const division_plan *plan, size_t index, size_t fill)
{
    for (; index < UF_CONF_DIVISION_COUNT; index++) {
        size_t next = plan->next_fill[index][fill];
        if (plan->is_named[index][fill]) {
            write_text(out, "%llu:%llu,", 1ull << index, (unsigned long long)plan->table[index]);
        }
        if (next != fill) {
            write_text(out, ">:%llu,", (unsigned long long)plan->fills[next]);
        }
        fill = next;
    }
}

static bool is_uniform(const uint64_t *table, size_t from)
{
    for (size_t i = from + 1; i < UF_CONF_DIVISION_COUNT; i++) {
        if (table[i] != table[from]) {
            return false;
        }
    }
    return true;
}

/* Cost of the entries below the first named one, which that one does not fill rightly. */
static size_t lower_cost(const division_plan *plan, size_t first)
{
    size_t cost = 0;
    for (size_t i = 0; i < first; i++) {
        cost += plan->table[i] == plan->table[first] ? 0 : entry_cost(plan, i);
    }
    return cost;
}

/* "[...]" for a table that is not the same everywhere: the first named entry and its fill, then
 * the entries above it, then those below that differ from it. */
static void write_list(text_writer *out, const uint64_t *table)
{
    division_plan plan;
    plan_list(&plan, table);
    if (table[0] == 0 && is_uniform(table, 1)) {
        write_text(out, "[>:%llu]", (unsigned long long)table[1]);
        return;
    }
    size_t first = 0, first_fill = 0, best = SIZE_MAX;
    for (size_t i = 0; i < UF_CONF_DIVISION_COUNT; i++) {
        size_t to = 0;
        size_t cost = named_cost(&plan, i, 0, &to) + lower_cost(&plan, i);
        if (cost < best) {
            best = cost;
            first = i;
            first_fill = to;
        }
    }
    write_text(out, "[%llu:%llu,", 1ull << first, (unsigned long long)table[first]);
    if (first_fill != 0) {
        write_text(out, ">:%llu,", (unsigned long long)plan.fills[first_fill]);
    }
    write_entries(out, &plan, first + 1, first_fill);
    for (size_t i = 0; i < first; i++) {
        if (table[i] != table[first]) {
            write_text(out, "%llu:%llu,", 1ull << i, (unsigned long long)table[i]);
        }
    }
    if (out->length > 0 && out->length < out->capacity) {
        out->length--; /* the last comma */
    }
    write_text(out, "]");
}

static void write_key(text_writer *out, const uf_conf_option *option)
{
    write_text(out, "%s%s:", out->length == 0 ? "" : ",", option->name);
}

static void write_option(text_writer *out, const uf_conf_option *option, const uf_conf *conf,
                         const uf_conf *defaults)
{
    const char *field = (const char *)conf + option->offset;
    const char *standard = (const char *)defaults + option->offset;
    size_t size = option->type == UF_CONF_TYPE_SHARE       ? sizeof(double)
                  : option->type == UF_CONF_TYPE_BOOLEAN   ? sizeof(bool)
                  : option->type == UF_CONF_TYPE_BACKEND   ? sizeof(bool)
                  : option->type == UF_CONF_TYPE_DIVISIONS ? sizeof conf->roundup_power2_divisions
                                                           : sizeof(uint64_t);
    if (memcmp(field, standard, size) == 0) {
        return;
    }
    uint64_t number = 0;
    double share = 0.0;
    char text[NUMBER_CAPACITY];
    memcpy(option->type == UF_CONF_TYPE_SHARE ? (void *)&share : (void *)&number, field,
           size < sizeof number ? size : sizeof number);
    write_key(out, option);
    switch (option->type) {
    case UF_CONF_TYPE_MIB:
        write_text(out, "%llu", (unsigned long long)(number / UF_MIB));
        break;
    case UF_CONF_TYPE_INTEGER:
    case UF_CONF_TYPE_POWER2:
        write_text(out, "%llu", (unsigned long long)number);
        break;
    case UF_CONF_TYPE_SHARE:
        format_share(text, share);
        write_text(out, "%s", text);
        break;
    case UF_CONF_TYPE_BOOLEAN:
        write_text(out, "True");
        break;
    case UF_CONF_TYPE_BACKEND:
        write_text(out, "cudaMallocAsync");
        break;
    case UF_CONF_TYPE_DIVISIONS:
        if (is_uniform(conf->roundup_power2_divisions, 0)) {
            write_text(out, "%llu", (unsigned long long)number);
        } else {
            write_list(out, conf->roundup_power2_divisions);
        }
        break;
    }
}

bool uf__conf_is_equal(const uf_conf *a, const uf_conf *b)
{
    for (size_t i = 0; i < UF_CONF_DIVISION_COUNT; i++) {
        if (a->roundup_power2_divisions[i] != b->roundup_power2_divisions[i]) {
            return false;
        }
    }
    return a->max_split_size_bytes == b->max_split_size_bytes &&
           a->max_non_split_rounding_bytes == b->max_non_split_rounding_bytes &&
           a->large_segment_bytes == b->large_segment_bytes &&
           a->garbage_collection_threshold == b->garbage_collection_threshold &&
           a->per_process_memory_fraction == b->per_process_memory_fraction &&
           a->is_expandable == b->is_expandable &&
           a->can_reuse_in_capture == b->can_reuse_in_capture &&
           a->has_background_threads == b->has_background_threads &&
           a->has_host_register == b->has_host_register &&
           a->can_release_lock == b->can_release_lock &&
           a->pinned_num_register_threads == b->pinned_num_register_threads &&
           a->pinned_reserve_segment_mb == b->pinned_reserve_segment_mb &&
           a->is_async_backend == b->is_async_backend;
}

uf_status uf__conf_format(const uf_conf *conf, char *buffer, size_t capacity, uf_error *error)
{
    char text[UF_CONF_TEXT_CAPACITY];
    text_writer out = {text, sizeof text, 0};
    uf_conf defaults, again;
    uf_conf_reading reading = {.grammar = UF_CONF_2_11, .is_at_import = true};
    text[0] = '\0';
    uf__conf_init(&defaults);
    again = defaults;
    /* Where nothing is said, this one follows the large segment size. */
    defaults.max_non_split_rounding_bytes = conf->large_segment_bytes;
    for (size_t i = 0; i < UF_CONF_OPTION_COUNT; i++) {
        write_option(&out, uf__conf_option_at(i), conf, &defaults);
    }
    /* The parser has the last word on whether the text says it. */
    uf_status status = uf__conf_read(&again, text, &reading, NULL, NULL);
    if (status == UF_ERROR_HOST_MEMORY) {
        return uf__error_set(error, status, "no host memory to write a settings string");
    }
    if (status != UF_OK || !uf__conf_is_equal(conf, &again)) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "no settings string yields these settings; '%.200s' comes nearest",
                             text);
    }
    if (out.length >= capacity) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "the settings string takes %zu bytes and the buffer has %zu",
                             out.length + 1, capacity);
    }
    memcpy(buffer, text, out.length + 1);
    return UF_OK;
}
