/* SPDX-License-Identifier: MIT
 *
 * Files that set variables without being programs: YAML (compose, Kubernetes, workflows) and JSON,
 * .env, Dockerfiles, systemd units; and logs of terminals, where each line may be of another
 * shell. No lock. */
#include "advise/scan.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define NAME_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"

/* The variable at the start of a text; *length of its name. */
static uf_variable variable_at(const char *text, size_t *length)
{
    *length = strspn(text, NAME_CHARACTERS);
    return uf__variable_find(text, *length, NULL);
}

static uf_setup setup_at(const uf_scan *scan, const char *name, size_t length, uint32_t number)
{
    uf_setup setup = {.kind = UF_SETUP_SET};
    setup.variable = uf__variable_find(name, length, NULL);
    setup.name = uf__findings_copy(&scan->check->findings, name, length);
    setup.place = uf__scan_place(scan, number);
    return setup;
}

/* A value at `at`: in quotes, or bare up to a comment or one of `ends`. */
static void read_value(const uf_scan *scan, const char *line, size_t at, const char *ends,
                       uf_setup *setup)
{
    char quote = line[at];
    bool is_quoted = quote == '"' || quote == '\'';
    size_t start = at + (is_quoted ? 1 : 0);
    size_t end = start;
    while (line[end] != '\0' &&
           (is_quoted ? line[end] != quote : strchr(ends, line[end]) == NULL)) {
        if (!is_quoted && line[end] == '#' && end > start &&
            isspace((unsigned char)line[end - 1])) {
            break;
        }
        end++;
    }
    size_t kept = end;
    while (!is_quoted && kept > start && isspace((unsigned char)line[kept - 1])) {
        kept--;
    }
    const char *text = uf__findings_copy(&scan->check->findings, line + start, kept - start);
    setup->value = strchr(text, '$') != NULL || strstr(text, "{{") != NULL ? NULL : text;
    setup->quoting =
        is_quoted ? (quote == '"' ? UF_QUOTING_DOUBLE : UF_QUOTING_SINGLE) : UF_QUOTING_BARE;
    size_t span_end = is_quoted && line[end] == quote ? end + 1 : kept;
    const char *comment = strstr(line + span_end, " #");
    uf__scan_span(scan, setup, line, at, span_end,
                  comment == NULL ? strlen(line) : (size_t)(comment - line));
}

/* ---- YAML ---- */

/* NAME: VALUE, NAME=VALUE as an item of a list, or "NAME": "VALUE" of JSON. True if it was one. */
static bool scan_yaml_pair(const uf_scan *scan, const char *line, size_t at, bool is_item,
                           uint32_t number)
{
    char quote = line[at] == '"' || line[at] == '\'' ? line[at] : '\0';
    size_t name = at + (quote != '\0');
    size_t length;
    if (variable_at(line + name, &length) == UF_VARIABLE_NONE) {
        return false;
    }
    uf_setup setup = setup_at(scan, line + name, length, number);
    size_t next = name + length;
    if (line[next] == '=') { /* an item: everything behind '=' is the value, quotes, too */
        if (!is_item && quote == '\0') {
            return false; /* a shell's line in a block of text */
        }
        size_t end =
            quote != '\0' ? next + strcspn(line + next, quote == '"' ? "\"" : "'") : strlen(line);
        const char *comment = quote == '\0' ? strstr(line + next, " #") : NULL;
        end = comment != NULL ? (size_t)(comment - line) : end;
        while (end > next + 1 && isspace((unsigned char)line[end - 1])) {
            end--;
        }
        const char *text =
            uf__findings_copy(&scan->check->findings, line + next + 1, end - next - 1);
        setup.value = strchr(text, '$') != NULL || strstr(text, "{{") != NULL ? NULL : text;
        uf__scan_span(scan, &setup, line, next + 1, end,
                      end + (quote != '\0' && line[end] == quote));
        uf__scan_add(scan, &setup);
        return true;
    }
    next += quote != '\0' && line[next] == quote;
    next += strspn(line + next, " \t");
    if (line[next] != ':') {
        return false;
    }
    next += 1 + strspn(line + next + 1, " \t");
    read_value(scan, line, next, "", &setup);
    bool is_bare = line[next] != '"' && line[next] != '\'';
    if (line[next] == '\0' || line[next] == '|' || line[next] == '>') {
        return true; /* a value on other lines */
    }
    if (is_bare && setup.value != NULL && strstr(setup.value, ": ") != NULL) {
        setup.quoting = UF_QUOTING_DOUBLE;
        uf__findings_add(&scan->check->findings, UF_FINDING_YAML_BLANK, setup.place, setup.name,
                         "': ' with a blank inside a plain value is an error in YAML (mapping "
                         "values are not allowed here): the file cannot be read. Leave the blank "
                         "out, or quote the value",
                         uf__check_corrected(scan->check, &setup));
        return true;
    }
    uf__scan_add(scan, &setup);
    return true;
}

