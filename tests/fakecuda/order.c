/* SPDX-License-Identifier: MIT
 *
 * Calls of the fake driver library: each is counted by name, and fails, takes long or lies when a
 * test has ordered so. Guarded by world.mutex. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "world.h"

enum { CALLS_MAX = 128, ORDERS_MAX = 16 };

typedef struct call_record {
    const char *name;
    uint64_t count;
} call_record;

typedef enum order_kind { FAIL, DELAY, CORRUPT } order_kind;

typedef struct order {
    char call[48]; /* empty: any */
    uint64_t at_count;
    order_kind kind;
    bool is_lasting;
    int value; /* error number, or microseconds */
} order;

fake_world world = {.mutex = PTHREAD_MUTEX_INITIALIZER, .random = 1};

static call_record calls[CALLS_MAX];
static uint32_t call_record_count;
static uint64_t all_count, fault_count;
static order orders[ORDERS_MAX];
static uint32_t order_count;
static char fault[300];

void fake_fault(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(fault, sizeof fault, format, arguments);
    va_end(arguments);
    fault_count++;
}

static void count_call(const char *call)
{
    for (uint32_t i = 0; i < call_record_count; i++) {
        if (strcmp(calls[i].name, call) == 0) {
            calls[i].count++;
            return;
        }
    }
    if (call_record_count < CALLS_MAX) {
        calls[call_record_count++] = (call_record){call, 1};
    }
}

/* What the orders say of this call. */
static int obey(const char *call)
{
    int result = strcmp(world.setup.liar, call) == 0 ? LIE : SUCCESS;
    for (uint32_t i = 0; i < order_count; i++) {
        order *o = &orders[i];
        if ((o->call[0] != '\0' && strcmp(o->call, call) != 0) || o->at_count == 0 ||
            --o->at_count != 0) {
            continue;
        }
        if (o->is_lasting) {
            o->at_count = 1;
            if (o->call[0] == '\0') { /* from now on it is about this one */
                (void)snprintf(o->call, sizeof o->call, "%s", call);
            }
        }
        if (o->kind == DELAY) {
            (void)usleep((useconds_t)o->value);
        } else if (result == SUCCESS) {
            result = o->kind == FAIL ? o->value : LIE;
        }
    }
    return result;
}

int fake_begin(const char *call, fake_kind kind)
{
    (void)pthread_mutex_lock(&world.mutex);
    if (world.is_over) {
        return DEINITIALIZED;
    }
    if (kind == UNSAFE && fake_capture_forbids(call)) {
        fake_fault("%s invalidates a capture", call);
        return CAPTURE_UNSUPPORTED;
    }
    if (kind == QUIET) {
        return SUCCESS;
    }
    count_call(call);
    all_count++;
    return obey(call);
}

int fake_end(int result)
{
    (void)pthread_mutex_unlock(&world.mutex);
    return result == LIE ? SUCCESS : result;
}

static void give_order(const char *call, uint64_t at, bool is_lasting, order_kind kind, int value)
{
    (void)pthread_mutex_lock(&world.mutex);
    if (order_count < ORDERS_MAX) {
        order *o = &orders[order_count++];
        *o = (order){.at_count = at, .kind = kind, .is_lasting = is_lasting, .value = value};
        (void)snprintf(o->call, sizeof o->call, "%s", call != NULL ? call : "");
    }
    (void)pthread_mutex_unlock(&world.mutex);
}

static void api_refuse(const char *call, uint64_t at, bool is_lasting, int result)
{
    give_order(call, at, is_lasting, FAIL, result);
}

static void api_delay(const char *call, uint64_t at, bool is_lasting, unsigned microseconds)
{
    give_order(call, at, is_lasting, DELAY, (int)microseconds);
}

static void api_corrupt(const char *call, uint64_t at, bool is_lasting)
{
    give_order(call, at, is_lasting, CORRUPT, 0);
}

static void api_obey_nothing(void)
{
    (void)pthread_mutex_lock(&world.mutex);
    order_count = 0;
    (void)pthread_mutex_unlock(&world.mutex);
}

static uint64_t api_call_count(const char *call)
{
    uint64_t count = call == NULL ? all_count : 0;
    for (uint32_t i = 0; i < call_record_count && call != NULL; i++) {
        count += strcmp(calls[i].name, call) == 0 ? calls[i].count : 0;
    }
    return count;
}

static const char *api_call_name(uint32_t index)
{
    return index < call_record_count ? calls[index].name : NULL;
}

static uint64_t api_fault_count(char *text, size_t capacity)
{
    uint64_t count = fault_count;
    if (fault_count != 0) {
        (void)snprintf(text, capacity, "%s", fault);
    }
    for (int i = 0; i < FAKE_CARDS_MAX; i++) {
        uf_error last = {UF_OK, ""};
        uint64_t found = world.gpus[i].host != NULL ? uf_host_faults(world.gpus[i].host, &last) : 0;
        if (found != 0) {
            (void)snprintf(text, capacity, "%s", last.text);
        }
        count += found;
    }
    return count;
}

static void api_counts(fake_counts *counts)
{
    *counts = (fake_counts){0};
    for (int i = 0; i < FAKE_CARDS_MAX; i++) {
        uf_host_counts found = {0};
        if (world.gpus[i].host != NULL) {
            uf_host_counts_get(world.gpus[i].host, &found);
        }
        counts->in_use_bytes += found.in_use_bytes;
        counts->segment_count += found.segment_count;
        counts->range_count += found.range_count;
        counts->handle_count += found.handle_count;
        counts->mapping_count += found.mapping_count;
        counts->context_count += (uint64_t)world.gpus[i].retain_count;
    }
    for (int i = FAKE_CARDS_MAX; i < FAKE_CONTEXTS_MAX; i++) {
        counts->context_count += world.contexts[i].is_there;
    }
    fake_stream_counts(counts);
}

static void api_others(int card, uint64_t bytes)
{
    world.gpus[card].others_bytes = bytes;
}

static void api_forget(void)
{
    (void)pthread_mutex_lock(&world.mutex);
    fake_events_forget();
    fake_segments_forget();
    if (fake_handles_forget != NULL) {
        fake_handles_forget();
    }
    for (int i = 0; i < FAKE_CARDS_MAX; i++) {
        uf_host_destroy(world.gpus[i].host);
        world.gpus[i] = (fake_gpu){0};
        world.contexts[i].is_there = false;
    }
    fault_count = 0;
    (void)pthread_mutex_unlock(&world.mutex);
}

static void api_deinitialize(void)
{
    world.is_over = true;
}

static uf_host *api_host(int card)
{
    return world.gpus[card].host;
}

EXPORT const fake_api fake_api_table = {.host = api_host,
                                        .refuse = api_refuse,
                                        .delay = api_delay,
                                        .corrupt = api_corrupt,
                                        .obey_nothing = api_obey_nothing,
                                        .call_count = api_call_count,
                                        .call_name = api_call_name,
                                        .fault_count = api_fault_count,
                                        .counts = api_counts,
                                        .others = api_others,
                                        .forget = api_forget,
                                        .deinitialize = api_deinitialize};
