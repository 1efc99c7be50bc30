/* SPDX-License-Identifier: MIT
 *
 * A device whose memory is the host's: every byte can be written, read and checked, without a GPU.
 * Memory is mapped and moved as a GPU's driver does it, the driver's rules are enforced, and
 * streams are queues whose work is done when told. For tests, sanitizers, and trying the library.
 * Linux. */
#ifndef UNFRAG_HOST_H
#define UNFRAG_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include <unfrag/device.h>
#include <unfrag/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct uf_host uf_host;

/* struct_size_bytes = sizeof(uf_host_options); 0 elsewhere means default. */
typedef struct uf_host_options {
    size_t struct_size_bytes;
    uint64_t total_bytes;       /* nominal memory; 0 = 1 GiB; at most 2^40 */
    uint64_t capacity_bytes;    /* what can be handed out; 0 = as total_bytes; at most 2^40 */
    uint64_t granularity_bytes; /* of handles and of their places: a power of two, at least one page
                                   of the host, at most 1 GiB; 0 = 2 MiB */
} uf_host_options;

/* The functions of a device, in the order of uf_device. */
typedef enum uf_host_call {
    UF_HOST_MEMORY_INFO,
    UF_HOST_SEGMENT_CREATE,
    UF_HOST_SEGMENT_DESTROY,
    UF_HOST_RANGE_RESERVE,
    UF_HOST_RANGE_RELEASE,
    UF_HOST_PAGES_MAP,
    UF_HOST_PAGES_UNMAP,
    UF_HOST_STREAM_WAIT,
    UF_HOST_EVENT_RECORD,
    UF_HOST_EVENT_QUERY,
    UF_HOST_EVENT_WAIT,
    UF_HOST_HANDLE_CREATE,
    UF_HOST_HANDLE_RELEASE,
    UF_HOST_HANDLE_MAP,
    UF_HOST_RANGE_ACCESS,
    UF_HOST_RANGE_UNMAP,
    UF_HOST_BYTES_SET,
    UF_HOST_BYTES_COMPARE,
    UF_HOST_CALL_COUNT
} uf_host_call;

/* What there is now, and what happened so far. */
typedef struct uf_host_counts {
    uint64_t in_use_bytes;  /* handed out */
    uint64_t segment_count; /* plain segments */
    uint64_t range_count;   /* reservations of address space */
    uint64_t handle_count;  /* handles that were not released */
    uint64_t mapping_count; /* places at which a handle is mapped */
    uint64_t event_count;   /* events that nobody has seen to be done */
    uint64_t queued_count;  /* kernels that did not run yet, bytes_set included */
    uint64_t run_count;     /* kernels that ran */
    uint64_t wait_count;    /* calls that had to wait: segment_destroy, stream_wait and
                               bytes_compare always, event_wait where the event was not reached */
    uint64_t call_counts[UF_HOST_CALL_COUNT];
} uf_host_counts;

/* A kernel: called once, with the device's lock held; it must not call the device. */
typedef void (*uf_host_kernel)(void *context, uint64_t addr, uint64_t size_bytes);

/* Makes a device of host memory.
 * options: borrowed for the call; NULL = defaults. host: receives the device. error: may be NULL.
 * Returns UF_OK; UF_ERROR_INVALID_ARGUMENT (host is NULL, a size or granularity outside its range,
 * a struct_size_bytes that is none); UF_ERROR_HOST_MEMORY; UF_ERROR_UNSUPPORTED (the system makes
 * no memory files). *host is owned by the caller (uf_host_destroy), untouched on failure.
 * Thread-safe. Since 0.1. */
UF_API uf_status uf_host_create(const uf_host_options *options, uf_host **host,
                                uf_error *error) UF_MUST_USE;

/* Gives all memory back, kernels that did not run are dropped.
 * host: no allocator may still be on it; NULL is accepted. Not thread-safe on one host. Since 0.1.
 */
UF_API void uf_host_destroy(uf_host *host);

/* Gives the functions to pass on as uf_allocator_options.device, all of them (expandable and
 * paged). A call that breaks a rule of the driver returns UF_ERROR_DEVICE, changes nothing, and is
 * recorded (uf_host_faults): sizes and addresses off the granularity, a handle mapped over another
 * one, a part of a handle unmapped, memory unmapped that a kernel in a queue will touch, anything
 * that is not there. host: not NULL. Returns a pointer that is borrowed until uf_host_destroy.
 * Thread-safe. Since 0.1. */
UF_API const uf_device *uf_host_device(const uf_host *host);

/* Queues a kernel on a stream. It runs when told (uf_host_run, uf_host_synchronize) or when a call
 * of the device waits for it, in the order of its stream; streams are independent.
 * host, kernel: not NULL. context: handed on, borrowed until the kernel ran. addr, size_bytes: all
 * that the kernel touches; size_bytes 0 = nothing.
 * Returns UF_OK; UF_ERROR_HOST_MEMORY. Thread-safe. Since 0.1. */
UF_API uf_status uf_host_launch(uf_host *host, uint64_t stream, uf_host_kernel kernel,
                                void *context, uint64_t addr, uint64_t size_bytes) UF_MUST_USE;

/* Runs the next kernels of a stream, up to `count`. One that would touch memory that is not
 * accessible is not called but recorded as a fault.
 * host: not NULL. Returns how many left the queue. Thread-safe, also while an allocator uses the
 * device. Since 0.1. */
UF_API uint64_t uf_host_run(uf_host *host, uint64_t stream, uint64_t count);

/* Runs all kernels of all streams; every event recorded until now is reached then.
 * host: not NULL. Thread-safe, also while an allocator uses the device. Since 0.1. */
UF_API void uf_host_synchronize(uf_host *host);

/* Tells how many rules were broken so far.
 * host: not NULL. last: receives the newest one, untouched if there is none; may be NULL.
 * Returns the number. Thread-safe. Since 0.1. */
UF_API uint64_t uf_host_faults(uf_host *host, uf_error *last);

/* Makes a function of the device fail: the call with number `at_count` from now (1 = the next one)
 * returns `status` and does nothing, and so do all later ones if is_lasting.
 * host: not NULL. at_count 0 ends it. Thread-safe. Since 0.1. */
UF_API void uf_host_fail(uf_host *host, uf_host_call call, uint64_t at_count, bool is_lasting,
                         uf_status status);

/* Counts.
 * host, counts: not NULL. Thread-safe. Since 0.1. */
UF_API void uf_host_counts_get(uf_host *host, uf_host_counts *counts);

#ifdef __cplusplus
}
#endif
#endif
