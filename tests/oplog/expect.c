/* SPDX-License-Identifier: MIT
 *
 * Checking a model's events against expected ones. See expect.h. */
#include "oplog/expect.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const action_names[] = {
#define ACTION_NAME(name, text) text,
    UF_ACTION_LIST(ACTION_NAME)
#undef ACTION_NAME
};

void expect_event_text(const expect_event *event, char *text)
{
    (void)snprintf(text, 160, "%s 0x%" PRIx64 " size %" PRIu64 " stream 0x%" PRIx64,
                   action_names[event->action], event->addr, event->size_bytes, event->stream);
}

void expect_differ(expect *e, const char *format, ...)
{
    if (e->is_different) {
        return;
    }
    e->is_different = true;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(e->text, sizeof e->text, format, arguments);
    va_end(arguments);
}

void expect_append(expect *e, const expect_event *event)
{
    e->events = model_grow(e->events, e->count, &e->capacity, sizeof *e->events);
    e->events[e->count++] = *event;
}

void expect_addr_append(expect *e, const expect_addr *addr)
{
    e->addrs = model_grow(e->addrs, e->addr_count, &e->addr_capacity, sizeof *e->addrs);
    e->addrs[e->addr_count++] = *addr;
}

void expect_clear(expect *e)
{
    e->count = e->cursor = e->addr_count = e->addr_cursor = 0;
}

void expect_fini(expect *e)
{
    free(e->events);
    free(e->owners);
    free(e->addrs);
    *e = (expect){0};
}

static bool event_equal(const expect_event *a, const expect_event *b)
{
    return a->action == b->action && a->size_bytes == b->size_bytes && a->stream == b->stream &&
           (a->addr == b->addr || a->action == UF_ACTION_OOM);
}

/* A run of consecutive completions is a set: brings the one that happened to the cursor. */
static void bring_completion(expect *e, const expect_event *event)
{
    for (size_t i = e->cursor; i < e->count && e->events[i].action == UF_ACTION_FREE_COMPLETED;
         i++) {
        if (event_equal(&e->events[i], event)) {
            for (size_t k = i; k > e->cursor; k--) {
                e->events[k] = e->events[k - 1];
            }
            e->events[e->cursor] = *event;
            return;
        }
    }
}

static void own(expect *e, const expect_event *event)
{
    e->owners = model_grow(e->owners, e->owner_count, &e->owner_capacity, sizeof *e->owners);
    e->owners[e->owner_count++] = (expect_owner){
        .addr = event->addr, .size_bytes = event->size_bytes, .pool = {e->pool[0], e->pool[1]}};
}

static void host_event(void *context, uf_action action, uint64_t addr, uint64_t size_bytes,
                       uint64_t stream)
{
    expect *e = context;
    expect_event event = {action, addr, size_bytes, stream};
    if (e->is_different) {
        return;
    }
    if (action == UF_ACTION_SEGMENT_ALLOC || action == UF_ACTION_SEGMENT_MAP) {
        own(e, &event);
    }
    char got[160];
    expect_event_text(&event, got);
    if (e->cursor >= e->count) {
        expect_differ(e, "event %zu: expected none, got %s", e->cursor, got);
        return;
    }
    if (action == UF_ACTION_FREE_COMPLETED) {
        bring_completion(e, &event);
    }
    if (!event_equal(&e->events[e->cursor], &event)) {
        char wanted[160];
        expect_event_text(&e->events[e->cursor], wanted);
        expect_differ(e, "event %zu: expected %s, got %s", e->cursor, wanted, got);
        return;
    }
    e->cursor++;
}

/* The address that was given before, or the one the next event names. */
static bool dictate(expect *e, bool is_reservation, uint64_t size_bytes, uint64_t *addr)
{
    static const char *const kinds[] = {"segment", "reservation"};
    if (e->is_different) {
        return false;
    }
    if (e->has_addrs) {
        const expect_addr *next = &e->addrs[e->addr_cursor];
        if (e->addr_cursor >= e->addr_count || next->size_bytes != size_bytes ||
            next->is_reservation != is_reservation) {
            expect_differ(e, "event %zu: a %s of %" PRIu64 " bytes was asked for unexpectedly",
                          e->cursor, kinds[is_reservation], size_bytes);
            return false;
        }
        e->addr_cursor++;
        *addr = next->addr;
        return true;
    }
    uf_action wanted = is_reservation ? UF_ACTION_SEGMENT_MAP : UF_ACTION_SEGMENT_ALLOC;
    if (e->cursor >= e->count || e->events[e->cursor].action != wanted) {
        char text[160] = "none";
        if (e->cursor < e->count) {
            expect_event_text(&e->events[e->cursor], text);
        }
        expect_differ(e, "event %zu: expected %s, got a request for a %s of %" PRIu64 " bytes",
                      e->cursor, text, kinds[is_reservation], size_bytes);
        return false;
    }
    *addr = e->events[e->cursor].addr;
    return true;
}

static bool host_segment_addr(void *context, uint64_t size_bytes, uint64_t stream, uint64_t *addr)
{
    (void)stream;
    return dictate(context, false, size_bytes, addr);
}

static bool host_reservation_addr(void *context, uint64_t size_bytes, uint64_t *addr)
{
    return dictate(context, true, size_bytes, addr);
}

static bool host_completion(void *context, const uint64_t *candidates, size_t count, uint64_t *addr)
{
    const expect *e = context;
    (void)candidates;
    (void)count;
    if (e->cursor >= e->count || e->events[e->cursor].action != UF_ACTION_FREE_COMPLETED) {
        return false;
    }
    *addr = e->events[e->cursor].addr;
    return true;
}

/* The newest owner of an address; false if none. */
static bool find_owner(const expect *e, uint64_t addr, uint64_t pool[2])
{
    for (size_t i = e->owner_count; i > 0; i--) {
        const expect_owner *owner = &e->owners[i - 1];
        if (addr >= owner->addr && addr < owner->addr + owner->size_bytes) {
            pool[0] = owner->pool[0];
            pool[1] = owner->pool[1];
            return true;
        }
    }
    return false;
}

static size_t host_pool(void *context, const uint64_t (*ids)[2], size_t count)
{
    const expect *e = context;
    uint64_t pool[2];
    if (e->cursor >= e->count ||
        (e->events[e->cursor].action != UF_ACTION_SEGMENT_FREE &&
         e->events[e->cursor].action != UF_ACTION_SEGMENT_UNMAP) ||
        !find_owner(e, e->events[e->cursor].addr, pool)) {
        return count;
    }
    size_t index = 0;
    while (index < count && (ids[index][0] != pool[0] || ids[index][1] != pool[1])) {
        index++;
    }
    return index;
}

bool expect_finish(expect *e)
{
    if (!e->is_different && e->cursor < e->count) {
        char text[160];
        expect_event_text(&e->events[e->cursor], text);
        expect_differ(e, "event %zu: expected %s, got nothing", e->cursor, text);
    }
    return !e->is_different;
}

model_host expect_host(expect *e)
{
    return (model_host){.context = e,
                        .event = host_event,
                        .segment_addr = host_segment_addr,
                        .reservation_addr = host_reservation_addr,
                        .completion = host_completion,
                        .pool = host_pool};
}
