/* SPDX-License-Identifier: MIT
 *
 * A copy stream and a compute stream share buffers, as a loader and a model do: on host memory,
 * where kernels are C functions that run late, so that it can be seen that no buffer is handed out
 * again before both streams are done with it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <unfrag/host.h>
#include <unfrag/unfrag.h>

enum { COPY = 1, COMPUTE = 2 }; /* handles of streams; with CUDA, a cudaStream_t */

static const uint64_t BYTES = UINT64_C(4) << 20;

static int fail(const uf_error *error)
{
    fprintf(stderr, "streams: %s\n", error->text);
    return 1;
}

static void fill(void *context, uint64_t addr, uint64_t size_bytes)
{
    memset((void *)(uintptr_t)addr, *(const int *)context, size_bytes);
}

static void sum(void *context, uint64_t addr, uint64_t size_bytes)
{
    const unsigned char *bytes = (const unsigned char *)(uintptr_t)addr;
    for (uint64_t i = 0; i < size_bytes; i += 4096) {
        *(uint64_t *)context += bytes[i];
    }
}

int main(void)
{
    uf_error error;
    uf_host *host;
    uf_allocator *allocator;
    int numbers[4] = {1, 2, 3, 4};
    uint64_t sums[4] = {0, 0, 0, 0}, buffers[4];

    if (uf_host_create(NULL, &host, &error) != UF_OK) {
        return fail(&error);
    }
    uf_allocator_options options = {.struct_size_bytes = sizeof options,
                                    .device = uf_host_device(host),
                                    .policy = UF_POLICY_UNFRAG};
    if (uf_allocator_create(&options, &allocator, &error) != UF_OK) {
        return fail(&error);
    }
    for (int i = 0; i < 4; i++) {
        /* Allocated for the copy stream, read by the compute stream, given back at once: the work
         * is queued, not done. The block is kept until both streams have passed it. */
        if (uf_alloc(allocator, BYTES, COPY, &buffers[i], &error) != UF_OK ||
            uf_host_launch(host, COPY, fill, &numbers[i], buffers[i], BYTES) != UF_OK ||
            uf_host_launch(host, COMPUTE, sum, &sums[i], buffers[i], BYTES) != UF_OK ||
            uf_use_on_stream(allocator, buffers[i], COMPUTE, &error) != UF_OK ||
            uf_free(allocator, buffers[i], &error) != UF_OK) {
            return fail(&error);
        }
    }
    uf_stats stats;
    if (uf_stats_get(allocator, &stats, &error) != UF_OK) {
        return fail(&error);
    }
    printf("given back, and still in use by a stream: %" PRId64 " blocks\n",
           stats.active.all.current);

    (void)uf_host_run(host, COPY, UINT64_MAX);    /* the device goes on: first one stream, */
    (void)uf_host_run(host, COMPUTE, UINT64_MAX); /* then the other */
    uint64_t again;
    if (uf_alloc(allocator, BYTES, COPY, &again, &error) != UF_OK ||
        uf_stats_get(allocator, &stats, &error) != UF_OK) {
        return fail(&error);
    }
    printf("after both streams: %" PRId64 " block, of memory that was there before: %s\n",
           stats.active.all.current, again == buffers[0] ? "yes" : "no");
    printf("sums: %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", sums[0], sums[1], sums[2],
           sums[3]);
    uf_allocator_destroy(allocator);
    uf_host_destroy(host);
    return 0;
}
