/* SPDX-License-Identifier: MIT
 *
 * What is wrong in a Python statement by itself: settings that are attributes, queries taken for
 * settings, empty_cache in loops, formulas that measure nothing, bad arguments, commands of other
 * programs in strings. No lock. */
#include "advise/scan_python.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "advise/check_repair.h"

/* No machine has this many GPUs: a larger argument is no device index. */
#define DEVICE_INDEX_LIMIT 64

static void say(uf_python *py, size_t index, uf_finding_id id, const char *option,
                const char *message, const char *fix)
{
    uf__findings_add(&py->scan->check->findings, id, uf__python_place(py, index), option, message,
                     fix);
}

static bool is_loop_around(const uf_python *py, bool *is_in_except, bool *is_in_branch)
{
    *is_in_except = *is_in_branch = false;
    for (size_t i = py->block_count; i > 0; i--) {
        switch (py->blocks[i - 1].kind) {
        case UF_PYTHON_BLOCK_FUNCTION:
            return false;
        case UF_PYTHON_BLOCK_LOOP:
            return true;
        case UF_PYTHON_BLOCK_EXCEPT:
            *is_in_except = true;
            break;
        case UF_PYTHON_BLOCK_BRANCH:
            *is_in_branch = true;
            break;
        case UF_PYTHON_BLOCK_PLAIN:
            break;
        }
    }
    return false;
}

/* torch.backends.cuda.max_split_size_mb = 128: the corrected line, if the value is a constant. */
static const char *settings_line(uf_python *py, const char *option, size_t value_index, size_t end)
{
    uf_check *check = py->scan->check;
    const uf_python_token *value = &py->tokens[value_index];
    if (value_index + 1 != end || value->kind > UF_PYTHON_STRING) {
        return NULL;
    }
    const uf_python_name *name =
        value->kind == UF_PYTHON_NAME ? uf__python_name(py, value->text) : NULL;
    if (value->kind == UF_PYTHON_NAME && name == NULL && strcmp(value->text, "True") != 0 &&
        strcmp(value->text, "False") != 0) {
        return NULL;
    }
    const char *text =
        uf__findings_print(&check->findings, "%s:%s", option,
                           name != NULL && name->value != NULL ? name->value : value->text);
    uf_repair repair = {check->grammar, check->release, true, check->has_fraction};
    const char *fixed = uf__repair(&repair, text, &check->findings);
    return fixed == NULL || fixed[0] == '\0'
               ? NULL
               : uf__findings_print(&check->findings,
                                    "os.environ[\"PYTORCH_CUDA_ALLOC_CONF\"] = \"%s\"", fixed);
}

static const uf_conf_option *attribute_option(const char *name)
{
    size_t length = strlen(name);
    const uf_conf_option *option = uf__conf_option_find(name, length, UF_CONF_2_11, 0);
    option = option != NULL ? option : uf__conf_option_nearest(name, length, UF_CONF_2_11, 0);
    bool is_own = option != NULL && (option->id != UF_CONF_BACKEND || strcmp(name, "backend") == 0);
    return is_own ? option : NULL;
}

static void say_attribute(uf_python *py, size_t index, const char *chain,
                          const uf_conf_option *option, const char *fix)
{
    uf_findings *texts = &py->scan->check->findings;
    bool is_in_except, is_in_branch;
    bool is_sweep = is_loop_around(py, &is_in_except, &is_in_branch);
    say(py, index, UF_FINDING_UNKNOWN_ATTRIBUTE, uf__findings_copy(texts, chain, strlen(chain)),
        uf__findings_print(texts,
                           "there is no such setting: this creates an attribute that nobody reads, "
                           "and nothing changes%s. %s is set by PYTORCH_CUDA_ALLOC_CONF, before "
                           "`import torch`",
                           is_sweep ? "; every pass of this loop measures the same thing" : "",
                           option->name),
        fix);
}

