/* SPDX-License-Identifier: MIT
 *
 * The memory summary, character by character. The expected texts were written by hand from the
 * layout's description; none of them came out of this program. */
#include <unfrag/stats.h>

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define EQUALS "|===========================================================================|\n"
#define DASHES "|---------------------------------------------------------------------------|\n"
#define HEADS "|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |\n"

static char buffer[UF_SUMMARY_CAPACITY];

static void expect_summary(const uf_stats *stats, int32_t device, bool is_abbreviated,
                           const char *expected)
{
    size_t length = 0;
    ck_assert_int_eq(
        uf_summary_write(stats, device, is_abbreviated, buffer, sizeof buffer, &length, NULL),
        UF_OK);
    /* Line by line: check cannot show a message as long as the whole. */
    ck_assert_uint_eq(length, strlen(buffer));
    const char *have = buffer, *want = expected;
    for (int line = 1; *have != '\0' || *want != '\0'; line++) {
        size_t have_length = strcspn(have, "\n"), want_length = strcspn(want, "\n");
        ck_assert_msg(have_length == want_length && memcmp(have, want, have_length) == 0,
                      "line %d is\n%.*s and not\n%.*s", line, (int)have_length, have,
                      (int)want_length, want);
        have += have_length + (have[have_length] == '\n');
        want += want_length + (want[want_length] == '\n');
    }
    ck_assert_uint_eq(length, strlen(expected));
}

/* True if the summary has that line, which comes without its newline. */
static void expect_line(const uf_stats *stats, const char *line)
{
    ck_assert_int_eq(uf_summary_write(stats, 0, false, buffer, sizeof buffer, NULL, NULL), UF_OK);
    ck_assert_msg(strstr(buffer, line) != NULL, "no line '%.300s'", line);
}

#define ZERO_BYTES "     0 B   |      0 B   |      0 B   |      0 B   |\n"
#define ZERO_COUNT "      0    |       0    |       0    |       0    |\n"

START_TEST(without_any_memory_every_row_is_zero)
{
    uf_stats stats = {0};
    expect_summary(
        &stats, 0, true,
        EQUALS
        "|                  PyTorch CUDA memory summary, device ID 0                 |\n" DASHES
        "|            CUDA OOMs: 0            |        cudaMalloc retries: 0         |\n" EQUALS
            HEADS DASHES "| Allocated memory      | " ZERO_BYTES DASHES
        "| Active memory         | " ZERO_BYTES DASHES
        "| Requested memory      | " ZERO_BYTES DASHES
        "| GPU reserved memory   | " ZERO_BYTES DASHES
        "| Non-releasable memory | " ZERO_BYTES DASHES
        "| Allocations           | " ZERO_COUNT DASHES
        "| Active allocs         | " ZERO_COUNT DASHES
        "| GPU reserved segments | " ZERO_COUNT DASHES
        "| Non-releasable allocs | " ZERO_COUNT DASHES
        "| Oversize allocations  | " ZERO_COUNT DASHES
        "| Oversize GPU segments | " ZERO_COUNT EQUALS);
}
END_TEST

/* A program with weights, one retry and one failure, on the second card. */
static uf_stats busy_stats(void)
{
    uf_stats stats = {0};
    stats.num_ooms = 1;
    stats.num_alloc_retries = 12;
    stats.max_split_size = -1;
    stats.allocated_bytes.all = (uf_stat){436207616, 551217664, 5167639552, 4731431936};
    stats.allocated_bytes.large_pool = (uf_stat){436207616, 548070912, 4909536768, 4473329152};
    stats.allocated_bytes.small_pool = (uf_stat){0, 8913920, 258102784, 258102784};
    stats.active_bytes = stats.allocated_bytes;
    stats.requested_bytes.all = (uf_stat){436207000, 551216656, 5167600000, 4731393000};
    stats.requested_bytes.large_pool = (uf_stat){436207000, 548070912, 4909498864, 4473291864};
    stats.requested_bytes.small_pool = (uf_stat){0, 8912912, 258101136, 258101136};
    stats.reserved_bytes.all = (uf_stat){484442112, 666894336, 1317011456, 832569344};
    stats.reserved_bytes.large_pool = (uf_stat){478150656, 645922816, 1260388352, 782237696};
    stats.reserved_bytes.small_pool = (uf_stat){6291456, 23068672, 56623104, 50331648};
    stats.inactive_split_bytes.all = (uf_stat){786431, 786432, 805306367, 805306368};
    stats.inactive_split_bytes.large_pool = (uf_stat){0, 786432, 805306367, 805306368};
    stats.inactive_split_bytes.small_pool = (uf_stat){786431, 1023, 0, 0};
    stats.allocation.all = (uf_stat){13, 35, 749999, 750000};
    stats.allocation.large_pool = (uf_stat){13, 24, 227, 214};
    stats.allocation.small_pool = (uf_stat){0, 12, 749772, 749786};
    stats.active.all = (uf_stat){13, 35, 750000000, 749999999};
    stats.segment.all = (uf_stat){18, 30, 73, 55};
    stats.segment.large_pool = (uf_stat){15, 20, 46, 31};
    stats.segment.small_pool = (uf_stat){3, 11, 27, 24};
    stats.oversize_allocations = (uf_stat){1, 2, 3, 2};
    stats.oversize_segments = (uf_stat){1, 1, 1, 0};
    return stats;
}

