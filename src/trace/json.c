/* SPDX-License-Identifier: MIT
 *
 * Parses JSON into the values of the pickle machine. Owns a stack of what is not yet in a
 * container, and the nesting. Knows nothing of the meaning of keys. No lock: one parser, one
 * thread. */
#include "trace/json.h"

#include <inttypes.h>
#include <locale.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "trace/array.h"
#include "trace/snapshot.h"

#define NUMBER_MAX_BYTES ((size_t)63)
#define TEXT_MAX_BYTES ((uint64_t)1 << 30)
#define LIST_BATCH 1024 /* values that a list collects on the stack before it takes them */

typedef enum expectation {
    WANT_VALUE,
    WANT_VALUE_OR_END, /* right after '[' */
    WANT_KEY,
    WANT_KEY_OR_END, /* right after '{' */
    WANT_COLON,
    WANT_COMMA_OR_END,
    WANT_NOTHING /* the value is complete */
} expectation;

/* A list or dictionary that is not closed yet. Its values stand on the stack from `first` on, those
 * of a list only if `list` has not taken them already. */
typedef struct level {
    uint64_t first;
    uf__value list; /* UF__VALUE_NOTHING until there is one */
    bool is_dict;
} level;

typedef struct json {
    uf__input *input;
    uf__store *store;
    const uf__reducer *reducer;
    uf_error *error;
    locale_t locale; /* "C", for numbers */
    uf__value *stack;
    uint64_t stack_count, stack_capacity;
    char *text; /* a string with escapes, or one that crosses the window */
    uint64_t text_bytes, text_capacity;
    unsigned depth;
    level levels[UF__JSON_DEPTH_MAX];
} json;

static uf_status fail(json *j, const char *format, ...) UF_PRINTF(2, 3);

static uf_status fail(json *j, const char *format, ...)
{
    char text[300];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return uf__error_set(j->error, UF_ERROR_BAD_INPUT,
                         "not a readable JSON snapshot: at byte %" PRIu64 ": %s",
                         uf__input_offset(j->input), text);
}

static uf_status fail_store(json *j)
{
    if (j->store->is_over_bound) {
        return fail(j, "holds more values at once than any snapshot does");
    }
    return uf__error_set(j->error, UF_ERROR_HOST_MEMORY,
                         "no host memory left while reading a JSON snapshot, at byte %" PRIu64,
                         uf__input_offset(j->input));
}

static uf_status fail_cut(json *j)
{
    return uf__error_set(j->error, UF_ERROR_BAD_INPUT,
                         "the JSON snapshot ends early, after %" PRIu64
                         " bytes; the file was probably cut off",
                         j->input->decoded_bytes);
}

static uf_status push(json *j, uf__value value)
{
    if (j->stack_count == j->stack_capacity) {
        uf__value *stack =
            uf__array_grow(j->stack, &j->stack_capacity, j->stack_count + 1, sizeof *stack);
        if (stack == NULL) {
            return fail_store(j);
        }
        j->stack = stack;
    }
    j->stack[j->stack_count++] = value;
    return UF_OK;
}

/* Moves to the next byte that is no blank, without taking it; *byte is -1 at the end. */
static uf_status peek(json *j, int *byte)
{
    uf__input *input = j->input;
    for (;;) {
        while (input->cursor < input->limit) {
            uint8_t c = *input->cursor;
            if (c != ' ' && c != '\n' && c != '\r' && c != '\t') {
                *byte = c;
                return UF_OK;
            }
            input->cursor++;
        }
        uf_status status = uf__input_ensure(input, 1, j->error);
        if (status != UF_OK) {
            return status;
        }
        if (uf__input_at_hand(input) == 0) {
            *byte = -1;
            return UF_OK;
        }
    }
}

static uf_status text_add(json *j, const void *bytes, size_t count)
{
    if (j->text_bytes + count > TEXT_MAX_BYTES) {
        return fail(j, "a string of more than %" PRIu64 " bytes", TEXT_MAX_BYTES);
    }
    if (j->text_bytes + count > j->text_capacity) {
        char *text = uf__array_grow(j->text, &j->text_capacity, j->text_bytes + count, 1);
        if (text == NULL) {
            return fail_store(j);
        }
        j->text = text;
    }
    if (count > 0) {
        memcpy(j->text + j->text_bytes, bytes, count);
    }
    j->text_bytes += count;
    return UF_OK;
}

