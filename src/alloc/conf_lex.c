/* SPDX-License-Identifier: MIT
 *
 * Settings strings to tokens, in the three ways PyTorch has done it. Owns the tokens' one
 * allocation. No lock. */
#include "alloc/conf_run.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/size.h"

/* isspace in the C locale, whatever the locale is. */
static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_punctuation(char c)
{
    return c == ',' || c == ':' || c == '[' || c == ']';
}

static bool is_dropped(char c, uf__conf_lexing lexing)
{
    return lexing == UF__CONF_LEX_SPACE_ONLY ? c == ' ' : is_blank(c);
}

/* Words are copied to `words`, each with a NUL, behind each other. */
typedef struct lexer {
    uf__conf_tokens *tokens;
    char *words;
    bool is_open;         /* the last token still grows */
    bool has_blank_ahead; /* a blank was dropped since its last character */
} lexer;

static void put(lexer *lex, char c, size_t at)
{
    if (!lex->is_open) {
        uf__conf_token *token = &lex->tokens->items[lex->tokens->count++];
        token->word = lex->words;
        token->start = at;
        token->has_inner_blank = false;
        lex->is_open = true;
        lex->has_blank_ahead = false;
    }
    uf__conf_token *token = &lex->tokens->items[lex->tokens->count - 1];
    token->has_inner_blank = token->has_inner_blank || lex->has_blank_ahead;
    token->end = at + 1;
    *lex->words++ = c;
}

static void close_word(lexer *lex)
{
    if (lex->is_open) {
        *lex->words++ = '\0';
        lex->is_open = false;
    }
}

uf_status uf__conf_lex(const char *text, uf__conf_lexing lexing, uf__conf_tokens *tokens,
                       uf_error *error)
{
    size_t length = strlen(text);
    /* At most one token, and one NUL, per character. */
    uint64_t size;
    tokens->items = NULL;
    tokens->count = 0;
    if (uf__multiply_checked(length, sizeof(uf__conf_token) + 2, &size) && size < SIZE_MAX - 1) {
        tokens->items = malloc((size_t)size + 1);
    }
    if (tokens->items == NULL) {
        return uf__error_set(error, UF_ERROR_HOST_MEMORY,
                             "no host memory to read a settings string of %zu bytes", length);
    }
    lexer lex = {tokens, (char *)(tokens->items + length), false, false};
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        if (lexing == UF__CONF_LEX_ITEMS && (is_blank(c) || c == ',')) {
            close_word(&lex);
        } else if (lexing != UF__CONF_LEX_ITEMS && is_punctuation(c)) {
            close_word(&lex);
            put(&lex, c, i);
            close_word(&lex);
        } else if (lexing != UF__CONF_LEX_ITEMS && is_dropped(c, lexing)) {
            lex.has_blank_ahead = true;
        } else {
            put(&lex, c, i);
            lex.has_blank_ahead = false;
        }
    }
    close_word(&lex);
    return UF_OK;
}

void uf__conf_lex_fini(uf__conf_tokens *tokens)
{
    free(tokens->items);
    tokens->items = NULL;
    tokens->count = 0;
}

bool uf__conf_is_token(const uf__conf_run *run, size_t index, const char *word)
{
    return uf__conf_has_token(run, index) && strcmp(run->tokens.items[index].word, word) == 0;
}
