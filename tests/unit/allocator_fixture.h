/* SPDX-License-Identifier: MIT
 *
 * For tests of the public allocator: one on a simulated device, checked after each step. */
#ifndef UF_TESTS_ALLOCATOR_FIXTURE_H
#define UF_TESTS_ALLOCATOR_FIXTURE_H

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <unfrag/unfrag.h>

#include "device/sim.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

typedef struct fixture {
    uf_sim sim;
    uf_allocator *allocator;
    uf_error error;
} fixture;

static inline uf_allocator_options fixture_options(fixture *f, const char *conf)
{
    uf__sim_init(&f->sim, 24 * GIB, 0);
    return (uf_allocator_options){
        .struct_size_bytes = sizeof(uf_allocator_options), .device = &f->sim.device, .conf = conf};
}

static inline void fixture_make(fixture *f, const uf_allocator_options *options)
{
    f->allocator = NULL;
    uf_status status = uf_allocator_create(options, &f->allocator, &f->error);
    ck_assert_msg(status == UF_OK, "%s", f->error.text);
}

static inline void fixture_init(fixture *f, const char *conf, uint64_t limit_bytes)
{
    uf_allocator_options options = fixture_options(f, conf);
    options.limit_bytes = limit_bytes;
    fixture_make(f, &options);
}

static inline void fixture_check(fixture *f)
{
    uf_status status = uf_check(f->allocator, &f->error);
    ck_assert_msg(status == UF_OK, "%s", f->error.text);
}

/* Ends the allocator and proves that nothing is left on the device. */
static inline void fixture_fini(fixture *f)
{
    fixture_check(f);
    uf_allocator_destroy(f->allocator);
    ck_assert_uint_eq(f->sim.in_use_bytes, 0);
}

static inline uint64_t take(fixture *f, uint64_t bytes, uint64_t stream)
{
    uint64_t addr = 0;
    uf_status status = uf_alloc(f->allocator, bytes, stream, &addr, &f->error);
    ck_assert_msg(status == UF_OK, "%s", f->error.text);
    fixture_check(f);
    return addr;
}

static inline void give(fixture *f, uint64_t addr)
{
    uf_status status = uf_free(f->allocator, addr, &f->error);
    ck_assert_msg(status == UF_OK, "%s", f->error.text);
    fixture_check(f);
}

/* The call fails with that status, and the text holds that part. */
static inline void refuses(fixture *f, uf_status expected, uf_status status, const char *part)
{
    ck_assert_msg(status == expected, "%s, not %s", uf_status_name(status),
                  uf_status_name(expected));
    ck_assert_int_eq(f->error.status, expected);
    ck_assert_msg(strstr(f->error.text, part) != NULL, "'%s' is not in: %s", part, f->error.text);
    fixture_check(f);
}

static inline uf_stats stats_of(fixture *f)
{
    uf_stats stats;
    ck_assert_int_eq(uf_stats_get(f->allocator, &stats, &f->error), UF_OK);
    return stats;
}

static inline int64_t reserved_of(fixture *f)
{
    return stats_of(f).reserved_bytes.all.current;
}

#endif