/* Adds a character as UTF-8. A lone surrogate becomes three bytes too, as in a pickle. */
static uf_status text_add_character(json *j, uint32_t character)
{
    uint8_t bytes[4];
    size_t count = character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
    static const uint8_t LEADS[] = {0, 0x00, 0xc0, 0xe0, 0xf0};
    for (size_t i = count - 1; i > 0; i--) {
        bytes[i] = (uint8_t)(0x80 | (character & 0x3f));
        character >>= 6;
    }
    bytes[0] = (uint8_t)(LEADS[count] | character);
    return text_add(j, bytes, count);
}

/* The four digits of \uXXXX at text; false if they are none. */
static bool hex_digits(const uint8_t *text, uint32_t *value)
{
    uint32_t result = 0;
    for (size_t i = 0; i < 4; i++) {
        uint8_t c = text[i];
        uint32_t digit = c >= '0' && c <= '9'   ? c - (uint32_t)'0'
                         : c >= 'a' && c <= 'f' ? c - (uint32_t)'a' + 10
                         : c >= 'A' && c <= 'F' ? c - (uint32_t)'A' + 10
                                                : 16;
        if (digit > 15) {
            return false;
        }
        result = result << 4 | digit;
    }
    *value = result;
    return true;
}

/* An escape; the cursor stands at its backslash. */
static uf_status read_escape(json *j)
{
    static const char NAMES[] = "\"\\/bfnrt";
    static const char MEANINGS[] = "\"\\/\b\f\n\r\t";
    uf_status status = uf__input_ensure(j->input, 12, j->error);
    if (status != UF_OK) {
        return status;
    }
    const uint8_t *at = j->input->cursor;
    size_t at_hand = uf__input_at_hand(j->input);
    if (at_hand < 2) {
        return fail_cut(j);
    }
    const char *name = at[1] == '\0' ? NULL : strchr(NAMES, at[1]);
    if (name != NULL) {
        j->input->cursor += 2;
        return text_add(j, &MEANINGS[name - NAMES], 1);
    }
    uint32_t character;
    if (at[1] != 'u' || at_hand < 6 || !hex_digits(at + 2, &character)) {
        return fail(j, "an escape that JSON does not know");
    }
    size_t taken = 6;
    uint32_t second;
    if (character >= 0xd800 && character < 0xdc00 && at_hand >= 12 && at[6] == '\\' &&
        at[7] == 'u' && hex_digits(at + 8, &second) && second >= 0xdc00 && second < 0xe000) {
        character = 0x10000 + ((character - 0xd800) << 10) + (second - 0xdc00);
        taken = 12;
    }
    j->input->cursor += taken;
    return text_add_character(j, character);
}

static uf_status make_string(json *j, const char *text, size_t length, uf__value *value)
{
    uint32_t id;
    if (!uf__strings_intern(&j->store->strings, text, length, &id)) {
        return fail_store(j);
    }
    *value = uf__value_make(UF__TAG_STRING, id);
    return UF_OK;
}

/* A string; the cursor stands behind its first quote. */
static uf_status read_string(json *j, uf__value *value)
{
    uf__input *input = j->input;
    j->text_bytes = 0;
    for (;;) {
        const uint8_t *at = input->cursor;
        while (at < input->limit && *at != '"' && *at != '\\' && *at >= 0x20) {
            at++;
        }
        size_t length = (size_t)(at - input->cursor);
        bool is_closed = at < input->limit && *at == '"';
        if (is_closed && j->text_bytes == 0) {
            const char *text = (const char *)input->cursor;
            input->cursor = at + 1;
            return make_string(j, text, length, value);
        }
        uf_status status = text_add(j, input->cursor, length);
        input->cursor = at;
        if (status == UF_OK && is_closed) {
            input->cursor++;
            return make_string(j, j->text, (size_t)j->text_bytes, value);
        }
        if (status == UF_OK && at == input->limit) {
            status = uf__input_ensure(input, 1, j->error);
            if (status == UF_OK && uf__input_at_hand(input) == 0) {
                status = fail_cut(j);
            }
        } else if (status == UF_OK) {
            status = *at == '\\' ? read_escape(j) : fail(j, "a control character in a string");
        }
        if (status != UF_OK) {
            return status;
        }
    }
}

