/* SPDX-License-Identifier: MIT
 *
 * Setting and comparing bytes on the cuda device, over the fake driver library, and debug mode on
 * it. */
#include <unfrag/cuda.h>
#include <unfrag/unfrag.h>

#include <string.h>

#include "unit/fake_gpu.h"
#include "unit/suite.h"

#define MIB (UINT64_C(1) << 20)

enum { UNKNOWN = 999 };

typedef struct gpu {
    uf_cuda *cuda;
    const uf_device *device;
    const fake_api *fake;
    uint64_t stream, addr, bytes;
    uf_error error;
} gpu;

static void open_gpu(gpu *g)
{
    fake_gpu_set("card=fake|134217728|134217728;granule=65536|65536");
    *g = (gpu){.fake = fake_gpu_api(), .bytes = 9 * MIB + 5};
    ck_assert_int_eq(uf_cuda_create(NULL, &g->cuda, &g->error), UF_OK);
    g->device = uf_cuda_device(g->cuda);
    g->stream = (uint64_t)(uintptr_t)fake_gpu_stream();
    ck_assert_int_eq(g->device->segment_create(g->device->context, g->bytes, g->stream, &g->addr),
                     UF_OK);
}

static void close_gpu(gpu *g)
{
    fake_counts counts;
    char text[300] = "";
    g->fake->obey_nothing();
    uf_host_synchronize(g->fake->host(0));
    if (g->addr != 0) {
        ck_assert_int_eq(g->device->segment_destroy(g->device->context, g->addr, g->bytes), UF_OK);
    }
    uf_cuda_destroy(g->cuda);
    g->fake->counts(&counts);
    ck_assert_uint_eq(counts.in_use_bytes, 0);
    ck_assert_uint_eq(counts.context_count, 0);
    ck_assert_msg(g->fake->fault_count(text, sizeof text) == 0, "%s", text);
}

static uf_status set(const gpu *g, uint64_t offset, uint64_t bytes, uint8_t value)
{
    return g->device->bytes_set(g->device->context, g->addr + offset, bytes, value, g->stream);
}

static uf_status compare(const gpu *g, uint8_t value, uint64_t *count, uint64_t *first)
{
    return g->device->bytes_compare(g->device->context, g->addr, g->bytes, value, g->stream, count,
                                    first);
}

START_TEST(bytes_are_set_in_the_order_of_the_stream_and_compared_when_it_is_done)
{
    gpu g;
    uint64_t count, first;
    open_gpu(&g);
    ck_assert_int_eq(set(&g, 0, g.bytes, 7), UF_OK);
    ck_assert_int_eq(set(&g, 5 * MIB + 3, 2 * MIB, 8), UF_OK);
    ck_assert_int_eq(set(&g, 5 * MIB + 4, 2 * MIB, 7), UF_OK);
    ck_assert_int_eq(set(&g, g.bytes - 1, 1, 8), UF_OK);
    ck_assert_int_eq(compare(&g, 7, &count, &first), UF_OK);
    ck_assert_uint_eq(count, 2);
    ck_assert_uint_eq(first, 5 * MIB + 3);
    ck_assert_int_eq(compare(&g, 8, &count, &first), UF_OK);
    ck_assert_uint_eq(count, g.bytes - 2);
    ck_assert_uint_eq(first, 0);
    ck_assert_int_eq(set(&g, 0, g.bytes, 9), UF_OK);
    ck_assert_int_eq(compare(&g, 9, &count, &first), UF_OK);
    ck_assert_uint_eq(count, 0);
    close_gpu(&g);
}
END_TEST

START_TEST(a_driver_call_that_fails_is_told_and_changes_no_result)
{
    static const char *const calls[] = {"cuCtxGetCurrent", "cuStreamIsCapturing", "cuMemsetD8Async",
                                        "cuMemcpyDtoHAsync_v2", "cuStreamSynchronize"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        for (int form = 0; form < 4; form++) {
            gpu g;
            uint64_t count = 5, first = 6;
            bool is_lasting = form % 2 != 0, is_second = form / 2 != 0;
            open_gpu(&g);
            g.fake->refuse(calls[i], is_second ? 2 : 1, is_lasting, UNKNOWN);
            uf_status was_set = set(&g, 0, g.bytes, 3);
            uf_status was_read = compare(&g, 3, &count, &first);
            ck_assert(was_set == UF_OK || was_set == UF_ERROR_DEVICE);
            ck_assert(was_read == UF_OK || was_read == UF_ERROR_DEVICE);
            ck_assert_uint_eq(count + first != 11, was_read == UF_OK);
            ck_assert(was_read != UF_OK || was_set != UF_OK || count == 0);
            ck_assert(!is_lasting || is_second || was_set != UF_OK || was_read != UF_OK);
            close_gpu(&g);
        }
    }
}
END_TEST

START_TEST(debug_mode_finds_an_overrun_on_a_gpu)
{
    gpu g;
    uint64_t addr;
    static const uf_policy policies[] = {UF_POLICY_TORCH, UF_POLICY_UNFRAG};
    open_gpu(&g);
    for (int i = 0; i < 2; i++) {
        uf_allocator *allocator;
        const uf_allocator_options options = {.struct_size_bytes = sizeof options,
                                              .device = g.device,
                                              .policy = policies[i],
                                              .is_debug = true};
        ck_assert_int_eq(uf_allocator_create(&options, &allocator, &g.error), UF_OK);
        ck_assert_int_eq(uf_alloc(allocator, 1000, g.stream, &addr, &g.error), UF_OK);
        ck_assert_int_eq(uf_free(allocator, addr, &g.error), UF_OK);
        ck_assert_int_eq(uf_alloc(allocator, 1000, g.stream, &addr, &g.error), UF_OK);
        ck_assert_int_eq(g.device->bytes_set(g.device->context, addr + 1000, 1, 0, g.stream),
                         UF_OK);
        ck_assert_int_eq(uf_free(allocator, addr, &g.error), UF_ERROR_DAMAGED);
        ck_assert_ptr_nonnull(strstr(g.error.text, "the first at offset 1000"));
        ck_assert_int_eq(uf_check(allocator, &g.error), UF_OK);
        uf_allocator_destroy(allocator);
    }
    close_gpu(&g);
}
END_TEST

int main(int argc, char **argv)
{
    (void)argc;
    fake_gpu_enter(argv);
    return suite_run("cuda_bytes",
                     (const TTest *const[]){
                         bytes_are_set_in_the_order_of_the_stream_and_compared_when_it_is_done,
                         a_driver_call_that_fails_is_told_and_changes_no_result,
                         debug_mode_finds_an_overrun_on_a_gpu,
                         NULL,
                     });
}
