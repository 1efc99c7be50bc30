/* SPDX-License-Identifier: MIT
 *
 * The running statistics. */
#include "alloc/counters.h"

#include <stdint.h>

#include "unit/suite.h"

START_TEST(an_increase_raises_current_total_and_peak_of_its_class)
{
    uf_counters counters = {0};
    uf__counter_increase(&counters, UF_COUNTER_ACTIVE_BYTES, UF_CLASS_LARGE, 100);
    uf__counter_decrease(&counters, UF_COUNTER_ACTIVE_BYTES, UF_CLASS_LARGE, 70);
    uf__counter_increase(&counters, UF_COUNTER_ACTIVE_BYTES, UF_CLASS_LARGE, 20);
    const uf_counter *counter = &counters.counters[UF_COUNTER_ACTIVE_BYTES];
    ck_assert_int_eq(counter->of[UF_CLASS_LARGE].current, 50);
    ck_assert_int_eq(counter->of[UF_CLASS_LARGE].peak, 100);
    ck_assert_int_eq(counter->of[UF_CLASS_LARGE].allocated, 120);
    ck_assert_int_eq(counter->of[UF_CLASS_SMALL].peak, 0);
    ck_assert_int_eq(counter->peak_all, 100);
}
END_TEST

START_TEST(the_peak_of_both_classes_is_not_the_sum_of_their_peaks)
{
    uf_counters counters = {0};
    uf__counter_increase(&counters, UF_COUNTER_SEGMENT, UF_CLASS_SMALL, 5);
    uf__counter_decrease(&counters, UF_COUNTER_SEGMENT, UF_CLASS_SMALL, 4);
    uf__counter_increase(&counters, UF_COUNTER_SEGMENT, UF_CLASS_LARGE, 6);
    ck_assert_int_eq(counters.counters[UF_COUNTER_SEGMENT].peak_all, 7);
    ck_assert_int_eq(uf__counter_all(&counters, UF_COUNTER_SEGMENT), 7);
}
END_TEST

START_TEST(counters_do_not_touch_each_other)
{
    uf_counters counters = {0};
    for (int id = 0; id < UF_COUNTER_COUNT; id++) {
        uf__counter_increase(&counters, (uf_counter_id)id, id % 2, (uint64_t)id + 1);
    }
    for (int id = 0; id < UF_COUNTER_COUNT; id++) {
        ck_assert_int_eq(counters.counters[id].of[id % 2].current, id + 1);
        ck_assert_int_eq(counters.counters[id].of[1 - id % 2].current, 0);
        ck_assert_int_eq(counters.counters[id].peak_all, id + 1);
    }
}
END_TEST

START_TEST(a_single_counter_counts_one_by_one)
{
    uf_counter_class counter = {0};
    uf__counter_single_increase(&counter);
    uf__counter_single_increase(&counter);
    uf__counter_single_decrease(&counter);
    uf__counter_single_increase(&counter);
    ck_assert_int_eq(counter.current, 2);
    ck_assert_int_eq(counter.peak, 2);
    ck_assert_int_eq(counter.allocated, 3);
}
END_TEST

static uf_counters filled(void)
{
    uf_counters counters = {.num_alloc_retries = 1,
                            .num_ooms = 2,
                            .num_sync_all_streams = 3,
                            .num_device_alloc = 4,
                            .num_device_free = 5};
    for (int id = 0; id < UF_COUNTER_COUNT; id++) {
        for (int c = 0; c < UF_CLASS_COUNT; c++) {
            uf__counter_increase(&counters, (uf_counter_id)id, c, 10);
            uf__counter_decrease(&counters, (uf_counter_id)id, c, 7);
        }
    }
    uf_counter_class *singles[] = {&counters.oversize_allocations, &counters.oversize_segments};
    for (int i = 0; i < 2; i++) {
        uf__counter_single_increase(singles[i]);
        uf__counter_single_increase(singles[i]);
        uf__counter_single_decrease(singles[i]);
    }
    return counters;
}

START_TEST(a_reset_of_peaks_makes_each_the_current_value)
{
    uf_counters counters = filled();
    ck_assert_int_eq(counters.counters[0].peak_all, 13);
    uf__counters_reset_peak(&counters);
    for (int id = 0; id < UF_COUNTER_COUNT; id++) {
        ck_assert_int_eq(counters.counters[id].of[0].peak, 3);
        ck_assert_int_eq(counters.counters[id].of[1].peak, 3);
        ck_assert_int_eq(counters.counters[id].peak_all, 6);
        ck_assert_int_eq(counters.counters[id].of[0].allocated, 10);
    }
    ck_assert_int_eq(counters.oversize_allocations.peak, 1);
    ck_assert_int_eq(counters.oversize_segments.peak, 1);
    ck_assert_int_eq(counters.num_device_alloc, 4);
}
END_TEST

START_TEST(a_reset_of_totals_leaves_current_and_peak)
{
    uf_counters counters = filled();
    uf__counters_reset_accumulated(&counters);
    for (int id = 0; id < UF_COUNTER_COUNT; id++) {
        const uf_counter_class *own = &counters.counters[id].of[0];
        ck_assert_int_eq(own->current, 3);
        ck_assert_int_eq(own->peak, 10);
        ck_assert_int_eq(own->allocated, 0);
        ck_assert_int_eq(own->allocated - own->current + own->freed_base, 0);
    }
    ck_assert_int_eq(counters.oversize_allocations.allocated, 0);
    ck_assert_int_eq(counters.oversize_allocations.current, 1);
    ck_assert_int_eq(counters.num_alloc_retries, 0);
    ck_assert_int_eq(counters.num_ooms, 0);
    ck_assert_int_eq(counters.num_sync_all_streams, 0);
    ck_assert_int_eq(counters.num_device_alloc, 0);
    ck_assert_int_eq(counters.num_device_free, 0);
}
END_TEST

int main(void)
{
    return suite_run("counters", (const TTest *const[]){
                                     an_increase_raises_current_total_and_peak_of_its_class,
                                     the_peak_of_both_classes_is_not_the_sum_of_their_peaks,
                                     counters_do_not_touch_each_other,
                                     a_single_counter_counts_one_by_one,
                                     a_reset_of_peaks_makes_each_the_current_value,
                                     a_reset_of_totals_leaves_current_and_peak,
                                     NULL,
                                 });
}
