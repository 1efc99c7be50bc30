/* SPDX-License-Identifier: MIT
 *
 * The fixture of the conformance tests. See bench.h. */
#include "oracle/bench.h"

#include <check.h>

static void on_event(void *context, uf_action action, uint64_t addr, uint64_t size_bytes,
                     uint64_t stream)
{
    bench *b = context;
    expect_append(&b->seen, &(expect_event){action, addr, size_bytes, stream});
}

static bool on_segment(void *context, uint64_t size_bytes, uint64_t stream, uint64_t *addr)
{
    bench *b = context;
    (void)stream;
    *addr = b->next_addr;
    b->next_addr += size_bytes;
    return true;
}

static bool on_reservation(void *context, uint64_t size_bytes, uint64_t *addr)
{
    bench *b = context;
    *addr = b->next_reservation;
    b->next_reservation += size_bytes;
    return true;
}

void bench_init(bench *b, const model_vtable *vtable, const char *conf)
{
    *b = (bench){
        .vtable = vtable, .next_addr = UINT64_C(1) << 44, .next_reservation = UINT64_C(1) << 46};
    model_config config = {.total_bytes = BENCH_TOTAL_BYTES,
                           .conf = conf,
                           .host = {.context = b,
                                    .event = on_event,
                                    .segment_addr = on_segment,
                                    .reservation_addr = on_reservation}};
    uf_error error = {UF_OK, ""};
    uf_status status = vtable->create(&config, &b->model, &error);
    ck_assert_msg(status == UF_OK, "cannot create the %s: %s", vtable->name, error.text);
}

static void check(bench *b)
{
    uf_error error = {UF_OK, ""};
    if (b->vtable->check != NULL && b->vtable->check(b->model, &error) != UF_OK) {
        ck_abort_msg("invariant broken: %s", error.text);
    }
}

/* After each step: it went well and left everything in order. */
static void done(bench *b, uf_status status, const uf_error *error)
{
    ck_assert_msg(status == UF_OK, "status %d: %s", (int)status, error->text);
    check(b);
}

void bench_fini(bench *b)
{
    check(b);
    b->vtable->destroy(b->model);
    expect_fini(&b->seen);
}

uint64_t bench_alloc(bench *b, uint64_t bytes)
{
    return bench_alloc_on(b, bytes, BENCH_STREAM);
}

uint64_t bench_alloc_on(bench *b, uint64_t bytes, uint64_t stream)
{
    uf_error error = {UF_OK, ""};
    uint64_t addr = 0;
    done(b, b->vtable->alloc(b->model, bytes, stream, &addr, &error), &error);
    return addr;
}

uf_status bench_refuse(bench *b, uint64_t bytes)
{
    uf_error error = {UF_OK, ""};
    uint64_t addr = 0;
    uf_status status = b->vtable->alloc(b->model, bytes, BENCH_STREAM, &addr, &error);
    ck_assert_msg(status != UF_OK, "the request was served");
    if (status != UF_ERROR_HAZARD) {
        check(b);
    }
    return status;
}

void bench_free(bench *b, uint64_t addr)
{
    uf_error error = {UF_OK, ""};
    done(b, b->vtable->free_block(b->model, addr, &error), &error);
}

void bench_use(bench *b, uint64_t addr, uint64_t stream)
{
    uf_error error = {UF_OK, ""};
    done(b, b->vtable->record_stream(b->model, addr, stream, &error), &error);
}

void bench_synchronize(bench *b)
{
    ck_assert_int_eq(b->vtable->synchronize(b->model, true, 0), UF_OK);
}

void bench_empty_cache(bench *b)
{
    uf_error error = {UF_OK, ""};
    done(b, b->vtable->empty_cache(b->model, &error), &error);
}

void bench_conf(bench *b, const char *conf)
{
    uf_error error = {UF_OK, ""};
    done(b, b->vtable->set_conf(b->model, conf, &error), &error);
}

void bench_limit(bench *b, uint64_t limit_bytes)
{
    uf_error error = {UF_OK, ""};
    double fraction = (double)limit_bytes / (double)BENCH_TOTAL_BYTES;
    done(b, b->vtable->set_fraction(b->model, fraction, &error), &error);
}

void bench_pool_create(bench *b, uint64_t number, bool is_use_on_oom, bool is_no_split)
{
    uf_error error = {UF_OK, ""};
    model_pool_options options = {.is_use_on_oom = is_use_on_oom, .is_no_split = is_no_split};
    done(b, b->vtable->pool_create(b->model, (const uint64_t[2]){0, number}, &options, &error),
         &error);
}

void bench_pool_begin(bench *b, uint64_t number)
{
    uf_error error = {UF_OK, ""};
    done(b, b->vtable->pool_begin(b->model, (const uint64_t[2]){0, number}, &error), &error);
}

void bench_pool_end(bench *b, uint64_t number)
{
    uf_error error = {UF_OK, ""};
    done(b, b->vtable->pool_end(b->model, (const uint64_t[2]){0, number}, &error), &error);
}

void bench_pool_destroy(bench *b, uint64_t number)
{
    uf_error error = {UF_OK, ""};
    done(b, b->vtable->pool_destroy(b->model, (const uint64_t[2]){0, number}, &error), &error);
}

int64_t bench_stat(bench *b, size_t index)
{
    int64_t values[MODEL_STAT_COUNT];
    b->vtable->stats(b->model, values);
    return values[index];
}

int64_t bench_current(bench *b, model_stat_group group)
{
    return bench_stat(b, model_stat_index(group, STAT_ALL, STAT_CURRENT));
}

size_t bench_count(const bench *b, uf_action action)
{
    size_t count = 0;
    for (size_t i = 0; i < b->seen.count; i++) {
        count += b->seen.events[i].action == action ? 1 : 0;
    }
    return count;
}

const expect_event *bench_last(const bench *b, uf_action action)
{
    for (size_t i = b->seen.count; i > 0; i--) {
        if (b->seen.events[i - 1].action == action) {
            return &b->seen.events[i - 1];
        }
    }
    ck_abort_msg("no such event");
    return NULL;
}

void bench_forget(bench *b)
{
    expect_clear(&b->seen);
}

static bool find_block(bench *b, uint64_t addr, model_block *block)
{
    model_layout layout = {0};
    bool is_found = false;
    b->vtable->walk(b->model, &layout);
    for (size_t i = 0; i < layout.block_count; i++) {
        if (layout.blocks[i].addr == addr) {
            *block = layout.blocks[i];
            is_found = true;
        }
    }
    model_layout_fini(&layout);
    return is_found;
}

uint64_t bench_block_bytes(bench *b, uint64_t addr)
{
    model_block block;
    return find_block(b, addr, &block) ? block.size_bytes : 0;
}

uf_block_state bench_block_state(bench *b, uint64_t addr)
{
    model_block block;
    return find_block(b, addr, &block) ? block.state : UF_BLOCK_OTHER;
}

model_segment bench_segment(bench *b, uint64_t addr)
{
    model_layout layout = {0};
    model_segment found = {0};
    b->vtable->walk(b->model, &layout);
    for (size_t i = 0; i < layout.segment_count; i++) {
        const model_segment *segment = &layout.segments[i];
        if (addr >= segment->addr && addr < segment->addr + segment->total_bytes) {
            found = *segment;
        }
    }
    model_layout_fini(&layout);
    ck_assert_msg(found.total_bytes != 0, "no segment there");
    return found;
}
