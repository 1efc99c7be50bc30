/* SPDX-License-Identifier: MIT
 *
 * The forms of `convert` that only other programs read: a Chrome trace, and CSV. */
#ifndef CLI_CONVERT_FORM_H
#define CLI_CONVERT_FORM_H

#include <stdio.h>

#include <unfrag/trace.h>

typedef struct cli_perfetto_bounds {
    uint64_t points; /* time slices per counter, each with its first, least, largest and last value;
                        0 = every change */
    uint64_t blocks; /* the largest blocks are shown one by one */
} cli_perfetto_bounds;

/* UF_OK, UF_ERROR_IO or UF_ERROR_HOST_MEMORY. */
uf_status cli_perfetto_write(const uf_trace *trace, const cli_perfetto_bounds *bounds, FILE *stream,
                             uf_error *error) UF_MUST_USE;
uf_status cli_csv_write(const uf_trace *trace, FILE *stream, uf_error *error) UF_MUST_USE;

#endif
