/* SPDX-License-Identifier: MIT
 *
 * Filling a uf_error. Pure functions on the caller's memory; no lock. */
#ifndef UF_BASE_ERROR_H
#define UF_BASE_ERROR_H

#include <unfrag/status.h>

/* Stores the formatted text and the status in *error (NULL is accepted) and returns the status, so
 * that a caller can write `return uf__error_set(error, UF_ERROR_IO, ...)`. */
uf_status uf__error_set(uf_error *error, uf_status status, const char *format, ...) UF_PRINTF(3, 4);

#endif
