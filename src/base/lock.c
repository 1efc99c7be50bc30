/* SPDX-License-Identifier: MIT
 *
 * The lock when it is held by another thread: looking again, then sleeping. */
#include "base/lock.h"

#include <linux/futex.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A critical section takes some 50 ns. Looks are 1, 2, 4 ... 64 pauses apart (a pause is 10 to
 * 40 ns); a lock that is held for longer than all of them is held during a driver call, and then it
 * is better to sleep. */
enum { LOOKS = 100, PAUSES_MOST = 64 };

static void pause_once(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
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
    /* From here on the state says that somebody sleeps, also once this thread holds the lock: it
     * cannot know whether it was the last. */
    while (atomic_exchange_explicit(&lock->state, 2, memory_order_acquire) != 0) {
        syscall(SYS_futex, &lock->state, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
    }
}

void uf__lock_wake(uf_lock *lock)
{
    syscall(SYS_futex, &lock->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
