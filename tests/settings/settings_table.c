/* SPDX-License-Identifier: MIT
 *
 * Prints the table of settings, one line per option, for the comparison with docs/settings.md. */
#include "alloc/conf_option.h"

#include <stdio.h>
#include <string.h>

int main(void)
{
    for (size_t i = 0; i < UF_CONF_OPTION_COUNT; i++) {
        const uf_conf_option *option = uf__conf_option_at(i);
        uf_conf defaults;
        char range[200], old_range[200];
        uf__conf_init(&defaults);
        uf__conf_option_range(option, UF_CONF_2_11, defaults.large_segment_bytes, range,
                              sizeof range);
        uf__conf_option_range(option, UF_CONF_2_0, defaults.large_segment_bytes, old_range,
                              sizeof old_range);
        bool is_same = strcmp(range, old_range) == 0 || option->since >= 210;
        printf("%s\t%s\t%s\t%s\t%s\t%s%u.%u\t%s\t%s\n", option->name,
               option->alias == NULL ? "" : option->alias, range, is_same ? "" : old_range,
               option->default_text, option->is_since_certain ? "" : "about ", option->since / 100u,
               option->since % 100u, option->is_reset ? "reset" : "kept",
               option->is_replayed ? "yes" : "no");
    }
    return 0;
}
