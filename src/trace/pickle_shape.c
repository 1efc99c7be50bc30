/* SPDX-License-Identifier: MIT
 *
 * Whole dictionaries at one go. A snapshot holds the same few kinds of dictionary again and again,
 * each with the same keys in the same order, and every key is the same recall of a memo entry:
 *
 *     } MEMOIZE (  BINGET 7 value  BINGET 9 value  ...  BINGET 17 value  u
 *
 * So the keys as they were written are kept in a tree; where a dictionary goes along one of its
 * branches, a key costs a comparison, and its value goes to the reducer's slot for the key. What
 * does not fit in any way is left to the loop in pickle.c and its general way, as if nothing had
 * been tried: until the end the memo's new entries are beyond its count, and the stack's beyond its
 * top. No lock; works on one machine. */
#include "trace/pickle_hot.h"

typedef struct uf__shaper {
    uf__pickle *machine;
    const uint8_t *last;  /* no opcode may begin behind it */
    uint64_t known_count; /* memo entries before this dictionary */
    uint64_t memo_count;  /* and with those of it */
    uf__value *top;       /* room for list items from here on */
} uf__shaper;

/* All functions here that move on take a place in the input and return the one behind what they
 * took, or NULL where it cannot be taken. */

void uf__pickle_forget_shapes(uf__pickle *machine)
{
    machine->shape_count = 0;
}

/* MEMOIZE of a word, where there is one. */
static inline const uint8_t *memoize(uf__shaper *shaper, const uint8_t *p, uint32_t packed)
{
    if (*p != UF__OP_MEMOIZE)
        return p;
    shaper->machine->store->memo[shaper->memo_count++] = packed;
    return p + 1;
}

/* A small number at p, or with a second one and TUPLE2 behind it a pair. */
static inline const uint8_t *take_byte(uf__shaper *shaper, const uint8_t *p, uf__value *value)
{
    *value = (uint64_t)p[1] << UF__VALUE_TAG_BITS;
    if (p[2] != UF__OP_BININT1 || p[4] != UF__OP_TUPLE2)
        return p + 2;
    *value = uf__value_make(UF__TAG_PAIR, (uint64_t)p[3] << UF__VALUE_PAIR_BITS | p[1]);
    uint32_t packed;
    return uf__memo_pack(*value, &packed) ? memoize(shaper, p + 5, packed) : NULL;
}

static inline const uint8_t *take_string(uf__shaper *shaper, const uint8_t *p, uf__value *value)
{
    if (!uf__hot_string(shaper->machine, p + 2, value) ||
        uf__value_payload(*value) >> (32 - UF__MEMO_KIND_BITS) != 0)
        return NULL;
    uint32_t id = (uint32_t)uf__value_payload(*value);
    return memoize(shaper, p + 2 + p[1], id << UF__MEMO_KIND_BITS | UF__MEMO_STRING);
}

/* A value other than a list or a dictionary. */
static inline __attribute__((always_inline)) const uint8_t *
take_simple(uf__shaper *shaper, const uint8_t *p, uf__value *value)
{
    const uf__store *store = shaper->machine->store;
    switch (p[0]) {
    case UF__OP_BINGET:
        return uf__hot_recall(store, shaper->memo_count, p[1], value) ? p + 2 : NULL;
    case UF__OP_LONG_BINGET:
        return uf__hot_recall(store, shaper->memo_count, (uint32_t)uf__hot_i32(p + 1), value)
                   ? p + 5
                   : NULL;
    case UF__OP_SHORT_BINUNICODE:
        return take_string(shaper, p, value);
    case UF__OP_LONG1:
        return uf__hot_long(p + 2, value) ? p + 2 + p[1] : NULL;
    case UF__OP_BININT:
        *value = (uint64_t)uf__hot_i32(p + 1) << UF__VALUE_TAG_BITS;
        return p + 5;
    case UF__OP_BININT1:
        return take_byte(shaper, p, value);
    case UF__OP_BININT2:
        *value = ((uint64_t)p[2] << 8 | p[1]) << UF__VALUE_TAG_BITS;
        return p + 3;
    case UF__OP_NONE:
        *value = UF__VALUE_NONE;
        return p + 1;
    default:
        return NULL;
    }
}

