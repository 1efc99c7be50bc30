/* SPDX-License-Identifier: MIT
 *
 * Opening and ending a GPU: the context to work in, peers, whether memory can be mapped, and what
 * is told of it. */
#include "device/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "device/cuda_probe.h"

/* What the torch policy needs for expandable_segments: pages of 2 MiB and multiples of it. */
static const uint64_t EXPANDABLE_PAGE_BYTES = UINT64_C(2) << 20;

/* The settings that need the least memory over the bundled recordings if pages cannot be mapped
 * (bench/tune.md). */
static const char FALLBACK_CONF[] = "max_split_size_mb:128,garbage_collection_threshold:0.8";

static int64_t clock_ns(void *context)
{
    struct timespec now;
    (void)context;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void failure_text(void *context, char *text, size_t capacity)
{
    uf_error failure = {UF_OK, ""};
    (void)uf_cuda_failures(context, &failure);
    (void)snprintf(text, capacity, "%s", failure.text);
}

static uf_status fail(const uf_cuda *cuda, uf_error *error, const char *call, int result)
{
    const char *text = uf__cuda_error_text(&cuda->driver, result);
    bool is_memory = result == UF_CUDA_OUT_OF_MEMORY;
    bool is_absent = result == UF_CUDA_NO_DEVICE || result == UF_CUDA_STUB_LIBRARY ||
                     result == UF_CUDA_DRIVER_MISMATCH || result == UF_CUDA_COMPAT_NOT_SUPPORTED ||
                     result == UF_CUDA_SYSTEM_NOT_READY;
    return uf__error_set(error,
                         is_memory   ? UF_ERROR_DEVICE_MEMORY
                         : is_absent ? UF_ERROR_UNSUPPORTED
                                     : UF_ERROR_DEVICE,
                         "%s failed: %s%s%s%s; unfrag doctor tells more", call,
                         uf__cuda_error_name(&cuda->driver, result), text[0] != '\0' ? " (" : "",
                         text, text[0] != '\0' ? ")" : "");
}

static bool ask(const uf_cuda *cuda, int attribute, int32_t *value)
{
    int found = 0;
    bool is_known =
        cuda->driver.device_get_attribute(&found, attribute, cuda->handle) == UF_CUDA_SUCCESS;
    *value = is_known ? found : 0;
    return is_known;
}

/* The driver, and the GPU by its ordinal. */
static uf_status find_gpu(uf_cuda *cuda, int32_t ordinal, uf_error *error)
{
    uf_cuda_driver *driver = &cuda->driver;
    uf_cuda_info *info = &cuda->info;
    int count = 0, version = 0;
    uf_status status = uf__cuda_driver_open(driver, error);
    if (status == UF_OK && driver->missing != NULL) {
        status = uf__error_set(error, UF_ERROR_UNSUPPORTED,
                               "libcuda.so.1 has no function %s: the driver is too old",
                               driver->missing);
    }
    if (status != UF_OK) {
        return status;
    }
    int result = driver->init(0);
    if (result != UF_CUDA_SUCCESS) {
        return fail(cuda, error, "cuInit", result);
    }
    result = driver->device_get_count(&count);
    if (result != UF_CUDA_SUCCESS) {
        return fail(cuda, error, "cuDeviceGetCount", result);
    }
    if (ordinal < 0 || ordinal >= count) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "there is no GPU %d: CUDA sees %d, numbered from 0 "
                             "(CUDA_VISIBLE_DEVICES hides some)",
                             (int)ordinal, count);
    }
    result = driver->device_get(&cuda->handle, ordinal);
    if (result != UF_CUDA_SUCCESS) {
        return fail(cuda, error, "cuDeviceGet", result);
    }
    size_t bytes = 0;
    info->ordinal = ordinal;
    (void)driver->device_get_name(info->name, (int)sizeof info->name - 1, cuda->handle);
    if (driver->device_total_mem(&bytes, cuda->handle) == UF_CUDA_SUCCESS) {
        info->total_bytes = bytes;
    }
    if (driver->device_get_pci_bus_id == NULL ||
        driver->device_get_pci_bus_id(info->pci_bus_id, (int)sizeof info->pci_bus_id - 1,
                                      cuda->handle) != UF_CUDA_SUCCESS) {
        info->pci_bus_id[0] = '\0';
    }
    info->driver_version = driver->driver_get_version(&version) == UF_CUDA_SUCCESS ? version : 0;
    (void)ask(cuda, UF_CUDA_ATTRIBUTE_CAPABILITY_MAJOR, &info->capability_major);
    (void)ask(cuda, UF_CUDA_ATTRIBUTE_CAPABILITY_MINOR, &info->capability_minor);
    return UF_OK;
}

