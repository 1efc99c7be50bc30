/* SPDX-License-Identifier: MIT
 *
 * The values of a pickle, each one 64-bit word, and the store of what does not fit into a word:
 * strings, wide numbers, lists and dictionaries, and the memo. Knows nothing of opcodes and of
 * snapshots. Not thread-safe: one store belongs to one reader.
 *
 *      63                                     4 3    0
 *     +----------------------------------------+------+
 *     | payload                                | tag  |
 *     +----------------------------------------+------+
 *
 * The words of lists and dictionaries name an object of the store. Records are made by a reducer
 * (pickle.h) out of dictionaries and lists, so that the object can be given up:
 *
 *     dict {"action": ..., "addr": ...}  -->  record (kind, index)
 *
 * In a list, records with consecutive indexes are kept as one record and one run, so that a list
 * of a million events is two words.
 *
 * A container is open while it is being filled and sealed once it has been put into another one;
 * from then on it cannot change. That is how every pickler writes data without cycles. */
#ifndef UF_TRACE_VALUE_H
#define UF_TRACE_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/array.h"
#include "trace/strings.h"

typedef uint64_t uf__value;

#define UF__VALUE_TAG_BITS 4
#define UF__VALUE_TAG_MASK UINT64_C(15)
#define UF__VALUE_PAIR_BITS 30 /* of each number of a pair; the second one is the higher */

typedef enum uf__tag {
    UF__TAG_INT,    /* payload: signed, 60 bits */
    UF__TAG_STRING, /* payload: id in store->strings */
    UF__TAG_CONST,  /* payload: one of the constants below */
    UF__TAG_WIDE,   /* payload: index in store->wides, an integer of up to 128 bits */
    UF__TAG_FLOAT,  /* payload: index in store->wides */
    UF__TAG_PAIR,   /* payload: a tuple of two integers of 0 .. 2^30 - 1 */
    UF__TAG_RECORD, /* payload: kind (4 bits) below the index */
    UF__TAG_RUN,    /* only inside lists: so many more records with the next indexes */
    UF__TAG_LIST,   /* payload: object; a tuple is a list that was sealed from the start */
    UF__TAG_DICT    /* payload: object */
} uf__tag;

#define UF__CONST(number) (((uf__value)(number) << UF__VALUE_TAG_BITS) | UF__TAG_CONST)
#define UF__VALUE_NOTHING UF__CONST(0) /* no value at all; never in a pickle */
#define UF__VALUE_NONE UF__CONST(1)
#define UF__VALUE_FALSE UF__CONST(2)
#define UF__VALUE_TRUE UF__CONST(3)
#define UF__VALUE_EMPTY UF__CONST(4)  /* an empty list or tuple that stays empty */
#define UF__VALUE_HUGE UF__CONST(5)   /* an integer of more than 16 bytes */
#define UF__VALUE_OPAQUE UF__CONST(6) /* bytes and sets: accepted, contents not kept */

#define UF__RECORD_STEP (UINT64_C(1) << (UF__VALUE_TAG_BITS + 4)) /* from index to index + 1 */

static inline uf__tag uf__value_tag(uf__value value)
{
    return (uf__tag)(value & UF__VALUE_TAG_MASK);
}

static inline uint64_t uf__value_payload(uf__value value)
{
    return value >> UF__VALUE_TAG_BITS;
}

static inline uf__value uf__value_make(uf__tag tag, uint64_t payload)
{
    return (payload << UF__VALUE_TAG_BITS) | (uf__value)tag;
}

static inline bool uf__value_is_container(uf__value value)
{
    return (value & UF__VALUE_TAG_MASK) >= UF__TAG_LIST;
}

static inline uf__value uf__record_make(unsigned kind, uint64_t index)
{
    return uf__value_make(UF__TAG_RECORD, (index << 4) | kind);
}

static inline bool uf__value_is_record(uf__value value, unsigned kind)
{
    return (value & 0xff) == ((kind << UF__VALUE_TAG_BITS) | UF__TAG_RECORD);
}

static inline uint64_t uf__record_index(uf__value value)
{
    return value >> 8;
}

/* Object flags. */
#define UF__OBJECT_SEALED 1u    /* is in a container; must not change any more */
#define UF__OBJECT_SHARED 2u    /* named by more than one word beside the memo entry */
#define UF__OBJECT_FORWARDED 4u /* has become a record: items is NULL, count is its word */

