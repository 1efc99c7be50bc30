/* SPDX-License-Identifier: MIT
 *
 * paged_ops: seeded random operations on the core under the `unfrag` policy, judged after each step
 * by the ledger (what the device was asked for) and the naive oracle. Prints the seed. Exit status
 * 0 all good, 1 not, 2 wrong usage. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <unfrag/host.h>

#include "alloc/core.h"
#include "alloc/trim.h"
#include "device/sim.h"
#include "oracle/ledger.h"
#include "oracle/paged_oracle.h"
#include "oracle/rng.h"

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

enum { STREAMS = 3, SLOTS = 120, POOLS = 3, OTHERS = 4 };

typedef struct setting {
    const char *name;
    bool is_host;
    uint64_t granule_bytes, large_bytes, total_bytes;
    uint64_t live_bytes, max_bytes; /* about what is kept live; the largest request but for a few */
    bool has_limits;                /* they change, mostly to slightly above what is live */
    bool has_pools, has_captures;   /* private pools; redirections into them */
    bool has_others;                /* others take memory of the device */
    uint64_t headroom_bytes;        /* left to them */
    bool has_caches;                /* memory is reserved, trimmed and collected */
    bool is_laggard;                /* streams get their work done seldom */
} setting;

static const setting settings[] = {
    {.name = "plain",
     .granule_bytes = 2 * MIB,
     .large_bytes = 32 * MIB,
     .total_bytes = 4 * GIB,
     .live_bytes = 3 * GIB,
     .max_bytes = 400 * MIB},
    {.name = "limits",
     .granule_bytes = 2 * MIB,
     .large_bytes = 32 * MIB,
     .total_bytes = 8 * GIB,
     .live_bytes = 2 * GIB,
     .max_bytes = 400 * MIB,
     .has_limits = true},
    {.name = "laggard",
     .granule_bytes = 2 * MIB,
     .large_bytes = 32 * MIB,
     .total_bytes = 8 * GIB,
     .live_bytes = 2 * GIB,
     .max_bytes = 200 * MIB,
     .has_limits = true,
     .is_laggard = true},
    {.name = "pools",
     .granule_bytes = 2 * MIB,
     .large_bytes = 32 * MIB,
     .total_bytes = 8 * GIB,
     .live_bytes = 2 * GIB,
     .max_bytes = 200 * MIB,
     .has_limits = true,
     .has_pools = true},
    {.name = "captures",
     .granule_bytes = 2 * MIB,
     .large_bytes = 32 * MIB,
     .total_bytes = 8 * GIB,
     .live_bytes = 2 * GIB,
     .max_bytes = 200 * MIB,
     .has_limits = true,
     .has_pools = true,
     .has_captures = true},
    {.name = "others",
     .granule_bytes = 2 * MIB,
     .large_bytes = 16 * MIB,
     .total_bytes = 3 * GIB,
     .live_bytes = 2 * GIB,
     .max_bytes = 300 * MIB,
     .has_others = true},
    {.name = "caches",
     .granule_bytes = 2 * MIB,
     .large_bytes = 16 * MIB,
     .total_bytes = 3 * GIB,
     .live_bytes = 2 * GIB,
     .max_bytes = 200 * MIB,
     .headroom_bytes = 256 * MIB,
     .has_limits = true,
     .has_pools = true,
     .has_others = true,
     .has_caches = true},
    {.name = "tiny",
     .granule_bytes = 2 * MIB,
     .large_bytes = 4 * MIB,
     .total_bytes = 1 * GIB,
     .live_bytes = 48 * MIB,
     .max_bytes = 20 * MIB,
     .has_limits = true,
     .has_pools = true},
    {.name = "host",
     .is_host = true,
     .granule_bytes = 64 * KIB,
     .large_bytes = 1 * MIB,
     .total_bytes = 64 * MIB,
     .live_bytes = 24 * MIB,
     .max_bytes = 8 * MIB,
     .has_limits = true,
     .has_pools = true,
     .has_others = true},
};
enum { SETTING_COUNT = sizeof settings / sizeof *settings };

