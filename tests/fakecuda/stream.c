/* SPDX-License-Identifier: MIT
 *
 * Streams, events, captures and graphs of the fake driver library. A stream's queue is the host
 * device's: its work is done when a test runs it, or when a call waits. Guarded by world.mutex. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "world.h"

enum { LEGACY = 1, PER_THREAD = 2, NON_BLOCKING = 1 };
enum { MODE_GLOBAL, MODE_THREAD_LOCAL, MODE_RELAXED };
enum { NOT_CAPTURING, CAPTURING, INVALIDATED };
enum { STREAMS_MAX = 64 };

typedef struct fake_graph {
    uf_host_job *jobs;
    uint32_t job_count, job_capacity;
} fake_graph;

typedef struct fake_stream {
    int card;
    bool is_there, is_blocking;
    int capture, capture_mode;
    pthread_t capture_thread;
    fake_graph *graph; /* what is being captured */
} fake_stream;

typedef struct fake_event {
    int card;
    bool is_recorded, is_done, is_captured;
    uint64_t host_event, stream;
    int64_t time_ns; /* when it was seen to be done */
    struct fake_event *next, *previous;
} fake_event;

static fake_stream streams[STREAMS_MAX];
static fake_event *events; /* all */
static uint64_t event_count, graph_count;
static __thread int thread_mode = MODE_GLOBAL;

static bool is_stream(const fake_stream *stream)
{
    for (int i = 0; i < STREAMS_MAX; i++) {
        if (stream == &streams[i]) {
            return stream->is_there;
        }
    }
    return false;
}

static bool is_legacy(const void *stream)
{
    return (uintptr_t)stream <= LEGACY;
}

static bool is_capturing_blocking(void)
{
    bool is_found = false;
    for (int i = 0; i < STREAMS_MAX; i++) {
        is_found = is_found || (streams[i].is_there && streams[i].is_blocking &&
                                streams[i].capture == CAPTURING);
    }
    return is_found;
}

static void invalidate_blocking(const char *call)
{
    for (int i = 0; i < STREAMS_MAX; i++) {
        if (streams[i].is_there && streams[i].is_blocking && streams[i].capture == CAPTURING) {
            streams[i].capture = INVALIDATED;
            fake_fault("%s on the legacy stream invalidates a capture", call);
        }
    }
}

bool fake_capture_forbids(const char *call)
{
    bool is_forbidden = false;
    (void)call;
    for (int i = 0; i < STREAMS_MAX; i++) {
        fake_stream *s = &streams[i];
        bool is_ours = pthread_equal(s->capture_thread, pthread_self()) != 0;
        bool counts =
            s->capture_mode == MODE_GLOBAL
                ? thread_mode == MODE_GLOBAL || (is_ours && thread_mode != MODE_RELAXED)
                : s->capture_mode == MODE_THREAD_LOCAL && is_ours && thread_mode != MODE_RELAXED;
        if (s->is_there && s->capture == CAPTURING && counts) {
            s->capture = INVALIDATED;
            is_forbidden = true;
        }
    }
    return is_forbidden;
}

int fake_stream_find(void *stream, uint64_t *handle)
{
    if (is_legacy(stream)) {
        *handle = 0;
        return SUCCESS;
    }
    if ((uintptr_t)stream != PER_THREAD && !is_stream(stream)) {
        fake_fault("%p is no stream, or one that was destroyed", stream); /* a driver may crash */
        return INVALID_HANDLE;
    }
    *handle = (uint64_t)(uintptr_t)stream;
    return SUCCESS;
}

static fake_stream *capturing(void *stream)
{
    fake_stream *s = stream;
    return is_legacy(stream) || (uintptr_t)stream == PER_THREAD || s->capture == NOT_CAPTURING
               ? NULL
               : s;
}

static int graph_add(fake_graph *graph, const uf_host_job *job)
{
    if (!uf__host_list_reserve((void **)&graph->jobs, &graph->job_capacity, sizeof *graph->jobs,
                               graph->job_count + 1)) {
        return OUT_OF_MEMORY;
    }
    graph->jobs[graph->job_count++] = *job;
    return SUCCESS;
}

