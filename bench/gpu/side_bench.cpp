// SPDX-License-Identifier: MIT
//
// What an allocation costs the host, side by side in one process: unfrag (both policies), PyTorch's
// CUDACachingAllocator called from C++, and cudaMallocAsync. bench/gpu/run builds it, with PyTorch
// and CUDA where they are found (SIDE_TORCH, SIDE_CUDA), and makes the table.
//
//   side_bench cuda|sim [--quick]
//
// Prints one JSON object a line. Times are nanoseconds; the timer's own cost, which is printed
// first, is subtracted from those of single operations. Per scenario: `batch` is the median over
// batches of 64 operations, `median`, `p99` and `p999` are of operations timed one by one.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <unfrag/cuda.h>
#include <unfrag/sim.h>
#include <unfrag/unfrag.h>

#ifdef SIDE_CUDA
#include <cuda_runtime_api.h>
#endif
#ifdef SIDE_TORCH
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#endif
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace
{

constexpr uint64_t KIB = 1024, MIB = KIB * KIB, GIB = KIB * MIB;
constexpr int BATCH = 64, THREADS_MAX = 8;

bool is_quick = false;

[[noreturn]] void give_up(const char *what, const char *why)
{
    fprintf(stderr, "side_bench: %s: %s\n", what, why);
    exit(5);
}

// The time stamp counter where there is one: reading it costs less than what is measured.
inline uint64_t ticks()
{
#if defined(__x86_64__)
    return __rdtsc();
#else
    return (uint64_t)std::chrono::steady_clock::now().time_since_epoch().count();
#endif
}

double ns_per_tick = 1.0, timer_ns = 0.0;

double quantile(std::vector<double> &values, double share)
{
    if (values.empty()) {
        return 0.0;
    }
    size_t at = (size_t)(share * (double)(values.size() - 1) + 0.5);
    std::nth_element(values.begin(), values.begin() + (long)at, values.end());
    return values[at];
}

void timer_init()
{
    using clock = std::chrono::steady_clock;
    auto start = clock::now();
    uint64_t from = ticks();
    while (clock::now() - start < std::chrono::milliseconds(200)) {
    }
    double ns = std::chrono::duration<double, std::nano>(clock::now() - start).count();
    ns_per_tick = ns / (double)(ticks() - from);
    std::vector<double> costs;
    for (int i = 0; i < 100000; i++) {
        uint64_t at = ticks();
        costs.push_back((double)(ticks() - at) * ns_per_tick);
    }
    timer_ns = quantile(costs, 0.5);
    printf("{\"timer_ns\": %.2f}\n", timer_ns);
}

struct Random {
    uint64_t state;
    uint32_t next()
    {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (uint32_t)(state >> 33);
    }
};

// 512 bytes to 64 MiB, as many small as large ones by logarithm.
std::vector<uint64_t> mixed_sizes()
{
    Random random{7};
    std::vector<uint64_t> sizes(65536);
    for (auto &size : sizes) {
        uint64_t base = UINT64_C(512) << random.next() % 17;
        size = base + base * (random.next() % 1000) / 1000;
    }
    return sizes;
}

// What is measured. A subject that cannot do something says so by can_*.
struct Unfrag {
    uf_cuda *cuda = nullptr;
    uf_sim *sim = nullptr;
    uf_allocator *allocator = nullptr;
    std::string label;
    static constexpr bool can_cross = true;

    Unfrag(uf_policy policy, bool is_cuda, uint64_t limit_bytes = 0)
    {
        uf_error error = {};
        uf_allocator_options options = {};
        label = policy == UF_POLICY_UNFRAG ? "unfrag" : "unfrag, policy torch";
        if (is_cuda && uf_cuda_create(nullptr, &cuda, &error) != UF_OK) {
            give_up("uf_cuda_create", error.text);
        }
        uf_sim_options of_sim = {};
        of_sim.struct_size_bytes = sizeof of_sim;
        of_sim.total_bytes = 140 * GIB;
        if (!is_cuda && uf_sim_create(&of_sim, &sim, &error) != UF_OK) {
            give_up("uf_sim_create", error.text);
        }
        options.struct_size_bytes = sizeof options;
        options.device = is_cuda ? uf_cuda_device(cuda) : uf_sim_device(sim);
        options.policy = policy;
        options.limit_bytes = limit_bytes;
        if (uf_allocator_create(&options, &allocator, &error) != UF_OK) {
            give_up("uf_allocator_create", error.text);
        }
    }
    Unfrag(const Unfrag &) = delete;
    ~Unfrag()
    {
        uf_allocator_destroy(allocator);
        uf_cuda_destroy(cuda);
        uf_sim_destroy(sim);
    }
    uint64_t take(uint64_t bytes, uint64_t stream)
    {
        uint64_t addr = 0;
        uf_error error;
        if (uf_alloc(allocator, bytes, stream, &addr, &error) != UF_OK) {
            give_up("uf_alloc", error.text);
        }
        return addr;
    }
    void give(uint64_t addr, uint64_t)
    {
        uf_error error;
        if (uf_free(allocator, addr, &error) != UF_OK) {
            give_up("uf_free", error.text);
        }
    }
    void cross(uint64_t bytes, uint64_t stream, uint64_t other)
    {
        uint64_t addr = take(bytes, stream);
        uf_error error;
        if (uf_use_on_stream(allocator, addr, other, &error) != UF_OK) {
            give_up("uf_use_on_stream", error.text);
        }
        give(addr, stream);
        if (sim != nullptr) {
            uf_sim_synchronize(sim); // nothing there is done by itself
        }
    }
    void empty()
    {
        uf_error error;
        if (uf_empty_cache(allocator, &error) != UF_OK) {
            give_up("uf_empty_cache", error.text);
        }
    }
};

#ifdef SIDE_TORCH
struct Torch {
    c10::cuda::CUDACachingAllocator::CUDAAllocator *allocator;
    std::string label = "PyTorch";
    // Looking for finished events asks libtorch which GPUs have contexts, and a program without it
    // cannot answer.
    static constexpr bool can_cross = false;

    Torch() : allocator(c10::cuda::CUDACachingAllocator::get())
    {
    }
    uint64_t take(uint64_t bytes, uint64_t stream)
    {
        return (uint64_t)allocator->raw_alloc_with_stream(bytes, (cudaStream_t)stream);
    }
    void give(uint64_t addr, uint64_t)
    {
        allocator->raw_delete((void *)addr);
    }
    void cross(uint64_t bytes, uint64_t, uint64_t other)
    {
        c10::DataPtr block = allocator->allocate(bytes);
        allocator->recordStream(block, c10::cuda::getStreamFromExternal((cudaStream_t)other, 0));
    }
    void empty()
    {
        c10::cuda::CUDACachingAllocator::emptyCache();
    }
};
#endif

#ifdef SIDE_CUDA
// The driver itself, for what new memory costs at least.
struct Plain {
    std::string label = "cudaMalloc";

    uint64_t take(uint64_t bytes, uint64_t)
    {
        void *memory = nullptr;
        if (cudaMalloc(&memory, bytes) != cudaSuccess) {
            give_up("cudaMalloc", cudaGetErrorString(cudaGetLastError()));
        }
        return (uint64_t)memory;
    }
    void give(uint64_t addr, uint64_t)
    {
        cudaFree((void *)addr);
    }
    void empty()
    {
    }
};

struct Async {
    cudaMemPool_t pool = nullptr;
    std::string label = "cudaMallocAsync";
    static constexpr bool can_cross = false;

    Async()
    {
        uint64_t all = UINT64_MAX;
        if (cudaDeviceGetDefaultMemPool(&pool, 0) != cudaSuccess ||
            cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all) != cudaSuccess) {
            give_up("cudaMallocAsync", "no memory pool");
        }
    }
    uint64_t take(uint64_t bytes, uint64_t stream)
    {
        void *memory = nullptr;
        if (cudaMallocAsync(&memory, bytes, (cudaStream_t)stream) != cudaSuccess) {
            give_up("cudaMallocAsync", cudaGetErrorString(cudaGetLastError()));
        }
        return (uint64_t)memory;
    }
    void give(uint64_t addr, uint64_t stream)
    {
        if (cudaFreeAsync((void *)addr, (cudaStream_t)stream) != cudaSuccess) {
            give_up("cudaFreeAsync", cudaGetErrorString(cudaGetLastError()));
        }
    }
    void cross(uint64_t, uint64_t, uint64_t)
    {
    }
    void empty()
    {
        cudaDeviceSynchronize();
        cudaMemPoolTrimTo(pool, 0);
    }
};
#endif

