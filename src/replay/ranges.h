/* SPDX-License-Identifier: MIT
 *
 * Address ranges held from the driver while a trace is walked, each with the event that created it.
 * Owns a sorted array. Not thread-safe. */
#ifndef UF_REPLAY_RANGES_H
#define UF_REPLAY_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct uf_range {
    uint64_t addr, end;
    uint64_t creator; /* event index, or event_count + n for the n-th range of the start state */
} uf_range;

typedef struct uf_ranges {
    uf_range *items; /* by address, disjoint */
    size_t count, capacity;
} uf_ranges;

void uf__ranges_fini(uf_ranges *ranges);

/* False if the host has no memory left; *to is empty then. */
bool uf__ranges_copy(uf_ranges *to, const uf_ranges *from);

/* Both return false if the host has no memory left. */
bool uf__ranges_add(uf_ranges *ranges, uint64_t addr, uint64_t size_bytes, uint64_t creator);
/* Removes what lies in [addr, addr + size_bytes), cutting ranges where needed. *removed_bytes is
 * how much was there. */
bool uf__ranges_remove(uf_ranges *ranges, uint64_t addr, uint64_t size_bytes,
                       uint64_t *removed_bytes);

/* The index of the first range whose end is above addr; count if there is none. */
size_t uf__ranges_position(const uf_ranges *ranges, uint64_t addr);

/* The range that contains addr, or NULL. */
const uf_range *uf__ranges_find(const uf_ranges *ranges, uint64_t addr);

/* Whether nothing lies in [addr, addr + size_bytes). */
bool uf__ranges_is_clear(const uf_ranges *ranges, uint64_t addr, uint64_t size_bytes);

/* A range that ends at addr, else one that starts at end, else NULL: what a mapping extends. */
const uf_range *uf__ranges_adjacent(const uf_ranges *ranges, uint64_t addr, uint64_t end);

#endif
