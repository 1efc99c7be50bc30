/* SPDX-License-Identifier: MIT
 *
 * Growing arrays and hash indexes for the readers: the one place where their sizes are computed.
 * Knows nothing of what is stored. Not thread-safe. */
#ifndef UF_TRACE_ARRAY_H
#define UF_TRACE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <unfrag/trace.h>

/* Makes room for need_count items of item_bytes. Returns the array, perhaps moved, and sets
 * *capacity; NULL when the host has no memory left, and then the old array is still valid. Doubles,
 * so that appending is linear; pages that nothing was written to are not resident. */
void *uf__array_grow(void *items, uint64_t *capacity, uint64_t need_count, size_t item_bytes);

/* Gives back what lies beyond count items. Returns the array, perhaps moved; NULL for count 0. */
void *uf__array_trim(void *items, uint64_t count, size_t item_bytes);

/* Open addressing from a 32-bit hash to ids: each slot holds the hash above the id; UF_NONE in the
 * low half marks an empty slot. Never more than half full. */
typedef struct uf__index {
    uint64_t *slots;
    uint64_t slot_mask; /* slot count - 1 */
    uint32_t id_count;
} uf__index;

void uf__index_fini(uf__index *index);

/* Adds an id that is not in the index yet. Returns false when the host has no memory left. */
bool uf__index_add(uf__index *index, uint32_t hash, uint32_t id);

/* Where to begin looking for a hash; pass it on to uf__index_next. */
static inline uint64_t uf__index_begin(const uf__index *index, uint32_t hash)
{
    return hash & index->slot_mask;
}

/* Returns the next id whose stored hash fits and moves *place on; UF_NONE when there is none. The
 * caller compares the contents. */
static inline uint32_t uf__index_next(const uf__index *index, uint32_t hash, uint64_t *place)
{
    if (index->slots == NULL)
        return UF_NONE;
    for (;;) {
        uint64_t slot = index->slots[*place];
        *place = (*place + 1) & index->slot_mask;
        if ((uint32_t)slot == UF_NONE || (slot >> 32) == hash)
            return (uint32_t)slot;
    }
}

/* Mixes 64 bits so that each input bit reaches each output bit. */
static inline uint64_t uf__hash_mix(uint64_t value)
{
    value ^= value >> 32;
    value *= UINT64_C(0xd6e8feb86659fd93);
    value ^= value >> 32;
    value *= UINT64_C(0xd6e8feb86659fd93);
    return value ^ (value >> 32);
}

/* Hash of a byte string under a seed. */
static inline uint32_t uf__hash_bytes(const void *data, size_t size_bytes, uint64_t seed)
{
    const unsigned char *bytes = data;
    uint64_t hash = seed ^ (size_bytes * UINT64_C(0x9e3779b97f4a7c15));
    uint64_t word;
    for (; size_bytes >= 8; bytes += 8, size_bytes -= 8) {
        memcpy(&word, bytes, 8);
        hash = uf__hash_mix(hash ^ word);
    }
    word = 0;
    if (size_bytes > 0)
        memcpy(&word, bytes, size_bytes);
    return (uint32_t)uf__hash_mix(hash ^ word);
}

#endif
