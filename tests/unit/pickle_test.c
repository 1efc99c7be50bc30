/* SPDX-License-Identifier: MIT
 *
 * The pickle machine: every opcode's value or refusal, and what a hostile pickle cannot do. */
#include "trace/pickle.h"

#include <inttypes.h>

#include "pickle_bytes.h"

static uf__store store;

static uf_status run(const char *data, size_t size_bytes, uf__value *value, uf_error *error)
{
    uf__input *input = NULL;
    uf__store_fini(&store);
    uf__store_init(&store);
    ck_assert_int_eq(uf__input_open_memory(data, size_bytes, NULL, &input, error), UF_OK);
    uf_status status = uf__pickle_read(input, &store, NULL, value, error);
    uf__input_close(input);
    return status;
}

static uf__value load(const char *data, size_t size_bytes)
{
    uf__value value = UF__VALUE_NOTHING;
    uf_error error = {0};
    uf_status status = run(data, size_bytes, &value, &error);
    ck_assert_msg(status == UF_OK, "%s", error.text);
    return value;
}

static void refuse(const char *data, size_t size_bytes, const char *part)
{
    uf__value value;
    uf_error error = {0};
    ck_assert_int_eq(run(data, size_bytes, &value, &error), UF_ERROR_BAD_INPUT);
    ck_assert_msg(strstr(error.text, part) != NULL, "'%s' lacks '%s'", error.text, part);
}

static void expect_i64(const char *data, size_t size_bytes, int64_t expected)
{
    int64_t number;
    ck_assert(uf__store_as_i64(&store, load(data, size_bytes), &number));
    ck_assert_int_eq(number, expected);
}

static void expect_text(const char *data, size_t size_bytes, const char *expected, size_t length)
{
    uf__value value = load(data, size_bytes);
    ck_assert_int_eq(uf__value_tag(value), UF__TAG_STRING);
    uint32_t id = (uint32_t)uf__value_payload(value);
    ck_assert_uint_eq(uf__strings_length(&store.strings, id), length);
    ck_assert_mem_eq(uf__strings_text(&store.strings, id), expected, length);
}

START_TEST(integers_of_every_opcode_keep_their_value)
{
    expect_i64(BYTES("K\xff."), 255);
    expect_i64(BYTES("M\xff\xff."), 65535);
    expect_i64(BYTES("J\xff\xff\xff\xff."), -1);
    expect_i64(BYTES("J\x00\x00\x00\x80."), INT32_MIN);
    expect_i64(BYTES("\x8a\x00."), 0);
    expect_i64(BYTES("\x8a\x01\x80."), -128);
    expect_i64(BYTES("\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f."), INT64_MAX);
    expect_i64(BYTES("\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80."), INT64_MIN);
    expect_i64(BYTES("\x8a\x09\x05\x00\x00\x00\x00\x00\x00\x00\x00."), 5);
    expect_i64(BYTES("\x8b\x02\x00\x00\x00\x34\x12."), 0x1234);
    expect_i64(BYTES("I-17\n."), -17);
    expect_i64(BYTES("L9223372036854775807L\n."), INT64_MAX);
    expect_i64(BYTES("L-9223372036854775808L\n."), INT64_MIN);
    uint64_t number;
    ck_assert(uf__store_as_u64(&store, load(BYTES("\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00.")),
                               &number));
    ck_assert_uint_eq(number, UINT64_MAX);
    ck_assert(uf__store_as_u64(&store, load(BYTES("L18446744073709551615\n.")), &number));
    ck_assert_uint_eq(number, UINT64_MAX);
}
END_TEST

