/* SPDX-License-Identifier: MIT
 *
 * What a user is told about a settings string: the faults, in our own words, and the report of
 * accepted items. No lock. */
#include "alloc/conf_run.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

#define DETAIL_CAPACITY 460

const char *uf__conf_excerpt(char buffer[UF__CONF_EXCERPT_CAPACITY], const char *word)
{
    size_t length = 0;
    for (; word[length] != '\0' && length < UF__CONF_EXCERPT_CAPACITY - 4; length++) {
        char c = word[length];
        buffer[length] = c >= ' ' && c <= '~' ? c : '?';
    }
    snprintf(buffer + length, UF__CONF_EXCERPT_CAPACITY - length, "%s",
             word[length] == '\0' ? "" : "...");
    return buffer;
}

uf_status uf__conf_fail(uf__conf_run *run, uf_conf_fault fault, uf_conf_exception exception,
                        const uf_conf_option *option, size_t index, const char *format, ...)
{
    char detail[DETAIL_CAPACITY];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(detail, sizeof detail, format, arguments);
    va_end(arguments);
    uf_conf_report *report = run->report;
    report->fault = fault;
    report->exception = uf__conf_is_old(run) ? UF_CONF_RAISES_RUNTIME_ERROR : exception;
    report->option = option == NULL ? UF_CONF_OPTION_NONE : option->id;
    report->offset_bytes =
        uf__conf_has_token(run, index) ? run->tokens.items[index].start : strlen(run->text);
    return uf__error_set(run->error, UF_ERROR_CONF, "settings string, offset %zu: %s",
                         report->offset_bytes, detail);
}

uf_status uf__conf_fail_missing(uf__conf_run *run, const uf_conf_option *option, const char *what)
{
    char range[DETAIL_CAPACITY / 2] = "";
    if (option != NULL) {
        uf__conf_option_range(option, run->reading->grammar, run->conf->large_segment_bytes, range,
                              sizeof range);
    }
    return uf__conf_fail(run, UF_CONF_FAULT_MISSING_TOKEN, UF_CONF_RAISES_RUNTIME_ERROR, option,
                         run->tokens.count, "the string ends where %s%s%s must stand%s%s", what,
                         option == NULL ? "" : " of ", option == NULL ? "" : option->name,
                         option == NULL ? "" : "; allowed is ", range);
}

uf_status uf__conf_fail_range(uf__conf_run *run, const uf_conf_option *option, size_t index)
{
    char excerpt[UF__CONF_EXCERPT_CAPACITY];
    char range[DETAIL_CAPACITY / 2];
    uf__conf_option_range(option, run->reading->grammar, run->conf->large_segment_bytes, range,
                          sizeof range);
    return uf__conf_fail(run, UF_CONF_FAULT_RANGE, UF_CONF_RAISES_VALUE_ERROR, option, index,
                         "%s does not take '%s'; allowed is %s", option->name,
                         uf__conf_excerpt(excerpt, run->tokens.items[index].word), range);
}

static void list_names(const uf__conf_run *run, char *buffer, size_t capacity)
{
    size_t length = 0;
    buffer[0] = '\0';
    for (size_t i = 0; i < UF_CONF_OPTION_COUNT && length < capacity; i++) {
        const uf_conf_option *option = uf__conf_option_at(i);
        if (uf__conf_option_exists(option, run->reading->grammar, run->reading->release)) {
            length += (size_t)snprintf(buffer + length, capacity - length, "%s%s",
                                       length == 0 ? "" : ", ", option->name);
        }
    }
}

/* Writes the cure for an unknown key. */
static void advise_unknown(const uf__conf_run *run, const char *word, char *buffer, size_t capacity)
{
    const char *equals = strchr(word, '=');
    size_t name_length = equals == NULL ? strlen(word) : (size_t)(equals - word);
    const uf_conf_option *known = uf__conf_option_find(word, name_length, UF_CONF_2_11, 0);
    const uf_conf_option *near =
        uf__conf_option_nearest(word, name_length, run->reading->grammar, run->reading->release);
    if (strchr(",:[]", word[0]) != NULL) {
        snprintf(buffer, capacity, "an option's name must stand here; remove the extra '%c'",
                 word[0]);
    } else if (word[0] == '"' || word[0] == '\'') {
        snprintf(buffer, capacity,
                 "the quotes are part of the string and belong outside of it; remove them");
    } else if (known != NULL &&
               !uf__conf_option_exists(known, run->reading->grammar, run->reading->release)) {
        snprintf(buffer, capacity, "it is known from PyTorch %u.%u on; remove it",
                 known->since / 100u, known->since % 100u);
    } else if (known != NULL && equals != NULL) {
        snprintf(buffer, capacity, "write %s:VALUE, with ':' instead of '='", known->name);
    } else if (near != NULL && strcmp(near->name, word) != 0) {
        snprintf(buffer, capacity, "did you mean '%s'?", near->name);
    } else if (strchr(run->text, ';') != NULL) {
        snprintf(buffer, capacity, "options are separated by ',' and not by ';'");
    } else {
        char names[DETAIL_CAPACITY - 60];
        list_names(run, names, sizeof names);
        snprintf(buffer, capacity, "known are %s", names);
    }
}

uf_status uf__conf_fail_unknown(uf__conf_run *run, size_t index)
{
    char excerpt[UF__CONF_EXCERPT_CAPACITY];
    char advice[DETAIL_CAPACITY - 20];
    const char *word = run->tokens.items[index].word;
    advise_unknown(run, word, advice, sizeof advice);
    return uf__conf_fail(run, UF_CONF_FAULT_UNKNOWN_OPTION, UF_CONF_RAISES_VALUE_ERROR, NULL, index,
                         "'%s' is no option; %s", uf__conf_excerpt(excerpt, word), advice);
}

void uf__conf_accept_item(uf__conf_run *run, uf_conf_item *item)
{
    item->oddities |= run->oddities;
    if (item->option != UF_CONF_OPTION_NONE) {
        uint32_t bit = UINT32_C(1) << item->option;
        item->oddities |= (run->report->named & bit) != 0 ? UF_CONF_ODD_REPEATED : 0;
        run->report->named |= bit;
    }
    run->report->oddities |= item->oddities;
    run->oddities = 0;
    if (run->reading->on_item != NULL) {
        run->reading->on_item(run->reading->context, item);
    }
}

void uf__conf_accept(uf__conf_run *run, const uf_conf_option *option, size_t key_index,
                     size_t value_index, size_t end_index)
{
    const uf__conf_token *tokens = run->tokens.items;
    uf_conf_item item = {
        .option = option->id,
        .offset_bytes = tokens[key_index].start,
        .value_offset_bytes = tokens[value_index].start,
        .end_offset_bytes = tokens[end_index].end,
    };
    for (size_t i = key_index; i <= end_index; i++) {
        item.oddities |= tokens[i].has_inner_blank ? UF_CONF_ODD_INNER_BLANK : 0;
    }
    uf__conf_accept_item(run, &item);
}
