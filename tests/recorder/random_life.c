/* SPDX-License-Identifier: MIT
 *
 * The random life. */
#include "recorder/random_life.h"

#include <string.h>

#define LIVE_COUNT 96

typedef struct liver {
    life *l;
    uint64_t state;
    uint64_t live[LIVE_COUNT];
    uint64_t pool; /* 0 = none */
    const life_options *options;
    uf_error *error;
} liver;

static uint64_t draw(liver *v)
{
    v->state ^= v->state << 13;
    v->state ^= v->state >> 7;
    v->state ^= v->state << 17;
    return v->state >> 9;
}

static int64_t tick(void *context)
{
    life *l = context;
    l->time_ns += 1000000;
    return l->time_ns;
}

/* 1 B to 64 MiB, small ones more often. */
static uint64_t draw_bytes(liver *v)
{
    uint64_t limit = UINT64_C(1) << (6 + draw(v) % 21);
    return 1 + draw(v) % limit;
}

static bool is_fine(uf_status status)
{
    return status == UF_OK || status == UF_ERROR_OUT_OF_MEMORY;
}

/* One draw a statement: the order of evaluation within one is the compiler's. */
static bool allocate(liver *v, uint64_t *addr)
{
    uint64_t bytes = draw_bytes(v), stream = 0x100 * (draw(v) % 3);
    uf_status status = uf_alloc(v->l->allocator, bytes, stream, addr, v->error);
    if (status == UF_OK && draw(v) % 5 == 0) {
        stream = 0x100 * (draw(v) % 3);
        status = uf_use_on_stream(v->l->allocator, *addr, stream, v->error);
    }
    return is_fine(status);
}

/* Allocates in a pool and leaves some blocks in it. */
static bool visit_pool(liver *v)
{
    uf_allocator *allocator = v->l->allocator;
    if (v->pool != 0 && v->options->is_pool_mortal) {
        uint64_t pool = v->pool;
        v->pool = 0;
        return uf_pool_destroy(allocator, pool, v->error) == UF_OK;
    }
    bool is_good = (v->pool != 0 || uf_pool_create(allocator, NULL, &v->pool, v->error) == UF_OK) &&
                   uf_pool_begin(allocator, v->pool, v->error) == UF_OK;
    for (int i = 0; i < 4 && is_good; i++) {
        uint64_t addr = 0;
        is_good = is_fine(uf_alloc(allocator, draw_bytes(v), 0, &addr, v->error));
        uint64_t *place = &v->live[draw(v) % LIVE_COUNT];
        if (is_good && *place == 0) {
            *place = addr;
        } else if (is_good) { /* address 0, after out-of-memory, is accepted */
            is_good = uf_free(allocator, addr, v->error) == UF_OK;
        }
    }
    return is_good && uf_pool_end(allocator, v->pool, v->error) == UF_OK;
}

static bool step(liver *v)
{
    uint64_t kind = draw(v) % 200;
    uint64_t *place = &v->live[draw(v) % LIVE_COUNT];
    if (kind == 0) {
        return uf_empty_cache(v->l->allocator, v->error) == UF_OK;
    }
    if (kind < 10) {
        uf_sim_synchronize(v->l->sim);
        return true;
    }
    if (kind < 12 && v->options->has_pools) {
        return visit_pool(v);
    }
    if (*place == 0) {
        return allocate(v, place);
    }
    uint64_t addr = *place;
    *place = 0;
    return uf_free(v->l->allocator, addr, v->error) == UF_OK;
}

bool life_init(life *l, const life_options *options, uf_error *error)
{
    memset(l, 0, sizeof *l);
    l->time_ns = INT64_C(1700000000000000000);
    const uf_recorder_options ring = {.struct_size_bytes = sizeof ring,
                                      .max_entry_count = options->max_entry_count,
                                      .clock = tick,
                                      .clock_context = l};
    if (uf_sim_create(NULL, &l->sim, error) != UF_OK ||
        uf_recorder_create(&ring, &l->recorder, error) != UF_OK) {
        return false;
    }
    const uf_allocator_options allocator = {.struct_size_bytes = sizeof allocator,
                                            .device = uf_sim_device(l->sim),
                                            .conf = options->conf,
                                            .limit_bytes = options->limit_bytes,
                                            .on_event = uf_recorder_event,
                                            .event_context = l->recorder};
    if (uf_allocator_create(&allocator, &l->allocator, error) != UF_OK) {
        return false;
    }
    liver v = {.l = l,
               .state = options->seed * UINT64_C(2654435761) + 1,
               .options = options,
               .error = error};
    for (uint32_t i = 0; i < options->step_count; i++) {
        if (!step(&v)) {
            return false;
        }
    }
    return uf_check(l->allocator, error) == UF_OK;
}

void life_fini(life *l)
{
    uf_allocator_destroy(l->allocator);
    uf_recorder_destroy(l->recorder);
    uf_sim_destroy(l->sim);
}