/* Adds the key at p to the tree, below parent. Returns 0 where it cannot be one. */
static uint32_t learn(uf__shaper *shaper, const uint8_t *p, uint32_t parent)
{
    uf__pickle *machine = shaper->machine;
    uf__value word;
    if (machine->shape_count >= UF__SHAPE_KEYS_MAX ||
        (p[0] != UF__OP_BINGET && p[0] != UF__OP_LONG_BINGET))
        return 0;
    uint64_t index = p[0] == UF__OP_BINGET ? p[1] : (uint32_t)uf__hot_i32(p + 1);
    if (!uf__hot_recall(machine->store, shaper->known_count, index, &word) ||
        uf__value_tag(word) != UF__TAG_STRING)
        return 0;
    uint64_t id = uf__value_payload(word);
    uf__shape_key *shapes = machine->shapes;
    uf__shape_key key = {.seen = shapes[parent].seen,
                         .first_unknown = shapes[parent].first_unknown,
                         .unknown_count = shapes[parent].unknown_count,
                         .length = p[0] == UF__OP_BINGET ? 2 : 5,
                         .slot = (uint8_t)machine->reducer.slot_count,
                         .sibling = shapes[parent].child};
    key.mask = UINT64_MAX >> (64 - 8 * key.length);
    memcpy(&key.bytes, p, 8);
    key.bytes = le64toh(key.bytes) & key.mask;
    if (id < machine->reducer.slot_count) {
        key.slot = (uint8_t)id;
        key.seen |= UINT64_C(1) << id;
    } else if (key.unknown_count++ == 0) {
        key.first_unknown = word;
    }
    shapes[parent].child = (uint8_t)machine->shape_count;
    shapes[machine->shape_count] = key;
    return machine->shape_count++;
}

/* The key at p, which follows parent. Returns 0 where it cannot be one. */
static inline uint32_t find_key(uf__shaper *shaper, const uint8_t *p, uint32_t parent)
{
    const uf__shape_key *shapes = shaper->machine->shapes;
    uint64_t bytes;
    memcpy(&bytes, p, 8);
    bytes = le64toh(bytes);
    uint32_t key = shapes[parent].child;
    while (key != 0 && ((shapes[key].bytes ^ bytes) & shapes[key].mask) != 0)
        key = shapes[key].sibling;
    return __builtin_expect(key == 0, 0) ? learn(shaper, p, parent) : key;
}

/* MEMOIZE, with an entry that is set when the container is complete, and MARK. */
static inline const uint8_t *open_dict(uf__shaper *shaper, const uint8_t *p)
{
    return p[0] == UF__OP_MEMOIZE && p[1] == UF__OP_MARK ? memoize(shaper, p, UF__MEMO_NOTHING) + 1
                                                         : NULL;
}

static const uint8_t *take_list(uf__shaper *shaper, const uint8_t *p, uint32_t key,
                                uf__value *word);

/* The keys and values of a dictionary, from behind its MARK to behind its SETITEMS. Compiled twice:
 * those inside a list hold no list. A key takes 5 bytes and a value that is no string 10 at most,
 * so that one look at the end is enough for both. */
static inline __attribute__((always_inline)) const uint8_t *
take_pairs(uf__shaper *shaper, const uint8_t *p, uint32_t root, uf__value *record)
{
    uf__pickle *machine = shaper->machine;
    uf__value *slots = machine->reducer.slots;
    uint32_t key = root;
    while (*p != UF__OP_SETITEMS) {
        if (p > shaper->last || (key = find_key(shaper, p, key)) == 0)
            return NULL;
        const uf__shape_key *at = &machine->shapes[key];
        uf__value *value = &slots[at->slot];
        p += at->length;
        if (root == 0 && *p == UF__OP_EMPTY_LIST)
            p = take_list(shaper, p, key, value);
        else
            p = take_simple(shaper, p, value);
        if (p == NULL)
            return NULL;
    }
    const uf__shape_key *end = &machine->shapes[key];
    const uf__taken taken = {end->seen, end->unknown_count, end->first_unknown};
    bool is_taken =
        key != root && machine->reducer.take(machine->reducer.context, &taken, root != 0, record);
    return is_taken ? p + 1 : NULL;
}

