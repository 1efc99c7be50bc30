/* SPDX-License-Identifier: MIT
 *
 * every_call: whole lives of an allocator on the cuda device, over the fake driver library, in each
 * of which one driver call fails: every call of every kind in turn, once, and from then on for
 * ever. After each step uf_check must be content, every byte of live blocks as it was written, and
 * what the driver handed out must equal what the allocator and the device say they hold. When a
 * call has failed once, the same request must succeed at the second try, and in the end nothing may
 * be left. Exit status 0 good, 1 not, 2 wrong usage.
 *
 *     every_call --setting NAME [--every N] [--first N]      each N-th call only, from the first */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <unfrag/cuda.h>
#include <unfrag/pool.h>
#include <unfrag/unfrag.h>

#include "unit/fake_gpu.h"

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)

enum { STREAMS = 3, BLOCKS = 24, OUT_OF_MEMORY = 2, UNKNOWN = 999 };

typedef struct setting {
    const char *name, *conf, *card;
    uf_policy policy;
    uint64_t limit_bytes, tight_bytes;
} setting;

static const setting settings[] = {
    {"plain", "", "card=fake|134217728|134217728|novmm", UF_POLICY_TORCH, 80 * MIB, 44 * MIB},
    {"torch", "max_split_size_mb:20,garbage_collection_threshold:0.6", "card=fake|134217728",
     UF_POLICY_TORCH, 80 * MIB, 44 * MIB},
    {"expandable", "expandable_segments:True,large_segment_size_mb:12",
     "card=fake|134217728;granule=65536|2097152", UF_POLICY_TORCH, 100 * MIB, 50 * MIB},
    {"unfrag", "", "card=fake|67108864;granule=65536|65536;pace=3", UF_POLICY_UNFRAG, 24 * MIB,
     9 * MIB},
    {"unfrag-others", "", "card=fake|16777216;granule=16384|65536;others=6291456", UF_POLICY_UNFRAG,
     0, 9 * MIB},
};
enum { SETTING_COUNT = sizeof settings / sizeof *settings };

typedef struct owner {
    uint64_t addr, bytes; /* addr 0: none */
    uint32_t pattern;
} owner;

typedef struct life {
    const setting *from;
    const fake_api *fake;
    uf_cuda *cuda;
    uf_allocator *allocator;
    void *streams[STREAMS];
    owner owners[BLOCKS];
    uint64_t pool_id;
    bool has_pool;
    /* What fails: call NULL = nothing. */
    const char *call;
    uint64_t at;
    bool is_lasting;
    int result;
    uint32_t step, failed_count;
    uint64_t wrong_count;
} life;

static const char *current_text(const life *l)
{
    static char text[200];
    (void)snprintf(text, sizeof text, "%s: %s number %" PRIu64 " fails %s with %d: step %u",
                   l->from->name, l->call != NULL ? l->call : "nothing", l->at,
                   l->is_lasting ? "for ever" : "once", l->result, l->step);
    return text;
}

static void fail(const life *l, const char *what, const char *why)
{
    (void)printf("%s: %s: %s\n", current_text(l), what, why);
    exit(1);
}

static void fill(void *context, uint64_t addr, uint64_t bytes)
{
    uint32_t *words = (uint32_t *)(uintptr_t)addr;
    for (uint64_t i = 0; i < bytes / sizeof *words; i += 4096) {
        words[i] = (uint32_t)(uintptr_t)context + (uint32_t)i;
    }
}

static life *checked_life; /* whose bytes are checked */

static void check(void *context, uint64_t addr, uint64_t bytes)
{
    const uint32_t *words = (const uint32_t *)(uintptr_t)addr;
    for (uint64_t i = 0; i < bytes / sizeof *words; i += 4096) {
        checked_life->wrong_count += words[i] != (uint32_t)(uintptr_t)context + (uint32_t)i;
    }
}

static uint64_t stream_of(const life *l, uint32_t index)
{
    return index == 0 ? 0 : (uint64_t)(uintptr_t)l->streams[index];
}

static void launch(const life *l, uint32_t stream, uf_host_kernel kernel, const owner *o)
{
    if (uf_host_launch(l->fake->host(0), stream_of(l, stream), kernel,
                       (void *)(uintptr_t)o->pattern, o->addr, o->bytes / 64 * 64) != UF_OK) {
        fail(l, "launching a kernel", "the host has no memory");
    }
}

