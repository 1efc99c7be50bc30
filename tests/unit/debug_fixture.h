/* SPDX-License-Identifier: MIT
 *
 * For tests of debug mode: an allocator over the host's memory that notes what it reports. */
#ifndef UF_TESTS_DEBUG_FIXTURE_H
#define UF_TESTS_DEBUG_FIXTURE_H

#include <string.h>

#include <unfrag/host.h>
#include <unfrag/unfrag.h>

#include "unit/suite.h"

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)

typedef struct debug_fixture {
    uf_host *host;
    uf_allocator *allocator;
    uf_error error;
    uint64_t report_count;
    uf_damage last; /* its text is NULL: it was borrowed */
    char text[500];
} debug_fixture;

static inline void debug_note(void *context, const uf_damage *damage)
{
    debug_fixture *f = context;
    uf_error error;
    f->report_count++;
    f->last = *damage;
    f->last.text = NULL;
    strncpy(f->text, damage->text, sizeof f->text - 1);
    ck_assert_int_eq(uf_empty_cache(f->allocator, &error), UF_ERROR_BUSY);
}

static inline uf_allocator_options debug_options(debug_fixture *f, uf_policy policy)
{
    const uf_host_options of_host = {.struct_size_bytes = sizeof of_host,
                                     .total_bytes = 96 * MIB,
                                     .granularity_bytes = 64 * KIB};
    *f = (debug_fixture){.host = NULL};
    ck_assert_int_eq(uf_host_create(&of_host, &f->host, &f->error), UF_OK);
    return (uf_allocator_options){.struct_size_bytes = sizeof(uf_allocator_options),
                                  .device = uf_host_device(f->host),
                                  .policy = policy,
                                  .page_bytes = 64 * KIB,
                                  .is_debug = true,
                                  .on_damage = debug_note,
                                  .damage_context = f};
}

static inline void debug_make(debug_fixture *f, const uf_allocator_options *options)
{
    uf_status status = uf_allocator_create(options, &f->allocator, &f->error);
    ck_assert_msg(status == UF_OK, "%s", f->error.text);
}

static inline void debug_init(debug_fixture *f, uf_policy policy)
{
    uf_allocator_options options = debug_options(f, policy);
    debug_make(f, &options);
}

static inline void debug_fini(debug_fixture *f)
{
    uf_host_counts counts;
    uf_error fault = {UF_OK, ""};
    uf_allocator_destroy(f->allocator);
    uf_host_counts_get(f->host, &counts);
    ck_assert_msg(uf_host_faults(f->host, &fault) == 0, "%s", fault.text);
    ck_assert_uint_eq(counts.in_use_bytes, 0);
    uf_host_destroy(f->host);
}

static inline uint64_t debug_take(debug_fixture *f, uint64_t bytes, uint64_t stream)
{
    uint64_t addr = 0;
    uf_status status = uf_alloc(f->allocator, bytes, stream, &addr, &f->error);
    ck_assert_msg(status == UF_OK, "%s", f->error.text);
    return addr;
}

static inline void debug_kernel(void *context, uint64_t addr, uint64_t bytes)
{
    memset((void *)(uintptr_t)addr, (int)(uintptr_t)context, bytes);
}

/* A kernel that sets bytes, some time later. */
static inline void debug_write(debug_fixture *f, uint64_t stream, uint64_t addr, uint64_t bytes)
{
    void *value = (void *)(uintptr_t)(addr % 200 + 1); /* none that debug mode uses */
    ck_assert_int_eq(uf_host_launch(f->host, stream, debug_kernel, value, addr, bytes), UF_OK);
}

static inline void debug_expect(debug_fixture *f, uf_status expected, uf_status status,
                                const char *part)
{
    ck_assert_msg(status == expected, "%s, not %s", uf_status_name(status),
                  uf_status_name(expected));
    ck_assert_msg(strstr(f->error.text, part) != NULL, "'%s' is not in: %s", part, f->error.text);
}

static inline void debug_expect_damage(const debug_fixture *f, const uf_damage *expected)
{
    ck_assert_int_eq(f->last.kind, expected->kind);
    ck_assert_uint_eq(f->last.addr, expected->addr);
    ck_assert_uint_eq(f->last.size_bytes, expected->size_bytes);
    ck_assert_uint_eq(f->last.stream, expected->stream);
    ck_assert_uint_eq(f->last.offset_bytes, expected->offset_bytes);
    ck_assert_uint_eq(f->last.damaged_bytes, expected->damaged_bytes);
}

#endif
