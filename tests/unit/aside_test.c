/* SPDX-License-Identifier: MIT
 *
 * The shortcut for a block that is given back and asked for again: an allocator that takes it and a
 * twin that is disturbed after each call, so that it never does, behave alike in all that can be
 * seen. */
#include <unfrag/host.h>
#include <unfrag/pool.h>

#include "unit/suite.h"
#include "unit/allocator_fixture.h"

enum { LIVE_MOST = 60, STEPS = 4000 };

/* All events so far, as one number. */
typedef struct listener {
    uint64_t hash, count;
} listener;

static void listen_to(void *context, const uf_allocator_event *event)
{
    listener *l = context;
    const uint64_t parts[4] = {(uint64_t)event->action, event->addr, event->size_bytes,
                               event->stream};
    for (int i = 0; i < 4; i++) {
        l->hash = (l->hash ^ parts[i]) * UINT64_C(0x100000001b3);
    }
    l->count++;
}

typedef struct twin {
    fixture f;
    listener heard;
} twin;

typedef struct way {
    uf_policy policy;
    const char *conf;
    uint64_t limit_bytes;
    bool is_heard;
} way;

static void twin_init(twin *t, const way *how)
{
    uf_allocator_options options = fixture_options(&t->f, how->conf);
    t->heard = (listener){0, 0};
    options.policy = how->policy;
    options.limit_bytes = how->limit_bytes;
    options.on_event = how->is_heard ? listen_to : NULL;
    options.event_context = &t->heard;
    fixture_make(&t->f, &options);
}

static void compare_stats(twin *one, twin *other)
{
    uf_stats a = stats_of(&one->f), b = stats_of(&other->f);
    for (uint32_t i = 0; i < uf_stats_count(); i++) {
        const char *key;
        int64_t x, y;
        uf_stats_entry(&a, i, &key, &x);
        uf_stats_entry(&b, i, &key, &y);
        ck_assert_msg(x == y, "%s: %lld and %lld", key, (long long)x, (long long)y);
    }
}

static bool paint(void *context, const uf_segment_info *segment, const uf_block_info *blocks)
{
    uint64_t *hash = context;
    for (uint64_t i = 0; i < segment->block_count; i++) {
        const uint64_t parts[4] = {blocks[i].addr, blocks[i].size_bytes, blocks[i].requested_bytes,
                                   (uint64_t)blocks[i].state};
        for (int j = 0; j < 4; j++) {
            *hash = (*hash ^ parts[j]) * UINT64_C(0x100000001b3);
        }
    }
    return true;
}

static void compare_blocks(twin *one, twin *other)
{
    uint64_t a = 0, b = 0;
    ck_assert_int_eq(uf_walk(one->f.allocator, paint, &a, NULL), UF_OK);
    ck_assert_int_eq(uf_walk(other->f.allocator, paint, &b, NULL), UF_OK);
    ck_assert_uint_eq(a, b);
    fixture_check(&one->f);
    fixture_check(&other->f);
}

/* What any other call does; here one that changes nothing. */
static void disturb(twin *t)
{
    uf_usage usage;
    ck_assert_int_eq(uf_usage_get(t->f.allocator, &usage, NULL), UF_OK);
}

typedef struct twins {
    twin calm, disturbed;
    uint64_t addrs[LIVE_MOST], sizes[LIVE_MOST], streams[LIVE_MOST];
    int count;
} twins;

static void take_both(twins *t, uint64_t bytes, uint64_t stream)
{
    uint64_t addr = 0, other = 0;
    uf_status status = uf_alloc(t->calm.f.allocator, bytes, stream, &addr, &t->calm.f.error);
    uf_status expected =
        uf_alloc(t->disturbed.f.allocator, bytes, stream, &other, &t->disturbed.f.error);
    ck_assert_int_eq(status, expected);
    ck_assert_uint_eq(addr, other);
    if (status == UF_OK) {
        t->addrs[t->count] = addr;
        t->sizes[t->count] = bytes;
        t->streams[t->count++] = stream;
    }
}