/* An assignment to an attribute of torch that is named like a setting. */
static void check_attribute(uf_python *py, uf_python_range range, size_t i)
{
    if (!uf__python_is(py, i, "=") || i == range.begin ||
        py->tokens[i - 1].kind != UF_PYTHON_NAME) {
        return;
    }
    char chain[200];
    uf__python_chain(py, range, i - 1, chain, sizeof chain);
    bool is_torch = strncmp(chain, "torch.", 6) == 0 || strncmp(chain, "backends.cuda.", 14) == 0 ||
                    strncmp(chain, "cuda.", 5) == 0;
    const uf_conf_option *option = attribute_option(py->tokens[i - 1].text);
    if (is_torch && option != NULL) {
        say_attribute(py, i - 1, chain, option, settings_line(py, option->name, i + 1, range.end));
    }
}

/* setattr(torch.backends.cuda, "max_split_size_mb", 128) */
static void check_setattr(uf_python *py, uf_python_range range, size_t i)
{
    size_t close = uf__python_close(py, range, i + 1);
    size_t comma = i + 2;
    while (comma < close && !uf__python_is(py, comma, ",")) {
        comma++;
    }
    if (!uf__python_is(py, i + 2, "torch") || comma + 2 >= close ||
        py->tokens[comma + 1].kind != UF_PYTHON_STRING) {
        return;
    }
    const uf_conf_option *option = attribute_option(py->tokens[comma + 1].text);
    if (option != NULL) {
        say_attribute(py, i, py->tokens[comma + 1].text, option,
                      settings_line(py, option->name, comma + 3, close));
    }
}

static bool is_amount(const uf_python *py, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++) {
        const uf_python_token *token = &py->tokens[i];
        if (uf__python_is(py, i, "**") || uf__python_is(py, i, "*") || uf__python_is(py, i, "<<") ||
            (token->kind == UF_PYTHON_NUMBER &&
             (strpbrk(token->text, ".eE") != NULL || strlen(token->text) > 6 ||
              strtoul(token->text, NULL, 10) >= DEVICE_INDEX_LIMIT))) {
            return true;
        }
    }
    return false;
}

static void check_query(uf_python *py, uf_python_range range, size_t i)
{
    static const char *const queries[] = {"memory_reserved",     "memory_allocated",
                                          "max_memory_reserved", "max_memory_allocated",
                                          "memory_cached",       "max_memory_cached"};
    char chain[200];
    uf__python_chain(py, range, i, chain, sizeof chain);
    bool is_query = false;
    for (size_t k = 0; k < sizeof queries / sizeof queries[0]; k++) {
        is_query = is_query || strcmp(py->tokens[i].text, queries[k]) == 0;
    }
    size_t close = uf__python_close(py, range, i + 1);
    if (!is_query || (strstr(chain, "cuda") == NULL && strchr(chain, '.') != NULL) ||
        (strchr(chain, '.') == NULL && !py->has_torch) || !is_amount(py, i + 2, close)) {
        return;
    }
    say(py, i, UF_FINDING_QUERY_NOT_SETTING,
        uf__findings_copy(&py->scan->check->findings, chain, strlen(chain)),
        "a query, no setting: its argument is the index of a device, so this raises an error "
        "(overflow, or no such device) and reserves nothing. To limit memory, use "
        "torch.cuda.set_per_process_memory_fraction",
        "");
}

