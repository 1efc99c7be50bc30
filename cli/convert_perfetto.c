/* SPDX-License-Identifier: MIT
 *
 * A trace in the Trace Event Format (JSON), which Perfetto and chrome://tracing open: counters,
 * events of an instant, and the largest blocks as asynchronous slices. A device is a "process".
 * Down-sampling keeps peaks: each slice of time keeps its first, least, largest and last value. */
#include "convert_form.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/addrmap.h"
#include "base/error.h"
#include "base/size.h"
#include "json.h"
#include "trace/timeline.h"

enum { INSTANTS_MAX = 20000 };

typedef struct writing {
    FILE *stream;
    cli_json json;
    const uf_trace *trace;
    int32_t device;
    uint64_t instant_count, dropped_count; /* but for oom, which are never dropped */
} writing;

/* One event of the format; the caller closes it with end_event. */
static void begin_event(writing *out, const char *phase, const char *name, int64_t time_us)
{
    fputc('\n', out->stream);
    cli_json_object_begin(&out->json, NULL);
    cli_json_string(&out->json, "ph", phase);
    cli_json_string(&out->json, "name", name);
    cli_json_int64(&out->json, "pid", out->device);
    cli_json_int64(&out->json, "ts", time_us);
}

static void end_event(writing *out)
{
    cli_json_object_end(&out->json);
}

/* As text: JavaScript's numbers end at 2^53. */
static void write_address(writing *out, uint64_t addr)
{
    char text[24];
    snprintf(text, sizeof text, "0x%" PRIx64, addr);
    cli_json_string(&out->json, "address", text);
}

static void write_counter(writing *out, uf_level level, int64_t time_us, int64_t value)
{
    begin_event(out, "C", uf__level_name(level), time_us);
    cli_json_object_begin(&out->json, "args");
    cli_json_int64(&out->json, "bytes", value);
    cli_json_object_end(&out->json);
    end_event(out);
}

typedef struct point {
    int64_t time_us, value;
} point;

/* One slice of time of one counter. */
typedef struct slice {
    point first, least, largest, last;
    bool is_begun;
} slice;

static void slice_add(slice *one, int64_t time_us, int64_t value)
{
    const point now = {time_us, value};
    if (!one->is_begun) {
        *one = (slice){now, now, now, now, true};
    }
    one->least = value < one->least.value ? now : one->least;
    one->largest = value > one->largest.value ? now : one->largest;
    one->last = now;
}

static void slice_write(writing *out, uf_level level, slice *one)
{
    if (!one->is_begun) {
        return;
    }
    bool is_least_first = one->least.time_us <= one->largest.time_us;
    const point points[4] = {one->first, is_least_first ? one->least : one->largest,
                             is_least_first ? one->largest : one->least, one->last};
    for (int i = 0; i < 4; i++) {
        if (i == 0 || points[i].value != points[i - 1].value) {
            write_counter(out, level, points[i].time_us, points[i].value);
        }
    }
    one->is_begun = false;
}

static void write_counters(writing *out, uint32_t list, uint64_t points)
{
    uf_timeline timeline;
    uf__timeline_begin(&timeline, out->trace, list);
    slice slices[UF_LEVEL_COUNT];
    memset(slices, 0, sizeof slices);
    int64_t time_us = 0, before[UF_LEVEL_COUNT];
    for (int i = 0; i < UF_LEVEL_COUNT; i++) {
        before[i] = timeline.levels[i];
        if (i != UF_LEVEL_RESERVED || timeline.has_reserved) {
            write_counter(out, (uf_level)i, 0, timeline.levels[i]);
        }
    }
    uint64_t count = timeline.device->count;
    uint64_t per_slice = points == 0 ? 1 : count / points + (count % points != 0);
    for (uint64_t number = 0; uf__timeline_step(&timeline, &time_us) != NULL; number++) {
        for (int i = 0; i < UF_LEVEL_COUNT; i++) {
            if (number % per_slice == 0) {
                slice_write(out, (uf_level)i, &slices[i]);
            }
            if (timeline.levels[i] != before[i]) {
                slice_add(&slices[i], time_us, timeline.levels[i]);
                before[i] = timeline.levels[i];
            }
        }
    }
    for (int i = 0; i < UF_LEVEL_COUNT; i++) {
        slice_write(out, (uf_level)i, &slices[i]);
    }
}

