/* SPDX-License-Identifier: MIT
 *
 * Eight threads on one allocator over the host's memory, each on a stream of its own, while a ninth
 * runs their kernels late: every block holds what its owner's kernel wrote until the kernel that
 * checks it has run, whatever the others take, trim, reserve, pin or limit meanwhile. Meant for the
 * thread sanitizer too (the preset tsan). */
#include <unfrag/host.h>
#include <unfrag/unfrag.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "unit/suite.h"

enum { THREAD_COUNT = 8, STEP_COUNT = 700, LIVE_MAX = 12, STRIDE_BYTES = 4096 };

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)

typedef struct stage {
    uf_host *host;
    uf_allocator *allocator;
    atomic_uint wrong_count, failure_count, refused_count;
    atomic_bool is_over;
} stage;

/* A kernel's argument; the kernel that checks frees it. */
typedef struct mark {
    stage *stage;
    uint64_t value;
} mark;

typedef struct block {
    uint64_t addr, bytes;
    bool is_pinned;
} block;

typedef struct actor {
    stage *stage;
    uint64_t stream, random;
    block live[LIVE_MAX];
    uint32_t count;
} actor;

static void each_stride(uint64_t addr, uint64_t bytes, uint64_t value, atomic_uint *wrong_count)
{
    for (uint64_t at = 0; at + sizeof value <= bytes; at += STRIDE_BYTES) {
        unsigned char *place = (unsigned char *)(uintptr_t)(addr + at);
        if (wrong_count == NULL) {
            memcpy(place, &value, sizeof value);
        } else if (memcmp(place, &value, sizeof value) != 0) {
            atomic_fetch_add(wrong_count, 1);
        }
    }
}

static void fill(void *context, uint64_t addr, uint64_t bytes)
{
    const mark *m = context;
    each_stride(addr, bytes, m->value, NULL);
    free(context);
}

static void compare(void *context, uint64_t addr, uint64_t bytes)
{
    const mark *m = context;
    each_stride(addr, bytes, m->value, &m->stage->wrong_count);
    free(context);
}

static void expect(stage *s, bool is_true)
{
    atomic_fetch_add(&s->failure_count, !is_true);
}

static void launch(actor *a, uf_host_kernel kernel, const block *b)
{
    mark *m = malloc(sizeof *m);
    ck_assert_ptr_nonnull(m);
    *m = (mark){a->stage, b->addr ^ a->stream << 48};
    expect(a->stage,
           uf_host_launch(a->stage->host, a->stream, kernel, m, b->addr, b->bytes) == UF_OK);
}

static void take(actor *a)
{
    stage *s = a->stage;
    uf_error error;
    uint64_t n = suite_random(&a->random), bytes = 512 + n % (n % 3 == 0 ? 4 * MIB : 128 * KIB);
    block b = {.bytes = bytes};
    uf_status status = uf_alloc(s->allocator, bytes, a->stream, &b.addr, &error);
    if (status == UF_ERROR_OUT_OF_MEMORY) {
        atomic_fetch_add(&s->refused_count, 1);
        return;
    }
    expect(s, status == UF_OK);
    if (status == UF_OK) {
        launch(a, fill, &b);
        a->live[a->count++] = b;
    }
}

static void give(actor *a, uint32_t at)
{
    stage *s = a->stage;
    block b = a->live[at];
    uf_error error;
    launch(a, compare, &b);
    if (suite_random(&a->random) % 4 == 0) {
        uint64_t other = (a->stream / 64 % THREAD_COUNT + 1) * 64;
        expect(s, uf_use_on_stream(s->allocator, b.addr, other, &error) == UF_OK);
    }
    expect(s, uf_free(s->allocator, b.addr, &error) == UF_OK);
    expect(s, !b.is_pinned || uf_unpin(s->allocator, b.addr, &error) == UF_OK);
    a->live[at] = a->live[--a->count];
}

static void disturb(actor *a)
{
    stage *s = a->stage;
    uf_error error;
    uf_stats stats;
    uint64_t n = suite_random(&a->random);
    uf_status status = UF_OK;
    switch (n % 8) {
    case 0:
        status = uf_limit_set(s->allocator, (56 + n / 8 % 16) * MIB, &error);
        break;
    case 1:
        status = uf_trim(s->allocator, n / 8 % (8 * MIB), NULL, &error);
        break;
    case 2:
        status = uf_reserve(s->allocator, n / 8 % (4 * MIB), a->stream, &error);
        status = status == UF_ERROR_OUT_OF_MEMORY ? UF_OK : status;
        break;
    case 3:
        if (a->count != 0 && !a->live[0].is_pinned) {
            status = uf_pin(s->allocator, a->live[0].addr, &error);
            a->live[0].is_pinned = status == UF_OK;
        }
        break;
    case 4:
        status = uf_empty_cache(s->allocator, &error);
        break;
    case 5:
        status = uf_stats_get(s->allocator, &stats, &error);
        break;
    default:
        status = uf_check(s->allocator, &error);
        break;
    }
    expect(s, status == UF_OK);
}

