/* SPDX-License-Identifier: MIT
 *
 * Memory of the cuda device: plain segments, address space, handles, and pages. A page of pages_map
 * is a handle that is released as soon as it is mapped: the driver keeps its memory until it is
 * unmapped, so nothing has to be remembered. What the driver refuses to take back is kept and
 * offered to it again (leftovers, guarded by uf_cuda.mutex). */
#include "device/cuda.h"

#include <stdlib.h>

uf_status uf__cuda_memory_info(void *context, uint64_t *free_bytes, uint64_t *total_bytes)
{
    uf_cuda *cuda = context;
    size_t available_bytes = 0, all_bytes = 0;
    uf_cuda_visit visit;
    uf_status status = uf__cuda_enter(cuda, &visit);
    if (status != UF_OK) {
        return status;
    }
    status = uf__cuda_judge(cuda, "cuMemGetInfo", 0,
                            cuda->driver.mem_get_info(&available_bytes, &all_bytes));
    uf__cuda_leave(cuda, &visit);
    if (status != UF_OK) {
        return UF_ERROR_DEVICE;
    }
    *free_bytes = available_bytes;
    *total_bytes = all_bytes;
    return UF_OK;
}

uf_status uf__cuda_segment_create(void *context, uint64_t size_bytes, uint64_t stream,
                                  uint64_t *addr)
{
    uf_cuda *cuda = context;
    uint64_t made = 0;
    uf_cuda_visit visit;
    (void)stream; /* any stream may use it at once */
    uf_status status = uf__cuda_enter(cuda, &visit);
    if (status != UF_OK) {
        return status;
    }
    uf__cuda_leftovers_offer(cuda);
    status =
        uf__cuda_judge(cuda, "cuMemAlloc", size_bytes, cuda->driver.mem_alloc(&made, size_bytes));
    uf__cuda_leave(cuda, &visit);
    if (status == UF_OK) {
        *addr = made;
    }
    return status;
}

/* After the driver has ended there is nothing left to give back. */
static uf_status give_back_refused(const uf_cuda *cuda, uf_status status)
{
    if (status == UF_OK || uf__cuda_is_over(cuda)) {
        return UF_OK;
    }
    return UF_ERROR_DEVICE;
}

uf_status uf__cuda_segment_destroy(void *context, uint64_t addr, uint64_t size_bytes)
{
    uf_cuda *cuda = context;
    uf_cuda_visit visit;
    uf_status status = uf__cuda_enter(cuda, &visit);
    if (status == UF_OK) {
        atomic_fetch_add_explicit(&cuda->device_sync_count, 1, memory_order_relaxed);
        status = uf__cuda_judge(cuda, "cuMemFree", size_bytes, cuda->driver.mem_free(addr));
        uf__cuda_leave(cuda, &visit);
    }
    return give_back_refused(cuda, status);
}

uf_status uf__cuda_range_reserve(void *context, uint64_t size_bytes, uint64_t *addr)
{
    uf_cuda *cuda = context;
    uint64_t reserved = 0;
    uf_cuda_visit visit;
    uf_status status = uf__cuda_enter(cuda, &visit);
    if (status != UF_OK) {
        return status;
    }
    status = uf__cuda_judge(cuda, "cuMemAddressReserve", size_bytes,
                            cuda->driver.mem_address_reserve(&reserved, size_bytes,
                                                             cuda->info.granularity_bytes, 0, 0));
    uf__cuda_leave(cuda, &visit);
    if (status == UF_OK) {
        *addr = reserved;
    }
    return status;
}

uf_status uf__cuda_range_release(void *context, uint64_t addr, uint64_t size_bytes)
{
    uf_cuda *cuda = context;
    uf_cuda_visit visit;
    uf_status status = uf__cuda_enter(cuda, &visit);
    if (status == UF_OK) {
        uf__cuda_leftovers_offer(cuda);
        status = uf__cuda_judge(cuda, "cuMemAddressFree", size_bytes,
                                cuda->driver.mem_address_free(addr, size_bytes));
        uf__cuda_leave(cuda, &visit);
    }
    return give_back_refused(cuda, status);
}

