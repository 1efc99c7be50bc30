/* SPDX-License-Identifier: MIT
 *
 * Processes seen through a made-up /proc. */
#include "advise/holder.h"

#include "unit/folder.h"
#include "unit/suite.h"

#define CONTAINER "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static uf_holders holders;
static uf_nvml_process processes[8];
static uf_nvml_card card = {.valid = UF_NVML_HAS_PROCESSES, .processes = processes};
static uf_nvml nvml = {.cards = &card, .card_count = 1};

/* A process with a state; it has the device file open. */
static void make_process(unsigned pid, char state, unsigned parent, const char *cgroup)
{
    char name[64], text[128];
    snprintf(name, sizeof name, "proc/%u/stat", pid);
    snprintf(text, sizeof text, "%u (py ) thon) %c %u 1 1 0", pid, state, parent);
    folder_write_text(name, text);
    snprintf(name, sizeof name, "proc/%u/cmdline", pid);
    folder_write(name, "python\0main.py\0", 15);
    snprintf(name, sizeof name, "proc/%u/cgroup", pid);
    folder_write_text(name, cgroup);
    snprintf(name, sizeof name, "proc/%u/fd/7", pid);
    folder_link(name, "/dev/nvidia3");
}

static void list_process(uint32_t pid, uint64_t bytes)
{
    processes[card.process_count++] =
        (uf_nvml_process){.pid = pid, .has_bytes = bytes != 0, .bytes = bytes};
}

static void prepare(bool is_host)
{
    folder_create();
    card.process_count = 0;
    folder_write_text("proc/self/cgroup", "0::/\n");
    folder_link("proc/self/ns/pid", is_host ? "pid:[4026531836]" : "pid:[4026532000]");
}

static void read_all(const uf_nvml *source, uint32_t own_pid)
{
    uf_error error = {0};
    uf_holder_place place = {.root = folder, .own_pid = own_pid};
    ck_assert_int_eq(uf__holders_read(source, &place, &holders, &error), UF_OK);
}

static void finish(void)
{
    uf__holders_fini(&holders);
    folder_destroy();
}

START_TEST(holders_come_largest_first_with_their_command)
{
    prepare(true);
    make_process(10, 'S', 1, "0::/user.slice\n");
    make_process(11, 'R', 1, "0::/user.slice\n");
    list_process(10, 100);
    list_process(11, 500);
    list_process(12, 300);
    read_all(&nvml, 12);
    ck_assert_uint_eq(holders.count, 2); /* without ourselves */
    ck_assert_uint_eq(holders.items[0].pid, 11);
    ck_assert_uint_eq(holders.items[0].bytes, 500);
    ck_assert_str_eq(holders.items[0].name, "py ) thon");
    ck_assert_str_eq(holders.items[0].command, "python main.py");
    ck_assert_int_eq(holders.items[0].kind, UF_HOLDER_PLAIN);
    ck_assert(holders.is_whole_host && !holders.is_container);
    finish();
}
END_TEST

START_TEST(the_state_tells_zombies_and_stopped_processes)
{
    prepare(true);
    make_process(20, 'Z', 4, "0::/\n");
    make_process(21, 'D', 1, "0::/\n");
    make_process(22, 'T', 1, "0::/\n");
    list_process(20, 3);
    list_process(21, 2);
    list_process(22, 1);
    read_all(&nvml, 0);
    ck_assert_int_eq(holders.items[0].kind, UF_HOLDER_ZOMBIE);
    ck_assert_uint_eq(holders.items[0].parent_pid, 4);
    ck_assert_int_eq(holders.items[1].kind, UF_HOLDER_STUCK);
    ck_assert_int_eq(holders.items[2].kind, UF_HOLDER_STOPPED);
    finish();
}
END_TEST

START_TEST(a_process_in_a_container_is_named_by_it)
{
    prepare(true);
    make_process(30, 'S', 1, "0::/system.slice/docker-" CONTAINER ".scope\n");
    list_process(30, 1);
    read_all(&nvml, 0);
    ck_assert_int_eq(holders.items[0].kind, UF_HOLDER_CONTAINER);
    ck_assert_str_eq(holders.items[0].container, "0123456789ab");
    finish();
}
END_TEST

START_TEST(a_process_that_proc_does_not_show_is_outside_or_ended)
{
    prepare(false);
    list_process(40, 1);
    read_all(&nvml, 0);
    ck_assert_int_eq(holders.items[0].kind, UF_HOLDER_UNSEEN);
    ck_assert_str_eq(uf__holder_kind_name(&holders, &holders.items[0]), "outside this container");
    uf__holders_fini(&holders);
    ck_assert_int_eq(unlink(folder_path("proc/self/ns/pid")), 0);
    folder_link("proc/self/ns/pid", "pid:[4026531836]");
    read_all(&nvml, 0);
    ck_assert_str_eq(uf__holder_kind_name(&holders, &holders.items[0]), "has ended");
    finish();
}
END_TEST

/* In a container the driver's number may be another process's here. */
START_TEST(a_process_of_the_same_number_without_the_device_is_not_the_holder)
{
    prepare(false);
    make_process(50, 'S', 1, "0::/\n");
    ck_assert_int_eq(unlink(folder_path("proc/50/fd/7")), 0);
    list_process(50, 1);
    read_all(&nvml, 0);
    ck_assert_int_eq(holders.items[0].kind, UF_HOLDER_UNSEEN);
    ck_assert_str_eq(holders.items[0].name, "");
    finish();
}
END_TEST

START_TEST(without_a_list_whoever_has_the_device_open_is_found)
{
    prepare(true);
    make_process(60, 'S', 1, "0::/\n");
    make_process(61, 'S', 1, "0::/\n");
    ck_assert_int_eq(unlink(folder_path("proc/61/fd/7")), 0);
    folder_link("proc/61/fd/7", "/dev/null");
    uf_nvml none = {0};
    read_all(&none, 0);
    ck_assert(holders.is_by_files);
    ck_assert_uint_eq(holders.count, 1);
    ck_assert_uint_eq(holders.items[0].pid, 60);
    ck_assert_int_eq(holders.items[0].card, 3);
    ck_assert(!holders.items[0].has_bytes);
    finish();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {holders_come_largest_first_with_their_command,
                                  the_state_tells_zombies_and_stopped_processes,
                                  a_process_in_a_container_is_named_by_it,
                                  a_process_that_proc_does_not_show_is_outside_or_ended,
                                  a_process_of_the_same_number_without_the_device_is_not_the_holder,
                                  without_a_list_whoever_has_the_device_open_is_found,
                                  NULL};
    return suite_run("holder", tests);
}
