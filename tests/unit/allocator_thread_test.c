/* SPDX-License-Identifier: MIT
 *
 * Many threads on one allocator, one recorder and one device. Its full strength shows under the
 * thread sanitizer (the preset tsan). */
#include <unfrag/recorder.h>
#include <unfrag/sim.h>

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <unfrag/unfrag.h>

#define THREAD_COUNT 8
#define STEP_COUNT 3000
#define OWN_COUNT 24
#define SHARED_COUNT 64

typedef struct arena {
    uf_sim *sim;
    uf_allocator *allocator;
    uf_recorder *recorder;
    _Atomic uint64_t shared[SHARED_COUNT]; /* addresses that any thread may take and free */
    _Atomic uint64_t failure_count, alloc_count;
} arena;

typedef struct worker {
    arena *all;
    uint64_t state; /* of the random numbers */
    uint64_t index;
    uint64_t own[OWN_COUNT];
} worker;

static uint64_t draw(worker *w)
{
    w->state ^= w->state << 13;
    w->state ^= w->state >> 7;
    w->state ^= w->state << 17;
    return w->state >> 11;
}

static void expect(worker *w, bool is_good)
{
    if (!is_good) {
        atomic_fetch_add(&w->all->failure_count, 1);
    }
}

static void drop(worker *w, uint64_t addr)
{
    if (addr != 0) {
        expect(w, uf_free(w->all->allocator, addr, NULL) == UF_OK);
    }
}

static void allocate(worker *w)
{
    uint64_t limit = UINT64_C(1) << (9 + draw(w) % 16), addr = 0;
    uint64_t bytes = 1 + draw(w) % limit;
    uf_status status = uf_alloc(w->all->allocator, bytes, w->index % 4, &addr, NULL);
    expect(w, status == UF_OK || status == UF_ERROR_OUT_OF_MEMORY);
    if (status != UF_OK) {
        return;
    }
    atomic_fetch_add(&w->all->alloc_count, 1);
    if (draw(w) % 3 == 0) {
        expect(w, uf_use_on_stream(w->all->allocator, addr, draw(w) % 5, NULL) == UF_OK);
    }
    if (draw(w) % 4 == 0) {
        drop(w, atomic_exchange(&w->all->shared[draw(w) % SHARED_COUNT], addr));
    } else {
        uint64_t *place = &w->own[draw(w) % OWN_COUNT];
        drop(w, *place);
        *place = addr;
    }
}

static void look_around(worker *w)
{
    uf_stats stats;
    uf_fragmentation fragmentation;
    uf_allocator *allocator = w->all->allocator;
    uint64_t addr = 0;
    switch (draw(w) % 6) {
    case 0:
        expect(w, uf_stats_get(allocator, &stats, NULL) == UF_OK);
        expect(w, stats.active_bytes.all.current >= stats.allocated_bytes.all.current);
        break;
    case 1:
        expect(w, uf_fragmentation_get(allocator, 0, &fragmentation, NULL) == UF_OK);
        break;
    case 2:
        expect(w, uf_check(allocator, NULL) == UF_OK);
        break;
    case 3:
        expect(w, uf_empty_cache(allocator, NULL) == UF_OK);
        break;
    case 4:
        expect(w, uf_limit_set(allocator, (UINT64_C(200) + draw(w) % 400) << 20, NULL) == UF_OK);
        break;
    default:
        expect(w, uf_free(allocator, 0x1234, NULL) == UF_ERROR_FOREIGN_POINTER);
        expect(w, uf_alloc(allocator, UINT64_MAX, 0, &addr, NULL) == UF_ERROR_REQUEST_TOO_LARGE);
        break;
    }
}

/* One thread works in pools of its own now and then. */
static void work_in_pool(worker *w)
{
    uint64_t pool, addr = 0;
    uf_allocator *allocator = w->all->allocator;
    expect(w, uf_pool_create(allocator, NULL, &pool, NULL) == UF_OK);
    expect(w, uf_pool_begin(allocator, pool, NULL) == UF_OK);
    if (uf_alloc(allocator, 3 << 20, 0, &addr, NULL) == UF_OK) {
        drop(w, addr);
    }
    expect(w, uf_pool_end(allocator, pool, NULL) == UF_OK);
    expect(w, uf_pool_destroy(allocator, pool, NULL) == UF_OK);
}

static void *work(void *context)
{
    worker *w = context;
    for (int i = 0; i < STEP_COUNT; i++) {
        uint64_t kind = draw(w) % 100;
        if (kind < 60) {
            allocate(w);
        } else if (kind < 80) {
            drop(w, atomic_exchange(&w->all->shared[draw(w) % SHARED_COUNT], 0));
        } else if (kind < 92) {
            uf_sim_synchronize(w->all->sim);
        } else if (kind < 99 || w->index != 0) {
            look_around(w);
        } else {
            work_in_pool(w);
        }
    }
    for (int i = 0; i < OWN_COUNT; i++) {
        drop(w, w->own[i]);
    }
    return NULL;
}

