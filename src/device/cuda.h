/* SPDX-License-Identifier: MIT
 *
 * What the files of the cuda device ask of each other. Not for anyone outside src/device.
 *
 *   cuda.c         opening and ending: context, peers, what can be mapped, what is told of it
 *   cuda_call.c    around each driver call: context, capture mode, failures
 *   cuda_event.c   events and streams
 *   cuda_pages.c   segments, ranges, handles and pages
 *   cuda_bytes.c   setting and comparing bytes
 *
 * All but what uf_cuda.mutex guards is constant once it is open. No driver call is made under the
 * mutex. */
#ifndef UF_DEVICE_CUDA_H
#define UF_DEVICE_CUDA_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <unfrag/cuda.h>

#include "device/cuda_driver.h"

/* Something that the driver refused to take back: a handle, or mapped pages without one. */
typedef struct uf_cuda_leftover {
    uint64_t handle; /* 0: pages at addr */
    uint64_t addr, size_bytes;
} uf_cuda_leftover;

/* Where bytes of the GPU are copied to. */
typedef struct uf_cuda_buffer {
    struct uf_cuda_buffer *next;
    unsigned char bytes[];
} uf_cuda_buffer;

struct uf_cuda {
    uf_device device;
    uf_cuda_driver driver;
    uf_cuda_info info;
    int handle;    /* of the GPU */
    void *context; /* NULL: none yet */
    bool is_retained;
    uf_cuda_allocation allocation; /* what pages are made of */
    uf_cuda_access access[1 + UF_CUDA_PEERS_MAX];
    size_t access_count;
    /* A page of the system that is cleared in a child made by fork: [0] is 1 in this process. NULL:
     * the system cannot, and the process is compared. */
    volatile unsigned char *is_here;
    pid_t process;

    _Atomic int ended_by; /* the error after which the driver or the context is gone; 0 = none */
    _Atomic uint64_t driver_call_count, device_sync_count, stream_wait_count, failure_count;
    _Atomic uint32_t leftover_hint; /* leftover_count, to be looked at without the mutex */

    pthread_mutex_t mutex;        /* guards all that follows */
    void **events, **idle_events; /* all that were made; those that are handed out to nobody */
    uint32_t event_count;         /* made_count, and those being made */
    uint32_t made_count, idle_count, event_capacity;
    uf_cuda_leftover *leftovers;
    uint32_t leftover_count, leftover_capacity;
    uf_cuda_buffer *buffers; /* to which a copy may still be under way */
    uf_error failure;        /* the newest */
};

/* What must be put back after driver calls. */
typedef struct uf_cuda_visit {
    int capture_mode;
    bool is_pushed, has_mode;
} uf_cuda_visit;

/* cuda_call.c */

/* Makes the context current and the thread's capture mode relaxed. Anything but UF_OK: nothing was
 * changed, and no call is to be made. */
uf_status uf__cuda_enter(uf_cuda *cuda, uf_cuda_visit *visit) UF_MUST_USE;
void uf__cuda_leave(uf_cuda *cuda, const uf_cuda_visit *visit);
/* The status of a driver call's result; a failure is kept. bytes: 0 = the call is not about any. */
uf_status uf__cuda_judge(uf_cuda *cuda, const char *call, uint64_t bytes, int result);
/* Keeps a failure that is not one of the driver's. */
uf_status uf__cuda_refuse(uf_cuda *cuda, uf_status status, const char *text);
/* The driver has ended, and with it everything that was had from it. */
bool uf__cuda_is_over(const uf_cuda *cuda);
/* This is a child made by fork, where the driver must not be called. */
bool uf__cuda_is_forked(const uf_cuda *cuda);
/* Tells *failure what went wrong last. */
uf_status uf__cuda_failure_copy(uf_cuda *cuda, uf_status status, uf_error *error);

/* cuda_event.c: the functions of uf_device by the same names. */
uf_status uf__cuda_event_record(void *context, uint64_t stream, uint64_t *event);
uf_status uf__cuda_event_query(void *context, uint64_t event, bool *is_done);
uf_status uf__cuda_event_wait(void *context, uint64_t event);
uf_status uf__cuda_stream_wait(void *context, uint64_t stream);
/* UF_ERROR_BUSY: the stream is being captured, or it is the legacy default stream and one that
 * synchronises with it is. Asking invalidates nothing. */
uf_status uf__cuda_check_capture(uf_cuda *cuda, void *stream);
/* Destroys all events, also those that are handed out. */
void uf__cuda_events_fini(uf_cuda *cuda);

/* cuda_pages.c: the functions of uf_device by the same names. */
uf_status uf__cuda_memory_info(void *context, uint64_t *free_bytes, uint64_t *total_bytes);
uf_status uf__cuda_segment_create(void *context, uint64_t size_bytes, uint64_t stream,
                                  uint64_t *addr);
uf_status uf__cuda_segment_destroy(void *context, uint64_t addr, uint64_t size_bytes);
uf_status uf__cuda_range_reserve(void *context, uint64_t size_bytes, uint64_t *addr);
uf_status uf__cuda_range_release(void *context, uint64_t addr, uint64_t size_bytes);
uf_status uf__cuda_pages_map(void *context, uint64_t addr, uint64_t size_bytes,
                             uint64_t page_bytes);
uf_status uf__cuda_pages_unmap(void *context, uint64_t addr, uint64_t size_bytes,
                               uint64_t page_bytes);
uf_status uf__cuda_handle_create(void *context, uint64_t size_bytes, uint64_t *handle);
uf_status uf__cuda_handle_release(void *context, uint64_t handle, uint64_t size_bytes);
uf_status uf__cuda_handle_map(void *context, uint64_t addr, uint64_t handle, uint64_t size_bytes);
uf_status uf__cuda_range_access(void *context, uint64_t addr, uint64_t size_bytes,
                                uint64_t handle_count);
uf_status uf__cuda_range_unmap(void *context, uint64_t addr, uint64_t size_bytes,
                               uint64_t handle_count);
/* cuda_bytes.c: the functions of uf_device by the same names. */
uf_status uf__cuda_bytes_set(void *context, uint64_t addr, uint64_t size_bytes, uint8_t value,
                             uint64_t stream);
uf_status uf__cuda_bytes_compare(void *context, uint64_t addr, uint64_t size_bytes, uint8_t value,
                                 uint64_t stream, uint64_t *other_count, uint64_t *first_offset);

/* Keeps what the driver refused to take back. */
void uf__cuda_leftover_keep(uf_cuda *cuda, uf_cuda_leftover leftover);
/* Offers to the driver again what it refused to take back; within a visit. */
void uf__cuda_leftovers_offer(uf_cuda *cuda);

#endif
