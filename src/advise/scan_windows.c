/* SPDX-License-Identifier: MIT
 *
 * Windows: batch files (set, setx) and PowerShell ($env:NAME = ...). Line by line. No lock.
 *
 *   set NAME="a:1"      the quotes become part of the value
 *   set NAME = a:1      the variable is called "NAME "
 *   $env:NAME = a:1     without quotes PowerShell takes a:1 for a command */
#include "advise/scan.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define NAME_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"

static bool starts_word(const char *text, const char *word)
{
    size_t length = strlen(word);
    return strncasecmp(text, word, length) == 0 &&
           (text[length] == ' ' || text[length] == '\t' || text[length] == '\0');
}

static bool is_program(const char *text)
{
    static const char *const names[] = {"python",   "py",         "call",    "start",
                                        "torchrun", "accelerate", "jupyter", "docker",
                                        "wsl",      "pythonw",    "cmd"};
    text += *text == '&' ? 1 : 0;
    text += strspn(text, " \t\"");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (starts_word(text, names[i]) ||
            (strncasecmp(text, names[i], strlen(names[i])) == 0 && text[strlen(names[i])] == '.')) {
            return true;
        }
    }
    return strcasestr(text, "python.exe") != NULL || strcasestr(text, "%PYTHON%") != NULL;
}

static void add_run(const uf_scan *scan, uint32_t line)
{
    uf_setup run = {.kind = UF_SETUP_RUN, .variable = UF_VARIABLE_NONE};
    run.place = uf__scan_place(scan, line);
    uf__scan_add(scan, &run);
}

static void say_wrong_shell(const uf_scan *scan, uint32_t line, const char *name,
                            const char *message, const char *fix)
{
    uf__findings_add(&scan->check->findings, UF_FINDING_WRONG_SHELL, uf__scan_place(scan, line),
                     name, message, fix);
}

/* The variable behind `export `, `$env:` or at the start; NULL: another name. */
static const char *name_at(const uf_scan *scan, const char *text)
{
    size_t length = strspn(text, NAME_CHARACTERS);
    if (uf__variable_find(text, length, NULL) == UF_VARIABLE_NONE) {
        return NULL;
    }
    return uf__findings_copy(&scan->check->findings, text, length);
}

/* Where an unquoted value ends: at '&', '|', '<', '>' or the end. '^' takes their meaning away. */
static size_t cmd_value_end(const char *text)
{
    size_t at = 0;
    bool is_quoted = false;
    while (text[at] != '\0' && (is_quoted || strchr("&|<>", text[at]) == NULL)) {
        is_quoted = text[at] == '"' ? !is_quoted : is_quoted;
        at += text[at] == '^' && text[at + 1] != '\0' ? 2 : 1;
    }
    return at;
}

