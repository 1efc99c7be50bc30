/* SPDX-License-Identifier: MIT
 *
 * The byte source of the readers: fetches from a file or memory, decompresses, and keeps a window.
 * Owns the file descriptor, the stored-data buffer and the decoder. No lock; one input belongs to
 * one reader. */
#include "trace/input.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "trace/decode.h"

#define WINDOW_BYTES ((size_t)256 << 10)
#define STORED_BYTES ((size_t)128 << 10)

struct uf__source {
    int fd; /* -1: memory */
    bool is_ours;
    char *name;
    const uint8_t *memory;
    size_t memory_left_bytes;
    uint64_t total_bytes; /* as stored; 0 = unknown */
    bool is_drained;
    uf__decoder *decoder; /* NULL: plain */
    uint8_t *stored;      /* buffer of STORED_BYTES; holds, fetched and not yet passed on: */
    uint8_t *stored_begin;
    uint8_t *stored_end;
    bool (*progress)(void *context, uint64_t done_bytes, uint64_t total_bytes);
    void *progress_context;
};

/* Fetches up to room_bytes as stored; *got_bytes 0 means the end. */
static uf_status fetch(uf__input *input, uint8_t *data, size_t room_bytes, size_t *got_bytes,
                       uf_error *error)
{
    struct uf__source *source = input->source;
    if (source->progress != NULL &&
        !source->progress(source->progress_context, input->stored_bytes, source->total_bytes))
        return uf__error_set(error, UF_ERROR_INTERRUPTED,
                             "reading was interrupted after %" PRIu64 " bytes",
                             input->stored_bytes);
    size_t got = 0;
    if (source->fd < 0) {
        got = room_bytes < source->memory_left_bytes ? room_bytes : source->memory_left_bytes;
        if (got > 0)
            memcpy(data, source->memory, got);
        source->memory += got;
        source->memory_left_bytes -= got;
    } else {
        ssize_t n;
        do {
            n = read(source->fd, data, room_bytes);
        } while (n < 0 && errno == EINTR);
        if (n < 0)
            return uf__error_set(error, UF_ERROR_IO, "cannot read %s at byte %" PRIu64 ": %s",
                                 source->name, input->stored_bytes, strerror(errno));
        got = (size_t)n;
    }
    input->stored_bytes += got;
    if (got == 0)
        source->is_drained = true;
    *got_bytes = got;
    return UF_OK;
}

static uf_status produce_plain(uf__input *input, uint8_t *data, size_t room_bytes,
                               size_t *got_bytes, uf_error *error)
{
    struct uf__source *source = input->source;
    size_t waiting_bytes = (size_t)(source->stored_end - source->stored_begin);
    if (waiting_bytes == 0) {
        uf_status status = fetch(input, data, room_bytes, got_bytes, error);
        if (status == UF_OK && *got_bytes == 0)
            input->is_at_end = true;
        return status;
    }
    *got_bytes = waiting_bytes < room_bytes ? waiting_bytes : room_bytes;
    memcpy(data, source->stored_begin, *got_bytes);
    source->stored_begin += *got_bytes;
    return UF_OK;
}

static uf_status produce_decoded(uf__input *input, uint8_t *data, size_t room_bytes,
                                 size_t *got_bytes, uf_error *error)
{
    struct uf__source *source = input->source;
    uf__decode_span span = {0};
    span.out = data;
    span.out_end = data + room_bytes;
    while (span.out == data && !input->is_at_end) {
        if (source->stored_begin == source->stored_end && !source->is_drained) {
            size_t got = 0;
            uf_status status = fetch(input, source->stored, STORED_BYTES, &got, error);
            if (status != UF_OK)
                return status;
            source->stored_begin = source->stored;
            source->stored_end = source->stored + got;
        }
        span.in = source->stored_begin;
        span.in_end = source->stored_end;
        span.is_last = source->is_drained;
        uint64_t offset = input->stored_bytes - (uint64_t)(span.in_end - span.in);
        uf_status status =
            uf__decoder_step(source->decoder, &span, offset, &input->is_at_end, error);
        if (status != UF_OK)
            return status;
        source->stored_begin = source->stored_end - (span.in_end - span.in);
    }
    *got_bytes = (size_t)(span.out - data);
    return UF_OK;
}

uf_status uf__input_ensure(uf__input *input, size_t want_bytes, uf_error *error)
{
    size_t have_bytes = uf__input_at_hand(input);
    if (have_bytes >= want_bytes || input->is_at_end)
        return UF_OK;
    if (want_bytes > UF__INPUT_ENSURE_BYTES)
        return uf__error_set(error, UF_ERROR_INTERNAL, "%zu bytes asked for at once", want_bytes);
    memmove(input->window, input->cursor, have_bytes);
    input->cursor = input->window;
    input->limit = input->window + have_bytes;
    while (have_bytes < want_bytes && !input->is_at_end) {
        uint8_t *end = input->window + have_bytes;
        size_t room_bytes = WINDOW_BYTES - have_bytes;
        size_t got_bytes = 0;
        uf_status status = input->source->decoder != NULL
                               ? produce_decoded(input, end, room_bytes, &got_bytes, error)
                               : produce_plain(input, end, room_bytes, &got_bytes, error);
        if (status != UF_OK)
            return status;
        have_bytes += got_bytes;
        input->decoded_bytes += got_bytes;
        input->limit = input->window + have_bytes;
    }
    memset(input->window + have_bytes, 0, UF__INPUT_SLACK_BYTES);
    return UF_OK;
}

