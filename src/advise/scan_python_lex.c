/* SPDX-License-Identifier: MIT
 *
 * The tokens of Python. Lines end a statement unless a bracket is open or a backslash stands in
 * front. No lock. */
#include "advise/scan_python_lex.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct lexer {
    const char *source;
    size_t at;
    uint32_t line, indent;
    unsigned depth;    /* of brackets */
    bool is_line_open; /* the logical line has a token */
    uf_python_tokens *tokens;
    uf_findings *findings;
    char *scratch; /* as long as the source */
} lexer;

static uf_python_token *add(lexer *lex, uf_python_kind kind, size_t start)
{
    uf_python_tokens *tokens = lex->tokens;
    if (tokens->count + 2 > tokens->capacity) {
        size_t capacity = tokens->capacity == 0 ? 256 : tokens->capacity * 2;
        uf_python_token *items = realloc(tokens->items, capacity * sizeof *items);
        if (items == NULL) {
            lex->findings->has_failed = true;
            return NULL;
        }
        tokens->items = items;
        tokens->capacity = capacity;
    }
    uf_python_token *token = &tokens->items[tokens->count++];
    *token = (uf_python_token){
        .kind = kind, .start = start, .end = lex->at, .line = lex->line, .indent = lex->indent};
    token->text = "";
    return token;
}

