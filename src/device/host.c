/* SPDX-License-Identifier: MIT
 *
 * The device of host memory: its functions as an allocator sees them, each counted and, on order,
 * failing; faults; plain segments. Guarded by uf_host.mutex. */
#include "device/host.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "base/size.h"

static const uint64_t DEFAULT_TOTAL_BYTES = UINT64_C(1) << 30;
static const uint64_t DEFAULT_GRANULARITY_BYTES = UINT64_C(2) << 20;
static const uint64_t SIZE_LIMIT_BYTES = UINT64_C(1) << 40;
static const uint64_t GRANULARITY_LIMIT_BYTES = UINT64_C(1) << 30;

uf_status uf__host_fault_locked(uf_host *host, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(host->fault.text, sizeof host->fault.text, format, arguments);
    va_end(arguments);
    host->fault.status = UF_ERROR_DEVICE;
    host->fault_count++;
    return UF_ERROR_DEVICE;
}

bool uf__host_has_room_locked(const uf_host *host, uint64_t size_bytes)
{
    return size_bytes <= host->capacity_bytes - host->counts.in_use_bytes;
}

bool uf__host_list_reserve(void **items, uint32_t *capacity, size_t item_bytes, uint32_t needed)
{
    if (needed <= *capacity) {
        return true;
    }
    uint32_t grown = *capacity < 8 ? 16 : *capacity * 2;
    void *moved = grown < needed ? NULL : realloc(*items, grown * item_bytes);
    if (moved == NULL) {
        return false;
    }
    memset((char *)moved + *capacity * item_bytes, 0, (grown - *capacity) * item_bytes);
    *items = moved;
    *capacity = grown;
    return true;
}

uint64_t uf__host_space_take(uint64_t size_bytes, uint64_t alignment_bytes, int protection)
{
    uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE), length_bytes, all_bytes;
    if (!uf__round_up_checked(size_bytes, page_bytes, &length_bytes) ||
        !uf__add_checked(length_bytes, alignment_bytes, &all_bytes)) {
        return 0;
    }
    char *start =
        mmap(NULL, all_bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) {
        return 0;
    }
    uint64_t skipped_bytes = alignment_bytes - (uintptr_t)start % alignment_bytes; /* never 0 */
    (void)munmap(start, skipped_bytes);
    if (alignment_bytes != skipped_bytes) {
        (void)munmap(start + skipped_bytes + length_bytes, alignment_bytes - skipped_bytes);
    }
    return (uintptr_t)start + skipped_bytes;
}

static void space_give(uint64_t addr, uint64_t size_bytes)
{
    (void)munmap((void *)(uintptr_t)addr, size_bytes); /* the system rounds up to its pages */
}

/* Locks and counts; anything but UF_OK if the call is to fail. */
static uf_status begin(uf_host *host, uf_host_call call)
{
    (void)pthread_mutex_lock(&host->mutex);
    host->counts.call_counts[call]++;
    uf_host_failure *failure = &host->failures[call];
    if (failure->at_count == 0 || --failure->at_count != 0) {
        return UF_OK;
    }
    failure->at_count = failure->is_lasting ? 1 : 0;
    return failure->status;
}

static uf_status end(uf_host *host, uf_status status)
{
    (void)pthread_mutex_unlock(&host->mutex);
    return status;
}

static uf_status memory_info(void *context, uint64_t *free_bytes, uint64_t *total_bytes)
{
    uf_host *host = context;
    uf_status status = begin(host, UF_HOST_MEMORY_INFO);
    if (status == UF_OK) {
        *free_bytes = host->capacity_bytes - host->counts.in_use_bytes;
        *total_bytes = host->total_bytes;
    }
    return end(host, status);
}

