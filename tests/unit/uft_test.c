/* SPDX-License-Identifier: MIT
 *
 * .uft: what is written is read back equal; damage of any kind is refused with a place. */
#include <check.h>
#include <zlib.h>

#include "trace/uft.h"
#include "trace_sample.h"

typedef struct bytes {
    char *data;
    size_t size;
} bytes;

static bytes write_uft(const uf_trace *trace)
{
    bytes file = {NULL, 0};
    uf_error error = {.status = UF_OK};
    FILE *stream = open_memstream(&file.data, &file.size);
    ck_assert_ptr_nonnull(stream);
    ck_assert_msg(uf_trace_write_uft(trace, stream, &error) == UF_OK, "%s", error.text);
    ck_assert_int_eq(fclose(stream), 0);
    return file;
}

static uf_status read_uft(const void *data, size_t size, uf_trace **trace, uf_error *error)
{
    uf__input *input = NULL;
    uf_builder *builder = uf__builder_create();
    ck_assert_ptr_nonnull(builder);
    uf_status status = uf__input_open_memory(data, size, NULL, &input, error);
    if (status == UF_OK) {
        status = uf__uft_read(input, builder, error);
    }
    if (status == UF_OK) {
        ck_assert(uf__builder_finish(builder, trace));
    } else {
        uf__builder_destroy(builder);
    }
    uf__input_close(input);
    return status;
}

static uf_trace *read_well(bytes file)
{
    uf_trace *trace = NULL;
    uf_error error = {.status = UF_OK};
    ck_assert_msg(read_uft(file.data, file.size, &trace, &error) == UF_OK, "%s", error.text);
    return trace;
}

static void ck_round_trip(const uf_trace *trace)
{
    bytes file = write_uft(trace);
    uf_trace *again = read_well(file);
    const char *difference = trace_difference(trace, again);
    ck_assert_msg(difference[0] == '\0', "%s", difference);
    ck_assert_int_eq(again->form, UF_FORM_UFT);
    bytes second = write_uft(again);
    ck_assert_uint_eq(second.size, file.size);
    ck_assert_mem_eq(second.data, file.data, file.size);
    free(second.data);
    free(file.data);
    uf_trace_destroy(again);
}

