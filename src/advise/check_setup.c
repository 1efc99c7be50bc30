/* SPDX-License-Identifier: MIT
 *
 * Set-ups, the names of variables, and lines with a corrected value. No lock. */
#include "advise/check_setup.h"

#include <stdlib.h>
#include <string.h>

#include "base/spelling.h"

static const char *const variable_names[UF_VARIABLE_COUNT] = {
    [UF_VARIABLE_CUDA] = "PYTORCH_CUDA_ALLOC_CONF",
    [UF_VARIABLE_HIP] = "PYTORCH_HIP_ALLOC_CONF",
    [UF_VARIABLE_GENERIC] = "PYTORCH_ALLOC_CONF",
    [UF_VARIABLE_NO_CACHING] = "PYTORCH_NO_CUDA_MEMORY_CACHING",
};

void uf__setups_fini(uf_setups *setups)
{
    free(setups->items);
    memset(setups, 0, sizeof *setups);
}

void uf__setups_add(uf_setups *setups, uf_findings *findings, const uf_setup *setup)
{
    if (setups->count == setups->capacity) {
        size_t capacity = setups->capacity == 0 ? 16 : setups->capacity * 2;
        uf_setup *items = realloc(setups->items, capacity * sizeof *items);
        if (items == NULL) {
            findings->has_failed = true;
            return;
        }
        setups->items = items;
        setups->capacity = capacity;
    }
    setups->items[setups->count++] = *setup;
}

const char *uf__variable_name(uf_variable variable)
{
    return variable < UF_VARIABLE_COUNT ? variable_names[variable] : "";
}

static bool contains(const char *text, size_t length, const char *word)
{
    return memmem(text, length, word, strlen(word)) != NULL;
}

/* Real variables of PyTorch that look like ours, and those of other back ends. */
static bool is_other_variable(const char *name, size_t length)
{
    static const char *const names[] = {
        "PYTORCH_NVML_BASED_CUDA_CHECK", "PYTORCH_CUDA_ALLOC_CONF_OLD",  "PYTORCH_NPU_ALLOC_CONF",
        "PYTORCH_XPU_ALLOC_CONF",        "PYTORCH_MPS_ALLOC_CONF",       "PYTORCH_MUSA_ALLOC_CONF",
        "PYTORCH_MLU_ALLOC_CONF",        "PYTORCH_NO_HIP_MEMORY_CACHING"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0) {
            return true;
        }
    }
    return false;
}

uf_variable uf__variable_find(const char *name, size_t length, const char **meant)
{
    if (length < 12 || length > UF_SPELLING_MAX) {
        return UF_VARIABLE_NONE;
    }
    for (size_t i = 0; i < UF_VARIABLE_COUNT; i++) {
        if (strlen(variable_names[i]) == length && memcmp(variable_names[i], name, length) == 0) {
            return (uf_variable)i;
        }
    }
    static const char hip_no_caching[] = "PYTORCH_NO_HIP_MEMORY_CACHING";
    if (length == sizeof hip_no_caching - 1 && memcmp(name, hip_no_caching, length) == 0) {
        return UF_VARIABLE_NO_CACHING;
    }
    if (is_other_variable(name, length)) {
        return UF_VARIABLE_NONE;
    }
    size_t best = 5;
    uf_variable near = UF_VARIABLE_NONE;
    for (size_t i = 0; i < UF_VARIABLE_COUNT; i++) {
        size_t distance = uf__spelling_distance(name, length, variable_names[i]);
        if (distance < best) {
            best = distance;
            near = (uf_variable)i;
        }
    }
    bool is_conf = contains(name, length, "CONF") || contains(name, length, "conf");
    /* CUDA_ALLOC_CONF, TORCH_CUDA_ALLOC_CONF, PYTORCH_CUDA_ALLOCATOR_CONFIG ... */
    if (near == UF_VARIABLE_NONE && is_conf && contains(name, length, "CUDA_ALLOC")) {
        near = UF_VARIABLE_CUDA;
    }
    if (near == UF_VARIABLE_NONE) {
        return UF_VARIABLE_NONE;
    }
    if (meant != NULL) {
        *meant = variable_names[near];
    }
    return UF_VARIABLE_MISSPELT;
}

static bool is_plain(const char *value)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:,.";
    return value[strspn(value, plain)] == '\0';
}

const char *uf__setup_fix(uf_findings *findings, const uf_setup *setup, const char *value)
{
    if (value == NULL) {
        return NULL;
    }
    if (setup->line == NULL) {
        return value;
    }
    if (value[0] == '\0') {
        return ""; /* nothing is left to set */
    }
    const char *open = "", *close = "";
    if (setup->quoting == UF_QUOTING_DOUBLE ||
        (setup->quoting == UF_QUOTING_SHELL && !is_plain(value))) {
        open = close = "\"";
    } else if (setup->quoting == UF_QUOTING_SINGLE) {
        open = close = "'";
    } else if (setup->quoting == UF_QUOTING_CMD) {
        open = uf__findings_print(findings, "\"%s=", uf__variable_name(setup->variable));
        close = "\"";
    }
    return uf__findings_print(findings, "%.*s%s%s%s%s", (int)setup->value_start, setup->line, open,
                              value, close, setup->line + setup->value_end);
}
