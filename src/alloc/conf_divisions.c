/* SPDX-License-Identifier: MIT
 *
 * The value of roundup_power2_divisions: an integer, or a list [boundary:divisions,...,>:divisions]
 * that is worked through from left to right. No lock.
 *
 *   [64:8,256:4,>:2]     64 is the first boundary, so it fills everything below, too
 *   index (MB)  1  2  4  8 16 32 64 128 256 512 ...
 *   divisions   8  8  8  8  8  8  8   0   4   2 ...       128 is not mentioned: plain rounding */
#include "alloc/conf_run.h"

#include <string.h>

#include "base/size.h"

typedef struct division_list {
    uint64_t *table;
    size_t last_index; /* of the most recent boundary */
    bool has_boundary;
} division_list;

static void fill(uint64_t *table, size_t from, size_t to, uint64_t divisions)
{
    for (size_t i = from; i < to; i++) {
        table[i] = divisions;
    }
}

static void set_boundary(division_list *list, uint64_t boundary_mib, uint64_t divisions)
{
    size_t index = uf__floor_log2(boundary_mib);
    if (index >= UF_CONF_DIVISION_COUNT) {
        index = UF_CONF_DIVISION_COUNT - 1;
    }
    if (!list->has_boundary) {
        fill(list->table, 0, index, divisions);
        list->has_boundary = true;
    }
    list->table[index] = divisions;
    list->last_index = index;
}

static uf_status expect(uf__conf_run *run, const uf_conf_option *option, size_t index,
                        const char *separator)
{
    if (uf__conf_is_token(run, index, separator)) {
        return UF_OK;
    }
    if (!uf__conf_is_old(run)) {
        run->oddities |= UF_CONF_ODD_SEPARATOR; /* never looked at from 2.10 on */
        return UF_OK;
    }
    return uf__conf_fail(run, UF_CONF_FAULT_SEPARATOR, UF_CONF_RAISES_RUNTIME_ERROR, option, index,
                         "a '%s' must stand here in the list of %s", separator, option->name);
}

/* Reads boundary, separator, divisions from token `index` on. */
static uf_status read_pair(uf__conf_run *run, const uf_conf_option *option, division_list *list,
                           size_t index)
{
    uint64_t divisions, boundary;
    uf_status status = expect(run, option, index + 1, ":");
    if (status == UF_OK && !uf__conf_has_token(run, index + 2)) {
        status = uf__conf_fail_missing(run, option, "a number of divisions");
    }
    if (status == UF_OK) {
        status = uf__conf_integer(run, option, index + 2, &divisions);
    }
    if (status != UF_OK) {
        return status;
    }
    if (divisions != 0 && !uf__is_power2(divisions)) {
        return uf__conf_fail_range(run, option, index + 2);
    }
    if (uf__conf_is_token(run, index, ">")) {
        /* Before 2.10 the most recent boundary's own entry is overwritten, too. */
        fill(list->table, list->last_index + (uf__conf_is_old(run) ? 0 : 1), UF_CONF_DIVISION_COUNT,
             divisions);
        return UF_OK;
    }
    status = uf__conf_integer(run, option, index, &boundary);
    if (status == UF_OK && !uf__is_power2(boundary)) {
        status = uf__conf_fail_range(run, option, index);
    }
    if (status == UF_OK) {
        set_boundary(list, boundary, divisions);
    }
    return status;
}

uf_status uf__conf_set_all_divisions(uf__conf_run *run, const uf_conf_option *option,
                                     size_t value_index)
{
    uint64_t divisions;
    uf_status status = uf__conf_integer(run, option, value_index, &divisions);
    if (status != UF_OK) {
        return status;
    }
    if (!uf__is_power2(divisions)) {
        return uf__conf_fail_range(run, option, value_index);
    }
    fill(run->conf->roundup_power2_divisions, 0, UF_CONF_DIVISION_COUNT, divisions);
    return UF_OK;
}

uf_status uf__conf_set_divisions(uf__conf_run *run, const uf_conf_option *option, size_t *index)
{
    if (!uf__conf_is_token(run, *index, "[")) {
        return uf__conf_set_all_divisions(run, option, *index);
    }
    division_list list = {run->conf->roundup_power2_divisions, 0, false};
    size_t at = *index + 1;
    while (uf__conf_has_token(run, at) && !uf__conf_is_token(run, at, "]")) {
        uf_status status = read_pair(run, option, &list, at);
        if (status != UF_OK) {
            return status;
        }
        at += 3;
        if (uf__conf_has_token(run, at) && !uf__conf_is_token(run, at, "]")) {
            status = expect(run, option, at, ",");
            if (status != UF_OK) {
                return status;
            }
            at++;
        }
    }
    if (!uf__conf_has_token(run, at)) {
        return uf__conf_fail_missing(run, option, "the ']' that ends the list");
    }
    *index = at;
    return UF_OK;
}
