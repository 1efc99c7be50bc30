/* SPDX-License-Identifier: MIT
 *
 * What scanners find in files, in the order of execution as far as that can be seen: variables set,
 * programs started, calls made. Also how a corrected value is put back into its line. The texts
 * belong to a list of findings. No lock. */
#ifndef UF_ADVISE_CHECK_SETUP_H
#define UF_ADVISE_CHECK_SETUP_H

#include "advise/finding.h"

typedef enum uf_variable {
    UF_VARIABLE_CUDA,                                /* PYTORCH_CUDA_ALLOC_CONF */
    UF_VARIABLE_HIP,                                 /* PYTORCH_HIP_ALLOC_CONF */
    UF_VARIABLE_GENERIC,                             /* PYTORCH_ALLOC_CONF */
    UF_VARIABLE_CONF_COUNT,                          /* those above hold settings */
    UF_VARIABLE_NO_CACHING = UF_VARIABLE_CONF_COUNT, /* PYTORCH_NO_CUDA_MEMORY_CACHING */
    UF_VARIABLE_COUNT,
    UF_VARIABLE_MISSPELT = UF_VARIABLE_COUNT, /* a name that is nearly one of them */
    UF_VARIABLE_NONE
} uf_variable;

typedef enum uf_setup_kind {
    UF_SETUP_CONF,     /* a bare settings string */
    UF_SETUP_SET,      /* for this process or shell and all it starts */
    UF_SETUP_COMMAND,  /* for one command or child only */
    UF_SETUP_LOCAL,    /* a shell's own variable, not in the environment */
    UF_SETUP_EXPORT,   /* what was LOCAL goes into the environment */
    UF_SETUP_UNSET,    /* taken out of the environment */
    UF_SETUP_LOST,     /* set in a process that ends before it matters */
    UF_SETUP_RUN,      /* a program starts */
    UF_SETUP_CALL,     /* a settings call of the running program */
    UF_SETUP_FRACTION, /* the program limits itself to a part of the card */
    UF_SETUP_OBSERVE   /* statistics or snapshots are read; `value` says which */
} uf_setup_kind;

/* How a value is written down where it stands. */
typedef enum uf_quoting {
    UF_QUOTING_BARE,   /* as it is */
    UF_QUOTING_SHELL,  /* quotes if it holds what a shell cares about */
    UF_QUOTING_DOUBLE, /* always in "" */
    UF_QUOTING_SINGLE, /* always in '' */
    UF_QUOTING_CMD     /* set "NAME=VALUE": the span covers name and value */
} uf_quoting;

typedef struct uf_setup {
    uf_setup_kind kind;
    uf_variable variable;
    uf_finding_place place;
    const char *name;  /* the variable's name as written, or the call's */
    const char *value; /* NULL: not known (computed) */
    /* The line without its comment, and where in it the value stands with its quotes. NULL: the fix
     * is the string alone. */
    const char *line;
    size_t value_start, value_end;
    uf_quoting quoting;
    const char *intended;   /* what was meant where a shell cut the value; NULL: the value */
    uint32_t command;       /* set-ups of one COMMAND share a number */
    uint32_t scope;         /* 0: runs in any case; else one function or branch */
    bool is_conditional;    /* in a branch: it may not be executed */
    bool is_default;        /* only if nothing is set yet */
    bool is_never_exported; /* LOCAL in a shell whose variables are no environment variables */
    uint32_t import_line;   /* torch was imported before, there; 0: not seen */
    uint32_t init_line;     /* CUDA was initialised before, there; 0: not seen */
} uf_setup;

typedef struct uf_setups {
    uf_setup *items;
    size_t count, capacity;
    uint32_t command_count; /* the next number of a COMMAND */
} uf_setups;

void uf__setups_fini(uf_setups *setups);

/* Adds a copy; findings->has_failed is set if the host has no memory. */
void uf__setups_add(uf_setups *setups, uf_findings *findings, const uf_setup *setup);

/* Which variable a name is. UF_VARIABLE_MISSPELT: not one of them, but so near that nothing else
 * can be meant; *meant (may be NULL) is the right name then. */
uf_variable uf__variable_find(const char *name, size_t length, const char **meant);
const char *uf__variable_name(uf_variable variable);

/* The set-up's line with the value replaced, or the value alone. value NULL: NULL. */
const char *uf__setup_fix(uf_findings *findings, const uf_setup *setup, const char *value);

#endif
