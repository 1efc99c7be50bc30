/* SPDX-License-Identifier: MIT
 *
 * The store of a pickle's values; see value.h. Owns strings, objects, wide numbers and the memo. */
#include "trace/value.h"

#include <stdlib.h>

#define KEPT_CAPACITY_LOG2 6 /* a vacant object keeps its items array up to this size */
#define SPARSE_SLACK 1024
#define PACKED_PAIR_BITS 14
#define LOOSE_BIT (1u << UF__MEMO_KIND_BITS)

void uf__store_init(uf__store *store)
{
    memset(store, 0, sizeof *store);
    store->vacant_object = UF_NONE;
    store->strings.seed = uf__hash_mix((uint64_t)(uintptr_t)store);
}

void uf__store_drop_memo(uf__store *store)
{
    free(store->memo);
    free(store->loose_values);
    free(store->sparse_keys);
    free(store->sparse_values);
    uf__index_fini(&store->sparse_index);
    store->memo = NULL;
    store->loose_values = NULL;
    store->loose_count = store->loose_capacity = 0;
    store->sparse_keys = NULL;
    store->sparse_values = NULL;
    store->memo_count = store->memo_capacity = store->memo_used_count = 0;
    store->sparse_count = 0;
    store->sparse_key_capacity = store->sparse_value_capacity = 0;
}

void uf__store_fini(uf__store *store)
{
    for (uint32_t i = 0; i < store->object_count; i++)
        free(store->objects[i].items);
    free(store->objects);
    free(store->wides);
    uf__store_drop_memo(store);
    uf__strings_fini(&store->strings);
    memset(store, 0, sizeof *store);
}

static bool over_bound(uf__store *store)
{
    store->is_over_bound = true;
    return false;
}

bool uf__store_create(uf__store *store, uf__tag tag, uf__value *value)
{
    if (uf__store_create_vacant(store, tag, value))
        return true;
    if (store->object_count >= UF__STORE_OBJECTS_MAX)
        return over_bound(store);
    if (store->object_count >= store->object_capacity) {
        uf__object *objects = uf__array_grow(store->objects, &store->object_capacity,
                                             store->object_count + UINT64_C(1), sizeof *objects);
        if (objects == NULL)
            return false;
        store->objects = objects;
    }
    uint32_t id = store->object_count++;
    store->objects[id] = (uf__object){.memo_index = UF_NONE};
    *value = uf__value_make(tag, id);
    return true;
}

static void vacate(uf__store *store, uint32_t id)
{
    uf__object *object = &store->objects[id];
    if (object->items != NULL && object->capacity_log2 > KEPT_CAPACITY_LOG2) {
        free(object->items);
        object->items = NULL;
    }
    store->held_count -= object->count;
    object->count = 0;
    object->flags = 0;
    object->memo_index = store->vacant_object;
    store->vacant_object = id;
}

/* Makes room for count words more. */
static bool reserve(uf__store *store, uf__object *object, uint64_t count)
{
    if (count > UF__STORE_HELD_MAX || store->held_count + count > UF__STORE_HELD_MAX)
        return over_bound(store);
    uint64_t need = object->count + count;
    if (object->items != NULL && need <= UINT64_C(1) << object->capacity_log2)
        return true;
    uint8_t log2 = 2;
    while (UINT64_C(1) << log2 < need)
        log2++;
    uf__value *items = realloc(object->items, ((size_t)1 << log2) * sizeof *items);
    if (items == NULL)
        return false;
    object->items = items;
    object->capacity_log2 = log2;
    return true;
}

static bool push(uf__store *store, uf__object *object, uf__value word)
{
    if (!reserve(store, object, 1))
        return false;
    object->items[object->count++] = word;
    store->held_count++;
    return true;
}

/* Returns how many of the values continue the record that ends at last. */
static uint64_t run_length(uf__value last, const uf__value *values, uint64_t count)
{
    uint64_t length = 0;
    while (length < count && values[length] == last + (length + 1) * UF__RECORD_STEP)
        length++;
    return length;
}

