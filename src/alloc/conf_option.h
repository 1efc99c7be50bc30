/* SPDX-License-Identifier: MIT
 *
 * The one table of settings: name, releases, type, unit, range, default, help. It drives the
 * parsers, the formatter, the error texts, and the comparison of docs/settings.md with the code.
 * Static data, no lock. */
#ifndef UF_ALLOC_CONF_OPTION_H
#define UF_ALLOC_CONF_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "alloc/conf.h"

typedef enum uf_conf_type {
    UF_CONF_TYPE_MIB,       /* integer in MB, stored in bytes */
    UF_CONF_TYPE_INTEGER,   /* integer, stored as it is */
    UF_CONF_TYPE_POWER2,    /* integer power of two, stored as it is */
    UF_CONF_TYPE_SHARE,     /* double */
    UF_CONF_TYPE_BOOLEAN,   /* True or False */
    UF_CONF_TYPE_DIVISIONS, /* an integer or a bracketed list */
    UF_CONF_TYPE_BACKEND    /* native or cudaMallocAsync */
} uf_conf_type;

/* 2.10 and later read a string twice; each option belongs to one of the two readers. */
typedef enum uf_conf_part {
    UF_CONF_PART_GENERIC, /* all accelerators */
    UF_CONF_PART_CUDA
} uf_conf_part;

typedef struct uf_conf_option {
    const char *name;
    const char *alias; /* NULL if there is none */
    const char *unit;
    const char *default_text;
    const char *help;
    size_t offset; /* of the field in uf_conf */
    /* Integers: inclusive, for 2.10 and later and for releases before. */
    uint64_t minimum, minimum_old, maximum;
    uf_conf_option_id id;
    uf_conf_type type;
    uf_conf_part part;
    uint16_t since; /* first release, 206 is 2.6 */
    bool is_since_certain;
    bool is_minimum_large_segment; /* the minimum is the large segment size of the moment */
    bool is_open_range;            /* shares: 0 and 1 themselves are excluded */
    bool is_reset;                 /* back to default if a string does not name it */
    bool is_replayed;              /* changes what a replay does */
} uf_conf_option;

/* The option at an index below UF_CONF_OPTION_COUNT; the index is its id. */
const uf_conf_option *uf__conf_option_at(size_t index);

/* True if the releases of the grammar, as of `release` (0 is the newest of them), know it. */
bool uf__conf_option_exists(const uf_conf_option *option, uf_conf_grammar grammar,
                            uint16_t release);

/* The option of that name or alias that exists there, or NULL. name: length bytes. */
const uf_conf_option *uf__conf_option_find(const char *name, size_t length, uf_conf_grammar grammar,
                                           uint16_t release);

/* The existing option whose spelling is nearest, or NULL if none is near. */
const uf_conf_option *uf__conf_option_nearest(const char *name, size_t length,
                                              uf_conf_grammar grammar, uint16_t release);

/* Writes what values the option takes, such as "an integer of at least 20 (MB)", and returns
 * buffer. large_segment_bytes matters to the options whose minimum it is. */
const char *uf__conf_option_range(const uf_conf_option *option, uf_conf_grammar grammar,
                                  uint64_t large_segment_bytes, char *buffer, size_t capacity);

/* The smallest integer an option of type MIB, INTEGER or POWER2 takes. */
uint64_t uf__conf_option_minimum(const uf_conf_option *option, uf_conf_grammar grammar,
                                 uint64_t large_segment_bytes);

#endif
