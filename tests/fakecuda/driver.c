/* SPDX-License-Identifier: MIT
 *
 * A libcuda.so.1 without a GPU: devices as UNFRAG_FAKE_GPU describes them, contexts, and which one
 * is current in a thread. Guarded by world.mutex. */
#include <stdio.h>
#include <string.h>

#include "world.h"

enum { STACK_MAX = 16 };

static __thread fake_context *stack[STACK_MAX];
static __thread int stack_depth;

int fake_card_of(int device)
{
    for (int i = 0; i < world.setup.card_count && device >= 0; i++) {
        if (!world.setup.cards[i].is_hidden && device-- == 0) {
            return i;
        }
    }
    return -1;
}

int fake_current_card(void)
{
    return stack_depth == 0 || stack[stack_depth - 1] == NULL ? -1 : stack[stack_depth - 1]->card;
}

bool fake_can_reach(int card, int peer)
{
    return card != peer && world.setup.cards[card].has_peers && world.setup.cards[peer].has_peers;
}

int fake_result(uf_status status)
{
    return status == UF_OK                    ? SUCCESS
           : status == UF_ERROR_DEVICE_MEMORY ? OUT_OF_MEMORY
                                              : INVALID_VALUE;
}

/* xorshift */
uint64_t fake_random(uint64_t limit)
{
    world.random ^= world.random << 13;
    world.random ^= world.random >> 7;
    world.random ^= world.random << 17;
    return world.random % (limit + 1);
}

uf_host *fake_current_host(void)
{
    int card = fake_current_card();
    if (card < 0) {
        return NULL;
    }
    fake_gpu *gpu = &world.gpus[card];
    if (world.setup.others_bytes != 0) {
        gpu->others_bytes = fake_random(world.setup.others_bytes);
    }
    uf_host *host = gpu->host;
    uint64_t all_bytes = world.setup.cards[card].free_bytes;
    uint64_t ours_bytes = all_bytes > gpu->others_bytes ? all_bytes - gpu->others_bytes : 0;
    ours_bytes += gpu->on_host_bytes;
    (void)pthread_mutex_lock(&host->mutex);
    host->capacity_bytes =
        ours_bytes > host->counts.in_use_bytes ? ours_bytes : host->counts.in_use_bytes;
    (void)pthread_mutex_unlock(&host->mutex);
    return host;
}

/* Whether the call may go on, for the functions that are about one device. */
static int begin(const char *call, int device, const fake_card **card)
{
    int result = fake_begin(call, SAFE);
    int index = fake_card_of(device);
    if (result != SUCCESS) {
        return result;
    }
    if (!world.is_initialised) {
        return NOT_INITIALIZED;
    }
    if (index < 0) {
        return INVALID_DEVICE;
    }
    if (card != NULL) {
        *card = &world.setup.cards[index];
    }
    return fake_setup_failure(&world.setup, call, device);
}

static bool is_nothing_there(void)
{
    fake_counts counts;
    static const fake_counts none;
    fake_api_table.counts(&counts);
    counts.stream_count = 0;
    return memcmp(&counts, &none, sizeof none) == 0;
}

/* Cards may differ from those of the call before: what they have is made anew if nobody has any of
 * it. */
static void forget_hosts(void)
{
    for (int i = 0; i < FAKE_CARDS_MAX && is_nothing_there(); i++) {
        bool has_fault =
            world.gpus[i].host != NULL && uf_host_faults(world.gpus[i].host, NULL) != 0;
        if (!has_fault) {
            uf_host_destroy(world.gpus[i].host);
            world.gpus[i] = (fake_gpu){0};
        }
    }
}

EXPORT int cuInit(unsigned flags)
{
    int result = fake_begin("cuInit", SAFE);
    (void)flags;
    if (result == SUCCESS) {
        fake_setup_read(&world.setup);
        forget_hosts();
        result = world.setup.init_result;
        world.is_initialised = result == SUCCESS && fake_card_of(0) >= 0;
        result = result == SUCCESS && !world.is_initialised ? NO_DEVICE : result;
    }
    return fake_end(result);
}

EXPORT int cuDriverGetVersion(int *version)
{
    int result = fake_begin("cuDriverGetVersion", SAFE);
    if (!world.is_initialised) {
        fake_setup_read(&world.setup);
    }
    *version = world.setup.version;
    return fake_end(result != SUCCESS ? result
                                      : fake_setup_failure(&world.setup, "cuDriverGetVersion", -1));
}

