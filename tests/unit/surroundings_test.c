/* SPDX-License-Identifier: MIT
 *
 * Variables: active, or only accepted. */
#include "advise/surroundings.h"

#include <string.h>

#include "unit/suite.h"

static uf_surroundings around;
static uf_python python;
static uf_cuda_probe probe;

static void prepare(const char *torch_version, uf_torch_kind torch, uint32_t card_count)
{
    memset(&python, 0, sizeof python);
    memset(&probe, 0, sizeof probe);
    strcpy(python.torch_version, torch_version);
    python.torch = torch;
    probe.has_library = card_count > 0;
    probe.device_count = probe.found_count = card_count;
    for (uint32_t i = 0; i < card_count; i++) {
        probe.devices[i].index = (int)i;
        probe.devices[i].vmm = (uf_cuda_trial){.was_tried = true, .works = true};
    }
}

static const uf_surrounding *judge(const char *first, const char *second)
{
    uf_error error = {0};
    const char *variables[] = {first, second};
    ck_assert_int_eq(
        uf__surroundings_read(variables, second == NULL ? 1 : 2, &python, &probe, &around, &error),
        UF_OK);
    ck_assert_uint_gt(around.count, 0);
    return &around.items[0];
}

static void expect(const char *first, const char *second, uf_active active, bool is_fault,
                   const char *why)
{
    const uf_surrounding *item = judge(first, second);
    ck_assert_msg(item->active == active && item->is_fault == is_fault, "%s: %s; %s", first,
                  uf__active_name(item->active), item->why);
    ck_assert_msg(strstr(item->why, why) != NULL, "%s: %s", first, item->why);
    uf__surroundings_fini(&around);
}

START_TEST(settings_that_change_something_are_active)
{
    prepare("2.11.0+cu130", UF_TORCH_CUDA, 1);
    expect("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", NULL, UF_ACTIVE_YES, false, "");
    expect("PYTORCH_ALLOC_CONF=max_split_size_mb:256", NULL, UF_ACTIVE_YES, false, "");
}
END_TEST

START_TEST(settings_that_are_accepted_and_do_nothing_are_told)
{
    prepare("2.11.0+cu130", UF_TORCH_CUDA, 1);
    expect("PYTORCH_CUDA_ALLOC_CONF=garbage_collection_threshold:0.8", NULL, UF_ACTIVE_NO, true,
           "limit");
    expect("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True,garbage_collection_threshold:0.8",
           NULL, UF_ACTIVE_PARTLY, true, "limit");
    expect("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:False", NULL, UF_ACTIVE_NO, false,
           "defaults");
}
END_TEST

START_TEST(a_string_that_is_refused_comes_with_its_correction)
{
    prepare("2.11.0+cu130", UF_TORCH_CUDA, 1);
    const uf_surrounding *item = judge("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:true", NULL);
    ck_assert_int_eq(item->active, UF_ACTIVE_REFUSED);
    ck_assert_str_eq(item->fix, "expandable_segments:True");
    uf__surroundings_fini(&around);
}
END_TEST

START_TEST(the_torch_that_was_found_decides)
{
    prepare("2.0.1+cu118", UF_TORCH_CUDA, 1);
    expect("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", NULL, UF_ACTIVE_REFUSED, true,
           "2.1");
    prepare("2.7.0", UF_TORCH_CUDA, 1);
    expect("PYTORCH_ALLOC_CONF=max_split_size_mb:256", NULL, UF_ACTIVE_REFUSED, true,
           "PYTORCH_CUDA_ALLOC_CONF");
    prepare("2.11.0+cpu", UF_TORCH_CPU, 1);
    expect("PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:256", NULL, UF_ACTIVE_NO, true,
           "without CUDA");
}
END_TEST