static uf_status short_of(const uf__input *input, uint64_t want_bytes, uf_error *error)
{
    return uf__error_set(error, UF_ERROR_BAD_INPUT,
                         "the data ends at byte %" PRIu64 " in the middle of something that needs "
                         "%" PRIu64 " bytes more",
                         input->decoded_bytes, want_bytes);
}

uf_status uf__input_read(uf__input *input, void *data, size_t size_bytes, uf_error *error)
{
    uint8_t *out = data;
    while (size_bytes > 0) {
        size_t have_bytes = uf__input_at_hand(input);
        if (have_bytes == 0) {
            uf_status status = uf__input_ensure(input, 1, error);
            if (status != UF_OK)
                return status;
            have_bytes = uf__input_at_hand(input);
            if (have_bytes == 0)
                return short_of(input, size_bytes, error);
        }
        size_t part_bytes = have_bytes < size_bytes ? have_bytes : size_bytes;
        memcpy(out, input->cursor, part_bytes);
        input->cursor += part_bytes;
        out += part_bytes;
        size_bytes -= part_bytes;
    }
    return UF_OK;
}

uf_status uf__input_skip(uf__input *input, uint64_t size_bytes, uf_error *error)
{
    while (size_bytes > 0) {
        size_t have_bytes = uf__input_at_hand(input);
        if (have_bytes == 0) {
            uf_status status = uf__input_ensure(input, 1, error);
            if (status != UF_OK)
                return status;
            have_bytes = uf__input_at_hand(input);
            if (have_bytes == 0)
                return short_of(input, size_bytes, error);
        }
        size_t part_bytes = have_bytes < size_bytes ? have_bytes : (size_t)size_bytes;
        input->cursor += part_bytes;
        size_bytes -= part_bytes;
    }
    return UF_OK;
}

/* Fetches the first stored bytes, enough to tell the codec, and sets up its decoder. */
static uf_status detect(uf__input *input, uf_error *error)
{
    struct uf__source *source = input->source;
    while ((size_t)(source->stored_end - source->stored) < UF__CODEC_MAGIC_BYTES &&
           !source->is_drained) {
        size_t have_bytes = (size_t)(source->stored_end - source->stored);
        size_t got_bytes = 0;
        uf_status status =
            fetch(input, source->stored_end, STORED_BYTES - have_bytes, &got_bytes, error);
        if (status != UF_OK)
            return status;
        source->stored_end += got_bytes;
    }
    uf__codec codec =
        uf__codec_detect(source->stored, (size_t)(source->stored_end - source->stored));
    if (codec == UF__CODEC_PLAIN)
        return UF_OK;
    return uf__decoder_create(codec, &source->decoder, error);
}

static uf__input *create(const char *name, const uf_trace_read_options *options)
{
    uf__input *input = calloc(1, sizeof *input);
    if (input == NULL)
        return NULL;
    input->window = malloc(WINDOW_BYTES + UF__INPUT_SLACK_BYTES);
    input->source = calloc(1, sizeof *input->source);
    if (input->window == NULL || input->source == NULL)
        goto fail;
    input->cursor = input->limit = input->window;
    memset(input->window, 0, UF__INPUT_SLACK_BYTES);
    input->source->fd = -1;
    input->source->name = strdup(name);
    input->source->stored = malloc(STORED_BYTES);
    if (input->source->name == NULL || input->source->stored == NULL)
        goto fail;
    input->source->stored_begin = input->source->stored_end = input->source->stored;
    if (options != NULL) {
        input->source->progress = options->progress;
        input->source->progress_context = options->progress_context;
    }
    return input;

fail:
    uf__input_close(input);
    return NULL;
}

void uf__input_close(uf__input *input)
{
    if (input == NULL)
        return;
    struct uf__source *source = input->source;
    if (source != NULL) {
        if (source->is_ours)
            close(source->fd);
        uf__decoder_destroy(source->decoder);
        free(source->stored);
        free(source->name);
        free(source);
    }
    free(input->window);
    free(input);
}

uf_status uf__input_open(const char *path, const uf_trace_read_options *options, uf__input **input,
                         uf_error *error)
{
    bool is_stdin = strcmp(path, "-") == 0;
    uf__input *made = create(is_stdin ? "standard input" : path, options);
    if (made == NULL)
        return uf__error_set(error, UF_ERROR_HOST_MEMORY, "no memory to open %s", path);
    struct uf__source *source = made->source;
    source->fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    source->is_ours = !is_stdin && source->fd >= 0;
    uf_status status = UF_OK;
    if (source->fd < 0)
        status = uf__error_set(error, UF_ERROR_IO, "cannot open %s: %s", path, strerror(errno));
    struct stat about;
    if (status == UF_OK && fstat(source->fd, &about) == 0 && S_ISREG(about.st_mode))
        source->total_bytes = (uint64_t)about.st_size;
    if (status == UF_OK)
        status = detect(made, error);
    if (status != UF_OK) {
        uf__input_close(made);
        return status;
    }
    *input = made;
    return UF_OK;
}

uf_status uf__input_open_memory(const void *data, size_t size_bytes,
                                const uf_trace_read_options *options, uf__input **input,
                                uf_error *error)
{
    uf__input *made = create("memory", options);
    if (made == NULL)
        return uf__error_set(error, UF_ERROR_HOST_MEMORY, "no memory to read %zu bytes",
                             size_bytes);
    made->source->memory = data;
    made->source->memory_left_bytes = size_bytes;
    made->source->total_bytes = size_bytes;
    uf_status status = detect(made, error);
    if (status != UF_OK) {
        uf__input_close(made);
        return status;
    }
    *input = made;
    return UF_OK;
}
