/* SPDX-License-Identifier: MIT
 *
 * Pools brought back to a checkpoint: against a plain list of what was handed out then. */
#include <unfrag/unfrag.h>

#include <inttypes.h>

#include "unit/allocator_fixture.h"
#include "unit/suite.h"

enum { LIVE_MAX = 400, ROUND_COUNT = 60, STEP_COUNT = 120 };

typedef struct held {
    uint64_t addr, bytes;
} held;

typedef struct model {
    held live[LIVE_MAX];
    uint32_t count;
} model;

static void make(fixture *f, uf_policy policy, const char *conf)
{
    uf_allocator_options options = fixture_options(f, conf);
    options.policy = policy;
    fixture_make(f, &options);
}

static uint64_t new_pool(fixture *f)
{
    uint64_t pool = 0;
    ck_assert_int_eq(uf_pool_create(f->allocator, NULL, &pool, &f->error), UF_OK);
    return pool;
}

static void model_remove(model *m, uint64_t addr)
{
    for (uint32_t i = 0; i < m->count; i++) {
        if (m->live[i].addr == addr) {
            m->live[i] = m->live[--m->count];
            return;
        }
    }
    ck_abort_msg("0x%" PRIx64 " was reported given back, and was not handed out", addr);
}

static void note(void *context, uint64_t addr, uint64_t requested_bytes, bool is_handed_out)
{
    model *m = context;
    if (is_handed_out) {
        m->live[m->count++] = (held){addr, requested_bytes};
    } else {
        model_remove(m, addr);
    }
}

static bool has(const model *m, held wanted)
{
    for (uint32_t i = 0; i < m->count; i++) {
        if (m->live[i].addr == wanted.addr && m->live[i].bytes == wanted.bytes) {
            return true;
        }
    }
    return false;
}

static void restore(fixture *f, const uf_pool_checkpoint *checkpoint, model *m, const model *then)
{
    uf_status status = uf_pool_checkpoint_restore(f->allocator, checkpoint, note, m, &f->error);
    ck_assert_msg(status == UF_OK, "%s", f->error.text);
    fixture_check(f);
    ck_assert_uint_eq(m->count, then->count);
    for (uint32_t i = 0; i < then->count; i++) {
        ck_assert(has(m, then->live[i]));
        uf_block_place place;
        ck_assert_int_eq(uf_block_get(f->allocator, then->live[i].addr, &place, &f->error), UF_OK);
        ck_assert_uint_eq(place.addr, then->live[i].addr);
        ck_assert_uint_eq(place.requested_bytes, then->live[i].bytes);
    }
}

static uint64_t draw_bytes(uint64_t *random)
{
    uint64_t n = suite_random(random), kind = n % 4;
    return 1 + (kind == 0   ? n / 4 % 2000
                : kind == 1 ? n / 4 % MIB
                : kind == 2 ? n / 4 % (30 * MIB)
                            : n / 4 % (90 * MIB));
}

static void step(fixture *f, uint64_t pool, model *m, uint64_t *random)
{
    bool is_free = m->count > 0 && (m->count > LIVE_MAX / 2 || suite_random(random) % 2 == 0);
    if (is_free) {
        uint32_t at = (uint32_t)(suite_random(random) % m->count);
        ck_assert_int_eq(uf_free(f->allocator, m->live[at].addr, &f->error), UF_OK);
        m->live[at] = m->live[--m->count];
        return;
    }
    uint64_t bytes = draw_bytes(random), addr = 0, stream = suite_random(random) % 2 * 64;
    ck_assert_int_eq(uf_pool_begin(f->allocator, pool, &f->error), UF_OK);
    uf_status status = uf_alloc(f->allocator, bytes, stream, &addr, &f->error);
    ck_assert_int_eq(uf_pool_end(f->allocator, pool, &f->error), UF_OK);
    if (status == UF_OK) {
        m->live[m->count++] = (held){addr, bytes};
    } else {
        ck_assert_int_eq(status, UF_ERROR_OUT_OF_MEMORY);
    }
}

/* Goes on at random from the newest checkpoint and back, to old ones too. */
static void drive(uf_policy policy, const char *conf, uint64_t seed)
{
    enum { KEPT = 5 };
    static model m, then[KEPT];
    uf_pool_checkpoint *checkpoints[KEPT] = {NULL};
    fixture f;
    make(&f, policy, conf);
    uint64_t pool = new_pool(&f), random = seed;
    m.count = 0;
    for (uint32_t round = 0; round < ROUND_COUNT; round++) {
        uint64_t steps = suite_random(&random) % STEP_COUNT;
        for (uint64_t i = 0; i < steps; i++) {
            step(&f, pool, &m, &random);
        }
        fixture_check(&f);
        uint32_t at = (uint32_t)(suite_random(&random) % KEPT);
        if (checkpoints[at] == NULL || suite_random(&random) % 3 == 0) {
            uf_pool_checkpoint_destroy(checkpoints[at]);
            ck_assert_int_eq(
                uf_pool_checkpoint_create(f.allocator, pool, &checkpoints[at], &f.error), UF_OK);
            then[at] = m;
        } else {
            restore(&f, checkpoints[at], &m, &then[at]);
        }
    }
    for (int i = 0; i < KEPT; i++) {
        uf_pool_checkpoint_destroy(checkpoints[i]);
    }
    fixture_fini(&f);
}

