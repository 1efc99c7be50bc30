/* SPDX-License-Identifier: MIT
 *
 * The part of a program that repeats, and the peak of live bytes of a range. */
#include "replay/play.h"

#include "unit/recordings.h"
#include "unit/suite.h"
#include "unit/trace_maker.h"

#define KIB UINT64_C(1024)

static maker m;

/* Two weights that stay, then `rounds` of two short-lived blocks. 2 + 6 * rounds events. */
static uf_program *make_rounds(uint64_t rounds)
{
    maker_init(&m);
    maker_event(&m, UF_ACTION_ALLOC, 1 << 20, 900 * KIB);
    maker_event(&m, UF_ACTION_ALLOC, 2 << 20, 900 * KIB);
    for (uint64_t i = 0; i < rounds; i++) {
        maker_event(&m, UF_ACTION_ALLOC, 3 << 20, 100 * KIB);
        maker_event(&m, UF_ACTION_ALLOC, 4 << 20, 50 * KIB + 1);
        maker_free(&m, 3 << 20, 100 * KIB);
        maker_free(&m, 4 << 20, 50 * KIB + 1);
    }
    return maker_link(&m);
}

START_TEST(each_round_is_a_piece)
{
    uf_program *program = make_rounds(5);
    uf_steady steady;
    ck_assert_int_eq(uf__steady_find(program, &steady), UF_OK);
    ck_assert_uint_eq(steady.first_event, 2);
    ck_assert_uint_eq(steady.end_event, 31);
    ck_assert_uint_eq(steady.piece_count, 5);
    ck_assert_uint_eq(steady.piece_firsts[0], 2);
    for (uint32_t i = 1; i <= 5; i++) {
        ck_assert_uint_eq(steady.piece_firsts[i], 2 + 6 * i - 1); /* after its last free */
    }
    uf__steady_fini(&steady);
    ck_assert_ptr_null(steady.piece_firsts);
    uf_program_destroy(program);
}
END_TEST

START_TEST(without_rounds_no_part_repeats)
{
    maker_init(&m);
    uf_program *program = maker_link(&m);
    uf_steady steady;
    ck_assert_int_eq(uf__steady_find(program, &steady), UF_OK);
    ck_assert_uint_eq(steady.piece_count, 0);
    uf__steady_fini(&steady);
    uf_program_destroy(program);
}
END_TEST

static uint64_t peak_of(const uf_program *program, uint64_t from, uint64_t to)
{
    uint64_t peak_bytes;
    ck_assert_int_eq(uf__program_peak_live(program, from, to, &peak_bytes), UF_OK);
    return peak_bytes;
}

START_TEST(the_peak_of_a_range_counts_what_lives_when_it_begins)
{
    uf_program *program = make_rounds(2);
    uint64_t weights = 1800 * KIB, odd = 50 * KIB + 512;
    ck_assert_uint_eq(peak_of(program, 0, 14), weights + 100 * KIB + odd);
    ck_assert_uint_eq(peak_of(program, 0, UINT64_MAX), weights + 100 * KIB + odd);
    ck_assert_uint_eq(peak_of(program, 0, 2), weights);
    ck_assert_uint_eq(peak_of(program, 0, 1), 900 * KIB);
    ck_assert_uint_eq(peak_of(program, 6, 8), weights + odd);
    ck_assert_uint_eq(peak_of(program, 8, 9), weights + 100 * KIB);
    uf_program_destroy(program);
}
END_TEST

START_TEST(what_was_live_before_the_trace_counts)
{
    maker_init(&m);
    maker_event(&m, UF_ACTION_SNAPSHOT, 0, 0);
    maker_free(&m, 512, 1000);
    maker_event(&m, UF_ACTION_ALLOC, 4096, 512);
    uf_program *program = maker_link(&m);
    ck_assert_uint_eq(peak_of(program, 0, 4), 1024);
    ck_assert_uint_eq(peak_of(program, 0, 1), 1024);
    ck_assert_uint_eq(peak_of(program, 2, 4), 512);
    uf_program_destroy(program);
}
END_TEST

static void expect_pieces(const char *name, uint32_t piece_count, double share)
{
    recording entry;
    uf_steady steady;
    uf_trace *trace = recording_read_named(name, &entry);
    uf_program *program = recording_program(&entry, trace, -1);
    ck_assert_int_eq(uf__steady_find(program, &steady), UF_OK);
    ck_assert_uint_eq(steady.piece_count, piece_count);
    for (uint32_t i = 0; i < piece_count; i++) {
        ck_assert_uint_lt(steady.piece_firsts[i], steady.piece_firsts[i + 1]);
    }
    ck_assert_double_gt((double)(steady.end_event - steady.first_event),
                        share * (double)entry.event_count);
    uf__steady_fini(&steady);
    uf_program_destroy(program);
    uf_trace_destroy(trace);
}

START_TEST(the_images_and_steps_of_recordings_are_found)
{
    expect_pieces("zimage-1024.default", 3, 0.95); /* images */
    expect_pieces("sdxl-1024-b4.default", 3, 0.95);
    expect_pieces("sdxl-mixed.default.cap14GiB", 8, 0.95);
    expect_pieces("train.default", 30, 0.95); /* steps */
}
END_TEST

int main(void)
{
    return suite_run("steady", (const TTest *const[]){
                                   each_round_is_a_piece,
                                   without_rounds_no_part_repeats,
                                   the_peak_of_a_range_counts_what_lives_when_it_begins,
                                   what_was_live_before_the_trace_counts,
                                   the_images_and_steps_of_recordings_are_found,
                                   NULL,
                               });
}
