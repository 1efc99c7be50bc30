/* SPDX-License-Identifier: MIT
 *
 * The explanation as one JSON object; unknown is null. */
#include "explain_report.h"

#include <stdio.h>

#include "json.h"

static void write_figure(cli_json *json, const char *key, const uf_message *message,
                         uf_figure_kind kind)
{
    if (message->figures[kind].is_known) {
        cli_json_uint64(json, key, message->figures[kind].bytes);
    } else {
        cli_json_null(json, key);
    }
}

static void write_amount(cli_json *json, const char *key, uf_amount amount)
{
    if (amount.is_known) {
        cli_json_int64(json, key, amount.bytes);
    } else {
        cli_json_null(json, key);
    }
}

/* As printed; what T1 to T3 print is brought to one meaning. */
static void write_figures(cli_json *json, const uf_explanation *out)
{
    const uf_message *message = &out->message;
    write_figure(json, "requested_bytes", message, UF_FIGURE_REQUESTED);
    write_figure(json, "total_bytes", message, UF_FIGURE_TOTAL);
    write_figure(json, "free_bytes", message, UF_FIGURE_DEVICE_FREE);
    write_figure(json, "allocated_bytes", message, UF_FIGURE_ALLOCATED);
    uf_amount unallocated = uf__explain_unallocated(out);
    write_amount(json, "unallocated_bytes", unallocated);
    write_amount(json, "outside_bytes", out->reckoning.outside);
    write_figure(json, "reserved_bytes", message, UF_FIGURE_RESERVED);
    write_figure(json, "cached_bytes", message, UF_FIGURE_CACHED);
    write_figure(json, "private_pools_bytes", message, UF_FIGURE_PRIVATE);
    write_figure(json, "allowed_bytes", message, UF_FIGURE_ALLOWED);
    write_figure(json, "process_bytes", message, UF_FIGURE_PROCESS);
    write_figure(json, "numbered_processes_bytes", message, UF_FIGURE_OTHERS);
}

static void write_derived(cli_json *json, const uf_explanation *out)
{
    const uf_reckoning *sums = &out->reckoning;
    cli_json_object_begin(json, "derived");
    write_amount(json, "reserved_bytes", sums->reserved);
    write_amount(json, "allocated_bytes", sums->allocated);
    write_amount(json, "cached_bytes", sums->cached);
    write_amount(json, "gap_bytes", sums->gap);
    cli_json_int64(json, "rounding_bytes", sums->rounding_bytes);
    write_amount(json, "coverable_bytes", sums->covering);
    write_amount(json, "missing_bytes", sums->missing);
    write_amount(json, "limit_bytes", sums->limit);
    cli_json_bool(json, "is_limit_inferred", sums->is_limit_inferred);
    write_amount(json, "own_outside_bytes", sums->own_outside);
    write_amount(json, "other_processes_bytes", sums->foreign);
    cli_json_bool(json, "is_segment_size", sums->is_segment);
    write_amount(json, "least_tensor_bytes", sums->least_wanted);
    write_amount(json, "most_tensor_bytes", sums->most_wanted);
    cli_json_object_end(json);
}

static void write_messages(cli_json *json, const uf_message_log *log)
{
    cli_json_array_begin(json, "messages");
    for (uint32_t i = 0; log != NULL && i < log->group_count; i++) {
        const uf_message_group *group = &log->groups[i];
        cli_json_object_begin(json, NULL);
        cli_json_string(json, "form", uf__message_form_id(group->message.form));
        cli_json_uint64(json, "count", group->count);
        cli_json_uint64(json, "first_line", group->first_line);
        cli_json_uint64(json, "last_line", group->last_line);
        write_figure(json, "requested_bytes", &group->message, UF_FIGURE_REQUESTED);
        write_figure(json, "free_bytes", &group->message, UF_FIGURE_DEVICE_FREE);
        write_figure(json, "allocated_bytes", &group->message, UF_FIGURE_ALLOCATED);
        cli_json_object_end(json);
    }
    cli_json_array_end(json);
}

static void write_stack(cli_json *json, const uf_trace *trace, const uf_trace_block *block)
{
    cli_json_array_begin(json, "stack");
    if (block->stack < trace->stack_count) {
        const uf_stack *stack = &trace->stacks[block->stack];
        for (uint32_t i = 0; i < stack->count; i++) {
            const uf_frame *frame = &trace->frames[trace->frame_ids[stack->first + i]];
            cli_json_object_begin(json, NULL);
            cli_json_string(json, "filename", uf_trace_string(trace, frame->filename));
            cli_json_int64(json, "line", frame->line);
            cli_json_string(json, "name", uf_trace_string(trace, frame->name));
            cli_json_object_end(json);
        }
    }
    cli_json_array_end(json);
}

