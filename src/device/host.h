/* SPDX-License-Identifier: MIT
 *
 * What the files of the host device ask of each other. Everything is guarded by uf_host.mutex;
 * functions that end in _locked need it. Not for anyone outside src/device.
 *
 *   host.c         the device's functions, faults, failures on order, plain segments
 *   host_pages.c   pieces of one memory file, and where they are mapped
 *   host_stream.c  queues of kernels, and events
 *   host_bytes.c   setting and comparing bytes
 *
 *   memory file  [ piece 1 ][   piece 2   ][ hole ][ piece 4 ]      a handle names a piece
 *                      \            \________________  \
 *   range        |  PROT_NONE  [ piece 1 ][  none  ][   piece 2   ][ piece 4 ][ none ]  |
 *   slots        |      0     |     1    |     0   |  2  |   2   |     4     |   0      | */
#ifndef UF_DEVICE_HOST_H
#define UF_DEVICE_HOST_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <unfrag/host.h>

/* A stretch of the memory file. It holds memory as long as it has a name or is mapped. */
typedef struct uf_host_piece {
    uint64_t offset_bytes, size_bytes;
    uint64_t mapping_count;
    uint32_t generation; /* of the handle: names are not reused soon */
    bool is_there;
    bool is_named; /* its handle was not released */
} uf_host_piece;

/* A granule of reserved address space. */
typedef struct uf_host_slot {
    uint32_t piece; /* index + 1, 0 = nothing is mapped */
    bool is_first;  /* the piece begins here */
    bool has_access;
} uf_host_slot;

typedef struct uf_host_range {
    uint64_t addr, size_bytes; /* size_bytes 0 = the entry is vacant */
    uf_host_slot *slots;
} uf_host_range;

typedef struct uf_host_segment {
    uint64_t addr, size_bytes; /* size_bytes 0 = the entry is vacant */
} uf_host_segment;

typedef struct uf_host_job {
    uf_host_kernel kernel;
    void *context;
    uint64_t addr, size_bytes;
} uf_host_job;

/* Jobs [run_count, launch_count) of a stream are queued, at jobs[n - base_count]. */
typedef struct uf_host_stream {
    uint64_t handle;
    uint64_t launch_count, run_count, base_count;
    uf_host_job *jobs;
    uint32_t job_capacity;
} uf_host_stream;

typedef struct uf_host_event {
    uint32_t stream;     /* index */
    uint32_t generation; /* of its name */
    uint64_t point;      /* reached once so many jobs of the stream ran */
    bool is_there;
} uf_host_event;

typedef struct uf_host_failure {
    uint64_t at_count; /* the call from now that fails, 0 = none */
    bool is_lasting;
    uf_status status;
} uf_host_failure;

struct uf_host {
    uf_device device;
    pthread_mutex_t mutex; /* guards all that follows */
    uint64_t total_bytes, capacity_bytes, granularity_bytes;
    uint64_t file_bytes; /* where the memory file ends */
    int file;
    uf_host_piece *pieces;
    uint32_t piece_count, piece_capacity;
    uf_host_range *ranges;
    uint32_t range_count, range_capacity;
    uf_host_segment *segments;
    uint32_t segment_count, segment_capacity;
    uf_host_stream *streams;
    uint32_t stream_count, stream_capacity;
    uf_host_event *events;
    uint32_t event_count, event_capacity;
    uf_host_failure failures[UF_HOST_CALL_COUNT];
    uf_host_counts counts;
    uint64_t fault_count;
    uf_error fault; /* the newest */
};

/* host.c */

/* Records a broken rule; returns UF_ERROR_DEVICE. */
uf_status uf__host_fault_locked(uf_host *host, const char *format, ...) UF_PRINTF(2, 3);
/* Whether so many more bytes can be handed out. */
bool uf__host_has_room_locked(const uf_host *host, uint64_t size_bytes);
/* Makes room for `needed` items; false if the host has no memory. */
bool uf__host_list_reserve(void **items, uint32_t *capacity, size_t item_bytes, uint32_t needed);
/* Address space or anonymous memory, aligned to the granularity; 0 if there is none. */
uint64_t uf__host_space_take(uint64_t size_bytes, uint64_t alignment_bytes, int protection);

/* host_pages.c: the functions of uf_device by the same names. */
uf_status uf__host_range_reserve_locked(uf_host *host, uint64_t size_bytes, uint64_t *addr);
uf_status uf__host_range_release_locked(uf_host *host, uint64_t addr, uint64_t size_bytes);
uf_status uf__host_handle_create_locked(uf_host *host, uint64_t size_bytes, uint64_t *handle);
uf_status uf__host_handle_release_locked(uf_host *host, uint64_t handle, uint64_t size_bytes);
uf_status uf__host_handle_map_locked(uf_host *host, uint64_t addr, uint64_t handle,
                                     uint64_t size_bytes);
uf_status uf__host_range_access_locked(uf_host *host, uint64_t addr, uint64_t size_bytes,
                                       uint64_t handle_count);
uf_status uf__host_range_unmap_locked(uf_host *host, uint64_t addr, uint64_t size_bytes,
                                      uint64_t handle_count);
uf_status uf__host_pages_map_locked(uf_host *host, uint64_t addr, uint64_t size_bytes,
                                    uint64_t page_bytes);
uf_status uf__host_pages_unmap_locked(uf_host *host, uint64_t addr, uint64_t size_bytes,
                                      uint64_t page_bytes);
/* Whether all of it is mapped with access, in one range. */
bool uf__host_range_is_accessible_locked(const uf_host *host, uint64_t addr, uint64_t size_bytes);
/* How many whole handles are mapped in a stretch; UINT64_MAX where it cuts one, or has a gap. */
uint64_t uf__host_mapped_count_locked(const uf_host *host, uint64_t addr, uint64_t size_bytes);
void uf__host_pages_fini(uf_host *host);

/* host_stream.c */
uf_status uf__host_launch_locked(uf_host *host, uint64_t handle, const uf_host_job *job);
/* Runs jobs of one stream, at most `count`. */
uint64_t uf__host_run_locked(uf_host *host, uint64_t handle, uint64_t count);
void uf__host_run_all_locked(uf_host *host);
/* A stream in whose queue is a job that touches the stretch; false if there is none. */
bool uf__host_is_in_flight_locked(const uf_host *host, uint64_t addr, uint64_t size_bytes,
                                  uint64_t *stream);
uf_status uf__host_event_record_locked(uf_host *host, uint64_t handle, uint64_t *event);
uf_status uf__host_event_query_locked(uf_host *host, uint64_t event, bool *is_done);
uf_status uf__host_event_wait_locked(uf_host *host, uint64_t event);
void uf__host_streams_fini(uf_host *host);

/* host_bytes.c: the functions of uf_device by the same names; the second waits for nothing. */
uf_status uf__host_bytes_set_locked(uf_host *host, uint64_t addr, uint64_t size_bytes,
                                    uint8_t value, uint64_t stream);
uf_status uf__host_bytes_compare_locked(uf_host *host, uint64_t addr, uint64_t size_bytes,
                                        uint8_t value, uint64_t *other_count,
                                        uint64_t *first_offset);

/* Whether a job may touch the stretch now: in a segment, or mapped with access (host.c). */
bool uf__host_is_accessible_locked(const uf_host *host, uint64_t addr, uint64_t size_bytes);

#endif