static void *act(void *context)
{
    actor *a = context;
    for (int step = 0; step < STEP_COUNT; step++) {
        uint64_t n = suite_random(&a->random);
        if (n % 64 == 0) {
            disturb(a);
        } else if (a->count == LIVE_MAX || (a->count != 0 && n % 2 == 0)) {
            give(a, (uint32_t)(n / 64 % a->count));
        } else {
            take(a);
        }
    }
    while (a->count != 0) {
        give(a, 0);
    }
    return NULL;
}

static void *run_kernels(void *context)
{
    stage *s = context;
    uint64_t random = 5;
    while (!atomic_load(&s->is_over)) {
        uint64_t n = suite_random(&random);
        uf_host_run(s->host, (n % THREAD_COUNT + 1) * 64, n / 8 % 6);
    }
    return NULL;
}

static void play(uf_policy policy, bool is_debug)
{
    stage s = {.host = NULL};
    uf_error error;
    const uf_host_options of_host = {.struct_size_bytes = sizeof of_host,
                                     .total_bytes = 96 * MIB,
                                     .granularity_bytes = 64 * KIB};
    ck_assert_int_eq(uf_host_create(&of_host, &s.host, &error), UF_OK);
    const uf_allocator_options options = {.struct_size_bytes = sizeof options,
                                          .device = uf_host_device(s.host),
                                          .policy = policy,
                                          .is_debug = is_debug,
                                          .limit_bytes = 64 * MIB,
                                          .page_bytes = 64 * KIB};
    ck_assert_msg(uf_allocator_create(&options, &s.allocator, &error) == UF_OK, "%s", error.text);
    static actor actors[THREAD_COUNT];
    pthread_t threads[THREAD_COUNT], runner;
    ck_assert_int_eq(pthread_create(&runner, NULL, run_kernels, &s), 0);
    for (uint64_t i = 0; i < THREAD_COUNT; i++) {
        actors[i] = (actor){.stage = &s, .stream = (i + 1) * 64, .random = i + 1};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, act, &actors[i]), 0);
    }
    for (int i = 0; i < THREAD_COUNT; i++) {
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    }
    atomic_store(&s.is_over, true);
    ck_assert_int_eq(pthread_join(runner, NULL), 0);
    uf_host_synchronize(s.host);
    uf_status status = uf_check(s.allocator, &error);
    ck_assert_msg(status == UF_OK, "%s", error.text);
    uf_error fault = {UF_OK, ""};
    uint64_t fault_count = uf_host_faults(s.host, &fault);
    ck_assert_msg(fault_count == 0, "%s", fault.text);
    ck_assert_uint_eq(s.wrong_count, 0);
    ck_assert_uint_eq(s.failure_count, 0);
    uf_host_counts counts;
    uf_allocator_destroy(s.allocator);
    uf_host_counts_get(s.host, &counts);
    ck_assert_uint_eq(counts.in_use_bytes, 0);
    ck_assert_uint_eq(counts.range_count, 0);
    ck_assert_uint_gt(counts.run_count, 1000);
    uf_host_destroy(s.host);
}

START_TEST(eight_threads_keep_their_bytes_under_the_unfrag_policy)
{
    play(UF_POLICY_UNFRAG, false);
}
END_TEST

START_TEST(eight_threads_keep_their_bytes_under_the_torch_policy)
{
    play(UF_POLICY_TORCH, false);
}
END_TEST

/* What they do is right: each status but UF_OK would be counted as a failure. */
START_TEST(debug_mode_reports_nothing_of_eight_threads)
{
    play(UF_POLICY_UNFRAG, true);
    play(UF_POLICY_TORCH, true);
}
END_TEST

int main(void)
{
    return suite_run("allocator_threads",
                     (const TTest *const[]){
                         eight_threads_keep_their_bytes_under_the_unfrag_policy,
                         eight_threads_keep_their_bytes_under_the_torch_policy,
                         debug_mode_reports_nothing_of_eight_threads,
                         NULL,
                     });
}
