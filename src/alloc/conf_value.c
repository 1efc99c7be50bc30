/* SPDX-License-Identifier: MIT
 *
 * One option's value, by its type in the table. No lock. */
#include "alloc/conf_run.h"

#include <string.h>

#include "base/size.h"

static uf_status fail_number(uf__conf_run *run, const uf_conf_option *option, size_t index,
                             uf__conf_number number)
{
    char excerpt[UF__CONF_EXCERPT_CAPACITY];
    char range[200];
    bool is_overflow = number == UF__CONF_NUMBER_OVERFLOW;
    uf__conf_option_range(option, run->reading->grammar, run->conf->large_segment_bytes, range,
                          sizeof range);
    return uf__conf_fail(
        run, is_overflow ? UF_CONF_FAULT_NUMBER_OVERFLOW : UF_CONF_FAULT_NOT_A_NUMBER,
        is_overflow ? UF_CONF_RAISES_INDEX_ERROR : UF_CONF_RAISES_VALUE_ERROR, option, index,
        "%s does not take '%s', which %s; allowed is %s", option->name,
        uf__conf_excerpt(excerpt, run->tokens.items[index].word),
        is_overflow ? "is out of the range of its type" : "does not start with a number", range);
}

uf_status uf__conf_integer(uf__conf_run *run, const uf_conf_option *option, size_t index,
                           uint64_t *value)
{
    const char *word = run->tokens.items[index].word;
    uf__conf_number number = uf__conf_is_old(run)
                                 ? uf__conf_read_signed32(word, value, &run->oddities)
                                 : uf__conf_read_unsigned64(word, value, &run->oddities);
    return number == UF__CONF_NUMBER_OK ? UF_OK : fail_number(run, option, index, number);
}

static uf_status set_integer(uf__conf_run *run, const uf_conf_option *option, size_t index,
                             uint64_t *field)
{
    uint64_t value;
    uf_status status = uf__conf_integer(run, option, index, &value);
    if (status != UF_OK) {
        return status;
    }
    if (value <
        uf__conf_option_minimum(option, run->reading->grammar, run->conf->large_segment_bytes)) {
        return uf__conf_fail_range(run, option, index);
    }
    if (option->type == UF_CONF_TYPE_POWER2 && (!uf__is_power2(value) || value > option->maximum)) {
        return uf__conf_fail_range(run, option, index);
    }
    if (value > option->maximum) {
        value = option->maximum;
        run->oddities |= UF_CONF_ODD_CLAMPED;
    }
    *field = option->type == UF_CONF_TYPE_MIB ? value * UF_MIB : value;
    return UF_OK;
}

static uf_status set_share(uf__conf_run *run, const uf_conf_option *option, size_t index,
                           double *field)
{
    double value;
    uf__conf_number number =
        uf__conf_read_double(run->tokens.items[index].word, &value, &run->oddities);
    if (number != UF__CONF_NUMBER_OK) {
        return fail_number(run, option, index, number);
    }
    bool is_allowed =
        option->is_open_range ? value > 0.0 && value < 1.0 : value >= 0.0 && value <= 1.0;
    if (!is_allowed) {
        return uf__conf_fail_range(run, option, index);
    }
    *field = value;
    return UF_OK;
}

static uf_status set_boolean(uf__conf_run *run, const uf_conf_option *option, size_t index,
                             bool *field)
{
    bool is_true = uf__conf_is_token(run, index, "True");
    if (!is_true && !uf__conf_is_token(run, index, "False")) {
        char excerpt[UF__CONF_EXCERPT_CAPACITY];
        return uf__conf_fail(run, UF_CONF_FAULT_BOOLEAN, UF_CONF_RAISES_VALUE_ERROR, option, index,
                             "%s does not take '%s'; allowed is True or False, spelt like that",
                             option->name,
                             uf__conf_excerpt(excerpt, run->tokens.items[index].word));
    }
    *field = is_true;
    return UF_OK;
}

static uf_status set_backend(uf__conf_run *run, const uf_conf_option *option, size_t index,
                             bool *field)
{
    bool is_async = uf__conf_is_token(run, index, "cudaMallocAsync");
    char excerpt[UF__CONF_EXCERPT_CAPACITY];
    const char *word = uf__conf_excerpt(excerpt, run->tokens.items[index].word);
    if (!is_async && !uf__conf_is_token(run, index, "native")) {
        return uf__conf_fail(run, UF_CONF_FAULT_BACKEND, UF_CONF_RAISES_VALUE_ERROR, option, index,
                             "there is no backend '%s'; allowed is native or cudaMallocAsync",
                             word);
    }
    if (uf__conf_is_old(run) && run->reading->is_at_import) {
        *field = is_async;
    }
    if (*field != is_async) {
        return uf__conf_fail(run, UF_CONF_FAULT_BACKEND, UF_CONF_RAISES_RUNTIME_ERROR, option,
                             index,
                             "backend:%s comes too late, %s was chosen when torch was imported; "
                             "set it in the environment before that",
                             word, *field ? "cudaMallocAsync" : "native");
    }
    return UF_OK;
}

uf_status uf__conf_set_value(uf__conf_run *run, const uf_conf_option *option, size_t value_index)
{
    void *field = (char *)run->conf + option->offset;
    switch (option->type) {
    case UF_CONF_TYPE_MIB:
    case UF_CONF_TYPE_INTEGER:
    case UF_CONF_TYPE_POWER2:
        return set_integer(run, option, value_index, field);
    case UF_CONF_TYPE_SHARE:
        return set_share(run, option, value_index, field);
    case UF_CONF_TYPE_BOOLEAN:
        return set_boolean(run, option, value_index, field);
    case UF_CONF_TYPE_BACKEND:
        return set_backend(run, option, value_index, field);
    case UF_CONF_TYPE_DIVISIONS:
        break;
    }
    return uf__conf_set_all_divisions(run, option, value_index);
}
