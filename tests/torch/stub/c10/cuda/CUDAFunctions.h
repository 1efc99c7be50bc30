/* SPDX-License-Identifier: MIT
 *
 * Stands in for c10's header of this name. */
#ifndef STUB_C10_CUDA_CUDAFUNCTIONS_H
#define STUB_C10_CUDA_CUDAFUNCTIONS_H

#include <c10/core/Allocator.h>
#include <cuda_runtime_api.h>

namespace c10::cuda {
cudaError_t GetDevice(DeviceIndex *device);
}

#endif
