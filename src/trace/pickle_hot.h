/* SPDX-License-Identifier: MIT
 *
 * Decoding of the frequent opcodes' operands and of simple memo entries, for the loop (pickle.c)
 * and for whole dictionaries (pickle_shape.c). Each function returns false where the general way of
 * pickle_data.c is needed, and has changed nothing then that the general way would not change. The
 * caller has UF__PICKLE_HOT_BYTES before the end of the input at hand. */
#ifndef UF_TRACE_PICKLE_HOT_H
#define UF_TRACE_PICKLE_HOT_H

#include <endian.h>

#include "trace/pickle_machine.h"
#include "trace/pickle_opcodes.h"

/* So many bytes at hand, and a frequent opcode is decoded without further checks. */
#define UF__PICKLE_HOT_BYTES 16

/* A frequent short string, or UF__VALUE_NOTHING: those of up to 8 bytes are looked up as a number.
 * Reads 8 bytes at text, of which only length need be there. */
static inline uf__value uf__hot_cached_string(uf__pickle *machine, const uint8_t *text,
                                              uint32_t length, uf__short_string **slot)
{
    uint64_t bytes;
    memcpy(&bytes, text, 8);
    bytes = le64toh(bytes);
    bytes &= length == 0 ? 0 : UINT64_MAX >> (64 - 8 * length);
    uint64_t hash = (bytes ^ length) * UINT64_C(0x9e3779b97f4a7c15);
    *slot = &machine->cache[hash >> 55];
    if ((*slot)->bytes == bytes && (*slot)->length == length)
        return uf__value_make(UF__TAG_STRING, (*slot)->id);
    (*slot)->bytes = bytes;
    (*slot)->length = UF_NONE;
    return UF__VALUE_NOTHING;
}

/* SHORT_BINUNICODE at text[-1], its length. */
static inline bool uf__hot_string(uf__pickle *machine, const uint8_t *text, uf__value *value)
{
    uint32_t length = text[-1];
    if (length > machine->input->limit - text)
        return false;
    if (length > 8)
        return uf__pickle_string(machine, text, length, value, NULL) == UF_OK;
    uf__short_string *slot;
    *value = uf__hot_cached_string(machine, text, length, &slot);
    if (*value != UF__VALUE_NOTHING)
        return true;
    if (uf__pickle_string(machine, text, length, value, NULL) != UF_OK)
        return false;
    slot->length = length;
    slot->id = (uint32_t)uf__value_payload(*value);
    return true;
}

static inline int64_t uf__hot_i32(const uint8_t *bytes)
{
    uint32_t word;
    memcpy(&word, bytes, 4);
    return (int32_t)le32toh(word);
}

/* LONG1 of up to 8 bytes at bytes[-1]. */
static inline bool uf__hot_long(const uint8_t *bytes, uf__value *value)
{
    unsigned length = bytes[-1];
    if (length == 0 || length > 8)
        return false;
    uint64_t word;
    memcpy(&word, bytes, 8);
    int64_t number = (int64_t)(le64toh(word) << (64 - 8 * length)) >> (64 - 8 * length);
    *value = (uint64_t)number << UF__VALUE_TAG_BITS;
    return (int64_t)*value >> UF__VALUE_TAG_BITS == number;
}

/* The memo entry at index, of count dense ones, unless it is a container, which needs care. */
static inline bool uf__hot_recall(const uf__store *store, uint64_t count, uint64_t index,
                                  uf__value *value)
{
    if (index >= count)
        return false;
    uint32_t packed = store->memo[index];
    if (packed == UF__MEMO_NOTHING || uf__memo_is_container(packed))
        return false;
    *value = uf__memo_unpack(store, packed);
    return true;
}

#endif
