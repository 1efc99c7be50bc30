/* SPDX-License-Identifier: MIT
 *
 * The few declarations of CUDA's runtime that the glue uses, for compiling it where there is none.
 * Device memory is the host's here. */
#ifndef STUB_CUDA_RUNTIME_API_H
#define STUB_CUDA_RUNTIME_API_H

#include <cstddef>

typedef struct CUstream_st *cudaStream_t;
typedef enum cudaError {
    cudaSuccess = 0,
    cudaErrorMemoryAllocation = 2,
    cudaErrorPeerAccessAlreadyEnabled = 704
} cudaError_t;
enum cudaMemcpyKind { cudaMemcpyDeviceToDevice = 3 };

cudaError_t cudaGetDevice(int *device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetLastError();
cudaError_t cudaMalloc(void **pointer, size_t bytes);
cudaError_t cudaFree(void *pointer);
cudaError_t cudaMemcpy(void *dst, const void *src, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaMemcpyPeerAsync(void *dst, int dst_device, const void *src, int src_device,
                                size_t bytes, cudaStream_t stream);
cudaError_t cudaDeviceEnablePeerAccess(int other, unsigned flags);

#endif
