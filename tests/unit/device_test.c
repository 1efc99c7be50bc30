/* SPDX-License-Identifier: MIT
 *
 * What unfrag/device.h promises, held against every device that we have. A new one gets an entry in
 * the table below. */
#include <unfrag/device.h>

#include <stdio.h>

#include <unfrag/cuda.h>
#include <unfrag/host.h>
#include <unfrag/sim.h>

#include "unit/fake_gpu.h"
#include "unit/suite.h"

#define MIB (UINT64_C(1) << 20)
#define GRANULE (2 * MIB)
#define TOTAL (128 * MIB)
#define CAPACITY (64 * MIB)

/* A device with something that makes it, ends it, and gives a stream work. */
typedef struct maker {
    const char *name;
    const uf_device *(*make)(void);
    void (*end)(void);
    uint64_t (*stream)(uint64_t number); /* the handle of a stream of one's own */
    void (*keep_busy)(uint64_t stream);  /* work that is not done before synchronize */
    void (*synchronize)(void);
} maker;

static uint64_t any_stream(uint64_t number)
{
    return number;
}

static uf_sim *sim;
static uf_host *host;

static const uf_device *sim_make(void)
{
    uf_sim_options options = {
        .struct_size_bytes = sizeof options, .total_bytes = TOTAL, .capacity_bytes = CAPACITY};
    ck_assert_int_eq(uf_sim_create(&options, &sim, NULL), UF_OK);
    return uf_sim_device(sim);
}

static void sim_end(void)
{
    uf_sim_destroy(sim);
}

static void sim_keep_busy(uint64_t stream)
{
    (void)stream; /* its streams are busy until it is told */
}

static void sim_synchronize(void)
{
    uf_sim_synchronize(sim);
}

static const uf_device *host_make(void)
{
    uf_host_options options = {
        .struct_size_bytes = sizeof options, .total_bytes = TOTAL, .capacity_bytes = CAPACITY};
    ck_assert_int_eq(uf_host_create(&options, &host, NULL), UF_OK);
    return uf_host_device(host);
}

static void host_end(void)
{
    ck_assert_uint_eq(uf_host_faults(host, NULL), 0);
    uf_host_destroy(host);
}

static void nothing(void *context, uint64_t addr, uint64_t size_bytes)
{
    (void)context;
    (void)addr;
    (void)size_bytes;
}

static void host_keep_busy(uint64_t stream)
{
    ck_assert_int_eq(uf_host_launch(host, stream, nothing, NULL, 0, 0), UF_OK);
}

static void host_synchronize(void)
{
    uf_host_synchronize(host);
}

/* The cuda device over the fake driver library, whose memory and streams are a host device's. */
static uf_cuda *cuda;
static void *cuda_streams[100];

static const uf_device *cuda_make(void)
{
    char card[80];
    snprintf(card, sizeof card, "card=fake|%llu|%llu", (unsigned long long)TOTAL,
             (unsigned long long)CAPACITY);
    fake_gpu_set(card);
    uf_error error = {UF_OK, ""};
    ck_assert_msg(uf_cuda_create(NULL, &cuda, &error) == UF_OK, "%s", error.text);
    host = fake_gpu_api()->host(0);
    return uf_cuda_device(cuda);
}

static uint64_t cuda_stream(uint64_t number)
{
    if (cuda_streams[number] == NULL) {
        cuda_streams[number] = fake_gpu_stream();
    }
    return (uint64_t)(uintptr_t)cuda_streams[number];
}

static void cuda_end(void)
{
    static const fake_counts none;
    fake_counts counts;
    char text[300] = "";
    uf_cuda_destroy(cuda);
    fake_gpu_api()->counts(&counts);
    counts.stream_count = 0;
    ck_assert_msg(fake_gpu_api()->fault_count(text, sizeof text) == 0, "%s", text);
    ck_assert_mem_eq(&counts, &none, sizeof none);
}

static const maker makers[] = {
    {"sim", sim_make, sim_end, any_stream, sim_keep_busy, sim_synchronize},
    {"host", host_make, host_end, any_stream, host_keep_busy, host_synchronize},
    {"cuda", cuda_make, cuda_end, cuda_stream, host_keep_busy, host_synchronize},
};
enum { MAKER_COUNT = sizeof makers / sizeof *makers };

static uint64_t free_bytes_of(const uf_device *d)
{
    uint64_t free_bytes = 0, total_bytes = 0;
    ck_assert_int_eq(d->memory_info(d->context, &free_bytes, &total_bytes), UF_OK);
    ck_assert_uint_eq(total_bytes, TOTAL);
    return free_bytes;
}

