/* SPDX-License-Identifier: MIT
 *
 * An allocator's page, as another process would read it: what stands there is compared with what
 * the allocator says of itself. */
#include <unfrag/host.h>
#include <unfrag/monitor.h>
#include <unfrag/sim.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "folder.h"
#include "publish/page_file.h"
#include "publish/process.h"
#include "suite.h"

static const uint64_t MIB = 1 << 20;

static uf_sim *sim;
static uf_host *host;
static uf_allocator *allocator;
static uf_error error;

static void start(uf_policy policy, uint64_t limit_bytes)
{
    uf_allocator_options options = {.struct_size_bytes = sizeof options,
                                    .policy = policy,
                                    .limit_bytes = limit_bytes,
                                    .device_index = 3};
    folder_create();
    if (policy == UF_POLICY_UNFRAG) {
        ck_assert_int_eq(uf_host_create(NULL, &host, &error), UF_OK);
        options.device = uf_host_device(host);
    } else {
        ck_assert_int_eq(uf_sim_create(NULL, &sim, &error), UF_OK);
        options.device = uf_sim_device(sim);
    }
    ck_assert_msg(uf_allocator_create(&options, &allocator, &error) == UF_OK, "%s", error.text);
}

static void stop(void)
{
    uf_allocator_destroy(allocator);
    uf_sim_destroy(sim);
    uf_host_destroy(host);
    sim = NULL;
    host = NULL;
    folder_destroy();
}

static uf_monitor *watch(const char *command)
{
    uf_monitor *monitor = NULL;
    const uf_monitor_options options = {.struct_size_bytes = sizeof options,
                                        .allocator = allocator,
                                        .directory = folder,
                                        .command = command,
                                        .device_name = "a card",
                                        .device_uuid = "GPU-1",
                                        .is_manual = true};
    ck_assert_msg(uf_monitor_open(&options, &monitor, &error) == UF_OK, "%s", error.text);
    return monitor;
}

static uf_page_reading read_name(const char *name, uf_monitor_page *page)
{
    int directory = open(folder, O_RDONLY | O_DIRECTORY);
    ck_assert_int_ge(directory, 0);
    uf_page_reading reading = uf__page_file_read(directory, name, page);
    close(directory);
    return reading;
}

static void read_own(uf_monitor_page *page)
{
    char name[32];
    snprintf(name, sizeof name, "%ld-0", (long)getpid());
    ck_assert_int_eq(read_name(name, page), UF_PAGE_STEADY);
}

static uint64_t take(uint64_t bytes, uint64_t stream)
{
    uint64_t addr = 0;
    ck_assert_msg(uf_alloc(allocator, bytes, stream, &addr, &error) == UF_OK, "%s", error.text);
    return addr;
}

START_TEST(a_page_says_who_it_is)
{
    start(UF_POLICY_TORCH, 0);
    uf_monitor *monitor = watch("python train.py");
    uf_monitor_page page;
    uint64_t start_ticks;
    read_own(&page);
    ck_assert(uf__process_start((uint32_t)getpid(), &start_ticks));
    ck_assert_uint_eq(page.pid, (uint32_t)getpid());
    ck_assert_uint_eq(page.start_ticks, start_ticks);
    ck_assert_int_eq(page.device_index, 3);
    ck_assert_str_eq(page.policy, "torch");
    ck_assert_str_eq(page.command, "python train.py");
    ck_assert_str_eq(page.device_name, "a card");
    ck_assert_str_eq(page.device_uuid, "GPU-1");
    ck_assert_uint_eq(page.publish_count, 1);
    ck_assert(!uf__page_is_dead(&page));
    uf_monitor_close(monitor);
    char name[32];
    snprintf(name, sizeof name, "%ld-0", (long)getpid());
    ck_assert_int_eq(read_name(name, &page), UF_PAGE_NONE);
    stop();
}
END_TEST