/* Makes room to remember `count` more leftovers. */
static bool leftovers_reserve(uf_cuda *cuda, uint64_t count)
{
    bool has_room = true;
    (void)pthread_mutex_lock(&cuda->mutex);
    uint64_t needed = cuda->leftover_count + count;
    if (needed > cuda->leftover_capacity) {
        uint64_t grown = needed * 2;
        uf_cuda_leftover *moved =
            grown > UINT32_MAX ? NULL : realloc(cuda->leftovers, grown * sizeof *moved);
        has_room = moved != NULL;
        if (has_room) {
            cuda->leftovers = moved;
            cuda->leftover_capacity = (uint32_t)grown;
        }
    }
    (void)pthread_mutex_unlock(&cuda->mutex);
    return has_room;
}

static void leftovers_add(uf_cuda *cuda, uf_cuda_leftover leftover)
{
    (void)pthread_mutex_lock(&cuda->mutex);
    if (cuda->leftover_count < cuda->leftover_capacity) {
        cuda->leftovers[cuda->leftover_count++] = leftover;
    }
    atomic_store(&cuda->leftover_hint, cuda->leftover_count);
    (void)pthread_mutex_unlock(&cuda->mutex);
}

void uf__cuda_leftover_keep(uf_cuda *cuda, uf_cuda_leftover leftover)
{
    if (leftovers_reserve(cuda, 1)) {
        leftovers_add(cuda, leftover);
    }
}

void uf__cuda_leftovers_offer(uf_cuda *cuda)
{
    uint32_t count = atomic_load_explicit(&cuda->leftover_hint, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++) {
        (void)pthread_mutex_lock(&cuda->mutex);
        bool is_there = cuda->leftover_count != 0;
        uf_cuda_leftover leftover = {0};
        if (is_there) {
            leftover = cuda->leftovers[0]; /* the oldest; one that is refused again goes last */
            cuda->leftovers[0] = cuda->leftovers[--cuda->leftover_count];
        }
        (void)pthread_mutex_unlock(&cuda->mutex);
        if (!is_there) {
            break;
        }
        uf_status status =
            leftover.handle != 0
                ? uf__cuda_judge(cuda, "cuMemRelease", leftover.size_bytes,
                                 cuda->driver.mem_release(leftover.handle))
                : uf__cuda_judge(cuda, "cuMemUnmap", leftover.size_bytes,
                                 cuda->driver.mem_unmap(leftover.addr, leftover.size_bytes));
        if (status != UF_OK) {
            leftovers_add(cuda, leftover);
        }
    }
    (void)pthread_mutex_lock(&cuda->mutex);
    atomic_store(&cuda->leftover_hint, cuda->leftover_count);
    (void)pthread_mutex_unlock(&cuda->mutex);
}

static uf_status access_allow(uf_cuda *cuda, uint64_t addr, uint64_t size_bytes)
{
    return uf__cuda_judge(
        cuda, "cuMemSetAccess", size_bytes,
        cuda->driver.mem_set_access(addr, size_bytes, cuda->access, cuda->access_count));
}

/* Creates one page and maps it; its handle is released in any case. */
static uf_status page_map(uf_cuda *cuda, uint64_t addr, uint64_t page_bytes)
{
    uint64_t handle = 0;
    uf_status status =
        uf__cuda_judge(cuda, "cuMemCreate", page_bytes,
                       cuda->driver.mem_create(&handle, page_bytes, &cuda->allocation, 0));
    if (status != UF_OK) {
        return status;
    }
    status = uf__cuda_judge(cuda, "cuMemMap", page_bytes,
                            cuda->driver.mem_map(addr, page_bytes, 0, handle, 0));
    if (uf__cuda_judge(cuda, "cuMemRelease", page_bytes, cuda->driver.mem_release(handle)) !=
        UF_OK) {
        leftovers_add(cuda, (uf_cuda_leftover){.handle = handle, .size_bytes = page_bytes});
    }
    return status;
}

