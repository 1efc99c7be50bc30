/* SPDX-License-Identifier: MIT
 *
 * Tables of numbers travel as one text each: an array would take a line a number. */
#include "report_data.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "replay/program.h"

enum { SITE_LIMIT = 100 };

/* A text that grows; a failure of the host's memory leaves it NULL. */
typedef struct text_stream {
    char *text;
    size_t size;
    FILE *stream;
} text_stream;

static void open_text(text_stream *text)
{
    memset(text, 0, sizeof *text);
    text->stream = open_memstream(&text->text, &text->size);
}

static void write_text(cli_json *json, const char *key, text_stream *text)
{
    bool is_good = text->stream != NULL && fclose(text->stream) == 0;
    if (is_good) {
        cli_json_string_bytes(json, key, text->text, text->size);
    } else {
        json->has_failed = true;
        cli_json_null(json, key);
    }
    free(text->text);
}

static void write_levels(cli_json *json, const char *key, const uint64_t levels[UF_LEVEL_COUNT])
{
    cli_json_object_begin(json, key);
    cli_json_uint64(json, "live", levels[UF_LEVEL_LIVE]);
    cli_json_uint64(json, "allocated", levels[UF_LEVEL_ALLOCATED]);
    cli_json_uint64(json, "active", levels[UF_LEVEL_ACTIVE]);
    cli_json_uint64(json, "reserved", levels[UF_LEVEL_RESERVED]);
    cli_json_object_end(json);
}

static void write_peak(cli_json *json, const char *key, const uf_peak *peak)
{
    cli_json_object_begin(json, key);
    cli_json_uint64(json, "bytes", peak->bytes);
    cli_json_uint64(json, "event", peak->event);
    write_levels(json, "levels", peak->levels);
    cli_json_object_end(json);
}

static void write_summary(cli_json *json, const uf_summary *summary)
{
    cli_json_object_begin(json, "summary");
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
    cli_json_uint64(json, "lost_bytes", summary->lost_bytes);
    cli_json_object_end(json);
}

static void write_marks(cli_json *json, const uf_marks *marks)
{
    text_stream text;
    cli_json_object_begin(json, "marks");
    cli_json_uint64(json, "oom_count", marks->counts[UF_MARK_OOM]);
    cli_json_uint64(json, "retry_count", marks->counts[UF_MARK_RETRY]);
    cli_json_uint64(json, "empty_count", marks->counts[UF_MARK_EMPTY]);
    open_text(&text);
    for (uint32_t i = 0; i < marks->count && text.stream != NULL; i++) {
        const uf_mark *mark = &marks->items[i];
        fprintf(text.stream, "%s%d,%" PRIu32 ",%" PRIu64 ",%" PRIu64, i > 0 ? ";" : "",
                (int)mark->kind, mark->event, mark->bytes, mark->free_bytes);
    }
    write_text(json, "list", &text);
    cli_json_object_end(json);
}

static void write_address(cli_json *json, const char *key, uint64_t addr)
{
    char text[24];
    snprintf(text, sizeof text, "0x%" PRIx64, addr);
    cli_json_string(json, key, text);
}

static void write_frame(cli_json *json, const char *key, const uf_trace *trace, uint32_t stack)
{
    const uf_frame *frame = uf__sites_frame(trace, stack);
    text_stream text;
    if (frame == NULL) {
        cli_json_null(json, key);
        return;
    }
    open_text(&text);
    if (text.stream != NULL) {
        fprintf(text.stream, "%s:%" PRId64 " %s", uf_trace_string(trace, frame->filename),
                frame->line, uf_trace_string(trace, frame->name));
    }
    write_text(json, key, &text);
}

static void write_stack_number(cli_json *json, const uf_columns *columns, const uf_trace *trace,
                               uint32_t stack)
{
    if (stack < trace->stack_count && columns->numbers[stack] != UF_NONE) {
        cli_json_uint64(json, "stack", columns->numbers[stack]);
    } else {
        cli_json_null(json, "stack");
    }
}

static const uf_span *holder_span(const report_input *input, const uf_moment *moment,
                                  const uf_trace_block *holder)
{
    uint64_t index = (uint64_t)(holder - moment->blocks);
    return &input->history.spans[moment->span_of_block[index]];
}

