/* SPDX-License-Identifier: MIT
 *
 * The comparison of settings. A setting whose run stopped at a failed request has no peak that
 * could be compared: its row shows what it had reached, and no waste. A long setting is written on
 * several lines, broken at its commas:
 *
 *   max_split_size_mb:128,
 *     garbage_collection_threshold:0.8  yes  13.06 GiB ... */
#include "replay_compare.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "alloc/conf.h"
#include "json.h"
#include "progress.h"
#include "replay_fit.h"
#include "replay_text.h"

#define GC_SETTING "max_split_size_mb:128,garbage_collection_threshold:0.8"

enum { MAX_ROWS = 7, NAME_WIDTH = 34 };

typedef struct compare_row {
    const char *name; /* borrowed, as conf */
    const char *conf;
    bool is_paged;     /* the unfrag policy; else PyTorch's under conf */
    bool is_recorded;  /* the settings it was recorded with, and no others have a row */
    bool is_undefined; /* the settings lead to what PyTorch leaves undefined */
    uf_replay_result result;
} compare_row;

typedef struct comparison {
    const replay_view *view;
    compare_row rows[MAX_ROWS];
    size_t count;
} comparison;

static bool fits(const compare_row *row)
{
    return !row->is_undefined && !row->result.has_oom;
}

static bool is_same(const char *left, const char *right)
{
    const uf_conf_reading reading = {.is_at_import = true};
    uf_conf a, b;
    uf_error error;
    uf__conf_init(&a);
    uf__conf_init(&b);
    return uf__conf_read(&a, left, &reading, NULL, &error) == UF_OK &&
           uf__conf_read(&b, right, &reading, NULL, &error) == UF_OK && uf__conf_is_equal(&a, &b);
}

static bool has_row(const comparison *all, const char *conf)
{
    for (size_t i = 0; i < all->count; i++) {
        if (!all->rows[i].is_paged && is_same(all->rows[i].conf, conf)) {
            return true;
        }
    }
    return false;
}

static void add(comparison *all, const char *name, const char *conf)
{
    all->rows[all->count++] = (compare_row){.name = name, .conf = conf};
}

/* The recording's settings if they are others, four common ones, those of --conf, and the unfrag
 * policy. */
static void choose_rows(comparison *all)
{
    static const char *const common[] = {"", "max_split_size_mb:128", GC_SETTING,
                                         "expandable_segments:True"};
    const char *recorded = uf_program_conf(all->view->program);
    const char *given = all->view->options->conf;
    for (size_t i = 0; i < sizeof common / sizeof common[0]; i++) {
        add(all, common[i][0] != '\0' ? common[i] : "(default)", common[i]);
    }
    if (!has_row(all, recorded)) {
        memmove(&all->rows[1], &all->rows[0], all->count * sizeof all->rows[0]);
        all->rows[0] =
            (compare_row){.name = "(as recorded)", .conf = recorded, .is_recorded = true};
        all->count += 1;
    }
    if (given != NULL && !has_row(all, given)) {
        add(all, given, given);
    }
    add(all, "unfrag's policy, no setting", "");
    all->rows[all->count - 1].is_paged = true;
}

/* How much of a name goes on one line: all, or up to the last comma outside brackets that fits. */
static size_t line_length(const char *name, size_t width)
{
    size_t length = strlen(name), best = 0, depth = 0;
    if (length <= width) {
        return length;
    }
    for (size_t i = 0; i < length; i++) {
        depth += name[i] == '[' ? 1 : 0;
        depth -= name[i] == ']' && depth > 0 ? 1 : 0;
        bool is_end = name[i] == ',' && depth == 0 && i + 1 < length;
        if (is_end && (i < width || best == 0)) {
            best = i + 1;
        }
    }
    return best != 0 ? best : length;
}

static void add_name(cli_table *table, const char *name)
{
    const char *indent = "";
    size_t length = line_length(name, NAME_WIDTH);
    while (name[length] != '\0') {
        cli_table_row(table);
        cli_table_cell(table, "%s%.*s", indent, (int)length, name);
        name += length;
        indent = "  ";
        length = line_length(name, NAME_WIDTH - 2);
    }
    cli_table_row(table);
    cli_table_cell(table, "%s%s", indent, name);
}

