/* SPDX-License-Identifier: MIT
 *
 * Reads the messages that carry figures: PyTorch's own in all releases, on CUDA, ROCm, Intel and
 * Apple, and cudaMallocAsync. A field is found by the words that never change around it, not by its
 * place, so that a message that is cut, retold or interrupted still gives what it has. */
#include "advise/message.h"

#include <string.h>

#include "advise/message_parts.h"

/* The next field of a message begins within so many squeezed bytes. */
#define FIELD_GAP_BYTES 320
/* The hint at the end of a message. */
#define HINT_BYTES 480
#define MAX_PROCESSES 256

const char *uf__reach(const char *at, const char *end, size_t reach)
{
    return (size_t)(end - at) > reach ? at + reach : end;
}

const char *uf__find(const char *from, const char *end, const char *needle)
{
    return from < end ? memmem(from, (size_t)(end - from), needle, strlen(needle)) : NULL;
}

bool uf__begins(const char *at, const char *end, const char *words)
{
    size_t length = strlen(words);
    return at <= end && (size_t)(end - at) >= length && memcmp(at, words, length) == 0;
}

bool uf__ends(const char *start, const char *at, const char *words)
{
    size_t length = strlen(words);
    return at >= start && (size_t)(at - start) >= length && memcmp(at - length, words, length) == 0;
}

bool uf__is_behind(const uf__hit *hit, size_t reach, const char *needle)
{
    const char *from = (size_t)(hit->at - hit->start) > reach ? hit->at - reach : hit->start;
    return uf__find(from, hit->at, needle) != NULL;
}

bool uf__is_ahead(const uf__hit *hit, size_t reach, const char *needle)
{
    return uf__find(hit->at, uf__reach(hit->at, hit->end, reach), needle) != NULL;
}

/* A message being read: fields are looked for behind `at`, which moves with each field found. */
typedef struct reading {
    const char *start; /* of the message */
    const char *at;    /* behind the last field */
    const char *end;   /* of the text, or where the next message begins */
    uf_message *message;
} reading;

static uf_figure *figure_of(const reading *read, uf_figure_kind kind)
{
    return &read->message->figures[kind];
}

/* A figure right before the words. */
static bool take_before(reading *read, const char *words, uf_figure_kind kind, size_t gap)
{
    const char *stop = uf__reach(read->at, read->end, gap);
    for (const char *at = read->at; (at = uf__find(at, stop, words)) != NULL; at++) {
        if (uf__figure_before(read->start, at, figure_of(read, kind))) {
            read->at = at + strlen(words);
            return true;
        }
    }
    return false;
}

/* A figure right behind the words. */
static bool take_after(reading *read, const char *words, uf_figure_kind kind, size_t gap)
{
    const char *stop = uf__reach(read->at, read->end, gap);
    const char *at = uf__find(read->at, stop, words);
    const char *after =
        at != NULL ? uf__figure_at(at + strlen(words), read->end, false, figure_of(read, kind))
                   : NULL;
    if (after == NULL) {
        return false;
    }
    read->at = after;
    return true;
}

static void take_device(reading *read)
{
    const char *stop = uf__reach(read->at, read->end, 64);
    static const char *const names[] = {"gpu", "xpu"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *at = uf__find(read->at, stop, names[i]);
        if (at != NULL && at + 3 < stop && at[3] >= '0' && at[3] <= '9') {
            int32_t device = 0;
            for (at += 3; at < stop && *at >= '0' && *at <= '9' && device < 100000; at++) {
                device = device * 10 + (*at - '0');
            }
            read->message->has_device = true;
            read->message->device = device;
            return;
        }
    }
}

/* The next sentence about a process: "process 4242 has ..." or "this process has ...". */
static const char *next_process(const reading *read, bool *is_numbered)
{
    const char *stop = uf__reach(read->at, read->end, 200);
    for (const char *at = read->at; (at = uf__find(at, stop, "process")) != NULL; at++) {
        const char *after = at + strlen("process");
        *is_numbered = after < stop && *after >= '0' && *after <= '9';
        if (*is_numbered || uf__begins(after, read->end, "has")) {
            return uf__find(after, uf__reach(after, read->end, 32), "has");
        }
    }
    return NULL;
}