static void check_empty_cache(uf_python *py, uf_python_range range, size_t i)
{
    char chain[200];
    bool is_in_except, is_in_branch;
    uf__python_chain(py, range, i, chain, sizeof chain);
    bool is_torch = strncmp(chain, "torch.", 6) == 0 || strncmp(chain, "cuda.", 5) == 0 ||
                    (strcmp(chain, "empty_cache") == 0 && py->has_torch);
    if (!is_torch || strstr(chain, ".mps.") != NULL || strstr(chain, ".xpu.") != NULL ||
        !is_loop_around(py, &is_in_except, &is_in_branch) || is_in_except) {
        return;
    }
    say(py, i, UF_FINDING_EMPTY_CACHE_IN_LOOP,
        uf__findings_copy(&py->scan->check->findings, chain, strlen(chain)),
        is_in_branch
            ? "in a loop, on a condition: whenever it runs, it waits for the GPU and the next step "
              "pays for its memory again. PyTorch gives its cache back by itself before it reports "
              "that memory is out; this helps other processes only"
            : "in a loop: every pass waits for the GPU and the next one pays for its memory again. "
              "PyTorch gives its cache back by itself before it reports that memory is out, so "
              "this "
              "prevents nothing; it helps other processes only",
        "");
}

static void check_fraction(uf_python *py, uf_python_range range, size_t i)
{
    size_t close = uf__python_close(py, range, i + 1);
    size_t at = i + 2;
    uf_findings *texts = &py->scan->check->findings;
    if (at + 1 < close && uf__python_is(py, at, "fraction") && uf__python_is(py, at + 1, "=")) {
        at += 2;
    }
    bool is_literal = at < close && py->tokens[at].kind == UF_PYTHON_NUMBER &&
                      (at + 1 == close || uf__python_is(py, at + 1, ","));
    const char *text = py->tokens[at].text;
    bool is_integer = is_literal && strpbrk(text, ".eEjJ") == NULL;
    double value = is_literal ? strtod(text, NULL) : 0.5;
    if (is_integer || value > 1.0) {
        double meant = value > 1.0 && value <= 100.0 ? value / 100.0 : value;
        const char *code = uf__python_code(py, at);
        const char *found = strstr(code, text);
        char number[32];
        snprintf(number, sizeof number, "%g%s", meant, meant == 1.0 || meant == 0.0 ? ".0" : "");
        say(py, i, UF_FINDING_FRACTION_ARGUMENT, "set_per_process_memory_fraction",
            uf__findings_print(texts,
                               "raises %s: the argument is a float from 0.0 to 1.0, the share of "
                               "the card, and not %s",
                               is_integer ? "TypeError" : "ValueError", text),
            found == NULL || meant > 1.0
                ? NULL
                : uf__findings_print(texts, "%.*s%s%s", (int)(found - code), code, number,
                                     found + strlen(text)));
        return;
    }
    /* before 2.10 an explicit 1.0 is a limit as well */
    if (value < 1.0 || py->scan->check->release < 210) {
        uf_setup setup = {.kind = UF_SETUP_FRACTION, .variable = UF_VARIABLE_NONE};
        setup.place = uf__python_place(py, i);
        uf__scan_add(py->scan, &setup);
    }
}

static void check_caching(uf_python *py, uf_python_range range, size_t i)
{
    size_t argument = i + 2 + (uf__python_is(py, i + 2, "value") ? 2 : 0);
    if (argument < range.end && uf__python_is(py, argument, "False")) {
        say(py, i, UF_FINDING_CACHING_OFF, "caching_allocator_enable",
            "switches the caching allocator off: every allocation is a cudaMalloc and every "
            "release "
            "a cudaFree that waits for the GPU, and all settings are without effect. For debugging "
            "only",
            "");
    }
}

