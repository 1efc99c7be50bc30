/* SPDX-License-Identifier: MIT
 *
 * A small HTTP/1.1 server: GET and HEAD, one answer a connection, one thread. Bounded: 32
 * connections, 8 KiB of request, ten seconds to send it and to take the answer. Knows nothing of
 * what is served. */
#ifndef UF_MONITOR_HTTP_H
#define UF_MONITOR_HTTP_H

#include <stdbool.h>
#include <stdio.h>

#include <unfrag/status.h>

#define UF_HTTP_ADDRESS_CAPACITY 96

/* Writes the body for a path (without the query); returns its content type, or NULL: not found. */
typedef const char *(*uf_http_answer)(void *context, const char *path, FILE *body);

typedef struct uf_http_handler {
    uf_http_answer answer;
    bool (*is_ending)(void); /* asked at least twice a second */
    void *context;
} uf_http_handler;

/* address: "HOST:PORT", ":PORT" or "PORT"; HOST a numeric IPv4 or [IPv6] address or localhost,
 * 127.0.0.1 where it is left out; port 0 = any. bound: receives the address in full. Returns UF_OK;
 * UF_ERROR_INVALID_ARGUMENT (not such an address); UF_ERROR_IO (it cannot be listened on). The
 * caller closes *listener. */
uf_status uf__http_listen(const char *address, int *listener, char bound[UF_HTTP_ADDRESS_CAPACITY],
                          uf_error *error) UF_MUST_USE;

/* Serves until is_ending. Returns UF_OK; UF_ERROR_IO (waiting for connections failed). */
uf_status uf__http_serve(int listener, const uf_http_handler *handler, uf_error *error) UF_MUST_USE;

/* The status code of a request's head, which ends at its blank line: 200, or why not. path:
 * receives the path of a request that is answered with 200. */
int uf__http_parse(const char *head, char path[256], bool *is_head_only);

#endif
