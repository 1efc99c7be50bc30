/* SPDX-License-Identifier: MIT
 *
 * What the parts of the settings parser share: the tokens of one string and the state of one
 * reading. Private to src/alloc/conf*.c; lives on one thread's stack, no lock.
 *
 *   conf.c            entry points, defaults, versions
 *   conf_2_10.c       2.10 and later        \
 *   conf_2_0.c        2.0 to 2.9             > walk over the tokens, use:
 *   conf_1_10.c       1.10 to 1.13          /
 *   conf_value.c      one value by the table's type;  conf_divisions.c  the bracketed list
 *   conf_lex.c        text to tokens;                 conf_number.c     words to numbers
 *   conf_fault.c      error texts;                    conf_option.c     the table */
#ifndef UF_ALLOC_CONF_RUN_H
#define UF_ALLOC_CONF_RUN_H

#include "alloc/conf.h"
#include "alloc/conf_option.h"

/* One token: the word with its blanks dropped, and where it stands in the text. */
typedef struct uf__conf_token {
    char *word;
    size_t start, end;
    bool has_inner_blank;
} uf__conf_token;

typedef struct uf__conf_tokens {
    uf__conf_token *items;
    size_t count;
} uf__conf_tokens;

typedef enum uf__conf_lexing {
    UF__CONF_LEX_ANY_BLANK,  /* , : [ ] are tokens; every isspace character is dropped */
    UF__CONF_LEX_SPACE_ONLY, /* , : [ ] are tokens; only the space is dropped */
    UF__CONF_LEX_ITEMS       /* words between commas and blanks */
} uf__conf_lexing;

/* Splits text; one allocation, freed by fini. UF_ERROR_HOST_MEMORY. */
uf_status uf__conf_lex(const char *text, uf__conf_lexing lexing, uf__conf_tokens *tokens,
                       uf_error *error) UF_MUST_USE;
void uf__conf_lex_fini(uf__conf_tokens *tokens);

typedef struct uf__conf_run {
    uf_conf *conf;
    const uf_conf_reading *reading;
    uf_conf_report *report;
    uf_error *error;
    const char *text;
    uf__conf_tokens tokens;
    unsigned oddities; /* of the item being read */
} uf__conf_run;

static inline bool uf__conf_is_old(const uf__conf_run *run)
{
    return run->reading->grammar == UF_CONF_2_0 || run->reading->grammar == UF_CONF_1_10;
}

static inline bool uf__conf_has_token(const uf__conf_run *run, size_t index)
{
    return index < run->tokens.count;
}

/* True if there is a token at index and it is that word. */
bool uf__conf_is_token(const uf__conf_run *run, size_t index, const char *word);

static inline const uf_conf_option *uf__conf_run_find(const uf__conf_run *run, const char *word,
                                                      size_t length)
{
    return uf__conf_option_find(word, length, run->reading->grammar, run->reading->release);
}

/* The walks. Each applies what it can and returns UF_OK or the first fault. */
uf_status uf__conf_walk_2_10(uf__conf_run *run) UF_MUST_USE;
uf_status uf__conf_walk_2_0(uf__conf_run *run) UF_MUST_USE;
uf_status uf__conf_walk_1_10(uf__conf_run *run) UF_MUST_USE;

/* Sets an option of any type but UF_CONF_TYPE_DIVISIONS from the word at a token. */
uf_status uf__conf_set_value(uf__conf_run *run, const uf_conf_option *option,
                             size_t value_index) UF_MUST_USE;

/* Sets the divisions from the value at *index; *index moves to the value's last token. */
uf_status uf__conf_set_divisions(uf__conf_run *run, const uf_conf_option *option,
                                 size_t *index) UF_MUST_USE;
uf_status uf__conf_set_all_divisions(uf__conf_run *run, const uf_conf_option *option,
                                     size_t value_index) UF_MUST_USE;

/* Reports an accepted item: its key, first value token and last token. */
void uf__conf_accept(uf__conf_run *run, const uf_conf_option *option, size_t key_index,
                     size_t value_index, size_t end_index);
void uf__conf_accept_item(uf__conf_run *run, uf_conf_item *item);

/* Numbers as C++ reads them. All stop at the first character that does not belong to the number
 * and set UF_CONF_ODD_TRAILING, they fail if there is none, and if it does not fit. A negative
 * number becomes 2^64 minus it, with UF_CONF_ODD_WRAPPED. */
typedef enum uf__conf_number {
    UF__CONF_NUMBER_OK,
    UF__CONF_NUMBER_NONE,
    UF__CONF_NUMBER_OVERFLOW
} uf__conf_number;

uf__conf_number uf__conf_read_unsigned64(const char *word, uint64_t *value, unsigned *oddities);
uf__conf_number uf__conf_read_signed32(const char *word, uint64_t *value, unsigned *oddities);
uf__conf_number uf__conf_read_double(const char *word, double *value, unsigned *oddities);

/* The integer at a token, in the way of the grammar; a fault if there is none. */
uf_status uf__conf_integer(uf__conf_run *run, const uf_conf_option *option, size_t index,
                           uint64_t *value) UF_MUST_USE;

/* Faults: fill in report and error, and return UF_ERROR_CONF. index: the faulty token; one beyond
 * the end is the end of the text. Before 2.10 every exception is a RuntimeError. */
uf_status uf__conf_fail(uf__conf_run *run, uf_conf_fault fault, uf_conf_exception exception,
                        const uf_conf_option *option, size_t index, const char *format, ...)
    UF_PRINTF(6, 7);
uf_status uf__conf_fail_missing(uf__conf_run *run, const uf_conf_option *option, const char *what);
uf_status uf__conf_fail_range(uf__conf_run *run, const uf_conf_option *option, size_t index);
uf_status uf__conf_fail_unknown(uf__conf_run *run, size_t index);

/* A word that may be shown: cut to length, unprintable characters replaced. */
#define UF__CONF_EXCERPT_CAPACITY 48
const char *uf__conf_excerpt(char buffer[UF__CONF_EXCERPT_CAPACITY], const char *word);

#endif
