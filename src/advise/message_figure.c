/* SPDX-License-Identifier: MIT
 *
 * Figures in squeezed text: "22.00mib", "0bytes", "1,073,741,824bytes". Units are binary, also
 * where they are written GB: that is what the programs mean. */
#include "advise/message.h"

#include <string.h>

#include "advise/message_parts.h"
#include "base/size.h"

#define MAX_FRACTION_DIGITS 6

typedef struct unit {
    const char *word;
    uint64_t bytes;
} unit;

/* Longer words before their beginnings. */
static const unit units[] = {
    {"bytes", 1},    {"byte", 1},    {"kib", UF_KIB}, {"mib", UF_MIB}, {"gib", UF_GIB},
    {"tib", UF_TIB}, {"kb", UF_KIB}, {"mb", UF_MIB},  {"gb", UF_GIB},  {"tb", UF_TIB},
};

#define UNIT_COUNT (sizeof units / sizeof units[0])

static bool is_digit(char letter)
{
    return letter >= '0' && letter <= '9';
}

/* A decimal number: whole part, and a fraction of up to MAX_FRACTION_DIGITS digits. */
typedef struct decimal {
    uint64_t whole;
    uint64_t fraction, scale; /* fraction / scale */
    bool is_over;             /* the whole part is 2^64 or more */
} decimal;

static bool is_group(const char *at, const char *end)
{
    return end - at >= 4 && at[0] == ',' && is_digit(at[1]) && is_digit(at[2]) && is_digit(at[3]) &&
           (end - at == 4 || !is_digit(at[4]));
}

static const char *read_decimal(const char *at, const char *end, decimal *number)
{
    *number = (decimal){.scale = 1};
    if (at >= end || !is_digit(*at)) {
        return NULL;
    }
    while (at < end && (is_digit(*at) || is_group(at, end))) {
        if (*at != ',') {
            uint64_t tens = 0, digit = (uint64_t)(*at - '0');
            if (!uf__multiply_checked(number->whole, 10, &tens) ||
                !uf__add_checked(tens, digit, &number->whole)) {
                number->is_over = true;
            }
        }
        at++;
    }
    if (end - at >= 2 && at[0] == '.' && is_digit(at[1])) {
        at++;
        for (unsigned digits = 0; at < end && is_digit(*at); at++, digits++) {
            if (digits < MAX_FRACTION_DIGITS) {
                number->fraction = number->fraction * 10 + (uint64_t)(*at - '0');
                number->scale *= 10;
            }
        }
    }
    return at;
}

static void to_figure(const decimal *number, uint64_t unit_bytes, uf_figure *figure)
{
    *figure = (uf_figure){0};
    uint64_t bytes = 0;
    if (number->is_over || !uf__multiply_checked(number->whole, unit_bytes, &bytes)) {
        return;
    }
    /* fraction < 10^6 and unit <= 2^40: the product stays below 2^60. */
    uint64_t part = (number->fraction * unit_bytes + number->scale / 2) / number->scale;
    if (!uf__add_checked(bytes, part, &bytes)) {
        return;
    }
    figure->is_known = true;
    figure->bytes = bytes;
    figure->rounding_bytes = unit_bytes == 1 ? 0 : (unit_bytes / number->scale + 1) / 2;
}

const char *uf__figure_at(const char *at, const char *end, bool is_plain_allowed, uf_figure *figure)
{
    decimal number;
    const char *after = read_decimal(at, end, &number);
    if (after == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < UNIT_COUNT; i++) {
        if (uf__begins(after, end, units[i].word)) {
            to_figure(&number, units[i].bytes, figure);
            return after + strlen(units[i].word);
        }
    }
    if (!is_plain_allowed) {
        return NULL;
    }
    to_figure(&number, 1, figure);
    return after;
}

/* Where the number that ends before `at` begins: digits, one point, digits in groups. */
static const char *number_start(const char *start, const char *at)
{
    const char *from = at;
    while (from > start && is_digit(from[-1])) {
        from--;
    }
    if (from == at) {
        return NULL;
    }
    if (from - start >= 2 && from[-1] == '.' && is_digit(from[-2])) {
        from -= 2;
    }
    while (from > start && (is_digit(from[-1]) || (from - start >= 2 && from[-1] == ',' &&
                                                   is_digit(from[-2]) && is_group(from - 1, at)))) {
        from--;
    }
    return from;
}

bool uf__figure_before(const char *start, const char *at, uf_figure *figure)
{
    for (size_t i = 0; i < UNIT_COUNT; i++) {
        if (uf__ends(start, at, units[i].word)) {
            const char *from = number_start(start, at - strlen(units[i].word));
            return from != NULL && uf__figure_at(from, at, false, figure) == at && figure->is_known;
        }
    }
    return false;
}
