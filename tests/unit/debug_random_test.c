/* SPDX-License-Identifier: MIT
 *
 * Random operations in debug mode, with kernels that run late: whatever is done rightly is not
 * reported, and every write behind an end is. And the same while calls of the device fail: then
 * less is found, but nothing is invented. */
#include "unit/debug_fixture.h"

enum { LIVE_MAX = 24, STREAMS = 3, STEP_COUNT = 4000, FAULT_STEP_COUNT = 160 };

typedef struct owner {
    uint64_t addr, bytes, stream;
    bool is_shared, is_pinned, is_overrun;
} owner;

typedef struct play {
    debug_fixture f;
    uint64_t random, pool;
    owner live[LIVE_MAX];
    uint32_t count;
    uint64_t overrun_count, told_count;
    bool is_failing; /* a call of the device was told to fail */
} play;

static uint64_t number(play *p)
{
    return suite_random(&p->random);
}

/* The statuses that a call may have; anything else is wrong. */
static void expect(const play *p, uf_status status)
{
    bool is_device = status == UF_ERROR_DEVICE || status == UF_ERROR_DEVICE_MEMORY;
    ck_assert_msg(status == UF_OK || status == UF_ERROR_OUT_OF_MEMORY ||
                      (p->is_failing && is_device),
                  "%s: %s", uf_status_name(status), p->f.error.text);
}

static void take(play *p)
{
    uint64_t n = number(p);
    bool is_in_pool = n % 9 == 0;
    owner o = {.bytes = 1 + number(p) % (n % 3 == 0 ? 3 * MIB : 40 * KIB),
               .stream = n % STREAMS * 64};
    if (is_in_pool) {
        expect(p, uf_pool_begin(p->f.allocator, p->pool, &p->f.error));
    }
    uf_status status = uf_alloc(p->f.allocator, o.bytes, o.stream, &o.addr, &p->f.error);
    expect(p, status);
    if (is_in_pool) {
        expect(p, uf_pool_end(p->f.allocator, p->pool, &p->f.error));
    }
    if (status == UF_OK) {
        debug_write(&p->f, o.stream, o.addr, o.bytes);
        p->live[p->count++] = o;
    }
}

static void give(play *p, uint32_t at, bool may_overrun)
{
    owner o = p->live[at];
    p->live[at] = p->live[--p->count];
    debug_write(&p->f, o.stream, o.addr, o.bytes);
    if (may_overrun && number(p) % 16 == 0) {
        debug_write(&p->f, o.stream, o.addr + o.bytes + number(p) % 512, 1);
        p->overrun_count++;
    }
    uf_status status = uf_free(p->f.allocator, o.addr, &p->f.error);
    if (o.is_pinned) {
        expect(p, status);
        status = uf_unpin(p->f.allocator, o.addr, &p->f.error);
    }
    p->told_count += status == UF_ERROR_DAMAGED;
    expect(p, status == UF_ERROR_DAMAGED ? UF_OK : status);
}

static void share(play *p, owner *o)
{
    uint64_t other = (o->stream + 64) % (STREAMS * 64);
    debug_write(&p->f, other, o->addr, o->bytes);
    expect(p, uf_use_on_stream(p->f.allocator, o->addr, other, &p->f.error));
}

static void disturb(play *p)
{
    uf_allocator *allocator = p->f.allocator;
    uf_error *error = &p->f.error;
    uint64_t n = number(p);
    switch (n % 8) {
    case 0:
        expect(p, uf_trim(allocator, n / 8 % (8 * MIB), NULL, error));
        break;
    case 1:
        expect(p, uf_reserve(allocator, n / 8 % (4 * MIB), n / 8 % STREAMS * 64, error));
        break;
    case 2:
        expect(p, uf_limit_set(allocator, (16 + n / 8 % 24) * MIB, error));
        break;
    case 3:
        expect(p, uf_empty_cache(allocator, error));
        break;
    case 4:
        if (p->count != 0 && !p->live[0].is_pinned) {
            uf_status status = uf_pin(allocator, p->live[0].addr, error);
            p->live[0].is_pinned = status == UF_OK;
            expect(p, status);
        }
        break;
    case 5:
        if (p->count != 0) {
            share(p, &p->live[n / 8 % p->count]);
        }
        break;
    default:
        uf_host_run(p->f.host, n / 8 % STREAMS * 64, n / 64 % 20);
        break;
    }
}

static void step(play *p, bool may_overrun)
{
    uint64_t n = number(p);
    if (n % 4 == 0) {
        disturb(p);
    } else if (p->count == LIVE_MAX || (p->count != 0 && n % 2 == 0)) {
        give(p, (uint32_t)(n / 4 % p->count), may_overrun);
    } else {
        take(p);
    }
}

