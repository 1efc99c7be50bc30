/* SPDX-License-Identifier: MIT
 *
 * POSIX shells, and what fish and csh write otherwise: words with their quotes, operators,
 * comments, here-documents. Finds what is exported, what one command gets, and where the shell
 * makes something else of a settings string than was meant. No lock.
 *
 *   export NAME=a:1;b:2      the word ends at ';', and b:2 becomes a command
 *   NAME=a:[1:2,>:4] python  the word ends at '>', and a file ':4]' is written */
#include "advise/scan.h"

#include <ctype.h>
#include <string.h>

#define WORD_MAX 256

typedef struct word {
    size_t start, end; /* in the text */
    uint32_t line;
    const char *cooked; /* without quotes */
    bool has_unknown;   /* holds an expansion */
} word;

typedef struct shell {
    const uf_scan *scan;
    const char *text;
    char *scratch; /* as long as the text */
    size_t at;
    uint32_t line;
    word words[WORD_MAX];
    size_t count;
    char before[3]; /* the operator in front of this command */
    char ended[3];  /* the operator behind it */
    size_t ended_at;
    size_t cut_at;  /* where a redirection follows a word directly; 0: nowhere */
    unsigned depth; /* of if, case, functions, subshells */
    bool is_exporting_all;
    char heredoc[64];
    bool has_heredoc;
} shell;

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static bool is_operator(char c)
{
    return c != '\0' && strchr(";&|()<>\n", c) != NULL;
}

/* Moves behind ${...}, $(...), `...` or $name; the text at `at` is '$' or '`'. */
static size_t skip_expansion(const char *text, size_t at)
{
    char open = text[at] == '`' ? '`' : text[at + 1];
    char close = open == '{' ? '}' : open == '(' ? ')' : open == '`' ? '`' : '\0';
    at++;
    if (close == '\0') {
        while (isalnum((unsigned char)text[at]) || text[at] == '_') {
            at++;
        }
        return at;
    }
    unsigned depth = 0;
    for (at += open != '`'; text[at] != '\0'; at++) {
        depth += text[at] == open && open != close;
        if (text[at] == close) {
            if (depth == 0) {
                return at + 1;
            }
            depth--;
        }
    }
    return at;
}

/* Reads one word from sh->at; the cooked text has room for all of it. */
static void read_word(shell *sh, word *found)
{
    const char *text = sh->text;
    size_t at = sh->at;
    char quote = '\0';
    *found = (word){.start = at, .line = sh->line};
    char *out = sh->scratch;
    size_t length = 0;
    while (text[at] != '\0') {
        char c = text[at];
        if (quote == '\0' && (is_blank(c) || is_operator(c))) {
            break;
        }
        if (quote == '\0' && (c == '"' || c == '\'')) {
            quote = c;
            at++;
        } else if (c == quote) {
            quote = '\0';
            at++;
        } else if (c == '\\' && quote != '\'' && text[at + 1] != '\0') {
            sh->line += text[at + 1] == '\n';
            bool keeps = quote == '"' && strchr("\"\\$`\n", text[at + 1]) == NULL;
            if (keeps) {
                out[length++] = c;
            }
            if (text[at + 1] != '\n') {
                out[length++] = text[at + 1];
            }
            at += 2;
        } else if (quote != '\'' && (c == '`' || (c == '$' &&
                                                  (isalpha((unsigned char)text[at + 1]) ||
                                                   strchr("_{(", text[at + 1]) != NULL) &&
                                                  text[at + 1] != '\0'))) {
            size_t end = skip_expansion(text, at);
            found->has_unknown = true;
            for (; at < end; at++) {
                sh->line += text[at] == '\n';
                out[length++] = text[at];
            }
        } else {
            sh->line += c == '\n';
            out[length++] = c;
            at++;
        }
    }
    found->end = at;
    found->cooked = uf__findings_copy(&sh->scan->check->findings, out, length);
    sh->at = at;
}

/* Where the code of the line around `at` ends: at its comment or its end. */
static size_t code_end(const char *text, size_t at)
{
    char quote = '\0';
    for (; text[at] != '\0' && text[at] != '\n'; at++) {
        if (quote != '\0') {
            quote = text[at] == quote ? '\0' : quote;
        } else if (text[at] == '"' || text[at] == '\'') {
            quote = text[at];
        } else if (text[at] == '#' && at > 0 && is_blank(text[at - 1])) {
            break;
        }
    }
    return at;
}

