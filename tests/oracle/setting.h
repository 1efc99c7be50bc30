/* SPDX-License-Identifier: MIT
 *
 * The settings that random operations run under. Constant data. */
#ifndef ORACLE_SETTING_H
#define ORACLE_SETTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SETTING_CONF_MAX 5
#define SETTING_TOTAL_BYTES (UINT64_C(8) << 30)

typedef struct setting {
    const char *name;
    const char *confs[SETTING_CONF_MAX]; /* at creation, and the ones changed to at run time */
    uint64_t limit_bytes;                /* 0 = none */
    uint64_t card_bytes;                 /* the driver refuses beyond it; 0 = never */
    bool has_pools;
    bool is_hazardous; /* lowers max_split_size at run time: a run ends with the first hazard */
} setting;

extern const setting setting_list[];
extern const size_t setting_count;

#endif
