/* SPDX-License-Identifier: MIT
 *
 * What the stub of c10 and CUDA does: one current device and stream for each thread, memory of the
 * host, and notes of what was told. */
#include "stub.h"

#include <cstdlib>
#include <cstring>

namespace stub {
thread_local int device = 0;
thread_local cudaStream_t stream = nullptr;
std::vector<std::string> warnings;
std::vector<Report> reports;
bool is_profiling = false;
c10::Allocator *registered = nullptr;
} // namespace stub

namespace c10 {

void stub_warn(const std::string &text)
{
    stub::warnings.push_back(text);
}

void SetAllocator(DeviceType, Allocator *allocator, uint8_t)
{
    stub::registered = allocator;
}

bool memoryProfilingEnabled()
{
    return stub::is_profiling;
}

void reportMemoryUsageToProfiler(void *, int64_t bytes, size_t allocated_bytes, size_t, Device)
{
    stub::reports.push_back({bytes, allocated_bytes});
}

void reportOutOfMemoryToProfiler(int64_t bytes, size_t allocated_bytes, size_t, Device)
{
    stub::reports.push_back({bytes, allocated_bytes});
}

namespace cuda {

cudaError_t GetDevice(DeviceIndex *result)
{
    *result = static_cast<DeviceIndex>(stub::device);
    return cudaSuccess;
}

CUDAStream getCurrentCUDAStream(DeviceIndex)
{
    return CUDAStream(stub::stream);
}

namespace CUDACachingAllocator {
std::atomic<CUDAAllocator *> allocator{nullptr};
}

} // namespace cuda
} // namespace c10

cudaError_t cudaGetDevice(int *device)
{
    *device = stub::device;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    stub::device = device;
    return cudaSuccess;
}

cudaError_t cudaGetLastError()
{
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **pointer, size_t bytes)
{
    *pointer = std::malloc(bytes);
    return *pointer != nullptr ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFree(void *pointer)
{
    std::free(pointer);
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void *dst, const void *src, size_t bytes, cudaMemcpyKind)
{
    std::memmove(dst, src, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t)
{
    return cudaMemcpy(dst, src, bytes, kind);
}

cudaError_t cudaMemcpyPeerAsync(void *dst, int, const void *src, int, size_t bytes, cudaStream_t)
{
    return cudaMemcpy(dst, src, bytes, cudaMemcpyDeviceToDevice);
}

cudaError_t cudaDeviceEnablePeerAccess(int, unsigned)
{
    return cudaErrorPeerAccessAlreadyEnabled;
}