static void write_instant(writing *out, const char *name, int64_t time_us, const uf_event *event,
                          uint64_t segments)
{
    bool is_oom = event->action == UF_ACTION_OOM;
    if (!is_oom && out->instant_count >= INSTANTS_MAX) {
        out->dropped_count++;
        return;
    }
    out->instant_count++;
    begin_event(out, "i", name, time_us);
    cli_json_string(&out->json, "s", "p");
    cli_json_object_begin(&out->json, "args");
    cli_json_uint64(&out->json, "bytes", event->size_bytes);
    if (is_oom) {
        cli_json_uint64(&out->json, "device_free_bytes", event->addr);
    } else {
        write_address(out, event->addr);
    }
    if (segments > 0) {
        cli_json_uint64(&out->json, "segments", segments);
    }
    cli_json_uint64(&out->json, "stream", out->trace->sites[event->site].stream);
    cli_json_object_end(&out->json);
    end_event(out);
}

/* Segments given back directly before others are obtained: the cache was emptied for a request. */
static void write_instants(writing *out, uint32_t list)
{
    uf_timeline timeline;
    int64_t time_us;
    uint64_t given_back = 0;
    const uf_event *event;
    uf__timeline_begin(&timeline, out->trace, list);
    while ((event = uf__timeline_step(&timeline, &time_us)) != NULL) {
        switch (event->action) {
        case UF_ACTION_SEGMENT_FREE:
        case UF_ACTION_SEGMENT_UNMAP:
            given_back++;
            write_instant(out, uf_action_name((uf_action)event->action), time_us, event, 0);
            continue;
        case UF_ACTION_SEGMENT_ALLOC:
        case UF_ACTION_SEGMENT_MAP:
            if (given_back > 0) {
                write_instant(out, "cache given back for a request", time_us, event, given_back);
            }
            write_instant(out, uf_action_name((uf_action)event->action), time_us, event, 0);
            break;
        case UF_ACTION_OOM:
        case UF_ACTION_SNAPSHOT:
            write_instant(out, uf_action_name((uf_action)event->action), time_us, event, 0);
            break;
        default:
            break;
        }
        given_back = 0;
    }
}

static int compare_sizes(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a < b) - (a > b);
}

/* The size from which on at most `most` allocations of the device are as large. */
static uf_status find_least_size(const uf_trace *trace, const uf_trace_device *device,
                                 uint64_t most, uint64_t *least, uf_error *error)
{
    uint64_t count = 0;
    uint64_t *sizes = malloc((device->count + 1) * sizeof *sizes);
    if (sizes == NULL) {
        return uf__error_set(error, UF_ERROR_HOST_MEMORY, "no host memory to find large blocks");
    }
    for (uint64_t i = 0; i < device->count; i++) {
        const uf_event *event = &trace->events[device->first + i];
        if (event->action == UF_ACTION_ALLOC) {
            sizes[count++] = event->size_bytes;
        }
    }
    qsort(sizes, count, sizeof *sizes, compare_sizes);
    *least = count <= most ? 0 : most == 0 ? UINT64_MAX : sizes[most - 1];
    free(sizes);
    return UF_OK;
}

static void write_block_edge(writing *out, const char *phase, int64_t time_us,
                             const uf_event *event, uint32_t id)
{
    char name[UF_SIZE_TEXT_CAPACITY];
    uf__size_format(name, sizeof name, event->size_bytes);
    begin_event(out, phase, name, time_us);
    cli_json_string(&out->json, "cat", "block");
    cli_json_uint64(&out->json, "id", id);
    if (phase[0] == 'b') {
        const uf_site *site = &out->trace->sites[event->site];
        cli_json_object_begin(&out->json, "args");
        write_address(out, event->addr);
        cli_json_uint64(&out->json, "bytes", event->size_bytes);
        cli_json_uint64(&out->json, "stream", site->stream);
        if (site->stack != UF_NONE && out->trace->stacks[site->stack].count > 0) {
            const uf_frame *frame =
                &out->trace->frames[out->trace->frame_ids[out->trace->stacks[site->stack].first]];
            cli_json_string(&out->json, "file", uf_trace_string(out->trace, frame->filename));
            cli_json_int64(&out->json, "line", frame->line);
            cli_json_string(&out->json, "function", uf_trace_string(out->trace, frame->name));
        }
        cli_json_object_end(&out->json);
    }
    end_event(out);
}

