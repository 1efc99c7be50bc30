/* SPDX-License-Identifier: MIT
 *
 * Shows an allocator to other processes (unfrag top, unfrag export): one page of numbers per
 * process and allocator, a small file in shared memory that a thread of the process keeps up to
 * date. The layout is documented to the byte in docs/internals/monitor.md; any program may write
 * such a page.
 *
 * Watching costs calls to the allocator nothing but the time for which a sample holds its lock. */
#ifndef UNFRAG_MONITOR_H
#define UNFRAG_MONITOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <unfrag/stats.h>
#include <unfrag/status.h>
#include <unfrag/unfrag.h>

#ifdef __cplusplus
extern "C" {
#endif

#define UF_MONITOR_MAGIC "unfragPG" /* 8 bytes, without a NUL */
#define UF_MONITOR_VERSION 1u
#define UF_MONITOR_POOL_ROWS 32
#define UF_MONITOR_STREAM_ROWS 32
#define UF_MONITOR_HISTORY 128

/* Stands where a number is not known; in `stats` it is INT64_MIN. */
#define UF_MONITOR_UNKNOWN UINT64_MAX

/* uf_monitor_pool_row.flags */
enum {
    UF_MONITOR_POOL_PRIVATE = 1u << 0,
    UF_MONITOR_POOL_NO_SPLIT = 1u << 1,
    UF_MONITOR_POOL_USE_ON_OOM = 1u << 2,
    UF_MONITOR_POOL_DESTROYED = 1u << 3 /* ended, with memory that is still handed out */
};

typedef struct uf_monitor_pool_row {
    uint64_t id[2]; /* {0, 0} = the default pool */
    uint64_t reserved_bytes, active_bytes, allocated_bytes, requested_bytes;
    uint32_t segment_count, block_count; /* blocks: the active ones */
    uint32_t flags, zero;
} uf_monitor_pool_row;

typedef struct uf_monitor_stream_row {
    uint64_t stream; /* the handle; 0 = the default stream */
    uint64_t reserved_bytes, active_bytes, allocated_bytes, requested_bytes;
    uint32_t segment_count, block_count;
    uint64_t zero[2];
} uf_monitor_stream_row;

typedef struct uf_monitor_history {
    int64_t time_ns; /* CLOCK_MONOTONIC; 0 = no entry */
    uint64_t reserved_bytes, active_bytes, allocated_bytes, requested_bytes;
    uint64_t allocation_count; /* ever */
} uf_monitor_history;

/* A page, 12288 bytes, in the byte order of the machine. Texts end with a NUL and are UTF-8 where
 * possible. `sequence` is odd while the rest is being written: who reads an odd one, or another one
 * after reading than before, reads again. Offsets stand at the right. */
typedef struct uf_monitor_page {
    /* who; constant while the page exists */
    char magic[8];          /*   0 UF_MONITOR_MAGIC, written last when the page is made */
    uint32_t version;       /*   8 UF_MONITOR_VERSION */
    uint32_t page_bytes;    /*  12 12288 */
    uint64_t sequence;      /*  16 */
    uint32_t pid;           /*  24 as the process sees itself */
    int32_t device_index;   /*  28 */
    uint64_t start_ticks;   /*  32 field 22 of /proc/PID/stat; 0 = not known */
    uint64_t pid_namespace; /*  40 inode of /proc/self/ns/pid; 0 = not known */
    int64_t opened_unix_ns; /*  48 when the page was made */
    uint64_t zero_56;       /*  56 */
    char policy[16];        /*  64 "torch", "unfrag", or "stock" for PyTorch's own allocator */
    char device_uuid[48];   /*  80 as NVML writes it; "" = not known */
    char device_name[64];   /* 128 "" = not known */
    char command[192];      /* 192 the command line, its words separated by blanks */
    /* the sample */
    char conf[256];                          /*  384 the settings in force, "" = none */
    int64_t updated_ns;                      /*  640 CLOCK_MONOTONIC */
    int64_t updated_unix_ns;                 /*  648 */
    uint64_t publish_count;                  /*  656 samples written so far */
    int64_t interval_ns;                     /*  664 until the next one; 0 = on demand */
    uint64_t limit_bytes;                    /*  672 0 = none */
    uint64_t device_total_bytes;             /*  680 the device's nominal memory */
    uint64_t device_free_bytes;              /*  688 what the driver can still hand out */
    uint64_t largest_request_bytes;          /*  696 served from the cache as it is */
    uint64_t largest_allocatable_bytes;      /*  704 also by giving back or moving cached memory */
    uint64_t cache_hit_count;                /*  712 requests served without the device */
    uint64_t cache_miss_count;               /*  720 requests served with the device's help */
    uint64_t remap_count;                    /*  728 pages moved to another address */
    uint64_t frozen_bytes;                   /*  736 in private pools, cannot be moved */
    int64_t rows_updated_ns;                 /*  744 when pool and stream rows were counted */
    uint32_t pool_count, pool_row_count;     /*  752, 756 all, and those shown: the largest */
    uint32_t stream_count, stream_row_count; /*  760, 764 */
    uint32_t history_count;                  /*  768 entries, at most UF_MONITOR_HISTORY */
    uint32_t history_next;                   /*  772 where the next goes: the oldest if full */
    uint64_t zero_776[7];                    /*  776 */
    uf_stats stats;                          /*  832 122 numbers of 8 bytes */
    uint64_t zero_1808[6];                   /* 1808 */
    uf_monitor_pool_row pools[UF_MONITOR_POOL_ROWS];       /* 1856 */
    uf_monitor_stream_row streams[UF_MONITOR_STREAM_ROWS]; /* 3904 */
    uf_monitor_history history[UF_MONITOR_HISTORY];        /* 5952 about one a second */
    uint64_t zero_12096[24];                               /* 12096 */
} uf_monitor_page;

/* An allocator's page and the thread that writes it. Opaque; guards itself. */
typedef struct uf_monitor uf_monitor;

/* struct_size_bytes = sizeof(uf_monitor_options); 0 elsewhere means default. */
typedef struct uf_monitor_options {
    size_t struct_size_bytes;
    uf_allocator *allocator; /* required; borrowed until uf_monitor_close */
    /* Where pages are: NULL = $UNFRAG_MONITOR_DIR, or else /dev/shm/unfrag-UID, or where there is
     * no /dev/shm $XDG_RUNTIME_DIR/unfrag, or else /tmp/unfrag-UID. Made if it is not there (only
     * its last part), with access for this user alone. Copied. */
    const char *directory;
    const char *command;     /* copied; NULL = the command line of this process */
    const char *device_name; /* copied; NULL = not known */
    const char *device_uuid; /* copied; NULL = not known */
    uint32_t interval_ms;    /* between samples; 0 = 250; 10 to 3600000 */
    bool is_manual;          /* no thread: only uf_monitor_publish writes samples */
} uf_monitor_options;

/* Makes the page of an allocator, writes a first sample, and starts the thread. Pages that dead
 * processes left in the directory are removed.
 * options: borrowed for the call, required. monitor: receives it. error: may be NULL.
 * Returns UF_OK; UF_ERROR_INVALID_ARGUMENT (no allocator, an interval outside its range, a
 * struct_size_bytes that is none); UF_ERROR_IO (the directory or the page cannot be made, or the
 * directory is open to other users); UF_ERROR_BUSY (called from inside on_event);
 * UF_ERROR_HOST_MEMORY (also: no thread can be started). *monitor is owned by the caller
 * (uf_monitor_close, before uf_allocator_destroy). Thread-safe. Since 0.1. */
UF_API uf_status uf_monitor_open(const uf_monitor_options *options, uf_monitor **monitor,
                                 uf_error *error) UF_MUST_USE;

/* Writes a sample now. In a process that was forked from the one that opened the monitor nothing
 * happens: the page is its parent's.
 * Returns UF_OK; UF_ERROR_INVALID_ARGUMENT (monitor is NULL); UF_ERROR_BUSY (called from inside
 * on_event). Thread-safe. Since 0.1. */
UF_API uf_status uf_monitor_publish(uf_monitor *monitor, uf_error *error) UF_MUST_USE;

/* Ends the thread and removes the page.
 * monitor: NULL is accepted. Ownership ends; no other thread may be inside a call on it. Must not
 * be called from inside on_event. Since 0.1. */
UF_API void uf_monitor_close(uf_monitor *monitor);

#ifdef __cplusplus
}
#endif
#endif
