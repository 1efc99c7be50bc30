/* SPDX-License-Identifier: MIT
 *
 * A device between an allocator and another device: it hands every call on and keeps books of its
 * own, plain arrays of address -> handle, to be compared with what the allocator believes. It finds
 * broken rules by itself: growth beyond the limit, pages unmapped while work may still use them.
 * Knows nothing of the allocator's data. Single-threaded. */
#ifndef ORACLE_LEDGER_H
#define ORACLE_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include <unfrag/device.h>

enum { LEDGER_STREAMS = 8, LEDGER_RANGES = 4096, LEDGER_EVENTS = 4096 };

/* What a stretch of address space is for: set before each request, and kept with a reservation. */
typedef struct ledger_tag {
    uint32_t pool, stream;
    bool is_large;
} ledger_tag;

typedef struct ledger_granule {
    uint32_t handle; /* index + 1, 0 = nothing is mapped */
    bool is_first;   /* the handle begins here */
    bool has_access;
    bool is_touched;      /* by an active block; of the check of everything */
    uint32_t touch_count; /* active blocks that touch it; of the check of each step */
    uint64_t busy_at;     /* when work was last known to be queued here */
} ledger_granule;

typedef struct ledger_range {
    uint64_t addr, size_bytes; /* size_bytes 0 = vacant */
    ledger_tag tag;
    uint64_t mapped_count;  /* granules */
    uint64_t touched_count; /* granules that active blocks touch */
    ledger_granule *granules;
} ledger_range;

typedef struct ledger_handle {
    uint64_t name, size_bytes;
    uint32_t mapping_count;
    bool is_named, is_there;
    uint64_t busy_at[LEDGER_STREAMS]; /* when a stream was last known to use it */
    uint64_t place_addr;              /* where an active block uses it; of the checker */
    uint64_t touched_addr;            /* the same, of the check of each step */
    uint32_t touched_count;           /* its granules that active blocks touch there */
    uint32_t next;                    /* with the same hash, index + 1 */
} ledger_handle;

enum { LEDGER_BUCKETS = 4096 };

typedef struct ledger_event {
    uint64_t name, at;
    uint32_t stream;
    bool is_there;
} ledger_event;

typedef struct ledger {
    uf_device device; /* pass &ledger.device to an allocator */
    const uf_device *below;
    uint64_t granule_bytes;
    uint64_t limit_bytes; /* a handle must not be made beyond it; UINT64_MAX = none */
    ledger_tag tag;
    bool is_ending;                     /* the allocator ends: pages go from under blocks, too */
    uint64_t clock;                     /* counts what is queued */
    uint64_t done_at[LEDGER_STREAMS];   /* all that a stream had queued until then is done */
    uint64_t stream_of[LEDGER_STREAMS]; /* handles of streams, by index */
    uint32_t stream_count;
    ledger_range ranges[LEDGER_RANGES];
    uint32_t range_count; /* entries ever taken */
    uint32_t last_range;  /* found last */
    ledger_handle *handles;
    uint32_t handle_count, handle_capacity;
    uint32_t bucket[LEDGER_BUCKETS]; /* handles with a name, by its hash, index + 1 */
    uint32_t vacant;                 /* entries of handles that are gone, linked by next */
    ledger_event events[LEDGER_EVENTS];
    uint64_t held_bytes;  /* of handles that have a name or are mapped */
    uint64_t named_bytes; /* of handles that have a name */
    uint64_t call_count, unmap_count;
    char broken[300]; /* the first broken rule; empty = none */
} ledger;

void ledger_init(ledger *l, const uf_device *below, uint64_t granule_bytes);
void ledger_fini(ledger *l);

/* Notes a broken rule, unless one was noted before. */
void ledger_break(ledger *l, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The granule at an address; NULL if it is in no range. */
ledger_granule *ledger_at(const ledger *l, uint64_t addr);
ledger_range *ledger_range_at(ledger *l, uint64_t addr);
static inline ledger_granule *ledger_granule_of(const ledger *l, const ledger_range *range,
                                                uint64_t addr)
{
    return &range->granules[(addr - range->addr) / l->granule_bytes];
}

/* Pages of a block that was freed: work that its stream had queued until then may still use them.
 */
void ledger_busy(ledger *l, uint64_t addr, uint64_t size_bytes, uint32_t stream, uint64_t when);

/* All streams have done everything. */
void ledger_synchronize(ledger *l);

#endif
