/* SPDX-License-Identifier: MIT
 *
 * Streams of the host device: work is done when told, in order, and what it will touch stays. */
#include <pthread.h>

#include "device/host.h"

#include "unit/host_bench.h"
#include "unit/suite.h"

#define ALL UINT64_MAX

/* The order in which kernels ran. */
static int seen[64];
static int seen_count;

static void note(void *context, uint64_t addr, uint64_t size_bytes)
{
    (void)addr;
    (void)size_bytes;
    seen[seen_count++] = *(int *)context;
}

static void fill(void *context, uint64_t addr, uint64_t size_bytes)
{
    memset((void *)(uintptr_t)addr, *(int *)context, size_bytes);
}

static int names[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};

static void launch(const host_bench *b, uint64_t stream, int name)
{
    ck_assert_int_eq(uf_host_launch(b->host, stream, note, &names[name], 0, 0), UF_OK);
}

static void saw(int count, int last)
{
    ck_assert_int_eq(seen_count, count);
    ck_assert(count == 0 || seen[count - 1] == last);
}

START_TEST(kernels_run_when_told_in_the_order_of_their_stream)
{
    host_bench b = host_bench_make(0);
    seen_count = 0;
    for (int i = 1; i <= 3; i++) {
        launch(&b, 7, i);
    }
    launch(&b, 8, 4);
    saw(0, 0);
    ck_assert_uint_eq(uf_host_run(b.host, 8, ALL), 1);
    saw(1, 4);
    ck_assert_uint_eq(uf_host_run(b.host, 7, 2), 2);
    saw(3, 2);
    ck_assert_uint_eq(host_counts(&b).queued_count, 1);
    ck_assert_uint_eq(uf_host_run(b.host, 9, ALL), 0);
    uf_host_synchronize(b.host);
    saw(4, 3);
    ck_assert_uint_eq(host_counts(&b).run_count, 4);
    host_bench_end(&b);
}
END_TEST

START_TEST(a_queue_that_never_empties_keeps_its_order)
{
    host_bench b = host_bench_make(0);
    seen_count = 0;
    for (int i = 0; i < 60; i++) {
        launch(&b, 0, i % 10);
        ck_assert_uint_eq(uf_host_run(b.host, 0, i < 5 ? 0 : 1), i < 5 ? 0 : 1);
    }
    uf_host_synchronize(b.host);
    ck_assert_int_eq(seen_count, 60);
    for (int i = 0; i < 60; i++) {
        ck_assert_int_eq(seen[i], i % 10);
    }
    host_bench_end(&b);
}
END_TEST

START_TEST(an_event_is_reached_when_the_kernels_before_it_ran)
{
    host_bench b = host_bench_make(0);
    uint64_t event = 0, idle = 0;
    bool is_done = true;
    seen_count = 0;
    launch(&b, 7, 1);
    ck_assert_int_eq(b.device->event_record(b.context, 7, &event), UF_OK);
    launch(&b, 7, 2);
    ck_assert_int_eq(b.device->event_query(b.context, event, &is_done), UF_OK);
    ck_assert(!is_done);
    (void)uf_host_run(b.host, 7, 1);
    ck_assert_int_eq(b.device->event_query(b.context, event, &is_done), UF_OK);
    ck_assert(is_done);
    host_refused(&b, b.device->event_query(b.context, event, &is_done), "no event");
    host_refused(&b, b.device->event_wait(b.context, event), "no event");
    ck_assert_int_eq(b.device->event_record(b.context, 99, &idle), UF_OK);
    ck_assert_int_eq(b.device->event_query(b.context, idle, &is_done), UF_OK);
    ck_assert(is_done);
    ck_assert_uint_eq(host_counts(&b).event_count, 0);
    host_bench_end(&b);
}
END_TEST

