/* SPDX-License-Identifier: MIT
 *
 * Fails the N-th allocation, once and from then on, for every N, while each file given is read.
 * The reader must then say that the host has no memory, hand out no trace, and leak nothing (the
 * sanitizers watch). Linked with --wrap, so that only our own calls fail. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <unfrag/trace.h>

void *__real_malloc(size_t size_bytes);
void *__real_calloc(size_t count, size_t size_bytes);
void *__real_realloc(void *old, size_t size_bytes);
void *__wrap_malloc(size_t size_bytes);
void *__wrap_calloc(size_t count, size_t size_bytes);
void *__wrap_realloc(void *old, size_t size_bytes);

static uint64_t call_count;
static uint64_t failing_call; /* 0: none */
static bool is_lasting;

static bool must_fail(void)
{
    call_count++;
    return failing_call != 0 &&
           (call_count == failing_call || (is_lasting && call_count > failing_call));
}

void *__wrap_malloc(size_t size_bytes)
{
    return must_fail() ? NULL : __real_malloc(size_bytes);
}

void *__wrap_calloc(size_t count, size_t size_bytes)
{
    return must_fail() ? NULL : __real_calloc(count, size_bytes);
}

void *__wrap_realloc(void *old, size_t size_bytes)
{
    return must_fail() ? NULL : __real_realloc(old, size_bytes);
}

/* Reads once. Returns false, with a line on standard error, when the outcome is not what the
 * failing call allows: expected without one, or no memory. */
static bool read_once(const void *data, size_t size_bytes, uf_status expected, const char *name)
{
    uf_trace *trace = NULL;
    uf_error error = {.status = UF_OK};
    call_count = 0;
    uf_status status = uf_trace_read_memory(data, size_bytes, NULL, &trace, &error);
    /* Giving back what is too much is the one allocation that may fail in silence. */
    bool is_good = status == expected || (failing_call != 0 && status == UF_ERROR_HOST_MEMORY);
    if (!is_good || (status == UF_OK) != (trace != NULL))
        fprintf(stderr, "%s: allocation %" PRIu64 " failing gives %s: %s\n", name, failing_call,
                uf_status_name(status), error.text);
    uf_trace_destroy(trace);
    return is_good;
}

static bool play(const char *path)
{
    static char data[1 << 16];
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        return false;
    }
    size_t size_bytes = fread(data, 1, sizeof data, file);
    fclose(file);
    uf_trace *trace = NULL;
    failing_call = 0;
    uf_status expected = uf_trace_read_memory(data, size_bytes, NULL, &trace, NULL);
    uf_trace_destroy(trace);
    bool is_good = read_once(data, size_bytes, expected, path);
    uint64_t total_count = call_count;
    for (uint64_t call = 1; call <= total_count; call++) {
        failing_call = call;
        is_lasting = false;
        is_good = read_once(data, size_bytes, expected, path) && is_good;
        is_lasting = true;
        is_good = read_once(data, size_bytes, expected, path) && is_good;
    }
    failing_call = 0;
    return is_good;
}

int main(int argc, char **argv)
{
    bool is_good = argc > 1;
    for (int i = 1; i < argc; i++)
        is_good = play(argv[i]) && is_good;
    printf("%d files\n", argc - 1);
    return is_good ? 0 : 1;
}
