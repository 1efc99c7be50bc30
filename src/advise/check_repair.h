/* SPDX-License-Identifier: MIT
 *
 * What the author of a settings string meant: it is divided into items whatever the separators are,
 * and written again so that a release accepts it and each option in it does something. No lock. */
#ifndef UF_ADVISE_CHECK_REPAIR_H
#define UF_ADVISE_CHECK_REPAIR_H

#include "advise/finding.h"
#include "alloc/conf_option.h"

/* Items beyond this many are left out of a repair. */
#define UF_MEANT_MAX 64

/* One option as it was meant. Offsets are into the string; a length of 0: there is none. */
typedef struct uf_meant {
    size_t name_offset, name_length;
    size_t value_offset, value_length;
    const uf_conf_option *option; /* of any release, by its name or the nearest spelling; or NULL */
    bool is_exact;                /* the name is spelt rightly */
    char separator;               /* what stood between name and value; '\0' if nothing */
} uf_meant;

typedef struct uf_meaning {
    uf_meant items[UF_MEANT_MAX];
    size_t count;
} uf_meaning;

/* Divides a string. */
void uf__meaning_read(const char *text, uf_meaning *meaning);

typedef struct uf_repair {
    uf_conf_grammar grammar;
    uint16_t release;
    bool is_at_import;
    bool has_fraction; /* a memory fraction is set elsewhere */
} uf_repair;

/* The corrected string, as a text of the list; empty if nothing useful is left, NULL if what was
 * meant is not clear. */
const char *uf__repair(const uf_repair *repair, const char *text, uf_findings *findings);

#endif
