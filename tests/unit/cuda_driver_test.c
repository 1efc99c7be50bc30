/* SPDX-License-Identifier: MIT
 *
 * Loading the driver library: every function is found, and errors have names. */
#include "device/cuda_driver.h"

#include "unit/fake_gpu.h"
#include "unit/suite.h"

START_TEST(every_function_is_found_in_a_driver)
{
    uf_cuda_driver driver;
    uf_error error = {0};
    ck_assert_int_eq(uf__cuda_driver_open(&driver, &error), UF_OK);
    ck_assert(driver.has_vmm);
#define CHECK_MEMBER(member, parameters, name, older) ck_assert_msg(driver.member != NULL, name);
    UF_CUDA_NEEDED_LIST(CHECK_MEMBER)
    UF_CUDA_VMM_LIST(CHECK_MEMBER)
    UF_CUDA_OPTIONAL_LIST(CHECK_MEMBER)
#undef CHECK_MEMBER
    uf__cuda_driver_close(&driver);
    ck_assert_ptr_null(driver.library);
}
END_TEST

START_TEST(an_error_has_the_drivers_name_or_ours)
{
    uf_cuda_driver driver = {0};
    uf_error error = {0};
    ck_assert_str_eq(uf__cuda_error_name(&driver, UF_CUDA_NO_DEVICE), "CUDA_ERROR_NO_DEVICE");
    ck_assert_str_eq(uf__cuda_error_name(&driver, 803), "an error the driver has no name for");
    ck_assert_int_eq(uf__cuda_driver_open(&driver, &error), UF_OK);
    ck_assert_str_eq(uf__cuda_error_name(&driver, 803), "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH");
    ck_assert_str_eq(uf__cuda_error_name(&driver, 12345), "an error the driver has no name for");
    uf__cuda_driver_close(&driver);
}
END_TEST

int main(int argc, char **argv)
{
    (void)argc;
    fake_gpu_enter(argv);
    const TTest *const tests[] = {every_function_is_found_in_a_driver,
                                  an_error_has_the_drivers_name_or_ours, NULL};
    return suite_run("cuda_driver", tests);
}
