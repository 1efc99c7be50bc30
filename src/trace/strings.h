/* SPDX-License-Identifier: MIT
 *
 * A set of byte strings with dense ids in order of first meeting; the string of id i stands at
 * data + offsets[i], ends with a NUL, and is offsets[i + 1] - offsets[i] - 1 bytes long. Not
 * thread-safe. */
#ifndef UF_TRACE_STRINGS_H
#define UF_TRACE_STRINGS_H

#include "trace/array.h"

typedef struct uf__strings {
    char *data;
    uint64_t *offsets; /* count + 1 entries, NULL while count is 0 */
    uint32_t count;
    uint64_t data_capacity, offset_capacity;
    uint64_t seed; /* of the hash; ids do not depend on it */
    uf__index index;
} uf__strings;

/* Frees the index, and the strings unless someone else took data and offsets (set to NULL then). */
void uf__strings_fini(uf__strings *strings);

/* Sets *id to the string's id, a new one at the first meeting. Returns false when the host has no
 * memory left or the ids are used up. */
bool uf__strings_intern(uf__strings *strings, const char *text, size_t length, uint32_t *id);

static inline const char *uf__strings_text(const uf__strings *strings, uint32_t id)
{
    return strings->data + strings->offsets[id];
}

static inline size_t uf__strings_length(const uf__strings *strings, uint32_t id)
{
    return (size_t)(strings->offsets[id + 1] - strings->offsets[id] - 1);
}

#endif