static const char *skip_digits(const char *at)
{
    while (*at >= '0' && *at <= '9') {
        at++;
    }
    return at;
}

/* Checks a number against JSON's grammar; *is_integer when it has neither point nor exponent. */
static bool is_number(const char *text, bool *is_integer)
{
    const char *at = text + (*text == '-' ? 1 : 0);
    const char *end = skip_digits(at);
    if (end == at || (*at == '0' && end > at + 1)) {
        return false;
    }
    *is_integer = *end == '\0';
    if (*end == '.') {
        at = end + 1;
        end = skip_digits(at);
        if (end == at) {
            return false;
        }
    }
    if (*end == 'e' || *end == 'E') {
        at = end + 1;
        at += *at == '+' || *at == '-' ? 1 : 0;
        end = skip_digits(at);
        if (end == at) {
            return false;
        }
    }
    return *end == '\0';
}

static uf_status make_integer(json *j, const char *text, uf__value *value)
{
    bool is_negative = text[0] == '-';
    uint64_t magnitude = 0;
    for (const char *at = text + (is_negative ? 1 : 0); *at != '\0'; at++) {
        if (__builtin_mul_overflow(magnitude, UINT64_C(10), &magnitude) ||
            __builtin_add_overflow(magnitude, (uint64_t)(*at - '0'), &magnitude)) {
            *value = UF__VALUE_HUGE;
            return UF_OK;
        }
    }
    if (magnitude >> (63 - UF__VALUE_TAG_BITS) == 0) {
        uint64_t number = is_negative ? 0 - magnitude : magnitude;
        *value = number << UF__VALUE_TAG_BITS | UF__TAG_INT;
        return UF_OK;
    }
    uf__wide wide = {.low = magnitude, .high = 0};
    if (is_negative) {
        wide.low = 0 - magnitude;
        wide.high = -1; /* the magnitude is not 0 */
    }
    return uf__store_wide(j->store, UF__TAG_WIDE, wide, value) ? UF_OK : fail_store(j);
}

static uf_status read_number(json *j, uf__value *value)
{
    char text[NUMBER_MAX_BYTES + 1];
    uf_status status = uf__input_ensure(j->input, NUMBER_MAX_BYTES + 1, j->error);
    if (status != UF_OK) {
        return status;
    }
    size_t at_hand = uf__input_at_hand(j->input);
    size_t length = 0;
    while (length < at_hand && j->input->cursor[length] != '\0' &&
           strchr("+-.0123456789eE", j->input->cursor[length]) != NULL) {
        if (length == NUMBER_MAX_BYTES) {
            return fail(j, "a number of more than %zu characters", NUMBER_MAX_BYTES);
        }
        text[length] = (char)j->input->cursor[length];
        length++;
    }
    text[length] = '\0';
    bool is_integer;
    if (!is_number(text, &is_integer)) {
        return fail(j, "'%s' is no number of JSON", text);
    }
    j->input->cursor += length;
    if (is_integer) {
        return make_integer(j, text, value);
    }
    double number = strtod_l(text, NULL, j->locale);
    uf__wide wide = {.low = 0, .high = 0};
    memcpy(&wide.low, &number, sizeof number);
    return uf__store_wide(j->store, UF__TAG_FLOAT, wide, value) ? UF_OK : fail_store(j);
}

static uf_status read_word(json *j, uf__value *value)
{
    static const struct {
        const char *text;
        size_t length;
        uf__value value;
    } WORDS[] = {
        {"true", 4, UF__VALUE_TRUE}, {"false", 5, UF__VALUE_FALSE}, {"null", 4, UF__VALUE_NONE}};
    uf_status status = uf__input_ensure(j->input, 5, j->error);
    if (status != UF_OK) {
        return status;
    }
    size_t at_hand = uf__input_at_hand(j->input);
    for (size_t i = 0; i < sizeof WORDS / sizeof WORDS[0]; i++) {
        if (at_hand >= WORDS[i].length &&
            memcmp(j->input->cursor, WORDS[i].text, WORDS[i].length) == 0) {
            j->input->cursor += WORDS[i].length;
            *value = WORDS[i].value;
            return UF_OK;
        }
    }
    return fail(j, "no value starts here");
}

