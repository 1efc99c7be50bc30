/* SPDX-License-Identifier: MIT
 *
 * Page files as others may leave them: cut, foreign, half written, of the dead. */
#include "publish/page_file.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "folder.h"
#include "publish/process.h"
#include "suite.h"

static uf_monitor_page sample_page(uint32_t pid)
{
    uf_monitor_page page = {.version = UF_MONITOR_VERSION,
                            .page_bytes = sizeof page,
                            .pid = pid,
                            .pid_namespace = uf__process_namespace()};
    memcpy(page.magic, UF_MONITOR_MAGIC, sizeof page.magic);
    return page;
}

static uf_page_reading read_name(const char *name, uf_monitor_page *page)
{
    int directory = open(folder, O_RDONLY | O_DIRECTORY);
    ck_assert_int_ge(directory, 0);
    uf_page_reading reading = uf__page_file_read(directory, name, page);
    close(directory);
    return reading;
}

static bool is_there(const char *name)
{
    return access(folder_path(name), F_OK) == 0;
}

/* A pid that was one, and is none any more. */
static uint32_t dead_pid(void)
{
    pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    return (uint32_t)child;
}

START_TEST(what_is_not_a_page_is_not_read)
{
    folder_create();
    uf_monitor_page good = sample_page(7), page;
    folder_write("7-0", &good, sizeof good);
    ck_assert_int_eq(read_name("7-0", &page), UF_PAGE_STEADY);
    folder_write("7-1", &good, sizeof good - 1);
    ck_assert_int_eq(read_name("7-1", &page), UF_PAGE_NONE);
    folder_write("7-2", "", 0);
    ck_assert_int_eq(read_name("7-2", &page), UF_PAGE_NONE);
    folder_link("7-3", "7-0");
    ck_assert_int_eq(read_name("7-3", &page), UF_PAGE_NONE);
    ck_assert_int_eq(mkfifo(folder_path("7-4"), 0600), 0);
    ck_assert_int_eq(read_name("7-4", &page), UF_PAGE_NONE);
    ck_assert_int_eq(mkdir(folder_path("7-5"), 0700), 0);
    ck_assert_int_eq(read_name("7-5", &page), UF_PAGE_NONE);
    ck_assert_int_eq(read_name("7-6", &page), UF_PAGE_NONE);
    good.version++;
    folder_write("7-7", &good, sizeof good);
    ck_assert_int_eq(read_name("7-7", &page), UF_PAGE_NONE);
    folder_destroy();
}
END_TEST

START_TEST(a_page_that_is_never_at_rest_is_torn)
{
    folder_create();
    uf_monitor_page good = sample_page(7), page;
    good.sequence = 3;
    folder_write("7-0", &good, sizeof good);
    ck_assert_int_eq(read_name("7-0", &page), UF_PAGE_TORN);
    folder_destroy();
}
END_TEST

START_TEST(texts_and_counts_of_a_hostile_page_are_cut)
{
    folder_create();
    uf_monitor_page good = sample_page(7), page;
    memset((char *)&good + offsetof(uf_monitor_page, policy), 0xFF,
           sizeof good - offsetof(uf_monitor_page, policy));
    folder_write("7-0", &good, sizeof good);
    ck_assert_int_eq(read_name("7-0", &page), UF_PAGE_STEADY);
    ck_assert_uint_eq(strlen(page.policy), sizeof page.policy - 1);
    ck_assert_uint_eq(strlen(page.device_uuid), sizeof page.device_uuid - 1);
    ck_assert_uint_eq(strlen(page.device_name), sizeof page.device_name - 1);
    ck_assert_uint_eq(strlen(page.command), sizeof page.command - 1);
    ck_assert_uint_eq(strlen(page.conf), sizeof page.conf - 1);
    ck_assert_uint_eq(page.pool_row_count, UF_MONITOR_POOL_ROWS);
    ck_assert_uint_eq(page.stream_row_count, UF_MONITOR_STREAM_ROWS);
    ck_assert_uint_eq(page.history_count, UF_MONITOR_HISTORY);
    ck_assert_uint_lt(page.history_next, UF_MONITOR_HISTORY);
    folder_destroy();
}
END_TEST

START_TEST(names_are_a_pid_and_a_number)
{
    uint32_t pid = 0;
    ck_assert(uf__page_name_parse("1234-0", &pid));
    ck_assert_uint_eq(pid, 1234);
    ck_assert(uf__page_name_parse("1-17", &pid));
    const char *const others[] = {"",    ".",    "..",    "0-1",   "-1",
                                  "12",  "12-",  "12-x",  "12-1 ", "4294967296-1",
                                  "x-1", "+1-1", "12--1", "12-1-1"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        ck_assert_msg(!uf__page_name_parse(others[i], &pid), "'%s'", others[i]);
    }
}
END_TEST

