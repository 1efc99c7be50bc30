/* SPDX-License-Identifier: MIT
 *
 * The operands of the text opcodes of protocol 0; see pickle_text.h. No state. */
#include "trace/pickle_text.h"

#include <inttypes.h>
#include <locale.h>
#include <stdlib.h>

#define NUMBER_MAX_BYTES 400
#define LINE_MAX_BYTES (UF__INPUT_ENSURE_BYTES - 1)

/* Takes a line; it stays in the window until more input is asked for. */
static uf_status take_line(uf__pickle *machine, const uint8_t **line, size_t *length,
                           uf_error *error)
{
    uf__input *input = machine->input;
    const uint8_t *end = NULL;
    if (uf__input_at_hand(input) > 0)
        end = memchr(input->cursor, '\n', uf__input_at_hand(input));
    if (end == NULL) {
        uf_status status = uf__input_ensure(input, UF__INPUT_ENSURE_BYTES, error);
        if (status != UF_OK)
            return status;
        if (uf__input_at_hand(input) > 0)
            end = memchr(input->cursor, '\n', uf__input_at_hand(input));
    }
    uf_status status = UF_OK;
    if (end == NULL && uf__input_at_hand(input) < UF__INPUT_ENSURE_BYTES)
        status = uf__pickle_fail(machine, error, "the data ends early, at byte %" PRIu64,
                                 input->decoded_bytes);
    else if (end == NULL || (size_t)(end - input->cursor) > LINE_MAX_BYTES)
        status = uf__pickle_fail(machine, error, "a line of more than %zu bytes", LINE_MAX_BYTES);
    if (status != UF_OK || end == NULL)
        return status;
    *line = input->cursor;
    *length = (size_t)(end - input->cursor);
    input->cursor = end + 1;
    return UF_OK;
}

static uf_status take_number(uf__pickle *machine, char text[NUMBER_MAX_BYTES + 1], size_t *length,
                             uf_error *error)
{
    const uint8_t *line = NULL;
    uf_status status = take_line(machine, &line, length, error);
    if (status != UF_OK)
        return status;
    if (*length == 0 || *length > NUMBER_MAX_BYTES)
        return uf__pickle_fail(machine, error, "a number of %zu characters", *length);
    memcpy(text, line, *length);
    text[*length] = '\0';
    return UF_OK;
}

uf_status uf__pickle_text_float(uf__pickle *machine, uint64_t *bits, uf_error *error)
{
    char text[NUMBER_MAX_BYTES + 1] = "";
    size_t length = 0;
    uf_status status = take_number(machine, text, &length, error);
    if (status != UF_OK)
        return status;
    /* The program's locale may want a decimal comma; pickles have a point. */
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (plain == (locale_t)0)
        return uf__error_set(error, UF_ERROR_HOST_MEMORY, "no memory to read a number");
    char *end;
    double number = strtod_l(text, &end, plain);
    freelocale(plain);
    if (end != text + length)
        return uf__pickle_fail(machine, error, "not a number: '%.40s'", text);
    memcpy(bits, &number, sizeof *bits);
    return UF_OK;
}

/* Adds a decimal digit to a magnitude of 127 bits. Returns false when it does not fit. */
static bool add_digit(uint64_t *high, uint64_t *low, unsigned digit)
{
    unsigned __int128 value = (unsigned __int128)*high << 64 | *low;
    unsigned __int128 limit = ((unsigned __int128)1 << 127) - 1;
    if (value > (limit - digit) / 10)
        return false;
    value = value * 10 + digit;
    *high = (uint64_t)(value >> 64);
    *low = (uint64_t)value;
    return true;
}

uf_status uf__pickle_text_number(uf__pickle *machine, bool is_long, uf__wide *wide,
                                 uf__value *constant, uf_error *error)
{
    char text[NUMBER_MAX_BYTES + 1] = "";
    size_t length = 0;
    uf_status status = take_number(machine, text, &length, error);
    if (status != UF_OK)
        return status;
    *constant = UF__VALUE_NOTHING;
    if (!is_long && length == 2 && text[0] == '0' && (text[1] == '0' || text[1] == '1')) {
        *constant = text[1] == '1' ? UF__VALUE_TRUE : UF__VALUE_FALSE;
        return UF_OK;
    }
    if (is_long && text[length - 1] == 'L')
        length--;
    bool is_negative = text[0] == '-';
    size_t at = is_negative || text[0] == '+' ? 1 : 0;
    if (at >= length)
        return uf__pickle_fail(machine, error, "not a number: '%.40s'", text);
    uint64_t high = 0, low = 0;
    for (; at < length; at++) {
        if (text[at] < '0' || text[at] > '9')
            return uf__pickle_fail(machine, error, "not a number: '%.40s'", text);
        if (!add_digit(&high, &low, (unsigned)(text[at] - '0')))
            *constant = UF__VALUE_HUGE;
    }
    if (is_negative) {
        low = ~low + 1;
        high = ~high + (low == 0);
    }
    wide->low = low;
    wide->high = (int64_t)high;
    return UF_OK;
}

