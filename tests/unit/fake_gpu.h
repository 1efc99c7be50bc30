/* SPDX-License-Identifier: MIT
 *
 * Makes a test program find the fake driver libraries: the loader reads LD_LIBRARY_PATH once, so
 * the program starts itself anew with it. */
#ifndef UF_TESTS_FAKE_GPU_H
#define UF_TESTS_FAKE_GPU_H

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fakecuda/fake.h"

static inline void fake_gpu_enter(char **argv)
{
    static const char wanted[] = TEST_FAKECUDA_DIR "/cuda:" TEST_FAKECUDA_DIR "/nvml";
    const char *path = getenv("LD_LIBRARY_PATH");
    if (path == NULL || strcmp(path, wanted) != 0) {
        setenv("LD_LIBRARY_PATH", wanted, 1);
        execv("/proc/self/exe", argv);
        abort();
    }
}

/* A symbol of the fake driver library, which is in the process from now on. */
static inline void *fake_gpu_symbol(const char *name)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    void *symbol = library != NULL ? dlsym(library, name) : NULL;
    if (symbol == NULL) {
        abort();
    }
    dlclose(library);
    return symbol;
}

/* The library's own functions. */
static inline const fake_api *fake_gpu_api(void)
{
    return fake_gpu_symbol("fake_api_table");
}

/* A function of the driver's: *function = its address. */
static inline void fake_gpu_function(const char *name, void *function)
{
    void *symbol = fake_gpu_symbol(name);
    memcpy(function, &symbol, sizeof symbol);
}

/* A stream of card 0. */
static inline void *fake_gpu_stream(void)
{
    int (*retain)(void **, int), (*push)(void *), (*pop)(void **), (*create)(void **, unsigned);
    int (*release)(int);
    void *context = NULL, *stream = NULL;
    fake_gpu_function("cuDevicePrimaryCtxRetain", &retain);
    fake_gpu_function("cuDevicePrimaryCtxRelease_v2", &release);
    fake_gpu_function("cuCtxPushCurrent_v2", &push);
    fake_gpu_function("cuCtxPopCurrent_v2", &pop);
    fake_gpu_function("cuStreamCreate", &create);
    if (retain(&context, 0) != 0 || push(context) != 0 || create(&stream, 1) != 0 ||
        pop(&context) != 0 || release(0) != 0) {
        abort();
    }
    return stream;
}

static inline void fake_gpu_set(const char *text)
{
    setenv("UNFRAG_FAKE_GPU", text, 1);
}

#endif