uint64_t streams[THREADS_MAX] = {1, 2, 3, 4, 5, 6, 7, 8}; // handles; names only on the simulator

void synchronize()
{
#ifdef SIDE_CUDA
    cudaDeviceSynchronize();
#endif
}

void report(const std::string &who, const std::string &what, std::vector<double> &batches,
            std::vector<double> &singles)
{
    printf("{\"who\": \"%s\", \"what\": \"%s\", \"batch\": %.1f, \"median\": %.1f, \"p99\": %.1f, "
           "\"p999\": %.1f, \"worst\": %.0f}\n",
           who.c_str(), what.c_str(), quantile(batches, 0.5), quantile(singles, 0.5) - timer_ns,
           quantile(singles, 0.99) - timer_ns, quantile(singles, 0.999) - timer_ns,
           quantile(singles, 1.0));
    fflush(stdout);
}

// Times step() in batches and one by one.
template <class Step>
void measure(const std::string &who, const std::string &what, int count, Step step)
{
    std::vector<double> batches, singles;
    count = is_quick ? count / 20 : count;
    for (int i = 0; i < count / BATCH; i++) {
        uint64_t at = ticks();
        for (int j = 0; j < BATCH; j++) {
            step();
        }
        batches.push_back((double)(ticks() - at) * ns_per_tick / BATCH);
    }
    singles.reserve((size_t)count);
    for (int i = 0; i < count; i++) {
        uint64_t at = ticks();
        step();
        singles.push_back((double)(ticks() - at) * ns_per_tick);
    }
    report(who, what, batches, singles);
}

