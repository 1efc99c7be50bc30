/* SPDX-License-Identifier: MIT
 *
 * The simulated device. */
#include "device/sim.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "device/cost.h"

static const uint64_t ADDR_GRANULE = UINT64_C(2) << 20;
static const uint64_t DEFAULT_TOTAL_BYTES = UINT64_C(24) << 30;
static const uint64_t SIZE_LIMIT_BYTES = UINT64_C(1) << 60;

/* Counts a call; false if this is the one that is to fail. */
static bool charge(uf_sim *sim, uf_cost_call call, uint64_t size_bytes, uint64_t count)
{
    sim->call_count += count;
    sim->call_ns += uf__cost_ns(sim->costs, call, size_bytes) * (int64_t)count;
    if (sim->fail_after_count != 0) {
        sim->fail_after_count--;
        return sim->fail_after_count != 0;
    }
    return true;
}

static uint64_t place(uf_sim *sim, uint64_t size_bytes, bool is_region)
{
    uint64_t addr;
    if (sim->address_hook != NULL &&
        sim->address_hook(sim->address_context, size_bytes, is_region, &addr)) {
        return addr;
    }
    addr = sim->next_addr;
    sim->next_addr += (size_bytes + ADDR_GRANULE - 1) / ADDR_GRANULE * ADDR_GRANULE;
    return addr;
}

static uf_status take(uf_sim *sim, uint64_t size_bytes)
{
    if (sim->in_use_bytes > sim->capacity_bytes ||
        size_bytes > sim->capacity_bytes - sim->in_use_bytes) {
        return UF_ERROR_DEVICE_MEMORY;
    }
    sim->in_use_bytes += size_bytes;
    return UF_OK;
}

static uf_status memory_info(void *context, uint64_t *free_bytes, uint64_t *total_bytes)
{
    const uf_sim *sim = context;
    *free_bytes =
        sim->in_use_bytes < sim->capacity_bytes ? sim->capacity_bytes - sim->in_use_bytes : 0;
    *total_bytes = sim->total_bytes;
    return UF_OK;
}

static uf_status segment_create(void *context, uint64_t size_bytes, uint64_t stream, uint64_t *addr)
{
    (void)stream;
    uf_sim *sim = context;
    if (!charge(sim, UF_COST_MALLOC, size_bytes, 1)) {
        return UF_ERROR_DEVICE;
    }
    uf_status status = take(sim, size_bytes);
    if (status == UF_OK) {
        *addr = place(sim, size_bytes, false);
    }
    return status;
}

static void note_release(const uf_sim *sim, uint64_t addr, uint64_t size_bytes)
{
    if (sim->release_hook != NULL) {
        sim->release_hook(sim->address_context, addr, size_bytes);
    }
}

static uf_status segment_destroy(void *context, uint64_t addr, uint64_t size_bytes)
{
    uf_sim *sim = context;
    if (!charge(sim, UF_COST_FREE, size_bytes, 1)) {
        return UF_ERROR_DEVICE;
    }
    sim->sync_count++;
    sim->in_use_bytes -= size_bytes;
    note_release(sim, addr, size_bytes);
    return UF_OK;
}

static uf_status range_reserve(void *context, uint64_t size_bytes, uint64_t *addr)
{
    uf_sim *sim = context;
    if (!charge(sim, UF_COST_RESERVE, size_bytes, 1)) {
        return UF_ERROR_DEVICE;
    }
    *addr = place(sim, size_bytes, true);
    return UF_OK;
}

static uf_status range_release(void *context, uint64_t addr, uint64_t size_bytes)
{
    if (!charge(context, UF_COST_RESERVE, size_bytes, 1)) {
        return UF_ERROR_DEVICE;
    }
    note_release(context, addr, size_bytes);
    return UF_OK;
}

