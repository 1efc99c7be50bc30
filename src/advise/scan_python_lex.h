/* SPDX-License-Identifier: MIT
 *
 * Python source to tokens: names, numbers, strings (their content, unescaped), operators, ends of
 * logical lines with their indentation. Comments are no tokens. Never fails on input: what is no
 * Python becomes operators. No lock. */
#ifndef UF_ADVISE_SCAN_PYTHON_LEX_H
#define UF_ADVISE_SCAN_PYTHON_LEX_H

#include "advise/finding.h"

typedef enum uf_python_kind {
    UF_PYTHON_NAME,
    UF_PYTHON_NUMBER,
    UF_PYTHON_STRING,
    UF_PYTHON_OPERATOR,
    UF_PYTHON_LINE_END, /* of a logical line */
    UF_PYTHON_END
} uf_python_kind;

typedef struct uf_python_token {
    uf_python_kind kind;
    size_t close;      /* of an opening bracket: the index of the one that closes it, or SIZE_MAX */
    size_t start, end; /* in the source, with quotes and prefix */
    uint32_t line;     /* from 1 on, in the source; where the token starts */
    uint32_t indent;   /* of its logical line */
    const char *text;  /* name, number, operator; a string's content */
    bool is_computed;  /* an f-string with a field in it */
    bool is_bytes;
    char quote; /* of a string */
} uf_python_token;

typedef struct uf_python_tokens {
    uf_python_token *items; /* ends with UF_PYTHON_END; owned */
    size_t count, capacity;
} uf_python_tokens;

/* The texts of the tokens belong to findings, whose has_failed is set if the host has no memory;
 * the list is usable in any case. */
void uf__python_lex(const char *source, uf_python_tokens *tokens, uf_findings *findings);
void uf__python_lex_fini(uf_python_tokens *tokens);

#endif