START_TEST(a_page_has_the_numbers_of_the_allocator)
{
    start(UF_POLICY_TORCH, 100 * MIB);
    uf_monitor *monitor = watch("x");
    uint64_t first = take(30 * MIB, 0);
    take(5 * MIB + 100, 7);
    ck_assert_int_eq(uf_free(allocator, first, NULL), UF_OK);
    take(10 * MIB, 0);
    ck_assert_int_eq(uf_monitor_publish(monitor, &error), UF_OK);
    uf_monitor_page page;
    uf_stats stats;
    read_own(&page);
    ck_assert_int_eq(uf_stats_get(allocator, &stats, &error), UF_OK);
    ck_assert_mem_eq(&page.stats, &stats, sizeof stats);
    ck_assert_uint_eq(page.limit_bytes, 100 * MIB);
    /* 30 MiB in a segment of their own, 5 MiB in one of 20: two misses, then a hit. */
    ck_assert_uint_eq(page.cache_miss_count, 2);
    ck_assert_uint_eq(page.cache_hit_count, 1);
    ck_assert_uint_eq(page.largest_request_bytes, 20 * MIB);
    ck_assert_uint_eq(page.largest_allocatable_bytes, 50 * MIB);
    ck_assert_uint_eq(page.device_total_bytes, UINT64_C(24) << 30);
    ck_assert_uint_eq(page.device_free_bytes, (UINT64_C(24) << 30) - 50 * MIB);
    uf_monitor_close(monitor);
    stop();
}
END_TEST

START_TEST(rows_tell_pools_and_streams_apart)
{
    start(UF_POLICY_TORCH, 0);
    uint64_t pool;
    take(30 * MIB, 0);
    take(1000, 9);
    ck_assert_int_eq(uf_pool_create(allocator, NULL, &pool, &error), UF_OK);
    ck_assert_int_eq(uf_pool_begin(allocator, pool, &error), UF_OK);
    take(60 * MIB, 9);
    ck_assert_int_eq(uf_pool_end(allocator, pool, &error), UF_OK);
    uf_monitor *monitor = watch("x");
    uf_monitor_page page;
    read_own(&page);
    ck_assert_uint_eq(page.pool_count, 2);
    ck_assert_uint_eq(page.pool_row_count, 2);
    ck_assert_uint_eq(page.pools[0].id[1], pool);
    ck_assert_uint_eq(page.pools[0].flags, UF_MONITOR_POOL_PRIVATE);
    ck_assert_uint_eq(page.pools[0].reserved_bytes, 60 * MIB);
    ck_assert_uint_eq(page.pools[0].block_count, 1);
    ck_assert_uint_eq(page.pools[1].id[1], 0);
    ck_assert_uint_eq(page.pools[1].flags, 0);
    ck_assert_uint_eq(page.pools[1].reserved_bytes, 32 * MIB);
    ck_assert_uint_eq(page.pools[1].active_bytes, 30 * MIB + 1024);
    ck_assert_uint_eq(page.pools[1].requested_bytes, 30 * MIB + 1000);
    ck_assert_uint_eq(page.pools[1].segment_count, 2);
    ck_assert_uint_eq(page.stream_row_count, 2);
    ck_assert_uint_eq(page.streams[0].stream, 9);
    ck_assert_uint_eq(page.streams[0].reserved_bytes, 62 * MIB);
    ck_assert_uint_eq(page.streams[1].stream, 0);
    ck_assert_uint_eq(page.streams[1].allocated_bytes, 30 * MIB);
    uf_monitor_close(monitor);
    stop();
}
END_TEST

START_TEST(more_pools_than_rows_show_the_largest)
{
    start(UF_POLICY_TORCH, 0);
    for (uint64_t i = 1; i <= 40; i++) {
        uint64_t pool;
        ck_assert_int_eq(uf_pool_create(allocator, NULL, &pool, &error), UF_OK);
        ck_assert_int_eq(uf_pool_begin(allocator, pool, &error), UF_OK);
        take((10 + 2 * i) * MIB, i);
        ck_assert_int_eq(uf_pool_end(allocator, pool, &error), UF_OK);
    }
    uf_monitor *monitor = watch("x");
    uf_monitor_page page;
    read_own(&page);
    ck_assert_uint_eq(page.pool_count, 41);
    ck_assert_uint_eq(page.pool_row_count, UF_MONITOR_POOL_ROWS);
    ck_assert_uint_eq(page.pools[0].id[1], 40);
    ck_assert_uint_eq(page.pools[31].id[1], 9);
    ck_assert_uint_eq(page.stream_count, 40);
    ck_assert_uint_eq(page.stream_row_count, UF_MONITOR_STREAM_ROWS);
    uf_monitor_close(monitor);
    stop();
}
END_TEST

