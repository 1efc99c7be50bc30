/* SPDX-License-Identifier: MIT
 *
 * Running two models side by side. See pair.h. */
#include "oracle/pair.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PLACE_BASE (UINT64_C(1) << 46)
#define PLACE_SLOT_BITS 30
#define RESERVE_BASE (UINT64_C(1) << 57)
#define RESERVE_SLOT_BITS 36

static bool is_vacant(const pair *p, uint64_t addr, uint64_t size_bytes)
{
    for (size_t i = 0; i < p->segment_count; i++) {
        if (addr < p->segments[i].addr + p->segments[i].size_bytes &&
            p->segments[i].addr < addr + size_bytes) {
            return false;
        }
    }
    return true;
}

static uint64_t lowest_gap(const pair *p, uint64_t size_bytes)
{
    uint64_t lowest = is_vacant(p, PLACE_BASE, size_bytes) ? PLACE_BASE : UINT64_MAX;
    for (size_t i = 0; i < p->segment_count; i++) {
        uint64_t end = p->segments[i].addr + p->segments[i].size_bytes;
        if (end < lowest && is_vacant(p, end, size_bytes)) {
            lowest = end;
        }
    }
    return lowest;
}

/* An address between 1 << bits and 1 << (bits + 20), each number once. */
static uint64_t scatter(uint64_t number, unsigned bits)
{
    return ((number * UINT64_C(0x9e375) + 1) & 0xfffff) << bits;
}

static bool first_segment_addr(void *context, uint64_t size_bytes, uint64_t stream, uint64_t *addr)
{
    pair *p = context;
    (void)stream;
    p->placed_count++;
    if (p->placement == PAIR_LOWEST_GAP) {
        *addr = lowest_gap(p, size_bytes);
    } else if (p->placement == PAIR_DOWNWARDS) {
        p->low_addr -= size_bytes;
        *addr = p->low_addr;
    } else {
        *addr = PLACE_BASE + scatter(p->placed_count, PLACE_SLOT_BITS);
        while (!is_vacant(p, *addr, size_bytes)) {
            *addr = PLACE_BASE + scatter(++p->placed_count, PLACE_SLOT_BITS);
        }
    }
    expect_addr_append(&p->e, &(expect_addr){.size_bytes = size_bytes, .addr = *addr});
    return true;
}

static bool first_reservation_addr(void *context, uint64_t size_bytes, uint64_t *addr)
{
    pair *p = context;
    p->reserved_count++;
    *addr = RESERVE_BASE + scatter(p->reserved_count, RESERVE_SLOT_BITS);
    expect_addr_append(
        &p->e, &(expect_addr){.size_bytes = size_bytes, .addr = *addr, .is_reservation = true});
    return true;
}

static void first_event(void *context, uf_action action, uint64_t addr, uint64_t size_bytes,
                        uint64_t stream)
{
    pair *p = context;
    expect_append(&p->e, &(expect_event){action, addr, size_bytes, stream});
    if (action == UF_ACTION_SEGMENT_ALLOC) {
        p->segments =
            model_grow(p->segments, p->segment_count, &p->segment_capacity, sizeof *p->segments);
        p->segments[p->segment_count++] = (expect_addr){.size_bytes = size_bytes, .addr = addr};
    }
    for (size_t i = 0; action == UF_ACTION_SEGMENT_FREE && i < p->segment_count; i++) {
        if (p->segments[i].addr == addr) {
            p->segments[i] = p->segments[--p->segment_count];
            break;
        }
    }
}

/* Any candidate may be the next to complete. */
static bool first_completion(void *context, const uint64_t *candidates, size_t count,
                             uint64_t *addr)
{
    pair *p = context;
    if (count == 0) {
        return false;
    }
    *addr = candidates[rng_below(&p->choices, count)];
    return true;
}

static size_t first_pool(void *context, const uint64_t (*ids)[2], size_t count)
{
    pair *p = context;
    (void)ids;
    return rng_below(&p->choices, count);
}

void pair_init(pair *p, const pair_config *config)
{
    *p = (pair){.config = *config, .choices = {config->seed}, .low_addr = PLACE_BASE};
    p->placement = (pair_placement)(rng_next(&p->choices) % PAIR_PLACEMENT_COUNT);
    p->e.has_addrs = true;
    p->first_addrs = calloc(config->id_count + 1, sizeof *p->first_addrs);
    p->second_addrs = calloc(config->id_count + 1, sizeof *p->second_addrs);
    model_config common = {.total_bytes = config->total_bytes,
                           .capacity_bytes = config->capacity_bytes,
                           .conf = config->conf,
                           .host = {.context = p,
                                    .event = first_event,
                                    .segment_addr = first_segment_addr,
                                    .reservation_addr = first_reservation_addr,
                                    .completion = first_completion,
                                    .pool = first_pool}};
    uf_error error = {UF_OK, ""};
    uf_status status = UF_ERROR_HOST_MEMORY;
    if (p->first_addrs != NULL && p->second_addrs != NULL) {
        status = config->first->create(&common, &p->first, &error);
    }
    if (status == UF_OK) {
        common.host = expect_host(&p->e);
        status = config->second->create(&common, &p->second, &error);
    }
    if (status != UF_OK) {
        (void)fprintf(stderr, "cannot create the models: status %d %s\n", (int)status, error.text);
        exit(status == UF_ERROR_CONF ? 2 : 5);
    }
}