START_TEST(integers_beyond_64_bits_are_kept_apart)
{
    uint64_t number;
    uf__value value = load(BYTES("\x8a\x10\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\x80."));
    ck_assert_int_eq(uf__value_tag(value), UF__TAG_WIDE);
    ck_assert_int_eq(store.wides[uf__value_payload(value)].high, INT64_MIN + 1);
    ck_assert(!uf__store_as_u64(&store, value, &number));
    ck_assert_uint_eq(load(BYTES("\x8a\x11xxxxxxxxxxxxxxxxx.")), UF__VALUE_HUGE);
    ck_assert_uint_eq(load(BYTES("L170141183460469231731687303715884105728L\n.")), UF__VALUE_HUGE);
    value = load(BYTES("L-170141183460469231731687303715884105727\n."));
    ck_assert_int_eq(uf__value_tag(value), UF__TAG_WIDE);
    ck_assert_int_eq(store.wides[uf__value_payload(value)].high, INT64_MIN);
    ck_assert_uint_eq(store.wides[uf__value_payload(value)].low, 1);
}
END_TEST

START_TEST(constants_floats_and_bytes_are_read)
{
    double number;
    ck_assert_uint_eq(load(BYTES("N.")), UF__VALUE_NONE);
    ck_assert_uint_eq(load(BYTES("\x88.")), UF__VALUE_TRUE);
    ck_assert_uint_eq(load(BYTES("\x89.")), UF__VALUE_FALSE);
    ck_assert_uint_eq(load(BYTES("I01\n.")), UF__VALUE_TRUE);
    ck_assert_uint_eq(load(BYTES("I00\n.")), UF__VALUE_FALSE);
    ck_assert(uf__store_as_double(&store, load(BYTES("G\x3f\xe8\0\0\0\0\0\0.")), &number));
    ck_assert_double_eq(number, 0.75);
    ck_assert(uf__store_as_double(&store, load(BYTES("F-1.5e3\n.")), &number));
    ck_assert_double_eq(number, -1500.0);
    ck_assert_uint_eq(load(BYTES("C\3abc.")), UF__VALUE_OPAQUE);
    ck_assert_uint_eq(load(BYTES("B\3\0\0\0abc.")), UF__VALUE_OPAQUE);
    ck_assert_uint_eq(load(BYTES("\x8e\1\0\0\0\0\0\0\0x.")), UF__VALUE_OPAQUE);
    ck_assert_uint_eq(load(BYTES("\x96\1\0\0\0\0\0\0\0x.")), UF__VALUE_OPAQUE);
    ck_assert_uint_eq(load(BYTES("\x8f(K\1K\2\x90.")), UF__VALUE_OPAQUE);
    ck_assert_uint_eq(load(BYTES("(K\1K\2\x91.")), UF__VALUE_OPAQUE);
}
END_TEST

START_TEST(strings_of_every_opcode_keep_their_bytes)
{
    expect_text(BYTES("\x8c\3a\0b."), "a\0b", 3);
    expect_text(BYTES("\x8c\x00."), "", 0);
    expect_text(BYTES("X\2\0\0\0\xc3\xa4."), "\xc3\xa4", 2);
    expect_text(BYTES("\x8d\1\0\0\0\0\0\0\0x."), "x", 1);
    expect_text(BYTES("U\2hi."), "hi", 2);
    expect_text(BYTES("T\2\0\0\0hi."), "hi", 2);
    expect_text(BYTES("S'it\\'s \\x41\\n'\n."), "it's A\n", 7);
    expect_text(BYTES("S\"two\"\n."), "two", 3);
    expect_text(BYTES("V\\u20ac\\U0001f600\xe4\\\\u0041\n."),
                "\xe2\x82\xac\xf0\x9f\x98\x80\xc3\xa4\\\\u0041", 16);
    refuse(BYTES("S'open\n."), "quoted");
    refuse(BYTES("V\\uzzzz\n."), "quoted or escaped");
    refuse(BYTES("V\\Uffffffff\n."), "quoted or escaped");
}
END_TEST

START_TEST(long_strings_come_through_whole)
{
    size_t length = 700000;
    char *data = malloc(length + 16);
    memcpy(data, "X", 1);
    for (int i = 0; i < 4; i++)
        data[1 + i] = (char)(length >> (8 * i));
    for (size_t i = 0; i < length; i++)
        data[5 + i] = (char)('a' + i % 23);
    data[5 + length] = '.';
    expect_text(data, length + 6, data + 5, length);
    refuse(data, length, "bytes more than the data holds");
    free(data);
}
END_TEST

