/* SPDX-License-Identifier: MIT
 *
 * Reading the management library, over a fake one: a metric that is refused stays unknown. */
#include "device/nvml.h"

#include <stdio.h>

#include "unit/fake_gpu.h"
#include "unit/suite.h"

static uf_nvml nvml;

static void read_setup(const char *setup)
{
    uf_error error = {0};
    fake_gpu_set(setup);
    ck_assert_int_eq(uf__nvml_read(&nvml, &error), UF_OK);
}

START_TEST(two_cards_and_their_processes_are_listed)
{
    read_setup("card=A|1000000|400000|ecc;card=B|2000000|2000000|mig,exclusive;"
               "process=0|77|300|g;process=0|5|100;process=0|77|250;process=0|9|-");
    ck_assert_uint_eq(nvml.card_count, 2);
    ck_assert_str_eq(nvml.driver_version, "580.65.06");
    const uf_nvml_card *first = &nvml.cards[0], *second = &nvml.cards[1];
    ck_assert_str_eq(first->name, "A");
    ck_assert_str_eq(first->pci_bus_id, "0000:1A:00.0");
    ck_assert_uint_eq(first->total_bytes, 1000000);
    ck_assert_uint_eq(first->free_bytes, 400000);
    ck_assert(first->is_ecc && !first->is_mig && !first->is_exclusive);
    ck_assert(second->is_mig && second->is_exclusive && !second->is_ecc);
    /* by number; the one that draws and computes once, with the larger size */
    ck_assert_uint_eq(first->process_count, 3);
    ck_assert_uint_eq(first->processes[0].pid, 5);
    ck_assert_uint_eq(first->processes[1].pid, 9);
    ck_assert(!first->processes[1].has_bytes);
    ck_assert_uint_eq(first->processes[2].pid, 77);
    ck_assert_uint_eq(first->processes[2].bytes, 300);
    ck_assert(!first->processes[2].is_graphics);
    ck_assert((second->valid & UF_NVML_HAS_PROCESSES) != 0);
    ck_assert_uint_eq(second->process_count, 0);
    uf__nvml_fini(&nvml);
}
END_TEST

START_TEST(more_processes_than_room_at_first_are_all_listed)
{
    char setup[2048] = "card=A|1000000|400000";
    for (int i = 1; i <= 40; i++) {
        char item[64];
        snprintf(item, sizeof item, ";process=0|%d|%d", 100 - i, i);
        strcat(setup, item);
    }
    read_setup(setup);
    ck_assert_uint_eq(nvml.cards[0].process_count, 40);
    ck_assert_uint_eq(nvml.cards[0].processes[0].pid, 60);
    ck_assert_uint_eq(nvml.cards[0].processes[0].bytes, 40);
    uf__nvml_fini(&nvml);
}
END_TEST

START_TEST(a_refused_metric_is_unknown)
{
    read_setup("card=A|1000000|400000;fail=nvmlDeviceGetMemoryInfo_v2|3;"
               "fail=nvmlDeviceGetMigMode|3;fail=nvmlDeviceGetComputeRunningProcesses_v3|4;"
               "fail=nvmlDeviceGetGraphicsRunningProcesses_v3|3");
    unsigned valid = nvml.cards[0].valid;
    ck_assert((valid & UF_NVML_HAS_MEMORY) != 0); /* by the older function */
    ck_assert((valid & UF_NVML_HAS_RESERVED) == 0);
    ck_assert((valid & UF_NVML_HAS_MIG) == 0);
    ck_assert((valid & UF_NVML_HAS_PROCESSES) == 0);
    ck_assert((valid & UF_NVML_HAS_ECC_ERRORS) == 0);
    uf__nvml_fini(&nvml);
}
END_TEST

START_TEST(a_library_that_refuses_says_why)
{
    read_setup("nvml=18");
    ck_assert(nvml.has_library);
    ck_assert_int_eq(nvml.result, 18);
    ck_assert_str_eq(nvml.failure, "Driver/library version mismatch");
    ck_assert_uint_eq(nvml.card_count, 0);
    uf__nvml_fini(&nvml);
}
END_TEST

int main(int argc, char **argv)
{
    (void)argc;
    fake_gpu_enter(argv);
    const TTest *const tests[] = {
        two_cards_and_their_processes_are_listed, more_processes_than_room_at_first_are_all_listed,
        a_refused_metric_is_unknown, a_library_that_refuses_says_why, NULL};
    return suite_run("nvml", tests);
}
