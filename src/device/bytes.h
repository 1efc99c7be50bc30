/* SPDX-License-Identifier: MIT
 *
 * Comparing bytes of host memory with one value. Pure. */
#ifndef UF_DEVICE_BYTES_H
#define UF_DEVICE_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* How many bytes are another value; *first receives the offset of the first one, if there is any.
 */
static inline uint64_t uf__bytes_others(const unsigned char *bytes, size_t count, uint8_t value,
                                        uint64_t *first)
{
    uint64_t other_count = 0;
    if (count == 0 || (bytes[0] == value && memcmp(bytes, bytes + 1, count - 1) == 0)) {
        return 0;
    }
    for (size_t i = count; i-- > 0;) {
        if (bytes[i] != value) {
            other_count++;
            *first = i;
        }
    }
    return other_count;
}

#endif