int fake_launch(void *stream, const uf_host_job *job)
{
    uint64_t handle;
    int result = fake_stream_find(stream, &handle);
    if (result != SUCCESS) {
        return result;
    }
    if (is_legacy(stream) && is_capturing_blocking()) {
        invalidate_blocking("a launch");
        return CAPTURE_IMPLICIT;
    }
    const fake_stream *s = capturing(stream);
    if (s != NULL) {
        return s->capture == CAPTURING ? graph_add(s->graph, job) : CAPTURE_INVALIDATED;
    }
    return uf_host_launch(world.gpus[fake_current_card()].host, handle, job->kernel, job->context,
                          job->addr, job->size_bytes) == UF_OK
               ? SUCCESS
               : OUT_OF_MEMORY;
}

void fake_stream_counts(fake_counts *counts)
{
    for (int i = 0; i < STREAMS_MAX; i++) {
        counts->stream_count += streams[i].is_there;
    }
    counts->event_count = event_count;
    counts->graph_count = graph_count;
}

static int begin(const char *call, fake_kind kind)
{
    int result = fake_begin(call, kind);
    return result == SUCCESS && fake_current_card() < 0 ? INVALID_CONTEXT : result;
}

EXPORT int cuStreamCreate(void **stream, unsigned flags)
{
    int result = begin("cuStreamCreate", SAFE), at = 0;
    while (at < STREAMS_MAX && streams[at].is_there) {
        at++;
    }
    result = result == SUCCESS && at == STREAMS_MAX ? OUT_OF_MEMORY : result;
    if (result == SUCCESS) {
        streams[at] = (fake_stream){.card = fake_current_card(),
                                    .is_there = true,
                                    .is_blocking = (flags & NON_BLOCKING) == 0};
        *stream = &streams[at];
    }
    return fake_end(result);
}

EXPORT int cuStreamDestroy_v2(void *stream)
{
    int result = begin("cuStreamDestroy_v2", SAFE);
    result = result == SUCCESS && !is_stream(stream) ? INVALID_HANDLE : result;
    if (result == SUCCESS) {
        fake_stream *s = stream;
        uf_host *host = world.gpus[s->card].host;
        (void)uf_host_device(host)->stream_wait(host, (uint64_t)(uintptr_t)stream);
        s->is_there = false;
    }
    return fake_end(result);
}

EXPORT int cuStreamSynchronize(void *stream)
{
    uint64_t handle = 0;
    int result = begin("cuStreamSynchronize", UNSAFE);
    result = result == SUCCESS ? fake_stream_find(stream, &handle) : result;
    if (result == SUCCESS && is_legacy(stream) && is_capturing_blocking()) {
        invalidate_blocking("cuStreamSynchronize");
        result = CAPTURE_IMPLICIT;
    }
    fake_stream *s = result == SUCCESS ? capturing(stream) : NULL;
    if (s != NULL) {
        s->capture = INVALIDATED;
        fake_fault("cuStreamSynchronize of a capturing stream invalidates its capture");
        result = CAPTURE_UNSUPPORTED;
    }
    if (result == SUCCESS) {
        uf_host *host = world.gpus[fake_current_card()].host;
        result = fake_result(uf_host_device(host)->stream_wait(host, handle));
    }
    return fake_end(result);
}

EXPORT int cuStreamIsCapturing(void *stream, int *status)
{
    uint64_t handle = 0;
    int result = begin("cuStreamIsCapturing", SAFE);
    result = result == SUCCESS ? fake_stream_find(stream, &handle) : result;
    if (result == SUCCESS && is_legacy(stream) && is_capturing_blocking()) {
        result = CAPTURE_IMPLICIT; /* nothing is invalidated */
    }
    if (result == SUCCESS) {
        const fake_stream *s = capturing(stream);
        *status = s != NULL ? s->capture : NOT_CAPTURING;
    }
    return fake_end(result);
}

