/* SPDX-License-Identifier: MIT
 *
 * Starting a program under unfrag: the variables that it and its children find, the child itself,
 * and what its end means. Knows no verb. */
#ifndef CLI_LAUNCH_H
#define CLI_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>

#include <unfrag/status.h>

#include "exit_code.h"

/* One variable; value NULL = not set. Texts are owned by the list. */
typedef struct cli_variable {
    char *name, *value;
} cli_variable;

enum { CLI_VARIABLES_MOST = 24 };

typedef struct cli_variables {
    cli_variable items[CLI_VARIABLES_MOST];
    size_t count;
    bool has_failed; /* no host memory, or too many */
} cli_variables;

void cli_variables_set(cli_variables *list, const char *name, const char *value);
void cli_variables_fini(cli_variables *list);

/* What a program is started with under the verbs run, record, trial and env: where the hook is, and
 * what it does (UNFRAG_MODE). The hook goes in front of PYTHONPATH, once.
 * Returns UF_OK; UF_ERROR_NOT_FOUND (unfrag's Python files are not there); UF_ERROR_HOST_MEMORY. */
uf_status cli_launch_variables(const char *mode, cli_variables *list, uf_error *error) UF_MUST_USE;

/* The folder python/ with the hook and the package; owned by the caller. NULL: not found. */
char *cli_python_folder(void);

/* Checks a --limit: a size or a share of the card. */
uf_status cli_launch_limit(const char *text, uf_error *error) UF_MUST_USE;

typedef struct cli_launch {
    char *const *command; /* ends with NULL; borrowed */
    const cli_variables *variables;
    const char *verb;       /* for messages */
    int output_descriptor;  /* the child's standard output and errors; -1 = ours */
    bool is_interruptible;  /* Ctrl-C ends the wait: the child is asked to end, too */
    bool is_quiet;          /* say nothing about how it ended */
    double timeout_seconds; /* 0 = none; the child is killed then */
} cli_launch;

typedef struct cli_launch_end {
    int exit_code; /* of the child; -1 if a signal ended it */
    int signal;    /* 0 if none did */
    bool is_timeout, is_interrupted;
    double seconds;
    long peak_resident_kib; /* of the child and its children */
} cli_launch_end;

/* Starts the command, waits, hands signals on. Fails if it cannot be started. */
uf_status cli_launch_wait(const cli_launch *launch, cli_launch_end *end,
                          uf_error *error) UF_MUST_USE;

/* What that end means, to stderr: silent for exit codes that say nothing about memory. */
void cli_launch_explain(const cli_launch *launch, const cli_launch_end *end);

/* The same in our own exit code: the child's, or 128 + signal. */
int cli_launch_code(const cli_launch_end *end);

#endif
