/* SPDX-License-Identifier: MIT
 *
 * Settings: defaults, entry points of the parsers, releases. No lock. */
#include "alloc/conf.h"

#include <string.h>

#include "alloc/conf_run.h"
#include "alloc/rounding.h"
#include "base/error.h"

void uf__conf_init(uf_conf *conf)
{
    memset(conf, 0, sizeof *conf);
    conf->max_split_size_bytes = UF_UNLIMITED;
    conf->max_non_split_rounding_bytes = UF_LARGE_SEGMENT_BYTES;
    conf->large_segment_bytes = UF_LARGE_SEGMENT_BYTES;
    conf->per_process_memory_fraction = 1.0;
    conf->pinned_num_register_threads = 1;
}

uf_status uf__conf_read(uf_conf *conf, const char *text, const uf_conf_reading *reading,
                        uf_conf_report *report, uf_error *error)
{
    uf_conf_report local;
    if (report == NULL) {
        report = &local;
    }
    memset(report, 0, sizeof *report);
    report->option = UF_CONF_OPTION_NONE;
    if (text == NULL) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT, "the settings string is NULL");
    }
    uf__conf_run run = {
        .conf = conf, .reading = reading, .report = report, .error = error, .text = text};
    uf__conf_lexing lexing = reading->grammar == UF_CONF_2_0    ? UF__CONF_LEX_SPACE_ONLY
                             : reading->grammar == UF_CONF_1_10 ? UF__CONF_LEX_ITEMS
                                                                : UF__CONF_LEX_ANY_BLANK;
    uf_status status = uf__conf_lex(text, lexing, &run.tokens, error);
    if (status != UF_OK) {
        return status;
    }
    switch (reading->grammar) {
    case UF_CONF_2_11:
    case UF_CONF_2_10:
        status = uf__conf_walk_2_10(&run);
        break;
    case UF_CONF_2_0:
        status = uf__conf_walk_2_0(&run);
        break;
    case UF_CONF_1_10:
        status = uf__conf_walk_1_10(&run);
        break;
    }
    uf__conf_lex_fini(&run.tokens);
    return status;
}

uf_status uf__conf_parse(uf_conf *conf, const char *text, uf_conf_grammar grammar, uf_error *error)
{
    uf_conf_reading reading = {.grammar = grammar};
    return uf__conf_read(conf, text, &reading, NULL, error);
}

/* Reads up to three digits; *at moves behind them. */
static bool read_part(const char **at, unsigned *part)
{
    const char *start = *at;
    *part = 0;
    while (**at >= '0' && **at <= '9' && *at - start < 3) {
        *part = *part * 10 + (unsigned)(**at - '0');
        ++*at;
    }
    return *at != start;
}

uf_status uf__conf_release_find(const char *version, uf_conf_grammar *grammar, uint16_t *release,
                                uf_error *error)
{
    unsigned major = 0, minor = 0;
    const char *at = version == NULL ? "" : version + (version[0] == 'v');
    bool is_version = read_part(&at, &major) && *at == '.' && (at++, read_part(&at, &minor)) &&
                      (*at == '\0' || strchr(".+-_abr", *at) != NULL) && major < 100 && minor < 100;
    if (!is_version) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "'%.40s' is no PyTorch version; give it as 2.11 or 2.9.1",
                             version == NULL ? "" : version);
    }
    unsigned number = major * 100 + minor;
    if (number < 110) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "PyTorch %u.%u has no settings string; the first release with one is "
                             "1.10",
                             major, minor);
    }
    *release = (uint16_t)number;
    *grammar = number >= 211   ? UF_CONF_2_11
               : number == 210 ? UF_CONF_2_10
               : number >= 200 ? UF_CONF_2_0
                               : UF_CONF_1_10;
    return UF_OK;
}

uf_status uf__conf_grammar_find(const char *version, uf_conf_grammar *grammar, uf_error *error)
{
    uint16_t release;
    return uf__conf_release_find(version, grammar, &release, error);
}
