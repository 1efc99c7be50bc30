/* SPDX-License-Identifier: MIT
 *
 * NVIDIA's management library, loaded at run time: cards and the processes that hold their memory,
 * without a context on any of them. What it does not tell is not known, never 0. One thread. */
#ifndef UF_DEVICE_NVML_H
#define UF_DEVICE_NVML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <unfrag/status.h>

/* Which members of a card are known. */
enum {
    UF_NVML_HAS_NAME = 1u << 0,
    UF_NVML_HAS_UUID = 1u << 1,
    UF_NVML_HAS_PCI = 1u << 2,
    UF_NVML_HAS_MEMORY = 1u << 3,   /* total and free */
    UF_NVML_HAS_RESERVED = 1u << 4, /* what driver and firmware keep */
    UF_NVML_HAS_MIG = 1u << 5,
    UF_NVML_HAS_ECC = 1u << 6,
    UF_NVML_HAS_ECC_ERRORS = 1u << 7,
    UF_NVML_HAS_COMPUTE_MODE = 1u << 8,
    UF_NVML_HAS_PROCESSES = 1u << 9
};

typedef struct uf_nvml_process {
    uint32_t pid;     /* as the host numbers processes, or as this container does */
    bool has_bytes;   /* on Windows and in containers the driver may not tell */
    bool is_graphics; /* draws; else computes */
    uint64_t bytes;
} uf_nvml_process;

typedef struct uf_nvml_card {
    unsigned valid; /* UF_NVML_HAS_* */
    char name[128];
    char uuid[96];
    char pci_bus_id[32]; /* as uf_cuda_probed writes it */
    uint64_t total_bytes, free_bytes, reserved_bytes;
    bool is_mig;                    /* split into instances */
    bool is_ecc;                    /* checked memory */
    uint64_t ecc_uncorrected_count; /* since the driver was loaded */
    bool is_exclusive;              /* one process at a time */
    bool is_prohibited;             /* no process at all */
    uf_nvml_process *processes;     /* by pid; one entry per process; owned */
    size_t process_count;
} uf_nvml_card;

typedef struct uf_nvml {
    bool has_library;
    char failure[200];       /* why there is nothing to tell; empty: there is */
    int result;              /* of nvmlInit; 0 = good */
    char driver_version[96]; /* "580.65.06"; empty: not known */
    uf_nvml_card *cards;     /* owned */
    uint32_t card_count;
} uf_nvml;

/* Asks for everything. A library that is not there, or refuses, is told in *nvml. Returns UF_OK or
 * UF_ERROR_HOST_MEMORY. The caller ends *nvml with uf__nvml_fini, whatever was returned. */
uf_status uf__nvml_read(uf_nvml *nvml, uf_error *error) UF_MUST_USE;
void uf__nvml_fini(uf_nvml *nvml);

#endif
