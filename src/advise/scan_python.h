/* SPDX-License-Identifier: MIT
 *
 * What the two halves of the Python scanner share: the state of a walk over one source's
 * statements. No lock. */
#ifndef UF_ADVISE_SCAN_PYTHON_H
#define UF_ADVISE_SCAN_PYTHON_H

#include "advise/scan.h"
#include "advise/scan_python_lex.h"

#define UF_PYTHON_BLOCK_MAX 64
#define UF_PYTHON_NAME_MAX 256

typedef enum uf_python_block {
    UF_PYTHON_BLOCK_PLAIN, /* with, class, `if __name__ == "__main__"` */
    UF_PYTHON_BLOCK_FUNCTION,
    UF_PYTHON_BLOCK_LOOP,
    UF_PYTHON_BLOCK_BRANCH, /* if, elif, else, match, case, try */
    UF_PYTHON_BLOCK_EXCEPT
} uf_python_block;

/* What a variable holds, as far as a formula about memory is concerned. */
typedef enum uf_python_holds {
    UF_PYTHON_HOLDS_OTHER,
    UF_PYTHON_HOLDS_ALLOCATED,
    UF_PYTHON_HOLDS_ACTIVE,
    UF_PYTHON_HOLDS_STATISTICS /* what memory_stats() returns */
} uf_python_holds;

typedef struct uf_python_name {
    const char *name;
    const char *value; /* a constant string; NULL: not known */
    uf_python_holds holds;
    bool is_device; /* may be "cuda" */
} uf_python_name;

typedef struct uf_python {
    const uf_scan *scan;
    const char *source;
    const uf_python_token *tokens;
    const uf_scan_line *lines;
    size_t line_count;
    struct {
        uint32_t indent, scope;
        uf_python_block kind;
    } blocks[UF_PYTHON_BLOCK_MAX];
    size_t block_count;
    uint32_t scope, scope_count;                 /* the function we are in; 0: none */
    uint32_t import_line, init_line;             /* at module level; 0: not yet */
    uint32_t scope_import_line, scope_init_line; /* in this function */
    uf_python_name names[UF_PYTHON_NAME_MAX];
    size_t name_count;
    bool has_torch; /* torch was imported somewhere before */
} uf_python;

/* Tokens [begin, end) of one simple statement, or of a header. */
typedef struct uf_python_range {
    size_t begin, end;
} uf_python_range;

bool uf__python_is(const uf_python *py, size_t index, const char *text);
bool uf__python_is_call(const uf_python *py, uf_python_range range, size_t index);
/* The bracket that closes the one at `open`, or range.end. */
size_t uf__python_close(const uf_python *py, uf_python_range range, size_t open);
/* The dotted name that ends with the token at index, such as "torch.cuda.empty_cache". */
const char *uf__python_chain(const uf_python *py, uf_python_range range, size_t index, char *buffer,
                             size_t capacity);
const uf_python_name *uf__python_name(const uf_python *py, const char *name);
uint32_t uf__python_line(const uf_python *py, uint32_t line);
uf_finding_place uf__python_place(const uf_python *py, size_t index);
/* The line of code around a token, without its comment. */
const char *uf__python_code(const uf_python *py, size_t index);

/* Everything in a statement that is wrong by itself: attributes, queries, loops, formulas. */
void uf__python_misuse(uf_python *py, uf_python_range range);
/* Remembers what an assignment's names hold. */
void uf__python_remember(uf_python *py, uf_python_range range);

#endif
