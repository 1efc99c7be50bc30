/* SPDX-License-Identifier: MIT
 *
 * Finds the places in a text where a message may stand. The text is squeezed first: lower case,
 * without blanks, line breaks, escape sequences, quotes and log prefixes, so that a message matches
 * however it was wrapped, coloured or quoted:
 *
 *     [rank0]: torch.OutOf\nMemoryError   ->   torch.outofmemoryerror
 *
 *     squeezed   | behind (for context) | searched now | ahead (of the last hit) |
 *
 * The window slides over the text; memory does not grow with it. Words are found by the method of
 * Wu and Manber ("A fast algorithm for multi-pattern searching", 1994). */
#include "advise/message.h"

#include <stdlib.h>
#include <string.h>

#include "advise/message_parts.h"
#include "advise/message_squeeze.h"
#include "base/error.h"
#include "trace/input.h"

#define WINDOW_BYTES ((size_t)192 << 10)
/* A raw byte gives at most one squeezed byte; so many raw bytes are taken at a time. */
#define STEP_BYTES ((size_t)32 << 10)
#define BLOCK_BYTES 3
#define HASH_BITS 14
#define NO_WORD 0xff

static const uf__trigger triggers[] = {
    {"triedtoallocate", UF__TRIGGER_TRIED},
    {"outofmemory", UF__TRIGGER_OOM},
    {"out_of_memory", UF__TRIGGER_OOM},
    {"allocationondevice", UF__TRIGGER_ASYNC},
    {"failedwithoom", UF__TRIGGER_RETRY},
    {"cudaerrormemoryallocation", UF__TRIGGER_DRIVER},
    {"hiperroroutofmemory", UF__TRIGGER_DRIVER},
    {"out_of_device_memory", UF__TRIGGER_DRIVER},
    {"out_of_resources", UF__TRIGGER_DRIVER},
    {"status_alloc_failed", UF__TRIGGER_LIBRARY},
    {"status_allocation_failed", UF__TRIGGER_LIBRARY},
    {"cufft_alloc_failed", UF__TRIGGER_LIBRARY},
    {"status_memory_error", UF__TRIGGER_LIBRARY},
    {"statusallocfailed", UF__TRIGGER_LIBRARY},
    {"insufficient_resources", UF__TRIGGER_LIBRARY},
    {"failedtocudacalloc", UF__TRIGGER_LIBRARY},
    {"status_not_initialized", UF__TRIGGER_NEAR},
    {"maximumpoolsizeexceeded", UF__TRIGGER_RMM},
    {"rmmfailure", UF__TRIGGER_RMM},
    {"oomwhenallocatingtensor", UF__TRIGGER_FRAMEWORK},
    {"resource_exhausted", UF__TRIGGER_FRAMEWORK},
    {"ranoutofmemorytrying", UF__TRIGGER_FRAMEWORK},
    {"failedtoallocate", UF__TRIGGER_FRAMEWORK},
    {"noavailablememoryforthecacheblocks", UF__TRIGGER_FRAMEWORK},
    {"islessthandesiredgpumemory", UF__TRIGGER_FRAMEWORK},
    {"largerthanthemaximumnumberoftokensthatcanbestoredinkvcache", UF__TRIGGER_FRAMEWORK},
    {"defaultcpuallocator", UF__TRIGGER_HOST},
    {"std::bad_alloc", UF__TRIGGER_HOST},
    {"memoryerror", UF__TRIGGER_HOST},
    {"cannotallocatememory", UF__TRIGGER_HOST},
    {"pagingfileistoosmall", UF__TRIGGER_HOST},
    {"oserror:[winerror1455]", UF__TRIGGER_HOST},
    {"insufficientsharedmemory", UF__TRIGGER_HOST},
    {"outofsharedmemory", UF__TRIGGER_HOST},
    {"cudahostalloc", UF__TRIGGER_HOST},
    {"oomkill", UF__TRIGGER_KILLED},
    {"oom-kill", UF__TRIGGER_KILLED},
    {"oom_kill", UF__TRIGGER_KILLED},
    {"oom_reaper", UF__TRIGGER_KILLED},
    {"killedprocess", UF__TRIGGER_KILLED},
    {"sigkill", UF__TRIGGER_KILLED},
    {"signal:killed", UF__TRIGGER_KILLED},
    {"zsh:killed", UF__TRIGGER_KILLED},
    {".sh:line", UF__TRIGGER_SHELL},
    {"bash:line", UF__TRIGGER_SHELL},
    {UF__SQUEEZE_KILLED, UF__TRIGGER_KILLED},
    {"exitcode", UF__TRIGGER_EXIT},
    {"exitedwith", UF__TRIGGER_EXIT},
    {"exitstatus", UF__TRIGGER_EXIT},
    {"returncode", UF__TRIGGER_EXIT},
    {"returnedcode", UF__TRIGGER_EXIT},
    {"diedwith", UF__TRIGGER_EXIT},
    {"exit137", UF__TRIGGER_KILLED},
    {"exit134", UF__TRIGGER_ABORT},
    {"aborted(coredumped)", UF__TRIGGER_ABORT},
    {"sigabrt", UF__TRIGGER_ABORT},
    {"zsh:abort", UF__TRIGGER_ABORT},
    {"illegalmemoryaccess", UF__TRIGGER_ERROR},
    {"device-sideassert", UF__TRIGGER_ERROR},
    {"segmentationfault", UF__TRIGGER_ERROR},
    {"nokernelimageisavailable", UF__TRIGGER_ERROR},
    {"misalignedaddress", UF__TRIGGER_ERROR},
    {"unspecifiedlaunchfailure", UF__TRIGGER_ERROR},
    {"status_execution_failed", UF__TRIGGER_ERROR},
    {"cudaerror:invalid", UF__TRIGGER_ERROR},
    {"toloadweights", UF__TRIGGER_BUDGET},
    {"forweights", UF__TRIGGER_BUDGET},
    {"allocated", UF__TRIGGER_GROWTH},
    {"gpumemory", UF__TRIGGER_GROWTH},
    {"gpu_mem", UF__TRIGGER_GROWTH},
    {"memory:", UF__TRIGGER_GROWTH},
    {"memory=", UF__TRIGGER_GROWTH},
    {"vramusage", UF__TRIGGER_GROWTH},
    {"vramused", UF__TRIGGER_GROWTH},
    {"memused", UF__TRIGGER_GROWTH},
    {"maxmemory", UF__TRIGGER_GROWTH},
    {"loadingcheckpointshards", UF__TRIGGER_LOADING},
    {"loadingpipelinecomponents", UF__TRIGGER_LOADING},
    {"loadingsafetensorscheckpoint", UF__TRIGGER_LOADING},
    {"loadingweights", UF__TRIGGER_LOADING},
    {"loadingmodel", UF__TRIGGER_LOADING},
    {"blockedformorethan", UF__TRIGGER_HANG},
    {"stuckatloading", UF__TRIGGER_HANG},
    {"hangswhileloading", UF__TRIGGER_HANG},
    {"hangswhenloading", UF__TRIGGER_HANG},
    {"hangsatloading", UF__TRIGGER_HANG},
    {"stuckwhileloading", UF__TRIGGER_HANG},
    {"stuckwhenloading", UF__TRIGGER_HANG},
    {"freezeswhileloading", UF__TRIGGER_HANG},
    {"\\site-packages", UF__TRIGGER_SIGN},
    {"nvidia-smi.exe", UF__TRIGGER_SIGN},
    {"tcc/wddm", UF__TRIGGER_SIGN},
    {"driver-model", UF__TRIGGER_SIGN},
    {"microsoft-standard", UF__TRIGGER_SIGN},
    {"vramtotal:", UF__TRIGGER_SIGN},
    {"vramfree:", UF__TRIGGER_SIGN},
    {"vram_total:", UF__TRIGGER_SIGN},
    {"vram_free:", UF__TRIGGER_SIGN},
};

