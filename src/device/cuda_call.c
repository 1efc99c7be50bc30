/* SPDX-License-Identifier: MIT
 *
 * Around each call of the driver: the context is made current if it is not, the thread's capture
 * mode is made relaxed so that no capture is invalidated, and what fails is kept. */
#include "device/cuda.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

/* Errors after which the context does nothing any more, whatever is called. */
static bool is_sticky(int result)
{
    switch (result) {
    case UF_CUDA_DEINITIALIZED:
    case UF_CUDA_ECC_UNCORRECTABLE:
    case UF_CUDA_NVLINK_UNCORRECTABLE:
    case UF_CUDA_ILLEGAL_ADDRESS:
    case UF_CUDA_LAUNCH_TIMEOUT:
    case UF_CUDA_CONTEXT_IS_DESTROYED:
    case UF_CUDA_ASSERT:
    case UF_CUDA_HARDWARE_STACK_ERROR:
    case UF_CUDA_ILLEGAL_INSTRUCTION:
    case UF_CUDA_MISALIGNED_ADDRESS:
    case UF_CUDA_INVALID_ADDRESS_SPACE:
    case UF_CUDA_INVALID_PC:
    case UF_CUDA_LAUNCH_FAILED:
        return true;
    default:
        return false;
    }
}

bool uf__cuda_is_over(const uf_cuda *cuda)
{
    return atomic_load_explicit(&cuda->ended_by, memory_order_relaxed) == UF_CUDA_DEINITIALIZED;
}

bool uf__cuda_is_forked(const uf_cuda *cuda)
{
    return cuda->is_here != NULL ? cuda->is_here[0] == 0 : cuda->process != getpid();
}

uf_status uf__cuda_refuse(uf_cuda *cuda, uf_status status, const char *text)
{
    (void)pthread_mutex_lock(&cuda->mutex);
    cuda->failure.status = status;
    (void)snprintf(cuda->failure.text, sizeof cuda->failure.text, "%s", text);
    (void)pthread_mutex_unlock(&cuda->mutex);
    return status;
}

uf_status uf__cuda_judge(uf_cuda *cuda, const char *call, uint64_t bytes, int result)
{
    atomic_fetch_add_explicit(&cuda->driver_call_count, 1, memory_order_relaxed);
    if (result == UF_CUDA_SUCCESS) {
        return UF_OK;
    }
    if (is_sticky(result)) {
        int none = 0;
        (void)atomic_compare_exchange_strong(&cuda->ended_by, &none, result);
    }
    char about[40] = "";
    if (bytes != 0) {
        (void)snprintf(about, sizeof about, " of %llu bytes", (unsigned long long)bytes);
    }
    const char *text = uf__cuda_error_text(&cuda->driver, result);
    uf_error failure;
    uf_status status = uf__error_set(
        &failure, result == UF_CUDA_OUT_OF_MEMORY ? UF_ERROR_DEVICE_MEMORY : UF_ERROR_DEVICE,
        "%s%s on GPU %d (%s) failed: %s%s%s%s", call, about, cuda->info.ordinal, cuda->info.name,
        uf__cuda_error_name(&cuda->driver, result), text[0] != '\0' ? " (" : "", text,
        text[0] != '\0' ? ")" : "");
    atomic_fetch_add_explicit(&cuda->failure_count, 1, memory_order_relaxed);
    return uf__cuda_refuse(cuda, status, failure.text);
}

uf_status uf__cuda_enter(uf_cuda *cuda, uf_cuda_visit *visit)
{
    const uf_cuda_driver *driver = &cuda->driver;
    *visit = (uf_cuda_visit){.capture_mode = UF_CUDA_CAPTURE_MODE_RELAXED};
    if (uf__cuda_is_forked(cuda)) {
        return UF_ERROR_DEVICE; /* nothing is kept: the mutex may be another process's */
    }
    if (atomic_load_explicit(&cuda->ended_by, memory_order_relaxed) != 0) {
        return UF_ERROR_DEVICE; /* the newest failure says by what */
    }
    void *current = NULL;
    uf_status status =
        uf__cuda_judge(cuda, "cuCtxGetCurrent", 0, driver->context_get_current(&current));
    if (status == UF_OK && current != cuda->context) {
        status = uf__cuda_judge(cuda, "cuCtxPushCurrent", 0, driver->context_push(cuda->context));
        visit->is_pushed = status == UF_OK;
    }
    if (status == UF_OK && driver->thread_exchange_capture_mode != NULL) {
        status = uf__cuda_judge(cuda, "cuThreadExchangeStreamCaptureMode", 0,
                                driver->thread_exchange_capture_mode(&visit->capture_mode));
        visit->has_mode = status == UF_OK;
    }
    if (status != UF_OK) {
        uf__cuda_leave(cuda, visit);
        return UF_ERROR_DEVICE;
    }
    return UF_OK;
}

/* What was changed in the calling thread is put back at the second try if the first one fails. */
void uf__cuda_leave(uf_cuda *cuda, const uf_cuda_visit *visit)
{
    const uf_cuda_driver *driver = &cuda->driver;
    bool is_back = !visit->has_mode;
    for (int i = 0; i < 2 && !is_back; i++) {
        int mode = visit->capture_mode;
        is_back = uf__cuda_judge(cuda, "cuThreadExchangeStreamCaptureMode", 0,
                                 driver->thread_exchange_capture_mode(&mode)) == UF_OK;
    }
    is_back = !visit->is_pushed;
    for (int i = 0; i < 2 && !is_back; i++) {
        void *context;
        is_back =
            uf__cuda_judge(cuda, "cuCtxPopCurrent", 0, driver->context_pop(&context)) == UF_OK;
    }
}

uf_status uf__cuda_failure_copy(uf_cuda *cuda, uf_status status, uf_error *error)
{
    (void)pthread_mutex_lock(&cuda->mutex);
    uf_error failure = cuda->failure;
    (void)pthread_mutex_unlock(&cuda->mutex);
    return uf__error_set(error, status, "%s", failure.text);
}

uint64_t uf_cuda_failures(uf_cuda *cuda, uf_error *last)
{
    if (uf__cuda_is_forked(cuda)) {
        return 0;
    }
    (void)pthread_mutex_lock(&cuda->mutex);
    if (last != NULL && cuda->failure.status != UF_OK) {
        *last = cuda->failure;
    }
    (void)pthread_mutex_unlock(&cuda->mutex);
    return atomic_load(&cuda->failure_count);
}
