/* SPDX-License-Identifier: MIT
 *
 * Running an operation log against its recording. See driver.h. */
#include "oplog/driver.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static void recording_event(driver_recording *recording, const uf_trace *trace,
                            const uf_event *event)
{
    recording->events = model_grow(recording->events, recording->event_count,
                                   &recording->event_capacity, sizeof *recording->events);
    recording->events[recording->event_count++] =
        (expect_event){.action = (uf_action)event->action,
                       .addr = event->addr,
                       .size_bytes = event->size_bytes,
                       .stream = trace->sites[event->site].stream};
}

static void recording_segment(driver_recording *recording, const uf_trace *trace,
                              const uf_trace_segment *segment)
{
    model_layout_segment(&recording->layout,
                         &(model_segment){.addr = segment->addr,
                                          .stream = segment->stream,
                                          .pool_id = {segment->pool_id[0], segment->pool_id[1]},
                                          .is_large = segment->is_large,
                                          .is_expandable = segment->is_expandable});
    for (uint32_t i = 0; i < segment->block_count; i++) {
        const uf_trace_block *block = &trace->blocks[segment->first_block + i];
        model_layout_block(&recording->layout,
                           &(model_block){.addr = block->addr,
                                          .size_bytes = block->size_bytes,
                                          .requested_bytes = block->requested_bytes,
                                          .state = (uf_block_state)block->state});
    }
}

/* The segment's own sums are part of the recording too. */
static bool sums_equal(const uf_trace_segment *segment, const model_segment *own)
{
    return segment->total_bytes == own->total_bytes &&
           segment->allocated_bytes == own->allocated_bytes &&
           segment->active_bytes == own->active_bytes &&
           segment->requested_bytes == own->requested_bytes;
}

uf_status driver_recording_read(const char *base, driver_recording *recording, uf_error *error)
{
    *recording = (driver_recording){0};
    char path[4096];
    uf_trace *trace = NULL;
    uf_status status = oplog_path(base, ".snapshot.pickle", path, sizeof path, error);
    if (status == UF_OK) {
        status = uf_trace_read(path, NULL, &trace, error);
    }
    if (status != UF_OK) {
        return status;
    }
    for (uint64_t i = 0; i < trace->event_count; i++) {
        recording_event(recording, trace, &trace->events[i]);
    }
    for (uint32_t i = 0; i < trace->segment_count && status == UF_OK; i++) {
        recording_segment(recording, trace, &trace->segments[i]);
        if (!sums_equal(&trace->segments[i], &recording->layout.segments[i])) {
            status = uf__error_set(error, UF_ERROR_BAD_INPUT,
                                   "segment %" PRIu32 " contradicts its blocks", i);
        }
    }
    uf_trace_destroy(trace);
    if (status == UF_OK) {
        status = oplog_stats_read(base, &recording->stats, error);
    }
    if (status != UF_OK) {
        driver_recording_fini(recording);
    }
    return status;
}

void driver_recording_fini(driver_recording *recording)
{
    free(recording->events);
    model_layout_fini(&recording->layout);
    *recording = (driver_recording){0};
}

static uf_status pool_execute(const model_vtable *vtable, void *model, const oplog_op *op,
                              uf_error *error)
{
    switch (op->kind) {
    case OPLOG_POOL_CREATE:
        return vtable->pool_create(model, op->pool, &op->pool_options, error);
    case OPLOG_POOL_BEGIN:
        return vtable->pool_begin(model, op->pool, error);
    case OPLOG_POOL_END:
        return vtable->pool_end(model, op->pool, error);
    default:
        return vtable->pool_destroy(model, op->pool, error);
    }
}

uf_status driver_op_execute(const model_vtable *vtable, void *model, const oplog_op *op,
                            uint64_t *addrs, uint64_t *addr, bool *is_skipped, uf_error *error)
{
    uf_status status = UF_OK;
    *addr = 0;
    *is_skipped = false;
    switch (op->kind) {
    case OPLOG_ALLOC:
        status = vtable->alloc(model, op->bytes, op->stream, addr, error);
        addrs[op->id] = status == UF_OK ? *addr : 0;
        return status;
    case OPLOG_FREE:
    case OPLOG_RECORD_STREAM:
        *is_skipped = addrs[op->id] == 0;
        if (*is_skipped) {
            return UF_OK;
        }
        if (op->kind == OPLOG_RECORD_STREAM) {
            return vtable->record_stream(model, addrs[op->id], op->stream, error);
        }
        status = vtable->free_block(model, addrs[op->id], error);
        addrs[op->id] = 0;
        return status;
    case OPLOG_SYNCHRONIZE:
        return vtable->synchronize(model, !op->is_one_stream, op->stream);
    case OPLOG_EMPTY_CACHE:
        return vtable->empty_cache(model, error);
    case OPLOG_SET_FRACTION:
        return vtable->set_fraction(model, op->fraction, error);
    case OPLOG_SET_CONF:
        return vtable->set_conf(model, op->conf, error);
    default:
        return pool_execute(vtable, model, op, error);
    }
}

/* The redirection under way decides which pool new memory is for. */
static void track_pool(expect *e, const oplog_op *op)
{
    if (op->kind == OPLOG_POOL_BEGIN) {
        memcpy(e->pool, op->pool, sizeof e->pool);
    } else if (op->kind == OPLOG_POOL_END) {
        e->pool[0] = e->pool[1] = 0;
    }
}

