/* SPDX-License-Identifier: MIT
 *
 * Reads UNFRAG_FAKE_GPU. What is not understood ends the program: a test that says nothing by
 * accident must not pass. */
#include "setup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIELDS_MAX = 4, TEXT_MAX = 4096 };

static void reject(const char *item)
{
    fprintf(stderr, "fakecuda: UNFRAG_FAKE_GPU: what is '%s'?\n", item);
    exit(70);
}

static void read_flags(fake_card *card, char *text)
{
    char *rest = NULL;
    for (char *flag = strtok_r(text, ",", &rest); flag != NULL; flag = strtok_r(NULL, ",", &rest)) {
        if (strcmp(flag, "novmm") == 0) {
            card->has_vmm = false;
        } else if (strcmp(flag, "nohost") == 0) {
            card->has_host_vmm = false;
        } else if (strcmp(flag, "nofile") == 0) {
            card->has_file_handles = false;
        } else if (strcmp(flag, "nopeer") == 0) {
            card->has_peers = false;
        } else if (strcmp(flag, "mig") == 0) {
            card->is_mig = true;
            card->has_peers = false;
        } else if (strcmp(flag, "ecc") == 0) {
            card->is_ecc = true;
        } else if (strcmp(flag, "integrated") == 0) {
            card->is_integrated = true;
        } else if (strcmp(flag, "exclusive") == 0) {
            card->is_exclusive = true;
        } else if (strcmp(flag, "hidden") == 0) {
            card->is_hidden = true;
        } else {
            reject(flag);
        }
    }
}

static void read_card(fake_setup *setup, char *const *fields, int count)
{
    fake_card *card = &setup->cards[setup->card_count++];
    card->has_vmm = card->has_host_vmm = card->has_file_handles = card->has_peers = true;
    snprintf(card->name, sizeof card->name, "%s", fields[0]);
    card->total_bytes = count > 1 ? strtoull(fields[1], NULL, 10) : 0;
    card->free_bytes = count > 2 ? strtoull(fields[2], NULL, 10) : card->total_bytes;
    if (count > 3) {
        read_flags(card, fields[3]);
    }
}

static void read_process(fake_setup *setup, char *const *fields, int count)
{
    fake_process *process = &setup->processes[setup->process_count++];
    process->card = atoi(fields[0]);
    process->pid = count > 1 ? (unsigned)strtoul(fields[1], NULL, 10) : 0;
    process->has_bytes = count > 2 && strcmp(fields[2], "-") != 0;
    process->bytes = process->has_bytes ? strtoull(fields[2], NULL, 10) : 0;
    process->is_graphics = count > 3 && fields[3][0] == 'g';
}

static void read_failure(fake_setup *setup, char *const *fields, int count)
{
    fake_failure *failure = &setup->failures[setup->failure_count++];
    snprintf(failure->function, sizeof failure->function, "%s", fields[0]);
    failure->result = count > 1 ? atoi(fields[1]) : 1;
    failure->card = count > 2 ? atoi(fields[2]) : -1;
}

/* Items of one or two numbers; false if it is another one. */
static bool read_number(fake_setup *setup, const char *name, char *const *fields, int count)
{
    if (strcmp(name, "version") == 0) {
        setup->version = atoi(fields[0]);
    } else if (strcmp(name, "init") == 0) {
        setup->init_result = atoi(fields[0]);
    } else if (strcmp(name, "nvml") == 0) {
        setup->nvml_result = atoi(fields[0]);
    } else if (strcmp(name, "granule") == 0) {
        setup->granule_bytes = strtoull(fields[0], NULL, 10);
        setup->recommended_bytes = strtoull(fields[count - 1], NULL, 10);
    } else if (strcmp(name, "space") == 0) {
        setup->space_bytes = strtoull(fields[0], NULL, 10);
    } else if (strcmp(name, "pace") == 0) {
        setup->pace = strtoull(fields[0], NULL, 10);
    } else if (strcmp(name, "others") == 0) {
        setup->others_bytes = strtoull(fields[0], NULL, 10);
    } else {
        return false;
    }
    return true;
}

static void read_item(fake_setup *setup, char *item)
{
    char *fields[FIELDS_MAX];
    int count = 0;
    char *value = strchr(item, '=');
    if (value == NULL) {
        reject(item);
        return;
    }
    *value++ = '\0';
    while (value != NULL && count < FIELDS_MAX) {
        fields[count++] = strsep(&value, "|");
    }
    if (strcmp(item, "card") == 0 && setup->card_count < FAKE_CARDS_MAX) {
        read_card(setup, fields, count);
    } else if (strcmp(item, "process") == 0 && setup->process_count < FAKE_PROCESSES_MAX) {
        read_process(setup, fields, count);
    } else if (strcmp(item, "fail") == 0 && setup->failure_count < FAKE_FAILURES_MAX) {
        read_failure(setup, fields, count);
    } else if (strcmp(item, "driver") == 0) {
        snprintf(setup->driver, sizeof setup->driver, "%s", fields[0]);
    } else if (strcmp(item, "lie") == 0) {
        snprintf(setup->liar, sizeof setup->liar, "%s", fields[0]);
    } else if (!read_number(setup, item, fields, count)) {
        reject(item);
    }
}

void fake_setup_read(fake_setup *setup)
{
    char text[TEXT_MAX];
    const char *given = getenv("UNFRAG_FAKE_GPU");
    memset(setup, 0, sizeof *setup);
    setup->version = 13000;
    setup->granule_bytes = setup->recommended_bytes = UINT64_C(2) << 20;
    setup->space_bytes = UINT64_C(1) << 47;
    snprintf(setup->driver, sizeof setup->driver, "580.65.06");
    snprintf(text, sizeof text, "%s", given != NULL ? given : "");
    char *rest = NULL;
    for (char *item = strtok_r(text, ";", &rest); item != NULL; item = strtok_r(NULL, ";", &rest)) {
        read_item(setup, item);
    }
}

int fake_setup_failure(const fake_setup *setup, const char *function, int card)
{
    for (int i = 0; i < setup->failure_count; i++) {
        const fake_failure *failure = &setup->failures[i];
        if (strcmp(failure->function, function) == 0 &&
            (failure->card < 0 || failure->card == card)) {
            return failure->result;
        }
    }
    return 0;
}
