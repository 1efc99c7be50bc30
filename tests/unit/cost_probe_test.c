/* SPDX-License-Identifier: MIT
 *
 * Measuring what pages cost: on a simulated device whose clock its calls move. */
#include <unfrag/cost.h>

#include "alloc/allocator_parts.h"
#include "alloc/paging.h"
#include "unit/allocator_fixture.h"
#include "unit/suite.h"

/* What a call takes there, and how often each round is slower than the one before. */
typedef struct clocked {
    uf_sim sim;
    uf_device device;
    int64_t now_ns;
    uint64_t call_count;
} clocked;

static int64_t clock_of(void *context)
{
    return ((clocked *)context)->now_ns;
}

static void tick(clocked *c, int64_t ns)
{
    c->call_count++;
    c->now_ns += ns;
}

static uf_status memory_info(void *context, uint64_t *free_bytes, uint64_t *total_bytes)
{
    clocked *c = context;
    return c->sim.device.memory_info(&c->sim, free_bytes, total_bytes);
}

static uf_status range_reserve(void *context, uint64_t size_bytes, uint64_t *addr)
{
    clocked *c = context;
    return c->sim.device.range_reserve(&c->sim, size_bytes, addr);
}

static uf_status range_release(void *context, uint64_t addr, uint64_t size_bytes)
{
    clocked *c = context;
    return c->sim.device.range_release(&c->sim, addr, size_bytes);
}

static uf_status handle_create(void *context, uint64_t size_bytes, uint64_t *handle)
{
    clocked *c = context;
    tick(c, 9000);
    return c->sim.device.handle_create(&c->sim, size_bytes, handle);
}

static uf_status handle_release(void *context, uint64_t handle, uint64_t size_bytes)
{
    clocked *c = context;
    tick(c, 12000);
    return c->sim.device.handle_release(&c->sim, handle, size_bytes);
}

static uf_status handle_map(void *context, uint64_t addr, uint64_t handle, uint64_t size_bytes)
{
    clocked *c = context;
    tick(c, 700);
    return c->sim.device.handle_map(&c->sim, addr, handle, size_bytes);
}

static uf_status range_access(void *context, uint64_t addr, uint64_t size_bytes, uint64_t count)
{
    clocked *c = context;
    tick(c, 27000 * (int64_t)count);
    return c->sim.device.range_access(&c->sim, addr, size_bytes, count);
}

static uf_status range_unmap(void *context, uint64_t addr, uint64_t size_bytes, uint64_t count)
{
    clocked *c = context;
    tick(c, 17000 * (int64_t)count);
    return c->sim.device.range_unmap(&c->sim, addr, size_bytes, count);
}

static void clocked_init(clocked *c, uint64_t total_bytes)
{
    *c = (clocked){.now_ns = 0};
    uf__sim_init(&c->sim, total_bytes, 0);
    c->device = c->sim.device;
    c->device.context = c;
    c->device.clock_ns = clock_of;
    c->device.memory_info = memory_info;
    c->device.range_reserve = range_reserve;
    c->device.range_release = range_release;
    c->device.handle_create = handle_create;
    c->device.handle_release = handle_release;
    c->device.handle_map = handle_map;
    c->device.range_access = range_access;
    c->device.range_unmap = range_unmap;
}

START_TEST(what_a_page_costs_is_measured_and_nothing_is_left)
{
    clocked c;
    uf_page_cost cost;
    uf_error error;
    clocked_init(&c, GIB);
    uf_status status = uf_cost_probe(&c.device, 2 * MIB, &cost, &error);
    ck_assert_msg(status == UF_OK, "%s", error.text);
    ck_assert_int_eq(cost.create_ns, 9000);
    ck_assert_int_eq(cost.map_ns, 27700);
    ck_assert_int_eq(cost.unmap_ns, 17000);
    ck_assert_int_eq(cost.release_ns, 12000);
    ck_assert_uint_eq(c.sim.in_use_bytes, 0);
}
END_TEST

START_TEST(a_failing_call_leaves_nothing_and_no_result)
{
    for (uint64_t at = 1; at <= 20; at++) {
        clocked c;
        uf_page_cost cost = {.create_ns = 77};
        uf_error error;
        clocked_init(&c, GIB);
        c.sim.fail_after_count = at;
        ck_assert_int_eq(uf_cost_probe(&c.device, 2 * MIB, &cost, &error), UF_ERROR_DEVICE);
        ck_assert_int_eq(cost.create_ns, 77);
    }
    clocked c;
    uf_page_cost cost;
    uf_error error;
    clocked_init(&c, 6 * MIB);
    ck_assert_int_eq(uf_cost_probe(&c.device, 2 * MIB, &cost, &error), UF_ERROR_DEVICE_MEMORY);
    ck_assert_uint_eq(c.sim.in_use_bytes, 0);
}
END_TEST

START_TEST(a_clock_that_stands_still_measures_nothing)
{
    uf_sim sim;
    uf_page_cost cost;
    uf_error error;
    uf__sim_init(&sim, GIB, 0);
    ck_assert_int_eq(uf_cost_probe(&sim.device, 2 * MIB, &cost, &error), UF_ERROR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(error.text, "stands still"));
    sim.device.clock_ns = NULL;
    ck_assert_int_eq(uf_cost_probe(&sim.device, 2 * MIB, &cost, &error), UF_ERROR_UNSUPPORTED);
    ck_assert_int_eq(uf_cost_probe(NULL, 2 * MIB, &cost, &error), UF_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(uf_cost_probe(&sim.device, 0, &cost, &error), UF_ERROR_INVALID_ARGUMENT);
}
END_TEST

START_TEST(an_allocator_reckons_with_what_was_given_or_measured)
{
    clocked c;
    uf_allocator *allocator;
    uf_error error;
    const uf_page_cost given[2] = {{.map_ns = 1000, .unmap_ns = 500}, {.map_ns = 9}};
    clocked_init(&c, GIB);
    uf_allocator_options options = {.struct_size_bytes = sizeof options,
                                    .device = &c.device,
                                    .policy = UF_POLICY_UNFRAG,
                                    .page_costs = given};
    ck_assert_int_eq(uf_allocator_create(&options, &allocator, &error), UF_OK);
    ck_assert_int_eq(allocator->core.paging->move_ns, 1500);
    uf_allocator_destroy(allocator);
    options.page_costs = NULL;
    ck_assert_int_eq(uf_allocator_create(&options, &allocator, &error), UF_OK);
    ck_assert_int_eq(allocator->core.paging->move_ns, 50000);
    uf_allocator_destroy(allocator);
    options.is_cost_probed = true;
    ck_assert_int_eq(uf_allocator_create(&options, &allocator, &error), UF_OK);
    ck_assert_int_eq(allocator->core.paging->move_ns, 44700);
    uf_allocator_destroy(allocator);
    c.device.clock_ns = NULL; /* cannot be measured: as if not asked */
    ck_assert_int_eq(uf_allocator_create(&options, &allocator, &error), UF_OK);
    ck_assert_int_eq(allocator->core.paging->move_ns, 50000);
    uf_allocator_destroy(allocator);
    ck_assert_uint_eq(c.sim.in_use_bytes, 0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        what_a_page_costs_is_measured_and_nothing_is_left,
        a_failing_call_leaves_nothing_and_no_result,
        a_clock_that_stands_still_measures_nothing,
        an_allocator_reckons_with_what_was_given_or_measured,
        NULL,
    };
    return suite_run("cost_probe", tests);
}
