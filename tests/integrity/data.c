/* SPDX-License-Identifier: MIT
 *
 * data_integrity: seeded random operations on a core over the host device, with every byte checked;
 * with --cuda over the cuda device and the fake driver library, whose memory is a host device's.
 * Kernels fill blocks with a pattern, check it, and write rubbish just before a block is freed;
 * they run late, when the random numbers or a wait say so. No byte may ever be wrong, no rule of
 * the driver broken, and the core is checked after each step. Exit status 0 good, 1 not, 2 wrong
 * usage.
 *
 *   stream   ... fill(A) check(A) rubbish | fill(B) ...     | = A is freed and B allocated by the
 *   queue    <- ran ->|<- still to come                         CPU, long before the kernels run */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <unfrag/cuda.h>
#include <unfrag/host.h>

#include "alloc/core.h"
#include "oracle/rng.h"
#include "unit/fake_gpu.h"

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define GRANULE_BYTES (64 * KIB)
#define LARGE_PAGE_BYTES (1 * MIB)

enum { STREAMS = 3, BLOCKS = 96 };

typedef struct setting {
    const char *name, *conf;
    bool is_paged;
    uint64_t total_bytes, live_bytes; /* of the card; about how much is kept live */
    uint64_t slack_bytes;             /* the limit is so much above what is live */
} setting;

static const setting settings[] = {
    {"torch", "", false, 384 * MIB, 24 * MIB, 64 * MIB},
    {"expandable", "expandable_segments:True", false, 384 * MIB, 24 * MIB, 64 * MIB},
    {"unfrag", "", true, 64 * MIB, 24 * MIB, 3 * MIB},
};
enum { SETTING_COUNT = sizeof settings / sizeof *settings };

typedef struct owner {
    uint32_t block; /* UF_NO_BLOCK = vacant */
    uint32_t stream;
    uint64_t addr, size_bytes;
    uint64_t pattern;
    bool is_shared; /* read by another stream too: not written again */
} owner;

typedef struct world {
    const setting *from;
    uf_host *host;
    uf_cuda *cuda; /* NULL: the host device itself */
    uf_core core;
    rng random;
    uint64_t seed, step;
    bool is_in_flight; /* blocks are freed while their own stream is still at work on them */
    owner owners[BLOCKS];
    uint32_t streams[STREAMS];
    uint32_t pool;
    uint64_t live_bytes, written_bytes, checked_bytes, out_of_memory_count, alloc_count;
    uint64_t wrong_count;
    char wrong[300]; /* the first one */
} world;

typedef struct task {
    world *w;
    uint64_t pattern, step;
} task;

static void fail(world *w, const char *what)
{
    uf_error fault = {UF_OK, "none"};
    (void)uf_host_faults(w->host, &fault);
    (void)printf("%s: seed %" PRIu64 ": step %" PRIu64 ": %s; newest fault: %s\n", w->from->name,
                 w->seed, w->step, what, fault.text);
    exit(1);
}

static uint64_t word_of(uint64_t pattern, uint64_t index)
{
    return (pattern ^ index) * UINT64_C(0x9e3779b97f4a7c15);
}

static void fill(void *context, uint64_t addr, uint64_t size_bytes)
{
    task *t = context;
    uint64_t *words = (uint64_t *)(uintptr_t)addr;
    for (uint64_t i = 0; i < size_bytes / sizeof *words; i++) {
        words[i] = word_of(t->pattern, i);
    }
    t->w->written_bytes += size_bytes;
    free(t);
}

static void check(void *context, uint64_t addr, uint64_t size_bytes)
{
    task *t = context;
    world *w = t->w;
    const uint64_t *words = (const uint64_t *)(uintptr_t)addr;
    for (uint64_t i = 0; i < size_bytes / sizeof *words; i++) {
        if (words[i] != word_of(t->pattern, i) && w->wrong_count++ == 0) {
            (void)snprintf(w->wrong, sizeof w->wrong,
                           "wrong bytes at offset %" PRIu64 " of %" PRIu64 " at 0x%" PRIx64
                           " (checked since step %" PRIu64 ")",
                           i * sizeof *words, size_bytes, addr, t->step);
        }
    }
    w->checked_bytes += size_bytes;
    free(t);
}

static void launch(world *w, uint32_t stream, uf_host_kernel kernel, const owner *o)
{
    task *t = malloc(sizeof *t);
    if (t == NULL) {
        exit(5);
    }
    *t = (task){.w = w, .pattern = o->pattern, .step = w->step};
    if (uf_host_launch(w->host, w->core.streams[stream], kernel, t, o->addr, o->size_bytes) !=
        UF_OK) {
        exit(5);
    }
}

static void run(const world *w, uint32_t stream, uint64_t count)
{
    (void)uf_host_run(w->host, w->core.streams[stream], count);
}

static void expect(world *w, uf_status status, const char *what)
{
    if (status != UF_OK) {
        char text[200];
        (void)snprintf(text, sizeof text, "%s: %s", what, uf_status_name(status));
        fail(w, text);
    }
}

