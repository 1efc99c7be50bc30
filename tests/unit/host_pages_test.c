/* SPDX-License-Identifier: MIT
 *
 * Pages of the host device: bytes stay with their handle, and every rule of the driver holds. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "device/host.h"

#include "unit/host_bench.h"
#include "unit/suite.h"

/* Whether a byte can be read, asked of the system without a signal. */
static bool is_readable(uint64_t addr)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    bool is_good = write(ends[1], (const void *)(uintptr_t)addr, 1) == 1;
    ck_assert(is_good || errno == EFAULT);
    (void)close(ends[0]);
    (void)close(ends[1]);
    return is_good;
}

START_TEST(bytes_move_with_their_handle)
{
    host_bench b = host_bench_make(0);
    uint64_t addr = host_range(&b, 8 * GRANULE), handle = host_handle(&b, 2 * GRANULE);
    host_map(&b, addr + GRANULE, handle, 2 * GRANULE);
    host_bytes(addr + GRANULE)[0] = 17;
    host_bytes(addr + GRANULE)[2 * GRANULE - 1] = 18;
    ck_assert_int_eq(b.device->range_unmap(b.context, addr + GRANULE, 2 * GRANULE, 1), UF_OK);
    ck_assert(!is_readable(addr + GRANULE));
    host_map(&b, addr + 6 * GRANULE, handle, 2 * GRANULE);
    ck_assert_uint_eq(host_bytes(addr + 6 * GRANULE)[0], 17);
    ck_assert_uint_eq(host_bytes(addr + 6 * GRANULE)[2 * GRANULE - 1], 18);
    host_bench_end(&b);
}
END_TEST

START_TEST(one_handle_at_two_addresses_is_the_same_memory)
{
    host_bench b = host_bench_make(0);
    uint64_t addr = host_range(&b, 4 * GRANULE), handle = host_handle(&b, GRANULE);
    host_map(&b, addr, handle, GRANULE);
    host_map(&b, addr + 2 * GRANULE, handle, GRANULE);
    host_bytes(addr)[100] = 5;
    ck_assert_uint_eq(host_bytes(addr + 2 * GRANULE)[100], 5);
    ck_assert_uint_eq(host_counts(&b).in_use_bytes, GRANULE);
    ck_assert_uint_eq(host_counts(&b).mapping_count, 2);
    ck_assert_int_eq(b.device->range_unmap(b.context, addr, GRANULE, 1), UF_OK);
    ck_assert_uint_eq(host_bytes(addr + 2 * GRANULE)[100], 5);
    host_bench_end(&b);
}
END_TEST

START_TEST(memory_is_given_back_when_the_last_mapping_of_a_released_handle_goes)
{
    host_bench b = host_bench_make(2 * GRANULE);
    uint64_t addr = host_range(&b, 4 * GRANULE), handle = host_handle(&b, GRANULE), other;
    host_map(&b, addr, handle, GRANULE);
    host_map(&b, addr + GRANULE, handle, GRANULE);
    ck_assert_int_eq(b.device->handle_release(b.context, handle, GRANULE), UF_OK);
    ck_assert_uint_eq(host_counts(&b).handle_count, 0);
    host_bytes(addr)[0] = 9;
    ck_assert_int_eq(b.device->range_unmap(b.context, addr, GRANULE, 1), UF_OK);
    ck_assert_uint_eq(host_counts(&b).in_use_bytes, GRANULE);
    ck_assert_uint_eq(host_bytes(addr + GRANULE)[0], 9);
    ck_assert_int_eq(b.device->handle_create(b.context, 2 * GRANULE, &other),
                     UF_ERROR_DEVICE_MEMORY);
    ck_assert_int_eq(b.device->range_unmap(b.context, addr + GRANULE, GRANULE, 1), UF_OK);
    ck_assert_uint_eq(host_counts(&b).in_use_bytes, 0);
    host_refused(&b, b.device->handle_map(b.context, addr, handle, GRANULE), "no handle");
    (void)host_handle(&b, 2 * GRANULE);
    host_bench_end(&b);
}
END_TEST