/* The given context; else the current one if it is of this GPU; else the primary one. */
static uf_status find_context(uf_cuda *cuda, void *given, uf_error *error)
{
    const uf_cuda_driver *driver = &cuda->driver;
    void *current = NULL, *primary = NULL;
    int device = -1;
    cuda->context = given;
    if (given == NULL && driver->context_get_current(&current) == UF_CUDA_SUCCESS &&
        current != NULL && driver->context_get_device(&device) == UF_CUDA_SUCCESS &&
        device == cuda->handle) {
        cuda->context = current;
    }
    /* Also where the context is another one: it may be the primary one, which must be held. */
    int result = driver->primary_context_retain(&primary, cuda->handle);
    if (result != UF_CUDA_SUCCESS) {
        return cuda->context != NULL ? UF_OK
                                     : fail(cuda, error, "cuDevicePrimaryCtxRetain", result);
    }
    if (cuda->context != NULL && cuda->context != primary) {
        (void)driver->primary_context_release(cuda->handle);
        return UF_OK;
    }
    cuda->context = primary;
    cuda->is_retained = cuda->info.is_primary_context = true;
    return UF_OK;
}

/* Lets a peer's context reach the plain segments of ours. */
static int open_peer(uf_cuda *cuda, int peer)
{
    const uf_cuda_driver *driver = &cuda->driver;
    void *context = NULL;
    int result = driver->primary_context_retain(&context, peer);
    if (result != UF_CUDA_SUCCESS) {
        return result;
    }
    result = driver->context_push(context);
    if (result == UF_CUDA_SUCCESS) {
        result = driver->context_enable_peer_access(cuda->context, 0);
        (void)driver->context_pop(&context);
    }
    (void)driver->primary_context_release(peer);
    return result == UF_CUDA_PEER_ACCESS_ALREADY_ENABLED ? UF_CUDA_SUCCESS : result;
}

static uf_status add_peer(uf_cuda *cuda, int32_t ordinal, uf_error *error)
{
    const uf_cuda_driver *driver = &cuda->driver;
    int peer = -1, can_access = 0;
    if (driver->device_can_access_peer == NULL || driver->context_enable_peer_access == NULL) {
        return uf__error_set(error, UF_ERROR_UNSUPPORTED, "the driver knows no peer access");
    }
    if (driver->device_get(&peer, ordinal) != UF_CUDA_SUCCESS || peer == cuda->handle) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "GPU %d was named as a peer of GPU %d: there is no such other GPU",
                             (int)ordinal, (int)cuda->info.ordinal);
    }
    int result = driver->device_can_access_peer(&can_access, peer, cuda->handle);
    if (result != UF_CUDA_SUCCESS) {
        return fail(cuda, error, "cuDeviceCanAccessPeer", result);
    }
    if (can_access == 0) {
        return uf__error_set(error, UF_ERROR_UNSUPPORTED,
                             "GPU %d cannot reach the memory of GPU %d: leave it out of the peers",
                             (int)ordinal, (int)cuda->info.ordinal);
    }
    result = open_peer(cuda, peer);
    if (result != UF_CUDA_SUCCESS) {
        return fail(cuda, error, "cuCtxEnablePeerAccess", result);
    }
    cuda->access[cuda->access_count++] = (uf_cuda_access){
        .location = {UF_CUDA_LOCATION_DEVICE, peer}, .flags = UF_CUDA_ACCESS_READ_WRITE};
    cuda->info.peer_count++;
    return UF_OK;
}