EXPORT int cuThreadExchangeStreamCaptureMode(int *mode)
{
    int result = fake_begin("cuThreadExchangeStreamCaptureMode", SAFE);
    if (result == SUCCESS) {
        int before = thread_mode;
        thread_mode = *mode;
        *mode = before;
    }
    return fake_end(result);
}

EXPORT int cuStreamBeginCapture_v2(void *stream, int mode)
{
    int result = begin("cuStreamBeginCapture_v2", SAFE);
    if (result == SUCCESS && (!is_stream(stream) || capturing(stream) != NULL)) {
        result = INVALID_VALUE;
    }
    fake_graph *graph = result == SUCCESS ? calloc(1, sizeof *graph) : NULL;
    if (graph != NULL) {
        fake_stream *s = stream;
        s->capture = CAPTURING;
        s->capture_mode = mode;
        s->capture_thread = pthread_self();
        s->graph = graph;
        graph_count++;
    }
    return fake_end(result);
}

static void graph_give(fake_graph *graph)
{
    free(graph->jobs);
    free(graph);
    graph_count--;
}

EXPORT int cuStreamEndCapture(void *stream, void **graph)
{
    int result = begin("cuStreamEndCapture", SAFE);
    fake_stream *s = result == SUCCESS && is_stream(stream) ? capturing(stream) : NULL;
    if (result == SUCCESS && s == NULL) {
        result = INVALID_VALUE;
    }
    if (result == SUCCESS && s->capture == INVALIDATED) {
        graph_give(s->graph);
        *graph = NULL;
        result = CAPTURE_INVALIDATED;
    } else if (result == SUCCESS) {
        *graph = s->graph;
    }
    if (s != NULL) {
        s->capture = NOT_CAPTURING;
        s->graph = NULL;
    }
    return fake_end(result);
}

EXPORT int cuGraphInstantiateWithFlags(void **exec, void *graph, unsigned long long flags)
{
    int result = begin("cuGraphInstantiateWithFlags", SAFE);
    const fake_graph *from = graph;
    fake_graph *made = result == SUCCESS ? calloc(1, sizeof *made) : NULL;
    (void)flags;
    for (uint32_t i = 0; made != NULL && i < from->job_count; i++) {
        (void)graph_add(made, &from->jobs[i]);
    }
    if (made != NULL) {
        graph_count++;
        *exec = made;
    }
    return fake_end(result);
}

EXPORT int cuGraphLaunch(void *exec, void *stream)
{
    int result = begin("cuGraphLaunch", SAFE);
    const fake_graph *from = exec;
    for (uint32_t i = 0; result == SUCCESS && i < from->job_count; i++) {
        result = fake_launch(stream, &from->jobs[i]);
    }
    return fake_end(result);
}

static int graph_end(const char *call, void *graph)
{
    int result = begin(call, SAFE);
    if (result == SUCCESS) {
        graph_give(graph);
    }
    return fake_end(result);
}

EXPORT int cuGraphDestroy(void *graph)
{
    return graph_end("cuGraphDestroy", graph);
}

EXPORT int cuGraphExecDestroy(void *exec)
{
    return graph_end("cuGraphExecDestroy", exec);
}

EXPORT int cuEventCreate(void **event, unsigned flags)
{
    int result = begin("cuEventCreate", SAFE);
    fake_event *made = result == SUCCESS ? calloc(1, sizeof *made) : NULL;
    (void)flags;
    if (made != NULL) {
        made->card = fake_current_card();
        made->next = events;
        if (events != NULL) {
            events->previous = made;
        }
        events = made;
        event_count++;
        *event = made;
    }
    return fake_end(result);
}

static void event_give(fake_event *e)
{
    if (e->next != NULL) {
        e->next->previous = e->previous;
    }
    *(e->previous != NULL ? &e->previous->next : &events) = e->next;
    free(e);
    event_count--;
}

void fake_events_forget(void)
{
    while (events != NULL) {
        event_give(events);
    }
}