START_TEST(the_unfrag_policy_tells_what_moved)
{
    start(UF_POLICY_UNFRAG, 64 * MIB);
    uint64_t blocks[8];
    for (int i = 0; i < 8; i++) {
        blocks[i] = take(8 * MIB, 0);
    }
    for (int i = 0; i < 8; i += 2) {
        ck_assert_int_eq(uf_free(allocator, blocks[i], NULL), UF_OK);
    }
    uf_monitor *monitor = watch("x");
    uf_monitor_page page;
    read_own(&page);
    ck_assert_str_eq(page.policy, "unfrag");
    ck_assert_uint_eq(page.remap_count, 0);
    ck_assert_uint_eq(page.largest_allocatable_bytes, 32 * MIB);
    take(32 * MIB, 0);
    ck_assert_int_eq(uf_monitor_publish(monitor, &error), UF_OK);
    read_own(&page);
    ck_assert_uint_gt(page.remap_count, 0);
    ck_assert_uint_eq(page.pools[0].reserved_bytes, 64 * MIB);
    ck_assert_uint_eq(page.streams[0].reserved_bytes, UF_MONITOR_UNKNOWN);
    ck_assert_uint_eq(page.streams[0].active_bytes, 64 * MIB);
    uf_monitor_close(monitor);
    stop();
}
END_TEST

START_TEST(a_thread_writes_samples_by_itself)
{
    start(UF_POLICY_TORCH, 0);
    uf_monitor *monitor = NULL;
    const uf_monitor_options options = {.struct_size_bytes = sizeof options,
                                        .allocator = allocator,
                                        .directory = folder,
                                        .interval_ms = 10};
    ck_assert_int_eq(uf_monitor_open(&options, &monitor, &error), UF_OK);
    uf_monitor_page page;
    uint64_t kept = take(30 * MIB, 0);
    do { /* ends when the thread has seen the block; the runner's time limit ends it otherwise */
        usleep(1000);
        read_own(&page);
    } while (page.stats.allocation.all.current == 0);
    ck_assert_int_eq(page.stats.reserved_bytes.all.current, (int64_t)(30 * MIB));
    ck_assert_uint_gt(page.publish_count, 1);
    ck_assert_str_ne(page.command, "");
    ck_assert_int_eq(uf_free(allocator, kept, NULL), UF_OK);
    uf_monitor_close(monitor);
    stop();
}
END_TEST

START_TEST(two_pages_of_one_process_have_two_names)
{
    start(UF_POLICY_TORCH, 0);
    uf_monitor *first = watch("a"), *second = watch("b");
    uf_monitor_page page;
    char name[32];
    read_own(&page);
    ck_assert_str_eq(page.command, "a");
    snprintf(name, sizeof name, "%ld-1", (long)getpid());
    ck_assert_int_eq(read_name(name, &page), UF_PAGE_STEADY);
    ck_assert_str_eq(page.command, "b");
    uf_monitor_close(first);
    ck_assert_int_eq(read_name(name, &page), UF_PAGE_STEADY);
    uf_monitor_close(second);
    stop();
}
END_TEST

