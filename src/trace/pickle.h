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

/* What to do with dictionaries. All three may set *record to a record, and then the dictionary is
 * given up; they leave it alone to keep the dictionary as it is. pairs: pair_count times key,
 * value, all containers among them sealed; a repeated key's last value counts. Errors end the
 * reading. */
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
