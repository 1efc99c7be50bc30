/* SPDX-License-Identifier: MIT
 *
 * The one flag that a signal sets. SA_RESETHAND makes the second Ctrl-C kill; without SA_RESTART a
 * blocking read of standard input ends at the first one. */
#include "interrupt.h"

#include <signal.h>
#include <string.h>

static volatile sig_atomic_t has_interrupt;

static void on_interrupt(int number)
{
    (void)number;
    has_interrupt = 1;
}

void cli_interrupt_install(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_interrupt;
    action.sa_flags = (int)SA_RESETHAND;
    sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
}

bool cli_is_interrupted(void)
{
    return has_interrupt != 0;
}
