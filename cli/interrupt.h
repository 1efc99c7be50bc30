/* SPDX-License-Identifier: MIT
 *
 * Ctrl-C: the first one asks the running work to stop cleanly, the second one kills. */
#ifndef CLI_INTERRUPT_H
#define CLI_INTERRUPT_H

#include <stdbool.h>

/* Installs the handler. Called once, by main. */
void cli_interrupt_install(void);

/* Has Ctrl-C been pressed? Async-signal-safe. */
bool cli_is_interrupted(void);

#endif
