/* SPDX-License-Identifier: MIT
 *
 * One test for each statement on PyTorch 2.11's allocator that was verified on a real GPU. Runs on
 * any model. */
#ifndef ORACLE_CONFORMANCE_H
#define ORACLE_CONFORMANCE_H

#include "oplog/model.h"

typedef struct conformance_case {
    const char *name; /* a sentence */
    void (*run)(const model_vtable *vtable);
} conformance_case;

extern const conformance_case conformance_sizes[]; /* each list ends with a NULL name */
extern const conformance_case conformance_search[];
extern const conformance_case conformance_chain[];
extern const conformance_case conformance_pools[];

/* Runs all lists on a model with the check library; returns the program's exit status. */
int conformance_main(const model_vtable *vtable);

#endif
