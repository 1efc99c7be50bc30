/* SPDX-License-Identifier: MIT
 *
 * A device of one's own: the functions that an allocator asks of hardware, here over aligned_alloc,
 * with one queue that is always done. With mapping functions besides (unfrag/device.h) it would run
 * the unfrag policy too. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <unfrag/unfrag.h>

typedef struct pool_of_ram {
    uint64_t total_bytes, free_bytes;
    uint64_t call_count;
} pool_of_ram;

static uf_status memory_info(void *context, uint64_t *free_bytes, uint64_t *total_bytes)
{
    const pool_of_ram *ram = context;
    *free_bytes = ram->free_bytes;
    *total_bytes = ram->total_bytes;
    return UF_OK;
}

static uf_status segment_create(void *context, uint64_t size_bytes, uint64_t stream, uint64_t *addr)
{
    pool_of_ram *ram = context;
    (void)stream;
    ram->call_count++;
    void *memory = size_bytes <= ram->free_bytes ? aligned_alloc(512, size_bytes) : NULL;
    if (memory == NULL) {
        return UF_ERROR_DEVICE_MEMORY; /* the allocator gives something back and tries again */
    }
    ram->free_bytes -= size_bytes;
    *addr = (uint64_t)(uintptr_t)memory;
    return UF_OK;
}

static uf_status segment_destroy(void *context, uint64_t addr, uint64_t size_bytes)
{
    pool_of_ram *ram = context;
    ram->call_count++;
    ram->free_bytes += size_bytes;
    free((void *)(uintptr_t)addr);
    return UF_OK;
}

static uf_status event_record(void *context, uint64_t stream, uint64_t *event)
{
    (void)context;
    (void)stream;
    *event = 1;
    return UF_OK;
}

static uf_status event_query(void *context, uint64_t event, bool *is_done)
{
    (void)context;
    (void)event;
    *is_done = true;
    return UF_OK;
}

static uf_status event_wait(void *context, uint64_t event)
{
    (void)context;
    (void)event;
    return UF_OK;
}

int main(void)
{
    pool_of_ram ram = {.total_bytes = UINT64_C(64) << 20, .free_bytes = UINT64_C(64) << 20};
    const uf_device device = {.struct_size_bytes = sizeof device,
                              .context = &ram,
                              .memory_info = memory_info,
                              .segment_create = segment_create,
                              .segment_destroy = segment_destroy,
                              .event_record = event_record,
                              .event_query = event_query,
                              .event_wait = event_wait};
    const uf_allocator_options options = {
        .struct_size_bytes = sizeof options, .device = &device, .policy = UF_POLICY_TORCH};
    uf_error error;
    uf_allocator *allocator;
    if (uf_allocator_create(&options, &allocator, &error) != UF_OK) {
        fprintf(stderr, "device: %s\n", error.text);
        return 1;
    }
    for (int i = 0; i < 1000; i++) {
        uint64_t addr;
        if (uf_alloc(allocator, 3000 + 100 * (uint64_t)i, 0, &addr, &error) != UF_OK ||
            uf_free(allocator, addr, &error) != UF_OK) {
            fprintf(stderr, "device: %s\n", error.text);
            return 1;
        }
    }
    printf("1000 requests, %" PRIu64 " calls of the device\n", ram.call_count);
    uf_allocator_destroy(allocator);
    printf("all given back: %s\n", ram.free_bytes == ram.total_bytes ? "yes" : "no");
    return 0;
}
