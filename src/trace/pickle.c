/* SPDX-License-Identifier: MIT
 *
 * The pickle machine: its loop, with the opcodes that make up nearly all of a snapshot, its stack,
 * and the filling of containers. The other opcodes are in pickle_data.c. Knows nothing of what the
 * values mean. No lock; one machine belongs to one reader. */
#include "trace/pickle.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "trace/pickle_hot.h"

uf_status uf__pickle_fail(const uf__pickle *machine, uf_error *error, const char *format, ...)
{
    char text[300];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const char *name = uf__pickle_opcode_name(machine->opcode);
    return uf__error_set(error, UF_ERROR_BAD_INPUT,
                         "not a readable pickle: at byte %" PRIu64 ", %s: %s",
                         machine->opcode_offset, name != NULL ? name : "unknown opcode", text);
}

uf_status uf__pickle_fail_store(const uf__pickle *machine, uf_error *error)
{
    if (machine->store->is_over_bound)
        return uf__pickle_fail(machine, error, "holds more values at once than any snapshot does");
    return uf__error_set(error, UF_ERROR_HOST_MEMORY,
                         "no host memory left while reading a pickle, at byte %" PRIu64,
                         uf__input_offset(machine->input));
}

uf_status uf__pickle_need(const uf__pickle *machine, uint64_t count, uf_error *error)
{
    uint64_t have = machine->stack_count - machine->marks[machine->mark_count - 1];
    if (have < count)
        return uf__pickle_fail(machine, error,
                               "needs %" PRIu64 " values on the stack, has %" PRIu64, count, have);
    return UF_OK;
}

uf_status uf__pickle_pop_mark(uf__pickle *machine, uf__value **values, uint64_t *count,
                              uf_error *error)
{
    if (machine->mark_count < 2)
        return uf__pickle_fail(machine, error, "no MARK before it");
    uint64_t first = machine->marks[--machine->mark_count];
    *values = machine->stack + first;
    *count = machine->stack_count - first;
    return UF_OK;
}

uf_status uf__pickle_memoize(uf__pickle *machine, uint64_t index, uf_error *error)
{
    uf_status status = uf__pickle_need(machine, 1, error);
    if (status != UF_OK)
        return status;
    uf__value value = machine->stack[machine->stack_count - 1];
    if (index < machine->store->memo_count && machine->store->memo[index] != UF__MEMO_NOTHING)
        uf__pickle_forget_shapes(machine); /* a key may have been there */
    if (uf__value_is_container(value)) {
        uf__object *object = uf__store_object(machine->store, value);
        if (object->memo_index == UF_NONE)
            object->memo_index = (uint32_t)index;
        else if (object->memo_index != index)
            object->flags |= UF__OBJECT_SHARED;
    }
    if (!uf__store_memo_put(machine->store, index, value))
        return uf__pickle_fail_store(machine, error);
    return UF_OK;
}

uf_status uf__pickle_recall(uf__pickle *machine, uint64_t index, uf_error *error)
{
    uf__value value = uf__store_memo_get(machine->store, index);
    if (value == UF__VALUE_NOTHING)
        return uf__pickle_fail(machine, error, "memo entry %" PRIu64 " was never stored", index);
    value = uf__store_resolve(machine->store, value);
    if (uf__value_is_container(value))
        uf__store_object(machine->store, value)->flags |= UF__OBJECT_SHARED;
    return uf__pickle_push(machine, value);
}

uf_status uf__pickle_string(uf__pickle *machine, const uint8_t *text, size_t length,
                            uf__value *value, uf_error *error)
{
    uint32_t id;
    if (!uf__strings_intern(&machine->store->strings, (const char *)text, length, &id))
        return uf__pickle_fail_store(machine, error);
    *value = uf__value_make(UF__TAG_STRING, id);
    return UF_OK;
}

/* Seals one container; a dictionary may become a record, an empty list a constant. */
static uf_status seal_one(uf__pickle *machine, uf__value *value, uf_error *error)
{
    uf__store *store = machine->store;
    uf__object *object = uf__store_object(store, *value);
    if (object->flags & UF__OBJECT_FORWARDED) {
        *value = object->count;
        return UF_OK;
    }
    if (object->flags & UF__OBJECT_SEALED)
        return UF_OK;
    object->flags |= UF__OBJECT_SEALED;
    uf__value record = UF__VALUE_NOTHING;
    if (uf__value_tag(*value) == UF__TAG_LIST) {
        if (object->count == 0)
            record = UF__VALUE_EMPTY;
    } else if (machine->reducer.seal != NULL) {
        uf_status status = machine->reducer.seal(machine->reducer.context, object->items,
                                                 object->count / 2, &record, error);
        if (status != UF_OK)
            return status;
    }
    if (record != UF__VALUE_NOTHING) {
        if (!uf__store_replace(store, *value, record))
            return uf__pickle_fail_store(machine, error);
        *value = record;
    }
    return UF_OK;
}

