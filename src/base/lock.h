/* SPDX-License-Identifier: MIT
 *
 * A lock for short critical sections: one word, taken by one atomic exchange when nobody holds it.
 * A thread that finds it held looks again for a while, ever more rarely, and then sleeps until it
 * is woken. Against a pthread mutex: half the instructions when alone, and no system call when
 * several threads meet for a moment. It is not recursive and not fair. Linux.
 *
 *   state   0 nobody holds it      1 held      2 held, and somebody may sleep
 */
#ifndef UF_BASE_LOCK_H
#define UF_BASE_LOCK_H

#include <stdatomic.h>
#include <stdint.h>

typedef struct uf_lock {
    _Atomic uint32_t state; /* 0 at first */
} uf_lock;

void uf__lock_wait(uf_lock *lock);
void uf__lock_wake(uf_lock *lock);

static inline void uf__lock_take(uf_lock *lock)
{
    uint32_t nobody = 0;
    if (!atomic_compare_exchange_strong_explicit(&lock->state, &nobody, 1, memory_order_acquire,
                                                 memory_order_relaxed)) {
        uf__lock_wait(lock);
    }
}

static inline void uf__lock_give(uf_lock *lock)
{
    if (atomic_exchange_explicit(&lock->state, 0, memory_order_release) == 2) {
        uf__lock_wake(lock);
    }
}

#endif
