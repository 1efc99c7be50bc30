/* SPDX-License-Identifier: MIT
 *
 * Running independent jobs on a few threads. Owns the threads for the length of one call. */
#ifndef UF_ADVISE_WORKERS_H
#define UF_ADVISE_WORKERS_H

#include <stdint.h>

#include <unfrag/status.h>

/* One job; called on any thread, at most once for each index. A status other than UF_OK (such as
 * UF_ERROR_INTERRUPTED) lets no further job begin. */
typedef uf_status (*uf_worker_job)(void *context, uint32_t index, uf_error *error);

/* Runs job(context, 0 .. count - 1) on thread_count threads (0 = one per core, at most 64), the
 * calling one among them. Jobs begin in the order of their indices but must not depend on each
 * other. Returns the status and error of the failing job with the lowest index, or UF_OK. */
uf_status uf__workers_run(uint32_t thread_count, uint32_t count, uf_worker_job job, void *context,
                          uf_error *error) UF_MUST_USE;

#endif
