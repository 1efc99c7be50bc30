/* SPDX-License-Identifier: MIT
 *
 * mapping: how many bytes a second large requests get mapped, of new pages and of pages taken from
 * other ranges. synchronises: how often a million requests let a stream or the whole GPU finish,
 * counted in the table of driver functions. */
#include <stdio.h>
#include <stdlib.h>

#include "device/cuda.h"
#include "gpu.h"

enum { REQUESTS = 16, LIVE_MAX = 512 };

static uint64_t take(uf_allocator *allocator, uint64_t bytes, const void *stream)
{
    uint64_t addr = 0;
    uf_error error;
    gpu_expect_ok(uf_alloc(allocator, bytes, (uint64_t)(uintptr_t)stream, &addr, &error), &error,
                  "uf_alloc");
    return addr;
}

static void give(uf_allocator *allocator, uint64_t addr)
{
    uf_error error;
    gpu_expect_ok(uf_free(allocator, addr, &error), &error, "uf_free");
}

/* GB/s of requests of so many bytes: of new pages, and of pages that smaller blocks left. */
static void measure(const gpu *g, void *stream, uint64_t bytes, double *fresh, double *taken)
{
    uint64_t addrs[2 * REQUESTS];
    uf_allocator *allocator = gpu_allocator(g, UF_POLICY_UNFRAG, REQUESTS * bytes);
    double start = gpu_seconds();
    for (int i = 0; i < REQUESTS; i++) {
        addrs[i] = take(allocator, bytes, stream);
    }
    *fresh = 1e-9 * (double)(REQUESTS * bytes) / (gpu_seconds() - start);
    for (int i = 0; i < REQUESTS; i++) {
        give(allocator, addrs[i]);
    }
    /* The same pages under blocks of half the size, of which every other one goes. */
    for (int i = 0; i < 2 * REQUESTS; i++) {
        addrs[i] = take(allocator, bytes / 2, stream);
    }
    for (int i = 0; i < 2 * REQUESTS; i += 2) {
        give(allocator, addrs[i]);
    }
    gpu_expect(g->stream_synchronize(stream), "cuStreamSynchronize");
    start = gpu_seconds();
    for (int i = 0; i < REQUESTS / 2; i++) {
        addrs[2 * i] = take(allocator, bytes, stream);
    }
    *taken = 1e-9 * (double)(REQUESTS / 2 * bytes) / (gpu_seconds() - start);
    uf_allocator_destroy(allocator);
}

int test_mapping(double seconds)
{
    gpu g;
    double fresh[2], taken[2];
    (void)seconds;
    gpu_open(&g, NULL, 0);
    if (!g.info.can_map) {
        return gpu_not_run("mapping", g.info.why_not);
    }
    void *stream = gpu_stream(&g);
    uint64_t bytes[2] = {g.is_fake ? 4 * MIB : 256 * MIB, g.is_fake ? 8 * MIB : 2 * GIB};
    for (int i = 0; i < 2; i++) {
        measure(&g, stream, bytes[i], &fresh[i], &taken[i]);
    }
    gpu_expect(g.stream_destroy(stream), "cuStreamDestroy");
    gpu_close(&g);
    return gpu_report("mapping", true,
                      "requests of %llu MiB: %.0f GB/s of new pages, %.0f GB/s of pages taken from "
                      "holes; of %llu MiB: %.0f and %.0f GB/s",
                      (unsigned long long)(bytes[0] / MIB), fresh[0], taken[0],
                      (unsigned long long)(bytes[1] / MIB), fresh[1], taken[1]);
}

/* What stands in the table instead of the calls that wait. */
static uint64_t free_count, stream_count, event_count;
static uf_cuda_driver original;

static int count_mem_free(uint64_t addr)
{
    free_count++;
    return original.mem_free(addr);
}

static int count_stream_synchronize(void *stream)
{
    stream_count++;
    return original.stream_synchronize(stream);
}

static int count_event_synchronize(void *event)
{
    event_count++;
    return original.event_synchronize(event);
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* A million requests near the limit, on two streams that work on them. */
static double request_many(const gpu *g, uf_allocator *allocator, void *const *streams,
                           uint64_t limit_bytes, uint64_t count, uint64_t *refused_count)
{
    static uint64_t addrs[LIVE_MAX], sizes[LIVE_MAX];
    uint64_t random = 1, live_bytes = 0;
    double start = gpu_seconds();
    for (uint64_t i = 0; i < count;) {
        uint64_t at = next_random(&random) % LIVE_MAX;
        if (addrs[at] != 0) {
            give(allocator, addrs[at]);
            live_bytes -= sizes[at];
            addrs[at] = 0;
            continue;
        }
        uint64_t most = next_random(&random) % 16 == 0 ? limit_bytes / 24 : MIB;
        uint64_t bytes = 512 + next_random(&random) % most;
        const void *stream = streams[next_random(&random) % 2];
        if (live_bytes + bytes > limit_bytes / 10 * 9) {
            continue;
        }
        uf_error error;
        uf_status status =
            uf_alloc(allocator, bytes, (uint64_t)(uintptr_t)stream, &addrs[at], &error);
        *refused_count += status != UF_OK;
        i++;
        if (status == UF_OK) {
            sizes[at] = bytes;
            live_bytes += bytes;
            if (i % 64 == 0) {
                gpu_fill(g, (void *)(uintptr_t)stream, addrs[at], 512, i);
            }
        }
    }
    return gpu_seconds() - start;
}

int test_syncs(double seconds)
{
    gpu g;
    uint64_t refused_count = 0;
    (void)seconds;
    gpu_open(&g, NULL, 0);
    if (!g.info.can_map) {
        return gpu_not_run("synchronises", g.info.why_not);
    }
    uint64_t limit_bytes = 512 * MIB, count = g.is_fake ? 8000 : 1000000;
    original = g.cuda->driver;
    g.cuda->driver.mem_free = count_mem_free;
    g.cuda->driver.stream_synchronize = count_stream_synchronize;
    g.cuda->driver.event_synchronize = count_event_synchronize;
    uf_allocator *allocator = gpu_allocator(&g, UF_POLICY_UNFRAG, limit_bytes);
    void *streams[2] = {gpu_stream(&g), gpu_stream(&g)};
    double spent = request_many(&g, allocator, streams, limit_bytes, count, &refused_count);
    uint64_t counts[3] = {free_count, stream_count, event_count};
    g.cuda->driver = original;
    gpu_expect(g.context_synchronize(), "cuCtxSynchronize");
    uf_cuda_counts all;
    uf_cuda_counts_get(g.cuda, &all);
    uf_allocator_destroy(allocator); /* it still knows the streams */
    gpu_expect(g.stream_destroy(streams[0]), "cuStreamDestroy");
    gpu_expect(g.stream_destroy(streams[1]), "cuStreamDestroy");
    gpu_close(&g);
    return gpu_report("synchronises", counts[0] == 0,
                      "%llu requests in %.1f s at %.0f MiB, %llu refused, %llu driver calls: %llu "
                      "device-wide waits, %llu of a stream, %llu of an event",
                      (unsigned long long)count, spent, (double)limit_bytes / (double)MIB,
                      (unsigned long long)refused_count, (unsigned long long)all.driver_call_count,
                      (unsigned long long)counts[0], (unsigned long long)counts[1],
                      (unsigned long long)counts[2]);
}
