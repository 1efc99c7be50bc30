/* SPDX-License-Identifier: MIT
 *
 * What each pickle opcode does, in its general form: any length, anywhere in the window. pickle.c
 * has shortcuts for the frequent ones. No state of its own. */
#include <endian.h>
#include <inttypes.h>
#include <stdlib.h>

#include "trace/pickle_machine.h"
#include "trace/pickle_opcodes.h"
#include "trace/pickle_text.h"

#define PROTOCOL_MAX 5
#define STRING_MAX_BYTES (UINT64_C(1) << 28)
#define PAIR_LIMIT (INT64_C(1) << UF__VALUE_PAIR_BITS)

typedef uf_status execute_fn(uf__pickle *machine, uf_error *error);

static uf_status ends_early(const uf__pickle *machine, uf_error *error)
{
    uf_status status = uf__pickle_fail(machine, error, "the data ends early, at byte %" PRIu64,
                                       machine->input->decoded_bytes);
    return status != UF_OK ? status : UF_ERROR_BAD_INPUT;
}

/* Takes size_bytes (few) of operand from the input. */
static uf_status operand(uf__pickle *machine, size_t size_bytes, const uint8_t **bytes,
                         uf_error *error)
{
    uf__input *input = machine->input;
    uf_status status = uf__input_ensure(input, size_bytes, error);
    if (status != UF_OK)
        return status;
    if (uf__input_at_hand(input) < size_bytes)
        return ends_early(machine, error);
    *bytes = input->cursor;
    input->cursor += size_bytes;
    return UF_OK;
}

/* Takes a little-endian unsigned operand of 1 to 8 bytes. */
static uf_status operand_number(uf__pickle *machine, unsigned size_bytes, uint64_t *number,
                                uf_error *error)
{
    const uint8_t *bytes = NULL;
    uf_status status = operand(machine, size_bytes, &bytes, error);
    if (status != UF_OK)
        return status;
    uint64_t word = 0;
    for (unsigned i = 0; i < size_bytes; i++)
        word |= (uint64_t)bytes[i] << (8 * i);
    *number = word;
    return UF_OK;
}

static uf_status skip(uf__pickle *machine, uint64_t size_bytes, uf_error *error)
{
    uf__input *input = machine->input;
    while (size_bytes > 0) {
        uf_status status = uf__input_ensure(input, 1, error);
        if (status != UF_OK)
            return status;
        uint64_t part = uf__input_at_hand(input);
        if (part == 0)
            return uf__pickle_fail(
                machine, error, "announces %" PRIu64 " bytes more than the data holds", size_bytes);
        if (part > size_bytes)
            part = size_bytes;
        input->cursor += part;
        size_bytes -= part;
    }
    return UF_OK;
}

/* A string longer than the window can hold: collected as it arrives, so that a made-up length
 * costs nothing. */
static uf_status push_long_string(uf__pickle *machine, uint64_t length, uf_error *error)
{
    if (length > STRING_MAX_BYTES)
        return uf__pickle_fail(machine, error, "a string of %" PRIu64 " bytes", length);
    char *text = NULL;
    uint64_t have = 0, capacity = 0;
    uf_status status = UF_OK;
    while (have < length && status == UF_OK) {
        status = uf__input_ensure(machine->input, 1, error);
        if (status != UF_OK)
            break;
        uint64_t part = uf__input_at_hand(machine->input);
        if (part == 0) {
            status = uf__pickle_fail(machine, error,
                                     "announces %" PRIu64 " bytes more than the data holds",
                                     length - have);
            break;
        }
        if (part > length - have)
            part = length - have;
        if (have + part > capacity) {
            char *moved = uf__array_grow(text, &capacity, have + part, 1);
            if (moved == NULL) {
                status = uf__pickle_fail_store(machine, error);
                break;
            }
            text = moved;
        }
        memcpy(text + have, machine->input->cursor, (size_t)part);
        machine->input->cursor += part;
        have += part;
    }
    uf__value value;
    if (status == UF_OK)
        status = uf__pickle_string(machine, (const uint8_t *)text, (size_t)length, &value, error);
    if (status == UF_OK)
        status = uf__pickle_push(machine, value);
    free(text);
    return status;
}

