/* SPDX-License-Identifier: MIT
 *
 * A lock for short critical sections, and what makes it cheap: the thread that takes it first owns
 * it and takes it with plain stores until another thread wants it; from then on it is taken by one
 * atomic exchange and given back by a plain store. A thread that finds it held looks again for a
 * while, ever more rarely, and then sleeps until it is woken. It is not recursive and not fair.
 * Linux; where the kernel has no membarrier (before 4.14, or refused), nobody owns a lock and
 * sleepers look again each millisecond.
 *
 *   owner      who          0 nobody yet      UF_LOCK_SHARED everyone      else one thread
 *   inside     the owner    1 it is in, or is trying
 *   state      the others   1 one of them is in
 *
 * Why that is sound. Both fast ways are a store, then a load of what somebody else stores before he
 * looks at ours; a processor may do the load first. The slow side pays for both: between its own
 * store and its look it calls membarrier, which makes every running thread of the process do all
 * its earlier stores. So
 *   - the owner stores inside = 1 and reads owner; who wants to share stores owner = SHARED, calls
 *     membarrier and waits while inside is 1. Either the owner was past its store, then that is
 * seen and waited for; or its read comes later and sees SHARED, and it goes the others' way.
 *   - who gives back stores state = 0 and reads sleepers; who goes to sleep stores sleepers, calls
 *     membarrier and reads state, which the kernel compares once more. Either the store of 0 is
 *     seen, or the sleeper is, and woken.
 * The compiler keeps the order by signal fences. A thread has ended when another one gets its name
 * (uf__lock_self), so two never go by one. */
#ifndef UF_BASE_LOCK_H
#define UF_BASE_LOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define UF_LOCK_SHARED ((uintptr_t)1)

typedef struct uf_lock {
    _Atomic uintptr_t owner;
    _Atomic uint32_t inside;
    _Atomic uint32_t state;
    _Atomic uint32_t sleepers;
    bool is_held_by_owner; /* which way it was taken; belongs to who holds it */
} uf_lock;                 /* zeros at first */

void uf__lock_wait(uf_lock *lock);
void uf__lock_wake(uf_lock *lock);
/* Takes the lock where the calling thread is not known to own it; true: it does now. */
bool uf__lock_own_or_share(uf_lock *lock);

/* A name of the calling thread, never 0 or UF_LOCK_SHARED. */
static inline uintptr_t uf__lock_self(void)
{
#if defined(__x86_64__) && defined(__LP64__)
    uintptr_t self;
    __asm__("mov %%fs:0, %0" : "=r"(self));
    return self;
#elif defined(__aarch64__)
    uintptr_t self;
    __asm__("mrs %0, tpidr_el0" : "=r"(self));
    return self;
#else
    return (uintptr_t)pthread_self();
#endif
}

/* The owner's way in; false if it is not the owner, or no longer. */
static inline bool uf__lock_enter_as_owner(uf_lock *lock)
{
    uintptr_t self = uf__lock_self();
    if (atomic_load_explicit(&lock->owner, memory_order_relaxed) != self) {
        return false;
    }
    atomic_store_explicit(&lock->inside, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    if (__builtin_expect(atomic_load_explicit(&lock->owner, memory_order_relaxed) == self, 1)) {
        atomic_signal_fence(memory_order_seq_cst);
        return true;
    }
    atomic_store_explicit(&lock->inside, 0, memory_order_release);
    return false;
}

static inline void uf__lock_take_shared(uf_lock *lock)
{
    uint32_t nobody = 0;
    if (!atomic_compare_exchange_strong_explicit(&lock->state, &nobody, 1, memory_order_acquire,
                                                 memory_order_relaxed)) {
        uf__lock_wait(lock);
    }
}

static inline void uf__lock_take(uf_lock *lock)
{
    if (uf__lock_enter_as_owner(lock)) {
        lock->is_held_by_owner = true;
    } else if (atomic_load_explicit(&lock->owner, memory_order_relaxed) == UF_LOCK_SHARED) {
        uf__lock_take_shared(lock);
        lock->is_held_by_owner = false;
    } else {
        bool is_owner = uf__lock_own_or_share(lock);
        lock->is_held_by_owner = is_owner;
    }
}

static inline void uf__lock_give(uf_lock *lock)
{
    if (lock->is_held_by_owner) {
        atomic_store_explicit(&lock->inside, 0, memory_order_release);
        return;
    }
    atomic_store_explicit(&lock->state, 0, memory_order_release);
    atomic_signal_fence(memory_order_seq_cst);
    if (__builtin_expect(atomic_load_explicit(&lock->sleepers, memory_order_relaxed) != 0, 0)) {
        uf__lock_wake(lock);
    }
}

#endif
