/* SPDX-License-Identifier: MIT
 *
 * Stands in for c10's header of this name: the interface of a CUDA allocator, written down again
 * from its description in as far as the glue meets it, in the forms of two releases:
 * STUB_TORCH_VERSION 2011 as in 2.11, 2009 as in 2.9 and 2.10. */
#ifndef STUB_C10_CUDA_CUDACACHINGALLOCATOR_H
#define STUB_C10_CUDA_CUDACACHINGALLOCATOR_H

#include <array>
#include <atomic>
#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <c10/core/Allocator.h>
#include <c10/cuda/CUDAStream.h>

#ifndef STUB_TORCH_VERSION
#define STUB_TORCH_VERSION 2011
#endif

namespace c10 {

using CaptureId_t = unsigned long long;
using MempoolId_t = std::pair<CaptureId_t, CaptureId_t>;
using approx_time_t = uint64_t;

namespace CachingDeviceAllocator {

struct Stat {
    int64_t current = 0, peak = 0, allocated = 0, freed = 0;
};
using StatArray = std::array<Stat, 3>;

struct DeviceStats {
    StatArray allocation, segment, active, inactive_split, allocated_bytes, reserved_bytes,
        active_bytes, inactive_split_bytes, requested_bytes;
    int64_t num_alloc_retries = 0, num_ooms = 0;
    Stat oversize_allocations, oversize_segments;
    int64_t num_sync_all_streams = 0, num_device_alloc = 0, num_device_free = 0;
    int64_t max_split_size = 0;
};

} // namespace CachingDeviceAllocator

struct DeviceAllocator : public Allocator {
    virtual bool initialized() = 0;
    virtual void emptyCache(MempoolId_t id = {0, 0}) = 0;
    virtual CachingDeviceAllocator::DeviceStats getDeviceStats(DeviceIndex device) = 0;
    virtual void resetAccumulatedStats(DeviceIndex device) = 0;
    virtual void resetPeakStats(DeviceIndex device) = 0;
};

namespace cuda::CUDACachingAllocator {

#if STUB_TORCH_VERSION >= 2011
using StubStream = void *;
#else
using StubStream = cudaStream_t;
#endif

struct BlockInfo {
    size_t size = 0, requested_size = 0;
    int32_t gc_counter = 0;
    bool allocated = false, active = false;
    std::shared_ptr<GatheredContext> context_when_allocated;
};

struct SegmentInfo {
    DeviceIndex device = 0;
    size_t address = 0, total_size = 0, requested_size = 0, allocated_size = 0, active_size = 0;
    StubStream stream = nullptr;
    bool is_large = false, is_expandable = false;
    MempoolId_t owner_private_pool_id = {0, 0};
    std::vector<BlockInfo> blocks;
    std::shared_ptr<GatheredContext> context_when_allocated;
};

union trace_time_ {
    time_t t_;
    approx_time_t approx_t_;
};

struct TraceEntry {
    enum Action {
        ALLOC,
        FREE_REQUESTED,
        FREE_COMPLETED,
        SEGMENT_ALLOC,
        SEGMENT_FREE,
        SEGMENT_MAP,
        SEGMENT_UNMAP,
        SNAPSHOT,
        OOM
    };
    TraceEntry(Action action, DeviceIndex device, size_t addr, size_t size, StubStream stream,
#if STUB_TORCH_VERSION >= 2011
               MempoolId_t pool,
#endif
               approx_time_t time, std::shared_ptr<GatheredContext> context = nullptr,
               std::string compile_context = "", std::string user_metadata = "")
        : action_(action), device_(device), addr_(addr), context_(std::move(context)),
          stream_(stream), size_(size), compile_context_(std::move(compile_context)),
          user_metadata_(std::move(user_metadata))
    {
        time_.approx_t_ = time;
#if STUB_TORCH_VERSION >= 2011
        mempool_ = pool;
#endif
    }
    Action action_;
    DeviceIndex device_;
    size_t addr_;
    std::shared_ptr<GatheredContext> context_;
    StubStream stream_{};
    size_t size_;
    MempoolId_t mempool_{0, 0};
    trace_time_ time_{};
    std::string compile_context_, user_metadata_;
};

struct AnnotationEntry {
    AnnotationEntry(DeviceIndex device, approx_time_t time) : device_(device)
    {
        time_.approx_t_ = time;
    }
    void recordUserMetadata(const std::string &name, std::string value)
    {
        metadata_[name] = std::move(value);
    }
    DeviceIndex device_;
    trace_time_ time_{};
    std::unordered_map<std::string, std::string> metadata_;
};

struct AllocatorConfigInfo {
    double garbage_collection_threshold;
    size_t max_split_size, pinned_num_register_threads;
    bool expandable_segments, release_lock_on_malloc, pinned_use_host_register;
    std::string last_allocator_settings;
    std::vector<size_t> roundup_power2_divisions;
};

struct SnapshotInfo {
    std::vector<SegmentInfo> segments;
    std::vector<std::vector<TraceEntry>> device_traces;
    std::vector<AnnotationEntry> external_annotations;
    AllocatorConfigInfo config_metadata;
};

struct AllocatorState {
    virtual ~AllocatorState() = default;
};
struct CheckpointDelta {
    std::vector<void *> ptrs_freed;
    std::vector<at::DataPtr> dataptrs_allocd;
};
struct ShareableHandle {
    ptrdiff_t offset;
    std::string handle;
};
struct StreamSegmentSize {
    StreamSegmentSize(cudaStream_t handle, bool is_small, size_t bytes)
        : stream(handle), is_small_pool(is_small), total_size(bytes)
    {
    }
    cudaStream_t stream;
    bool is_small_pool;
    size_t total_size;
};

enum struct RecordContext { NEVER = 0, STATE = 1, ALLOC = 2, ALL = 3 };
using CreateContextFn = std::shared_ptr<GatheredContext> (*)();
using OutOfMemoryObserver = std::function<void(int64_t, size_t, size_t, size_t)>;
using AllocatorTraceTracker = std::function<void(const TraceEntry &)>;

class CUDAAllocator : public DeviceAllocator {
  public:
    virtual void *raw_alloc(size_t bytes) = 0;
    virtual void *raw_alloc_with_stream(size_t bytes, cudaStream_t stream) = 0;
    virtual void raw_delete(void *pointer) = 0;
    virtual void init(int device_count) = 0;
    virtual double getMemoryFraction(DeviceIndex device) = 0;
    virtual void setMemoryFraction(double fraction, DeviceIndex device) = 0;
    virtual std::vector<StreamSegmentSize> getExpandableSegmentSizes(DeviceIndex device) = 0;
    virtual void enable(bool value) = 0;
    virtual bool isEnabled() const = 0;
    virtual void cacheInfo(DeviceIndex device, size_t *largest) = 0;
    virtual void *getBaseAllocation(void *pointer, size_t *bytes) = 0;
    virtual void recordStream(const DataPtr &pointer, CUDAStream stream) = 0;
#if STUB_TORCH_VERSION >= 2011
    virtual SnapshotInfo snapshot(MempoolId_t id = {0, 0}, bool include_traces = true) = 0;
#else
    virtual SnapshotInfo snapshot(MempoolId_t id = {0, 0}) = 0;
#endif
    virtual void beginAllocateToPool(DeviceIndex device, MempoolId_t id,
                                     std::function<bool(cudaStream_t)> filter) = 0;
    virtual void endAllocateToPool(DeviceIndex device, MempoolId_t id) = 0;
    virtual void releasePool(DeviceIndex device, MempoolId_t id) = 0;
    virtual int getPoolUseCount(DeviceIndex, MempoolId_t)
    {
        return -1;
    }
#if STUB_TORCH_VERSION >= 2011
    virtual void createOrIncrefPool(DeviceIndex, MempoolId_t, std::shared_ptr<CUDAAllocator>)
    {
        TORCH_CHECK(false, "not overridden");
    }
    virtual void setUseOnOOM(DeviceIndex, MempoolId_t, bool)
    {
        TORCH_CHECK(false, "not overridden");
    }
    virtual void setUserMetadata(const std::string &)
    {
    }
    virtual std::string getUserMetadata()
    {
        return "not overridden";
    }
    virtual void recordHistory(bool enabled, CreateContextFn recorder, size_t max_entries,
                               RecordContext when, bool clear_history,
                               const std::vector<std::string> &skip_actions) = 0;
#else
    virtual void createOrIncrefPool(DeviceIndex, MempoolId_t, CUDAAllocator *)
    {
        TORCH_CHECK(false, "not overridden");
    }
    virtual void setUseOnOOM(DeviceIndex, MempoolId_t)
    {
        TORCH_CHECK(false, "not overridden");
    }
    virtual void recordHistory(bool enabled, CreateContextFn recorder, size_t max_entries,
                               RecordContext when, bool clear_history) = 0;
#endif
    virtual void setNoSplit(DeviceIndex, MempoolId_t)
    {
        TORCH_CHECK(false, "not overridden");
    }
    virtual bool checkPoolLiveAllocations(DeviceIndex, MempoolId_t,
                                          const std::unordered_set<void *> &)
    {
        TORCH_CHECK(false, "not overridden");
    }
    virtual ShareableHandle shareIpcHandle(void *pointer) = 0;
    virtual std::shared_ptr<void> getIpcDevPtr(std::string handle) = 0;
    virtual bool isHistoryEnabled()
    {
        TORCH_CHECK(false, "not overridden");
    }
    virtual void recordAnnotation(const std::vector<std::pair<std::string, std::string>> &)
    {
    }
    virtual void pushCompileContext(std::string &)
    {
    }
    virtual void popCompileContext()
    {
    }
    virtual void attachOutOfMemoryObserver(OutOfMemoryObserver observer) = 0;
    virtual void attachAllocatorTraceTracker(AllocatorTraceTracker tracker) = 0;
    virtual void enablePeerAccess(DeviceIndex device, DeviceIndex other) = 0;
    virtual cudaError_t memcpyAsync(void *dst, int dst_device, const void *src, int src_device,
                                    size_t count, cudaStream_t stream, bool p2p_enabled) = 0;
    virtual std::shared_ptr<AllocatorState> getCheckpointState(DeviceIndex device,
                                                               MempoolId_t id) = 0;
    virtual CheckpointDelta setCheckpointPoolState(DeviceIndex device,
                                                   std::shared_ptr<AllocatorState> state) = 0;
    virtual std::string name() = 0;
};

extern std::atomic<CUDAAllocator *> allocator;

inline CUDAAllocator *get()
{
    return allocator.load();
}

} // namespace cuda::CUDACachingAllocator
} // namespace c10

#endif
