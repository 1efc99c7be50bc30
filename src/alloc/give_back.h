/* SPDX-License-Identifier: MIT
 *
 * Giving things back to the device for the last time, when a core ends: there is nobody left who
 * could do it later, so what fails is tried once more. False: the device keeps it. */
#ifndef UF_ALLOC_GIVE_BACK_H
#define UF_ALLOC_GIVE_BACK_H

#include <stdbool.h>

#include <unfrag/device.h>

enum { UF_GIVE_BACK_ATTEMPTS = 2 };

static inline bool uf__segment_give_back(const uf_device *device, uint64_t addr, uint64_t bytes)
{
    uf_status status = UF_ERROR_DEVICE;
    for (int i = 0; i < UF_GIVE_BACK_ATTEMPTS && status != UF_OK; i++) {
        status = device->segment_destroy(device->context, addr, bytes);
    }
    return status == UF_OK;
}

static inline bool uf__range_give_back(const uf_device *device, uint64_t addr, uint64_t bytes)
{
    uf_status status = UF_ERROR_DEVICE;
    for (int i = 0; i < UF_GIVE_BACK_ATTEMPTS && status != UF_OK; i++) {
        status = device->range_release(device->context, addr, bytes);
    }
    return status == UF_OK;
}

static inline bool uf__pages_give_back(const uf_device *device, uint64_t addr, uint64_t bytes,
                                       uint64_t page_bytes)
{
    uf_status status = UF_ERROR_DEVICE;
    for (int i = 0; i < UF_GIVE_BACK_ATTEMPTS && status != UF_OK; i++) {
        status = device->pages_unmap(device->context, addr, bytes, page_bytes);
    }
    return status == UF_OK;
}

static inline bool uf__mapping_give_back(const uf_device *device, uint64_t addr, uint64_t bytes,
                                         uint64_t handle_count)
{
    uf_status status = UF_ERROR_DEVICE;
    for (int i = 0; i < UF_GIVE_BACK_ATTEMPTS && status != UF_OK; i++) {
        status = device->range_unmap(device->context, addr, bytes, handle_count);
    }
    return status == UF_OK;
}

static inline bool uf__handle_give_back(const uf_device *device, uint64_t handle, uint64_t bytes)
{
    uf_status status = UF_ERROR_DEVICE;
    for (int i = 0; i < UF_GIVE_BACK_ATTEMPTS && status != UF_OK; i++) {
        status = device->handle_release(device->context, handle, bytes);
    }
    return status == UF_OK;
}

/* Work may still be queued that uses what is to be given back. */
static inline bool uf__stream_wait_last(const uf_device *device, uint64_t stream)
{
    uf_status status = UF_ERROR_DEVICE;
    for (int i = 0; i < UF_GIVE_BACK_ATTEMPTS && status != UF_OK; i++) {
        status = device->stream_wait(device->context, stream);
    }
    return status == UF_OK;
}

#endif