static uint64_t reserve(const uf_device *d, uint64_t size_bytes)
{
    uint64_t addr = 0;
    ck_assert_int_eq(d->range_reserve(d->context, size_bytes, &addr), UF_OK);
    ck_assert_uint_ne(addr, 0);
    ck_assert_uint_eq(addr % GRANULE, 0);
    return addr;
}

static uint64_t create(const uf_device *d, uint64_t size_bytes)
{
    uint64_t handle = 0;
    ck_assert_int_eq(d->handle_create(d->context, size_bytes, &handle), UF_OK);
    return handle;
}

START_TEST(every_function_is_there)
{
    const uf_device *d = makers[_i].make();
    ck_assert_uint_eq(d->struct_size_bytes, sizeof *d);
    ck_assert(d->memory_info && d->segment_create && d->segment_destroy && d->range_reserve &&
              d->range_release && d->pages_map && d->pages_unmap && d->stream_wait &&
              d->event_record && d->event_query && d->event_wait && d->handle_create &&
              d->handle_release && d->handle_map && d->range_access && d->range_unmap);
    makers[_i].end();
}
END_TEST

START_TEST(segments_take_capacity_and_give_it_back)
{
    const uf_device *d = makers[_i].make();
    uint64_t first = 0, second = 0, refused = 7;
    ck_assert_int_eq(d->segment_create(d->context, 40 * MIB, 0, &first), UF_OK);
    ck_assert_int_eq(d->segment_create(d->context, 512, 9, &second), UF_OK);
    ck_assert(second >= first + 40 * MIB || second + 512 <= first);
    ck_assert_uint_eq(first % 512, 0);
    ck_assert_uint_eq(second % 512, 0);
    ck_assert_uint_eq(free_bytes_of(d), 24 * MIB - 512);
    ck_assert_int_eq(d->segment_create(d->context, 24 * MIB, 0, &refused), UF_ERROR_DEVICE_MEMORY);
    ck_assert_int_eq(d->segment_create(d->context, UINT64_MAX, 0, &refused),
                     UF_ERROR_DEVICE_MEMORY);
    ck_assert_uint_eq(refused, 7);
    ck_assert_int_eq(d->segment_destroy(d->context, first, 40 * MIB), UF_OK);
    ck_assert_int_eq(d->segment_create(d->context, 63 * MIB, 0, &first), UF_OK);
    ck_assert_int_eq(d->segment_destroy(d->context, first, 63 * MIB), UF_OK);
    ck_assert_int_eq(d->segment_destroy(d->context, second, 512), UF_OK);
    ck_assert_uint_eq(free_bytes_of(d), CAPACITY);
    makers[_i].end();
}
END_TEST

START_TEST(address_space_takes_no_memory_and_ranges_are_apart)
{
    const uf_device *d = makers[_i].make();
    uint64_t first = reserve(d, 8 * TOTAL), second = reserve(d, 8 * TOTAL);
    ck_assert(second >= first + 8 * TOTAL || second + 8 * TOTAL <= first);
    ck_assert_uint_eq(free_bytes_of(d), CAPACITY);
    ck_assert_int_eq(d->range_release(d->context, first, 8 * TOTAL), UF_OK);
    ck_assert_int_eq(d->range_release(d->context, second, 8 * TOTAL), UF_OK);
    makers[_i].end();
}
END_TEST

START_TEST(pages_are_mapped_all_or_nothing)
{
    const uf_device *d = makers[_i].make();
    uint64_t addr = reserve(d, TOTAL);
    ck_assert_int_eq(d->pages_map(d->context, addr, 60 * MIB, 20 * MIB), UF_OK);
    ck_assert_uint_eq(free_bytes_of(d), 4 * MIB);
    ck_assert_int_eq(d->pages_map(d->context, addr + 60 * MIB, 6 * MIB, 2 * MIB),
                     UF_ERROR_DEVICE_MEMORY);
    ck_assert_uint_eq(free_bytes_of(d), 4 * MIB);
    ck_assert_int_eq(d->pages_map(d->context, addr + 60 * MIB, 4 * MIB, 2 * MIB), UF_OK);
    ck_assert_int_eq(d->pages_unmap(d->context, addr + 20 * MIB, 20 * MIB, 20 * MIB), UF_OK);
    ck_assert_uint_eq(free_bytes_of(d), 20 * MIB);
    ck_assert_int_eq(d->pages_unmap(d->context, addr, 20 * MIB, 20 * MIB), UF_OK);
    ck_assert_int_eq(d->pages_unmap(d->context, addr + 40 * MIB, 20 * MIB, 20 * MIB), UF_OK);
    ck_assert_int_eq(d->pages_unmap(d->context, addr + 60 * MIB, 4 * MIB, 2 * MIB), UF_OK);
    ck_assert_uint_eq(free_bytes_of(d), CAPACITY);
    ck_assert_int_eq(d->range_release(d->context, addr, TOTAL), UF_OK);
    makers[_i].end();
}
END_TEST

