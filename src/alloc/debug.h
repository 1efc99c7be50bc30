/* SPDX-License-Identifier: MIT
 *
 * Debug mode: guards behind blocks, a filling of freed memory, and a memory of what was given back.
 * It knows a device and what it is told of blocks, not the core: where the core errs, it is a
 * witness. Guarded by the allocator's lock; device functions are called under it.
 *
 *   handed out   |<-- requested -->|<---- guard: at least 512 bytes, and what the size was
 *                |     the owner's |DEDEDEDEDEDEDEDEDEDE      rounded up by, at most 1 MiB ---->|
 *   given back   |DFDFDFDFDFDFDFDFDFDFDFDFDFDFDFDFDFDFDFDF|   until it is handed out again, or
 *                                                             its pages go */
#ifndef UF_ALLOC_DEBUG_H
#define UF_ALLOC_DEBUG_H

#include <stdbool.h>
#include <stdint.h>

#include <unfrag/debug.h>
#include <unfrag/device.h>
#include <unfrag/status.h>

typedef struct uf_debug uf_debug;

/* A block that is handed out, or waits after it was given back. */
typedef struct uf_debug_block {
    uint64_t addr, size_bytes;
    uint64_t requested_bytes; /* by its owner, without the guard */
    uint64_t stream;
    bool is_filled;     /* once it is freed: nobody else may write there */
    bool is_guarded;    /* the guard was set */
    bool is_given_back; /* by its owner; it waits for streams or a pin */
} uf_debug_block;

/* Makes it; NULL if the host has no memory left. report: called for each finding; may be NULL. */
uf_debug *uf__debug_create(const uf_device *device, uf_damage_callback report, void *context);
void uf__debug_destroy(uf_debug *debug); /* NULL is accepted */

/* What is asked for beyond each request; 0 where the device cannot set and compare bytes. */
uint64_t uf__debug_guard_bytes(const uf_debug *debug);

/* A block is about to be handed out: looks at the filling that it lies on, sets its guard.
 * can_wait: the device may be waited for; else nothing is looked at. UF_ERROR_INTERNAL: it overlaps
 * one that is handed out, and must not be. */
uf_status uf__debug_hand_out(uf_debug *debug, const uf_debug_block *block, bool can_wait,
                             uf_error *error) UF_MUST_USE;
/* The same for a block that came to be handed out in another way, and whose bytes count. */
void uf__debug_adopt(uf_debug *debug, const uf_debug_block *block);

/* Its owner gives a block back. */
void uf__debug_give_back(uf_debug *debug, uint64_t addr);

/* A free took effect, and nobody uses the block any more: looks at its guard, fills it. An address
 * that is not known is none of our business. */
void uf__debug_complete(uf_debug *debug, uint64_t addr, bool can_wait);

/* The memory there goes, or others come: no filling is expected there. */
void uf__debug_forget(uf_debug *debug, uint64_t addr, uint64_t size_bytes);

/* Finds out what an address is that is not handed out, and reports it. Returns
 * UF_ERROR_FOREIGN_POINTER with the text. */
uf_status uf__debug_foreign(uf_debug *debug, uint64_t addr, uf_error *error);

/* Looks at all guards and all that is filled. Damage is reported once. */
void uf__debug_check(uf_debug *debug);

/* How much damage was found so far. */
uint64_t uf__debug_damage_count(const uf_debug *debug);
/* UF_ERROR_DAMAGED with the newest damage, if any was found since the count was `since`. */
uf_status uf__debug_tell(uf_debug *debug, uint64_t since, uf_error *error) UF_MUST_USE;
/* UF_ERROR_DAMAGED with the first damage that was not told yet; it is now. */
uf_status uf__debug_tell_first(uf_debug *debug, uf_error *error) UF_MUST_USE;

#endif