static uf_status push_string(uf__pickle *machine, unsigned length_bytes, uf_error *error)
{
    uint64_t length;
    uf_status status = operand_number(machine, length_bytes, &length, error);
    if (status != UF_OK)
        return status;
    if (length > UF__INPUT_ENSURE_BYTES)
        return push_long_string(machine, length, error);
    const uint8_t *text = NULL;
    status = operand(machine, (size_t)length, &text, error);
    if (status != UF_OK)
        return status;
    uf__value value;
    status = uf__pickle_string(machine, text, (size_t)length, &value, error);
    return status != UF_OK ? status : uf__pickle_push(machine, value);
}

static uf_status push_bytes(uf__pickle *machine, unsigned length_bytes, uf_error *error)
{
    uint64_t length;
    uf_status status = operand_number(machine, length_bytes, &length, error);
    if (status == UF_OK)
        status = skip(machine, length, error);
    return status != UF_OK ? status : uf__pickle_push(machine, UF__VALUE_OPAQUE);
}

static uf_status push_wide(uf__pickle *machine, uf__wide wide, uf_error *error)
{
    int64_t low = (int64_t)wide.low;
    uf__value value = wide.low << UF__VALUE_TAG_BITS;
    bool is_small = wide.high == (low < 0 ? -1 : 0) && (int64_t)value >> UF__VALUE_TAG_BITS == low;
    if (!is_small && !uf__store_wide(machine->store, UF__TAG_WIDE, wide, &value))
        return uf__pickle_fail_store(machine, error);
    return uf__pickle_push(machine, value);
}

/* An integer of length bytes, little-endian two's complement. */
static uf_status push_long(uf__pickle *machine, uint64_t length, uf_error *error)
{
    if (length > 16) {
        uf_status status = skip(machine, length, error);
        return status != UF_OK ? status : uf__pickle_push(machine, UF__VALUE_HUGE);
    }
    const uint8_t *bytes = NULL;
    uf_status status = operand(machine, (size_t)length, &bytes, error);
    if (status != UF_OK)
        return status;
    bool is_negative = length > 0 && bytes[length - 1] >= 0x80;
    uint8_t padded[16];
    memset(padded, is_negative ? 0xff : 0, sizeof padded);
    memcpy(padded, bytes, (size_t)length);
    uint64_t words[2];
    memcpy(words, padded, sizeof words);
    uf__wide wide = {.low = le64toh(words[0]), .high = (int64_t)le64toh(words[1])};
    return push_wide(machine, wide, error);
}

static uf_status mark(uf__pickle *machine, uf_error *error)
{
    (void)error;
    machine->marks[machine->mark_count++] = machine->stack_count;
    return UF_OK;
}

static uf_status stop(uf__pickle *machine, uf_error *error)
{
    (void)error;
    machine->is_stopped = true;
    return UF_OK;
}

/* POP right after MARK takes the mark, as in Python. */
static uf_status pop(uf__pickle *machine, uf_error *error)
{
    if (machine->mark_count > 1 &&
        machine->marks[machine->mark_count - 1] == machine->stack_count) {
        machine->mark_count--;
        return UF_OK;
    }
    uf_status status = uf__pickle_need(machine, 1, error);
    if (status == UF_OK)
        machine->stack_count--;
    return status;
}

static uf_status pop_mark(uf__pickle *machine, uf_error *error)
{
    uf__value *values;
    uint64_t count;
    uf_status status = uf__pickle_pop_mark(machine, &values, &count, error);
    if (status == UF_OK)
        machine->stack_count -= count;
    return status;
}

static uf_status dup_top(uf__pickle *machine, uf_error *error)
{
    uf_status status = uf__pickle_need(machine, 1, error);
    if (status != UF_OK)
        return status;
    uf__value value = uf__store_resolve(machine->store, machine->stack[machine->stack_count - 1]);
    if (uf__value_is_container(value))
        uf__store_object(machine->store, value)->flags |= UF__OBJECT_SHARED;
    return uf__pickle_push(machine, value);
}

static uf_status text_float(uf__pickle *machine, uf_error *error)
{
    uf__wide wide = {0};
    uf__value value;
    uf_status status = uf__pickle_text_float(machine, &wide.low, error);
    if (status != UF_OK)
        return status;
    if (!uf__store_wide(machine->store, UF__TAG_FLOAT, wide, &value))
        return uf__pickle_fail_store(machine, error);
    return uf__pickle_push(machine, value);
}

static uf_status push_text_number(uf__pickle *machine, bool is_long, uf_error *error)
{
    uf__wide wide = {0};
    uf__value constant = UF__VALUE_NOTHING;
    uf_status status = uf__pickle_text_number(machine, is_long, &wide, &constant, error);
    if (status != UF_OK)
        return status;
    if (constant != UF__VALUE_NOTHING)
        return uf__pickle_push(machine, constant);
    return push_wide(machine, wide, error);
}