typedef struct slot {
    uint32_t block; /* UF_NO_BLOCK = vacant */
    uint32_t stream;
    uint64_t addr, size_bytes;
} slot;

typedef struct pool {
    uint32_t index, number; /* in the core; in tags, 0 = there is none */
} pool;

typedef struct world {
    const setting *from;
    uint64_t seed, step, check_every;
    bool is_told; /* prints each operation */
    rng random;
    uf_sim sim;
    uf_host *host;
    const uf_device *below;
    ledger books;
    paged_oracle judge;
    uf_core core;
    slot slots[SLOTS];
    pool pools[POOLS];
    uint32_t pool_count; /* numbers given so far */
    uint32_t redirected; /* 1 + index into pools, 0 = none */
    uint64_t other_addr[OTHERS], other_bytes[OTHERS];
    uint64_t held_bytes; /* before the request under way */
    uf_collector collector;
    uint64_t live_bytes, request_count, refused_count;
} world;

static void fail(const world *w, const char *what)
{
    uf_error fault = {UF_OK, "none"};
    if (w->host != NULL) {
        (void)uf_host_faults(w->host, &fault);
    }
    (void)printf("%s: seed %" PRIu64 ": step %" PRIu64 ": %s (fault of the device: %s)\n",
                 w->from->name, w->seed, w->step, what, fault.text);
    exit(1);
}

static void expect(const world *w, uf_status status, const char *what)
{
    if (status != UF_OK) {
        char text[120];
        (void)snprintf(text, sizeof text, "%s: %s", what, uf_status_name(status));
        fail(w, text);
    }
}

#define TELL(w, ...)                   \
    do {                               \
        if ((w)->is_told) {            \
            (void)printf(__VA_ARGS__); \
        }                              \
    } while (0)

/* What the device can hand out to us at most. */
static uint64_t bound_bytes(const world *w)
{
    uint64_t capacity = w->from->total_bytes;
    for (int i = 0; i < OTHERS; i++) {
        capacity -= w->other_bytes[i];
    }
    capacity -= capacity < w->from->headroom_bytes ? capacity : w->from->headroom_bytes;
    if (w->from->headroom_bytes != 0 && capacity < w->held_bytes) {
        capacity = w->held_bytes; /* others took of the headroom; what was held may be used */
    }
    return capacity < w->core.limit_bytes ? capacity : w->core.limit_bytes;
}

static void check(world *w, bool is_whole)
{
    uf_error error = {UF_OK, ""};
    if (is_whole && uf__core_check(&w->core, &error) != UF_OK) {
        fail(w, error.text);
    }
    if (is_whole) {
        paged_oracle_check(&w->judge, w->core.total_bytes);
    } else {
        paged_oracle_check_sums(&w->judge, w->core.total_bytes);
    }
    if (w->host != NULL && uf_host_faults(w->host, NULL) != 0) {
        fail(w, "a rule of the driver was broken");
    }
    if (w->books.broken[0] != '\0') {
        fail(w, w->books.broken);
    }
}

static uint64_t size_choose(world *w)
{
    switch (rng_below(&w->random, 12)) {
    case 0:
    case 1:
        return rng_between(&w->random, 0, 4 * KIB);
    case 2:
    case 3:
    case 4:
        return rng_between(&w->random, 1, MIB);
    case 5:
        return rng_between(&w->random, 1, 8) * w->from->granule_bytes;
    case 6:
        return rng_between(&w->random, 1, 4) * w->from->large_bytes;
    case 7:
        return rng_between(&w->random, w->from->max_bytes, 3 * w->from->max_bytes);
    default:
        return rng_between(&w->random, w->from->granule_bytes / 2,
                           rng_between(&w->random, w->from->granule_bytes, w->from->max_bytes));
    }
}