/* NAME=VALUE or NAME alone: which variable; *length of the name. */
static uf_variable variable_of(const char *cooked, size_t *length)
{
    *length = strspn(cooked, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
    return uf__variable_find(cooked, *length, NULL);
}

/* ${NAME:-default} alone: the default is what is meant. */
static const char *default_of(const shell *sh, const char *value)
{
    const char *dash = strstr(value, ":-");
    size_t length = strlen(value);
    if (strncmp(value, "${", 2) != 0 || dash == NULL || value[length - 1] != '}' ||
        strchr(value, '}') != value + length - 1 || strchr(dash, '$') != NULL) {
        return NULL;
    }
    return uf__findings_copy(&sh->scan->check->findings, dash + 2,
                             (size_t)(value + length - 1 - dash - 2));
}

/* A set-up from a word NAME=VALUE. */
static uf_setup setup_of(const shell *sh, const word *found, uf_setup_kind kind)
{
    size_t length;
    uf_findings *texts = &sh->scan->check->findings;
    uf_setup setup = {.kind = kind,
                      .variable = variable_of(found->cooked, &length),
                      .place = uf__scan_place(sh->scan, found->line),
                      .is_conditional = sh->depth > 0 || strcmp(sh->before, "||") == 0};
    setup.name = uf__findings_copy(texts, found->cooked, length);
    const char *value = found->cooked + length + (found->cooked[length] == '=');
    setup.value = !found->has_unknown ? value : default_of(sh, value);
    setup.is_default = found->has_unknown && setup.value != NULL;
    const char *equals = memchr(sh->text + found->start, '=', found->end - found->start);
    size_t start = equals == NULL ? found->end : (size_t)(equals - sh->text) + 1;
    char first = sh->text[start];
    bool is_whole = sh->text[found->start] == '"' || sh->text[found->start] == '\'';
    setup.quoting = is_whole        ? UF_QUOTING_BARE
                    : first == '"'  ? UF_QUOTING_DOUBLE
                    : first == '\'' ? UF_QUOTING_SINGLE
                                    : UF_QUOTING_SHELL;
    size_t end = is_whole && found->end > start ? found->end - 1 : found->end;
    uf__scan_span(sh->scan, &setup, sh->text, start, end, code_end(sh->text, found->end));
    if (found->has_unknown) {
        setup.line = NULL;
    }
    return setup;
}

/* The text was cut at `cut`; what was meant goes on to the end of that word. */
static void say_cut(shell *sh, const word *found, uf_setup *setup, size_t end, uf_finding_id id,
                    const char *message)
{
    uf_findings *texts = &sh->scan->check->findings;
    size_t start = found->start + strlen(setup->name) + 1;
    setup->intended = start <= end ? uf__findings_copy(texts, sh->text + start, end - start) : "";
    uf_setup fixed = *setup;
    fixed.quoting = UF_QUOTING_DOUBLE;
    uf__scan_span(sh->scan, &fixed, sh->text, start, end, code_end(sh->text, end));
    uf__findings_add(texts, id, setup->place, setup->name, message,
                     uf__check_corrected(sh->scan->check, &fixed));
}

static size_t option_word_end(const char *text, size_t at)
{
    while (text[at] != '\0' && !is_blank(text[at]) && text[at] != '\n' && text[at] != '&') {
        at++;
    }
    return at;
}

/* Looks at what follows the assignment in words[index], and says what the shell cuts off. */
static void check_cut(shell *sh, size_t index, uf_setup *setup)
{
    const word *found = &sh->words[index];
    uf_findings *texts = &sh->scan->check->findings;
    if (found->has_unknown) {
        return;
    }
    if (sh->cut_at != 0 && sh->cut_at == found->end) {
        size_t end = option_word_end(sh->text, found->end);
        say_cut(sh, found, setup, end, UF_FINDING_SHELL_CUTS,
                uf__findings_print(texts,
                                   "the shell cuts the value at '%c', which redirects into or from "
                                   "a file; PyTorch sees '%s'. Quote it",
                                   sh->text[found->end], setup->value));
        return;
    }
    if (index + 1 < sh->count) {
        size_t last = index;
        while (last + 1 < sh->count && uf__scan_is_option(sh->words[last + 1].cooked)) {
            last++;
        }
        if (last > index) {
            say_cut(sh, found, setup, sh->words[last].end, UF_FINDING_SHELL_BLANKS,
                    uf__findings_print(texts,
                                       "the shell cuts the value at the blank: PyTorch sees '%s', "
                                       "and '%s' is taken for %s. Quote it, or leave the blank out",
                                       setup->value, sh->words[index + 1].cooked,
                                       setup->kind == UF_SETUP_SET ? "another name to export"
                                                                   : "the command"));
        }
        return;
    }
    if (sh->ended[0] == '\0' || sh->ended[0] == '\n' || sh->ended_at != found->end) {
        return;
    }
    size_t next = sh->ended_at + strlen(sh->ended);
    next += strspn(sh->text + next, " \t");
    if (uf__scan_is_option(sh->text + next)) {
        size_t end = option_word_end(sh->text, next);
        say_cut(
            sh, found, setup, end, UF_FINDING_SHELL_CUTS,
            uf__findings_print(texts,
                               "the shell cuts the value at '%s': PyTorch sees '%s', and '%.*s' "
                               "becomes a command of its own. Options are separated by ','",
                               sh->ended, setup->value, (int)(end - next), sh->text + next));
    }
}

static void add_assignment(shell *sh, size_t index, uf_setup_kind kind, uint32_t command)
{
    uf_setup setup = setup_of(sh, &sh->words[index], kind);
    setup.command = command;
    check_cut(sh, index, &setup);
    uf__scan_add(sh->scan, &setup);
}

/* NAME = VALUE: the shell sees three words. True if that was it. */
static bool says_blank_equals(shell *sh, size_t index, size_t length)
{
    const word *name = &sh->words[index];
    if (name->cooked[length] != '\0' || index + 1 >= sh->count ||
        sh->words[index + 1].cooked[0] != '=') {
        return false;
    }
    const char *value = sh->words[index + 1].cooked + 1;
    if (value[0] == '\0' && index + 2 < sh->count) {
        value = sh->words[index + 2].cooked;
    }
    uf_findings *texts = &sh->scan->check->findings;
    bool is_export = index > 0;
    uf__findings_add(texts, UF_FINDING_SHELL_BLANKS, uf__scan_place(sh->scan, name->line),
                     uf__findings_copy(texts, name->cooked, length),
                     "no blanks may stand around '=' in a shell: this sets nothing",
                     uf__findings_print(texts, "%s%.*s=\"%s\"", is_export ? "export " : "",
                                        (int)length, name->cooked, value));
    return true;
}

/* NAME= VALUE: an empty value, and a word of its own. */
static bool says_lonely_value(shell *sh, size_t index, size_t length, const char *lead)
{
    const word *name = &sh->words[index];
    if (strcmp(name->cooked + length, "=") != 0 || index + 1 >= sh->count ||
        sh->text[name->end - 1] != '=' || !uf__scan_is_option(sh->words[index + 1].cooked)) {
        return false;
    }
    uf_findings *texts = &sh->scan->check->findings;
    uf__findings_add(texts, UF_FINDING_SHELL_BLANKS, uf__scan_place(sh->scan, name->line),
                     uf__findings_copy(texts, name->cooked, length),
                     "a blank behind '=': the variable is set to nothing, and the settings are a "
                     "word of their own",
                     uf__findings_print(texts, "%s%.*s=\"%s\"", lead, (int)length, name->cooked,
                                        sh->words[index + 1].cooked));
    return true;
}

static bool is_word(const shell *sh, size_t index, const char *text)
{
    return index < sh->count && strcmp(sh->words[index].cooked, text) == 0;
}

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

static void say_wrong_shell(shell *sh, size_t index, const char *name, const char *message,
                            const char *value)
{
    uf_findings *texts = &sh->scan->check->findings;
    const char *fix =
        value == NULL ? NULL : uf__findings_print(texts, "export %s=\"%s\"", name, value);
    uf__findings_add(texts, UF_FINDING_WRONG_SHELL, uf__scan_place(sh->scan, sh->words[index].line),
                     name, message, fix);
}

/* export, declare -x, typeset -x, local, readonly ... */
static void scan_declaration(shell *sh, size_t first)
{
    bool is_exported = is_word(sh, first, "export");
    for (size_t i = first + 1; i < sh->count; i++) {
        const char *cooked = sh->words[i].cooked;
        size_t length;
        if (cooked[0] == '-') {
            is_exported = is_exported || strchr(cooked, 'x') != NULL;
            continue;
        }
        if (variable_of(cooked, &length) == UF_VARIABLE_NONE || says_blank_equals(sh, i, length) ||
            says_lonely_value(sh, i, length, "export ")) {
            continue;
        }
        if (cooked[length] == '\0' && is_exported) {
            uf_setup setup = {.kind = UF_SETUP_EXPORT,
                              .variable = variable_of(cooked, &length),
                              .place = uf__scan_place(sh->scan, sh->words[i].line)};
            uf__scan_add(sh->scan, &setup);
        } else if (cooked[length] == '=') {
            add_assignment(sh, i, is_exported ? UF_SETUP_SET : UF_SETUP_LOCAL, 0);
        }
    }
}

/* set: of fish (-x NAME VALUE), of cmd in a wrong place (NAME=VALUE), or an option of the shell. */
static void scan_set(shell *sh, size_t first)
{
    bool is_exported = false;
    size_t i = first + 1;
    for (; i < sh->count && sh->words[i].cooked[0] == '-'; i++) {
        const char *flag = sh->words[i].cooked;
        is_exported = is_exported || (flag[1] != '-' && strchr(flag, 'x') != NULL) ||
                      strcmp(flag, "--export") == 0;
        sh->is_exporting_all = sh->is_exporting_all || strchr(flag, 'a') == flag + 1 ||
                               is_word(sh, i + 1, "allexport");
    }
    size_t length;
    if (i >= sh->count || variable_of(sh->words[i].cooked, &length) == UF_VARIABLE_NONE) {
        return;
    }
    const char *cooked = sh->words[i].cooked;
    const char *name = uf__findings_copy(&sh->scan->check->findings, cooked, length);
    if (cooked[length] == '=') {
        say_wrong_shell(
            sh, i, name,
            "`set NAME=VALUE` is for the Windows command prompt; in a shell it sets the "
            "positional parameter $1 and no variable",
            cooked + length + 1);
    } else if (i > first + 1 && i + 1 < sh->count) {
        const word *value = &sh->words[i + 1];
        uf_setup setup = {.kind = is_exported ? UF_SETUP_SET : UF_SETUP_LOCAL,
                          .variable = variable_of(cooked, &length),
                          .place = uf__scan_place(sh->scan, value->line),
                          .name = name,
                          .value = value->has_unknown ? NULL : value->cooked,
                          .quoting = UF_QUOTING_DOUBLE,
                          .is_conditional = sh->depth > 0};
        uf__scan_span(sh->scan, &setup, sh->text, value->start, value->end,
                      code_end(sh->text, value->end));
        uf__scan_add(sh->scan, &setup);
    }
}

static void scan_setenv(shell *sh, size_t first)
{
    size_t length;
    if (first + 2 >= sh->count ||
        variable_of(sh->words[first + 1].cooked, &length) == UF_VARIABLE_NONE) {
        return;
    }
    const word *value = &sh->words[first + 2];
    uf_setup setup = {.kind = UF_SETUP_SET,
                      .variable = variable_of(sh->words[first + 1].cooked, &length),
                      .place = uf__scan_place(sh->scan, value->line),
                      .name = sh->words[first + 1].cooked,
                      .value = value->has_unknown ? NULL : value->cooked,
                      .quoting = UF_QUOTING_SHELL,
                      .is_conditional = sh->depth > 0};
    uf__scan_span(sh->scan, &setup, sh->text, value->start, value->end,
                  code_end(sh->text, value->end));
    uf__scan_add(sh->scan, &setup);
}

static void scan_unset(shell *sh, size_t first)
{
    for (size_t i = first + 1; i < sh->count; i++) {
        size_t length;
        uf_setup setup = {.kind = UF_SETUP_UNSET,
                          .variable = variable_of(sh->words[i].cooked, &length)};
        setup.place = uf__scan_place(sh->scan, sh->words[i].line);
        if (setup.variable != UF_VARIABLE_NONE) {
            uf__scan_add(sh->scan, &setup);
        }
    }
}

static bool is_program(const char *cooked)
{
    static const char *const names[] = {
        "python",   "torchrun", "accelerate", "deepspeed", "vllm",        "jupyter",   "streamlit",
        "gunicorn", "uvicorn",  "srun",       "mpirun",    "exec",        "bash",      "sh",
        "docker",   "podman",   "nohup",      "sbatch",    "singularity", "apptainer", "uv",
        "poetry",   "make",     "pytest",     "ipython",   "conda",       "comfy",     "screen",
        "tmux",     "webui",    "launch",     "source",    "systemctl"};
    const char *base = base_of(cooked);
    size_t length = strlen(base);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t name_length = strlen(names[i]);
        if (strncmp(base, names[i], name_length) == 0 &&
            (length == name_length || i == 0 || base[name_length] == '.')) {
            return true;
        }
    }
    return (length > 3 && strcmp(base + length - 3, ".py") == 0) || strncmp(cooked, "./", 2) == 0;
}

