/* SPDX-License-Identifier: MIT
 *
 * Status names and error records. Knows nothing of who fails. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

const char *uf_status_name(uf_status status)
{
    switch (status) {
#define UF_STATUS_NAME(name, value, text) \
    case name:                            \
        return #name;
        UF_STATUS_LIST(UF_STATUS_NAME)
#undef UF_STATUS_NAME
    }
    return "UF_ERROR_UNKNOWN";
}

const char *uf_status_text(uf_status status)
{
    switch (status) {
#define UF_STATUS_TEXT(name, value, text) \
    case name:                            \
        return text;
        UF_STATUS_LIST(UF_STATUS_TEXT)
#undef UF_STATUS_TEXT
    }
    return "unknown status";
}

uf_status uf__error_set(uf_error *error, uf_status status, const char *format, ...)
{
    if (error != NULL) {
        error->status = status;
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(error->text, sizeof error->text, format, arguments);
        va_end(arguments);
    }
    return status;
}
