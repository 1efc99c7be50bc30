/* SPDX-License-Identifier: MIT
 *
 * Seeded random operations. See generate.h. */
#include "oracle/generate.h"

#include <stdlib.h>

#define MIB (UINT64_C(1) << 20)

static const uint64_t streams[] = {0, 0x55aa7000, 0x1234560};

void generate_init(generate *g, const setting *from, uint64_t seed)
{
    *g = (generate){.from = from, .numbers = {seed ^ UINT64_C(0x5eed)}, .next_pool = 1};
}

void generate_fini(generate *g)
{
    free(g->live);
}

static uint64_t request_bytes(rng *r)
{
    static const uint64_t edges[] = {
        MIB - 1,      MIB,      MIB + 1,  2 * MIB,        10 * MIB - 512, 10 * MIB - 1, 10 * MIB,
        10 * MIB + 1, 20 * MIB, 64 * MIB, 64 * MIB - 512, 64 * MIB + 1,   100 * MIB,    511,
        512,          513,      1,        2 * MIB - 512,  2 * MIB + 512,  3 * MIB + 1};
    double kind = rng_share(r);
    if (kind < 0.25) {
        return rng_between(r, 1, 4096);
    }
    if (kind < 0.45) {
        return rng_between(r, 4096, MIB);
    }
    if (kind < 0.55) {
        return edges[rng_below(r, sizeof edges / sizeof *edges)];
    }
    if (kind < 0.75) {
        return rng_between(r, MIB, 10 * MIB);
    }
    if (kind < 0.95) {
        return rng_between(r, 10 * MIB, 80 * MIB);
    }
    return rng_between(r, 80 * MIB, 400 * MIB);
}

static uint64_t stream_of(rng *r)
{
    static const unsigned choice[] = {0, 0, 0, 1, 2};
    return streams[choice[rng_below(r, 5)]];
}

static void make_alloc(generate *g, oplog_op *op)
{
    op->kind = OPLOG_ALLOC;
    op->id = g->next_id++;
    op->bytes = request_bytes(&g->numbers);
    op->stream = stream_of(&g->numbers);
    if (rng_below(&g->numbers, 2000) == 0) {
        /* Just below 2^60 is an ordinary request; a card without end would serve it, over all other
         * addresses. */
        bool is_below = rng_below(&g->numbers, 2) != 0 && g->from->card_bytes != 0;
        op->bytes = (UINT64_C(1) << 60) - (uint64_t)is_below;
    }
}

static void make_free(generate *g, oplog_op *op)
{
    size_t index = rng_below(&g->numbers, g->live_count);
    op->kind = OPLOG_FREE;
    op->id = g->live[index];
    g->live[index] = g->live[--g->live_count];
}

static void make_record_stream(generate *g, oplog_op *op)
{
    op->kind = OPLOG_RECORD_STREAM;
    op->id = g->live[rng_below(&g->numbers, g->live_count)];
    op->stream = streams[rng_below(&g->numbers, 3)];
}

static void make_synchronize(generate *g, oplog_op *op)
{
    op->kind = OPLOG_SYNCHRONIZE;
    op->is_one_stream = rng_below(&g->numbers, 3) == 0;
    op->stream = op->is_one_stream ? streams[rng_below(&g->numbers, 3)] : 0;
}

static void make_fraction(generate *g, oplog_op *op)
{
    double most = (double)g->from->limit_bytes / (double)SETTING_TOTAL_BYTES;
    op->kind = OPLOG_SET_FRACTION;
    op->fraction = most * (0.7 + 0.5 * rng_share(&g->numbers));
    if (rng_below(&g->numbers, 8) == 0) {
        op->fraction = 1.0; /* no limit for a while */
    }
}

static void make_conf(generate *g, oplog_op *op)
{
    size_t count = 0;
    while (count < SETTING_CONF_MAX && g->from->confs[count] != NULL) {
        count++;
    }
    op->kind = OPLOG_SET_CONF;
    op->conf = (char *)(uintptr_t)g->from->confs[rng_below(&g->numbers, count)];
}

