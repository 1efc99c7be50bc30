/* SPDX-License-Identifier: MIT
 *
 * What the parts of one torch.empty and its end cost, called from C++: for parity.py's `parts`.
 * Works on PyTorch's own allocator as well as on unfrag's. */
#include <chrono>
#include <cstdio>

#include <dlfcn.h>

#include "interface.h"

using AllocFunction = int (*)(void *, uint64_t, uint64_t, uint64_t *, void *);
using FreeFunction = int (*)(void *, uint64_t, void *);

template <class Step> static double nanoseconds(Step step)
{
    constexpr int count = 20000, rounds = 9;
    double best = 1e30;
    for (int round = 0; round < rounds; round++) {
        auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < count; i++) {
            step();
        }
        std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
        best = took.count() / count < best ? took.count() / count : best;
    }
    return best;
}

/* allocator: a uf_allocator, or null on PyTorch's own. */
extern "C" __attribute__((visibility("default"))) void dispatch_parts(void *allocator, size_t bytes,
                                                                      char *text, size_t capacity)
{
    auto *current = unfrag::cca::get();
    c10::DeviceIndex device = 0;
    double get = nanoseconds([&] { (void)c10::cuda::GetDevice(&device); });
    double stream = nanoseconds([&] { (void)c10::cuda::getCurrentCUDAStream(device).stream(); });
    double profiling = nanoseconds([&] { (void)c10::memoryProfilingEnabled(); });
    double raw = nanoseconds([&] { current->raw_delete(current->raw_alloc(bytes)); });
    double data = nanoseconds([&] { (void)current->allocate(bytes); });
    double library = 0;
    if (allocator != nullptr) {
        auto take = reinterpret_cast<AllocFunction>(dlsym(RTLD_DEFAULT, "uf_alloc"));
        auto give = reinterpret_cast<FreeFunction>(dlsym(RTLD_DEFAULT, "uf_free"));
        library = nanoseconds([&] {
            uint64_t addr = 0;
            (void)take(allocator, bytes, 0, &addr, nullptr);
            (void)give(allocator, addr, nullptr);
        });
    }
    std::snprintf(text, capacity,
                  "%zu bytes: allocate and give back %.0f ns (raw %.0f, library alone %.0f; of it "
                  "GetDevice %.0f, current stream %.0f, profiling asked %.0f)",
                  bytes, data, raw, library, get, stream, profiling);
}
