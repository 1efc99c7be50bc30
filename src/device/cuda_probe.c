/* SPDX-License-Identifier: MIT
 *
 * Asking the driver. A trial undoes what it did in reverse order, also after a failure. */
#include "device/cuda_probe.h"

#include <stdio.h>
#include <string.h>

static const char *const step_names[] = {
    [UF_CUDA_STEP_ATTRIBUTE] = "cuDeviceGetAttribute",
    [UF_CUDA_STEP_FUNCTION] = "the functions",
    [UF_CUDA_STEP_CONTEXT] = "cuDevicePrimaryCtxRetain",
    [UF_CUDA_STEP_GRANULARITY] = "cuMemGetAllocationGranularity",
    [UF_CUDA_STEP_RESERVE] = "cuMemAddressReserve",
    [UF_CUDA_STEP_CREATE] = "cuMemCreate",
    [UF_CUDA_STEP_MAP] = "cuMemMap",
    [UF_CUDA_STEP_ACCESS] = "cuMemSetAccess",
    [UF_CUDA_STEP_UNMAP] = "cuMemUnmap",
    [UF_CUDA_STEP_RELEASE] = "cuMemRelease",
    [UF_CUDA_STEP_GIVE_BACK] = "cuMemAddressFree",
};

const char *uf__cuda_step_name(uf_cuda_step step)
{
    return step_names[step];
}

/* True if the step went well; the first that did not is kept. */
static bool note(const uf_cuda_driver *driver, uf_cuda_trial *trial, uf_cuda_step step, int result)
{
    if (result == UF_CUDA_SUCCESS) {
        return true;
    }
    if (trial->works) {
        trial->works = false;
        trial->failed_step = step;
        trial->result = result;
        trial->result_name = uf__cuda_error_name(driver, result);
    }
    return false;
}

static void refuse(uf_cuda_trial *trial, uf_cuda_step step)
{
    *trial = (uf_cuda_trial){.was_tried = true, .failed_step = step};
}

/* What undoes something is tried a second time if it fails. False: it is still mapped. */
static bool map_granule(const uf_cuda_driver *driver, int device, uint64_t addr, uint64_t handle,
                        uf_cuda_trial *trial)
{
    size_t bytes = trial->granule_bytes;
    if (!note(driver, trial, UF_CUDA_STEP_MAP, driver->mem_map(addr, bytes, 0, handle, 0))) {
        return true;
    }
    uf_cuda_access access = {.location = {UF_CUDA_LOCATION_DEVICE, device},
                             .flags = UF_CUDA_ACCESS_READ_WRITE};
    (void)note(driver, trial, UF_CUDA_STEP_ACCESS, driver->mem_set_access(addr, bytes, &access, 1));
    int result = driver->mem_unmap(addr, bytes);
    result = result == UF_CUDA_SUCCESS ? result : driver->mem_unmap(addr, bytes);
    return note(driver, trial, UF_CUDA_STEP_UNMAP, result);
}

/* Reserve, create, map, allow, unmap, release, give back: one granule of memory at an address of
 * the device. */
static void try_allocation(const uf_cuda_driver *driver, int device,
                           const uf_cuda_allocation *allocation, uf_cuda_trial *trial)
{
    size_t granule = 0;
    *trial = (uf_cuda_trial){.was_tried = true, .works = true};
    int result = driver->mem_get_granularity(&granule, allocation, UF_CUDA_GRANULARITY_MINIMUM);
    if (result == UF_CUDA_SUCCESS && granule == 0) {
        result = UF_CUDA_INVALID_VALUE;
    }
    if (!note(driver, trial, UF_CUDA_STEP_GRANULARITY, result)) {
        return;
    }
    trial->granule_bytes = granule;
    uint64_t addr = 0, handle = 0;
    if (!note(driver, trial, UF_CUDA_STEP_RESERVE,
              driver->mem_address_reserve(&addr, granule, 0, 0, 0))) {
        return;
    }
    bool is_vacant = true;
    if (note(driver, trial, UF_CUDA_STEP_CREATE,
             driver->mem_create(&handle, granule, allocation, 0))) {
        is_vacant = map_granule(driver, device, addr, handle, trial);
        result = driver->mem_release(handle);
        result = result == UF_CUDA_SUCCESS ? result : driver->mem_release(handle);
        trial->stuck_handle = note(driver, trial, UF_CUDA_STEP_RELEASE, result) ? 0 : handle;
    }
    trial->stuck_addr = is_vacant ? 0 : addr;
    if (is_vacant) {
        result = driver->mem_address_free(addr, granule);
        result = result == UF_CUDA_SUCCESS ? result : driver->mem_address_free(addr, granule);
        (void)note(driver, trial, UF_CUDA_STEP_GIVE_BACK, result);
    }
}