static uf_status write_blocks(writing *out, uint32_t list, uint64_t most, uf_error *error)
{
    uf_timeline timeline;
    uf__timeline_begin(&timeline, out->trace, list);
    uint64_t least = 0, shown = 0;
    uf_status status = find_least_size(out->trace, timeline.device, most, &least, error);
    uf_addrmap open = {0};
    const uf_event *event;
    int64_t time_us;
    while (status == UF_OK && (event = uf__timeline_step(&timeline, &time_us)) != NULL) {
        if (event->action == UF_ACTION_ALLOC && event->size_bytes >= least && shown < most) {
            shown++;
            if (event->addr != 0 && !uf__addrmap_set(&open, event->addr, (uint32_t)shown)) {
                status =
                    uf__error_set(error, UF_ERROR_HOST_MEMORY, "no host memory to follow blocks");
            }
            write_block_edge(out, "b", time_us, event, (uint32_t)shown);
        } else if (event->action == UF_ACTION_FREE_COMPLETED && event->addr != 0) {
            const uint32_t *id = uf__addrmap_find(&open, event->addr);
            if (id != NULL) {
                write_block_edge(out, "e", time_us, event, *id);
                (void)uf__addrmap_remove(&open, event->addr);
            }
        }
    }
    uf__addrmap_fini(&open);
    return status;
}

static void write_name(writing *out)
{
    char name[48];
    snprintf(name, sizeof name, "device %" PRId32, out->device);
    begin_event(out, "M", "process_name", 0);
    cli_json_object_begin(&out->json, "args");
    cli_json_string(&out->json, "name", name);
    cli_json_object_end(&out->json);
    end_event(out);
}

static void write_other_data(writing *out, int64_t first_time_us)
{
    cli_json_object_begin(&out->json, "otherData");
    cli_json_string(&out->json, "made_by", "unfrag " UF_VERSION);
    if (first_time_us != UF_TIME_UNKNOWN) {
        cli_json_int64(&out->json, "first_event_unix_us", first_time_us);
    }
    cli_json_uint64(&out->json, "events", out->trace->event_count);
    cli_json_uint64(&out->json, "instants_left_out", out->dropped_count);
    cli_json_object_end(&out->json);
}

uf_status cli_perfetto_write(const uf_trace *trace, const cli_perfetto_bounds *bounds, FILE *stream,
                             uf_error *error)
{
    writing out = {.stream = stream, .trace = trace};
    int64_t first_time_us = UF_TIME_UNKNOWN;
    uf_status status = UF_OK;
    cli_json_init(&out.json, stream);
    out.json.is_on_one_line = true;
    cli_json_object_begin(&out.json, NULL);
    cli_json_string(&out.json, "displayTimeUnit", "ms");
    cli_json_array_begin(&out.json, "traceEvents");
    for (uint32_t list = 0; list < trace->device_count && status == UF_OK; list++) {
        if (trace->devices[list].count == 0) {
            continue;
        }
        uf_timeline timeline;
        uf__timeline_begin(&timeline, trace, list);
        first_time_us = first_time_us == UF_TIME_UNKNOWN ? timeline.first_time_us : first_time_us;
        out.device = trace->devices[list].device;
        write_name(&out);
        write_counters(&out, list, bounds->points);
        write_instants(&out, list);
        status = write_blocks(&out, list, bounds->blocks, error);
    }
    cli_json_array_end(&out.json);
    write_other_data(&out, first_time_us);
    cli_json_object_end(&out.json);
    errno = 0;
    if (!cli_json_finish(&out.json) && status == UF_OK) {
        status = uf__error_set(error, UF_ERROR_IO, "writing failed: %s", strerror(errno));
    }
    return status;
}
