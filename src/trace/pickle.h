/* SPDX-License-Identifier: MIT
 *
 * A machine that reads pickles of plain data, protocols 0 to 5, and executes nothing: each opcode
 * that would import, call or build an object is refused by name. It never recurses, and never
 * allocates for more than the input has delivered. Knows nothing of snapshots: a reducer turns
 * dictionaries into records on the way. Not thread-safe. */
#ifndef UF_TRACE_PICKLE_H
#define UF_TRACE_PICKLE_H

#include <unfrag/status.h>

#include "trace/input.h"
#include "trace/value.h"

/* The keys of a dictionary whose values are in the reducer's slots. */
typedef struct uf__taken {
    uint64_t seen; /* bit i: slots[i] */
    uint64_t unknown_count;
    uf__value first_unknown;
} uf__taken;

/* What to do with dictionaries. The first three may set *record to a record, and then the
 * dictionary is given up; they leave it alone to keep the dictionary as it is. pairs: pair_count
 * times key, value, all containers among them sealed; a repeated key's last value counts. Errors
 * end the reading. */
typedef struct uf__reducer {
    void *context;
    /* A dictionary was filled in one go, but is still open. May be NULL. */
    uf_status (*fill)(void *context, const uf__value *pairs, uint64_t pair_count, uf__value *record,
                      uf_error *error);
    /* A dictionary is put into another container, and so complete. May be NULL. */
    uf_status (*seal)(void *context, const uf__value *pairs, uint64_t pair_count, uf__value *record,
                      uf_error *error);
    /* More pairs for something that is a record already. NULL refuses. */
    uf_status (*amend)(void *context, uf__value record, const uf__value *pairs, uint64_t pair_count,
                       uf_error *error);
    /* A quicker way for dictionaries like those before: the value of the key whose string id is
     * i < slot_count comes in slots[i], any other in slots[slot_count]. NULL: there is none. */
    uf__value *slots;
    uint32_t slot_count; /* at most 64 */
    /* The slots of the bits of seen are the whole dictionary but for unknown_count more keys;
     * is_sealed tells that it is put into a list right away. Returns false, with nothing changed
     * but interned strings and frames, to have it read the general way. */
    bool (*take)(void *context, const uf__taken *taken, bool is_sealed, uf__value *record);
    /* The value of slot, among those of seen so far, is a list of count values. The same. */
    bool (*take_list)(void *context, uint64_t seen, uint32_t slot, const uf__value *values,
                      uint64_t count, uf__value *word);
} uf__reducer;

/* Reads one pickle up to its STOP and requires that nothing follows. input and store are borrowed;
 * strings already in the store keep their ids. Returns UF_OK and the pickled value,
 * UF_ERROR_BAD_INPUT (the message names the byte offset), UF_ERROR_HOST_MEMORY, what the input
 * returns, or what the reducer returns. */
uf_status uf__pickle_read(uf__input *input, uf__store *store, const uf__reducer *reducer,
                          uf__value *result, uf_error *error) UF_MUST_USE;

/* Returns the name of an opcode, such as "GLOBAL"; NULL for a byte that is none. */
const char *uf__pickle_opcode_name(uint8_t opcode);

#endif
