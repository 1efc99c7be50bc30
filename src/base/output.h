/* SPDX-License-Identifier: MIT
 *
 * Writing a file so that its name never holds half of it. The bytes go to a file that has no name
 * yet (O_TMPFILE), or, where the file system lacks those, to a hidden temporary beside the target;
 * the name appears when the output is committed. A process killed in between leaves nothing in the
 * first case. Standard output ("-"), devices and pipes are written directly.
 * A uf_output belongs to one thread; it has no lock. */
#ifndef UF_BASE_OUTPUT_H
#define UF_BASE_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include <unfrag/status.h>

typedef struct uf_output {
    FILE *stream;     /* write here; owned by the output */
    char *path;       /* the name to appear; NULL when written directly */
    char *temporary;  /* its name until then; NULL while the file has none */
    bool is_forced;   /* an existing file may be replaced */
    bool is_standard; /* the stream is stdout and stays open */
} uf_output;

/* Opens an output. path: a file name, or "-" for standard output. is_forced: replace a file that
 * exists (a symbolic link is followed, its target is replaced and keeps its permissions).
 * Returns UF_OK; UF_ERROR_INVALID_ARGUMENT (the file exists and is_forced is false, or path is a
 * directory or empty); UF_ERROR_IO (it cannot be created); UF_ERROR_HOST_MEMORY. On UF_OK the
 * caller ends it with exactly one of uf__output_commit and uf__output_abandon. */
uf_status uf__output_open(uf_output *output, const char *path, bool is_forced,
                          uf_error *error) UF_MUST_USE;

/* Writes out what is buffered, waits until the disk has it, and gives the file its name. Returns
 * UF_OK; UF_ERROR_IO (a write failed, such as on a full disk); UF_ERROR_INVALID_ARGUMENT (a file of
 * that name has appeared since and is_forced is false). The output is closed in every case, and
 * nothing is left behind on failure. */
uf_status uf__output_commit(uf_output *output, uf_error *error) UF_MUST_USE;

/* Closes the output and drops what was written. Accepts one that is closed already. */
void uf__output_abandon(uf_output *output);

#endif
