/* SPDX-License-Identifier: MIT
 *
 * Stands in for c10's header of this name. */
#ifndef STUB_C10_CUDA_CUDAEXCEPTION_H
#define STUB_C10_CUDA_CUDAEXCEPTION_H

#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>

#define C10_CUDA_CHECK(call) TORCH_CHECK((call) == cudaSuccess, "CUDA error in ", #call)

#endif
