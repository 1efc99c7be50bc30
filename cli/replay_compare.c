/* SPDX-License-Identifier: MIT
 *
 * The comparison of settings. A setting whose run stopped at a failed request has no peak that
 * could be compared: its row shows what it had reached, and no waste. */
#include "replay_compare.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/size.h"
#include "json.h"
#include "progress.h"
#include "table.h"

static const char *const settings[] = {
    "",
    "max_split_size_mb:128",
    "max_split_size_mb:128,garbage_collection_threshold:0.8",
    "expandable_segments:True",
};

#define SETTING_COUNT (sizeof settings / sizeof settings[0])

static const char *name_of(const char *conf)
{
    return conf[0] != '\0' ? conf : "(default)";
}

static void add_row(cli_table *table, const char *conf, const uf_replay_result *result)
{
    char event[CLI_COUNT_TEXT_CAPACITY];
    cli_table_row(table);
    cli_table_cell(table, "%s", name_of(conf));
    if (result->has_oom) {
        cli_table_cell(table, "no, event %s", cli_count_format(event, result->first_oom.event));
    } else {
        cli_table_cell(table, "yes");
    }
    cli_table_cell_size(table, result->peak_reserved_bytes);
    if (result->has_oom) {
        cli_table_cell(table, "-");
    } else {
        cli_table_cell(table, "%.1f %%", replay_waste_percent(result));
    }
    cli_table_cell_count(table, result->retry_count);
    cli_table_cell_count(table, result->device_calls);
    cli_table_cell(table, "%.1f ms", result->device_ms);
    cli_table_cell_count(table, result->device_syncs);
}

static void print_head(const replay_view *view)
{
    char size[UF_SIZE_TEXT_CAPACITY], limit[UF_SIZE_TEXT_CAPACITY], events[CLI_COUNT_TEXT_CAPACITY];
    printf("%s, %s events", view->options->input,
           cli_count_format(events, view->followed->event_count));
    if (view->run.card_bytes != 0) {
        printf(", on a card of %s", uf__size_format(size, sizeof size, view->run.card_bytes));
    }
    if (view->run.limit_bytes != 0) {
        printf(", limit %s", uf__size_format(limit, sizeof limit, view->run.limit_bytes));
    }
    printf("\n\n");
}

static bool print_table(const replay_view *view, const uf_replay_result *results)
{
    print_head(view);
    cli_table *table = cli_table_create();
    cli_table_column(table, "PYTORCH_CUDA_ALLOC_CONF", CLI_LEFT);
    cli_table_column(table, "fits", CLI_LEFT);
    cli_table_column(table, "peak reserved", CLI_RIGHT);
    cli_table_column(table, "over peak live", CLI_RIGHT);
    cli_table_column(table, "retries", CLI_RIGHT);
    cli_table_column(table, "driver calls", CLI_RIGHT);
    cli_table_column(table, "their time", CLI_RIGHT);
    cli_table_column(table, "waits", CLI_RIGHT);
    uint64_t peak_live_bytes = 0;
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        add_row(table, settings[i], &results[i]);
        bool is_larger = results[i].peak_live_bytes > peak_live_bytes;
        peak_live_bytes = is_larger ? results[i].peak_live_bytes : peak_live_bytes;
    }
    bool is_printed = cli_table_print(table, stdout);
    cli_table_destroy(table);
    char live[UF_SIZE_TEXT_CAPACITY];
    printf("\nPeak live is %s: no allocator that moves nothing can run below it. Their time is by "
           "a\nlatency model of the driver; waits are calls that let the whole device finish.\n",
           uf__size_format(live, sizeof live, peak_live_bytes));
    if (view->run.limit_bytes == 0) {
        printf("garbage_collection_threshold is a share of a limit: without --limit it does "
               "nothing.\n");
    }
    return is_printed;
}

static bool print_json(const replay_view *view, const uf_replay_result *results)
{
    cli_json json;
    cli_json_init(&json, stdout);
    cli_json_object_begin(&json, NULL);
    cli_json_string(&json, "input", view->options->input);
    cli_json_array_begin(&json, "rows");
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        const uf_replay_result *result = &results[i];
        cli_json_object_begin(&json, NULL);
        cli_json_string(&json, "conf", settings[i]);
        cli_json_bool(&json, "fits", !result->has_oom);
        cli_json_uint64(&json, "peak_live_bytes", result->peak_live_bytes);
        cli_json_uint64(&json, "peak_reserved_bytes", result->peak_reserved_bytes);
        cli_json_uint64(&json, "num_ooms", result->oom_count);
        cli_json_uint64(&json, "num_alloc_retries", result->retry_count);
        if (result->has_oom) {
            cli_json_uint64(&json, "first_oom_event", result->first_oom.event);
        } else {
            cli_json_null(&json, "first_oom_event");
        }
        cli_json_uint64(&json, "device_calls", result->device_calls);
        cli_json_uint64(&json, "device_syncs", result->device_syncs);
        cli_json_double(&json, "device_ms", result->device_ms);
        cli_json_object_end(&json);
    }
    cli_json_array_end(&json);
    cli_json_object_end(&json);
    return cli_json_finish(&json);
}

cli_exit replay_compare(const replay_view *view)
{
    uf_replay_result results[SETTING_COUNT];
    bool has_fit = false;
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        uf_error error = {0};
        uf_replay_options run = view->run;
        run.conf = settings[i];
        cli_progress progress;
        cli_progress_init(&progress, name_of(settings[i]));
        run.progress = cli_progress_update;
        run.progress_context = &progress;
        uf_status status = uf_replay_run(view->program, &run, &results[i], &error);
        cli_progress_fini(&progress);
        if (status != UF_OK) {
            return cli_fail("replay", &error);
        }
        has_fit = has_fit || !results[i].has_oom;
    }
    bool is_printed =
        view->options->is_json ? print_json(view, results) : print_table(view, results);
    if (!is_printed) {
        return CLI_EXIT_ENVIRONMENT;
    }
    return has_fit ? CLI_EXIT_DONE : CLI_EXIT_NO;
}
