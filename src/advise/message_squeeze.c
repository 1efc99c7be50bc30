/* SPDX-License-Identifier: MIT
 *
 * One table says what becomes of a byte; bytes that need a look around leave the fast loop. */
#include "advise/message_squeeze.h"

#include <stdlib.h>
#include <string.h>

/* So many bytes behind the current one are looked at, at most. */
#define LOOK_BYTES 160
#define ESCAPE 0x1b

enum { ESCAPE_NONE, ESCAPE_FIRST, ESCAPE_SEQUENCE, ESCAPE_TITLE };

typedef enum byte_class { CLASS_KEEP, CLASS_DROP, CLASS_LOOK } byte_class;

static byte_class class_of(uint8_t byte)
{
    if (byte == '\t' || byte == '\r' || byte == ' ') {
        return CLASS_DROP;
    }
    if (byte < 0x20 || byte == '\\' || byte == 0xc2 || byte == 0xe2) {
        return CLASS_LOOK;
    }
    return strchr("\"'`*", byte) != NULL ? CLASS_DROP : CLASS_KEEP;
}

static void fill_table(uf__squeeze *squeeze)
{
    for (unsigned byte = 0; byte < 256; byte++) {
        squeeze->classes[byte] = (uint8_t)class_of((uint8_t)byte);
        squeeze->letters[byte] = (char)(byte >= 'A' && byte <= 'Z' ? byte - 'A' + 'a' : byte);
    }
}

bool uf__squeeze_init(uf__squeeze *squeeze, char *text, size_t capacity)
{
    *squeeze = (uf__squeeze){.capacity = capacity, .is_at_line_start = true};
    squeeze->text = text;
    fill_table(squeeze);
    squeeze->starts = malloc((capacity + 1) * sizeof *squeeze->starts);
    return squeeze->starts != NULL;
}

void uf__squeeze_fini(uf__squeeze *squeeze)
{
    free(squeeze->starts);
    squeeze->starts = NULL;
}

static bool is_digit(uint8_t byte)
{
    return byte >= '0' && byte <= '9';
}

static bool is_word(uint8_t byte)
{
    return is_digit(byte) || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           byte == '_' || byte == '-' || byte == '.';
}

/* "[rank0]:", "(worker pid=12)": the length of a bracketed prefix, or 0. */
static size_t bracket_length(const uint8_t *at, size_t size)
{
    uint8_t close = at[0] == '[' ? ']' : ')';
    for (size_t i = 1; i < size && i < 64 && at[i] != '\n' && at[i] != ESCAPE; i++) {
        if (at[i] == close) {
            bool is_prefix = close == ']' || memmem(at, i, "pid=", 4) != NULL;
            i += i + 1 < size && at[i + 1] == ':' ? 2 : 1;
            return is_prefix ? i : 0;
        }
    }
    return 0;
}

/* "2024-06-22", "15:13:25.079Z", "15:13:25,079" and both joined by a T: the length, or 0. */
static size_t time_length(const uint8_t *at, size_t size)
{
    size_t length = 0;
    unsigned marks = 0;
    while (length < size && length < 40 &&
           (is_digit(at[length]) || strchr("-/:.,TZ+", at[length]) != NULL) && at[length] != '\0') {
        marks += at[length] == '-' || at[length] == ':' || at[length] == '/';
        length++;
    }
    bool is_date = length >= 8 && is_digit(at[0]) && is_digit(at[1]) && marks >= 2 &&
                   (at[2] == ':' || (length >= 10 && is_digit(at[2]) && is_digit(at[3]) &&
                                     (at[4] == '-' || at[4] == '/')));
    return is_date ? length : 0;
}

/* "service-1  | ": the length with the bar, or 0. */
static size_t service_length(const uint8_t *at, size_t size)
{
    size_t length = 0;
    while (length < size && length < 40 && is_word(at[length])) {
        length++;
    }
    size_t name_length = length;
    while (length < size && length < 60 && at[length] == ' ') {
        length++;
    }
    bool is_prefix = name_length > 0 && length > name_length && length + 1 < size &&
                     at[length] == '|' && at[length + 1] == ' ';
    return is_prefix ? length + 2 : 0;
}