/* Counts the values of a list and returns their sum. */
static int64_t list_sum(uf__value list, uint64_t *count)
{
    uf__list_walk walk;
    uf__value item;
    int64_t number, sum = 0;
    bool is_good = true; /* one assertion for all: each costs a message to check's other process */
    *count = 0;
    ck_assert(uf__list_walk_begin(&walk, &store, list));
    while (uf__list_walk_next(&walk, &store, &item)) {
        is_good = uf__store_as_i64(&store, item, &number) && is_good;
        sum += number;
        ++*count;
    }
    ck_assert(is_good);
    return sum;
}

START_TEST(lists_and_tuples_of_every_opcode_keep_their_items)
{
    static const struct {
        const char *data;
        size_t size_bytes;
        uint64_t count;
        int64_t sum;
    } cases[] = {
        {BYTES("]."), 0, 0},
        {BYTES(")."), 0, 0},
        {BYTES("(t."), 0, 0},
        {BYTES("(l."), 0, 0},
        {BYTES("(K\1K\2K\3l."), 3, 6},
        {BYTES("(K\1K\2K\3t."), 3, 6},
        {BYTES("](K\1K\2e(K\3e."), 3, 6},
        {BYTES("]K\1aK\2a."), 2, 3},
        {BYTES("K\5\x85."), 1, 5},
        {BYTES("K\5K\6\x86."), 2, 11},
        {BYTES("J\xff\xff\xff\xffK\6\x86."), 2, 5},
        {BYTES("K\5K\6K\7\x87."), 3, 18},
        {BYTES("](e."), 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t count;
        int64_t sum = list_sum(load(cases[i].data, cases[i].size_bytes), &count);
        ck_assert_uint_eq(count, cases[i].count);
        ck_assert_int_eq(sum, cases[i].sum);
    }
}
END_TEST

START_TEST(memo_opcodes_of_all_protocols_work_together)
{
    uint64_t count;
    expect_i64(BYTES("K\7q\0050h\5."), 7);
    expect_i64(BYTES("K\7p123\n0g123\n."), 7);
    expect_i64(BYTES("K\7\x94K\10\x94"
                     "00h\1."),
               8);
    expect_i64(BYTES("K\7r\xfe\xff\xff\xff"
                     "0j\xfe\xff\xff\xff."),
               7);
    expect_i64(BYTES("K\7q\1K\10q\1\x86"
                     "0h\1."),
               8);
    ck_assert_int_eq(list_sum(load(BYTES("](K\1\x94h\0h\0e.")), &count), 3);
    refuse(BYTES("h\3."), "memo entry 3 was never stored");
    refuse(BYTES("K\1p-1\n."), "no index");
    refuse(BYTES("K\1r\xff\xff\xff\xff."), "LONG_BINPUT");
    refuse(BYTES("\x94."), "MEMOIZE: needs 1 values");
}
END_TEST

START_TEST(a_huge_memo_number_costs_no_memory)
{
    load(BYTES("K\7r\xfe\xff\xff\x7f."));
    ck_assert_uint_lt(store.memo_capacity, 4096);
    ck_assert_uint_eq(store.sparse_count, 1);
}
END_TEST

START_TEST(what_would_build_an_object_is_refused_by_name_and_place)
{
    static const struct {
        const char *data;
        size_t size_bytes;
        const char *part;
    } cases[] = {
        {BYTES("\x80\2cos\nsystem\n."), "at byte 2, GLOBAL"},
        {BYTES("\x80\4\x8c\2os\x8c\6system\x93."), "at byte 14, STACK_GLOBAL"},
        {BYTES("NNR."), "at byte 2, REDUCE"},
        {BYTES("NNb."), "at byte 2, BUILD"},
        {BYTES("(ios\nsystem\n."), "at byte 1, INST"},
        {BYTES("(No."), "at byte 2, OBJ"},
        {BYTES("NN\x81."), "at byte 2, NEWOBJ"},
        {BYTES("NNN\x92."), "at byte 3, NEWOBJ_EX"},
        {BYTES("\x82\1."), "at byte 0, EXT1"},
        {BYTES("\x83\1\0."), "at byte 0, EXT2"},
        {BYTES("\x84\1\0\0\0."), "at byte 0, EXT4"},
        {BYTES("P1\n."), "at byte 0, PERSID"},
        {BYTES("NQ."), "at byte 1, BINPERSID"},
        {BYTES("\x97."), "at byte 0, NEXT_BUFFER"},
        {BYTES("N\x98."), "at byte 1, READONLY_BUFFER"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        refuse(cases[i].data, cases[i].size_bytes, cases[i].part);
        refuse(cases[i].data, cases[i].size_bytes, "would build an object");
    }
}
END_TEST

START_TEST(malformed_pickles_are_refused_with_their_place)
{
    refuse(BYTES(""), "ends early");
    refuse(BYTES("K"), "ends early");
    refuse(BYTES("\x80\x06N."), "protocol 6");
    refuse(BYTES("\xff."), "byte 0xff is no opcode");
    refuse(BYTES("."), "0 values and 0 marks");
    refuse(BYTES("NN."), "2 values");
    refuse(BYTES("(N."), "1 marks");
    refuse(BYTES("N.N"), "more data follows");
    refuse(BYTES("N0."), "0 values");
    refuse(BYTES("0."), "POP: needs 1");
    refuse(BYTES("1."), "no MARK");
    refuse(BYTES("2."), "DUP: needs 1");
    refuse(BYTES("e."), "no MARK");
    refuse(BYTES("(e."), "APPENDS: needs 1 values");
    refuse(BYTES("]((e."), "APPENDS: needs 1 values");
    refuse(BYTES("](NNNu."), "key without a value");
    refuse(BYTES("](NNu."), "sets items of a list");
    refuse(BYTES("}Na."), "adds to a dictionary");
    refuse(BYTES("N(N\x90."), "adds to None");
    refuse(BYTES("]NNs."), "sets items of a list");
    refuse(BYTES("(NNNd."), "key without a value");
    refuse(BYTES("\x8b\xff\xff\xff\xff."), "negative length");
    refuse(BYTES("I12x\n."), "not a number");
    refuse(BYTES("I\n."), "a number of 0 characters");
    refuse(BYTES("L-\n."), "not a number");
    refuse(BYTES("F1,5\n."), "not a number");
    refuse(BYTES("I1"), "ends early");
}
END_TEST

START_TEST(a_made_up_length_is_refused_without_allocating)
{
    refuse(BYTES("X\xff\xff\xff\x0f."), "announces");
    refuse(BYTES("X\xff\xff\xff\xff."), "a string of 4294967295 bytes");
    refuse(BYTES("\x8d\xff\xff\xff\xff\xff\xff\xff\xff."), "a string of");
    refuse(BYTES("B\xff\xff\xff\xff."), "announces");
    refuse(BYTES("\x8e\xff\xff\xff\xff\xff\xff\xff\x7f."), "announces");
    refuse(BYTES("\x8b\xff\xff\xff\x7f."), "announces");
    load(BYTES("\x95\xff\xff\xff\xff\xff\xff\xff\xffN.")); /* a frame only helps to fetch */
}
END_TEST

START_TEST(a_container_cannot_change_after_its_use)
{
    refuse(BYTES("]q\0h\0a."), "already in use");     /* a list in itself */
    refuse(BYTES("}q\0Nh\0s."), "already in use");    /* a dictionary in itself */
    refuse(BYTES("]]q\0ah\0Na."), "already in use");  /* put away and then filled */
    refuse(BYTES("](K\1K\2K\3\x87K\1ae."), "APPEND"); /* a tuple */
    refuse(BYTES("])K\1aa."), "already in use");      /* the empty tuple */
    uint64_t count;
    ck_assert_int_eq(list_sum(load(BYTES("]q\0h\0K\1a0h\0K\2a0.")), &count), 3);
}
END_TEST

START_TEST(deep_nesting_needs_no_recursion)
{
    size_t depth = 300000;
    char *data = malloc(2 * depth + 2);
    memset(data, ']', depth);
    memset(data + depth, 'a', depth - 1);
    data[2 * depth - 1] = '.';
    uf__value value = load(data, 2 * depth);
    ck_assert_int_eq(uf__value_tag(value), UF__TAG_LIST);
    memset(data, '(', depth);
    memset(data + depth, 't', depth);
    data[2 * depth] = '.';
    load(data, 2 * depth + 1);
    free(data);
}
END_TEST

START_TEST(exponential_sharing_is_never_expanded)
{
    /* 100 levels, each list holding the one before twice: 2^100 leaves in 500 bytes. */
    char data[1024];
    size_t n = 0;
    data[n++] = ']';
    for (int i = 0; i < 100; i++) {
        memcpy(data + n, "q\0000](h\0h\0e", 10);
        n += 10;
    }
    data[n++] = '.';
    uf__value value = load(data, n);
    ck_assert_int_eq(uf__value_tag(value), UF__TAG_LIST);
    ck_assert_uint_le(store.held_count, 200);
}
END_TEST

START_TEST(every_prefix_of_a_pickle_is_refused)
{
    static const char data[] =
        "\x80\4\x95\x30\0\0\0\0\0\0\0}\x94(\x8c\1a\x94K\1\x8c\2bb\x94M\1\2"
        "\x8c\3ccc\x94J\1\2\3\4\x8c\1d\x94\x8a\5\1\2\3\4\5\x8c\1e\x94G\0\0\0\0"
        "\0\0\0\0\x8c\1f\x94]\x94(K\1K\2e\x8c\1g\x94)u.";
    load(data, sizeof data - 1);
    for (size_t size_bytes = 0; size_bytes < sizeof data - 1; size_bytes++) {
        uf__value value;
        uf_error error;
        ck_assert_int_eq(run(data, size_bytes, &value, &error), UF_ERROR_BAD_INPUT);
        ck_assert_msg(strstr(error.text, "early") != NULL, "%zu: %s", size_bytes, error.text);
    }
}
END_TEST

START_TEST(opcodes_across_the_window_keep_their_values)
{
    /* More than two windows of small integers, at every alignment of the window's end. */
    size_t count = 400000;
    char *data = malloc(2 * count + 16);
    for (size_t shift = 0; shift < 3; shift++) {
        size_t n = 0;
        memset(data, 'N', shift);
        memset(data + shift, '0', shift);
        n = 2 * shift;
        memcpy(data + n, "](", 2);
        n += 2;
        for (size_t i = 0; i < count; i++) {
            data[n++] = 'K';
            data[n++] = (char)(i % 100);
        }
        memcpy(data + n, "e.", 2);
        uint64_t found;
        int64_t sum = list_sum(load(data, n + 2), &found);
        ck_assert_uint_eq(found, count);
        ck_assert_int_eq(sum, (int64_t)count / 100 * 4950);
    }
    free(data);
}
END_TEST

START_TEST(every_opcode_of_protocol_5_has_a_name)
{
    int named = 0;
    for (int byte = 0; byte < 256; byte++)
        named += uf__pickle_opcode_name((uint8_t)byte) != NULL;
    ck_assert_int_eq(named, 68);
    ck_assert_str_eq(uf__pickle_opcode_name(0x93), "STACK_GLOBAL");
    ck_assert_ptr_null(uf__pickle_opcode_name(0));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        integers_of_every_opcode_keep_their_value,
        integers_beyond_64_bits_are_kept_apart,
        constants_floats_and_bytes_are_read,
        strings_of_every_opcode_keep_their_bytes,
        long_strings_come_through_whole,
        lists_and_tuples_of_every_opcode_keep_their_items,
        memo_opcodes_of_all_protocols_work_together,
        a_huge_memo_number_costs_no_memory,
        what_would_build_an_object_is_refused_by_name_and_place,
        malformed_pickles_are_refused_with_their_place,
        a_made_up_length_is_refused_without_allocating,
        a_container_cannot_change_after_its_use,
        deep_nesting_needs_no_recursion,
        exponential_sharing_is_never_expanded,
        every_prefix_of_a_pickle_is_refused,
        opcodes_across_the_window_keep_their_values,
        every_opcode_of_protocol_5_has_a_name,
    };
    uf__store_init(&store);
    return run_case("pickle", tests, sizeof tests / sizeof tests[0]);
}
