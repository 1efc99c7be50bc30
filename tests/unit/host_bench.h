/* SPDX-License-Identifier: MIT
 *
 * A device of host memory with small granules, for tests. Single-threaded. */
#ifndef UF_TESTS_HOST_BENCH_H
#define UF_TESTS_HOST_BENCH_H

#include <check.h>
#include <string.h>

#include <unfrag/host.h>

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define GRANULE (64 * KIB)

typedef struct host_bench {
    uf_host *host;
    const uf_device *device;
    void *context; /* the device's */
    uint64_t fault_count;
} host_bench;

static inline host_bench host_bench_make(uint64_t capacity_bytes)
{
    host_bench b = {0};
    uf_error error;
    uf_host_options options = {.struct_size_bytes = sizeof options,
                               .total_bytes = 64 * MIB,
                               .capacity_bytes = capacity_bytes,
                               .granularity_bytes = GRANULE};
    ck_assert_msg(uf_host_create(&options, &b.host, &error) == UF_OK, "%s", error.text);
    b.device = uf_host_device(b.host);
    b.context = b.device->context;
    return b;
}

static inline uf_host_counts host_counts(const host_bench *b)
{
    uf_host_counts counts;
    uf_host_counts_get(b->host, &counts);
    return counts;
}

/* No rule was broken since the last look. */
static inline void host_is_clean(const host_bench *b)
{
    uf_error error = {UF_OK, ""};
    uint64_t count = uf_host_faults(b->host, &error);
    ck_assert_msg(count == b->fault_count, "%s", error.text);
}

/* One more rule was broken, with that text, and the call said so. */
static inline void host_refused(host_bench *b, uf_status status, const char *text)
{
    uf_error error = {UF_OK, ""};
    ck_assert_int_eq(status, UF_ERROR_DEVICE);
    ck_assert_uint_eq(uf_host_faults(b->host, &error), ++b->fault_count);
    ck_assert_msg(strstr(error.text, text) != NULL, "'%s' is not in '%s'", text, error.text);
}

static inline void host_bench_end(host_bench *b)
{
    host_is_clean(b);
    uf_host_destroy(b->host);
}

static inline uint64_t host_range(const host_bench *b, uint64_t size_bytes)
{
    uint64_t addr = 0;
    ck_assert_int_eq(b->device->range_reserve(b->context, size_bytes, &addr), UF_OK);
    return addr;
}

static inline uint64_t host_handle(const host_bench *b, uint64_t size_bytes)
{
    uint64_t handle = 0;
    ck_assert_int_eq(b->device->handle_create(b->context, size_bytes, &handle), UF_OK);
    return handle;
}

/* Maps with access. */
static inline void host_map(const host_bench *b, uint64_t addr, uint64_t handle,
                            uint64_t size_bytes)
{
    ck_assert_int_eq(b->device->handle_map(b->context, addr, handle, size_bytes), UF_OK);
    ck_assert_int_eq(b->device->range_access(b->context, addr, size_bytes, 1), UF_OK);
}

static inline volatile unsigned char *host_bytes(uint64_t addr)
{
    return (volatile unsigned char *)(uintptr_t)addr;
}

#endif
