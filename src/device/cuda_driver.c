/* SPDX-License-Identifier: MIT
 *
 * Loads libcuda.so.1. A function is looked up under its newest name first. The library stays in the
 * process once it is loaded: it has threads and handlers of its own, and others may have objects of
 * it. */
#include "device/cuda_driver.h"

#include <dlfcn.h>
#include <string.h>

#include "base/error.h"

typedef void any_function(void);

/* Where the library lies if the loader's own places do not have it (WSL). */
static const char *const library_names[] = {"libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"};

static bool look_up(void *library, const char *name, const char *older, any_function **function)
{
    void *found = dlsym(library, name);
    if (found == NULL && older != NULL) {
        found = dlsym(library, older);
    }
    /* ISO C has no conversion from an object's to a function's address; POSIX has. */
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

static uf_status look_all_up(uf_cuda_driver *driver, uf_error *error)
{
    any_function *found;
    const char *missing = NULL;
#define LOOK_UP(member, parameters, name, older)          \
    if (!look_up(driver->library, name, older, &found)) { \
        missing = name;                                   \
    }                                                     \
    memcpy(&driver->member, &found, sizeof driver->member);
    UF_CUDA_DETAIL_LIST(LOOK_UP)
    missing = NULL;
    UF_CUDA_OPTIONAL_LIST(LOOK_UP)
    UF_CUDA_DEVICE_LIST(LOOK_UP)
    driver->missing = missing;
    missing = NULL;
    UF_CUDA_VMM_LIST(LOOK_UP)
    driver->has_vmm = missing == NULL;
    missing = NULL;
    UF_CUDA_NEEDED_LIST(LOOK_UP)
#undef LOOK_UP
    if (missing == NULL) {
        return UF_OK;
    }
    return uf__error_set(error, UF_ERROR_UNSUPPORTED,
                         "libcuda.so.1 has no function %s: it is no driver library, or too old",
                         missing);
}

uf_status uf__cuda_driver_open(uf_cuda_driver *driver, uf_error *error)
{
    memset(driver, 0, sizeof *driver);
    for (size_t i = 0; i < sizeof library_names / sizeof library_names[0]; i++) {
        driver->library = dlopen(library_names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (driver->library != NULL) {
            return look_all_up(driver, error);
        }
        const char *text = dlerror();
        if (i == 0) {
            (void)uf__error_set(error, UF_ERROR_UNSUPPORTED, "%s",
                                text != NULL ? text : library_names[i]);
        }
    }
    return UF_ERROR_UNSUPPORTED;
}

void uf__cuda_driver_close(uf_cuda_driver *driver)
{
    if (driver->library != NULL) {
        dlclose(driver->library);
    }
    memset(driver, 0, sizeof *driver);
}

const char *uf__cuda_error_name(const uf_cuda_driver *driver, int result)
{
    const char *name = NULL;
    if (driver->get_error_name != NULL && driver->get_error_name(result, &name) == 0 &&
        name != NULL) {
        return name;
    }
    switch (result) {
    case UF_CUDA_SUCCESS:
        return "CUDA_SUCCESS";
    case UF_CUDA_OUT_OF_MEMORY:
        return "CUDA_ERROR_OUT_OF_MEMORY";
    case UF_CUDA_STUB_LIBRARY:
        return "CUDA_ERROR_STUB_LIBRARY";
    case UF_CUDA_NO_DEVICE:
        return "CUDA_ERROR_NO_DEVICE";
    case UF_CUDA_NOT_SUPPORTED:
        return "CUDA_ERROR_NOT_SUPPORTED";
    default:
        return "an error the driver has no name for";
    }
}

const char *uf__cuda_error_text(const uf_cuda_driver *driver, int result)
{
    const char *text = NULL;
    if (driver->get_error_string != NULL && driver->get_error_string(result, &text) == 0 &&
        text != NULL) {
        return text;
    }
    return "";
}
