/* SPDX-License-Identifier: MIT
 *
 * A list of expected events that a model's host callbacks are checked against, one by one. Also
 * dictates what a model cannot know: addresses of new segments, and the order of completions and of
 * emptied pools, read off the events that are expected next. Single-threaded. */
#ifndef OPLOG_EXPECT_H
#define OPLOG_EXPECT_H

#include "oplog/model.h"

typedef struct expect_event {
    uf_action action;
    uint64_t addr, size_bytes, stream;
} expect_event;

/* Which pool a piece of memory came for. */
typedef struct expect_owner {
    uint64_t addr, size_bytes, pool[2];
} expect_owner;

/* An address that was given to another model, to be given again in the same order. */
typedef struct expect_addr {
    uint64_t size_bytes, addr;
    bool is_reservation;
} expect_addr;

typedef struct expect {
    expect_event *events;
    size_t count, capacity;
    size_t cursor; /* events before it were seen */
    expect_owner *owners;
    size_t owner_count, owner_capacity;
    uint64_t pool[2]; /* of the redirection under way; the runner keeps it */
    bool has_addrs;   /* take addresses from addrs, not from the events */
    expect_addr *addrs;
    size_t addr_count, addr_capacity, addr_cursor;
    bool is_different;
    char text[600]; /* the first difference */
} expect;

/* The host callbacks of a model that is to behave as expected. Borrows expect. */
model_host expect_host(expect *e);

void expect_append(expect *e, const expect_event *event);
void expect_addr_append(expect *e, const expect_addr *addr);
void expect_clear(expect *e); /* forgets events and addresses, keeps owners and memory */
void expect_fini(expect *e);

/* Records a difference, unless there is one already. */
void expect_differ(expect *e, const char *format, ...) UF_PRINTF(2, 3);

/* True when everything expected has happened; else records a difference. */
bool expect_finish(expect *e);

/* One event as text. text holds 160 bytes. */
void expect_event_text(const expect_event *event, char *text);

#endif
