/* SPDX-License-Identifier: MIT
 *
 * Jobs on threads: each once, the lowest failure, nothing begun after it. */
#include "advise/workers.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "suite.h"

enum { JOB_COUNT = 200 };

typedef struct tally {
    atomic_uint counts[JOB_COUNT];
    uint32_t failing_from; /* these indices fail */
    uf_status failure;
} tally;

static uf_status count_job(void *context, uint32_t index, uf_error *error)
{
    tally *seen = context;
    atomic_fetch_add(&seen->counts[index], 1);
    if (index < seen->failing_from) {
        return UF_OK;
    }
    return uf__error_set(error, seen->failure, "job %u", (unsigned)index);
}

static const uint32_t thread_counts[] = {0, 1, 2, 5, 64, 1000};

#define THREAD_CASES (sizeof thread_counts / sizeof thread_counts[0])

START_TEST(every_index_runs_once)
{
    for (size_t t = 0; t < THREAD_CASES; t++) {
        tally seen = {.failing_from = JOB_COUNT};
        ck_assert_int_eq(uf__workers_run(thread_counts[t], JOB_COUNT, count_job, &seen, NULL),
                         UF_OK);
        for (uint32_t i = 0; i < JOB_COUNT; i++) {
            ck_assert_uint_eq(atomic_load(&seen.counts[i]), 1);
        }
    }
}
END_TEST

START_TEST(the_failing_job_with_the_lowest_index_is_told)
{
    for (size_t t = 0; t < THREAD_CASES; t++) {
        for (uint32_t from = 0; from < JOB_COUNT; from += 33) {
            tally seen = {.failing_from = from, .failure = UF_ERROR_HOST_MEMORY};
            uf_error error = {0};
            char wanted[32];
            snprintf(wanted, sizeof wanted, "job %u", (unsigned)from);
            ck_assert_int_eq(uf__workers_run(thread_counts[t], JOB_COUNT, count_job, &seen, &error),
                             UF_ERROR_HOST_MEMORY);
            ck_assert_str_eq(error.text, wanted);
            for (uint32_t i = 0; i < JOB_COUNT; i++) {
                ck_assert_uint_le(atomic_load(&seen.counts[i]), 1);
                ck_assert(i > from || atomic_load(&seen.counts[i]) == 1);
            }
        }
    }
}
END_TEST

START_TEST(an_interruption_lets_no_further_job_begin)
{
    tally seen = {.failing_from = 3, .failure = UF_ERROR_INTERRUPTED};
    uf_error error = {0};
    ck_assert_int_eq(uf__workers_run(1, JOB_COUNT, count_job, &seen, &error), UF_ERROR_INTERRUPTED);
    for (uint32_t i = 0; i < JOB_COUNT; i++) {
        ck_assert_uint_eq(atomic_load(&seen.counts[i]), i <= 3 ? 1 : 0);
    }
    tally many = {.failing_from = 3, .failure = UF_ERROR_INTERRUPTED};
    ck_assert_int_eq(uf__workers_run(5, JOB_COUNT, count_job, &many, &error), UF_ERROR_INTERRUPTED);
    uint32_t begun = 0;
    for (uint32_t i = 0; i < JOB_COUNT; i++) {
        begun += atomic_load(&many.counts[i]);
    }
    ck_assert_uint_le(begun, 3 + 5); /* one under way per thread */
}
END_TEST

START_TEST(no_jobs_are_no_failure)
{
    tally seen = {.failing_from = 0, .failure = UF_ERROR_INTERNAL};
    ck_assert_int_eq(uf__workers_run(4, 0, count_job, &seen, NULL), UF_OK);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {every_index_runs_once, the_failing_job_with_the_lowest_index_is_told,
                            an_interruption_lets_no_further_job_begin, no_jobs_are_no_failure,
                            NULL};
    return suite_run("workers", tests);
}
