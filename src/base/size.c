/* SPDX-License-Identifier: MIT
 *
 * Sizes as text. The number is read digit by digit into integers, so the result is exact and no
 * locale can change the decimal point. */
#include "base/size.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

#define FRACTION_DIGIT_COUNT 18 /* 10^18 fits 64 bits */
#define SIZE_HINT "give bytes or a number with a unit, such as 24GiB, 1.5GiB, 512MiB or 20KiB"

__extension__ typedef unsigned __int128 wide_uint;

/* A decimal number: whole + fraction / scale. */
typedef struct decimal {
    uint64_t whole;
    uint64_t fraction;
    uint64_t scale; /* a power of ten, 1 without a fraction */
} decimal;

typedef enum decimal_result { DECIMAL_OK, DECIMAL_NONE, DECIMAL_OVERFLOW } decimal_result;

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *skip_blanks(const char *at)
{
    while (is_blank(*at)) {
        at++;
    }
    return at;
}

/* Reads digits[.digits] or .digits; *at moves behind them. */
static decimal_result read_decimal(const char **at, decimal *number)
{
    const char *c = *at;
    decimal value = {0, 0, 1};
    bool has_digit = false;
    for (; is_digit(*c); c++) {
        has_digit = true;
        uint64_t digit = (uint64_t)(*c - '0');
        if (!uf__multiply_checked(value.whole, 10, &value.whole) ||
            !uf__add_checked(value.whole, digit, &value.whole)) {
            return DECIMAL_OVERFLOW;
        }
    }
    if (*c == '.') {
        c++;
        int digit_count = 0;
        for (; is_digit(*c); c++) {
            has_digit = true;
            if (digit_count++ < FRACTION_DIGIT_COUNT) {
                value.fraction = value.fraction * 10 + (uint64_t)(*c - '0');
                value.scale *= 10;
            }
        }
    }
    if (!has_digit) {
        return DECIMAL_NONE;
    }
    *at = c;
    *number = value;
    return DECIMAL_OK;
}

/* number * factor, the fraction rounded to nearest; false if it is 2^64 or more. */
static bool decimal_scale(const decimal *number, uint64_t factor, bool is_rounded_up,
                          uint64_t *result)
{
    wide_uint part = (wide_uint)number->fraction * factor;
    if (is_rounded_up) {
        part += number->scale / 2;
    }
    wide_uint total = (wide_uint)number->whole * factor + part / number->scale;
    if (total > UINT64_MAX) {
        return false;
    }
    *result = (uint64_t)total;
    return true;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Reads a unit and the blanks behind it; false if that is not all there is. */
static bool read_unit(const char *at, uint64_t *factor)
{
    static const char letters[] = "kmgtp";
    const char *letter = *at == '\0' ? NULL : strchr(letters, lower(*at));
    *factor = 1;
    if (letter != NULL) {
        *factor = UINT64_C(1) << (10 * (letter - letters + 1));
        at++;
        if (lower(at[0]) == 'i' && lower(at[1]) == 'b') {
            at += 2;
        } else if (lower(at[0]) == 'b') {
            at++;
        }
    } else if (lower(*at) == 'b') {
        at++;
    }
    return *skip_blanks(at) == '\0';
}

/* Reads the number in front of a unit or a percent sign; the errors are those of both. */
static uf_status read_number(const char *text, const char **at, decimal *number, uf_error *error)
{
    if (text == NULL || *skip_blanks(text) == '\0') {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT, "the size is empty; " SIZE_HINT);
    }
    *at = skip_blanks(text);
    if (**at == '-') {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "the size '%.60s' is negative; " SIZE_HINT, text);
    }
    if (**at == '+') {
        ++*at;
    }
    switch (read_decimal(at, number)) {
    case DECIMAL_NONE:
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "'%.60s' does not start with a number; " SIZE_HINT, text);
    case DECIMAL_OVERFLOW:
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "the size '%.60s' is 2^64 bytes or more; " SIZE_HINT, text);
    case DECIMAL_OK:
        break;
    }
    *at = skip_blanks(*at);
    return UF_OK;
}

uf_status uf__size_parse(const char *text, uint64_t *bytes, uf_error *error)
{
    const char *at = "";
    decimal number = {0, 0, 1};
    uf_status status = read_number(text, &at, &number, error);
    if (status != UF_OK) {
        return status;
    }
    uint64_t factor;
    if (*at == '%') {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "'%.60s' is a share, and the whole is not known here; " SIZE_HINT,
                             text);
    }
    if (!read_unit(at, &factor)) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "the size '%.60s' has the unknown unit '%.20s'; units are B, KiB, "
                             "MiB, GiB, TiB and PiB (GB and G read as GiB)",
                             text, at);
    }
    if (factor == 1 && number.scale != 1) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "'%.60s' is a fraction of a byte; add a unit, such as GiB or MiB",
                             text);
    }
    if (!decimal_scale(&number, factor, true, bytes)) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "the size '%.60s' is 2^64 bytes or more; " SIZE_HINT, text);
    }
    return UF_OK;
}

uf_status uf__size_parse_of(const char *text, uint64_t whole_bytes, uint64_t *bytes,
                            uf_error *error)
{
    const char *at = "";
    decimal number = {0, 0, 1};
    uf_status status = read_number(text, &at, &number, error);
    if (status != UF_OK) {
        return status;
    }
    if (*at != '%') {
        return uf__size_parse(text, bytes, error);
    }
    bool is_over = number.whole > 100 || (number.whole == 100 && number.fraction != 0);
    if (*skip_blanks(at + 1) != '\0' || is_over) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "'%.60s' is no share from 0%% to 100%%; for example 90%%", text);
    }
    /* Six digits of the fraction are plenty, and keep the product inside 128 bits. */
    while (number.scale > 1000000) {
        number.scale /= 10;
        number.fraction /= 10;
    }
    uint64_t parts = number.whole * number.scale + number.fraction;
    *bytes = (uint64_t)((wide_uint)whole_bytes * parts / (100 * number.scale));
    return UF_OK;
}

const char *uf__size_format(char *buffer, size_t capacity, uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (capacity == 0) {
        return buffer;
    }
    if (bytes < UF_KIB) {
        snprintf(buffer, capacity, "%u B", (unsigned)bytes);
        return buffer;
    }
    unsigned unit = uf__floor_log2(bytes) / 10;
    /* Hundredths, rounded; 1023.996 MiB is written as 1.00 GiB and not as 1024.00 MiB. */
    uint64_t hundredths = 0;
    for (;; unit++) {
        wide_uint one = (wide_uint)1 << (10 * unit);
        hundredths = (uint64_t)(((wide_uint)bytes * 100 + one / 2) / one);
        if (hundredths < 102400 || unit + 1 == sizeof units / sizeof units[0]) {
            break;
        }
    }
    snprintf(buffer, capacity, "%u.%02u %s", (unsigned)(hundredths / 100),
             (unsigned)(hundredths % 100), units[unit]);
    return buffer;
}
