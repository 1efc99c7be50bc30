/* SPDX-License-Identifier: MIT
 *
 * The grammar of 1.10 to 1.13: items between commas or blanks; in an item, words between colons, of
 * which the first is the name and the second the value. An item with fewer is ignored. No lock. */
#include "alloc/conf_run.h"

#include <string.h>

/* Divides "name:value:rest" in place; false if it has no value. Runs of colons count as one. */
static bool divide_item(char *item, char **value)
{
    char *colon = strchr(item, ':');
    if (colon == NULL) {
        return false;
    }
    char *at = colon + strspn(colon, ":");
    if (*at == '\0') {
        return false;
    }
    *colon = '\0';
    at[strcspn(at, ":")] = '\0';
    *value = at;
    return true;
}

static uf_status read_item(uf__conf_run *run, size_t index)
{
    uf__conf_token *token = &run->tokens.items[index];
    uf_conf_item item = {.option = UF_CONF_OPTION_NONE,
                         .offset_bytes = token->start,
                         .value_offset_bytes = token->start,
                         .end_offset_bytes = token->end};
    char *name = token->word;
    char *value;
    run->oddities = 0;
    if (!divide_item(name, &value)) {
        item.oddities = UF_CONF_ODD_IGNORED;
        uf__conf_accept_item(run, &item);
        return UF_OK;
    }
    const uf_conf_option *option = uf__conf_run_find(run, name, strlen(name));
    if (option == NULL) {
        return uf__conf_fail_unknown(run, index);
    }
    /* The token becomes the value, so that a fault shows it. */
    token->word = value;
    token->start += (size_t)(value - name);
    item.option = option->id;
    item.value_offset_bytes = token->start;
    uf_status status = uf__conf_set_value(run, option, index);
    if (status == UF_OK) {
        uf__conf_accept_item(run, &item);
    }
    return status;
}

uf_status uf__conf_walk_1_10(uf__conf_run *run)
{
    uf_conf *conf = run->conf;
    conf->max_split_size_bytes = UF_UNLIMITED;
    conf->garbage_collection_threshold = 0.0;
    memset(conf->roundup_power2_divisions, 0, sizeof conf->roundup_power2_divisions);
    for (size_t i = 0; i < run->tokens.count; i++) {
        uf_status status = read_item(run, i);
        if (status != UF_OK) {
            return status;
        }
    }
    return UF_OK;
}
