/* SPDX-License-Identifier: MIT
 *
 * Our declarations of the driver against its own header, cuda.h, where this machine has one: the
 * layout of structs and the values of constants when this is compiled, the versioned names of
 * functions when it runs. Elsewhere there is nothing to compare with, and that is said. */
#include <stdio.h>
#include <string.h>

#include "device/cuda_driver.h"

#include "unit/suite.h"

#if __has_include(<cuda.h>)
#include <cuda.h>

#define SAME(ours, theirs) \
    _Static_assert((long long)(ours) == (long long)(theirs), #ours " is not " #theirs)
#define SAME_PLACE(type, member, their_type, their_member)            \
    SAME(offsetof(type, member), offsetof(their_type, their_member)); \
    SAME(sizeof(((type *)NULL)->member), sizeof(((their_type *)NULL)->their_member))

SAME(UF_CUDA_SUCCESS, CUDA_SUCCESS);
SAME(UF_CUDA_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE);
SAME(UF_CUDA_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME(UF_CUDA_DEINITIALIZED, CUDA_ERROR_DEINITIALIZED);
SAME(UF_CUDA_STUB_LIBRARY, CUDA_ERROR_STUB_LIBRARY);
SAME(UF_CUDA_DEVICE_UNAVAILABLE, CUDA_ERROR_DEVICE_UNAVAILABLE);
SAME(UF_CUDA_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
SAME(UF_CUDA_INVALID_DEVICE, CUDA_ERROR_INVALID_DEVICE);
SAME(UF_CUDA_INVALID_CONTEXT, CUDA_ERROR_INVALID_CONTEXT);
SAME(UF_CUDA_ECC_UNCORRECTABLE, CUDA_ERROR_ECC_UNCORRECTABLE);
SAME(UF_CUDA_NVLINK_UNCORRECTABLE, CUDA_ERROR_NVLINK_UNCORRECTABLE);
SAME(UF_CUDA_NOT_READY, CUDA_ERROR_NOT_READY);
SAME(UF_CUDA_ILLEGAL_ADDRESS, CUDA_ERROR_ILLEGAL_ADDRESS);
SAME(UF_CUDA_LAUNCH_TIMEOUT, CUDA_ERROR_LAUNCH_TIMEOUT);
SAME(UF_CUDA_PEER_ACCESS_ALREADY_ENABLED, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
SAME(UF_CUDA_CONTEXT_IS_DESTROYED, CUDA_ERROR_CONTEXT_IS_DESTROYED);
SAME(UF_CUDA_ASSERT, CUDA_ERROR_ASSERT);
SAME(UF_CUDA_HARDWARE_STACK_ERROR, CUDA_ERROR_HARDWARE_STACK_ERROR);
SAME(UF_CUDA_ILLEGAL_INSTRUCTION, CUDA_ERROR_ILLEGAL_INSTRUCTION);
SAME(UF_CUDA_MISALIGNED_ADDRESS, CUDA_ERROR_MISALIGNED_ADDRESS);
SAME(UF_CUDA_INVALID_ADDRESS_SPACE, CUDA_ERROR_INVALID_ADDRESS_SPACE);
SAME(UF_CUDA_INVALID_PC, CUDA_ERROR_INVALID_PC);
SAME(UF_CUDA_LAUNCH_FAILED, CUDA_ERROR_LAUNCH_FAILED);
SAME(UF_CUDA_NOT_PERMITTED, CUDA_ERROR_NOT_PERMITTED);
SAME(UF_CUDA_NOT_SUPPORTED, CUDA_ERROR_NOT_SUPPORTED);
SAME(UF_CUDA_SYSTEM_NOT_READY, CUDA_ERROR_SYSTEM_NOT_READY);
SAME(UF_CUDA_DRIVER_MISMATCH, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
SAME(UF_CUDA_COMPAT_NOT_SUPPORTED, CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE);
SAME(UF_CUDA_CAPTURE_IMPLICIT, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
SAME(UF_CUDA_UNKNOWN, CUDA_ERROR_UNKNOWN);

SAME(UF_CUDA_ATTRIBUTE_MULTIPROCESSOR_COUNT, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME(UF_CUDA_ATTRIBUTE_INTEGRATED, CU_DEVICE_ATTRIBUTE_INTEGRATED);
SAME(UF_CUDA_ATTRIBUTE_CAPABILITY_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(UF_CUDA_ATTRIBUTE_CAPABILITY_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(UF_CUDA_ATTRIBUTE_VMM, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
SAME(UF_CUDA_ATTRIBUTE_RDMA_WITH_VMM, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED);
#if CUDA_VERSION >= 12030
SAME(UF_CUDA_ATTRIBUTE_HOST_NUMA_ID, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID);
SAME(UF_CUDA_ATTRIBUTE_HOST_NUMA_VMM,
     CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
SAME(UF_CUDA_LOCATION_HOST, CU_MEM_LOCATION_TYPE_HOST);
SAME(UF_CUDA_LOCATION_HOST_NUMA, CU_MEM_LOCATION_TYPE_HOST_NUMA);
#endif
SAME(UF_CUDA_LOCATION_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE);
SAME(UF_CUDA_ALLOCATION_PINNED, CU_MEM_ALLOCATION_TYPE_PINNED);
SAME(UF_CUDA_ACCESS_READ_WRITE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
SAME(UF_CUDA_GRANULARITY_MINIMUM, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
SAME(UF_CUDA_GRANULARITY_RECOMMENDED, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
SAME(UF_CUDA_HANDLE_TYPE_FILE, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
SAME(UF_CUDA_EVENT_DISABLE_TIMING, CU_EVENT_DISABLE_TIMING);
SAME(UF_CUDA_CAPTURE_MODE_RELAXED, CU_STREAM_CAPTURE_MODE_RELAXED);
SAME(UF_CUDA_CAPTURE_STATUS_NONE, CU_STREAM_CAPTURE_STATUS_NONE);

SAME(sizeof(uint64_t), sizeof(CUdeviceptr));
SAME(sizeof(uint64_t), sizeof(CUmemGenericAllocationHandle));
SAME(sizeof(int), sizeof(CUdevice));
SAME(sizeof(int), sizeof(CUresult));
SAME(sizeof(void *), sizeof(CUcontext));
SAME(sizeof(void *), sizeof(CUstream));
SAME(sizeof(void *), sizeof(CUevent));
SAME(sizeof(int), sizeof(CUstreamCaptureMode));
SAME(sizeof(int), sizeof(CUstreamCaptureStatus));
SAME(sizeof(uf_cuda_allocation), sizeof(CUmemAllocationProp));
SAME_PLACE(uf_cuda_allocation, type, CUmemAllocationProp, type);
SAME_PLACE(uf_cuda_allocation, handle_types, CUmemAllocationProp, requestedHandleTypes);
SAME_PLACE(uf_cuda_allocation, location, CUmemAllocationProp, location);
SAME_PLACE(uf_cuda_allocation, win32_metadata, CUmemAllocationProp, win32HandleMetaData);
SAME_PLACE(uf_cuda_allocation, flags.compression_type, CUmemAllocationProp,
           allocFlags.compressionType);
SAME_PLACE(uf_cuda_allocation, flags.is_rdma_capable, CUmemAllocationProp,
           allocFlags.gpuDirectRDMACapable);
SAME_PLACE(uf_cuda_allocation, flags.usage, CUmemAllocationProp, allocFlags.usage);
SAME(sizeof(uf_cuda_access), sizeof(CUmemAccessDesc));
SAME_PLACE(uf_cuda_access, location, CUmemAccessDesc, location);
SAME_PLACE(uf_cuda_access, flags, CUmemAccessDesc, flags);

#define NAME_OF(function) #function
#define NAME(function) NAME_OF(function)

/* Functions that the header renames to a version: what it calls them now, and we. */
START_TEST(versioned_functions_have_the_names_of_the_header)
{
    static const struct {
        const char *theirs, *plain;
    } names[] = {{NAME(cuDeviceTotalMem), "cuDeviceTotalMem"},
                 {NAME(cuDevicePrimaryCtxRelease), "cuDevicePrimaryCtxRelease"},
                 {NAME(cuCtxPushCurrent), "cuCtxPushCurrent"},
                 {NAME(cuCtxPopCurrent), "cuCtxPopCurrent"},
                 {NAME(cuMemGetInfo), "cuMemGetInfo"},
                 {NAME(cuMemAlloc), "cuMemAlloc"},
                 {NAME(cuMemFree), "cuMemFree"},
                 {NAME(cuEventCreate), "cuEventCreate"},
                 {NAME(cuEventDestroy), "cuEventDestroy"},
                 {NAME(cuEventRecord), "cuEventRecord"},
                 {NAME(cuEventQuery), "cuEventQuery"},
                 {NAME(cuEventSynchronize), "cuEventSynchronize"},
                 {NAME(cuStreamSynchronize), "cuStreamSynchronize"},
                 {NAME(cuStreamIsCapturing), "cuStreamIsCapturing"},
                 {NAME(cuMemsetD8Async), "cuMemsetD8Async"},
                 {NAME(cuMemcpyDtoHAsync), "cuMemcpyDtoHAsync"},
                 {NAME(cuMemCreate), "cuMemCreate"},
                 {NAME(cuMemRelease), "cuMemRelease"},
                 {NAME(cuMemMap), "cuMemMap"},
                 {NAME(cuMemUnmap), "cuMemUnmap"},
                 {NAME(cuMemSetAccess), "cuMemSetAccess"},
                 {NAME(cuMemAddressReserve), "cuMemAddressReserve"},
                 {NAME(cuMemAddressFree), "cuMemAddressFree"}};
    static const char *const ours[] = {
#define OUR_NAME(member, parameters, name, older) name,
        UF_CUDA_NEEDED_LIST(OUR_NAME) UF_CUDA_VMM_LIST(OUR_NAME) UF_CUDA_OPTIONAL_LIST(OUR_NAME)
            UF_CUDA_DEVICE_LIST(OUR_NAME) UF_CUDA_DETAIL_LIST(OUR_NAME)
#undef OUR_NAME
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t length = strlen(names[i].plain);
        const char *found = NULL;
        for (size_t j = 0; j < sizeof ours / sizeof *ours; j++) {
            bool is_it = strncmp(ours[j], names[i].plain, length) == 0 &&
                         (ours[j][length] == '\0' || ours[j][length] == '_');
            found = is_it ? ours[j] : found;
        }
        ck_assert_msg(found != NULL, "%s is not in our lists", names[i].plain);
        ck_assert_str_eq(found, names[i].theirs);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {versioned_functions_have_the_names_of_the_header, NULL};
    return suite_run("cuda_header", tests);
}

#else

int main(void)
{
    (void)printf("cuda_header: not run: this machine has no cuda.h\n");
    return EXIT_SUCCESS;
}

#endif
