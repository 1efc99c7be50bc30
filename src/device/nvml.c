/* SPDX-License-Identifier: MIT
 *
 * Loads libnvidia-ml.so.1; our own declarations. A function that is missing or refuses leaves its
 * metric unknown. */
#include "device/nvml.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum { NVML_SUCCESS = 0, NVML_INSUFFICIENT_SIZE = 7 };

enum { MODE_EXCLUSIVE_THREAD = 1, MODE_PROHIBITED = 2, MODE_EXCLUSIVE_PROCESS = 3 };

#define BYTES_NOT_AVAILABLE UINT64_MAX
#define PROCESSES_MAX 65536u

typedef struct memory_v1 {
    unsigned long long total, vacant, held;
} memory_v1;

typedef struct memory_v2 {
    unsigned version;
    unsigned long long total, reserved, vacant, held;
} memory_v2;

#define MEMORY_V2_VERSION ((unsigned)sizeof(memory_v2) | 2u << 24)

typedef struct pci_info {
    char legacy_bus_id[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
} pci_info;

/* Of nvmlDeviceGet*RunningProcesses_v2 and _v3; without a suffix there are pid and bytes only. */
typedef struct process_v2 {
    unsigned pid;
    unsigned long long bytes;
    unsigned gpu_instance, compute_instance;
} process_v2;

typedef struct process_v1 {
    unsigned pid;
    unsigned long long bytes;
} process_v1;

typedef int list_processes(void *device, unsigned *count, void *items);

typedef struct nvml_library {
    void *handle;
    int (*init)(void);
    int (*shutdown)(void);
    const char *(*error_text)(int result);
    int (*driver_version)(char *text, unsigned capacity);
    int (*count)(unsigned *count);
    int (*device)(unsigned index, void **device);
    int (*name)(void *device, char *text, unsigned capacity);
    int (*uuid)(void *device, char *text, unsigned capacity);
    int (*pci)(void *device, pci_info *info);
    int (*memory)(void *device, memory_v1 *memory);
    int (*memory_v2)(void *device, memory_v2 *memory);
    int (*mig)(void *device, unsigned *current, unsigned *pending);
    int (*ecc)(void *device, unsigned *current, unsigned *pending);
    int (*ecc_errors)(void *device, int type, int counter, unsigned long long *count);
    int (*compute_mode)(void *device, int *mode);
    list_processes *compute, *graphics;
    bool is_compute_v1, is_graphics_v1; /* which form of entries they write */
} nvml_library;

static void *look_up(const nvml_library *library, const char *name)
{
    return dlsym(library->handle, name);
}

static void *look_up_newest(const nvml_library *library, const char *newest, const char *older)
{
    void *found = look_up(library, newest);
    return found != NULL ? found : look_up(library, older);
}

#define SET(member, address)                        \
    do {                                            \
        void *found_ = (address);                   \
        memcpy(&(member), &found_, sizeof(member)); \
    } while (0)

static list_processes *find_list(const nvml_library *library, const char *kind, bool *is_v1)
{
    static const char *const suffixes[] = {"_v3", "_v2", ""};
    list_processes *list = NULL;
    for (size_t i = 0; i < 3 && list == NULL; i++) {
        char name[80];
        snprintf(name, sizeof name, "nvmlDeviceGet%sRunningProcesses%s", kind, suffixes[i]);
        SET(list, look_up(library, name));
        *is_v1 = suffixes[i][0] == '\0';
    }
    return list;
}

static bool open_library(nvml_library *library)
{
    memset(library, 0, sizeof *library);
    library->handle = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library->handle == NULL) {
        library->handle = dlopen("/usr/lib/wsl/lib/libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    }
    if (library->handle == NULL) {
        return false;
    }
    SET(library->init, look_up_newest(library, "nvmlInit_v2", "nvmlInit"));
    SET(library->shutdown, look_up(library, "nvmlShutdown"));
    SET(library->error_text, look_up(library, "nvmlErrorString"));
    SET(library->driver_version, look_up(library, "nvmlSystemGetDriverVersion"));
    SET(library->count, look_up_newest(library, "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"));
    SET(library->device,
        look_up_newest(library, "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"));
    SET(library->name, look_up(library, "nvmlDeviceGetName"));
    SET(library->uuid, look_up(library, "nvmlDeviceGetUUID"));
    SET(library->pci, look_up(library, "nvmlDeviceGetPciInfo_v3"));
    SET(library->memory, look_up(library, "nvmlDeviceGetMemoryInfo"));
    SET(library->memory_v2, look_up(library, "nvmlDeviceGetMemoryInfo_v2"));
    SET(library->mig, look_up(library, "nvmlDeviceGetMigMode"));
    SET(library->ecc, look_up(library, "nvmlDeviceGetEccMode"));
    SET(library->ecc_errors, look_up(library, "nvmlDeviceGetTotalEccErrors"));
    SET(library->compute_mode, look_up(library, "nvmlDeviceGetComputeMode"));
    library->compute = find_list(library, "Compute", &library->is_compute_v1);
    library->graphics = find_list(library, "Graphics", &library->is_graphics_v1);
    return true;
}

/* The larger entry of two kinds for one process counts: a process that draws and computes is listed
 * twice, with the same memory. */
static void merge_process(uf_nvml_card *card, const uf_nvml_process *process)
{
    size_t at = 0;
    while (at < card->process_count && card->processes[at].pid < process->pid) {
        at++;
    }
    if (at < card->process_count && card->processes[at].pid == process->pid) {
        uf_nvml_process *known = &card->processes[at];
        if (process->has_bytes && (!known->has_bytes || known->bytes < process->bytes)) {
            known->bytes = process->bytes;
            known->has_bytes = true;
        }
        known->is_graphics = known->is_graphics && process->is_graphics;
        return;
    }
    memmove(&card->processes[at + 1], &card->processes[at],
            (card->process_count - at) * sizeof *card->processes);
    card->processes[at] = *process;
    card->process_count++;
}

static uf_status add_processes(uf_nvml_card *card, const void *items, unsigned count, bool is_v1,
                               bool is_graphics, uf_error *error)
{
    uf_nvml_process *larger =
        realloc(card->processes, (card->process_count + count + 1) * sizeof *larger);
    if (larger == NULL) {
        return uf__error_set(error, UF_ERROR_HOST_MEMORY, "no host memory to list processes");
    }
    card->processes = larger;
    for (unsigned i = 0; i < count; i++) {
        const process_v1 *first = (const process_v1 *)items + i;
        const process_v2 *second = (const process_v2 *)items + i;
        uint64_t bytes = is_v1 ? first->bytes : second->bytes;
        uf_nvml_process process = {.pid = is_v1 ? first->pid : second->pid,
                                   .has_bytes = bytes != BYTES_NOT_AVAILABLE,
                                   .is_graphics = is_graphics};
        process.bytes = process.has_bytes ? bytes : 0;
        merge_process(card, &process);
    }
    return UF_OK;
}

/* *is_known stays as it is if the list is refused. */
static uf_status read_processes(list_processes *list, void *device, bool is_v1, bool is_graphics,
                                uf_nvml_card *card, bool *is_known, uf_error *error)
{
    unsigned count = 0;
    if (list == NULL) {
        return UF_OK;
    }
    int result = list(device, &count, NULL);
    if (result == NVML_SUCCESS) {
        *is_known = true; /* nobody */
        return UF_OK;
    }
    for (unsigned capacity = count + 16; result == NVML_INSUFFICIENT_SIZE; capacity *= 2) {
        void *items = capacity > PROCESSES_MAX ? NULL : calloc(capacity, sizeof(process_v2));
        if (items == NULL) {
            return uf__error_set(error, UF_ERROR_HOST_MEMORY, "no host memory to list processes");
        }
        count = capacity;
        result = list(device, &count, items);
        uf_status status = UF_OK;
        if (result == NVML_SUCCESS) {
            status = add_processes(card, items, count < capacity ? count : capacity, is_v1,
                                   is_graphics, error);
            *is_known = true;
        }
        free(items);
        if (status != UF_OK) {
            return status;
        }
    }
    return UF_OK;
}

static void read_memory(const nvml_library *library, void *device, uf_nvml_card *card)
{
    memory_v2 newer = {.version = MEMORY_V2_VERSION};
    memory_v1 older;
    if (library->memory_v2 != NULL && library->memory_v2(device, &newer) == NVML_SUCCESS) {
        card->total_bytes = newer.total;
        card->free_bytes = newer.vacant;
        card->reserved_bytes = newer.reserved;
        card->valid |= UF_NVML_HAS_MEMORY | UF_NVML_HAS_RESERVED;
    } else if (library->memory != NULL && library->memory(device, &older) == NVML_SUCCESS) {
        card->total_bytes = older.total;
        card->free_bytes = older.vacant;
        card->valid |= UF_NVML_HAS_MEMORY;
    }
}

static void read_modes(const nvml_library *library, void *device, uf_nvml_card *card)
{
    enum { UNCORRECTED = 1, VOLATILE = 0 };
    unsigned current = 0, pending = 0;
    unsigned long long count = 0;
    int mode = 0;
    if (library->mig != NULL && library->mig(device, &current, &pending) == NVML_SUCCESS) {
        card->is_mig = current != 0;
        card->valid |= UF_NVML_HAS_MIG;
    }
    if (library->ecc != NULL && library->ecc(device, &current, &pending) == NVML_SUCCESS) {
        card->is_ecc = current != 0;
        card->valid |= UF_NVML_HAS_ECC;
    }
    if (library->ecc_errors != NULL &&
        library->ecc_errors(device, UNCORRECTED, VOLATILE, &count) == NVML_SUCCESS) {
        card->ecc_uncorrected_count = count;
        card->valid |= UF_NVML_HAS_ECC_ERRORS;
    }
    if (library->compute_mode != NULL && library->compute_mode(device, &mode) == NVML_SUCCESS) {
        card->is_exclusive = mode == MODE_EXCLUSIVE_THREAD || mode == MODE_EXCLUSIVE_PROCESS;
        card->is_prohibited = mode == MODE_PROHIBITED;
        card->valid |= UF_NVML_HAS_COMPUTE_MODE;
    }
}

static uf_status read_card(const nvml_library *library, unsigned index, uf_nvml_card *card,
                           uf_error *error)
{
    void *device = NULL;
    pci_info pci = {{0}, 0, 0, 0, 0, 0, {0}};
    if (library->device(index, &device) != NVML_SUCCESS) {
        return UF_OK;
    }
    if (library->name != NULL &&
        library->name(device, card->name, sizeof card->name - 1) == NVML_SUCCESS) {
        card->valid |= UF_NVML_HAS_NAME;
    }
    if (library->uuid != NULL &&
        library->uuid(device, card->uuid, sizeof card->uuid - 1) == NVML_SUCCESS) {
        card->valid |= UF_NVML_HAS_UUID;
    }
    if (library->pci != NULL && library->pci(device, &pci) == NVML_SUCCESS) {
        snprintf(card->pci_bus_id, sizeof card->pci_bus_id, "%04X:%02X:%02X.0", pci.domain, pci.bus,
                 pci.device);
        card->valid |= UF_NVML_HAS_PCI;
    }
    read_memory(library, device, card);
    read_modes(library, device, card);
    bool is_known = false;
    uf_status status = read_processes(library->compute, device, library->is_compute_v1, false, card,
                                      &is_known, error);
    if (status == UF_OK) {
        status = read_processes(library->graphics, device, library->is_graphics_v1, true, card,
                                &is_known, error);
    }
    card->valid |= is_known ? UF_NVML_HAS_PROCESSES : 0u;
    return status;
}

static uf_status read_cards(const nvml_library *library, uf_nvml *nvml, uf_error *error)
{
    unsigned count = 0;
    if (library->driver_version != NULL &&
        library->driver_version(nvml->driver_version, sizeof nvml->driver_version - 1) !=
            NVML_SUCCESS) {
        nvml->driver_version[0] = '\0';
    }
    if (library->count == NULL || library->device == NULL ||
        library->count(&count) != NVML_SUCCESS || count == 0) {
        return UF_OK;
    }
    nvml->cards = calloc(count, sizeof *nvml->cards);
    if (nvml->cards == NULL) {
        return uf__error_set(error, UF_ERROR_HOST_MEMORY, "no host memory to list cards");
    }
    nvml->card_count = count;
    uf_status status = UF_OK;
    for (unsigned i = 0; i < count && status == UF_OK; i++) {
        status = read_card(library, i, &nvml->cards[i], error);
    }
    return status;
}

uf_status uf__nvml_read(uf_nvml *nvml, uf_error *error)
{
    nvml_library library;
    memset(nvml, 0, sizeof *nvml);
    if (!open_library(&library)) {
        snprintf(nvml->failure, sizeof nvml->failure, "libnvidia-ml.so.1 is not there");
        return UF_OK;
    }
    nvml->has_library = true;
    nvml->result = library.init == NULL ? -1 : library.init();
    uf_status status = UF_OK;
    if (nvml->result != NVML_SUCCESS) {
        const char *text = library.error_text != NULL && nvml->result > 0
                               ? library.error_text(nvml->result)
                               : "it has no nvmlInit";
        snprintf(nvml->failure, sizeof nvml->failure, "%s", text != NULL ? text : "it refuses");
    } else {
        status = read_cards(&library, nvml, error);
        if (library.shutdown != NULL) {
            (void)library.shutdown();
        }
    }
    dlclose(library.handle);
    return status;
}

void uf__nvml_fini(uf_nvml *nvml)
{
    for (uint32_t i = 0; i < nvml->card_count; i++) {
        free(nvml->cards[i].processes);
    }
    free(nvml->cards);
    memset(nvml, 0, sizeof *nvml);
}
