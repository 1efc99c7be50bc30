/* SPDX-License-Identifier: MIT
 *
 * libc10_cuda of the fake torch: the stub, an allocator that stands in for PyTorch's own (it
 * counts, obeys a fraction, and keeps nothing), and plain functions for Python. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "../stub/stub.h"

namespace cca = c10::cuda::CUDACachingAllocator;

static constexpr size_t TOTAL_BYTES = size_t{8} << 30;

class Native final : public cca::CUDAAllocator {
  public:
    void *raw_alloc(size_t bytes) override
    {
        if (bytes + bytes_ > limit_) {
            ooms_++;
            for (const auto &observer : observers_) {
                observer(0, bytes, limit_, TOTAL_BYTES - bytes_);
            }
            throw c10::OutOfMemoryError("CUDA out of memory. Tried to allocate some.");
        }
        void *pointer = std::malloc(1);
        sizes_[pointer] = bytes;
        bytes_ += bytes;
        peak_ = bytes_ > peak_ ? bytes_ : peak_;
        return pointer;
    }
    void raw_delete(void *pointer) override
    {
        bytes_ -= sizes_[pointer];
        sizes_.erase(pointer);
        std::free(pointer);
    }
    c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex) override
    {
        c10::CachingDeviceAllocator::DeviceStats stats;
        stats.allocated_bytes[0].current = stats.reserved_bytes[0].current = (int64_t)bytes_;
        stats.allocated_bytes[0].peak = stats.reserved_bytes[0].peak = (int64_t)peak_;
        stats.num_ooms = ooms_;
        return stats;
    }
    void setMemoryFraction(double fraction, c10::DeviceIndex) override
    {
        limit_ = static_cast<size_t>(fraction * TOTAL_BYTES);
    }
    void attachOutOfMemoryObserver(cca::OutOfMemoryObserver observer) override
    {
        observers_.push_back(observer);
    }
    void init(int) override
    {
        is_initialized_ = true;
    }
    bool initialized() override
    {
        return is_initialized_;
    }
    std::string name() override
    {
        return "native";
    }
    c10::DataPtr allocate(size_t bytes) override
    {
        void *pointer = raw_alloc(bytes);
        return {pointer, pointer, [](void *p) { cca::get()->raw_delete(p); }, c10::kCUDA};
    }
    void *raw_alloc_with_stream(size_t bytes, cudaStream_t) override
    {
        return raw_alloc(bytes);
    }
    cca::SnapshotInfo snapshot(c10::MempoolId_t, bool) override
    {
        return {};
    }
    cca::ShareableHandle shareIpcHandle(void *) override
    {
        return {};
    }
    void copy_data(void *, const void *, std::size_t) const override
    {
    }
    void emptyCache(c10::MempoolId_t) override
    {
    }
    void resetAccumulatedStats(c10::DeviceIndex) override
    {
    }
    void resetPeakStats(c10::DeviceIndex) override
    {
        peak_ = bytes_;
    }
    double getMemoryFraction(c10::DeviceIndex) override
    {
        return 1;
    }
    std::vector<cca::StreamSegmentSize> getExpandableSegmentSizes(c10::DeviceIndex) override
    {
        return {};
    }
    void enable(bool) override
    {
    }
    bool isEnabled() const override
    {
        return true;
    }
    void cacheInfo(c10::DeviceIndex, size_t *) override
    {
    }
    void *getBaseAllocation(void *, size_t *) override
    {
        return nullptr;
    }
    void recordStream(const c10::DataPtr &, c10::cuda::CUDAStream) override
    {
    }
    void beginAllocateToPool(c10::DeviceIndex, c10::MempoolId_t,
                             std::function<bool(cudaStream_t)>) override
    {
    }
    void endAllocateToPool(c10::DeviceIndex, c10::MempoolId_t) override
    {
    }
    void releasePool(c10::DeviceIndex, c10::MempoolId_t) override
    {
    }
    std::shared_ptr<void> getIpcDevPtr(std::string) override
    {
        return nullptr;
    }
    void recordHistory(bool, cca::CreateContextFn, size_t, cca::RecordContext, bool,
                       const std::vector<std::string> &) override
    {
    }
    void attachAllocatorTraceTracker(cca::AllocatorTraceTracker) override
    {
    }
    void enablePeerAccess(c10::DeviceIndex, c10::DeviceIndex) override
    {
    }
    cudaError_t memcpyAsync(void *, int, const void *, int, size_t, cudaStream_t, bool) override
    {
        return cudaSuccess;
    }
    std::shared_ptr<cca::AllocatorState> getCheckpointState(c10::DeviceIndex,
                                                            c10::MempoolId_t) override
    {
        return nullptr;
    }
    cca::CheckpointDelta setCheckpointPoolState(c10::DeviceIndex,
                                                std::shared_ptr<cca::AllocatorState>) override
    {
        return {};
    }

  private:
    std::map<void *, size_t> sizes_;
    size_t bytes_ = 0, peak_ = 0, limit_ = TOTAL_BYTES;
    int64_t ooms_ = 0;
    bool is_initialized_ = false;
    std::vector<cca::OutOfMemoryObserver> observers_;
};

__attribute__((constructor)) static void begin()
{
    cca::allocator.store(new Native);
}

using PlainAlloc = void *(*)(ssize_t, int, cudaStream_t);
using PlainFree = void (*)(void *, ssize_t, int, cudaStream_t);
static PlainAlloc plain_alloc;
static PlainFree plain_free;
static std::map<void *, size_t> plain_sizes;

extern "C" {

/* torch._C._cuda_customAllocator and _cuda_changeCurrentAllocator in one. */
void fake_plain(PlainAlloc take, PlainFree give)
{
    plain_alloc = take;
    plain_free = give;
}