static uf_status pages_map_all(uf_cuda *cuda, uint64_t addr, uint64_t size_bytes,
                               uint64_t page_bytes)
{
    uint64_t mapped_bytes = 0;
    uf_status status = UF_OK;
    while (status == UF_OK && mapped_bytes < size_bytes) {
        status = page_map(cuda, addr + mapped_bytes, page_bytes);
        mapped_bytes += status == UF_OK ? page_bytes : 0;
    }
    if (status == UF_OK) {
        status = access_allow(cuda, addr, size_bytes);
    }
    if (status != UF_OK && mapped_bytes != 0 &&
        uf__cuda_judge(cuda, "cuMemUnmap", mapped_bytes,
                       cuda->driver.mem_unmap(addr, mapped_bytes)) != UF_OK) {
        leftovers_add(cuda, (uf_cuda_leftover){.addr = addr, .size_bytes = mapped_bytes});
    }
    return status;
}

uf_status uf__cuda_pages_map(void *context, uint64_t addr, uint64_t size_bytes, uint64_t page_bytes)
{
    uf_cuda *cuda = context;
    uf_cuda_visit visit;
    if (page_bytes == 0 || size_bytes % page_bytes != 0 ||
        !leftovers_reserve(cuda, size_bytes / page_bytes + 1)) {
        return UF_ERROR_DEVICE;
    }
    uf_status status = uf__cuda_enter(cuda, &visit);
    if (status != UF_OK) {
        return status;
    }
    uf__cuda_leftovers_offer(cuda);
    status = pages_map_all(cuda, addr, size_bytes, page_bytes);
    uf__cuda_leave(cuda, &visit);
    return status;
}

uf_status uf__cuda_range_unmap(void *context, uint64_t addr, uint64_t size_bytes,
                               uint64_t handle_count)
{
    uf_cuda *cuda = context;
    uf_cuda_visit visit;
    (void)handle_count;
    uf_status status = uf__cuda_enter(cuda, &visit);
    if (status == UF_OK) {
        status = uf__cuda_judge(cuda, "cuMemUnmap", size_bytes,
                                cuda->driver.mem_unmap(addr, size_bytes));
        uf__cuda_leave(cuda, &visit);
    }
    return give_back_refused(cuda, status);
}

uf_status uf__cuda_pages_unmap(void *context, uint64_t addr, uint64_t size_bytes,
                               uint64_t page_bytes)
{
    return uf__cuda_range_unmap(context, addr, size_bytes, size_bytes / page_bytes);
}

uf_status uf__cuda_handle_create(void *context, uint64_t size_bytes, uint64_t *handle)
{
    uf_cuda *cuda = context;
    uint64_t made = 0;
    uf_cuda_visit visit;
    uf_status status = uf__cuda_enter(cuda, &visit);
    if (status != UF_OK) {
        return status;
    }
    uf__cuda_leftovers_offer(cuda);
    status = uf__cuda_judge(cuda, "cuMemCreate", size_bytes,
                            cuda->driver.mem_create(&made, size_bytes, &cuda->allocation, 0));
    uf__cuda_leave(cuda, &visit);
    if (status == UF_OK) {
        *handle = made;
    }
    return status;
}

uf_status uf__cuda_handle_release(void *context, uint64_t handle, uint64_t size_bytes)
{
    uf_cuda *cuda = context;
    uf_cuda_visit visit;
    uf_status status = uf__cuda_enter(cuda, &visit);
    if (status == UF_OK) {
        status = uf__cuda_judge(cuda, "cuMemRelease", size_bytes, cuda->driver.mem_release(handle));
        uf__cuda_leave(cuda, &visit);
    }
    return give_back_refused(cuda, status);
}

uf_status uf__cuda_handle_map(void *context, uint64_t addr, uint64_t handle, uint64_t size_bytes)
{
    uf_cuda *cuda = context;
    uf_cuda_visit visit;
    uf_status status = uf__cuda_enter(cuda, &visit);
    if (status != UF_OK) {
        return status;
    }
    status = uf__cuda_judge(cuda, "cuMemMap", size_bytes,
                            cuda->driver.mem_map(addr, size_bytes, 0, handle, 0));
    uf__cuda_leave(cuda, &visit);
    return status;
}

uf_status uf__cuda_range_access(void *context, uint64_t addr, uint64_t size_bytes,
                                uint64_t handle_count)
{
    uf_cuda *cuda = context;
    uf_cuda_visit visit;
    (void)handle_count;
    uf_status status = uf__cuda_enter(cuda, &visit);
    if (status != UF_OK) {
        return status;
    }
    status = access_allow(cuda, addr, size_bytes);
    uf__cuda_leave(cuda, &visit);
    return status;
}
