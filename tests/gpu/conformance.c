/* SPDX-License-Identifier: MIT
 *
 * conformance: what unfrag/device.h promises, held against the driver in charge; and that the
 * functions leave a capture, the current context and the thread's capture mode as they were. */
#include <pthread.h>
#include <stdio.h>

#include "gpu.h"

enum { CAPTURE_GLOBAL = 0 };

static int rule_count, broken_count;

static void rule(bool is_kept, const char *text)
{
    rule_count++;
    if (!is_kept) {
        broken_count++;
        (void)printf("conformance: broken: %s\n", text);
    }
}

static void check_segments(const gpu *g)
{
    const uf_device *d = g->device;
    uint64_t first = 0, second = 0, refused = 7, free_bytes = 0, total_bytes = 0;
    rule(d->memory_info(d->context, &free_bytes, &total_bytes) == UF_OK && free_bytes != 0 &&
             free_bytes <= total_bytes,
         "memory_info tells what is free");
    rule(d->segment_create(d->context, 3 * MIB, 0, &first) == UF_OK && first % 512 == 0,
         "a segment of 3 MiB");
    rule(d->segment_create(d->context, 512, 9, &second) == UF_OK && second % 512 == 0,
         "a segment of 512 bytes");
    rule(second >= first + 3 * MIB || second + 512 <= first, "segments are apart");
    rule(d->segment_create(d->context, 2 * total_bytes, 0, &refused) == UF_ERROR_DEVICE_MEMORY &&
             refused == 7,
         "more than there is: UF_ERROR_DEVICE_MEMORY");
    gpu_fill(g, NULL, first, 3 * MIB, 1);
    gpu_check(g, NULL, first, 3 * MIB, 1);
    rule(d->segment_destroy(d->context, first, 3 * MIB) == UF_OK, "a segment is given back");
    rule(d->segment_destroy(d->context, second, 512) == UF_OK, "so is the other one");
}

static void check_handles(const gpu *g)
{
    const uf_device *d = g->device;
    uint64_t granule = g->info.granularity_bytes, addr = 0, large = 0, small = 0, refused = 7;
    uint64_t free_bytes = 0, total_bytes = 0;
    rule(d->range_reserve(d->context, 64 * granule, &addr) == UF_OK && addr % granule == 0,
         "a range at a granule");
    rule(d->handle_create(d->context, 16 * granule, &large) == UF_OK, "a large handle");
    rule(d->handle_create(d->context, granule, &small) == UF_OK, "a small handle");
    (void)!d->memory_info(d->context, &free_bytes, &total_bytes);
    rule(d->handle_create(d->context, total_bytes / granule * granule * 2, &refused) ==
                 UF_ERROR_DEVICE_MEMORY &&
             refused == 7,
         "a handle larger than the card: UF_ERROR_DEVICE_MEMORY");
    rule(d->handle_map(d->context, addr + granule, large, 16 * granule) == UF_OK,
         "a large handle at any granule");
    rule(d->handle_map(d->context, addr + 17 * granule, small, granule) == UF_OK, "one beside it");
    rule(d->range_access(d->context, addr + granule, 17 * granule, 2) == UF_OK,
         "access to two handles in one call");
    gpu_fill(g, NULL, addr + granule, 17 * granule, 2);
    rule(d->handle_map(d->context, addr + 40 * granule, small, granule) == UF_OK &&
             d->range_access(d->context, addr + 40 * granule, granule, 1) == UF_OK,
         "a handle is mapped twice");
    gpu_run(g, GPU_COPY, NULL, addr + granule, addr + 40 * granule, granule / 16, 0);
    gpu_run(g, GPU_COPY, NULL, addr + 2 * granule, addr + 17 * granule, granule / 16, 0);
    gpu_expect(g->context_synchronize(), "cuCtxSynchronize");
    uint32_t words[2] = {0, 1};
    gpu_expect(g->copy_to_host(&words[0], addr + granule, 4), "cuMemcpyDtoH");
    gpu_expect(g->copy_to_host(&words[1], addr + 2 * granule, 4), "cuMemcpyDtoH");
    rule(words[0] == words[1], "both addresses show the same bytes");
    rule(d->range_unmap(d->context, addr + granule, 17 * granule, 2) == UF_OK,
         "two handles are unmapped in one call");
    rule(d->handle_map(d->context, addr, large, 16 * granule) == UF_OK &&
             d->range_access(d->context, addr, 16 * granule, 1) == UF_OK,
         "a handle is mapped somewhere else");
    rule(d->range_unmap(d->context, addr, 16 * granule, 1) == UF_OK, "and unmapped");
    rule(d->range_unmap(d->context, addr + 40 * granule, granule, 1) == UF_OK, "the second place");
    rule(d->handle_release(d->context, small, granule) == UF_OK, "the small handle is released");
    rule(d->handle_release(d->context, large, 16 * granule) == UF_OK, "and the large one");
    rule(d->range_release(d->context, addr, 64 * granule) == UF_OK, "and the range");
}

