/* SPDX-License-Identifier: MIT
 *
 * The byte source: windows, compressed data, ends, progress. */
#include "trace/input.h"

#include <errno.h>
#include <lzma.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "pickle_bytes.h"

#define DATA_BYTES ((size_t)1500000)

/* Bytes that do not repeat, so that a misplaced window shows. */
static uint8_t *make_data(void)
{
    uint8_t *data = malloc(DATA_BYTES);
    uint32_t state = 12345;
    for (size_t i = 0; i < DATA_BYTES; i++) {
        state = state * 1664525u + 1013904223u;
        data[i] = (uint8_t)(state >> 24);
    }
    return data;
}

static size_t pack_gz(const uint8_t *data, size_t size_bytes, uint8_t *out, size_t room_bytes)
{
    z_stream stream = {0};
    ck_assert_int_eq(deflateInit2(&stream, 1, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = (Bytef *)(uintptr_t)data;
    stream.avail_in = (uInt)size_bytes;
    stream.next_out = out;
    stream.avail_out = (uInt)room_bytes;
    ck_assert_int_eq(deflate(&stream, Z_FINISH), Z_STREAM_END);
    deflateEnd(&stream);
    return room_bytes - stream.avail_out;
}

static size_t pack_xz(const uint8_t *data, size_t size_bytes, uint8_t *out, size_t room_bytes)
{
    size_t have = 0;
    ck_assert_int_eq(lzma_easy_buffer_encode(0, LZMA_CHECK_CRC64, NULL, data, size_bytes, out,
                                             &have, room_bytes),
                     LZMA_OK);
    return have;
}

static size_t pack_zst(const uint8_t *data, size_t size_bytes, uint8_t *out, size_t room_bytes)
{
    size_t have = ZSTD_compress(out, room_bytes, data, size_bytes, 1);
    ck_assert(!ZSTD_isError(have));
    return have;
}

typedef size_t pack_fn(const uint8_t *data, size_t size_bytes, uint8_t *out, size_t room_bytes);
static pack_fn *const packers[] = {pack_gz, pack_xz, pack_zst};

static uf__input *open_bytes(const void *data, size_t size_bytes)
{
    uf__input *input = NULL;
    uf_error error = {0};
    ck_assert_msg(uf__input_open_memory(data, size_bytes, NULL, &input, &error) == UF_OK, "%s",
                  error.text);
    return input;
}

/* Reads it all in pieces of changing size and compares. */
static void expect_data(uf__input *input, const uint8_t *data, size_t size_bytes)
{
    uf_error error = {0};
    size_t at = 0;
    for (size_t want = 1; at < size_bytes; want = want * 7 % 65521 + 1) {
        ck_assert_msg(uf__input_ensure(input, want, &error) == UF_OK, "%s", error.text);
        size_t have = uf__input_at_hand(input);
        ck_assert_uint_eq(uf__input_offset(input), at);
        ck_assert(have >= want || have == size_bytes - at);
        size_t part = have < want ? have : want;
        ck_assert_mem_eq(input->cursor, data + at, part);
        input->cursor += part;
        at += part;
    }
    ck_assert_int_eq(uf__input_ensure(input, 1, &error), UF_OK);
    ck_assert_uint_eq(uf__input_at_hand(input), 0);
    ck_assert(input->is_at_end);
    ck_assert_uint_eq(input->decoded_bytes, size_bytes);
}

START_TEST(memory_is_read_window_by_window)
{
    uint8_t *data = make_data();
    uf__input *input = open_bytes(data, DATA_BYTES);
    expect_data(input, data, DATA_BYTES);
    ck_assert_uint_eq(input->stored_bytes, DATA_BYTES);
    uf__input_close(input);
    free(data);
    uf__input_close(NULL);
}
END_TEST

START_TEST(compressed_data_is_told_by_content_and_decompressed)
{
    uint8_t *data = make_data();
    size_t room = DATA_BYTES * 2;
    uint8_t *packed = malloc(room);
    for (size_t i = 0; i < 3; i++) {
        size_t size_bytes = packers[i](data, DATA_BYTES, packed, room);
        uf__input *input = open_bytes(packed, size_bytes);
        expect_data(input, data, DATA_BYTES);
        ck_assert_uint_eq(input->stored_bytes, size_bytes);
        uf__input_close(input);
    }
    free(packed);
    free(data);
}
END_TEST

START_TEST(several_members_one_after_the_other_are_one_input)
{
    uint8_t *data = make_data();
    size_t room = DATA_BYTES * 2, half = DATA_BYTES / 2;
    uint8_t *packed = malloc(room);
    for (size_t i = 0; i < 3; i++) {
        size_t size_bytes = packers[i](data, half, packed, room);
        size_bytes += packers[i](NULL, 0, packed + size_bytes, room - size_bytes);
        size_bytes +=
            packers[i](data + half, DATA_BYTES - half, packed + size_bytes, room - size_bytes);
        uf__input *input = open_bytes(packed, size_bytes);
        expect_data(input, data, DATA_BYTES);
        uf__input_close(input);
    }
    free(packed);
    free(data);
}
END_TEST

/* Reads to the end and returns the status of it. */
static uf_status drain(const uint8_t *data, size_t size_bytes, uf_error *error)
{
    uf__input *input = NULL;
    uf_status status = uf__input_open_memory(data, size_bytes, NULL, &input, error);
    while (status == UF_OK) {
        status = uf__input_ensure(input, 1, error);
        if (status == UF_OK && uf__input_at_hand(input) == 0)
            break;
        input->cursor = input->limit;
    }
    uf__input_close(input);
    return status;
}

START_TEST(compressed_data_cut_anywhere_is_said_to_end_early)
{
    uint8_t *data = make_data();
    uint8_t packed[4096];
    uf_error error;
    for (size_t i = 0; i < 3; i++) {
        size_t size_bytes = packers[i](data, 1000, packed, sizeof packed);
        for (size_t cut = 6; cut < size_bytes; cut++) {
            ck_assert_int_eq(drain(packed, cut, &error), UF_ERROR_BAD_INPUT);
            ck_assert_msg(strstr(error.text, "ends early") != NULL, "%zu: %s", cut, error.text);
        }
        ck_assert_int_eq(drain(packed, size_bytes, &error), UF_OK);
    }
    free(data);
}
END_TEST

START_TEST(damaged_or_trailing_data_is_refused_with_its_place)
{
    uint8_t *data = make_data();
    uint8_t packed[4096];
    uf_error error;
    for (size_t i = 0; i < 3; i++) {
        size_t size_bytes = packers[i](data, 1000, packed, sizeof packed);
        memcpy(packed + size_bytes, "garbage and more of it", 22);
        ck_assert_int_eq(drain(packed, size_bytes + 22, &error), UF_ERROR_BAD_INPUT);
        ck_assert_msg(strstr(error.text, "byte") != NULL, "%s", error.text);
    }
    size_t size_bytes = pack_gz(data, 1000, packed, sizeof packed);
    memset(packed + size_bytes, 0, 512);
    ck_assert_int_eq(drain(packed, size_bytes + 512, &error), UF_OK); /* tape padding */
    packed[size_bytes - 8] ^= 1;                                      /* its checksum */
    ck_assert_int_eq(drain(packed, size_bytes, &error), UF_ERROR_BAD_INPUT);
    free(data);
}
END_TEST

START_TEST(a_zst_window_beyond_the_limit_is_refused_by_name)
{
    /* A frame header alone: magic, descriptor without checksum and size, window of 2^31 bytes. */
    static const uint8_t header[] = {0x28, 0xb5, 0x2f, 0xfd, 0x00, 21 << 3, 0x01, 0x00, 0x00};
    uf_error error;
    ck_assert_int_eq(drain(header, sizeof header, &error), UF_ERROR_BAD_INPUT);
    ck_assert_msg(strstr(error.text, "window of more than 128 MiB") != NULL, "%s", error.text);
}
END_TEST

START_TEST(reading_and_skipping_past_the_end_are_refused)
{
    uf__input *input = open_bytes("0123456789", 10);
    uf_error error;
    char text[4];
    ck_assert_int_eq(uf__input_read(input, text, 4, &error), UF_OK);
    ck_assert_mem_eq(text, "0123", 4);
    ck_assert_int_eq(uf__input_skip(input, 3, &error), UF_OK);
    ck_assert_uint_eq(uf__input_offset(input), 7);
    ck_assert_int_eq(uf__input_read(input, text, 4, &error), UF_ERROR_BAD_INPUT);
    ck_assert_msg(strstr(error.text, "byte 10") != NULL, "%s", error.text);
    ck_assert_int_eq(uf__input_skip(input, 1, &error), UF_ERROR_BAD_INPUT);
    ck_assert_int_eq(uf__input_skip(input, 0, &error), UF_OK);
    ck_assert_int_eq(uf__input_ensure(input, UF__INPUT_ENSURE_BYTES, &error), UF_OK);
    uf__input_close(input);
}
END_TEST

START_TEST(what_cannot_be_opened_or_read_is_an_io_error)
{
    uf__input *input = NULL;
    uf_error error;
    ck_assert_int_eq(uf__input_open("/nonexistent/file", NULL, &input, &error), UF_ERROR_IO);
    ck_assert_msg(strstr(error.text, "/nonexistent/file") != NULL, "%s", error.text);
    ck_assert_msg(strstr(error.text, strerror(ENOENT)) != NULL, "%s", error.text);
    ck_assert_int_eq(uf__input_open("/", NULL, &input, &error), UF_ERROR_IO);
    ck_assert_msg(strstr(error.text, strerror(EISDIR)) != NULL, "%s", error.text);
    ck_assert_ptr_null(input);
}
END_TEST

typedef struct progress_log {
    int calls, stop_at;
    uint64_t last_done, total;
} progress_log;

static bool log_progress(void *context, uint64_t done_bytes, uint64_t total_bytes)
{
    progress_log *log = context;
    ck_assert(done_bytes >= log->last_done && done_bytes <= total_bytes);
    log->last_done = done_bytes;
    log->total = total_bytes;
    return ++log->calls != log->stop_at;
}

START_TEST(progress_is_told_and_can_stop_the_reading)
{
    uint8_t *data = make_data();
    progress_log log = {0};
    uf_trace_read_options options = {
        .struct_size_bytes = sizeof options, .progress = log_progress, .progress_context = &log};
    uf__input *input = NULL;
    uf_error error = {0};
    ck_assert_int_eq(uf__input_open_memory(data, DATA_BYTES, &options, &input, &error), UF_OK);
    expect_data(input, data, DATA_BYTES);
    uf__input_close(input);
    ck_assert_int_gt(log.calls, 5);
    ck_assert_uint_eq(log.last_done, DATA_BYTES);
    ck_assert_uint_eq(log.total, DATA_BYTES);
    log = (progress_log){.stop_at = 2};
    ck_assert_int_eq(uf__input_open_memory(data, DATA_BYTES, &options, &input, &error), UF_OK);
    input->cursor = input->limit;
    uf_status status = UF_OK;
    while (status == UF_OK) {
        status = uf__input_ensure(input, 1, &error);
        input->cursor = input->limit;
    }
    ck_assert_int_eq(status, UF_ERROR_INTERRUPTED);
    ck_assert_int_eq(log.calls, 2);
    uf__input_close(input);
    free(data);
}
END_TEST

START_TEST(standard_input_is_a_dash)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(write(ends[1], "abc", 3), 3);
    close(ends[1]);
    ck_assert_int_eq(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    close(ends[0]);
    uf__input *input = NULL;
    uf_error error = {0};
    ck_assert_int_eq(uf__input_open("-", NULL, &input, &error), UF_OK);
    expect_data(input, (const uint8_t *)"abc", 3);
    uf__input_close(input);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        memory_is_read_window_by_window,
        compressed_data_is_told_by_content_and_decompressed,
        several_members_one_after_the_other_are_one_input,
        compressed_data_cut_anywhere_is_said_to_end_early,
        damaged_or_trailing_data_is_refused_with_its_place,
        a_zst_window_beyond_the_limit_is_refused_by_name,
        reading_and_skipping_past_the_end_are_refused,
        what_cannot_be_opened_or_read_is_an_io_error,
        progress_is_told_and_can_stop_the_reading,
        standard_input_is_a_dash,
    };
    return run_case("input", tests, sizeof tests / sizeof tests[0]);
}