template <class S> void hits(S &subject)
{
    const struct {
        const char *name;
        uint64_t bytes;
    } sizes[] = {{"512 B", 512},           {"64 KiB", 64 * KIB}, {"1 MiB", MIB},
                 {"1 MiB + 1 B", MIB + 1}, {"20 MiB", 20 * MIB}, {"256 MiB", 256 * MIB}};
    for (auto &size : sizes) {
        for (int i = 0; i < 1000; i++) {
            subject.give(subject.take(size.bytes, 0), 0);
        }
        measure(subject.label, std::string("hit ") + size.name, 200000,
                [&] { subject.give(subject.take(size.bytes, 0), 0); });
    }
}

template <class S> void mixed(S &subject, uint32_t live_count)
{
    static const std::vector<uint64_t> sizes = mixed_sizes();
    Random random{11};
    std::vector<uint64_t> live(live_count);
    for (auto &addr : live) {
        addr = subject.take(sizes[random.next() % sizes.size()], 0);
    }
    auto step = [&] {
        uint64_t &addr = live[random.next() % live_count];
        subject.give(addr, 0);
        addr = subject.take(sizes[random.next() % sizes.size()], 0);
    };
    for (uint32_t i = 0; i < 10 * live_count; i++) {
        step();
    }
    measure(subject.label, "mixed, " + std::to_string(live_count) + " live", 200000, step);
    for (auto addr : live) {
        subject.give(addr, 0);
    }
    subject.empty();
}