static void check_pages(const gpu *g)
{
    const uf_device *d = g->device;
    uint64_t addr = 0, before = 0, after = 0, total_bytes = 0;
    if (d->pages_map == NULL) {
        return;
    }
    rule(d->range_reserve(d->context, 80 * MIB, &addr) == UF_OK, "a range for pages");
    (void)!d->memory_info(d->context, &before, &total_bytes);
    rule(d->pages_map(d->context, addr, 40 * MIB, 20 * MIB) == UF_OK, "two pages of 20 MiB");
    gpu_fill(g, NULL, addr, 40 * MIB, 3);
    gpu_check(g, NULL, addr, 40 * MIB, 3);
    gpu_expect(g->context_synchronize(), "cuCtxSynchronize");
    rule(d->pages_unmap(d->context, addr + 20 * MIB, 20 * MIB, 20 * MIB) == UF_OK, "one goes");
    rule(d->pages_unmap(d->context, addr, 20 * MIB, 20 * MIB) == UF_OK, "the other goes");
    (void)!d->memory_info(d->context, &after, &total_bytes);
    rule(after >= before || before - after < 4 * MIB, "the memory of unmapped pages is free again");
    rule(d->range_release(d->context, addr, 80 * MIB) == UF_OK, "the range is released");
}

static void check_events(const gpu *g, void *stream)
{
    const uf_device *d = g->device;
    uint64_t handle = (uint64_t)(uintptr_t)stream, first = 0, second = 0, addr = 0;
    bool is_done = true;
    gpu_expect(g->mem_alloc(&addr, MIB), "cuMemAlloc");
    gpu_run(g, GPU_FILL_FOR, stream, addr, MIB / 4, 1, 20000000);
    rule(d->event_record(d->context, handle, &first) == UF_OK, "an event is recorded");
    rule(d->event_query(d->context, first, &is_done) == UF_OK && !is_done,
         "it is not done while a kernel runs");
    rule(d->event_record(d->context, handle, &second) == UF_OK && first != second,
         "a second one is another one");
    rule(d->event_wait(d->context, second) == UF_OK, "an event is waited for");
    rule(d->event_query(d->context, first, &is_done) == UF_OK && is_done, "the first is done then");
    rule(d->stream_wait(d->context, handle) == UF_OK, "a stream is waited for");
    rule(d->stream_wait(d->context, 0) == UF_OK, "so is the default stream");
    gpu_expect(g->mem_free(addr), "cuMemFree");
}

static void check_capture(const gpu *g, void *stream)
{
    const uf_device *d = g->device;
    uint64_t handle = (uint64_t)(uintptr_t)stream, event = 0, page = 0, segment = 0, other = 0;
    uint64_t free_bytes, total_bytes;
    bool is_done = false;
    uint64_t bytes_addr = 0, count = 1, first = 0;
    void *graph = NULL, *second = gpu_stream(g);
    gpu_expect(g->mem_alloc(&bytes_addr, MIB), "cuMemAlloc");
    rule(d->event_record(d->context, (uint64_t)(uintptr_t)second, &other) == UF_OK,
         "an event before a capture");
    gpu_expect(g->capture_begin(stream, CAPTURE_GLOBAL), "cuStreamBeginCapture");
    rule(d->event_record(d->context, handle, &event) == UF_ERROR_BUSY,
         "no event on a capturing stream");
    rule(d->stream_wait(d->context, handle) == UF_ERROR_BUSY, "no wait for a capturing stream");
    rule(d->bytes_set(d->context, bytes_addr, 8, 1, handle) == UF_ERROR_BUSY &&
             d->bytes_compare(d->context, bytes_addr, 8, 1, handle, &count, &first) ==
                 UF_ERROR_BUSY,
         "no bytes on a capturing stream");
    rule(d->bytes_set(d->context, bytes_addr, 8, 1, (uint64_t)(uintptr_t)second) == UF_OK &&
             d->bytes_compare(d->context, bytes_addr, 8, 1, (uint64_t)(uintptr_t)second, &count,
                              &first) == UF_OK &&
             count == 0,
         "bytes on another stream during a capture");
    rule(d->event_wait(d->context, other) == UF_OK, "an event is waited for during a capture");
    rule(d->event_record(d->context, (uint64_t)(uintptr_t)second, &other) == UF_OK &&
             d->event_wait(d->context, other) == UF_OK,
         "an event of another stream is recorded during a capture");
    rule(d->memory_info(d->context, &free_bytes, &total_bytes) == UF_OK, "memory_info then");
    rule(d->segment_create(d->context, MIB, 0, &segment) == UF_OK &&
             d->segment_destroy(d->context, segment, MIB) == UF_OK,
         "segments then");
    if (d->handle_create != NULL) {
        uint64_t granule = g->info.granularity_bytes, addr = 0;
        rule(d->range_reserve(d->context, granule, &addr) == UF_OK &&
                 d->handle_create(d->context, granule, &page) == UF_OK &&
                 d->handle_map(d->context, addr, page, granule) == UF_OK &&
                 d->range_access(d->context, addr, granule, 1) == UF_OK &&
                 d->range_unmap(d->context, addr, granule, 1) == UF_OK &&
                 d->handle_release(d->context, page, granule) == UF_OK &&
                 d->range_release(d->context, addr, granule) == UF_OK,
             "pages then");
    }
    rule(g->capture_end(stream, &graph) == 0 && graph != NULL, "the capture stays valid");
    (void)is_done;
    gpu_expect(g->mem_free(bytes_addr), "cuMemFree");
    gpu_expect(g->graph_destroy(graph), "cuGraphDestroy");
    gpu_expect(g->stream_destroy(second), "cuStreamDestroy");
}

