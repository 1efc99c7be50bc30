/* SPDX-License-Identifier: MIT
 *
 * Reads what is no message of PyTorch's caching allocator: errors of drivers, libraries and other
 * frameworks, main memory, killed and aborted processes, other GPU errors. Most carry no figures.
 */
#include "advise/message.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "advise/message_parts.h"
#include "advise/message_squeeze.h"

#define NO_EXIT (-1000)

static const char *end_of_words(const uf__hit *hit)
{
    return hit->at + strlen(hit->trigger->word);
}

/* The identifier around the hit, in the capitals it is known by. */
static void name_code(const uf__hit *hit, uf_message *message)
{
    const char *from = hit->at, *to = hit->at;
    while (from > hit->start && hit->at - from < 24 &&
           (isalnum((unsigned char)from[-1]) || from[-1] == '_')) {
        from--;
    }
    while (to < hit->end && to - hit->at < 32 && (isalnum((unsigned char)*to) || *to == '_')) {
        to++;
    }
    size_t length = 0;
    static const char *const starts[] = {"cublas_",     "cudnn_",     "cusparse_", "cusolver_",
                                         "curand_",     "cufft_",     "hipblas_",  "rocblas_",
                                         "cuda_error_", "ur_result_", "pi_error_", "vk_error_",
                                         "cudaerror",   "hiperror",   "miopen",    "resource_"};
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        const char *found = uf__find(from, to, starts[i]);
        from = found != NULL && found <= hit->at ? found : from;
    }
    static const char *const stops[] = {"_failed",      "_resources",  "_memory",
                                        "_initialized", "allocfailed", "memoryallocation",
                                        "outofmemory",  "_error",      "_exhausted"};
    for (size_t i = 0; i < sizeof stops / sizeof stops[0]; i++) {
        const char *found = uf__find(hit->at, to, stops[i]);
        to = found != NULL ? found + strlen(stops[i]) : to;
    }
    for (; from < to && length + 1 < sizeof message->name; from++) {
        message->name[length++] = (char)toupper((unsigned char)*from);
    }
    message->name[length] = '\0';
}

static void set_name(uf_message *message, const char *name)
{
    snprintf(message->name, sizeof message->name, "%s", name);
}

/* A figure in the text nearby, behind one of the usual words. */
static void find_request(const uf__hit *hit, uf_message *message)
{
    static const char *const words[] = {"allocating", "failedtoallocate", "tryingtoallocate",
                                        "requestedbufferofsize", "allocatingabufferofsize"};
    const char *from = hit->at - hit->start > 120 ? hit->at - 120 : hit->start;
    const char *stop = uf__reach(hit->at, hit->end, 200);
    uf_figure *figure = &message->figures[UF_FIGURE_REQUESTED];
    for (size_t i = 0; i < sizeof words / sizeof words[0] && !figure->is_known; i++) {
        for (const char *at = from;
             !figure->is_known && (at = uf__find(at, stop, words[i])) != NULL; at++) {
            const char *number = at + strlen(words[i]);
            (void)uf__figure_at(number, hit->end, false, figure);
            /* "3.24G (3478923264 bytes)" */
            const char *bracket = uf__find(number, uf__reach(number, hit->end, 12), "(");
            if (!figure->is_known && bracket != NULL) {
                (void)uf__figure_at(bracket + 1, hit->end, false, figure);
            }
            if (!figure->is_known && i >= 3) {
                (void)uf__figure_at(number, hit->end, true, figure);
            }
        }
    }
}

static bool is_pinned(const uf__hit *hit)
{
    static const char *const words[] = {"pin_memory",   "cudahostalloc", "cudamallochost",
                                        "pinnedmemory", "pinned_memory", "hostalloc"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (uf__is_behind(hit, 600, words[i]) || uf__is_ahead(hit, 200, words[i])) {
            return true;
        }
    }
    return false;
}

static const char *add_simple(const uf__hit *hit, uf_message_form form, const char *name)
{
    uf_message message = {.form = form};
    set_name(&message, name);
    find_request(hit, &message);
    uf__message_add(hit, &message);
    return end_of_words(hit);
}