static uf_status segment_create_locked(uf_host *host, uint64_t size_bytes, uint64_t *addr)
{
    if (size_bytes == 0) {
        return uf__host_fault_locked(host, "segment_create: of no bytes");
    }
    if (!uf__host_has_room_locked(host, size_bytes)) {
        return UF_ERROR_DEVICE_MEMORY;
    }
    uint32_t index = 0;
    while (index < host->segment_count && host->segments[index].size_bytes != 0) {
        index++;
    }
    if (!uf__host_list_reserve((void **)&host->segments, &host->segment_capacity,
                               sizeof *host->segments, index + 1)) {
        return UF_ERROR_DEVICE_MEMORY;
    }
    uint64_t start =
        uf__host_space_take(size_bytes, host->granularity_bytes, PROT_READ | PROT_WRITE);
    if (start == 0) {
        return UF_ERROR_DEVICE_MEMORY;
    }
    host->segments[index] = (uf_host_segment){.addr = start, .size_bytes = size_bytes};
    host->segment_count = host->segment_count > index + 1 ? host->segment_count : index + 1;
    host->counts.segment_count++;
    host->counts.in_use_bytes += size_bytes;
    *addr = start;
    return UF_OK;
}

static uf_status segment_create(void *context, uint64_t size_bytes, uint64_t stream, uint64_t *addr)
{
    (void)stream;
    uf_host *host = context;
    uf_status status = begin(host, UF_HOST_SEGMENT_CREATE);
    if (status == UF_OK) {
        status = segment_create_locked(host, size_bytes, addr);
    }
    return end(host, status);
}

static uf_status segment_destroy_locked(uf_host *host, uint64_t addr, uint64_t size_bytes)
{
    for (uint32_t i = 0; i < host->segment_count; i++) {
        uf_host_segment *segment = &host->segments[i];
        if (segment->addr == addr && segment->size_bytes == size_bytes && size_bytes != 0) {
            host->counts.wait_count++;
            uf__host_run_all_locked(host);
            space_give(addr, size_bytes);
            *segment = (uf_host_segment){0};
            host->counts.segment_count--;
            host->counts.in_use_bytes -= size_bytes;
            return UF_OK;
        }
    }
    return uf__host_fault_locked(host, "segment_destroy: no segment of %llu bytes at 0x%llx",
                                 (unsigned long long)size_bytes, (unsigned long long)addr);
}

static uf_status segment_destroy(void *context, uint64_t addr, uint64_t size_bytes)
{
    uf_host *host = context;
    uf_status status = begin(host, UF_HOST_SEGMENT_DESTROY);
    if (status == UF_OK) {
        status = segment_destroy_locked(host, addr, size_bytes);
    }
    return end(host, status);
}

static uf_status range_reserve(void *context, uint64_t size_bytes, uint64_t *addr)
{
    uf_host *host = context;
    uf_status status = begin(host, UF_HOST_RANGE_RESERVE);
    if (status == UF_OK) {
        status = uf__host_range_reserve_locked(host, size_bytes, addr);
    }
    return end(host, status);
}

static uf_status range_release(void *context, uint64_t addr, uint64_t size_bytes)
{
    uf_host *host = context;
    uf_status status = begin(host, UF_HOST_RANGE_RELEASE);
    if (status == UF_OK) {
        status = uf__host_range_release_locked(host, addr, size_bytes);
    }
    return end(host, status);
}

static uf_status pages_map(void *context, uint64_t addr, uint64_t size_bytes, uint64_t page_bytes)
{
    uf_host *host = context;
    uf_status status = begin(host, UF_HOST_PAGES_MAP);
    if (status == UF_OK) {
        status = uf__host_pages_map_locked(host, addr, size_bytes, page_bytes);
    }
    return end(host, status);
}

static uf_status pages_unmap(void *context, uint64_t addr, uint64_t size_bytes, uint64_t page_bytes)
{
    uf_host *host = context;
    uf_status status = begin(host, UF_HOST_PAGES_UNMAP);
    if (status == UF_OK) {
        status = uf__host_pages_unmap_locked(host, addr, size_bytes, page_bytes);
    }
    return end(host, status);
}

static uf_status stream_wait(void *context, uint64_t stream)
{
    uf_host *host = context;
    uf_status status = begin(host, UF_HOST_STREAM_WAIT);
    if (status == UF_OK) {
        host->counts.wait_count++;
        (void)uf__host_run_locked(host, stream, UINT64_MAX);
    }
    return end(host, status);
}

static uf_status event_record(void *context, uint64_t stream, uint64_t *event)
{
    uf_host *host = context;
    uf_status status = begin(host, UF_HOST_EVENT_RECORD);
    if (status == UF_OK) {
        status = uf__host_event_record_locked(host, stream, event);
    }
    return end(host, status);
}