static uf_status text_int(uf__pickle *machine, uf_error *error)
{
    return push_text_number(machine, false, error);
}

static uf_status text_long(uf__pickle *machine, uf_error *error)
{
    return push_text_number(machine, true, error);
}

static uf_status binint(uf__pickle *machine, uf_error *error)
{
    return push_long(machine, 4, error);
}

static uf_status push_unsigned(uf__pickle *machine, unsigned size_bytes, uf_error *error)
{
    uint64_t number;
    uf_status status = operand_number(machine, size_bytes, &number, error);
    if (status != UF_OK)
        return status;
    return uf__pickle_push(machine, uf__value_make(UF__TAG_INT, number));
}

static uf_status binint1(uf__pickle *machine, uf_error *error)
{
    return push_unsigned(machine, 1, error);
}

static uf_status binint2(uf__pickle *machine, uf_error *error)
{
    return push_unsigned(machine, 2, error);
}

static uf_status none(uf__pickle *machine, uf_error *error)
{
    (void)error;
    return uf__pickle_push(machine, UF__VALUE_NONE);
}

static uf_status newtrue(uf__pickle *machine, uf_error *error)
{
    (void)error;
    return uf__pickle_push(machine, UF__VALUE_TRUE);
}

static uf_status newfalse(uf__pickle *machine, uf_error *error)
{
    (void)error;
    return uf__pickle_push(machine, UF__VALUE_FALSE);
}

static uf_status refuse(uf__pickle *machine, uf_error *error)
{
    return uf__pickle_fail(machine, error,
                           "refused, since it would build an object or reach outside the file; a "
                           "snapshot holds plain data only");
}

static uf_status push_text_string(uf__pickle *machine, bool is_unicode, uf_error *error)
{
    uf__value value;
    uf_status status = uf__pickle_text_string(machine, is_unicode, &value, error);
    return status != UF_OK ? status : uf__pickle_push(machine, value);
}

static uf_status text_string(uf__pickle *machine, uf_error *error)
{
    return push_text_string(machine, false, error);
}

static uf_status text_unicode(uf__pickle *machine, uf_error *error)
{
    return push_text_string(machine, true, error);
}

static uf_status short_string(uf__pickle *machine, uf_error *error)
{
    return push_string(machine, 1, error);
}

static uf_status binstring(uf__pickle *machine, uf_error *error)
{
    return push_string(machine, 4, error);
}

static uf_status binunicode(uf__pickle *machine, uf_error *error)
{
    return push_string(machine, 4, error);
}

static uf_status binunicode8(uf__pickle *machine, uf_error *error)
{
    return push_string(machine, 8, error);
}

static uf_status short_binbytes(uf__pickle *machine, uf_error *error)
{
    return push_bytes(machine, 1, error);
}

static uf_status binbytes(uf__pickle *machine, uf_error *error)
{
    return push_bytes(machine, 4, error);
}

static uf_status binbytes8(uf__pickle *machine, uf_error *error)
{
    return push_bytes(machine, 8, error);
}

static uf_status push_container(uf__pickle *machine, uf__tag tag, uf_error *error)
{
    uf__value value;
    if (!uf__store_create(machine->store, tag, &value))
        return uf__pickle_fail_store(machine, error);
    return uf__pickle_push(machine, value);
}

static uf_status empty_list(uf__pickle *machine, uf_error *error)
{
    return push_container(machine, UF__TAG_LIST, error);
}

static uf_status empty_dict(uf__pickle *machine, uf_error *error)
{
    return push_container(machine, UF__TAG_DICT, error);
}

static uf_status empty_tuple(uf__pickle *machine, uf_error *error)
{
    (void)error;
    return uf__pickle_push(machine, UF__VALUE_EMPTY);
}

static uf_status append(uf__pickle *machine, uf_error *error)
{
    uf_status status = uf__pickle_need(machine, 2, error);
    if (status != UF_OK)
        return status;
    return uf__pickle_append(machine, machine->stack + machine->stack_count - 1, 1, error);
}

static uf_status setitem(uf__pickle *machine, uf_error *error)
{
    uf_status status = uf__pickle_need(machine, 3, error);
    if (status != UF_OK)
        return status;
    return uf__pickle_set_items(machine, machine->stack + machine->stack_count - 2, 2, error);
}