/* Any number of such sentences, in any order. A numbered one may be this process, too: in
 * containers it has no name of its own. */
static void take_processes(reading *read)
{
    uf_figure *others = figure_of(read, UF_FIGURE_OTHERS);
    for (unsigned i = 0; i < MAX_PROCESSES; i++) {
        bool is_numbered = false;
        uf_figure one = {0};
        const char *has = next_process(read, &is_numbered);
        const char *after =
            has != NULL ? uf__figure_at(has + strlen("has"), read->end, false, &one) : NULL;
        if (after == NULL || !one.is_known || one.bytes > UINT64_MAX - others->bytes) {
            return;
        }
        read->at = after;
        if (!is_numbered) {
            *figure_of(read, UF_FIGURE_PROCESS) = one;
            continue;
        }
        others->is_known = true;
        others->bytes += one.bytes;
        others->rounding_bytes += one.rounding_bytes;
        read->message->process_count++;
    }
}

static bool is_known(const reading *read, uf_figure_kind kind)
{
    return figure_of(read, kind)->is_known;
}

/* "(GPU 0; T total capacity; A already allocated; F free; N allowed; V reserved in total by
 * PyTorch)", or "K cached)" at its end. */
static void take_old_fields(reading *read)
{
    (void)take_before(read, "totalcapacity", UF_FIGURE_TOTAL, FIELD_GAP_BYTES);
    (void)take_before(read, "alreadyallocated", UF_FIGURE_ALLOCATED, FIELD_GAP_BYTES);
    (void)take_before(read, "free", UF_FIGURE_DEVICE_FREE, 64);
    (void)take_before(read, "allowed", UF_FIGURE_ALLOWED, 64);
    if (!take_before(read, "reserved", UF_FIGURE_RESERVED, 96)) {
        (void)take_before(read, "cached", UF_FIGURE_CACHED, 96);
    }
}

/* "GPU 0 has a total capacity of T of which F is free. ... Of the allocated memory A is allocated
 * by PyTorch, with P allocated in private pools (e.g., CUDA Graphs), and U is reserved by PyTorch
 * but unallocated." */
static void take_new_fields(reading *read)
{
    if (!take_after(read, "totalcapacityof", UF_FIGURE_TOTAL, FIELD_GAP_BYTES)) {
        (void)take_after(read, "totalcapactyof", UF_FIGURE_TOTAL, FIELD_GAP_BYTES);
    }
    (void)take_before(read, "isfree", UF_FIGURE_DEVICE_FREE, 64);
    take_processes(read);
    (void)take_before(read, "allowed", UF_FIGURE_ALLOWED, 160);
    (void)take_before(read, "isallocatedbypytorch", UF_FIGURE_ALLOCATED, FIELD_GAP_BYTES);
    (void)take_before(read, "allocatedinprivatepools", UF_FIGURE_PRIVATE, 96);
    (void)take_before(read, "isreservedbypytorchbutunallocated", UF_FIGURE_UNALLOCATED, 160);
}

/* One label of a retold message: "free: 3 GiB" or "3 GiB free". */
static void take_label(reading *read, const char *label, uf_figure_kind kind)
{
    const char *stop = uf__reach(read->start, read->end, 600);
    size_t length = strlen(label);
    for (const char *at = read->start; (at = uf__find(at, stop, label)) != NULL; at++) {
        const char *after = at + length;
        bool is_other = (label[0] == 'a' && uf__ends(read->start, at, "un")) ||
                        (label[0] == 'r' && uf__begins(after, stop, "but"));
        if (is_other || is_known(read, kind)) {
            continue;
        }
        if (after < stop && (*after == ':' || *after == '=')) {
            after = uf__figure_at(after + 1, read->end, false, figure_of(read, kind));
        } else {
            after = uf__figure_before(read->start, at, figure_of(read, kind)) ? at + length : NULL;
        }
        if (after != NULL && after > read->at) {
            read->at = after;
        }
    }
}

