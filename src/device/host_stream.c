/* SPDX-License-Identifier: MIT
 *
 * Streams of the host device: queues of kernels that run when told, and events, which are points in
 * a queue. Knows of memory only whether it is accessible. Guarded by uf_host.mutex, also while a
 * kernel runs. */
#include <stdlib.h>
#include <string.h>

#include "device/host.h"

/* UINT32_MAX if there is none. */
static uint32_t stream_find(const uf_host *host, uint64_t handle)
{
    for (uint32_t i = 0; i < host->stream_count; i++) {
        if (host->streams[i].handle == handle) {
            return i;
        }
    }
    return UINT32_MAX;
}

static bool stream_get(uf_host *host, uint64_t handle, uint32_t *index)
{
    *index = stream_find(host, handle);
    if (*index != UINT32_MAX) {
        return true;
    }
    if (!uf__host_list_reserve((void **)&host->streams, &host->stream_capacity,
                               sizeof *host->streams, host->stream_count + 1)) {
        return false;
    }
    *index = host->stream_count++;
    host->streams[*index] = (uf_host_stream){.handle = handle};
    return true;
}

uf_status uf__host_launch_locked(uf_host *host, uint64_t handle, const uf_host_job *job)
{
    uint32_t index;
    if (!stream_get(host, handle, &index)) {
        return UF_ERROR_HOST_MEMORY;
    }
    uf_host_stream *stream = &host->streams[index];
    uint64_t run_count = stream->run_count - stream->base_count;
    if (stream->run_count == stream->launch_count || run_count > stream->job_capacity / 2) {
        if (stream->run_count < stream->launch_count) {
            memmove(stream->jobs, &stream->jobs[run_count],
                    (stream->launch_count - stream->run_count) * sizeof *stream->jobs);
        }
        stream->base_count = stream->run_count;
    }
    uint32_t position = (uint32_t)(stream->launch_count - stream->base_count);
    if (!uf__host_list_reserve((void **)&stream->jobs, &stream->job_capacity, sizeof *stream->jobs,
                               position + 1)) {
        return UF_ERROR_HOST_MEMORY;
    }
    stream->jobs[position] = *job;
    stream->launch_count++;
    host->counts.queued_count++;
    return UF_OK;
}

static void run_next(uf_host *host, uf_host_stream *stream)
{
    const uf_host_job *job = &stream->jobs[stream->run_count - stream->base_count];
    stream->run_count++;
    host->counts.queued_count--;
    if (job->size_bytes != 0 && !uf__host_is_accessible_locked(host, job->addr, job->size_bytes)) {
        (void)uf__host_fault_locked(
            host, "a kernel on stream 0x%llx touches %llu bytes at 0x%llx that are not accessible",
            (unsigned long long)stream->handle, (unsigned long long)job->size_bytes,
            (unsigned long long)job->addr);
        return;
    }
    host->counts.run_count++;
    job->kernel(job->context, job->addr, job->size_bytes);
}

static uint64_t run_until(uf_host *host, uf_host_stream *stream, uint64_t point)
{
    uint64_t count = 0;
    for (; stream->run_count < point; count++) {
        run_next(host, stream);
    }
    return count;
}

uint64_t uf__host_run_locked(uf_host *host, uint64_t handle, uint64_t count)
{
    uint32_t index = stream_find(host, handle);
    if (index == UINT32_MAX) {
        return 0;
    }
    uf_host_stream *stream = &host->streams[index];
    uint64_t queued_count = stream->launch_count - stream->run_count;
    return run_until(host, stream,
                     stream->run_count + (count < queued_count ? count : queued_count));
}

void uf__host_run_all_locked(uf_host *host)
{
    for (uint32_t i = 0; i < host->stream_count; i++) {
        (void)run_until(host, &host->streams[i], host->streams[i].launch_count);
    }
}

