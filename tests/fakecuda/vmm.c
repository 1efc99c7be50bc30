/* SPDX-License-Identifier: MIT
 *
 * Address space, handles and mappings of the fake driver library; left out of the one that is as
 * old as drivers before CUDA 10.2. The rules are those of the host device. Guarded by world.mutex.
 */
#include "world.h"

enum { LOCATION_DEVICE = 1, LOCATION_HOST = 2, LOCATION_NUMA = 3, HANDLE_TYPE_FILE = 1 };
enum { READ_WRITE = 3, CARD_SHIFT = 56, WRONG_HANDLE = 0xbad };

typedef struct allocation {
    int type, handle_types, location_type, location_id;
    void *metadata;
    unsigned char flags[8];
} allocation;

typedef struct access {
    int location_type, location_id, flags;
} access;

/* The sizes of handles, which cuMemRelease is not told. */
typedef struct handle_size {
    uint64_t handle, size_bytes;
    bool is_on_host;
} handle_size;

static handle_size *sizes;
static uint32_t size_count, size_capacity;

void fake_handles_forget(void)
{
    size_count = 0;
}

static int begin(const char *call, uf_host **host)
{
    int result = fake_begin(call, UNSAFE);
    if (result != SUCCESS) {
        return result;
    }
    *host = fake_current_host();
    return *host == NULL ? INVALID_CONTEXT
                         : fake_setup_failure(&world.setup, call, fake_current_card());
}

EXPORT int cuMemGetAllocationGranularity(size_t *bytes, const allocation *wanted, int option)
{
    uf_host *host = NULL;
    int result = begin("cuMemGetAllocationGranularity", &host);
    if (result == SUCCESS && (wanted->type != 1 || option < 0 || option > 1)) {
        result = INVALID_VALUE;
    }
    if (result == SUCCESS) {
        *bytes = option == 0 ? world.setup.granule_bytes : world.setup.recommended_bytes;
    }
    if (result == LIE) {
        *bytes = 0;
    }
    return fake_end(result);
}

EXPORT int cuMemAddressReserve(uint64_t *addr, size_t bytes, size_t alignment, uint64_t wanted,
                               unsigned long long flags)
{
    uf_host *host = NULL;
    int result = begin("cuMemAddressReserve", &host);
    (void)wanted; /* a wish */
    if (result == SUCCESS && (flags != 0 || (alignment & (alignment - 1)) != 0)) {
        result = INVALID_VALUE;
    }
    fake_gpu *gpu = result == SUCCESS ? &world.gpus[fake_current_card()] : NULL;
    if (gpu != NULL && bytes > world.setup.space_bytes - gpu->reserved_bytes) {
        result = OUT_OF_MEMORY;
    }
    if (result == SUCCESS) {
        result = fake_result(uf_host_device(host)->range_reserve(host, bytes, addr));
        gpu->reserved_bytes += result == SUCCESS ? bytes : 0;
    }
    if (result == LIE) {
        *addr = 0xbad00000;
    }
    return fake_end(result);
}

EXPORT int cuMemAddressFree(uint64_t addr, size_t bytes)
{
    uf_host *host = NULL;
    int result = begin("cuMemAddressFree", &host);
    if (result == SUCCESS) {
        result = fake_result(uf_host_device(host)->range_release(host, addr, bytes));
        world.gpus[fake_current_card()].reserved_bytes -= result == SUCCESS ? bytes : 0;
    }
    return fake_end(result);
}

static bool is_on_host(const allocation *wanted)
{
    return wanted->location_type == LOCATION_HOST || wanted->location_type == LOCATION_NUMA;
}

static int check_wanted(const allocation *wanted)
{
    const fake_card *card = &world.setup.cards[fake_current_card()];
    bool is_host = is_on_host(wanted);
    if (wanted->type != 1 || (!is_host && (wanted->location_type != LOCATION_DEVICE ||
                                           fake_card_of(wanted->location_id) < 0))) {
        return INVALID_VALUE;
    }
    if ((is_host && !card->has_host_vmm) || (wanted->handle_types & ~HANDLE_TYPE_FILE) != 0 ||
        (wanted->handle_types != 0 && !card->has_file_handles)) {
        return NOT_SUPPORTED;
    }
    return SUCCESS;
}

