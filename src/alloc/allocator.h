/* SPDX-License-Identifier: MIT
 *
 * What the tools need of the public allocator beyond its header: a look at the core of one instant.
 *
 * Lock order: the allocator's lock, then a recorder's mutex (replay/recorder.c). Nothing else is
 * taken under either. Device functions and the event callback are called under the allocator's
 * lock: the chain's decisions depend on what each driver call leaves behind, and events must come
 * in the order in which they happened. */
#ifndef UF_ALLOC_ALLOCATOR_H
#define UF_ALLOC_ALLOCATOR_H

#include <unfrag/unfrag.h>

#include "alloc/core.h"

typedef struct uf_allocator_view {
    const uf_core *core;
    const char *conf; /* the last settings string, "" = none was given */
    int32_t device_index;
} uf_allocator_view;

/* Called under the allocator's lock; must not call the allocator. */
typedef uf_status (*uf_allocator_look)(void *context, const uf_allocator_view *view);

/* Calls look once and returns what it returned. Also UF_ERROR_INVALID_ARGUMENT and UF_ERROR_BUSY,
 * as every function of unfrag.h. */
uf_status uf__allocator_look(uf_allocator *allocator, uf_allocator_look look, void *context,
                             uf_error *error) UF_MUST_USE;

#endif