/* set NAME=VALUE; `at` is the offset of NAME in the line, or of a quote in front of it. */
static void scan_set(const uf_scan *scan, const char *line, size_t at, uint32_t number,
                     bool is_conditional)
{
    uf_findings *texts = &scan->check->findings;
    bool is_quoted = line[at] == '"';
    size_t start = at + (is_quoted ? 1 : 0);
    const char *name = name_at(scan, line + start);
    if (name == NULL) {
        return;
    }
    size_t equals = start + strlen(name);
    if (line[equals] == ' ' && line[equals + strspn(line + equals, " ")] == '=') {
        size_t value = equals + strspn(line + equals, " ") + 1;
        value += strspn(line + value, " \"");
        size_t length = strcspn(line + value, "\"&|<> ");
        uf__findings_add(
            texts, UF_FINDING_SHELL_BLANKS, uf__scan_place(scan, number), name,
            "a blank in front of '=' belongs to the name: this sets a variable with a "
            "blank at its end, which nothing reads",
            uf__findings_print(texts, "set \"%s=%.*s\"", name, (int)length, line + value));
        return;
    }
    if (line[equals] != '=') {
        return;
    }
    size_t value = equals + 1, end;
    if (is_quoted) {
        const char *close = strrchr(line + value, '"');
        end = close == NULL ? strlen(line) : (size_t)(close - line);
    } else {
        end = value + cmd_value_end(line + value);
    }
    uf_setup setup = {.kind = UF_SETUP_SET, .name = name, .is_conditional = is_conditional};
    setup.variable = uf__variable_find(name, strlen(name), NULL);
    setup.place = uf__scan_place(scan, number);
    const char *text = uf__findings_copy(texts, line + value, end - value);
    setup.value =
        memchr(text, '%', strlen(text)) != NULL || strchr(text, '!') != NULL ? NULL : text;
    setup.quoting = is_quoted ? UF_QUOTING_BARE : UF_QUOTING_CMD;
    size_t span_end = end;
    if (!is_quoted && line[end] == '>' && memchr(text, '[', strlen(text)) != NULL) {
        span_end = end + strcspn(line + end, " &|");
        setup.intended = uf__findings_copy(texts, line + value, span_end - value);
    }
    uf__scan_span(scan, &setup, line, is_quoted ? value : start, span_end, strlen(line));
    if (setup.intended != NULL) {
        uf__findings_add(texts, UF_FINDING_SHELL_CUTS, setup.place, name,
                         uf__findings_print(texts,
                                            "the command prompt cuts the value at '>', which "
                                            "redirects into a file; PyTorch sees '%s'. Write "
                                            "set \"NAME=VALUE\"",
                                            text),
                         uf__check_corrected(scan->check, &setup));
    }
    uf__scan_add(scan, &setup);
}

static void scan_setx(const uf_scan *scan, const char *line, size_t at, uint32_t number)
{
    at += strspn(line + at, " \t");
    const char *name = name_at(scan, line + at);
    if (name == NULL) {
        return;
    }
    size_t value = at + strlen(name);
    value += strspn(line + value, " \t=");
    bool is_quoted = line[value] == '"';
    size_t start = value + (is_quoted ? 1 : 0);
    size_t length = strcspn(line + start, is_quoted ? "\"" : " \t&");
    const char *text = uf__findings_copy(&scan->check->findings, line + start, length);
    uf_setup setup = {.kind = UF_SETUP_LOST, .name = name, .value = text};
    setup.variable = uf__variable_find(name, strlen(name), NULL);
    setup.place = uf__scan_place(scan, number);
    setup.intended = "setx stores the variable for windows that are opened later; programs started "
                     "from here do not see it. Use `set` in addition";
    uf__scan_add(scan, &setup);
}

static void scan_cmd_command(const uf_scan *scan, const char *line, size_t at, uint32_t number,
                             bool is_conditional)
{
    const char *text = line + at;
    if (starts_word(text, "set")) {
        size_t name = at + 3 + strspn(text + 3, " \t");
        scan_set(scan, line, name, number, is_conditional);
    } else if (starts_word(text, "setx")) {
        scan_setx(scan, line, at + 4, number);
    } else if (starts_word(text, "export") || strncmp(text, "$env:", 5) == 0) {
        size_t skip = text[0] == '$' ? 5 : 7 + strspn(text + 7, " ");
        const char *name = name_at(scan, text + skip);
        if (name != NULL) {
            const char *value = text + skip + strlen(name);
            value += strspn(value, " =\"'");
            say_wrong_shell(scan, number, name,
                            text[0] == '$' ? "$env:NAME is for PowerShell; in a batch file this "
                                             "sets nothing"
                                           : "export is for Unix shells; in a batch file there is "
                                             "no such command",
                            uf__findings_print(&scan->check->findings, "set \"%s=%.*s\"", name,
                                               (int)strcspn(value, "\"' "), value));
        }
    }
    if (uf__scan_is_reset(text) && (starts_word(text, "nvidia-smi") || strstr(text, "smi.exe"))) {
        uf__scan_add_reset(scan, number);
    }
    if (is_program(text)) {
        add_run(scan, number);
    }
}

static bool is_cmd_comment(const char *text)
{
    return starts_word(text, "rem") || strncmp(text, "::", 2) == 0 || text[0] == ':';
}