EXPORT int cuMemCreate(uint64_t *handle, size_t bytes, const allocation *wanted,
                       unsigned long long flags)
{
    uf_host *host = NULL;
    uint64_t made = 0;
    int result = begin("cuMemCreate", &host);
    if (result == SUCCESS) {
        result = flags != 0 ? INVALID_VALUE : check_wanted(wanted);
    }
    if (result == SUCCESS &&
        !uf__host_list_reserve((void **)&sizes, &size_capacity, sizeof *sizes, size_count + 1)) {
        result = OUT_OF_MEMORY;
    }
    fake_gpu *gpu = result == SUCCESS ? &world.gpus[fake_current_card()] : NULL;
    if (gpu != NULL) {
        gpu->on_host_bytes += is_on_host(wanted) ? bytes : 0;
        host = fake_current_host(); /* with that much more room */
        result = fake_result(uf_host_device(host)->handle_create(host, bytes, &made));
    }
    if (result == SUCCESS) {
        *handle = made | (uint64_t)fake_current_card() << CARD_SHIFT;
        sizes[size_count++] = (handle_size){*handle, bytes, is_on_host(wanted)};
    } else if (gpu != NULL && is_on_host(wanted)) {
        gpu->on_host_bytes -= bytes;
    }
    if (result == LIE) {
        *handle = WRONG_HANDLE;
    }
    return fake_end(result);
}

static handle_size *find_size(uint64_t handle)
{
    for (uint32_t i = 0; i < size_count; i++) {
        if (sizes[i].handle == handle) {
            return &sizes[i];
        }
    }
    return NULL;
}

static uint64_t host_handle(uint64_t handle)
{
    return handle & ((UINT64_C(1) << CARD_SHIFT) - 1);
}

EXPORT int cuMemRelease(uint64_t handle)
{
    uf_host *host = NULL;
    int result = begin("cuMemRelease", &host);
    handle_size *size = find_size(handle);
    if (result == SUCCESS && size == NULL) {
        fake_fault("cuMemRelease: no handle 0x%llx", (unsigned long long)handle);
        result = INVALID_VALUE;
    }
    if (result == SUCCESS) {
        host = world.gpus[handle >> CARD_SHIFT].host;
        result = fake_result(
            uf_host_device(host)->handle_release(host, host_handle(handle), size->size_bytes));
        world.gpus[handle >> CARD_SHIFT].on_host_bytes -= size->is_on_host ? size->size_bytes : 0;
        *size = sizes[--size_count];
    }
    return fake_end(result);
}

EXPORT int cuMemMap(uint64_t addr, size_t bytes, size_t offset, uint64_t handle,
                    unsigned long long flags)
{
    uf_host *host = NULL;
    int result = begin("cuMemMap", &host);
    const handle_size *size = find_size(handle);
    if (result == SUCCESS &&
        (size == NULL || size->size_bytes != bytes || offset != 0 || flags != 0)) {
        fake_fault("cuMemMap: %zu bytes at offset %zu of handle 0x%llx: not a whole handle", bytes,
                   offset, (unsigned long long)handle);
        result = INVALID_VALUE;
    }
    if (result == SUCCESS) {
        host = world.gpus[handle >> CARD_SHIFT].host;
        result =
            fake_result(uf_host_device(host)->handle_map(host, addr, host_handle(handle), bytes));
    }
    return fake_end(result);
}

static uint64_t mapped_count(uf_host *host, uint64_t addr, uint64_t bytes)
{
    (void)pthread_mutex_lock(&host->mutex);
    uint64_t count = uf__host_mapped_count_locked(host, addr, bytes);
    (void)pthread_mutex_unlock(&host->mutex);
    return count;
}

EXPORT int cuMemUnmap(uint64_t addr, size_t bytes)
{
    uf_host *host = NULL;
    int result = begin("cuMemUnmap", &host);
    if (result == SUCCESS) {
        uint64_t count = mapped_count(host, addr, bytes);
        result = fake_result(uf_host_device(host)->range_unmap(host, addr, bytes, count));
    }
    return fake_end(result);
}

EXPORT int cuMemSetAccess(uint64_t addr, size_t bytes, const access *wanted, size_t count)
{
    uf_host *host = NULL;
    int result = begin("cuMemSetAccess", &host);
    bool has_own = false;
    for (size_t i = 0; i < count && result == SUCCESS; i++) {
        int card = fake_card_of(wanted[i].location_id);
        if (wanted[i].location_type != LOCATION_DEVICE || card < 0 ||
            wanted[i].flags != READ_WRITE) {
            result = INVALID_VALUE;
        } else if (card != fake_current_card() && !fake_can_reach(card, fake_current_card())) {
            result = PEER_ACCESS_UNSUPPORTED;
        }
        has_own = has_own || card == fake_current_card();
    }
    if (result == SUCCESS && has_own) {
        uint64_t handle_count = mapped_count(host, addr, bytes);
        result = fake_result(uf_host_device(host)->range_access(host, addr, bytes, handle_count));
    }
    return fake_end(result);
}
