/* SPDX-License-Identifier: MIT
 *
 * The grammar of 2.10 and later. Input is read as key, separator, value, separator, key, ... and
 * the separators are stepped over without a look. Two readers walk over the whole string, each
 * with its own options; each skips the other's. No lock. */
#include "alloc/conf_run.h"

#include <string.h>

#include "base/error.h"
#include "base/size.h"

/* Moves *index from a key to the last token of its value. */
static uf_status skip_value(uf__conf_run *run, const uf_conf_option *option, size_t *index)
{
    size_t at = *index + 2;
    if (!uf__conf_has_token(run, at)) {
        return uf__conf_fail_missing(run, option, "a value");
    }
    if (uf__conf_is_token(run, at, "[")) {
        while (uf__conf_has_token(run, at) && !uf__conf_is_token(run, at, "]")) {
            at++;
        }
        if (!uf__conf_has_token(run, at)) {
            return uf__conf_fail_missing(run, option, "the ']' that ends the list");
        }
    }
    *index = at;
    return UF_OK;
}

/* Reads the value behind the key at *index and moves *index to its last token. */
static uf_status read_value(uf__conf_run *run, const uf_conf_option *option, size_t *index)
{
    size_t key_index = *index;
    size_t value_index = key_index + 2;
    if (!uf__conf_has_token(run, value_index)) {
        return uf__conf_fail_missing(run, option, "a value");
    }
    if (!uf__conf_is_token(run, key_index + 1, ":")) {
        run->oddities |= UF_CONF_ODD_SEPARATOR;
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

/* large_segment_size_mb is looked for first, wherever it stands: other minima depend on it. */
static uf_status read_large_segment(uf__conf_run *run)
{
    const uf_conf_option *option = uf__conf_option_at(UF_CONF_LARGE_SEGMENT_SIZE);
    for (size_t i = 0; i < run->tokens.count; i++) {
        if (uf__conf_is_token(run, i, option->name)) {
            uf_status status = read_value(run, option, &i);
            if (status != UF_OK) {
                return status;
            }
        }
    }
    return UF_OK;
}

static uf_status walk_part(uf__conf_run *run, uf_conf_part part)
{
    for (size_t i = 0; i < run->tokens.count; i += 2) { /* the separator, whatever it is, too */
        const char *word = run->tokens.items[i].word;
        const uf_conf_option *option = uf__conf_run_find(run, word, strlen(word));
        if (option == NULL) {
            return uf__conf_fail_unknown(run, i);
        }
        bool is_skipped = option->part != part || option->id == UF_CONF_LARGE_SEGMENT_SIZE;
        run->oddities = 0;
        if (!is_skipped && i > 0 && !uf__conf_is_token(run, i - 1, ",")) {
            run->oddities |= UF_CONF_ODD_SEPARATOR;
        }
        uf_status status = is_skipped ? skip_value(run, option, &i) : read_value(run, option, &i);
        if (status != UF_OK) {
            return status;
        }
    }
    return UF_OK;
}

static uf_status walk_generic(uf__conf_run *run)
{
    uf_conf *conf = run->conf;
    conf->max_split_size_bytes = UF_UNLIMITED;
    conf->garbage_collection_threshold = 0.0;
    memset(conf->roundup_power2_divisions, 0, sizeof conf->roundup_power2_divisions);
    if (uf__conf_option_exists(uf__conf_option_at(UF_CONF_LARGE_SEGMENT_SIZE),
                               run->reading->grammar, run->reading->release)) {
        uf_status status = read_large_segment(run);
        if (status != UF_OK) {
            return status;
        }
        conf->max_non_split_rounding_bytes = conf->large_segment_bytes;
    }
    return walk_part(run, UF_CONF_PART_GENERIC);
}

/* The look for `backend` at import, over tokens that are there already. */
static uf_status scan_backend(uf__conf_run *run, bool *is_async)
{
    *is_async = false;
    for (size_t i = 0; i < run->tokens.count; i += 2) {
        bool is_backend = uf__conf_is_token(run, i, "backend");
        size_t key_index = i;
        uf_status status = skip_value(run, NULL, &i);
        if (status != UF_OK) {
            run->report->exception = UF_CONF_ABORTS_IMPORT;
            return uf__error_set(run->error, UF_ERROR_CONF,
                                 "settings string, offset %zu: a value or a ']' is missing. "
                                 "PyTorch 2.10 and later abort in `import torch` for it (exit "
                                 "code 134)%s",
                                 run->report->offset_bytes,
                                 strchr(run->text, ';') == NULL
                                     ? "; every option needs a ':' and a value"
                                     : "; options are separated by ',' and not by ';'");
        }
        if (is_backend) {
            *is_async = uf__conf_is_token(run, key_index + 2, "cudaMallocAsync");
            return UF_OK;
        }
    }
    return UF_OK;
}

uf_status uf__conf_walk_2_10(uf__conf_run *run)
{
    if (!run->reading->is_at_import) {
        uf_status status = walk_generic(run);
        return status == UF_OK ? walk_part(run, UF_CONF_PART_CUDA) : status;
    }
    bool is_async;
    uf_status status = scan_backend(run, &is_async);
    if (status != UF_OK) {
        return status;
    }
    run->conf->is_async_backend = is_async;
    status = walk_part(run, UF_CONF_PART_CUDA);
    return status == UF_OK ? walk_generic(run) : status;
}

uf_status uf__conf_backend_scan(const char *text, bool *is_async, uf_error *error)
{
    uf_conf conf;
    uf_conf_report report = {0};
    uf_conf_reading reading = {.grammar = UF_CONF_2_11, .is_at_import = true};
    bool found = false;
    uf__conf_init(&conf);
    if (text == NULL) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT, "the settings string is NULL");
    }
    uf__conf_run run = {
        .conf = &conf, .reading = &reading, .report = &report, .error = error, .text = text};
    uf_status status = uf__conf_lex(text, UF__CONF_LEX_ANY_BLANK, &run.tokens, error);
    if (status == UF_OK) {
        status = scan_backend(&run, &found);
    }
    uf__conf_lex_fini(&run.tokens);
    if (status == UF_OK && is_async != NULL) {
        *is_async = found;
    }
    return status;
}