/* What must hold after each step. */
static void prove(life *l)
{
    uf_error error = {UF_OK, ""};
    uf_stats stats;
    fake_counts counts;
    uf_cuda_counts own;
    char text[300] = "";
    if (uf_check(l->allocator, &error) != UF_OK) {
        fail(l, "uf_check", error.text);
    }
    if (l->fake->fault_count(text, sizeof text) != 0) {
        fail(l, "a rule of the driver was broken", text);
    }
    if (l->wrong_count != 0) {
        fail(l, "bytes", "those of a live block are wrong");
    }
    if (uf_stats_get(l->allocator, &stats, &error) != UF_OK) {
        fail(l, "uf_stats_get", error.text);
    }
    l->fake->counts(&counts);
    uf_cuda_counts_get(l->cuda, &own);
    uint64_t held = (uint64_t)stats.reserved_bytes.all.current;
    if (counts.in_use_bytes < held || counts.in_use_bytes > held + own.unreleased_bytes) {
        (void)snprintf(text, sizeof text,
                       "the driver handed out %" PRIu64 ", the allocator holds %" PRIu64
                       ", the device could not give back %" PRIu64,
                       counts.in_use_bytes, held, own.unreleased_bytes);
        fail(l, "bytes are lost", text);
    }
}

/* A step's result: what failed once is to be tried again (true). */
static bool try_again(life *l, uf_status status, const uf_error *error, bool may_be_short)
{
    prove(l);
    if (status == UF_OK || (may_be_short && status == UF_ERROR_OUT_OF_MEMORY)) {
        return false;
    }
    if (l->call == NULL) {
        fail(l, "a step fails though no call does", error->text);
    }
    if (status != UF_ERROR_DEVICE && status != UF_ERROR_DEVICE_MEMORY &&
        status != UF_ERROR_OUT_OF_MEMORY) {
        fail(l, "a failed call is reported as something else", error->text);
    }
    l->failed_count++;
    if (!l->is_lasting && l->failed_count > 1) {
        fail(l, "one failure makes two steps fail", error->text);
    }
    return !l->is_lasting;
}

static void take(life *l, uint32_t slot, uint64_t bytes, uint32_t stream, bool may_be_short)
{
    owner *o = &l->owners[slot];
    uf_status status;
    uf_error error;
    l->step++;
    do {
        status = uf_alloc(l->allocator, bytes, stream_of(l, stream), &o->addr, &error);
    } while (try_again(l, status, &error, may_be_short || l->from->limit_bytes == 0));
    o->bytes = status == UF_OK ? bytes : 0;
    o->addr = status == UF_OK ? o->addr : 0;
    o->pattern = slot << 24 ^ l->step;
    if (status == UF_OK) {
        launch(l, stream, fill, o);
    }
}

/* The address is given back whatever the status says, and not twice. */
static void give(life *l, uint32_t slot, uint32_t stream)
{
    owner *o = &l->owners[slot];
    uf_error error;
    l->step++;
    if (o->addr == 0) {
        return;
    }
    launch(l, stream, check, o);
    owner rubbish = {.addr = o->addr, .bytes = o->bytes, .pattern = ~o->pattern};
    launch(l, stream, fill, &rubbish);
    uf_status status = uf_free(l->allocator, o->addr, &error);
    o->addr = 0;
    (void)try_again(l, status, &error, false);
}

static void share(life *l, uint32_t slot, uint32_t stream)
{
    uf_error error;
    l->step++;
    if (l->owners[slot].addr == 0) {
        return;
    }
    uf_host_synchronize(l->fake->host(0));
    uf_status status =
        uf_use_on_stream(l->allocator, l->owners[slot].addr, stream_of(l, stream), &error);
    (void)try_again(l, status, &error, false);
    launch(l, stream, check, &l->owners[slot]);
    status = uf_free(l->allocator, l->owners[slot].addr, &error);
    l->owners[slot].addr = 0;
    (void)try_again(l, status, &error, false);
}

static void limit(life *l, uint64_t bytes)
{
    uf_error error;
    l->step++;
    (void)try_again(l, uf_limit_set(l->allocator, bytes, &error), &error, false);
}

static void trim(life *l)
{
    uf_error error;
    uf_status status;
    l->step++;
    do {
        status = uf_empty_cache(l->allocator, &error);
    } while (try_again(l, status, &error, false));
}

