/* SPDX-License-Identifier: MIT
 *
 * The cuda device over the fake driver library, in what no other device has: opening, contexts,
 * peers, captures, errors of the driver, forks. (What all devices promise: device_test.) */
#include <unfrag/cuda.h>
#include <unfrag/unfrag.h>

#include <stdio.h>
#include <sys/wait.h>

#include "unit/fake_gpu.h"
#include "unit/suite.h"

#define MIB (UINT64_C(1) << 20)
#define CARD "card=NVIDIA H200|134217728|134217728"
#define TWO_CARDS CARD ";card=B|134217728|134217728"

static uf_cuda *cuda;
static const uf_device *device;
static uf_cuda_info info;
static uf_error error;
static const fake_api *fake;

static uf_status open_gpu(const char *setup, const uf_cuda_options *options)
{
    fake_gpu_set(setup);
    fake = fake_gpu_api();
    uf_status status = uf_cuda_create(options, &cuda, &error);
    if (status == UF_OK) {
        device = uf_cuda_device(cuda);
        info.struct_size_bytes = sizeof info;
        ck_assert_int_eq(uf_cuda_info_get(cuda, &info), UF_OK);
    }
    return status;
}

static void open_well(const char *setup)
{
    ck_assert_msg(open_gpu(setup, NULL) == UF_OK, "%s", error.text);
}

/* Nothing is left, and no rule was broken. */
static void close_gpu(void)
{
    static const fake_counts none;
    fake_counts counts;
    char text[300] = "";
    uf_cuda_destroy(cuda);
    fake->counts(&counts);
    counts.stream_count = counts.graph_count = 0;
    ck_assert_msg(fake->fault_count(text, sizeof text) == 0, "%s", text);
    ck_assert_mem_eq(&counts, &none, sizeof none);
}

START_TEST(a_card_that_can_everything_needs_no_note)
{
    open_well(CARD);
    ck_assert_str_eq(info.name, "NVIDIA H200");
    ck_assert_int_eq(info.driver_version, 13000);
    ck_assert(info.can_map && info.can_expand && info.is_primary_context);
    ck_assert_uint_eq(info.granularity_bytes, 2 * MIB);
    ck_assert_uint_eq(info.recommended_granularity_bytes, 2 * MIB);
    ck_assert_uint_eq(device->granularity_bytes, 2 * MIB);
    ck_assert_int_eq(info.policy, UF_POLICY_UNFRAG);
    ck_assert_str_eq(info.conf, "");
    ck_assert_str_eq(info.note, "");
    close_gpu();
}
END_TEST

/* What info offers must be taken by an allocator, and serve. */
static void serve(uint64_t bytes)
{
    uf_allocator *allocator;
    uint64_t addr = 0;
    uf_allocator_options options = {.struct_size_bytes = sizeof options,
                                    .device = device,
                                    .policy = info.policy,
                                    .conf = info.conf};
    ck_assert_msg(uf_allocator_create(&options, &allocator, &error) == UF_OK, "%s", error.text);
    ck_assert_msg(uf_alloc(allocator, bytes, 0, &addr, &error) == UF_OK, "%s", error.text);
    ck_assert_int_eq(uf_check(allocator, NULL), UF_OK);
    ck_assert_int_eq(uf_free(allocator, addr, NULL), UF_OK);
    uf_allocator_destroy(allocator);
}

