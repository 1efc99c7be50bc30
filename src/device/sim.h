/* SPDX-License-Identifier: MIT
 *
 * A device without memory: addresses, a capacity, streams whose work is done when told, and the
 * cost of every driver call. It knows nothing of allocators. One user at a time, but for
 * uf__sim_synchronize, which any thread may call meanwhile. */
#ifndef UF_DEVICE_SIM_H
#define UF_DEVICE_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include <unfrag/device.h>
#include <unfrag/sim.h>

/* Called before a new segment or region gets an address, to dictate it (replay of a recording).
 * Returns false to leave the choice to the device. */
typedef bool (*uf_sim_address_hook)(void *context, uint64_t size_bytes, bool is_region,
                                    uint64_t *addr);

/* Called after a segment or region was given back. */
typedef void (*uf_sim_release_hook)(void *context, uint64_t addr, uint64_t size_bytes);

struct uf_sim {
    uf_device device;        /* pass &sim.device to an allocator */
    uint64_t capacity_bytes; /* what the driver can hand out */
    uint64_t total_bytes;    /* nominal memory */
    uint64_t in_use_bytes;
    uint64_t next_addr;                     /* the next fresh address; never reused */
    uint64_t event_count, event_done_count; /* events up to event_done_count are done */
    bool is_caught_up; /* the device has always done what is queued: nothing waits */
    int64_t now_ns;    /* what its clock shows */
    uint64_t call_count, sync_count;
    const struct uf_cost_table *costs; /* what calls cost; an H200's from init on */
    int64_t call_ns;
    uint64_t handle_count;     /* handles created so far; the next one's name */
    uint64_t high_water_bytes; /* most handle bytes at once */
    int64_t first_ns;          /* of call_ns: mapping memory that was never held before */
    uf_sim_address_hook address_hook;
    uf_sim_release_hook release_hook;
    void *address_context;     /* of both */
    uint64_t fail_after_count; /* the N-th call from now fails with UF_ERROR_DEVICE; 0 = never */
};

/* Where fresh addresses begin. */
#define UF_SIM_FIRST_ADDR UINT64_C(0x200000000000)

/* capacity_bytes 0 = as total_bytes. */
void uf__sim_init(uf_sim *sim, uint64_t total_bytes, uint64_t capacity_bytes);

/* All recorded events are done from now on. */
void uf__sim_synchronize(uf_sim *sim);

#endif
