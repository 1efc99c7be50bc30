/* SPDX-License-Identifier: MIT
 *
 * An examination of this machine: driver, cards, who holds their memory, settings, Python's torch,
 * disks, a model's files, and what to do next. Changes nothing; whatever is not known stays
 * unknown. One thread. */
#ifndef UF_ADVISE_DOCTOR_H
#define UF_ADVISE_DOCTOR_H

#include "advise/holder.h"
#include "advise/python.h"
#include "advise/recommend.h"
#include "advise/surroundings.h"
#include "advise/weights.h"
#include "device/cuda_probe.h"
#include "device/nvml.h"

#define UF_DOCTOR_DISKS_MAX 3
#define UF_DOCTOR_CARDS_MAX 128

typedef struct uf_doctor_options {
    const char *const *variables; /* the environment: texts NAME=VALUE */
    size_t variable_count;
    const char *root;    /* in front of /proc and /dev; "" = the real ones */
    uint32_t own_pid;    /* not counted among the holders; 0 = nobody */
    const char *model;   /* a folder or a weight file; NULL = none is looked at */
    uint64_t card_bytes; /* recommend for a card of this size; 0 = for the first that is found */
    const char *cards_table; /* data/cards.tsv; NULL = it was not found */
} uf_doctor_options;

/* One card, or one instance of a card that is split (MIG). */
typedef struct uf_doctor_card {
    const uf_nvml_card *nvml;   /* NULL: NVML does not list it */
    const uf_cuda_probed *cuda; /* NULL: programs do not see it */
    int nvml_index;             /* -1: none */
    const char *name;           /* NULL: not known */
    bool has_total, has_free;
    uint64_t total_bytes, free_bytes;
    bool has_held; /* held_bytes is what its processes hold together */
    uint64_t held_bytes;
    bool has_unseen; /* unseen_bytes is what neither driver nor any listed process accounts for */
    uint64_t unseen_bytes;
} uf_doctor_card;

typedef struct uf_doctor_disk {
    const char *what;    /* "model", "Hugging Face cache"; static */
    char path[1024];     /* as it was asked for */
    char measured[1024]; /* the folder that exists of it */
    bool has_sizes;
    uint64_t total_bytes, available_bytes;
} uf_doctor_disk;

typedef enum uf_doctor_verdict {
    UF_DOCTOR_GOOD,
    UF_DOCTOR_FAULT,  /* a setting without effect, a model that is not whole */
    UF_DOCTOR_NO_CARD /* no driver, or no GPU that programs can use */
} uf_doctor_verdict;

typedef struct uf_doctor {
    uf_cuda_driver driver;
    uf_cuda_probe probe;
    uf_nvml nvml;
    uf_doctor_card cards[UF_DOCTOR_CARDS_MAX];
    uint32_t card_count;
    uf_holders holders;
    uf_python python;
    uf_surroundings around;
    uf_doctor_disk disks[UF_DOCTOR_DISKS_MAX];
    uint32_t disk_count;
    bool has_model;
    uf_weights weights;
    uint64_t recommended_card_bytes; /* 0 = no card to recommend for */
    uf_recommendations recommendations;
    bool has_kernel_driver; /* the kernel has NVIDIA's module loaded */
    char driver_cause[400]; /* why no card can be used, and what to try; empty: one can */
    char torch_note[300];   /* what is wrong between torch and driver; empty: nothing known */
    uf_doctor_verdict verdict;
    char next[700]; /* the next step */
} uf_doctor;

/* Returns UF_OK, whatever was found; UF_ERROR_IO or UF_ERROR_BAD_INPUT (the model cannot be read);
 * UF_ERROR_HOST_MEMORY. The caller ends it with uf__doctor_fini, whatever was returned. */
uf_status uf__doctor_examine(const uf_doctor_options *options, uf_doctor *doctor,
                             uf_error *error) UF_MUST_USE;
void uf__doctor_fini(uf_doctor *doctor);

/* Fills driver_cause, torch_note, verdict and next from everything else. */
void uf__doctor_conclude(const uf_doctor_options *options, uf_doctor *doctor);

/* The value of a variable in options, or NULL. */
const char *uf__doctor_variable(const uf_doctor_options *options, const char *name);

#endif