/* What stands in front of a log line's text. */
static size_t prefix_length(const uint8_t *data, size_t size)
{
    size_t at = 0;
    for (unsigned i = 0; i < 8 && at < size; i++) {
        const uint8_t *from = data + at;
        size_t rest = size - at, length = 0;
        if (*from == ' ' || *from == '\t' || *from == '>' || *from == '|' || *from == '#') {
            length = 1;
            i -= i > 0 && *from == ' ';
        } else if (*from == '[' || *from == '(') {
            length = bracket_length(from, rest);
        } else if (is_digit(*from)) {
            length = time_length(from, rest);
        } else if (is_word(*from)) {
            length = service_length(from, rest);
        }
        if (length == 0 || at + length > LOOK_BYTES) {
            break;
        }
        at += length;
    }
    return at < size ? at : size;
}

static void put(uf__squeeze *squeeze, const char *text, size_t length)
{
    if (!squeeze->is_line_noted) {
        squeeze->is_line_noted = true;
        squeeze->starts[squeeze->start_count].offset = (uint32_t)squeeze->length;
        squeeze->starts[squeeze->start_count].line = squeeze->line;
        squeeze->start_count++;
    }
    memcpy(squeeze->text + squeeze->length, text, length);
    squeeze->length += length;
}

/* "Killed" alone on its line. Returns its length, or 0. */
static size_t killed_length(const uint8_t *at, size_t size)
{
    static const char word[] = "Killed";
    size_t length = sizeof word - 1;
    if (size < length || memcmp(at, word, length) != 0) {
        return 0;
    }
    while (length < size && length < 32 && (at[length] == ' ' || at[length] == '\r')) {
        length++;
    }
    return length == size || at[length] == '\n' ? length : 0;
}

/* The length of what begins a line and is not its text. */
static size_t begin_line(uf__squeeze *squeeze, const uint8_t *data, size_t size)
{
    squeeze->is_at_line_start = false;
    squeeze->is_line_noted = false;
    squeeze->line++;
    size_t length = prefix_length(data, size < LOOK_BYTES ? size : LOOK_BYTES);
    size_t killed = killed_length(data + length, size - length);
    /* Seven bytes for seven: five in the text at least, and a prefix or the line's end. */
    if (killed > 0 && squeeze->length + sizeof UF__SQUEEZE_KILLED < squeeze->capacity) {
        put(squeeze, UF__SQUEEZE_KILLED, sizeof UF__SQUEEZE_KILLED - 1);
        length += killed;
    }
    return length;
}

/* Goes through an escape sequence. Returns the bytes taken. */
static size_t skip_escape(uf__squeeze *squeeze, const uint8_t *data, size_t size)
{
    size_t i = 0;
    while (i < size && squeeze->escape != ESCAPE_NONE && data[i] != '\n') {
        uint8_t byte = data[i++];
        if (squeeze->escape == ESCAPE_FIRST) {
            squeeze->escape = byte == '['   ? ESCAPE_SEQUENCE
                              : byte == ']' ? ESCAPE_TITLE
                                            : ESCAPE_NONE;
        } else if (squeeze->escape == ESCAPE_SEQUENCE) {
            squeeze->escape = byte >= 0x40 && byte <= 0x7e ? ESCAPE_NONE : ESCAPE_SEQUENCE;
        } else {
            squeeze->escape = byte == 0x07 || byte == ESCAPE ? ESCAPE_NONE : ESCAPE_TITLE;
        }
    }
    if (i < size && data[i] == '\n') {
        squeeze->escape = ESCAPE_NONE;
    }
    return i;
}