static const char *add_driver(const uf__hit *hit, const char *name)
{
    uf_message message = {.form = UF_MESSAGE_DRIVER};
    if (name != NULL) {
        set_name(&message, name);
    } else {
        name_code(hit, &message);
    }
    find_request(hit, &message);
    message.signs |= is_pinned(hit) ? UF_SIGN_PINNED : 0u;
    uf__message_add(hit, &message);
    /* The code and the words behind it, "cudaErrorMemoryAllocation: out of memory", are one. */
    const char *after = end_of_words(hit);
    const char *again = uf__find(after, uf__reach(after, hit->end, 16), "outofmemory");
    return again != NULL ? again + strlen("outofmemory") : after;
}

/* RMM: "std::bad_alloc: out_of_memory: CUDA error at: ...", "RMM failure at: ...: Maximum pool size
 * exceeded". */
static const char *add_rmm(const uf__hit *hit)
{
    uf_message message = {.form = UF_MESSAGE_RMM};
    bool is_limit = uf__is_ahead(hit, 260, "maximumpoolsizeexceeded");
    set_name(&message, is_limit ? "Maximum pool size exceeded" : "std::bad_alloc");
    message.signs |= is_limit ? UF_SIGN_POOL_LIMIT : 0u;
    const char *stop = uf__reach(hit->at, hit->end, 400);
    const char *words = uf__find(hit->at, stop, "failedtoallocate");
    if (words != NULL) {
        (void)uf__figure_at(words + strlen("failedtoallocate"), hit->end, false,
                            &message.figures[UF_FIGURE_REQUESTED]);
    }
    uf__message_add(hit, &message);
    static const char *const tails[] = {"maximumpoolsizeexceeded", "cudaerrormemoryallocation",
                                        "outofmemory", "failedtoallocate"};
    const char *after = end_of_words(hit);
    for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++) {
        const char *tail = uf__find(after, uf__reach(hit->at, hit->end, 400), tails[i]);
        after = tail != NULL ? tail + strlen(tails[i]) : after;
    }
    return after;
}

static bool is_rmm(const uf__hit *hit)
{
    return uf__is_ahead(hit, 260, "rmm") || uf__is_behind(hit, 80, "rmm");
}

/* "Out of memory allocating 1,024,000 bytes (allocated so far: 2,048 bytes, limit set to: ...)." */
static const char *add_cupy(const uf__hit *hit)
{
    uf_message message = {.form = UF_MESSAGE_CUPY};
    static const struct {
        const char *words;
        uf_figure_kind kind;
    } fields[] = {{"allocating", UF_FIGURE_REQUESTED},
                  {"sofar:", UF_FIGURE_ALLOCATED},
                  {"limitsetto:", UF_FIGURE_ALLOWED}};
    const char *at = end_of_words(hit);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        const char *words = uf__find(at, uf__reach(at, hit->end, 64), fields[i].words);
        const char *after = words != NULL ? uf__figure_at(words + strlen(fields[i].words), hit->end,
                                                          false, &message.figures[fields[i].kind])
                                          : NULL;
        at = after != NULL ? after : at;
    }
    uf__message_add(hit, &message);
    return at;
}

/* The kernel's line: "Out of memory: Killed process 12 (python) ...", "Memory cgroup out of
 * memory". */
static bool is_kernel_line(const uf__hit *hit)
{
    return uf__is_ahead(hit, 48, "killprocess") || uf__is_ahead(hit, 48, "killedprocess") ||
           uf__ends(hit->start, hit->at, "memorycgroup");
}

static const char *add_killed(const uf__hit *hit, const char *name, uint32_t signs)
{
    uf_message message = {.form = UF_MESSAGE_KILLED, .signs = signs};
    set_name(&message, name);
    uf__message_add(hit, &message);
    const char *after = end_of_words(hit);
    /* One event of the kernel says it in several words. */
    const char *again = uf__find(after, uf__reach(after, hit->end, 48), "killedprocess");
    return again != NULL ? again + strlen("killedprocess") : after;
}

typedef enum oom_context { OOM_NOTHING, OOM_BARE, OOM_DRIVER, OOM_T0 } oom_context;

