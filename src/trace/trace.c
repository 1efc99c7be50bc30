/* SPDX-License-Identifier: MIT
 *
 * What a finished trace offers: its strings, the names of actions, and its end. */
#include <unfrag/trace.h>

#include <stdlib.h>

void uf_trace_destroy(uf_trace *trace)
{
    if (trace == NULL)
        return;
    free(trace->events);
    free(trace->devices);
    free(trace->sites);
    free(trace->segments);
    free(trace->blocks);
    free(trace->frames);
    free(trace->frame_ids);
    free(trace->stacks);
    free(trace->annotations);
    free(trace->string_data);
    free(trace->string_offsets);
    free(trace);
}

const char *uf_trace_string(const uf_trace *trace, uint32_t string_id)
{
    if (string_id >= trace->string_count)
        return "";
    return trace->string_data + trace->string_offsets[string_id];
}

const char *uf_action_name(uf_action action)
{
    switch (action) {
#define UF_ACTION_NAME(name, text) \
    case name:                     \
        return text;
        UF_ACTION_LIST(UF_ACTION_NAME)
#undef UF_ACTION_NAME
    case UF_ACTION_COUNT:
        break;
    }
    return "unknown";
}