bool uf__host_is_in_flight_locked(const uf_host *host, uint64_t addr, uint64_t size_bytes,
                                  uint64_t *stream)
{
    for (uint32_t i = 0; i < host->stream_count; i++) {
        const uf_host_stream *queue = &host->streams[i];
        for (uint64_t n = queue->run_count; n < queue->launch_count; n++) {
            const uf_host_job *job = &queue->jobs[n - queue->base_count];
            if (job->addr < addr + size_bytes && addr < job->addr + job->size_bytes) {
                *stream = queue->handle;
                return true;
            }
        }
    }
    return false;
}

uf_status uf__host_event_record_locked(uf_host *host, uint64_t handle, uint64_t *event)
{
    uint32_t index = 0, stream;
    while (index < host->event_count && host->events[index].is_there) {
        index++;
    }
    if (!stream_get(host, handle, &stream) ||
        !uf__host_list_reserve((void **)&host->events, &host->event_capacity, sizeof *host->events,
                               index + 1)) {
        return UF_ERROR_DEVICE;
    }
    host->event_count = host->event_count > index + 1 ? host->event_count : index + 1;
    uf_host_event *made = &host->events[index];
    *made = (uf_host_event){.stream = stream,
                            .generation = made->generation + 1,
                            .point = host->streams[stream].launch_count,
                            .is_there = true};
    host->counts.event_count++;
    *event = (uint64_t)made->generation << 32 | index;
    return UF_OK;
}

static uf_host_event *event_find(const uf_host *host, uint64_t event)
{
    uint32_t index = (uint32_t)event;
    bool is_there = index < host->event_count && host->events[index].is_there &&
                    host->events[index].generation == event >> 32;
    return is_there ? &host->events[index] : NULL;
}

static void event_consume(uf_host *host, uf_host_event *event)
{
    event->is_there = false;
    host->counts.event_count--;
}

uf_status uf__host_event_query_locked(uf_host *host, uint64_t event, bool *is_done)
{
    uf_host_event *found = event_find(host, event);
    if (found == NULL) {
        return uf__host_fault_locked(
            host, "event_query: no event 0x%llx: never recorded, or seen to be done before",
            (unsigned long long)event);
    }
    *is_done = host->streams[found->stream].run_count >= found->point;
    if (*is_done) {
        event_consume(host, found);
    }
    return UF_OK;
}

uf_status uf__host_event_wait_locked(uf_host *host, uint64_t event)
{
    uf_host_event *found = event_find(host, event);
    if (found == NULL) {
        return uf__host_fault_locked(
            host, "event_wait: no event 0x%llx: never recorded, or seen to be done before",
            (unsigned long long)event);
    }
    uf_host_stream *stream = &host->streams[found->stream];
    host->counts.wait_count += stream->run_count < found->point;
    (void)run_until(host, stream, found->point);
    event_consume(host, found);
    return UF_OK;
}

void uf__host_streams_fini(uf_host *host)
{
    for (uint32_t i = 0; i < host->stream_count; i++) {
        free(host->streams[i].jobs);
    }
    free(host->streams);
    free(host->events);
}

uf_status uf_host_launch(uf_host *host, uint64_t stream, uf_host_kernel kernel, void *context,
                         uint64_t addr, uint64_t size_bytes)
{
    uf_host_job job = {
        .kernel = kernel, .context = context, .addr = addr, .size_bytes = size_bytes};
    (void)pthread_mutex_lock(&host->mutex);
    uf_status status = uf__host_launch_locked(host, stream, &job);
    (void)pthread_mutex_unlock(&host->mutex);
    return status;
}

uint64_t uf_host_run(uf_host *host, uint64_t stream, uint64_t count)
{
    (void)pthread_mutex_lock(&host->mutex);
    uint64_t run_count = uf__host_run_locked(host, stream, count);
    (void)pthread_mutex_unlock(&host->mutex);
    return run_count;
}

void uf_host_synchronize(uf_host *host)
{
    (void)pthread_mutex_lock(&host->mutex);
    uf__host_run_all_locked(host);
    (void)pthread_mutex_unlock(&host->mutex);
}