static void take_labels(reading *read)
{
    take_label(read, "requested", UF_FIGURE_REQUESTED);
    take_label(read, "total", UF_FIGURE_TOTAL);
    take_label(read, "capacity", UF_FIGURE_TOTAL);
    take_label(read, "free", UF_FIGURE_DEVICE_FREE);
    take_label(read, "available", UF_FIGURE_DEVICE_FREE);
    take_label(read, "unallocated", UF_FIGURE_UNALLOCATED);
    take_label(read, "unused", UF_FIGURE_UNALLOCATED);
    take_label(read, "allocated", UF_FIGURE_ALLOCATED);
    take_label(read, "allocatedbypytorch", UF_FIGURE_ALLOCATED);
    take_label(read, "cached", UF_FIGURE_CACHED);
    take_label(read, "reserved", UF_FIGURE_RESERVED);
}

typedef enum backend { BACKEND_CUDA, BACKEND_HIP, BACKEND_XPU } backend;

static backend backend_of(const uf__hit *hit)
{
    if (uf__is_behind(hit, 48, "hipoutofmemory") || uf__is_behind(hit, 48, "hiperror")) {
        return BACKEND_HIP;
    }
    return uf__is_behind(hit, 48, "xpuoutofmemory") ? BACKEND_XPU : BACKEND_CUDA;
}

static bool has_hint(const reading *read, const char *words)
{
    return uf__find(read->start, uf__reach(read->at, read->end, HINT_BYTES), words) != NULL;
}

static uf_message_form old_form(const reading *read, backend from)
{
    if (from == BACKEND_XPU) {
        return UF_MESSAGE_X0;
    }
    if (is_known(read, UF_FIGURE_CACHED)) {
        return UF_MESSAGE_T1;
    }
    bool is_newer = has_hint(read, "max_split_size") || has_hint(read, "alloc_conf") ||
                    is_known(read, UF_FIGURE_ALLOWED);
    return is_newer ? UF_MESSAGE_T3 : UF_MESSAGE_T2;
}

static uf_message_form new_form(const reading *read, backend from)
{
    if (from == BACKEND_XPU) {
        return is_known(read, UF_FIGURE_DEVICE_FREE) ? UF_MESSAGE_X2 : UF_MESSAGE_X1;
    }
    if (from == BACKEND_HIP) {
        if (has_hint(read, "hipgraphs") || is_known(read, UF_FIGURE_ALLOWED)) {
            return UF_MESSAGE_H3;
        }
        bool is_newer =
            has_hint(read, "pytorch_cuda_alloc_conf") || has_hint(read, "pytorch_alloc_conf");
        return is_newer ? UF_MESSAGE_H2 : UF_MESSAGE_H1;
    }
    if (uf__find(read->start, read->at, "totalcapacty") != NULL) {
        return UF_MESSAGE_T4;
    }
    if (has_hint(read, "pytorch_alloc_conf") || has_hint(read, "docs.pytorch.org") ||
        is_known(read, UF_FIGURE_ALLOWED)) {
        return UF_MESSAGE_T7;
    }
    if (is_known(read, UF_FIGURE_PRIVATE)) {
        return UF_MESSAGE_T6;
    }
    bool is_numbered = read->message->process_count > 0 && !is_known(read, UF_FIGURE_PROCESS);
    return is_numbered ? UF_MESSAGE_T5P : UF_MESSAGE_T5;
}

/* Which fields a complete message of this form has. */
static bool is_complete(const uf_message *message)
{
    const uf_figure *figures = message->figures;
    bool has_cache = figures[UF_FIGURE_CACHED].is_known || figures[UF_FIGURE_RESERVED].is_known ||
                     figures[UF_FIGURE_UNALLOCATED].is_known;
    bool is_blind = message->form == UF_MESSAGE_X0 || message->form == UF_MESSAGE_X1;
    return figures[UF_FIGURE_REQUESTED].is_known && figures[UF_FIGURE_TOTAL].is_known &&
           (figures[UF_FIGURE_DEVICE_FREE].is_known || is_blind) &&
           figures[UF_FIGURE_ALLOCATED].is_known && has_cache;
}

