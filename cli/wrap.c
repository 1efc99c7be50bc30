/* SPDX-License-Identifier: MIT
 *
 * Breaking lines at blanks. */
#include "wrap.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_WIDTH = 88 };

void cli_print_wrapped(const char *lead, int indent, const char *text)
{
    int column = printf("%s", lead);
    bool is_first = true;
    while (*text != '\0') {
        int length = (int)strcspn(text, " ");
        if (!is_first && column + 1 + length > TEXT_WIDTH) {
            column = printf("\n%*s", indent, "") - 1;
            is_first = true;
        }
        column += printf("%s%.*s", is_first ? "" : " ", length, text);
        is_first = false;
        text += length;
        text += strspn(text, " ");
    }
    printf("\n");
}