START_TEST(without_mapping_the_reason_and_what_is_in_force_are_told)
{
    static const struct {
        const char *setup, *why;
    } cases[] = {
        {"card=NVIDIA GRID|134217728|134217728|novmm",
         "the driver says that this GPU has no virtual memory management"},
        {CARD ";fail=cuMemCreate|801", "cuMemCreate failed on trial: CUDA_ERROR_NOT_SUPPORTED"},
        {CARD ";fail=cuMemSetAccess|1", "cuMemSetAccess failed on trial: CUDA_ERROR_INVALID_VALUE"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        open_well(cases[i].setup);
        ck_assert(!info.can_map && !info.can_expand);
        ck_assert_str_eq(info.why_not, cases[i].why);
        ck_assert_int_eq(info.policy, UF_POLICY_TORCH);
        ck_assert_str_eq(info.conf, "max_split_size_mb:128,garbage_collection_threshold:0.8");
        ck_assert_ptr_nonnull(strstr(info.note, cases[i].why));
        ck_assert_ptr_nonnull(strstr(info.note, info.conf));
        ck_assert(device->range_reserve == NULL && device->handle_create == NULL &&
                  device->pages_map == NULL);
        serve(5 * MIB);
        close_gpu();
    }
}
END_TEST

START_TEST(a_card_that_is_full_can_map)
{
    open_well("card=full|134217728|0");
    ck_assert(info.can_map);
    close_gpu();
}
END_TEST

START_TEST(the_granularity_is_asked_and_decides_what_pages_there_are)
{
    open_well("card=A|134217728;granule=65536|1048576");
    ck_assert_uint_eq(info.granularity_bytes, 65536);
    ck_assert_uint_eq(info.recommended_granularity_bytes, MIB);
    ck_assert(info.can_expand);
    serve(5 * MIB);
    close_gpu();
    /* Pages of 2 MiB cannot be had there, and the allocator's pages are larger by themselves. */
    open_well("card=A|134217728;granule=4194304|4194304");
    ck_assert(info.can_map && !info.can_expand);
    ck_assert_ptr_null(device->pages_map);
    serve(5 * MIB);
    uf_allocator *allocator;
    uf_allocator_options options = {.struct_size_bytes = sizeof options,
                                    .device = device,
                                    .policy = UF_POLICY_UNFRAG,
                                    .page_bytes = 2 * MIB};
    ck_assert_int_eq(uf_allocator_create(&options, &allocator, &error), UF_ERROR_INVALID_ARGUMENT);
    ck_assert_str_eq(error.text, "pages of 2097152 bytes were given; on this device they are "
                                 "multiples of 4194304");
    close_gpu();
}
END_TEST

START_TEST(little_address_space_is_an_error_with_the_drivers_words)
{
    uf_allocator *allocator;
    uint64_t addr = 0;
    open_well(CARD ";space=67108864");
    uf_allocator_options options = {
        .struct_size_bytes = sizeof options, .device = device, .policy = UF_POLICY_UNFRAG};
    ck_assert_int_eq(uf_allocator_create(&options, &allocator, &error), UF_OK);
    ck_assert_int_eq(uf_alloc(allocator, MIB, 0, &addr, &error), UF_ERROR_OUT_OF_MEMORY);
    ck_assert_int_eq(uf_check(allocator, NULL), UF_OK);
    uf_allocator_destroy(allocator);
    ck_assert_uint_eq(uf_cuda_failures(cuda, &error), 1);
    ck_assert_str_eq(error.text, "cuMemAddressReserve of 536870912 bytes on GPU 0 (NVIDIA H200) "
                                 "failed: CUDA_ERROR_OUT_OF_MEMORY (out of memory)");
    close_gpu();
}
END_TEST

START_TEST(what_cannot_be_opened_is_told)
{
    uf_cuda_options options = {.struct_size_bytes = sizeof options, .ordinal = 1};
    ck_assert_int_eq(open_gpu(CARD, &options), UF_ERROR_INVALID_ARGUMENT);
    ck_assert_str_eq(error.text, "there is no GPU 1: CUDA sees 1, numbered from 0 "
                                 "(CUDA_VISIBLE_DEVICES hides some)");
    ck_assert_int_eq(open_gpu("init=100", NULL), UF_ERROR_UNSUPPORTED);
    ck_assert_str_eq(error.text, "cuInit failed: CUDA_ERROR_NO_DEVICE (no CUDA-capable device is "
                                 "detected); unfrag doctor tells more");
    ck_assert_int_eq(open_gpu(CARD ";fail=cuDevicePrimaryCtxRetain|2", NULL),
                     UF_ERROR_DEVICE_MEMORY);
    options = (uf_cuda_options){.struct_size_bytes = sizeof options, .is_exportable = true};
    ck_assert_int_eq(open_gpu("card=A|134217728|134217728|nofile", &options), UF_ERROR_UNSUPPORTED);
    ck_assert_str_eq(error.text, "GPU 0 makes no pages that are exportable: cuMemCreate failed: "
                                 "CUDA_ERROR_NOT_SUPPORTED; leave is_exportable out");
    options.struct_size_bytes = 4;
    ck_assert_int_eq(open_gpu(CARD, &options), UF_ERROR_INVALID_ARGUMENT);
    cuda = NULL;
    close_gpu();
}
END_TEST

START_TEST(the_callers_own_context_is_used_where_it_is_current)
{
    int (*create)(void **, unsigned, int), (*destroy)(void *), (*init)(unsigned);
    void *context;
    fake_gpu_set(TWO_CARDS);
    fake_gpu_function("cuCtxCreate_v2", &create);
    fake_gpu_function("cuCtxDestroy_v2", &destroy);
    fake_gpu_function("cuInit", &init);
    ck_assert_int_eq(init(0), 0);
    ck_assert_int_eq(create(&context, 0, 0), 0); /* current from now on */
    open_well(TWO_CARDS);
    ck_assert(!info.is_primary_context);
    serve(MIB);
    uf_cuda_destroy(cuda);
    /* Of another GPU it is not used, and stays current. */
    uf_cuda_options options = {.struct_size_bytes = sizeof options, .ordinal = 1};
    ck_assert_int_eq(open_gpu(TWO_CARDS, &options), UF_OK);
    ck_assert(info.is_primary_context);
    serve(MIB);
    int (*current)(void **);
    void *found = NULL;
    fake_gpu_function("cuCtxGetCurrent", &current);
    ck_assert_int_eq(current(&found), 0);
    ck_assert_ptr_eq(found, context);
    ck_assert_int_eq(destroy(context), 0);
    close_gpu();
}
END_TEST

START_TEST(peers_are_given_access_or_refused)
{
    static const int32_t peer = 1, itself = 0;
    uf_cuda_options options = {
        .struct_size_bytes = sizeof options, .peers = &peer, .peer_count = 1};
    ck_assert_msg(open_gpu(TWO_CARDS, &options) == UF_OK, "%s", error.text);
    ck_assert_uint_eq(info.peer_count, 1);
    serve(MIB);
    close_gpu();
    ck_assert_int_eq(open_gpu(CARD ";card=B|134217728|134217728|nopeer", &options),
                     UF_ERROR_UNSUPPORTED);
    ck_assert_str_eq(error.text,
                     "GPU 1 cannot reach the memory of GPU 0: leave it out of the peers");
    ck_assert_int_eq(open_gpu("card=MIG|134217728|134217728|mig;card=B|134217728", &options),
                     UF_ERROR_UNSUPPORTED);
    options.peers = &itself;
    ck_assert_int_eq(open_gpu(TWO_CARDS, &options), UF_ERROR_INVALID_ARGUMENT);
    cuda = NULL;
    close_gpu();
}
END_TEST

START_TEST(a_capture_stays_valid_whatever_the_device_does)
{
    int (*begin)(void *, int), (*end)(void *, void **), (*destroy)(void *);
    void *graph = NULL;
    uint64_t event = 0, addr = 0, free_bytes, total_bytes;
    open_well(CARD);
    void *stream = fake_gpu_stream(), *other = fake_gpu_stream();
    fake_gpu_function("cuStreamBeginCapture_v2", &begin);
    fake_gpu_function("cuStreamEndCapture", &end);
    fake_gpu_function("cuGraphDestroy", &destroy);
    int (*retain)(void **, int), (*release)(int), (*push)(void *), (*pop)(void **);
    void *context;
    fake_gpu_function("cuDevicePrimaryCtxRetain", &retain);
    fake_gpu_function("cuDevicePrimaryCtxRelease_v2", &release);
    fake_gpu_function("cuCtxPushCurrent_v2", &push);
    fake_gpu_function("cuCtxPopCurrent_v2", &pop);
    ck_assert_int_eq(retain(&context, 0) | push(context), 0);
    ck_assert_int_eq(begin(stream, 0), 0);
    uint64_t handle = (uint64_t)(uintptr_t)stream, idle = (uint64_t)(uintptr_t)other;
    ck_assert_int_eq(device->event_record(device->context, handle, &event), UF_ERROR_BUSY);
    ck_assert_int_eq(device->stream_wait(device->context, handle), UF_ERROR_BUSY);
    ck_assert_int_eq(device->event_record(device->context, idle, &event), UF_OK);
    ck_assert_int_eq(device->event_wait(device->context, event), UF_OK);
    ck_assert_int_eq(device->stream_wait(device->context, idle), UF_OK);
    ck_assert_int_eq(device->segment_create(device->context, MIB, 0, &addr), UF_OK);
    uint64_t count = 5, first = 6;
    ck_assert_int_eq(device->bytes_set(device->context, addr, 8, 1, handle), UF_ERROR_BUSY);
    ck_assert_int_eq(device->bytes_compare(device->context, addr, 8, 1, handle, &count, &first),
                     UF_ERROR_BUSY);
    ck_assert_uint_eq(count + first, 11);
    ck_assert_int_eq(device->bytes_set(device->context, addr, 8, 1, idle), UF_OK);
    ck_assert_int_eq(device->bytes_compare(device->context, addr, 8, 1, idle, &count, &first),
                     UF_OK);
    ck_assert_uint_eq(count, 0);
    ck_assert_int_eq(device->segment_destroy(device->context, addr, MIB), UF_OK);
    ck_assert_int_eq(device->memory_info(device->context, &free_bytes, &total_bytes), UF_OK);
    serve(MIB);
    ck_assert_int_eq(end(stream, &graph), 0);
    ck_assert_int_eq(destroy(graph) | pop(&context) | release(0), 0);
    close_gpu();
}
END_TEST

/* A block that a capturing stream uses waits until the stream can be marked. */
START_TEST(a_free_during_a_capture_elsewhere_waits_for_its_end)
{
    int (*begin)(void *, int), (*end)(void *, void **), (*destroy)(void *);
    int (*retain)(void **, int), (*release)(int), (*push)(void *), (*pop)(void **);
    void *graph = NULL, *context;
    uint64_t addr = 0, again = 0;
    uf_allocator *allocator;
    uf_stats stats;
    open_well(CARD);
    void *stream = fake_gpu_stream();
    fake_gpu_function("cuStreamBeginCapture_v2", &begin);
    fake_gpu_function("cuStreamEndCapture", &end);
    fake_gpu_function("cuGraphDestroy", &destroy);
    fake_gpu_function("cuDevicePrimaryCtxRetain", &retain);
    fake_gpu_function("cuDevicePrimaryCtxRelease_v2", &release);
    fake_gpu_function("cuCtxPushCurrent_v2", &push);
    fake_gpu_function("cuCtxPopCurrent_v2", &pop);
    ck_assert_int_eq(retain(&context, 0) | push(context), 0);
    uf_allocator_options options = {.struct_size_bytes = sizeof options, .device = device};
    ck_assert_int_eq(uf_allocator_create(&options, &allocator, &error), UF_OK);
    ck_assert_int_eq(uf_alloc(allocator, 4 * MIB, 0, &addr, &error), UF_OK);
    ck_assert_int_eq(uf_use_on_stream(allocator, addr, (uint64_t)(uintptr_t)stream, &error), UF_OK);
    ck_assert_int_eq(begin(stream, 0), 0);
    ck_assert_int_eq(uf_free(allocator, addr, &error), UF_OK);
    ck_assert_int_eq(uf_alloc(allocator, 4 * MIB, 0, &again, &error), UF_OK);
    ck_assert_uint_ne(again, addr);
    ck_assert_int_eq(uf_check(allocator, NULL), UF_OK);
    ck_assert_int_eq(uf_stats_get(allocator, &stats, NULL), UF_OK);
    ck_assert_int_eq(stats.active.all.current, 2);
    ck_assert_int_eq(end(stream, &graph), 0);
    ck_assert_int_eq(uf_free(allocator, again, &error), UF_OK);
    ck_assert_int_eq(uf_alloc(allocator, 512, 0, &again, &error), UF_OK); /* looks at events */
    uf_host_synchronize(fake->host(0));
    ck_assert_int_eq(uf_empty_cache(allocator, &error), UF_OK);
    ck_assert_int_eq(uf_stats_get(allocator, &stats, NULL), UF_OK);
    ck_assert_int_eq(stats.active.all.current, 1);
    uf_allocator_destroy(allocator);
    ck_assert_int_eq(destroy(graph) | pop(&context) | release(0), 0);
    close_gpu();
}
END_TEST

START_TEST(an_error_reaches_the_user_in_the_drivers_words)
{
    uf_allocator *allocator;
    uint64_t addr = 0;
    open_well(CARD);
    uf_allocator_options options = {.struct_size_bytes = sizeof options, .device = device};
    ck_assert_int_eq(uf_allocator_create(&options, &allocator, &error), UF_OK);
    fake->refuse("cuMemAlloc_v2", 1, false, 999);
    ck_assert_int_eq(uf_alloc(allocator, 4 * MIB, 0, &addr, &error), UF_ERROR_DEVICE);
    ck_assert_str_eq(error.text,
                     "allocating 4.00 MiB: cuMemAlloc of 20971520 bytes on GPU 0 (NVIDIA H200) "
                     "failed: CUDA_ERROR_UNKNOWN (unknown error)");
    ck_assert_int_eq(uf_alloc(allocator, 4 * MIB, 0, &addr, &error), UF_OK);
    uf_allocator_destroy(allocator);
    close_gpu();
}
END_TEST

/* After a kernel's illegal access nothing works any more: no call is made, and nothing loops. */
START_TEST(an_error_that_ends_the_context_is_final)
{
    uf_allocator *allocator;
    uint64_t addr = 0, second = 0;
    open_well(CARD);
    uf_allocator_options options = {
        .struct_size_bytes = sizeof options, .device = device, .policy = UF_POLICY_UNFRAG};
    ck_assert_int_eq(uf_allocator_create(&options, &allocator, &error), UF_OK);
    ck_assert_int_eq(uf_alloc(allocator, 4 * MIB, 0, &addr, &error), UF_OK);
    fake->refuse("cuMemMap", 1, true, 700);
    ck_assert_int_eq(uf_alloc(allocator, 8 * MIB, 0, &second, &error), UF_ERROR_DEVICE);
    ck_assert_ptr_nonnull(strstr(error.text, "CUDA_ERROR_ILLEGAL_ADDRESS"));
    uint64_t calls = fake->call_count(NULL);
    ck_assert_int_eq(uf_alloc(allocator, 8 * MIB, 0, &second, &error), UF_ERROR_DEVICE);
    ck_assert_ptr_nonnull(strstr(error.text, "CUDA_ERROR_ILLEGAL_ADDRESS"));
    ck_assert_int_eq(uf_free(allocator, addr, &error), UF_OK);
    uf_allocator_destroy(allocator);
    ck_assert_uint_eq(fake->call_count(NULL), calls);
    uf_cuda_destroy(cuda);
}
END_TEST

START_TEST(an_end_after_the_drivers_own_is_quiet)
{
    uf_allocator *allocator;
    uint64_t addr = 0;
    open_well(CARD);
    uf_allocator_options options = {
        .struct_size_bytes = sizeof options, .device = device, .policy = UF_POLICY_UNFRAG};
    ck_assert_int_eq(uf_allocator_create(&options, &allocator, &error), UF_OK);
    ck_assert_int_eq(uf_alloc(allocator, 4 * MIB, 0, &addr, &error), UF_OK);
    fake->deinitialize();
    ck_assert_int_eq(uf_free(allocator, addr, &error), UF_OK);
    ck_assert_int_eq(uf_empty_cache(allocator, &error), UF_OK);
    ck_assert_int_eq(uf_alloc(allocator, 4 * MIB, 0, &addr, &error), UF_ERROR_DEVICE);
    uf_allocator_destroy(allocator);
    uf_cuda_destroy(cuda);
}
END_TEST

START_TEST(in_a_forked_child_calls_fail_and_nothing_reaches_the_driver)
{
    uf_allocator *allocator;
    uint64_t addr = 0;
    open_well(CARD);
    uf_allocator_options options = {.struct_size_bytes = sizeof options, .device = device};
    ck_assert_int_eq(uf_allocator_create(&options, &allocator, &error), UF_OK);
    ck_assert_int_eq(uf_alloc(allocator, 4 * MIB, 0, &addr, &error), UF_OK);
    pid_t child = fork();
    if (child == 0) {
        uint64_t calls = fake->call_count(NULL), second = 0;
        bool is_right = uf_alloc(allocator, 40 * MIB, 0, &second, &error) == UF_ERROR_DEVICE;
        uf_allocator_destroy(allocator);
        uf_cuda_destroy(cuda);
        _exit(is_right && fake->call_count(NULL) == calls ? 0 : 1);
    }
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ck_assert_int_eq(uf_free(allocator, addr, &error), UF_OK);
    uf_allocator_destroy(allocator);
    close_gpu();
}
END_TEST

START_TEST(events_are_used_again)
{
    uf_cuda_counts counts;
    open_well(CARD);
    for (int i = 0; i < 1000; i++) {
        uint64_t event = 0;
        bool is_done = false;
        ck_assert_int_eq(device->event_record(device->context, 0, &event), UF_OK);
        ck_assert_int_eq(device->event_query(device->context, event, &is_done), UF_OK);
        ck_assert(is_done);
    }
    uf_cuda_counts_get(cuda, &counts);
    ck_assert_uint_eq(counts.event_count, 1);
    ck_assert_uint_eq(counts.device_sync_count, 0);
    close_gpu();
}
END_TEST

/* A driver that lies: what it gives out is wrong. That must be noticed, not used. */
START_TEST(a_granularity_of_nothing_is_no_granularity)
{
    fake_gpu_set(CARD);
    fake = fake_gpu_api();
    fake->corrupt("cuMemGetAllocationGranularity", 1, true);
    open_well(CARD);
    ck_assert(!info.can_map);
    serve(MIB);
    close_gpu();
}
END_TEST

int main(int argc, char **argv)
{
    (void)argc;
    fake_gpu_enter(argv);
    const TTest *const tests[] = {a_card_that_can_everything_needs_no_note,
                                  without_mapping_the_reason_and_what_is_in_force_are_told,
                                  a_card_that_is_full_can_map,
                                  the_granularity_is_asked_and_decides_what_pages_there_are,
                                  little_address_space_is_an_error_with_the_drivers_words,
                                  what_cannot_be_opened_is_told,
                                  the_callers_own_context_is_used_where_it_is_current,
                                  peers_are_given_access_or_refused,
                                  a_capture_stays_valid_whatever_the_device_does,
                                  a_free_during_a_capture_elsewhere_waits_for_its_end,
                                  an_error_reaches_the_user_in_the_drivers_words,
                                  an_error_that_ends_the_context_is_final,
                                  an_end_after_the_drivers_own_is_quiet,
                                  in_a_forked_child_calls_fail_and_nothing_reaches_the_driver,
                                  events_are_used_again,
                                  a_granularity_of_nothing_is_no_granularity,
                                  NULL};
    return suite_run("cuda", tests);
}
