/* SPDX-License-Identifier: MIT
 *
 * copy, gather, transpose, gemm: kernels on memory whose pages lie scattered, each of them moved
 * before, against the same kernels on memory from cuMemAlloc. Both take turns; the medians of the
 * times are compared. */
#include <dlfcn.h>
#include <stdlib.h>

#include "gpu.h"

enum { PARTS = 3, ROUNDS = 41, HANDLES_MAX = 4096 };

/* PARTS buffers of one kind of memory. */
typedef struct memory {
    uint64_t part_bytes, parts[PARTS];
    uint64_t addr; /* of the reserved range; 0: from cuMemAlloc */
    uint64_t handles[HANDLES_MAX];
    uint64_t handle_count;
} memory;

typedef struct speed {
    gpu g;
    void *stream, *from, *to; /* events with times */
    memory plain, mapped;
    void *blas;
    int (*gemm)(void *blas, int a_form, int b_form, int m, int n, int k, const void *alpha,
                const void *a, int a_type, int a_step, const void *b, int b_type, int b_step,
                const void *beta, void *c, int c_type, int c_step, int compute, int algorithm);
} speed;

static void shuffle(uint64_t *items, uint64_t count, uint64_t seed)
{
    for (uint64_t i = count; i > 1; i--) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
        uint64_t j = (seed >> 33) % i, item = items[j];
        items[j] = items[i - 1];
        items[i - 1] = item;
    }
}

static void map_all(const gpu *g, const memory *m, uint64_t page_bytes)
{
    const uf_device *d = g->device;
    for (uint64_t i = 0; i < m->handle_count; i++) {
        gpu_expect_ok(
            d->handle_map(d->context, m->addr + i * page_bytes, m->handles[i], page_bytes), NULL,
            "handle_map");
    }
    gpu_expect_ok(
        d->range_access(d->context, m->addr, m->handle_count * page_bytes, m->handle_count), NULL,
        "range_access");
}

/* Pages of one granule in a random order, mapped a second time in another one. */
static void memory_map(const gpu *g, memory *m, uint64_t part_bytes)
{
    const uf_device *d = g->device;
    uint64_t page_bytes = g->info.granularity_bytes, bytes = PARTS * part_bytes;
    m->part_bytes = part_bytes;
    m->handle_count = bytes / page_bytes;
    gpu_expect_ok(m->handle_count <= HANDLES_MAX ? UF_OK : UF_ERROR_INTERNAL, NULL, "page count");
    gpu_expect_ok(d->range_reserve(d->context, bytes, &m->addr), NULL, "range_reserve");
    for (uint64_t i = 0; i < m->handle_count; i++) {
        gpu_expect_ok(d->handle_create(d->context, page_bytes, &m->handles[i]), NULL,
                      "handle_create");
    }
    shuffle(m->handles, m->handle_count, 1);
    map_all(g, m, page_bytes);
    gpu_expect_ok(d->range_unmap(d->context, m->addr, bytes, m->handle_count), NULL, "range_unmap");
    shuffle(m->handles, m->handle_count, 2);
    map_all(g, m, page_bytes);
    for (int i = 0; i < PARTS; i++) {
        m->parts[i] = m->addr + (uint64_t)i * part_bytes;
    }
}

static void memory_unmap(const gpu *g, const memory *m)
{
    const uf_device *d = g->device;
    uint64_t page_bytes = g->info.granularity_bytes;
    gpu_expect_ok(
        d->range_unmap(d->context, m->addr, m->handle_count * page_bytes, m->handle_count), NULL,
        "range_unmap");
    for (uint64_t i = 0; i < m->handle_count; i++) {
        gpu_expect_ok(d->handle_release(d->context, m->handles[i], page_bytes), NULL,
                      "handle_release");
    }
    gpu_expect_ok(d->range_release(d->context, m->addr, m->handle_count * page_bytes), NULL,
                  "range_release");
}

static void run_copy(speed *s, const memory *m)
{
    gpu_run(&s->g, GPU_COPY, s->stream, m->parts[0], m->parts[1], m->part_bytes / 16, 0);
}

static void run_gather(speed *s, const memory *m)
{
    gpu_run(&s->g, GPU_GATHER, s->stream, m->parts[0], m->parts[1], m->part_bytes / 4, 0);
}

static uint64_t side_of(uint64_t words)
{
    uint64_t side = 32;
    while (side * side * 4 <= words) {
        side *= 2;
    }
    return side;
}

static void run_transpose(speed *s, const memory *m)
{
    gpu_run(&s->g, GPU_TRANSPOSE, s->stream, m->parts[0], m->parts[1], side_of(m->part_bytes / 4),
            0);
}

static void run_gemm(speed *s, const memory *m)
{
    enum { NORMAL = 0, BF16 = 14, COMPUTE_32F = 68, DEFAULT_ALGORITHM = -1 };
    static const float one = 1.0f, zero = 0.0f;
    int side = (int)side_of(m->part_bytes / 2);
    gpu_expect(s->gemm(s->blas, NORMAL, NORMAL, side, side, side, &one,
                       (const void *)(uintptr_t)m->parts[1], BF16, side,
                       (const void *)(uintptr_t)m->parts[2], BF16, side, &zero,
                       (void *)(uintptr_t)m->parts[0], BF16, side, COMPUTE_32F, DEFAULT_ALGORITHM),
               "cublasGemmEx");
}

typedef void runner(speed *s, const memory *m);

