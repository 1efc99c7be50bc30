/* SPDX-License-Identifier: MIT
 *
 * What `unfrag report` prints beside the page: the summary, for people and for scripts. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "replay/program.h"
#include "report_data.h"
#include "table.h"
#include "wrap.h"

static void print_difference(const report_view *view)
{
    const uf_difference_report *difference = view->difference;
    char one[UF_SIZE_TEXT_CAPACITY], other[UF_SIZE_TEXT_CAPACITY];
    char count[CLI_COUNT_TEXT_CAPACITY];
    if (difference == NULL) {
        return;
    }
    if (difference->is_same_program) {
        printf("Both make the same %s requests.\n",
               cli_count_format(count, difference->equal_count));
    } else {
        printf("They make different requests: the first %s are equal.\n",
               cli_count_format(count, difference->equal_count));
    }
    static const char *const names[] = {"peak live", "peak reserved"};
    static const uf_level levels[] = {UF_LEVEL_LIVE, UF_LEVEL_RESERVED};
    for (size_t i = 0; i < 2; i++) {
        printf(
            "%-14s %s and %s\n", names[i],
            uf__size_format(one, sizeof one, view->inputs[0].history.peaks[levels[i]].bytes),
            uf__size_format(other, sizeof other, view->inputs[1].history.peaks[levels[i]].bytes));
    }
}

void report_summary_text(const report_view *view, const char *output, uint64_t page_bytes)
{
    char size[UF_SIZE_TEXT_CAPACITY];
    for (uint32_t i = 0; i < view->options->input_count; i++) {
        const uf_summary *summary = &view->inputs[i].summary;
        if (view->options->input_count > 1) {
            printf("%s:\n", view->inputs[i].name);
        }
        cli_print_wrapped("", 0, summary->headline);
        for (uint32_t k = 0; k < summary->point_count && view->difference == NULL; k++) {
            cli_print_wrapped("- ", 2, summary->points[k]);
        }
        for (uint32_t k = 0; k < summary->advice_count && view->difference == NULL; k++) {
            char lead[24];
            snprintf(lead, sizeof lead, "%3" PRIu32 ". ", k + 1);
            printf("%s", k == 0 ? "\nWhat to do\n" : "");
            cli_print_wrapped(lead, 5, summary->advice[k]);
        }
        printf("\n");
    }
    print_difference(view);
    printf("%s: %s\n", output, uf__size_format(size, sizeof size, page_bytes));
}

static void write_recording(cli_json *json, const report_input *input)
{
    const uf_history *history = &input->history;
    const uf_summary *summary = &input->summary;
    cli_json_object_begin(json, NULL);
    cli_json_string(json, "input", input->name);
    cli_json_int64(json, "device", history->device);
    cli_json_bool(json, "has_history", input->program != NULL);
    cli_json_uint64(json, "events", history->event_count);
    cli_json_uint64(json, "peak_live_bytes", history->peaks[UF_LEVEL_LIVE].bytes);
    cli_json_uint64(json, "peak_allocated_bytes", history->peaks[UF_LEVEL_ALLOCATED].bytes);
    cli_json_uint64(json, "peak_active_bytes", history->peaks[UF_LEVEL_ACTIVE].bytes);
    cli_json_uint64(json, "peak_reserved_bytes", history->peaks[UF_LEVEL_RESERVED].bytes);
    cli_json_uint64(json, "peak_reserved_event", history->peaks[UF_LEVEL_RESERVED].event);
    cli_json_uint64(json, "lost_bytes", summary->lost_bytes);
    cli_json_uint64(json, "num_ooms", input->marks.counts[UF_MARK_OOM]);
    cli_json_uint64(json, "retry_groups", input->marks.counts[UF_MARK_RETRY]);
    cli_json_uint64(json, "empty_cache_groups", input->marks.counts[UF_MARK_EMPTY]);
    cli_json_uint64(json, "blocks_shown", input->columns.span_count);
    cli_json_uint64(json, "blocks_left_out", input->columns.skipped_count);
    cli_json_string(json, "headline", summary->headline);
    cli_json_array_begin(json, "points");
    for (uint32_t i = 0; i < summary->point_count; i++) {
        cli_json_string(json, NULL, summary->points[i]);
    }
    cli_json_array_end(json);
    cli_json_array_begin(json, "advice");
    for (uint32_t i = 0; i < summary->advice_count; i++) {
        cli_json_string(json, NULL, summary->advice[i]);
    }
    cli_json_array_end(json);
    report_settings_write(json, &input->settings);
    cli_json_object_end(json);
}

bool report_summary_json(const report_view *view, const char *output, uint64_t page_bytes)
{
    cli_json json;
    cli_json_init(&json, stdout);
    cli_json_object_begin(&json, NULL);
    cli_json_string(&json, "output", output);
    cli_json_uint64(&json, "page_bytes", page_bytes);
    cli_json_array_begin(&json, "recordings");
    for (uint32_t i = 0; i < view->options->input_count; i++) {
        write_recording(&json, &view->inputs[i]);
    }
    cli_json_array_end(&json);
    report_difference_write(&json, view->difference);
    cli_json_object_end(&json);
    return cli_json_finish(&json);
}