uf_status uf__pickle_seal(uf__pickle *machine, uf__value *values, uint64_t count, uint64_t step,
                          uf_error *error)
{
    for (uint64_t i = 0; i < count; i += step) {
        if (!uf__value_is_container(values[i]))
            continue;
        uf_status status = seal_one(machine, &values[i], error);
        if (status != UF_OK)
            return status;
    }
    return UF_OK;
}

uf_status uf__pickle_append(uf__pickle *machine, uf__value *values, uint64_t count, uf_error *error)
{
    uf__value list = uf__store_resolve(machine->store, values[-1]);
    if (uf__value_tag(list) != UF__TAG_LIST) {
        if (list == UF__VALUE_EMPTY)
            return uf__pickle_fail(machine, error, "adds to a list that is already in use");
        return uf__pickle_fail(machine, error, "adds to %s", uf__value_noun(list));
    }
    uf_status status = uf__pickle_seal(machine, values, count, 1, error);
    if (status != UF_OK)
        return status;
    /* Sealing comes first, so that a list cannot be put into itself. */
    if (uf__store_object(machine->store, list)->flags & UF__OBJECT_SEALED)
        return uf__pickle_fail(machine, error, "adds to a list that is already in use");
    if (!uf__store_append_list(machine->store, list, values, count))
        return uf__pickle_fail_store(machine, error);
    machine->stack_count = (uint64_t)(values - machine->stack);
    return UF_OK;
}

/* The pairs of a dictionary that is a record already. */
static uf_status amend(uf__pickle *machine, uf__value record, const uf__value *pairs,
                       uint64_t pair_count, uf_error *error)
{
    if (!(uf__value_tag(record) == UF__TAG_RECORD && machine->reducer.amend != NULL))
        return uf__pickle_fail(machine, error, "sets items of %s", uf__value_noun(record));
    return machine->reducer.amend(machine->reducer.context, record, pairs, pair_count, error);
}

uf_status uf__pickle_set_items(uf__pickle *machine, uf__value *values, uint64_t count,
                               uf_error *error)
{
    uf__store *store = machine->store;
    if (count % 2 != 0)
        return uf__pickle_fail(machine, error, "a key without a value");
    uf_status status = uf__pickle_seal(machine, values, count, 1, error);
    if (status != UF_OK)
        return status;
    uf__value dict = uf__store_resolve(store, values[-1]);
    machine->stack_count = (uint64_t)(values - machine->stack);
    if (uf__value_tag(dict) != UF__TAG_DICT)
        return amend(machine, dict, values, count / 2, error);
    uf__object *object = uf__store_object(store, dict);
    if (object->flags & UF__OBJECT_SEALED)
        return uf__pickle_fail(machine, error, "sets items of a dictionary that is already in use");
    uf__value record = UF__VALUE_NOTHING;
    if (object->count == 0 && object->flags == 0 && count > 2 && machine->reducer.fill != NULL) {
        status = machine->reducer.fill(machine->reducer.context, values, count / 2, &record, error);
        if (status != UF_OK)
            return status;
    }
    if (record != UF__VALUE_NOTHING) {
        if (!uf__store_replace(store, dict, record))
            return uf__pickle_fail_store(machine, error);
        values[-1] = record;
        return UF_OK;
    }
    if (!uf__store_append_dict(store, dict, values, count))
        return uf__pickle_fail_store(machine, error);
    return UF_OK;
}

/* Grows an array of words so that count + more fit. */
static bool reserve(uint64_t **words, uint64_t *capacity, uint64_t need)
{
    if (need <= *capacity)
        return true;
    uint64_t *moved = uf__array_grow(*words, capacity, need, sizeof **words);
    if (moved == NULL)
        return false;
    *words = moved;
    return true;
}

static uf_status ends_early(const uf__pickle *machine, uf_error *error)
{
    return uf__error_set(error, UF_ERROR_BAD_INPUT,
                         "the pickle ends early, after %" PRIu64
                         " bytes and before its STOP; the file was probably cut off",
                         machine->input->decoded_bytes);
}