static uf_status pages_map(void *context, uint64_t addr, uint64_t size_bytes, uint64_t page_bytes)
{
    (void)addr;
    uf_sim *sim = context;
    uint64_t count = size_bytes / page_bytes;
    bool is_good = charge(sim, UF_COST_CREATE, page_bytes, count);
    is_good = charge(sim, UF_COST_MAP, page_bytes, count) && is_good;
    int64_t access_ns =
        count == 1 ? uf__cost_ns(sim->costs, UF_COST_ACCESS, page_bytes)
                   : uf__cost_ns(sim->costs, UF_COST_ACCESS_EACH, page_bytes) * (int64_t)count;
    sim->call_count++;
    sim->call_ns += access_ns;
    return is_good ? take(sim, size_bytes) : UF_ERROR_DEVICE;
}

static uf_status pages_unmap(void *context, uint64_t addr, uint64_t size_bytes, uint64_t page_bytes)
{
    (void)addr;
    uf_sim *sim = context;
    uint64_t count = size_bytes / page_bytes;
    bool is_good = charge(sim, UF_COST_UNMAP, page_bytes, count);
    is_good = charge(sim, UF_COST_RELEASE, page_bytes, count) && is_good;
    if (!is_good) {
        return UF_ERROR_DEVICE;
    }
    sim->in_use_bytes -= size_bytes;
    return UF_OK;
}

static int64_t clock_ns(void *context)
{
    const uf_sim *sim = context;
    return sim->now_ns;
}

/* A handle's name says whether it raised the high water: its first mapping is then not a move. */
static const uint64_t FIRST_BIT = UINT64_C(1) << 63;

static uf_status handle_create(void *context, uint64_t size_bytes, uint64_t *handle)
{
    uf_sim *sim = context;
    if (!charge(sim, UF_COST_CREATE, size_bytes, 1)) {
        return UF_ERROR_DEVICE;
    }
    uf_status status = take(sim, size_bytes);
    if (status != UF_OK) {
        return status;
    }
    *handle = ++sim->handle_count;
    if (sim->in_use_bytes > sim->high_water_bytes) {
        sim->high_water_bytes = sim->in_use_bytes;
        sim->first_ns += uf__cost_ns(sim->costs, UF_COST_CREATE, size_bytes) +
                         uf__cost_ns(sim->costs, UF_COST_MAP, size_bytes) +
                         uf__cost_ns(sim->costs, UF_COST_ACCESS_EACH, size_bytes);
        *handle |= FIRST_BIT;
    }
    return UF_OK;
}

static uf_status handle_release(void *context, uint64_t handle, uint64_t size_bytes)
{
    (void)handle;
    uf_sim *sim = context;
    if (!charge(sim, UF_COST_RELEASE, size_bytes, 1)) {
        return UF_ERROR_DEVICE;
    }
    sim->in_use_bytes -= size_bytes;
    return UF_OK;
}

static uf_status handle_map(void *context, uint64_t addr, uint64_t handle, uint64_t size_bytes)
{
    (void)addr;
    (void)handle;
    return charge(context, UF_COST_MAP, size_bytes, 1) ? UF_OK : UF_ERROR_DEVICE;
}

/* One call over several handles costs so much for each. */
static uf_status charge_range(uf_sim *sim, uf_cost_call one, uf_cost_call each, uint64_t size_bytes,
                              uint64_t handle_count)
{
    uint64_t calls = sim->call_count;
    bool is_good = handle_count == 1 ? charge(sim, one, size_bytes, 1)
                                     : charge(sim, each, size_bytes, handle_count);
    sim->call_count = calls + 1;
    return is_good ? UF_OK : UF_ERROR_DEVICE;
}

static uf_status range_access(void *context, uint64_t addr, uint64_t size_bytes,
                              uint64_t handle_count)
{
    (void)addr;
    return charge_range(context, UF_COST_ACCESS, UF_COST_ACCESS_EACH, size_bytes, handle_count);
}

static uf_status range_unmap(void *context, uint64_t addr, uint64_t size_bytes,
                             uint64_t handle_count)
{
    (void)addr;
    return charge_range(context, UF_COST_UNMAP, UF_COST_UNMAP_EACH, size_bytes, handle_count);
}

static uf_status page_cost(void *context, uint64_t size_bytes, uf_page_cost *cost)
{
    const uf_sim *sim = context;
    uf__cost_page(sim->costs, size_bytes, cost);
    return UF_OK;
}