/* For debug mode. */
static void check_bytes(const gpu *g, void *stream)
{
    const uf_device *d = g->device;
    uint64_t handle = (uint64_t)(uintptr_t)stream, addr = 0, count = 1, first = 0;
    uint64_t bytes = 9 * MIB + 5;
    gpu_expect(g->mem_alloc(&addr, bytes), "cuMemAlloc");
    gpu_run(g, GPU_FILL_FOR, stream, addr, MIB / 4, 1, 20000000);
    rule(d->bytes_set(d->context, addr, bytes, 0xDF, handle) == UF_OK, "bytes are set");
    rule(d->bytes_compare(d->context, addr, bytes, 0xDF, handle, &count, &first) == UF_OK &&
             count == 0,
         "behind the work that was queued before");
    rule(d->bytes_set(d->context, addr + 5 * MIB + 3, 2, 0, handle) == UF_OK &&
             d->bytes_set(d->context, addr + bytes - 1, 1, 0, handle) == UF_OK &&
             d->bytes_compare(d->context, addr, bytes, 0xDF, handle, &count, &first) == UF_OK &&
             count == 3 && first == 5 * MIB + 3,
         "each other byte is counted, and the first one named");
    gpu_expect(g->mem_free(addr), "cuMemFree");
}

static void check_debug(const gpu *g, void *stream, uf_policy policy)
{
    uint64_t handle = (uint64_t)(uintptr_t)stream, addr = 0;
    uf_allocator *allocator = NULL;
    uf_error error;
    const uf_allocator_options options = {.struct_size_bytes = sizeof options,
                                          .device = g->device,
                                          .policy = policy,
                                          .is_debug = true};
    rule(uf_allocator_create(&options, &allocator, &error) == UF_OK &&
             uf_alloc(allocator, 3 * MIB, handle, &addr, &error) == UF_OK,
         "a block in debug mode");
    gpu_fill(g, stream, addr, 3 * MIB, 1);
    rule(uf_free(allocator, addr, &error) == UF_OK &&
             uf_alloc(allocator, 3 * MIB, handle, &addr, &error) == UF_OK &&
             uf_check(allocator, &error) == UF_OK,
         "nothing is damaged by what is done rightly");
    gpu_fill(g, stream, addr, 3 * MIB + 8, 1);
    rule(uf_free(allocator, addr, &error) == UF_ERROR_DAMAGED, "a kernel that writes too much");
    gpu_fill(g, stream, addr, MIB, 1);
    rule(uf_check(allocator, &error) == UF_ERROR_DAMAGED && uf_check(allocator, &error) == UF_OK,
         "a kernel that writes after the free");
    uf_allocator_destroy(allocator);
}

/* In a thread without a context. */
static void *check_thread(void *context)
{
    const gpu *g = context;
    const uf_device *d = g->device;
    uint64_t addr = 0, event = 0;
    rule(d->segment_create(d->context, MIB, 0, &addr) == UF_OK &&
             d->event_record(d->context, 0, &event) == UF_OK &&
             d->event_wait(d->context, event) == UF_OK &&
             d->segment_destroy(d->context, addr, MIB) == UF_OK,
         "any thread may call");
    return NULL;
}

int test_conformance(double seconds)
{
    gpu g;
    pthread_t thread;
    (void)seconds;
    gpu_open(&g, NULL, 0);
    void *stream = gpu_stream(&g);
    check_segments(&g);
    if (g.info.can_map) {
        check_handles(&g);
        check_pages(&g);
    }
    check_events(&g, stream);
    check_capture(&g, stream);
    check_bytes(&g, stream);
    check_debug(&g, stream, UF_POLICY_TORCH);
    if (g.info.can_map) {
        check_debug(&g, stream, UF_POLICY_UNFRAG);
    }
    if (pthread_create(&thread, NULL, check_thread, &g) == 0) {
        (void)pthread_join(thread, NULL);
    }
    rule(gpu_wrong(&g) == 0, "no wrong words");
    gpu_expect(g.stream_destroy(stream), "cuStreamDestroy");
    int rules = rule_count, broken = broken_count;
    uf_cuda_info info = g.info;
    gpu_close(&g);
    return gpu_report("conformance", broken == 0,
                      "%d rules, %d broken; %s, driver %d.%d, granularity %.2f MiB (recommended "
                      "%.2f), memory %s be mapped%s%s",
                      rules, broken, info.name, info.driver_version / 1000,
                      info.driver_version % 1000 / 10, (double)info.granularity_bytes / (double)MIB,
                      (double)info.recommended_granularity_bytes / (double)MIB,
                      info.can_map ? "can" : "cannot", info.can_map ? "" : ": ", info.why_not);
}
