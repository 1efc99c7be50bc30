/* SPDX-License-Identifier: MIT
 *
 * Which frees the device is known to have caught up with: work queued on a stream before a free may
 * still use the pages. Frees are numbered; an epoch of a stream ends with an event, and once that
 * is done all frees of the stream up to its number are idle. Nothing is recorded until pages move.
 *
 * A free concerns the block's own stream; others that used it were named, and were waited for.
 * Where every stream is watched it concerns all that the core knows: programs written for PyTorch's
 * own allocator use memory on streams they never named, which that forgives as long as the work was
 * queued before the free, since it unmaps next to nothing.
 *
 * While an allocation is redirected (a capture may be under way) the device is asked nothing and
 * waited for nowhere. Guarded by whoever guards the core. */
#ifndef UF_ALLOC_EPOCH_H
#define UF_ALLOC_EPOCH_H

#include "alloc/core.h"

enum { UF_EPOCHS_OPEN = 8 };

typedef struct uf_epoch {
    uint64_t event, sequence;
} uf_epoch;

/* One stream's epochs. */
typedef struct uf_epochs {
    uint64_t done_sequence;
    uf_epoch open[UF_EPOCHS_OPEN]; /* ended, not known to be done; oldest first */
    uint32_t open_count;
    bool is_lost; /* at the end of the core: it could not be waited for */
} uf_epochs;

/* Ends an epoch on every stream that has freed since its last one. */
uf_status uf__epoch_close(uf_core *core) UF_MUST_USE;

/* Asks which epochs are done. */
uf_status uf__epoch_poll(uf_core *core) UF_MUST_USE;

/* Whether the device is known to be done with all frees of a stream up to that number. */
bool uf__epoch_is_done(const uf_core *core, uint32_t stream, uint64_t sequence);

/* Waits until it is. Returns UF_ERROR_BUSY if it is not known to be and an
 * allocation is redirected. */
uf_status uf__epoch_wait(uf_core *core, uint32_t stream, uint64_t sequence) UF_MUST_USE;

/* Waits for everything on every stream and forgets all epochs; is_lost says where that failed. */
void uf__epoch_end(uf_core *core);

#endif
