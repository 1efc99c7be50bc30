/* SPDX-License-Identifier: MIT
 *
 * PyTorch's CUDA allocator interface on unfrag's allocators, one for each GPU, made at its first
 * use. One instance, never destroyed: tensors are given back while the process ends. Functions that
 * releases declare in two forms stand here in both; the one that fits overrides. */
#ifndef UF_TORCH_ALLOCATOR_H
#define UF_TORCH_ALLOCATOR_H

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "device.h"

namespace unfrag {

class Allocator final : public cca::CUDAAllocator {
  public:
    explicit Allocator(Settings settings);

    /* c10::Allocator */
    c10::DataPtr allocate(size_t bytes) override;
    c10::DeleterFnPtr raw_deleter() const override;
    void copy_data(void *dest, const void *src, std::size_t count) const override;

    /* Memory */
    void *raw_alloc(size_t bytes) override;
    void *raw_alloc_with_stream(size_t bytes, cudaStream_t stream) override;
    void raw_delete(void *pointer) override;
    void recordStream(const c10::DataPtr &pointer, c10::cuda::CUDAStream stream) override;
    void emptyCache(PoolId id = {0, 0}) override;
    void cacheInfo(c10::DeviceIndex device, size_t *largest) override;
    void *getBaseAllocation(void *pointer, size_t *bytes) override;

    /* Life */
    void init(int device_count) override;
    bool initialized() override;
    void enable(bool is_caching) override;
    bool isEnabled() const override;
    std::string name() override;

    /* Limits and numbers */
    double getMemoryFraction(c10::DeviceIndex device) override;
    void setMemoryFraction(double fraction, c10::DeviceIndex device) override;
    Stats getDeviceStats(c10::DeviceIndex device) override;
    void resetAccumulatedStats(c10::DeviceIndex device) override;
    void resetPeakStats(c10::DeviceIndex device) override;
    std::vector<cca::StreamSegmentSize> getExpandableSegmentSizes(c10::DeviceIndex device) override;

    /* History */
    Snapshot snapshot(PoolId id);
    Snapshot snapshot(PoolId id, bool has_traces);
    bool isHistoryEnabled() override;
    void recordHistory(bool is_enabled, cca::CreateContextFn recorder, size_t entry_count,
                       cca::RecordContext when, bool is_clearing);
    void recordHistory(bool is_enabled, cca::CreateContextFn recorder, size_t entry_count,
                       cca::RecordContext when, bool is_clearing,
                       const std::vector<std::string> &skipped);
    void recordAnnotation(const std::vector<std::pair<std::string, std::string>> &texts) override;
    void pushCompileContext(std::string &text) override;
    void popCompileContext() override;
    void setUserMetadata(const std::string &text);
    std::string getUserMetadata();
    void attachOutOfMemoryObserver(cca::OutOfMemoryObserver observer) override;
#if UF_TORCH_VERSION >= 2012
    void attachOomRejectionObserver(cca::OomRejectionObserver observer) override;
#endif
    void attachAllocatorTraceTracker(cca::AllocatorTraceTracker tracker) override;

    /* Pools */
    void beginAllocateToPool(c10::DeviceIndex device, PoolId id,
                             std::function<bool(cudaStream_t)> filter) override;
    void endAllocateToPool(c10::DeviceIndex device, PoolId id) override;
    void releasePool(c10::DeviceIndex device, PoolId id) override;
    int getPoolUseCount(c10::DeviceIndex device, PoolId id) override;
    void createOrIncrefPool(c10::DeviceIndex device, PoolId id,
                            cca::CUDAAllocator *own_allocator = nullptr);
    void createOrIncrefPool(c10::DeviceIndex device, PoolId id,
                            std::shared_ptr<cca::CUDAAllocator> own_allocator);
    void setUseOnOOM(c10::DeviceIndex device, PoolId id);
    void setUseOnOOM(c10::DeviceIndex device, PoolId id, bool is_on);
    void setNoSplit(c10::DeviceIndex device, PoolId id);
    bool checkPoolLiveAllocations(c10::DeviceIndex device, PoolId id,
                                  const std::unordered_set<void *> &expected) override;
    std::shared_ptr<cca::AllocatorState> getCheckpointState(c10::DeviceIndex device,
                                                            PoolId id) override;
    cca::CheckpointDelta
    setCheckpointPoolState(c10::DeviceIndex device,
                           std::shared_ptr<cca::AllocatorState> state) override;

    /* Other processes and GPUs */
    cca::ShareableHandle shareIpcHandle(void *pointer) override;
    std::shared_ptr<void> getIpcDevPtr(std::string handle) override;
    void enablePeerAccess(c10::DeviceIndex device, c10::DeviceIndex other) override;
    cudaError_t memcpyAsync(void *dst, int dst_device, const void *src, int src_device,
                            size_t count, cudaStream_t stream, bool is_peer_enabled) override;

    /* Ours */
    Device *device_if_made(int index) const
    {
        return index >= 0 && index < DEVICES_MOST
                   ? devices_[static_cast<size_t>(index)].load(std::memory_order_acquire)
                   : nullptr;
    }
    Device &device(int index)
    {
        Device *made = device_if_made(index);
        return C10_LIKELY(made != nullptr) ? *made : make_device(index);
    }
    uf_status conf_set(const char *conf, uf_error *error);
    const Settings &settings() const
    {
        return settings_;
    }

  private:
    Device &make_device(int index);
    void *take(Device &on, size_t bytes, cudaStream_t stream);
    [[noreturn]] void refuse(Device &on, uf_status status, const uf_error &error, size_t bytes);
    void report(const Device &on, void *pointer, int64_t bytes) const;
    Device *owner_of(void *pointer, uint64_t *size_bytes) const;

    static constexpr int DEVICES_MOST = 64;

    Settings settings_;
    std::atomic<bool> is_initialized_{false};
    std::atomic<bool> is_caching_{true};
    std::array<std::atomic<Device *>, DEVICES_MOST> devices_{};
    std::atomic<int> made_count_{0};
    mutable std::mutex mutex_; /* what follows, and the making of devices */
    HistoryOptions history_;
    std::vector<cca::OutOfMemoryObserver> observers_;
    std::vector<cca::AllocatorTraceTracker> trackers_;
    std::vector<Annotation> annotations_;
};

/* In a child made by fork the GPU is gone: nothing is handed out, and what is given back is
 * ignored. */
bool is_forked();
void watch_forks();

/* What a walk over an allocator finds, as PyTorch's snapshot shows it. */
std::vector<Segment> walk_segments(Device &on);

} // namespace unfrag

#endif