/* - name: NAME, then value: VALUE (Kubernetes) */
static bool is_named_pair(const uf_scan *scan, const char *line, size_t at, const char **name)
{
    if (strncmp(line + at, "name:", 5) == 0) {
        at += 5 + strspn(line + at + 5, " \t\"'");
        size_t length;
        bool is_ours = variable_at(line + at, &length) != UF_VARIABLE_NONE;
        *name = is_ours ? uf__findings_copy(&scan->check->findings, line + at, length) : NULL;
        return true;
    }
    return false;
}

void uf__scan_yaml(const uf_scan *scan, const char *text)
{
    uint32_t number = scan->first_line;
    const char *line, *named = NULL;
    for (; (line = uf__scan_next_line(scan, &text)) != NULL; number++) {
        size_t at = strspn(line, " \t{");
        bool is_item = line[at] == '-' && (line[at + 1] == ' ' || line[at + 1] == '\t');
        at += is_item ? 1 + strspn(line + at + 1, " \t{") : 0;
        if (line[at] == '#' || is_named_pair(scan, line, at, &named)) {
            continue;
        }
        if (named != NULL && strncmp(line + at, "value:", 6) == 0) {
            uf_setup setup = setup_at(scan, named, strlen(named), number);
            read_value(scan, line, at + 6 + strspn(line + at + 6, " \t"), "", &setup);
            uf__scan_add(scan, &setup);
            named = NULL;
            continue;
        }
        if (strcmp(line + at, "---") == 0 || strncmp(line + at, "containers:", 11) == 0 ||
            strncmp(line + at, "environment:", 12) == 0 || strncmp(line + at, "env:", 4) == 0 ||
            strncmp(line + at, "run:", 4) == 0 || strncmp(line + at, "script:", 7) == 0) {
            uf_setup run = {.kind = UF_SETUP_RUN, .variable = UF_VARIABLE_NONE};
            run.place = uf__scan_place(scan, number);
            uf__scan_add(scan, &run); /* another program's environment begins */
        }
        if (!scan_yaml_pair(scan, line, at, is_item, number)) {
            const char *command = line + at;
            static const char *const keys[] = {"run:", "command:", "entrypoint:", "script:"};
            for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
                size_t length = strlen(keys[i]);
                command += strncmp(command, keys[i], length) == 0 ? length : 0;
            }
            uf_scan inner = *scan;
            inner.first_line = number;
            inner.is_nested = true;
            if (strstr(command, "PYTORCH_") != NULL || strstr(command, "-smi") != NULL) {
                uf__scan_shell(&inner, command);
            }
        }
    }
}

/* ---- .env ---- */

void uf__scan_dotenv(const uf_scan *scan, const char *text)
{
    uint32_t number = scan->first_line;
    const char *line;
    for (; (line = uf__scan_next_line(scan, &text)) != NULL; number++) {
        size_t at = strspn(line, " \t");
        size_t length;
        at += strncmp(line + at, "export ", 7) == 0 ? 7 + strspn(line + at + 7, " ") : 0;
        size_t name = at;
        if (variable_at(line + name, &length) == UF_VARIABLE_NONE) {
            continue;
        }
        at = name + length + strspn(line + name + length, " \t");
        if (line[at] != '=' && line[at] != ':') {
            continue;
        }
        uf_setup setup = setup_at(scan, line + name, length, number);
        read_value(scan, line, at + 1 + strspn(line + at + 1, " \t"), "", &setup);
        uf__scan_add(scan, &setup);
    }
}

/* ---- Dockerfile ---- */