static bool is_name_start(char c)
{
    return isalpha((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

static void add_text(lexer *lex, uf_python_kind kind, size_t start)
{
    uf_python_token *token = add(lex, kind, start);
    if (token != NULL) {
        token->text = uf__findings_copy(lex->findings, lex->source + start, lex->at - start);
    }
    lex->is_line_open = true;
}

/* One escape of a string at lex->at (a backslash) to *length of the scratch text. */
static void read_escape(lexer *lex, size_t *length)
{
    char c = lex->source[lex->at + 1];
    static const char from[] = "ntr\\'\"abfv", to[] = "\n\t\r\\'\"\a\b\f\v";
    const char *found = c == '\0' ? NULL : strchr(from, c);
    lex->at += c == '\0' ? 1 : 2;
    if (c == '\n') {
        lex->line++;
    } else if (found != NULL) {
        lex->scratch[(*length)++] = to[found - from];
    } else {
        lex->scratch[(*length)++] = '\\';
        if (c != '\0') {
            lex->scratch[(*length)++] = c;
        }
    }
}

/* Reads a string whose first quote is at lex->at; start is that of its prefix. */
static void read_string(lexer *lex, size_t start, bool is_raw, bool is_format, bool is_bytes)
{
    const char *source = lex->source;
    char quote = source[lex->at];
    bool is_triple = source[lex->at + 1] == quote && source[lex->at + 2] == quote;
    uint32_t first_line = lex->line;
    size_t length = 0;
    bool is_computed = false;
    lex->at += is_triple ? 3 : 1;
    while (source[lex->at] != '\0') {
        char c = source[lex->at];
        if (c == quote && !is_triple) {
            lex->at++;
            break;
        }
        if (c == quote && source[lex->at + 1] == quote && source[lex->at + 2] == quote) {
            lex->at += 3;
            break;
        }
        if (c == '\n' && !is_triple) {
            break; /* not closed */
        }
        if (c == '\\' && is_raw) {
            lex->scratch[length++] = c;
            lex->at++;
            if (source[lex->at] != '\0' && source[lex->at] != '\n') {
                lex->scratch[length++] = source[lex->at++];
            }
            continue;
        }
        if (c == '\\') {
            read_escape(lex, &length);
            continue;
        }
        bool is_doubled = (c == '{' || c == '}') && source[lex->at + 1] == c;
        if (is_format && is_doubled) {
            lex->at++;
        } else if (is_format && c == '{') {
            is_computed = true;
        }
        lex->line += c == '\n';
        lex->scratch[length++] = c;
        lex->at++;
    }
    uf_python_token *token = add(lex, UF_PYTHON_STRING, start);
    if (token != NULL) {
        token->line = first_line;
        token->text = uf__findings_copy(lex->findings, lex->scratch, length);
        token->is_computed = is_computed;
        token->is_bytes = is_bytes;
        token->quote = quote;
    }
    lex->is_line_open = true;
}

/* A name, or the prefix of a string. */
static void read_word(lexer *lex)
{
    size_t start = lex->at;
    while (is_name_start(lex->source[lex->at]) || isdigit((unsigned char)lex->source[lex->at])) {
        lex->at++;
    }
    char next = lex->source[lex->at];
    size_t length = lex->at - start;
    if ((next == '"' || next == '\'') && length <= 2) {
        bool is_prefix = true, is_raw = false, is_format = false, is_bytes = false;
        for (size_t i = start; i < lex->at; i++) {
            int c = tolower((unsigned char)lex->source[i]);
            is_prefix = is_prefix && (c == 'r' || c == 'b' || c == 'f' || c == 'u' || c == 't');
            is_raw = is_raw || c == 'r';
            is_format = is_format || c == 'f' || c == 't';
            is_bytes = is_bytes || c == 'b';
        }
        if (is_prefix) {
            read_string(lex, start, is_raw, is_format, is_bytes);
            return;
        }
    }
    add_text(lex, UF_PYTHON_NAME, start);
}

static void read_number(lexer *lex)
{
    size_t start = lex->at;
    const char *source = lex->source;
    while (isalnum((unsigned char)source[lex->at]) || source[lex->at] == '_' ||
           source[lex->at] == '.' ||
           ((source[lex->at] == '+' || source[lex->at] == '-') && lex->at > start &&
            (source[lex->at - 1] == 'e' || source[lex->at - 1] == 'E') &&
            strncmp(source + start, "0x", 2) != 0)) {
        lex->at++;
    }
    add_text(lex, UF_PYTHON_NUMBER, start);
}

static void read_operator(lexer *lex)
{
    static const char *const operators[] = {"**=", "//=", "<<=", ">>=", "...", "**", "//", "<<",
                                            ">>",  "==",  "!=",  "<=",  ">=",  "+=", "-=", "*=",
                                            "/=",  "%=",  "&=",  "|=",  "^=",  ":=", "->"};
    size_t start = lex->at;
    size_t length = 1;
    for (size_t i = 0; i < sizeof operators / sizeof operators[0] && length == 1; i++) {
        size_t candidate = strlen(operators[i]);
        length = strncmp(lex->source + start, operators[i], candidate) == 0 ? candidate : 1;
    }
    char c = lex->source[start];
    lex->depth += c == '(' || c == '[' || c == '{';
    lex->depth -= (c == ')' || c == ']' || c == '}') && lex->depth > 0;
    lex->at += length;
    add_text(lex, UF_PYTHON_OPERATOR, start);
}

static void end_line(lexer *lex)
{
    if (lex->is_line_open) {
        add(lex, UF_PYTHON_LINE_END, lex->at);
    }
    lex->is_line_open = false;
}

/* Blanks at the start of a logical line are its indentation. */
static void read_blank(lexer *lex)
{
    if (!lex->is_line_open && lex->depth == 0) {
        lex->indent = lex->source[lex->at] == '\t' ? lex->indent / 8 * 8 + 8 : lex->indent + 1;
    }
    lex->at++;
}

/* Brackets of any kind in pairs, as they nest. The open ones are a list through `close`. */
static void match_brackets(uf_python_tokens *tokens)
{
    size_t open = SIZE_MAX;
    for (size_t i = 0; i < tokens->count; i++) {
        uf_python_token *token = &tokens->items[i];
        token->close = SIZE_MAX;
        if (token->kind != UF_PYTHON_OPERATOR || token->text[0] == '\0' || token->text[1] != '\0') {
            continue;
        }
        if (strchr("([{", token->text[0]) != NULL) {
            token->close = open;
            open = i;
        } else if (strchr(")]}", token->text[0]) != NULL && open != SIZE_MAX) {
            size_t outer = tokens->items[open].close;
            tokens->items[open].close = i;
            open = outer;
        }
    }
    while (open != SIZE_MAX) { /* never closed */
        size_t outer = tokens->items[open].close;
        tokens->items[open].close = SIZE_MAX;
        open = outer;
    }
}

void uf__python_lex(const char *source, uf_python_tokens *tokens, uf_findings *findings)
{
    memset(tokens, 0, sizeof *tokens);
    lexer lex = {.source = source, .line = 1, .tokens = tokens, .findings = findings};
    lex.scratch = uf__findings_allocate(findings, strlen(source) + 2);
    while (lex.scratch != NULL && !findings->has_failed && source[lex.at] != '\0') {
        char c = source[lex.at];
        if (c == '\n') {
            if (lex.depth == 0) {
                end_line(&lex);
                lex.indent = 0;
            }
            lex.at++;
            lex.line++;
        } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f') {
            read_blank(&lex);
        } else if (c == '#') {
            lex.at += strcspn(source + lex.at, "\n");
        } else if (c == '\\' && source[lex.at + 1 + (source[lex.at + 1] == '\r')] == '\n') {
            lex.at += source[lex.at + 1] == '\r' ? 3 : 2;
            lex.line++;
        } else if (is_name_start(c)) {
            read_word(&lex);
        } else if (isdigit((unsigned char)c) ||
                   (c == '.' && isdigit((unsigned char)source[lex.at + 1]))) {
            read_number(&lex);
        } else if (c == '"' || c == '\'') {
            read_string(&lex, lex.at, false, false, false);
        } else {
            read_operator(&lex);
        }
    }
    end_line(&lex);
    add(&lex, UF_PYTHON_END, lex.at);
    match_brackets(tokens);
}

void uf__python_lex_fini(uf_python_tokens *tokens)
{
    free(tokens->items);
    memset(tokens, 0, sizeof *tokens);
}
