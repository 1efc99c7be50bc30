/* SPDX-License-Identifier: MIT
 *
 * A libnvidia-ml.so.1 without a GPU: cards and processes as UNFRAG_FAKE_GPU describes them. */
#include <stdio.h>
#include <string.h>

#include "setup.h"

#define EXPORT __attribute__((visibility("default")))

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, INSUFFICIENT_SIZE = 7 };
enum { RESERVED_BYTES = 512 << 20 };

static fake_setup setup;

typedef struct pci_info {
    char legacy_bus_id[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
} pci_info;

typedef struct process_info {
    unsigned pid;
    unsigned long long bytes;
    unsigned gpu_instance, compute_instance;
} process_info;

static int index_of(const void *device)
{
    return (int)((const fake_card *)device - setup.cards);
}

EXPORT int nvmlInit_v2(void)
{
    fake_setup_read(&setup);
    return setup.nvml_result;
}

EXPORT int nvmlShutdown(void)
{
    return SUCCESS;
}

EXPORT const char *nvmlErrorString(int result)
{
    return result == 9 ? "Driver Not Loaded"
                       : (result == 18 ? "Driver/library version mismatch" : "Unknown Error");
}

EXPORT int nvmlSystemGetDriverVersion(char *text, unsigned capacity)
{
    snprintf(text, capacity, "%s", setup.driver);
    return SUCCESS;
}

EXPORT int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = (unsigned)setup.card_count;
    return fake_setup_failure(&setup, "nvmlDeviceGetCount_v2", -1);
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
    *device = &setup.cards[index];
    return fake_setup_failure(&setup, "nvmlDeviceGetHandleByIndex_v2", (int)index);
}

EXPORT int nvmlDeviceGetName(void *device, char *text, unsigned capacity)
{
    snprintf(text, capacity, "%s", ((fake_card *)device)->name);
    return SUCCESS;
}

EXPORT int nvmlDeviceGetUUID(void *device, char *text, unsigned capacity)
{
    snprintf(text, capacity, "GPU-00000000-0000-0000-0000-%012d", index_of(device));
    return SUCCESS;
}

EXPORT int nvmlDeviceGetPciInfo_v3(void *device, pci_info *info)
{
    memset(info, 0, sizeof *info);
    info->bus = 0x1au + (unsigned)index_of(device);
    return SUCCESS;
}

EXPORT int nvmlDeviceGetMemoryInfo_v2(void *device, void *memory)
{
    const fake_card *card = device;
    struct {
        unsigned version;
        unsigned long long total, reserved, vacant, held;
    } found = {.total = card->total_bytes, .reserved = RESERVED_BYTES, .vacant = card->free_bytes};
    int result = fake_setup_failure(&setup, "nvmlDeviceGetMemoryInfo_v2", index_of(device));
    if (result != SUCCESS) {
        return result;
    }
    unsigned version;
    memcpy(&version, memory, sizeof version);
    if (version != ((unsigned)sizeof found | 2u << 24)) {
        return INVALID_ARGUMENT;
    }
    found.version = version;
    found.held = found.total - found.reserved - found.vacant;
    memcpy(memory, &found, sizeof found);
    return SUCCESS;
}

EXPORT int nvmlDeviceGetMemoryInfo(void *device, unsigned long long *memory)
{
    const fake_card *card = device;
    int result = fake_setup_failure(&setup, "nvmlDeviceGetMemoryInfo", index_of(device));
    if (result == SUCCESS) {
        memory[0] = card->total_bytes;
        memory[1] = card->free_bytes;
        memory[2] = card->total_bytes - card->free_bytes;
    }
    return result;
}

EXPORT int nvmlDeviceGetMigMode(void *device, unsigned *current, unsigned *pending)
{
    *current = *pending = ((fake_card *)device)->is_mig;
    return fake_setup_failure(&setup, "nvmlDeviceGetMigMode", index_of(device));
}

EXPORT int nvmlDeviceGetEccMode(void *device, unsigned *current, unsigned *pending)
{
    *current = *pending = ((fake_card *)device)->is_ecc;
    return SUCCESS;
}

EXPORT int nvmlDeviceGetTotalEccErrors(void *device, int type, int counter,
                                       unsigned long long *count)
{
    (void)type, (void)counter;
    *count = 0;
    return ((fake_card *)device)->is_ecc ? SUCCESS : NOT_SUPPORTED;
}

EXPORT int nvmlDeviceGetComputeMode(void *device, int *mode)
{
    *mode = ((fake_card *)device)->is_exclusive ? 3 : 0;
    return SUCCESS;
}

static int list(const char *function, void *device, bool is_graphics, unsigned *count,
                process_info *items)
{
    unsigned capacity = *count, found = 0;
    int result = fake_setup_failure(&setup, function, index_of(device));
    if (result != SUCCESS) {
        return result;
    }
    for (int i = 0; i < setup.process_count; i++) {
        const fake_process *process = &setup.processes[i];
        if (process->card != index_of(device) || process->is_graphics != is_graphics) {
            continue;
        }
        if (found < capacity && items != NULL) {
            items[found] = (process_info){
                .pid = process->pid, .bytes = process->has_bytes ? process->bytes : UINT64_MAX};
        }
        found++;
    }
    *count = found;
    return found > capacity || (found > 0 && items == NULL) ? INSUFFICIENT_SIZE : SUCCESS;
}

EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count,
                                                   process_info *items)
{
    return list("nvmlDeviceGetComputeRunningProcesses_v3", device, false, count, items);
}

EXPORT int nvmlDeviceGetGraphicsRunningProcesses_v3(void *device, unsigned *count,
                                                    process_info *items)
{
    return list("nvmlDeviceGetGraphicsRunningProcesses_v3", device, true, count, items);
}