template <class S> double crowd_once(S &subject, int thread_count, bool is_own, int pair_count)
{
    std::atomic<int> waiting{thread_count};
    std::vector<std::thread> threads;
    std::vector<uint64_t> from((size_t)thread_count), to((size_t)thread_count);
    for (int k = 0; k < thread_count; k++) {
        threads.emplace_back([&, k] {
            uint64_t stream = is_own ? streams[k] : streams[0];
#ifdef SIDE_CUDA
            cudaSetDevice(0);
#endif
            subject.give(subject.take(64 * KIB, stream), stream);
            waiting--;
            while (waiting.load() > 0) {
            }
            from[(size_t)k] = ticks();
            for (int i = 0; i < pair_count; i++) {
                subject.give(subject.take(64 * KIB, stream), stream);
            }
            to[(size_t)k] = ticks();
        });
    }
    for (auto &thread : threads) {
        thread.join();
    }
    uint64_t start = *std::min_element(from.begin(), from.end());
    uint64_t end = *std::max_element(to.begin(), to.end());
    return (double)(end - start) * ns_per_tick / ((double)pair_count * thread_count);
}

template <class S> void crowds(S &subject)
{
    for (int thread_count : {1, 2, 4, 8}) {
        for (bool is_own : {false, true}) {
            std::vector<double> times;
            int pair_count = is_quick ? 500 : 10000;
            for (int i = 0; i < 9; i++) {
                times.push_back(crowd_once(subject, thread_count, is_own, pair_count));
            }
            printf("{\"who\": \"%s\", \"what\": \"%d threads, %s\", \"batch\": %.1f, \"worst\": "
                   "%.1f}\n",
                   subject.label.c_str(), thread_count,
                   is_own ? "streams of their own" : "one stream", quantile(times, 0.5),
                   quantile(times, 1.0));
            fflush(stdout);
        }
    }
}

template <class S> void crosses(S &subject)
{
    if (!S::can_cross) {
        return;
    }
    auto step = [&] { subject.cross(2 * MIB, 0, streams[1]); };
    for (int i = 0; i < 1000; i++) {
        step();
    }
    measure(subject.label, "used on another stream", 20000, step);
    synchronize();
    subject.empty();
}

// What no allocator that may be called by several threads goes below: a lock, taken and given
// twice, with a load and a store inside.
void floor_of_locks()
{
    static std::atomic<uint32_t> lock{0};
    static volatile uint64_t inside = 0;
    measure("floor", "two locks", 200000, [] {
        for (int i = 0; i < 2; i++) {
            uint32_t nobody = 0;
            while (!lock.compare_exchange_strong(nobody, 1, std::memory_order_acquire)) {
                nobody = 0;
            }
            inside = inside + 1;
            lock.exchange(0, std::memory_order_release);
        }
    });
}

// New memory: nothing is cached when it begins.
template <class S> void growth(S &subject, uint64_t bytes, const char *name)
{
    std::vector<double> rates, calls;
    for (int round = 0; round < (is_quick ? 1 : 3); round++) {
        std::vector<uint64_t> taken;
        subject.empty();
        uint64_t total_bytes = 32 * GIB;
        uint64_t start = ticks();
        for (uint64_t i = 0; i < total_bytes / bytes; i++) {
            uint64_t at = ticks();
            taken.push_back(subject.take(bytes, 0));
            calls.push_back((double)(ticks() - at) * ns_per_tick);
        }
        rates.push_back((double)total_bytes / ((double)(ticks() - start) * ns_per_tick));
        for (auto addr : taken) {
            subject.give(addr, 0);
        }
        subject.empty();
    }
    printf("{\"who\": \"%s\", \"what\": \"new memory, %s\", \"gb_per_s\": %.0f, \"median\": %.0f, "
           "\"worst\": %.0f}\n",
           subject.label.c_str(), name, quantile(rates, 0.5), quantile(calls, 0.5),
           quantile(calls, 1.0));
    fflush(stdout);
}

template <class S> void all_of(S &subject)
{
    hits(subject);
    for (uint32_t live_count : {100u, 1000u, 5000u}) {
        mixed(subject, live_count);
    }
    crowds(subject);
    crosses(subject);
    growth(subject, 256 * MIB, "256 MiB");
    growth(subject, GIB, "1 GiB");
    subject.empty();
}