void pair_fini(pair *p)
{
    p->config.first->destroy(p->first);
    p->config.second->destroy(p->second);
    free(p->first_addrs);
    free(p->second_addrs);
    free(p->segments);
    expect_fini(&p->e);
}

static size_t pool_index(const uint64_t (*pools)[2], size_t count, const uint64_t id[2])
{
    size_t i = 0;
    while (i < count && (pools[i][0] != id[0] || pools[i][1] != id[1])) {
        i++;
    }
    return i;
}

static void pool_add(uint64_t (*pools)[2], size_t *count, const uint64_t id[2])
{
    memcpy(pools[(*count)++], id, sizeof *pools);
}

static void pool_remove(uint64_t (*pools)[2], size_t *count, size_t index)
{
    for ((*count)--; index < *count; index++) {
        memcpy(pools[index], pools[index + 1], sizeof *pools);
    }
}

/* Whether the operation makes sense now, and what it changes in the list of pools. A pool is not
 * destroyed while a redirection is under way: PyTorch aborts there. */
static bool track(pair *p, const oplog_op *op)
{
    size_t known = pool_index((const uint64_t(*)[2])p->pools, p->pool_count, op->pool);
    size_t open = pool_index((const uint64_t(*)[2])p->redirections, p->redirection_count, op->pool);
    bool is_known = known < p->pool_count;
    bool is_open = open < p->redirection_count;
    switch (op->kind) {
    case OPLOG_FREE:
    case OPLOG_RECORD_STREAM:
        return p->first_addrs[op->id] != 0;
    case OPLOG_POOL_CREATE:
        if (is_known || p->pool_count == PAIR_POOL_MAX) {
            return false;
        }
        pool_add(p->pools, &p->pool_count, op->pool);
        return true;
    case OPLOG_POOL_BEGIN:
        if (!is_known || is_open || p->redirection_count == PAIR_POOL_MAX) {
            return false;
        }
        pool_add(p->redirections, &p->redirection_count, op->pool);
        return true;
    case OPLOG_POOL_END:
        if (is_open) {
            pool_remove(p->redirections, &p->redirection_count, open);
        }
        return is_open;
    case OPLOG_POOL_DESTROY:
        if (!is_known || p->redirection_count > 0) {
            return false;
        }
        pool_remove(p->pools, &p->pool_count, known);
        return true;
    default:
        return true;
    }
}

static bool stats_equal(pair *p)
{
    int64_t first[MODEL_STAT_COUNT];
    int64_t second[MODEL_STAT_COUNT];
    p->config.first->stats(p->first, first);
    p->config.second->stats(p->second, second);
    for (size_t i = 0; i < MODEL_STAT_COUNT; i++) {
        if (first[i] != second[i]) {
            char name[64];
            model_stat_name(i, name);
            expect_differ(&p->e, "statistic %s: expected %" PRId64 ", got %" PRId64, name, first[i],
                          second[i]);
            return false;
        }
    }
    return true;
}

static bool check(pair *p, const model_vtable *vtable, void *model)
{
    uf_error error = {UF_OK, ""};
    if (vtable->check != NULL && vtable->check(model, &error) != UF_OK) {
        expect_differ(&p->e, "the %s breaks an invariant: %s", vtable->name, error.text);
        return false;
    }
    return true;
}

bool pair_step(pair *p, const oplog_op *op, uf_status *status)
{
    *status = UF_OK;
    if (!track(p, op)) {
        return true;
    }
    uint64_t addrs[2] = {0, 0};
    bool is_skipped[2] = {false, false};
    uf_error errors[2] = {{UF_OK, ""}, {UF_OK, ""}};
    expect_clear(&p->e);
    const uint64_t none[2] = {0, 0};
    memcpy(p->e.pool, p->redirection_count > 0 ? p->redirections[p->redirection_count - 1] : none,
           sizeof p->e.pool);
    *status = driver_op_execute(p->config.first, p->first, op, p->first_addrs, &addrs[0],
                                &is_skipped[0], &errors[0]);
    uf_status second = driver_op_execute(p->config.second, p->second, op, p->second_addrs,
                                         &addrs[1], &is_skipped[1], &errors[1]);
    p->event_count += p->e.count;
    if ((unsigned)*status < sizeof p->status_counts / sizeof *p->status_counts) {
        p->status_counts[*status]++;
    }
    if (second != *status) {
        expect_differ(&p->e, "expected status %d %s, got %d %s", (int)*status, errors[0].text,
                      (int)second, errors[1].text);
    } else if (addrs[0] != addrs[1]) {
        expect_differ(&p->e, "expected address 0x%" PRIx64 ", got 0x%" PRIx64, addrs[0], addrs[1]);
    }
    if (p->e.addr_cursor < p->e.addr_count) {
        expect_differ(&p->e, "one more segment was expected");
    }
    return expect_finish(&p->e) && stats_equal(p) && check(p, p->config.first, p->first) &&
           check(p, p->config.second, p->second);
}

bool pair_layout_equal(pair *p)
{
    model_layout first = {0};
    model_layout second = {0};
    char text[600];
    p->config.first->walk(p->first, &first);
    p->config.second->walk(p->second, &second);
    bool is_equal = model_layout_equal(&first, &second, text, sizeof text);
    if (!is_equal) {
        expect_differ(&p->e, "layout: %s", text);
    }
    model_layout_fini(&first);
    model_layout_fini(&second);
    return is_equal;
}
