/* SPDX-License-Identifier: MIT
 *
 * The verbs: one source file, one manual page and one page under docs/ for each. */
#ifndef CLI_VERB_H
#define CLI_VERB_H

#include "exit_code.h"

/* argv[0] is "unfrag VERB", as the usage text shows it. */
typedef cli_exit cli_verb_run(int argc, char **argv);

typedef struct cli_verb {
    const char *name;
    const char *summary; /* one line, no full stop */
    cli_verb_run *run;
} cli_verb;

cli_verb_run cli_check;
cli_verb_run cli_convert;
cli_verb_run cli_doctor;
cli_verb_run cli_env;
cli_verb_run cli_explain;
cli_verb_run cli_export;
cli_verb_run cli_plan;
cli_verb_run cli_record;
cli_verb_run cli_replay;
cli_verb_run cli_run;
cli_verb_run cli_top;
cli_verb_run cli_torch;
cli_verb_run cli_trial;
cli_verb_run cli_report;
cli_verb_run cli_tune;

#endif