static void try_location(const uf_cuda_driver *driver, int device, uf_cuda_location location,
                         uf_cuda_trial *trial)
{
    uf_cuda_allocation allocation = {.type = UF_CUDA_ALLOCATION_PINNED, .location = location};
    try_allocation(driver, device, &allocation, trial);
}

static bool ask(const uf_cuda_driver *driver, int handle, int attribute, int *value)
{
    return driver->device_get_attribute(value, attribute, handle) == UF_CUDA_SUCCESS;
}

/* By NUMA node first, as drivers since 12.2 do it; then anywhere on the host. */
static void try_host_memory(const uf_cuda_driver *driver, int handle, uf_cuda_probed *device)
{
    int value = 0, node = 0;
    if (ask(driver, handle, UF_CUDA_ATTRIBUTE_HOST_NUMA_VMM, &value) && value != 0) {
        if (!ask(driver, handle, UF_CUDA_ATTRIBUTE_HOST_NUMA_ID, &node) || node < 0) {
            node = 0;
        }
        try_location(driver, handle, (uf_cuda_location){UF_CUDA_LOCATION_HOST_NUMA, node},
                     &device->host_memory);
        if (device->host_memory.works) {
            return;
        }
    }
    uf_cuda_trial anywhere;
    try_location(driver, handle, (uf_cuda_location){UF_CUDA_LOCATION_HOST, 0}, &anywhere);
    if (anywhere.works || !device->host_memory.was_tried) {
        device->host_memory = anywhere;
    }
}

void uf__cuda_try(const uf_cuda_driver *driver, int device, const uf_cuda_allocation *allocation,
                  uf_cuda_trial *trial)
{
    int value = 0;
    if (!driver->has_vmm) {
        refuse(trial, UF_CUDA_STEP_FUNCTION);
    } else if (ask(driver, device, UF_CUDA_ATTRIBUTE_VMM, &value) && value == 0) {
        refuse(trial, UF_CUDA_STEP_ATTRIBUTE);
    } else {
        try_allocation(driver, device, allocation, trial);
    }
}

static void try_out(const uf_cuda_driver *driver, int handle, uf_cuda_probed *device)
{
    uf_cuda_allocation allocation = {.type = UF_CUDA_ALLOCATION_PINNED,
                                     .location = {UF_CUDA_LOCATION_DEVICE, handle}};
    uf__cuda_try(driver, handle, &allocation, &device->vmm);
    bool is_refused = !device->vmm.works && (device->vmm.failed_step == UF_CUDA_STEP_FUNCTION ||
                                             device->vmm.failed_step == UF_CUDA_STEP_ATTRIBUTE);
    if (is_refused) {
        refuse(&device->host_memory, device->vmm.failed_step);
    } else {
        try_host_memory(driver, handle, device);
    }
}

static bool can_make_context(const uf_cuda_driver *driver)
{
    return driver->primary_context_retain != NULL && driver->primary_context_release != NULL &&
           driver->context_push != NULL && driver->context_pop != NULL;
}

static void fail_context(const uf_cuda_driver *driver, uf_cuda_probed *device, int result)
{
    uf_cuda_trial trial = {.was_tried = true, .works = true};
    (void)note(driver, &trial, UF_CUDA_STEP_CONTEXT, result);
    device->vmm = device->host_memory = trial;
}

