/* SPDX-License-Identifier: MIT
 *
 * The lock: exclusion among threads, counted without atomics, whether they spin or sleep. */
#include "base/lock.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "unit/suite.h"

enum { THREAD_COUNT = 8, STEP_COUNT = 20000 };

typedef struct shared {
    uf_lock lock;
    uint64_t count; /* guarded by the lock */
    bool is_slow;   /* holders give the processor away, so that others go to sleep */
} shared;

static void *count_up(void *context)
{
    shared *s = context;
    int steps = s->is_slow ? STEP_COUNT / 200 : STEP_COUNT;
    for (int i = 0; i < steps; i++) {
        uf__lock_take(&s->lock);
        uint64_t seen = s->count;
        if (s->is_slow) {
            nanosleep(&(struct timespec){0, 100000}, NULL);
        }
        s->count = seen + 1;
        uf__lock_give(&s->lock);
    }
    return NULL;
}

static void run_threads(shared *s)
{
    pthread_t threads[THREAD_COUNT];
    for (int i = 0; i < THREAD_COUNT; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, count_up, s), 0);
    }
    for (int i = 0; i < THREAD_COUNT; i++) {
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    }
}

START_TEST(nobody_holds_a_lock_at_first_and_after_it_was_given_back)
{
    uf_lock lock = {0};
    uf__lock_take(&lock);
    ck_assert_uint_eq(lock.state, 1);
    uf__lock_give(&lock);
    ck_assert_uint_eq(lock.state, 0);
}
END_TEST

START_TEST(no_step_of_eight_threads_is_lost)
{
    shared s = {.is_slow = false};
    run_threads(&s);
    ck_assert_uint_eq(s.count, (uint64_t)THREAD_COUNT * STEP_COUNT);
    ck_assert_uint_eq(s.lock.state, 0);
}
END_TEST

START_TEST(threads_that_slept_are_woken_and_lose_no_step)
{
    shared s = {.is_slow = true};
    run_threads(&s);
    ck_assert_uint_eq(s.count, (uint64_t)THREAD_COUNT * (STEP_COUNT / 200));
    ck_assert_uint_eq(s.lock.state, 0);
}
END_TEST

int main(void)
{
    return suite_run("lock", (const TTest *const[]){
                                 nobody_holds_a_lock_at_first_and_after_it_was_given_back,
                                 no_step_of_eight_threads_is_lost,
                                 threads_that_slept_are_woken_and_lose_no_step,
                                 NULL,
                             });
}
