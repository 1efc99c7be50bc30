/* SPDX-License-Identifier: MIT
 *
 * Stands in for c10's header of this name: a stream is its handle. */
#ifndef STUB_C10_CUDA_CUDASTREAM_H
#define STUB_C10_CUDA_CUDASTREAM_H

#include <c10/core/Allocator.h>
#include <cuda_runtime_api.h>

namespace c10::cuda {

class CUDAStream {
  public:
    explicit CUDAStream(cudaStream_t handle) : handle_(handle)
    {
    }
    cudaStream_t stream() const
    {
        return handle_;
    }

  private:
    cudaStream_t handle_;
};

CUDAStream getCurrentCUDAStream(DeviceIndex device = -1);

} // namespace c10::cuda

#endif