START_TEST(handles_take_capacity_wherever_they_are_mapped)
{
    const uf_device *d = makers[_i].make();
    uint64_t addr = reserve(d, TOTAL), refused = 7;
    uint64_t large = create(d, 32 * MIB), small = create(d, GRANULE);
    ck_assert_uint_ne(large, small);
    ck_assert_uint_eq(free_bytes_of(d), 30 * MIB);
    ck_assert_int_eq(d->handle_create(d->context, 32 * MIB, &refused), UF_ERROR_DEVICE_MEMORY);
    ck_assert_uint_eq(refused, 7);
    /* At any granule, and several with one call for access. */
    ck_assert_int_eq(d->handle_map(d->context, addr + GRANULE, large, 32 * MIB), UF_OK);
    ck_assert_int_eq(d->handle_map(d->context, addr + 34 * MIB, small, GRANULE), UF_OK);
    ck_assert_int_eq(d->range_access(d->context, addr + GRANULE, 34 * MIB, 2), UF_OK);
    ck_assert_uint_eq(free_bytes_of(d), 30 * MIB);
    ck_assert_int_eq(d->range_unmap(d->context, addr + GRANULE, 34 * MIB, 2), UF_OK);
    ck_assert_uint_eq(free_bytes_of(d), 30 * MIB);
    ck_assert_int_eq(d->handle_map(d->context, addr, small, GRANULE), UF_OK);
    ck_assert_int_eq(d->range_access(d->context, addr, GRANULE, 1), UF_OK);
    ck_assert_int_eq(d->handle_map(d->context, addr + 40 * MIB, small, GRANULE), UF_OK); /* twice */
    ck_assert_int_eq(d->range_unmap(d->context, addr, GRANULE, 1), UF_OK);
    ck_assert_int_eq(d->range_unmap(d->context, addr + 40 * MIB, GRANULE, 1), UF_OK);
    ck_assert_int_eq(d->handle_release(d->context, small, GRANULE), UF_OK);
    ck_assert_int_eq(d->handle_release(d->context, large, 32 * MIB), UF_OK);
    ck_assert_uint_eq(free_bytes_of(d), CAPACITY);
    ck_assert_int_eq(d->range_release(d->context, addr, TOTAL), UF_OK);
    makers[_i].end();
}
END_TEST

START_TEST(an_event_is_done_once_the_work_before_it_is)
{
    const uf_device *d = makers[_i].make();
    uint64_t first = 0, second = 0, stream = makers[_i].stream(5);
    bool is_done = true;
    makers[_i].keep_busy(stream);
    ck_assert_int_eq(d->event_record(d->context, stream, &first), UF_OK);
    ck_assert_int_eq(d->event_query(d->context, first, &is_done), UF_OK);
    ck_assert(!is_done);
    makers[_i].synchronize();
    makers[_i].keep_busy(stream);
    ck_assert_int_eq(d->event_record(d->context, stream, &second), UF_OK);
    ck_assert_uint_ne(first, second);
    ck_assert_int_eq(d->event_query(d->context, second, &is_done), UF_OK);
    ck_assert(!is_done);
    ck_assert_int_eq(d->event_query(d->context, first, &is_done), UF_OK);
    ck_assert(is_done);
    ck_assert_int_eq(d->event_wait(d->context, second), UF_OK);
    makers[_i].end();
}
END_TEST

START_TEST(waiting_for_a_stream_succeeds_busy_idle_or_unheard_of)
{
    const uf_device *d = makers[_i].make();
    uint64_t stream = makers[_i].stream(5);
    makers[_i].keep_busy(stream);
    ck_assert_int_eq(d->stream_wait(d->context, stream), UF_OK);
    ck_assert_int_eq(d->stream_wait(d->context, stream), UF_OK);
    ck_assert_int_eq(d->stream_wait(d->context, makers[_i].stream(77)), UF_OK);
    makers[_i].end();
}
END_TEST

int main(int argc, char **argv)
{
    (void)argc;
    fake_gpu_enter(argv);
    const TTest *const rules[] = {
        every_function_is_there,
        segments_take_capacity_and_give_it_back,
        address_space_takes_no_memory_and_ranges_are_apart,
        pages_are_mapped_all_or_nothing,
        handles_take_capacity_wherever_they_are_mapped,
        an_event_is_done_once_the_work_before_it_is,
        waiting_for_a_stream_succeeds_busy_idle_or_unheard_of,
    };
    Suite *suite = suite_create("device");
    TCase *tcase = tcase_create("device");
    tcase_set_timeout(tcase, 60);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        tcase_add_loop_test(tcase, rules[i], 0, MAKER_COUNT);
    }
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
