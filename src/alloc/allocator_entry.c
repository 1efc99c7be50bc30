/* SPDX-License-Identifier: MIT
 *
 * What public calls share: the caller's structs, and the texts of failures that no more is known
 * about than their status. */
#include "alloc/allocator_parts.h"

#include <string.h>

#include "base/error.h"

uf_status uf__explain_refusal(const uf_allocator *allocator, uf_error *error)
{
    if (allocator == NULL) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT, "the allocator is NULL");
    }
    return uf__error_set(error, UF_ERROR_BUSY,
                         "an allocator was called from inside its own event callback; note what is "
                         "needed and call after the callback has returned");
}

uf_status uf__explain_host_memory(uf_error *error, const char *what)
{
    return uf__error_set(error, UF_ERROR_HOST_MEMORY, "%s: the host has no memory left", what);
}

uf_status uf__explain(uf_error *error, uf_status status, const char *what)
{
    switch (status) {
    case UF_OK:
        return UF_OK;
    case UF_ERROR_HOST_MEMORY:
        return uf__explain_host_memory(error, what);
    case UF_ERROR_DEVICE:
    case UF_ERROR_DEVICE_MEMORY:
        return uf__error_set(error, status,
                             "%s: a device call failed (%s); the device may be lost or in a failed "
                             "state",
                             what, uf_status_name(status));
    default:
        return uf__error_set(error, status, "%s: %s", what, uf_status_text(status));
    }
}

uf_status uf__explain_device(const uf_device *device, uf_error *error, uf_status status,
                             const char *what)
{
    char text[400] = "";
    if ((status == UF_ERROR_DEVICE || status == UF_ERROR_DEVICE_MEMORY) &&
        device->failure_text != NULL) {
        device->failure_text(device->context, text, sizeof text);
    }
    return text[0] != '\0' ? uf__error_set(error, status, "%s: %s", what, text)
                           : uf__explain(error, status, what);
}

bool uf__take_struct(void *own, size_t own_bytes, const void *given)
{
    size_t given_bytes;
    memcpy(&given_bytes, given, sizeof given_bytes);
    memset(own, 0, own_bytes);
    if (given_bytes < sizeof given_bytes) {
        return false;
    }
    memcpy(own, given, given_bytes < own_bytes ? given_bytes : own_bytes);
    for (size_t i = own_bytes; i < given_bytes; i++) {
        if (((const char *)given)[i] != 0) {
            return false;
        }
    }
    return true;
}

void uf__aside_free_locked(uf_allocator *allocator)
{
    uf_aside *aside = &allocator->aside;
    uint32_t block;
    (void)uf__addrmap_take(&allocator->blocks, aside->addr, &block);
    uf__core_shelve_aside(&allocator->core, aside->block);
    aside->is_freed = false;
}
