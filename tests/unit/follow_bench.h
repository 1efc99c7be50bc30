/* SPDX-License-Identifier: MIT
 *
 * One following of a small trace, under assumptions of the test's choice. Single-threaded. */
#ifndef UF_TESTS_FOLLOW_BENCH_H
#define UF_TESTS_FOLLOW_BENCH_H

#include "replay/follow.h"
#include "unit/trace_maker.h"

typedef struct follow_bench {
    maker m;
    uf_program *program;
    uf_follow follow;
    uf_assumptions assumptions;
    uint16_t labels[600];
    uint8_t is_bound[600];
    uf_forced_reading readings[4];
} follow_bench;

/* Follows the events in f->m; nothing is private, no start state. */
static inline void follow_bench_run(follow_bench *f)
{
    f->program = maker_link(&f->m);
    f->assumptions.labels = f->labels;
    f->assumptions.is_bound = f->is_bound;
    f->assumptions.readings = f->readings;
    ck_assert_int_eq(uf__follow_run(&f->follow, f->program, &f->assumptions), UF_OK);
    uf_error error = {UF_OK, ""};
    if (!f->follow.has_failed && uf__core_check(&f->follow.core, &error) != UF_OK) {
        ck_abort_msg("%s", error.text);
    }
}

static inline void follow_bench_fini(follow_bench *f)
{
    uf__follow_fini(&f->follow);
    uf_program_destroy(f->program);
}

/* The recording is reproduced. */
static inline void follow_bench_expect_equal(follow_bench *f)
{
    follow_bench_run(f);
    if (f->follow.has_failed) {
        ck_abort_msg("%s", f->follow.difference.text);
    }
    ck_assert_uint_eq(f->follow.cursor, f->program->event_count);
    follow_bench_fini(f);
}

/* It is not, from that event on, and the text says why. */
static inline void follow_bench_expect_difference(follow_bench *f, uf_difference_kind kind,
                                                  uint64_t event, const char *text)
{
    follow_bench_run(f);
    ck_assert(f->follow.has_failed);
    ck_assert_int_eq(f->follow.difference.kind, kind);
    ck_assert_uint_eq(f->follow.difference.event, event);
    if (strstr(f->follow.difference.text, text) == NULL) {
        ck_abort_msg("\"%s\" does not say \"%s\"", f->follow.difference.text, text);
    }
    follow_bench_fini(f);
}

#endif