START_TEST(released_memory_is_clean_when_it_comes_back)
{
    host_bench b = host_bench_make(GRANULE);
    uint64_t addr = host_range(&b, GRANULE), handle = host_handle(&b, GRANULE);
    host_map(&b, addr, handle, GRANULE);
    memset((void *)(uintptr_t)addr, 0x5a, GRANULE);
    ck_assert_int_eq(b.device->range_unmap(b.context, addr, GRANULE, 1), UF_OK);
    ck_assert_int_eq(b.device->handle_release(b.context, handle, GRANULE), UF_OK);
    uint64_t again = host_handle(&b, GRANULE);
    ck_assert_uint_ne(again, handle);
    host_map(&b, addr, again, GRANULE);
    for (uint64_t i = 0; i < GRANULE; i++) {
        ck_assert_uint_eq(host_bytes(addr)[i], 0);
    }
    host_refused(&b, b.device->handle_release(b.context, handle, GRANULE), "no handle");
    host_bench_end(&b);
}
END_TEST

START_TEST(without_access_nothing_can_be_read)
{
    host_bench b = host_bench_make(0);
    uint64_t addr = host_range(&b, 4 * GRANULE), handle = host_handle(&b, GRANULE);
    ck_assert(!is_readable(addr));
    ck_assert_int_eq(b.device->handle_map(b.context, addr, handle, GRANULE), UF_OK);
    ck_assert(!is_readable(addr));
    ck_assert_int_eq(b.device->range_access(b.context, addr, GRANULE, 1), UF_OK);
    ck_assert(is_readable(addr));
    ck_assert(!is_readable(addr + GRANULE));
    host_bench_end(&b);
}
END_TEST

START_TEST(sizes_and_addresses_keep_to_the_granularity)
{
    host_bench b = host_bench_make(0);
    uint64_t addr = host_range(&b, 4 * GRANULE), handle = host_handle(&b, GRANULE), number = 0;
    const uf_device *d = b.device;
    host_refused(&b, d->range_reserve(b.context, GRANULE + 4096, &number), "granularity");
    host_refused(&b, d->range_reserve(b.context, 0, &number), "granularity");
    host_refused(&b, d->handle_create(b.context, GRANULE / 2, &number), "granularity");
    host_refused(&b, d->handle_create(b.context, 0, &number), "granularity");
    host_refused(&b, d->handle_map(b.context, addr + 4096, handle, GRANULE), "granularity");
    host_refused(&b, d->pages_map(b.context, addr, GRANULE, GRANULE / 2), "granularity");
    host_refused(&b, d->pages_map(b.context, addr, 3 * GRANULE, 2 * GRANULE), "granularity");
    host_map(&b, addr, handle, GRANULE);
    host_refused(&b, d->range_access(b.context, addr, GRANULE / 2, 1), "granularity");
    host_refused(&b, d->range_unmap(b.context, addr, GRANULE / 2, 1), "granularity");
    ck_assert_uint_eq(host_counts(&b).in_use_bytes, GRANULE);
    host_bench_end(&b);
}
END_TEST

START_TEST(a_handle_is_mapped_whole_inside_one_range_where_nothing_is)
{
    host_bench b = host_bench_make(0);
    uint64_t addr = host_range(&b, 4 * GRANULE);
    uint64_t large = host_handle(&b, 2 * GRANULE), small = host_handle(&b, GRANULE);
    const uf_device *d = b.device;
    host_refused(&b, d->handle_map(b.context, addr, large, GRANULE), "no handle");
    host_refused(&b, d->handle_map(b.context, addr, 12345, GRANULE), "no handle");
    host_refused(&b, d->handle_map(b.context, addr + 3 * GRANULE, large, 2 * GRANULE),
                 "not in one reserved range");
    host_refused(&b, d->handle_map(b.context, 0, small, GRANULE), "not in one reserved range");
    ck_assert_int_eq(d->handle_map(b.context, addr + GRANULE, small, GRANULE), UF_OK);
    host_refused(&b, d->handle_map(b.context, addr, large, 2 * GRANULE), "something is mapped");
    host_refused(&b, d->pages_map(b.context, addr, 2 * GRANULE, GRANULE), "something is mapped");
    ck_assert_uint_eq(host_counts(&b).mapping_count, 1);
    host_bench_end(&b);
}
END_TEST