/* Why memory cannot be mapped, for info.why_not. */
static void tell_why_not(uf_cuda *cuda, const uf_cuda_trial *trial)
{
    uf_cuda_info *info = &cuda->info;
    if (trial->failed_step == UF_CUDA_STEP_ATTRIBUTE) {
        (void)snprintf(info->why_not, sizeof info->why_not,
                       "the driver says that this GPU has no virtual memory management");
    } else if (trial->failed_step == UF_CUDA_STEP_FUNCTION) {
        (void)snprintf(info->why_not, sizeof info->why_not,
                       "the driver has no virtual memory management: it is older than CUDA 10.2");
    } else {
        (void)snprintf(info->why_not, sizeof info->why_not, "%s failed on trial: %s",
                       uf__cuda_step_name(trial->failed_step),
                       trial->result_name != NULL ? trial->result_name : "no reason given");
    }
}

/* A trial that fails for want of memory says nothing of what can be mapped. */
static bool is_about_memory(const uf_cuda_trial *trial)
{
    return !trial->works && trial->result == UF_CUDA_OUT_OF_MEMORY && trial->granule_bytes != 0;
}

static void keep_leftovers(uf_cuda *cuda, const uf_cuda_trial *trial)
{
    uf_cuda_leftover pages = {.addr = trial->stuck_addr, .size_bytes = trial->granule_bytes};
    uf_cuda_leftover handle = {.handle = trial->stuck_handle, .size_bytes = trial->granule_bytes};
    if (trial->stuck_addr != 0) {
        uf__cuda_leftover_keep(cuda, pages);
    }
    if (trial->stuck_handle != 0) {
        uf__cuda_leftover_keep(cuda, handle);
    }
}

static uf_status try_mapping(uf_cuda *cuda, const uf_cuda_options *options, uf_error *error)
{
    uf_cuda_info *info = &cuda->info;
    uf_cuda_trial plain, wanted;
    cuda->allocation = (uf_cuda_allocation){.type = UF_CUDA_ALLOCATION_PINNED,
                                            .location = {UF_CUDA_LOCATION_DEVICE, cuda->handle}};
    cuda->access[0] =
        (uf_cuda_access){.location = cuda->allocation.location, .flags = UF_CUDA_ACCESS_READ_WRITE};
    cuda->access_count = 1;
    if (options->is_plain) {
        (void)snprintf(info->why_not, sizeof info->why_not, "is_plain was asked for");
        return UF_OK;
    }
    uf__cuda_try(&cuda->driver, cuda->handle, &cuda->allocation, &plain);
    keep_leftovers(cuda, &plain);
    info->can_map = plain.works || is_about_memory(&plain);
    if (!info->can_map) {
        tell_why_not(cuda, &plain);
        return UF_OK;
    }
    cuda->allocation.handle_types = options->is_exportable ? UF_CUDA_HANDLE_TYPE_FILE : 0;
    cuda->allocation.flags.is_rdma_capable = options->is_rdma_capable;
    if (options->is_exportable || options->is_rdma_capable) {
        uf__cuda_try(&cuda->driver, cuda->handle, &cuda->allocation, &wanted);
        keep_leftovers(cuda, &wanted);
        if (!wanted.works && !is_about_memory(&wanted)) {
            return uf__error_set(error, UF_ERROR_UNSUPPORTED,
                                 "GPU %d makes no pages that are%s%s: %s failed: %s; leave %s out",
                                 (int)info->ordinal, options->is_exportable ? " exportable" : "",
                                 options->is_rdma_capable ? " capable of RDMA" : "",
                                 uf__cuda_step_name(wanted.failed_step),
                                 wanted.result_name != NULL ? wanted.result_name
                                                            : "no reason given",
                                 options->is_exportable ? "is_exportable" : "is_rdma_capable");
        }
    }
    size_t minimum = 0, recommended = 0;
    int result =
        cuda->driver.mem_get_granularity(&minimum, &cuda->allocation, UF_CUDA_GRANULARITY_MINIMUM);
    if (result == UF_CUDA_SUCCESS) {
        result = cuda->driver.mem_get_granularity(&recommended, &cuda->allocation,
                                                  UF_CUDA_GRANULARITY_RECOMMENDED);
    }
    if (result != UF_CUDA_SUCCESS) {
        return fail(cuda, error, "cuMemGetAllocationGranularity", result);
    }
    info->granularity_bytes = minimum;
    info->recommended_granularity_bytes = recommended;
    info->can_expand = minimum != 0 && EXPANDABLE_PAGE_BYTES % minimum == 0;
    return UF_OK;
}

