/* SPDX-License-Identifier: MIT
 *
 * Opening a GPU for a test, launching kernels, and saying results. */
#include "gpu.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../fakecuda/fake.h"
#include "kernels_ptx.h"

static const char *const kernel_names[GPU_KERNEL_COUNT] = {"uf_fill", "uf_check",  "uf_fill_for",
                                                           "uf_copy", "uf_gather", "uf_transpose"};

void gpu_expect(int result, const char *what)
{
    if (result != 0) {
        (void)printf("%s: FALLS SHORT, the driver says %d\n", what, result);
        exit(GPU_FALLS_SHORT);
    }
}

void gpu_expect_ok(uf_status status, const uf_error *error, const char *what)
{
    if (status != UF_OK) {
        (void)printf("%s: FALLS SHORT, %s: %s\n", what, uf_status_name(status),
                     error != NULL ? error->text : "");
        exit(GPU_FALLS_SHORT);
    }
}

static void look_up(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    if (found == NULL) {
        (void)printf("%s: not run (libcuda.so.1 has no such function)\n", name);
        exit(GPU_NOT_RUN);
    }
    memcpy(function, &found, sizeof found);
}

/* Kernels and the counter of wrong words. */
static void load(gpu *g, int ordinal)
{
    gpu_expect(g->context_retain(&g->context, ordinal), "cuDevicePrimaryCtxRetain");
    gpu_expect(g->context_set(g->context), "cuCtxSetCurrent");
    void *module;
    gpu_expect(g->module_load(&module, kernels_ptx), "cuModuleLoadData");
    for (int i = 0; i < GPU_KERNEL_COUNT; i++) {
        gpu_expect(g->module_function(&g->kernels[i], module, kernel_names[i]), kernel_names[i]);
    }
    uint64_t zero = 0;
    gpu_expect(g->mem_alloc(&g->wrong_addr, sizeof zero), "cuMemAlloc");
    gpu_expect(g->copy_to_device(g->wrong_addr, &zero, sizeof zero), "cuMemcpyHtoD");
}

void gpu_open(gpu *g, const int32_t *peers, uint32_t peer_count)
{
    uf_cuda_options options = {
        .struct_size_bytes = sizeof options, .peers = peers, .peer_count = peer_count};
    uf_error error = {UF_OK, ""};
    memset(g, 0, sizeof *g);
    gpu_expect_ok(uf_cuda_create(&options, &g->cuda, &error), &error, "uf_cuda_create");
    g->device = uf_cuda_device(g->cuda);
    g->info.struct_size_bytes = sizeof g->info;
    gpu_expect_ok(uf_cuda_info_get(g->cuda, &g->info), NULL, "uf_cuda_info_get");
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
#define LOOK_UP(member, parameters, name) look_up(library, name, &g->member);
    GPU_FUNCTION_LIST(LOOK_UP)
#undef LOOK_UP
    g->is_fake = dlsym(library, "fake_api_table") != NULL;
    load(g, 0);
}

void gpu_open_other(const gpu *g, int ordinal, gpu *other)
{
    *other = *g;
    other->cuda = NULL;
    other->device = NULL;
    load(other, ordinal);
}

/* The fake library knows which rules of the driver were broken, and what is left. */
static void expect_clean(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    const fake_api *api = dlsym(library, "fake_api_table");
    fake_counts counts;
    char text[300] = "";
    api->counts(&counts);
    if (api->fault_count(text, sizeof text) != 0) {
        (void)printf("FALLS SHORT, a rule of the driver was broken: %s\n", text);
        exit(GPU_FALLS_SHORT);
    }
    if ((counts.in_use_bytes | counts.range_count | counts.mapping_count | counts.event_count |
         counts.stream_count | counts.graph_count) != 0) {
        (void)printf("FALLS SHORT, left: %" PRIu64 " bytes, %" PRIu64 " ranges, %" PRIu64
                     " mappings, %" PRIu64 " events, %" PRIu64 " streams, %" PRIu64 " graphs\n",
                     counts.in_use_bytes, counts.range_count, counts.mapping_count,
                     counts.event_count, counts.stream_count, counts.graph_count);
        exit(GPU_FALLS_SHORT);
    }
}

