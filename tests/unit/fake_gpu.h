/* SPDX-License-Identifier: MIT
 *
 * Makes a test program find the fake driver libraries: the loader reads LD_LIBRARY_PATH once, so
 * the program starts itself anew with it. */
#ifndef UF_TESTS_FAKE_GPU_H
#define UF_TESTS_FAKE_GPU_H

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static inline void fake_gpu_set(const char *text)
{
    setenv("UNFRAG_FAKE_GPU", text, 1);
}

#endif
