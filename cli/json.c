/* SPDX-License-Identifier: MIT
 *
 * The streaming JSON writer: indentation, commas, escapes and the check of UTF-8. */
#include "json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

void cli_json_init(cli_json *json, FILE *stream)
{
    memset(json, 0, sizeof *json);
    json->stream = stream;
}

static void write_ascii(FILE *stream, unsigned char byte)
{
    switch (byte) {
    case '"':
        fputs("\\\"", stream);
        break;
    case '\\':
        fputs("\\\\", stream);
        break;
    case '\n':
        fputs("\\n", stream);
        break;
    case '\r':
        fputs("\\r", stream);
        break;
    case '\t':
        fputs("\\t", stream);
        break;
    default:
        if (byte < 0x20 || byte == 0x7f) {
            fprintf(stream, "\\u%04x", byte);
        } else {
            fputc(byte, stream);
        }
        break;
    }
}

static void write_text(FILE *stream, const char *text, size_t length)
{
    const unsigned char *bytes = (const unsigned char *)text;
    fputc('"', stream);
    for (size_t i = 0; i < length;) {
        size_t count = uf__utf8_length(bytes + i, length - i, false);
        if (count == 0) {
            fputs("\xef\xbf\xbd", stream);
            i += 1;
        } else if (count == 1) {
            write_ascii(stream, bytes[i]);
            i += 1;
        } else {
            fwrite(bytes + i, 1, count, stream);
            i += count;
        }
    }
    fputc('"', stream);
}

static void write_line_start(cli_json *json)
{
    if (json->is_on_one_line) {
        return;
    }
    fputc('\n', json->stream);
    for (unsigned i = 0; i < json->depth; i++) {
        fputs("  ", json->stream);
    }
}

/* What stands before every value: comma, line, key. */
static void begin_value(cli_json *json, const char *key)
{
    if (json->depth > 0) {
        if (json->has_items[json->depth]) {
            fputc(',', json->stream);
        }
        write_line_start(json);
        json->has_items[json->depth] = true;
    }
    if (key != NULL) {
        write_text(json->stream, key, strlen(key));
        fputs(": ", json->stream);
    }
}

static void open_nest(cli_json *json, const char *key, char bracket)
{
    begin_value(json, key);
    fputc(bracket, json->stream);
    if (json->depth == CLI_JSON_MAX_DEPTH) {
        json->has_failed = true;
        return;
    }
    json->depth += 1;
    json->has_items[json->depth] = false;
}

static void close_nest(cli_json *json, char bracket)
{
    if (json->depth == 0) {
        json->has_failed = true;
        return;
    }
    bool had_items = json->has_items[json->depth];
    json->depth -= 1;
    if (had_items) {
        write_line_start(json);
    }
    fputc(bracket, json->stream);
}

void cli_json_object_begin(cli_json *json, const char *key)
{
    open_nest(json, key, '{');
}

void cli_json_object_end(cli_json *json)
{
    close_nest(json, '}');
}

void cli_json_array_begin(cli_json *json, const char *key)
{
    open_nest(json, key, '[');
}

void cli_json_array_end(cli_json *json)
{
    close_nest(json, ']');
}

void cli_json_string(cli_json *json, const char *key, const char *text)
{
    if (text == NULL) {
        cli_json_null(json, key);
        return;
    }
    cli_json_string_bytes(json, key, text, strlen(text));
}

void cli_json_string_bytes(cli_json *json, const char *key, const char *text, size_t length)
{
    begin_value(json, key);
    write_text(json->stream, text, length);
}

void cli_json_uint64(cli_json *json, const char *key, uint64_t value)
{
    begin_value(json, key);
    fprintf(json->stream, "%" PRIu64, value);
}

void cli_json_int64(cli_json *json, const char *key, int64_t value)
{
    begin_value(json, key);
    fprintf(json->stream, "%" PRId64, value);
}

void cli_json_double(cli_json *json, const char *key, double value)
{
    if (!isfinite(value)) {
        cli_json_null(json, key);
        return;
    }
    begin_value(json, key);
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) {
            break;
        }
    }
    fputs(text, json->stream);
}

void cli_json_bool(cli_json *json, const char *key, bool value)
{
    begin_value(json, key);
    fputs(value ? "true" : "false", json->stream);
}

void cli_json_null(cli_json *json, const char *key)
{
    begin_value(json, key);
    fputs("null", json->stream);
}

bool cli_json_finish(cli_json *json)
{
    fputc('\n', json->stream);
    bool is_flushed = fflush(json->stream) == 0 && ferror(json->stream) == 0;
    return is_flushed && !json->has_failed && json->depth == 0;
}