static void give_both(twins *t, int index)
{
    uint64_t addr = t->addrs[index];
    ck_assert_int_eq(uf_free(t->calm.f.allocator, addr, NULL), UF_OK);
    ck_assert_int_eq(uf_free(t->disturbed.f.allocator, addr, NULL), UF_OK);
    t->count--;
    for (int i = index; i < t->count; i++) {
        t->addrs[i] = t->addrs[i + 1];
        t->sizes[i] = t->sizes[i + 1];
        t->streams[i] = t->streams[i + 1];
    }
}

static void step(twins *t)
{
    int what = rand() % 100;
    uint64_t stream = (uint64_t)(rand() % 3);
    uint64_t bytes =
        rand() % 2 == 0 ? 1 + (uint64_t)(rand() % 4000) : 1 + (uint64_t)(rand() % (40 << 20));
    if (what < 45 && t->count != 0) { /* the newest goes, and comes again or not */
        bytes = t->sizes[t->count - 1];
        stream = t->streams[t->count - 1];
        give_both(t, t->count - 1);
        if (what < 35) {
            take_both(t, what < 30 ? bytes : bytes + 1, stream);
        }
    } else if (what < 70 && t->count < LIVE_MOST) {
        take_both(t, bytes, stream);
    } else if (what < 85 && t->count != 0) {
        give_both(t, rand() % t->count);
    } else if (what < 90 && t->count != 0) {
        int index = rand() % t->count;
        uint64_t addr = t->addrs[index];
        ck_assert_int_eq(uf_use_on_stream(t->calm.f.allocator, addr, stream, NULL), UF_OK);
        ck_assert_int_eq(uf_use_on_stream(t->disturbed.f.allocator, addr, stream, NULL), UF_OK);
    } else if (what == 90) {
        ck_assert_int_eq(uf_empty_cache(t->calm.f.allocator, NULL), UF_OK);
        ck_assert_int_eq(uf_empty_cache(t->disturbed.f.allocator, NULL), UF_OK);
    } else if (what < 94) {
        uf__sim_synchronize(&t->calm.f.sim);
        uf__sim_synchronize(&t->disturbed.f.sim);
    } else if (what < 97) {
        compare_stats(&t->calm, &t->disturbed);
    } else if (what == 97) {
        compare_blocks(&t->calm, &t->disturbed);
    }
    disturb(&t->disturbed);
    ck_assert_uint_eq(t->calm.heard.hash, t->disturbed.heard.hash);
    ck_assert_uint_eq(t->calm.heard.count, t->disturbed.heard.count);
}

static void live(const way *how, unsigned seed)
{
    twins t = {.count = 0};
    srand(seed);
    twin_init(&t.calm, how);
    twin_init(&t.disturbed, how);
    for (int i = 0; i < STEPS; i++) {
        step(&t);
    }
    compare_stats(&t.calm, &t.disturbed);
    compare_blocks(&t.calm, &t.disturbed);
    fixture_fini(&t.calm.f);
    fixture_fini(&t.disturbed.f);
}

START_TEST(it_shows_in_nothing_under_the_torch_policy)
{
    static const way ways[] = {
        {UF_POLICY_TORCH, NULL, 0, true},
        {UF_POLICY_TORCH, "expandable_segments:True", 0, true},
        {UF_POLICY_TORCH, "max_split_size_mb:20", 400 * MIB, true},
        {UF_POLICY_TORCH, "max_split_size_mb:24,garbage_collection_threshold:0.5", 400 * MIB, true},
        {UF_POLICY_TORCH, "roundup_power2_divisions:4,expandable_segments:True", 500 * MIB, false},
    };
    for (unsigned i = 0; i < sizeof ways / sizeof *ways; i++) {
        for (unsigned seed = 1; seed <= 4; seed++) {
            live(&ways[i], seed + 10 * i);
        }
    }
}
END_TEST

