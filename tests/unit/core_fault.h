/* SPDX-License-Identifier: MIT
 *
 * The same run of operations again and again, with another driver call failing each time: once or
 * from then on. After each operation the core must be consistent and hold what the device says.
 * Single-threaded. */
#ifndef UF_TESTS_CORE_FAULT_H
#define UF_TESTS_CORE_FAULT_H

#include <inttypes.h>

#include "unit/core_bench.h"
#include "unit/suite.h"

enum { FAULT_STEPS = 90, FAULT_BLOCKS = 24 };

typedef struct fault_plan {
    const char *conf;
    uint64_t limit_bytes, card_bytes;
    uint64_t max_bytes; /* of a request */
    uint64_t seed;
} fault_plan;

static inline void fault_expect(const bench *b, uf_status status)
{
    bool is_known = status == UF_OK || status == UF_ERROR_OUT_OF_MEMORY ||
                    (b->fail_at != 0 && status == b->failure);
    if (!is_known) {
        ck_abort_msg("%s although call %" PRIu64 " was to fail with %s", uf_status_name(status),
                     b->fail_at, uf_status_name(b->failure));
    }
    bench_check(b);
}

static inline void fault_alloc(bench *b, const fault_plan *plan, uint64_t number, uint32_t pool,
                               uint32_t *block)
{
    uint64_t bytes =
        (number >> 8) % 4 == 0 ? 1 + (number >> 16) % 500000 : 1 + (number >> 16) % plan->max_bytes;
    uint32_t stream = bench_stream(b, (number >> 12) % 2 * 7);
    *block = UF_NO_BLOCK;
    fault_expect(b, uf__core_process(&b->core));
    uf_status status = uf__core_alloc(&b->core, bytes, stream, pool, block);
    fault_expect(b, status);
    ck_assert((status == UF_OK) == (*block != UF_NO_BLOCK));
    if (status == UF_OK && (number >> 20) % 5 == 0) {
        fault_expect(b, uf__core_use(&b->core, *block, 1 - stream));
    }
}

static inline void fault_play(bench *b, const fault_plan *plan)
{
    uint32_t blocks[FAULT_BLOCKS] = {0}, pool;
    uint64_t random = plan->seed;
    (void)bench_stream(b, 7);
    ck_assert_int_eq(uf__core_pool_create(&b->core, 0, 1, &pool), UF_OK);
    for (int step = 0; step < FAULT_STEPS; step++) {
        uint64_t number = suite_random(&random);
        uint32_t *block = &blocks[number % FAULT_BLOCKS];
        bool is_private = (number >> 5) % 6 == 0 && step < FAULT_STEPS / 2;
        if (step == FAULT_STEPS / 2) {
            uf__core_pool_release(&b->core, pool);
        } else if (step % 17 == 16) {
            fault_expect(b, uf__core_empty_cache(&b->core));
        } else if (step % 11 == 10) {
            uf__sim_synchronize(&b->sim);
        } else if (*block == UF_NO_BLOCK) {
            fault_alloc(b, plan, number, is_private ? pool : UF_DEFAULT_POOL, block);
        } else {
            fault_expect(b, uf__core_free(&b->core, *block));
            *block = UF_NO_BLOCK;
        }
    }
}

/* Returns how many driver calls the run makes if none fails. */
static inline uint64_t fault_drive(const fault_plan *plan)
{
    static const uf_status failures[] = {UF_ERROR_DEVICE, UF_ERROR_DEVICE_MEMORY};
    static bench b;
    bench_init(&b, plan->conf, plan->limit_bytes, plan->card_bytes);
    b.call_count = 0;
    fault_play(&b, plan);
    uint64_t call_count = b.call_count;
    bench_fini(&b);
    for (uint64_t n = 1; n <= call_count; n++) {
        for (unsigned way = 0; way < 4; way++) {
            bench_init(&b, plan->conf, plan->limit_bytes, plan->card_bytes);
            b.call_count = 0;
            b.fail_at = n;
            b.failure = failures[way / 2];
            b.is_lasting = way % 2 != 0;
            fault_play(&b, plan);
            bench_fini(&b);
        }
    }
    return call_count;
}

#endif
