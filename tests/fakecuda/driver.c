/* SPDX-License-Identifier: MIT
 *
 * A libcuda.so.1 without a GPU: devices as UNFRAG_FAKE_GPU describes them, and the memory
 * management calls with the driver's order of steps enforced, over no memory at all. Built with
 * FAKE_OLD it lacks the virtual memory functions, as drivers before CUDA 10.2 do. No lock. */
#include <stdio.h>
#include <string.h>

#include "setup.h"

#define EXPORT __attribute__((visibility("default")))

enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, NO_DEVICE = 100 };
enum { INVALID_DEVICE = 101, INVALID_CONTEXT = 201, NOT_SUPPORTED = 801 };

static fake_setup setup;
static bool is_initialised;
static int current_card = -1;
static int context_count;

/* CUDA's numbers leave out the cards that are hidden from it. */
static int card_of(int device)
{
    for (int i = 0; i < setup.card_count; i++) {
        if (!setup.cards[i].is_hidden && device-- == 0) {
            return i;
        }
    }
    return -1;
}

/* Whether the call may go on, for the functions that are about one device. */
static int begin(const char *function, int device, const fake_card **card)
{
    int index = card_of(device);
    if (!is_initialised) {
        return NOT_INITIALIZED;
    }
    if (index < 0) {
        return INVALID_DEVICE;
    }
    if (card != NULL) {
        *card = &setup.cards[index];
    }
    return fake_setup_failure(&setup, function, device);
}

EXPORT int cuInit(unsigned flags)
{
    fake_setup_read(&setup);
    (void)flags;
    if (setup.init_result == SUCCESS && card_of(0) < 0) {
        return NO_DEVICE;
    }
    is_initialised = setup.init_result == SUCCESS;
    return setup.init_result;
}

EXPORT int cuDriverGetVersion(int *version)
{
    fake_setup_read(&setup);
    *version = setup.version;
    return fake_setup_failure(&setup, "cuDriverGetVersion", -1);
}

