/* SPDX-License-Identifier: MIT
 *
 * The simulated device. */
#include "device/sim.h"

#include "device/cost.h"
#include "unit/suite.h"

#define MIB (UINT64_C(1) << 20)
#define PAGE (20 * MIB)

static uf_sim sim;

static uint64_t create(uint64_t size_bytes, uf_status expected)
{
    uint64_t addr = 7;
    ck_assert_int_eq(sim.device.segment_create(&sim, size_bytes, 0, &addr), expected);
    ck_assert(expected == UF_OK || addr == 7);
    return addr;
}

static void destroy(uint64_t addr, uint64_t size_bytes)
{
    ck_assert_int_eq(sim.device.segment_destroy(&sim, addr, size_bytes), UF_OK);
}

START_TEST(the_card_hands_out_its_capacity_and_no_more)
{
    uint64_t free_bytes, total_bytes;
    uf__sim_init(&sim, 1000 * MIB, 100 * MIB);
    uint64_t addr = create(60 * MIB, UF_OK);
    create(41 * MIB, UF_ERROR_DEVICE_MEMORY);
    create(40 * MIB, UF_OK);
    ck_assert_int_eq(sim.device.memory_info(&sim, &free_bytes, &total_bytes), UF_OK);
    ck_assert_uint_eq(free_bytes, 0);
    ck_assert_uint_eq(total_bytes, 1000 * MIB);
    destroy(addr, 60 * MIB);
    ck_assert_uint_eq(sim.in_use_bytes, 40 * MIB);
    create(UINT64_MAX, UF_ERROR_DEVICE_MEMORY);
}
END_TEST

START_TEST(without_a_capacity_the_card_has_its_nominal_memory)
{
    uf__sim_init(&sim, 30 * MIB, 0);
    ck_assert_uint_eq(sim.capacity_bytes, 30 * MIB);
}
END_TEST

START_TEST(addresses_are_fresh_aligned_and_apart)
{
    uf__sim_init(&sim, 1000 * MIB, 0);
    ck_assert_uint_eq(create(3 * MIB, UF_OK), UF_SIM_FIRST_ADDR);
    uint64_t second = create(512, UF_OK);
    ck_assert_uint_eq(second, UF_SIM_FIRST_ADDR + 4 * MIB);
    destroy(second, 512);
    ck_assert_uint_eq(create(512, UF_OK), UF_SIM_FIRST_ADDR + 6 * MIB);
}
END_TEST

START_TEST(pages_take_memory_and_ranges_do_not)
{
    uint64_t addr;
    uf__sim_init(&sim, 100 * MIB, 0);
    ck_assert_int_eq(sim.device.range_reserve(&sim, 900 * MIB, &addr), UF_OK);
    ck_assert_uint_eq(sim.in_use_bytes, 0);
    ck_assert_int_eq(sim.device.pages_map(&sim, addr, 3 * PAGE, PAGE), UF_OK);
    ck_assert_uint_eq(sim.in_use_bytes, 3 * PAGE);
    ck_assert_int_eq(sim.device.pages_map(&sim, addr + 3 * PAGE, 3 * PAGE, PAGE),
                     UF_ERROR_DEVICE_MEMORY);
    ck_assert_int_eq(sim.device.pages_unmap(&sim, addr, PAGE, PAGE), UF_OK);
    ck_assert_uint_eq(sim.in_use_bytes, 2 * PAGE);
    ck_assert_int_eq(sim.device.range_release(&sim, addr, 900 * MIB), UF_OK);
}
END_TEST

START_TEST(calls_are_counted_one_by_one_with_their_cost)
{
    uint64_t addr;
    uf__sim_init(&sim, 1000 * MIB, 0);
    destroy(create(20 * MIB, UF_OK), 20 * MIB);
    ck_assert_uint_eq(sim.call_count, 2);
    ck_assert_int_eq(sim.call_ns, 32000 + 36000);
    ck_assert_uint_eq(sim.sync_count, 1); /* cudaFree waits */
    uf__sim_init(&sim, 1000 * MIB, 0);
    ck_assert_int_eq(sim.device.range_reserve(&sim, 900 * MIB, &addr), UF_OK);
    ck_assert_int_eq(sim.device.pages_map(&sim, addr, 3 * PAGE, PAGE), UF_OK);
    /* One reservation; a creation and a mapping per page; one call for access to all. */
    ck_assert_uint_eq(sim.call_count, 1 + 3 + 3 + 1);
    int64_t page_ns =
        uf__cost_ns(sim.costs, UF_COST_CREATE, PAGE) + uf__cost_ns(sim.costs, UF_COST_MAP, PAGE);
    ck_assert_int_eq(sim.call_ns, 17000 + 3 * page_ns + 3 * 27000);
    ck_assert_int_eq(sim.device.pages_map(&sim, addr + 3 * PAGE, PAGE, PAGE), UF_OK);
    ck_assert_int_eq(sim.call_ns, 17000 + 4 * page_ns + 3 * 27000 +
                                      uf__cost_ns(sim.costs, UF_COST_ACCESS, PAGE));
}
END_TEST