void uf__scan_cmd(const uf_scan *scan, const char *text)
{
    uint32_t number = scan->first_line;
    unsigned depth = 0;
    const char *line;
    for (; (line = uf__scan_next_line(scan, &text)) != NULL; number++) {
        size_t at = strspn(line, " \t@(");
        if (is_cmd_comment(line + at) || starts_word(line + at, "echo")) {
            continue;
        }
        bool is_conditional = depth > 0 || starts_word(line + at, "if");
        depth -= line[strspn(line, " \t")] == ')' && depth > 0;
        size_t length = strlen(line);
        while (line[at] != '\0') {
            if (starts_word(line + at, "if")) {
                /* the command behind the condition */
                const char *set = strcasestr(line + at, " set ");
                at = set == NULL ? length : (size_t)(set - line) + 1;
            }
            scan_cmd_command(scan, line, at, number, is_conditional);
            at += cmd_value_end(line + at);
            at += line[at] == '\0' ? 0 : 1;
            at += strspn(line + at, " \t&|@(");
        }
        depth += length > 0 && line[length - 1] == '(';
    }
}

/* ---- PowerShell ---- */

/* A value at `at`: "...", '...', or bare words; true if it has quotes. */
static bool read_powershell(const uf_scan *scan, const char *line, size_t at, uf_setup *setup)
{
    char quote = line[at];
    bool is_quoted = quote == '"' || quote == '\'';
    size_t start = at + (is_quoted ? 1 : 0);
    char ends[2] = {quote, '\0'};
    size_t length = strcspn(line + start, is_quoted ? ends : ";#| \t)");
    const char *text = uf__findings_copy(&scan->check->findings, line + start, length);
    bool is_computed = quote != '\'' && strchr(text, '$') != NULL;
    setup->value = is_computed ? NULL : text;
    setup->quoting = quote == '\'' ? UF_QUOTING_SINGLE : UF_QUOTING_DOUBLE;
    size_t end = start + length + (is_quoted && line[start + length] == quote ? 1 : 0);
    size_t code = end;
    while (line[code] != '\0' && line[code] != '#') {
        code++;
    }
    uf__scan_span(scan, setup, line, at, end, code);
    return is_quoted;
}

/* $env:NAME = VALUE; `at` is the offset of NAME. */
static void scan_env(const uf_scan *scan, const char *line, size_t at, uint32_t number,
                     uf_setup_kind kind, bool is_conditional)
{
    uf_findings *texts = &scan->check->findings;
    const char *name = name_at(scan, line + at);
    size_t equals = name == NULL ? at : at + strlen(name);
    equals += line[equals] == '}' ? 1 : 0;
    equals += strspn(line + equals, " \t");
    if (name == NULL || line[equals] != '=') {
        return;
    }
    size_t value = equals + 1 + strspn(line + equals + 1, " \t");
    uf_setup setup = {.kind = kind, .name = name, .is_conditional = is_conditional};
    setup.is_never_exported = kind == UF_SETUP_LOCAL;
    setup.variable = uf__variable_find(name, strlen(name), NULL);
    setup.place = uf__scan_place(scan, number);
    if (line[value] == '$') {
        if (strncmp(line + value, "$null", 5) == 0) {
            setup.kind = UF_SETUP_UNSET;
        }
        uf__scan_add(scan, &setup);
        return;
    }
    if (!read_powershell(scan, line, value, &setup) && kind == UF_SETUP_SET) {
        bool is_number = isdigit((unsigned char)line[value]);
        if (!is_number) {
            uf__findings_add(texts, UF_FINDING_POWERSHELL_QUOTES, setup.place, name,
                             "without quotes PowerShell takes the value for a command, and sets "
                             "nothing",
                             uf__check_corrected(scan->check, &setup));
            return;
        }
    }
    uf__scan_add(scan, &setup);
}

