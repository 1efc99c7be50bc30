/* SPDX-License-Identifier: MIT
 *
 * Sizes as options: base/size.h and base/card.h, with the option's name in the message. */
#include "size_option.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/card.h"
#include "base/error.h"
#include "base/size.h"

static bool has_digits_alone(const char *text)
{
    return text[0] != '\0' && strspn(text, "0123456789") == strlen(text);
}

/* A number without its unit: no card, limit or device has less than 1 MiB. What is left to others
 * may be as small as one likes. */
static bool is_too_small(const char *option, uint64_t found)
{
    static const char *const whole[] = {"--card", "--limit", "--total"};
    bool has_minimum = false;
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
        has_minimum = has_minimum || strcmp(option, whole[i]) == 0;
    }
    return has_minimum && found < UF_MIB;
}

static uf_status check_size(const char *option, const char *text, uf_status status, uint64_t found,
                            uint64_t *bytes, const uf_error *cause, uf_error *error)
{
    if (status != UF_OK) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT, "%s: %s", option, cause->text);
    }
    if (found == 0) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT, "%s: a size above 0 is needed",
                             option);
    }
    if (is_too_small(option, found)) {
        uint64_t number = strtoull(text, NULL, 10);
        uint64_t guess = number > 0 && number < 1024 ? number : 24;
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "%s: %" PRIu64 " byte%s? perhaps %" PRIu64 "GiB", option, found,
                             found == 1 ? "" : "s", guess);
    }
    *bytes = found;
    return UF_OK;
}

uf_status cli_size_option(const char *option, const char *text, uint64_t whole_bytes,
                          uint64_t *bytes, uf_error *error)
{
    uf_error cause = {0};
    uint64_t found = 0;
    if (whole_bytes == 0 && strchr(text, '%') != NULL) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "%s %s: a percentage is of a card: name it with --card", option, text);
    }
    uf_status status = whole_bytes == 0 ? uf__size_parse(text, &found, &cause)
                                        : uf__size_parse_of(text, whole_bytes, &found, &cause);
    return check_size(option, text, status, found, bytes, &cause, error);
}

/* A name that was sold with several sizes: which one was taken is said, unless the text names it.
 */
static void tell_sizes(const char *option, const uf_card *card)
{
    bool is_told = false;
    for (size_t i = 0; i < uf__card_count(); i++) {
        const uf_card *other = uf__card_at(i);
        if (strcmp(other->name, card->name) != 0 || other->memory_bytes == card->memory_bytes) {
            continue;
        }
        if (!is_told) {
            fprintf(stderr, "unfrag: %s: the %s with %" PRIu64 " GiB is meant", option, card->name,
                    card->memory_bytes >> 30);
        }
        fprintf(stderr, "%s\"%s %" PRIu64 "GiB\"", is_told ? ", " : "; there is also ", other->name,
                other->memory_bytes >> 30);
        is_told = true;
    }
    if (is_told) {
        fprintf(stderr, "\n");
    }
}

/* Does the text say how much memory the card has? */
static bool names_size(const char *text)
{
    for (const char *at = text; *at != '\0'; at++) {
        bool is_unit = (at[0] == 'G' || at[0] == 'g') && at > text;
        if (is_unit && (strchr("0123456789 ", at[-1]) != NULL) &&
            (at[1] == 'B' || at[1] == 'b' || at[1] == 'i' || at[1] == 'I' || at[1] == '\0')) {
            return true;
        }
    }
    return false;
}

/* "4090" is a card and no number of bytes: a card's name wins over a size without a unit. */
uf_status cli_card_option(const char *option, const char *text, uint64_t *bytes, uf_error *error)
{
    uf_error size_cause = {0}, card_cause = {0};
    uint64_t found = 0;
    const uf_card *card = NULL;
    uf_status status = uf__size_parse(text, &found, &size_cause);
    if (status == UF_OK && !(has_digits_alone(text) && strlen(text) <= 4)) {
        return check_size(option, text, status, found, bytes, &size_cause, error);
    }
    if (uf__card_find(text, &card, &card_cause) == UF_OK) {
        *bytes = card->memory_bytes;
        if (!names_size(text)) {
            tell_sizes(option, card);
        }
        return UF_OK;
    }
    if (status == UF_OK) {
        return check_size(option, text, status, found, bytes, &size_cause, error);
    }
    /* Starts like a size: the size's complaint helps more. */
    bool is_like_size = text[0] != '\0' && strchr("0123456789+-.", text[0]) != NULL;
    const char *reason = is_like_size ? size_cause.text : card_cause.text;
    return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT, "%s: %s", option, reason);
}
