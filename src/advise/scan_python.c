/* SPDX-License-Identifier: MIT
 *
 * Walks over the statements of a Python source: blocks by indentation, when torch is imported and
 * CUDA initialised, environment variables, settings calls. No lock.
 *
 * Order in the file is order of execution, at module level and within one function; a function may
 * run at any time after it was defined. */
#include "advise/scan_python.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool uf__python_is(const uf_python *py, size_t index, const char *text)
{
    const uf_python_token *token = &py->tokens[index];
    return (token->kind == UF_PYTHON_NAME || token->kind == UF_PYTHON_OPERATOR) &&
           strcmp(token->text, text) == 0;
}

bool uf__python_is_call(const uf_python *py, uf_python_range range, size_t index)
{
    return py->tokens[index].kind == UF_PYTHON_NAME && index + 1 < range.end &&
           uf__python_is(py, index + 1, "(");
}

static int depth_change(const uf_python_token *token)
{
    if (token->kind != UF_PYTHON_OPERATOR || token->text[1] != '\0') {
        return 0;
    }
    char c = token->text[0];
    return c == '(' || c == '[' || c == '{' ? 1 : c == ')' || c == ']' || c == '}' ? -1 : 0;
}

size_t uf__python_close(const uf_python *py, uf_python_range range, size_t open)
{
    size_t close = py->tokens[open].close;
    return close < range.end ? close : range.end;
}

const char *uf__python_chain(const uf_python *py, uf_python_range range, size_t index, char *buffer,
                             size_t capacity)
{
    size_t begin = index;
    while (begin >= range.begin + 2 && uf__python_is(py, begin - 1, ".") &&
           py->tokens[begin - 2].kind == UF_PYTHON_NAME) {
        begin -= 2;
    }
    size_t length = 0;
    buffer[0] = '\0';
    for (size_t i = begin; i <= index && length < capacity; i++) {
        length += (size_t)snprintf(buffer + length, capacity - length, "%s", py->tokens[i].text);
    }
    return buffer;
}

const uf_python_name *uf__python_name(const uf_python *py, const char *name)
{
    for (size_t i = py->name_count; i > 0; i--) {
        if (strcmp(py->names[i - 1].name, name) == 0) {
            return &py->names[i - 1];
        }
    }
    return NULL;
}

uint32_t uf__python_line(const uf_python *py, uint32_t line)
{
    if (py->lines != NULL && line >= 1 && line <= py->line_count) {
        return py->lines[line - 1].line;
    }
    return py->scan->first_line + line - 1;
}

uf_finding_place uf__python_place(const uf_python *py, size_t index)
{
    uint32_t line = py->tokens[index].line;
    uf_finding_place place = uf__scan_place(py->scan, uf__python_line(py, line));
    if (py->lines != NULL && line >= 1 && line <= py->line_count) {
        place.cell = py->lines[line - 1].cell;
    }
    return place;
}

/* Where the code of the physical line with this token ends. */
static size_t code_end(const uf_python *py, size_t index)
{
    size_t end = py->tokens[index].end;
    for (size_t i = index + 1;
         py->tokens[i].kind < UF_PYTHON_LINE_END && py->tokens[i].line == py->tokens[index].line;
         i++) {
        end = py->tokens[i].end;
    }
    return end;
}

const char *uf__python_code(const uf_python *py, size_t index)
{
    uf_setup setup = {0};
    size_t start = py->tokens[index].start;
    uf__scan_span(py->scan, &setup, py->source, start, start, code_end(py, index));
    return setup.line == NULL ? "" : setup.line;
}

