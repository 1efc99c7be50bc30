/* SPDX-License-Identifier: MIT
 *
 * Scripts: a worked example typed in as text, one command a line, read as a trace. docs/script.md
 * describes the language. Knows nothing of files and of how a trace is replayed. */
#ifndef UF_TRACE_SCRIPT_H
#define UF_TRACE_SCRIPT_H

#include <unfrag/trace.h>

#include "trace/builder.h"
#include "trace/input.h"

/* The action name of an event that stands for torch.cuda.empty_cache(); its action is
 * UF_ACTION_OTHER, its address and size are 0. */
#define UF_SCRIPT_EMPTY_CACHE "empty_cache"

/* Reads a script into a builder, which the caller then finishes; sets form, script_card_bytes,
 * script_limit_bytes and settings.conf. The input stands at its first byte. Returns UF_OK;
 * UF_ERROR_BAD_INPUT (error names the line, what is wrong and what is allowed);
 * UF_ERROR_HOST_MEMORY; UF_ERROR_IO, UF_ERROR_INTERRUPTED (from the input). */
uf_status uf__script_read(uf__input *input, uf_builder *builder, uf_error *error) UF_MUST_USE;

#endif
