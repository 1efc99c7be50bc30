/* SPDX-License-Identifier: MIT
 *
 * The recorded device: it answers as the recording does. */
#include "replay/follow.h"

#include "unit/follow_bench.h"
#include "unit/suite.h"

static maker m;
static uf_follow follow;
static uf_program *program;

/* A tape with its head at an event, and the group under way up to `last`. */
static const uf_device *tape_at(uint64_t cursor, uint64_t last)
{
    memset(&follow, 0, sizeof follow);
    program = maker_link(&m);
    follow.program = program;
    follow.cursor = cursor;
    follow.group_last = last;
    uf__tape_init(&follow);
    return &follow.device;
}

START_TEST(a_segment_gets_the_recorded_address)
{
    uint64_t addr;
    maker_sample(&m);
    const uf_device *device = tape_at(0, 1);
    ck_assert_int_eq(device->segment_create(device->context, 20 * MAKER_MIB, 0, &addr), UF_OK);
    ck_assert_uint_eq(addr, MAKER_BASE);
    ck_assert_uint_eq(follow.sim.in_use_bytes, 20 * MAKER_MIB);
    ck_assert_uint_eq(follow.sim.call_count, 1);
    ck_assert_int_eq(device->segment_destroy(device->context, addr, 20 * MAKER_MIB), UF_OK);
    ck_assert_uint_eq(follow.sim.in_use_bytes, 0);
    uf_program_destroy(program);
}
END_TEST

START_TEST(before_a_release_the_driver_refused)
{
    uint64_t addr = 7;
    maker_init(&m);
    maker_event(&m, UF_ACTION_SEGMENT_FREE, MAKER_BASE, 2 * MAKER_MIB);
    maker_event(&m, UF_ACTION_ALLOC, MAKER_BASE, 2 * MAKER_MIB);
    const uf_device *device = tape_at(0, 1);
    ck_assert_int_eq(device->segment_create(device->context, 20 * MAKER_MIB, 0, &addr),
                     UF_ERROR_DEVICE_MEMORY);
    ck_assert_int_eq(device->pages_map(device->context, 0, 20 * MAKER_MIB, 20 * MAKER_MIB),
                     UF_ERROR_DEVICE_MEMORY);
    ck_assert(!follow.has_failed);
    ck_assert_uint_eq(addr, 7);
    ck_assert_uint_eq(follow.sim.in_use_bytes, 0);
    uf_program_destroy(program);
}
END_TEST

static void expect_objection(uint64_t cursor, uint64_t last, uint64_t size_bytes, const char *text)
{
    uint64_t addr;
    const uf_device *device = tape_at(cursor, last);
    ck_assert_int_eq(device->segment_create(device->context, size_bytes, 0, &addr),
                     UF_ERROR_DEVICE);
    ck_assert(follow.has_failed);
    ck_assert_uint_eq(follow.difference.event, cursor);
    ck_assert_ptr_nonnull(strstr(follow.difference.text, text));
    uf_program_destroy(program);
}

START_TEST(what_was_never_asked_for_is_objected_to)
{
    maker_sample(&m);
    expect_objection(0, 1, 2 * MAKER_MIB, "expected segment_alloc of 20971520 bytes");
    expect_objection(1, 1, 20 * MAKER_MIB, "expected alloc of 3145728 bytes");
    expect_objection(3, 2, 20 * MAKER_MIB, "expected no driver call");
    expect_objection(7, 7, 20 * MAKER_MIB, "expected no driver call");
}
END_TEST

START_TEST(a_reservation_starts_where_its_first_pages_go)
{
    uint64_t addr;
    maker_init(&m);
    maker_event(&m, UF_ACTION_SEGMENT_MAP, MAKER_BASE, 20 * MAKER_MIB);
    maker_event(&m, UF_ACTION_ALLOC, MAKER_BASE, 2 * MAKER_MIB);
    const uf_device *device = tape_at(0, 1);
    ck_assert_int_eq(device->range_reserve(device->context, 4000 * MAKER_MIB, &addr), UF_OK);
    ck_assert_uint_eq(addr, MAKER_BASE);
    ck_assert_int_eq(
        device->pages_map(device->context, addr + MAKER_MIB, 20 * MAKER_MIB, 20 * MAKER_MIB),
        UF_ERROR_DEVICE);
    ck_assert(follow.has_failed);
    follow.has_failed = false;
    ck_assert_int_eq(device->pages_map(device->context, addr, 20 * MAKER_MIB, 20 * MAKER_MIB),
                     UF_OK);
    ck_assert_int_eq(device->pages_unmap(device->context, addr, 20 * MAKER_MIB, 20 * MAKER_MIB),
                     UF_OK);
    ck_assert_int_eq(device->range_release(device->context, addr, 4000 * MAKER_MIB), UF_OK);
    ck_assert_uint_eq(follow.sim.call_count, 1 + 3 + 2 + 1);
    uf_program_destroy(program);
}
END_TEST

START_TEST(all_else_is_the_simulators)
{
    uint64_t free_bytes, total_bytes, event;
    bool is_done;
    maker_sample(&m);
    const uf_device *device = tape_at(0, 1);
    ck_assert_int_eq(device->memory_info(device->context, &free_bytes, &total_bytes), UF_OK);
    ck_assert_uint_eq(total_bytes, UF_RECORDED_TOTAL_BYTES);
    ck_assert_uint_eq(free_bytes, UINT64_MAX);
    ck_assert_int_eq(device->event_record(device->context, 7, &event), UF_OK);
    ck_assert_int_eq(device->event_query(device->context, event, &is_done), UF_OK);
    ck_assert(!is_done);
    ck_assert_int_eq(device->event_wait(device->context, event), UF_OK);
    ck_assert_int_eq(device->stream_wait(device->context, 7), UF_OK);
    ck_assert_uint_eq(follow.sim.sync_count, 2);
    uf_program_destroy(program);
}
END_TEST

int main(void)
{
    return suite_run("tape", (const TTest *const[]){
                                 a_segment_gets_the_recorded_address,
                                 before_a_release_the_driver_refused,
                                 what_was_never_asked_for_is_objected_to,
                                 a_reservation_starts_where_its_first_pages_go,
                                 all_else_is_the_simulators,
                                 NULL,
                             });
}
