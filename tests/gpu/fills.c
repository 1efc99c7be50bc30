/* SPDX-License-Identifier: MIT
 *
 * fills: buffers are filled, checked and given back under kernels in flight on four streams, at a
 * limit of 1.02 times what is live. Just before a buffer is given back, rubbish is written to it:
 * where memory were handed on too early, it would be found in another buffer.
 *
 *   stream   ... fill(A) | check(A) rubbish(A) | fill(B) ...      the CPU gives A back, and takes
 *                                                                 B, long before the GPU is there
 */
#include <stdio.h>
#include <stdlib.h>

#include "gpu.h"

enum { STREAMS = 4, BUFFERS_MAX = 4096, IN_FLIGHT = 64 };

typedef struct buffer {
    uint64_t addr, bytes, pattern;
    int stream;
} buffer;

typedef struct fills {
    gpu g;
    uf_allocator *allocator;
    void *streams[STREAMS];
    void *marks[STREAMS][IN_FLIGHT]; /* events: how far the CPU is ahead */
    uint64_t mark_counts[STREAMS];
    buffer *buffers;
    uint32_t buffer_count;
    uint64_t target_bytes, live_bytes, random;
    uint64_t request_count, refused_count, shared_count, filled_bytes;
} fills;

static uint64_t next_random(fills *f)
{
    uint64_t z = (f->random += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* One in five is small, the others are spread over the powers of two up to a 64th of what is live.
 */
static uint64_t choose_bytes(fills *f)
{
    if (next_random(f) % 5 == 0) {
        return 1 * KIB + next_random(f) % MIB / 16 * 16;
    }
    uint64_t most = f->target_bytes / 64 >> next_random(f) % 4;
    return most / 2 + next_random(f) % (most / 2) / 16 * 16 + 16;
}

/* Keeps the CPU at most so many steps ahead of each stream. */
static void mark(fills *f, int stream)
{
    void **event = &f->marks[stream][f->mark_counts[stream]++ % IN_FLIGHT];
    enum { DISABLE_TIMING = 2 };
    if (*event == NULL) {
        gpu_expect(f->g.event_create(event, DISABLE_TIMING), "cuEventCreate");
    } else {
        gpu_expect(f->g.event_synchronize(*event), "cuEventSynchronize");
    }
    gpu_expect(f->g.event_record(*event, f->streams[stream]), "cuEventRecord");
}

static uint64_t handle_of(const fills *f, int stream)
{
    return (uint64_t)(uintptr_t)f->streams[stream];
}

static void give_back(fills *f, uint32_t index)
{
    buffer b = f->buffers[index];
    uf_error error;
    f->buffers[index] = f->buffers[--f->buffer_count];
    gpu_check(&f->g, f->streams[b.stream], b.addr, b.bytes, b.pattern);
    /* For up to 2 ms in half of the cases, so that the GPU is behind. */
    uint64_t ns = next_random(f) % 2 * (next_random(f) % 2000000);
    gpu_run(&f->g, GPU_FILL_FOR, f->streams[b.stream], b.addr, b.bytes / 4, ~b.pattern, ns);
    gpu_expect_ok(uf_free(f->allocator, b.addr, &error), &error, "uf_free");
    f->live_bytes -= b.bytes;
}

/* Another stream checks it too, after it was filled; it is not written any more. */
static void share(fills *f, buffer b)
{
    int other = (b.stream + 1) % STREAMS;
    uf_error error;
    enum { DISABLE_TIMING = 2 };
    void *event;
    gpu_expect(f->g.event_create(&event, DISABLE_TIMING), "cuEventCreate");
    gpu_expect(f->g.event_record(event, f->streams[b.stream]), "cuEventRecord");
    gpu_expect(f->g.stream_wait_event(f->streams[other], event, 0), "cuStreamWaitEvent");
    gpu_expect_ok(uf_use_on_stream(f->allocator, b.addr, handle_of(f, other), &error), &error,
                  "uf_use_on_stream");
    gpu_check(&f->g, f->streams[other], b.addr, b.bytes, b.pattern);
    gpu_expect(f->g.event_destroy(event), "cuEventDestroy"); /* once it is done */
    gpu_expect_ok(uf_free(f->allocator, b.addr, &error), &error, "uf_free");
    f->live_bytes -= b.bytes;
    f->shared_count++;
}

static void take(fills *f)
{
    uf_error error;
    buffer b = {.bytes = choose_bytes(f),
                .stream = (int)(next_random(f) % STREAMS),
                .pattern = next_random(f)};
    while (f->buffer_count != 0 &&
           (f->live_bytes + b.bytes > f->target_bytes || f->buffer_count == BUFFERS_MAX)) {
        give_back(f, (uint32_t)(next_random(f) % f->buffer_count));
    }
    f->request_count++;
    uf_status status = uf_alloc(f->allocator, b.bytes, handle_of(f, b.stream), &b.addr, &error);
    if (status == UF_ERROR_OUT_OF_MEMORY && f->buffer_count != 0) {
        if (f->refused_count++ == 0) {
            (void)fprintf(stderr, "fills: the first that is refused: %s\n", error.text);
        }
        give_back(f, (uint32_t)(next_random(f) % f->buffer_count));
        return;
    }
    gpu_expect_ok(status, &error, "uf_alloc");
    f->live_bytes += b.bytes;
    f->filled_bytes += b.bytes;
    gpu_fill(&f->g, f->streams[b.stream], b.addr, b.bytes, b.pattern);
    mark(f, b.stream);
    if (next_random(f) % 16 == 0) {
        share(f, b);
    } else {
        f->buffers[f->buffer_count++] = b;
    }
}

static void start(fills *f)
{
    gpu_open(&f->g, NULL, 0);
    uint64_t free_bytes = gpu_free_bytes(&f->g);
    const char *live = getenv("UNFRAG_GPU_LIVE_MIB"); /* else half of what is free */
    f->target_bytes = live != NULL ? strtoull(live, NULL, 10) * MIB : free_bytes / 2 / MIB * MIB;
    f->random = 1;
    f->buffers = calloc(BUFFERS_MAX, sizeof *f->buffers);
    if (f->buffers == NULL) {
        exit(GPU_FALLS_SHORT);
    }
    for (int i = 0; i < STREAMS; i++) {
        f->streams[i] = gpu_stream(&f->g);
    }
    f->allocator = gpu_allocator(&f->g, UF_POLICY_UNFRAG, f->target_bytes + f->target_bytes / 50);
}

static void finish(fills *f)
{
    while (f->buffer_count != 0) {
        give_back(f, f->buffer_count - 1);
    }
    gpu_expect(f->g.context_synchronize(), "cuCtxSynchronize");
    uf_allocator_destroy(f->allocator);
    for (int i = 0; i < STREAMS; i++) {
        for (int j = 0; j < IN_FLIGHT && f->marks[i][j] != NULL; j++) {
            gpu_expect(f->g.event_destroy(f->marks[i][j]), "cuEventDestroy");
        }
        gpu_expect(f->g.stream_destroy(f->streams[i]), "cuStreamDestroy");
    }
    free(f->buffers);
}

int test_fills(double seconds)
{
    static fills f;
    uf_error error = {UF_OK, ""};
    uf_cuda_counts counts;
    start(&f);
    if (!f.g.info.can_map) {
        return gpu_not_run("fills", f.g.info.why_not);
    }
    double started = gpu_seconds(), looked = started, now = started;
    uint64_t wrong = 0;
    while (now - started < seconds && wrong == 0) {
        for (int i = 0; i < 32; i++) {
            take(&f);
        }
        now = gpu_seconds();
        if (now - looked > 2.0) {
            gpu_expect_ok(uf_check(f.allocator, &error), &error, "uf_check");
            wrong = gpu_wrong(&f.g);
            looked = gpu_seconds();
        }
    }
    uf_stats stats;
    gpu_expect_ok(uf_check(f.allocator, &error), &error, "uf_check");
    gpu_expect_ok(uf_stats_get(f.allocator, &stats, NULL), NULL, "uf_stats_get");
    finish(&f);
    wrong = gpu_wrong(&f.g);
    uf_cuda_counts_get(f.g.cuda, &counts);
    gpu_close(&f.g);
    return gpu_report(
        "fills", wrong == 0 && counts.failure_count == 0 && counts.device_sync_count == 0,
        "%.0f s, limit 1.02 x %.2f GiB live on 4 streams, %llu requests, %.1f TiB written and "
        "checked, %llu read by a second stream, %llu refused, %llu driver calls, %llu waits for a "
        "stream, %llu device-wide, %llu wrong words",
        now - started, (double)f.target_bytes / (double)GIB, (unsigned long long)f.request_count,
        (double)f.filled_bytes / (double)GIB / 1024.0, (unsigned long long)f.shared_count,
        (unsigned long long)f.refused_count, (unsigned long long)counts.driver_call_count,
        (unsigned long long)counts.stream_wait_count, (unsigned long long)counts.device_sync_count,
        (unsigned long long)wrong);
}