static void tell_policy(uf_cuda_info *info)
{
    info->policy = info->can_map ? UF_POLICY_UNFRAG : UF_POLICY_TORCH;
    info->conf = info->can_map ? "" : FALLBACK_CONF;
    if (!info->can_map) {
        (void)snprintf(
            info->note, sizeof info->note,
            "memory of GPU %d (%s) cannot be mapped (%s): segments from cuMemAlloc under "
            "the torch policy with %s instead",
            (int)info->ordinal, info->name, info->why_not, info->conf);
    }
}

static void device_init(uf_cuda *cuda)
{
    cuda->device = (uf_device){.struct_size_bytes = sizeof(uf_device),
                               .context = cuda,
                               .memory_info = uf__cuda_memory_info,
                               .segment_create = uf__cuda_segment_create,
                               .segment_destroy = uf__cuda_segment_destroy,
                               .stream_wait = uf__cuda_stream_wait,
                               .event_record = uf__cuda_event_record,
                               .event_query = uf__cuda_event_query,
                               .event_wait = uf__cuda_event_wait,
                               .clock_ns = clock_ns,
                               .is_shared = true,
                               .granularity_bytes = cuda->info.granularity_bytes,
                               .failure_text = failure_text};
    if (cuda->info.can_map) {
        cuda->device.range_reserve = uf__cuda_range_reserve;
        cuda->device.range_release = uf__cuda_range_release;
        cuda->device.handle_create = uf__cuda_handle_create;
        cuda->device.handle_release = uf__cuda_handle_release;
        cuda->device.handle_map = uf__cuda_handle_map;
        cuda->device.range_access = uf__cuda_range_access;
        cuda->device.range_unmap = uf__cuda_range_unmap;
    }
    if (cuda->info.can_expand) {
        cuda->device.pages_map = uf__cuda_pages_map;
        cuda->device.pages_unmap = uf__cuda_pages_unmap;
    }
    if (cuda->driver.memset_d8_async != NULL && cuda->driver.memcpy_dtoh_async != NULL) {
        cuda->device.bytes_set = uf__cuda_bytes_set;
        cuda->device.bytes_compare = uf__cuda_bytes_compare;
    }
}

/* Within the context. */
static uf_status set_up(uf_cuda *cuda, const uf_cuda_options *options, uf_error *error)
{
    uf_status status = try_mapping(cuda, options, error);
    for (uint32_t i = 0; i < options->peer_count && status == UF_OK; i++) {
        status = add_peer(cuda, options->peers[i], error);
    }
    tell_policy(&cuda->info);
    device_init(cuda);
    return status;
}

static void watch_forks(uf_cuda *cuda)
{
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *page =
        mmap(NULL, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cuda->process = getpid();
    if (page == MAP_FAILED) {
        return;
    }
    if (madvise(page, page_bytes, MADV_WIPEONFORK) != 0) {
        (void)munmap(page, page_bytes);
        return;
    }
    page[0] = 1;
    cuda->is_here = page;
}

static uf_status open_all(uf_cuda *cuda, const uf_cuda_options *options, uf_error *error)
{
    uf_cuda_visit visit;
    watch_forks(cuda);
    uf_status status = find_gpu(cuda, options->ordinal, error);
    if (status == UF_OK) {
        status = find_context(cuda, options->context, error);
    }
    if (status != UF_OK) {
        return status;
    }
    status = uf__cuda_enter(cuda, &visit);
    if (status != UF_OK) {
        return uf__cuda_failure_copy(cuda, status, error);
    }
    status = set_up(cuda, options, error);
    uf__cuda_leave(cuda, &visit);
    return status;
}

static uf_status check_options(const uf_cuda_options *options, uf_cuda **cuda, uf_error *error)
{
    if (cuda == NULL || options->struct_size_bytes < sizeof *options) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "uf_cuda_create: cuda is NULL, or options.struct_size_bytes is not "
                             "sizeof(uf_cuda_options), %zu",
                             sizeof *options);
    }
    if (options->peer_count > UF_CUDA_PEERS_MAX ||
        (options->peer_count != 0 && options->peers == NULL)) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "uf_cuda_create: %u peers: there are at most %d, and they need a list",
                             options->peer_count, UF_CUDA_PEERS_MAX);
    }
    return UF_OK;
}

