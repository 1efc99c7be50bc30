/* SPDX-License-Identifier: MIT
 *
 * The device of host memory: options, segments, counts, failures on order. */
#include "device/host.h"

#include "unit/host_bench.h"
#include "unit/suite.h"

START_TEST(options_outside_their_range_are_refused)
{
    static const uf_host_options bad[] = {
        {.struct_size_bytes = 8},
        {.struct_size_bytes = sizeof(uf_host_options), .total_bytes = (UINT64_C(1) << 40) + 1},
        {.struct_size_bytes = sizeof(uf_host_options), .capacity_bytes = UINT64_MAX},
        {.struct_size_bytes = sizeof(uf_host_options), .granularity_bytes = 3 * MIB},
        {.struct_size_bytes = sizeof(uf_host_options), .granularity_bytes = 512},
        {.struct_size_bytes = sizeof(uf_host_options), .granularity_bytes = UINT64_C(1) << 31},
    };
    uf_host *host = NULL;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uf_error error = {UF_OK, ""};
        ck_assert_int_eq(uf_host_create(&bad[i], &host, &error), UF_ERROR_INVALID_ARGUMENT);
        ck_assert_int_eq(error.status, UF_ERROR_INVALID_ARGUMENT);
        ck_assert_ptr_null(host);
    }
    ck_assert_int_eq(uf_host_create(NULL, NULL, NULL), UF_ERROR_INVALID_ARGUMENT);
    uf_host_destroy(NULL);
}
END_TEST

START_TEST(without_options_the_device_has_one_gib_in_granules_of_2_mib)
{
    uf_host *host = NULL;
    uint64_t free_bytes = 0, total_bytes = 0, handle = 0;
    ck_assert_int_eq(uf_host_create(NULL, &host, NULL), UF_OK);
    const uf_device *device = uf_host_device(host);
    ck_assert_int_eq(device->memory_info(device->context, &free_bytes, &total_bytes), UF_OK);
    ck_assert_uint_eq(free_bytes, 1024 * MIB);
    ck_assert_uint_eq(total_bytes, 1024 * MIB);
    ck_assert_int_eq(device->handle_create(device->context, MIB, &handle), UF_ERROR_DEVICE);
    ck_assert_int_eq(device->handle_create(device->context, 2 * MIB, &handle), UF_OK);
    uf_host_destroy(host);
}
END_TEST

START_TEST(a_segment_is_memory_to_its_last_byte)
{
    host_bench b = host_bench_make(0);
    uint64_t addr = 0;
    ck_assert_int_eq(b.device->segment_create(b.context, 100001, 0, &addr), UF_OK);
    ck_assert_uint_eq(addr % GRANULE, 0);
    host_bytes(addr)[0] = 1;
    host_bytes(addr)[100000] = 2;
    ck_assert_uint_eq(host_bytes(addr)[0] + host_bytes(addr)[100000], 3);
    ck_assert_uint_eq(host_counts(&b).in_use_bytes, 100001);
    ck_assert_int_eq(b.device->segment_destroy(b.context, addr, 100001), UF_OK);
    ck_assert_uint_eq(host_counts(&b).in_use_bytes, 0);
    host_bench_end(&b);
}
END_TEST

START_TEST(only_a_segment_that_is_there_can_be_destroyed)
{
    host_bench b = host_bench_make(0);
    uint64_t addr = 0;
    ck_assert_int_eq(b.device->segment_create(b.context, MIB, 0, &addr), UF_OK);
    host_refused(&b, b.device->segment_destroy(b.context, addr, 2 * MIB), "no segment");
    host_refused(&b, b.device->segment_destroy(b.context, addr + 1, MIB), "no segment");
    ck_assert_int_eq(b.device->segment_destroy(b.context, addr, MIB), UF_OK);
    host_refused(&b, b.device->segment_destroy(b.context, addr, MIB), "no segment");
    host_refused(&b, b.device->segment_create(b.context, 0, 0, &addr), "no bytes");
    host_bench_end(&b);
}
END_TEST

START_TEST(the_nth_call_of_a_kind_fails_and_does_nothing)
{
    host_bench b = host_bench_make(0);
    uint64_t addr = host_range(&b, 4 * GRANULE), handle = host_handle(&b, GRANULE);
    uf_host_fail(b.host, UF_HOST_HANDLE_MAP, 2, false, UF_ERROR_DEVICE);
    ck_assert_int_eq(b.device->handle_map(b.context, addr, handle, GRANULE), UF_OK);
    ck_assert_int_eq(b.device->handle_map(b.context, addr + GRANULE, handle, GRANULE),
                     UF_ERROR_DEVICE);
    ck_assert_uint_eq(host_counts(&b).mapping_count, 1);
    ck_assert_int_eq(b.device->handle_map(b.context, addr + GRANULE, handle, GRANULE), UF_OK);
    ck_assert_uint_eq(host_counts(&b).call_counts[UF_HOST_HANDLE_MAP], 3);
    host_bench_end(&b);
}
END_TEST

