/* SPDX-License-Identifier: MIT
 *
 * NVIDIA's driver library, loaded at run time: our own declarations of what we call, and a struct
 * of function pointers. No CUDA toolkit is needed to build or to run. Knows nothing of allocators.
 * The struct is constant once it is open; the driver itself is thread-safe. */
#ifndef UF_DEVICE_CUDA_DRIVER_H
#define UF_DEVICE_CUDA_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <unfrag/status.h>

/* The driver's error numbers that mean something to us. */
enum {
    UF_CUDA_SUCCESS = 0,
    UF_CUDA_INVALID_VALUE = 1,
    UF_CUDA_OUT_OF_MEMORY = 2,
    UF_CUDA_DEINITIALIZED = 4, /* the process is ending */
    UF_CUDA_STUB_LIBRARY = 34,
    UF_CUDA_DEVICE_UNAVAILABLE = 46,
    UF_CUDA_NO_DEVICE = 100,
    UF_CUDA_INVALID_DEVICE = 101,
    UF_CUDA_INVALID_CONTEXT = 201,
    UF_CUDA_ECC_UNCORRECTABLE = 214,
    UF_CUDA_NVLINK_UNCORRECTABLE = 220,
    UF_CUDA_NOT_READY = 600,
    UF_CUDA_ILLEGAL_ADDRESS = 700,
    UF_CUDA_LAUNCH_TIMEOUT = 702,
    UF_CUDA_PEER_ACCESS_ALREADY_ENABLED = 704,
    UF_CUDA_CONTEXT_IS_DESTROYED = 709,
    UF_CUDA_ASSERT = 710,
    UF_CUDA_HARDWARE_STACK_ERROR = 714,
    UF_CUDA_ILLEGAL_INSTRUCTION = 715,
    UF_CUDA_MISALIGNED_ADDRESS = 716,
    UF_CUDA_INVALID_ADDRESS_SPACE = 717,
    UF_CUDA_INVALID_PC = 718,
    UF_CUDA_LAUNCH_FAILED = 719,
    UF_CUDA_NOT_PERMITTED = 800,
    UF_CUDA_NOT_SUPPORTED = 801,
    UF_CUDA_SYSTEM_NOT_READY = 802,
    UF_CUDA_DRIVER_MISMATCH = 803,
    UF_CUDA_COMPAT_NOT_SUPPORTED = 804,
    UF_CUDA_CAPTURE_IMPLICIT = 906,
    UF_CUDA_UNKNOWN = 999
};

enum {
    UF_CUDA_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    UF_CUDA_ATTRIBUTE_INTEGRATED = 18,
    UF_CUDA_ATTRIBUTE_CAPABILITY_MAJOR = 75,
    UF_CUDA_ATTRIBUTE_CAPABILITY_MINOR = 76,
    UF_CUDA_ATTRIBUTE_VMM = 102,
    UF_CUDA_ATTRIBUTE_RDMA_WITH_VMM = 110,
    UF_CUDA_ATTRIBUTE_HOST_NUMA_ID = 134,
    UF_CUDA_ATTRIBUTE_HOST_NUMA_VMM = 141
};

/* Where physical memory lies. */
enum { UF_CUDA_LOCATION_DEVICE = 1, UF_CUDA_LOCATION_HOST = 2, UF_CUDA_LOCATION_HOST_NUMA = 3 };

enum {
    UF_CUDA_ALLOCATION_PINNED = 1,
    UF_CUDA_ACCESS_READ_WRITE = 3,
    UF_CUDA_GRANULARITY_MINIMUM = 0,
    UF_CUDA_GRANULARITY_RECOMMENDED = 1,
    UF_CUDA_HANDLE_TYPE_FILE = 1, /* a POSIX file descriptor */
    UF_CUDA_EVENT_DISABLE_TIMING = 2,
    UF_CUDA_CAPTURE_MODE_RELAXED = 2,
    UF_CUDA_CAPTURE_STATUS_NONE = 0
};

typedef struct uf_cuda_location {
    int type;
    int id;
} uf_cuda_location;

/* What cuMemCreate is asked for; laid out as the driver reads it. */
typedef struct uf_cuda_allocation {
    int type;         /* UF_CUDA_ALLOCATION_PINNED */
    int handle_types; /* 0: not exported */
    uf_cuda_location location;
    void *win32_metadata;
    struct {
        unsigned char compression_type;
        unsigned char is_rdma_capable;
        unsigned short usage;
        unsigned char reserved[4];
    } flags;
} uf_cuda_allocation;

typedef struct uf_cuda_access {
    uf_cuda_location location;
    int flags;
} uf_cuda_access;

/* Member, parameters, names to look for (newest first; the second may be NULL). The first group is
 * needed by everything; without one of the second there is no virtual memory management; the third
 * is looked up for details; the fourth is what an allocator's device needs besides, and the fifth
 * is used by it where it is there. */
#define UF_CUDA_NEEDED_LIST(X)                                                          \
    X(init, (unsigned flags), "cuInit", NULL)                                           \
    X(driver_get_version, (int *version), "cuDriverGetVersion", NULL)                   \
    X(device_get_count, (int *count), "cuDeviceGetCount", NULL)                         \
    X(device_get, (int *device, int index), "cuDeviceGet", NULL)                        \
    X(device_get_name, (char *name, int capacity, int device), "cuDeviceGetName", NULL) \
    X(device_total_mem, (size_t * bytes, int device), "cuDeviceTotalMem_v2", NULL)      \
    X(device_get_attribute, (int *value, int attribute, int device), "cuDeviceGetAttribute", NULL)

