/* SPDX-License-Identifier: MIT
 *
 * Events and streams of the cuda device. Events are made once and used again; one that is handed
 * out belongs to the caller until it is reported as done. Guards the pool of idle ones by
 * uf_cuda.mutex. */
#include "device/cuda.h"

#include <stdlib.h>

/* Makes room for one more event, idle or not; false if the host has no memory. */
static bool make_room_locked(uf_cuda *cuda)
{
    if (cuda->event_count < cuda->event_capacity) {
        return true;
    }
    uint32_t grown = cuda->event_capacity == 0 ? 64 : cuda->event_capacity * 2;
    void **events = realloc(cuda->events, grown * sizeof *events);
    cuda->events = events != NULL ? events : cuda->events;
    void **idle = realloc(cuda->idle_events, grown * sizeof *idle);
    cuda->idle_events = idle != NULL ? idle : cuda->idle_events;
    cuda->event_capacity = events != NULL && idle != NULL ? grown : cuda->event_capacity;
    return cuda->event_count < cuda->event_capacity;
}

static void event_give(uf_cuda *cuda, void *event)
{
    (void)pthread_mutex_lock(&cuda->mutex);
    cuda->idle_events[cuda->idle_count++] = event;
    (void)pthread_mutex_unlock(&cuda->mutex);
}

/* An event for a single use, idle or new. */
static uf_status event_take(uf_cuda *cuda, void **event)
{
    *event = NULL;
    (void)pthread_mutex_lock(&cuda->mutex);
    bool has_room = cuda->idle_count != 0 || make_room_locked(cuda);
    if (cuda->idle_count != 0) {
        *event = cuda->idle_events[--cuda->idle_count];
    } else {
        cuda->event_count += has_room; /* a place is taken; given up again below on failure */
    }
    (void)pthread_mutex_unlock(&cuda->mutex);
    if (*event != NULL) {
        return UF_OK;
    }
    if (!has_room) {
        return uf__cuda_refuse(cuda, UF_ERROR_DEVICE, "the host has no memory for an event");
    }
    uf_status status = uf__cuda_judge(
        cuda, "cuEventCreate", 0, cuda->driver.event_create(event, UF_CUDA_EVENT_DISABLE_TIMING));
    (void)pthread_mutex_lock(&cuda->mutex);
    if (status == UF_OK) {
        cuda->events[cuda->made_count++] = *event;
    } else {
        cuda->event_count--;
    }
    (void)pthread_mutex_unlock(&cuda->mutex);
    return status;
}

uf_status uf__cuda_check_capture(uf_cuda *cuda, void *stream)
{
    int capture = UF_CUDA_CAPTURE_STATUS_NONE;
    if (cuda->driver.stream_is_capturing == NULL) {
        return UF_OK;
    }
    int result = cuda->driver.stream_is_capturing(stream, &capture);
    if (result == UF_CUDA_CAPTURE_IMPLICIT ||
        (result == UF_CUDA_SUCCESS && capture != UF_CUDA_CAPTURE_STATUS_NONE)) {
        return uf__cuda_refuse(cuda, UF_ERROR_BUSY,
                               "a stream that is being captured can neither be waited for nor "
                               "marked: end the capture first");
    }
    return uf__cuda_judge(cuda, "cuStreamIsCapturing", 0, result);
}

uf_status uf__cuda_event_record(void *context, uint64_t stream, uint64_t *event)
{
    uf_cuda *cuda = context;
    void *handle = (void *)(uintptr_t)stream, *taken = NULL;
    uf_cuda_visit visit;
    uf_status status = uf__cuda_enter(cuda, &visit);
    if (status != UF_OK && uf__cuda_is_over(cuda)) {
        *event = 0; /* all work has ended */
        return UF_OK;
    }
    if (status != UF_OK) {
        return status;
    }
    status = uf__cuda_check_capture(cuda, handle);
    if (status == UF_OK) {
        status = event_take(cuda, &taken);
    }
    if (status == UF_OK) {
        status = uf__cuda_judge(cuda, "cuEventRecord", 0, cuda->driver.event_record(taken, handle));
        if (status == UF_OK) {
            *event = (uint64_t)(uintptr_t)taken;
        } else {
            event_give(cuda, taken);
        }
    }
    uf__cuda_leave(cuda, &visit);
    return status == UF_ERROR_DEVICE_MEMORY ? UF_ERROR_DEVICE : status;
}

uf_status uf__cuda_event_query(void *context, uint64_t event, bool *is_done)
{
    uf_cuda *cuda = context;
    void *handle = (void *)(uintptr_t)event;
    uf_cuda_visit visit;
    uf_status status = uf__cuda_enter(cuda, &visit);
    if (status != UF_OK) {
        *is_done = *is_done || uf__cuda_is_over(cuda);
        return uf__cuda_is_over(cuda) ? UF_OK : status;
    }
    int result = cuda->driver.event_query(handle);
    if (result == UF_CUDA_NOT_READY) {
        *is_done = false;
    } else {
        status = uf__cuda_judge(cuda, "cuEventQuery", 0, result);
        if (status == UF_OK) {
            *is_done = true;
            event_give(cuda, handle);
        }
    }
    uf__cuda_leave(cuda, &visit);
    return status == UF_ERROR_DEVICE_MEMORY ? UF_ERROR_DEVICE : status;
}

uf_status uf__cuda_event_wait(void *context, uint64_t event)
{
    uf_cuda *cuda = context;
    void *handle = (void *)(uintptr_t)event;
    uf_cuda_visit visit;
    uf_status status = uf__cuda_enter(cuda, &visit);
    if (status != UF_OK) {
        return uf__cuda_is_over(cuda) ? UF_OK : status;
    }
    atomic_fetch_add_explicit(&cuda->stream_wait_count, 1, memory_order_relaxed);
    status = uf__cuda_judge(cuda, "cuEventSynchronize", 0, cuda->driver.event_synchronize(handle));
    if (status == UF_OK) {
        event_give(cuda, handle);
    }
    uf__cuda_leave(cuda, &visit);
    return status == UF_ERROR_DEVICE_MEMORY ? UF_ERROR_DEVICE : status;
}

uf_status uf__cuda_stream_wait(void *context, uint64_t stream)
{
    uf_cuda *cuda = context;
    void *handle = (void *)(uintptr_t)stream;
    uf_cuda_visit visit;
    uf_status status = uf__cuda_enter(cuda, &visit);
    if (status != UF_OK) {
        return uf__cuda_is_over(cuda) ? UF_OK : status;
    }
    status = uf__cuda_check_capture(cuda, handle);
    if (status == UF_OK) {
        atomic_fetch_add_explicit(&cuda->stream_wait_count, 1, memory_order_relaxed);
        status =
            uf__cuda_judge(cuda, "cuStreamSynchronize", 0, cuda->driver.stream_synchronize(handle));
    }
    uf__cuda_leave(cuda, &visit);
    return status == UF_ERROR_DEVICE_MEMORY ? UF_ERROR_DEVICE : status;
}

void uf__cuda_events_fini(uf_cuda *cuda)
{
    for (uint32_t i = 0; i < cuda->made_count; i++) {
        uf_status status = UF_ERROR_DEVICE;
        for (int attempt = 0; attempt < 2 && status != UF_OK; attempt++) {
            status = uf__cuda_judge(cuda, "cuEventDestroy", 0,
                                    cuda->driver.event_destroy(cuda->events[i]));
        }
    }
    cuda->made_count = cuda->idle_count = 0;
}