START_TEST(a_pool_goes_back_to_any_checkpoint_under_the_torch_policy)
{
    for (uint64_t seed = 1; seed <= 6; seed++) {
        drive(UF_POLICY_TORCH, NULL, seed);
    }
}
END_TEST

START_TEST(a_pool_goes_back_to_any_checkpoint_with_expandable_segments)
{
    for (uint64_t seed = 1; seed <= 6; seed++) {
        drive(UF_POLICY_TORCH, "expandable_segments:True", seed);
    }
}
END_TEST

START_TEST(a_pool_goes_back_to_any_checkpoint_under_the_unfrag_policy)
{
    for (uint64_t seed = 1; seed <= 6; seed++) {
        drive(UF_POLICY_UNFRAG, NULL, seed);
    }
}
END_TEST

START_TEST(blocks_outside_the_pool_are_left_alone)
{
    fixture f;
    make(&f, UF_POLICY_TORCH, NULL);
    uint64_t pool = new_pool(&f), outside = take(&f, 3 * MIB, 0);
    uf_pool_checkpoint *empty = NULL;
    ck_assert_int_eq(uf_pool_checkpoint_create(f.allocator, pool, &empty, &f.error), UF_OK);
    ck_assert_int_eq(uf_pool_begin(f.allocator, pool, &f.error), UF_OK);
    model m = {.count = 0}, nothing = {.count = 0};
    m.live[m.count++] = (held){take(&f, 2 * MIB, 0), 2 * MIB};
    ck_assert_int_eq(uf_pool_end(f.allocator, pool, &f.error), UF_OK);
    restore(&f, empty, &m, &nothing);
    give(&f, outside);
    uf_pool_checkpoint_destroy(empty);
    fixture_fini(&f);
}
END_TEST

START_TEST(a_block_that_another_stream_uses_stops_the_way_back_and_nothing_changes)
{
    fixture f;
    make(&f, UF_POLICY_TORCH, NULL);
    uint64_t pool = new_pool(&f);
    uf_pool_checkpoint *empty = NULL;
    ck_assert_int_eq(uf_pool_checkpoint_create(f.allocator, pool, &empty, &f.error), UF_OK);
    ck_assert_int_eq(uf_pool_begin(f.allocator, pool, &f.error), UF_OK);
    uint64_t addr = take(&f, 2 * MIB, 0);
    ck_assert_int_eq(uf_pool_end(f.allocator, pool, &f.error), UF_OK);
    ck_assert_int_eq(uf_use_on_stream(f.allocator, addr, 64, &f.error), UF_OK);
    refuses(&f, UF_ERROR_BUSY, uf_pool_checkpoint_restore(f.allocator, empty, NULL, NULL, &f.error),
            "another stream uses a block");
    uf_block_place place;
    ck_assert_int_eq(uf_block_get(f.allocator, addr, &place, &f.error), UF_OK);
    ck_assert_uint_eq(place.size_bytes, 2 * MIB);
    ck_assert_uint_eq(place.pool_id, pool);
    ck_assert_uint_eq(place.segment_bytes, 20 * MIB);
    uf_pool_checkpoint_destroy(empty);
    fixture_fini(&f);
}
END_TEST

START_TEST(a_checkpoint_belongs_to_one_allocator_and_one_living_pool)
{
    fixture f, g;
    make(&f, UF_POLICY_TORCH, NULL);
    make(&g, UF_POLICY_TORCH, NULL);
    uint64_t pool = new_pool(&f);
    uf_pool_checkpoint *checkpoint = NULL;
    refuses(&f, UF_ERROR_NOT_FOUND,
            uf_pool_checkpoint_create(f.allocator, pool + 1, &checkpoint, &f.error),
            "there is no pool");
    ck_assert_int_eq(uf_pool_checkpoint_create(f.allocator, pool, &checkpoint, &f.error), UF_OK);
    refuses(&g, UF_ERROR_INVALID_ARGUMENT,
            uf_pool_checkpoint_restore(g.allocator, checkpoint, NULL, NULL, &g.error),
            "of another allocator");
    ck_assert_int_eq(uf_pool_destroy(f.allocator, pool, &f.error), UF_OK);
    refuses(&f, UF_ERROR_NOT_FOUND,
            uf_pool_checkpoint_restore(f.allocator, checkpoint, NULL, NULL, &f.error),
            "was destroyed");
    uf_pool_checkpoint_destroy(checkpoint);
    uf_pool_checkpoint_destroy(NULL);
    fixture_fini(&f);
    fixture_fini(&g);
}
END_TEST

int main(void)
{
    return suite_run("allocator_checkpoint",
                     (const TTest *const[]){
                         a_pool_goes_back_to_any_checkpoint_under_the_torch_policy,
                         a_pool_goes_back_to_any_checkpoint_with_expandable_segments,
                         a_pool_goes_back_to_any_checkpoint_under_the_unfrag_policy,
                         blocks_outside_the_pool_are_left_alone,
                         a_block_that_another_stream_uses_stops_the_way_back_and_nothing_changes,
                         a_checkpoint_belongs_to_one_allocator_and_one_living_pool,
                         NULL,
                     });
}
