/* SPDX-License-Identifier: MIT
 *
 * Running text for a terminal. */
#ifndef UF_CLI_WRAP_H
#define UF_CLI_WRAP_H

/* Prints the lead and the text behind it to stdout, broken at blanks so that lines stay below 88
 * columns; every line after the first begins with `indent` blanks. */
void cli_print_wrapped(const char *lead, int indent, const char *text);

#endif