static uf_status event_query(void *context, uint64_t event, bool *is_done)
{
    uf_host *host = context;
    uf_status status = begin(host, UF_HOST_EVENT_QUERY);
    if (status == UF_OK) {
        status = uf__host_event_query_locked(host, event, is_done);
    }
    return end(host, status);
}

static uf_status event_wait(void *context, uint64_t event)
{
    uf_host *host = context;
    uf_status status = begin(host, UF_HOST_EVENT_WAIT);
    if (status == UF_OK) {
        status = uf__host_event_wait_locked(host, event);
    }
    return end(host, status);
}

static uf_status handle_create(void *context, uint64_t size_bytes, uint64_t *handle)
{
    uf_host *host = context;
    uf_status status = begin(host, UF_HOST_HANDLE_CREATE);
    if (status == UF_OK) {
        status = uf__host_handle_create_locked(host, size_bytes, handle);
    }
    return end(host, status);
}

static uf_status handle_release(void *context, uint64_t handle, uint64_t size_bytes)
{
    uf_host *host = context;
    uf_status status = begin(host, UF_HOST_HANDLE_RELEASE);
    if (status == UF_OK) {
        status = uf__host_handle_release_locked(host, handle, size_bytes);
    }
    return end(host, status);
}

static uf_status handle_map(void *context, uint64_t addr, uint64_t handle, uint64_t size_bytes)
{
    uf_host *host = context;
    uf_status status = begin(host, UF_HOST_HANDLE_MAP);
    if (status == UF_OK) {
        status = uf__host_handle_map_locked(host, addr, handle, size_bytes);
    }
    return end(host, status);
}

static uf_status range_access(void *context, uint64_t addr, uint64_t size_bytes,
                              uint64_t handle_count)
{
    uf_host *host = context;
    uf_status status = begin(host, UF_HOST_RANGE_ACCESS);
    if (status == UF_OK) {
        status = uf__host_range_access_locked(host, addr, size_bytes, handle_count);
    }
    return end(host, status);
}

static uf_status range_unmap(void *context, uint64_t addr, uint64_t size_bytes,
                             uint64_t handle_count)
{
    uf_host *host = context;
    uf_status status = begin(host, UF_HOST_RANGE_UNMAP);
    if (status == UF_OK) {
        status = uf__host_range_unmap_locked(host, addr, size_bytes, handle_count);
    }
    return end(host, status);
}

static uf_status bytes_set(void *context, uint64_t addr, uint64_t size_bytes, uint8_t value,
                           uint64_t stream)
{
    uf_host *host = context;
    uf_status status = begin(host, UF_HOST_BYTES_SET);
    if (status == UF_OK) {
        status = uf__host_bytes_set_locked(host, addr, size_bytes, value, stream);
    }
    return end(host, status);
}

static uf_status bytes_compare(void *context, uint64_t addr, uint64_t size_bytes, uint8_t value,
                               uint64_t stream, uint64_t *other_count, uint64_t *first_offset)
{
    uf_host *host = context;
    uf_status status = begin(host, UF_HOST_BYTES_COMPARE);
    if (status == UF_OK) {
        host->counts.wait_count++;
        (void)uf__host_run_locked(host, stream, UINT64_MAX);
        status =
            uf__host_bytes_compare_locked(host, addr, size_bytes, value, other_count, first_offset);
    }
    return end(host, status);
}

bool uf__host_is_accessible_locked(const uf_host *host, uint64_t addr, uint64_t size_bytes)
{
    for (uint32_t i = 0; i < host->segment_count; i++) {
        const uf_host_segment *segment = &host->segments[i];
        if (addr >= segment->addr && addr - segment->addr < segment->size_bytes) {
            return size_bytes <= segment->size_bytes - (addr - segment->addr);
        }
    }
    return uf__host_range_is_accessible_locked(host, addr, size_bytes);
}