START_TEST(waiting_runs_the_queue_up_to_the_event_and_is_counted)
{
    host_bench b = host_bench_make(0);
    uint64_t first = 0, second = 0;
    seen_count = 0;
    launch(&b, 7, 1);
    ck_assert_int_eq(b.device->event_record(b.context, 7, &first), UF_OK);
    launch(&b, 7, 2);
    ck_assert_int_eq(b.device->event_record(b.context, 7, &second), UF_OK);
    launch(&b, 7, 3);
    launch(&b, 8, 4);
    ck_assert_int_eq(b.device->event_wait(b.context, second), UF_OK);
    saw(2, 2);
    ck_assert_uint_eq(host_counts(&b).wait_count, 1);
    ck_assert_int_eq(b.device->event_wait(b.context, first), UF_OK);
    ck_assert_uint_eq(host_counts(&b).wait_count, 1); /* it was reached: no wait */
    ck_assert_int_eq(b.device->stream_wait(b.context, 7), UF_OK);
    saw(3, 3);
    ck_assert_uint_eq(host_counts(&b).wait_count, 2);
    ck_assert_uint_eq(host_counts(&b).queued_count, 1);
    host_bench_end(&b);
}
END_TEST

START_TEST(destroying_a_segment_waits_for_everything)
{
    host_bench b = host_bench_make(0);
    uint64_t addr = 0;
    seen_count = 0;
    ck_assert_int_eq(b.device->segment_create(b.context, MIB, 0, &addr), UF_OK);
    ck_assert_int_eq(uf_host_launch(b.host, 3, fill, &names[5], addr, MIB), UF_OK);
    launch(&b, 4, 9);
    ck_assert_int_eq(b.device->segment_destroy(b.context, addr, MIB), UF_OK);
    saw(1, 9);
    ck_assert_uint_eq(host_counts(&b).run_count, 2);
    ck_assert_uint_eq(host_counts(&b).wait_count, 1);
    host_bench_end(&b);
}
END_TEST

START_TEST(memory_that_a_queued_kernel_touches_is_not_unmapped)
{
    host_bench b = host_bench_make(0);
    uint64_t addr = host_range(&b, 8 * GRANULE), handle = host_handle(&b, GRANULE);
    host_map(&b, addr, handle, GRANULE);
    ck_assert_int_eq(b.device->pages_map(b.context, addr + GRANULE, GRANULE, GRANULE), UF_OK);
    ck_assert_int_eq(uf_host_launch(b.host, 3, fill, &names[5], addr + GRANULE - 1, 2), UF_OK);
    host_refused(&b, b.device->range_unmap(b.context, addr, GRANULE, 1), "queue of stream 0x3");
    host_refused(&b, b.device->pages_unmap(b.context, addr + GRANULE, GRANULE, GRANULE),
                 "queue of stream 0x3");
    uf_host_synchronize(b.host);
    ck_assert_uint_eq(host_bytes(addr)[GRANULE - 1], 5);
    ck_assert_int_eq(b.device->range_unmap(b.context, addr, GRANULE, 1), UF_OK);
    ck_assert_int_eq(b.device->pages_unmap(b.context, addr + GRANULE, GRANULE, GRANULE), UF_OK);
    host_bench_end(&b);
}
END_TEST

START_TEST(a_late_kernel_writes_through_its_old_address_into_the_handle)
{
    host_bench b = host_bench_make(0);
    uint64_t addr = host_range(&b, 8 * GRANULE), handle = host_handle(&b, GRANULE);
    host_map(&b, addr, handle, GRANULE);
    ck_assert_int_eq(uf_host_launch(b.host, 3, fill, &names[6], addr, GRANULE), UF_OK);
    host_map(&b, addr + 4 * GRANULE, handle, GRANULE);
    uf_host_synchronize(b.host);
    ck_assert_uint_eq(host_bytes(addr + 4 * GRANULE)[77], 6);
    host_bench_end(&b);
}
END_TEST