static void ask_within_context(const uf_cuda_driver *driver, int handle, uf_cuda_probed *device)
{
    void *context = NULL;
    if (!can_make_context(driver)) {
        return;
    }
    int result = driver->primary_context_retain(&context, handle);
    if (result != UF_CUDA_SUCCESS) {
        fail_context(driver, device, result);
        return;
    }
    result = driver->context_push(context);
    if (result != UF_CUDA_SUCCESS) {
        fail_context(driver, device, result);
    } else {
        size_t free_bytes = 0, total_bytes = 0;
        if (driver->mem_get_info != NULL &&
            driver->mem_get_info(&free_bytes, &total_bytes) == UF_CUDA_SUCCESS) {
            device->free_bytes = free_bytes;
            device->has_free_bytes = true;
        }
        try_out(driver, handle, device);
        (void)driver->context_pop(&context);
    }
    (void)driver->primary_context_release(handle);
}

static void ask_device(const uf_cuda_driver *driver, bool is_thorough, uf_cuda_probed *device)
{
    int handle = 0, value = 0;
    size_t bytes = 0;
    device->failure = driver->device_get(&handle, device->index);
    if (device->failure != UF_CUDA_SUCCESS) {
        return;
    }
    device->failure = driver->device_get_name(device->name, (int)sizeof device->name - 1, handle);
    if (driver->device_total_mem(&bytes, handle) == UF_CUDA_SUCCESS) {
        device->total_bytes = bytes;
    }
    if (driver->device_get_pci_bus_id == NULL ||
        driver->device_get_pci_bus_id(device->pci_bus_id, (int)sizeof device->pci_bus_id - 1,
                                      handle) != UF_CUDA_SUCCESS) {
        device->pci_bus_id[0] = '\0';
    }
    if (ask(driver, handle, UF_CUDA_ATTRIBUTE_CAPABILITY_MAJOR, &value)) {
        device->capability_major = value;
    }
    if (ask(driver, handle, UF_CUDA_ATTRIBUTE_CAPABILITY_MINOR, &value)) {
        device->capability_minor = value;
    }
    if (ask(driver, handle, UF_CUDA_ATTRIBUTE_MULTIPROCESSOR_COUNT, &value)) {
        device->multiprocessor_count = value;
    }
    device->has_integrated = ask(driver, handle, UF_CUDA_ATTRIBUTE_INTEGRATED, &value);
    device->is_integrated = device->has_integrated && value != 0;
    device->has_rdma_with_vmm = ask(driver, handle, UF_CUDA_ATTRIBUTE_RDMA_WITH_VMM, &value);
    device->can_rdma_with_vmm = device->has_rdma_with_vmm && value != 0;
    if (is_thorough) {
        ask_within_context(driver, handle, device);
    }
}

void uf__cuda_probe(uf_cuda_driver *driver, bool is_thorough, uf_cuda_probe *probe)
{
    uf_error error = {0};
    int count = 0;
    memset(probe, 0, sizeof *probe);
    uf_status status = uf__cuda_driver_open(driver, &error);
    probe->has_library = driver->library != NULL;
    if (status != UF_OK) {
        snprintf(probe->library_error, sizeof probe->library_error, "%.299s", error.text);
        return;
    }
    (void)driver->driver_get_version(&probe->version);
    probe->init_result = driver->init(0);
    probe->init_name = uf__cuda_error_name(driver, probe->init_result);
    if (probe->init_result != UF_CUDA_SUCCESS) {
        return;
    }
    probe->count_result = driver->device_get_count(&count);
    if (probe->count_result != UF_CUDA_SUCCESS || count < 0) {
        return;
    }
    probe->found_count = (uint32_t)count;
    probe->device_count = count < UF_CUDA_DEVICES_MAX ? (uint32_t)count : UF_CUDA_DEVICES_MAX;
    for (uint32_t i = 0; i < probe->device_count; i++) {
        probe->devices[i].index = (int)i;
        ask_device(driver, is_thorough, &probe->devices[i]);
    }
}
