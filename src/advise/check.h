/* SPDX-License-Identifier: MIT
 *
 * Checks how a program sets PyTorch's allocator up: a settings string, an environment, or files
 * (Python, notebooks, shells, containers, services). Files are scanned for set-ups first, then all
 * of them are judged together. Owns the findings and the set-ups. One thread per check. */
#ifndef UF_ADVISE_CHECK_H
#define UF_ADVISE_CHECK_H

#include "advise/check_setup.h"
#include "advise/finding.h"
#include "alloc/conf.h"

typedef struct uf_check {
    uf_conf_grammar grammar;
    uint16_t release;
    char version[16];          /* "2.11" */
    uf_findings findings;      /* owns all texts, also those of the set-ups */
    uf_setups setups;          /* in the order found */
    const char **source_names; /* by index; owned */
    uint32_t source_count;
    bool has_fraction;  /* a program among the sources limits itself to a part of the card */
    uf_conf effective;  /* what the last set-up that counts leads to */
    bool has_effective; /* one was found */
    const char *effective_text; /* that string, as PyTorch gets it; NULL if none */
} uf_check;

/* version: "2.11", "2.9.1" ... Returns UF_OK or UF_ERROR_INVALID_ARGUMENT (no version, or one
 * before 1.10). The caller ends it with uf__check_fini, whatever was returned. */
uf_status uf__check_init(uf_check *check, const char *version, uf_error *error) UF_MUST_USE;
void uf__check_fini(uf_check *check);

/* Adds a settings string. A text that names the variable, too, is read as a line of a shell. */
void uf__check_add_conf(uf_check *check, const char *conf);

/* Adds the variables of an environment: count texts NAME=VALUE. */
void uf__check_add_environment(uf_check *check, const char *const *variables, size_t count);

/* Adds a file's content; its name tells the language. Returns UF_OK; UF_ERROR_BAD_INPUT (a notebook
 * that is none, or binary data); UF_ERROR_HOST_MEMORY. */
uf_status uf__check_add_file(uf_check *check, const char *name, const char *bytes, size_t length,
                             uf_error *error) UF_MUST_USE;

/* Judges everything that was added and sorts the findings. Returns UF_OK or
 * UF_ERROR_HOST_MEMORY. */
uf_status uf__check_finish(uf_check *check, uf_error *error) UF_MUST_USE;

/* True if no finding is an error. */
bool uf__check_is_valid(const uf_check *check);

#endif
