/* SPDX-License-Identifier: MIT
 *
 * Setting and comparing bytes of a GPU's memory, for debug mode. What is compared is copied to the
 * host in chunks: no kernel of ours has to be brought along. */
#include "device/cuda.h"

#include <stdlib.h>

#include "device/bytes.h"

static const uint64_t CHUNK_BYTES = UINT64_C(4) << 20;

uf_status uf__cuda_bytes_set(void *context, uint64_t addr, uint64_t size_bytes, uint8_t value,
                             uint64_t stream)
{
    uf_cuda *cuda = context;
    void *handle = (void *)(uintptr_t)stream;
    uf_cuda_visit visit;
    uf_status status = uf__cuda_enter(cuda, &visit);
    if (status != UF_OK) {
        return status;
    }
    status = uf__cuda_check_capture(cuda, handle);
    if (status == UF_OK) {
        status = uf__cuda_judge(cuda, "cuMemsetD8Async", size_bytes,
                                cuda->driver.memset_d8_async(addr, value, size_bytes, handle));
    }
    uf__cuda_leave(cuda, &visit);
    return status == UF_ERROR_DEVICE_MEMORY ? UF_ERROR_DEVICE : status;
}

/* Copies and waits. *is_idle: whether nothing can come into the buffer any more. */
static uf_status copy_back(uf_cuda *cuda, void *buffer, uint64_t addr, uint64_t size_bytes,
                           void *stream, bool *is_idle)
{
    const uf_cuda_driver *driver = &cuda->driver;
    uf_status copied = uf__cuda_judge(cuda, "cuMemcpyDtoHAsync", size_bytes,
                                      driver->memcpy_dtoh_async(buffer, addr, size_bytes, stream));
    *is_idle = copied != UF_OK;
    for (int i = 0; i < 2 && !*is_idle; i++) {
        *is_idle = uf__cuda_judge(cuda, "cuStreamSynchronize", 0,
                                  driver->stream_synchronize(stream)) == UF_OK;
    }
    return copied == UF_OK && !*is_idle ? UF_ERROR_DEVICE : copied;
}

/* What a copy may still write to lives as long as the device. */
static void let_go(uf_cuda *cuda, uf_cuda_buffer *buffer, bool is_idle)
{
    if (is_idle) {
        free(buffer);
        return;
    }
    (void)pthread_mutex_lock(&cuda->mutex);
    buffer->next = cuda->buffers;
    cuda->buffers = buffer;
    (void)pthread_mutex_unlock(&cuda->mutex);
}

static uf_status compare(uf_cuda *cuda, uint64_t addr, uint64_t size_bytes, uint8_t value,
                         void *stream, uint64_t *other_count, uint64_t *first_offset)
{
    uint64_t chunk_bytes = size_bytes < CHUNK_BYTES ? size_bytes : CHUNK_BYTES;
    uint64_t count = 0, first = 0;
    bool is_idle = true;
    uf_cuda_buffer *buffer = malloc(sizeof *buffer + chunk_bytes);
    uf_status status = buffer == NULL ? UF_ERROR_DEVICE : UF_OK;
    for (uint64_t at = 0; at < size_bytes && status == UF_OK; at += chunk_bytes) {
        uint64_t rest_bytes = size_bytes - at, offset = 0;
        uint64_t bytes = rest_bytes < chunk_bytes ? rest_bytes : chunk_bytes;
        status = copy_back(cuda, buffer->bytes, addr + at, bytes, stream, &is_idle);
        if (status == UF_OK) {
            uint64_t others = uf__bytes_others(buffer->bytes, bytes, value, &offset);
            first = count == 0 && others != 0 ? at + offset : first;
            count += others;
        }
    }
    let_go(cuda, buffer, is_idle);
    if (status == UF_OK) {
        *other_count = count;
        *first_offset = first;
    }
    return status;
}

uf_status uf__cuda_bytes_compare(void *context, uint64_t addr, uint64_t size_bytes, uint8_t value,
                                 uint64_t stream, uint64_t *other_count, uint64_t *first_offset)
{
    uf_cuda *cuda = context;
    void *handle = (void *)(uintptr_t)stream;
    uf_cuda_visit visit;
    uf_status status = uf__cuda_enter(cuda, &visit);
    if (status != UF_OK) {
        return status;
    }
    status = uf__cuda_check_capture(cuda, handle);
    if (status == UF_OK) {
        atomic_fetch_add_explicit(&cuda->stream_wait_count, 1, memory_order_relaxed);
        status = compare(cuda, addr, size_bytes, value, handle, other_count, first_offset);
    }
    uf__cuda_leave(cuda, &visit);
    return status == UF_ERROR_DEVICE_MEMORY ? UF_ERROR_DEVICE : status;
}