START_TEST(a_busy_device_is_written_to_the_character)
{
    uf_stats stats = busy_stats();
    expect_summary(
        &stats, 1, false,
        EQUALS
        "|                  PyTorch CUDA memory summary, device ID 1                 |\n" DASHES
        "|            CUDA OOMs: 1            |        cudaMalloc retries: 12        |\n" EQUALS
            HEADS DASHES
        "| Allocated memory      | 425984 KiB | 538298 KiB |   4928 MiB |   4512 MiB |\n"
        "|       from large pool | 425984 KiB | 535225 KiB |   4682 MiB |   4266 MiB |\n"
        "|       from small pool |      0 KiB |   8705 KiB |    246 MiB |    246 MiB |\n" DASHES
        "| Active memory         | 425984 KiB | 538298 KiB |   4928 MiB |   4512 MiB |\n"
        "|       from large pool | 425984 KiB | 535225 KiB |   4682 MiB |   4266 MiB |\n"
        "|       from small pool |      0 KiB |   8705 KiB |    246 MiB |    246 MiB |\n" DASHES
        "| Requested memory      | 425983 KiB | 538297 KiB |   4928 MiB |   4512 MiB |\n"
        "|       from large pool | 425983 KiB | 535225 KiB |   4682 MiB |   4266 MiB |\n"
        "|       from small pool |      0 KiB |   8704 KiB |    246 MiB |    246 MiB |\n" DASHES
        "| GPU reserved memory   | 473088 KiB | 651264 KiB |   1256 MiB |    794 MiB |\n"
        "|       from large pool | 466944 KiB | 630784 KiB |   1202 MiB |    746 MiB |\n"
        "|       from small pool |   6144 KiB |  22528 KiB |     54 MiB |     48 MiB |\n" DASHES
        "| Non-releasable memory | 786431 B   |    768 KiB | 786431 KiB |    768 MiB |\n"
        "|       from large pool |      0 B   |    768 KiB | 786431 KiB |    768 MiB |\n"
        "|       from small pool | 786431 B   |      0 KiB |      0 KiB |      0 MiB |\n" DASHES
        "| Allocations           |      13    |      35    |  749999    |     750 K  |\n"
        "|       from large pool |      13    |      24    |     227    |       0 K  |\n"
        "|       from small pool |       0    |      12    |  749772    |     749 K  |\n" DASHES
        "| Active allocs         |      13    |      35    |     750 M  |  749999 K  |\n"
        "|       from large pool |       0    |       0    |       0 M  |       0 K  |\n"
        "|       from small pool |       0    |       0    |       0 M  |       0 K  |\n" DASHES
        "| GPU reserved segments |      18    |      30    |      73    |      55    |\n"
        "|       from large pool |      15    |      20    |      46    |      31    |\n"
        "|       from small pool |       3    |      11    |      27    |      24    |\n" DASHES
        "| Non-releasable allocs |       0    |       0    |       0    |       0    |\n"
        "|       from large pool |       0    |       0    |       0    |       0    |\n"
        "|       from small pool |       0    |       0    |       0    |       0    |\n" DASHES
        "| Oversize allocations  |       1    |       2    |       3    |       2    |\n" DASHES
        "| Oversize GPU segments |       1    |       1    |       1    |       0    |\n" EQUALS);
}
END_TEST

START_TEST(a_size_changes_its_unit_at_768_times_1024)
{
    uf_stats stats = {0};
    stats.reserved_bytes.all = (uf_stat){786431, 786432, INT64_C(805306367), INT64_C(805306368)};
    expect_line(&stats,
                "| GPU reserved memory   | 786431 B   |    768 KiB | 786431 KiB |    768 MiB |\n");
    stats.reserved_bytes.all = (uf_stat){INT64_C(824633720831), INT64_C(824633720832),
                                         INT64_C(844424930131967), INT64_C(844424930131968)};
    expect_line(&stats,
                "| GPU reserved memory   | 786431 MiB |    768 GiB | 786431 GiB |    768 TiB |\n");
    stats.reserved_bytes.all = (uf_stat){INT64_C(864691128455135231), INT64_C(864691128455135232),
                                         INT64_MAX, 150109880320};
    /* One byte below 768 PiB is 768 PiB in the double the unit is chosen by. */
    expect_line(&stats,
                "| GPU reserved memory   |    767 PiB |    768 PiB |   8191 PiB | 143155 MiB |\n");
}
END_TEST