static void write_pinned(cli_json *json, const report_input *input, const uf_moment *moment,
                         const uf_snapshot_pinned *pinned)
{
    const uf_span *span = holder_span(input, moment, pinned->holder);
    cli_json_object_begin(json, NULL);
    write_address(json, "addr", pinned->segment->addr);
    cli_json_uint64(json, "total_bytes", pinned->segment->total_bytes);
    cli_json_uint64(json, "cached_bytes", pinned->cached_bytes);
    cli_json_uint64(json, "largest_cached_bytes", pinned->largest_cached_bytes);
    cli_json_uint64(json, "live_bytes", pinned->live_bytes);
    cli_json_uint64(json, "live_count", pinned->live_count);
    cli_json_bool(json, "is_expandable", pinned->segment->is_expandable);
    cli_json_object_begin(json, "holder");
    write_address(json, "addr", span->addr);
    cli_json_uint64(json, "bytes", span->size_bytes);
    cli_json_uint64(json, "from", span->from);
    cli_json_bool(json, "is_start", span->is_start);
    write_frame(json, "frame", input->trace, span->stack);
    write_stack_number(json, &input->columns, input->trace, span->stack);
    cli_json_object_end(json);
    cli_json_object_end(json);
}

static void write_explanation(cli_json *json, const uf_explanation *explanation)
{
    cli_json_array_begin(json, "causes");
    for (uint32_t i = 0; explanation != NULL && i < explanation->cause_count; i++) {
        cli_json_object_begin(json, NULL);
        cli_json_string(json, "id", uf__cause_id(explanation->causes[i]));
        cli_json_string(json, "reason", explanation->reasons[i]);
        cli_json_object_end(json);
    }
    cli_json_array_end(json);
    cli_json_array_begin(json, "advice");
    for (uint32_t i = 0; explanation != NULL && i < explanation->advice_count; i++) {
        cli_json_string(json, NULL, explanation->advice[i]);
    }
    cli_json_array_end(json);
}

static void write_moment(cli_json *json, const report_input *input, const uf_moment *moment)
{
    static const char *const kinds[] = {"peak", "oom", "end"};
    const uf_snapshot_state *state = &moment->state;
    cli_json_object_begin(json, NULL);
    cli_json_string(json, "kind", kinds[moment->kind]);
    cli_json_uint64(json, "event", moment->event);
    cli_json_uint64(json, "wanted_bytes", moment->wanted_bytes);
    write_levels(json, "levels", moment->levels);
    cli_json_uint64(json, "segment_count", state->segment_count);
    cli_json_uint64(json, "cached_bytes", state->cached_bytes);
    cli_json_uint64(json, "between_bytes", state->between_bytes);
    cli_json_uint64(json, "whole_bytes", state->whole_bytes);
    cli_json_uint64(json, "stream_bytes", state->stream_bytes);
    cli_json_uint64(json, "pool_bytes", state->pool_bytes);
    cli_json_uint64(json, "largest_cached_bytes", state->largest_cached_bytes);
    cli_json_uint64(json, "pinned_count", state->pinned_all_count);
    cli_json_array_begin(json, "pinned");
    for (uint32_t i = 0; i < state->pinned_count; i++) {
        write_pinned(json, input, moment, &state->pinned[i]);
    }
    cli_json_array_end(json);
    write_explanation(json, moment->explanation);
    cli_json_object_end(json);
}

static void write_names(cli_json *json, const report_input *input)
{
    const uf_history *history = &input->history;
    char text[64];
    cli_json_array_begin(json, "streams");
    for (uint32_t i = 0; i < history->stream_count; i++) {
        snprintf(text, sizeof text, "0x%" PRIx64, history->streams[i]);
        cli_json_string(json, NULL, history->streams[i] == 0 ? "default" : text);
    }
    cli_json_array_end(json);
    cli_json_array_begin(json, "pools");
    for (uint32_t i = 0; i < history->pool_count; i++) {
        /* Older recordings name no pools: those that had to be there have numbers of ours. */
        bool is_named = input->program == NULL || input->program->pools[i].is_recorded;
        if (is_named) {
            snprintf(text, sizeof text, "(%" PRIu64 ", %" PRIu64 ")", history->pools[i][0],
                     history->pools[i][1]);
        } else {
            snprintf(text, sizeof text, "%" PRIu32 ", inferred", i);
        }
        cli_json_string(json, NULL, i == 0 ? "default" : text);
    }
    cli_json_array_end(json);
}