static void pool_fill(life *l, uf_pool_kind kind)
{
    const uf_pool_options options = {.struct_size_bytes = sizeof options, .kind = kind};
    uf_error error = {UF_OK, ""};
    l->step++;
    uf_status status = uf_pool_create(l->allocator, &options, &l->pool_id, &error);
    if (status != UF_OK || uf_pool_begin(l->allocator, l->pool_id, &error) != UF_OK) {
        fail(l, "a pool", error.text);
    }
    l->has_pool = true;
    take(l, 20, 3 * MIB, 1, true);
    take(l, 21, 300 * KIB, 1, true);
    give(l, 20, 1);
    take(l, 22, 2 * MIB, 1, true);
    if (uf_pool_end(l->allocator, l->pool_id, &error) != UF_OK) {
        fail(l, "the end of a scope", error.text);
    }
    prove(l);
}

static void pool_end(life *l)
{
    uf_error error;
    l->step++;
    give(l, 21, 1);
    give(l, 22, 1);
    (void)try_again(l, uf_pool_destroy(l->allocator, l->pool_id, &error), &error, false);
}

static const uint64_t sizes[] = {600 * KIB, 3 * MIB,  100,      1 * MIB + 5, 2 * MIB,
                                 5 * MIB,   40 * KIB, 12 * MIB, 700 * KIB,   1 * MIB};
enum { SIZE_COUNT = sizeof sizes / sizeof *sizes };

static void live(life *l)
{
    for (uint32_t i = 0; i < SIZE_COUNT; i++) {
        take(l, i, sizes[i] / (l->from->policy == UF_POLICY_UNFRAG ? 2 : 1), i % STREAMS, false);
    }
    give(l, 1, 1);
    give(l, 4, 1);
    give(l, 7, 1);
    share(l, 5, 2);
    share(l, 0, 1);
    take(l, 10, 4 * MIB, 0, true);
    take(l, 11, 2 * MIB + 100, 2, true);
    limit(l, l->from->tight_bytes);
    give(l, 10, 0);
    take(l, 12, 3 * MIB, 0, true);
    take(l, 13, 900 * KIB, 1, true);
    take(l, 14, 5 * MIB, 2, true);
    give(l, 12, 0);
    uf_host_synchronize(l->fake->host(0));
    take(l, 15, 4 * MIB + 4096, 1, true);
    limit(l, l->from->limit_bytes);
    pool_fill(l, UF_POOL_DEFAULT);
    give(l, 14, 2);
    trim(l);
    take(l, 16, 6 * MIB, 1, true);
    pool_end(l);
    trim(l);
    pool_fill(l, UF_POOL_PLAIN);
    take(l, 17, 3 * MIB, 0, true);
    pool_end(l);
    pool_fill(l, UF_POOL_WHOLE);
    pool_end(l);
}

static void let_go(life *l)
{
    static const uint32_t stream_of_slot[BLOCKS] = {0, 1, 2, 0, 1, 2, 0, 1, 2,
                                                    0, 0, 2, 0, 1, 2, 1, 1, 0};
    for (uint32_t i = 0; i < BLOCKS; i += 2) { /* the others are left for the end of all */
        give(l, i, stream_of_slot[i]);
    }
    uf_host_synchronize(l->fake->host(0));
    prove(l);
}

/* Is nothing left? What was refused for ever may be. */
static void finish(life *l, uf_status created)
{
    static const fake_counts none;
    fake_counts counts;
    char text[300] = "";
    uf_allocator_destroy(l->allocator);
    uf_cuda_destroy(l->cuda);
    l->fake->obey_nothing();
    l->fake->counts(&counts);
    counts.stream_count = 0;
    if (l->fake->fault_count(text, sizeof text) != 0) {
        fail(l, "a rule of the driver was broken at the end", text);
    }
    if (!l->is_lasting && memcmp(&counts, &none, sizeof none) != 0) {
        (void)snprintf(text, sizeof text,
                       "%" PRIu64 " bytes, %" PRIu64 " segments, %" PRIu64 " ranges, %" PRIu64
                       " handles, %" PRIu64 " mappings, %" PRIu64 " events, %" PRIu64
                       " contexts (creation said %s)",
                       counts.in_use_bytes, counts.segment_count, counts.range_count,
                       counts.handle_count, counts.mapping_count, counts.event_count,
                       counts.context_count, uf_status_name(created));
        fail(l, "left on the device", text);
    }
}