START_TEST(a_sweep_removes_the_dead_and_leaves_the_rest)
{
    folder_create();
    char name[32], torn_name[32];
    uint32_t dead = dead_pid(), own = (uint32_t)getpid();
    uf_monitor_page page = sample_page(dead);
    snprintf(name, sizeof name, "%u-0", dead);
    folder_write(name, &page, sizeof page);
    page.sequence = 1;
    snprintf(torn_name, sizeof torn_name, "%u-1", dead);
    folder_write(torn_name, &page, sizeof page);

    char living_name[32], reborn_name[32], foreign_name[32], newer_name[32];
    page = sample_page(own);
    ck_assert(uf__process_start(own, &page.start_ticks));
    snprintf(living_name, sizeof living_name, "%u-0", own);
    folder_write(living_name, &page, sizeof page);
    page.start_ticks++; /* another process had this pid */
    snprintf(reborn_name, sizeof reborn_name, "%u-1", own);
    folder_write(reborn_name, &page, sizeof page);
    page = sample_page(dead);
    page.pid_namespace++;
    snprintf(foreign_name, sizeof foreign_name, "%u-2", dead);
    folder_write(foreign_name, &page, sizeof page);
    page = sample_page(dead);
    page.version++;
    snprintf(newer_name, sizeof newer_name, "%u-3", dead);
    folder_write(newer_name, &page, sizeof page);
    folder_write("notes.txt", &page, sizeof page);

    uf__page_directory_sweep(folder);
    ck_assert(!is_there(name));
    ck_assert(!is_there(torn_name));
    ck_assert(!is_there(reborn_name));
    ck_assert(is_there(living_name));
    ck_assert(is_there(foreign_name));
    ck_assert(is_there(newer_name));
    ck_assert(is_there("notes.txt"));
    folder_destroy();
}
END_TEST

START_TEST(a_sweep_removes_what_a_dead_process_never_finished)
{
    folder_create();
    char old_name[32], new_name[32];
    uint32_t dead = dead_pid();
    const struct timespec long_ago[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    snprintf(old_name, sizeof old_name, "%u-0", dead);
    snprintf(new_name, sizeof new_name, "%u-1", dead);
    folder_write(old_name, "", 0);
    folder_write(new_name, "", 0);
    ck_assert_int_eq(utimensat(AT_FDCWD, folder_path(old_name), long_ago, 0), 0);
    uf__page_directory_sweep(folder);
    ck_assert(!is_there(old_name));
    ck_assert(is_there(new_name));
    uf__page_directory_sweep(folder_path("nowhere"));
    folder_destroy();
}
END_TEST

START_TEST(the_start_is_the_22nd_field_whatever_the_command_is_called)
{
    uint64_t ticks = 0;
    ck_assert(uf__process_parse_start("12 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 "
                                      "777 20 21\n",
                                      &ticks));
    ck_assert_uint_eq(ticks, 777);
    ck_assert(!uf__process_parse_start(
        "12 (a) Z 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 777 20", &ticks));
    ck_assert(!uf__process_parse_start("12 (a) S 1 2 3", &ticks));
    ck_assert(!uf__process_parse_start("12 (a)", &ticks));
    ck_assert(!uf__process_parse_start("", &ticks));
}
END_TEST

START_TEST(pages_are_where_they_were_asked_for)
{
    char path[UF_PAGE_PATH_CAPACITY], wanted[64];
    uf_error error;
    ck_assert_int_eq(uf__page_directory("/some/where", path, &error), UF_OK);
    ck_assert_str_eq(path, "/some/where");
    ck_assert_int_eq(setenv("UNFRAG_MONITOR_DIR", "/else/where", 1), 0);
    ck_assert_int_eq(uf__page_directory(NULL, path, &error), UF_OK);
    ck_assert_str_eq(path, "/else/where");
    ck_assert_int_eq(unsetenv("UNFRAG_MONITOR_DIR"), 0);
    ck_assert_int_eq(uf__page_directory(NULL, path, &error), UF_OK);
    snprintf(wanted, sizeof wanted, "/dev/shm/unfrag-%u", (unsigned)geteuid());
    if (access("/dev/shm", W_OK | X_OK) == 0) {
        ck_assert_str_eq(path, wanted);
    }
    char name[600];
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    ck_assert_int_eq(uf__page_directory(name, path, &error), UF_ERROR_IO);
}
END_TEST

int main(void)
{
    return suite_run("page_file", (const TTest *const[]){
                                      what_is_not_a_page_is_not_read,
                                      a_page_that_is_never_at_rest_is_torn,
                                      texts_and_counts_of_a_hostile_page_are_cut,
                                      names_are_a_pid_and_a_number,
                                      a_sweep_removes_the_dead_and_leaves_the_rest,
                                      a_sweep_removes_what_a_dead_process_never_finished,
                                      the_start_is_the_22nd_field_whatever_the_command_is_called,
                                      pages_are_where_they_were_asked_for,
                                      NULL,
                                  });
}
