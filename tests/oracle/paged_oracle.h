/* SPDX-License-Identifier: MIT
 *
 * A naive judge of the `unfrag` policy: a plain list of the blocks that are active, a ledger of
 * what the device was asked for, and no other knowledge. After each step it proves that every
 * active block has its pages, that no page is under two places at once, that the sums agree, and
 * that a request that was refused had to be. Single-threaded. */
#ifndef ORACLE_PAGED_ORACLE_H
#define ORACLE_PAGED_ORACLE_H

#include <stdbool.h>
#include <stdint.h>

#include <unfrag/event.h>

#include "oracle/ledger.h"

enum { ORACLE_BLOCKS = 512, ORACLE_POOLS = 4096 };

typedef struct oracle_block {
    uint64_t addr, size_bytes;
    ledger_tag tag;
    bool is_requested;     /* its free was asked for */
    uint64_t requested_at; /* when, by the ledger's clock */
} oracle_block;

typedef struct paged_oracle {
    ledger *books;
    oracle_block blocks[ORACLE_BLOCKS]; /* in no order */
    uint32_t block_count;
    bool is_frozen[ORACLE_POOLS]; /* by the pool's number in tags */
    uint64_t active_bytes;        /* of pages under active blocks, as of the last check */
    uint64_t frozen_bytes;      /* of pages of living private pools that no active block touches */
    uint64_t least_slack_bytes; /* how much the closest refusal was beyond the limit */
    uint64_t touched_bytes;     /* of pages under active blocks, kept step by step */
} paged_oracle;

void paged_oracle_init(paged_oracle *o, ledger *books);

/* The allocator's events; context is the oracle. The tag of a new block is the ledger's. */
void paged_oracle_event(void *context, uf_action action, uint64_t addr, uint64_t size_bytes,
                        uint64_t stream);

/* Proves what can be proved; total_bytes: what the allocator says it holds. What is broken is noted
 * in the ledger. */
void paged_oracle_check(paged_oracle *o, uint64_t total_bytes);

/* The part of it that takes no longer the more blocks there are: the sums, from what was kept step
 * by step. A block's pages are proved when it is handed out, when it is given back, and whenever
 * the device is asked to unmap something, so that nothing goes unseen that this leaves out;
 * paged_oracle_check proves that what was kept is right. */
void paged_oracle_check_sums(paged_oracle *o, uint64_t total_bytes);

/* A request was refused for want of memory: right only if what is active and frozen and its own
 * pages exceed limit_bytes. To be called after a check that followed the refusal. */
void paged_oracle_refused(paged_oracle *o, uint64_t bytes, uint64_t limit_bytes);

#endif
