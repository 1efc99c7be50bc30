/* SPDX-License-Identifier: MIT
 *
 * Worker threads. */
#include "advise/workers.h"

#include <pthread.h>
#include <unistd.h>

enum { MAX_THREADS = 64 };

typedef struct uf_workers {
    uf_worker_job job; /* these three never change */
    void *context;
    uint32_t count;
    pthread_mutex_t lock; /* guards what follows */
    uint32_t next;
    uint32_t failed_index; /* meaningful if status is not UF_OK */
    uf_status status;
    uf_error error;
} uf_workers;

static void *work(void *context)
{
    uf_workers *workers = context;
    pthread_mutex_lock(&workers->lock);
    while (workers->next < workers->count && workers->status == UF_OK) {
        uint32_t index = workers->next++;
        uf_error error = {.status = UF_OK};
        pthread_mutex_unlock(&workers->lock);
        uf_status status = workers->job(workers->context, index, &error);
        pthread_mutex_lock(&workers->lock);
        if (status != UF_OK && (workers->status == UF_OK || index < workers->failed_index)) {
            workers->status = status;
            workers->error = error;
            workers->failed_index = index;
        }
    }
    pthread_mutex_unlock(&workers->lock);
    return NULL;
}

static uint32_t thread_count_for(uint32_t asked_count, uint32_t job_count)
{
    if (asked_count == 0) {
        long cores = sysconf(_SC_NPROCESSORS_ONLN);
        asked_count = cores < 1 ? 1 : cores > MAX_THREADS ? MAX_THREADS : (uint32_t)cores;
    }
    asked_count = asked_count > MAX_THREADS ? MAX_THREADS : asked_count;
    return asked_count < job_count ? asked_count : job_count;
}

uf_status uf__workers_run(uint32_t thread_count, uint32_t count, uf_worker_job job, void *context,
                          uf_error *error)
{
    uf_workers workers = {
        .job = job, .context = context, .count = count, .lock = PTHREAD_MUTEX_INITIALIZER};
    thread_count = thread_count_for(thread_count, count);
    pthread_t threads[MAX_THREADS];
    uint32_t started_count = 0;
    while (started_count + 1 < thread_count &&
           pthread_create(&threads[started_count], NULL, work, &workers) == 0) {
        started_count++;
    }
    work(&workers); /* this thread works too, and alone where none could be started */
    for (uint32_t i = 0; i < started_count; i++) {
        pthread_join(threads[i], NULL);
    }
    pthread_mutex_destroy(&workers.lock);
    if (workers.status != UF_OK && error != NULL) {
        *error = workers.error;
    }
    return workers.status;
}
