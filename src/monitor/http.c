/* SPDX-License-Identifier: MIT
 *
 * The server's loop: every connection reads its request, then writes its answer, and is closed.
 * Sockets never block; poll tells which can go on. */
#include "monitor/http.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"

enum { CONNECTIONS_MAX = 32, HEAD_MAX = 8192, PATIENCE_MS = 10000, TICK_MS = 400 };

typedef struct connection {
    int socket; /* -1 = vacant */
    int64_t deadline_ms;
    size_t head_bytes;
    char *answer; /* NULL while the request is read */
    size_t answer_bytes, sent_bytes;
    char head[HEAD_MAX + 1];
} connection;

static int64_t now_ms(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static const char *reason(int code)
{
    switch (code) {
    case 200:
        return "OK";
    case 400:
        return "Bad Request";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 431:
        return "Request Header Fields Too Large";
    case 505:
        return "HTTP Version Not Supported";
    default:
        return "Internal Server Error";
    }
}

int uf__http_parse(const char *head, char path[256], bool *is_head_only)
{
    size_t method_bytes = strcspn(head, " \r\n");
    if (head[method_bytes] != ' ' || method_bytes == 0) {
        return 400;
    }
    const char *target = head + method_bytes + 1;
    size_t target_bytes = strcspn(target, " \r\n");
    const char *version = target + target_bytes;
    if (*version != ' ' || target[0] != '/') {
        return 400;
    }
    version++;
    if (strncmp(version, "HTTP/1.", 7) != 0) {
        return strncmp(version, "HTTP/", 5) == 0 ? 505 : 400;
    }
    if ((version[7] != '0' && version[7] != '1') || version[8] != '\r') {
        return 400;
    }
    *is_head_only = method_bytes == 4 && strncmp(head, "HEAD", 4) == 0;
    if (!*is_head_only && !(method_bytes == 3 && strncmp(head, "GET", 3) == 0)) {
        return 405;
    }
    size_t path_bytes = strcspn(target, "?# \r\n");
    if (path_bytes >= 256) {
        return 404;
    }
    memcpy(path, target, path_bytes);
    path[path_bytes] = '\0';
    return 200;
}

/* A whole answer of body_bytes at body; NULL if the host has no memory. */
static char *compose(int code, const char *type, const char *body, size_t body_bytes,
                     bool is_head_only, size_t *answer_bytes)
{
    char *answer = NULL;
    FILE *stream = open_memstream(&answer, answer_bytes);
    if (stream == NULL) {
        return NULL;
    }
    fprintf(stream,
            "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n%s"
            "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
            "Connection: close\r\n\r\n",
            code, reason(code), type, body_bytes, code == 405 ? "Allow: GET, HEAD\r\n" : "");
    if (!is_head_only) {
        fwrite(body, 1, body_bytes, stream);
    }
    if (fclose(stream) != 0) {
        free(answer);
        return NULL;
    }
    return answer;
}

static void answer_with(connection *one, int code, const uf_http_handler *handler, const char *path,
                        bool is_head_only)
{
    char *body = NULL;
    size_t body_bytes = 0;
    const char *type = "text/plain; charset=utf-8";
    FILE *stream = open_memstream(&body, &body_bytes);
    if (stream != NULL && code == 200) {
        type = handler->answer(handler->context, path, stream);
        code = type != NULL ? 200 : 404;
        type = type != NULL ? type : "text/plain; charset=utf-8";
    }
    if (stream != NULL && code != 200) {
        fprintf(stream, "%d %s\n", code, reason(code));
    }
    if (stream != NULL && fclose(stream) == 0) {
        one->answer = compose(code, type, body, body_bytes, is_head_only, &one->answer_bytes);
    }
    free(body);
    one->sent_bytes = 0;
    one->deadline_ms = now_ms() + PATIENCE_MS;
}

static void close_connection(connection *one)
{
    close(one->socket);
    free(one->answer);
    one->socket = -1;
    one->answer = NULL;
}

/* False: the connection is to be closed. */
static bool receive(connection *one, const uf_http_handler *handler)
{
    ssize_t count = recv(one->socket, one->head + one->head_bytes, HEAD_MAX - one->head_bytes, 0);
    if (count <= 0) {
        return count < 0 && (errno == EAGAIN || errno == EINTR);
    }
    one->head_bytes += (size_t)count;
    one->head[one->head_bytes] = '\0';
    bool is_text = strlen(one->head) == one->head_bytes;
    char path[256];
    bool is_head_only = false;
    if (is_text && strstr(one->head, "\r\n\r\n") != NULL) {
        int code = uf__http_parse(one->head, path, &is_head_only);
        answer_with(one, code, handler, path, is_head_only);
    } else if (!is_text || one->head_bytes == HEAD_MAX) {
        answer_with(one, is_text ? 431 : 400, handler, "", false);
    } else {
        return true;
    }
    return one->answer != NULL;
}

static bool send_some(connection *one)
{
    ssize_t count = send(one->socket, one->answer + one->sent_bytes,
                         one->answer_bytes - one->sent_bytes, MSG_NOSIGNAL);
    if (count < 0) {
        return errno == EAGAIN || errno == EINTR;
    }
    one->sent_bytes += (size_t)count;
    if (one->sent_bytes < one->answer_bytes) {
        return true;
    }
    /* What the peer still sends would make the kernel throw the answer away. */
    char rest[1024];
    (void)shutdown(one->socket, SHUT_WR);
    while (recv(one->socket, rest, sizeof rest, 0) > 0) {
    }
    return false;
}

static void accept_one(int listener, connection *connections)
{
    int accepted = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (accepted < 0) {
        return;
    }
    for (int i = 0; i < CONNECTIONS_MAX; i++) {
        if (connections[i].socket < 0) {
            connections[i].socket = accepted;
            connections[i].head_bytes = 0;
            connections[i].deadline_ms = now_ms() + PATIENCE_MS;
            return;
        }
    }
    close(accepted);
}

static int wait_for_sockets(int listener, const connection *connections,
                            struct pollfd polled[CONNECTIONS_MAX + 1])
{
    bool has_room = false;
    for (int i = 0; i < CONNECTIONS_MAX; i++) {
        const connection *one = &connections[i];
        has_room = has_room || one->socket < 0;
        polled[i] =
            (struct pollfd){.fd = one->socket, .events = one->answer != NULL ? POLLOUT : POLLIN};
    }
    /* A full house lets new ones wait in the kernel's queue. */
    polled[CONNECTIONS_MAX] = (struct pollfd){.fd = has_room ? listener : -1, .events = POLLIN};
    return poll(polled, CONNECTIONS_MAX + 1, TICK_MS);
}

static uf_status serve(int listener, connection *connections, const uf_http_handler *handler,
                       uf_error *error)
{
    struct pollfd polled[CONNECTIONS_MAX + 1];
    while (!handler->is_ending()) {
        if (wait_for_sockets(listener, connections, polled) < 0 && errno != EINTR) {
            return uf__error_set(error, UF_ERROR_IO, "waiting for connections failed: %s",
                                 strerror(errno));
        }
        if (handler->is_ending()) {
            break;
        }
        for (int i = 0; i < CONNECTIONS_MAX; i++) {
            connection *one = &connections[i];
            if (one->socket < 0) {
                continue;
            }
            bool is_ready = polled[i].fd == one->socket && polled[i].revents != 0;
            bool is_kept =
                !is_ready || (one->answer != NULL ? send_some(one) : receive(one, handler));
            if (!is_kept || now_ms() > one->deadline_ms) {
                close_connection(one);
            }
        }
        if (polled[CONNECTIONS_MAX].revents != 0) {
            accept_one(listener, connections);
        }
    }
    return UF_OK;
}

uf_status uf__http_serve(int listener, const uf_http_handler *handler, uf_error *error)
{
    connection *connections = calloc(CONNECTIONS_MAX, sizeof *connections);
    if (connections == NULL) {
        return uf__error_set(error, UF_ERROR_HOST_MEMORY, "no host memory to serve");
    }
    for (int i = 0; i < CONNECTIONS_MAX; i++) {
        connections[i].socket = -1;
    }
    uf_status status = serve(listener, connections, handler, error);
    for (int i = 0; i < CONNECTIONS_MAX; i++) {
        if (connections[i].socket >= 0) {
            close_connection(&connections[i]);
        }
    }
    free(connections);
    return status;
}

/* Cuts "HOST:PORT" in two. */
static bool split_address(const char *address, char host[64], char port[8])
{
    const char *colon = strrchr(address, ':');
    const char *number = colon != NULL ? colon + 1 : address;
    size_t host_bytes = colon != NULL ? (size_t)(colon - address) : 0;
    if (host_bytes > 2 && address[0] == '[' && address[host_bytes - 1] == ']') {
        address++;
        host_bytes -= 2;
    } else if (memchr(address, ':', host_bytes) != NULL) {
        return false;
    }
    if (host_bytes >= 64 || strlen(number) == 0 || strlen(number) > 5 ||
        strspn(number, "0123456789") != strlen(number) || atoi(number) > 65535) {
        return false;
    }
    memcpy(host, address, host_bytes);
    host[host_bytes] = '\0';
    if (host_bytes == 0 || strcmp(host, "localhost") == 0) {
        strcpy(host, "127.0.0.1");
    }
    strcpy(port, number);
    return true;
}

static int open_listener(const struct addrinfo *info)
{
    const int one = 1;
    int opened = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (opened < 0) {
        return -1;
    }
    (void)setsockopt(opened, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(opened, info->ai_addr, info->ai_addrlen) != 0 || listen(opened, 64) != 0) {
        int code = errno;
        close(opened);
        errno = code;
        return -1;
    }
    return opened;
}

static void name_listener(int listener, char bound[UF_HTTP_ADDRESS_CAPACITY])
{
    struct sockaddr_storage name;
    socklen_t name_bytes = sizeof name;
    char host[64], port[16];
    bound[0] = '\0';
    if (getsockname(listener, (struct sockaddr *)&name, &name_bytes) == 0 &&
        getnameinfo((struct sockaddr *)&name, name_bytes, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) == 0) {
        bool is_v6 = name.ss_family == AF_INET6;
        snprintf(bound, UF_HTTP_ADDRESS_CAPACITY, "%s%s%s:%s", is_v6 ? "[" : "", host,
                 is_v6 ? "]" : "", port);
    }
}

uf_status uf__http_listen(const char *address, int *listener, char bound[UF_HTTP_ADDRESS_CAPACITY],
                          uf_error *error)
{
    char host[64], port[8];
    const struct addrinfo wanted = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
                                    .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    if (!split_address(address, host, port) || getaddrinfo(host, port, &wanted, &found) != 0) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "'%s' is no address to listen on: use 127.0.0.1:PORT, [::1]:PORT, "
                             "another numeric address, or a port alone",
                             address);
    }
    int opened = open_listener(found);
    int code = errno;
    freeaddrinfo(found);
    if (opened < 0) {
        return uf__error_set(error, UF_ERROR_IO, "cannot listen on %s: %s; try another port",
                             address, strerror(code));
    }
    name_listener(opened, bound);
    *listener = opened;
    return UF_OK;
}
