/* SPDX-License-Identifier: MIT
 *
 * A trace as CSV (RFC 4180, but for lines that end in a line feed alone): a line for each event. */
#include "convert_form.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "trace/timeline.h"

static void write_quoted(FILE *stream, const char *text)
{
    fputc('"', stream);
    for (; *text != '\0'; text++) {
        if (*text == '"') {
            fputc('"', stream);
        }
        fputc(*text, stream);
    }
    fputc('"', stream);
}

static void write_frame(FILE *stream, const uf_trace *trace, const uf_site *site)
{
    if (site->stack == UF_NONE || trace->stacks[site->stack].count == 0) {
        return;
    }
    const uf_frame *frame = &trace->frames[trace->frame_ids[trace->stacks[site->stack].first]];
    char line[32];
    snprintf(line, sizeof line, ":%" PRId64 " ", frame->line);
    const char *parts[] = {uf_trace_string(trace, frame->filename), line,
                           uf_trace_string(trace, frame->name)};
    char text[512];
    snprintf(text, sizeof text, "%s%s%s", parts[0], parts[1], parts[2]);
    write_quoted(stream, text);
}

static void write_event(FILE *stream, const uf_timeline *timeline, const uf_event *event,
                        uint64_t number)
{
    const uf_site *site = &timeline->trace->sites[event->site];
    const char *action = event->action == UF_ACTION_OTHER
                             ? uf_trace_string(timeline->trace, site->action_name)
                             : uf_action_name((uf_action)event->action);
    fprintf(stream, "%" PRId32 ",%" PRIu64 ",", timeline->device->device, number);
    if (event->time_us != UF_TIME_UNKNOWN) {
        fprintf(stream, "%" PRId64, event->time_us);
    }
    fputc(',', stream);
    if (strpbrk(action, ",\"\r\n") != NULL) {
        write_quoted(stream, action);
    } else {
        fputs(action, stream);
    }
    fprintf(stream, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64, event->addr, event->size_bytes,
            site->stream);
    for (int i = 0; i < UF_LEVEL_COUNT; i++) {
        fputc(',', stream);
        if (i != UF_LEVEL_RESERVED || timeline->has_reserved) {
            fprintf(stream, "%" PRId64, timeline->levels[i]);
        }
    }
    fputc(',', stream);
    write_frame(stream, timeline->trace, site);
    fputc('\n', stream);
}

uf_status cli_csv_write(const uf_trace *trace, FILE *stream, uf_error *error)
{
    fputs("device,event,time_us,action,address,size_bytes,stream", stream);
    for (int i = 0; i < UF_LEVEL_COUNT; i++) {
        fprintf(stream, ",%s_bytes", uf__level_name((uf_level)i));
    }
    fputs(",frame\n", stream);
    for (uint32_t list = 0; list < trace->device_count; list++) {
        uf_timeline timeline;
        int64_t time_us;
        uf__timeline_begin(&timeline, trace, list);
        const uf_event *event;
        for (uint64_t number = 0; (event = uf__timeline_step(&timeline, &time_us)) != NULL;
             number++) {
            write_event(stream, &timeline, event, number);
        }
    }
    return ferror(stream) == 0
               ? UF_OK
               : uf__error_set(error, UF_ERROR_IO, "writing failed: %s", strerror(errno));
}
