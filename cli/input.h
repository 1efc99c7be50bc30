/* SPDX-License-Identifier: MIT
 *
 * What an INPUT on the command line means: a file, "-" for standard input, or @NAME for a recording
 * that comes with unfrag. Knows where those lie, not what is in them. */
#ifndef CLI_INPUT_H
#define CLI_INPUT_H

#include <stdbool.h>
#include <stdint.h>

#include <unfrag/trace.h>

typedef struct cli_input {
    char *path;           /* what to open; owned */
    char *stats_path;     /* NAME.stats.json beside NAME.pickle* if it is there, or NULL; owned */
    bool is_bundled;      /* the argument was @NAME */
    uint64_t limit_bytes; /* the limit a bundled recording was made under; 0 = none */
} cli_input;

/* Finds what an argument names. Returns UF_OK; UF_ERROR_NOT_FOUND (no such recording: the error
 * lists those there are, and the nearest name); UF_ERROR_IO (no folder of recordings was found);
 * UF_ERROR_HOST_MEMORY. A file that does not exist is found out by reading it. The caller ends it
 * with cli_input_fini. */
uf_status cli_input_find(const char *argument, cli_input *input, uf_error *error) UF_MUST_USE;
void cli_input_fini(cli_input *input);

/* The path of another file that comes with the bundled recordings, or NULL if it is not there. The
 * caller frees it. */
char *cli_input_data_file(const char *name);

/* Reads the trace, with a progress bar. Returns what uf_trace_read returns. */
uf_status cli_input_read(const cli_input *input, bool skip_stacks, uf_trace **trace,
                         uf_error *error) UF_MUST_USE;

#endif