/* A text handed to another interpreter. */
static void scan_inner(shell *sh, const word *text, bool is_python)
{
    if (sh->scan->depth >= UF_SCAN_DEPTH_MAX || text->has_unknown) {
        return;
    }
    uf_scan inner = *sh->scan;
    inner.depth++;
    inner.is_nested = true;
    inner.first_line = text->line;
    if (is_python) {
        uf__scan_python(&inner, text->cooked, NULL, 0);
    } else {
        uf__scan_shell(&inner, text->cooked);
    }
}

static void scan_reset(shell *sh)
{
    uf_findings *texts = &sh->scan->check->findings;
    for (size_t i = 0; i < sh->count; i++) {
        const char *base = base_of(sh->words[i].cooked);
        if (strcmp(base, "nvidia-smi") != 0 && strcmp(base, "rocm-smi") != 0) {
            continue;
        }
        const char *joined = base;
        for (size_t k = i + 1; k < sh->count && k < i + 12; k++) {
            joined = uf__findings_print(texts, "%s %s", joined, sh->words[k].cooked);
        }
        if (uf__scan_is_reset(joined)) {
            uf__scan_add_reset(sh->scan, sh->words[i].line);
        }
        return;
    }
}

/* --export=ALL,NAME=a:1,b:2 of Slurm, which divides at every comma. */
static void check_slurm(shell *sh, const word *found)
{
    size_t length;
    const char *name = strstr(found->cooked, "PYTORCH_");
    if (name == NULL || variable_of(name, &length) == UF_VARIABLE_NONE || name[length] != '=') {
        return;
    }
    const char *comma = strchr(name + length, ',');
    if (comma != NULL && uf__scan_is_option(comma + 1)) {
        uf_findings *texts = &sh->scan->check->findings;
        uf__findings_add(
            texts, UF_FINDING_SHELL_CUTS, uf__scan_place(sh->scan, found->line),
            uf__findings_copy(texts, name, length),
            "Slurm divides --export at every comma, so PyTorch sees the first option "
            "only; export the variable in front, and let --export=ALL hand it on",
            uf__findings_print(texts, "export %.*s=\"%s\"", (int)length, name, name + length + 1));
    }
}

