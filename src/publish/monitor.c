/* SPDX-License-Identifier: MIT
 *
 * An allocator's page and the thread that writes it. Lock order: the monitor's mutex, then the
 * allocator's lock; so nothing here may be called with the allocator's lock held, and
 * uf_monitor_publish asks the allocator first. */
#include <unfrag/monitor.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "alloc/allocator_parts.h"
#include "base/error.h"
#include "publish/page_file.h"
#include "publish/process.h"
#include "publish/sample.h"

#define PAGE_ASSERT(member, offset) \
    _Static_assert(offsetof(uf_monitor_page, member) == (offset), "docs/internals/monitor.md")
PAGE_ASSERT(sequence, 16);
PAGE_ASSERT(pid, 24);
PAGE_ASSERT(policy, 64);
PAGE_ASSERT(conf, 384);
PAGE_ASSERT(updated_ns, 640);
PAGE_ASSERT(pool_count, 752);
PAGE_ASSERT(history_next, 772);
PAGE_ASSERT(stats, 832);
PAGE_ASSERT(pools, 1856);
PAGE_ASSERT(streams, 3904);
PAGE_ASSERT(history, 5952);
_Static_assert(sizeof(uf_monitor_page) == 12288, "docs/internals/monitor.md");

enum { INTERVAL_DEFAULT_MS = 250, INTERVAL_LEAST_MS = 10, INTERVAL_MOST_MS = 3600000 };

/* options, pid and file are constant; the rest is guarded by the mutex. */
struct uf_monitor {
    uf_allocator *allocator;
    uint32_t interval_ms;
    bool has_thread;
    pid_t pid; /* of the process that opened it: a fork's copy writes nothing */
    uf_page_file file;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t stop;
    bool is_stopping;
    uf_sampler sampler;
    uf_monitor_page next; /* what is written to the file when it is whole */
};

/* Everything from `policy` on changes; what is before stays as it is. */
static void write_page(uf_monitor_page *to, const uf_monitor_page *from)
{
    const size_t first = offsetof(uf_monitor_page, policy);
    _Atomic uint64_t *sequence = (_Atomic uint64_t *)&to->sequence;
    uint64_t before = atomic_load_explicit(sequence, memory_order_relaxed);
    atomic_store_explicit(sequence, before + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    to->device_index = from->device_index;
    memcpy((char *)to + first, (const char *)from + first, sizeof *to - first);
    atomic_store_explicit(sequence, before + 2, memory_order_release);
}

static uf_status publish(uf_monitor *monitor, bool is_forced, uf_error *error)
{
    pthread_mutex_lock(&monitor->mutex);
    uf_monitor_page *page = &monitor->next;
    uf_status status =
        uf__sampler_take(&monitor->sampler, monitor->allocator, is_forced, page, error);
    if (status == UF_OK) {
        page->publish_count++;
        write_page(monitor->file.page, page);
    }
    pthread_mutex_unlock(&monitor->mutex);
    return status;
}

static uf_status look_at_nothing(void *context, const uf_allocator_view *view)
{
    (void)context;
    (void)view;
    return UF_OK;
}

uf_status uf_monitor_publish(uf_monitor *monitor, uf_error *error)
{
    if (monitor == NULL) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT, "the monitor is NULL");
    }
    if (getpid() != monitor->pid) {
        return UF_OK;
    }
    uf_status status = uf__allocator_look(monitor->allocator, look_at_nothing, NULL, error);
    return status == UF_OK ? publish(monitor, true, error) : status;
}

static void *run_thread(void *argument)
{
    uf_monitor *monitor = argument;
    struct timespec when;
    (void)clock_gettime(CLOCK_MONOTONIC, &when);
    pthread_mutex_lock(&monitor->mutex);
    while (!monitor->is_stopping) {
        int64_t nsec = when.tv_nsec + (int64_t)monitor->interval_ms * 1000000;
        when.tv_sec += (time_t)(nsec / 1000000000);
        when.tv_nsec = (long)(nsec % 1000000000);
        while (!monitor->is_stopping &&
               pthread_cond_timedwait(&monitor->stop, &monitor->mutex, &when) == 0) {
        }
        if (monitor->is_stopping) {
            break;
        }
        pthread_mutex_unlock(&monitor->mutex);
        (void)!publish(monitor, false, NULL);
        (void)clock_gettime(CLOCK_MONOTONIC, &when);
        pthread_mutex_lock(&monitor->mutex);
    }
    pthread_mutex_unlock(&monitor->mutex);
    return NULL;
}

/* No signal of the program's is ever delivered to the thread. */
static uf_status start_thread(uf_monitor *monitor, uf_error *error)
{
    enum { STACK_BYTES = 256 << 10 };
    sigset_t all, before;
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) {
        return uf__error_set(error, UF_ERROR_HOST_MEMORY, "no host memory to start a thread");
    }
    (void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(&monitor->thread, &attributes, run_thread, monitor);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (code != 0) {
        return uf__error_set(error, UF_ERROR_HOST_MEMORY,
                             "the monitor's thread cannot be started: %s; is_manual needs none",
                             strerror(code));
    }
    monitor->has_thread = true;
    return UF_OK;
}