START_TEST(a_lasting_failure_lasts_until_it_is_ended)
{
    host_bench b = host_bench_make(0);
    uint64_t handle = 7;
    uf_host_fail(b.host, UF_HOST_HANDLE_CREATE, 1, true, UF_ERROR_DEVICE_MEMORY);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(b.device->handle_create(b.context, GRANULE, &handle),
                         UF_ERROR_DEVICE_MEMORY);
        ck_assert_uint_eq(handle, 7);
    }
    uf_host_fail(b.host, UF_HOST_HANDLE_CREATE, 0, false, UF_OK);
    (void)host_handle(&b, GRANULE);
    host_bench_end(&b); /* what was ordered is no fault of the user's */
}
END_TEST

/* Each function of the device fails on order: none of them forgets to ask. */
START_TEST(every_function_can_be_made_to_fail)
{
    host_bench b = host_bench_make(0);
    const uf_device *d = b.device;
    uint64_t number = 0, other = 0;
    bool is_done = false;
    for (int i = 0; i < UF_HOST_CALL_COUNT; i++) {
        uf_host_fail(b.host, (uf_host_call)i, 1, true, UF_ERROR_DEVICE);
    }
    ck_assert_int_eq(d->memory_info(b.context, &number, &other), UF_ERROR_DEVICE);
    ck_assert_int_eq(d->segment_create(b.context, GRANULE, 0, &number), UF_ERROR_DEVICE);
    ck_assert_int_eq(d->segment_destroy(b.context, 0, GRANULE), UF_ERROR_DEVICE);
    ck_assert_int_eq(d->range_reserve(b.context, GRANULE, &number), UF_ERROR_DEVICE);
    ck_assert_int_eq(d->range_release(b.context, 0, GRANULE), UF_ERROR_DEVICE);
    ck_assert_int_eq(d->pages_map(b.context, 0, GRANULE, GRANULE), UF_ERROR_DEVICE);
    ck_assert_int_eq(d->pages_unmap(b.context, 0, GRANULE, GRANULE), UF_ERROR_DEVICE);
    ck_assert_int_eq(d->stream_wait(b.context, 0), UF_ERROR_DEVICE);
    ck_assert_int_eq(d->event_record(b.context, 0, &number), UF_ERROR_DEVICE);
    ck_assert_int_eq(d->event_query(b.context, 0, &is_done), UF_ERROR_DEVICE);
    ck_assert_int_eq(d->event_wait(b.context, 0), UF_ERROR_DEVICE);
    ck_assert_int_eq(d->handle_create(b.context, GRANULE, &number), UF_ERROR_DEVICE);
    ck_assert_int_eq(d->handle_release(b.context, 0, GRANULE), UF_ERROR_DEVICE);
    ck_assert_int_eq(d->handle_map(b.context, 0, 0, GRANULE), UF_ERROR_DEVICE);
    ck_assert_int_eq(d->range_access(b.context, 0, GRANULE, 1), UF_ERROR_DEVICE);
    ck_assert_int_eq(d->range_unmap(b.context, 0, GRANULE, 1), UF_ERROR_DEVICE);
    ck_assert_int_eq(d->bytes_set(b.context, 0, 1, 0, 0), UF_ERROR_DEVICE);
    ck_assert_int_eq(d->bytes_compare(b.context, 0, 1, 0, 0, &number, &other), UF_ERROR_DEVICE);
    for (int i = 0; i < UF_HOST_CALL_COUNT; i++) {
        ck_assert_uint_eq(host_counts(&b).call_counts[i], 1);
    }
    host_bench_end(&b);
}
END_TEST

int main(void)
{
    return suite_run("host", (const TTest *const[]){
                                 options_outside_their_range_are_refused,
                                 without_options_the_device_has_one_gib_in_granules_of_2_mib,
                                 a_segment_is_memory_to_its_last_byte,
                                 only_a_segment_that_is_there_can_be_destroyed,
                                 the_nth_call_of_a_kind_fails_and_does_nothing,
                                 a_lasting_failure_lasts_until_it_is_ended,
                                 every_function_can_be_made_to_fail,
                                 NULL,
                             });
}
