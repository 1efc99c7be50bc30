/* SPDX-License-Identifier: MIT
 *
 * Plain functions for torch.cuda.memory.CUDAPluggableAllocator, for machines where the glue cannot
 * be compiled: a library of its own (libunfrag_plain.so) over libunfrag. PyTorch hands these
 * functions no context, so there is one set of allocators in a process, one for each GPU, made at
 * its first use and never destroyed: tensors are given back while the process ends. They guard
 * themselves; what leads to them is guarded by the mutex. Knows nothing of C++: what PyTorch throws
 * when a request fails, the function throws that uf_plain_begin is given. This file is compiled
 * with unwind tables, so that it may. */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <unfrag/cuda.h>
#include <unfrag/monitor.h>
#include <unfrag/unfrag.h>

enum { DEVICES_MOST = 64 };

/* c10::detail::torchCheckFail: throws. */
typedef void (*uf_plain_refuser)(const char *function, const char *file, uint32_t line,
                                 const char *text);

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
    uf_policy policy;
    char *conf;
    uint64_t limit_bytes;
    double fraction;
    uf_plain_refuser refuse;
} settings;
static _Atomic(uf_allocator *) allocators[DEVICES_MOST];
static uf_monitor *pages[DEVICES_MOST];
static atomic_bool has_device, is_forked;

/* A child gets CUDA as its parent had it: what was not begun yet, the child may begin. */
static void note_fork(void)
{
    atomic_store(&is_forked, atomic_load(&is_forked) || atomic_load(&has_device));
}

static void close_pages(void)
{
    for (int i = 0; i < DEVICES_MOST; i++) {
        uf_monitor_close(pages[i]);
    }
}

/* Says how allocators are to be, before there is one. policy: "unfrag" or "torch"; conf: may be
 * NULL; limit_bytes, 0 = none; fraction of each GPU's memory, 0 = none; refuse: throws. Returns 0,
 * or 1 for what it cannot be. */
UF_API int uf_plain_begin(const char *policy, const char *conf, uint64_t limit_bytes,
                          double fraction, uf_plain_refuser refuse)
{
    bool is_unfrag = strcmp(policy, "unfrag") == 0;
    char *own = conf != NULL && conf[0] != '\0' ? strdup(conf) : NULL;
    if (settings.refuse != NULL || refuse == NULL || (!is_unfrag && strcmp(policy, "torch") != 0) ||
        (conf != NULL && conf[0] != '\0' && own == NULL) ||
        pthread_atfork(NULL, NULL, note_fork) != 0 || atexit(close_pages) != 0) {
        free(own);
        return 1;
    }
    settings.policy = is_unfrag ? UF_POLICY_UNFRAG : UF_POLICY_TORCH;
    settings.conf = own;
    settings.limit_bytes = limit_bytes;
    settings.fraction = limit_bytes != 0 ? 0 : fraction;
    settings.refuse = refuse;
    return 0;
}

static void open_page(int device, uf_allocator *allocator)
{
    const char *chosen = getenv("UNFRAG_MONITOR");
    const uf_monitor_options options = {.struct_size_bytes = sizeof options,
                                        .allocator = allocator};
    if (chosen == NULL || strcmp(chosen, "0") != 0) {
        /* A page that cannot be made is no reason to fail. */
        (void)!uf_monitor_open(&options, &pages[device], NULL);
    }
}

static uf_status make(int device, uf_allocator **allocator, uf_error *error)
{
    const uf_cuda_options cuda_options = {.struct_size_bytes = sizeof cuda_options,
                                          .ordinal = device};
    uf_cuda_info info = {.struct_size_bytes = sizeof info};
    uf_cuda *cuda = NULL;
    uf_status status = uf_cuda_create(&cuda_options, &cuda, error);
    if (status != UF_OK) {
        return status;
    }
    bool is_mapping = uf_cuda_info_get(cuda, &info) == UF_OK && info.policy == UF_POLICY_UNFRAG;
    const uf_allocator_options options = {
        .struct_size_bytes = sizeof options,
        .device = uf_cuda_device(cuda),
        .device_index = device,
        .policy = is_mapping ? settings.policy : UF_POLICY_TORCH,
        .conf = settings.conf,
        .limit_bytes = settings.limit_bytes,
        .fraction = settings.fraction,
        .is_every_stream_watched = true,
        .is_limit_spared = true,
    };
    status = uf_allocator_create(&options, allocator, error);
    if (status != UF_OK) {
        uf_cuda_destroy(cuda);
    }
    return status;
}