/* Cuts a text at the end of a character. */
static void copy_text(char *to, size_t capacity, const char *from)
{
    size_t length = strnlen(from, capacity - 1);
    while (length > 0 && length == capacity - 1 && ((unsigned char)from[length] & 0xC0) == 0x80) {
        length--;
    }
    memset(to, 0, capacity);
    memcpy(to, from, length);
}

static void describe(uf_monitor *monitor, const uf_monitor_options *options)
{
    uf_monitor_page *page = &monitor->next;
    char own[sizeof page->command + 8];
    struct timespec now;
    uf__process_command(own, sizeof own);
    copy_text(page->command, sizeof page->command,
              options->command != NULL ? options->command : own);
    copy_text(page->device_name, sizeof page->device_name,
              options->device_name != NULL ? options->device_name : "");
    copy_text(page->device_uuid, sizeof page->device_uuid,
              options->device_uuid != NULL ? options->device_uuid : "");
    page->interval_ns = options->is_manual ? 0 : (int64_t)monitor->interval_ms * 1000000;
    if (clock_gettime(CLOCK_REALTIME, &now) == 0) {
        monitor->file.page->opened_unix_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    }
}

static uf_status take_options(uf_monitor_options *options, const uf_monitor_options *given,
                              uf_error *error)
{
    if (given == NULL || !uf__take_struct(options, sizeof *options, given) ||
        options->allocator == NULL) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "uf_monitor_open: options, options.allocator or monitor is NULL, or "
                             "options.struct_size_bytes is not sizeof(uf_monitor_options), %zu",
                             sizeof *options);
    }
    if (options->interval_ms == 0) {
        options->interval_ms = INTERVAL_DEFAULT_MS;
    }
    if (options->interval_ms < INTERVAL_LEAST_MS || options->interval_ms > INTERVAL_MOST_MS) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "an interval of %u ms was given; it is from %d to %d, or 0 for %d",
                             options->interval_ms, INTERVAL_LEAST_MS, INTERVAL_MOST_MS,
                             INTERVAL_DEFAULT_MS);
    }
    return UF_OK;
}

static bool init_locks(uf_monitor *monitor)
{
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes) != 0) {
        return false;
    }
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    bool is_made = pthread_cond_init(&monitor->stop, &attributes) == 0;
    pthread_condattr_destroy(&attributes);
    if (is_made && pthread_mutex_init(&monitor->mutex, NULL) != 0) {
        pthread_cond_destroy(&monitor->stop);
        is_made = false;
    }
    return is_made;
}

static void destroy(uf_monitor *monitor)
{
    bool is_owner = getpid() == monitor->pid;
    if (monitor->file.page != NULL) {
        uf__page_file_close(&monitor->file, is_owner);
    }
    /* In a fork's copy a thread that is not there seems to wait still, and ending the condition
     * would wait for it. */
    if (is_owner) {
        pthread_cond_destroy(&monitor->stop);
        pthread_mutex_destroy(&monitor->mutex);
    }
    uf__sampler_fini(&monitor->sampler);
    free(monitor);
}

static uf_status open_page(uf_monitor *monitor, const uf_monitor_options *options, uf_error *error)
{
    char directory[UF_PAGE_PATH_CAPACITY];
    uf_status status = uf__page_directory(options->directory, directory, error);
    if (status != UF_OK) {
        return status;
    }
    uf__page_directory_sweep(directory);
    status = uf__page_file_create(directory, &monitor->file, error);
    if (status != UF_OK) {
        return status;
    }
    describe(monitor, options);
    status = uf_monitor_publish(monitor, error);
    if (status == UF_OK) {
        atomic_thread_fence(memory_order_release);
        memcpy(monitor->file.page->magic, UF_MONITOR_MAGIC, sizeof monitor->file.page->magic);
    }
    return status;
}

uf_status uf_monitor_open(const uf_monitor_options *given, uf_monitor **monitor, uf_error *error)
{
    uf_monitor_options options;
    uf_status status = take_options(&options, monitor != NULL ? given : NULL, error);
    if (status != UF_OK) {
        return status;
    }
    uf_monitor *made = calloc(1, sizeof *made);
    if (made == NULL || !init_locks(made)) {
        free(made);
        return uf__error_set(error, UF_ERROR_HOST_MEMORY, "no host memory to make a monitor");
    }
    made->allocator = options.allocator;
    made->interval_ms = options.interval_ms;
    made->pid = getpid();
    status = open_page(made, &options, error);
    if (status == UF_OK && !options.is_manual) {
        status = start_thread(made, error);
    }
    if (status != UF_OK) {
        destroy(made);
        return status;
    }
    *monitor = made;
    return UF_OK;
}

void uf_monitor_close(uf_monitor *monitor)
{
    if (monitor == NULL) {
        return;
    }
    if (monitor->has_thread && getpid() == monitor->pid) {
        pthread_mutex_lock(&monitor->mutex);
        monitor->is_stopping = true;
        pthread_cond_signal(&monitor->stop);
        pthread_mutex_unlock(&monitor->mutex);
        pthread_join(monitor->thread, NULL);
    }
    destroy(monitor);
}
