/* SPDX-License-Identifier: MIT
 *
 * The operands of the text opcodes of protocol 0: one line each. */
#ifndef UF_TRACE_PICKLE_TEXT_H
#define UF_TRACE_PICKLE_TEXT_H

#include "trace/pickle_machine.h"

/* Each takes a line from the input and fails with a message that names the opcode. */

/* The bits of a double. */
uf_status uf__pickle_text_float(uf__pickle *machine, uint64_t *bits, uf_error *error) UF_MUST_USE;

/* INT or LONG: *constant is UF__VALUE_NOTHING and *wide the number; or *constant is a boolean or
 * UF__VALUE_HUGE. */
uf_status uf__pickle_text_number(uf__pickle *machine, bool is_long, uf__wide *wide,
                                 uf__value *constant, uf_error *error) UF_MUST_USE;

/* The index of GET or PUT. */
uf_status uf__pickle_text_index(uf__pickle *machine, uint64_t *index, uf_error *error) UF_MUST_USE;

/* STRING (quoted, with escapes) or UNICODE (raw-unicode-escape), as a string value in UTF-8. */
uf_status uf__pickle_text_string(uf__pickle *machine, bool is_unicode, uf__value *value,
                                 uf_error *error) UF_MUST_USE;

#endif
