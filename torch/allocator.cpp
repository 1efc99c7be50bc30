/* SPDX-License-Identifier: MIT
 *
 * Memory: handing it out, taking it back, and what happens when there is none. The rest of the
 * interface is in parity.cpp (numbers, history) and pooling.cpp (pools, other GPUs). */
#include "allocator.h"

#include <pthread.h>

#include "message.h"

namespace unfrag {

static std::atomic<bool> forked{false}, has_device{false};

bool is_forked()
{
    return forked.load(std::memory_order_relaxed);
}

/* A child gets CUDA as its parent had it: what was not begun yet, the child may begin. */
static void note_fork()
{
    forked.store(forked.load() || has_device.load());
}

void watch_forks()
{
    static std::once_flag once;
    std::call_once(once, [] { pthread_atfork(nullptr, nullptr, note_fork); });
}

static void delete_raw(void *pointer)
{
    cca::get()->raw_delete(pointer);
}

static void delete_uncached(void *pointer)
{
    if (!is_forked()) {
        C10_CUDA_CHECK(cudaFree(pointer));
    }
}

Allocator::Allocator(Settings settings) : settings_(std::move(settings))
{
}

Device &Allocator::make_device(int index)
{
    TORCH_CHECK(index >= 0 && index < DEVICES_MOST, "unfrag: there is no GPU ", index);
    TORCH_CHECK(!is_forked(), "unfrag: Cannot use CUDA in a forked subprocess; start it with "
                              "multiprocessing's 'spawn' method");
    std::lock_guard<std::mutex> lock(mutex_);
    auto &place = devices_[static_cast<size_t>(index)];
    if (place.load() == nullptr) {
        has_device.store(true);
        auto fresh = std::make_unique<Device>(index, settings_);
        fresh->history.set(history_);
        for (const auto &tracker : trackers_) {
            fresh->history.attach(tracker);
        }
        if (!fresh->note().empty()) {
            TORCH_WARN("unfrag: ", fresh->note());
        }
        place.store(fresh.release(), std::memory_order_release);
        made_count_++;
    }
    return *place.load();
}

/* Leaves the calling thread's stack for the events of one call, if anybody looks at them: the usual
 * case touches no thread-local. */
class Noted {
  public:
    Noted(const History &history, cca::RecordContext level) : is_noted_(history.is_wanted())
    {
        if (C10_UNLIKELY(is_noted_)) {
            caller().context = history.gather(level);
        }
    }
    ~Noted()
    {
        if (C10_UNLIKELY(is_noted_)) {
            caller().context.reset();
        }
    }
    Noted(const Noted &) = delete;
    Noted &operator=(const Noted &) = delete;