static void run_workers(arena *all, uint64_t seed)
{
    static worker workers[THREAD_COUNT];
    pthread_t threads[THREAD_COUNT];
    for (uint64_t i = 0; i < THREAD_COUNT; i++) {
        workers[i] = (worker){.all = all, .index = i, .state = seed * 1000003 + i * 7919 + 1};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (size_t i = 0; i < THREAD_COUNT; i++) {
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    }
}

static const char *const CONFS[] = {"", "expandable_segments:True",
                                    "max_split_size_mb:20,garbage_collection_threshold:0.7"};

START_TEST(eight_threads_share_an_allocator)
{
    arena all = {0};
    uf_error error;
    ck_assert_int_eq(uf_sim_create(NULL, &all.sim, &error), UF_OK);
    const uf_recorder_options ring = {.struct_size_bytes = sizeof ring, .max_entry_count = 5000};
    ck_assert_int_eq(uf_recorder_create(&ring, &all.recorder, &error), UF_OK);
    const uf_allocator_options options = {.struct_size_bytes = sizeof options,
                                          .device = uf_sim_device(all.sim),
                                          .conf = CONFS[_i],
                                          .limit_bytes = UINT64_C(400) << 20,
                                          .on_event = uf_recorder_event,
                                          .event_context = all.recorder};
    ck_assert_int_eq(uf_allocator_create(&options, &all.allocator, &error), UF_OK);
    run_workers(&all, (uint64_t)_i + 1);
    ck_assert_uint_eq(atomic_load(&all.failure_count), 0);
    for (size_t i = 0; i < SHARED_COUNT; i++) {
        uint64_t addr = atomic_load(&all.shared[i]);
        ck_assert_int_eq(addr == 0 ? UF_OK : uf_free(all.allocator, addr, &error), UF_OK);
    }
    uf_stats stats;
    ck_assert_msg(uf_check(all.allocator, &error) == UF_OK, "%s", error.text);
    ck_assert_int_eq(uf_empty_cache(all.allocator, &error), UF_OK);
    ck_assert_int_eq(uf_stats_get(all.allocator, &stats, &error), UF_OK);
    ck_assert_int_eq(stats.reserved_bytes.all.current, 0);
    ck_assert_int_eq(stats.active.all.current, 0);
    ck_assert_int_ge(stats.allocation.all.allocated, (int64_t)atomic_load(&all.alloc_count));
    uint64_t kept, lost;
    uf_recorder_count(all.recorder, &kept, &lost);
    ck_assert_uint_eq(kept, 5000);
    ck_assert_uint_ge(kept + lost, 3 * atomic_load(&all.alloc_count));
    uf_allocator_destroy(all.allocator);
    uf_recorder_destroy(all.recorder);
    uf_sim_destroy(all.sim);
}
END_TEST

/* Snapshots are of one instant while others work: every one is whole and reads back. */
START_TEST(snapshots_are_taken_while_others_work)
{
    arena all = {0};
    uf_error error;
    ck_assert_int_eq(uf_sim_create(NULL, &all.sim, &error), UF_OK);
    ck_assert_int_eq(uf_recorder_create(NULL, &all.recorder, &error), UF_OK);
    const uf_allocator_options options = {.struct_size_bytes = sizeof options,
                                          .device = uf_sim_device(all.sim),
                                          .on_event = uf_recorder_event,
                                          .event_context = all.recorder};
    ck_assert_int_eq(uf_allocator_create(&options, &all.allocator, &error), UF_OK);
    worker other = {.all = &all, .index = 1, .state = 99};
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, work, &other), 0);
    for (int i = 0; i < 20; i++) {
        FILE *sink = fopen("/dev/null", "wb");
        ck_assert_ptr_nonnull(sink);
        ck_assert_int_eq(uf_snapshot_write(all.allocator, all.recorder, sink, &error), UF_OK);
        fclose(sink);
    }
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_uint_eq(atomic_load(&all.failure_count), 0);
    uf_allocator_destroy(all.allocator);
    uf_recorder_destroy(all.recorder);
    uf_sim_destroy(all.sim);
}
END_TEST

int main(void)
{
    TCase *threads = tcase_create("threads");
    tcase_set_timeout(threads, 120);
    tcase_add_loop_test(threads, eight_threads_share_an_allocator, 0,
                        (int)(sizeof CONFS / sizeof CONFS[0]));
    tcase_add_test(threads, snapshots_are_taken_while_others_work);
    Suite *suite = suite_create("allocator_thread");
    suite_add_tcase(suite, threads);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