/* Takes away the mark; a container must stand right below it. */
static uf_status pop_items(uf__pickle *machine, uf__value **values, uint64_t *count,
                           uf_error *error)
{
    uf_status status = uf__pickle_pop_mark(machine, values, count, error);
    return status != UF_OK ? status : uf__pickle_need(machine, *count + 1, error);
}

static uf_status appends(uf__pickle *machine, uf_error *error)
{
    uf__value *values;
    uint64_t count;
    uf_status status = pop_items(machine, &values, &count, error);
    return status != UF_OK ? status : uf__pickle_append(machine, values, count, error);
}

static uf_status setitems(uf__pickle *machine, uf_error *error)
{
    uf__value *values;
    uint64_t count;
    uf_status status = pop_items(machine, &values, &count, error);
    return status != UF_OK ? status : uf__pickle_set_items(machine, values, count, error);
}

/* LIST and DICT: a MARK, the items, and no container yet. It is slipped in below them, where the
 * mark has left no room on the stack, so that the items move up by one. */
static uf_status collect(uf__pickle *machine, uf__tag tag, uf_error *error)
{
    uf__value *values;
    uint64_t count;
    uf__value container;
    uf_status status = uf__pickle_pop_mark(machine, &values, &count, error);
    if (status != UF_OK)
        return status;
    if (!uf__store_create(machine->store, tag, &container))
        return uf__pickle_fail_store(machine, error);
    memmove(values + 1, values, (size_t)count * sizeof *values);
    values[0] = container;
    machine->stack_count++;
    if (count == 0)
        return UF_OK;
    return tag == UF__TAG_LIST ? uf__pickle_append(machine, values + 1, count, error)
                               : uf__pickle_set_items(machine, values + 1, count, error);
}

static uf_status list(uf__pickle *machine, uf_error *error)
{
    return collect(machine, UF__TAG_LIST, error);
}

static uf_status dict(uf__pickle *machine, uf_error *error)
{
    return collect(machine, UF__TAG_DICT, error);
}

/* Makes a tuple of the top count values. */
static uf_status make_tuple(uf__pickle *machine, uint64_t count, uf_error *error)
{
    uf_status status = uf__pickle_need(machine, count, error);
    if (status != UF_OK)
        return status;
    uf__value *values = machine->stack + machine->stack_count - count;
    machine->stack_count -= count;
    if (count == 0)
        return uf__pickle_push(machine, UF__VALUE_EMPTY);
    if (count == 2 && uf__value_tag(values[0]) == UF__TAG_INT &&
        uf__value_tag(values[1]) == UF__TAG_INT && uf__value_payload(values[0]) < PAIR_LIMIT &&
        uf__value_payload(values[1]) < PAIR_LIMIT)
        return uf__pickle_push(
            machine,
            uf__value_make(UF__TAG_PAIR, uf__value_payload(values[1]) << UF__VALUE_PAIR_BITS |
                                             uf__value_payload(values[0])));
    uf__value tuple_value;
    status = uf__pickle_seal(machine, values, count, 1, error);
    if (status != UF_OK)
        return status;
    if (!uf__store_create(machine->store, UF__TAG_LIST, &tuple_value) ||
        !uf__store_append_list(machine->store, tuple_value, values, count))
        return uf__pickle_fail_store(machine, error);
    uf__store_object(machine->store, tuple_value)->flags |= UF__OBJECT_SEALED;
    return uf__pickle_push(machine, tuple_value);
}

static uf_status tuple(uf__pickle *machine, uf_error *error)
{
    uf__value *values;
    uint64_t count;
    uf_status status = uf__pickle_pop_mark(machine, &values, &count, error);
    return status != UF_OK ? status : make_tuple(machine, count, error);
}

static uf_status tuple1(uf__pickle *machine, uf_error *error)
{
    return make_tuple(machine, 1, error);
}

static uf_status tuple2(uf__pickle *machine, uf_error *error)
{
    return make_tuple(machine, 2, error);
}

static uf_status tuple3(uf__pickle *machine, uf_error *error)
{
    return make_tuple(machine, 3, error);
}

/* Sets have no place in a snapshot: accepted, their members forgotten. */
static uf_status empty_set(uf__pickle *machine, uf_error *error)
{
    (void)error;
    return uf__pickle_push(machine, UF__VALUE_OPAQUE);
}

static uf_status additems(uf__pickle *machine, uf_error *error)
{
    uf__value *values;
    uint64_t count;
    uf_status status = pop_items(machine, &values, &count, error);
    if (status != UF_OK)
        return status;
    if (values[-1] != UF__VALUE_OPAQUE)
        return uf__pickle_fail(machine, error, "adds to %s", uf__value_noun(values[-1]));
    machine->stack_count -= count;
    return UF_OK;
}

