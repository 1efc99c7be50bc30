/* SPDX-License-Identifier: MIT
 *
 * Asking the driver, over a fake one: what works, which step fails, and that nothing is left. */
#include "device/cuda_probe.h"

#include <stdio.h>

#include "unit/fake_gpu.h"
#include "unit/suite.h"

#define GIB (UINT64_C(1) << 30)
#define ONE_CARD "card=NVIDIA GeForce RTX 4090|25769803776|21474836480"

static uf_cuda_driver driver;
static uf_cuda_probe probe;

static void ask(const char *setup)
{
    fake_gpu_set(setup);
    uf__cuda_probe(&driver, true, &probe);
}

static void finish(void)
{
    static const fake_counts none;
    fake_counts counts;
    fake_gpu_api()->counts(&counts);
    ck_assert_mem_eq(&counts, &none, sizeof none);
    uf__cuda_driver_close(&driver);
}

START_TEST(a_card_that_can_everything_is_described)
{
    ask(ONE_CARD);
    ck_assert_int_eq(probe.version, 13000);
    ck_assert_uint_eq(probe.device_count, 1);
    const uf_cuda_probed *device = &probe.devices[0];
    ck_assert_str_eq(device->name, "NVIDIA GeForce RTX 4090");
    ck_assert_uint_eq(device->total_bytes, 24 * GIB);
    ck_assert(device->has_free_bytes);
    ck_assert_uint_eq(device->free_bytes, 20 * GIB);
    ck_assert_int_eq(device->capability_major, 9);
    ck_assert_str_eq(device->pci_bus_id, "0000:1a:00.0");
    ck_assert(device->vmm.was_tried && device->vmm.works);
    ck_assert_uint_eq(device->vmm.granule_bytes, 2u << 20);
    ck_assert(device->host_memory.works);
    finish();
}
END_TEST

/* Each call of the trial, in turn: the step is named, and what was done before is undone. */
START_TEST(the_step_that_fails_is_named_and_nothing_is_left)
{
    static const uf_cuda_step steps[] = {UF_CUDA_STEP_CONTEXT, UF_CUDA_STEP_GRANULARITY,
                                         UF_CUDA_STEP_RESERVE, UF_CUDA_STEP_CREATE,
                                         UF_CUDA_STEP_MAP,     UF_CUDA_STEP_ACCESS};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        char setup[256];
        snprintf(setup, sizeof setup, ONE_CARD ";fail=%s|801|0", uf__cuda_step_name(steps[i]));
        ask(setup);
        const uf_cuda_trial *trial = &probe.devices[0].vmm;
        ck_assert(trial->was_tried && !trial->works);
        ck_assert_int_eq(trial->failed_step, steps[i]);
        ck_assert_int_eq(trial->result, 801);
        ck_assert_str_eq(trial->result_name, "CUDA_ERROR_NOT_SUPPORTED");
        finish();
    }
}
END_TEST

START_TEST(a_failure_while_undoing_is_told)
{
    ask(ONE_CARD ";fail=cuMemUnmap|999");
    ck_assert_int_eq(probe.devices[0].vmm.failed_step, UF_CUDA_STEP_UNMAP);
    uf__cuda_driver_close(&driver);
}
END_TEST

START_TEST(a_device_that_says_no_is_not_tried)
{
    ask("card=old|8589934592|8589934592|novmm");
    ck_assert(!probe.devices[0].vmm.works);
    ck_assert_int_eq(probe.devices[0].vmm.failed_step, UF_CUDA_STEP_ATTRIBUTE);
    ck_assert_int_eq(probe.devices[0].vmm.result, 0);
    finish();
}
END_TEST

START_TEST(host_memory_can_be_refused_alone)
{
    ask("card=a|8589934592|8589934592|nohost");
    ck_assert(probe.devices[0].vmm.works);
    ck_assert(!probe.devices[0].host_memory.works);
    ck_assert_int_eq(probe.devices[0].host_memory.failed_step, UF_CUDA_STEP_CREATE);
    finish();
}
END_TEST

START_TEST(a_full_card_says_out_of_memory)
{
    ask("card=full|8589934592|0");
    ck_assert(probe.devices[0].has_free_bytes);
    ck_assert_uint_eq(probe.devices[0].free_bytes, 0);
    ck_assert_int_eq(probe.devices[0].vmm.result, UF_CUDA_OUT_OF_MEMORY);
    finish();
}
END_TEST

START_TEST(no_gpu_is_what_cuInit_says)
{
    ask("init=100");
    ck_assert(probe.has_library);
    ck_assert_int_eq(probe.init_result, UF_CUDA_NO_DEVICE);
    ck_assert_str_eq(probe.init_name, "CUDA_ERROR_NO_DEVICE");
    ck_assert_uint_eq(probe.device_count, 0);
    finish();
}
END_TEST

START_TEST(what_a_card_does_not_tell_is_unknown)
{
    ask(ONE_CARD ";card=b|1073741824|1073741824;fail=cuDeviceTotalMem_v2|1|1;fail=cuMemGetInfo_v2|1"
                 "|1");
    ck_assert_uint_eq(probe.device_count, 2);
    ck_assert_uint_eq(probe.devices[0].total_bytes, 24 * GIB);
    ck_assert_uint_eq(probe.devices[1].total_bytes, 0);
    ck_assert(!probe.devices[1].has_free_bytes);
    ck_assert(probe.devices[1].vmm.works);
    finish();
}
END_TEST

int main(int argc, char **argv)
{
    (void)argc;
    fake_gpu_enter(argv);
    const TTest *const tests[] = {a_card_that_can_everything_is_described,
                                  the_step_that_fails_is_named_and_nothing_is_left,
                                  a_failure_while_undoing_is_told,
                                  a_device_that_says_no_is_not_tried,
                                  host_memory_can_be_refused_alone,
                                  a_full_card_says_out_of_memory,
                                  no_gpu_is_what_cuInit_says,
                                  what_a_card_does_not_tell_is_unknown,
                                  NULL};
    return suite_run("cuda_probe", tests);
}
