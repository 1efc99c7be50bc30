/* SPDX-License-Identifier: MIT
 *
 * Setting and comparing bytes of the host device, for debug mode. Guarded by uf_host.mutex. */
#include <string.h>

#include "device/bytes.h"
#include "device/host.h"

static void set(void *context, uint64_t addr, uint64_t size_bytes)
{
    memset((void *)(uintptr_t)addr, (int)(uintptr_t)context, size_bytes);
}

uf_status uf__host_bytes_set_locked(uf_host *host, uint64_t addr, uint64_t size_bytes,
                                    uint8_t value, uint64_t stream)
{
    const uf_host_job job = {
        .kernel = set, .context = (void *)(uintptr_t)value, .addr = addr, .size_bytes = size_bytes};
    uf_status status = uf__host_launch_locked(host, stream, &job);
    return status == UF_OK ? UF_OK : UF_ERROR_DEVICE;
}

uf_status uf__host_bytes_compare_locked(uf_host *host, uint64_t addr, uint64_t size_bytes,
                                        uint8_t value, uint64_t *other_count,
                                        uint64_t *first_offset)
{
    if (!uf__host_is_accessible_locked(host, addr, size_bytes)) {
        return uf__host_fault_locked(host, "bytes_compare: %llu bytes at 0x%llx are not accessible",
                                     (unsigned long long)size_bytes, (unsigned long long)addr);
    }
    *other_count =
        uf__bytes_others((const unsigned char *)(uintptr_t)addr, size_bytes, value, first_offset);
    return UF_OK;
}
