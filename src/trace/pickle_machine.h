/* SPDX-License-Identifier: MIT
 *
 * The inside of the pickle machine, shared by pickle.c (the loop and the frequent opcodes) and
 * pickle_data.c (the others). */
#ifndef UF_TRACE_PICKLE_MACHINE_H
#define UF_TRACE_PICKLE_MACHINE_H

#include "base/error.h"
#include "trace/pickle.h"

/* Words on the stack at once: a C++ writer has a whole list there before its APPENDS. */
#define UF__PICKLE_STACK_MAX (UINT64_C(1) << 28)
#define UF__PICKLE_CACHE_SIZE 512

typedef struct uf__short_string {
    uint64_t bytes;
    uint32_t length; /* UF_NONE: empty slot */
    uint32_t id;
} uf__short_string;

/* One key of dictionaries seen before, and what may follow it: the keys of all of them are a tree,
 * in which the next key is a child and the other keys that came in the same place are its siblings.
 */
typedef struct uf__shape_key {
    uint64_t bytes, mask;    /* as written: BINGET or LONG_BINGET and the memo index */
    uint64_t seen;           /* bits of the slots of this key and those before it */
    uf__value first_unknown; /* among them, the first without a slot */
    uint32_t unknown_count;
    uint8_t length;         /* of bytes */
    uint8_t slot;           /* the reducer's slot_count = of an unknown key */
    uint8_t child, sibling; /* 0 = none */
} uf__shape_key;

#define UF__SHAPE_KEYS_MAX 120u

/* stack[marks[i]] is the first value above mark i; values below the last mark are out of reach.
 * marks[0] is 0 and no mark.
 *
 *     stack  | list | dict | key | value | ...
 *                          ^ marks[mark_count - 1] */
typedef struct uf__pickle {
    uf__input *input;
    uf__store *store;
    uf__reducer reducer;
    uf__value *stack;
    uint64_t stack_count, stack_capacity;
    uint64_t *marks;
    uint64_t mark_count, mark_capacity;
    uint64_t provided_bytes; /* input->decoded_bytes up to which stack, marks and memo have room */
    uint64_t opcode_offset;  /* of the opcode being executed, for messages */
    uint8_t opcode;
    bool is_stopped;
    uf__short_string cache[UF__PICKLE_CACHE_SIZE]; /* strings of up to 8 bytes */
    uf__shape_key shapes[UF__SHAPE_KEYS_MAX]; /* [0] and [1]: roots, of dictionaries outside and
                                                 inside a list that is being read */
    uint32_t shape_count;
} uf__pickle;

/* pickle_shape.c: takes a whole dictionary, whose EMPTY_DICT is consumed, at *cursor, moves that on
 * and puts the record that the dictionary has become at top. Returns false, with nothing changed,
 * where it is none that can be taken in one go. */
bool uf__pickle_take_dict(uf__pickle *machine, const uint8_t **cursor, uf__value *top);
/* Forgets all keys: memo entries are about to change. */
void uf__pickle_forget_shapes(uf__pickle *machine);

/* Executes the opcode machine->opcode, whose byte is consumed. Everything the loop in pickle.c does
 * not do itself. */
uf_status uf__pickle_execute(uf__pickle *machine, uf_error *error) UF_MUST_USE;

/* The value of a string in the window. */
uf_status uf__pickle_string(uf__pickle *machine, const uint8_t *text, size_t length,
                            uf__value *value, uf_error *error) UF_MUST_USE;

/* Fails with "byte N, OPCODE: text" and UF_ERROR_BAD_INPUT. */
uf_status uf__pickle_fail(const uf__pickle *machine, uf_error *error, const char *format, ...)
    UF_PRINTF(3, 4) UF_MUST_USE;

/* The store could not hold more: a bound (bad input) or the host's memory. */
uf_status uf__pickle_fail_store(const uf__pickle *machine, uf_error *error) UF_MUST_USE;

/* Puts a value on the stack. There is room: each opcode takes a byte at least and pushes one value
 * at most, and the loop makes room for as many values as bytes are at hand. */
static inline uf_status uf__pickle_push(uf__pickle *machine, uf__value value)
{
    machine->stack[machine->stack_count++] = value;
    return UF_OK;
}

/* Takes away the last mark; the values above it are *count at *values, still on the stack. */
uf_status uf__pickle_pop_mark(uf__pickle *machine, uf__value **values, uint64_t *count,
                              uf_error *error) UF_MUST_USE;

/* Makes sure that at least count values stand above the last mark. */
uf_status uf__pickle_need(const uf__pickle *machine, uint64_t count, uf_error *error) UF_MUST_USE;

/* SETITEMS, APPENDS and their kin: the container stands right below values. */
uf_status uf__pickle_set_items(uf__pickle *machine, uf__value *values, uint64_t count,
                               uf_error *error) UF_MUST_USE;
uf_status uf__pickle_append(uf__pickle *machine, uf__value *values, uint64_t count,
                            uf_error *error) UF_MUST_USE;

/* Seals the containers among values[0], values[step], ...; dictionaries may become records. */
uf_status uf__pickle_seal(uf__pickle *machine, uf__value *values, uint64_t count, uint64_t step,
                          uf_error *error) UF_MUST_USE;

/* Stores the top of the stack in the memo. */
uf_status uf__pickle_memoize(uf__pickle *machine, uint64_t index, uf_error *error) UF_MUST_USE;
uf_status uf__pickle_recall(uf__pickle *machine, uint64_t index, uf_error *error) UF_MUST_USE;

#endif