void fake_init()
{
    cca::get()->init(1);
}

/* Null: out of memory or another failure, with its text. */
void *fake_alloc(size_t bytes, char *text, size_t capacity, int *is_oom)
{
    *is_oom = 0;
    try {
        if (plain_alloc != nullptr) {
            void *pointer = plain_alloc(static_cast<ssize_t>(bytes), 0, nullptr);
            plain_sizes[pointer] = bytes;
            return pointer;
        }
        return cca::get()->raw_alloc(bytes);
    } catch (const c10::OutOfMemoryError &error) {
        *is_oom = 1;
        std::snprintf(text, capacity, "%s", error.what());
    } catch (const std::exception &error) {
        std::snprintf(text, capacity, "%s", error.what());
    }
    return nullptr;
}

void fake_free(void *pointer)
{
    if (plain_free != nullptr) {
        plain_free(pointer, static_cast<ssize_t>(plain_sizes[pointer]), 0, nullptr);
        plain_sizes.erase(pointer);
        return;
    }
    cca::get()->raw_delete(pointer);
}

/* What a capture does first; 0 = it went through. */
int fake_begin_pool(void (*begin)(int, std::pair<uint64_t, uint64_t>, std::function<bool(void *)>),
                    char *text, size_t capacity)
{
    try {
        begin(0, {0, 1}, [](void *) { return true; });
        return 0;
    } catch (const c10::Error &error) {
        std::snprintf(text, capacity, "%s", error.what());
        return 1;
    }
}

/* allocated now and at most, reserved now and at most, retries, failures */
void fake_stats(int64_t *numbers)
{
    auto stats = cca::get()->getDeviceStats(0);
    const int64_t found[] = {stats.allocated_bytes[0].current, stats.allocated_bytes[0].peak,
                             stats.reserved_bytes[0].current,  stats.reserved_bytes[0].peak,
                             stats.num_alloc_retries,          stats.num_ooms};
    std::memcpy(numbers, found, sizeof found);
}

void fake_fraction(double fraction)
{
    cca::get()->setMemoryFraction(fraction, 0);
}

void fake_empty_cache()
{
    cca::get()->emptyCache({0, 0});
}

void fake_reset_peaks()
{
    cca::get()->resetPeakStats(0);
}

void fake_observe(void (*observer)())
{
    cca::get()->attachOutOfMemoryObserver(
        [observer](int64_t, size_t, size_t, size_t) { observer(); });
}

const char *fake_name()
{
    static std::string name;
    if (plain_alloc != nullptr) {
        return "pluggable";
    }
    name = cca::get()->name();
    return name.c_str();
}
}