/* There a request may be placed elsewhere; what counts is that nothing is lost (uf_check), and that
 * statistics of blocks are those of the program. */
START_TEST(statistics_are_right_under_the_unfrag_policy)
{
    for (unsigned seed = 1; seed <= 6; seed++) {
        twin t;
        const way how = {UF_POLICY_UNFRAG, NULL, seed % 2 == 0 ? 300 * MIB : 0, true};
        uint64_t addrs[LIVE_MOST], sizes[LIVE_MOST], requested_bytes = 0;
        int count = 0;
        int64_t made_count = 0;
        srand(seed);
        twin_init(&t, &how);
        for (int i = 0; i < STEPS; i++) {
            bool is_again = rand() % 2 == 0 && count != 0;
            uint64_t bytes = 1 + (uint64_t)(rand() % (9 << 20));
            if (is_again || (count != 0 && rand() % 3 == 0)) {
                int chosen = is_again ? count - 1 : rand() % count;
                bytes = sizes[chosen];
                ck_assert_int_eq(uf_free(t.f.allocator, addrs[chosen], NULL), UF_OK);
                requested_bytes -= bytes;
                addrs[chosen] = addrs[--count];
                sizes[chosen] = sizes[count];
            }
            if (count < LIVE_MOST &&
                uf_alloc(t.f.allocator, bytes, 0, &addrs[count], &t.f.error) == UF_OK) {
                sizes[count++] = bytes;
                requested_bytes += bytes;
                made_count++;
            }
            if (rand() % 20 == 0) {
                fixture_check(&t.f);
                uf_stats stats = stats_of(&t.f);
                ck_assert_int_eq(stats.requested_bytes.all.current, (int64_t)requested_bytes);
                ck_assert_int_eq(stats.allocation.all.current, count);
                ck_assert_int_eq(stats.allocation.all.allocated, made_count);
            }
        }
        fixture_fini(&t.f);
    }
}
END_TEST

START_TEST(an_address_that_was_set_aside_is_given_back_once)
{
    fixture f;
    fixture_init(&f, NULL, 0);
    uint64_t addr, again;
    ck_assert_int_eq(uf_alloc(f.allocator, 5 * MIB, 7, &addr, NULL), UF_OK);
    ck_assert_int_eq(uf_free(f.allocator, addr, NULL), UF_OK);
    refuses(&f, UF_ERROR_FOREIGN_POINTER, uf_free(f.allocator, addr, &f.error), "handed out");
    ck_assert_int_eq(uf_alloc(f.allocator, 5 * MIB, 7, &addr, NULL), UF_OK);
    ck_assert_int_eq(uf_free(f.allocator, addr, NULL), UF_OK);
    ck_assert_int_eq(uf_alloc(f.allocator, 5 * MIB, 8, &again, NULL), UF_OK); /* another stream's */
    ck_assert_uint_ne(addr, again);
    fixture_check(&f);
    ck_assert_int_eq(uf_free(f.allocator, again, NULL), UF_OK);
    refuses(&f, UF_ERROR_FOREIGN_POINTER, uf_use_on_stream(f.allocator, again, 3, &f.error),
            "handed out");
    ck_assert_int_eq(uf_alloc(f.allocator, 5 * MIB, 8, &again, NULL), UF_OK);
    ck_assert_int_eq(uf_free(f.allocator, again, NULL), UF_OK);
    uf_allocator_destroy(f.allocator); /* with one set aside */
    ck_assert_uint_eq(f.sim.in_use_bytes, 0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        it_shows_in_nothing_under_the_torch_policy,
        statistics_are_right_under_the_unfrag_policy,
        an_address_that_was_set_aside_is_given_back_once,
        NULL,
    };
    return suite_run("aside", tests);
}