static uint64_t size_choose(world *w)
{
    switch (rng_below(&w->random, 10)) {
    case 0:
    case 1:
        return rng_between(&w->random, 1, 4 * KIB);
    case 2:
    case 3:
    case 4:
        return rng_between(&w->random, 1, 128 * KIB);
    case 5:
    case 6:
    case 7:
        return rng_between(&w->random, 1, MIB);
    default:
        return rng_between(&w->random, MIB, 5 * MIB);
    }
}

static void step_alloc(world *w, owner *o)
{
    uint32_t stream = w->streams[rng_below(&w->random, STREAMS)], block = UF_NO_BLOCK;
    uint32_t pool = rng_below(&w->random, 12) == 0 ? w->pool : UF_DEFAULT_POOL;
    expect(w, uf__core_process(&w->core), "process");
    uf_status status = uf__core_alloc(&w->core, size_choose(w), stream, pool, &block);
    w->alloc_count++;
    if (status == UF_ERROR_OUT_OF_MEMORY) {
        w->out_of_memory_count++;
        return;
    }
    expect(w, status, "alloc");
    const uf_block *got = uf__core_block(&w->core, block);
    *o = (owner){.block = block,
                 .stream = stream,
                 .addr = got->addr,
                 .size_bytes = got->size_bytes,
                 .pattern = rng_next(&w->random)};
    w->live_bytes += o->size_bytes;
    launch(w, stream, fill, o);
}

static void step_free(world *w, owner *o)
{
    if (!o->is_shared) {
        launch(w, o->stream, check, o);
        owner rubbish = *o;
        rubbish.pattern = ~o->pattern;
        launch(w, o->stream, fill, &rubbish);
    }
    if (!w->is_in_flight) {
        run(w, o->stream, UINT64_MAX);
    }
    expect(w, uf__core_free(&w->core, o->block), "free");
    w->live_bytes -= o->size_bytes;
    *o = (owner){0};
}

/* Another stream reads the block, after its own stream has written it. */
static void step_share(world *w, owner *o)
{
    uint32_t other = w->streams[rng_below(&w->random, STREAMS)];
    if (other == o->stream) {
        return;
    }
    run(w, o->stream, UINT64_MAX);
    expect(w, uf__core_use(&w->core, o->block, other), "use");
    launch(w, other, check, o);
    o->is_shared = true;
}

static void step_touch(world *w, owner *o)
{
    launch(w, o->stream, check, o);
    if (!o->is_shared && rng_below(&w->random, 2) == 0) {
        o->pattern = rng_next(&w->random);
        launch(w, o->stream, fill, o);
    }
}

static void step_limit(world *w)
{
    uint64_t active = (uint64_t)uf__counter_all(&w->core.counters, UF_COUNTER_ACTIVE_BYTES);
    uint64_t least = rng_below(&w->random, 2) == 0 ? active : w->from->live_bytes;
    uint64_t slack = rng_below(&w->random, w->from->slack_bytes) + GRANULE_BYTES;
    uf__core_limit_set(&w->core, least + slack);
}

static void step_other(world *w)
{
    switch (rng_below(&w->random, 12)) {
    case 0:
        uf_host_synchronize(w->host);
        break;
    case 1:
        expect(w, uf__core_empty_cache(&w->core), "empty_cache");
        break;
    case 2:
    case 3:
        step_limit(w);
        break;
    default:
        run(w, w->streams[rng_below(&w->random, STREAMS)], rng_below(&w->random, 12));
    }
}

static void step(world *w)
{
    owner *o = &w->owners[rng_below(&w->random, BLOCKS)];
    if (rng_below(&w->random, 4) == 0) {
        step_other(w);
    } else if (o->block == UF_NO_BLOCK) {
        if (w->live_bytes < w->from->live_bytes) {
            step_alloc(w, o);
        }
    } else {
        switch (rng_below(&w->random, w->live_bytes < w->from->live_bytes ? 6 : 3)) {
        case 0:
        case 1:
            step_free(w, o);
            break;
        case 2:
            step_share(w, o);
            break;
        default:
            step_touch(w, o);
        }
    }
}

static void check_world(world *w)
{
    uf_error error = {UF_OK, ""};
    if (uf__core_check(&w->core, &error) != UF_OK) {
        fail(w, error.text);
    }
    if (w->wrong_count != 0) {
        fail(w, w->wrong);
    }
    if (uf_host_faults(w->host, NULL) != 0) {
        fail(w, "a rule of the driver was broken");
    }
}

static uf_status device_create(world *w, bool is_cuda, uf_error *error)
{
    uf_host_options options = {.struct_size_bytes = sizeof options,
                               .total_bytes = w->from->total_bytes,
                               .granularity_bytes = GRANULE_BYTES};
    if (!is_cuda) {
        return uf_host_create(&options, &w->host, error);
    }
    char text[120];
    (void)snprintf(text, sizeof text, "card=fake|%" PRIu64 "|%" PRIu64 ";granule=%" PRIu64,
                   w->from->total_bytes, w->from->total_bytes, GRANULE_BYTES);
    fake_gpu_set(text);
    uf_status status = uf_cuda_create(NULL, &w->cuda, error);
    w->host = status == UF_OK ? fake_gpu_api()->host(0) : NULL;
    return status;
}

