/* SPDX-License-Identifier: MIT
 *
 * What the driver and its devices can do, found out by doing it: on each device one granule of
 * memory is reserved, created, mapped, made accessible, and given back. Owns no memory afterwards.
 * One thread. */
#ifndef UF_DEVICE_CUDA_PROBE_H
#define UF_DEVICE_CUDA_PROBE_H

#include "device/cuda_driver.h"

#define UF_CUDA_DEVICES_MAX 64

/* In the order they are done. */
typedef enum uf_cuda_step {
    UF_CUDA_STEP_ATTRIBUTE, /* the device says by itself that it cannot */
    UF_CUDA_STEP_FUNCTION,  /* the driver library has no such function */
    UF_CUDA_STEP_CONTEXT,
    UF_CUDA_STEP_GRANULARITY,
    UF_CUDA_STEP_RESERVE,
    UF_CUDA_STEP_CREATE,
    UF_CUDA_STEP_MAP,
    UF_CUDA_STEP_ACCESS,
    UF_CUDA_STEP_UNMAP,
    UF_CUDA_STEP_RELEASE,
    UF_CUDA_STEP_GIVE_BACK /* the address range */
} uf_cuda_step;

typedef struct uf_cuda_trial {
    bool was_tried; /* false: nothing below is known */
    bool works;
    uf_cuda_step failed_step; /* the first that failed, if !works */
    int result;               /* the driver's error there; 0 where there is none */
    const char *result_name;  /* its name; NULL if result is 0; lives as long as the driver */
    uint64_t granule_bytes;   /* 0 = not known */
    uint64_t stuck_addr;      /* of a granule that could not be unmapped; 0 = none */
    uint64_t stuck_handle;    /* that could not be released; 0 = none */
} uf_cuda_trial;

/* A number is known if its has_ says so; else it is 0. */
typedef struct uf_cuda_probed {
    int index;
    char name[128];
    char pci_bus_id[32];  /* "0000:1B:00.0"; empty: not known */
    uint64_t total_bytes; /* 0 = not known */
    uint64_t free_bytes;  /* before the trials, with our own context */
    bool has_free_bytes;
    int capability_major, capability_minor; /* 0 = not known */
    int multiprocessor_count;               /* 0 = not known */
    bool is_integrated, has_integrated;
    bool can_rdma_with_vmm, has_rdma_with_vmm;
    uf_cuda_trial vmm;         /* memory of the device */
    uf_cuda_trial host_memory; /* memory of the host, mapped at an address of the device */
    int failure;               /* the first basic question that failed; 0 = none */
} uf_cuda_probed;

typedef struct uf_cuda_probe {
    bool has_library;        /* libcuda.so.1 could be loaded */
    char library_error[300]; /* why not */
    int init_result;         /* of cuInit */
    const char *init_name;   /* its name; NULL if there was no call */
    int version;             /* CUDA 13.0 is 13000; 0 = not known */
    int count_result;        /* of the question how many devices there are */
    uint32_t device_count;   /* entries of devices */
    uint32_t found_count;    /* what the driver says, UF_CUDA_DEVICES_MAX or not */
    uf_cuda_probed devices[UF_CUDA_DEVICES_MAX];
} uf_cuda_probe;

/* Asks the driver, which stays open: its names are used. Nothing that fails ends it: what is not
 * known stays unknown. is_thorough: also make a context on each device, ask it for what is free,
 * and try the memory functions out; a context takes some hundred MiB of the card for the moment. */
void uf__cuda_probe(uf_cuda_driver *driver, bool is_thorough, uf_cuda_probe *probe);

/* Whether memory of that kind can be mapped at an address of the device, in the context that is
 * current. */
void uf__cuda_try(const uf_cuda_driver *driver, int device, const uf_cuda_allocation *allocation,
                  uf_cuda_trial *trial);

/* The name of the call a step is, such as "cuMemCreate". */
const char *uf__cuda_step_name(uf_cuda_step step);

#endif