typedef struct uf__object {
    uf__value *items;      /* list: values and runs; dictionary: key, value, key, value, ... */
    uint64_t count;        /* words at items */
    uint32_t memo_index;   /* the first memo entry that names the object, or UF_NONE */
    uint8_t capacity_log2; /* of items, where that is not NULL */
    uint8_t flags;
} uf__object;

/* An integer of 128 bits, two's complement; or, in low, the bits of a double. */
typedef struct uf__wide {
    uint64_t low;
    int64_t high;
} uf__wide;

typedef struct uf__store {
    uf__strings strings;
    uf__object *objects;
    uint64_t object_capacity;
    uint32_t object_count;
    uint32_t vacant_object; /* first of a chain through memo_index, or UF_NONE */
    uint64_t held_count;    /* words at the items of all objects */
    bool is_over_bound;     /* a bound below was the reason of a failure */
    uf__wide *wides;
    uint64_t wide_count, wide_capacity;
    /* Memo: dense from 0 on, packed, with UF__VALUE_NOTHING in holes; far outliers by hash. */
    uint32_t *memo;
    uint64_t memo_count, memo_capacity; /* of the dense part */
    uint64_t memo_used_count;           /* entries stored, dense and sparse */
    uf__value *loose_values;            /* of dense entries whose words do not pack */
    uint64_t loose_count, loose_capacity;
    uf__index sparse_index;
    uint32_t *sparse_keys;
    uf__value *sparse_values;
    uint64_t sparse_key_capacity, sparse_value_capacity;
    uint32_t sparse_count;
} uf__store;

/* Bounds on what a pickle can make the store hold, far above any snapshot. */
#define UF__STORE_OBJECTS_MAX (UINT32_C(1) << 26)
#define UF__STORE_HELD_MAX (UINT64_C(1) << 28)
#define UF__STORE_WIDES_MAX (UINT64_C(1) << 26)
#define UF__STORE_MEMO_MAX (UINT64_C(1) << 30)
#define UF__STORE_LOOSE_MAX (UINT64_C(1) << 28)

void uf__store_init(uf__store *store);
void uf__store_fini(uf__store *store);

/* All of the following return false only when a bound above or the host's memory is exhausted. */

/* Makes an open, empty list or dictionary. */
bool uf__store_create(uf__store *store, uf__tag tag, uf__value *value);

/* Appends count words to an open list (as records and runs) or dictionary (as they are). */
bool uf__store_append_list(uf__store *store, uf__value list, const uf__value *values,
                           uint64_t count);
bool uf__store_append_dict(uf__store *store, uf__value dict, const uf__value *pairs,
                           uint64_t count);

bool uf__store_wide(uf__store *store, uf__tag tag, uf__wide wide, uf__value *value);

/* A pickler memoizes each container, so that the memo has several entries an event. In the dense
 * part a word takes 4 bytes: 3 bits that say what it is, below what there is to say of it.
 *
 *     0 constant   1 string   2 list   3 dictionary   4, 5, 6 record of kind 0, 1, 2
 *     7 and a zero bit: a pair of numbers below 2^14; 7 and a one bit: place in loose_values */
#define UF__MEMO_KIND_BITS 3
#define UF__MEMO_KIND_MASK 7u
#define UF__MEMO_CONST 0u
#define UF__MEMO_STRING 1u
#define UF__MEMO_LIST 2u
#define UF__MEMO_DICT 3u
#define UF__MEMO_RECORD 4u
#define UF__MEMO_OTHER 7u
#define UF__MEMO_NOTHING 0u /* UF__VALUE_NOTHING, packed */

/* Packs a word. Returns false where it does not fit. */
bool uf__memo_pack(uf__value value, uint32_t *packed);

/* The same, quickly for records. */
static inline bool uf__memo_pack_record(uf__value value, uint32_t *packed)
{
    uint64_t kind = value >> UF__VALUE_TAG_BITS & 15, index = value >> 8;
    if (uf__value_tag(value) != UF__TAG_RECORD || kind >= UF__MEMO_OTHER - UF__MEMO_RECORD ||
        index >> (32 - UF__MEMO_KIND_BITS) != 0)
        return uf__memo_pack(value, packed);
    *packed = (uint32_t)index << UF__MEMO_KIND_BITS | (UF__MEMO_RECORD + (uint32_t)kind);
    return true;
}

/* The word of a packed pair or loose value. */
uf__value uf__memo_unpack_other(const uf__store *store, uint32_t packed);

