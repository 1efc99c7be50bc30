/* SPDX-License-Identifier: MIT
 *
 * capture: a graph is captured whose memory comes from a pool while the stream is being captured
 * in the strictest mode; all is freed, the card is filled up to the limit so that every page that
 * can be taken is taken, and the graph is run again and again. Its results and the bytes of the
 * others must be right. */
#include <stdlib.h>

#include "gpu.h"

enum { REPLAYS = 1000, FILLERS_MAX = 4096, CAPTURE_GLOBAL = 0 };

typedef struct capture {
    gpu g;
    uf_allocator *allocator;
    void *stream, *exec;
    uint64_t pool_id, bytes; /* of each buffer of the graph */
    uint64_t input, output;  /* stay outside the graph's pool */
    uint64_t fillers[FILLERS_MAX];
    uint32_t filler_count;
    uint64_t filler_bytes;
} capture;

static uint64_t take(capture *c, uint64_t bytes)
{
    uint64_t addr = 0;
    uf_error error;
    gpu_expect_ok(uf_alloc(c->allocator, bytes, (uint64_t)(uintptr_t)c->stream, &addr, &error),
                  &error, "uf_alloc");
    return addr;
}

static void give(capture *c, uint64_t addr)
{
    uf_error error;
    gpu_expect_ok(uf_free(c->allocator, addr, &error), &error, "uf_free");
}

/* input -> a -> b -> output, by two gathers and a copy; a is given back within the capture and may
 * be b's memory in part. */
static void record(capture *c)
{
    uf_error error;
    void *graph = NULL;
    gpu_expect_ok(uf_pool_create(c->allocator, NULL, &c->pool_id, &error), &error,
                  "uf_pool_create");
    gpu_expect_ok(uf_pool_begin(c->allocator, c->pool_id, &error), &error, "uf_pool_begin");
    gpu_expect(c->g.capture_begin(c->stream, CAPTURE_GLOBAL), "cuStreamBeginCapture");
    uint64_t a = take(c, c->bytes), b = take(c, c->bytes);
    gpu_run(&c->g, GPU_COPY, c->stream, a, c->input, c->bytes / 16, 0);
    gpu_run(&c->g, GPU_GATHER, c->stream, b, a, c->bytes / 4, 0);
    give(c, a);
    uint64_t d = take(c, c->bytes);
    gpu_run(&c->g, GPU_COPY, c->stream, d, b, c->bytes / 16, 0);
    gpu_run(&c->g, GPU_COPY, c->stream, c->output, d, c->bytes / 16, 0);
    give(c, b);
    give(c, d);
    gpu_expect(c->g.capture_end(c->stream, &graph), "cuStreamEndCapture");
    gpu_expect_ok(uf_pool_end(c->allocator, c->pool_id, &error), &error, "uf_pool_end");
    gpu_expect(c->g.graph_instantiate(&c->exec, graph, 0), "cuGraphInstantiate");
    gpu_expect(c->g.graph_destroy(graph), "cuGraphDestroy");
}

static void fill_card(capture *c)
{
    uf_error error;
    uf_status status = UF_OK;
    while (status == UF_OK && c->filler_count < FILLERS_MAX) {
        uint64_t addr = 0;
        status =
            uf_alloc(c->allocator, c->filler_bytes, (uint64_t)(uintptr_t)c->stream, &addr, &error);
        if (status == UF_OK) {
            gpu_fill(&c->g, c->stream, addr, c->filler_bytes, c->filler_count);
            c->fillers[c->filler_count++] = addr;
        }
    }
    if (status != UF_ERROR_OUT_OF_MEMORY) {
        gpu_expect_ok(status == UF_OK ? UF_ERROR_INTERNAL : status, &error, "filling the card");
    }
}

/* What the graph must make of the input. */
static bool is_right(const capture *c, const uint32_t *input, const uint32_t *output)
{
    uint64_t count = c->bytes / 4;
    for (uint64_t i = 0; i < count; i++) {
        if (output[i] != input[(i * 0x9E3779B1u + 12345) & (count - 1)]) {
            return false;
        }
    }
    return true;
}

/* Replays with a new input each time it looks at the output. */
static uint32_t replay(capture *c)
{
    uint32_t wrong = 0;
    uint32_t *input = malloc(c->bytes), *output = malloc(c->bytes);
    for (uint32_t i = 0; input != NULL && output != NULL && i < REPLAYS; i++) {
        bool is_looked_at = i % 100 == 0 || i == REPLAYS - 1;
        if (is_looked_at) {
            gpu_fill(&c->g, c->stream, c->input, c->bytes, i);
        }
        gpu_expect(c->g.graph_launch(c->exec, c->stream), "cuGraphLaunch");
        if (is_looked_at) {
            gpu_expect(c->g.stream_synchronize(c->stream), "cuStreamSynchronize");
            gpu_expect(c->g.copy_to_host(input, c->input, c->bytes), "cuMemcpyDtoH");
            gpu_expect(c->g.copy_to_host(output, c->output, c->bytes), "cuMemcpyDtoH");
            wrong += !is_right(c, input, output);
        }
    }
    wrong += input == NULL || output == NULL;
    free(input);
    free(output);
    return wrong;
}

int test_capture(double seconds)
{
    static capture c;
    uf_error error = {UF_OK, ""};
    uf_stats before, after;
    (void)seconds;
    gpu_open(&c.g, NULL, 0);
    if (!c.g.info.can_map) {
        return gpu_not_run("capture", c.g.info.why_not);
    }
    c.bytes = c.g.is_fake ? 1 * MIB : 64 * MIB;
    c.filler_bytes = c.bytes + c.bytes / 2;
    c.stream = gpu_stream(&c.g);
    c.allocator = gpu_allocator(&c.g, UF_POLICY_UNFRAG, 64 * c.bytes);
    c.input = take(&c, c.bytes);
    c.output = take(&c, c.bytes);
    /* Cached pages that the capture can take, of work that is done. */
    uint64_t cached = take(&c, 8 * c.bytes);
    gpu_fill(&c.g, c.stream, cached, 8 * c.bytes, 1);
    give(&c, cached);
    gpu_expect(c.g.stream_synchronize(c.stream), "cuStreamSynchronize");
    record(&c);
    fill_card(&c);
    gpu_expect_ok(uf_stats_get(c.allocator, &before, NULL), NULL, "uf_stats_get");
    uint32_t wrong = replay(&c);
    for (uint32_t i = 0; i < c.filler_count; i++) {
        gpu_check(&c.g, c.stream, c.fillers[i], c.filler_bytes, i);
    }
    uint64_t wrong_words = gpu_wrong(&c.g);
    gpu_expect_ok(uf_check(c.allocator, &error), &error, "uf_check");
    gpu_expect_ok(uf_stats_get(c.allocator, &after, NULL), NULL, "uf_stats_get");
    gpu_expect(c.g.graph_exec_destroy(c.exec), "cuGraphExecDestroy");
    uf_allocator_destroy(c.allocator);
    gpu_expect(c.g.stream_destroy(c.stream), "cuStreamDestroy");
    uf_cuda_counts counts;
    uf_cuda_counts_get(c.g.cuda, &counts);
    gpu_close(&c.g);
    return gpu_report("capture", wrong == 0 && wrong_words == 0 && counts.failure_count == 0,
                      "captured in global mode, %u fillers of %llu MiB up to the limit, %d "
                      "replays, %u wrong results, %llu wrong words in fillers",
                      c.filler_count, (unsigned long long)(c.filler_bytes / MIB), REPLAYS, wrong,
                      (unsigned long long)wrong_words);
}
