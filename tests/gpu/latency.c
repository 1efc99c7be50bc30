/* SPDX-License-Identifier: MIT
 *
 * latency: medians of the time of each driver call that the device makes, by the device's own
 * functions: what moving a page costs on this machine. */
#include <stdio.h>

#include "gpu.h"

enum { TIMES = 31, CALLS = 5 };

static double us_since(double *start)
{
    double now = gpu_seconds(), us = 1e6 * (now - *start);
    *start = now;
    return us;
}

static void measure_pages(const gpu *g, uint64_t addr, uint64_t bytes, double medians[CALLS])
{
    const uf_device *d = g->device;
    double times[CALLS][TIMES];
    for (int i = 0; i < TIMES; i++) {
        uint64_t handle = 0;
        double start = gpu_seconds();
        gpu_expect_ok(d->handle_create(d->context, bytes, &handle), NULL, "handle_create");
        times[0][i] = us_since(&start);
        gpu_expect_ok(d->handle_map(d->context, addr, handle, bytes), NULL, "handle_map");
        times[1][i] = us_since(&start);
        gpu_expect_ok(d->range_access(d->context, addr, bytes, 1), NULL, "range_access");
        times[2][i] = us_since(&start);
        gpu_expect_ok(d->range_unmap(d->context, addr, bytes, 1), NULL, "range_unmap");
        times[3][i] = us_since(&start);
        gpu_expect_ok(d->handle_release(d->context, handle, bytes), NULL, "handle_release");
        times[4][i] = us_since(&start);
    }
    for (int i = 0; i < CALLS; i++) {
        medians[i] = gpu_median(times[i], TIMES);
    }
}

static void measure_segment(const gpu *g, uint64_t bytes, double medians[2])
{
    const uf_device *d = g->device;
    double times[2][TIMES];
    for (int i = 0; i < TIMES; i++) {
        uint64_t addr = 0;
        double start = gpu_seconds();
        gpu_expect_ok(d->segment_create(d->context, bytes, 0, &addr), NULL, "segment_create");
        times[0][i] = us_since(&start);
        gpu_expect_ok(d->segment_destroy(d->context, addr, bytes), NULL, "segment_destroy");
        times[1][i] = us_since(&start);
    }
    medians[0] = gpu_median(times[0], TIMES);
    medians[1] = gpu_median(times[1], TIMES);
}

static void measure_event(const gpu *g, void *stream, double medians[2])
{
    const uf_device *d = g->device;
    double times[2][TIMES];
    for (int i = 0; i < TIMES; i++) {
        uint64_t event = 0;
        bool is_done = false;
        double start = gpu_seconds();
        gpu_expect_ok(d->event_record(d->context, (uint64_t)(uintptr_t)stream, &event), NULL,
                      "event_record");
        times[0][i] = us_since(&start);
        gpu_expect_ok(d->event_query(d->context, event, &is_done), NULL, "event_query");
        times[1][i] = us_since(&start);
        if (!is_done) {
            gpu_expect_ok(d->event_wait(d->context, event), NULL, "event_wait");
        }
    }
    medians[0] = gpu_median(times[0], TIMES);
    medians[1] = gpu_median(times[1], TIMES);
}

int test_latency(double seconds)
{
    gpu g;
    double pages[2][CALLS], segment[2], event[2];
    uint64_t addr = 0;
    (void)seconds;
    gpu_open(&g, NULL, 0);
    if (!g.info.can_map) {
        return gpu_not_run("latency", g.info.why_not);
    }
    uint64_t small = g.info.granularity_bytes, large = 16 * small;
    void *stream = gpu_stream(&g);
    const uf_device *d = g.device;
    gpu_expect_ok(d->range_reserve(d->context, large, &addr), NULL, "range_reserve");
    measure_pages(&g, addr, small, pages[0]);
    measure_pages(&g, addr, large, pages[1]);
    gpu_expect_ok(d->range_release(d->context, addr, large), NULL, "range_release");
    measure_segment(&g, 20 * MIB, segment);
    measure_event(&g, stream, event);
    gpu_expect(g.stream_destroy(stream), "cuStreamDestroy");
    gpu_close(&g);
    return gpu_report(
        "latency", true,
        "us, medians: pages of %.0f / %.0f MiB: create %.1f / %.1f, map %.1f / %.1f, access %.1f "
        "/ %.1f, unmap %.1f / %.1f, release %.1f / %.1f; segment of 20 MiB: create %.1f, destroy "
        "%.1f; event: record %.2f, query %.2f",
        (double)small / (double)MIB, (double)large / (double)MIB, pages[0][0], pages[1][0],
        pages[0][1], pages[1][1], pages[0][2], pages[1][2], pages[0][3], pages[1][3], pages[0][4],
        pages[1][4], segment[0], segment[1], event[0], event[1]);
}
