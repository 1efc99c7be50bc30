/* SPDX-License-Identifier: MIT
 *
 * From status to exit code (docs/exit-codes.md), and how an error is told. */
#include "exit_code.h"

#include <stdio.h>

#include "interrupt.h"

cli_exit cli_exit_code(uf_status status)
{
    switch (status) {
    case UF_OK:
        return CLI_EXIT_DONE;
    case UF_ERROR_OUT_OF_MEMORY:
    case UF_ERROR_REQUEST_TOO_LARGE:
    case UF_ERROR_FOREIGN_POINTER:
    case UF_ERROR_DAMAGED:
    case UF_ERROR_HAZARD:
        return CLI_EXIT_NO;
    case UF_ERROR_INVALID_ARGUMENT:
    case UF_ERROR_CONF:
    case UF_ERROR_NOT_FOUND:
        return CLI_EXIT_USAGE;
    case UF_ERROR_BAD_INPUT:
    case UF_ERROR_IO:
        return CLI_EXIT_INPUT;
    case UF_ERROR_HOST_MEMORY:
    case UF_ERROR_DEVICE_MEMORY:
    case UF_ERROR_DEVICE:
    case UF_ERROR_UNSUPPORTED:
        return CLI_EXIT_ENVIRONMENT;
    case UF_ERROR_INTERRUPTED:
        return CLI_EXIT_INTERRUPTED;
    case UF_ERROR_BUSY:
    case UF_ERROR_INTERNAL:
        break;
    }
    return CLI_EXIT_INTERNAL;
}

/* A read or write that Ctrl-C broke off reports an error of its own; the cause is the key. */
static cli_exit tell(const char *verb, const uf_error *error, cli_exit code)
{
    if (cli_is_interrupted()) {
        fprintf(stderr, "unfrag %s: interrupted\n", verb);
        return CLI_EXIT_INTERRUPTED;
    }
    fprintf(stderr, "unfrag %s: %s\n", verb, error->text);
    return code;
}

cli_exit cli_fail(const char *verb, const uf_error *error)
{
    return tell(verb, error, cli_exit_code(error->status));
}

cli_exit cli_fail_output(const char *verb, const uf_error *error)
{
    bool is_environment = error->status == UF_ERROR_IO;
    return tell(verb, error, is_environment ? CLI_EXIT_ENVIRONMENT : cli_exit_code(error->status));
}