static double time_of(speed *s, runner *run, const memory *m, int repeats)
{
    float milliseconds = 0;
    gpu_expect(s->g.event_record(s->from, s->stream), "cuEventRecord");
    for (int i = 0; i < repeats; i++) {
        run(s, m);
    }
    gpu_expect(s->g.event_record(s->to, s->stream), "cuEventRecord");
    gpu_expect(s->g.event_synchronize(s->from), "cuEventSynchronize");
    gpu_expect(s->g.event_synchronize(s->to), "cuEventSynchronize");
    gpu_expect(s->g.event_elapsed(&milliseconds, s->from, s->to), "cuEventElapsedTime");
    return (double)milliseconds / repeats;
}

static void start(speed *s, uint64_t part_bytes)
{
    s->stream = gpu_stream(&s->g);
    gpu_expect(s->g.event_create(&s->from, 0), "cuEventCreate");
    gpu_expect(s->g.event_create(&s->to, 0), "cuEventCreate");
    s->plain.part_bytes = part_bytes;
    for (int i = 0; i < PARTS; i++) {
        gpu_expect(s->g.mem_alloc(&s->plain.parts[i], part_bytes), "cuMemAlloc");
    }
    memory_map(&s->g, &s->mapped, part_bytes);
    for (uint64_t i = 0; i < PARTS; i++) {
        gpu_fill(&s->g, s->stream, s->plain.parts[i], part_bytes, i);
        gpu_fill(&s->g, s->stream, s->mapped.parts[i], part_bytes, i);
    }
}

static void finish(speed *s)
{
    gpu_expect(s->g.context_synchronize(), "cuCtxSynchronize");
    memory_unmap(&s->g, &s->mapped);
    for (int i = 0; i < PARTS; i++) {
        gpu_expect(s->g.mem_free(s->plain.parts[i]), "cuMemFree");
    }
    gpu_expect(s->g.event_destroy(s->from), "cuEventDestroy");
    gpu_expect(s->g.event_destroy(s->to), "cuEventDestroy");
    gpu_expect(s->g.stream_destroy(s->stream), "cuStreamDestroy");
    gpu_close(&s->g);
}

/* work: what one run moves or computes, in units of 1e9 (bytes or operations). */
static int compare(speed *s, const char *name, runner *run, double work, const char *unit)
{
    static double plain[ROUNDS], mapped[ROUNDS];
    int rounds = s->g.is_fake ? 5 : ROUNDS, repeats = s->g.is_fake ? 1 : 8;
    for (int i = -2; i < rounds; i++) { /* the first two are not counted */
        bool is_plain_first = i % 2 == 0;
        double first = time_of(s, run, is_plain_first ? &s->plain : &s->mapped, repeats);
        double second = time_of(s, run, is_plain_first ? &s->mapped : &s->plain, repeats);
        plain[i < 0 ? 0 : i] = is_plain_first ? first : second;
        mapped[i < 0 ? 0 : i] = is_plain_first ? second : first;
    }
    double plain_ms = gpu_median(plain, rounds), mapped_ms = gpu_median(mapped, rounds);
    double percent = 100.0 * (mapped_ms / plain_ms - 1.0);
    uint64_t page_count = s->mapped.handle_count;
    bool holds = percent <= 1.0 || s->g.is_fake;
    finish(s);
    return gpu_report(name, holds,
                      "%+.2f %% time on %llu scattered pages: %.4f ms against %.4f ms on "
                      "cuMemAlloc memory (%.0f %s), medians of %d rounds that take turns",
                      percent, (unsigned long long)page_count, mapped_ms, plain_ms,
                      work / (plain_ms * 1e-3), unit, rounds);
}

static int test(const char *name, runner *run)
{
    static speed s;
    gpu_open(&s.g, NULL, 0);
    if (!s.g.info.can_map) {
        return gpu_not_run(name, s.g.info.why_not);
    }
    uint64_t part_bytes = s.g.is_fake ? 4 * MIB : 1 * GIB;
    start(&s, part_bytes);
    return compare(&s, name, run, 2e-9 * (double)part_bytes, "GB/s");
}

int test_copy(double seconds)
{
    (void)seconds;
    return test("copy", run_copy);
}

int test_gather(double seconds)
{
    (void)seconds;
    return test("gather", run_gather);
}

int test_transpose(double seconds)
{
    (void)seconds;
    return test("transpose", run_transpose);
}

static void *open_blas(void)
{
    const char *names[] = {getenv("UNFRAG_CUBLAS"), "libcublas.so.13", "libcublas.so.12",
                           "libcublas.so.11"};
    void *library = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && library == NULL; i++) {
        library = names[i] != NULL ? dlopen(names[i], RTLD_NOW | RTLD_LOCAL) : NULL;
    }
    return library;
}

int test_gemm(double seconds)
{
    static speed s;
    void *library = open_blas();
    (void)seconds;
    if (library == NULL) {
        return gpu_not_run("gemm", "no libcublas.so; UNFRAG_CUBLAS names it");
    }
    int (*create)(void **blas) = NULL, (*stream_set)(void *blas, void *stream) = NULL;
    *(void **)&create = dlsym(library, "cublasCreate_v2");
    *(void **)&stream_set = dlsym(library, "cublasSetStream_v2");
    *(void **)&s.gemm = dlsym(library, "cublasGemmEx");
    if (create == NULL || stream_set == NULL || s.gemm == NULL) {
        return gpu_not_run("gemm", "libcublas.so has no cublasGemmEx");
    }
    gpu_open(&s.g, NULL, 0);
    if (!s.g.info.can_map || s.g.is_fake) {
        return gpu_not_run("gemm", s.g.is_fake ? "there is no GPU" : s.g.info.why_not);
    }
    start(&s, 256 * MIB);
    gpu_expect(create(&s.blas), "cublasCreate");
    gpu_expect(stream_set(s.blas, s.stream), "cublasSetStream");
    double side = (double)side_of(s.plain.part_bytes / 2);
    return compare(&s, "gemm", run_gemm, 2e-9 * side * side * side, "GFLOP/s");
}