/* The options with the defaults filled in; false if one is outside its range. */
static bool options_take(const uf_host_options *given, uf_host_options *options)
{
    *options = (uf_host_options){0};
    if (given != NULL) {
        *options = *given;
    }
    options->total_bytes = options->total_bytes == 0 ? DEFAULT_TOTAL_BYTES : options->total_bytes;
    if (options->capacity_bytes == 0) {
        options->capacity_bytes = options->total_bytes;
    }
    if (options->granularity_bytes == 0) {
        options->granularity_bytes = DEFAULT_GRANULARITY_BYTES;
    }
    uint64_t granularity = options->granularity_bytes;
    return options->total_bytes <= SIZE_LIMIT_BYTES &&
           options->capacity_bytes <= SIZE_LIMIT_BYTES && granularity <= GRANULARITY_LIMIT_BYTES &&
           granularity >= (uint64_t)sysconf(_SC_PAGESIZE) && (granularity & (granularity - 1)) == 0;
}

static void device_init(uf_host *host)
{
    host->device = (uf_device){.struct_size_bytes = sizeof(uf_device),
                               .context = host,
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
                               .handle_create = handle_create,
                               .handle_release = handle_release,
                               .handle_map = handle_map,
                               .range_access = range_access,
                               .range_unmap = range_unmap,
                               .bytes_set = bytes_set,
                               .bytes_compare = bytes_compare,
                               .granularity_bytes = host->granularity_bytes};
}

uf_status uf_host_create(const uf_host_options *given, uf_host **host, uf_error *error)
{
    uf_host_options options;
    if (host == NULL || (given != NULL && given->struct_size_bytes < sizeof *given)) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "uf_host_create: host is NULL, or options.struct_size_bytes is not "
                             "sizeof(uf_host_options), %zu",
                             sizeof *given);
    }
    if (!options_take(given, &options)) {
        return uf__error_set(
            error, UF_ERROR_INVALID_ARGUMENT,
            "uf_host_create: total %llu, capacity %llu and granularity %llu bytes: "
            "sizes are at most 2^40, the granularity is a power of two from a page "
            "(%ld) to 2^30",
            (unsigned long long)options.total_bytes, (unsigned long long)options.capacity_bytes,
            (unsigned long long)options.granularity_bytes, sysconf(_SC_PAGESIZE));
    }
    uf_host *made = calloc(1, sizeof *made);
    if (made == NULL || pthread_mutex_init(&made->mutex, NULL) != 0) {
        free(made);
        return uf__error_set(error, UF_ERROR_HOST_MEMORY, "the host has no memory left");
    }
    made->file = memfd_create("unfrag", MFD_CLOEXEC);
    if (made->file < 0) {
        (void)pthread_mutex_destroy(&made->mutex);
        free(made);
        return uf__error_set(error, UF_ERROR_UNSUPPORTED,
                             "uf_host_create: the system makes no memory file (memfd_create)");
    }
    made->total_bytes = options.total_bytes;
    made->capacity_bytes = options.capacity_bytes;
    made->granularity_bytes = options.granularity_bytes;
    device_init(made);
    *host = made;
    return UF_OK;
}

void uf_host_destroy(uf_host *host)
{
    if (host == NULL) {
        return;
    }
    uf__host_streams_fini(host);
    uf__host_pages_fini(host);
    for (uint32_t i = 0; i < host->segment_count; i++) {
        if (host->segments[i].size_bytes != 0) {
            space_give(host->segments[i].addr, host->segments[i].size_bytes);
        }
    }
    free(host->segments);
    (void)close(host->file);
    (void)pthread_mutex_destroy(&host->mutex);
    free(host);
}

const uf_device *uf_host_device(const uf_host *host)
{
    return &host->device;
}

uint64_t uf_host_faults(uf_host *host, uf_error *last)
{
    (void)pthread_mutex_lock(&host->mutex);
    uint64_t count = host->fault_count;
    if (last != NULL && count != 0) {
        *last = host->fault;
    }
    (void)pthread_mutex_unlock(&host->mutex);
    return count;
}

void uf_host_fail(uf_host *host, uf_host_call call, uint64_t at_count, bool is_lasting,
                  uf_status status)
{
    (void)pthread_mutex_lock(&host->mutex);
    host->failures[call] =
        (uf_host_failure){.at_count = at_count, .is_lasting = is_lasting, .status = status};
    (void)pthread_mutex_unlock(&host->mutex);
}

void uf_host_counts_get(uf_host *host, uf_host_counts *counts)
{
    (void)pthread_mutex_lock(&host->mutex);
    *counts = host->counts;
    (void)pthread_mutex_unlock(&host->mutex);
}
