/* SPDX-License-Identifier: MIT
 *
 * rewrite FORM IN OUT: reads a trace and writes it as "pickle" or "uft", by the library's public
 * functions alone. A helper of compare.py. */
#include <stdio.h>
#include <string.h>

#include <unfrag/trace.h>

int main(int argc, char **argv)
{
    if (argc != 4 || (strcmp(argv[1], "pickle") != 0 && strcmp(argv[1], "uft") != 0)) {
        fprintf(stderr, "usage: rewrite pickle|uft IN OUT\n");
        return 2;
    }
    uf_error error = {.status = UF_OK};
    uf_trace *trace = NULL;
    if (uf_trace_read(argv[2], NULL, &trace, &error) != UF_OK) {
        fprintf(stderr, "rewrite: %s\n", error.text);
        return 1;
    }
    FILE *stream = fopen(argv[3], "wb");
    if (stream == NULL) {
        perror(argv[3]);
        uf_trace_destroy(trace);
        return 1;
    }
    uf_status status = strcmp(argv[1], "pickle") == 0 ? uf_trace_write_pickle(trace, stream, &error)
                                                      : uf_trace_write_uft(trace, stream, &error);
    uf_trace_destroy(trace);
    if (fclose(stream) != 0 || status != UF_OK) {
        fprintf(stderr, "rewrite: %s\n", error.text);
        return 1;
    }
    return 0;
}
