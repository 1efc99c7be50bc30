/* SPDX-License-Identifier: MIT
 *
 * Runs an operation log on a model and compares what happens with the recording made along with it:
 * every event, every statistic, and the final layout. Single-threaded. */
#ifndef OPLOG_DRIVER_H
#define OPLOG_DRIVER_H

#include "oplog/expect.h"
#include "oplog/oplog.h"

/* What was recorded beside a log. */
typedef struct driver_recording {
    expect_event *events;
    size_t event_count, event_capacity;
    model_layout layout;
    oplog_stats stats;
} driver_recording;

/* Reads BASE.snapshot.pickle[.xz] and BASE.stats.json[.xz]. *recording is filled in and is to be
 * given to driver_recording_fini. */
uf_status driver_recording_read(const char *base, driver_recording *recording, uf_error *error);
void driver_recording_fini(driver_recording *recording);

typedef struct driver_report {
    bool is_equal;
    size_t op_count, event_count, stat_count; /* compared and equal */
    char text[1200];                          /* the first difference */
} driver_report;

/* Runs log on a fresh model. Returns UF_OK with the report filled in whether or not all is equal;
 * another status only if the model could not be created. */
uf_status driver_verify(const model_vtable *vtable, const oplog *log,
                        const driver_recording *recording, driver_report *report, uf_error *error);

/* The program around it: reads BASE's files, verifies, prints the report. Returns the exit status:
 * 0 all equal, 1 not, 2 wrong usage, 3 bad input. */
int driver_main(const model_vtable *vtable, int argc, char **argv);

/* Executes one operation. addrs holds the address of each allocation's id, 0 where not allocated;
 * operations on those are skipped (*is_skipped). *addr is the address an allocation got, or 0. */
uf_status driver_op_execute(const model_vtable *vtable, void *model, const oplog_op *op,
                            uint64_t *addrs, uint64_t *addr, bool *is_skipped, uf_error *error);

#endif