START_TEST(a_kernel_whose_memory_is_not_accessible_is_a_fault_and_does_not_run)
{
    host_bench b = host_bench_make(0);
    uint64_t addr = host_range(&b, 8 * GRANULE), handle = host_handle(&b, GRANULE);
    ck_assert_int_eq(b.device->handle_map(b.context, addr, handle, GRANULE), UF_OK);
    ck_assert_int_eq(uf_host_launch(b.host, 3, fill, &names[6], addr, 1), UF_OK);
    ck_assert_uint_eq(uf_host_run(b.host, 3, ALL), 1);
    host_refused(&b, UF_ERROR_DEVICE, "not accessible");
    ck_assert_int_eq(b.device->range_access(b.context, addr, GRANULE, 1), UF_OK);
    ck_assert_int_eq(uf_host_launch(b.host, 3, fill, &names[6], addr, GRANULE + 1), UF_OK);
    ck_assert_uint_eq(uf_host_run(b.host, 3, ALL), 1);
    host_refused(&b, UF_ERROR_DEVICE, "not accessible");
    ck_assert_uint_eq(host_counts(&b).run_count, 0);
    host_bench_end(&b);
}
END_TEST

enum { THREADS = 4, ROUNDS = 200 };

typedef struct worker {
    const host_bench *bench;
    uint64_t stream, sum;
} worker;

static void add(void *context, uint64_t addr, uint64_t size_bytes)
{
    worker *w = context;
    w->sum += host_bytes(addr)[size_bytes - 1] + 1u;
}

/* Maps, launches on its own stream, waits, unmaps: all at once. */
static void *work(void *argument)
{
    worker *w = argument;
    const host_bench *b = w->bench;
    const uf_device *d = b->device;
    uint64_t addr = 0, handle = 0, event = 0;
    bool is_good = d->range_reserve(b->context, 4 * GRANULE, &addr) == UF_OK;
    for (int i = 0; i < ROUNDS && is_good; i++) {
        is_good = d->handle_create(b->context, GRANULE, &handle) == UF_OK &&
                  d->handle_map(b->context, addr, handle, GRANULE) == UF_OK &&
                  d->range_access(b->context, addr, GRANULE, 1) == UF_OK &&
                  uf_host_launch(b->host, w->stream, add, w, addr, GRANULE) == UF_OK &&
                  d->event_record(b->context, w->stream, &event) == UF_OK &&
                  d->event_wait(b->context, event) == UF_OK &&
                  d->range_unmap(b->context, addr, GRANULE, 1) == UF_OK &&
                  d->handle_release(b->context, handle, GRANULE) == UF_OK;
    }
    return is_good ? w : NULL;
}

START_TEST(threads_share_the_device)
{
    host_bench b = host_bench_make(0);
    pthread_t threads[THREADS];
    worker workers[THREADS];
    for (uint64_t i = 0; i < THREADS; i++) {
        workers[i] = (worker){.bench = &b, .stream = i};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < ROUNDS; i++) {
        uf_host_synchronize(b.host);
    }
    for (int i = 0; i < THREADS; i++) {
        void *result = NULL;
        ck_assert_int_eq(pthread_join(threads[i], &result), 0);
        ck_assert_ptr_nonnull(result);
        ck_assert_uint_eq(workers[i].sum, ROUNDS);
    }
    ck_assert_uint_eq(host_counts(&b).in_use_bytes, 0);
    host_bench_end(&b);
}
END_TEST

int main(void)
{
    return suite_run("host_stream",
                     (const TTest *const[]){
                         kernels_run_when_told_in_the_order_of_their_stream,
                         a_queue_that_never_empties_keeps_its_order,
                         an_event_is_reached_when_the_kernels_before_it_ran,
                         waiting_runs_the_queue_up_to_the_event_and_is_counted,
                         destroying_a_segment_waits_for_everything,
                         memory_that_a_queued_kernel_touches_is_not_unmapped,
                         a_late_kernel_writes_through_its_old_address_into_the_handle,
                         a_kernel_whose_memory_is_not_accessible_is_a_fault_and_does_not_run,
                         threads_share_the_device,
                         NULL,
                     });
}