static oom_context context_of(const uf__hit *hit)
{
    const char *at = hit->at, *start = hit->start;
    if (uf__is_behind(hit, 28, "cudaruntimeerr")) {
        return OOM_T0;
    }
    static const char *const driver[] = {
        "cudaerror:", "hiperror:",   "cudadrivererror:", "cuda_error_",
        "failed:",    "cudaerror2:", "cudafailure",      "cudaerror(2):",
        "xpuerror:",  "hiperrorout", "vk_error_",        "cudafailure2"};
    for (size_t i = 0; i < sizeof driver / sizeof driver[0]; i++) {
        if (uf__ends(start, at, driver[i])) {
            return OOM_DRIVER;
        }
    }
    if (uf__is_behind(hit, 24, "cudafailure") || uf__is_behind(hit, 24, "cudaerror")) {
        return OOM_DRIVER;
    }
    static const char *const bare[] = {"cuda", "hip", "xpu", "gpu", "error:", "torch.", "vram"};
    for (size_t i = 0; i < sizeof bare / sizeof bare[0]; i++) {
        if (uf__ends(start, at, bare[i])) {
            return OOM_BARE;
        }
    }
    return OOM_NOTHING;
}

/* "out of memory", in whatever context: the words alone mean nothing. */
static const char *read_oom(const uf__hit *hit)
{
    const char *after = end_of_words(hit);
    bool is_class = uf__begins(after, hit->end, "error");
    size_t reach = is_class ? 96 : 72;
    if (uf__is_ahead(hit, reach, "triedtoallocate") ||
        uf__is_ahead(hit, 64, "allocationondevice")) {
        return after; /* the message itself follows */
    }
    if (is_kernel_line(hit)) {
        return add_killed(hit, "the kernel's memory killer", UF_SIGN_HOST_KILLER);
    }
    if (uf__begins(after, hit->end, "allocating")) {
        return add_cupy(hit);
    }
    if (uf__begins(after, hit->end, "whiletryingtoallocate") ||
        uf__begins(after, hit->end, "tryingtoallocate")) {
        return add_simple(hit, UF_MESSAGE_XLA, "RESOURCE_EXHAUSTED");
    }
    if (uf__ends(hit->start, hit->at, "rmm_error_")) {
        return add_rmm(hit);
    }
    if (is_class && (uf__is_ahead(hit, 32, "outofmemory") || uf__is_ahead(hit, 40, "cuda"))) {
        const char *next = uf__find(after, uf__reach(after, hit->end, 40), "outofmemory");
        if (next != NULL) {
            return after; /* the words that follow say more */
        }
    }
    switch (context_of(hit)) {
    case OOM_T0:
        return add_simple(hit, UF_MESSAGE_T0, "cuda runtime error (2)");
    case OOM_DRIVER:
        return add_driver(hit, uf__ends(hit->start, hit->at, "_error_") ? NULL : "out of memory");
    case OOM_BARE:
        if (uf__ends(hit->start, hit->at, "torch.") && !uf__begins(after, hit->end, "error:")) {
            return after; /* a line of a program, not an error */
        }
        return add_simple(hit, UF_MESSAGE_BARE, "out of memory");
    case OOM_NOTHING:
        break;
    }
    return after;
}

static const char *read_framework(const uf__hit *hit)
{
    const char *word = hit->trigger->word;
    if (strcmp(word, "oomwhenallocatingtensor") == 0 || strcmp(word, "ranoutofmemorytrying") == 0) {
        return add_simple(hit, UF_MESSAGE_TENSORFLOW, "OOM when allocating tensor");
    }
    if (strcmp(word, "resource_exhausted") == 0) {
        const char *after = add_simple(hit, UF_MESSAGE_XLA, "RESOURCE_EXHAUSTED");
        const char *again = uf__find(after, uf__reach(after, hit->end, 24), "outofmemory");
        return again != NULL ? again + strlen("outofmemory") : after;
    }
    if (strcmp(word, "failedtoallocate") != 0) {
        return add_simple(hit, UF_MESSAGE_VLLM, "memory for the cache blocks");
    }
    if (uf__is_behind(hit, 160, "bfcarena") || uf__is_ahead(hit, 60, "requestedbufferofsize")) {
        return add_simple(hit, UF_MESSAGE_ONNXRUNTIME, "BFCArena");
    }
    if (uf__is_ahead(hit, 96, "fromdevice:cuda_error")) {
        const char *after = add_simple(hit, UF_MESSAGE_TENSORFLOW, "CUDA_ERROR_OUT_OF_MEMORY");
        const char *tail = uf__find(after, uf__reach(after, hit->end, 128), "out_of_memory");
        return tail != NULL ? uf__reach(tail, hit->end, 26) : after;
    }
    return end_of_words(hit);
}

