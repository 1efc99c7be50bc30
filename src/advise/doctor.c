/* SPDX-License-Identifier: MIT
 *
 * Gathers what there is to know. NVML is read before any context is made, so that what is free is
 * what programs find. */
#include "advise/doctor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/error.h"

const char *uf__doctor_variable(const uf_doctor_options *options, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < options->variable_count; i++) {
        const char *text = options->variables[i];
        if (strncmp(text, name, length) == 0 && text[length] == '=') {
            return text + length + 1;
        }
    }
    return NULL;
}

static int find_nvml(const uf_nvml *nvml, const char *pci_bus_id)
{
    for (uint32_t i = 0; i < nvml->card_count && pci_bus_id[0] != '\0'; i++) {
        if ((nvml->cards[i].valid & UF_NVML_HAS_PCI) != 0 &&
            strcasecmp(nvml->cards[i].pci_bus_id, pci_bus_id) == 0) {
            return (int)i;
        }
    }
    return -1;
}

static void measure_card(const uf_doctor *doctor, uf_doctor_card *card)
{
    const uf_nvml_card *nvml = card->nvml;
    bool is_part = nvml != NULL && nvml->is_mig && card->cuda != NULL;
    if (nvml != NULL && !is_part && (nvml->valid & UF_NVML_HAS_MEMORY) != 0) {
        card->has_total = card->has_free = true;
        card->total_bytes = nvml->total_bytes;
        card->free_bytes = nvml->free_bytes;
    } else if (card->cuda != NULL) {
        card->has_total = card->cuda->total_bytes > 0;
        card->total_bytes = card->cuda->total_bytes;
        card->has_free = card->cuda->has_free_bytes;
        card->free_bytes = card->cuda->free_bytes;
    }
    bool is_listed = nvml != NULL && !is_part && (nvml->valid & UF_NVML_HAS_PROCESSES) != 0;
    size_t count = 0;
    for (size_t i = 0; i < doctor->holders.count && is_listed; i++) {
        const uf_holder *holder = &doctor->holders.items[i];
        if (holder->card == card->nvml_index) {
            is_listed = holder->has_bytes;
            card->held_bytes += holder->bytes;
            count++;
        }
    }
    /* In a container an empty list may only mean that others are not shown. */
    card->has_held = is_listed && (count > 0 || doctor->holders.is_whole_host);
    if (is_listed && card->has_free && (nvml->valid & UF_NVML_HAS_RESERVED) != 0) {
        uint64_t known = card->free_bytes + card->held_bytes + nvml->reserved_bytes;
        card->has_unseen = true;
        card->unseen_bytes = known < card->total_bytes ? card->total_bytes - known : 0;
    }
}

/* First what programs see, in their order; then what they do not. */
static void list_cards(uf_doctor *doctor)
{
    for (uint32_t i = 0; i < doctor->probe.device_count; i++) {
        const uf_cuda_probed *device = &doctor->probe.devices[i];
        int index = find_nvml(&doctor->nvml, device->pci_bus_id);
        uf_doctor_card *card = &doctor->cards[doctor->card_count++];
        *card = (uf_doctor_card){.cuda = device, .nvml_index = index};
        card->nvml = index >= 0 ? &doctor->nvml.cards[index] : NULL;
        card->name = device->name[0] != '\0' ? device->name : NULL;
    }
    for (uint32_t i = 0; i < doctor->nvml.card_count; i++) {
        const uf_nvml_card *nvml = &doctor->nvml.cards[i];
        bool is_listed = false;
        for (uint32_t k = 0; k < doctor->card_count; k++) {
            is_listed = is_listed || doctor->cards[k].nvml == nvml;
        }
        if (!is_listed && doctor->card_count < UF_DOCTOR_CARDS_MAX) {
            doctor->cards[doctor->card_count++] =
                (uf_doctor_card){.nvml = nvml,
                                 .nvml_index = (int)i,
                                 .name = (nvml->valid & UF_NVML_HAS_NAME) != 0 ? nvml->name : NULL};
        }
    }
    for (uint32_t i = 0; i < doctor->card_count; i++) {
        measure_card(doctor, &doctor->cards[i]);
    }
}

/* The nearest folder that exists. */
static void measure_disk(uf_doctor *doctor, const char *what, const char *path)
{
    struct statvfs status;
    if (doctor->disk_count == UF_DOCTOR_DISKS_MAX) {
        return;
    }
    uf_doctor_disk *disk = &doctor->disks[doctor->disk_count++];
    *disk = (uf_doctor_disk){.what = what};
    snprintf(disk->path, sizeof disk->path, "%s", path);
    snprintf(disk->measured, sizeof disk->measured, "%s", path);
    while (access(disk->measured, F_OK) != 0) {
        char *slash = strrchr(disk->measured, '/');
        if (slash == NULL) {
            snprintf(disk->measured, sizeof disk->measured, ".");
            break;
        }
        slash[slash == disk->measured ? 1 : 0] = '\0';
    }
    if (statvfs(disk->measured, &status) == 0) {
        disk->has_sizes = true;
        disk->total_bytes = (uint64_t)status.f_blocks * status.f_frsize;
        disk->available_bytes = (uint64_t)status.f_bavail * status.f_frsize;
    }
}