static const struct {
    int result;
    const char *name, *text;
} errors[] = {{SUCCESS, "CUDA_SUCCESS", "no error"},
              {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
              {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
              {NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
              {DEINITIALIZED, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
              {34, "CUDA_ERROR_STUB_LIBRARY", "CUDA driver is a stub library"},
              {46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "device is busy or unavailable"},
              {NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
              {INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
              {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
              {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
              {NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
              {NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
              {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
              {800, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
              {NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
              {802, "CUDA_ERROR_SYSTEM_NOT_READY", "system not yet initialized"},
              {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "driver and library differ"},
              {804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", "no compatibility here"},
              {CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
               "operation not permitted when stream is capturing"},
              {CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
               "operation failed due to a previous error during capture"},
              {999, "CUDA_ERROR_UNKNOWN", "unknown error"}};

static int find_error(int result, const char **name, const char **text)
{
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        if (errors[i].result == result) {
            *name = errors[i].name;
            *text = errors[i].text;
            return SUCCESS;
        }
    }
    return INVALID_VALUE;
}

EXPORT int cuGetErrorName(int result, const char **name)
{
    const char *text;
    return find_error(result, name, &text);
}

EXPORT int cuGetErrorString(int result, const char **text)
{
    const char *name;
    return find_error(result, &name, text);
}

EXPORT int cuDeviceGetCount(int *count)
{
    int result = fake_begin("cuDeviceGetCount", SAFE);
    *count = 0;
    while (fake_card_of(*count) >= 0) {
        *count += 1;
    }
    result = result == SUCCESS && !world.is_initialised ? NOT_INITIALIZED : result;
    return fake_end(result != SUCCESS ? result
                                      : fake_setup_failure(&world.setup, "cuDeviceGetCount", -1));
}

EXPORT int cuDeviceGet(int *device, int index)
{
    *device = index;
    return fake_end(begin("cuDeviceGet", index, NULL));
}

EXPORT int cuDeviceGetName(char *name, int capacity, int device)
{
    const fake_card *card = NULL;
    int result = begin("cuDeviceGetName", device, &card);
    if (result == SUCCESS) {
        snprintf(name, (size_t)capacity, "%s", card->name);
    }
    return fake_end(result);
}

EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    const fake_card *card = NULL;
    int result = begin("cuDeviceTotalMem_v2", device, &card);
    if (result == SUCCESS) {
        *bytes = card->total_bytes;
    }
    return fake_end(result);
}

EXPORT int cuDeviceGetPCIBusId(char *text, int capacity, int device)
{
    int result = begin("cuDeviceGetPCIBusId", device, NULL);
    if (result == SUCCESS) {
        snprintf(text, (size_t)capacity, "0000:%02x:00.0", 0x1a + fake_card_of(device));
    }
    return fake_end(result);
}

static int attribute_of(const fake_card *card, int attribute, int *value)
{
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
    case 103:
        *value = card->has_file_handles;
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

EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    const fake_card *card = NULL;
    int result = begin("cuDeviceGetAttribute", device, &card);
    return fake_end(result == SUCCESS ? attribute_of(card, attribute, value) : result);
}

EXPORT int cuDeviceCanAccessPeer(int *can, int device, int peer)
{
    int result = begin("cuDeviceCanAccessPeer", device, NULL);
    if (result == SUCCESS && fake_card_of(peer) < 0) {
        result = INVALID_DEVICE;
    }
    if (result == SUCCESS) {
        *can = fake_can_reach(fake_card_of(device), fake_card_of(peer));
    }
    return fake_end(result);
}

/* The card's memory is made with its first context. */
static int make_host(int card)
{
    fake_gpu *gpu = &world.gpus[card];
    const fake_card *from = &world.setup.cards[card];
    if (gpu->host != NULL) {
        return SUCCESS;
    }
    uf_host_options options = {.struct_size_bytes = sizeof options,
                               .total_bytes = from->total_bytes,
                               .granularity_bytes = world.setup.granule_bytes};
    return uf_host_create(&options, &gpu->host, NULL) == UF_OK ? SUCCESS : OUT_OF_MEMORY;
}

EXPORT int cuDevicePrimaryCtxRetain(void **context, int device)
{
    int result = begin("cuDevicePrimaryCtxRetain", device, NULL);
    int card = fake_card_of(device);
    result = result == SUCCESS ? make_host(card) : result;
    if (result == SUCCESS) {
        world.contexts[card] = (fake_context){.card = card, .is_there = true, .is_primary = true};
        world.gpus[card].retain_count++;
        *context = &world.contexts[card];
    }
    return fake_end(result);
}

EXPORT int cuDevicePrimaryCtxRelease_v2(int device)
{
    int result = begin("cuDevicePrimaryCtxRelease_v2", device, NULL);
    int card = fake_card_of(device);
    if (result == SUCCESS && world.gpus[card].retain_count == 0) {
        result = INVALID_CONTEXT;
    }
    if (result == SUCCESS && --world.gpus[card].retain_count == 0) {
        world.contexts[card].is_there = false;
    }
    return fake_end(result);
}

EXPORT int cuCtxCreate_v2(void **context, unsigned flags, int device)
{
    int result = begin("cuCtxCreate_v2", device, NULL), at = FAKE_CARDS_MAX;
    (void)flags;
    while (at < FAKE_CONTEXTS_MAX && world.contexts[at].is_there) {
        at++;
    }
    if (result == SUCCESS && (at == FAKE_CONTEXTS_MAX || stack_depth == STACK_MAX)) {
        result = OUT_OF_MEMORY;
    }
    result = result == SUCCESS ? make_host(fake_card_of(device)) : result;
    if (result == SUCCESS) {
        world.contexts[at] = (fake_context){.card = fake_card_of(device), .is_there = true};
        *context = stack[stack_depth++] = &world.contexts[at];
    }
    return fake_end(result);
}

EXPORT int cuCtxDestroy_v2(void *context)
{
    int result = fake_begin("cuCtxDestroy_v2", SAFE);
    fake_context *found = context;
    if (result == SUCCESS && (found == NULL || !found->is_there || found->is_primary)) {
        result = INVALID_CONTEXT;
    }
    if (result == SUCCESS) {
        found->is_there = false;
        stack_depth -= stack_depth != 0 && stack[stack_depth - 1] == found;
    }
    return fake_end(result);
}

EXPORT int cuCtxPushCurrent_v2(void *context)
{
    int result = fake_begin("cuCtxPushCurrent_v2", SAFE);
    fake_context *found = context;
    if (result == SUCCESS && (found == NULL || !found->is_there || stack_depth == STACK_MAX)) {
        result = INVALID_CONTEXT;
    }
    if (result == SUCCESS) {
        result = fake_setup_failure(&world.setup, "cuCtxPushCurrent_v2", found->card);
    }
    if (result == SUCCESS) {
        stack[stack_depth++] = found;
    }
    return fake_end(result);
}

EXPORT int cuCtxPopCurrent_v2(void **context)
{
    int result = fake_begin("cuCtxPopCurrent_v2", SAFE);
    if (result == SUCCESS && stack_depth == 0) {
        result = INVALID_CONTEXT;
    }
    if (result == SUCCESS) {
        *context = stack[--stack_depth];
    }
    return fake_end(result);
}

EXPORT int cuCtxGetCurrent(void **context)
{
    int result = fake_begin("cuCtxGetCurrent", SAFE);
    *context = result == SUCCESS && stack_depth != 0 ? stack[stack_depth - 1] : NULL;
    return fake_end(result);
}

EXPORT int cuCtxSetCurrent(void *context)
{
    int result = fake_begin("cuCtxSetCurrent", SAFE);
    if (result == SUCCESS) {
        stack_depth += stack_depth == 0;
        stack[stack_depth - 1] = context;
    }
    return fake_end(result);
}

EXPORT int cuCtxGetDevice(int *device)
{
    int result = fake_begin("cuCtxGetDevice", SAFE), card = fake_current_card();
    for (int i = 0; result == SUCCESS && card >= 0 && fake_card_of(i) >= 0; i++) {
        *device = fake_card_of(i) == card ? i : *device;
    }
    return fake_end(result == SUCCESS && card < 0 ? INVALID_CONTEXT : result);
}

EXPORT int cuCtxEnablePeerAccess(void *peer, unsigned flags)
{
    int result = fake_begin("cuCtxEnablePeerAccess", SAFE), card = fake_current_card();
    const fake_context *found = peer;
    if (result == SUCCESS && (card < 0 || found == NULL || !found->is_there || flags != 0)) {
        result = INVALID_CONTEXT;
    }
    if (result == SUCCESS && !fake_can_reach(card, found->card)) {
        result = PEER_ACCESS_UNSUPPORTED;
    }
    if (result == SUCCESS && (world.gpus[found->card].peers >> card & 1) != 0) {
        result = PEER_ACCESS_ALREADY_ENABLED;
    }
    if (result == SUCCESS) {
        world.gpus[found->card].peers |= UINT64_C(1) << card;
    }
    return fake_end(result);
}

EXPORT int cuCtxSynchronize(void)
{
    int result = fake_begin("cuCtxSynchronize", UNSAFE), card = fake_current_card();
    result = result == SUCCESS && card < 0 ? INVALID_CONTEXT : result;
    if (result == SUCCESS) {
        uf_host_synchronize(world.gpus[card].host);
    }
    return fake_end(result);
}
