/* SPDX-License-Identifier: MIT
 *
 * A device for NVIDIA GPUs, by the driver library libcuda.so.1, which is loaded at run time: the
 * CUDA toolkit is needed neither to build nor to run. Linux.
 *
 *     uf_cuda *cuda;
 *     uf_cuda_info info = {.struct_size_bytes = sizeof info};
 *     if (uf_cuda_create(NULL, &cuda, &error) == UF_OK) {
 *         uf_cuda_info_get(cuda, &info);
 *         uf_allocator_options options = {.struct_size_bytes = sizeof options,
 *                                         .device = uf_cuda_device(cuda),
 *                                         .policy = info.policy, .conf = info.conf};
 *
 * Streams are named by their handles (CUstream, cudaStream_t) as integers. 0 is the legacy default
 * stream. A stream must not be destroyed before the allocator that was told of it. 2 (the
 * per-thread default stream) names
 * another stream in each thread: use it only where one thread makes every call. */
#ifndef UNFRAG_CUDA_H
#define UNFRAG_CUDA_H

#include <stdbool.h>
#include <stdint.h>

#include <unfrag/device.h>
#include <unfrag/policy.h>
#include <unfrag/status.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { UF_CUDA_PEERS_MAX = 63 };

/* One GPU and the context that memory, streams and events belong to. Opaque; guards itself. */
typedef struct uf_cuda uf_cuda;

/* struct_size_bytes = sizeof(uf_cuda_options); 0 elsewhere means default. */
typedef struct uf_cuda_options {
    size_t struct_size_bytes;
    int32_t ordinal; /* the GPU, as CUDA numbers it (CUDA_VISIBLE_DEVICES applies) */
    /* The context to work in (CUcontext), borrowed until uf_cuda_destroy. NULL: the one that is
     * current in the calling thread if it is of this GPU, else the GPU's primary context. */
    void *context;
    const int32_t *peers; /* GPUs that get access to the memory; borrowed for the call */
    uint32_t peer_count;  /* at most UF_CUDA_PEERS_MAX */
    bool is_exportable;   /* pages can be exported as file descriptors (cuMemExportToShareableHandle
                             after cuMemRetainAllocationHandle) */
    bool is_rdma_capable; /* pages can be registered for GPUDirect RDMA */
    bool is_plain;        /* never map pages: plain segments only */
} uf_cuda_options;

/* What the GPU is and can do. Texts are static or live as long as the uf_cuda. */
typedef struct uf_cuda_info {
    size_t struct_size_bytes;
    int32_t ordinal;
    char name[128];
    char pci_bus_id[32];    /* "0000:1B:00.0"; empty: not known */
    int32_t driver_version; /* CUDA 13.0 is 13000 */
    int32_t capability_major, capability_minor;
    uint64_t total_bytes;
    bool is_primary_context;    /* works in the GPU's primary context */
    bool can_map;               /* memory can be mapped into reserved address space */
    bool can_expand;            /* so can pages of 2 and 20 MiB: expandable_segments */
    char why_not[300];          /* why it cannot; empty if it can */
    uint64_t granularity_bytes; /* of mapped memory, as the driver says it; 0 if it cannot map */
    uint64_t recommended_granularity_bytes;
    uint32_t peer_count; /* GPUs that have access */
    /* What to give an allocator on this GPU. Where memory cannot be mapped: UF_POLICY_TORCH and the
     * settings that need the least memory without it. */
    uf_policy policy;
    const char *conf;
    char note[600]; /* one line to show once to a user: what is in force instead and why; empty if
                       nothing is amiss */
} uf_cuda_info;

/* What happened so far. */
typedef struct uf_cuda_counts {
    uint64_t driver_call_count; /* of the functions of the device */
    uint64_t device_sync_count; /* calls that wait for the whole GPU: each plain segment given back
                                   (cuMemFree) */
    uint64_t stream_wait_count; /* calls that wait for a stream or an event */
    uint64_t event_count;       /* events made; they are used again */
    uint64_t failure_count;     /* driver calls that failed, out of memory included */
    uint64_t unreleased_count;  /* pages that the driver refused to take back: they are offered to
                                   it again */
    uint64_t unreleased_bytes;
} uf_cuda_counts;

/* Opens a GPU. Loads the driver library, finds or makes a context, and finds out by trying whether
 * memory can be mapped. What cannot be mapped is no failure: see uf_cuda_info.
 * options: borrowed for the call; NULL = defaults. cuda: receives it. error: may be NULL.
 * Returns UF_OK; UF_ERROR_INVALID_ARGUMENT (cuda is NULL, an ordinal or peer that is none, a
 * struct_size_bytes that is none); UF_ERROR_UNSUPPORTED (no driver library or no GPU; a peer
 * without access to this GPU; pages that cannot be exported or registered); UF_ERROR_DEVICE_MEMORY
 * (no memory for a context); UF_ERROR_DEVICE; UF_ERROR_HOST_MEMORY. The text has the driver's name
 * of an error. *cuda is owned by the caller (uf_cuda_destroy), untouched on failure.
 * Thread-safe. Since 0.1. */
UF_API uf_status uf_cuda_create(const uf_cuda_options *options, uf_cuda **cuda,
                                uf_error *error) UF_MUST_USE;

/* Ends it: its events are given back, and its hold on the context. Quiet when the driver has ended
 * before, as it has in functions that run at exit.
 * cuda: no allocator may still be on it; NULL is accepted. Since 0.1. */
UF_API void uf_cuda_destroy(uf_cuda *cuda);

/* Gives the functions to pass on as uf_allocator_options.device. They may be called by any thread,
 * whatever context is current there, and leave that and the thread's capture mode as they were;
 * several allocators may share them. Where memory cannot be mapped the entries for it are NULL.
 * No function waits for the whole GPU but segment_destroy. event_record and stream_wait return
 * UF_ERROR_BUSY for a stream that is being captured and leave the capture valid. After an error
 * that ends the context (a kernel's illegal access), each call returns UF_ERROR_DEVICE at once;
 * after the driver has ended, giving back succeeds, as the memory is gone. In a child made by fork
 * each call returns UF_ERROR_DEVICE.
 * cuda: not NULL. Returns a pointer that is borrowed until uf_cuda_destroy. Thread-safe. Since 0.1.
 */
UF_API const uf_device *uf_cuda_device(const uf_cuda *cuda);

/* Describes the GPU.
 * cuda: not NULL. info: info->struct_size_bytes set; so many bytes at most are filled.
 * Returns UF_OK; UF_ERROR_INVALID_ARGUMENT (NULL, a struct_size_bytes that is none). Thread-safe.
 * Since 0.1. */
UF_API uf_status uf_cuda_info_get(const uf_cuda *cuda, uf_cuda_info *info) UF_MUST_USE;

/* Counts.
 * cuda, counts: not NULL. Thread-safe. Since 0.1. */
UF_API void uf_cuda_counts_get(uf_cuda *cuda, uf_cuda_counts *counts);

/* Tells the newest failure of a driver call: the call, the bytes, the driver's name of the error
 * and its text.
 * cuda: not NULL. last: receives it, untouched if there was none; may be NULL. Returns how many
 * failed so far. Thread-safe. Since 0.1. */
UF_API uint64_t uf_cuda_failures(uf_cuda *cuda, uf_error *last);

#ifdef __cplusplus
}
#endif
#endif