EXPORT int cuEventDestroy_v2(void *event)
{
    int result = fake_begin("cuEventDestroy_v2", SAFE);
    if (result == SUCCESS) {
        fake_event *e = event;
        if (e->is_recorded && !e->is_done) { /* allowed; what it waits for goes on */
            uf_host *host = world.gpus[e->card].host;
            (void)uf_host_device(host)->event_wait(host, e->host_event);
        }
        event_give(e);
    }
    return fake_end(result);
}

EXPORT int cuEventRecord(void *event, void *stream)
{
    uint64_t handle = 0;
    fake_event *e = event;
    int result = begin("cuEventRecord", SAFE);
    result = result == SUCCESS ? fake_stream_find(stream, &handle) : result;
    if (result == SUCCESS && is_legacy(stream) && is_capturing_blocking()) {
        invalidate_blocking("cuEventRecord");
        result = CAPTURE_IMPLICIT;
    }
    if (result != SUCCESS) {
        return fake_end(result);
    }
    if (capturing(stream) != NULL) {
        fake_fault("an event is recorded on a stream that is being captured");
        e->is_captured = true;
        return fake_end(SUCCESS);
    }
    if (e->is_recorded && !e->is_done) {
        fake_fault("an event is recorded again before anyone has seen it done");
        return fake_end(INVALID_VALUE);
    }
    uf_host *host = world.gpus[fake_current_card()].host;
    result = fake_result(uf_host_device(host)->event_record(host, handle, &e->host_event));
    e->is_recorded = result == SUCCESS;
    e->stream = handle;
    e->is_done = e->is_captured = false;
    return fake_end(result);
}

static void mark_done(fake_event *e)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    e->time_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    e->is_done = true;
}

EXPORT int cuEventQuery(void *event)
{
    fake_event *e = event;
    int result = begin("cuEventQuery", UNSAFE);
    if (result == SUCCESS && e->is_captured) {
        fake_fault("an event of a capture is queried");
        result = CAPTURED_EVENT;
    }
    if (result == SUCCESS && e->is_recorded && !e->is_done) {
        uf_host *host = world.gpus[e->card].host;
        bool is_done = false;
        (void)uf_host_run(host, e->stream, fake_random(world.setup.pace));
        result = fake_result(uf_host_device(host)->event_query(host, e->host_event, &is_done));
        if (is_done) {
            mark_done(e);
        }
        result = result == SUCCESS && !is_done ? NOT_READY : result;
    }
    return fake_end(result);
}

EXPORT int cuEventSynchronize(void *event)
{
    fake_event *e = event;
    int result = begin("cuEventSynchronize", UNSAFE);
    if (result == SUCCESS && e->is_recorded && !e->is_done) {
        uf_host *host = world.gpus[e->card].host;
        result = fake_result(uf_host_device(host)->event_wait(host, e->host_event));
        if (result == SUCCESS) {
            mark_done(e);
        }
    }
    return fake_end(result);
}

EXPORT int cuEventElapsedTime(float *milliseconds, void *from, void *to)
{
    int result = begin("cuEventElapsedTime", SAFE);
    const fake_event *a = from, *b = to;
    if (result == SUCCESS) {
        *milliseconds = (float)(b->time_ns - a->time_ns) / 1e6f;
    }
    return fake_end(result);
}

/* What the event stands for is done now rather than when the stream comes to it. */
EXPORT int cuStreamWaitEvent(void *stream, void *event, unsigned flags)
{
    uint64_t handle = 0;
    fake_event *e = event;
    int result = begin("cuStreamWaitEvent", SAFE);
    (void)flags;
    result = result == SUCCESS ? fake_stream_find(stream, &handle) : result;
    if (result == SUCCESS && e->is_recorded && !e->is_done) {
        uf_host *host = world.gpus[e->card].host;
        result = fake_result(uf_host_device(host)->event_wait(host, e->host_event));
        if (result == SUCCESS) {
            mark_done(e);
        }
    }
    return fake_end(result);
}