static const char *next_message(const char *at, const char *end)
{
    const char *next = uf__find(at, end, "triedtoallocate");
    return next != NULL ? next : end;
}

/* "you tried to allocate B bytes": the CPU allocator's message. */
static const char *host_request(const uf__hit *hit, const char *at)
{
    uf_message message = {.form = UF_MESSAGE_HOST};
    const char *after = uf__figure_at(at, hit->end, true, &message.figures[UF_FIGURE_REQUESTED]);
    strcpy(message.name, "DefaultCPUAllocator");
    uf__message_add(hit, &message);
    return after != NULL ? after : at;
}

static const char *after_words(const uf__hit *hit)
{
    const char *at = hit->at + strlen(hit->trigger->word);
    while (at < hit->end && (*at == ':' || *at == '=' || *at == '(' || *at == '~')) {
        at++;
    }
    return at;
}

const char *uf__message_tried(const uf__hit *hit)
{
    const char *at = after_words(hit);
    uf_message message = {0};
    if (uf__ends(hit->start, hit->at, "you") || uf__is_behind(hit, 96, "cpuallocator")) {
        return host_request(hit, at);
    }
    if (uf__begins(at, hit->end, "morethan1eb")) {
        message.form = UF_MESSAGE_BAD_SIZE;
        uf__message_add(hit, &message);
        return at;
    }
    const char *end = next_message(at, hit->end);
    reading read = {.start = at, .at = at, .end = end, .message = &message};
    const char *after = uf__figure_at(at, end, false, figure_of(&read, UF_FIGURE_REQUESTED));
    read.at = after != NULL ? after : at;
    backend from = backend_of(hit);
    take_device(&read);
    const char *near = uf__reach(read.at, end, FIELD_GAP_BYTES);
    if (uf__find(read.at, near, "hasatotalcapac") != NULL) {
        take_new_fields(&read);
        message.form = new_form(&read, from);
    } else if (uf__find(read.at, near, "totalcapacity;") != NULL ||
               uf__find(read.at, near, "alreadyallocated") != NULL) {
        take_old_fields(&read);
        message.form = old_form(&read, from);
    } else if (after == NULL && !is_known(&read, UF_FIGURE_REQUESTED)) {
        if (!uf__is_behind(hit, 32, "outofmemory")) {
            return at; /* prose about trying to allocate */
        }
        message.form = UF_MESSAGE_BARE;
    } else {
        take_labels(&read);
        message.form = is_known(&read, UF_FIGURE_TOTAL) || is_known(&read, UF_FIGURE_ALLOCATED)
                           ? UF_MESSAGE_SUMMARY
                           : UF_MESSAGE_BARE;
        if (message.form == UF_MESSAGE_BARE && !uf__is_behind(hit, 160, "memory") &&
            !uf__is_behind(hit, 160, "oom")) {
            return read.at;
        }
    }
    message.signs |= is_complete(&message) ? 0u : UF_SIGN_CUT;
    message.signs |= uf__find(hit->at, uf__reach(read.at, end, 300), "largerthan4gb") != NULL
                         ? UF_SIGN_BLOCK_4GB
                         : 0u;
    uf__message_add(hit, &message);
    return read.at;
}

/* "MPS backend out of memory (MPS allocated: A, other allocations: O, max allowed: L). Tried to
 * allocate R on private pool." */