/* The frames that the page's stacks refer to, each once, and the stacks as their numbers. */
static void write_stacks(cli_json *json, const report_input *input)
{
    const uf_trace *trace = input->trace;
    const uf_columns *columns = &input->columns;
    uint32_t *numbers = calloc(trace->frame_count + 1u, sizeof *numbers); /* + 1; 0 = not yet */
    uint32_t count = 0;
    text_stream stacks;
    open_text(&stacks);
    cli_json_array_begin(json, "frames");
    json->has_failed = json->has_failed || numbers == NULL;
    for (uint32_t i = 0; i < columns->stack_count && numbers != NULL && stacks.stream != NULL;
         i++) {
        const uf_stack *stack = &trace->stacks[columns->stacks[i]];
        for (uint32_t k = 0; k < stack->count && k < 64; k++) {
            uint32_t id = trace->frame_ids[stack->first + k];
            const uf_frame *frame = &trace->frames[id];
            if (numbers[id] == 0) {
                text_stream text;
                open_text(&text);
                if (text.stream != NULL) {
                    fprintf(text.stream, "%s:%" PRId64 " %s",
                            uf_trace_string(trace, frame->filename), frame->line,
                            uf_trace_string(trace, frame->name));
                }
                write_text(json, NULL, &text);
                numbers[id] = ++count;
            }
            fprintf(stacks.stream, "%s%" PRIu32, k > 0 ? "," : "", numbers[id] - 1);
        }
        fputc(';', stacks.stream);
    }
    cli_json_array_end(json);
    write_text(json, "stacks", &stacks);
    free(numbers);
}

static void write_sites(cli_json *json, const report_input *input)
{
    const uf_sites *sites = &input->sites;
    cli_json_uint64(json, "site_count", sites->count);
    cli_json_array_begin(json, "sites");
    for (uint32_t i = 0; i < sites->count && i < SITE_LIMIT; i++) {
        const uf_report_site *site = &sites->items[i];
        cli_json_object_begin(json, NULL);
        write_frame(json, "frame", input->trace, site->stack);
        write_stack_number(json, &input->columns, input->trace, site->stack);
        cli_json_uint64(json, "peak_bytes", site->peak_bytes);
        cli_json_uint64(json, "peak_count", site->peak_count);
        cli_json_uint64(json, "alloc_bytes", site->alloc_bytes);
        cli_json_uint64(json, "alloc_count", site->alloc_count);
        cli_json_uint64(json, "largest_bytes", site->largest_bytes);
        cli_json_object_end(json);
    }
    cli_json_array_end(json);
}

static void write_known(cli_json *json, const char *key, bool is_known, uint64_t value)
{
    if (is_known) {
        cli_json_uint64(json, key, value);
    } else {
        cli_json_null(json, key);
    }
}

void report_settings_write(cli_json *json, const uf_settings *settings)
{
    static const char *const efforts[] = {"none", "peaks", "few", "limits", "search"};
    cli_json_object_begin(json, "settings");
    cli_json_string(json, "effort", efforts[settings->effort]);
    cli_json_uint64(json, "allowance_bytes", settings->allowance_bytes);
    cli_json_uint64(json, "replay_count", settings->replay_count);
    cli_json_array_begin(json, "rows");
    for (uint32_t i = 0; i < settings->count; i++) {
        const uf_settings_row *row = &settings->rows[i];
        cli_json_object_begin(json, NULL);
        cli_json_string(json, "conf", row->conf);
        cli_json_bool(json, "is_unfrag", row->is_unfrag);
        cli_json_bool(json, "is_today", row->is_today);
        cli_json_bool(json, "is_best", row->is_best);
        cli_json_bool(json, "is_undefined", row->is_undefined);
        write_known(json, "peak_reserved_bytes", row->has_peak, row->peak_reserved_bytes);
        write_known(json, "smallest_limit_bytes", row->has_smallest, row->smallest_limit_bytes);
        write_known(json, "card_bytes", row->card_bytes != 0, row->card_bytes);
        bool has_run = row->has_peak || row->has_smallest;
        write_known(json, "device_syncs", has_run, row->device_syncs);
        write_known(json, "num_alloc_retries", has_run, row->retry_count);
        cli_json_double(json, "device_ms", has_run ? row->device_ms : (double)INFINITY);
        cli_json_object_end(json);
    }
    cli_json_array_end(json);
    cli_json_object_end(json);
}