/* The judge must know what is asked before the core asks the device. */
static void tag_set(world *w, uint32_t number, uint32_t stream, uint64_t bytes)
{
    w->books.tag = (ledger_tag){.pool = number, .stream = stream, .is_large = bytes > MIB};
}

static void step_alloc(world *w, slot *s)
{
    uint64_t bytes = size_choose(w);
    uint32_t stream = (uint32_t)rng_below(&w->random, STREAMS);
    uint32_t i = (uint32_t)rng_below(&w->random, POOLS), block = UF_NO_BLOCK;
    bool is_private = w->pools[i].number != 0 && rng_below(&w->random, 4) == 0;
    if (w->redirected != 0 && rng_below(&w->random, 4) != 0) {
        i = w->redirected - 1;
        is_private = true;
    }
    w->held_bytes = w->books.held_bytes;
    tag_set(w, is_private ? w->pools[i].number : 0, stream, bytes);
    expect(w, uf__core_process(&w->core), "process");
    uf_status status = uf__core_alloc(&w->core, bytes, stream,
                                      is_private ? w->pools[i].index : UF_DEFAULT_POOL, &block);
    TELL(w, "%" PRIu64 ": alloc %" PRIu64 " on stream %u in pool %u: %s\n", w->step, bytes, stream,
         w->books.tag.pool, uf_status_name(status));
    w->request_count++;
    if (status == UF_ERROR_OUT_OF_MEMORY) {
        w->refused_count++;
        check(w, w->step % w->check_every == 0);
        if (w->redirected == 0) {
            paged_oracle_refused(&w->judge, bytes, bound_bytes(w));
        }
        return;
    }
    expect(w, status, "alloc");
    const uf_block *got = uf__core_block(&w->core, block);
    *s = (slot){.block = block, .stream = stream, .addr = got->addr, .size_bytes = got->size_bytes};
    w->live_bytes += s->size_bytes;
}

static void nothing(void *context, uint64_t addr, uint64_t size_bytes)
{
    (void)context;
    (void)addr;
    (void)size_bytes;
}

static void step_free(world *w, slot *s)
{
    if (w->host != NULL &&
        uf_host_launch(w->host, s->stream, nothing, NULL, s->addr, s->size_bytes) != UF_OK) {
        exit(5);
    }
    TELL(w, "%" PRIu64 ": free %" PRIu64 " at 0x%" PRIx64 " of stream %u\n", w->step, s->size_bytes,
         s->addr, s->stream);
    expect(w, uf__core_free(&w->core, s->block), "free");
    w->live_bytes -= s->size_bytes;
    *s = (slot){0};
}

static void synchronize(world *w)
{
    TELL(w, "%" PRIu64 ": synchronize\n", w->step);
    if (w->host != NULL) {
        uf_host_synchronize(w->host);
    } else {
        uf__sim_synchronize(&w->sim);
    }
    ledger_synchronize(&w->books);
}

static void step_limit(world *w)
{
    uint64_t limit = UF_UNLIMITED;
    switch (rng_below(&w->random, 8)) {
    case 0:
        break;
    case 1:
        limit = rng_below(&w->random, w->from->live_bytes);
        break;
    case 2:
    case 3:
        limit = w->from->live_bytes + rng_below(&w->random, w->from->max_bytes);
        break;
    default: /* about what the pages in use take */
        limit = w->judge.active_bytes + w->judge.frozen_bytes +
                rng_below(&w->random, 16) * w->from->granule_bytes;
    }
    TELL(w, "%" PRIu64 ": limit %" PRIu64 "\n", w->step, limit);
    uf__core_limit_set(&w->core, limit);
    w->books.limit_bytes = limit == UF_UNLIMITED ? UINT64_MAX : limit;
}