const char *uf__message_mps(const uf__hit *hit)
{
    uf_message message = {.form = UF_MESSAGE_P};
    const char *at = hit->at + strlen(hit->trigger->word);
    reading read = {.start = at, .at = at, .end = hit->end, .message = &message};
    (void)take_after(&read, "mpsallocated:", UF_FIGURE_ALLOCATED, 64);
    (void)take_after(&read, "otherallocations:", UF_FIGURE_OUTSIDE, 64);
    (void)take_after(&read, "maxallowed:", UF_FIGURE_ALLOWED, 64);
    (void)take_after(&read, "triedtoallocate", UF_FIGURE_REQUESTED, 64);
    bool is_whole = is_known(&read, UF_FIGURE_ALLOCATED) && is_known(&read, UF_FIGURE_OUTSIDE) &&
                    is_known(&read, UF_FIGURE_ALLOWED) && is_known(&read, UF_FIGURE_REQUESTED);
    message.signs |= is_whole ? 0u : UF_SIGN_CUT;
    uf__message_add(hit, &message);
    return read.at;
}

/* cudaMallocAsync: five lines, or the first words alone. */
const char *uf__message_async(const uf__hit *hit)
{
    uf_message message = {.form = UF_MESSAGE_A};
    const char *at = hit->at + strlen(hit->trigger->word);
    const char *end = hit->end;
    const char *next = uf__find(at, end, "allocationondevice");
    end = next != NULL ? next : end;
    reading read = {.start = at, .at = at, .end = end, .message = &message};
    if (at < end && *at >= '0' && *at <= '9') {
        message.has_device = true;
        for (; read.at < end && *read.at >= '0' && *read.at <= '9' && message.device < 100000;
             read.at++) {
            message.device = message.device * 10 + (*read.at - '0');
        }
    }
    (void)take_after(&read, "currentlyallocated:", UF_FIGURE_ALLOCATED, 200);
    (void)take_after(&read, "requested:", UF_FIGURE_REQUESTED, 96);
    (void)take_after(&read, "devicelimit:", UF_FIGURE_TOTAL, 96);
    (void)take_after(&read, "free(accordingtocuda):", UF_FIGURE_DEVICE_FREE, 96);
    /* Without a fraction it prints 2^64 bytes: not known, then. */
    (void)take_after(&read, "memoryfraction):", UF_FIGURE_ALLOWED, 160);
    bool is_whole = is_known(&read, UF_FIGURE_ALLOCATED) && is_known(&read, UF_FIGURE_REQUESTED) &&
                    is_known(&read, UF_FIGURE_TOTAL) && is_known(&read, UF_FIGURE_DEVICE_FREE);
    message.signs |= is_whole ? 0u : UF_SIGN_CUT;
    /* Its own "(out of memory)" is part of it. */
    const char *own = uf__find(read.at, uf__reach(read.at, end, 64), "(outofmemory)");
    uf__message_add(hit, &message);
    return own != NULL ? own + strlen("(outofmemory)") : read.at;
}

/* "memory allocation failed with OOM on device 1 while trying to allocate B bytes (free: B, total:
 * B)". */
const char *uf__message_retry(const uf__hit *hit)
{
    uf_message message = {.form = UF_MESSAGE_T8};
    const char *at = hit->at + strlen(hit->trigger->word);
    const char *stop = uf__reach(at, hit->end, 200);
    static const struct {
        const char *words;
        uf_figure_kind kind;
    } fields[] = {{"tryingtoallocate", UF_FIGURE_REQUESTED},
                  {"free:", UF_FIGURE_DEVICE_FREE},
                  {"total:", UF_FIGURE_TOTAL}};
    const char *device = uf__find(at, uf__reach(at, hit->end, 24), "device");
    if (device != NULL && device + 6 < stop && device[6] >= '0' && device[6] <= '9') {
        message.has_device = true;
        for (at = device + 6; at < stop && *at >= '0' && *at <= '9' && message.device < 100000;
             at++) {
            message.device = message.device * 10 + (*at - '0');
        }
    }
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        const char *words = uf__find(at, stop, fields[i].words);
        const char *after = words != NULL ? uf__figure_at(words + strlen(fields[i].words), hit->end,
                                                          true, &message.figures[fields[i].kind])
                                          : NULL;
        at = after != NULL ? after : at;
        message.signs |= after != NULL ? 0u : UF_SIGN_CUT;
    }
    uf__message_add(hit, &message);
    return at;
}