static void write_input(cli_json *json, const report_input *input)
{
    const uf_history *history = &input->history;
    const uf_program *program = input->program;
    cli_json_object_begin(json, NULL);
    cli_json_string(json, "name", input->name);
    cli_json_int64(json, "device", history->device);
    cli_json_bool(json, "has_history", program != NULL);
    cli_json_uint64(json, "events", history->event_count);
    cli_json_uint64(json, "blocks", history->span_count);
    cli_json_string(json, "conf", program != NULL ? uf_program_conf(program) : NULL);
    write_known(json, "limit_bytes", input->limit_bytes != 0, input->limit_bytes);
    cli_json_bool(json, "has_stacks", input->columns.stack_count > 0);
    cli_json_bool(json, "has_lost_beginning",
                  program != NULL && program->report.has_lost_beginning);
    cli_json_uint64(json, "skipped_blocks", input->columns.skipped_count);
    cli_json_uint64(json, "skipped_bytes_most", input->columns.skipped_bytes_most);
    cli_json_uint64(json, "skipped_events_most", input->columns.skipped_events_most);
    write_summary(json, &input->summary);
    write_peak(json, "peak_live", &history->peaks[UF_LEVEL_LIVE]);
    write_peak(json, "peak_allocated", &history->peaks[UF_LEVEL_ALLOCATED]);
    write_peak(json, "peak_active", &history->peaks[UF_LEVEL_ACTIVE]);
    write_peak(json, "peak_reserved", &history->peaks[UF_LEVEL_RESERVED]);
    write_peak(json, "most_cached", &history->most_cached);
    write_levels(json, "end", history->end_levels);
    write_marks(json, &input->marks);
    cli_json_array_begin(json, "moments");
    for (uint32_t i = 0; i < input->moments.count; i++) {
        write_moment(json, input, &input->moments.items[i]);
    }
    cli_json_array_end(json);
    write_names(json, input);
    write_stacks(json, input);
    write_sites(json, input);
    report_settings_write(json, &input->settings);
    cli_json_object_end(json);
}

void report_difference_write(cli_json *json, const uf_difference_report *difference)
{
    char text[32];
    if (difference == NULL) {
        cli_json_null(json, "difference");
        return;
    }
    cli_json_object_begin(json, "difference");
    cli_json_bool(json, "is_same_program", difference->is_same_program);
    cli_json_uint64(json, "equal_requests", difference->equal_count);
    cli_json_array_begin(json, "requests");
    cli_json_uint64(json, NULL, difference->request_count[0]);
    cli_json_uint64(json, NULL, difference->request_count[1]);
    cli_json_array_end(json);
    cli_json_array_begin(json, "parts");
    for (uint32_t i = 0; i < difference->part_count; i++) {
        const uf_difference_part *part = &difference->parts[i];
        cli_json_object_begin(json, NULL);
        snprintf(text, sizeof text, "0x%" PRIx64, part->stream);
        cli_json_string(json, "stream", part->stream == 0 ? "default" : text);
        cli_json_bool(json, "is_private", (part->pool_id[0] | part->pool_id[1]) != 0);
        cli_json_bool(json, "is_small", part->is_small);
        cli_json_array_begin(json, "reserved_bytes");
        cli_json_uint64(json, NULL, part->reserved_bytes[0]);
        cli_json_uint64(json, NULL, part->reserved_bytes[1]);
        cli_json_array_end(json);
        cli_json_array_begin(json, "active_bytes");
        cli_json_uint64(json, NULL, part->active_bytes[0]);
        cli_json_uint64(json, NULL, part->active_bytes[1]);
        cli_json_array_end(json);
        cli_json_array_begin(json, "segments");
        cli_json_uint64(json, NULL, part->segment_count[0]);
        cli_json_uint64(json, NULL, part->segment_count[1]);
        cli_json_array_end(json);
        cli_json_object_end(json);
    }
    cli_json_array_end(json);
    cli_json_object_end(json);
}

bool report_data_write(const report_view *view, FILE *stream)
{
    cli_json json;
    cli_json_init(&json, stream);
    cli_json_object_begin(&json, NULL);
    cli_json_string(&json, "version", UF_VERSION);
    cli_json_string(&json, "title",
                    view->options->title != NULL ? view->options->title : view->inputs[0].name);
    cli_json_array_begin(&json, "recordings");
    for (uint32_t i = 0; i < view->options->input_count; i++) {
        write_input(&json, &view->inputs[i]);
    }
    cli_json_array_end(&json);
    report_difference_write(&json, view->difference);
    cli_json_object_end(&json);
    return cli_json_finish(&json);
}