uf_status uf__pickle_text_index(uf__pickle *machine, uint64_t *index, uf_error *error)
{
    uf__wide wide = {0};
    uf__value constant = UF__VALUE_NOTHING;
    uf_status status = uf__pickle_text_number(machine, true, &wide, &constant, error);
    if (status != UF_OK)
        return status;
    if (constant != UF__VALUE_NOTHING || wide.high != 0)
        return uf__pickle_fail(machine, error, "no index of a memo entry");
    *index = wide.low;
    return UF_OK;
}

static int hex_digit(uint8_t character)
{
    if (character >= '0' && character <= '9')
        return character - '0';
    if (character >= 'a' && character <= 'f')
        return character - 'a' + 10;
    return character >= 'A' && character <= 'F' ? character - 'A' + 10 : -1;
}

/* Reads count hex digits at text. Returns false when they are not there. */
static bool hex_number(const uint8_t *text, size_t length, size_t count, uint32_t *number)
{
    if (length < count)
        return false;
    *number = 0;
    for (size_t i = 0; i < count; i++) {
        int digit = hex_digit(text[i]);
        if (digit < 0)
            return false;
        *number = *number << 4 | (uint32_t)digit;
    }
    return true;
}

/* Writes a code point as UTF-8 and returns the number of bytes, at most 4. */
static size_t put_utf8(uint8_t *out, uint32_t code)
{
    if (code < 0x80) {
        out[0] = (uint8_t)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (uint8_t)(0xc0 | code >> 6);
        out[1] = (uint8_t)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (uint8_t)(0xe0 | code >> 12);
        out[1] = (uint8_t)(0x80 | (code >> 6 & 0x3f));
        out[2] = (uint8_t)(0x80 | (code & 0x3f));
        return 3;
    }
    out[0] = (uint8_t)(0xf0 | code >> 18);
    out[1] = (uint8_t)(0x80 | (code >> 12 & 0x3f));
    out[2] = (uint8_t)(0x80 | (code >> 6 & 0x3f));
    out[3] = (uint8_t)(0x80 | (code & 0x3f));
    return 4;
}

/* raw-unicode-escape: \uXXXX and \UXXXXXXXX are code points, all other bytes Latin-1. At most 2
 * bytes for one of the line. Returns false on a bad escape. */
static bool decode_unicode(const uint8_t *line, size_t length, uint8_t *out, size_t *out_length)
{
    size_t n = 0;
    for (size_t i = 0; i < length;) {
        uint32_t code = line[i++];
        if (code == '\\' && i < length && (line[i] == 'u' || line[i] == 'U')) {
            size_t digits = line[i] == 'u' ? 4 : 8;
            if (!hex_number(line + i + 1, length - i - 1, digits, &code) || code > 0x10ffff)
                return false;
            i += 1 + digits;
        } else if (code == '\\' && i < length && line[i] == '\\') {
            out[n++] = '\\'; /* two backslashes: neither begins an escape */
            i++;
        }
        n += put_utf8(out + n, code);
    }
    *out_length = n;
    return true;
}

/* A quoted string literal of Python 2. Returns false when it is none. */
static bool decode_quoted(const uint8_t *line, size_t length, uint8_t *out, size_t *out_length)
{
    static const char from[] = "\\'\"abfnrtv";
    static const char to[] = "\\'\"\a\b\f\n\r\t\v";
    if (length < 2 || (line[0] != '\'' && line[0] != '"') || line[length - 1] != line[0])
        return false;
    size_t n = 0;
    for (size_t i = 1; i < length - 1; i++) {
        uint32_t code = line[i];
        if (code == '\\') {
            if (++i >= length - 1)
                return false;
            const char *known = memchr(from, line[i], sizeof from - 1);
            if (known != NULL) {
                code = (uint8_t)to[known - from];
            } else if (line[i] == 'x') {
                if (!hex_number(line + i + 1, length - 1 - (i + 1), 2, &code))
                    return false;
                i += 2;
            } else {
                out[n++] = '\\'; /* an unknown escape stays as it is */
                code = line[i];
            }
        }
        out[n++] = (uint8_t)code;
    }
    *out_length = n;
    return true;
}

uf_status uf__pickle_text_string(uf__pickle *machine, bool is_unicode, uf__value *value,
                                 uf_error *error)
{
    const uint8_t *line = NULL;
    size_t length = 0;
    uf_status status = take_line(machine, &line, &length, error);
    if (status != UF_OK)
        return status;
    uint8_t *text = malloc(2 * length + 4);
    if (text == NULL)
        return uf__pickle_fail_store(machine, error);
    size_t text_length;
    bool is_good = is_unicode ? decode_unicode(line, length, text, &text_length)
                              : decode_quoted(line, length, text, &text_length);
    if (is_good)
        status = uf__pickle_string(machine, text, text_length, value, error);
    else
        status = uf__pickle_fail(machine, error, "a string that is badly quoted or escaped");
    free(text);
    return status;
}
