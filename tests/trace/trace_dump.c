/* SPDX-License-Identifier: MIT
 *
 * Prints what the reader saw in a trace as one JSON object, for comparison with Python's own
 * pickle. Strings come byte by byte as Latin-1, so that any content survives. Exit 0, or 3 with the
 * status and message on standard error. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <unfrag/trace.h>

/* A string with all its bytes, or null for an absent one. */
static void print_string(const uf_trace *trace, uint32_t id)
{
    if (id == UF_NONE) {
        fputs("null", stdout);
        return;
    }
    const char *text = trace->string_data + trace->string_offsets[id];
    uint64_t length = trace->string_offsets[id + 1] - trace->string_offsets[id] - 1;
    putchar('"');
    for (uint64_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)text[i];
        if (byte < 0x20 || byte >= 0x7f || byte == '"' || byte == '\\')
            printf("\\u%04x", byte);
        else
            putchar(byte);
    }
    putchar('"');
}

static void print_index(uint32_t index)
{
    if (index == UF_NONE)
        fputs("null", stdout);
    else
        printf("%" PRIu32, index);
}

static void print_time(int64_t time_us)
{
    if (time_us == UF_TIME_UNKNOWN)
        fputs("null", stdout);
    else
        printf("%" PRId64, time_us);
}

static void print_pool(bool has_pool_id, const uint64_t pool_id[2])
{
    if (has_pool_id)
        printf("[%" PRIu64 ",%" PRIu64 "]", pool_id[0], pool_id[1]);
    else
        fputs("null", stdout);
}

/* [action, addr, size, time, stream, compile_context, user_metadata, pool, stack] */
static void print_event(const uf_trace *trace, const uf_event *event)
{
    const uf_site *site = &trace->sites[event->site];
    putchar('[');
    if (event->action == UF_ACTION_OTHER)
        print_string(trace, site->action_name);
    else
        printf("\"%s\"", uf_action_name((uf_action)event->action));
    printf(",%" PRIu64 ",%" PRIu64 ",", event->addr, event->size_bytes);
    print_time(event->time_us);
    printf(",%" PRIu64 ",", site->stream);
    print_string(trace, site->compile_context);
    putchar(',');
    print_string(trace, site->user_metadata);
    putchar(',');
    print_pool(site->has_pool_id, site->pool_id);
    putchar(',');
    print_index(site->stack);
    printf(",%u]", event->reserved[0] + event->reserved[1] + event->reserved[2]);
}

static void print_devices(const uf_trace *trace)
{
    printf("\"has_device_traces\":%d,\"devices\":[", trace->has_device_traces);
    for (uint32_t i = 0; i < trace->device_count; i++) {
        const uf_trace_device *device = &trace->devices[i];
        printf("%s[%" PRId32 ",[", i > 0 ? "," : "", device->device);
        for (uint64_t k = 0; k < device->count; k++) {
            if (k > 0)
                fputs(",\n", stdout);
            print_event(trace, &trace->events[device->first + k]);
        }
        fputs("]]", stdout);
    }
    fputs("],\n", stdout);
}

static void print_block(const uf_trace_block *block)
{
    printf("[%" PRIu64 ",%" PRIu64 ",%d,%" PRIu64 ",%d,", block->addr, block->size_bytes,
           block->has_requested, block->requested_bytes, block->state);
    print_index(block->stack);
    printf(",%u]", block->reserved[0] + block->reserved[1]);
}

static void print_segments(const uf_trace *trace)
{
    fputs("\"segments\":[", stdout);
    for (uint32_t i = 0; i < trace->segment_count; i++) {
        const uf_trace_segment *segment = &trace->segments[i];
        printf("%s{\"device\":%" PRId32 ",\"address\":%" PRIu64 ",\"total_size\":%" PRIu64
               ",\"allocated_size\":%" PRIu64 ",\"active_size\":%" PRIu64,
               i > 0 ? ",\n" : "", segment->device, segment->addr, segment->total_bytes,
               segment->allocated_bytes, segment->active_bytes);
        if (segment->has_requested)
            printf(",\"requested_size\":%" PRIu64, segment->requested_bytes);
        printf(",\"stream\":%" PRIu64 ",\"is_large\":%d,\"is_expandable\":%d,\"pool\":",
               segment->stream, segment->is_large, segment->is_expandable);
        print_pool(segment->has_pool_id, segment->pool_id);
        fputs(",\"stack\":", stdout);
        print_index(segment->stack);
        fputs(",\"blocks\":[", stdout);
        for (uint32_t k = 0; k < segment->block_count; k++) {
            if (k > 0)
                putchar(',');
            print_block(&trace->blocks[segment->first_block + k]);
        }
        fputs("]}", stdout);
    }
    fputs("],\n", stdout);
}