/* Begins, ends, creates or destroys a pool, whichever makes sense now. */
static void make_pool(generate *g, oplog_op *op)
{
    rng *r = &g->numbers;
    if (g->redirection_count > 0 && rng_below(r, 5) > 0) {
        size_t index = rng_below(r, g->redirection_count);
        op->kind = OPLOG_POOL_END;
        op->pool[1] = g->redirections[index];
        g->redirections[index] = g->redirections[--g->redirection_count];
        return;
    }
    bool can_create = g->pool_count < GENERATE_POOL_MAX;
    if (g->pool_count == 0 || (can_create && rng_below(r, 3) == 0)) {
        op->kind = OPLOG_POOL_CREATE;
        op->pool[1] = g->next_pool++;
        /* with two of them the order is that of a hash table: one at a time */
        op->pool_options.is_use_on_oom = g->fallback_pool == 0 && rng_below(r, 2) == 0;
        if (op->pool_options.is_use_on_oom) {
            g->fallback_pool = op->pool[1];
        }
        op->pool_options.is_no_split = rng_below(r, 5) == 0;
        op->pool_options.is_never_expandable = op->pool[1] % 6 == 0;
        g->pools[g->pool_count++] = op->pool[1];
        return;
    }
    size_t index = rng_below(r, g->pool_count);
    op->pool[1] = g->pools[index];
    if (g->redirection_count == 0 && rng_below(r, 2) == 0) {
        op->kind = OPLOG_POOL_DESTROY;
        g->pools[index] = g->pools[--g->pool_count];
        if (g->fallback_pool == op->pool[1]) {
            g->fallback_pool = 0;
        }
        return;
    }
    op->kind = OPLOG_POOL_BEGIN; /* one that is open already is skipped by the runner */
    for (size_t i = 0; i < g->redirection_count; i++) {
        if (g->redirections[i] == op->pool[1]) {
            return;
        }
    }
    g->redirections[g->redirection_count++] = op->pool[1];
}

static bool make_first(generate *g, oplog_op *op)
{
    if (g->step_count == 1 && g->from->limit_bytes != 0) {
        op->kind = OPLOG_SET_FRACTION;
        op->fraction = (double)g->from->limit_bytes / (double)SETTING_TOTAL_BYTES;
        return true;
    }
    if (g->forced_free_count > 0 && g->live_count > 0) {
        g->forced_free_count--;
        make_free(g, op);
        return true;
    }
    if (g->is_pool_due && g->pool_count > 0) {
        g->is_pool_due = false; /* what pools cache is out of everybody else's reach */
        make_pool(g, op);
        return true;
    }
    g->forced_free_count = 0;
    return false;
}

void generate_next(generate *g, oplog_op *op)
{
    *op = (oplog_op){.kind = OPLOG_EMPTY_CACHE};
    g->step_count++;
    if (make_first(g, op)) {
        return;
    }
    double kind = rng_share(&g->numbers);
    bool is_growing = g->step_count / 400 % 2 == 0;
    if (kind < (is_growing ? 0.56 : 0.38) || (g->live_count == 0 && kind < 0.97)) {
        make_alloc(g, op);
    } else if (kind < 0.89) {
        make_free(g, op);
    } else if (kind < 0.94) {
        make_record_stream(g, op);
    } else if (kind < 0.97) {
        make_synchronize(g, op);
    } else if (kind < 0.975) {
        op->kind = OPLOG_EMPTY_CACHE;
    } else if (kind < 0.978 && g->from->limit_bytes != 0) {
        make_fraction(g, op);
    } else if (kind < 0.982) {
        make_conf(g, op);
    } else if (g->from->has_pools) {
        make_pool(g, op);
    } else {
        make_alloc(g, op);
    }
}

void generate_done(generate *g, const oplog_op *op, uf_status status)
{
    if (op->kind != OPLOG_ALLOC) {
        return;
    }
    if (status == UF_OK) {
        g->live = model_grow(g->live, g->live_count, &g->live_capacity, sizeof *g->live);
        g->live[g->live_count++] = op->id;
    } else if (status == UF_ERROR_OUT_OF_MEMORY) {
        g->forced_free_count = g->live_count / 3 + 1;
        g->is_pool_due = true;
    }
}