/* Brings in more input, and makes room for what it can push on the stack, mark and memoize. */
static uf_status refill(uf__pickle *machine, uf_error *error)
{
    uf__input *input = machine->input;
    uf__store *store = machine->store;
    if (input->cursor > input->limit)
        return ends_early(machine, error);
    uf_status status = uf__input_ensure(input, UF__PICKLE_HOT_BYTES, error);
    if (status != UF_OK)
        return status;
    uint64_t more = uf__input_at_hand(input);
    if (more == 0)
        return ends_early(machine, error);
    machine->opcode_offset = uf__input_offset(input);
    machine->opcode = *input->cursor;
    if (machine->stack_count + more > UF__PICKLE_STACK_MAX)
        return uf__pickle_fail(machine, error, "more values on the stack than any snapshot has");
    if (!reserve(&machine->stack, &machine->stack_capacity, machine->stack_count + more) ||
        !reserve(&machine->marks, &machine->mark_capacity, machine->mark_count + more) ||
        !uf__store_memo_reserve(store, store->memo_count + more))
        return uf__pickle_fail_store(machine, error);
    machine->provided_bytes = input->decoded_bytes;
    return UF_OK;
}

/* MEMOIZE where the memo is dense. Returns false when the general way is needed. */
static inline bool memoize_next(uf__store *store, uf__value value)
{
    uint64_t index = store->memo_count;
    if (store->memo_used_count != index || index >= store->memo_capacity ||
        !uf__memo_pack(value, &store->memo[index]))
        return false;
    if (uf__value_is_container(value)) {
        uf__object *object = uf__store_object(store, value);
        if (object->memo_index != UF_NONE)
            return false;
        object->memo_index = (uint32_t)index;
    }
    store->memo_count = store->memo_used_count = index + 1;
    return true;
}

/* The frequent opcodes, numbered without gaps so that the compiler makes a jump table. */
enum {
    HOT_NONE,
    HOT_LONG_BINGET,
    HOT_BINGET,
    HOT_MEMOIZE,
    HOT_LONG1,
    HOT_BININT,
    HOT_BININT1,
    HOT_BININT2,
    HOT_SHORT_BINUNICODE,
    HOT_MARK,
    HOT_EMPTY_DICT
};

static const uint8_t hot_opcodes[256] = {
    [UF__OP_LONG_BINGET] = HOT_LONG_BINGET,
    [UF__OP_BINGET] = HOT_BINGET,
    [UF__OP_MEMOIZE] = HOT_MEMOIZE,
    [UF__OP_LONG1] = HOT_LONG1,
    [UF__OP_BININT] = HOT_BININT,
    [UF__OP_BININT1] = HOT_BININT1,
    [UF__OP_BININT2] = HOT_BININT2,
    [UF__OP_SHORT_BINUNICODE] = HOT_SHORT_BINUNICODE,
    [UF__OP_MARK] = HOT_MARK,
    [UF__OP_EMPTY_DICT] = HOT_EMPTY_DICT,
};

/* Executes frequent opcodes as long as there are UF__PICKLE_HOT_BYTES before limit, and stops in
 * front of the first one that needs the general way. *cursor and *top are moved on. */