// A million requests; how often the driver was asked to wait for the whole device. The second run
// is under a limit that makes pages move.
void synchronizes(bool is_cuda)
{
    static const std::vector<uint64_t> sizes = mixed_sizes();
    for (int run = 0; run < 2; run++) {
        int count = (run == 0 ? 1000000 : 20000) / (is_quick ? 100 : 1);
        uint64_t most = run == 0 ? UINT64_MAX : 8 * GIB; // live bytes
        Unfrag subject(UF_POLICY_UNFRAG, is_cuda, run == 0 ? 0 : most / 100 * 106);
        Random random{5};
        std::vector<std::pair<uint64_t, uint64_t>> live;
        uint64_t live_bytes = 0;
        double worst_ns = 0;
        for (int i = 0; i < count; i++) {
            uint64_t bytes = sizes[random.next() % sizes.size()];
            while (!live.empty() && (live.size() >= 2000 || live_bytes + bytes > most)) {
                auto &old = live[random.next() % live.size()];
                subject.give(old.first, 0);
                live_bytes -= (old.second + 511) / 512 * 512;
                old = live.back();
                live.pop_back();
            }
            uint64_t at = ticks();
            live.emplace_back(subject.take(bytes, 0), bytes);
            worst_ns = std::max(worst_ns, (double)(ticks() - at) * ns_per_tick);
            live_bytes += (bytes + 511) / 512 * 512;
        }
        uf_cuda_counts counts = {};
        if (is_cuda) {
            uf_cuda_counts_get(subject.cuda, &counts);
        }
        printf("{\"who\": \"unfrag\", \"what\": \"synchronises%s\", \"requests\": %d, "
               "\"device_syncs\": %" PRIu64 ", \"stream_waits\": %" PRIu64
               ", \"driver_calls\": %" PRIu64 ", \"worst\": %.0f}\n",
               run == 0 ? "" : ", limit 1.06 x live", count, counts.device_sync_count,
               counts.stream_wait_count, counts.driver_call_count, worst_ns);
        fflush(stdout);
        for (auto &block : live) {
            subject.give(block.first, 0);
        }
    }
}

void describe(bool is_cuda)
{
#ifdef SIDE_CUDA
    if (is_cuda) {
        cudaDeviceProp properties;
        int driver = 0;
        if (cudaSetDevice(0) != cudaSuccess || cudaFree(nullptr) != cudaSuccess ||
            cudaGetDeviceProperties(&properties, 0) != cudaSuccess) {
            give_up("CUDA", cudaGetErrorString(cudaGetLastError()));
        }
        cudaDriverGetVersion(&driver);
        for (auto &stream : streams) {
            cudaStreamCreateWithFlags((cudaStream_t *)&stream, cudaStreamNonBlocking);
        }
        printf("{\"card\": \"%s\", \"cuda\": %d}\n", properties.name, driver);
    }
#endif
    if (!is_cuda) {
        printf("{\"card\": \"simulated\"}\n");
    }
}

} // namespace

int main(int argc, char **argv)
{
    bool is_cuda = argc > 1 && strcmp(argv[1], "cuda") == 0;
    is_quick = argc > 2 && strcmp(argv[2], "--quick") == 0;
    if (argc < 2 || (!is_cuda && strcmp(argv[1], "sim") != 0)) {
        fprintf(stderr, "usage: side_bench cuda|sim [--quick]\n");
        return 2;
    }
    describe(is_cuda);
    timer_init();
    floor_of_locks();
    for (uf_policy policy : {UF_POLICY_UNFRAG, UF_POLICY_TORCH}) {
        Unfrag subject(policy, is_cuda);
        all_of(subject);
    }
#ifdef SIDE_TORCH
    if (is_cuda) {
        c10::cuda::CUDACachingAllocator::init(1);
        Torch subject;
        all_of(subject);
    }
#endif
#ifdef SIDE_CUDA
    if (is_cuda) {
        Async subject;
        all_of(subject);
        Plain plain;
        growth(plain, 256 * MIB, "256 MiB");
        growth(plain, GIB, "1 GiB");
    }
#endif
    synchronizes(is_cuda);
    return 0;
}
