/* SPDX-License-Identifier: MIT
 *
 * What a call of the public allocator costs, beside malloc in the same run:
 *
 *   alloc_bench [--policy torch|unfrag|malloc] [--case NAME] [--rounds N] [--batch N] [--json]
 *
 * Without options every case is run for both policies and malloc. The device is simulated: what is
 * measured is the host's part. A pair is one allocation and one free. Cases:
 *
 *   hit              one size, always cached
 *   mixed-100 ...    so many blocks of mixed sizes live; a step frees one at random, allocates one
 *   cross            a pair whose block another stream uses too
 *   threads-T        T threads, hits, all on one stream: time over all pairs
 *   streams-T        the same on streams of their own
 *
 * bench/alloc runs it under callgrind for instructions, and writes the table. */
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <unfrag/sim.h>
#include <unfrag/unfrag.h>

enum { SIZE_COUNT = 256, THREAD_MAX = 64, BATCH_MAX = 4096, LIVE_MAX = 100000 };

typedef enum subject_kind { WHO_TORCH, WHO_UNFRAG, WHO_MALLOC, WHO_COUNT } subject_kind;

static const char *const WHO_NAME[WHO_COUNT] = {"torch", "unfrag", "malloc"};

typedef enum case_kind { KIND_HIT, KIND_MIXED, KIND_CROSS, KIND_THREADS, KIND_STREAMS } case_kind;

typedef struct bench_case {
    const char *name;
    case_kind kind;
    uint32_t count; /* live blocks or threads */
} bench_case;

static const bench_case CASES[] = {
    {"hit", KIND_HIT, 1},
    {"mixed-100", KIND_MIXED, 100},
    {"mixed-1000", KIND_MIXED, 1000},
    {"mixed-5000", KIND_MIXED, 5000},
    {"mixed-100000", KIND_MIXED, 100000},
    {"cross", KIND_CROSS, 1},
    {"threads-1", KIND_THREADS, 1},
    {"threads-2", KIND_THREADS, 2},
    {"threads-8", KIND_THREADS, 8},
    {"streams-2", KIND_STREAMS, 2},
    {"streams-8", KIND_STREAMS, 8},
};
enum { CASE_COUNT = sizeof CASES / sizeof CASES[0] };

typedef struct subject {
    subject_kind who;
    uf_sim *sim;
    uf_allocator *allocator;
    uint64_t sizes[SIZE_COUNT];
    uint32_t round_count, batch;
} subject;

static _Noreturn void give_up(const char *what, const uf_error *error)
{
    fprintf(stderr, "alloc_bench: %s: %s\n", what, error->text);
    exit(5);
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline uint32_t draw(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33);
}

/* Device sizes of a mixed program, 512 bytes to `most`, as many small as large ones by logarithm;
 * malloc gets them divided by 4096, so that it stays in its own fast path too. */
static void sizes_init(subject *s, uint64_t most)
{
    uint64_t state = 7;
    for (int i = 0; i < SIZE_COUNT; i++) {
        uint32_t shift = draw(&state) % 18;
        uint64_t bytes =
            (UINT64_C(512) << shift) + (uint64_t)draw(&state) % (UINT64_C(512) << shift);
        bytes = bytes > most ? most : bytes;
        s->sizes[i] = s->who == WHO_MALLOC ? bytes / 4096 + 16 : bytes;
    }
}

static void subject_init(subject *s, subject_kind who, uint64_t most)
{
    s->who = who;
    s->sim = NULL;
    s->allocator = NULL;
    sizes_init(s, most);
    if (who == WHO_MALLOC) {
        return;
    }
    uf_error error = {0};
    uf_sim_options of_sim = {.struct_size_bytes = sizeof of_sim, .total_bytes = UINT64_C(1) << 44};
    if (uf_sim_create(&of_sim, &s->sim, &error) != UF_OK) {
        give_up("device", &error);
    }
    uf_allocator_options options = {
        .struct_size_bytes = sizeof options,
        .device = uf_sim_device(s->sim),
        .policy = who == WHO_UNFRAG ? UF_POLICY_UNFRAG : UF_POLICY_TORCH,
    };
    if (uf_allocator_create(&options, &s->allocator, &error) != UF_OK) {
        give_up("allocator", &error);
    }
}

