/* SPDX-License-Identifier: MIT
 *
 * What the GPU tests share: the driver's functions that they use besides the device, kernels, and
 * how a test says its result. A failed driver call ends the program. One thread. */
#ifndef UF_TESTS_GPU_GPU_H
#define UF_TESTS_GPU_GPU_H

#include <stdbool.h>
#include <stdint.h>

#include <unfrag/cuda.h>
#include <unfrag/unfrag.h>

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

#define GPU_FUNCTION_LIST(X)                                                                       \
    X(context_retain, (void **context, int device), "cuDevicePrimaryCtxRetain")                    \
    X(context_set, (void *context), "cuCtxSetCurrent")                                             \
    X(context_synchronize, (void), "cuCtxSynchronize")                                             \
    X(stream_create, (void **stream, unsigned flags), "cuStreamCreate")                            \
    X(stream_destroy, (void *stream), "cuStreamDestroy_v2")                                        \
    X(stream_synchronize, (void *stream), "cuStreamSynchronize")                                   \
    X(stream_wait_event, (void *stream, void *event, unsigned flags), "cuStreamWaitEvent")         \
    X(capture_begin, (void *stream, int mode), "cuStreamBeginCapture_v2")                          \
    X(capture_end, (void *stream, void **graph), "cuStreamEndCapture")                             \
    X(graph_instantiate, (void **exec, void *graph, unsigned long long flags),                     \
      "cuGraphInstantiateWithFlags")                                                               \
    X(graph_launch, (void *exec, void *stream), "cuGraphLaunch")                                   \
    X(graph_destroy, (void *graph), "cuGraphDestroy")                                              \
    X(graph_exec_destroy, (void *exec), "cuGraphExecDestroy")                                      \
    X(event_create, (void **event, unsigned flags), "cuEventCreate")                               \
    X(event_destroy, (void *event), "cuEventDestroy_v2")                                           \
    X(event_record, (void *event, void *stream), "cuEventRecord")                                  \
    X(event_synchronize, (void *event), "cuEventSynchronize")                                      \
    X(event_elapsed, (float *milliseconds, void *from, void *to), "cuEventElapsedTime")            \
    X(mem_alloc, (uint64_t * addr, size_t bytes), "cuMemAlloc_v2")                                 \
    X(mem_free, (uint64_t addr), "cuMemFree_v2")                                                   \
    X(mem_get_info, (size_t * free_bytes, size_t * total_bytes), "cuMemGetInfo_v2")                \
    X(copy_to_host, (void *to, uint64_t from, size_t bytes), "cuMemcpyDtoH_v2")                    \
    X(copy_to_device, (uint64_t to, const void *from, size_t bytes), "cuMemcpyHtoD_v2")            \
    X(module_load, (void **module, const void *image), "cuModuleLoadData")                         \
    X(module_function, (void **function, void *module, const char *name), "cuModuleGetFunction")   \
    X(launch,                                                                                      \
      (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,        \
       unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream, void **parameters, \
       void **extra),                                                                              \
      "cuLaunchKernel")

typedef enum gpu_kernel {
    GPU_FILL,      /* (to, words, pattern) */
    GPU_CHECK,     /* (from, words, pattern, wrong) */
    GPU_FILL_FOR,  /* (to, words, pattern, ns): again and again */
    GPU_COPY,      /* (to, from, 16-byte items) */
    GPU_GATHER,    /* (to, from, words: a power of two) */
    GPU_TRANSPOSE, /* (to, from, side in words: a multiple of 32) */
    GPU_KERNEL_COUNT
} gpu_kernel;

typedef struct gpu {
    uf_cuda *cuda;
    const uf_device *device;
    uf_cuda_info info;
    void *context;
    void *kernels[GPU_KERNEL_COUNT];
    uint64_t wrong_addr; /* counts wrong words */
    bool is_fake;        /* the fake driver library: small and slow */
#define GPU_MEMBER(member, parameters, name) int(*member) parameters;
    GPU_FUNCTION_LIST(GPU_MEMBER)
#undef GPU_MEMBER
} gpu;

/* Opens GPU 0 with access for the peers; its context is current afterwards. */
void gpu_open(gpu *g, const int32_t *peers, uint32_t peer_count);
void gpu_close(gpu *g);
/* The same functions and kernels in another GPU's primary context, which stays current; without a
 * device. */
void gpu_open_other(const gpu *g, int ordinal, gpu *other);

/* Ends the program with a text if a driver call failed. */
void gpu_expect(int result, const char *what);
void gpu_expect_ok(uf_status status, const uf_error *error, const char *what);

void *gpu_stream(const gpu *g);
/* The parameters are as many as the kernel has; those that it lacks are ignored. */
void gpu_run(const gpu *g, gpu_kernel kernel, void *stream, uint64_t a, uint64_t b, uint64_t c,
             uint64_t d);
static inline void gpu_fill(const gpu *g, void *stream, uint64_t addr, uint64_t bytes,
                            uint64_t pattern)
{
    gpu_run(g, GPU_FILL, stream, addr, bytes / 4, pattern, 0);
}
static inline void gpu_check(const gpu *g, void *stream, uint64_t addr, uint64_t bytes,
                             uint64_t pattern)
{
    gpu_run(g, GPU_CHECK, stream, addr, bytes / 4, pattern, g->wrong_addr);
}
/* Wrong words so far; waits for everything. */
uint64_t gpu_wrong(const gpu *g);
/* Bytes that the driver could hand out now. */
uint64_t gpu_free_bytes(const gpu *g);
uf_allocator *gpu_allocator(const gpu *g, uf_policy policy, uint64_t limit_bytes);
double gpu_seconds(void);
double gpu_median(double *values, int count);

/* How a test ends; each prints its line and returns the exit status. */
enum { GPU_HOLDS = 0, GPU_FALLS_SHORT = 1, GPU_NOT_RUN = 77 };
int gpu_report(const char *name, bool holds, const char *format, ...) UF_PRINTF(3, 4);
int gpu_not_run(const char *name, const char *why);

/* The tests, one a file. seconds: for how long, where that is a choice. */
int test_conformance(double seconds); /* conformance.c */
int test_fills(double seconds);       /* fills.c */
int test_capture(double seconds);     /* capture.c */
int test_alias(double seconds);       /* alias.c */
int test_copy(double seconds);        /* speed.c */
int test_gather(double seconds);
int test_transpose(double seconds);
int test_gemm(double seconds);
int test_peer(double seconds);    /* peer.c */
int test_mapping(double seconds); /* mapping.c */
int test_syncs(double seconds);
int test_latency(double seconds); /* latency.c */

#endif
