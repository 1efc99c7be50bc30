/* SPDX-License-Identifier: MIT
 *
 * How a test steers the stub, and sees what it was told. */
#ifndef STUB_STUB_H
#define STUB_STUB_H

#include <string>
#include <vector>

#include <c10/core/Allocator.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

namespace stub {
struct Report {
    int64_t bytes;
    size_t allocated_bytes;
};
extern thread_local int device;
extern thread_local cudaStream_t stream;
extern std::vector<std::string> warnings;
extern std::vector<Report> reports;
extern bool is_profiling;
extern c10::Allocator *registered;
} // namespace stub

#endif
