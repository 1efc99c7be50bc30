/* SPDX-License-Identifier: MIT
 *
 * What a recorder holds, copied out: for the snapshot writer, which turns it into a trace. */
#ifndef UF_REPLAY_RECORDER_H
#define UF_REPLAY_RECORDER_H

#include <unfrag/recorder.h>

typedef struct uf_recorder_entry {
    uint64_t addr, size_bytes, stream;
    int64_t time_ns;
    uint8_t action; /* a uf_action */
    uint8_t reserved[7];
} uf_recorder_entry;

/* Copies the entries, oldest first, then notes a `snapshot` event with active_bytes. *entries is
 * owned by the caller (free). UF_OK or UF_ERROR_HOST_MEMORY (nothing is noted then). */
uf_status uf__recorder_copy(uf_recorder *recorder, uint64_t active_bytes,
                            uf_recorder_entry **entries, uint64_t *count) UF_MUST_USE;

#endif
