/* SPDX-License-Identifier: MIT
 *
 * The entry to all readers: tells the form of an input by its content and hands it to the reader
 * of that form. Knows the first bytes of each form and nothing else of them. No state. */
#include <unfrag/trace.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "trace/builder.h"
#include "trace/input.h"
#include "trace/json.h"
#include "trace/script.h"
#include "trace/snapshot.h"
#include "trace/uft.h"

#define PEEK_BYTES ((size_t)4096)

static bool is_blank(uint8_t byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

/* Skips a byte order mark and blanks. */
static const uint8_t *skip_blanks(const uint8_t *at, const uint8_t *end)
{
    if (end - at >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0)
        at += 3;
    while (at < end && is_blank(*at))
        at++;
    return at;
}

/* A word of small letters and dashes, after blank lines and comments, may be a script's command;
 * its reader says the rest. */
static bool looks_like_script(const uint8_t *at, const uint8_t *end)
{
    at = skip_blanks(at, end);
    while (at < end && *at == '#') {
        while (at < end && *at != '\n')
            at++;
        at = skip_blanks(at, end);
    }
    const uint8_t *word = at;
    while (at < end && ((*at >= 'a' && *at <= 'z') || *at == '-'))
        at++;
    return at > word && (at == end || is_blank(*at) || *at == '#');
}

static bool is_text(const uint8_t *at, const uint8_t *end)
{
    for (; at < end; at++)
        if (*at < ' ' && !is_blank(*at))
            return false;
    return true;
}

static uf_status refuse(const uf__input *input, uf_error *error)
{
    const uint8_t *at = input->cursor;
    size_t count = uf__input_at_hand(input);
    if (count == 0)
        return uf__error_set(error, UF_ERROR_BAD_INPUT, "the input is empty (0 bytes%s)",
                             input->stored_bytes > 0 ? " after decompression" : "");
    if (is_text(at, at + count))
        return uf__error_set(error, UF_ERROR_BAD_INPUT,
                             "this is text, but neither a JSON snapshot nor a script");
    return uf__error_set(error, UF_ERROR_BAD_INPUT,
                         "not a pickle, and no other form of trace: it begins with the byte "
                         "0x%02x%s",
                         at[0],
                         count >= 4 && memcmp(at, "PK\3\4", 4) == 0
                             ? " (a zip archive, such as torch.save() writes)"
                             : "");
}

static uf_status read_form(uf__input *input, const uf_trace_read_options *options,
                           uf_builder *builder, uf_error *error)
{
    uf_status status = uf__input_ensure(input, PEEK_BYTES, error);
    if (status != UF_OK)
        return status;
    const uint8_t *at = input->cursor;
    const uint8_t *end =
        at + (uf__input_at_hand(input) < PEEK_BYTES ? uf__input_at_hand(input) : PEEK_BYTES);
    bool skip_stacks = options != NULL && options->skip_stacks;
    if (end - at >= UF_UFT_MAGIC_BYTES && memcmp(at, UF_UFT_MAGIC, UF_UFT_MAGIC_BYTES) == 0)
        return uf__uft_read(input, builder, error);
    /* PROTO, or what a pickle of protocol 0 or 1 begins with: MARK, EMPTY_LIST, EMPTY_DICT. JSON
     * opens with the other kind of bracket. */
    if (at < end && (at[0] == 0x80 || at[0] == '(' || at[0] == ']' || at[0] == '}'))
        return uf__snapshot_read(input, skip_stacks, builder, error);
    const uint8_t *first = skip_blanks(at, end);
    if (first < end && (*first == '{' || *first == '['))
        return uf__json_read(input, builder, error);
    if (is_text(at, end) && looks_like_script(at, end))
        return uf__script_read(input, builder, error);
    return refuse(input, error);
}

/* Reads an open input and closes it. */
static uf_status read_input(uf__input *input, const uf_trace_read_options *options,
                            uf_trace **trace, uf_error *error)
{
    uf_status status = UF_OK;
    uf_builder *builder = uf__builder_create();
    if (builder == NULL)
        status = uf__error_set(error, UF_ERROR_HOST_MEMORY, "no memory to read a trace");
    if (status == UF_OK)
        status = read_form(input, options, builder, error);
    if (status == UF_OK) {
        uf__builder_trace(builder)->input_bytes = input->stored_bytes;
        uf__builder_trace(builder)->decoded_bytes = uf__input_offset(input);
        if (uf__builder_finish(builder, trace))
            builder = NULL;
        else
            status = uf__error_set(error, UF_ERROR_HOST_MEMORY, "no memory to finish a trace");
    }
    uf__builder_destroy(builder);
    uf__input_close(input);
    return status;
}

/* Copies the options, as far as the caller's structure goes. */
static uf_status take_options(const uf_trace_read_options *given, uf_trace_read_options *taken,
                              uf_error *error)
{
    memset(taken, 0, sizeof *taken);
    if (given == NULL)
        return UF_OK;
    if (given->struct_size_bytes < sizeof given->struct_size_bytes ||
        given->struct_size_bytes > sizeof *given)
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "uf_trace_read_options.struct_size_bytes is %zu, not %zu",
                             given->struct_size_bytes, sizeof *given);
    memcpy(taken, given, given->struct_size_bytes);
    return UF_OK;
}

/* Puts the file's name before a message. */
static void name_file(const char *path, uf_error *error)
{
    char text[sizeof error->text];
    if (error == NULL || error->status == UF_ERROR_IO)
        return;
    memcpy(text, error->text, sizeof text);
    int length = snprintf(error->text, sizeof error->text,
                          "%.300s: ", strcmp(path, "-") == 0 ? "standard input" : path);
    if (length >= 0 && (size_t)length < sizeof error->text)
        snprintf(error->text + length, sizeof error->text - (size_t)length, "%s", text);
}

uf_status uf_trace_read(const char *path, const uf_trace_read_options *options, uf_trace **trace,
                        uf_error *error)
{
    uf_trace_read_options taken;
    uf__input *input;
    if (path == NULL || trace == NULL)
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT, "uf_trace_read: NULL argument");
    uf_status status = take_options(options, &taken, error);
    if (status != UF_OK)
        return status;
    status = uf__input_open(path, &taken, &input, error);
    if (status == UF_OK)
        status = read_input(input, &taken, trace, error);
    if (status != UF_OK)
        name_file(path, error);
    return status;
}

uf_status uf_trace_read_memory(const void *data, size_t size_bytes,
                               const uf_trace_read_options *options, uf_trace **trace,
                               uf_error *error)
{
    uf_trace_read_options taken;
    uf__input *input;
    if ((data == NULL && size_bytes > 0) || trace == NULL)
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "uf_trace_read_memory: NULL argument");
    uf_status status = take_options(options, &taken, error);
    if (status == UF_OK)
        status = uf__input_open_memory(data, size_bytes, &taken, &input, error);
    if (status == UF_OK)
        status = read_input(input, &taken, trace, error);
    return status;
}
