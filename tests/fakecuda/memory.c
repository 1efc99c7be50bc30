/* SPDX-License-Identifier: MIT
 *
 * Segments, copies and what is free, of the fake driver library. Guarded by world.mutex. */
#include <stdlib.h>
#include <string.h>

#include "world.h"

/* The sizes of segments, which cuMemFree is not told. */
typedef struct segment {
    uint64_t addr, size_bytes;
    int card;
} segment;

static segment *segments;
static uint32_t segment_count, segment_capacity;

void fake_segments_forget(void)
{
    segment_count = 0;
}

static int begin(const char *call, fake_kind kind, uf_host **host)
{
    int result = fake_begin(call, kind);
    if (result != SUCCESS) {
        return result;
    }
    *host = fake_current_host();
    return *host == NULL ? INVALID_CONTEXT
                         : fake_setup_failure(&world.setup, call, fake_current_card());
}

EXPORT int cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    uf_host *host = NULL;
    uint64_t available_bytes = 0, all_bytes = 0;
    int result = begin("cuMemGetInfo_v2", SAFE, &host);
    if (result == SUCCESS) {
        const uf_device *device = uf_host_device(host);
        result = fake_result(device->memory_info(host, &available_bytes, &all_bytes));
    }
    if (result == SUCCESS || result == LIE) {
        *free_bytes = result == LIE ? SIZE_MAX : available_bytes;
        *total_bytes = result == LIE ? 0 : all_bytes;
    }
    return fake_end(result);
}

EXPORT int cuMemAlloc_v2(uint64_t *addr, size_t bytes)
{
    uf_host *host = NULL;
    int result = begin("cuMemAlloc_v2", UNSAFE, &host);
    if (result == LIE) {
        *addr = 0xbad00000;
    }
    if (result == SUCCESS && !uf__host_list_reserve((void **)&segments, &segment_capacity,
                                                    sizeof *segments, segment_count + 1)) {
        result = OUT_OF_MEMORY;
    }
    if (result == SUCCESS) {
        result = fake_result(uf_host_device(host)->segment_create(host, bytes, 0, addr));
    }
    if (result == SUCCESS) {
        segments[segment_count++] = (segment){*addr, bytes, fake_current_card()};
    }
    return fake_end(result);
}

EXPORT int cuMemFree_v2(uint64_t addr)
{
    uf_host *host = NULL;
    uint32_t i = 0;
    int result = begin("cuMemFree_v2", UNSAFE, &host);
    while (i < segment_count && segments[i].addr != addr) {
        i++;
    }
    if (result == SUCCESS && i == segment_count) {
        fake_fault("cuMemFree: no segment at 0x%llx", (unsigned long long)addr);
        result = INVALID_VALUE;
    }
    if (result == SUCCESS) {
        host = world.gpus[segments[i].card].host; /* any context will do */
        result =
            fake_result(uf_host_device(host)->segment_destroy(host, addr, segments[i].size_bytes));
        segments[i] = segments[--segment_count];
    }
    return fake_end(result);
}

/* Copies wait for everything before: the kernels that write what is read are then done. */
static int copy(const char *call, void *to, const void *from, size_t bytes)
{
    uf_host *host = NULL;
    int result = begin(call, UNSAFE, &host);
    if (result == SUCCESS) {
        uf_host_synchronize(host);
        memcpy(to, from, bytes);
    }
    return fake_end(result);
}

EXPORT int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes)
{
    return copy("cuMemcpyDtoH_v2", to, (const void *)(uintptr_t)from, bytes);
}

EXPORT int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes)
{
    return copy("cuMemcpyHtoD_v2", (void *)(uintptr_t)to, from, bytes);
}

/* A graph may use it again and again: it lives as long as the process. */
typedef struct filling {
    struct filling *next;
    uint32_t value;
    bool is_bytes;        /* value is one byte's */
    uint64_t source_addr; /* copied from there if it is not 0 */
    void *to;             /* copied there if it is not NULL */
} filling;

static filling *fillings; /* all */

static void fill(void *context, uint64_t addr, uint64_t size_bytes)
{
    const filling *f = context;
    uint32_t *words = (uint32_t *)(uintptr_t)addr;
    if (f->source_addr != 0) {
        memmove(words, (const void *)(uintptr_t)f->source_addr, size_bytes);
        return;
    }
    if (f->to != NULL) {
        memcpy(f->to, words, size_bytes);
        return;
    }
    if (f->is_bytes) {
        memset(words, (int)f->value, size_bytes);
        return;
    }
    for (uint64_t i = 0; i < size_bytes / sizeof *words; i++) {
        words[i] = f->value;
    }
}

static int fill_later(const char *call, uint64_t addr, uint64_t bytes, filling what, void *stream)
{
    uf_host *host = NULL;
    int result = begin(call, SAFE, &host);
    filling *f = result == SUCCESS ? malloc(sizeof *f) : NULL;
    if (result == SUCCESS && f == NULL) {
        result = OUT_OF_MEMORY;
    }
    if (result == SUCCESS) {
        *f = what;
        f->next = fillings;
        fillings = f;
        result = fake_launch(
            stream,
            &(uf_host_job){.kernel = fill, .context = f, .addr = addr, .size_bytes = bytes});
    }
    return fake_end(result);
}

EXPORT int cuMemsetD32Async(uint64_t addr, unsigned value, size_t count, void *stream)
{
    return fill_later("cuMemsetD32Async", addr, count * 4, (filling){.value = value}, stream);
}

EXPORT int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream)
{
    return fill_later("cuMemcpyDtoDAsync_v2", to, bytes, (filling){.source_addr = from}, stream);
}

EXPORT int cuMemsetD8Async(uint64_t addr, unsigned char value, size_t bytes, void *stream)
{
    const filling what = {.value = value, .is_bytes = true};
    return fill_later("cuMemsetD8Async", addr, bytes, what, stream);
}

EXPORT int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream)
{
    return fill_later("cuMemcpyDtoHAsync_v2", from, bytes, (filling){.to = to}, stream);
}
