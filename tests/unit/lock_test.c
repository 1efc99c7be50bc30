/* SPDX-License-Identifier: MIT
 *
 * The lock: exclusion among threads, counted without atomics, whether they spin or sleep. */
#include "base/lock.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

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

static bool is_free(const uf_lock *lock)
{
    return lock->state == 0 && lock->inside == 0 && lock->sleepers == 0;
}

START_TEST(nobody_holds_a_lock_at_first_and_after_it_was_given_back)
{
    uf_lock lock = {0};
    uf__lock_take(&lock);
    ck_assert_uint_eq(lock.state + lock.inside, 1);
    uf__lock_give(&lock);
    ck_assert(is_free(&lock));
}
END_TEST

static void *take_once(void *context)
{
    uf__lock_take(context);
    uf__lock_give(context);
    return NULL;
}

static void run_thread(void *(*what)(void *), void *context)
{
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, what, context), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

START_TEST(the_first_thread_owns_it_until_a_second_one_comes)
{
    uf_lock lock = {0};
    uf__lock_take(&lock);
    uf__lock_give(&lock);
    uintptr_t owner = lock.owner;
    ck_assert(owner == uf__lock_self() || owner == UF_LOCK_SHARED); /* no membarrier here */
    run_thread(take_once, &lock);
    ck_assert(lock.owner == UF_LOCK_SHARED);
    uf__lock_take(&lock);
    ck_assert_uint_eq(lock.state, 1);
    uf__lock_give(&lock);
    ck_assert(is_free(&lock));
}
END_TEST

START_TEST(an_owner_that_ended_keeps_nobody_out)
{
    uf_lock lock = {0};
    run_thread(take_once, &lock);
    uf__lock_take(&lock);
    uf__lock_give(&lock);
    ck_assert(is_free(&lock));
}
END_TEST

/* The owner is busy inside while others come for the first time, again and again. */
START_TEST(no_step_is_lost_while_ownership_ends)
{
    for (int i = 0; i < 200; i++) {
        shared s = {.is_slow = false};
        pthread_t other;
        uf__lock_take(&s.lock);
        s.count++;
        uf__lock_give(&s.lock);
        ck_assert_int_eq(pthread_create(&other, NULL, count_up, &s), 0);
        for (int j = 0; j < STEP_COUNT; j++) {
            uf__lock_take(&s.lock);
            s.count++;
            uf__lock_give(&s.lock);
        }
        ck_assert_int_eq(pthread_join(other, NULL), 0);
        ck_assert_uint_eq(s.count, 2 * STEP_COUNT + 1);
        ck_assert(is_free(&s.lock));
    }
}
END_TEST

static void *fork_and_take(void *context)
{
    pid_t child = fork();
    if (child == 0) {
        (void)take_once(context); /* its owner is not here */
        _exit(is_free(context) ? 0 : 1);
    }
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    return NULL;
}

START_TEST(a_child_made_by_another_thread_than_the_owner_may_take_it)
{
    uf_lock lock = {0};
    (void)take_once(&lock);
    run_thread(fork_and_take, &lock);
    (void)fork_and_take(&lock);
}
END_TEST

START_TEST(no_step_of_eight_threads_is_lost)
{
    shared s = {.is_slow = false};
    run_threads(&s);
    ck_assert_uint_eq(s.count, (uint64_t)THREAD_COUNT * STEP_COUNT);
    ck_assert(is_free(&s.lock));
}
END_TEST

START_TEST(threads_that_slept_are_woken_and_lose_no_step)
{
    shared s = {.is_slow = true};
    run_threads(&s);
    ck_assert_uint_eq(s.count, (uint64_t)THREAD_COUNT * (STEP_COUNT / 200));
    ck_assert(is_free(&s.lock));
}
END_TEST

int main(void)
{
    return suite_run("lock", (const TTest *const[]){
                                 nobody_holds_a_lock_at_first_and_after_it_was_given_back,
                                 the_first_thread_owns_it_until_a_second_one_comes,
                                 an_owner_that_ended_keeps_nobody_out,
                                 no_step_is_lost_while_ownership_ends,
                                 a_child_made_by_another_thread_than_the_owner_may_take_it,
                                 no_step_of_eight_threads_is_lost,
                                 threads_that_slept_are_woken_and_lose_no_step,
                                 NULL,
                             });
}