static void step_pool(world *w)
{
    uint32_t i = (uint32_t)rng_below(&w->random, POOLS);
    pool *p = &w->pools[i];
    if (w->redirected == i + 1) {
        return;
    }
    if (p->number == 0) {
        if (w->pool_count + 1 < ORACLE_POOLS) {
            p->number = ++w->pool_count;
            expect(w, uf__core_pool_create(&w->core, 0, p->number, &p->index), "pool");
            w->judge.is_frozen[p->number] = true;
            TELL(w, "%" PRIu64 ": pool %u\n", w->step, p->number);
        }
        return;
    }
    TELL(w, "%" PRIu64 ": pool %u dies\n", w->step, p->number);
    uf__core_pool_release(&w->core, p->index);
    w->judge.is_frozen[p->number] = false;
    if (w->redirected == 0 && rng_below(&w->random, 2) == 0) {
        expect(w, uf__core_pool_flush(&w->core, p->index), "flush of a pool");
    }
    *p = (pool){0};
}

static void step_capture(world *w)
{
    if (w->redirected != 0) {
        TELL(w, "%" PRIu64 ": redirection ends\n", w->step);
        expect(w, uf__core_redirect_end(&w->core, w->pools[w->redirected - 1].index), "end");
        uf__core_pool_release(&w->core, w->pools[w->redirected - 1].index); /* begin retained it */
        w->redirected = 0;
        return;
    }
    uint32_t i = (uint32_t)rng_below(&w->random, POOLS);
    if (w->pools[i].number != 0) {
        TELL(w, "%" PRIu64 ": redirection into pool %u\n", w->step, w->pools[i].number);
        expect(w, uf__core_redirect_begin(&w->core, w->pools[i].index), "begin");
        w->redirected = i + 1;
    }
}

static void step_others(world *w)
{
    int i = (int)rng_below(&w->random, OTHERS);
    const uf_device *d = w->below;
    if (w->other_bytes[i] != 0) {
        TELL(w, "%" PRIu64 ": others give %" PRIu64 "\n", w->step, w->other_bytes[i]);
        expect(w, d->segment_destroy(d->context, w->other_addr[i], w->other_bytes[i]), "others");
        w->other_bytes[i] = 0;
        if (w->host != NULL) {
            ledger_synchronize(&w->books);
        }
        return;
    }
    uint64_t bytes = rng_between(&w->random, 1, w->from->total_bytes / 8);
    if (d->segment_create(d->context, bytes, 0, &w->other_addr[i]) == UF_OK) {
        TELL(w, "%" PRIu64 ": others take %" PRIu64 "\n", w->step, bytes);
        w->other_bytes[i] = bytes;
    }
}

static void step_reserve(world *w)
{
    uint64_t bytes = size_choose(w);
    uint32_t stream = (uint32_t)rng_below(&w->random, STREAMS);
    tag_set(w, 0, stream, bytes);
    uf_status status = uf__core_reserve(&w->core, bytes, stream, UF_DEFAULT_POOL);
    TELL(w, "%" PRIu64 ": reserve %" PRIu64 " on stream %u: %s\n", w->step, bytes, stream,
         uf_status_name(status));
    if (status == UF_ERROR_OUT_OF_MEMORY) {
        return;
    }
    expect(w, status, "reserve");
    /* The pages at its ends may be those of its neighbours. */
    if (uf__trim_cached_bytes(&w->core) + 2 * w->from->granule_bytes < bytes) {
        fail(w, "less is cached than was reserved");
    }
}

static void step_trim(world *w)
{
    uint64_t cached = uf__trim_cached_bytes(&w->core), released = 0, keep;
    keep = rng_below(&w->random, 4) == 0 ? 0 : rng_below(&w->random, cached + 1);
    TELL(w, "%" PRIu64 ": trim to %" PRIu64 "\n", w->step, keep);
    expect(w, uf__trim(&w->core, keep, &released), "trim");
    uint64_t rest = uf__trim_cached_bytes(&w->core);
    if (cached - released != rest) {
        fail(w, "what was trimmed is not what is missing");
    }
    if (w->redirected == 0 && rest > keep) {
        fail(w, "more is cached than was to be kept");
    }
    if (released != 0 && keep > rest + w->from->large_bytes) {
        fail(w, "more was given back than had to be");
    }
}