static void world_init(world *w, const setting *from, uint64_t seed, bool is_in_flight,
                       bool is_cuda)
{
    memset(w, 0, sizeof *w);
    w->from = from;
    w->seed = seed;
    w->random.state = seed;
    w->is_in_flight = is_in_flight;
    uf_conf conf;
    uf_error error;
    uf__conf_init(&conf);
    if (device_create(w, is_cuda, &error) != UF_OK ||
        uf__conf_parse(&conf, from->conf, UF_CONF_2_11, &error) != UF_OK) {
        (void)printf("%s\n", error.text);
        exit(5);
    }
    uf_core_config config = {.device = is_cuda ? uf_cuda_device(w->cuda) : uf_host_device(w->host),
                             .conf = &conf,
                             .is_paged = from->is_paged,
                             .granule_bytes = GRANULE_BYTES,
                             .large_page_bytes = LARGE_PAGE_BYTES};
    expect(w, uf__core_init(&w->core, &config), "init");
    for (uint32_t i = 0; i < STREAMS; i++) {
        uint64_t handle = i * 7;
        if (is_cuda && i != 0) {
            handle = (uint64_t)(uintptr_t)fake_gpu_stream();
        }
        expect(w, uf__core_stream(&w->core, handle, &w->streams[i]), "stream");
    }
    expect(w, uf__core_pool_create(&w->core, 0, 1, &w->pool), "pool");
    uf__core_pool_retain(&w->core, w->pool);
}

/* All is freed; then nothing may be left on the device. */
static void world_fini(world *w)
{
    for (uint32_t i = 0; i < BLOCKS; i++) {
        if (w->owners[i].block != UF_NO_BLOCK) {
            step_free(w, &w->owners[i]);
        }
    }
    uf_host_synchronize(w->host);
    expect(w, uf__core_process(&w->core), "process");
    check_world(w);
    uf__core_fini(&w->core);
    uf_host_counts counts;
    uf_host_counts_get(w->host, &counts);
    if (counts.in_use_bytes != 0 || counts.range_count != 0 || counts.mapping_count != 0) {
        fail(w, "memory is left on the device");
    }
    if (counts.event_count != 0) {
        fail(w, "events are left on the device");
    }
    (void)printf("%s%s%s: seed %" PRIu64 ": %" PRIu64 " steps, %" PRIu64 " requests, %" PRIu64
                 " out of memory, %" PRIu64 " MiB written, %" PRIu64 " MiB checked, %" PRIu64
                 " handles mapped, %" PRIu64 " waits, all good\n",
                 w->from->name, w->cuda != NULL ? " on cuda" : "",
                 w->is_in_flight ? ", in flight" : "", w->seed, w->step, w->alloc_count,
                 w->out_of_memory_count, w->written_bytes / MIB, w->checked_bytes / MIB,
                 counts.call_counts[UF_HOST_HANDLE_MAP], counts.wait_count);
    if (w->cuda == NULL) {
        uf_host_destroy(w->host);
    } else if (fake_gpu_api()->fault_count(w->wrong, sizeof w->wrong) != 0) {
        fail(w, w->wrong);
    }
    uf_cuda_destroy(w->cuda);
}

static int usage(const char *program)
{
    (void)fprintf(stderr,
                  "usage: %s --setting torch|expandable|unfrag [--seed S] [--count N] "
                  "[--in-flight] [--cuda]\n",
                  program);
    return 2;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"setting", required_argument, NULL, 'S'}, {"seed", required_argument, NULL, 's'},
        {"count", required_argument, NULL, 'n'},   {"in-flight", no_argument, NULL, 'f'},
        {"cuda", no_argument, NULL, 'c'},          {NULL, 0, NULL, 0}};
    static world w;
    const setting *from = NULL;
    uint64_t seed = 1, count = 10000;
    bool is_in_flight = false, is_cuda = false;
    for (int option = 0; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (option == 's') {
            seed = strtoull(optarg, NULL, 0);
        } else if (option == 'n') {
            count = strtoull(optarg, NULL, 0);
        } else if (option == 'f') {
            is_in_flight = true;
        } else if (option == 'c') {
            is_cuda = true;
            fake_gpu_enter(argv);
        } else if (option != 'S') {
            return usage(argv[0]);
        }
        for (size_t i = 0; option == 'S' && i < SETTING_COUNT; i++) {
            from = strcmp(optarg, settings[i].name) == 0 ? &settings[i] : from;
        }
    }
    if (from == NULL || optind < argc) {
        return usage(argv[0]);
    }
    world_init(&w, from, seed, is_in_flight, is_cuda);
    while (w.step < count) {
        w.step++;
        step(&w);
        check_world(&w);
    }
    world_fini(&w);
    return 0;
}
