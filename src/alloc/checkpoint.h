/* SPDX-License-Identifier: MIT
 *
 * What a pool had handed out at one moment, and bringing it back to that. Owns copies, no block. */
#ifndef UF_ALLOC_CHECKPOINT_H
#define UF_ALLOC_CHECKPOINT_H

#include "alloc/core.h"

/* A block of the pool, as it was; free ones too, since PyTorch's way back goes over them. */
typedef struct uf_checkpoint_block {
    uint64_t addr, size_bytes, requested_bytes;
    bool is_allocated;
} uf_checkpoint_block;

typedef struct uf_checkpoint {
    uf_checkpoint_block *blocks; /* mapped ones, by address */
    uint32_t count;
} uf_checkpoint;

/* An address that a restore gave back, or handed out again under the block's present index. */
typedef struct uf_restored {
    uint64_t addr, requested_bytes;
    uint32_t block; /* UF_NO_BLOCK = given back */
} uf_restored;

/* UF_ERROR_HOST_MEMORY; *checkpoint is untouched then. */
uf_status uf__checkpoint_take(const uf_core *core, uint32_t pool,
                              uf_checkpoint *checkpoint) UF_MUST_USE;
void uf__checkpoint_fini(uf_checkpoint *checkpoint);

/* How many blocks of a pool are handed out. */
uint32_t uf__checkpoint_allocated_count(const uf_core *core, uint32_t pool);

/* Gives everything in the pool back, then hands out what the checkpoint names. restored: receives
 * first what was given back, then what was handed out; it must have room for both. Nothing changes
 * unless it returns UF_OK: UF_ERROR_BUSY (another stream uses a block, or a free waits for one),
 * UF_ERROR_HAZARD (memory of the checkpoint is not held any more), UF_ERROR_HOST_MEMORY. */
uf_status uf__checkpoint_restore(uf_core *core, uint32_t pool, const uf_checkpoint *checkpoint,
                                 uf_restored *restored, uint32_t *restored_count) UF_MUST_USE;

#endif