static void step_cache(world *w)
{
    switch (rng_below(&w->random, 4)) {
    case 0:
        step_trim(w);
        break;
    case 1:
        expect(w, uf__collect(&w->core, &w->collector), "collect");
        break;
    default:
        if (w->redirected == 0) {
            step_reserve(w);
        }
    }
}

static void step_other(world *w)
{
    const setting *from = w->from;
    if (from->has_caches && rng_below(&w->random, 3) == 0) {
        step_cache(w);
        return;
    }
    switch (rng_below(&w->random, 20)) {
    case 0:
        if (w->redirected == 0) {
            TELL(w, "%" PRIu64 ": empty_cache\n", w->step);
            expect(w, uf__core_empty_cache(&w->core), "empty_cache");
        }
        break;
    case 1:
    case 2:
        if (from->has_pools) {
            step_pool(w);
        }
        break;
    case 3:
    case 4:
        if (from->has_captures) {
            step_capture(w);
        }
        break;
    case 5:
    case 6:
        if (from->has_others) {
            step_others(w);
        }
        break;
    case 7:
    case 8:
    case 9:
    case 10:
        if (from->has_limits) {
            step_limit(w);
        }
        break;
    default:
        if (!from->is_laggard || rng_below(&w->random, 20) == 0) {
            synchronize(w);
        }
    }
}

static void step(world *w)
{
    slot *s = &w->slots[rng_below(&w->random, SLOTS)];
    uint64_t choice = rng_below(&w->random, 100);
    if (choice < 12) {
        step_other(w);
    } else if (s->block == UF_NO_BLOCK) {
        if (w->live_bytes < w->from->live_bytes) {
            step_alloc(w, s);
        }
    } else if (choice < 24) {
        uint32_t other = (uint32_t)rng_below(&w->random, STREAMS);
        TELL(w, "%" PRIu64 ": use 0x%" PRIx64 " on stream %u\n", w->step, s->addr, other);
        expect(w, uf__core_use(&w->core, s->block, other), "use");
    } else if (choice < 50 || w->live_bytes >= w->from->live_bytes) {
        step_free(w, s);
    }
}

static void world_init(world *w, const setting *from, uint64_t seed, bool is_told)
{
    memset(w, 0, sizeof *w);
    w->from = from;
    w->seed = seed;
    w->is_told = is_told;
    w->random.state = seed;
    w->collector.rule.after_frees = 40;
    uf__sim_init(&w->sim, from->total_bytes, 0);
    w->below = &w->sim.device;
    if (from->is_host) {
        uf_host_options options = {.struct_size_bytes = sizeof options,
                                   .total_bytes = from->total_bytes,
                                   .granularity_bytes = from->granule_bytes};
        expect(w, uf_host_create(&options, &w->host, NULL), "host");
        w->below = uf_host_device(w->host);
    }
    ledger_init(&w->books, w->below, from->granule_bytes);
    paged_oracle_init(&w->judge, &w->books);
    uf_core_config config = {.device = &w->books.device,
                             .is_paged = true,
                             .is_every_stream_watched = seed % 3 == 0,
                             .is_limit_spared = seed % 2 == 0,
                             .granule_bytes = from->granule_bytes,
                             .large_page_bytes = from->large_bytes,
                             .headroom_bytes = from->headroom_bytes,
                             .event_hook = paged_oracle_event,
                             .event_context = &w->judge};
    expect(w, uf__core_init(&w->core, &config), "init");
    for (uint32_t i = 0; i < STREAMS; i++) {
        uint32_t stream = 0;
        expect(w, uf__core_stream(&w->core, i, &stream), "stream");
        w->books.stream_of[i] = i;
    }
    w->books.stream_count = STREAMS;
}

