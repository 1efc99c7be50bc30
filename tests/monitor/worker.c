/* SPDX-License-Identifier: MIT
 *
 * A process to watch: an allocator on the simulated device, or on host memory, with its monitor on.
 *
 *   monitor_worker KIND SECONDS [COMMAND]
 *
 * KIND: steady (a training step over and over), growing (keeps a little more each step),
 * fragmented (frees every other block), unfrag (moves pages), idle. It prints "ready" when its page
 * is there, and ends after SECONDS or when its standard input closes. */
#include <unfrag/host.h>
#include <unfrag/monitor.h>
#include <unfrag/sim.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const uint64_t MIB = UINT64_C(1) << 20;

enum { BLOCK_COUNT = 512 };

typedef struct worker {
    uf_allocator *allocator;
    uint64_t blocks[BLOCK_COUNT];
    int count;
} worker;

static void die(const char *what, const uf_error *error)
{
    fprintf(stderr, "monitor_worker: %s: %s\n", what, error->text);
    exit(1);
}

static bool take(worker *one, uint64_t bytes, uint64_t stream)
{
    uint64_t addr;
    if (one->count == BLOCK_COUNT ||
        uf_alloc(one->allocator, bytes, stream, &addr, NULL) != UF_OK) {
        return false;
    }
    one->blocks[one->count++] = addr;
    return true;
}

static void give(worker *one, int index)
{
    uf_error error = {0};
    if (uf_free(one->allocator, one->blocks[index], &error) != UF_OK) {
        die("free", &error);
    }
    one->blocks[index] = one->blocks[--one->count];
}

static void prepare(worker *one, const char *kind)
{
    for (uint64_t i = 0; i < 4; i++) {
        (void)take(one, (20 + 10 * i) * MIB, i % 2 * 7);
    }
    if (strcmp(kind, "fragmented") == 0 || strcmp(kind, "unfrag") == 0) {
        for (int i = 0; i < 64; i++) {
            (void)take(one, 8 * MIB, 0);
        }
        for (int i = one->count - 2; i >= 4; i -= 2) {
            give(one, i);
        }
    }
    if (strcmp(kind, "steady") == 0) {
        uint64_t pool;
        if (uf_pool_create(one->allocator, NULL, &pool, NULL) == UF_OK &&
            uf_pool_begin(one->allocator, pool, NULL) == UF_OK) {
            (void)take(one, 30 * MIB, 7);
            (void)!uf_pool_end(one->allocator, pool, NULL);
        }
    }
}

static void step(worker *one, const char *kind)
{
    if (strcmp(kind, "idle") == 0 || strcmp(kind, "fragmented") == 0) {
        return;
    }
    int kept = one->count;
    for (uint64_t i = 0; i < 20; i++) {
        (void)take(one, (1 + i % 5) * MIB, 0);
    }
    while (one->count > kept) {
        give(one, one->count - 1);
    }
    if (strcmp(kind, "growing") == 0) {
        (void)take(one, MIB / 2, 0);
    }
    if (strcmp(kind, "unfrag") == 0 && take(one, 40 * MIB, 0)) {
        give(one, one->count - 1);
    }
}

/* False when standard input was closed. */
static bool wait_a_little(void)
{
    struct pollfd input = {.fd = 0, .events = POLLIN};
    return poll(&input, 1, 50) == 0;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fputs("monitor_worker KIND SECONDS [COMMAND]\n", stderr);
        return 2;
    }
    uf_error error = {0};
    worker one = {0};
    uf_sim *sim = NULL;
    uf_host *host = NULL;
    bool is_unfrag = strcmp(argv[1], "unfrag") == 0;
    const uf_sim_options sim_options = {.struct_size_bytes = sizeof sim_options,
                                        .total_bytes = 24576 * MIB};
    if ((is_unfrag ? uf_host_create(NULL, &host, &error)
                   : uf_sim_create(&sim_options, &sim, &error)) != UF_OK) {
        die("device", &error);
    }
    const uf_allocator_options options = {.struct_size_bytes = sizeof options,
                                          .device =
                                              is_unfrag ? uf_host_device(host) : uf_sim_device(sim),
                                          .policy = is_unfrag ? UF_POLICY_UNFRAG : UF_POLICY_TORCH,
                                          .limit_bytes = is_unfrag ? 460 * MIB : 0};
    if (uf_allocator_create(&options, &one.allocator, &error) != UF_OK) {
        die("allocator", &error);
    }
    uf_monitor *monitor = NULL;
    const uf_monitor_options watched = {.struct_size_bytes = sizeof watched,
                                        .allocator = one.allocator,
                                        .command = argc > 3 ? argv[3] : NULL,
                                        .device_name = is_unfrag ? "host memory" : "simulated",
                                        .interval_ms = 100};
    prepare(&one, argv[1]);
    if (uf_monitor_open(&watched, &monitor, &error) != UF_OK) {
        die("monitor", &error);
    }
    puts("ready");
    fflush(stdout);
    time_t end = time(NULL) + atoi(argv[2]);
    while (time(NULL) < end && wait_a_little()) {
        step(&one, argv[1]);
    }
    uf_monitor_close(monitor);
    uf_allocator_destroy(one.allocator);
    uf_sim_destroy(sim);
    uf_host_destroy(host);
    return 0;
}