#define TRIGGER_COUNT (sizeof triggers / sizeof triggers[0])

/* The tables of the search. shift: how far the window may move when a block ends it. first/next:
 * the words whose first UF__TRIGGER_LEAST bytes end with a block. */
typedef struct searcher {
    uint8_t shift[1u << HASH_BITS];
    uint8_t first[1u << HASH_BITS];
    uint8_t next[TRIGGER_COUNT];
    uint8_t length[TRIGGER_COUNT];
} searcher;

typedef struct scan {
    searcher search;
    uf__squeeze squeeze;
    size_t searched; /* squeezed bytes before are done */
    uf_message_log *log;
    char window[WINDOW_BYTES];
} scan;

static inline uint32_t hash_block(const char *at)
{
    const uint8_t *bytes = (const uint8_t *)at;
    uint32_t block = (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16;
    return (block * UINT32_C(2654435761)) >> (32 - HASH_BITS);
}

static void searcher_init(searcher *search)
{
    memset(search->shift, UF__TRIGGER_LEAST - BLOCK_BYTES + 1, sizeof search->shift);
    memset(search->first, NO_WORD, sizeof search->first);
    for (size_t i = TRIGGER_COUNT; i-- > 0;) {
        const char *word = triggers[i].word;
        search->length[i] = (uint8_t)strlen(word);
        for (unsigned end = BLOCK_BYTES; end <= UF__TRIGGER_LEAST; end++) {
            uint32_t hash = hash_block(word + end - BLOCK_BYTES);
            uint8_t shift = (uint8_t)(UF__TRIGGER_LEAST - end);
            if (shift < search->shift[hash]) {
                search->shift[hash] = shift;
            }
        }
        uint32_t hash = hash_block(word + UF__TRIGGER_LEAST - BLOCK_BYTES);
        search->next[i] = search->first[hash];
        search->first[hash] = (uint8_t)i;
    }
}

/* The longest word at `at`, or NULL. */
static const uf__trigger *word_at(const searcher *search, const char *at, const char *end,
                                  uint32_t hash)
{
    size_t best = 0;
    const uf__trigger *found = NULL;
    for (uint8_t i = search->first[hash]; i != NO_WORD; i = search->next[i]) {
        size_t length = search->length[i];
        if (length > best && (size_t)(end - at) >= length &&
            memcmp(at, triggers[i].word, length) == 0) {
            best = length;
            found = &triggers[i];
        }
    }
    return found;
}

static void read_sign(const uf__hit *hit)
{
    const char *word = hit->trigger->word;
    uf_message_log *log = hit->log;
    if (strstr(word, "vram") == NULL) {
        log->is_wsl = log->is_wsl || strstr(word, "microsoft") != NULL;
        log->is_windows = log->is_windows || strstr(word, "microsoft") == NULL;
        return;
    }
    if (uf__ends(hit->start, hit->at, "torch") || uf__ends(hit->start, hit->at, "torch_")) {
        return;
    }
    uf_figure *figure =
        strstr(word, "total") != NULL ? &log->report_total : &log->report_device_free;
    (void)uf__figure_at(hit->at + strlen(word), hit->end, true, figure);
}

static bool is_label(char letter)
{
    return (letter >= 'a' && letter <= 'z') || letter == ':' || letter == '=' || letter == '(' ||
           letter == ')' || letter == '_';
}

/* A figure that a log repeats: the label, with what precedes it on its line, is the key. */
static const char *read_growth(const uf__hit *hit)
{
    const char *after = hit->at + strlen(hit->trigger->word);
    const char *at = after;
    for (unsigned i = 0; i < 16 && at < hit->end && is_label(*at); i++) {
        at++;
    }
    uf_figure figure = {0};
    const char *stop = uf__figure_at(at, hit->end, true, &figure);
    if (stop == NULL || !figure.is_known || figure.bytes < (UINT64_C(1) << 20)) {
        return after;
    }
    uint64_t key = UINT64_C(1469598103934665603);
    for (const char *letter = hit->line_start; letter < at; letter++) {
        if ((*letter >= 'a' && *letter <= 'z') || *letter == '_') {
            key = (key ^ (uint8_t)*letter) * UINT64_C(1099511628211);
        }
    }
    uf__growth_add(hit->log, key, figure.bytes, hit->line);
    return stop;
}

static const char *read_loading(const uf__hit *hit)
{
    hit->log->has_loading = true;
    hit->log->loading_line = hit->line;
    return hit->at + strlen(hit->trigger->word);
}

static const char *handle(const uf__hit *hit)
{
    const char *after = hit->at + strlen(hit->trigger->word);
    switch (hit->trigger->kind) {
    case UF__TRIGGER_TRIED:
        return uf__message_tried(hit);
    case UF__TRIGGER_ASYNC:
        return uf__message_async(hit);
    case UF__TRIGGER_RETRY:
        return uf__message_retry(hit);
    case UF__TRIGGER_GROWTH:
        return read_growth(hit);
    case UF__TRIGGER_LOADING:
        return read_loading(hit);
    case UF__TRIGGER_SIGN:
        read_sign(hit);
        return after;
    case UF__TRIGGER_OOM:
        if (uf__ends(hit->start, hit->at, "mpsbackend")) {
            return uf__message_mps(hit);
        }
        break;
    default:
        break;
    }
    return uf__message_other(hit);
}

static const char *hit_word(scan *state, const char *at, const uf__trigger *trigger)
{
    const uf__squeeze *squeeze = &state->squeeze;
    uf__hit hit = {.start = state->window,
                   .at = at,
                   .end = state->window + squeeze->length,
                   .trigger = trigger,
                   .log = state->log};
    size_t line_offset = 0;
    uf__squeeze_line(squeeze, (size_t)(at - state->window), &hit.line, &line_offset);
    hit.line_start = state->window + line_offset;
    return handle(&hit);
}

/* Searches up to `limit` and goes on behind what was taken. */
static void search(scan *state, size_t limit)
{
    const searcher *tables = &state->search;
    const char *start = state->window, *end = start + state->squeeze.length;
    const char *stop = start + limit;
    const char *at = start + state->searched;
    while (at < stop && (size_t)(end - at) >= UF__TRIGGER_LEAST) {
        uint32_t hash = hash_block(at + UF__TRIGGER_LEAST - BLOCK_BYTES);
        uint8_t shift = tables->shift[hash];
        if (shift > 0) {
            at += shift;
            continue;
        }
        const uf__trigger *trigger = word_at(tables, at, end, hash);
        const char *next = trigger != NULL ? hit_word(state, at, trigger) : at + 1;
        at = next > at ? next : at + 1;
    }
    size_t done = (size_t)(at - start);
    state->searched = done > state->squeeze.length ? state->squeeze.length : done;
}

/* Makes room: what is no longer needed for context leaves the window. */
static void slide(scan *state)
{
    if (state->searched > UF__MESSAGE_BEHIND_BYTES) {
        size_t gone = state->searched - UF__MESSAGE_BEHIND_BYTES;
        uf__squeeze_drop(&state->squeeze, gone);
        state->searched -= gone;
    }
}

static void note_bytes(uf_message_log *log, const uint8_t *data, size_t size)
{
    if (log->byte_count == 0 && size >= 2) {
        log->is_utf16 =
            (data[0] == 0xff && data[1] == 0xfe) || (data[0] == 0xfe && data[1] == 0xff);
        log->is_snapshot = (data[0] == 0x80 && data[1] >= 2 && data[1] <= 5) ||
                           (size >= 4 && memcmp(data, "UFT", 3) == 0 && data[3] < 0x20);
    }
    log->byte_count += size;
}

static uf_status read_all(scan *state, uf__input *input, uf_error *error)
{
    for (bool is_last = false; !is_last;) {
        uf_status status = uf__input_ensure(input, STEP_BYTES, error);
        if (status != UF_OK) {
            return status;
        }
        size_t size = uf__input_at_hand(input);
        is_last = size < STEP_BYTES;
        size = size < STEP_BYTES ? size : STEP_BYTES;
        if (state->squeeze.length + size > WINDOW_BYTES) {
            search(state, state->squeeze.length - UF__MESSAGE_AHEAD_BYTES);
            slide(state);
        }
        size_t taken = uf__squeeze_add(&state->squeeze, input->cursor, size, is_last);
        note_bytes(state->log, input->cursor, taken);
        input->cursor += taken;
    }
    search(state, state->squeeze.length);
    state->log->line_count = state->squeeze.line;
    state->log->nul_count = state->squeeze.nul_count;
    state->log->control_count = state->squeeze.control_count;
    return UF_OK;
}

uf_status uf__message_scan(uf__input *input, uf_message_log **log, uf_error *error)
{
    scan *state = calloc(1, sizeof *state);
    uf_message_log *made = calloc(1, sizeof *made);
    uf_status status = UF_ERROR_HOST_MEMORY;
    if (state == NULL || made == NULL ||
        !uf__squeeze_init(&state->squeeze, state->window, WINDOW_BYTES)) {
        uf__error_set(error, status, "no host memory to read the text");
        goto out;
    }
    state->log = made;
    searcher_init(&state->search);
    status = read_all(state, input, error);
    if (status == UF_OK) {
        *log = made;
        made = NULL;
    }
out:
    if (state != NULL) {
        uf__squeeze_fini(&state->squeeze);
    }
    free(state);
    free(made);
    return status;
}

uf_status uf__message_scan_memory(const void *data, size_t size_bytes, uf_message_log **log,
                                  uf_error *error)
{
    uf__input *input = NULL;
    uf_status status = uf__input_open_memory(data, size_bytes, NULL, &input, error);
    if (status == UF_OK) {
        status = uf__message_scan(input, log, error);
        uf__input_close(input);
    }
    return status;
}
