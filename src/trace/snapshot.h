/* SPDX-License-Identifier: MIT
 *
 * PyTorch memory snapshots in pickle form. */
#ifndef UF_TRACE_SNAPSHOT_H
#define UF_TRACE_SNAPSHOT_H

#include "trace/builder.h"
#include "trace/input.h"
#include "trace/pickle.h"

/* Reads a snapshot pickle into a builder, which the caller then finishes. The input stands at its
 * first byte; skip_stacks leaves out frames. Returns UF_OK; UF_ERROR_BAD_INPUT (no pickle, no
 * snapshot, or values that cannot be); UF_ERROR_HOST_MEMORY; UF_ERROR_IO, UF_ERROR_INTERRUPTED
 * (from the input). */
uf_status uf__snapshot_read(uf__input *input, bool skip_stacks, uf_builder *builder,
                            uf_error *error) UF_MUST_USE;

/* A parser of another notation for the same values: what uf__pickle_read is for pickles. */
typedef uf_status uf__snapshot_parser(uf__input *input, uf__store *store,
                                      const uf__reducer *reducer, uf__value *result,
                                      uf_error *error);

/* The same for any notation; form and its name ("a pickle") tell which. */
uf_status uf__snapshot_read_form(uf__snapshot_parser *parse, uf_trace_form form,
                                 const char *form_name, uf__input *input, bool skip_stacks,
                                 uf_builder *builder, uf_error *error) UF_MUST_USE;

#endif
