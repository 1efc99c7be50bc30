/* SPDX-License-Identifier: MIT
 *
 * VmHWM of /proc/self/status: unlike getrusage it does not count what the parent had before exec.
 */
#include "host_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool cli_host_peak(uint64_t *bytes)
{
    static const char key[] = "VmHWM:";
    FILE *file = fopen("/proc/self/status", "re");
    if (file == NULL) {
        return false;
    }
    char line[256];
    bool is_found = false;
    while (!is_found && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, key, sizeof key - 1) == 0) {
            *bytes = strtoull(line + sizeof key - 1, NULL, 10) * 1024;
            is_found = true;
        }
    }
    fclose(file);
    return is_found;
}