static bool is_one_of(const char *text, const char *const *names)
{
    for (; *names != NULL; names++) {
        if (strcmp(text, *names) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_conditional(const uf_python *py)
{
    for (size_t i = py->block_count; i > 0; i--) {
        if (py->blocks[i - 1].kind == UF_PYTHON_BLOCK_FUNCTION) {
            return false;
        }
        if (py->blocks[i - 1].kind == UF_PYTHON_BLOCK_BRANCH ||
            py->blocks[i - 1].kind == UF_PYTHON_BLOCK_EXCEPT) {
            return true;
        }
    }
    return false;
}

/* A constant expression from `at` on: strings beside each other, or a name that holds one. */
static void read_value(const uf_python *py, uf_python_range range, size_t at, uf_setup *setup)
{
    uf_findings *texts = &py->scan->check->findings;
    size_t parens = 0;
    while (at < range.end && uf__python_is(py, at, "(")) {
        at++;
        parens++;
    }
    size_t first = at, count = 0;
    const char *value = "";
    for (; at < range.end && py->tokens[at].kind == UF_PYTHON_STRING; at++) {
        if (py->tokens[at].is_computed || py->tokens[at].is_bytes) {
            return;
        }
        value = count == 0 ? py->tokens[at].text
                           : uf__findings_print(texts, "%s%s", value, py->tokens[at].text);
        count++;
    }
    const uf_python_name *name = NULL;
    if (count == 0 && at < range.end && py->tokens[at].kind == UF_PYTHON_NAME) {
        name = uf__python_name(py, py->tokens[at].text);
        value = name == NULL ? NULL : name->value;
        at++;
    } else if (count == 0) {
        return;
    }
    for (; parens > 0 && at < range.end && uf__python_is(py, at, ")"); parens--) {
        at++;
    }
    bool is_end = parens == 0 &&
                  (at >= range.end || uf__python_is(py, at, ",") || uf__python_is(py, at, ")") ||
                   uf__python_is(py, at, "}") || uf__python_is(py, at, "]"));
    if (!is_end) {
        return;
    }
    setup->value = value;
    if (count == 1) {
        setup->quoting = py->tokens[first].quote == '"' ? UF_QUOTING_DOUBLE : UF_QUOTING_SINGLE;
        uf__scan_span(py->scan, setup, py->source, py->tokens[first].start, py->tokens[first].end,
                      code_end(py, first));
    }
}

static void add_setup(uf_python *py, uf_python_range range, uf_setup_kind kind, const char *name,
                      size_t place_index, size_t value_index, bool is_default)
{
    uf_setup setup = {.kind = kind, .is_default = is_default};
    setup.variable = uf__variable_find(name, strlen(name), NULL);
    setup.name = name;
    setup.place = uf__python_place(py, place_index);
    setup.scope = py->scope;
    setup.is_conditional = is_conditional(py);
    setup.import_line = py->scope_import_line != 0 ? py->scope_import_line : py->import_line;
    setup.init_line = py->scope_init_line != 0 ? py->scope_init_line : py->init_line;
    setup.command = py->scan->check->setups.command_count;
    if (value_index != 0) {
        read_value(py, range, value_index, &setup);
    }
    uf__scan_add(py->scan, &setup);
}

static bool is_variable(const uf_python_token *token)
{
    return (token->kind == UF_PYTHON_STRING || token->kind == UF_PYTHON_NAME) &&
           !token->is_computed &&
           uf__variable_find(token->text, strlen(token->text), NULL) != UF_VARIABLE_NONE;
}

/* True if the token stands in a call or dictionary that goes into os.environ itself. */
static bool is_in_environ(const uf_python *py, uf_python_range range, size_t index)
{
    for (size_t i = range.begin; i < index; i++) {
        if (uf__python_is(py, i, "environ") && i + 1 < range.end &&
            (uf__python_is(py, i + 1, "|=") ||
             (uf__python_is(py, i + 1, ".") && uf__python_is(py, i + 2, "update")))) {
            return true;
        }
    }
    return false;
}

/* NAME["VARIABLE"] = ..., environ.setdefault("VARIABLE", ...), {"VARIABLE": ...}, VARIABLE=... */
static void scan_variable(uf_python *py, uf_python_range range, size_t i)
{
    const char *name = py->tokens[i].text;
    bool is_string = py->tokens[i].kind == UF_PYTHON_STRING;
    const char *before = i > range.begin ? py->tokens[i - 1].text : "";
    const char *callee = i > range.begin + 1 ? py->tokens[i - 2].text : "";
    bool is_environ = strcmp(callee, "environ") == 0;
    if (is_string && strcmp(before, "[") == 0 && i + 1 < range.end &&
        uf__python_is(py, i + 1, "]")) {
        if (uf__python_is(py, range.begin, "del") && is_environ) {
            add_setup(py, range, UF_SETUP_UNSET, name, i, 0, false);
        } else if (i + 2 < range.end && uf__python_is(py, i + 2, "=")) {
            add_setup(py, range, is_environ ? UF_SETUP_SET : UF_SETUP_COMMAND, name, i, i + 3,
                      false);
        } else if (i + 2 < range.end && uf__python_is(py, i + 2, "+=")) {
            add_setup(py, range, UF_SETUP_SET, name, i, 0, true);
        }
    } else if (is_string && strcmp(before, "(") == 0) {
        bool has_value = i + 1 < range.end && uf__python_is(py, i + 1, ",");
        if (strcmp(callee, "pop") == 0 || strcmp(callee, "unsetenv") == 0) {
            add_setup(py, range, UF_SETUP_UNSET, name, i, 0, false);
        } else if (has_value && (strcmp(callee, "putenv") == 0)) {
            add_setup(py, range, UF_SETUP_SET, name, i, i + 2, false);
        } else if (has_value && strcmp(callee, "setdefault") == 0) {
            bool is_own = i > range.begin + 3 && uf__python_is(py, i - 4, "environ");
            add_setup(py, range, is_own ? UF_SETUP_SET : UF_SETUP_COMMAND, name, i, i + 2, true);
        } else if (has_value && strcmp(callee, "setenv") == 0) {
            add_setup(py, range, UF_SETUP_COMMAND, name, i, i + 2, false);
        }
    } else if (i + 1 < range.end && strchr("({,", before[0]) != NULL && before[0] != '\0' &&
               uf__python_is(py, i + 1, is_string ? ":" : "=")) {
        add_setup(py, range, is_in_environ(py, range, i) ? UF_SETUP_SET : UF_SETUP_COMMAND, name, i,
                  i + 2, false);
    }
}

static bool is_cuda_text(const char *text)
{
    return strncmp(text, "cuda", 4) == 0 && (text[4] == '\0' || text[4] == ':');
}

static bool is_device(const uf_python *py, size_t index)
{
    const uf_python_token *token = &py->tokens[index];
    if (token->kind == UF_PYTHON_STRING) {
        return is_cuda_text(token->text);
    }
    const uf_python_name *name =
        token->kind == UF_PYTHON_NAME ? uf__python_name(py, token->text) : NULL;
    return name != NULL && name->is_device;
}

/* Does the call at token `index` (a name, then a parenthesis) initialise CUDA? */
static bool initialises_cuda(const uf_python *py, uf_python_range range, size_t index)
{
    static const char *const calls[] = {"init",
                                        "current_device",
                                        "get_device_name",
                                        "get_device_properties",
                                        "get_device_capability",
                                        "mem_get_info",
                                        "synchronize",
                                        "set_device",
                                        "Stream",
                                        "Event",
                                        "current_stream",
                                        "default_stream",
                                        "get_rng_state",
                                        "set_per_process_memory_fraction",
                                        "reset_peak_memory_stats",
                                        "CUDAGraph",
                                        "get_arch_list_",
                                        NULL};
    static const char *const offloads[] = {"enable_model_cpu_offload",
                                           "enable_sequential_cpu_offload", NULL};
    char chain[200];
    const char *name = py->tokens[index].text;
    uf__python_chain(py, range, index, chain, sizeof chain);
    if (is_one_of(name, offloads) || strcmp(name, "set_per_process_memory_fraction") == 0) {
        return true;
    }
    bool is_torch = strncmp(chain, "torch.", 6) == 0;
    if (strncmp(chain, "torch.cuda.", 11) == 0 && is_one_of(name, calls)) {
        return true;
    }
    bool is_method = index > range.begin && uf__python_is(py, index - 1, ".");
    if (is_method && strcmp(name, "cuda") == 0 && !is_torch) {
        return true;
    }
    if (strcmp(chain, "torch.device") == 0) {
        return false;
    }
    size_t close = uf__python_close(py, range, index + 1);
    for (size_t i = index + 2; i < close; i++) {
        if (depth_change(&py->tokens[i]) > 0) { /* what is inside another call is that call's */
            i = uf__python_close(py, range, i);
            continue;
        }
        bool is_keyword =
            i >= 2 && uf__python_is(py, i - 1, "=") &&
            (uf__python_is(py, i - 2, "device") || uf__python_is(py, i - 2, "map_location") ||
             uf__python_is(py, i - 2, "device_map"));
        bool is_target = strcmp(name, "to") == 0 && is_method && i == index + 2;
        bool is_factory = is_torch || strcmp(name, "from_pretrained") == 0;
        if (((is_keyword && is_factory) || (is_keyword && strcmp(name, "to") == 0) || is_target) &&
            (is_device(py, i) || (uf__python_is(py, i, "torch") && i + 4 < close &&
                                  uf__python_is(py, i + 2, "device") && is_device(py, i + 4)))) {
            return true;
        }
    }
    return false;
}

static void note_init(uf_python *py, size_t index)
{
    uint32_t line = uf__python_place(py, index).line;
    uint32_t *known = py->scope == 0 ? &py->init_line : &py->scope_init_line;
    *known = *known == 0 ? line : *known;
}

static void scan_import(uf_python *py, uf_python_range range)
{
    static const char *const modules[] = {
        "torch",      "torchvision", "torchaudio", "diffusers",         "transformers",
        "accelerate", "lightning",   "xformers",   "pytorch_lightning", "bitsandbytes",
        "peft",       "timm",        "vllm",       "deepspeed",         "ultralytics",
        NULL};
    bool is_from = uf__python_is(py, range.begin, "from");
    if (!is_from && !uf__python_is(py, range.begin, "import")) {
        return;
    }
    for (size_t i = range.begin + 1; i < range.end; i++) {
        bool is_first = i == range.begin + 1 || (!is_from && uf__python_is(py, i - 1, ","));
        if (is_first && py->tokens[i].kind == UF_PYTHON_NAME &&
            is_one_of(py->tokens[i].text, modules)) {
            uint32_t line = uf__python_place(py, i).line;
            uint32_t *known = py->scope == 0 ? &py->import_line : &py->scope_import_line;
            *known = *known == 0 ? line : *known;
            py->has_torch = true;
            return;
        }
    }
}

static void scan_settings_call(uf_python *py, uf_python_range range, size_t i)
{
    static const char *const calls[] = {"_accelerator_setAllocatorSettings",
                                        "_set_allocator_settings", "set_allocator_settings",
                                        "_cuda_cudaCachingAllocator_set_allocator_settings", NULL};
    if (is_one_of(py->tokens[i].text, calls)) {
        add_setup(py, range, UF_SETUP_CALL, py->tokens[i].text, i, i + 2, false);
    }
}

/* What a call reads that may be meaningless under some settings. */
static void scan_observation(uf_python *py, size_t i, const char *what)
{
    uf_setup setup = {.kind = UF_SETUP_OBSERVE, .variable = UF_VARIABLE_NONE, .value = what};
    setup.place = uf__python_place(py, i);
    setup.name = py->tokens[i].text;
    uf__scan_add(py->scan, &setup);
}

static void scan_tokens(uf_python *py, uf_python_range range, bool is_definition)
{
    static const char *const snapshots[] = {"_record_memory_history", "_dump_snapshot",
                                            "memory_snapshot", "_snapshot", NULL};
    py->scan->check->setups.command_count++;
    for (size_t i = range.begin; i < range.end; i++) {
        const uf_python_token *token = &py->tokens[i];
        if (is_variable(token)) {
            scan_variable(py, range, i);
        } else if (uf__python_is_call(py, range, i) && !is_definition) {
            scan_settings_call(py, range, i);
            if (is_one_of(token->text, snapshots)) {
                scan_observation(py, i, "snapshot");
            }
        } else if (token->kind == UF_PYTHON_STRING && i > range.begin &&
                   (uf__python_is(py, i - 1, "[") || uf__python_is(py, i - 1, "(")) &&
                   (strncmp(token->text, "segment.", 8) == 0 ||
                    strncmp(token->text, "inactive_split", 14) == 0)) {
            scan_observation(py, i, "statistic");
        }
    }
    for (size_t i = range.begin; i < range.end && !is_definition; i++) {
        if (uf__python_is_call(py, range, i) && initialises_cuda(py, range, i)) {
            note_init(py, i);
            break;
        }
    }
}

static void scan_statement(uf_python *py, uf_python_range range, bool is_definition)
{
    if (range.begin >= range.end) {
        return;
    }
    scan_import(py, range);
    uf__python_misuse(py, range);
    scan_tokens(py, range, is_definition);
    uf__python_remember(py, range);
}

/* Statements between ';' of one line. */
static void scan_simple(uf_python *py, uf_python_range range)
{
    int depth = 0;
    size_t begin = range.begin;
    for (size_t i = range.begin; i < range.end; i++) {
        depth += depth_change(&py->tokens[i]);
        if (depth == 0 && uf__python_is(py, i, ";")) {
            scan_statement(py, (uf_python_range){begin, i}, false);
            begin = i + 1;
        }
    }
    scan_statement(py, (uf_python_range){begin, range.end}, false);
}

static void push_block(uf_python *py, uint32_t indent, uf_python_block kind)
{
    if (py->block_count == UF_PYTHON_BLOCK_MAX) {
        return;
    }
    if (kind == UF_PYTHON_BLOCK_FUNCTION) {
        py->scope = ++py->scope_count;
        py->scope_init_line = py->scope_import_line = 0;
    }
    py->blocks[py->block_count].indent = indent;
    py->blocks[py->block_count].kind = kind;
    py->blocks[py->block_count].scope = py->scope;
    py->block_count++;
}

static void pop_blocks(uf_python *py, uint32_t indent)
{
    uint32_t before = py->scope;
    while (py->block_count > 0 && py->blocks[py->block_count - 1].indent >= indent) {
        py->block_count--;
    }
    py->scope = py->block_count == 0 ? 0 : py->blocks[py->block_count - 1].scope;
    if (py->scope != before) {
        py->scope_init_line = py->scope_import_line = 0;
    }
}

/* The block a line opens; false if it opens none. */
static bool block_of(const uf_python *py, size_t begin, uf_python_block *kind)
{
    static const struct {
        const char *word;
        uf_python_block kind;
    } words[] = {{"def", UF_PYTHON_BLOCK_FUNCTION},  {"class", UF_PYTHON_BLOCK_PLAIN},
                 {"for", UF_PYTHON_BLOCK_LOOP},      {"while", UF_PYTHON_BLOCK_LOOP},
                 {"if", UF_PYTHON_BLOCK_BRANCH},     {"elif", UF_PYTHON_BLOCK_BRANCH},
                 {"else", UF_PYTHON_BLOCK_BRANCH},   {"try", UF_PYTHON_BLOCK_PLAIN},
                 {"except", UF_PYTHON_BLOCK_EXCEPT}, {"finally", UF_PYTHON_BLOCK_PLAIN},
                 {"with", UF_PYTHON_BLOCK_PLAIN},    {"match", UF_PYTHON_BLOCK_PLAIN},
                 {"case", UF_PYTHON_BLOCK_BRANCH}};
    begin += uf__python_is(py, begin, "async") ? 1 : 0;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (uf__python_is(py, begin, words[i].word)) {
            *kind = words[i].kind;
            if (uf__python_is(py, begin + 1, "__name__")) {
                *kind = UF_PYTHON_BLOCK_PLAIN;
            }
            return true;
        }
    }
    return false;
}

/* The ':' that ends a header, or range.end. */
static size_t header_colon(const uf_python *py, uf_python_range range)
{
    int depth = 0;
    unsigned lambdas = 0;
    for (size_t i = range.begin; i < range.end; i++) {
        depth += depth_change(&py->tokens[i]);
        lambdas += depth == 0 && uf__python_is(py, i, "lambda");
        if (depth == 0 && uf__python_is(py, i, ":")) {
            if (lambdas == 0) {
                return i;
            }
            lambdas--;
        }
    }
    return range.end;
}

static void scan_line(uf_python *py, uf_python_range range)
{
    uint32_t indent = py->tokens[range.begin].indent;
    uf_python_block kind;
    pop_blocks(py, indent);
    size_t colon = range.end;
    if (block_of(py, range.begin, &kind)) {
        colon = header_colon(py, range);
    }
    if (colon == range.end) {
        scan_simple(py, range);
        return;
    }
    bool is_definition = kind == UF_PYTHON_BLOCK_FUNCTION;
    scan_statement(py, (uf_python_range){range.begin, colon}, is_definition);
    push_block(py, indent, kind);
    if (colon + 1 < range.end) {
        scan_simple(py, (uf_python_range){colon + 1, range.end});
    }
}

static void scan_lines(uf_python *py, const uf_python_tokens *tokens)
{
    size_t begin = 0;
    for (size_t i = 0; i < tokens->count; i++) {
        if (tokens->items[i].kind < UF_PYTHON_LINE_END) {
            continue;
        }
        if (i > begin) {
            scan_line(py, (uf_python_range){begin, i});
        }
        begin = i + 1;
    }
}

void uf__scan_python(const uf_scan *scan, const char *text, const uf_scan_line *lines,
                     size_t line_count)
{
    uf_python_tokens tokens;
    uf_findings *findings = &scan->check->findings;
    uf__python_lex(text, &tokens, findings);
    uf_python *py = uf__findings_allocate(findings, sizeof *py);
    if (py != NULL && !findings->has_failed && tokens.count > 0) {
        memset(py, 0, sizeof *py);
        py->scan = scan;
        py->source = text;
        py->tokens = tokens.items;
        py->lines = lines;
        py->line_count = line_count;
        scan_lines(py, &tokens);
    }
    uf__python_lex_fini(&tokens);
}
