/* SPDX-License-Identifier: MIT
 *
 * What an allocator in debug mode finds (uf_allocator_options.is_debug; docs/debug.md): memory that
 * was written where nobody owned it, and addresses that are not what uf_free takes. */
#ifndef UNFRAG_DEBUG_H
#define UNFRAG_DEBUG_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum uf_damage_kind {
    UF_DAMAGE_OVERRUN,         /* bytes behind the end of a block were written */
    UF_DAMAGE_USE_AFTER_FREE,  /* bytes of a block were written after it was given back */
    UF_DAMAGE_DOUBLE_FREE,     /* an address that was given back before */
    UF_DAMAGE_INSIDE_POINTER,  /* an address inside a block that is handed out */
    UF_DAMAGE_FOREIGN_POINTER, /* an address of which nothing is known */
    UF_DAMAGE_OVERLAP          /* memory that is handed out was to be handed out again */
} uf_damage_kind;

/* What the bytes of a guard and of freed memory are set to. A write of the same value goes
 * unnoticed. */
enum { UF_DEBUG_GUARD_BYTE = 0xDE, UF_DEBUG_FREED_BYTE = 0xDF };

/* One finding. Addresses and sizes are in bytes. */
typedef struct uf_damage {
    uf_damage_kind kind;
    uint64_t addr;          /* the block's, as it was handed out; of a foreign pointer itself */
    uint64_t size_bytes;    /* of the block, as requested; 0 = not known */
    uint64_t stream;        /* the one it was allocated for */
    uint64_t offset_bytes;  /* from addr to the first changed byte, or to the pointer */
    uint64_t damaged_bytes; /* how many bytes are not what they were set to */
    const char *text;       /* one line that says all of this; borrowed for the call */
} uf_damage;

/* Called for each finding, under the allocator's lock: what it calls on the same allocator returns
 * UF_ERROR_BUSY. damage is borrowed for the call. */
typedef void (*uf_damage_callback)(void *context, const uf_damage *damage);

#ifdef __cplusplus
}
#endif
#endif