static uf_status frozenset(uf__pickle *machine, uf_error *error)
{
    uf_status status = pop_mark(machine, error);
    return status != UF_OK ? status : uf__pickle_push(machine, UF__VALUE_OPAQUE);
}

static uf_status recall_number(uf__pickle *machine, unsigned size_bytes, uf_error *error)
{
    uint64_t index;
    uf_status status = operand_number(machine, size_bytes, &index, error);
    return status != UF_OK ? status : uf__pickle_recall(machine, index, error);
}

static uf_status memoize_number(uf__pickle *machine, unsigned size_bytes, uf_error *error)
{
    uint64_t index;
    uf_status status = operand_number(machine, size_bytes, &index, error);
    return status != UF_OK ? status : uf__pickle_memoize(machine, index, error);
}

static uf_status binget(uf__pickle *machine, uf_error *error)
{
    return recall_number(machine, 1, error);
}

static uf_status long_binget(uf__pickle *machine, uf_error *error)
{
    return recall_number(machine, 4, error);
}

static uf_status binput(uf__pickle *machine, uf_error *error)
{
    return memoize_number(machine, 1, error);
}

static uf_status long_binput(uf__pickle *machine, uf_error *error)
{
    return memoize_number(machine, 4, error);
}

static uf_status text_get(uf__pickle *machine, uf_error *error)
{
    uint64_t index;
    uf_status status = uf__pickle_text_index(machine, &index, error);
    return status != UF_OK ? status : uf__pickle_recall(machine, index, error);
}

static uf_status text_put(uf__pickle *machine, uf_error *error)
{
    uint64_t index;
    uf_status status = uf__pickle_text_index(machine, &index, error);
    return status != UF_OK ? status : uf__pickle_memoize(machine, index, error);
}

static uf_status memoize(uf__pickle *machine, uf_error *error)
{
    return uf__pickle_memoize(machine, machine->store->memo_used_count, error);
}

static uf_status binfloat(uf__pickle *machine, uf_error *error)
{
    const uint8_t *bytes = NULL;
    uf_status status = operand(machine, 8, &bytes, error);
    if (status != UF_OK)
        return status;
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    uf__wide wide = {.low = be64toh(word)};
    uf__value value;
    if (!uf__store_wide(machine->store, UF__TAG_FLOAT, wide, &value))
        return uf__pickle_fail_store(machine, error);
    return uf__pickle_push(machine, value);
}

static uf_status long1(uf__pickle *machine, uf_error *error)
{
    uint64_t length;
    uf_status status = operand_number(machine, 1, &length, error);
    return status != UF_OK ? status : push_long(machine, length, error);
}

static uf_status long4(uf__pickle *machine, uf_error *error)
{
    uint64_t length;
    uf_status status = operand_number(machine, 4, &length, error);
    if (status != UF_OK)
        return status;
    if (length > INT32_MAX)
        return uf__pickle_fail(machine, error, "a number with a negative length");
    return push_long(machine, length, error);
}

static uf_status proto(uf__pickle *machine, uf_error *error)
{
    uint64_t version;
    uf_status status = operand_number(machine, 1, &version, error);
    if (status == UF_OK && version > PROTOCOL_MAX)
        return uf__pickle_fail(machine, error,
                               "protocol %" PRIu64 ", newer than the newest known, %d", version,
                               PROTOCOL_MAX);
    return status;
}

/* Frames only help readers that fetch them in one go; the opcodes inside say all there is. */
static uf_status frame(uf__pickle *machine, uf_error *error)
{
    uint64_t length;
    return operand_number(machine, 8, &length, error);
}

static const struct {
    const char *name;
    execute_fn *execute;
} opcodes[256] = {
#define OPCODE_ENTRY(opcode_name, byte, function) \
    [byte] = {.name = #opcode_name, .execute = function},
    UF__PICKLE_OPCODE_LIST(OPCODE_ENTRY)
#undef OPCODE_ENTRY
};

const char *uf__pickle_opcode_name(uint8_t opcode)
{
    return opcodes[opcode].name;
}

uf_status uf__pickle_execute(uf__pickle *machine, uf_error *error)
{
    execute_fn *execute = opcodes[machine->opcode].execute;
    if (execute == NULL)
        return uf__pickle_fail(machine, error, "byte 0x%02x is no opcode", machine->opcode);
    return execute(machine, error);
}