static uf_status open_level(json *j, bool is_dict)
{
    if (j->depth == UF__JSON_DEPTH_MAX) {
        return fail(j, "more than %d lists and dictionaries within each other", UF__JSON_DEPTH_MAX);
    }
    j->input->cursor++;
    j->levels[j->depth++] =
        (level){.first = j->stack_count, .list = UF__VALUE_NOTHING, .is_dict = is_dict};
    return UF_OK;
}

/* Moves a list's values from the stack into the list. */
static uf_status take_batch(json *j, level *at)
{
    if (at->list == UF__VALUE_NOTHING && !uf__store_create(j->store, UF__TAG_LIST, &at->list)) {
        return fail_store(j);
    }
    if (!uf__store_append_list(j->store, at->list, j->stack + at->first,
                               j->stack_count - at->first)) {
        return fail_store(j);
    }
    j->stack_count = at->first;
    return UF_OK;
}

/* Two small numbers, as a pool id has them, fit into one word: see UF__TAG_PAIR. */
static bool make_pair(const uf__value *values, uf__value *value)
{
    for (size_t i = 0; i < 2; i++) {
        if (uf__value_tag(values[i]) != UF__TAG_INT || uf__value_payload(values[i]) >> 30 != 0) {
            return false;
        }
    }
    *value = uf__value_make(UF__TAG_PAIR,
                            uf__value_payload(values[1]) << 30 | uf__value_payload(values[0]));
    return true;
}

static uf_status close_list(json *j, level *at, uf__value *value)
{
    if (at->list == UF__VALUE_NOTHING && j->stack_count == at->first + 2 &&
        make_pair(j->stack + at->first, value)) {
        return UF_OK;
    }
    if (at->list == UF__VALUE_NOTHING && j->stack_count == at->first) {
        *value = UF__VALUE_EMPTY;
        return UF_OK;
    }
    uf_status status = take_batch(j, at);
    if (status == UF_OK) {
        uf__store_object(j->store, at->list)->flags |= UF__OBJECT_SEALED;
        *value = at->list;
    }
    return status;
}

/* A dictionary of JSON is complete at its end, so both steps of the reducer come together. */
static uf_status close_dict(json *j, level *at, uf__value *value)
{
    const uf__value *pairs = j->stack + at->first;
    uint64_t word_count = j->stack_count - at->first;
    uf__value record = UF__VALUE_NOTHING;
    uf_status status = UF_OK;
    if (word_count > 2 && j->reducer->fill != NULL) {
        status = j->reducer->fill(j->reducer->context, pairs, word_count / 2, &record, j->error);
    }
    if (status == UF_OK && record == UF__VALUE_NOTHING && j->reducer->seal != NULL) {
        status = j->reducer->seal(j->reducer->context, pairs, word_count / 2, &record, j->error);
    }
    if (status != UF_OK) {
        return status;
    }
    if (record == UF__VALUE_NOTHING) {
        if (!uf__store_create(j->store, UF__TAG_DICT, &record) ||
            !uf__store_append_dict(j->store, record, pairs, word_count)) {
            return fail_store(j);
        }
        uf__store_object(j->store, record)->flags |= UF__OBJECT_SEALED;
    }
    *value = record;
    return UF_OK;
}

/* Puts a finished value where it belongs: among those of the level it stands in. */
static uf_status place_value(json *j, uf__value value, expectation *next)
{
    uf_status status = push(j, value);
    *next = j->depth == 0 ? WANT_NOTHING : WANT_COMMA_OR_END;
    if (status == UF_OK && j->depth > 0) {
        level *at = &j->levels[j->depth - 1];
        if (!at->is_dict && j->stack_count - at->first >= LIST_BATCH) {
            status = take_batch(j, at);
        }
    }
    return status;
}

static uf_status close_level(json *j, expectation *next)
{
    level *at = &j->levels[--j->depth];
    uf__value value = UF__VALUE_NOTHING;
    j->input->cursor++;
    uf_status status = at->is_dict ? close_dict(j, at, &value) : close_list(j, at, &value);
    if (status != UF_OK) {
        return status;
    }
    j->stack_count = at->first;
    return place_value(j, value, next);
}