uf_status uf_cuda_create(const uf_cuda_options *given, uf_cuda **cuda, uf_error *error)
{
    static const uf_cuda_options defaults = {.struct_size_bytes = sizeof defaults};
    const uf_cuda_options *options = given != NULL ? given : &defaults;
    uf_status status = check_options(options, cuda, error);
    if (status != UF_OK) {
        return status;
    }
    uf_cuda *made = calloc(1, sizeof *made);
    if (made == NULL || pthread_mutex_init(&made->mutex, NULL) != 0) {
        free(made);
        return uf__error_set(error, UF_ERROR_HOST_MEMORY, "the host has no memory left");
    }
    status = open_all(made, options, error);
    if (status != UF_OK) {
        uf_cuda_destroy(made);
        return status;
    }
    *cuda = made;
    return UF_OK;
}

/* What fails is tried a second time. */
static void give_back_all(uf_cuda *cuda)
{
    uf_cuda_visit visit;
    uf_status status = uf__cuda_enter(cuda, &visit);
    status = status == UF_OK ? status : uf__cuda_enter(cuda, &visit);
    if (status == UF_OK) {
        uf__cuda_leftovers_offer(cuda);
        uf__cuda_events_fini(cuda);
        uf__cuda_leave(cuda, &visit);
    } else if (uf__cuda_is_over(cuda) || uf__cuda_is_forked(cuda)) {
        return;
    }
    for (int i = 0; i < 2 && cuda->is_retained; i++) {
        int result = cuda->driver.primary_context_release(cuda->handle);
        cuda->is_retained = result != UF_CUDA_SUCCESS;
    }
}

void uf_cuda_destroy(uf_cuda *cuda)
{
    if (cuda == NULL) {
        return;
    }
    if (cuda->context != NULL) {
        give_back_all(cuda);
    }
    uf__cuda_driver_close(&cuda->driver);
    if (cuda->is_here != NULL) {
        (void)munmap((void *)(uintptr_t)cuda->is_here, (size_t)sysconf(_SC_PAGESIZE));
    }
    free(cuda->events);
    free(cuda->idle_events);
    free(cuda->leftovers);
    while (cuda->buffers != NULL) {
        uf_cuda_buffer *next = cuda->buffers->next;
        free(cuda->buffers);
        cuda->buffers = next;
    }
    (void)pthread_mutex_destroy(&cuda->mutex);
    free(cuda);
}

const uf_device *uf_cuda_device(const uf_cuda *cuda)
{
    return &cuda->device;
}

uf_status uf_cuda_info_get(const uf_cuda *cuda, uf_cuda_info *info)
{
    if (cuda == NULL || info == NULL || info->struct_size_bytes < sizeof info->struct_size_bytes) {
        return UF_ERROR_INVALID_ARGUMENT;
    }
    size_t size_bytes = info->struct_size_bytes;
    memset(info, 0, size_bytes);
    memcpy(info, &cuda->info, size_bytes < sizeof *info ? size_bytes : sizeof *info);
    info->struct_size_bytes = size_bytes;
    return UF_OK;
}

void uf_cuda_counts_get(uf_cuda *cuda, uf_cuda_counts *counts)
{
    *counts = (uf_cuda_counts){.driver_call_count = atomic_load(&cuda->driver_call_count),
                               .device_sync_count = atomic_load(&cuda->device_sync_count),
                               .stream_wait_count = atomic_load(&cuda->stream_wait_count),
                               .failure_count = atomic_load(&cuda->failure_count)};
    (void)pthread_mutex_lock(&cuda->mutex);
    counts->event_count = cuda->made_count;
    counts->unreleased_count = cuda->leftover_count;
    for (uint32_t i = 0; i < cuda->leftover_count; i++) {
        counts->unreleased_bytes += cuda->leftovers[i].size_bytes;
    }
    (void)pthread_mutex_unlock(&cuda->mutex);
}