/* A command line in a string or list that another program runs. */
static void check_command(uf_python *py, uf_python_range range, size_t i)
{
    uf_findings *texts = &py->scan->check->findings;
    size_t close = uf__python_close(py, range, i + 1);
    size_t first = i + 2;
    if (first >= close) {
        return;
    }
    if (uf__python_is(py, first, "[")) {
        const char *joined = "";
        size_t end = uf__python_close(py, range, first);
        for (size_t k = first; k < end; k++) {
            if (py->tokens[k].kind == UF_PYTHON_STRING && strlen(joined) < 1000) {
                joined = uf__findings_print(texts, "%s %s", joined, py->tokens[k].text);
            }
        }
        if (uf__scan_is_reset(joined)) {
            uf__scan_add_reset(py->scan, uf__python_place(py, first).line);
            texts->items[texts->count - (texts->count > 0)].place = uf__python_place(py, first);
        }
        return;
    }
    if (py->tokens[first].kind != UF_PYTHON_STRING || py->tokens[first].is_computed ||
        py->scan->depth >= UF_SCAN_DEPTH_MAX) {
        return;
    }
    uf_scan inner = *py->scan;
    uf_finding_place place = uf__python_place(py, first);
    inner.cell = place.cell;
    inner.first_line = place.line;
    inner.is_nested = true;
    inner.depth++;
    inner.lost = "set in a shell of its own that ends with this call; this program and later "
                 "commands never see it. Use os.environ, before `import torch`";
    uf__scan_shell(&inner, py->tokens[first].text);
}

/* ---- formulas ---- */