static inline void run_hot(uf__pickle *machine, const uint8_t *limit, const uint8_t **cursor,
                           uf__value **top)
{
    uf__store *store = machine->store;
    const uint8_t *p = *cursor;
    uf__value *sp = *top;
    bool is_done = true;
    while (is_done && p + UF__PICKLE_HOT_BYTES <= limit) {
        *cursor = p;
        *top = sp;
        switch (hot_opcodes[*p++]) {
        case HOT_LONG_BINGET:
            is_done = uf__hot_recall(store, store->memo_count, (uint32_t)uf__hot_i32(p), sp++);
            p += 4;
            break;
        case HOT_BINGET:
            is_done = uf__hot_recall(store, store->memo_count, *p++, sp++);
            break;
        case HOT_MEMOIZE:
            is_done = sp > machine->stack + machine->marks[machine->mark_count - 1] &&
                      memoize_next(store, sp[-1]);
            break;
        case HOT_LONG1:
            is_done = uf__hot_long(p + 1, sp++);
            p += 1 + *p;
            break;
        case HOT_BININT:
            *sp++ = (uint64_t)uf__hot_i32(p) << UF__VALUE_TAG_BITS;
            p += 4;
            break;
        case HOT_BININT1:
            *sp++ = (uint64_t)*p++ << UF__VALUE_TAG_BITS;
            break;
        case HOT_BININT2:
            *sp++ = ((uint64_t)p[1] << 8 | p[0]) << UF__VALUE_TAG_BITS;
            p += 2;
            break;
        case HOT_SHORT_BINUNICODE:
            is_done = uf__hot_string(machine, p + 1, sp++);
            p += 1 + *p;
            if (is_done && p < limit && *p == UF__OP_MEMOIZE && memoize_next(store, sp[-1]))
                p++;
            break;
        case HOT_MARK:
            machine->marks[machine->mark_count++] = (uint64_t)(sp - machine->stack);
            break;
        case HOT_EMPTY_DICT:
            if (uf__pickle_take_dict(machine, &p, sp)) {
                sp++;
                break;
            }
            is_done = uf__store_create_vacant(store, UF__TAG_DICT, sp++);
            if (is_done && p[0] == UF__OP_MEMOIZE && p[1] == UF__OP_MARK &&
                memoize_next(store, sp[-1])) {
                machine->marks[machine->mark_count++] = (uint64_t)(sp - machine->stack);
                p += 2;
            }
            break;
        default:
            is_done = false;
            break;
        }
    }
    if (is_done) {
        *cursor = p;
        *top = sp;
    }
}

/* Executes opcodes up to STOP. The frequent ones work on local copies of the cursor and the stack's
 * top; for the others, the machine's own fields are brought up to date. */
static uf_status loop(uf__pickle *machine, uf_error *error)
{
    uf__input *input = machine->input;
    while (!machine->is_stopped) {
        const uint8_t *p = input->cursor;
        uf_status status = UF_OK;
        if (machine->provided_bytes == input->decoded_bytes &&
            p + UF__PICKLE_HOT_BYTES <= input->limit) {
            uf__value *sp = machine->stack + machine->stack_count;
            run_hot(machine, input->limit, &p, &sp);
            input->cursor = p;
            machine->stack_count = (uint64_t)(sp - machine->stack);
        }
        if (machine->provided_bytes != input->decoded_bytes ||
            p + UF__PICKLE_HOT_BYTES > input->limit)
            status = refill(machine, error);
        if (status == UF_OK) {
            machine->opcode_offset = uf__input_offset(input);
            machine->opcode = *input->cursor++;
            status = uf__pickle_execute(machine, error);
        }
        if (status != UF_OK)
            return status;
    }
    return UF_OK;
}

static uf_status expect_end(uf__pickle *machine, uf_error *error)
{
    if (machine->stack_count != 1 || machine->mark_count != 1)
        return uf__pickle_fail(machine, error,
                               "%" PRIu64 " values and %" PRIu64
                               " marks are left where one value should be",
                               machine->stack_count, machine->mark_count - 1);
    uf_status status = uf__input_ensure(machine->input, 1, error);
    if (status == UF_OK && uf__input_at_hand(machine->input) > 0)
        return uf__error_set(error, UF_ERROR_BAD_INPUT,
                             "the pickle ends at byte %" PRIu64 ", but more data follows",
                             uf__input_offset(machine->input));
    return status;
}

uf_status uf__pickle_read(uf__input *input, uf__store *store, const uf__reducer *reducer,
                          uf__value *result, uf_error *error)
{
    uf__pickle *machine = calloc(1, sizeof *machine);
    if (machine == NULL)
        return uf__error_set(error, UF_ERROR_HOST_MEMORY, "no memory to read a pickle");
    machine->input = input;
    machine->store = store;
    if (reducer != NULL)
        machine->reducer = *reducer;
    machine->mark_count = 1;
    for (size_t i = 0; i < UF__PICKLE_CACHE_SIZE; i++)
        machine->cache[i].length = UF_NONE;
    uf_status status = UF_OK;
    machine->marks = calloc(1, sizeof *machine->marks);
    machine->mark_capacity = 1;
    if (machine->marks == NULL)
        status = uf__error_set(error, UF_ERROR_HOST_MEMORY, "no memory to read a pickle");
    machine->provided_bytes = UINT64_MAX;
    if (status == UF_OK)
        status = loop(machine, error);
    if (status == UF_OK)
        status = expect_end(machine, error);
    if (status == UF_OK)
        *result = uf__store_resolve(store, machine->stack[0]);
    free(machine->stack);
    free(machine->marks);
    free(machine);
    return status;
}
