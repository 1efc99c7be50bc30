/* SPDX-License-Identifier: MIT
 *
 * The active Python and the torch it would import, found by reading files. The interpreter is asked
 * for its folders alone (python -I, sys and sysconfig); torch is never imported, nor is its
 * version.py executed. One thread; starts one child and waits for it. */
#ifndef UF_ADVISE_PYTHON_H
#define UF_ADVISE_PYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <unfrag/status.h>

typedef enum uf_torch_kind {
    UF_TORCH_NONE,    /* no torch in any of its folders */
    UF_TORCH_UNKNOWN, /* there is one, and its version file does not say for what it was built */
    UF_TORCH_CPU,
    UF_TORCH_CUDA,
    UF_TORCH_HIP
} uf_torch_kind;

/* The environment, as far as it decides which Python is active. Any may be NULL: not set. */
typedef struct uf_python_place {
    const char *path;         /* PATH */
    const char *virtual_env;  /* VIRTUAL_ENV */
    const char *conda_prefix; /* CONDA_PREFIX */
    const char *python_path;  /* PYTHONPATH */
    int timeout_ms;           /* for the interpreter's answer; 0 = 5 s */
} uf_python_place;

/* Texts that are not known are empty. */
typedef struct uf_python {
    char program[1024];          /* the interpreter that was asked */
    char version[32];            /* "3.11.7" */
    char failure[200];           /* why it did not answer */
    bool is_outside_environment; /* an activated environment has another Python than PATH */
    char environment[1024];      /* that environment's folder */
    uf_torch_kind torch;
    char torch_folder[1024];         /* .../site-packages/torch */
    char torch_version[64];          /* "2.11.0+cu130" */
    char torch_metadata_version[64]; /* of its dist-info; differs after a broken update */
    char torch_runtime[32];          /* the CUDA or HIP release it was built for, "13.0" */
} uf_python;

void uf__python_find(const uf_python_place *place, uf_python *python);

/* Reads the text of a torch/version.py into *python: torch, torch_version, torch_runtime. */
void uf__python_read_version(const char *text, uf_python *python);

typedef enum uf_torch_fit {
    UF_TORCH_FIT_UNKNOWN,
    UF_TORCH_FIT_YES,
    UF_TORCH_FIT_MINOR, /* the driver is of an earlier minor release of the same CUDA */
    UF_TORCH_FIT_NO     /* the driver is too old for it */
} uf_torch_fit;

/* Can a driver of this CUDA version (13000 is 13.0; 0: not known) run that torch? */
uf_torch_fit uf__torch_fit(const uf_python *python, int driver_version);

/* False if a torch for that CUDA release cannot have code for a card of this compute capability
 * (9 of 9.0), which is newer; true also if nothing is known. */
bool uf__torch_knows_card(const uf_python *python, int capability_major);

#endif
