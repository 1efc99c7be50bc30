/* SPDX-License-Identifier: MIT
 *
 * A small seeded generator of pseudo-random numbers (splitmix64), the same on every machine. */
#ifndef ORACLE_RNG_H
#define ORACLE_RNG_H

#include <stdint.h>

typedef struct rng {
    uint64_t state;
} rng;

static inline uint64_t rng_next(rng *r)
{
    r->state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t value = r->state;
    value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
    return value ^ (value >> 31);
}

/* From 0 to count - 1. */
static inline uint64_t rng_below(rng *r, uint64_t count)
{
    return rng_next(r) % count;
}

/* From low to high, both included. */
static inline uint64_t rng_between(rng *r, uint64_t low, uint64_t high)
{
    return low + rng_below(r, high - low + 1);
}

/* From 0 (included) to 1 (excluded). */
static inline double rng_share(rng *r)
{
    return (double)(rng_next(r) >> 11) * 0x1.0p-53;
}

#endif