static void print_stacks(const uf_trace *trace)
{
    fputs("\"frames\":[", stdout);
    for (uint32_t i = 0; i < trace->frame_count; i++) {
        fputs(i > 0 ? ",\n[" : "[", stdout);
        print_string(trace, trace->frames[i].filename);
        printf(",%" PRId64 ",", trace->frames[i].line);
        print_string(trace, trace->frames[i].name);
        putchar(']');
    }
    fputs("],\n\"stacks\":[", stdout);
    for (uint32_t i = 0; i < trace->stack_count; i++) {
        fputs(i > 0 ? ",\n[" : "[", stdout);
        for (uint32_t k = 0; k < trace->stacks[i].count; k++)
            printf("%s%" PRIu32, k > 0 ? "," : "", trace->frame_ids[trace->stacks[i].first + k]);
        putchar(']');
    }
    fputs("],\n", stdout);
}

static void print_settings(const uf_trace *trace)
{
    const uf_trace_settings *settings = &trace->settings;
    if (!settings->is_present) {
        fputs("\"settings\":null,\n", stdout);
        return;
    }
    fputs("\"settings\":{\"conf\":", stdout);
    print_string(trace, settings->conf);
    if (settings->has_max_split_size)
        printf(",\"max_split_size\":%" PRId64, settings->max_split_size_bytes);
    if (settings->has_gc_threshold)
        printf(",\"garbage_collection_threshold\":%.17g", settings->gc_threshold);
    if (settings->has_expandable)
        printf(",\"expandable_segments\":%d", settings->is_expandable);
    if (settings->has_other & 1)
        printf(",\"pinned_num_register_threads\":%" PRIu32, settings->pinned_num_register_threads);
    if (settings->has_other & 2)
        printf(",\"release_lock_on_cudamalloc\":%d", settings->release_lock_on_cudamalloc);
    if (settings->has_other & 4)
        printf(",\"pinned_use_cuda_host_register\":%d", settings->pinned_use_cuda_host_register);
    if (settings->has_other & 8)
        printf(",\"graph_capture_record_stream_reuse\":%d",
               settings->graph_capture_record_stream_reuse);
    if (settings->has_divisions) {
        fputs(",\"roundup_power2_divisions\":{", stdout);
        for (unsigned i = 0; i < 16; i++)
            printf("%s\"%u\":%" PRIu64, i > 0 ? "," : "", 1u << i, settings->divisions[i]);
        putchar('}');
    }
    fputs("},\n", stdout);
}

static void print_annotations(const uf_trace *trace)
{
    fputs("\"annotations\":[", stdout);
    for (uint32_t i = 0; i < trace->annotation_count; i++) {
        fputs(i > 0 ? ",\n[" : "[", stdout);
        print_string(trace, trace->annotations[i].stage);
        putchar(',');
        print_string(trace, trace->annotations[i].name);
        printf(",%" PRId32 ",", trace->annotations[i].device);
        print_time(trace->annotations[i].time_us);
        putchar(']');
    }
    fputs("],\n", stdout);
}

static void print_oddities(const uf_trace *trace)
{
    const uf_trace_oddities *oddities = &trace->oddities;
    printf("\"oddities\":{\"unknown_key\":%" PRIu64 ",\"unknown_action\":%" PRIu64
           ",\"gap\":%" PRIu64 ",\"unsorted\":%" PRIu64 ",\"unaligned\":%" PRIu64
           ",\"sum\":%" PRIu64 ",\"first_unknown_key\":",
           oddities->unknown_key_count, oddities->unknown_action_count, oddities->gap_count,
           oddities->unsorted_count, oddities->unaligned_count, oddities->sum_mismatch_count);
    print_string(trace, oddities->first_unknown_key);
    fputs("},\n", stdout);
}

int main(int argc, char **argv)
{
    uf_trace_read_options options = {.struct_size_bytes = sizeof options};
    options.skip_stacks = argc > 2 && strcmp(argv[1], "--skip-stacks") == 0;
    uf_trace *trace = NULL;
    uf_error error;
    if (argc < 2) {
        fputs("usage: trace_dump [--skip-stacks] FILE\n", stderr);
        return 2;
    }
    uf_status status = uf_trace_read(argv[argc - 1], &options, &trace, &error);
    if (status != UF_OK) {
        fprintf(stderr, "%s %s\n", uf_status_name(status), error.text);
        return 3;
    }
    putchar('{');
    print_devices(trace);
    print_segments(trace);
    print_stacks(trace);
    print_settings(trace);
    print_annotations(trace);
    print_oddities(trace);
    printf("\"form\":%d,\"input_bytes\":%" PRIu64 ",\"decoded_bytes\":%" PRIu64 "}\n", trace->form,
           trace->input_bytes, trace->decoded_bytes);
    uf_trace_destroy(trace);
    return ferror(stdout) ? 1 : 0;
}
