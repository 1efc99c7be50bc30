/* SPDX-License-Identifier: MIT
 *
 * Blocks and the table they live in. Owns the storage of every block; knows nothing of pools or
 * devices. Guarded by whoever guards the core.
 *
 *   segment   |<------------------------- one driver allocation ------------------------->|
 *   blocks    [ 3: allocated ][ 9: free ][ 4: allocated ][ 7: waits for a stream ][ 2: free ]
 *   prev/next  0 <-- 3 <-----> 9 <------> 4 <-----------> 7 <-------------------> 2 --> 0
 *
 * Blocks are named by their index in the table, 0 means "none". Indices stay valid while the table
 * grows; pointers do not. */
#ifndef UF_ALLOC_BLOCK_H
#define UF_ALLOC_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define UF_NO_BLOCK 0u

typedef enum uf_life {
    UF_LIFE_UNUSED,    /* the table slot is not a block */
    UF_LIFE_FREE,      /* in its shelf's free set, or in the unmapped list if not mapped */
    UF_LIFE_ALLOCATED, /* handed out */
    UF_LIFE_PENDING,   /* freed, waits for events of other streams */
    UF_LIFE_DEFERRED,  /* freed during a redirection; events are recorded after it */
    UF_LIFE_SHADOW     /* only an old mapping is left there (shadow.h) */
} uf_life;

/* One cache line. Neighbours are in address order within a segment; child belongs to the free set
 * while the block is in it. */
typedef struct uf_block {
    uint64_t addr;
    uint64_t size_bytes;
    uint64_t requested_bytes; /* stale once the block is free; there the unfrag policy keeps the
                                 address up to which a hole has pages from its start on */
    uint64_t age_base;        /* the pool's search counter when it entered the free set */
    uint32_t prev, next;      /* neighbours */
    uint32_t child[2];        /* free set links: what is less, what is not */
    uint32_t shelf;           /* pool, class and stream */
    uint32_t region;          /* expandable segment, 0 = a plain segment */
    uint32_t uses;            /* record of other streams' use, 0 = none */
    uint8_t life;             /* a uf_life */
    bool is_mapped;           /* always true outside expandable segments */
    uint8_t reserved[2];
} uf_block;

typedef struct uf_block_table {
    uf_block *items;
    uint32_t count;    /* slots ever taken, slot 0 included */
    uint32_t capacity; /* slots allocated */
    uint32_t unused;   /* head of the list of unused slots, linked by next */
} uf_block_table;

/* Both return false if the host has no memory left; nothing changes then. */
bool uf__block_table_init(uf_block_table *table);
bool uf__block_table_grow(uf_block_table *table);
void uf__block_table_fini(uf_block_table *table);

/* Makes sure that the next `count` calls of uf__block_take cannot fail. */
static inline bool uf__block_reserve(uf_block_table *table, uint32_t count)
{
    while (__builtin_expect(table->capacity - table->count < count, 0)) {
        if (!uf__block_table_grow(table)) {
            return false;
        }
    }
    return true;
}

/* Takes an unused slot; uf__block_reserve must have succeeded before. Fields are not cleared. */
static inline uint32_t uf__block_take(uf_block_table *table)
{
    uint32_t index = table->unused;
    if (index != UF_NO_BLOCK) {
        table->unused = table->items[index].next;
        return index;
    }
    return table->count++;
}

static inline void uf__block_give(uf_block_table *table, uint32_t index)
{
    uf_block *block = &table->items[index];
    block->life = UF_LIFE_UNUSED;
    block->next = table->unused;
    table->unused = index;
}

static inline bool uf__block_is_split(const uf_block *block)
{
    return (block->prev | block->next) != UF_NO_BLOCK;
}

#endif
