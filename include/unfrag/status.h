/* SPDX-License-Identifier: MIT
 *
 * Status codes and the error record every fallible unfrag function reports through.
 * Nothing here allocates, prints or takes a lock. */
#ifndef UNFRAG_STATUS_H
#define UNFRAG_STATUS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* name, value, sentence. Values are spaced and never renumbered. */
#define UF_STATUS_LIST(X)                                                                \
    X(UF_OK, 0, "done")                                                                  \
    X(UF_ERROR_INVALID_ARGUMENT, 10, "an argument is outside what the function accepts") \
    X(UF_ERROR_CONF, 20, "a settings string was not accepted")                           \
    X(UF_ERROR_HOST_MEMORY, 30, "the host has no memory left")                           \
    X(UF_ERROR_OUT_OF_MEMORY, 40, "the device memory request cannot be served")          \
    X(UF_ERROR_REQUEST_TOO_LARGE, 41, "the request is 2^60 bytes or more")               \
    X(UF_ERROR_DEVICE_MEMORY, 50, "the device driver has no memory left")                \
    X(UF_ERROR_DEVICE, 51, "a device driver call failed")                                \
    X(UF_ERROR_FOREIGN_POINTER, 60, "the address was not handed out by this allocator")  \
    X(UF_ERROR_NOT_FOUND, 61, "no such pool, stream or name")                            \
    X(UF_ERROR_BUSY, 62, "the object is still in use")                                   \
    X(UF_ERROR_DAMAGED, 63, "memory was written where nobody owned it")                  \
    X(UF_ERROR_HAZARD, 70, "PyTorch's behaviour here is undefined and is not imitated")  \
    X(UF_ERROR_BAD_INPUT, 80, "the input is not what it should be")                      \
    X(UF_ERROR_IO, 81, "reading or writing failed")                                      \
    X(UF_ERROR_UNSUPPORTED, 82, "this build or machine cannot do it")                    \
    X(UF_ERROR_INTERRUPTED, 90, "interrupted")                                           \
    X(UF_ERROR_INTERNAL, 100, "unfrag broke one of its own rules")

typedef enum uf_status {
#define UF_STATUS_ENUM(name, value, text) name = value,
    UF_STATUS_LIST(UF_STATUS_ENUM)
#undef UF_STATUS_ENUM
} uf_status;

#if defined(__GNUC__)
#define UF_MUST_USE __attribute__((warn_unused_result))
#define UF_PRINTF(format_index, first_index) \
    __attribute__((format(printf, format_index, first_index)))
#define UF_API __attribute__((visibility("default")))
#else
#define UF_MUST_USE
#define UF_PRINTF(format_index, first_index)
#define UF_API
#endif

/* What failed, why and what to try, as one line of text. The caller owns it, usually on its stack;
 * functions that take one accept NULL. Filled only when a function returns something but UF_OK. */
typedef struct uf_error {
    uf_status status;
    char text[500];
} uf_error;

/* Returns the name of a status, such as "UF_ERROR_IO"; "UF_ERROR_UNKNOWN" for a value outside the
 * list. The text is static. Thread-safe. Since 0.1. */
UF_API const char *uf_status_name(uf_status status);

/* Returns one sentence on a status. The text is static. Thread-safe. Since 0.1. */
UF_API const char *uf_status_text(uf_status status);

#ifdef __cplusplus
}
#endif
#endif