/* [Environment]::SetEnvironmentVariable("NAME", "VALUE"[, "User"]) */
static void scan_set_environment(const uf_scan *scan, const char *line, size_t at, uint32_t number)
{
    at += strcspn(line + at, "\"'");
    const char *name = line[at] == '\0' ? NULL : name_at(scan, line + at + 1);
    if (name == NULL) {
        return;
    }
    size_t value = at + 2 + strlen(name);
    value += strcspn(line + value, "\"'$");
    if (line[value] == '\0') {
        return;
    }
    uf_setup setup = {.kind = UF_SETUP_SET, .name = name};
    setup.variable = uf__variable_find(name, strlen(name), NULL);
    setup.place = uf__scan_place(scan, number);
    (void)read_powershell(scan, line, value, &setup);
    if (strcasestr(line + value, "user") != NULL || strcasestr(line + value, "machine") != NULL) {
        setup.kind = UF_SETUP_LOST;
        setup.intended = "stored for windows that are opened later; programs started from here do "
                         "not see it. Use $env:NAME = ... in addition";
    }
    uf__scan_add(scan, &setup);
}

static void scan_powershell_line(const uf_scan *scan, const char *line, size_t at, uint32_t number,
                                 bool is_conditional)
{
    const char *text = line + at;
    const char *set = strcasestr(text, "SetEnvironmentVariable(");
    size_t name = at;
    if (strncasecmp(text, "$env:", 5) == 0) {
        scan_env(scan, line, at + 5, number, UF_SETUP_SET, is_conditional);
    } else if (strncasecmp(text, "${env:", 6) == 0) {
        scan_env(scan, line, at + 6, number, UF_SETUP_SET, is_conditional);
    } else if (text[0] == '$' && name_at(scan, text + 1) != NULL) {
        scan_env(scan, line, at + 1, number, UF_SETUP_LOCAL, is_conditional);
    } else if (set != NULL && text[0] == '[') {
        scan_set_environment(scan, line, (size_t)(set - line), number);
    } else if (starts_word(text, "setx")) {
        scan_setx(scan, line, at + 4, number);
    } else if (starts_word(text, "set") || starts_word(text, "export")) {
        name = at + strcspn(text, " \t");
        name += strspn(line + name, " \t\"");
        const char *found = name_at(scan, line + name);
        if (found != NULL && line[name + strlen(found)] == '=') {
            const char *value = line + name + strlen(found) + 1;
            value += strspn(value, "\"'");
            say_wrong_shell(scan, number, found,
                            tolower((unsigned char)text[0]) == 's'
                                ? "`set NAME=VALUE` is for the command prompt; PowerShell makes a "
                                  "variable of that text, and no environment variable"
                                : "export is for Unix shells; PowerShell has no such command",
                            uf__findings_print(&scan->check->findings, "$env:%s = \"%.*s\"", found,
                                               (int)strcspn(value, "\"' "), value));
        }
    }
    if (uf__scan_is_reset(text) && (starts_word(text, "nvidia-smi") || text[0] == '&')) {
        uf__scan_add_reset(scan, number);
    }
    if (is_program(text)) {
        add_run(scan, number);
    }
}

/* The next ';' outside of quotes, or the end. */
static size_t statement_end(const char *line, size_t at)
{
    char quote = '\0';
    for (; line[at] != '\0' && (quote != '\0' || (line[at] != ';' && line[at] != '#')); at++) {
        if (quote != '\0') {
            quote = line[at] == quote ? '\0' : quote;
        } else if (line[at] == '"' || line[at] == '\'') {
            quote = line[at];
        }
    }
    return at;
}

void uf__scan_powershell(const uf_scan *scan, const char *text)
{
    uint32_t number = scan->first_line;
    bool is_comment = false;
    unsigned depth = 0;
    const char *line;
    for (; (line = uf__scan_next_line(scan, &text)) != NULL; number++) {
        size_t at = strspn(line, " \t");
        is_comment = is_comment || strncmp(line + at, "<#", 2) == 0;
        if (is_comment) {
            is_comment = strstr(line, "#>") == NULL;
            continue;
        }
        depth -= line[at] == '}' && depth > 0;
        while (line[at] != '\0' && line[at] != '#') {
            scan_powershell_line(scan, line, at, number, depth > 0);
            at = statement_end(line, at);
            if (line[at] == ';') {
                at++;
            }
            at += strspn(line + at, " \t");
        }
        size_t length = strlen(line);
        while (length > 0 && isspace((unsigned char)line[length - 1])) {
            length--;
        }
        depth += length > 0 && line[length - 1] == '{';
    }
}