EXPORT int cuGetErrorName(int result, const char **name)
{
    static const struct {
        int result;
        const char *name;
    } names[] = {{SUCCESS, "CUDA_SUCCESS"},
                 {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
                 {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
                 {NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED"},
                 {34, "CUDA_ERROR_STUB_LIBRARY"},
                 {46, "CUDA_ERROR_DEVICE_UNAVAILABLE"},
                 {NO_DEVICE, "CUDA_ERROR_NO_DEVICE"},
                 {INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE"},
                 {800, "CUDA_ERROR_NOT_PERMITTED"},
                 {NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED"},
                 {802, "CUDA_ERROR_SYSTEM_NOT_READY"},
                 {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"},
                 {804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE"},
                 {999, "CUDA_ERROR_UNKNOWN"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (names[i].result == result) {
            *name = names[i].name;
            return SUCCESS;
        }
    }
    return INVALID_VALUE;
}

EXPORT int cuDeviceGetCount(int *count)
{
    *count = 0;
    while (card_of(*count) >= 0) {
        *count += 1;
    }
    return is_initialised ? fake_setup_failure(&setup, "cuDeviceGetCount", -1) : NOT_INITIALIZED;
}

EXPORT int cuDeviceGet(int *device, int index)
{
    *device = index;
    return begin("cuDeviceGet", index, NULL);
}

EXPORT int cuDeviceGetName(char *name, int capacity, int device)
{
    const fake_card *card = NULL;
    int result = begin("cuDeviceGetName", device, &card);
    if (result == SUCCESS) {
        snprintf(name, (size_t)capacity, "%s", card->name);
    }
    return result;
}

EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    const fake_card *card = NULL;
    int result = begin("cuDeviceTotalMem_v2", device, &card);
    if (result == SUCCESS) {
        *bytes = card->total_bytes;
    }
    return result;
}

EXPORT int cuDeviceGetPCIBusId(char *text, int capacity, int device)
{
    int result = begin("cuDeviceGetPCIBusId", device, NULL);
    if (result == SUCCESS) {
        snprintf(text, (size_t)capacity, "0000:%02x:00.0", 0x1a + card_of(device));
    }
    return result;
}

EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    const fake_card *card = NULL;
    int result = begin("cuDeviceGetAttribute", device, &card);
    if (result != SUCCESS) {
        return result;
    }
    switch (attribute) {
    case 16:
        *value = 132;
        return SUCCESS;
    case 18:
        *value = card->is_integrated;
        return SUCCESS;
    case 75:
        *value = 9;
        return SUCCESS;
    case 76:
    case 134:
        *value = 0;
        return SUCCESS;
    case 102:
        *value = card->has_vmm;
        return SUCCESS;
    case 110:
        *value = 1;
        return SUCCESS;
    case 141:
        *value = card->has_host_vmm;
        return SUCCESS;
    default:
        return INVALID_VALUE;
    }
}

EXPORT int cuDevicePrimaryCtxRetain(void **context, int device)
{
    int result = begin("cuDevicePrimaryCtxRetain", device, NULL);
    if (result == SUCCESS) {
        *context = &setup.cards[card_of(device)];
        context_count++;
    }
    return result;
}

EXPORT int cuDevicePrimaryCtxRelease_v2(int device)
{
    context_count--;
    return begin("cuDevicePrimaryCtxRelease_v2", device, NULL);
}

EXPORT int cuCtxPushCurrent_v2(void *context)
{
    current_card = (int)((fake_card *)context - setup.cards);
    return fake_setup_failure(&setup, "cuCtxPushCurrent_v2", current_card);
}

EXPORT int cuCtxPopCurrent_v2(void **context)
{
    *context = NULL;
    current_card = -1;
    return SUCCESS;
}

EXPORT int cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    if (current_card < 0) {
        return INVALID_CONTEXT;
    }
    *free_bytes = setup.cards[current_card].free_bytes;
    *total_bytes = setup.cards[current_card].total_bytes;
    return fake_setup_failure(&setup, "cuMemGetInfo_v2", current_card);
}

#ifndef FAKE_OLD

enum { GRANULE_BYTES = 2 << 20, LOCATION_HOST = 2, LOCATION_NUMA = 3 };
#define RANGE_ADDR UINT64_C(0x7f0000000000)
#define HANDLE UINT64_C(0x5eed)

typedef struct allocation {
    int type, handle_types, location_type, location_id;
    void *metadata;
    unsigned char flags[8];
} allocation;

/* One range and one handle at a time. */
static bool has_range, has_handle, is_mapped;

static int refusal(const char *function)
{
    return current_card < 0 ? INVALID_CONTEXT : fake_setup_failure(&setup, function, current_card);
}

EXPORT int cuMemGetAllocationGranularity(size_t *bytes, const allocation *wanted, int option)
{
    (void)option;
    *bytes = GRANULE_BYTES;
    return wanted->type == 1 ? refusal("cuMemGetAllocationGranularity") : INVALID_VALUE;
}

EXPORT int cuMemAddressReserve(uint64_t *addr, size_t bytes, size_t alignment, uint64_t wanted,
                               unsigned long long flags)
{
    int result = refusal("cuMemAddressReserve");
    (void)alignment, (void)wanted, (void)flags;
    if (result == SUCCESS && (has_range || bytes != GRANULE_BYTES)) {
        return INVALID_VALUE;
    }
    if (result == SUCCESS) {
        has_range = true;
        *addr = RANGE_ADDR;
    }
    return result;
}

EXPORT int cuMemAddressFree(uint64_t addr, size_t bytes)
{
    int result = refusal("cuMemAddressFree");
    if (!has_range || is_mapped || addr != RANGE_ADDR || bytes != GRANULE_BYTES) {
        return INVALID_VALUE;
    }
    has_range = result != SUCCESS;
    return result;
}

EXPORT int cuMemCreate(uint64_t *handle, size_t bytes, const allocation *wanted,
                       unsigned long long flags)
{
    bool is_host = wanted->location_type == LOCATION_HOST || wanted->location_type == LOCATION_NUMA;
    int result = refusal("cuMemCreate");
    (void)flags;
    if (result != SUCCESS) {
        return result;
    }
    if (has_handle || bytes % GRANULE_BYTES != 0) {
        return INVALID_VALUE;
    }
    if (is_host && !setup.cards[current_card].has_host_vmm) {
        return NOT_SUPPORTED;
    }
    if (!is_host && setup.cards[current_card].free_bytes < bytes) {
        return OUT_OF_MEMORY;
    }
    has_handle = true;
    *handle = HANDLE;
    return SUCCESS;
}

EXPORT int cuMemRelease(uint64_t handle)
{
    if (!has_handle || handle != HANDLE) {
        return INVALID_VALUE;
    }
    has_handle = false;
    return refusal("cuMemRelease");
}

EXPORT int cuMemMap(uint64_t addr, size_t bytes, size_t offset, uint64_t handle,
                    unsigned long long flags)
{
    int result = refusal("cuMemMap");
    if (!has_range || !has_handle || is_mapped || addr != RANGE_ADDR || handle != HANDLE ||
        offset != 0 || flags != 0 || bytes != GRANULE_BYTES) {
        return INVALID_VALUE;
    }
    is_mapped = result == SUCCESS;
    return result;
}

EXPORT int cuMemUnmap(uint64_t addr, size_t bytes)
{
    if (!is_mapped || addr != RANGE_ADDR || bytes != GRANULE_BYTES) {
        return INVALID_VALUE;
    }
    is_mapped = false;
    return refusal("cuMemUnmap");
}

EXPORT int cuMemSetAccess(uint64_t addr, size_t bytes, const int *access, size_t count)
{
    enum { READ_WRITE = 3 };
    if (!is_mapped || addr != RANGE_ADDR || bytes != GRANULE_BYTES || count != 1 ||
        access[2] != READ_WRITE) {
        return INVALID_VALUE;
    }
    return refusal("cuMemSetAccess");
}

/* For tests: what was not given back. */
EXPORT int fake_leak_count(void)
{
    return has_range + has_handle + is_mapped + context_count;
}

#endif
