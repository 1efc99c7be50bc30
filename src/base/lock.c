/* SPDX-License-Identifier: MIT
 *
 * The lock's slow ways: who owns it, making it everyone's, looking again, sleeping. */
#include "base/lock.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A critical section takes some 50 ns. Looks are 1, 2, 4 ... 64 pauses apart (a pause is 10 to
 * 40 ns); a lock that is held for longer than all of them is held during a driver call, and then it
 * is better to sleep. */
enum { LOOKS = 100, PAUSES_MOST = 64 };

static const struct timespec A_MOMENT = {0, 1000000};

static void pause_once(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

static bool membarrier(int command)
{
    return syscall(SYS_membarrier, command, 0, 0) == 0;
}

/* Makes all running threads of the process do their earlier stores; false if the kernel cannot. */
static bool make_stores_seen(void)
{
    /* A process registers once; doing it again changes nothing. */
    return membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) ||
           (membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) &&
            membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED));
}

static bool try_take(uf_lock *lock)
{
    uint32_t nobody = 0;
    return atomic_load_explicit(&lock->state, memory_order_relaxed) == 0 &&
           atomic_compare_exchange_strong_explicit(&lock->state, &nobody, 1, memory_order_acquire,
                                                   memory_order_relaxed);
}

void uf__lock_wait(uf_lock *lock)
{
    int pauses = 1;
    for (int i = 0; i < LOOKS; i++) {
        for (int j = 0; j < pauses; j++) {
            pause_once();
        }
        if (try_take(lock)) {
            return;
        }
        pauses = pauses < PAUSES_MOST ? pauses * 2 : PAUSES_MOST;
    }
    atomic_fetch_add_explicit(&lock->sleepers, 1, memory_order_seq_cst);
    const struct timespec *for_long = make_stores_seen() ? NULL : &A_MOMENT;
    while (!try_take(lock)) {
        syscall(SYS_futex, &lock->state, FUTEX_WAIT_PRIVATE, 1, for_long, NULL, 0);
    }
    atomic_fetch_sub_explicit(&lock->sleepers, 1, memory_order_relaxed);
}

void uf__lock_wake(uf_lock *lock)
{
    syscall(SYS_futex, &lock->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Ends ownership; the calling thread holds the lock the others' way. */
static void share(uf_lock *lock)
{
    if (atomic_load_explicit(&lock->owner, memory_order_relaxed) == UF_LOCK_SHARED) {
        return;
    }
    atomic_store_explicit(&lock->owner, UF_LOCK_SHARED, memory_order_seq_cst);
    if (!make_stores_seen()) {
        nanosleep(&A_MOMENT, NULL); /* it was possible once: an owner's store takes no such time */
    }
    for (int i = 0; atomic_load_explicit(&lock->inside, memory_order_acquire) != 0; i++) {
        if (i < LOOKS) {
            pause_once();
        } else {
            nanosleep(&(struct timespec){0, 50000}, NULL); /* the owner is in a driver call */
        }
    }
}

bool uf__lock_own_or_share(uf_lock *lock)
{
    uintptr_t nobody = 0;
    uintptr_t wanted = make_stores_seen() ? uf__lock_self() : UF_LOCK_SHARED;
    (void)atomic_compare_exchange_strong(&lock->owner, &nobody, wanted);
    if (uf__lock_enter_as_owner(lock)) {
        return true;
    }
    uf__lock_take_shared(lock);
    share(lock);
    return false;
}