static const char *read_host(const uf__hit *hit)
{
    const char *word = hit->trigger->word, *after = end_of_words(hit);
    uf_message message = {.form = UF_MESSAGE_HOST};
    if (strcmp(word, "std::bad_alloc") == 0 && is_rmm(hit)) {
        return add_rmm(hit);
    }
    if (strcmp(word, "std::bad_alloc") == 0 && uf__is_ahead(hit, 200, "out_of_memory")) {
        return add_rmm(hit);
    }
    if (strcmp(word, "defaultcpuallocator") == 0) {
        return after; /* the request follows */
    }
    if (strcmp(word, "memoryerror") == 0) {
        bool is_error =
            uf__begins(after, hit->end, ":") || after == hit->end || hit->at == hit->line_start;
        bool is_part = uf__ends(hit->start, hit->at, "outof") || is_rmm(hit) ||
                       uf__is_ahead(hit, 64, "std::bad_alloc");
        if (!is_error || is_part) {
            return after;
        }
        const char *words = uf__find(after, uf__reach(after, hit->end, 32), "allocate");
        if (words != NULL) {
            (void)uf__figure_at(words + 8, hit->end, false, &message.figures[UF_FIGURE_REQUESTED]);
        }
    }
    if (strcmp(word, "cudahostalloc") == 0) {
        if (!uf__is_ahead(hit, 80, "outofmemory") && !uf__is_ahead(hit, 80, "failed")) {
            return after;
        }
        message.signs |= UF_SIGN_PINNED;
    }
    message.signs |= strstr(word, "shared") != NULL ? UF_SIGN_SHARED_MEMORY : 0u;
    static const char *const names[][2] = {{"std::bad_alloc", "std::bad_alloc"},
                                           {"memoryerror", "MemoryError"},
                                           {"cannotallocatememory", "Cannot allocate memory"},
                                           {"pagingfileistoosmall", "the paging file is too small"},
                                           {"oserror:[winerror1455]", "WinError 1455"},
                                           {"insufficientsharedmemory", "shared memory"},
                                           {"outofsharedmemory", "shared memory"},
                                           {"cudahostalloc", "cudaHostAlloc"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i][0], word) == 0) {
            set_name(&message, names[i][1]);
        }
    }
    uf__message_add(hit, &message);
    return after;
}

/* The number behind "exit code", "exited with", ...: NO_EXIT if there is none. */
static int exit_number(const uf__hit *hit, const char **after)
{
    const char *at = end_of_words(hit);
    const char *stop = uf__reach(at, hit->end, 24);
    static const char *const fillers[] = {"code",     "status", "was",   "is",
                                          "signals.", "signal", "value", "error"};
    bool has_moved = true;
    while (has_moved && at < stop) {
        has_moved = strchr(":=([.,<", *at) != NULL;
        at += has_moved;
        for (size_t i = 0; i < sizeof fillers / sizeof fillers[0]; i++) {
            if (uf__begins(at, stop, fillers[i])) {
                at += strlen(fillers[i]);
                has_moved = true;
            }
        }
    }
    bool is_negative = at < stop && *at == '-';
    at += is_negative;
    int number = NO_EXIT;
    for (number = at < stop && isdigit((unsigned char)*at) ? 0 : NO_EXIT;
         at < stop && isdigit((unsigned char)*at) && number < 1000; at++) {
        number = number * 10 + (*at - '0');
    }
    *after = at;
    return number == NO_EXIT ? NO_EXIT : is_negative ? -number : number;
}

static const char *add_abort(const uf__hit *hit, const char *name)
{
    uf_message message = {.form = UF_MESSAGE_ABORT};
    set_name(&message, name);
    static const char *const settings[] = {
        "alloc_conf",          "allocatorconfig",   "cachingallocatoroption", "unrecognizedkey",
        "expandable_segments", "max_split_size_mb", "acceleratorallocator"};
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        if (uf__is_behind(hit, 900, settings[i])) {
            message.signs |= UF_SIGN_SETTINGS;
        }
    }
    uf__message_add(hit, &message);
    return end_of_words(hit);
}

static const char *read_exit(const uf__hit *hit)
{
    const char *after = NULL;
    switch (exit_number(hit, &after)) {
    case 137:
    case -9:
        add_killed(hit, "exit code 137", 0);
        break;
    case 134:
    case -6:
        add_abort(hit, "exit code 134");
        break;
    default:
        break;
    }
    return after;
}

