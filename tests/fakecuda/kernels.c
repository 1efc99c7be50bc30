/* SPDX-License-Identifier: MIT
 *
 * Modules and kernels of the fake driver library: the kernels of tests/gpu/kernels.cu by name, as
 * functions on the host. The first two parameters say what a kernel writes, or, of uf_check,
 * reads. Guarded by world.mutex, but for the kernels themselves, which run when the host device
 * runs them. */
#include <stdlib.h>
#include <string.h>

#include "world.h"

enum { PARAMETERS_MAX = 4 };

typedef void kernel_body(const uint64_t *parameters);

typedef struct fake_kernel {
    const char *name;
    uint32_t parameter_count, item_bytes;
    bool is_square, reads_second; /* count is a side; the second parameter is read */
    kernel_body *body;
} fake_kernel;

/* A graph may run it again and again: it lives as long as the process. */
typedef struct launch {
    struct launch *next;
    const fake_kernel *kernel;
    uint64_t parameters[PARAMETERS_MAX];
} launch;

static launch *launches; /* all */

static uint32_t word_of(uint64_t pattern, uint64_t i)
{
    return ((uint32_t)pattern ^ (uint32_t)i ^ (uint32_t)(i >> 32)) * 0x9E3779B1u;
}

static void body_fill(const uint64_t *p)
{
    uint32_t *to = (uint32_t *)(uintptr_t)p[0];
    for (uint64_t i = 0; i < p[1]; i++) {
        to[i] = word_of(p[2], i);
    }
}

static void body_check(const uint64_t *p)
{
    const uint32_t *from = (const uint32_t *)(uintptr_t)p[0];
    uint64_t *wrong = (uint64_t *)(uintptr_t)p[3];
    for (uint64_t i = 0; i < p[1]; i++) {
        *wrong += from[i] != word_of(p[2], i);
    }
}

static void body_copy(const uint64_t *p)
{
    memcpy((void *)(uintptr_t)p[0], (const void *)(uintptr_t)p[1], p[2] * 16);
}

static void body_gather(const uint64_t *p)
{
    uint32_t *to = (uint32_t *)(uintptr_t)p[0];
    const uint32_t *from = (const uint32_t *)(uintptr_t)p[1];
    for (uint64_t i = 0; i < p[2]; i++) {
        to[i] = from[(i * 0x9E3779B1u + 12345) & (p[2] - 1)];
    }
}

static void body_transpose(const uint64_t *p)
{
    uint32_t *to = (uint32_t *)(uintptr_t)p[0];
    const uint32_t *from = (const uint32_t *)(uintptr_t)p[1];
    for (uint64_t y = 0; y < p[2]; y++) {
        for (uint64_t x = 0; x < p[2]; x++) {
            to[x * p[2] + y] = from[y * p[2] + x];
        }
    }
}

static const fake_kernel kernels[] = {
    {"uf_fill", 3, 4, false, false, body_fill},
    {"uf_check", 4, 4, false, false, body_check},
    {"uf_fill_for", 4, 4, false, false, body_fill},
    {"uf_copy", 3, 16, false, true, body_copy},
    {"uf_gather", 3, 4, false, true, body_gather},
    {"uf_transpose", 3, 4, true, true, body_transpose},
};
enum { KERNEL_COUNT = sizeof kernels / sizeof *kernels };

static void run_launch(void *context, uint64_t addr, uint64_t size_bytes)
{
    const launch *l = context;
    (void)addr;
    (void)size_bytes;
    l->kernel->body(l->parameters);
}

static void only_touch(void *context, uint64_t addr, uint64_t size_bytes)
{
    (void)context;
    (void)addr;
    (void)size_bytes;
}

EXPORT int cuModuleLoadData(void **module, const void *image)
{
    int result = fake_begin("cuModuleLoadData", SAFE);
    *module = (void *)(uintptr_t)image;
    return fake_end(result == SUCCESS && fake_current_card() < 0 ? INVALID_CONTEXT : result);
}

EXPORT int cuModuleUnload(void *module)
{
    (void)module;
    return fake_end(fake_begin("cuModuleUnload", SAFE));
}

EXPORT int cuModuleGetFunction(void **function, void *module, const char *name)
{
    int result = fake_begin("cuModuleGetFunction", SAFE);
    const void *found = NULL;
    (void)module;
    for (int i = 0; i < KERNEL_COUNT; i++) {
        found = strcmp(kernels[i].name, name) == 0 ? &kernels[i] : found;
    }
    if (result == SUCCESS && found == NULL) {
        result = NOT_FOUND;
    }
    *function = (void *)(uintptr_t)found;
    return fake_end(result);
}

/* What is touched lies on this card; of a peer's memory only the peer knows whether it is there. */
static uint64_t own_bytes(uint64_t addr, uint64_t size_bytes)
{
    bool is_own = true;
    for (int i = 0; i < FAKE_CARDS_MAX; i++) {
        uf_host *host = world.gpus[i].host;
        if (host == NULL || i == fake_current_card()) {
            continue;
        }
        (void)pthread_mutex_lock(&host->mutex);
        is_own = is_own && !uf__host_is_accessible_locked(host, addr, size_bytes);
        (void)pthread_mutex_unlock(&host->mutex);
    }
    return is_own ? size_bytes : 0;
}

EXPORT int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                          unsigned block_x, unsigned block_y, unsigned block_z,
                          unsigned shared_bytes, void *stream, void **parameters, void **extra)
{
    const fake_kernel *kernel = function;
    int result = fake_begin("cuLaunchKernel", SAFE);
    (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y, (void)block_z;
    (void)shared_bytes, (void)extra;
    if (result == SUCCESS && fake_current_card() < 0) {
        result = INVALID_CONTEXT;
    }
    launch *l = result == SUCCESS ? malloc(sizeof *l) : NULL;
    if (l == NULL) {
        return fake_end(result == SUCCESS ? OUT_OF_MEMORY : result);
    }
    l->kernel = kernel;
    l->next = launches;
    launches = l;
    for (uint32_t i = 0; i < kernel->parameter_count; i++) {
        memcpy(&l->parameters[i], parameters[i], sizeof l->parameters[i]);
    }
    uint64_t count = l->parameters[kernel->reads_second ? 2 : 1];
    uint64_t bytes = (kernel->is_square ? count * count : count) * kernel->item_bytes;
    if (kernel->reads_second) {
        uint64_t addr = l->parameters[1];
        result = fake_launch(stream, &(uf_host_job){.kernel = only_touch,
                                                    .addr = addr,
                                                    .size_bytes = own_bytes(addr, bytes)});
    }
    if (result == SUCCESS) {
        uint64_t addr = l->parameters[0];
        result = fake_launch(stream, &(uf_host_job){.kernel = run_launch,
                                                    .context = l,
                                                    .addr = addr,
                                                    .size_bytes = own_bytes(addr, bytes)});
    }
    return fake_end(result);
}
