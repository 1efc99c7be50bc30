/* SPDX-License-Identifier: MIT
 *
 * Running independent jobs on a few threads. Owns the threads for the length of one call. */
#ifndef UF_ADVISE_WORKERS_H
#define UF_ADVISE_WORKERS_H

#include <stdbool.h>
#include <stdint.h>

#include <unfrag/status.h>

/* One job; called on any thread, once for each index. A status other than UF_OK ends the run. */
typedef uf_status (*uf_worker_job)(void *context, uint32_t index, uf_error *error);

/* Called on the calling thread's behalf after each job, one at a time; false ends the run with
 * UF_ERROR_INTERRUPTED. */
typedef bool (*uf_worker_watch)(void *context, uint32_t done_count, uint32_t count);

/* Runs job(context, 0 .. count - 1) on thread_count threads (0 = one per core). The order is not
 * fixed: jobs must not depend on each other. Returns the status of the failing job with the lowest
 * index, UF_ERROR_INTERRUPTED, or UF_OK. */
uf_status uf__workers_run(uint32_t thread_count, uint32_t count, uf_worker_job job,
                          uf_worker_watch watch, void *context, uf_error *error) UF_MUST_USE;

#endif