/* "script.sh: line 3: 12345 Killed ..." */
static const char *read_shell(const uf__hit *hit)
{
    const char *at = end_of_words(hit);
    const char *stop = uf__reach(at, hit->end, 32);
    while (at < stop && (isdigit((unsigned char)*at) || *at == ':')) {
        at++;
    }
    if (uf__begins(at, hit->end, "killed")) {
        add_killed(hit, "Killed", 0);
    } else if (uf__begins(at, hit->end, "aborted")) {
        add_abort(hit, "abort");
    } else {
        return end_of_words(hit);
    }
    return at + 6;
}

static const char *read_killed(const uf__hit *hit)
{
    const char *word = hit->trigger->word;
    bool is_killer = strncmp(word, "oom", 3) == 0;
    if (strcmp(word, "killedprocess") == 0) {
        is_killer = true;
    }
    const char *name = is_killer                               ? "the kernel's memory killer"
                       : strcmp(word, UF__SQUEEZE_KILLED) == 0 ? "Killed"
                       : strcmp(word, "sigkill") == 0          ? "SIGKILL"
                                                               : "killed";
    return add_killed(hit, strcmp(word, "exit137") == 0 ? "exit code 137" : name,
                      is_killer ? UF_SIGN_HOST_KILLER : 0u);
}

static const char *read_error(const uf__hit *hit)
{
    static const char *const names[][2] = {
        {"illegalmemoryaccess", "an illegal memory access"},
        {"device-sideassert", "a device-side assertion"},
        {"segmentationfault", "a segmentation fault"},
        {"nokernelimageisavailable", "no kernel for this GPU in the build"},
        {"misalignedaddress", "a misaligned address"},
        {"unspecifiedlaunchfailure", "an unspecified launch failure"},
        {"status_execution_failed", "a library kernel that failed"},
        {"cudaerror:invalid", "an invalid argument or configuration"}};
    uf_message message = {.form = UF_MESSAGE_ERROR};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i][0], hit->trigger->word) == 0) {
            set_name(&message, names[i][1]);
        }
    }
    uf__message_add(hit, &message);
    return end_of_words(hit);
}

/* "91.67% GPU memory (11257.00 MB) to load weights": memory being divided. */
static const char *read_budget(const uf__hit *hit)
{
    if (uf__is_behind(hit, 48, "%") || uf__is_behind(hit, 48, "mb)")) {
        return add_simple(hit, UF_MESSAGE_BUDGET, "");
    }
    return end_of_words(hit);
}

static const char *add_code(const uf__hit *hit, uint32_t signs)
{
    uf_message message = {.form = UF_MESSAGE_LIBRARY, .signs = signs};
    if (strcmp(hit->trigger->word, "failedtocudacalloc") == 0) {
        set_name(&message, "NCCL: Failed to CUDA calloc");
    } else {
        name_code(hit, &message);
    }
    uf__message_add(hit, &message);
    return end_of_words(hit);
}

const char *uf__message_other(const uf__hit *hit)
{
    switch (hit->trigger->kind) {
    case UF__TRIGGER_OOM:
        return read_oom(hit);
    case UF__TRIGGER_DRIVER:
        return is_rmm(hit) ? add_rmm(hit) : add_driver(hit, NULL);
    case UF__TRIGGER_LIBRARY:
        return add_code(hit, 0);
    case UF__TRIGGER_NEAR:
        return uf__is_behind(hit, 8, "cublas") || uf__is_behind(hit, 8, "cudnn")
                   ? add_code(hit, UF_SIGN_NEAR_WRONG)
                   : end_of_words(hit);
    case UF__TRIGGER_RMM:
        return strcmp(hit->trigger->word, "maximumpoolsizeexceeded") == 0 ||
                       uf__is_ahead(hit, 260, "memory") || uf__is_ahead(hit, 260, "maximumpool")
                   ? add_rmm(hit)
                   : end_of_words(hit);
    case UF__TRIGGER_FRAMEWORK:
        return read_framework(hit);
    case UF__TRIGGER_HOST:
        return read_host(hit);
    case UF__TRIGGER_KILLED:
        return read_killed(hit);
    case UF__TRIGGER_SHELL:
        return read_shell(hit);
    case UF__TRIGGER_EXIT:
        return read_exit(hit);
    case UF__TRIGGER_ABORT:
        return add_abort(hit, "abort");
    case UF__TRIGGER_ERROR:
        return read_error(hit);
    case UF__TRIGGER_BUDGET:
        return read_budget(hit);
    case UF__TRIGGER_HANG:
        return add_simple(hit, UF_MESSAGE_HANG, "");
    default:
        return end_of_words(hit);
    }
}