static void tell(char *text, size_t capacity, const char *what)
{
    if (text != NULL && capacity > 0) {
        (void)snprintf(text, capacity, "%s", what);
    }
}

/* The allocator of a GPU, made if need be; NULL: text says why. Borrowed for ever. */
UF_API uf_allocator *uf_plain_allocator(int device, char *text, size_t capacity)
{
    uf_error error = {0};
    if (device < 0 || device >= DEVICES_MOST) {
        tell(text, capacity, "there is no such GPU");
        return NULL;
    }
    uf_allocator *allocator = atomic_load_explicit(&allocators[device], memory_order_acquire);
    if (allocator != NULL) {
        return allocator;
    }
    if (atomic_load(&is_forked)) {
        tell(text, capacity,
             "Cannot use CUDA in a forked subprocess; start it with multiprocessing's 'spawn' "
             "method");
        return NULL;
    }
    (void)pthread_mutex_lock(&mutex);
    allocator = atomic_load(&allocators[device]);
    if (allocator == NULL) {
        atomic_store(&has_device, true);
        if (make(device, &allocator, &error) == UF_OK) {
            open_page(device, allocator);
            atomic_store_explicit(&allocators[device], allocator, memory_order_release);
        } else {
            allocator = NULL;
            tell(text, capacity, error.text);
        }
    }
    (void)pthread_mutex_unlock(&mutex);
    return allocator;
}

static void refuse(const char *function, const char *text)
{
    settings.refuse(function, "unfrag", 0, text);
}

/* alloc_fn of CUDAPluggableAllocator. Throws rather than return NULL, which PyTorch would take. */
UF_API void *uf_plain_alloc(int64_t bytes, int device, void *stream)
{
    char text[700];
    uf_error error = {0};
    uint64_t addr = 0;
    uf_allocator *allocator = uf_plain_allocator(device, error.text, sizeof error.text);
    if (allocator == NULL) {
        (void)snprintf(text, sizeof text, "unfrag: GPU %d cannot be opened: %s", device,
                       error.text);
        refuse(__func__, text);
        return NULL;
    }
    uf_status status =
        uf_alloc(allocator, (uint64_t)bytes, (uint64_t)(uintptr_t)stream, &addr, &error);
    if (status != UF_OK) {
        (void)snprintf(text, sizeof text, "%s%.2f MiB. GPU %d.\nunfrag: %s",
                       status == UF_ERROR_OUT_OF_MEMORY ? "CUDA out of memory. Tried to allocate "
                                                        : "unfrag: cannot allocate ",
                       (double)bytes / (1 << 20), device, error.text);
        refuse(__func__, text);
    }
    return (void *)(uintptr_t)addr; /* NOLINT(performance-no-int-to-ptr): an address of the GPU */
}

/* free_fn. Never throws: it is called by destructors. */
UF_API void uf_plain_free(void *addr, int64_t bytes, int device, void *stream)
{
    (void)bytes;
    (void)stream;
    if (device >= 0 && device < DEVICES_MOST && !atomic_load(&is_forked)) {
        (void)!uf_free(atomic_load_explicit(&allocators[device], memory_order_acquire),
                       (uint64_t)(uintptr_t)addr, NULL);
    }
}

/* record_stream_fn. It is not told of which GPU: each is asked. */
UF_API void uf_plain_use(void *addr, void *stream)
{
    for (int i = 0; i < DEVICES_MOST && !atomic_load(&is_forked); i++) {
        uf_allocator *allocator = atomic_load_explicit(&allocators[i], memory_order_acquire);
        if (allocator != NULL && uf_use_on_stream(allocator, (uint64_t)(uintptr_t)addr,
                                                  (uint64_t)(uintptr_t)stream, NULL) == UF_OK) {
            return;
        }
    }
}

/* begin_allocate_to_pool: what is captured would be handed out again. The pool's name comes in two
 * numbers, the filter by reference: nothing of it is looked at. */
UF_API void uf_plain_begin_pool(int device, uint64_t id_first, uint64_t id_second, void *filter)
{
    (void)device;
    (void)id_first;
    (void)id_second;
    (void)filter;
    refuse(__func__, "unfrag: CUDA graphs and memory pools need unfrag's glue, which could not be "
                     "built here: install a C++ compiler, or set UNFRAG_DISABLE=1");
}
