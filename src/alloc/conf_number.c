/* SPDX-License-Identifier: MIT
 *
 * Words to numbers as std::stoull, std::stoi and std::stod read them, in any locale. Pure. */
#include "alloc/conf_run.h"

#include <errno.h>
#include <locale.h>
#include <stdlib.h>

#include "base/size.h"

/* sign and digits in base 10; *end is the word itself if there are no digits. */
static uf__conf_number read_magnitude(const char *word, uint64_t *magnitude, bool *is_negative,
                                      unsigned *oddities)
{
    const char *at = word;
    while (*at == ' ' || (*at >= '\t' && *at <= '\r')) {
        at++;
    }
    *is_negative = *at == '-';
    if (*at == '-' || *at == '+') {
        at++;
    }
    const char *digits = at;
    uint64_t value = 0;
    bool is_overflow = false;
    for (; *at >= '0' && *at <= '9'; at++) {
        is_overflow = is_overflow || !uf__multiply_checked(value, 10, &value) ||
                      !uf__add_checked(value, (uint64_t)(*at - '0'), &value);
    }
    if (at == digits) {
        return UF__CONF_NUMBER_NONE;
    }
    if (is_overflow) {
        return UF__CONF_NUMBER_OVERFLOW;
    }
    if (*at != '\0') {
        *oddities |= UF_CONF_ODD_TRAILING;
    }
    if (*is_negative && value != 0) {
        *oddities |= UF_CONF_ODD_WRAPPED;
    }
    *magnitude = value;
    return UF__CONF_NUMBER_OK;
}

uf__conf_number uf__conf_read_unsigned64(const char *word, uint64_t *value, unsigned *oddities)
{
    uint64_t magnitude;
    bool is_negative;
    uf__conf_number result = read_magnitude(word, &magnitude, &is_negative, oddities);
    if (result == UF__CONF_NUMBER_OK) {
        *value = is_negative ? 0 - magnitude : magnitude;
    }
    return result;
}

uf__conf_number uf__conf_read_signed32(const char *word, uint64_t *value, unsigned *oddities)
{
    uint64_t magnitude;
    bool is_negative;
    uf__conf_number result = read_magnitude(word, &magnitude, &is_negative, oddities);
    if (result != UF__CONF_NUMBER_OK) {
        return result;
    }
    if (magnitude > (uint64_t)INT32_MAX + (is_negative ? 1 : 0)) {
        return UF__CONF_NUMBER_OVERFLOW;
    }
    *value = is_negative ? 0 - magnitude : magnitude;
    return UF__CONF_NUMBER_OK;
}

uf__conf_number uf__conf_read_double(const char *word, double *value, unsigned *oddities)
{
    /* The "C" locale is built in: this allocates nothing and cannot fail in practice. */
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t previous = c_locale == (locale_t)0 ? (locale_t)0 : uselocale(c_locale);
    int saved_errno = errno;
    errno = 0;
    char *end;
    double number = strtod(word, &end);
    bool is_overflow = errno == ERANGE;
    errno = saved_errno;
    if (c_locale != (locale_t)0) {
        uselocale(previous);
        freelocale(c_locale);
    }
    if (end == word) {
        return UF__CONF_NUMBER_NONE;
    }
    if (is_overflow) {
        return UF__CONF_NUMBER_OVERFLOW;
    }
    if (*end != '\0') {
        *oddities |= UF_CONF_ODD_TRAILING;
    }
    *value = number;
    return UF__CONF_NUMBER_OK;
}