static void add_row(cli_table *table, const comparison *all, const compare_row *row)
{
    const uf_replay_result *result = &row->result;
    count_text event;
    add_name(table, row->name);
    if (row->is_undefined) {
        cli_table_cell(table, "undefined");
        return;
    }
    if (result->has_oom) {
        cli_table_cell(table, "no, %s", cli_count_format(event, result->first_oom.event));
    } else {
        cli_table_cell(table, "%s", replay_fit_is_tight(all->view, result) ? "yes, tight" : "yes");
    }
    cli_table_cell_size(table, result->peak_reserved_bytes);
    if (result->has_oom) {
        cli_table_cell(table, "-");
    } else {
        cli_table_cell(table, "%.1f %%", replay_waste_percent(result));
    }
    if (row->is_paged) {
        cli_table_cell(table, "-"); /* it gives back no cache to try again */
    } else {
        cli_table_cell_count(table, result->retry_count);
    }
    cli_table_cell_count(table, result->device_calls);
    cli_table_cell(table, result->device_ms < 100.0 ? "%.1f ms" : "%.0f ms", result->device_ms);
    cli_table_cell_count(table, result->device_syncs);
}

static void print_head(const replay_view *view)
{
    size_text size, limit;
    count_text events;
    printf("%s, %s events", view->options->input,
           cli_count_format(events, view->followed->event_count));
    if (view->run.card_bytes != 0) {
        printf(", on a card of %s", SIZE(size, view->run.card_bytes));
    }
    if (view->run.limit_bytes != 0) {
        printf(", limit %s%s", SIZE(limit, view->run.limit_bytes),
               view->is_limit_recorded ? " (as recorded)" : "");
    }
    printf("\n");
    replay_print_inexact(view);
    printf("\n");
}

static uint64_t peak_live_bytes(const comparison *all)
{
    uint64_t peak_bytes = 0;
    for (size_t i = 0; i < all->count; i++) {
        uint64_t bytes = all->rows[i].result.peak_live_bytes;
        peak_bytes = bytes > peak_bytes ? bytes : peak_bytes;
    }
    return peak_bytes;
}

static void print_tight_note(const comparison *all)
{
    const replay_view *view = all->view;
    bool has_tight = false;
    for (size_t i = 0; i < all->count; i++) {
        has_tight =
            has_tight || (fits(&all->rows[i]) && replay_fit_is_tight(view, &all->rows[i].result));
    }
    if (has_tight) {
        printf(
            "Tight: less is left of the card than CUDA's context and libraries take, about %" PRIu64
            " MiB.\nA replay does not subtract that; this does: ",
            replay_context_bytes / UF_MIB);
        replay_print_tune(view->options->card_bytes, view->options->limit_bytes,
                          view->options->input);
        printf("\n");
    }
}

static void print_footer(const comparison *all)
{
    bool has_failure = false;
    size_text live;
    for (size_t i = 0; i < all->count; i++) {
        has_failure = has_failure || all->rows[i].result.has_oom;
    }
    printf(
        "\nPeak is what was reserved at most; waste, how much that is beyond peak live: %s,\n"
        "which no allocator that moves nothing can run below. Calls are those of the driver, time\n"
        "is theirs by a latency model, waits are calls that let the whole device finish.\n",
        SIZE(live, peak_live_bytes(all)));
    printf("unfrag's policy is another allocator: it moves pages instead (docs/policy.md).\n");
    if (has_failure) {
        printf("No, N: the request of event N fails; the figures end there.\n");
    }
    print_tight_note(all);
    if (all->rows[0].is_recorded) {
        printf("As recorded: %s\n", all->rows[0].conf);
    }
    if (all->view->run.limit_bytes == 0) {
        printf(
            "garbage_collection_threshold is a share of a limit: inert without --limit, its row is "
            "the\nsame as the one above.\n");
    }
}