/* ENV NAME=VALUE NAME="VALUE", ENV NAME VALUE; also the lists of systemd, with the same quotes. */
static void scan_env_list(const uf_scan *scan, const char *line, size_t at, uint32_t number,
                          uf_setup_kind kind, const char *reason, bool has_blank_form)
{
    for (;;) {
        at += strspn(line + at, " \t");
        if (line[at] == '\0' || line[at] == '#') {
            return;
        }
        char quote = line[at] == '"' || line[at] == '\'' ? line[at] : '\0';
        size_t name = at + (quote != '\0');
        size_t length;
        bool is_ours = variable_at(line + name, &length) != UF_VARIABLE_NONE;
        uf_setup setup = setup_at(scan, line + name, length, number);
        setup.kind = kind;
        setup.intended = reason;
        at = name + length;
        if (quote != '\0' && line[at] == '=') { /* "NAME=VALUE" */
            size_t end = at + 1 + strcspn(line + at + 1, quote == '"' ? "\"" : "'");
            setup.value = uf__findings_copy(&scan->check->findings, line + at + 1, end - at - 1);
            uf__scan_span(scan, &setup, line, at + 1, end, strlen(line));
            at = end + (line[end] != '\0');
        } else if (line[at] == '=') {
            read_value(scan, line, at + 1, " \t", &setup);
            at += 1;
            quote = line[at] == '"' || line[at] == '\'' ? line[at] : '\0';
            at += quote == '\0' ? strcspn(line + at, " \t")
                                : 1 + strcspn(line + at + 1, quote == '"' ? "\"" : "'");
            at += quote != '\0' && line[at] == quote;
        } else if (has_blank_form && is_ours && (line[at] == ' ' || line[at] == '\t')) {
            read_value(scan, line, at + strspn(line + at, " \t"), "", &setup);
            at = strlen(line);
        } else {
            at += strcspn(line + at, " \t");
            is_ours = false;
        }
        if (is_ours) {
            if (uf__scan_is_option(line + at + strspn(line + at, " \t")) && line[at] == ' ') {
                uf__findings_add(&scan->check->findings, UF_FINDING_SHELL_BLANKS, setup.place,
                                 setup.name,
                                 "the value ends at the blank; leave it out, or quote the whole "
                                 "value",
                                 NULL);
            }
            uf__scan_add(scan, &setup);
        }
    }
}

static const char *const arg_reason =
    "ARG exists while the image is built only; the program in the "
    "container never sees it. Use ENV";
static const char *const run_reason = "set in a shell that ends with this RUN; the program in the "
                                      "container never sees it. Use ENV";

static void scan_instruction(const uf_scan *scan, const char *line, uint32_t number)
{
    size_t at = strspn(line, " \t");
    uf_scan inner = *scan;
    inner.first_line = number;
    if (strncasecmp(line + at, "ENV ", 4) == 0) {
        scan_env_list(scan, line, at + 4, number, UF_SETUP_SET, NULL, true);
    } else if (strncasecmp(line + at, "ARG ", 4) == 0) {
        size_t length;
        size_t name = at + 4 + strspn(line + at + 4, " ");
        if (variable_at(line + name, &length) != UF_VARIABLE_NONE && line[name + length] == '=') {
            scan_env_list(scan, line, name, number, UF_SETUP_LOST, arg_reason, false);
        }
    } else if (strncasecmp(line + at, "RUN ", 4) == 0) {
        inner.lost = run_reason;
        uf__scan_shell(&inner, line + at + 4);
    } else if (strncasecmp(line + at, "CMD ", 4) == 0 ||
               strncasecmp(line + at, "ENTRYPOINT ", 11) == 0) {
        inner.is_nested = true;
        uf__scan_shell(&inner, line + at + (tolower((unsigned char)line[at]) == 'c' ? 4 : 11));
    } else if (strncasecmp(line + at, "FROM ", 5) == 0) {
        uf_setup run = {.kind = UF_SETUP_RUN, .variable = UF_VARIABLE_NONE};
        run.place = uf__scan_place(scan, number);
        uf__scan_add(scan, &run);
    }
}

void uf__scan_dockerfile(const uf_scan *scan, const char *text)
{
    uint32_t number = scan->first_line;
    uf_findings *texts = &scan->check->findings;
    const char *line;
    while ((line = uf__scan_next_line(scan, &text)) != NULL) {
        uint32_t first = number++;
        if (line[strspn(line, " \t")] == '#') {
            continue;
        }
        size_t length = strlen(line);
        /* an ENV over several lines is judged line by line, so that lines stay right */
        bool is_env = strncasecmp(line + strspn(line, " \t"), "ENV ", 4) == 0;
        const char *next;
        while (length > 0 && line[length - 1] == '\\' &&
               (next = uf__scan_next_line(scan, &text)) != NULL) {
            if (is_env) {
                scan_instruction(scan, uf__findings_copy(texts, line, length - 1), first);
                line = uf__findings_print(texts, "ENV %s", next + strspn(next, " \t"));
                first = number++;
            } else {
                line = uf__findings_print(texts, "%s\n%s", line, next);
                number++;
            }
            length = strlen(line);
        }
        scan_instruction(scan, line, first);
    }
}

/* ---- systemd ---- */

