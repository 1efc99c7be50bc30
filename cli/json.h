/* SPDX-License-Identifier: MIT
 *
 * A streaming JSON writer: nothing is kept but the nesting. Knows nothing of what is written.
 * One writer belongs to one thread. A key is NULL inside an array and for the outermost value. */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define CLI_JSON_MAX_DEPTH 32

typedef struct cli_json {
    FILE *stream; /* borrowed until cli_json_finish */
    unsigned depth;
    bool has_items[CLI_JSON_MAX_DEPTH + 1]; /* by depth: a comma is due before the next item */
    bool is_on_one_line; /* set after cli_json_init: nothing is broken into lines */
    bool has_failed;     /* nested too deep, or closed too often */
} cli_json;

void cli_json_init(cli_json *json, FILE *stream);

void cli_json_object_begin(cli_json *json, const char *key);
void cli_json_object_end(cli_json *json);
void cli_json_array_begin(cli_json *json, const char *key);
void cli_json_array_end(cli_json *json);

/* text is NUL-terminated; NULL writes null. Bytes that are no valid UTF-8 become U+FFFD. */
void cli_json_string(cli_json *json, const char *key, const char *text);
void cli_json_string_bytes(cli_json *json, const char *key, const char *text, size_t length);
void cli_json_uint64(cli_json *json, const char *key, uint64_t value);
void cli_json_int64(cli_json *json, const char *key, int64_t value);
/* The shortest text that reads back equal; what is not finite becomes null. */
void cli_json_double(cli_json *json, const char *key, double value);
void cli_json_bool(cli_json *json, const char *key, bool value);
void cli_json_null(cli_json *json, const char *key);

/* Ends the document with a newline. Returns false if the nesting was wrong or the stream failed. */
bool cli_json_finish(cli_json *json);

#endif
