/* SPDX-License-Identifier: MIT
 *
 * What a monitor costs the allocator that it watches: monitor_bench [LIVE_BLOCKS [ROUNDS]].
 *
 * Rounds without and with a monitor (4 samples a second) take turns; a step frees one block of
 * LIVE_BLOCKS (default 5000) and allocates another. It prints the medians of nanoseconds a step,
 * their ratio, and what one sample takes, rows included. Under callgrind with
 * --toggle-collect=uf_monitor_publish the instructions of the samples are counted. */
#include <unfrag/monitor.h>
#include <unfrag/sim.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { STEPS = 500000, SAMPLES = 200, ROUNDS_MAX = 99 };

static int64_t now_ns(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void require(uf_status status, const uf_error *error)
{
    if (status != UF_OK) {
        fprintf(stderr, "monitor_bench: %s\n", error->text);
        exit(1);
    }
}

static uint64_t take(uf_allocator *allocator, uint64_t *state)
{
    uint64_t addr = 0;
    uf_error error = {0};
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    require(uf_alloc(allocator, ((*state >> 33) % 8192 + 1) * 512, 0, &addr, &error), &error);
    return addr;
}

static double run_steps(uf_allocator *allocator, uint64_t *blocks, int count, uint64_t *state)
{
    uf_error error = {0};
    int64_t start_ns = now_ns();
    for (int i = 0; i < STEPS; i++) {
        int at = (int)((*state >> 20) % (uint64_t)count);
        require(uf_free(allocator, blocks[at], &error), &error);
        blocks[at] = take(allocator, state);
    }
    return (double)(now_ns() - start_ns) / STEPS;
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count / 2];
}

static uf_monitor *watch(uf_allocator *allocator, bool is_manual)
{
    uf_error error = {0};
    uf_monitor *monitor = NULL;
    const uf_monitor_options options = {
        .struct_size_bytes = sizeof options, .allocator = allocator, .is_manual = is_manual};
    require(uf_monitor_open(&options, &monitor, &error), &error);
    return monitor;
}

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 5000, rounds = argc > 2 ? atoi(argv[2]) : 11;
    double alone[ROUNDS_MAX], watched[ROUNDS_MAX];
    uint64_t state = 1;
    uf_error error = {0};
    uf_sim *sim = NULL;
    uf_allocator *allocator = NULL;
    uint64_t *blocks = calloc((size_t)(count > 0 ? count : 1), sizeof *blocks);
    if (count < 1 || rounds < 1 || rounds > ROUNDS_MAX || blocks == NULL) {
        fputs("monitor_bench [LIVE_BLOCKS [ROUNDS]]\n", stderr);
        return 2;
    }
    const uf_sim_options memory = {.struct_size_bytes = sizeof memory,
                                   .total_bytes = UINT64_C(1) << 42};
    require(uf_sim_create(&memory, &sim, &error), &error);
    const uf_allocator_options options = {.struct_size_bytes = sizeof options,
                                          .device = uf_sim_device(sim)};
    require(uf_allocator_create(&options, &allocator, &error), &error);
    for (int i = 0; i < count; i++) {
        blocks[i] = take(allocator, &state);
    }
    (void)run_steps(allocator, blocks, count, &state);
    for (int i = 0; i < rounds; i++) {
        alone[i] = run_steps(allocator, blocks, count, &state);
        uf_monitor *monitor = watch(allocator, false);
        watched[i] = run_steps(allocator, blocks, count, &state);
        uf_monitor_close(monitor);
    }
    uf_monitor *monitor = watch(allocator, true);
    int64_t start_ns = now_ns();
    for (int i = 0; i < SAMPLES; i++) {
        require(uf_monitor_publish(monitor, &error), &error);
    }
    double sample_us = (double)(now_ns() - start_ns) / SAMPLES / 1000.0;
    uf_monitor_close(monitor);
    double alone_ns = median(alone, rounds), watched_ns = median(watched, rounds);
    printf("%d live blocks: %.1f ns a step alone, %.1f ns watched (%+.2f %%); %.1f us a sample\n",
           count, alone_ns, watched_ns, 100.0 * (watched_ns / alone_ns - 1.0), sample_us);
    uf_allocator_destroy(allocator);
    uf_sim_destroy(sim);
    free(blocks);
    return 0;
}