  private:
    bool is_noted_;
};

void *Allocator::take(Device &on, size_t bytes, cudaStream_t stream)
{
    uf_error error; /* filled on failure alone */
    uint64_t addr = 0;
    uf_status status;
    {
        Noted noted(on.history, cca::RecordContext::STATE);
        status = uf_alloc(on.allocator(), bytes, stream_number(stream), &addr, &error);
    }
    if (C10_UNLIKELY(status != UF_OK)) {
        refuse(on, status, error, bytes);
    }
    void *pointer = pointer_from(addr);
    if (C10_UNLIKELY(c10::memoryProfilingEnabled())) {
        report(on, pointer, static_cast<int64_t>(bytes));
    }
    const c10::impl::PyInterpreter *interpreter = c10::impl::GPUTrace::get_trace();
    if (C10_UNLIKELY(interpreter != nullptr)) {
        (*interpreter)
            ->trace_gpu_memory_allocation(c10::kCUDA, reinterpret_cast<uintptr_t>(pointer));
    }
    return pointer;
}

/* To the profiler, as after the change. */
void Allocator::report(const Device &on, void *pointer, int64_t bytes) const
{
    uf_stats stats{};
    if (uf_stats_get(on.allocator(), &stats, nullptr) != UF_OK) {
        return;
    }
    c10::reportMemoryUsageToProfiler(
        pointer, bytes, static_cast<size_t>(stats.allocated_bytes.all.current),
        static_cast<size_t>(stats.reserved_bytes.all.current),
        c10::Device(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(on.index)));
}

/* PyTorch names the segment that it tried to get, not the request. */
static uint64_t wanted_bytes(const Device &on, uint64_t block_bytes)
{
    constexpr uint64_t mib = UINT64_C(1) << 20;
    if (on.policy() != UF_POLICY_TORCH) {
        return block_bytes;
    }
    if (block_bytes <= mib) {
        return 2 * mib;
    }
    return block_bytes < 10 * mib ? 20 * mib : (block_bytes + 2 * mib - 1) / (2 * mib) * (2 * mib);
}

static bool add_pool_bytes(void *sum, const uf_segment_info *segment, const uf_block_info *blocks)
{
    if (segment->pool_id[0] == 0 && segment->pool_id[1] == 0) {
        return true;
    }
    for (uint32_t i = 0; i < segment->block_count; i++) {
        if (blocks[i].state == UF_BLOCK_INACTIVE) {
            *static_cast<uint64_t *>(sum) += blocks[i].size_bytes;
        }
    }
    return true;
}

void Allocator::refuse(Device &on, uf_status status, const uf_error &error, size_t bytes)
{
    TORCH_CHECK_WITH(OutOfMemoryError, status != UF_ERROR_REQUEST_TOO_LARGE,
                     "CUDA out of memory. Tried to allocate more than 1EB memory.");
    TORCH_CHECK(status == UF_ERROR_OUT_OF_MEMORY, "unfrag: ", error.text);
    OutOfMemory facts;
    uf_stats stats{};
    (void)!uf_stats_get(on.allocator(), &stats, nullptr);
    (void)!uf_walk(on.allocator(), add_pool_bytes, &facts.pool_bytes, nullptr);
    uint64_t block_bytes = caller().oom_bytes != 0 ? caller().oom_bytes : bytes;
    caller().oom_bytes = 0;
    facts.device = on.index;
    facts.wanted_bytes = wanted_bytes(on, block_bytes);
    facts.total_bytes = on.total_bytes();
    facts.free_bytes = on.free_bytes();
    facts.limit_bytes = on.limit_bytes();
    facts.allocated_bytes = static_cast<uint64_t>(stats.allocated_bytes.all.current);
    facts.reserved_bytes = static_cast<uint64_t>(stats.reserved_bytes.all.current);
    facts.cause = error.text;
    std::vector<cca::OutOfMemoryObserver> observers;
    {
        std::lock_guard<std::mutex> lock(mutex_);
        observers = observers_;
    }
    uint64_t most = facts.limit_bytes != NO_LIMIT ? facts.limit_bytes : facts.total_bytes;
    for (const auto &observer : observers) {
        observer(on.index, facts.wanted_bytes, most, facts.free_bytes);
    }
    if (c10::memoryProfilingEnabled()) {
        c10::reportOutOfMemoryToProfiler(
            static_cast<int64_t>(bytes), facts.allocated_bytes, facts.reserved_bytes,
            c10::Device(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(on.index)));
    }
    TORCH_CHECK_WITH(OutOfMemoryError, false, out_of_memory_text(facts));
}

c10::DataPtr Allocator::allocate(size_t bytes)
{
    c10::DeviceIndex index = 0;
    C10_CUDA_CHECK(c10::cuda::GetDevice(&index));
    c10::Device place(c10::DeviceType::CUDA, index);
    if (bytes == 0) {
        return {nullptr, nullptr, &delete_raw, place};
    }
    if (C10_UNLIKELY(!is_caching_.load(std::memory_order_relaxed))) {
        void *pointer = nullptr;
        C10_CUDA_CHECK(cudaMalloc(&pointer, bytes));
        return {pointer, pointer, &delete_uncached, place};
    }
    void *pointer = take(device(index), bytes, c10::cuda::getCurrentCUDAStream(index).stream());
    return {pointer, pointer, &delete_raw, place};
}

c10::DeleterFnPtr Allocator::raw_deleter() const
{
    return is_caching_.load() ? &delete_raw : &delete_uncached;
}

void Allocator::copy_data(void *dest, const void *src, std::size_t count) const
{
    C10_CUDA_CHECK(cudaMemcpy(dest, src, count, cudaMemcpyDeviceToDevice));
}

void *Allocator::raw_alloc(size_t bytes)
{
    if (bytes == 0) {
        return nullptr;
    }
    c10::DeviceIndex index = 0;
    C10_CUDA_CHECK(c10::cuda::GetDevice(&index));
    return take(device(index), bytes, c10::cuda::getCurrentCUDAStream(index).stream());
}

void *Allocator::raw_alloc_with_stream(size_t bytes, cudaStream_t stream)
{
    if (bytes == 0) {
        return nullptr;
    }
    c10::DeviceIndex index = 0;
    C10_CUDA_CHECK(c10::cuda::GetDevice(&index));
    return take(device(index), bytes, stream);
}

/* An address that a GPU's allocator did not hand out is refused there at once: with several GPUs
 * each is asked. */
void Allocator::raw_delete(void *pointer)
{
    if (pointer == nullptr || is_forked()) {
        return;
    }
    const c10::impl::PyInterpreter *interpreter = c10::impl::GPUTrace::get_trace();
    if (C10_UNLIKELY(interpreter != nullptr)) {
        (*interpreter)
            ->trace_gpu_memory_deallocation(c10::kCUDA, reinterpret_cast<uintptr_t>(pointer));
    }
    int left = made_count_.load(std::memory_order_acquire);
    for (int index = 0; index < DEVICES_MOST && left > 0; index++) {
        Device *on = device_if_made(index);
        if (on == nullptr) {
            continue;
        }
        left--;
        int64_t bytes = 0;
        if (C10_UNLIKELY(c10::memoryProfilingEnabled())) {
            uint64_t size_bytes = 0;
            if (owner_of(pointer, &size_bytes) == on) {
                bytes = static_cast<int64_t>(size_bytes);
            }
        }
        uf_status status;
        {
            Noted noted(on->history, cca::RecordContext::ALL);
            status = uf_free(on->allocator(), address_of(pointer), nullptr);
        }
        if (status == UF_ERROR_FOREIGN_POINTER) {
            continue;
        }
        /* After an error of the GPU the address is given back all the same; an exception would come
         * out of a tensor's destructor. */
        if (C10_UNLIKELY(bytes != 0)) {
            report(*on, pointer, -bytes);
        }
        return;
    }
    TORCH_CHECK(false, "invalid device pointer: ", pointer);
}

struct Finding {
    uint64_t addr, size_bytes;
};

static bool find_block(void *context, const uf_segment_info *segment, const uf_block_info *blocks)
{
    auto *finding = static_cast<Finding *>(context);
    if (finding->addr < segment->addr || finding->addr - segment->addr >= segment->total_bytes) {
        return true;
    }
    for (uint32_t i = 0; i < segment->block_count; i++) {
        if (blocks[i].addr == finding->addr) {
            finding->size_bytes = blocks[i].size_bytes;
        }
    }
    return false;
}

Device *Allocator::owner_of(void *pointer, uint64_t *size_bytes) const
{
    for (int index = 0; index < DEVICES_MOST; index++) {
        Device *on = device_if_made(index);
        Finding finding{address_of(pointer), 0};
        if (on != nullptr && uf_walk(on->allocator(), find_block, &finding, nullptr) == UF_OK &&
            finding.size_bytes != 0) {
            *size_bytes = finding.size_bytes;
            return on;
        }
    }
    return nullptr;
}

void Allocator::recordStream(const c10::DataPtr &pointer, c10::cuda::CUDAStream stream)
{
    /* Memory of another process, or not from here: PyTorch ignores it, too. */
    if (pointer.get() == nullptr || pointer.get_deleter() != &delete_raw || is_forked()) {
        return;
    }
    uf_error error{};
    Device &on = device(pointer.device().index());
    expect(uf_use_on_stream(on.allocator(), address_of(pointer.get()),
                            stream_number(stream.stream()), &error),
           error, "record_stream");
}

void Allocator::emptyCache(PoolId id)
{
    if (is_forked() || id != PoolId{0, 0}) { /* an ended pool has given its cache back already */
        return;
    }
    for (int index = 0; index < DEVICES_MOST; index++) {
        Device *on = device_if_made(index);
        if (on != nullptr) {
            uf_error error{};
            Noted noted(on->history, cca::RecordContext::ALL);
            expect(uf_empty_cache(on->allocator(), &error), error, "empty_cache");
        }
    }
}

void Allocator::cacheInfo(c10::DeviceIndex index, size_t *largest)
{
    Device &on = device(index);
    if (*largest == 0) { /* PyTorch's first guess: what the driver and the limit leave */
        uf_stats stats{};
        (void)!uf_stats_get(on.allocator(), &stats, nullptr);
        uint64_t most = on.free_bytes();
        auto reserved = static_cast<uint64_t>(stats.reserved_bytes.all.current);
        if (on.limit_bytes() != NO_LIMIT) {
            uint64_t left = on.limit_bytes() > reserved ? on.limit_bytes() - reserved : 0;
            most = left < most ? left : most;
        }
        *largest = most;
    }
    uf_fragmentation numbers{};
    if (uf_fragmentation_get(on.allocator(), 0, &numbers, nullptr) == UF_OK &&
        numbers.largest_request_bytes > *largest) {
        *largest = numbers.largest_request_bytes;
    }
}

void *Allocator::getBaseAllocation(void *, size_t *)
{
    TORCH_CHECK(false, "unfrag: sharing GPU memory with another process is not supported: send a "
                       "copy (tensor.cpu()), or start with UNFRAG_DISABLE=1");
}

void Allocator::init(int)
{
    is_initialized_.store(true);
}

bool Allocator::initialized()
{
    return is_initialized_.load();
}

void Allocator::enable(bool is_caching)
{
    is_caching_.store(is_caching);
}

bool Allocator::isEnabled() const
{
    return is_caching_.load();
}

std::string Allocator::name()
{
    return "unfrag";
}

} // namespace unfrag
