/* SPDX-License-Identifier: MIT
 *
 * A random but repeatable life of an allocator with a recorder, for tests of snapshots. */
#ifndef UF_TESTS_RANDOM_LIFE_H
#define UF_TESTS_RANDOM_LIFE_H

#include <stdbool.h>
#include <stdint.h>

#include <unfrag/recorder.h>
#include <unfrag/sim.h>

typedef struct life_options {
    uint64_t seed;
    const char *conf;
    uint64_t limit_bytes;     /* 0 = none */
    uint64_t max_entry_count; /* of the recorder; 0 = its default */
    uint32_t step_count;
    bool has_pools;      /* now and then something is allocated inside a private pool */
    bool is_pool_mortal; /* which is destroyed the next time, and another one made */
} life_options;

typedef struct life {
    uf_sim *sim;
    uf_recorder *recorder;
    uf_allocator *allocator;
    int64_t time_ns; /* the recorder's clock: 1 ms a reading */
} life;

/* Lives. Returns false, with *error filled, if anything went wrong but out-of-memory. The state is
 * left as it came: some blocks handed out, some waiting, much cached. life_fini in every case. */
bool life_init(life *l, const life_options *options, uf_error *error);
void life_fini(life *l);

#endif