/* The words of a command: assignments in front or handed on, programs, texts for others. */
static void scan_words(shell *sh, size_t first)
{
    bool has_program = false;
    uint32_t command = ++sh->scan->check->setups.command_count;
    size_t rest = first;
    while (rest < sh->count) {
        const char *equals = strchr(sh->words[rest].cooked, '=');
        if (equals == NULL || equals == sh->words[rest].cooked ||
            sh->words[rest].cooked[strspn(sh->words[rest].cooked,
                                          "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                          "0123456789_")] != '=') {
            break;
        }
        rest++;
    }
    for (size_t i = first; i < sh->count; i++) {
        const char *cooked = sh->words[i].cooked;
        size_t length;
        const char *handed = strncmp(cooked, "--env=", 6) == 0 ? cooked + 6 : cooked;
        uf_variable variable = variable_of(handed, &length);
        if (variable != UF_VARIABLE_NONE && handed[length] == '=' &&
            !says_lonely_value(sh, i, length, "")) {
            uf_setup_kind kind = rest == sh->count ? UF_SETUP_LOCAL : UF_SETUP_COMMAND;
            kind = kind == UF_SETUP_LOCAL && sh->is_exporting_all ? UF_SETUP_SET : kind;
            if (handed != cooked) {
                sh->words[i].start += 6;
                sh->words[i].cooked = handed;
            }
            add_assignment(sh, i, kind, command);
        } else if (variable != UF_VARIABLE_NONE && i == first) {
            (void)says_blank_equals(sh, i, length);
        } else if (strncmp(cooked, "--export=", 9) == 0) {
            check_slurm(sh, &sh->words[i]);
        }
        has_program = has_program || is_program(cooked);
    }
    for (size_t i = rest; i + 2 < sh->count; i++) {
        const char *base = base_of(sh->words[i].cooked);
        bool is_python = strncmp(base, "python", 6) == 0;
        bool is_shell = strcmp(base, "bash") == 0 || strcmp(base, "sh") == 0;
        if ((is_python || is_shell) && sh->words[i + 1].cooked[0] == '-' &&
            strchr(sh->words[i + 1].cooked, 'c') != NULL) {
            scan_inner(sh, &sh->words[i + 2], is_python);
            break;
        }
    }
    if (has_program) {
        uf_setup run = {.kind = UF_SETUP_RUN,
                        .variable = UF_VARIABLE_NONE,
                        .place = uf__scan_place(sh->scan, sh->words[first].line)};
        uf__scan_add(sh->scan, &run);
    }
}

static size_t skip_keywords(shell *sh)
{
    static const char *const keywords[] = {"then", "else", "do",    "!",     "{",   "elif",
                                           "time", "if",   "until", "while", "case"};
    size_t first = 0;
    while (first < sh->count) {
        const char *cooked = sh->words[first].cooked;
        bool is_keyword = false;
        for (size_t i = 0; i < sizeof keywords / sizeof keywords[0]; i++) {
            is_keyword = is_keyword || strcmp(cooked, keywords[i]) == 0;
        }
        bool opens =
            strcmp(cooked, "if") == 0 || strcmp(cooked, "case") == 0 || strcmp(cooked, "{") == 0;
        bool closes =
            strcmp(cooked, "fi") == 0 || strcmp(cooked, "esac") == 0 || strcmp(cooked, "}") == 0;
        sh->depth += opens;
        sh->depth -= closes && sh->depth > 0;
        if (!is_keyword) {
            break;
        }
        first++;
    }
    return first;
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

/* A line of another shell: $env:NAME = ..., setx. */
static bool says_foreign(shell *sh, size_t first)
{
    const char *cooked = sh->words[first].cooked;
    size_t length;
    if (strncmp(cooked, "$env:", 5) == 0 && variable_of(cooked + 5, &length) != UF_VARIABLE_NONE) {
        const char *name = uf__findings_copy(&sh->scan->check->findings, cooked + 5, length);
        const char *value = cooked[5 + length] == '=' ? cooked + 6 + length
                            : sh->count > first + 2   ? sh->words[first + 2].cooked
                                                      : NULL;
        say_wrong_shell(sh, first, name,
                        "$env:NAME is for PowerShell; in a shell this is no assignment", value);
        return true;
    }
    if (strcmp(cooked, "setx") == 0 && sh->count > first + 2 &&
        variable_of(sh->words[first + 1].cooked, &length) != UF_VARIABLE_NONE) {
        say_wrong_shell(sh, first, sh->words[first + 1].cooked,
                        "setx is for Windows; a shell has no such command",
                        sh->words[first + 2].cooked);
        return true;
    }
    return false;
}

static void scan_command(shell *sh)
{
    static const char *const declarations[] = {"export", "declare",  "typeset",
                                               "local",  "readonly", NULL};
    static const char *const silent[] = {"echo",  "printf", "grep", "sed", "awk", "printenv",
                                         "alias", "test",   "[",    "[[",  "cat", NULL};
    size_t first = sh->count == 0 ? 0 : skip_keywords(sh);
    if (first >= sh->count) {
        return;
    }
    const char *name = base_of(sh->words[first].cooked);
    if (is_one_of(name, silent)) {
        return;
    }
    scan_reset(sh);
    if (is_one_of(name, declarations)) {
        scan_declaration(sh, first);
    } else if (strcmp(name, "set") == 0) {
        scan_set(sh, first);
    } else if (strcmp(name, "setenv") == 0) {
        scan_setenv(sh, first);
    } else if (strcmp(name, "unset") == 0) {
        scan_unset(sh, first);
    } else if (!says_foreign(sh, first)) {
        scan_words(sh, first);
    }
}

/* Reads the operator at sh->at. True if it ends the command; a redirection does not. */
static bool read_operator(shell *sh)
{
    const char *text = sh->text + sh->at;
    size_t length = (text[0] == text[1] && strchr("&|;<>", text[0]) != NULL) ? 2 : 1;
    if (text[0] == '<' || text[0] == '>' || (text[0] == '&' && text[1] == '>')) {
        bool is_direct = sh->count > 0 && sh->words[sh->count - 1].end == sh->at;
        if (is_direct && sh->cut_at == 0 && text[0] != '&') {
            sh->cut_at = sh->at;
        }
        bool is_heredoc = length == 2 && text[0] == '<' && text[2] != '<';
        sh->at += length + (text[0] == '&') + strspn(text + length, "<&-");
        sh->at += strspn(sh->text + sh->at, " \t");
        if (!is_operator(sh->text[sh->at]) && sh->text[sh->at] != '\0') {
            word target;
            read_word(sh, &target);
            if (is_heredoc) {
                strncpy(sh->heredoc, target.cooked, sizeof sh->heredoc - 1);
                sh->has_heredoc = true;
            }
        }
        return false;
    }
    memcpy(sh->ended, text, length);
    sh->ended[length] = '\0';
    sh->ended_at = sh->at;
    sh->at += length;
    return true;
}

/* Behind the line with <<WORD: the body is for the command, a Python program perhaps. */
static void take_heredoc(shell *sh, bool is_python)
{
    size_t start = sh->at;
    uint32_t line = sh->line;
    size_t end = start;
    while (sh->text[sh->at] != '\0') {
        size_t length = strcspn(sh->text + sh->at, "\n");
        const char *body = sh->text + sh->at;
        size_t tabs = strspn(body, "\t");
        bool is_end = length - (tabs < length ? tabs : length) == strlen(sh->heredoc) &&
                      strncmp(body + tabs, sh->heredoc, strlen(sh->heredoc)) == 0;
        end = sh->at;
        sh->at += length + (body[length] == '\n');
        sh->line += body[length] == '\n';
        if (is_end) {
            break;
        }
        end = sh->at;
    }
    sh->has_heredoc = false;
    if (is_python) {
        word body = {.start = start, .end = end, .line = line};
        body.cooked = uf__findings_copy(&sh->scan->check->findings, sh->text + start, end - start);
        scan_inner(sh, &body, true);
    }
}

static void end_command(shell *sh)
{
    bool is_python = false;
    for (size_t i = 0; i < sh->count; i++) {
        is_python = is_python || strncmp(base_of(sh->words[i].cooked), "python", 6) == 0;
    }
    scan_command(sh);
    bool is_line_end = sh->ended[0] == '\n';
    sh->depth += sh->ended[0] == '(';
    sh->depth -= sh->ended[0] == ')' && sh->depth > 0;
    if (is_line_end) {
        sh->line++;
    }
    if (is_line_end && sh->has_heredoc) {
        take_heredoc(sh, is_python);
    }
    memcpy(sh->before, sh->ended, sizeof sh->before);
    sh->count = 0;
    sh->cut_at = 0;
    sh->ended[0] = '\0';
}

void uf__scan_shell(const uf_scan *scan, const char *text)
{
    shell *sh = uf__findings_allocate(&scan->check->findings, sizeof *sh);
    char *scratch = uf__findings_allocate(&scan->check->findings, strlen(text) + 1);
    if (sh == NULL || scratch == NULL) {
        return;
    }
    memset(sh, 0, sizeof *sh);
    sh->scan = scan;
    sh->scratch = scratch;
    sh->text = text;
    sh->line = scan->first_line;
    while (text[sh->at] != '\0') {
        char c = text[sh->at];
        if (is_blank(c)) {
            sh->at++;
        } else if (c == '\\' && text[sh->at + 1] == '\n') {
            sh->at += 2;
            sh->line++;
        } else if (c == '#') {
            sh->at += strcspn(text + sh->at, "\n");
        } else if (is_operator(c)) {
            if (read_operator(sh)) {
                end_command(sh);
            }
        } else {
            word found;
            read_word(sh, &found);
            if (sh->count < WORD_MAX) {
                sh->words[sh->count++] = found;
            }
        }
    }
    end_command(sh);
}
