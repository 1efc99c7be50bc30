/* SPDX-License-Identifier: MIT
 *
 * Processes that hold a card's memory: what the driver lists, seen through /proc. A process that
 * the driver names and /proc does not show lives in another container, or has ended. Never ends a
 * process. Reads only below the root it is given. One thread. */
#ifndef UF_ADVISE_HOLDER_H
#define UF_ADVISE_HOLDER_H

#include "device/nvml.h"

typedef enum uf_holder_kind {
    UF_HOLDER_PLAIN,
    UF_HOLDER_ZOMBIE,    /* has ended; its parent has not taken notice */
    UF_HOLDER_STUCK,     /* in uninterruptible sleep: waits within the kernel */
    UF_HOLDER_STOPPED,   /* by a signal or a debugger, and holds its memory meanwhile */
    UF_HOLDER_CONTAINER, /* visible here, in a container that is not ours */
    UF_HOLDER_UNSEEN     /* /proc does not show it: see uf_holders.is_whole_host */
} uf_holder_kind;

typedef struct uf_holder {
    uint32_t pid;
    uint32_t parent_pid; /* 0 = not known */
    uf_holder_kind kind;
    bool has_user;
    uint32_t user_id;
    char name[32];      /* the program's; empty: not known */
    char command[160];  /* how it was started, blanks between words; empty: not known */
    char container[16]; /* the container's id, shortened; empty: none, or not known */
    int card;           /* index of the driver's list; -1 = not known (found by open files) */
    bool has_bytes;
    bool is_graphics;
    uint64_t bytes;
} uf_holder;

typedef struct uf_holders {
    uf_holder *items; /* by card, largest first, unknown size last; owned */
    size_t count, capacity;
    bool is_by_files;      /* found by who has the device files open: sizes are not known */
    bool is_whole_host;    /* /proc shows every process of the machine: we are in no container */
    bool is_container;     /* a container is recognised around us */
    uint32_t hidden_count; /* processes whose open files we may not see */
} uf_holders;

/* Where things lie; "" for the real ones. */
typedef struct uf_holder_place {
    const char *root; /* in front of /proc; borrowed */
    uint32_t own_pid; /* left out; 0 = nobody */
} uf_holder_place;

/* nvml may have no cards, or no lists: then whoever has a device file open is listed. Returns UF_OK
 * or UF_ERROR_HOST_MEMORY. The caller ends *holders with uf__holders_fini, whatever was returned.
 */
uf_status uf__holders_read(const uf_nvml *nvml, const uf_holder_place *place, uf_holders *holders,
                           uf_error *error) UF_MUST_USE;
void uf__holders_fini(uf_holders *holders);

/* "zombie", "in another container" ...; "" for a plain one. Static text. */
const char *uf__holder_kind_name(const uf_holders *holders, const uf_holder *holder);

#endif