static bool print_table(const comparison *all)
{
    static const char *const headings[] = {"peak", "waste", "retries", "calls", "time", "waits"};
    print_head(all->view);
    cli_table *table = cli_table_create();
    cli_table_column(table, "PYTORCH_CUDA_ALLOC_CONF", CLI_LEFT);
    cli_table_column(table, "fits", CLI_LEFT);
    for (size_t i = 0; i < sizeof headings / sizeof headings[0]; i++) {
        cli_table_column(table, headings[i], CLI_RIGHT);
    }
    for (size_t i = 0; i < all->count; i++) {
        add_row(table, all, &all->rows[i]);
    }
    bool is_printed = cli_table_print(table, stdout);
    cli_table_destroy(table);
    print_footer(all);
    return is_printed;
}

static void write_row(cli_json *json, const compare_row *row)
{
    const uf_replay_result *result = &row->result;
    cli_json_object_begin(json, NULL);
    cli_json_string(json, "policy", row->is_paged ? "unfrag" : "torch");
    cli_json_string(json, "conf", row->conf);
    cli_json_bool(json, "is_recorded", row->is_recorded);
    cli_json_bool(json, "fits", fits(row));
    cli_json_bool(json, "is_undefined", row->is_undefined);
    if (!row->is_undefined) {
        cli_json_uint64(json, "peak_live_bytes", result->peak_live_bytes);
        cli_json_uint64(json, "peak_reserved_bytes", result->peak_reserved_bytes);
        cli_json_uint64(json, "num_ooms", result->oom_count);
        cli_json_uint64(json, "num_alloc_retries", result->retry_count);
        if (result->has_oom) {
            cli_json_uint64(json, "first_oom_event", result->first_oom.event);
        } else {
            cli_json_null(json, "first_oom_event");
        }
        cli_json_uint64(json, "device_calls", result->device_calls);
        cli_json_uint64(json, "device_syncs", result->device_syncs);
        cli_json_double(json, "device_ms", result->device_ms);
        if (row->is_paged) {
            cli_json_double(json, "device_moving_ms", replay_moving_ms(result));
            cli_json_uint64(json, "peak_frozen_bytes", result->peak_frozen_bytes);
        } else {
            cli_json_null(json, "device_moving_ms");
            cli_json_null(json, "peak_frozen_bytes");
        }
    }
    cli_json_object_end(json);
}

static bool print_json(const comparison *all)
{
    cli_json json;
    cli_json_init(&json, stdout);
    cli_json_object_begin(&json, NULL);
    cli_json_string(&json, "input", all->view->options->input);
    replay_bounds_json(&json, all->view->run.card_bytes, all->view->run.limit_bytes);
    replay_exact_json(&json, all->view);
    cli_json_array_begin(&json, "rows");
    for (size_t i = 0; i < all->count; i++) {
        write_row(&json, &all->rows[i]);
    }
    cli_json_array_end(&json);
    cli_json_object_end(&json);
    return cli_json_finish(&json);
}

static uf_status play_row(const replay_view *view, compare_row *row, uf_error *error)
{
    uf_replay_options run = view->run;
    run.conf = row->conf;
    run.policy = row->is_paged ? UF_POLICY_UNFRAG : UF_POLICY_TORCH;
    cli_progress progress;
    cli_progress_init(&progress, row->name);
    run.progress = cli_progress_update;
    run.progress_context = &progress;
    uf_status status = uf_replay_run(view->program, &run, &row->result, error);
    cli_progress_fini(&progress);
    row->is_undefined = status == UF_ERROR_HAZARD;
    return row->is_undefined ? UF_OK : status;
}

cli_exit replay_compare(const replay_view *view)
{
    comparison all = {.view = view};
    choose_rows(&all);
    bool has_fit = false;
    for (size_t i = 0; i < all.count; i++) {
        uf_error error = {0};
        if (play_row(view, &all.rows[i], &error) != UF_OK) {
            return cli_fail("replay", &error);
        }
        has_fit = has_fit || fits(&all.rows[i]);
    }
    bool is_printed = view->options->is_json ? print_json(&all) : print_table(&all);
    if (!is_printed) {
        return CLI_EXIT_ENVIRONMENT;
    }
    return has_fit ? CLI_EXIT_DONE : CLI_EXIT_NO;
}