bool uf__store_append_list(uf__store *store, uf__value list, const uf__value *values,
                           uint64_t count)
{
    uf__object *object = uf__store_object(store, list);
    uint64_t i = 0;
    while (i < count) {
        uf__value *end = object->count > 0 ? object->items + object->count : NULL;
        if (object->count >= 2 && uf__value_tag(end[-1]) == UF__TAG_RUN) {
            uint64_t so_far = uf__value_payload(end[-1]);
            uint64_t more = run_length(end[-2] + so_far * UF__RECORD_STEP, values + i, count - i);
            end[-1] = uf__value_make(UF__TAG_RUN, so_far + more);
            i += more;
        } else if (object->count >= 1 && uf__value_tag(end[-1]) == UF__TAG_RECORD) {
            uint64_t more = run_length(end[-1], values + i, count - i);
            if (more > 0 && !push(store, object, uf__value_make(UF__TAG_RUN, more)))
                return false;
            i += more;
        }
        if (i < count && !push(store, object, values[i++]))
            return false;
    }
    return true;
}

bool uf__store_append_dict(uf__store *store, uf__value dict, const uf__value *pairs, uint64_t count)
{
    uf__object *object = uf__store_object(store, dict);
    if (count == 0)
        return true;
    if (!reserve(store, object, count))
        return false;
    memcpy(object->items + object->count, pairs, (size_t)count * sizeof *pairs);
    object->count += count;
    store->held_count += count;
    return true;
}

bool uf__store_wide(uf__store *store, uf__tag tag, uf__wide wide, uf__value *value)
{
    if (store->wide_count >= UF__STORE_WIDES_MAX)
        return over_bound(store);
    if (store->wide_count >= store->wide_capacity) {
        uf__wide *wides = uf__array_grow(store->wides, &store->wide_capacity, store->wide_count + 1,
                                         sizeof *wides);
        if (wides == NULL)
            return false;
        store->wides = wides;
    }
    store->wides[store->wide_count] = wide;
    *value = uf__value_make(tag, store->wide_count++);
    return true;
}

/* Returns the place of a sparse memo entry, UF_NONE where there is none. */
static uint32_t sparse_find(const uf__store *store, uint32_t key)
{
    uint32_t hash = (uint32_t)uf__hash_mix(key ^ store->strings.seed);
    uint64_t place = uf__index_begin(&store->sparse_index, hash);
    uint32_t found;
    while ((found = uf__index_next(&store->sparse_index, hash, &place)) != UF_NONE)
        if (store->sparse_keys[found] == key)
            break;
    return found;
}

static bool sparse_put(uf__store *store, uint32_t key, uf__value value)
{
    uint32_t found = sparse_find(store, key);
    if (found != UF_NONE) {
        store->sparse_values[found] = value;
        return true;
    }
    uint64_t need = store->sparse_count + UINT64_C(1);
    if (need > UF__STORE_HELD_MAX)
        return over_bound(store);
    if (need > store->sparse_key_capacity) {
        uint32_t *keys =
            uf__array_grow(store->sparse_keys, &store->sparse_key_capacity, need, sizeof *keys);
        if (keys == NULL)
            return false;
        store->sparse_keys = keys;
    }
    if (need > store->sparse_value_capacity) {
        uf__value *values = uf__array_grow(store->sparse_values, &store->sparse_value_capacity,
                                           need, sizeof *values);
        if (values == NULL)
            return false;
        store->sparse_values = values;
    }
    uint32_t hash = (uint32_t)uf__hash_mix(key ^ store->strings.seed);
    if (!uf__index_add(&store->sparse_index, hash, store->sparse_count))
        return false;
    store->sparse_keys[store->sparse_count] = key;
    store->sparse_values[store->sparse_count++] = value;
    store->memo_used_count++;
    return true;
}

bool uf__memo_pack(uf__value value, uint32_t *packed)
{
    static const uint8_t kinds[16] = {[UF__TAG_CONST] = UF__MEMO_CONST,
                                      [UF__TAG_STRING] = UF__MEMO_STRING,
                                      [UF__TAG_LIST] = UF__MEMO_LIST,
                                      [UF__TAG_DICT] = UF__MEMO_DICT};
    uf__tag tag = uf__value_tag(value);
    uint64_t payload = uf__value_payload(value);
    uint32_t kind = kinds[tag];
    if (tag == UF__TAG_PAIR) {
        uint64_t low = payload & ((UINT64_C(1) << UF__VALUE_PAIR_BITS) - 1),
                 high = payload >> UF__VALUE_PAIR_BITS;
        if ((low | high) >> PACKED_PAIR_BITS != 0)
            return false;
        kind = UF__MEMO_OTHER;
        payload = (high << PACKED_PAIR_BITS | low) << 1;
    } else if (tag == UF__TAG_RECORD) {
        kind = UF__MEMO_RECORD + (uint32_t)(payload & 15);
        payload >>= 4;
        if (kind >= UF__MEMO_OTHER)
            return false;
    } else if (kind == UF__MEMO_CONST && tag != UF__TAG_CONST) {
        return false;
    }
    if (payload >> (32 - UF__MEMO_KIND_BITS) != 0)
        return false;
    *packed = (uint32_t)payload << UF__MEMO_KIND_BITS | kind;
    return true;
}

