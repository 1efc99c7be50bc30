/* SPDX-License-Identifier: MIT
 *
 * alias: a page is mapped at a second address while a kernel still writes through the first one.
 * Within one stream the order of kernels must protect the data: what a later kernel writes through
 * the second address must stand, and what an earlier one reads through the first must be old.
 *
 *   stream   fill_for(A, old) | check(A, old) | fill(B, new)        A and B: the same page
 *   CPU      launch, launch, map at B, launch ... all returns at once; unmap A when it is done */
#include "gpu.h"

enum { ROUNDS = 100 };

int test_alias(double seconds)
{
    gpu g;
    uint64_t addr = 0, handle = 0, event = 0;
    (void)seconds;
    gpu_open(&g, NULL, 0);
    if (!g.info.can_map) {
        return gpu_not_run("alias", g.info.why_not);
    }
    const uf_device *d = g.device;
    uint64_t bytes = g.info.granularity_bytes * 4;
    void *stream = gpu_stream(&g);
    uint32_t in_flight_count = 0;
    gpu_expect_ok(d->range_reserve(d->context, 2 * bytes, &addr), NULL, "range_reserve");
    gpu_expect_ok(d->handle_create(d->context, bytes, &handle), NULL, "handle_create");
    uint64_t at[2] = {addr, addr + bytes};
    gpu_expect_ok(d->handle_map(d->context, at[0], handle, bytes), NULL, "handle_map");
    gpu_expect_ok(d->range_access(d->context, at[0], bytes, 1), NULL, "range_access");
    for (uint64_t i = 0; i < ROUNDS; i++) {
        uint64_t from = at[i % 2], to = at[(i + 1) % 2];
        bool is_done = true;
        gpu_run(&g, GPU_FILL_FOR, stream, from, bytes / 4, i, 2000000);
        gpu_check(&g, stream, from, bytes, i);
        gpu_expect_ok(d->event_record(d->context, (uint64_t)(uintptr_t)stream, &event), NULL,
                      "event_record");
        gpu_expect_ok(d->handle_map(d->context, to, handle, bytes), NULL, "handle_map");
        gpu_expect_ok(d->range_access(d->context, to, bytes, 1), NULL, "range_access");
        gpu_fill(&g, stream, to, bytes, ~i);
        gpu_check(&g, stream, to, bytes, ~i);
        gpu_expect_ok(d->event_query(d->context, event, &is_done), NULL, "event_query");
        in_flight_count += !is_done;
        if (!is_done) {
            gpu_expect_ok(d->event_wait(d->context, event), NULL, "event_wait");
        }
        gpu_expect_ok(d->range_unmap(d->context, from, bytes, 1), NULL, "range_unmap");
        gpu_check(&g, stream, to, bytes, ~i);
    }
    uint64_t wrong = gpu_wrong(&g);
    gpu_expect_ok(d->range_unmap(d->context, at[ROUNDS % 2], bytes, 1), NULL, "range_unmap");
    gpu_expect_ok(d->handle_release(d->context, handle, bytes), NULL, "handle_release");
    gpu_expect_ok(d->range_release(d->context, addr, 2 * bytes), NULL, "range_release");
    gpu_expect(g.stream_destroy(stream), "cuStreamDestroy");
    gpu_close(&g);
    return gpu_report("alias", wrong == 0 && in_flight_count > ROUNDS / 2,
                      "%d rounds, in %u of them the kernel was still writing through the old "
                      "address when the new one was ready, %llu wrong words",
                      ROUNDS, in_flight_count, (unsigned long long)wrong);
}