/* One life. Returns how many driver calls of that name there were. */
static void run(life *l)
{
    uf_error error = {UF_OK, ""};
    uf_cuda_info info = {.struct_size_bytes = sizeof info};
    checked_life = l;
    fake_gpu_set(l->from->card);
    l->fake->obey_nothing();
    l->fake->forget(); /* what a life before could not give back */
    if (l->call != NULL) {
        l->fake->refuse(l->call, l->at, l->is_lasting, l->result);
    }
    uf_status status = uf_cuda_create(NULL, &l->cuda, &error);
    if (status == UF_OK) {
        uf_allocator_options options = {.struct_size_bytes = sizeof options,
                                        .device = uf_cuda_device(l->cuda),
                                        .policy = l->from->policy,
                                        .conf = l->from->conf,
                                        .page_bytes = 64 * KIB,
                                        .large_page_bytes = 512 * KIB,
                                        .limit_bytes = l->from->limit_bytes,
                                        .is_every_stream_watched = l->from->limit_bytes == 0};
        status = uf_cuda_info_get(l->cuda, &info);
        status = uf_allocator_create(&options, &l->allocator, &error);
    }
    if (status == UF_OK) {
        for (int i = 1; i < STREAMS; i++) {
            l->streams[i] = l->streams[i] == NULL ? fake_gpu_stream() : l->streams[i];
        }
        live(l);
        let_go(l);
    } else if (l->call == NULL) {
        fail(l, "opening", error.text);
    }
    finish(l, status);
}

static bool is_about_memory(const char *call)
{
    static const char *const calls[] = {"cuMemAlloc_v2", "cuMemCreate", "cuMemAddressReserve",
                                        "cuMemMap", "cuMemSetAccess"};
    bool is_found = false;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        is_found = is_found || strcmp(calls[i], call) == 0;
    }
    return is_found;
}

static uint64_t run_all_of(life *l, const char *call, uint64_t count, uint64_t every,
                           uint64_t first)
{
    uint64_t done = 0;
    for (uint64_t at = 1 + first % every; at <= count; at += every) {
        for (int form = 0; form < 4; form++) {
            bool is_memory = form / 2 != 0;
            if (is_memory && !is_about_memory(call)) {
                continue;
            }
            life fresh = {.from = l->from,
                          .fake = l->fake,
                          .call = call,
                          .at = at,
                          .is_lasting = form % 2 != 0,
                          .result = is_memory ? OUT_OF_MEMORY : UNKNOWN};
            memcpy(fresh.streams, l->streams, sizeof fresh.streams);
            run(&fresh);
            done++;
        }
    }
    return done;
}

static int usage(const char *program)
{
    (void)fprintf(stderr, "usage: %s --setting NAME [--every N] [--first N]; settings:", program);
    for (int i = 0; i < SETTING_COUNT; i++) {
        (void)fprintf(stderr, " %s", settings[i].name);
    }
    (void)fprintf(stderr, "\n");
    return 2;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"setting", required_argument, NULL, 's'},
                                            {"every", required_argument, NULL, 'e'},
                                            {"first", required_argument, NULL, 'f'},
                                            {NULL, 0, NULL, 0}};
    static life l;
    uint64_t every = 1, first = 0, lives = 0, calls = 0;
    fake_gpu_enter(argv);
    for (int option = 0; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (option == 'e' || option == 'f') {
            *(option == 'e' ? &every : &first) = strtoull(optarg, NULL, 0);
        } else if (option != 's') {
            return usage(argv[0]);
        }
        for (int i = 0; option == 's' && i < SETTING_COUNT; i++) {
            l.from = strcmp(optarg, settings[i].name) == 0 ? &settings[i] : l.from;
        }
    }
    if (l.from == NULL || every == 0) {
        return usage(argv[0]);
    }
    l.fake = fake_gpu_api();
    run(&l); /* makes the streams, which stay */
    uint64_t before[128] = {0};
    for (uint32_t i = 0; l.fake->call_name(i) != NULL; i++) {
        before[i] = l.fake->call_count(l.fake->call_name(i));
    }
    life again = {.from = l.from, .fake = l.fake};
    memcpy(again.streams, l.streams, sizeof again.streams);
    run(&again);
    uint64_t counts[128] = {0};
    for (uint32_t i = 0; l.fake->call_name(i) != NULL; i++) {
        counts[i] = l.fake->call_count(l.fake->call_name(i)) - before[i];
        calls += counts[i];
    }
    for (uint32_t i = 0; l.fake->call_name(i) != NULL; i++) {
        lives += run_all_of(&l, l.fake->call_name(i), counts[i], every, first);
    }
    (void)printf("%s: %" PRIu64 " driver calls in a life of %u steps, %" PRIu64
                 " lives with a failure, all good\n",
                 l.from->name, calls, again.step, lives);
    return 0;
}
