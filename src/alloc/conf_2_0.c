/* SPDX-License-Identifier: MIT
 *
 * The grammar of 2.0 to 2.9: the same tokens as later (only the space is dropped), but separators
 * are checked, integers have 32 bits with a sign, and one reader knows all options. No lock. */
#include "alloc/conf_run.h"

#include <string.h>

static uf_status fail_separator(uf__conf_run *run, const uf_conf_option *option, size_t index,
                                char separator)
{
    char excerpt[UF__CONF_EXCERPT_CAPACITY];
    if (!uf__conf_has_token(run, index)) {
        return uf__conf_fail(run, UF_CONF_FAULT_MISSING_TOKEN, UF_CONF_RAISES_RUNTIME_ERROR, option,
                             index, "the string ends where '%c' and the value of %s must stand",
                             separator, option->name);
    }
    return uf__conf_fail(
        run, UF_CONF_FAULT_SEPARATOR, UF_CONF_RAISES_RUNTIME_ERROR, option, index,
        "'%s' stands where a '%c' must stand, behind %s of %s%s",
        uf__conf_excerpt(excerpt, run->tokens.items[index].word), separator,
        separator == ':' ? "the name" : "the value", option->name,
        strchr(run->text, ';') == NULL ? "" : "; options are separated by ',' and not by ';'");
}

/* Reads the option whose key is at *index; *index moves to the value's last token. */
static uf_status read_option(uf__conf_run *run, const uf_conf_option *option, size_t *index)
{
    size_t key_index = *index;
    size_t value_index = key_index + 2;
    if (!uf__conf_is_token(run, key_index + 1, ":")) {
        return fail_separator(run, option, key_index + 1, ':');
    }
    if (!uf__conf_has_token(run, value_index)) {
        return uf__conf_fail_missing(run, option, "a value");
    }
    size_t end_index = value_index;
    uf_status status = option->type == UF_CONF_TYPE_DIVISIONS
                           ? uf__conf_set_divisions(run, option, &end_index)
                           : uf__conf_set_value(run, option, value_index);
    if (status == UF_OK) {
        uf__conf_accept(run, option, key_index, value_index, end_index);
        *index = end_index;
    }
    return status;
}

uf_status uf__conf_walk_2_0(uf__conf_run *run)
{
    uf_conf *conf = run->conf;
    conf->max_split_size_bytes = UF_UNLIMITED;
    conf->garbage_collection_threshold = 0.0;
    memset(conf->roundup_power2_divisions, 0, sizeof conf->roundup_power2_divisions);
    if (run->reading->is_at_import) {
        conf->is_async_backend = false;
    }
    for (size_t i = 0; i < run->tokens.count; i++) {
        const char *word = run->tokens.items[i].word;
        const uf_conf_option *option = uf__conf_run_find(run, word, strlen(word));
        if (option == NULL) {
            return uf__conf_fail_unknown(run, i);
        }
        run->oddities = 0;
        uf_status status = read_option(run, option, &i);
        if (status != UF_OK) {
            return status;
        }
        if (uf__conf_has_token(run, i + 1)) {
            i++;
            if (!uf__conf_is_token(run, i, ",")) {
                return fail_separator(run, option, i, ',');
            }
        }
    }
    return UF_OK;
}