START_TEST(the_driver_that_was_asked_decides)
{
    prepare("2.11.0+cu130", UF_TORCH_CUDA, 2);
    probe.devices[1].vmm =
        (uf_cuda_trial){.was_tried = true, .failed_step = UF_CUDA_STEP_CREATE, .result = 801};
    expect("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", NULL, UF_ACTIVE_REFUSED, true,
           "device 1");
    /* a card that is full says nothing about what it can do */
    probe.devices[1].vmm.result = UF_CUDA_OUT_OF_MEMORY;
    expect("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", NULL, UF_ACTIVE_YES, false, "");
}
END_TEST

START_TEST(of_two_names_the_one_that_is_read_is_active)
{
    prepare("2.11.0+cu130", UF_TORCH_CUDA, 1);
    (void)judge("PYTORCH_ALLOC_CONF=max_split_size_mb:256",
                "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:256");
    ck_assert_uint_eq(around.count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        bool is_read = strcmp(around.items[i].name, "PYTORCH_CUDA_ALLOC_CONF") == 0;
        ck_assert_int_eq(around.items[i].active, is_read ? UF_ACTIVE_YES : UF_ACTIVE_NO);
        ck_assert_int_eq(around.items[i].is_fault, !is_read);
    }
    uf__surroundings_fini(&around);
}
END_TEST

START_TEST(without_caching_no_setting_is_active)
{
    prepare("2.11.0+cu130", UF_TORCH_CUDA, 1);
    expect("PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:256", "PYTORCH_NO_CUDA_MEMORY_CACHING=0",
           UF_ACTIVE_NO, true, "PYTORCH_NO_CUDA_MEMORY_CACHING");
}
END_TEST

START_TEST(a_misspelt_name_is_no_setting)
{
    prepare("", UF_TORCH_NONE, 0);
    expect("PYTORCH_CUDA_ALLOC_CONFIG=max_split_size_mb:256", NULL, UF_ACTIVE_REFUSED, true,
           "nothing reads");
}
END_TEST

START_TEST(visible_devices_are_counted_by_the_driver)
{
    prepare("", UF_TORCH_NONE, 2);
    expect("CUDA_VISIBLE_DEVICES=0,1", NULL, UF_ACTIVE_YES, false, "2 cards");
    expect("CUDA_VISIBLE_DEVICES=0,1,9", NULL, UF_ACTIVE_PARTLY, true, "2 of its 3");
    prepare("", UF_TORCH_NONE, 0);
    expect("CUDA_VISIBLE_DEVICES=0", NULL, UF_ACTIVE_UNKNOWN, false, "cannot be asked");
    expect("CUDA_VISIBLE_DEVICES=", NULL, UF_ACTIVE_YES, false, "hides every card");
}
END_TEST

START_TEST(other_variables_are_judged_by_what_reads_them)
{
    prepare("", UF_TORCH_NONE, 1);
    expect("CUDA_LAUNCH_BLOCKING=1", NULL, UF_ACTIVE_YES, false, "debugging");
    expect("CUDA_LAUNCH_BLOCKING=0", NULL, UF_ACTIVE_NO, false, "default");
    expect("CUDA_DEVICE_ORDER=PCI", NULL, UF_ACTIVE_NO, true, "ignored");
    expect("LD_PRELOAD=/nowhere/libtcmalloc.so", NULL, UF_ACTIVE_NO, true, "/nowhere");
    expect("LD_PRELOAD=libtcmalloc.so.4", NULL, UF_ACTIVE_YES, false, "host");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {settings_that_change_something_are_active,
                                  settings_that_are_accepted_and_do_nothing_are_told,
                                  a_string_that_is_refused_comes_with_its_correction,
                                  the_torch_that_was_found_decides,
                                  the_driver_that_was_asked_decides,
                                  of_two_names_the_one_that_is_read_is_active,
                                  without_caching_no_setting_is_active,
                                  a_misspelt_name_is_no_setting,
                                  visible_devices_are_counted_by_the_driver,
                                  other_variables_are_judged_by_what_reads_them,
                                  NULL};
    return suite_run("surroundings", tests);
}