static void begin(play *p, uf_policy policy, const char *conf, uint64_t seed)
{
    *p = (play){.random = seed};
    uf_allocator_options options = debug_options(&p->f, policy);
    options.limit_bytes = 32 * MIB;
    options.conf = conf;
    debug_make(&p->f, &options);
    expect(p, uf_pool_create(p->f.allocator, NULL, &p->pool, &p->f.error));
}

static void end(play *p)
{
    while (p->count != 0) {
        give(p, 0, false);
    }
    uf_host_synchronize(p->f.host);
}

static const struct {
    uf_policy policy;
    const char *conf;
} settings[] = {{UF_POLICY_UNFRAG, NULL},
                {UF_POLICY_TORCH, NULL},
                {UF_POLICY_TORCH, "expandable_segments:True"}};
enum { SETTING_COUNT = sizeof settings / sizeof *settings };

START_TEST(what_is_done_rightly_is_not_reported)
{
    for (int i = 0; i < SETTING_COUNT; i++) {
        play p;
        begin(&p, settings[i].policy, settings[i].conf, 1);
        for (int n = 0; n < STEP_COUNT; n++) {
            step(&p, false);
            ck_assert_msg(p.f.report_count == 0, "setting %d, step %d: %s", i, n, p.f.text);
        }
        end(&p);
        ck_assert_int_eq(uf_check(p.f.allocator, &p.f.error), UF_OK);
        debug_fini(&p.f);
        ck_assert_msg(p.f.report_count == 0, "%s", p.f.text);
    }
}
END_TEST

START_TEST(every_write_behind_an_end_is_reported)
{
    for (int i = 0; i < SETTING_COUNT; i++) {
        play p;
        begin(&p, settings[i].policy, settings[i].conf, 2);
        for (int n = 0; n < STEP_COUNT; n++) {
            step(&p, true);
        }
        end(&p);
        uf_status status = uf_empty_cache(p.f.allocator, &p.f.error); /* completes all frees */
        ck_assert_int_eq(status, UF_OK);
        ck_assert_uint_gt(p.overrun_count, 50);
        ck_assert_uint_eq(p.f.report_count, p.overrun_count);
        ck_assert_uint_gt(p.told_count, p.overrun_count / 2);
        ck_assert_int_eq(p.f.last.kind, UF_DAMAGE_OVERRUN);
        debug_fini(&p.f);
    }
}
END_TEST

/* One life in which one call fails, once or from then on. Returns how many such calls there were.
 */
static uint64_t life(int setting, uf_host_call call, uint64_t at, bool is_lasting)
{
    play p;
    begin(&p, settings[setting].policy, settings[setting].conf, 3);
    p.is_failing = at != 0;
    uf_host_fail(p.f.host, call, at, is_lasting, UF_ERROR_DEVICE);
    for (int n = 0; n < FAULT_STEP_COUNT; n++) {
        step(&p, false);
        ck_assert_msg(p.f.report_count == 0, "%s", p.f.text);
    }
    end(&p);
    uf_status status = uf_check(p.f.allocator, &p.f.error);
    ck_assert_msg(status == UF_OK, "%s", p.f.error.text);
    uf_host_fail(p.f.host, call, 0, false, UF_OK);
    uf_host_counts counts;
    uf_host_counts_get(p.f.host, &counts);
    debug_fini(&p.f);
    ck_assert_msg(p.f.report_count == 0, "%s", p.f.text);
    return counts.call_counts[call];
}

START_TEST(a_failing_call_of_the_device_invents_no_damage)
{
    static const uf_host_call calls[] = {
        UF_HOST_BYTES_SET,   UF_HOST_BYTES_COMPARE, UF_HOST_EVENT_RECORD, UF_HOST_EVENT_WAIT,
        UF_HOST_RANGE_UNMAP, UF_HOST_PAGES_UNMAP,   UF_HOST_HANDLE_MAP,   UF_HOST_SEGMENT_CREATE};
    for (int setting = 0; setting < SETTING_COUNT; setting++) {
        for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
            uint64_t count = life(setting, calls[i], 0, false), every = 1 + count / 4;
            for (uint64_t at = 1; at <= count; at += every) {
                (void)life(setting, calls[i], at, false);
            }
            (void)life(setting, calls[i], 1 + count / 3, true);
        }
    }
}
END_TEST

int main(void)
{
    return suite_run("debug_random", (const TTest *const[]){
                                         what_is_done_rightly_is_not_reported,
                                         every_write_behind_an_end_is_reported,
                                         a_failing_call_of_the_device_invents_no_damage,
                                         NULL,
                                     });
}
