/* SPDX-License-Identifier: MIT
 *
 * Jupyter notebooks: the code cells, joined to one program in their order, with magics set apart.
 * `%env` sets the kernel's environment; what `!command` or a %%bash cell sets is lost with it. No
 * lock. */
#include "advise/scan.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

typedef struct notebook {
    const uf_scan *scan;
    char *text; /* of all code cells so far */
    size_t length, capacity;
    uf_scan_line *lines;
    size_t line_count, line_capacity;
} notebook;

static bool reserve(notebook *book, size_t more)
{
    if (book->length + more + 1 > book->capacity) {
        size_t capacity = (book->length + more + 1) * 2;
        char *text = realloc(book->text, capacity);
        if (text == NULL) {
            book->scan->check->findings.has_failed = true;
            return false;
        }
        book->text = text;
        book->capacity = capacity;
    }
    if (book->line_count == book->line_capacity) {
        size_t capacity = book->line_capacity == 0 ? 256 : book->line_capacity * 2;
        uf_scan_line *lines = realloc(book->lines, capacity * sizeof *lines);
        if (lines == NULL) {
            book->scan->check->findings.has_failed = true;
            return false;
        }
        book->lines = lines;
        book->line_capacity = capacity;
    }
    return true;
}

static void add_line(notebook *book, const char *line, size_t length, uint32_t cell,
                     uint32_t number)
{
    if (!reserve(book, length + 1)) {
        return;
    }
    memcpy(book->text + book->length, line, length);
    book->length += length;
    book->text[book->length++] = '\n';
    book->text[book->length] = '\0';
    book->lines[book->line_count++] = (uf_scan_line){cell, number};
}

/* `%env NAME=VALUE` or `%env NAME VALUE` as the Python it stands for; NULL: it sets nothing. */
static const char *env_as_python(notebook *book, const char *line)
{
    const char *name = line + strcspn(line, " \t");
    name += strspn(name, " \t");
    size_t length = strcspn(name, "= \t");
    if (length == 0 || name[length] == '\0') {
        return NULL;
    }
    const char *value = name + length;
    value += strspn(value, " \t");
    value += *value == '=';
    value += strspn(value, " \t");
    char quote = strchr(value, '"') == NULL ? '"' : '\'';
    return uf__findings_print(&book->scan->check->findings,
                              "import os; os.environ[\"%.*s\"] = %c%s%c", (int)length, name, quote,
                              value, quote);
}

static void add_code_line(notebook *book, const char *line, uint32_t cell, uint32_t number)
{
    const char *code = line + strspn(line, " \t");
    uf_scan inner = *book->scan;
    inner.cell = cell;
    inner.first_line = number;
    if (strncmp(code, "%env ", 5) == 0 || strncmp(code, "%set_env ", 9) == 0) {
        const char *python = env_as_python(book, code);
        python = python == NULL ? "" : python;
        add_line(book, python, strlen(python), cell, number);
    } else if (code[0] == '!') {
        inner.lost =
            "`!` runs a shell of its own that ends with this line; the notebook never sees "
            "it. Use %env NAME=VALUE before torch is imported";
        uf__scan_shell(&inner, code + 1);
        add_line(book, "pass", 4, cell, number);
    } else if (code[0] == '%') {
        add_line(book, "pass", 4, cell, number);
    } else {
        add_line(book, line, strlen(line), cell, number);
    }
}

static void add_cell(notebook *book, const char *source, uint32_t cell)
{
    const char *start = source + strspn(source, " \t\r\n");
    if (strncmp(start, "%%bash", 6) == 0 || strncmp(start, "%%sh", 4) == 0 ||
        strncmp(start, "%%script", 8) == 0) {
        uf_scan inner = *book->scan;
        size_t skipped = strcspn(start, "\n");
        inner.cell = cell;
        inner.first_line = 1;
        for (const char *at = source; at < start + skipped; at++) {
            inner.first_line += *at == '\n';
        }
        inner.first_line += start[skipped] == '\n';
        uf__scan_shell(&inner, start + skipped + (start[skipped] == '\n'));
        return;
    }
    bool is_other = strncmp(start, "%%", 2) == 0 && strncmp(start, "%%time", 6) != 0 &&
                    strncmp(start, "%%capture", 9) != 0;
    uint32_t number = 0;
    const char *line;
    while (!is_other && (line = uf__scan_next_line(book->scan, &source)) != NULL) {
        add_code_line(book, line, cell, ++number);
    }
    /* a cell that is not finished must not swallow the next one */
}

/* A cell's source is one string or a list of lines. */
static const char *source_of(notebook *book, const json_t *source)
{
    uf_findings *texts = &book->scan->check->findings;
    if (json_is_string(source)) {
        return uf__findings_copy(texts, json_string_value(source), json_string_length(source));
    }
    size_t length = 0;
    for (size_t i = 0; i < json_array_size(source); i++) {
        length += json_string_length(json_array_get(source, i));
    }
    char *joined = uf__findings_allocate(texts, length + 1);
    if (joined == NULL) {
        return "";
    }
    size_t at = 0;
    for (size_t i = 0; i < json_array_size(source); i++) {
        const json_t *part = json_array_get(source, i);
        size_t part_length = json_string_length(part);
        if (part_length > 0) {
            memcpy(joined + at, json_string_value(part), part_length);
        }
        at += part_length;
    }
    joined[at] = '\0';
    return joined;
}

static void scan_cells(notebook *book, const json_t *cells)
{
    for (size_t i = 0; i < json_array_size(cells); i++) {
        const json_t *cell = json_array_get(cells, i);
        const char *type = json_string_value(json_object_get(cell, "cell_type"));
        const json_t *source = json_object_get(cell, "source");
        source = source != NULL ? source : json_object_get(cell, "input"); /* format 3 */
        if (type != NULL && strcmp(type, "code") == 0 && source != NULL) {
            add_cell(book, source_of(book, source), (uint32_t)i + 1);
        }
    }
}

uf_status uf__scan_notebook(const uf_scan *scan, const char *name, const char *text,
                            uf_error *error)
{
    json_error_t problem;
    json_t *root = json_loads(text, 0, &problem);
    if (root == NULL || !json_is_object(root)) {
        json_decref(root);
        return uf__error_set(error, UF_ERROR_BAD_INPUT,
                             "%s: no notebook: line %d: %s; a notebook is one JSON object", name,
                             root == NULL ? problem.line : 1,
                             root == NULL ? problem.text : "a list");
    }
    notebook book = {.scan = scan};
    const json_t *cells = json_object_get(root, "cells");
    if (cells == NULL) {
        cells = json_object_get(json_array_get(json_object_get(root, "worksheets"), 0), "cells");
    }
    scan_cells(&book, cells);
    if (book.text != NULL) {
        const char *joined = uf__findings_copy(&scan->check->findings, book.text, book.length);
        uf_findings *texts = &scan->check->findings;
        uf_scan_line *lines = uf__findings_allocate(texts, (book.line_count + 1) * sizeof *lines);
        if (lines != NULL) {
            memcpy(lines, book.lines, book.line_count * sizeof *lines);
            uf__scan_python(scan, joined, lines, book.line_count);
        }
    }
    free(book.text);
    free(book.lines);
    json_decref(root);
    if (cells == NULL) {
        return uf__error_set(error, UF_ERROR_BAD_INPUT, "%s: no notebook: it has no 'cells'", name);
    }
    return UF_OK;
}
