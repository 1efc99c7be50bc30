/* SPDX-License-Identifier: MIT
 *
 * Interned byte strings; see strings.h. */
#include "trace/strings.h"

#include <stdlib.h>

void uf__strings_fini(uf__strings *strings)
{
    uf__index_fini(&strings->index);
    free(strings->data);
    free(strings->offsets);
    memset(strings, 0, sizeof *strings);
}

static bool append(uf__strings *strings, const char *text, size_t length)
{
    if (strings->count >= UF_NONE - 1 || length > (size_t)PTRDIFF_MAX / 4)
        return false;
    uint64_t begin = strings->count == 0 ? 0 : strings->offsets[strings->count];
    if (strings->count + UINT64_C(2) > strings->offset_capacity) {
        uint64_t *offsets = uf__array_grow(strings->offsets, &strings->offset_capacity,
                                           strings->count + UINT64_C(2), sizeof *offsets);
        if (offsets == NULL)
            return false;
        strings->offsets = offsets;
    }
    if (begin + length + 1 > strings->data_capacity) {
        char *data = uf__array_grow(strings->data, &strings->data_capacity, begin + length + 1, 1);
        if (data == NULL)
            return false;
        strings->data = data;
    }
    if (length > 0)
        memcpy(strings->data + begin, text, length);
    strings->data[begin + length] = '\0';
    strings->offsets[strings->count] = begin;
    strings->offsets[strings->count + 1] = begin + length + 1;
    return true;
}

bool uf__strings_intern(uf__strings *strings, const char *text, size_t length, uint32_t *id)
{
    uint32_t hash = uf__hash_bytes(text, length, strings->seed);
    uint64_t place = uf__index_begin(&strings->index, hash);
    uint32_t found;
    while ((found = uf__index_next(&strings->index, hash, &place)) != UF_NONE) {
        if (uf__strings_length(strings, found) == length &&
            (length == 0 || memcmp(uf__strings_text(strings, found), text, length) == 0)) {
            *id = found;
            return true;
        }
    }
    if (!append(strings, text, length) || !uf__index_add(&strings->index, hash, strings->count))
        return false;
    *id = strings->count++;
    return true;
}