static uf_status stream_wait(void *context, uint64_t stream)
{
    (void)stream;
    uf_sim *sim = context;
    sim->sync_count++;
    return UF_OK;
}

static uf_status event_record(void *context, uint64_t stream, uint64_t *event)
{
    (void)stream;
    uf_sim *sim = context;
    *event = __atomic_add_fetch(&sim->event_count, 1, __ATOMIC_RELAXED);
    return UF_OK;
}

static uf_status event_query(void *context, uint64_t event, bool *is_done)
{
    const uf_sim *sim = context;
    *is_done =
        sim->is_caught_up || event <= __atomic_load_n(&sim->event_done_count, __ATOMIC_RELAXED);
    return UF_OK;
}

static uf_status event_wait(void *context, uint64_t event)
{
    uf_sim *sim = context;
    bool is_done = event <= __atomic_load_n(&sim->event_done_count, __ATOMIC_RELAXED);
    sim->sync_count += !sim->is_caught_up && !is_done;
    return UF_OK;
}

void uf__sim_init(uf_sim *sim, uint64_t total_bytes, uint64_t capacity_bytes)
{
    memset(sim, 0, sizeof *sim);
    sim->total_bytes = total_bytes;
    sim->capacity_bytes = capacity_bytes == 0 ? total_bytes : capacity_bytes;
    sim->next_addr = UF_SIM_FIRST_ADDR;
    sim->costs = uf__cost_table(UF_COST_H200);
    sim->device = (uf_device){.struct_size_bytes = sizeof(uf_device),
                              .context = sim,
                              .memory_info = memory_info,
                              .segment_create = segment_create,
                              .segment_destroy = segment_destroy,
                              .range_reserve = range_reserve,
                              .range_release = range_release,
                              .pages_map = pages_map,
                              .pages_unmap = pages_unmap,
                              .stream_wait = stream_wait,
                              .event_record = event_record,
                              .event_query = event_query,
                              .event_wait = event_wait,
                              .clock_ns = clock_ns,
                              .handle_create = handle_create,
                              .handle_release = handle_release,
                              .handle_map = handle_map,
                              .range_access = range_access,
                              .range_unmap = range_unmap,
                              .page_cost = page_cost};
}

void uf__sim_synchronize(uf_sim *sim)
{
    uint64_t count = __atomic_load_n(&sim->event_count, __ATOMIC_RELAXED);
    __atomic_store_n(&sim->event_done_count, count, __ATOMIC_RELAXED);
}

uf_status uf_sim_create(const uf_sim_options *options, uf_sim **sim, uf_error *error)
{
    uint64_t total_bytes = 0, capacity_bytes = 0;
    if (sim == NULL || (options != NULL && options->struct_size_bytes < sizeof *options)) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "uf_sim_create: sim is NULL, or options.struct_size_bytes is not "
                             "sizeof(uf_sim_options), %zu",
                             sizeof *options);
    }
    if (options != NULL) {
        total_bytes = options->total_bytes;
        capacity_bytes = options->capacity_bytes;
    }
    if (total_bytes >= SIZE_LIMIT_BYTES || capacity_bytes >= SIZE_LIMIT_BYTES) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "a simulated device of 2^60 bytes or more was asked for (total %llu, "
                             "capacity %llu bytes)",
                             (unsigned long long)total_bytes, (unsigned long long)capacity_bytes);
    }
    uf_sim *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return uf__error_set(error, UF_ERROR_HOST_MEMORY,
                             "a simulated device takes %zu bytes, and the host has no memory left",
                             sizeof *made);
    }
    uf__sim_init(made, total_bytes == 0 ? DEFAULT_TOTAL_BYTES : total_bytes, capacity_bytes);
    *sim = made;
    return UF_OK;
}

void uf_sim_destroy(uf_sim *sim)
{
    free(sim);
}

const uf_device *uf_sim_device(const uf_sim *sim)
{
    return &sim->device;
}

void uf_sim_synchronize(uf_sim *sim)
{
    uf__sim_synchronize(sim);
}
