/* SPDX-License-Identifier: MIT
 *
 * What the glue takes from the installed torch, and where its releases differ: one place for every
 * #if and every type that moved. Knows nothing of unfrag. UF_TORCH_VERSION is given by the build,
 * 2011 for 2.11. */
#ifndef UF_TORCH_INTERFACE_H
#define UF_TORCH_INTERFACE_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include <c10/core/Allocator.h>
#include <c10/core/impl/GPUTrace.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>

#ifndef UF_TORCH_VERSION
#error "build with -DUF_TORCH_VERSION=2011 (of torch 2.11); unfrag torch build does"
#endif

namespace unfrag {

namespace cca = c10::cuda::CUDACachingAllocator;

/* TraceEntry, BlockInfo and SegmentInfo changed their namespace and the type of a stream between
 * releases; named by where they are kept, they are always the right ones. */
using Snapshot = cca::SnapshotInfo;
using Trace = std::decay_t<decltype(std::declval<Snapshot>().device_traces[0][0])>;
using Segment = std::decay_t<decltype(std::declval<Snapshot>().segments[0])>;
using Block = std::decay_t<decltype(std::declval<Segment>().blocks[0])>;
using Annotation = std::decay_t<decltype(std::declval<Snapshot>().external_annotations[0])>;
using Stats = std::decay_t<decltype(std::declval<cca::CUDAAllocator>().getDeviceStats(0))>;
using PoolId = std::decay_t<decltype(std::declval<Segment>().owner_private_pool_id)>;
using Context = std::shared_ptr<c10::GatheredContext>;

template <class Stream> Stream stream_from(uint64_t handle)
{
    return reinterpret_cast<Stream>(static_cast<uintptr_t>(handle));
}

inline uint64_t stream_number(cudaStream_t stream)
{
    return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(stream));
}

inline void *pointer_from(uint64_t addr)
{
    return reinterpret_cast<void *>(static_cast<uintptr_t>(addr));
}

inline uint64_t address_of(const void *pointer)
{
    return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(pointer));
}

struct TraceParts {
    Trace::Action action;
    c10::DeviceIndex device;
    uint64_t addr, size_bytes, stream;
    PoolId pool;
    int64_t time_us;
    Context context;
    std::string compile_context, user_metadata;
};

/* Releases from 2.10 or so put the pool before the time. */
template <class Entry> Entry trace_entry(TraceParts parts)
{
    using Stream = decltype(std::declval<Entry>().stream_);
    auto stream = stream_from<std::decay_t<Stream>>(parts.stream);
    auto addr = static_cast<size_t>(parts.addr);
    auto size = static_cast<size_t>(parts.size_bytes);
    using Time = decltype(std::declval<Entry>().time_.approx_t_);
    auto make = [&]() {
        if constexpr (std::is_constructible_v<Entry, Trace::Action, c10::DeviceIndex, size_t,
                                              size_t, decltype(stream), PoolId, Time, Context,
                                              std::string, std::string>) {
            return Entry(parts.action, parts.device, addr, size, stream, parts.pool, Time{},
                         std::move(parts.context), std::move(parts.compile_context),
                         std::move(parts.user_metadata));
        } else if constexpr (std::is_constructible_v<Entry, Trace::Action, c10::DeviceIndex, size_t,
                                                     size_t, decltype(stream), Time, Context,
                                                     std::string, std::string>) {
            return Entry(parts.action, parts.device, addr, size, stream, Time{},
                         std::move(parts.context), std::move(parts.compile_context),
                         std::move(parts.user_metadata));
        } else {
            return Entry(parts.action, parts.device, addr, size, stream, Time{},
                         std::move(parts.context), std::move(parts.compile_context));
        }
    };
    Entry entry = make();
    /* What a snapshot hands out is microseconds; the glue notes them at once. */
    entry.time_.t_ = parts.time_us;
    return entry;
}

} // namespace unfrag

#endif