START_TEST(a_count_changes_its_unit_at_750_times_1000)
{
    uf_stats stats = {0};
    stats.allocation.all = (uf_stat){749999, 750000, 749999999, 750000000};
    expect_line(&stats,
                "| Allocations           |  749999    |     750 K  |  749999 K  |     750 M  |\n");
    /* There is no unit above M. */
    stats.allocation.all = (uf_stat){INT64_C(7500000000000), 0, 0, 0};
    expect_line(&stats,
                "| Allocations           | 7500000 M  |       0    |       0    |       0    |\n");
}
END_TEST

START_TEST(pool_rows_use_the_unit_of_the_first_row)
{
    uf_stats stats = {0};
    stats.allocated_bytes.all.current = INT64_C(10) << 30;
    stats.allocated_bytes.large_pool.current = (INT64_C(10) << 30) - 512;
    stats.allocated_bytes.small_pool.current = 512;
    expect_line(&stats,
                "| Allocated memory      |  10240 MiB |      0 B   |      0 B   |      0 B   |\n"
                "|       from large pool |  10239 MiB |      0 B   |      0 B   |      0 B   |\n"
                "|       from small pool |      0 MiB |      0 B   |      0 B   |      0 B   |\n");
}
END_TEST

START_TEST(every_usual_line_is_77_characters_wide)
{
    uf_stats stats = busy_stats();
    int line_count = 0;
    ck_assert_int_eq(uf_summary_write(&stats, 15, false, buffer, sizeof buffer, NULL, NULL), UF_OK);
    for (const char *line = buffer; *line != '\0'; line_count++) {
        const char *end = strchr(line, '\n');
        ck_assert_ptr_nonnull(end);
        ck_assert_int_eq(end - line, 77);
        line = end + 1;
    }
    ck_assert_int_eq(line_count, 6 + 9 * 4 + 2 * 2 + 1);
}
END_TEST

START_TEST(negative_numbers_divide_downwards)
{
    uf_stats stats = {0};
    stats.allocated_bytes.all.current = 1048576;
    stats.allocated_bytes.small_pool.current = -1;
    expect_line(&stats, "|       from small pool |     -1 KiB |");
}
END_TEST

START_TEST(a_short_buffer_is_refused_and_left_empty)
{
    uf_stats stats = {0};
    uf_error error;
    size_t length = 0;
    ck_assert_int_eq(uf_summary_write(&stats, 0, true, buffer, sizeof buffer, &length, NULL),
                     UF_OK);
    size_t needed = length + 1;
    char *exact = malloc(needed);
    ck_assert_int_eq(uf_summary_write(&stats, 0, true, exact, needed, &length, NULL), UF_OK);
    ck_assert_str_eq(exact, buffer);
    length = 3;
    ck_assert_int_eq(uf_summary_write(&stats, 0, true, exact, needed - 1, &length, &error),
                     UF_ERROR_INVALID_ARGUMENT);
    ck_assert_str_eq(exact, "");
    ck_assert_uint_eq(length, 3);
    ck_assert_int_eq(uf_summary_write(&stats, 0, true, NULL, 0, NULL, &error),
                     UF_ERROR_INVALID_ARGUMENT);
    free(exact);
}
END_TEST

START_TEST(the_promised_capacity_is_enough_for_the_widest_numbers)
{
    uf_stats stats;
    for (size_t i = 0; i < uf_stats_count(); i++) {
        const char *key;
        ck_assert(uf_stats_entry(&stats, i, &key, NULL));
        ck_assert(uf_stats_set(&stats, key, INT64_MIN));
    }
    ck_assert_int_eq(uf_summary_write(&stats, INT32_MIN, false, buffer, sizeof buffer, NULL, NULL),
                     UF_OK);
}
END_TEST

int main(void)
{
    TCase *summary = tcase_create("summary");
    tcase_add_test(summary, without_any_memory_every_row_is_zero);
    tcase_add_test(summary, a_busy_device_is_written_to_the_character);
    tcase_add_test(summary, a_size_changes_its_unit_at_768_times_1024);
    tcase_add_test(summary, a_count_changes_its_unit_at_750_times_1000);
    tcase_add_test(summary, pool_rows_use_the_unit_of_the_first_row);
    tcase_add_test(summary, every_usual_line_is_77_characters_wide);
    tcase_add_test(summary, negative_numbers_divide_downwards);
    tcase_add_test(summary, a_short_buffer_is_refused_and_left_empty);
    tcase_add_test(summary, the_promised_capacity_is_enough_for_the_widest_numbers);
    Suite *suite = suite_create("summary");
    suite_add_tcase(suite, summary);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