void uf__scan_systemd(const uf_scan *scan, const char *text)
{
    uint32_t number = scan->first_line;
    const char *line;
    for (; (line = uf__scan_next_line(scan, &text)) != NULL; number++) {
        size_t at = strspn(line, " \t");
        uf_scan inner = *scan;
        inner.first_line = number;
        inner.is_nested = true;
        if (strncmp(line + at, "Environment=", 12) == 0) {
            scan_env_list(scan, line, at + 12, number, UF_SETUP_SET, NULL, false);
        } else if (strncmp(line + at, "ExecStart", 9) == 0 && strchr(line, '=') != NULL) {
            uf__scan_shell(&inner, strchr(line, '=') + 1);
        }
    }
}

/* ---- logs of terminals ---- */

/* Behind a prompt: "$ ", "# ", "> ", ">>> ", "user@host:~$ ", "PS C:\> ", "C:\x>". */
static size_t skip_prompt(const char *line)
{
    size_t at = strspn(line, " \t");
    if (strncmp(line + at, ">>> ", 4) == 0 || strncmp(line + at, "... ", 4) == 0) {
        return at + 4;
    }
    if (strncmp(line + at, "$ ", 2) == 0 || strncmp(line + at, "% ", 2) == 0 ||
        strncmp(line + at, "> ", 2) == 0) {
        return at + 2;
    }
    const char *angle = strchr(line + at, '>');
    bool is_windows =
        strncmp(line + at, "PS ", 3) == 0 ||
        (isalpha((unsigned char)line[at]) && line[at + 1] == ':' && line[at + 2] == '\\');
    if (is_windows && angle != NULL) {
        return (size_t)(angle - line) + 1 + strspn(angle + 1, " ");
    }
    const char *dollar = strstr(line + at, "$ ");
    size_t head = strcspn(line + at, " $#");
    if (memchr(line + at, '@', head) != NULL && dollar != NULL) {
        return (size_t)(dollar - line) + 2;
    }
    const char *root = strstr(line + at, "# ");
    if (memchr(line + at, '@', head) != NULL && root != NULL) {
        return (size_t)(root - line) + 2;
    }
    return at;
}

/* Commands that hand variables on; in prose nothing else is one. */
static bool is_command(const char *text)
{
    static const char *const words[] = {
        "export",    "env",   "sudo",   "docker",  "podman",     "nohup", "declare",
        "setenv",    "unset", "srun",   "sbatch",  "nvidia-smi", "conda", "singularity",
        "apptainer", "exec",  "python", "python3", "time"};
    size_t length = strcspn(text, " \t");
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strlen(words[i]) == length && strncmp(text, words[i], length) == 0) {
            return true;
        }
    }
    size_t name = strspn(text, NAME_CHARACTERS);
    return name > 0 && text[name] == '=';
}

/* Lines of different shells do not replace each other: each has a scope. */
enum { SCOPE_POWERSHELL = 1, SCOPE_CMD, SCOPE_DOCKER, SCOPE_SYSTEMD };

static void scan_plain_line(const uf_scan *outer, const char *line, size_t at)
{
    const char *text = line + at;
    uf_scan inner = *outer;
    const uf_scan *scan = &inner;
    if (strncasecmp(text, "$env:", 5) == 0 || text[0] == '[') {
        inner.scope = SCOPE_POWERSHELL;
        uf__scan_powershell(scan, line + at);
    } else if (strncasecmp(text, "set ", 4) == 0 || strncasecmp(text, "setx ", 5) == 0) {
        inner.scope = SCOPE_CMD;
        uf__scan_cmd(scan, line + at);
    } else if (strncmp(text, "ENV ", 4) == 0) {
        inner.scope = SCOPE_DOCKER;
        uf__scan_dockerfile(scan, line + at);
    } else if (strncmp(text, "Environment=", 12) == 0) {
        inner.scope = SCOPE_SYSTEMD;
        uf__scan_systemd(scan, line + at);
    } else if (strstr(text, "os.environ") != NULL || strncmp(text, "torch.", 6) == 0) {
        uf__scan_python(scan, line + at, NULL, 0);
    } else if (is_command(text)) {
        uf__scan_shell(scan, line + at);
    }
}

void uf__scan_plain(const uf_scan *scan, const char *text)
{
    uint32_t number = scan->first_line;
    const char *line;
    for (; (line = uf__scan_next_line(scan, &text)) != NULL; number++) {
        bool is_interesting = strstr(line, "PYTORCH") != NULL || strstr(line, "ALLOC") != NULL ||
                              strstr(line, "-smi") != NULL || strstr(line, "torch.") != NULL ||
                              strstr(line, "python") != NULL;
        if (is_interesting) {
            uf_scan inner = *scan;
            inner.first_line = number;
            scan_plain_line(&inner, line, skip_prompt(line));
        }
    }
}