START_TEST(events_are_done_when_told)
{
    uint64_t first, second;
    bool is_done;
    uf__sim_init(&sim, 1000 * MIB, 0);
    ck_assert_int_eq(sim.device.event_record(&sim, 1, &first), UF_OK);
    ck_assert_int_eq(sim.device.event_query(&sim, first, &is_done), UF_OK);
    ck_assert(!is_done);
    uf__sim_synchronize(&sim);
    ck_assert_int_eq(sim.device.event_record(&sim, 1, &second), UF_OK);
    ck_assert_int_eq(sim.device.event_query(&sim, first, &is_done), UF_OK);
    ck_assert(is_done);
    ck_assert_int_eq(sim.device.event_query(&sim, second, &is_done), UF_OK);
    ck_assert(!is_done);
    ck_assert_int_eq(sim.device.event_wait(&sim, first), UF_OK);
    ck_assert_uint_eq(sim.sync_count, 0); /* there was nothing to wait for */
    ck_assert_int_eq(sim.device.event_wait(&sim, second), UF_OK);
    ck_assert_uint_eq(sim.sync_count, 1);
    ck_assert_int_eq(sim.device.stream_wait(&sim, 1), UF_OK);
    ck_assert_uint_eq(sim.sync_count, 2);
}
END_TEST

START_TEST(the_nth_call_fails_and_those_around_it_do_not)
{
    uf__sim_init(&sim, 1000 * MIB, 0);
    sim.fail_after_count = 3;
    create(MIB, UF_OK);
    uint64_t addr = create(MIB, UF_OK);
    ck_assert_int_eq(sim.device.segment_destroy(&sim, addr, MIB), UF_ERROR_DEVICE);
    ck_assert_uint_eq(sim.in_use_bytes, 2 * MIB);
    destroy(addr, MIB);
    sim.fail_after_count = 1;
    ck_assert_int_eq(sim.device.pages_map(&sim, 0, PAGE, PAGE), UF_ERROR_DEVICE);
    sim.fail_after_count = 2;
    ck_assert_int_eq(sim.device.pages_map(&sim, 0, PAGE, PAGE), UF_ERROR_DEVICE);
    ck_assert_uint_eq(sim.in_use_bytes, MIB);
    ck_assert_int_eq(sim.device.pages_map(&sim, 0, PAGE, PAGE), UF_OK);
    sim.fail_after_count = 2;
    ck_assert_int_eq(sim.device.pages_unmap(&sim, 0, PAGE, PAGE), UF_ERROR_DEVICE);
    ck_assert_uint_eq(sim.in_use_bytes, MIB + PAGE);
}
END_TEST

typedef struct addresses {
    uint64_t next, released;
    bool is_region;
} addresses;

static bool dictate(void *context, uint64_t size_bytes, bool is_region, uint64_t *addr)
{
    addresses *known = context;
    known->is_region = is_region;
    if (known->next == 0) {
        return false;
    }
    *addr = known->next;
    known->next += size_bytes;
    return true;
}

static void note(void *context, uint64_t addr, uint64_t size_bytes)
{
    addresses *known = context;
    known->released = addr + size_bytes;
}

START_TEST(addresses_can_be_dictated_and_releases_are_told)
{
    addresses known = {.next = 4096};
    uint64_t addr;
    uf__sim_init(&sim, 1000 * MIB, 0);
    sim.address_hook = dictate;
    sim.release_hook = note;
    sim.address_context = &known;
    ck_assert_uint_eq(create(512, UF_OK), 4096);
    ck_assert(!known.is_region);
    destroy(4096, 512);
    ck_assert_uint_eq(known.released, 4096 + 512);
    known.next = 0;
    ck_assert_int_eq(sim.device.range_reserve(&sim, PAGE, &addr), UF_OK);
    ck_assert(known.is_region);
    ck_assert_uint_eq(addr, UF_SIM_FIRST_ADDR);
    ck_assert_int_eq(sim.device.range_release(&sim, addr, PAGE), UF_OK);
    ck_assert_uint_eq(known.released, UF_SIM_FIRST_ADDR + PAGE);
}
END_TEST

int main(void)
{
    return suite_run("sim", (const TTest *const[]){
                                the_card_hands_out_its_capacity_and_no_more,
                                without_a_capacity_the_card_has_its_nominal_memory,
                                addresses_are_fresh_aligned_and_apart,
                                pages_take_memory_and_ranges_do_not,
                                calls_are_counted_one_by_one_with_their_cost,
                                events_are_done_when_told,
                                the_nth_call_fails_and_those_around_it_do_not,
                                addresses_can_be_dictated_and_releases_are_told,
                                NULL,
                            });
}
