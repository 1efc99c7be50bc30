/* SPDX-License-Identifier: MIT
 *
 * What the allocator asks of a device. Write these functions to put it on new hardware. The
 * allocator calls them under its own lock, one at a time per allocator. */
#ifndef UNFRAG_DEVICE_H
#define UNFRAG_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include <unfrag/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What driver calls take for one page among several, in nanoseconds. */
typedef struct uf_page_cost {
    int64_t create_ns;
    int64_t map_ns; /* mapping it and giving access to it */
    int64_t unmap_ns;
    int64_t release_ns;
} uf_page_cost;

/* A device: functions and the context they get. Borrowed by an allocator until that is destroyed.
 * Each function returns UF_OK, UF_ERROR_DEVICE_MEMORY (the driver is out of memory: the allocator
 * frees something and tries again), or UF_ERROR_DEVICE (anything else: reported to the caller).
 * Sizes and addresses are in bytes. Entries marked (expandable) may be NULL where the device cannot
 * map; expandable_segments is then refused. */
typedef struct uf_device {
    size_t struct_size_bytes;
    void *context;
    /* Bytes the driver could still hand out, and the device's nominal memory. */
    uf_status (*memory_info)(void *context, uint64_t *free_bytes, uint64_t *total_bytes);
    /* A plain segment. stream is the handle it is wanted for. */
    uf_status (*segment_create)(void *context, uint64_t size_bytes, uint64_t stream,
                                uint64_t *addr);
    uf_status (*segment_destroy)(void *context, uint64_t addr, uint64_t size_bytes);
    /* (expandable) Address space without memory. */
    uf_status (*range_reserve)(void *context, uint64_t size_bytes, uint64_t *addr);
    uf_status (*range_release)(void *context, uint64_t addr, uint64_t size_bytes);
    /* (expandable) Maps or unmaps size_bytes, a multiple of page_bytes, all or nothing. */
    uf_status (*pages_map)(void *context, uint64_t addr, uint64_t size_bytes, uint64_t page_bytes);
    uf_status (*pages_unmap)(void *context, uint64_t addr, uint64_t size_bytes,
                             uint64_t page_bytes);
    /* Waits for a stream's work before its pages are unmapped (expandable). */
    uf_status (*stream_wait)(void *context, uint64_t stream);
    /* Marks a point in a stream; a queried event that is done stays done. event_wait and
     * event_query consume the event once they report it as done. UF_ERROR_BUSY from event_record
     * and stream_wait: the stream is being captured, nothing was done; the allocator asks again
     * later. */
    uf_status (*event_record)(void *context, uint64_t stream, uint64_t *event);
    uf_status (*event_query)(void *context, uint64_t event, bool *is_done);
    uf_status (*event_wait)(void *context, uint64_t event);
    /* (paged) A clock that goes steadily, in nanoseconds. NULL: without a limit, memory is then
     * always taken from the device rather than from what is cached elsewhere. */
    int64_t (*clock_ns)(void *context);
    /* (paged) Physical memory without an address, its place in reserved address space, and access.
     * A handle is mapped whole, at any granule, and unmapped whole; range_access and range_unmap
     * cover handle_count whole handles. A device that lacks one of them runs the torch policy
     * only. */
    uf_status (*handle_create)(void *context, uint64_t size_bytes, uint64_t *handle);
    uf_status (*handle_release)(void *context, uint64_t handle, uint64_t size_bytes);
    uf_status (*handle_map)(void *context, uint64_t addr, uint64_t handle, uint64_t size_bytes);
    uf_status (*range_access)(void *context, uint64_t addr, uint64_t size_bytes,
                              uint64_t handle_count);
    uf_status (*range_unmap)(void *context, uint64_t addr, uint64_t size_bytes,
                             uint64_t handle_count);
    uint64_t granularity_bytes; /* (paged) of sizes and addresses of handles; 0 = not known */
    /* (optional) One line on the newest failure of a driver call, for an allocator's texts. */
    void (*failure_text)(void *context, char *text, size_t capacity);
    /* (paged) What a page of size_bytes costs: how pages are moved depends on it. NULL: as on the
     * machine that was measured first (docs/policy.md). */
    uf_status (*page_cost)(void *context, uint64_t size_bytes, uf_page_cost *cost);
    /* (paged) Other libraries and programs take memory of the device, too: an allocator leaves them
     * some by default (uf_allocator_options.headroom_bytes). */
    bool is_shared;
    /* (optional, both or none) For debug mode; without them it has no guards and fills no freed
     * memory. bytes_set sets bytes in the order of a stream and waits for nothing. bytes_compare
     * waits for the stream's work queued so far, then tells how many bytes are another value and,
     * if any, the offset of the first from addr. UF_ERROR_BUSY: the stream is being captured,
     * nothing was done. */
    uf_status (*bytes_set)(void *context, uint64_t addr, uint64_t size_bytes, uint8_t value,
                           uint64_t stream);
    uf_status (*bytes_compare)(void *context, uint64_t addr, uint64_t size_bytes, uint8_t value,
                               uint64_t stream, uint64_t *other_count, uint64_t *first_offset);
} uf_device;

#ifdef __cplusplus
}
#endif
#endif