START_TEST(a_forked_process_leaves_its_parents_page_alone)
{
    start(UF_POLICY_TORCH, 0);
    uf_monitor *monitor = NULL;
    const uf_monitor_options options = {.struct_size_bytes = sizeof options,
                                        .allocator = allocator,
                                        .directory = folder,
                                        .interval_ms = 3600000};
    ck_assert_int_eq(uf_monitor_open(&options, &monitor, &error), UF_OK);
    pid_t child = fork();
    if (child == 0) {
        bool is_good = uf_monitor_publish(monitor, NULL) == UF_OK;
        uf_monitor_close(monitor);
        _exit(is_good ? 0 : 1);
    }
    int code = -1;
    ck_assert_int_eq(waitpid(child, &code, 0), child);
    ck_assert_int_eq(code, 0);
    uf_monitor_page page;
    read_own(&page);
    ck_assert_uint_eq(page.publish_count, 1);
    uf_monitor_close(monitor);
    stop();
}
END_TEST

static uf_monitor *called_inside;
static uf_status inside_status;

static void publish_inside(void *context, const uf_allocator_event *event)
{
    (void)context;
    (void)event;
    if (called_inside != NULL) {
        inside_status = uf_monitor_publish(called_inside, NULL);
    }
}

START_TEST(publishing_from_inside_the_callback_is_refused)
{
    folder_create();
    ck_assert_int_eq(uf_sim_create(NULL, &sim, &error), UF_OK);
    const uf_allocator_options options = {.struct_size_bytes = sizeof options,
                                          .device = uf_sim_device(sim),
                                          .on_event = publish_inside};
    ck_assert_int_eq(uf_allocator_create(&options, &allocator, &error), UF_OK);
    called_inside = watch("x");
    take(MIB, 0);
    uf_monitor_close(called_inside);
    called_inside = NULL;
    ck_assert_int_eq(inside_status, UF_ERROR_BUSY);
    stop();
}
END_TEST

START_TEST(options_that_are_none_are_refused)
{
    start(UF_POLICY_TORCH, 0);
    uf_monitor *monitor = NULL;
    uf_monitor_options options = {.struct_size_bytes = sizeof options, .directory = folder};
    ck_assert_int_eq(uf_monitor_open(NULL, &monitor, &error), UF_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(uf_monitor_open(&options, &monitor, &error), UF_ERROR_INVALID_ARGUMENT);
    options.allocator = allocator;
    ck_assert_int_eq(uf_monitor_open(&options, NULL, &error), UF_ERROR_INVALID_ARGUMENT);
    options.interval_ms = 9;
    ck_assert_int_eq(uf_monitor_open(&options, &monitor, &error), UF_ERROR_INVALID_ARGUMENT);
    options.interval_ms = 0;
    options.struct_size_bytes = 4;
    ck_assert_int_eq(uf_monitor_open(&options, &monitor, &error), UF_ERROR_INVALID_ARGUMENT);
    ck_assert_ptr_null(monitor);
    ck_assert_int_eq(uf_monitor_publish(NULL, &error), UF_ERROR_INVALID_ARGUMENT);
    uf_monitor_close(NULL);
    stop();
}
END_TEST

START_TEST(a_directory_that_others_may_write_is_refused)
{
    start(UF_POLICY_TORCH, 0);
    uf_monitor *monitor = NULL;
    const uf_monitor_options options = {
        .struct_size_bytes = sizeof options, .allocator = allocator, .directory = folder};
    ck_assert_int_eq(chmod(folder, 0777), 0);
    ck_assert_int_eq(uf_monitor_open(&options, &monitor, &error), UF_ERROR_IO);
    ck_assert_ptr_nonnull(strstr(error.text, "mode 777"));
    ck_assert_int_eq(chmod(folder, 0700), 0);
    stop();
}
END_TEST

int main(void)
{
    return suite_run("monitor", (const TTest *const[]){
                                    a_page_says_who_it_is,
                                    a_page_has_the_numbers_of_the_allocator,
                                    rows_tell_pools_and_streams_apart,
                                    more_pools_than_rows_show_the_largest,
                                    the_unfrag_policy_tells_what_moved,
                                    a_thread_writes_samples_by_itself,
                                    two_pages_of_one_process_have_two_names,
                                    a_forked_process_leaves_its_parents_page_alone,
                                    publishing_from_inside_the_callback_is_refused,
                                    options_that_are_none_are_refused,
                                    a_directory_that_others_may_write_is_refused,
                                    NULL,
                                });
}
