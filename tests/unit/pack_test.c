/* SPDX-License-Identifier: MIT
 *
 * Numbers to bytes: what zlib unpacks and a plain decoder reads is what was put in. */
#include "report/pack.h"

#include <string.h>
#include <zlib.h>

#include "unit/suite.h"

static uint64_t read_number(const unsigned char *bytes, size_t *at)
{
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        unsigned char byte = bytes[(*at)++];
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            return value;
        }
    }
}

START_TEST(small_numbers_take_one_byte_and_the_largest_ten)
{
    uf_pack pack = {0};
    uf__pack_number(&pack, 127);
    ck_assert_uint_eq(pack.count, 1);
    uf__pack_number(&pack, 128);
    ck_assert_uint_eq(pack.count, 3);
    uf__pack_number(&pack, UINT64_MAX);
    ck_assert_uint_eq(pack.count, 13);
    const unsigned char expected[] = {0x7f, 0x80, 0x01, 0xff, 0xff, 0xff, 0xff,
                                      0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
    ck_assert_mem_eq(pack.bytes, expected, sizeof expected);
    uf__pack_fini(&pack);
}
END_TEST

START_TEST(signed_numbers_are_small_in_both_directions)
{
    const int64_t values[] = {0, -1, 1, -2, 2, INT64_MAX, INT64_MIN};
    const uint64_t expected[] = {0, 1, 2, 3, 4, UINT64_MAX - 1, UINT64_MAX};
    uf_pack pack = {0};
    size_t at = 0;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        uf__pack_signed(&pack, values[i]);
        ck_assert_uint_eq(read_number(pack.bytes, &at), expected[i]);
    }
    uf__pack_step(&pack, UINT64_MAX, 1); /* wraps: 2 more */
    ck_assert_uint_eq(read_number(pack.bytes, &at), 4);
    uf__pack_fini(&pack);
}
END_TEST

/* base64 letter by letter. */
static size_t decode(const char *text, unsigned char *bytes)
{
    const char *letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t count = 0;
    uint32_t bits = 0;
    unsigned held = 0;
    for (; *text != '\0' && *text != '='; text++) {
        const char *found = strchr(letters, *text);
        ck_assert_ptr_nonnull(found);
        bits = bits << 6 | (uint32_t)(found - letters);
        held += 6;
        if (held >= 8) {
            held -= 8;
            bytes[count++] = (unsigned char)(bits >> held);
        }
    }
    return count;
}

START_TEST(what_is_written_unpacks_to_the_same_bytes)
{
    uint64_t state = 11;
    for (size_t number_count = 0; number_count < 70000; number_count = number_count * 7 + 1) {
        uf_pack pack = {0};
        for (size_t i = 0; i < number_count; i++) {
            uf__pack_number(&pack, suite_random(&state) >> (i % 64));
        }
        char *text = NULL;
        size_t text_size = 0, written_bytes = 0;
        FILE *stream = open_memstream(&text, &text_size);
        ck_assert_ptr_nonnull(stream);
        ck_assert_int_eq(uf__pack_write(&pack, stream, &written_bytes), UF_OK);
        ck_assert_int_eq(fclose(stream), 0);
        ck_assert_uint_eq(written_bytes, text_size);
        unsigned char *packed = malloc(text_size + 1), *plain = malloc(pack.count + 1);
        size_t packed_bytes = decode(text, packed);
        z_stream unpacking = {.next_in = packed,
                              .avail_in = (uInt)packed_bytes,
                              .next_out = plain,
                              .avail_out = (uInt)pack.count + 1};
        ck_assert_int_eq(inflateInit2(&unpacking, 15 + 16), Z_OK);
        ck_assert_int_eq(inflate(&unpacking, Z_FINISH), Z_STREAM_END);
        ck_assert_uint_eq(unpacking.total_out, pack.count);
        ck_assert(pack.count == 0 || memcmp(plain, pack.bytes, pack.count) == 0);
        inflateEnd(&unpacking);
        free(packed);
        free(plain);
        free(text);
        uf__pack_fini(&pack);
    }
}
END_TEST

START_TEST(a_stream_that_is_full_is_an_error)
{
    FILE *full = fopen("/dev/full", "w");
    if (full == NULL) {
        return; /* no such device here */
    }
    setvbuf(full, NULL, _IONBF, 0);
    uf_pack pack = {0};
    size_t written_bytes;
    uf__pack_number(&pack, 1);
    ck_assert_int_eq(uf__pack_write(&pack, full, &written_bytes), UF_ERROR_IO);
    fclose(full);
    uf__pack_fini(&pack);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {small_numbers_take_one_byte_and_the_largest_ten,
                                  signed_numbers_are_small_in_both_directions,
                                  what_is_written_unpacks_to_the_same_bytes,
                                  a_stream_that_is_full_is_an_error, NULL};
    return suite_run("pack", tests);
}