static bool has_prefix(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static uf_python_holds token_holds(const uf_python *py, size_t i)
{
    const uf_python_token *token = &py->tokens[i];
    if (token->kind == UF_PYTHON_STRING) {
        return has_prefix(token->text, "allocated_bytes") ? UF_PYTHON_HOLDS_ALLOCATED
               : has_prefix(token->text, "active_bytes")  ? UF_PYTHON_HOLDS_ACTIVE
                                                          : UF_PYTHON_HOLDS_OTHER;
    }
    if (token->kind != UF_PYTHON_NAME) {
        return UF_PYTHON_HOLDS_OTHER;
    }
    if (strcmp(token->text, "memory_allocated") == 0) {
        return UF_PYTHON_HOLDS_ALLOCATED;
    }
    if (strcmp(token->text, "memory_stats") == 0) {
        return UF_PYTHON_HOLDS_STATISTICS;
    }
    const uf_python_name *name = uf__python_name(py, token->text);
    if (name != NULL) {
        return name->holds;
    }
    static const char *const endings[] = {"",    "_bytes", "_memory", "_mem",
                                          "_mb", "_gb",    "_mib",    "_gib"};
    for (size_t k = 0; k < sizeof endings / sizeof endings[0] && py->has_torch; k++) {
        char word[32];
        snprintf(word, sizeof word, "allocated%s", endings[k]);
        if (strcmp(token->text, word) == 0) {
            return UF_PYTHON_HOLDS_ALLOCATED;
        }
        snprintf(word, sizeof word, "active%s", endings[k]);
        if (strcmp(token->text, word) == 0) {
            return UF_PYTHON_HOLDS_ACTIVE;
        }
    }
    return UF_PYTHON_HOLDS_OTHER;
}

/* What an expression holds; arithmetic but a division or product by a constant makes it another. */
static uf_python_holds range_holds(const uf_python *py, size_t begin, size_t end)
{
    uf_python_holds holds = UF_PYTHON_HOLDS_OTHER;
    for (size_t i = begin; i < end; i++) {
        uf_python_holds found = token_holds(py, i);
        if (uf__python_is(py, i, "-") || uf__python_is(py, i, "+")) {
            return UF_PYTHON_HOLDS_OTHER;
        }
        bool is_better = holds == UF_PYTHON_HOLDS_OTHER || holds == UF_PYTHON_HOLDS_STATISTICS;
        holds = found != UF_PYTHON_HOLDS_OTHER && is_better ? found : holds;
    }
    return holds;
}

static bool is_postfix(const uf_python *py, size_t i)
{
    return uf__python_is(py, i, ".") || uf__python_is(py, i, "(") || uf__python_is(py, i, "[");
}

/* The end of the operand that starts at `begin`: a name with what hangs on it. */
static size_t operand_end(const uf_python *py, uf_python_range range, size_t begin)
{
    size_t at = begin;
    if (at < range.end && uf__python_is(py, at, "(")) {
        at = uf__python_close(py, range, at);
    }
    at++;
    while (at < range.end && is_postfix(py, at)) {
        at = uf__python_is(py, at, ".") ? at + 2 : uf__python_close(py, range, at) + 1;
    }
    return at < range.end ? at : range.end;
}

/* The start of the operand whose last token is at end - 1. */
static size_t operand_begin(const uf_python *py, uf_python_range range, size_t end)
{
    size_t at = end;
    while (at > range.begin) {
        size_t last = at - 1;
        if (uf__python_is(py, last, ")") || uf__python_is(py, last, "]")) {
            int depth = 0;
            do {
                depth += uf__python_is(py, last, ")") || uf__python_is(py, last, "]");
                depth -= uf__python_is(py, last, "(") || uf__python_is(py, last, "[");
            } while (depth > 0 && last-- > range.begin);
            at = last <= range.begin ? range.begin : last;
        } else if (py->tokens[last].kind <= UF_PYTHON_STRING || uf__python_is(py, last, ".")) {
            at = last;
        } else {
            return at;
        }
        bool goes_on =
            at > range.begin && (uf__python_is(py, at - 1, ".") || uf__python_is(py, at, ".") ||
                                 uf__python_is(py, at, "(") || uf__python_is(py, at, "["));
        if (!goes_on) {
            return at;
        }
    }
    return range.begin;
}

static void check_formula(uf_python *py, uf_python_range range, size_t i)
{
    if (i == range.begin || i + 1 >= range.end) {
        return;
    }
    size_t right_end = operand_end(py, range, i + 1);
    size_t left_begin = operand_begin(py, range, i);
    bool is_difference = range_holds(py, left_begin, i) == UF_PYTHON_HOLDS_ALLOCATED &&
                         range_holds(py, i + 1, right_end) == UF_PYTHON_HOLDS_ACTIVE;
    bool is_one =
        py->tokens[i - 1].kind == UF_PYTHON_NUMBER && strtod(py->tokens[i - 1].text, NULL) == 1.0;
    bool is_share = is_one && right_end < range.end && uf__python_is(py, right_end, "/") &&
                    range_holds(py, i + 1, right_end) == UF_PYTHON_HOLDS_ACTIVE &&
                    range_holds(py, right_end + 1, operand_end(py, range, right_end + 1)) ==
                        UF_PYTHON_HOLDS_ALLOCATED;
    if (is_difference || is_share) {
        say(py, i, UF_FINDING_EMPTY_FORMULA, "allocated - active",
            "active memory is never less than allocated memory (it adds blocks that wait for other "
            "streams), so this is never positive and measures nothing. (reserved - active) / "
            "reserved is the cached share; inactive_split_bytes / reserved is what is stuck in "
            "partly filled segments",
            "(reserved - active) / reserved");
    }
}

static void check_statistic(uf_python *py, uf_python_range range, size_t i)
{
    bool is_looked_up = i > range.begin && strcmp(py->tokens[i].text, "max_split_size") == 0 &&
                        (uf__python_is(py, i - 1, "[") || uf__python_is(py, i - 1, "("));
    if (is_looked_up &&
        range_holds(py, operand_begin(py, range, i - 1), i - 1) == UF_PYTHON_HOLDS_STATISTICS) {
        say(py, i, UF_FINDING_FROZEN_STATISTIC, "memory_stats()[\"max_split_size\"]",
            "shows the value from when the device was initialised (-1: unlimited), not the current "
            "one",
            NULL);
    }
}

void uf__python_misuse(uf_python *py, uf_python_range range)
{
    static const char *const runners[] = {"system", "run",          "call",      "Popen",
                                          "popen",  "check_output", "getoutput", "check_call"};
    if (uf__python_is(py, range.begin, "def")) {
        return;
    }
    for (size_t i = range.begin; i < range.end; i++) {
        const uf_python_token *token = &py->tokens[i];
        if (token->kind == UF_PYTHON_STRING) {
            check_statistic(py, range, i);
        } else if (token->kind == UF_PYTHON_OPERATOR) {
            check_attribute(py, range, i);
            if (strcmp(token->text, "-") == 0) {
                check_formula(py, range, i);
            }
        } else if (uf__python_is_call(py, range, i)) {
            check_query(py, range, i);
            if (strcmp(token->text, "setattr") == 0) {
                check_setattr(py, range, i);
            } else if (strcmp(token->text, "empty_cache") == 0) {
                check_empty_cache(py, range, i);
            } else if (strcmp(token->text, "set_per_process_memory_fraction") == 0) {
                check_fraction(py, range, i);
            } else if (strcmp(token->text, "caching_allocator_enable") == 0) {
                check_caching(py, range, i);
            }
            for (size_t k = 0; k < sizeof runners / sizeof runners[0]; k++) {
                if (strcmp(token->text, runners[k]) == 0) {
                    check_command(py, range, i);
                }
            }
        }
    }
}

/* ---- what names hold ---- */

static void remember(uf_python *py, const char *name, size_t begin, size_t end)
{
    uf_python_name *entry = NULL;
    uf_python_name found = {.name = name, .holds = range_holds(py, begin, end)};
    for (size_t i = 0; i < py->name_count; i++) {
        entry = strcmp(py->names[i].name, name) == 0 ? &py->names[i] : entry;
    }
    const uf_python_token *only = begin + 1 == end ? &py->tokens[begin] : NULL;
    if (only != NULL && only->kind == UF_PYTHON_STRING && !only->is_computed && !only->is_bytes &&
        py->scope == 0) {
        found.value = only->text;
    }
    bool is_argument = false; /* of a command line: its default decides nothing here */
    for (size_t i = begin; i < end; i++) {
        const uf_python_token *token = &py->tokens[i];
        is_argument = is_argument || uf__python_is(py, i, "add_argument");
        found.is_device = found.is_device || (token->kind == UF_PYTHON_STRING && !is_argument &&
                                              strncmp(token->text, "cuda", 4) == 0 &&
                                              (token->text[4] == '\0' || token->text[4] == ':'));
    }
    if (only != NULL && only->kind == UF_PYTHON_NAME) {
        const uf_python_name *other = uf__python_name(py, only->text);
        found.is_device = other != NULL && other->is_device;
        found.value = other == NULL ? NULL : other->value;
    }
    if (entry == NULL && py->name_count < UF_PYTHON_NAME_MAX) {
        entry = &py->names[py->name_count++];
    }
    if (entry != NULL) {
        *entry = found;
    }
}

static size_t next_comma(const uf_python *py, size_t begin, size_t end)
{
    uf_python_range range = {begin, end};
    for (size_t i = begin; i < end; i++) {
        if (uf__python_is(py, i, ",")) {
            return i;
        }
        if (uf__python_is(py, i, "(") || uf__python_is(py, i, "[") || uf__python_is(py, i, "{")) {
            i = uf__python_close(py, range, i);
        }
    }
    return end;
}

void uf__python_remember(uf_python *py, uf_python_range range)
{
    size_t equals = range.begin;
    while (equals < range.end &&
           (py->tokens[equals].kind == UF_PYTHON_NAME || uf__python_is(py, equals, ","))) {
        equals++;
    }
    if (equals == range.begin || equals >= range.end || !uf__python_is(py, equals, "=")) {
        return;
    }
    size_t name = range.begin, value = equals + 1;
    bool is_single = equals == range.begin + 1;
    while (name < equals) {
        size_t end = is_single ? range.end : next_comma(py, value, range.end);
        if (py->tokens[name].kind == UF_PYTHON_NAME && value < range.end) {
            remember(py, py->tokens[name].text, value, end);
        }
        name += 2;
        value = end + 1;
    }
}