uf__value uf__memo_unpack_other(const uf__store *store, uint32_t packed)
{
    uint32_t rest = packed >> (UF__MEMO_KIND_BITS + 1);
    if (packed & LOOSE_BIT)
        return store->loose_values[rest];
    uint64_t low = rest & ((1u << PACKED_PAIR_BITS) - 1), high = rest >> PACKED_PAIR_BITS;
    return uf__value_make(UF__TAG_PAIR, high << UF__VALUE_PAIR_BITS | low);
}

/* Sets an entry of the dense memo that exists. */
static bool memo_set(uf__store *store, uint64_t index, uf__value value)
{
    uint32_t *entry = &store->memo[index];
    bool is_loose = (*entry & UF__MEMO_KIND_MASK) == UF__MEMO_OTHER && (*entry & LOOSE_BIT) != 0;
    if (uf__memo_pack(value, entry))
        return true;
    if (is_loose) {
        store->loose_values[*entry >> (UF__MEMO_KIND_BITS + 1)] = value;
        return true;
    }
    if (store->loose_count >= UF__STORE_LOOSE_MAX)
        return over_bound(store);
    if (store->loose_count >= store->loose_capacity) {
        uf__value *values = uf__array_grow(store->loose_values, &store->loose_capacity,
                                           store->loose_count + 1, sizeof *values);
        if (values == NULL)
            return false;
        store->loose_values = values;
    }
    *entry = (uint32_t)store->loose_count << (UF__MEMO_KIND_BITS + 1) | LOOSE_BIT | UF__MEMO_OTHER;
    store->loose_values[store->loose_count++] = value;
    return true;
}

bool uf__store_memo_reserve(uf__store *store, uint64_t count)
{
    if (count <= store->memo_capacity)
        return true;
    if (count > UF__STORE_MEMO_MAX)
        return over_bound(store);
    uint32_t *memo = uf__array_grow(store->memo, &store->memo_capacity, count, sizeof *memo);
    if (memo == NULL)
        return false;
    store->memo = memo;
    return true;
}

bool uf__store_memo_put(uf__store *store, uint64_t index, uf__value value)
{
    if (index >= UF_NONE)
        return over_bound(store);
    bool is_sparse = index > store->memo_count && index > SPARSE_SLACK + 2 * store->memo_used_count;
    if (store->sparse_count > 0 && !is_sparse && sparse_find(store, (uint32_t)index) != UF_NONE)
        is_sparse = true;
    if (is_sparse)
        return sparse_put(store, (uint32_t)index, value);
    if (!uf__store_memo_reserve(store, index + 1))
        return false;
    while (store->memo_count <= index)
        store->memo[store->memo_count++] = UF__MEMO_NOTHING;
    if (store->memo[index] == UF__MEMO_NOTHING)
        store->memo_used_count++;
    return memo_set(store, index, value);
}

uf__value uf__store_memo_get(const uf__store *store, uint64_t index)
{
    if (index < store->memo_count && store->memo[index] != UF__MEMO_NOTHING)
        return uf__memo_unpack(store, store->memo[index]);
    if (store->sparse_count == 0 || index >= UF_NONE)
        return UF__VALUE_NOTHING;
    uint32_t found = sparse_find(store, (uint32_t)index);
    return found == UF_NONE ? UF__VALUE_NOTHING : store->sparse_values[found];
}

bool uf__store_replace(uf__store *store, uf__value container, uf__value record)
{
    uf__object *object = uf__store_object(store, container);
    if (object->flags & UF__OBJECT_SHARED) {
        free(object->items);
        store->held_count -= object->count;
        object->items = NULL;
        object->count = record;
        object->flags |= UF__OBJECT_FORWARDED | UF__OBJECT_SEALED;
        return true;
    }
    if (object->memo_index != UF_NONE &&
        uf__store_memo_get(store, object->memo_index) == container &&
        !uf__store_memo_put(store, object->memo_index, record))
        return false;
    vacate(store, (uint32_t)uf__value_payload(container));
    return true;
}