/* Where huggingface_hub keeps what it fetches. */
static void measure_disks(const uf_doctor_options *options, uf_doctor *doctor)
{
    static const struct {
        const char *variable, *below;
    } places[] = {{"HF_HUB_CACHE", ""},
                  {"HUGGINGFACE_HUB_CACHE", ""},
                  {"HF_HOME", "/hub"},
                  {"XDG_CACHE_HOME", "/huggingface/hub"},
                  {"HOME", "/.cache/huggingface/hub"}};
    char path[1024];
    if (options->model != NULL) {
        measure_disk(doctor, "model", options->model);
    }
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        const char *value = uf__doctor_variable(options, places[i].variable);
        if (value != NULL && value[0] != '\0') {
            snprintf(path, sizeof path, "%s%s", value, places[i].below);
            measure_disk(doctor, "Hugging Face cache", path);
            return;
        }
    }
}

static void find_python(const uf_doctor_options *options, uf_doctor *doctor)
{
    uf_python_place place = {
        .path = uf__doctor_variable(options, "PATH"),
        .virtual_env = uf__doctor_variable(options, "VIRTUAL_ENV"),
        .conda_prefix = uf__doctor_variable(options, "CONDA_PREFIX"),
        .python_path = uf__doctor_variable(options, "PYTHONPATH"),
    };
    uf__python_find(&place, &doctor->python);
}

static void find_kernel_driver(const uf_doctor_options *options, uf_doctor *doctor)
{
    char path[512];
    snprintf(path, sizeof path, "%s/proc/driver/nvidia/version", options->root);
    doctor->has_kernel_driver = access(path, F_OK) == 0;
}

static uf_status recommend(const uf_doctor_options *options, uf_doctor *doctor, uf_error *error)
{
    doctor->recommended_card_bytes = options->card_bytes;
    for (uint32_t i = 0; i < doctor->card_count && doctor->recommended_card_bytes == 0; i++) {
        const uf_doctor_card *card = &doctor->cards[i];
        if (card->cuda != NULL && card->has_total) {
            doctor->recommended_card_bytes = card->total_bytes;
        }
    }
    if (doctor->recommended_card_bytes == 0 || options->cards_table == NULL) {
        return UF_OK;
    }
    uf_error ignored;
    uf_status status = uf__recommendations_read(
        options->cards_table, doctor->recommended_card_bytes, &doctor->recommendations, &ignored);
    if (status == UF_ERROR_HOST_MEMORY) {
        return uf__error_set(error, status, "%s", ignored.text);
    }
    if (status != UF_OK) {
        uf__recommendations_fini(&doctor->recommendations);
    }
    return UF_OK;
}

uf_status uf__doctor_examine(const uf_doctor_options *options, uf_doctor *doctor, uf_error *error)
{
    memset(doctor, 0, sizeof *doctor);
    uf_status status = UF_OK;
    if (options->model != NULL) {
        doctor->has_model = true;
        status = uf__weights_scan(options->model, &doctor->weights, error);
    }
    if (status == UF_OK) {
        status = uf__nvml_read(&doctor->nvml, error);
    }
    if (status != UF_OK) {
        return status;
    }
    uf_holder_place place = {.root = options->root, .own_pid = options->own_pid};
    status = uf__holders_read(&doctor->nvml, &place, &doctor->holders, error);
    if (status != UF_OK) {
        return status;
    }
    uf__cuda_probe(&doctor->driver, true, &doctor->probe);
    find_kernel_driver(options, doctor);
    list_cards(doctor);
    find_python(options, doctor);
    status = uf__surroundings_read(options->variables, options->variable_count, &doctor->python,
                                   &doctor->probe, &doctor->around, error);
    if (status == UF_OK) {
        measure_disks(options, doctor);
        status = recommend(options, doctor, error);
    }
    if (status == UF_OK) {
        uf__doctor_conclude(options, doctor);
    }
    return status;
}

void uf__doctor_fini(uf_doctor *doctor)
{
    uf__recommendations_fini(&doctor->recommendations);
    uf__weights_fini(&doctor->weights);
    uf__surroundings_fini(&doctor->around);
    uf__holders_fini(&doctor->holders);
    uf__nvml_fini(&doctor->nvml);
    uf__cuda_driver_close(&doctor->driver);
    memset(doctor, 0, sizeof *doctor);
}
