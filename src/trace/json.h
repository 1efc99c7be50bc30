/* SPDX-License-Identifier: MIT
 *
 * JSON dumps of snapshots, in which tuples have become lists. The parser makes the same values as
 * the pickle machine and calls the same reducer on the way, so one table of keys gives both forms
 * their meaning; memory is what the trace needs, not what the text holds. It never recurses. Not
 * thread-safe. */
#ifndef UF_TRACE_JSON_H
#define UF_TRACE_JSON_H

#include <unfrag/trace.h>

#include "trace/builder.h"
#include "trace/input.h"
#include "trace/pickle.h"

/* Lists and dictionaries within each other; a snapshot has 8. */
#define UF__JSON_DEPTH_MAX 64

/* Reads one JSON value and requires that only blanks follow: the counterpart of uf__pickle_read,
 * with the same parameters and results. Integers beyond 64 bits become UF__VALUE_HUGE. */
uf_status uf__json_parse(uf__input *input, uf__store *store, const uf__reducer *reducer,
                         uf__value *result, uf_error *error) UF_MUST_USE;

/* Reads a JSON snapshot, a dictionary or a bare list of segments, into a builder, which the caller
 * then finishes. Returns UF_OK; UF_ERROR_BAD_INPUT (error names the byte offset);
 * UF_ERROR_HOST_MEMORY; UF_ERROR_IO, UF_ERROR_INTERRUPTED (from the input). */
uf_status uf__json_read(uf__input *input, uf_builder *builder, uf_error *error) UF_MUST_USE;

#endif
