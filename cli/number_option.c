/* SPDX-License-Identifier: MIT
 *
 * Whole numbers as options. */
#include "number_option.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

uf_status cli_number_option(const char *option, const char *text, uint64_t minimum,
                            uint64_t maximum, uint64_t *value, uf_error *error)
{
    bool has_digits_alone = text[0] != '\0' && strspn(text, "0123456789") == strlen(text);
    errno = 0;
    uint64_t found = has_digits_alone ? strtoull(text, NULL, 10) : 0;
    if (has_digits_alone && errno == 0 && found >= minimum && found <= maximum) {
        *value = found;
        return UF_OK;
    }
    if (maximum == UINT64_MAX) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "%s: a whole number of at least %" PRIu64 " is needed, not '%s'",
                             option, minimum, text);
    }
    return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                         "%s: a whole number from %" PRIu64 " to %" PRIu64 " is needed, not '%s'",
                         option, minimum, maximum, text);
}
