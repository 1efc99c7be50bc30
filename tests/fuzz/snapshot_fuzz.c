/* SPDX-License-Identifier: MIT
 *
 * Fuzz target of the trace reader as a whole: detection, decompression, and above all snapshots.
 * What has been read must also hold together: every index within its array. */
#include <stdint.h>
#include <stdlib.h>

#include <unfrag/trace.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

static void require(bool is_true)
{
    if (!is_true)
        abort();
}

static bool is_index(uint32_t index, uint64_t count)
{
    return index == UF_NONE || index < count;
}

static void check_strings(const uf_trace *trace)
{
    for (uint32_t i = 0; i < trace->frame_count; i++)
        require(is_index(trace->frames[i].filename, trace->string_count) &&
                is_index(trace->frames[i].name, trace->string_count));
    for (uint64_t i = 0; i < trace->frame_id_count; i++)
        require(trace->frame_ids[i] < trace->frame_count);
    for (uint32_t i = 0; i < trace->stack_count; i++)
        require(trace->stacks[i].first + trace->stacks[i].count <= trace->frame_id_count);
    for (uint32_t i = 0; i < trace->annotation_count; i++)
        require(is_index(trace->annotations[i].name, trace->string_count) &&
                is_index(trace->annotations[i].stage, trace->string_count));
    require(is_index(trace->settings.conf, trace->string_count) &&
            is_index(trace->oddities.first_unknown_key, trace->string_count));
}

static void check_events(const uf_trace *trace)
{
    uint64_t next = 0;
    for (uint32_t i = 0; i < trace->device_count; i++) {
        require(trace->devices[i].first == next);
        next += trace->devices[i].count;
    }
    require(next == trace->event_count);
    for (uint64_t i = 0; i < trace->event_count; i++)
        require(trace->events[i].site < trace->site_count &&
                trace->events[i].action < UF_ACTION_COUNT && trace->events[i].reserved[0] == 0);
    for (uint32_t i = 0; i < trace->site_count; i++)
        require(is_index(trace->sites[i].stack, trace->stack_count) &&
                is_index(trace->sites[i].compile_context, trace->string_count) &&
                is_index(trace->sites[i].user_metadata, trace->string_count) &&
                is_index(trace->sites[i].action_name, trace->string_count));
}

static void check_segments(const uf_trace *trace)
{
    uint64_t next = 0;
    for (uint32_t i = 0; i < trace->segment_count; i++) {
        require(trace->segments[i].first_block == next &&
                is_index(trace->segments[i].stack, trace->stack_count));
        next += trace->segments[i].block_count;
    }
    require(next == trace->block_count);
    for (uint64_t i = 0; i < trace->block_count; i++)
        require(is_index(trace->blocks[i].stack, trace->stack_count) &&
                trace->blocks[i].state <= UF_BLOCK_OTHER);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
    uf_trace *trace = NULL;
    uf_error error;
    if (uf_trace_read_memory(data, size_bytes, NULL, &trace, &error) == UF_OK) {
        check_strings(trace);
        check_events(trace);
        check_segments(trace);
        uf_trace_destroy(trace);
    } else {
        require(trace == NULL && error.text[0] != '\0');
    }
    return 0;
}