#define UF_CUDA_VMM_LIST(X)                                                                      \
    X(mem_get_granularity, (size_t * bytes, const uf_cuda_allocation *allocation, int option),   \
      "cuMemGetAllocationGranularity", NULL)                                                     \
    X(mem_address_reserve,                                                                       \
      (uint64_t * addr, size_t bytes, size_t alignment, uint64_t wanted,                         \
       unsigned long long flags),                                                                \
      "cuMemAddressReserve", NULL)                                                               \
    X(mem_address_free, (uint64_t addr, size_t bytes), "cuMemAddressFree", NULL)                 \
    X(mem_create,                                                                                \
      (uint64_t * handle, size_t bytes, const uf_cuda_allocation *allocation,                    \
       unsigned long long flags),                                                                \
      "cuMemCreate", NULL)                                                                       \
    X(mem_release, (uint64_t handle), "cuMemRelease", NULL)                                      \
    X(mem_map,                                                                                   \
      (uint64_t addr, size_t bytes, size_t offset, uint64_t handle, unsigned long long flags),   \
      "cuMemMap", NULL)                                                                          \
    X(mem_unmap, (uint64_t addr, size_t bytes), "cuMemUnmap", NULL)                              \
    X(mem_set_access, (uint64_t addr, size_t bytes, const uf_cuda_access *access, size_t count), \
      "cuMemSetAccess", NULL)

#define UF_CUDA_OPTIONAL_LIST(X)                                                                  \
    X(get_error_name, (int result, const char **name), "cuGetErrorName", NULL)                    \
    X(device_get_pci_bus_id, (char *text, int capacity, int device), "cuDeviceGetPCIBusId", NULL) \
    X(primary_context_retain, (void **context, int device), "cuDevicePrimaryCtxRetain", NULL)     \
    X(primary_context_release, (int device), "cuDevicePrimaryCtxRelease_v2",                      \
      "cuDevicePrimaryCtxRelease")                                                                \
    X(context_push, (void *context), "cuCtxPushCurrent_v2", NULL)                                 \
    X(context_pop, (void **context), "cuCtxPopCurrent_v2", NULL)                                  \
    X(mem_get_info, (size_t * free_bytes, size_t * total_bytes), "cuMemGetInfo_v2", NULL)

#define UF_CUDA_DEVICE_LIST(X)                                             \
    X(context_get_current, (void **context), "cuCtxGetCurrent", NULL)      \
    X(context_get_device, (int *device), "cuCtxGetDevice", NULL)           \
    X(mem_alloc, (uint64_t * addr, size_t bytes), "cuMemAlloc_v2", NULL)   \
    X(mem_free, (uint64_t addr), "cuMemFree_v2", NULL)                     \
    X(event_create, (void **event, unsigned flags), "cuEventCreate", NULL) \
    X(event_destroy, (void *event), "cuEventDestroy_v2", "cuEventDestroy") \
    X(event_record, (void *event, void *stream), "cuEventRecord", NULL)    \
    X(event_query, (void *event), "cuEventQuery", NULL)                    \
    X(event_synchronize, (void *event), "cuEventSynchronize", NULL)        \
    X(stream_synchronize, (void *stream), "cuStreamSynchronize", NULL)

#define UF_CUDA_DETAIL_LIST(X)                                                                 \
    X(get_error_string, (int result, const char **text), "cuGetErrorString", NULL)             \
    X(thread_exchange_capture_mode, (int *mode), "cuThreadExchangeStreamCaptureMode", NULL)    \
    X(stream_is_capturing, (void *stream, int *status), "cuStreamIsCapturing", NULL)           \
    X(device_can_access_peer, (int *can, int device, int peer), "cuDeviceCanAccessPeer", NULL) \
    X(context_enable_peer_access, (void *peer, unsigned flags), "cuCtxEnablePeerAccess", NULL) \
    X(memset_d8_async, (uint64_t addr, unsigned char value, size_t bytes, void *stream),       \
      "cuMemsetD8Async", NULL)                                                                 \
    X(memcpy_dtoh_async, (void *to, uint64_t from, size_t bytes, void *stream),                \
      "cuMemcpyDtoHAsync_v2", NULL)

/* Every function returns the driver's error number; 0 is success. */
typedef struct uf_cuda_driver {
    void *library;       /* NULL: not open */
    bool has_vmm;        /* all functions of the second group were found */
    const char *missing; /* one of the third or fourth group that was not found; NULL: none */
#define UF_CUDA_MEMBER(member, parameters, name, older) int(*member) parameters;
    UF_CUDA_NEEDED_LIST(UF_CUDA_MEMBER)
    UF_CUDA_VMM_LIST(UF_CUDA_MEMBER)
    UF_CUDA_OPTIONAL_LIST(UF_CUDA_MEMBER)
    UF_CUDA_DEVICE_LIST(UF_CUDA_MEMBER)
    UF_CUDA_DETAIL_LIST(UF_CUDA_MEMBER)
#undef UF_CUDA_MEMBER
} uf_cuda_driver;

/* Loads libcuda.so.1 and looks its functions up; calls none. Returns UF_OK; UF_ERROR_UNSUPPORTED
 * (there is no such library, or it lacks what is needed: error says which). The caller ends it
 * with uf__cuda_driver_close, whatever was returned. */
uf_status uf__cuda_driver_open(uf_cuda_driver *driver, uf_error *error) UF_MUST_USE;
void uf__cuda_driver_close(uf_cuda_driver *driver);

/* The driver's own name of an error, such as "CUDA_ERROR_NO_DEVICE"; else our own; never NULL. */
const char *uf__cuda_error_name(const uf_cuda_driver *driver, int result);

/* The driver's own sentence on an error; "" if it has none; never NULL. */
const char *uf__cuda_error_text(const uf_cuda_driver *driver, int result);

#endif