START_TEST(handles_are_unmapped_whole_and_as_many_as_told)
{
    host_bench b = host_bench_make(0);
    uint64_t addr = host_range(&b, 8 * GRANULE);
    uint64_t large = host_handle(&b, 2 * GRANULE), small = host_handle(&b, GRANULE);
    const uf_device *d = b.device;
    host_map(&b, addr, large, 2 * GRANULE);
    host_map(&b, addr + 2 * GRANULE, small, GRANULE);
    host_refused(&b, d->range_unmap(b.context, addr, GRANULE, 1), "cuts a handle");
    host_refused(&b, d->range_unmap(b.context, addr + GRANULE, 2 * GRANULE, 1), "cuts a handle");
    host_refused(&b, d->range_access(b.context, addr + GRANULE, GRANULE, 1), "cuts a handle");
    host_refused(&b, d->range_unmap(b.context, addr, 3 * GRANULE, 3), "2 handles are mapped");
    host_refused(&b, d->range_access(b.context, addr, 3 * GRANULE, 1), "2 handles are mapped");
    host_refused(&b, d->range_unmap(b.context, addr, 4 * GRANULE, 2), "nothing is mapped at");
    host_refused(&b, d->range_access(b.context, addr + 3 * GRANULE, GRANULE, 1),
                 "nothing is mapped at");
    ck_assert_int_eq(d->range_unmap(b.context, addr, 3 * GRANULE, 2), UF_OK);
    ck_assert_uint_eq(host_counts(&b).mapping_count, 0);
    ck_assert_uint_eq(host_counts(&b).in_use_bytes, 3 * GRANULE);
    host_bench_end(&b);
}
END_TEST

START_TEST(pages_are_mapped_all_or_nothing_and_belong_to_nobody_else)
{
    host_bench b = host_bench_make(5 * GRANULE);
    uint64_t addr = host_range(&b, 16 * GRANULE), handle = host_handle(&b, GRANULE);
    const uf_device *d = b.device;
    ck_assert_int_eq(d->pages_map(b.context, addr, 6 * GRANULE, 2 * GRANULE),
                     UF_ERROR_DEVICE_MEMORY);
    ck_assert_uint_eq(host_counts(&b).mapping_count, 0);
    ck_assert_int_eq(d->pages_map(b.context, addr, 4 * GRANULE, 2 * GRANULE), UF_OK);
    memset((void *)(uintptr_t)addr, 1, 4 * GRANULE);
    ck_assert_uint_eq(host_counts(&b).in_use_bytes, 5 * GRANULE);
    host_map(&b, addr + 4 * GRANULE, handle, GRANULE);
    host_refused(&b, d->pages_unmap(b.context, addr, GRANULE, GRANULE), "cuts a handle");
    host_refused(&b, d->pages_unmap(b.context, addr + 4 * GRANULE, GRANULE, GRANULE), "no page of");
    host_refused(&b, d->pages_unmap(b.context, addr, 4 * GRANULE, 4 * GRANULE), "2 handles");
    ck_assert_int_eq(d->pages_unmap(b.context, addr, 2 * GRANULE, 2 * GRANULE), UF_OK);
    ck_assert_uint_eq(host_counts(&b).in_use_bytes, 3 * GRANULE);
    host_bench_end(&b);
}
END_TEST

START_TEST(a_range_is_released_whole_and_empty)
{
    host_bench b = host_bench_make(0);
    uint64_t addr = host_range(&b, 4 * GRANULE), handle = host_handle(&b, GRANULE);
    const uf_device *d = b.device;
    host_map(&b, addr, handle, GRANULE);
    host_refused(&b, d->range_release(b.context, addr, 4 * GRANULE), "something is mapped");
    host_refused(&b, d->range_release(b.context, addr, 2 * GRANULE), "no range");
    host_refused(&b, d->range_release(b.context, addr + GRANULE, 3 * GRANULE), "no range");
    ck_assert_int_eq(d->range_unmap(b.context, addr, GRANULE, 1), UF_OK);
    ck_assert_int_eq(d->range_release(b.context, addr, 4 * GRANULE), UF_OK);
    ck_assert_uint_eq(host_counts(&b).range_count, 0);
    host_bench_end(&b);
}
END_TEST

int main(void)
{
    return suite_run("host_pages",
                     (const TTest *const[]){
                         bytes_move_with_their_handle,
                         one_handle_at_two_addresses_is_the_same_memory,
                         memory_is_given_back_when_the_last_mapping_of_a_released_handle_goes,
                         released_memory_is_clean_when_it_comes_back,
                         without_access_nothing_can_be_read,
                         sizes_and_addresses_keep_to_the_granularity,
                         a_handle_is_mapped_whole_inside_one_range_where_nothing_is,
                         handles_are_unmapped_whole_and_as_many_as_told,
                         pages_are_mapped_all_or_nothing_and_belong_to_nobody_else,
                         a_range_is_released_whole_and_empty,
                         NULL,
                     });
}
