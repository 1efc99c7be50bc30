/* SPDX-License-Identifier: MIT
 *
 * Who a process is, by /proc. Reads into small buffers on the stack; no lock. */
#include "publish/process.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Returns how many bytes were read, 0 if none; the buffer ends with a NUL. */
static size_t read_start(const char *path, char *buffer, size_t capacity)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        buffer[0] = '\0';
        return 0;
    }
    ssize_t count = read(file, buffer, capacity - 1);
    close(file);
    size_t length = count > 0 ? (size_t)count : 0;
    buffer[length] = '\0';
    return length;
}

bool uf__process_parse_start(const char *stat_line, uint64_t *start_ticks)
{
    enum { FIELDS_BETWEEN = 19 }; /* from the state, which follows the command, to field 22 */
    const char *at = strrchr(stat_line, ')');
    if (at == NULL || at[1] != ' ' || at[2] == 'Z' || at[2] == 'X') {
        return false;
    }
    at += 2;
    for (int i = 0; i < FIELDS_BETWEEN; i++) {
        at = strchr(at, ' ');
        if (at == NULL) {
            return false;
        }
        at++;
    }
    if (*at < '0' || *at > '9') {
        return false;
    }
    *start_ticks = strtoull(at, NULL, 10);
    return true;
}

bool uf__process_start(uint32_t pid, uint64_t *start_ticks)
{
    char path[64], line[1024];
    snprintf(path, sizeof path, "/proc/%" PRIu32 "/stat", pid);
    return read_start(path, line, sizeof line) != 0 && uf__process_parse_start(line, start_ticks);
}

uint64_t uf__process_namespace(void)
{
    struct stat found;
    return stat("/proc/self/ns/pid", &found) == 0 ? (uint64_t)found.st_ino : 0;
}

void uf__process_command(char *buffer, size_t capacity)
{
    size_t length = read_start("/proc/self/cmdline", buffer, capacity);
    while (length > 0 && buffer[length - 1] == '\0') {
        length--;
    }
    for (size_t i = 0; i < length; i++) {
        unsigned char letter = (unsigned char)buffer[i];
        if (letter == '\0') {
            buffer[i] = ' ';
        } else if (letter < ' ' || letter == 127) {
            buffer[i] = '?';
        }
    }
    buffer[length] = '\0';
}
