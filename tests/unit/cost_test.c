/* SPDX-License-Identifier: MIT
 *
 * The cost of driver calls: measured points, and straight lines between them. */
#include "device/cost.h"

#include "unit/suite.h"

#define MIB (UINT64_C(1) << 20)

static int64_t h200_ns(uf_cost_call call, uint64_t size_bytes)
{
    return uf__cost_ns(uf__cost_table(UF_COST_H200), call, size_bytes);
}

static int64_t a100_ns(uf_cost_call call, uint64_t size_bytes)
{
    return uf__cost_ns(uf__cost_table(UF_COST_A100), call, size_bytes);
}

START_TEST(measured_points_are_met)
{
    ck_assert_int_eq(h200_ns(UF_COST_MALLOC, 2 * MIB), 32000);
    ck_assert_int_eq(h200_ns(UF_COST_MALLOC, 256 * MIB), 40000);
    ck_assert_int_eq(h200_ns(UF_COST_MALLOC, 1024 * MIB), 79000);
    ck_assert_int_eq(h200_ns(UF_COST_FREE, 20 * MIB), 36000);
    ck_assert_int_eq(h200_ns(UF_COST_CREATE, 512 * MIB), 12000);
    ck_assert_int_eq(h200_ns(UF_COST_RELEASE, 128 * MIB), 41000);
    ck_assert_int_eq(h200_ns(UF_COST_ACCESS_EACH, 2 * MIB), 27000);
    ck_assert_int_eq(h200_ns(UF_COST_RESERVE, UINT64_C(1) << 40), 17000);
}
END_TEST

START_TEST(a_page_among_several_costs_what_the_table_says)
{
    uf_page_cost cost;
    uf__cost_page(uf__cost_table(UF_COST_H200), 2 * MIB, &cost);
    ck_assert_int_eq(cost.create_ns, 9000);
    ck_assert_int_eq(cost.map_ns, 27700);
    ck_assert_int_eq(cost.unmap_ns, 17000);
    ck_assert_int_eq(cost.release_ns, 12000);
    uf__cost_page(uf__cost_table(UF_COST_A100), 2 * MIB, &cost);
    ck_assert_int_eq(cost.create_ns, 193000);
    ck_assert_int_eq(cost.map_ns, 37500);
    ck_assert_int_eq(cost.unmap_ns, 26000);
}
END_TEST

START_TEST(between_points_the_cost_is_on_the_line)
{
    ck_assert_int_eq(h200_ns(UF_COST_MALLOC, 138 * MIB), 36000);
    ck_assert_int_eq(h200_ns(UF_COST_FREE, 11 * MIB), 31500);
    ck_assert_int_eq(h200_ns(UF_COST_RELEASE, 320 * MIB), 88000);
    ck_assert_int_eq(h200_ns(UF_COST_UNMAP, 1025 * MIB), 29500);
}
END_TEST

START_TEST(outside_the_points_the_cost_is_that_of_the_nearest)
{
    ck_assert_int_eq(h200_ns(UF_COST_MALLOC, 0), 32000);
    ck_assert_int_eq(h200_ns(UF_COST_MALLOC, 2458 * MIB), 167000);
    ck_assert_int_eq(h200_ns(UF_COST_MALLOC, UINT64_MAX), 167000);
    ck_assert_int_eq(h200_ns(UF_COST_RELEASE, UINT64_MAX), 535000);
    ck_assert_int_eq(h200_ns(UF_COST_MAP, 512), 700);
}
END_TEST

static void is_rising(int64_t (*cost_ns)(uf_cost_call, uint64_t))
{
    for (int call = 0; call < UF_COST_CALL_COUNT; call++) {
        int64_t last = 0;
        for (uint64_t mib = 0; mib < 4000; mib += 3) {
            int64_t ns = cost_ns((uf_cost_call)call, mib * MIB);
            ck_assert_int_ge(ns, last);
            last = ns;
        }
        ck_assert_int_gt(last, 0);
    }
}

START_TEST(no_call_gets_cheaper_with_size)
{
    is_rising(h200_ns);
    is_rising(a100_ns);
}
END_TEST

START_TEST(an_a100_has_its_measured_page_calls_and_the_h200s_others)
{
    ck_assert_int_eq(a100_ns(UF_COST_CREATE, 2 * MIB), 193000);
    ck_assert_int_eq(a100_ns(UF_COST_MAP, 2 * MIB), 1500);
    ck_assert_int_eq(a100_ns(UF_COST_ACCESS, 2 * MIB), 36000);
    ck_assert_int_eq(a100_ns(UF_COST_ACCESS_EACH, 2 * MIB), 36000);
    ck_assert_int_eq(a100_ns(UF_COST_UNMAP, 2 * MIB), 26000);
    ck_assert_int_eq(a100_ns(UF_COST_UNMAP_EACH, 2 * MIB), 26000);
    const uf_cost_call others[] = {UF_COST_MALLOC, UF_COST_FREE, UF_COST_RESERVE, UF_COST_RELEASE};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        ck_assert_int_eq(a100_ns(others[i], 64 * MIB), h200_ns(others[i], 64 * MIB));
    }
}
END_TEST

int main(void)
{
    return suite_run("cost", (const TTest *const[]){
                                 measured_points_are_met,
                                 a_page_among_several_costs_what_the_table_says,
                                 between_points_the_cost_is_on_the_line,
                                 outside_the_points_the_cost_is_that_of_the_nearest,
                                 no_call_gets_cheaper_with_size,
                                 an_a100_has_its_measured_page_calls_and_the_h200s_others,
                                 NULL,
                             });
}
