/* SPDX-License-Identifier: MIT
 *
 * Worker threads. */
#include "advise/workers.h"

#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

enum { MAX_THREADS = 64 };

typedef struct uf_workers {
    pthread_mutex_t lock; /* guards all below */
    uf_worker_job job;
    uf_worker_watch watch;
    void *context;
    uint32_t next, count, done_count;
    uint32_t failed_index;
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
        workers->done_count++;
        if (status != UF_OK && (workers->status == UF_OK || index < workers->failed_index)) {
            workers->status = status;
            workers->error = error;
            workers->failed_index = index;
        } else if (status == UF_OK && workers->status == UF_OK && workers->watch != NULL &&
                   !workers->watch(workers->context, workers->done_count, workers->count)) {
            workers->status = UF_ERROR_INTERRUPTED;
            workers->error = (uf_error){UF_ERROR_INTERRUPTED, "interrupted"};
            workers->failed_index = UINT32_MAX;
        }
    }
    pthread_mutex_unlock(&workers->lock);
    return NULL;
}

uf_status uf__workers_run(uint32_t thread_count, uint32_t count, uf_worker_job job,
                          uf_worker_watch watch, void *context, uf_error *error)
{
    uf_workers workers = {.lock = PTHREAD_MUTEX_INITIALIZER,
                          .job = job,
                          .watch = watch,
                          .context = context,
                          .count = count};
    if (thread_count == 0) {
        long cores = sysconf(_SC_NPROCESSORS_ONLN);
        thread_count = cores > 0 ? (uint32_t)cores : 1;
    }
    thread_count = thread_count > MAX_THREADS ? MAX_THREADS : thread_count;
    pthread_t threads[MAX_THREADS];
    uint32_t started_count = 0;
    while (started_count + 1 < thread_count && started_count + 1 < count &&
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