static inline uf__value uf__memo_unpack(const uf__store *store, uint32_t packed)
{
    static const struct {
        uint8_t shift, low;
    } words[8] = {{UF__VALUE_TAG_BITS, UF__TAG_CONST},
                  {UF__VALUE_TAG_BITS, UF__TAG_STRING},
                  {UF__VALUE_TAG_BITS, UF__TAG_LIST},
                  {UF__VALUE_TAG_BITS, UF__TAG_DICT},
                  {8, UF__TAG_RECORD},
                  {8, UF__TAG_RECORD | 1 << UF__VALUE_TAG_BITS},
                  {8, UF__TAG_RECORD | 2 << UF__VALUE_TAG_BITS},
                  {0, 0}};
    uint32_t kind = packed & UF__MEMO_KIND_MASK;
    if (kind == UF__MEMO_OTHER)
        return uf__memo_unpack_other(store, packed);
    return (uf__value)(packed >> UF__MEMO_KIND_BITS) << words[kind].shift | words[kind].low;
}

static inline bool uf__memo_is_container(uint32_t packed)
{
    return (packed & (UF__MEMO_KIND_MASK - 1)) == UF__MEMO_LIST;
}

/* Makes room for the dense memo to grow to count entries. */
bool uf__store_memo_reserve(uf__store *store, uint64_t count);
bool uf__store_memo_put(uf__store *store, uint64_t index, uf__value value);

/* Returns the memo entry, UF__VALUE_NOTHING where there is none. */
uf__value uf__store_memo_get(const uf__store *store, uint64_t index);

/* Frees the memo: nothing can be recalled any more. */
void uf__store_drop_memo(uf__store *store);

/* Lets a record (or another word without object) take the place of a container. The object is
 * given up at once when nothing but the word in the caller's hand and one memo entry names it, else
 * forwarded. */
bool uf__store_replace(uf__store *store, uf__value container, uf__value record);

static inline uf__object *uf__store_object(const uf__store *store, uf__value container)
{
    return &store->objects[uf__value_payload(container)];
}

/* uf__store_create where an object is vacant. Returns false when the general way is needed. */
static inline bool uf__store_create_vacant(uf__store *store, uf__tag tag, uf__value *value)
{
    uint32_t id = store->vacant_object;
    if (id == UF_NONE)
        return false;
    uf__object *object = &store->objects[id];
    store->vacant_object = object->memo_index;
    object->memo_index = UF_NONE;
    *value = uf__value_make(tag, id);
    return true;
}

/* Follows the forwarding of a container that has become a record. */
static inline uf__value uf__store_resolve(const uf__store *store, uf__value value)
{
    if (uf__value_is_container(value)) {
        const uf__object *object = uf__store_object(store, value);
        if (object->flags & UF__OBJECT_FORWARDED)
            return object->count;
    }
    return value;
}

/* Reading numbers: bool counts as 0 and 1. Return false where the value is no such number. */
bool uf__store_as_u64_any(const uf__store *store, uf__value value, uint64_t *number);
bool uf__store_as_i64_any(const uf__store *store, uf__value value, int64_t *number);
bool uf__store_as_double(const uf__store *store, uf__value value, double *number);

static inline bool uf__store_as_u64(const uf__store *store, uf__value value, uint64_t *number)
{
    if (uf__value_tag(value) != UF__TAG_INT || (int64_t)value < 0)
        return uf__store_as_u64_any(store, value, number);
    *number = value >> UF__VALUE_TAG_BITS;
    return true;
}

static inline bool uf__store_as_i64(const uf__store *store, uf__value value, int64_t *number)
{
    if (uf__value_tag(value) != UF__TAG_INT)
        return uf__store_as_i64_any(store, value, number);
    *number = (int64_t)value >> UF__VALUE_TAG_BITS;
    return true;
}

/* "a list", "None", ... for messages. Static text. */
const char *uf__value_noun(uf__value value);

/* Walks over a list (or UF__VALUE_EMPTY, or a pair), runs expanded. */
typedef struct uf__list_walk {
    const uf__value *at, *end;
    uf__value pair[2];
    uf__value last;
    uint64_t run_left_count;
} uf__list_walk;

/* Returns false when the value is no list; the walk must stay where it is while in use. */
bool uf__list_walk_begin(uf__list_walk *walk, const uf__store *store, uf__value list);
/* Returns false at the end; values come resolved. */
bool uf__list_walk_next(uf__list_walk *walk, const uf__store *store, uf__value *value);
/* The same, but a run at once: *count records with consecutive indexes from *value on, or one
 * value of any kind. */
bool uf__list_walk_next_run(uf__list_walk *walk, const uf__store *store, uf__value *value,
                            uint64_t *count);

#endif