static void subject_fini(subject *s)
{
    uf_allocator_destroy(s->allocator);
    uf_sim_destroy(s->sim);
}

static inline uint64_t take(const subject *s, uint64_t bytes, uint64_t stream)
{
    if (s->who == WHO_MALLOC) {
        void *memory = malloc(bytes);
        __asm__ volatile("" : : "r"(memory) : "memory");
        return (uint64_t)(uintptr_t)memory;
    }
    uint64_t addr = 0;
    uf_error error;
    if (uf_alloc(s->allocator, bytes, stream, &addr, &error) != UF_OK) {
        give_up("uf_alloc", &error);
    }
    return addr;
}

static inline void give(const subject *s, uint64_t addr)
{
    if (s->who == WHO_MALLOC) {
        free((void *)(uintptr_t)addr);
        return;
    }
    uf_error error;
    if (uf_free(s->allocator, addr, &error) != UF_OK) {
        give_up("uf_free", &error);
    }
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(double *values, uint32_t count, double share)
{
    qsort(values, count, sizeof *values, by_value);
    uint32_t at = (uint32_t)(share * (double)(count - 1) + 0.5);
    return values[at];
}

/* One batch of pairs; returns its nanoseconds a pair. */
typedef struct walk {
    uint64_t state;
    uint64_t *live;
    uint32_t live_count;
} walk;

static double batch_of(subject *s, const bench_case *what, walk *w, uint32_t pairs)
{
    int64_t start = now_ns();
    for (uint32_t i = 0; i < pairs; i++) {
        if (what->kind == KIND_MIXED) {
            uint32_t at = draw(&w->state) % w->live_count;
            give(s, w->live[at]);
            w->live[at] = take(s, s->sizes[draw(&w->state) % SIZE_COUNT], 0);
            continue;
        }
        uint64_t addr = take(s, s->who == WHO_MALLOC ? 512 : UINT64_C(2) << 20, 0);
        if (what->kind == KIND_CROSS && s->who != WHO_MALLOC) {
            uf_error error;
            if (uf_use_on_stream(s->allocator, addr, 64, &error) != UF_OK) {
                give_up("uf_use_on_stream", &error);
            }
        }
        give(s, addr);
        if (what->kind == KIND_CROSS && s->who != WHO_MALLOC) {
            uf_sim_synchronize(s->sim);
        }
    }
    return (double)(now_ns() - start) / pairs;
}

static void alone(subject *s, const bench_case *what, double *median, double *high)
{
    walk w = {.state = 11, .live_count = what->kind == KIND_MIXED ? what->count : 0};
    w.live = calloc(w.live_count + 1u, sizeof *w.live);
    double *times = calloc(s->round_count, sizeof *times);
    if (w.live == NULL || times == NULL) {
        exit(5);
    }
    for (uint32_t i = 0; i < w.live_count; i++) {
        w.live[i] = take(s, s->sizes[draw(&w.state) % SIZE_COUNT], 0);
    }
    (void)batch_of(s, what, &w, 4 * w.live_count + 1000);
    for (uint32_t i = 0; i < s->round_count; i++) {
        times[i] = batch_of(s, what, &w, s->batch);
    }
    *median = quantile(times, s->round_count, 0.5);
    *high = quantile(times, s->round_count, 0.999);
    for (uint32_t i = 0; i < w.live_count; i++) {
        give(s, w.live[i]);
    }
    free(times);
    free(w.live);
}

typedef struct worker {
    const subject *subject;
    pthread_barrier_t *barrier;
    uint64_t stream;
    uint64_t pair_count;
    int64_t start_ns, end_ns;
} worker;

static void *work(void *context)
{
    worker *w = context;
    const subject *s = w->subject;
    pthread_barrier_wait(w->barrier);
    w->start_ns = now_ns();
    for (uint64_t i = 0; i < w->pair_count; i++) {
        give(s, take(s, s->who == WHO_MALLOC ? 512 : UINT64_C(2) << 20, w->stream));
    }
    w->end_ns = now_ns();
    return NULL;
}

static double crowd_once(subject *s, const bench_case *what)
{
    pthread_barrier_t barrier;
    pthread_t threads[THREAD_MAX];
    worker workers[THREAD_MAX];
    pthread_barrier_init(&barrier, NULL, what->count);
    uint64_t pair_count = (uint64_t)s->batch * 16;
    for (uint32_t i = 0; i < what->count; i++) {
        uint64_t stream = what->kind == KIND_STREAMS ? 64 * (i + 1u) : 0;
        workers[i] = (worker){s, &barrier, stream, pair_count, 0, 0};
        give(s, take(s, s->who == WHO_MALLOC ? 512 : UINT64_C(2) << 20, stream));
        if (pthread_create(&threads[i], NULL, work, &workers[i]) != 0) {
            exit(5);
        }
    }
    for (uint32_t i = 0; i < what->count; i++) {
        pthread_join(threads[i], NULL);
    }
    pthread_barrier_destroy(&barrier);
    int64_t start_ns = workers[0].start_ns, end_ns = workers[0].end_ns;
    for (uint32_t i = 1; i < what->count; i++) {
        start_ns = workers[i].start_ns < start_ns ? workers[i].start_ns : start_ns;
        end_ns = workers[i].end_ns > end_ns ? workers[i].end_ns : end_ns;
    }
    return (double)(end_ns - start_ns) / (double)(pair_count * what->count);
}

static void crowd(subject *s, const bench_case *what, double *median, double *high)
{
    double *times = calloc(s->round_count, sizeof *times);
    if (times == NULL) {
        exit(5);
    }
    uint32_t rounds = s->round_count < 25 ? s->round_count : 25;
    for (uint32_t i = 0; i < rounds; i++) {
        times[i] = crowd_once(s, what);
    }
    *median = quantile(times, rounds, 0.5);
    *high = times[rounds - 1];
    free(times);
}

static void run(subject_kind who, const bench_case *what, uint32_t round_count, uint32_t batch,
                bool is_json)
{
    /* 100 000 blocks of the same mix would pass the simulated card's end. */
    uint64_t most = what->count > 10000 ? UINT64_C(8) << 20 : UINT64_C(64) << 20;
    subject s = {.round_count = round_count, .batch = batch};
    subject_init(&s, who, most);
    double median, high;
    if (what->kind == KIND_THREADS || what->kind == KIND_STREAMS) {
        crowd(&s, what, &median, &high);
    } else {
        alone(&s, what, &median, &high);
    }
    subject_fini(&s);
    printf(is_json ? "{\"case\": \"%s\", \"who\": \"%s\", \"median_ns\": %.1f, \"high_ns\": %.1f}\n"
                   : "%-14s %-8s %8.1f ns a pair, %8.1f at worst\n",
           what->name, WHO_NAME[who], median, high);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const char *policy = NULL, *name = NULL;
    uint32_t round_count = 2000, batch = 256;
    bool is_json = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--policy") == 0 && i + 1 < argc) {
            policy = argv[++i];
        } else if (strcmp(argv[i], "--case") == 0 && i + 1 < argc) {
            name = argv[++i];
        } else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc) {
            round_count = (uint32_t)strtoul(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--batch") == 0 && i + 1 < argc) {
            batch = (uint32_t)strtoul(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--json") == 0) {
            is_json = true;
        } else {
            round_count = 0;
        }
    }
    if (round_count == 0 || batch == 0) {
        fprintf(stderr, "usage: alloc_bench [--policy torch|unfrag|malloc] [--case NAME] "
                        "[--rounds N] [--batch N] [--json]\n");
        return 2;
    }
    for (int c = 0; c < CASE_COUNT; c++) {
        for (int w = 0; w < WHO_COUNT; w++) {
            bool is_wanted = (name == NULL || strcmp(name, CASES[c].name) == 0) &&
                             (policy == NULL || strcmp(policy, WHO_NAME[w]) == 0);
            if (is_wanted) {
                run((subject_kind)w, &CASES[c], round_count, batch, is_json);
            }
        }
    }
    return 0;
}
