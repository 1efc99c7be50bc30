/* SPDX-License-Identifier: MIT
 *
 * The program's exit codes, and the one place where a status becomes one. Knows no verb. */
#ifndef CLI_EXIT_CODE_H
#define CLI_EXIT_CODE_H

#include <unfrag/status.h>

typedef enum cli_exit {
    CLI_EXIT_DONE = 0,
    CLI_EXIT_NO = 1,          /* the answer is no: does not fit, differs, invalid */
    CLI_EXIT_USAGE = 2,       /* the command line, or a settings string in it */
    CLI_EXIT_INPUT = 3,       /* the input cannot be read, or is not what it should be */
    CLI_EXIT_ENVIRONMENT = 4, /* no driver, no GPU, no memory, no room on the disk */
    CLI_EXIT_INTERNAL = 5,    /* unfrag broke one of its own rules */
    CLI_EXIT_INTERRUPTED = 130
} cli_exit;

/* The exit code of a status that came from reading or computing. */
cli_exit cli_exit_code(uf_status status);

/* Prints "unfrag VERB: TEXT" to stderr and returns the exit code of error->status. */
cli_exit cli_fail(const char *verb, const uf_error *error);

/* The same for a failure to write a result: UF_ERROR_IO is the environment's fault here. */
cli_exit cli_fail_output(const char *verb, const uf_error *error);

#endif