/* A value, or the beginning of one. */
static uf_status step_value(json *j, int byte, expectation *next)
{
    uf__value value = UF__VALUE_NOTHING;
    uf_status status;
    if (byte == '[' || byte == '{') {
        *next = byte == '{' ? WANT_KEY_OR_END : WANT_VALUE_OR_END;
        return open_level(j, byte == '{');
    }
    if (byte == '"') {
        j->input->cursor++;
        status = read_string(j, &value);
    } else if (byte == '-' || (byte >= '0' && byte <= '9')) {
        status = read_number(j, &value);
    } else {
        status = read_word(j, &value);
    }
    return status == UF_OK ? place_value(j, value, next) : status;
}

static uf_status step_key(json *j, int byte, expectation *next)
{
    if (byte != '"') {
        return fail(j, "a key in quotes should stand here");
    }
    j->input->cursor++;
    uf__value value;
    uf_status status = read_string(j, &value);
    *next = WANT_COLON;
    return status == UF_OK ? push(j, value) : status;
}

static uf_status step_comma(json *j, int byte, expectation *next)
{
    bool is_dict = j->levels[j->depth - 1].is_dict;
    if (byte != ',') {
        return fail(j, "',' or '%c' should stand here", is_dict ? '}' : ']');
    }
    j->input->cursor++;
    *next = is_dict ? WANT_KEY : WANT_VALUE;
    return UF_OK;
}

static uf_status step_colon(json *j, int byte, expectation *next)
{
    if (byte != ':') {
        return fail(j, "':' should stand here");
    }
    j->input->cursor++;
    *next = WANT_VALUE;
    return UF_OK;
}

static uf_status step(json *j, int byte, expectation *next)
{
    bool can_end =
        *next == WANT_VALUE_OR_END || *next == WANT_KEY_OR_END || *next == WANT_COMMA_OR_END;
    if (can_end && byte == (j->levels[j->depth - 1].is_dict ? '}' : ']')) {
        return close_level(j, next);
    }
    switch (*next) {
    case WANT_VALUE:
    case WANT_VALUE_OR_END:
        return step_value(j, byte, next);
    case WANT_KEY:
    case WANT_KEY_OR_END:
        return step_key(j, byte, next);
    case WANT_COLON:
        return step_colon(j, byte, next);
    case WANT_COMMA_OR_END:
        return step_comma(j, byte, next);
    case WANT_NOTHING:
        break;
    }
    return fail(j, "something follows the end of the snapshot");
}

static uf_status parse(json *j)
{
    uf_status status = uf__input_ensure(j->input, 3, j->error);
    if (status == UF_OK && uf__input_at_hand(j->input) >= 3 &&
        memcmp(j->input->cursor, "\xef\xbb\xbf", 3) == 0) {
        j->input->cursor += 3; /* a byte order mark */
    }
    expectation next = WANT_VALUE;
    while (status == UF_OK) {
        int byte;
        status = peek(j, &byte);
        if (status == UF_OK && byte < 0) {
            return next == WANT_NOTHING ? UF_OK : fail_cut(j);
        }
        if (status == UF_OK) {
            status = step(j, byte, &next);
        }
    }
    return status;
}

uf_status uf__json_parse(uf__input *input, uf__store *store, const uf__reducer *reducer,
                         uf__value *result, uf_error *error)
{
    json j = {.input = input, .store = store, .reducer = reducer, .error = error};
    j.locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (j.locale == (locale_t)0) {
        return uf__error_set(error, UF_ERROR_HOST_MEMORY,
                             "reading a JSON snapshot: the host has no memory left");
    }
    /* There is a stack from the start, so that an empty dictionary has a place on it. */
    j.stack = uf__array_grow(NULL, &j.stack_capacity, 1, sizeof *j.stack);
    uf_status status = j.stack != NULL ? parse(&j) : fail_store(&j);
    if (status == UF_OK) {
        *result = j.stack[0];
    }
    freelocale(j.locale);
    free(j.stack);
    free(j.text);
    return status;
}

uf_status uf__json_read(uf__input *input, uf_builder *builder, uf_error *error)
{
    return uf__snapshot_read_form(uf__json_parse, UF_FORM_JSON, "JSON", input, false, builder,
                                  error);
}