void gpu_close(gpu *g)
{
    gpu_expect(g->mem_free(g->wrong_addr), "cuMemFree");
    uf_cuda_destroy(g->cuda);
    if (g->is_fake) {
        expect_clean();
    }
}

void *gpu_stream(const gpu *g)
{
    void *stream;
    enum { NON_BLOCKING = 1 };
    gpu_expect(g->stream_create(&stream, NON_BLOCKING), "cuStreamCreate");
    return stream;
}

void gpu_run(const gpu *g, gpu_kernel kernel, void *stream, uint64_t a, uint64_t b, uint64_t c,
             uint64_t d)
{
    void *parameters[4] = {&a, &b, &c, &d};
    bool is_transpose = kernel == GPU_TRANSPOSE;
    uint64_t items = kernel == GPU_FILL || kernel == GPU_CHECK || kernel == GPU_FILL_FOR ? b : c;
    uint64_t blocks = (items + 1023) / 1024;
    blocks = blocks > 2112 ? 2112 : blocks; /* 16 for each of 132 multiprocessors */
    blocks = is_transpose ? c / 32 * (c / 32) : blocks;
    gpu_expect(g->launch(g->kernels[kernel], (unsigned)(blocks == 0 ? 1 : blocks), 1, 1,
                         is_transpose ? 32 : 256, is_transpose ? 8 : 1, 1, 0, stream, parameters,
                         NULL),
               kernel_names[kernel]);
}

uint64_t gpu_wrong(const gpu *g)
{
    uint64_t wrong = 0;
    gpu_expect(g->context_synchronize(), "cuCtxSynchronize");
    gpu_expect(g->copy_to_host(&wrong, g->wrong_addr, sizeof wrong), "cuMemcpyDtoH");
    return wrong;
}

uint64_t gpu_free_bytes(const gpu *g)
{
    size_t free_bytes, total_bytes;
    gpu_expect(g->mem_get_info(&free_bytes, &total_bytes), "cuMemGetInfo");
    return free_bytes;
}

uf_allocator *gpu_allocator(const gpu *g, uf_policy policy, uint64_t limit_bytes)
{
    uf_allocator *allocator = NULL;
    uf_error error = {UF_OK, ""};
    uf_allocator_options options = {.struct_size_bytes = sizeof options,
                                    .device = g->device,
                                    .policy = policy,
                                    .page_bytes = g->info.granularity_bytes,
                                    .limit_bytes = limit_bytes};
    gpu_expect_ok(uf_allocator_create(&options, &allocator, &error), &error, "uf_allocator_create");
    return allocator;
}

double gpu_seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

double gpu_median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count / 2];
}

int gpu_report(const char *name, bool holds, const char *format, ...)
{
    va_list arguments;
    (void)printf("%s: %s, ", name, holds ? "holds" : "FALLS SHORT");
    va_start(arguments, format);
    (void)vprintf(format, arguments);
    va_end(arguments);
    (void)printf("\n");
    return holds ? GPU_HOLDS : GPU_FALLS_SHORT;
}

int gpu_not_run(const char *name, const char *why)
{
    (void)printf("%s: not run (%s)\n", name, why);
    return GPU_NOT_RUN;
}

static const struct {
    const char *name;
    int (*run)(double seconds);
} tests[] = {
    {"conformance", test_conformance},
    {"fills", test_fills},
    {"capture", test_capture},
    {"alias", test_alias},
    {"copy", test_copy},
    {"gather", test_gather},
    {"transpose", test_transpose},
    {"gemm", test_gemm},
    {"peer", test_peer},
    {"mapping", test_mapping},
    {"synchronises", test_syncs},
    {"latency", test_latency},
};

int main(int argc, char **argv)
{
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t i = 0; i < sizeof tests / sizeof *tests && argc > 1; i++) {
        if (strcmp(argv[1], tests[i].name) == 0) {
            return tests[i].run(argc > 2 ? strtod(argv[2], NULL) : 5.0);
        }
    }
    (void)fprintf(stderr, "usage: gpu_tests TEST [SECONDS]; tests:");
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        (void)fprintf(stderr, " %s", tests[i].name);
    }
    (void)fprintf(stderr, "\n");
    return 2;
}