/* A list's item: a dictionary, or a value that was there before. */
static inline const uint8_t *take_item(uf__shaper *shaper, const uint8_t *p)
{
    uf__store *store = shaper->machine->store;
    uf__value *item = shaper->top++;
    if (p > shaper->last)
        return NULL;
    if (*p != UF__OP_EMPTY_DICT)
        return *p == UF__OP_BINGET || *p == UF__OP_LONG_BINGET ? take_simple(shaper, p, item)
                                                               : NULL;
    uint64_t index = shaper->memo_count;
    p = open_dict(shaper, p + 1);
    if (p != NULL)
        p = take_pairs(shaper, p, 1, item);
    return p != NULL && uf__memo_pack_record(*item, &store->memo[index]) ? p : NULL;
}

/* A list of one item has APPEND behind it instead of a MARK before and APPENDS behind. */
static inline bool is_single(const uint8_t *p)
{
    return *p == UF__OP_EMPTY_DICT || (*p == UF__OP_BINGET && p[2] == UF__OP_APPEND) ||
           (*p == UF__OP_LONG_BINGET && p[5] == UF__OP_APPEND);
}

static const uint8_t *take_items(uf__shaper *shaper, const uint8_t *p)
{
    if (is_single(p)) {
        p = take_item(shaper, p);
        return p != NULL && *p == UF__OP_APPEND ? p + 1 : NULL;
    }
    while (p != NULL && *p == UF__OP_MARK) {
        p++;
        while (p != NULL && *p != UF__OP_APPENDS)
            p = take_item(shaper, p);
        p = p != NULL ? p + 1 : NULL;
    }
    return p;
}

/* A list that is the value of a key, from its EMPTY_LIST on. */
static const uint8_t *take_list(uf__shaper *shaper, const uint8_t *p, uint32_t key, uf__value *word)
{
    const uf__reducer *reducer = &shaper->machine->reducer;
    const uf__shape_key *at = &shaper->machine->shapes[key];
    uf__value *items = shaper->top;
    bool is_memoized = p[1] == UF__OP_MEMOIZE;
    uint64_t index = shaper->memo_count;
    p = take_items(shaper, memoize(shaper, p + 1, UF__MEMO_NOTHING));
    *word = UF__VALUE_EMPTY;
    if (p == NULL ||
        (shaper->top > items && !reducer->take_list(reducer->context, at->seen, at->slot, items,
                                                    (uint64_t)(shaper->top - items), word)))
        return NULL;
    shaper->top = items;
    return !is_memoized || uf__memo_pack_record(*word, &shaper->machine->store->memo[index]) ? p
                                                                                             : NULL;
}

bool uf__pickle_take_dict(uf__pickle *machine, const uint8_t **cursor, uf__value *top)
{
    uf__store *store = machine->store;
    uint64_t at_hand_bytes = (uint64_t)(machine->input->limit - *cursor);
    if (machine->reducer.slots == NULL || store->memo_used_count != store->memo_count ||
        store->memo_capacity - store->memo_count < at_hand_bytes)
        return false;
    if (machine->shape_count == 0) {
        machine->shape_count = 2;
        machine->shapes[0] = machine->shapes[1] =
            (uf__shape_key){.first_unknown = UF__VALUE_NOTHING};
    }
    uf__shaper shaper = {.machine = machine,
                         .last = machine->input->limit - UF__PICKLE_HOT_BYTES,
                         .known_count = store->memo_count,
                         .memo_count = store->memo_count,
                         .top = top};
    uint64_t index = shaper.memo_count;
    const uint8_t *p = open_dict(&shaper, *cursor);
    if (p != NULL)
        p = take_pairs(&shaper, p, 0, top);
    if (p == NULL || !uf__memo_pack_record(*top, &store->memo[index]))
        return false;
    store->memo_count = store->memo_used_count = shaper.memo_count;
    *cursor = p;
    return true;
}