bool uf__store_as_u64_any(const uf__store *store, uf__value value, uint64_t *number)
{
    if (uf__value_tag(value) == UF__TAG_WIDE) {
        const uf__wide *wide = &store->wides[uf__value_payload(value)];
        if (wide->high != 0)
            return false;
        *number = wide->low;
        return true;
    }
    if (value != UF__VALUE_TRUE && value != UF__VALUE_FALSE)
        return false;
    *number = value == UF__VALUE_TRUE;
    return true;
}

bool uf__store_as_i64_any(const uf__store *store, uf__value value, int64_t *number)
{
    if (uf__value_tag(value) == UF__TAG_WIDE) {
        const uf__wide *wide = &store->wides[uf__value_payload(value)];
        if (wide->high != ((int64_t)wide->low < 0 ? -1 : 0))
            return false;
        *number = (int64_t)wide->low;
        return true;
    }
    if (value != UF__VALUE_TRUE && value != UF__VALUE_FALSE)
        return false;
    *number = value == UF__VALUE_TRUE;
    return true;
}

bool uf__store_as_double(const uf__store *store, uf__value value, double *number)
{
    int64_t whole;
    if (uf__value_tag(value) == UF__TAG_FLOAT) {
        memcpy(number, &store->wides[uf__value_payload(value)].low, sizeof *number);
        return true;
    }
    if (!uf__store_as_i64(store, value, &whole))
        return false;
    *number = (double)whole;
    return true;
}

const char *uf__value_noun(uf__value value)
{
    switch (uf__value_tag(value)) {
    case UF__TAG_INT:
        return (int64_t)value < 0 ? "a negative number" : "a number";
    case UF__TAG_WIDE:
        return "a number beyond 2^59";
    case UF__TAG_STRING:
        return "a string";
    case UF__TAG_FLOAT:
        return "a float";
    case UF__TAG_PAIR:
    case UF__TAG_LIST:
        return "a list";
    case UF__TAG_DICT:
    case UF__TAG_RECORD:
        return "a dictionary";
    case UF__TAG_CONST:
    case UF__TAG_RUN:
        break;
    }
    if (value == UF__VALUE_NONE)
        return "None";
    if (value == UF__VALUE_TRUE || value == UF__VALUE_FALSE)
        return "a boolean";
    if (value == UF__VALUE_EMPTY)
        return "an empty list";
    if (value == UF__VALUE_HUGE)
        return "a number beyond 16 bytes";
    return value == UF__VALUE_OPAQUE ? "bytes or a set" : "nothing";
}

bool uf__list_walk_begin(uf__list_walk *walk, const uf__store *store, uf__value list)
{
    memset(walk, 0, sizeof *walk);
    list = uf__store_resolve(store, list);
    if (uf__value_tag(list) == UF__TAG_LIST) {
        const uf__object *object = uf__store_object(store, list);
        walk->at = object->items;
        walk->end = object->count > 0 ? object->items + object->count : object->items;
    } else if (uf__value_tag(list) == UF__TAG_PAIR) {
        uint64_t mask = (UINT64_C(1) << UF__VALUE_PAIR_BITS) - 1;
        walk->pair[0] = uf__value_make(UF__TAG_INT, uf__value_payload(list) & mask);
        walk->pair[1] = uf__value_make(UF__TAG_INT, uf__value_payload(list) >> UF__VALUE_PAIR_BITS);
        walk->at = walk->pair;
        walk->end = walk->pair + 2;
    } else if (list != UF__VALUE_EMPTY) {
        return false;
    }
    return true;
}

bool uf__list_walk_next_run(uf__list_walk *walk, const uf__store *store, uf__value *value,
                            uint64_t *count)
{
    if (walk->at == walk->end)
        return false;
    *value = uf__store_resolve(store, *walk->at++);
    *count = 1;
    if (walk->at != walk->end && uf__value_tag(*walk->at) == UF__TAG_RUN)
        *count += uf__value_payload(*walk->at++);
    return true;
}

bool uf__list_walk_next(uf__list_walk *walk, const uf__store *store, uf__value *value)
{
    if (walk->run_left_count > 0) {
        walk->run_left_count--;
        walk->last += UF__RECORD_STEP;
        *value = walk->last;
        return true;
    }
    uint64_t count;
    if (!uf__list_walk_next_run(walk, store, &walk->last, &count))
        return false;
    walk->run_left_count = count - 1;
    *value = walk->last;
    return true;
}