/* A backslash: "\n" and escape sequences as JSON and shells write them are no text. */
static size_t take_backslash(uf__squeeze *squeeze, const uint8_t *data, size_t size)
{
    static const char *const escapes[] = {"\\u001b", "\\x1b", "\\033", "\\e[", "\\u001B", "\\x1B"};
    for (size_t i = 0; i < sizeof escapes / sizeof escapes[0]; i++) {
        size_t length = strlen(escapes[i]);
        if (size >= length && memcmp(data, escapes[i], length) == 0) {
            squeeze->escape = ESCAPE_FIRST;
            return escapes[i][2] == '[' ? length - 1 : length;
        }
    }
    if (size >= 2 && (data[1] == 'n' || data[1] == 'r' || data[1] == 't')) {
        return 2;
    }
    if (size >= 2 && data[1] == '"') {
        return 2;
    }
    put(squeeze, "\\", 1);
    return 1;
}

/* One byte that needs a look around. Returns the bytes taken, at least 1. */
static size_t take_byte(uf__squeeze *squeeze, const uint8_t *data, size_t size)
{
    uint8_t byte = *data;
    if (byte == '\n') {
        squeeze->is_at_line_start = true;
        return 1;
    }
    if (byte == ESCAPE) {
        squeeze->escape = ESCAPE_FIRST;
        return 1;
    }
    if (byte == '\\') {
        return take_backslash(squeeze, data, size);
    }
    if (byte == 0xc2 && size >= 2 && data[1] == 0xa0) {
        return 2; /* a blank that does not break */
    }
    if (byte == 0xe2 && size >= 3 && (data[1] == 0x80 || data[1] == 0x94 || data[1] == 0x95)) {
        return 3; /* typographic quotes and blanks, box drawings */
    }
    if (byte == 0xc2 || byte == 0xe2) {
        put(squeeze, (const char *)data, 1);
        return 1;
    }
    squeeze->nul_count += byte == 0;
    squeeze->control_count += byte != 0;
    return 1;
}

size_t uf__squeeze_add(uf__squeeze *squeeze, const uint8_t *data, size_t size, bool is_last)
{
    const uint8_t *classes = squeeze->classes;
    const char *letters = squeeze->letters;
    size_t stop = is_last ? size : size > LOOK_BYTES ? size - LOOK_BYTES : 0;
    size_t i = 0;
    while (i < stop) {
        if (squeeze->is_at_line_start) {
            i += begin_line(squeeze, data + i, size - i);
            continue;
        }
        if (squeeze->escape != ESCAPE_NONE) {
            i += skip_escape(squeeze, data + i, size - i);
            continue;
        }
        if (classes[data[i]] == CLASS_LOOK) {
            i += take_byte(squeeze, data + i, size - i);
            continue;
        }
        if (!squeeze->is_line_noted && classes[data[i]] == CLASS_KEEP) {
            put(squeeze, &letters[data[i]], 1);
            i++;
        }
        char *out = squeeze->text + squeeze->length;
        for (; i < stop && classes[data[i]] != CLASS_LOOK; i++) {
            bool is_kept = classes[data[i]] == CLASS_KEEP;
            if (is_kept && !squeeze->is_line_noted) {
                break;
            }
            *out = letters[data[i]];
            out += is_kept;
        }
        squeeze->length = (size_t)(out - squeeze->text);
    }
    return i < size ? i : size;
}

void uf__squeeze_drop(uf__squeeze *squeeze, size_t count)
{
    memmove(squeeze->text, squeeze->text + count, squeeze->length - count);
    squeeze->length -= count;
    size_t kept = 0;
    for (size_t i = 0; i < squeeze->start_count; i++) {
        bool is_passed = i + 1 < squeeze->start_count && squeeze->starts[i + 1].offset <= count;
        if (!is_passed) {
            uf__squeeze_start start = squeeze->starts[i];
            start.offset = start.offset > count ? start.offset - (uint32_t)count : 0;
            squeeze->starts[kept++] = start;
        }
    }
    squeeze->start_count = kept;
}

void uf__squeeze_line(const uf__squeeze *squeeze, size_t offset, uint64_t *line,
                      size_t *line_offset)
{
    size_t low = 0, high = squeeze->start_count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (squeeze->starts[middle].offset <= offset) {
            low = middle;
        } else {
            high = middle;
        }
    }
    *line = squeeze->start_count > 0 ? squeeze->starts[low].line : squeeze->line;
    *line_offset = squeeze->start_count > 0 ? squeeze->starts[low].offset : 0;
}