/* Executes operation number index; false on a difference. */
static bool step(const model_vtable *vtable, void *model, const oplog_op *op, uint64_t *addrs,
                 expect *e)
{
    uint64_t addr = 0;
    bool is_skipped = false;
    uf_error error = {UF_OK, ""};
    track_pool(e, op);
    uf_status status = driver_op_execute(vtable, model, op, addrs, &addr, &is_skipped, &error);
    bool is_oom = op->kind == OPLOG_ALLOC && op->addr == 0;
    if (status != (is_oom ? UF_ERROR_OUT_OF_MEMORY : UF_OK)) {
        expect_differ(e, "expected %s, got status %d %s", is_oom ? "out of memory" : "success",
                      (int)status, error.text);
    } else if (addr != op->addr) {
        expect_differ(e, "expected address 0x%" PRIx64 ", got 0x%" PRIx64, op->addr, addr);
    } else if (is_skipped) {
        expect_differ(e, "the log uses an allocation that does not exist");
    }
    if (!e->is_different && vtable->check != NULL && vtable->check(model, &error) != UF_OK) {
        expect_differ(e, "invariant broken: %s", error.text);
    }
    return !e->is_different;
}

/* The difference with its surroundings. */
static void report_difference(const expect *e, const oplog_op *op, size_t index,
                              driver_report *report)
{
    char line[300] = "end of the log";
    if (op != NULL) {
        FILE *stream = fmemopen(line, sizeof line, "w");
        if (stream != NULL) {
            oplog_op_write(op, stream);
            (void)fclose(stream);
        }
        line[strcspn(line, "\n")] = '\0';
    }
    size_t length = (size_t)snprintf(report->text, sizeof report->text, "operation %zu: %s\n  %s\n",
                                     index, line, e->text);
    size_t first = e->cursor > 3 ? e->cursor - 3 : 0;
    for (size_t i = first; i < e->count && i < e->cursor + 4; i++) {
        char text[160];
        expect_event_text(&e->events[i], text);
        if (length < sizeof report->text) {
            length +=
                (size_t)snprintf(report->text + length, sizeof report->text - length,
                                 "  %s event %zu: %s\n", i < e->cursor ? "had " : "want", i, text);
        }
    }
}

static bool stats_equal(const model_vtable *vtable, void *model, const oplog_stats *recorded,
                        driver_report *report)
{
    int64_t values[MODEL_STAT_COUNT];
    vtable->stats(model, values);
    for (size_t i = 0; i < MODEL_STAT_COUNT; i++) {
        if (!recorded->is_recorded[i]) {
            continue;
        }
        if (values[i] != recorded->values[i]) {
            char name[64];
            model_stat_name(i, name);
            (void)snprintf(report->text, sizeof report->text,
                           "statistic %s: expected %" PRId64 ", got %" PRId64 "\n", name,
                           recorded->values[i], values[i]);
            return false;
        }
        report->stat_count++;
    }
    return true;
}

static bool layout_equal(const model_vtable *vtable, void *model, const model_layout *recorded,
                         driver_report *report)
{
    model_layout layout = {0};
    vtable->walk(model, &layout);
    bool is_equal = model_layout_equal(recorded, &layout, report->text, sizeof report->text);
    model_layout_fini(&layout);
    return is_equal;
}

static void run(const model_vtable *vtable, void *model, const oplog *log,
                const driver_recording *recording, expect *e, driver_report *report)
{
    uint64_t *addrs = calloc(log->id_count + 1, sizeof *addrs);
    bool is_equal = addrs != NULL;
    size_t index = 0;
    while (is_equal && index < log->count) {
        is_equal = step(vtable, model, &log->ops[index], addrs, e);
        index += is_equal ? 1 : 0;
    }
    free(addrs);
    report->op_count = index;
    report->event_count = e->cursor;
    if (!is_equal || !expect_finish(e)) {
        report_difference(e, index < log->count ? &log->ops[index] : NULL, index, report);
        return;
    }
    report->is_equal = stats_equal(vtable, model, &recording->stats, report) &&
                       layout_equal(vtable, model, &recording->layout, report);
}

uf_status driver_verify(const model_vtable *vtable, const oplog *log,
                        const driver_recording *recording, driver_report *report, uf_error *error)
{
    *report = (driver_report){0};
    expect e = {0};
    for (size_t i = 0; i < recording->event_count; i++) {
        expect_append(&e, &recording->events[i]);
    }
    model_config config = {.total_bytes = log->total_bytes, .host = expect_host(&e)};
    void *model = NULL;
    uf_status status = vtable->create(&config, &model, error);
    if (status == UF_OK) {
        run(vtable, model, log, recording, &e, report);
        vtable->destroy(model);
    }
    expect_fini(&e);
    return status;
}

int driver_main(const model_vtable *vtable, int argc, char **argv)
{
    if (argc != 2 || argv[1][0] == '-') {
        (void)fprintf(stderr,
                      "usage: %s BASE\n"
                      "reads BASE.ops.jsonl, BASE.snapshot.pickle and BASE.stats.json, "
                      "each plain or .xz\n",
                      argc > 0 ? argv[0] : "verify");
        return 2;
    }
    uf_error error = {UF_OK, ""};
    oplog *log = NULL;
    driver_recording recording = {0};
    driver_report report;
    uf_status status = oplog_read(argv[1], &log, &error);
    if (status == UF_OK) {
        status = driver_recording_read(argv[1], &recording, &error);
    }
    if (status == UF_OK) {
        status = driver_verify(vtable, log, &recording, &report, &error);
    }
    driver_recording_fini(&recording);
    oplog_destroy(log);
    if (status != UF_OK) {
        (void)fprintf(stderr, "%s: %s\n", argv[1], error.text);
        return 3;
    }
    if (!report.is_equal) {
        (void)printf("%s on %s differs after %zu operations, %zu events\n%s", argv[1], vtable->name,
                     report.op_count, report.event_count, report.text);
        return 1;
    }
    (void)printf("%zu operations, %zu events equal, %zu statistics equal, layout equal\n",
                 report.op_count, report.event_count, report.stat_count);
    return 0;
}
