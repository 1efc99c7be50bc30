/* SPDX-License-Identifier: MIT
 *
 * How long the UTF-8 character is that begins at a byte. Pure. */
#ifndef UF_BASE_UTF8_H
#define UF_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* text: at least one byte; length: of what is there. has_surrogates: whether they pass, as with
 * Python's "surrogatepass". Returns 0 where no character begins, or it is cut off. */
static inline size_t uf__utf8_length(const unsigned char *text, size_t length, bool has_surrogates)
{
    unsigned char first = text[0];
    if (first < 0x80) {
        return 1;
    }
    size_t count = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || count > length) {
        return 0;
    }
    for (size_t i = 1; i < count; i++) {
        if ((text[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    bool is_overlong = (first == 0xe0 && text[1] < 0xa0) || (first == 0xf0 && text[1] < 0x90);
    bool is_surrogate = first == 0xed && text[1] >= 0xa0 && !has_surrogates;
    bool is_too_large = first == 0xf4 && text[1] >= 0x90;
    return is_overlong || is_surrogate || is_too_large ? 0 : count;
}

#endif
