/* SPDX-License-Identifier: MIT
 *
 * Who a process is, by /proc: a pid alone may be somebody else's by now. Pure look-ups; no lock. */
#ifndef UF_PUBLISH_PROCESS_H
#define UF_PUBLISH_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Field 22 of the text of /proc/PID/stat; the command before it may hold blanks and brackets. False
 * if the text is not such a line, or that of a process that has ended. */
bool uf__process_parse_start(const char *stat_line, uint64_t *start_ticks);

/* When a process started, in the kernel's ticks since boot. False if there is no such process, or
 * if it has ended and waits for its parent. */
bool uf__process_start(uint32_t pid, uint64_t *start_ticks);

/* The inode of this process's pid namespace, 0 if not known. */
uint64_t uf__process_namespace(void);

/* The command line of this process, words separated by blanks, control characters replaced, cut at
 * capacity - 1 bytes; "" if not known. */
void uf__process_command(char *buffer, size_t capacity);

#endif