START_TEST(every_field_comes_back)
{
    uf_trace *trace = sample_create();
    trace->total_bytes = UINT64_C(150109880320);
    trace->script_card_bytes = 1;
    trace->script_limit_bytes = UINT64_MAX;
    ck_round_trip(trace);
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(an_empty_trace_comes_back)
{
    uf_builder *builder = uf__builder_create();
    uf_trace *trace = NULL;
    ck_assert(uf__builder_finish(builder, &trace));
    ck_round_trip(trace);
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(many_sections_and_long_records_come_back)
{
    uf_builder *builder = uf__builder_create();
    sample_fill(builder);
    char *text = malloc(3000000);
    memset(text, 'x', 3000000);
    uint32_t id;
    ck_assert(uf__builder_string(builder, text, 3000000, &id));
    ck_assert(uf__builder_string(builder, text, 2999999, &id));
    free(text);
    uint32_t *frame_ids = malloc(1200000 * sizeof *frame_ids);
    for (uint32_t i = 0; i < 1200000; i++) {
        frame_ids[i] = i % 5;
    }
    ck_assert(uf__builder_stack(builder, frame_ids, 1200000, &id));
    free(frame_ids);
    uint64_t random = 1;
    for (uint32_t i = 0; i < 300000; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        sample_event(builder, (uf_action)(random >> 33) % UF_ACTION_COUNT, random << (i % 64),
                     random >> (i % 61), (int64_t)(random ^ random >> 7), i % 4);
    }
    for (uint32_t i = 0; i < 200000; i++) {
        uf_trace_block block;
        memset(&block, 0, sizeof block);
        block.addr = (uint64_t)i << 20;
        block.size_bytes = 1u << 20;
        block.stack = UF_NONE;
        ck_assert(uf__builder_block(builder, &block));
    }
    uf_trace *trace = NULL;
    ck_assert(uf__builder_finish(builder, &trace));
    ck_round_trip(trace);
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(the_documented_example_is_what_is_written)
{
    uf_builder *builder = uf__builder_create();
    uf_site site;
    memset(&site, 0, sizeof site);
    site.stack = site.compile_context = site.user_metadata = site.action_name = UF_NONE;
    uint32_t id;
    ck_assert(uf__builder_site(builder, &site, &id));
    ck_assert(uf__builder_device(builder, 0));
    sample_event(builder, UF_ACTION_ALLOC, UINT64_C(0x7f0000000000), 1000, 5, id);
    uf__builder_trace(builder)->has_device_traces = true;
    uf_trace *trace = NULL;
    ck_assert(uf__builder_finish(builder, &trace));
    bytes file = write_uft(trace);
    static const struct {
        const char *tag;
        const char *payload;
        size_t size;
    } SECTIONS[] = {
        {"META", "\1\0\0\0", 4},
        {"SITE", "\0\0", 2},
        {"SETT", "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 28},
        {"DEVI", "\0", 1},
        {"EVTS", "\x20\x80\x80\x80\x80\xf0\x0f\xe8\x07\x0a", 10},
        {"END.", "\1\1\0\0\0", 5},
    };
    const char *at = file.data + UF_UFT_HEADER_BYTES;
    ck_assert_mem_eq(file.data, UF_UFT_MAGIC "\1\0\0\0", 12);
    for (size_t i = 0; i < sizeof SECTIONS / sizeof SECTIONS[0]; i++) {
        ck_assert_mem_eq(at, SECTIONS[i].tag, 4);
        ck_assert_uint_eq((uint8_t)at[4], SECTIONS[i].size);
        ck_assert_mem_eq(at + UF_UFT_SECTION_BYTES, SECTIONS[i].payload, SECTIONS[i].size);
        at += UF_UFT_SECTION_BYTES + SECTIONS[i].size;
    }
    ck_assert_ptr_eq(at, file.data + file.size);
    free(file.data);
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(each_flipped_bit_is_noticed)
{
    uf_trace *trace = sample_create();
    bytes file = write_uft(trace);
    for (size_t bit = 0; bit < file.size * 8; bit++) {
        file.data[bit / 8] = (char)(file.data[bit / 8] ^ 1 << bit % 8);
        uf_trace *again = NULL;
        uf_error error = {.status = UF_OK};
        uf_status status = read_uft(file.data, file.size, &again, &error);
        ck_assert_msg(status == UF_ERROR_BAD_INPUT, "bit %zu: %s", bit, uf_status_name(status));
        ck_assert_ptr_null(again);
        ck_assert_int_ne(error.text[0], '\0');
        file.data[bit / 8] = (char)(file.data[bit / 8] ^ 1 << bit % 8);
    }
    free(file.data);
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(each_shorter_file_is_refused_as_cut_off)
{
    uf_trace *trace = sample_create();
    bytes file = write_uft(trace);
    for (size_t size = 1; size < file.size; size++) {
        uf_trace *again = NULL;
        uf_error error = {.status = UF_OK};
        ck_assert_int_eq(read_uft(file.data, size, &again, &error), UF_ERROR_BAD_INPUT);
        ck_assert_msg(strstr(error.text, "cut off") != NULL, "%zu: %s", size, error.text);
    }
    free(file.data);
    uf_trace_destroy(trace);
}
END_TEST

static void expect_error(const void *data, size_t size, uf_status status, const char *part)
{
    uf_trace *trace = NULL;
    uf_error error = {.status = UF_OK};
    ck_assert_int_eq(read_uft(data, size, &trace, &error), status);
    ck_assert_int_eq(error.status, status);
    ck_assert_msg(strstr(error.text, part) != NULL, "'%s' lacks '%s'", error.text, part);
}

static void put_u32(char *at, unsigned long value)
{
    for (int i = 0; i < 4; i++) {
        at[i] = (char)(value >> (8 * i));
    }
}

static void sign_header(char *file)
{
    put_u32(file + 12, crc32_z(0, (const unsigned char *)file, 12));
}

/* Appends a section with a right checksum to file at offset; returns the offset behind it. */
static size_t put_section(char *file, size_t offset, const char *tag, const void *payload,
                          size_t size)
{
    memcpy(file + offset, tag, 4);
    put_u32(file + offset + 4, size);
    memcpy(file + offset + UF_UFT_SECTION_BYTES, payload, size);
    uLong crc = crc32_z(0, (const unsigned char *)file + offset, 8);
    crc = crc32_z(crc, (const unsigned char *)file + offset + UF_UFT_SECTION_BYTES, size);
    put_u32(file + offset + 8, crc);
    return offset + UF_UFT_SECTION_BYTES + size;
}

static size_t put_header(char *file)
{
    memcpy(file, UF_UFT_MAGIC "\1\0\0\0", 12);
    sign_header(file);
    return UF_UFT_HEADER_BYTES;
}

START_TEST(a_newer_major_version_is_refused_by_name)
{
    uf_trace *trace = sample_create();
    bytes file = write_uft(trace);
    file.data[8] = 2;
    file.data[10] = 7;
    sign_header(file.data);
    expect_error(file.data, file.size, UF_ERROR_UNSUPPORTED, "version 2.7");
    free(file.data);
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(a_newer_minor_version_and_unknown_sections_are_read)
{
    uf_trace *trace = sample_create();
    bytes file = write_uft(trace);
    char *longer = malloc(file.size + 600000);
    char *unknown = calloc(1, 500000);
    memcpy(longer, file.data, UF_UFT_HEADER_BYTES);
    longer[10] = 9;
    sign_header(longer);
    size_t offset = put_section(longer, UF_UFT_HEADER_BYTES, "NEWS", unknown, 500000);
    memcpy(longer + offset, file.data + UF_UFT_HEADER_BYTES, file.size - UF_UFT_HEADER_BYTES);
    bytes newer = {longer, offset + file.size - UF_UFT_HEADER_BYTES};
    uf_trace *again = read_well(newer);
    ck_assert_str_eq(trace_difference(trace, again), "");
    uf_trace_destroy(again);
    longer[offset - 1] = 1;
    expect_error(newer.data, newer.size, UF_ERROR_BAD_INPUT, "'NEWS' at byte 16");
    free(unknown);
    free(longer);
    free(file.data);
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(bytes_after_the_end_are_refused)
{
    uf_trace *trace = sample_create();
    bytes file = write_uft(trace);
    char *twice = malloc(file.size * 2);
    memcpy(twice, file.data, file.size);
    memcpy(twice + file.size, file.data, file.size);
    expect_error(twice, file.size * 2, UF_ERROR_BAD_INPUT, "follows the end");
    expect_error(twice, file.size + 1, UF_ERROR_BAD_INPUT, "follows the end");
    free(twice);
    free(file.data);
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(a_length_without_bytes_asks_for_no_memory)
{
    char file[64];
    size_t size = put_header(file);
    memcpy(file + size, "EVTS\xff\xff\xff\x7f\0\0\0\0", 12);
    expect_error(file, size + 12, UF_ERROR_BAD_INPUT, "cut off");
    memcpy(file + size, "EVTS\xff\xff\xff\xff\0\0\0\0", 12);
    expect_error(file, size + 12, UF_ERROR_BAD_INPUT, "claims 4294967295 bytes");
    size_t end = put_section(file, size, "STRS", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01x", 11);
    expect_error(file, end, UF_ERROR_BAD_INPUT, "section STRS");
    end = put_section(file, size, "STAK", "\xff\xff\xff\xff\x0f", 5);
    expect_error(file, end, UF_ERROR_BAD_INPUT, "record at byte 28");
}
END_TEST

START_TEST(contradictions_under_a_right_checksum_are_refused)
{
    static const struct {
        const char *tag;
        const char *payload;
        size_t size;
    } CASES[] = {
        {"EVTS", "\x70", 1},                                     /* no device */
        {"SEGS", "\x21\x01", 2},                                 /* a block without segment */
        {"FRAM", "\x05\x00\x00", 3},                             /* no string 4 */
        {"STAK", "\x01\x00", 2},                                 /* no frame 0 */
        {"SITE", "\x02\x00\x00", 3},                             /* no stack 0 */
        {"SITE", "\x00", 1},                                     /* cut */
        {"SETT", "\x00", 1},                                     /* cut */
        {"META", "\x00\x00\x00", 3},                             /* cut */
        {"DEVI", "\xff\xff\xff\xff\x7f", 5},                     /* 33 bits */
        {"ANNO", "\x00\x00\x07\x00", 4},                         /* no string 6 */
        {"META", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x03", 10} /* 65 bits */
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        char file[128];
        size_t size = put_header(file);
        size = put_section(file, size, CASES[i].tag, CASES[i].payload, CASES[i].size);
        size = put_section(file, size, "END.", "\0\0\0\0\0", 5);
        expect_error(file, size, UF_ERROR_BAD_INPUT, CASES[i].tag);
    }
}
END_TEST

START_TEST(an_event_of_unknown_action_or_site_is_refused)
{
    char file[128];
    size_t size = put_header(file);
    size = put_section(file, size, "DEVI", "\0", 1);
    size_t end = put_section(file, size, "EVTS", "\x70", 1);
    expect_error(file, end, UF_ERROR_BAD_INPUT, "action or site");
    size = put_section(file, size, "SITE", "\0\0", 2);
    end = put_section(file, size, "EVTS", "\x70\x7a", 2);
    expect_error(file, end, UF_ERROR_BAD_INPUT, "action or site");
    end = put_section(file, size, "EVTS", "\x70\x79", 2);
    end = put_section(file, end, "END.", "\2\1\0\0\0", 5);
    uf_trace *trace = read_well((bytes){file, end});
    ck_assert_uint_eq(trace->event_count, 2);
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(missing_sections_are_noticed_at_the_end)
{
    char file[128];
    size_t size = put_header(file);
    size = put_section(file, size, "END.", "\3\0\0\0\0", 5);
    expect_error(file, size, UF_ERROR_BAD_INPUT, "it should hold 3 events");
}
END_TEST

START_TEST(repeated_ids_are_interned)
{
    char file[128];
    size_t size = put_header(file);
    size = put_section(file, size, "STRS", "\1a\1a\1b", 6);
    size = put_section(file, size, "FRAM", "\2\3\0\3\2\0\4\4\0", 9);
    size = put_section(file, size, "END.", "\0\0\0\0\0", 5);
    uf_trace *trace = read_well((bytes){file, size});
    ck_assert_uint_eq(trace->string_count, 3);
    ck_assert_uint_eq(trace->frame_count, 2);
    ck_assert_str_eq(uf_trace_string(trace, trace->frames[0].name), "a");
    ck_assert_str_eq(uf_trace_string(trace, trace->frames[1].name), "b");
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(a_full_disk_is_an_io_error)
{
    uf_trace *trace = sample_create();
    FILE *stream = fopen("/dev/full", "wb");
    ck_assert_ptr_nonnull(stream);
    uf_error error = {.status = UF_OK};
    ck_assert_int_eq(uf_trace_write_uft(trace, stream, &error), UF_ERROR_IO);
    ck_assert_msg(strstr(error.text, "No space") != NULL, "%s", error.text);
    fclose(stream);
    uf_trace_destroy(trace);
}
END_TEST

START_TEST(translated_line_ends_are_named)
{
    expect_error("\x89UFT\n\x1a\n\1\0\0\0\0\0\0\0\0", 17, UF_ERROR_BAD_INPUT, "line ends");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("uft");
    TCase *tests = tcase_create("uft");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, every_field_comes_back);
    tcase_add_test(tests, an_empty_trace_comes_back);
    tcase_add_test(tests, many_sections_and_long_records_come_back);
    tcase_add_test(tests, the_documented_example_is_what_is_written);
    tcase_add_test(tests, each_flipped_bit_is_noticed);
    tcase_add_test(tests, each_shorter_file_is_refused_as_cut_off);
    tcase_add_test(tests, a_newer_major_version_is_refused_by_name);
    tcase_add_test(tests, a_newer_minor_version_and_unknown_sections_are_read);
    tcase_add_test(tests, bytes_after_the_end_are_refused);
    tcase_add_test(tests, a_length_without_bytes_asks_for_no_memory);
    tcase_add_test(tests, contradictions_under_a_right_checksum_are_refused);
    tcase_add_test(tests, an_event_of_unknown_action_or_site_is_refused);
    tcase_add_test(tests, missing_sections_are_noticed_at_the_end);
    tcase_add_test(tests, repeated_ids_are_interned);
    tcase_add_test(tests, a_full_disk_is_an_io_error);
    tcase_add_test(tests, translated_line_ends_are_named);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed_count = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed_count == 0 ? 0 : 1;
}