static void write_pinned(cli_json *json, const explain_view *view)
{
    cli_json_array_begin(json, "pinned");
    for (uint32_t i = 0; i < view->snapshot->pinned_count; i++) {
        const uf_snapshot_pinned *pinned = &view->snapshot->pinned[i];
        cli_json_object_begin(json, NULL);
        cli_json_uint64(json, "addr", pinned->segment->addr);
        cli_json_uint64(json, "segment_bytes", pinned->segment->total_bytes);
        cli_json_uint64(json, "stream", pinned->segment->stream);
        cli_json_uint64(json, "cached_bytes", pinned->cached_bytes);
        cli_json_uint64(json, "largest_cached_bytes", pinned->largest_cached_bytes);
        cli_json_uint64(json, "live_bytes", pinned->live_bytes);
        cli_json_uint64(json, "live_blocks", pinned->live_count);
        cli_json_uint64(json, "holder_bytes", pinned->holder->size_bytes);
        write_stack(json, view->trace, pinned->holder);
        cli_json_object_end(json);
    }
    cli_json_array_end(json);
}

static void write_snapshot(cli_json *json, const explain_view *view)
{
    const uf_snapshot_state *state = view->snapshot;
    if (state == NULL) {
        cli_json_null(json, "snapshot");
        return;
    }
    cli_json_object_begin(json, "snapshot");
    cli_json_int64(json, "device", state->device);
    cli_json_uint64(json, "segments", state->segment_count);
    cli_json_uint64(json, "reserved_bytes", state->reserved_bytes);
    cli_json_uint64(json, "allocated_bytes", state->allocated_bytes);
    cli_json_uint64(json, "cached_bytes", state->cached_bytes);
    cli_json_uint64(json, "between_bytes", state->between_bytes);
    cli_json_uint64(json, "whole_bytes", state->whole_bytes);
    cli_json_uint64(json, "other_stream_bytes", state->stream_bytes);
    cli_json_uint64(json, "private_pools_bytes", state->pool_bytes);
    cli_json_uint64(json, "largest_cached_bytes", state->largest_cached_bytes);
    cli_json_uint64(json, "stream", state->stream);
    cli_json_uint64(json, "ooms", state->oom_count);
    if (state->has_oom) {
        cli_json_uint64(json, "last_oom_event", state->oom_event);
    } else {
        cli_json_null(json, "last_oom_event");
    }
    cli_json_bool(json, "is_growing", state->is_growing);
    cli_json_uint64(json, "pinned_segments", state->pinned_all_count);
    write_pinned(json, view);
    cli_json_object_end(json);
}

static void write_texts(cli_json *json, const char *key, const char (*texts)[UF_EXPLAIN_TEXT],
                        uint32_t count)
{
    cli_json_array_begin(json, key);
    for (uint32_t i = 0; i < count; i++) {
        cli_json_string(json, NULL, texts[i]);
    }
    cli_json_array_end(json);
}

bool explain_report_json(const explain_view *view)
{
    const uf_explanation *out = view->explanation;
    const uf_message *message = &out->message;
    cli_json json;
    cli_json_init(&json, stdout);
    cli_json_object_begin(&json, NULL);
    cli_json_string(&json, "input", view->input);
    cli_json_string(&json, "form", uf__message_form_id(message->form));
    cli_json_string(&json, "error", message->name[0] != '\0' ? message->name : NULL);
    if (message->has_device) {
        cli_json_int64(&json, "device", message->device);
    } else {
        cli_json_null(&json, "device");
    }
    write_figures(&json, out);
    write_derived(&json, out);
    cli_json_array_begin(&json, "causes");
    for (uint32_t i = 0; i < out->cause_count; i++) {
        cli_json_string(&json, NULL, uf__cause_id(out->causes[i]));
    }
    cli_json_array_end(&json);
    write_texts(&json, "reasons", out->reasons, out->cause_count);
    write_texts(&json, "advice", out->advice, out->advice_count);
    cli_json_bool(&json, "is_contradictory", out->contradiction_count > 0);
    write_texts(&json, "contradictions", out->contradictions, out->contradiction_count);
    cli_json_bool(&json, "is_oom", out->is_oom);
    cli_json_bool(&json, "is_incomplete", (message->signs & UF_SIGN_CUT) != 0);
    cli_json_uint64(&json, "count", out->count);
    if (out->first_line > 0) {
        cli_json_uint64(&json, "line", out->first_line);
    } else {
        cli_json_null(&json, "line");
    }
    write_messages(&json, view->log);
    write_snapshot(&json, view);
    cli_json_object_end(&json);
    return cli_json_finish(&json);
}
