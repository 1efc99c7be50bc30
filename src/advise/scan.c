/* SPDX-License-Identifier: MIT
 *
 * Which scanner a file needs, and what scanners share. No lock. */
#include "advise/scan.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "alloc/conf_option.h"

/* Longer lines are not shown as a whole. */
#define LINE_MAX_BYTES 4000

typedef void scanner(const uf_scan *scan, const char *text);

static void scan_whole_python(const uf_scan *scan, const char *text)
{
    uf__scan_python(scan, text, NULL, 0);
}

static const struct {
    const char *ending;
    scanner *scan;
} endings[] = {
    {".py", scan_whole_python},
    {".pyw", scan_whole_python},
    {".sh", uf__scan_shell},
    {".bash", uf__scan_shell},
    {".zsh", uf__scan_shell},
    {".fish", uf__scan_shell},
    {".csh", uf__scan_shell},
    {".slurm", uf__scan_shell},
    {".sbatch", uf__scan_shell},
    {".bashrc", uf__scan_shell},
    {".zshrc", uf__scan_shell},
    {".profile", uf__scan_shell},
    {".bash_profile", uf__scan_shell},
    {".bat", uf__scan_cmd},
    {".cmd", uf__scan_cmd},
    {".ps1", uf__scan_powershell},
    {".psm1", uf__scan_powershell},
    {".yaml", uf__scan_yaml},
    {".yml", uf__scan_yaml},
    {".json", uf__scan_yaml},
    {".env", uf__scan_dotenv},
    {".dockerfile", uf__scan_dockerfile},
    {".service", uf__scan_systemd},
    {".timer", uf__scan_systemd},
};

static bool ends_with(const char *name, const char *ending)
{
    size_t length = strlen(name), ending_length = strlen(ending);
    return length >= ending_length && strcasecmp(name + length - ending_length, ending) == 0;
}

static scanner *find_scanner(const char *name, const char *text)
{
    const char *slash = strrchr(name, '/');
    const char *base = slash == NULL ? name : slash + 1;
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        if (ends_with(base, endings[i].ending)) {
            return endings[i].scan;
        }
    }
    if (strncasecmp(base, "dockerfile", 10) == 0 || strncasecmp(base, "containerfile", 13) == 0) {
        return uf__scan_dockerfile;
    }
    if (strncmp(base, ".env", 4) == 0) {
        return uf__scan_dotenv;
    }
    if (ends_with(base, ".conf") && strstr(text, "Environment=") != NULL) {
        return uf__scan_systemd;
    }
    if (strncmp(text, "#!", 2) == 0) {
        size_t length = strcspn(text, "\n");
        return memmem(text, length, "python", 6) != NULL ? scan_whole_python : uf__scan_shell;
    }
    return uf__scan_plain;
}

uf_status uf__scan_file(uf_check *check, uint32_t source, const char *name, const char *text,
                        uf_error *error)
{
    uf_scan scan = {.check = check, .source = source, .first_line = 1};
    if (strncmp(text, "\xEF\xBB\xBF", 3) == 0) {
        text += 3;
    }
    if (ends_with(name, ".ipynb")) {
        return uf__scan_notebook(&scan, name, text, error);
    }
    find_scanner(name, text)(&scan, text);
    return UF_OK;
}

void uf__scan_text(uf_check *check, uint32_t source, const char *text)
{
    uf_scan scan = {.check = check, .source = source, .first_line = 1};
    uf__scan_plain(&scan, text);
}

uf_finding_place uf__scan_place(const uf_scan *scan, uint32_t line)
{
    return (uf_finding_place){scan->source, line, scan->cell};
}

void uf__scan_add(const uf_scan *scan, const uf_setup *setup)
{
    uf_setup added = *setup;
    bool is_assignment = setup->kind == UF_SETUP_SET || setup->kind == UF_SETUP_LOCAL;
    if (added.name == NULL) {
        added.name = "";
    }
    if (added.scope == 0) {
        added.scope = scan->scope;
    }
    if (scan->is_nested) {
        added.line = NULL;
    }
    if (scan->lost != NULL && is_assignment) {
        added.kind = UF_SETUP_LOST;
        added.intended = scan->lost;
    }
    if (scan->lost != NULL && (setup->kind == UF_SETUP_UNSET || setup->kind == UF_SETUP_EXPORT)) {
        return;
    }
    uf__setups_add(&scan->check->setups, &scan->check->findings, &added);
}

void uf__scan_span(const uf_scan *scan, uf_setup *setup, const char *text, size_t value_start,
                   size_t value_end, size_t code_end)
{
    size_t start = value_start;
    setup->line = NULL;
    while (start > 0 && text[start - 1] != '\n') {
        start--;
    }
    if (value_start - start > LINE_MAX_BYTES || value_end - value_start > LINE_MAX_BYTES) {
        return; /* nobody reads such a line; the value alone has to do */
    }
    code_end = code_end < value_end ? value_end : code_end;
    while (code_end > value_end && isspace((unsigned char)text[code_end - 1])) {
        code_end--;
    }
    if (code_end - value_end > LINE_MAX_BYTES) {
        return;
    }
    setup->line = uf__findings_copy(&scan->check->findings, text + start, code_end - start);
    setup->value_start = value_start - start;
    setup->value_end = value_end - start;
    if (setup->line[0] == '\0') {
        setup->line = NULL; /* no memory: nothing to point into */
    }
}

bool uf__scan_is_option(const char *text)
{
    size_t length = 0;
    while (isalnum((unsigned char)text[length]) || text[length] == '_') {
        length++;
    }
    if (length < 4) {
        return false;
    }
    if (uf__conf_option_find(text, length, UF_CONF_2_11, 0) != NULL) {
        return true;
    }
    return (text[length] == ':' || text[length] == '=') &&
           uf__conf_option_nearest(text, length, UF_CONF_2_11, 0) != NULL;
}

void uf__scan_add_reset(const uf_scan *scan, uint32_t line)
{
    uf__findings_add(
        &scan->check->findings, UF_FINDING_GPU_RESET, uf__scan_place(scan, line),
        "nvidia-smi --gpu-reset",
        "resets the device for everybody, needs root, and fails while any process uses the GPU; it "
        "cures no out-of-memory error: cached memory belongs to a process and goes back when it "
        "ends. Find the process that holds memory (nvidia-smi) and end that one",
        "");
}

bool uf__scan_is_reset(const char *command)
{
    const char *at = strstr(command, "nvidia-smi");
    const char *amd = strstr(command, "rocm-smi");
    if (amd != NULL && strstr(amd, "--gpureset") != NULL) {
        return true;
    }
    if (at == NULL) {
        return false;
    }
    for (at = strpbrk(at, " \t"); at != NULL; at = strpbrk(at, " \t")) {
        at += strspn(at, " \t");
        size_t length = strcspn(at, " \t;&|\n=");
        if ((length == 11 && strncmp(at, "--gpu-reset", 11) == 0) ||
            (length == 2 && strncmp(at, "-r", 2) == 0)) {
            return true;
        }
    }
    return false;
}

const char *uf__scan_next_line(const uf_scan *scan, const char **at)
{
    if (**at == '\0') {
        return NULL;
    }
    size_t length = strcspn(*at, "\n");
    size_t kept = length > 0 && (*at)[length - 1] == '\r' ? length - 1 : length;
    const char *line = uf__findings_copy(&scan->check->findings, *at, kept);
    *at += length + ((*at)[length] == '\n');
    return line;
}
