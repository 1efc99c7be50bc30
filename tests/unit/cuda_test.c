/* SPDX-License-Identifier: MIT
 *
 * Opening a GPU over the fake driver library. */
#include <unfrag/cuda.h>

#include "unit/fake_gpu.h"
#include "unit/suite.h"

#define CARD "card=NVIDIA H200|1073741824|1073741824"

START_TEST(a_card_that_can_everything_needs_no_note)
{
    uf_cuda *cuda;
    uf_cuda_info info = {.struct_size_bytes = sizeof info};
    uf_error error = {UF_OK, ""};
    fake_gpu_set(CARD);
    ck_assert_msg(uf_cuda_create(NULL, &cuda, &error) == UF_OK, "%s", error.text);
    ck_assert_int_eq(uf_cuda_info_get(cuda, &info), UF_OK);
    ck_assert_str_eq(info.name, "NVIDIA H200");
    ck_assert(info.can_map && info.can_expand && info.is_primary_context);
    ck_assert_uint_eq(info.granularity_bytes, 2u << 20);
    ck_assert_int_eq(info.policy, UF_POLICY_UNFRAG);
    ck_assert_str_eq(info.note, "");
    uf_cuda_destroy(cuda);
}
END_TEST

int main(int argc, char **argv)
{
    (void)argc;
    fake_gpu_enter(argv);
    const TTest *const tests[] = {a_card_that_can_everything_needs_no_note, NULL};
    return suite_run("cuda", tests);
}