/* All is freed; then nothing may be left on the device. */
static void world_fini(world *w)
{
    uint64_t free_bytes = 0, total_bytes = 0;
    if (w->redirected != 0) {
        step_capture(w);
    }
    for (int i = 0; i < SLOTS; i++) {
        if (w->slots[i].block != UF_NO_BLOCK) {
            step_free(w, &w->slots[i]);
        }
    }
    for (int i = 0; i < OTHERS; i++) {
        if (w->other_bytes[i] != 0) {
            expect(
                w,
                w->below->segment_destroy(w->below->context, w->other_addr[i], w->other_bytes[i]),
                "others");
        }
    }
    expect(w, uf__core_process(&w->core), "process");
    check(w, true);
    w->books.is_ending = true;
    uf__core_fini(&w->core);
    expect(w, w->below->memory_info(w->below->context, &free_bytes, &total_bytes), "info");
    if (w->books.held_bytes != 0 || free_bytes != total_bytes || w->books.broken[0] != '\0') {
        fail(w, w->books.broken[0] != '\0' ? w->books.broken : "memory is left on the device");
    }
    (void)printf("%s: seed %" PRIu64 ": %" PRIu64 " operations, %" PRIu64 " requests, %" PRIu64
                 " refused, the closest %" PRIu64 " KiB beyond the limit; %" PRIu64
                 " pages unmapped, all good\n",
                 w->from->name, w->seed, w->step, w->request_count, w->refused_count,
                 w->refused_count == 0 ? 0 : w->judge.least_slack_bytes / KIB,
                 w->books.unmap_count);
    ledger_fini(&w->books);
    uf_host_destroy(w->host);
}

static int usage(const char *program)
{
    (void)fprintf(stderr,
                  "usage: %s [--setting NAME] [--seed S] [--count N] [--check-every K] [--list] "
                  "[--tell]\nWithout --setting all are run. Everything is compared after each "
                  "K-th operation (1), what\nan operation changes after each.\n",
                  program);
    return 2;
}

static bool number_parse(const char *text, uint64_t *number)
{
    char *end = NULL;
    *number = strtoull(text, &end, 0);
    return *text != '\0' && *text != '-' && *end == '\0';
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"setting", required_argument, NULL, 'S'},
                                            {"seed", required_argument, NULL, 's'},
                                            {"count", required_argument, NULL, 'n'},
                                            {"check-every", required_argument, NULL, 'k'},
                                            {"list", no_argument, NULL, 'L'},
                                            {"tell", no_argument, NULL, 't'},
                                            {NULL, 0, NULL, 0}};
    static world w;
    const char *name = NULL;
    uint64_t seed = 1, count = 20000, every = 1;
    bool is_listing = false, is_told = false, has_run = false, is_good = true;
    for (int option = 0; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        is_good = is_good && option != '?' && (option != 's' || number_parse(optarg, &seed)) &&
                  (option != 'n' || number_parse(optarg, &count)) &&
                  (option != 'k' || (number_parse(optarg, &every) && every != 0));
        name = option == 'S' ? optarg : name;
        is_listing = is_listing || option == 'L';
        is_told = is_told || option == 't';
    }
    for (size_t i = 0; is_good && i < SETTING_COUNT; i++) {
        if (is_listing) {
            (void)printf("%s\n", settings[i].name);
        } else if (name == NULL || strcmp(name, settings[i].name) == 0) {
            world_init(&w, &settings[i], seed, is_told);
            w.check_every = every;
            while (w.step < count) {
                w.step++;
                step(&w);
                check(&w, w.step % every == 0);
            }
            world_fini(&w);
            has_run = true;
        }
    }
    return optind == argc && is_good && (has_run || is_listing) ? 0 : usage(argv[0]);
}
