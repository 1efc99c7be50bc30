/* SPDX-License-Identifier: MIT
 *
 * What the fake driver libraries pretend: read from UNFRAG_FAKE_GPU at each cuInit and nvmlInit.
 * The text is a list of items, separated by ';', each NAME=VALUE with fields separated by '|':
 *
 *   version=13000                     of the driver, as cuDriverGetVersion says it
 *   driver=580.65.06                  the same, as NVML says it
 *   init=100                          what cuInit returns
 *   nvml=9                            what nvmlInit returns
 *   card=NAME|TOTAL|FREE|FLAGS        bytes; flags: novmm nohost nofile (no exportable handles)
 *                                     nopeer mig ecc integrated exclusive hidden (from CUDA), with
 *                                     ',' between
 *   lie=FUNCTION                      that function does nothing and says that all is well
 *   granule=BYTES|BYTES               of handles, minimum and recommended; both 2 MiB without it
 *   space=BYTES                       of addresses that each card can reserve
 *   pace=N                            kernels run by themselves too: up to N at a query of an event
 *   others=BYTES                      other processes hold up to so much, now more, now less
 *   process=CARD|PID|BYTES|g          '-' for bytes not told; g: it draws
 *   fail=FUNCTION|RESULT|CARD         that function fails, on that card or on all
 *
 * No lock. */
#ifndef UF_TESTS_FAKECUDA_SETUP_H
#define UF_TESTS_FAKECUDA_SETUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FAKE_CARDS_MAX = 16, FAKE_PROCESSES_MAX = 64, FAKE_FAILURES_MAX = 16 };

typedef struct fake_card {
    char name[64];
    uint64_t total_bytes, free_bytes;
    bool has_vmm, has_host_vmm, is_mig, is_ecc, is_integrated, is_exclusive, is_hidden;
    bool has_file_handles, has_peers;
} fake_card;

typedef struct fake_process {
    int card;
    unsigned pid;
    uint64_t bytes;
    bool has_bytes, is_graphics;
} fake_process;

typedef struct fake_failure {
    char function[48];
    int result;
    int card; /* -1: all */
} fake_failure;

typedef struct fake_setup {
    int version, init_result, nvml_result;
    char driver[32];
    fake_card cards[FAKE_CARDS_MAX];
    fake_process processes[FAKE_PROCESSES_MAX];
    fake_failure failures[FAKE_FAILURES_MAX];
    int card_count, process_count, failure_count;
    char liar[48]; /* empty: none */
    uint64_t granule_bytes, recommended_bytes, space_bytes, others_bytes, pace;
} fake_setup;

void fake_setup_read(fake_setup *setup);

/* What the function returns on that card (-1: none in particular); 0 = it works. */
int fake_setup_failure(const fake_setup *setup, const char *function, int card);

#endif
