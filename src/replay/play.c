/* SPDX-License-Identifier: MIT
 *
 * What-if replay: a program under other settings, on a simulated card. The model decides
 * everything; from the recording come requests, frees, and how long other streams kept freed blocks
 * waiting. */
#include "replay/play.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "alloc/largest.h"
#include "alloc/paging.h"
#include "alloc/rounding.h"
#include "base/error.h"
#include "device/cost.h"
#include "replay/groups.h"
#include "replay/ranges.h"
#include "replay/waits.h"

enum { PROGRESS_EVENTS = 1 << 18 };

static const uint32_t WAITS = UINT32_C(1) << 31;
static const uint64_t MAX_DEVICE_BYTES = UINT64_C(1) << 50;

typedef struct uf_player {
    const uf_program *program;
    const uf_replay_options *options;
    uf_core core;
    uf_sim sim;
    uint32_t *block_of_alloc; /* with WAITS once its free was requested */
    uint32_t *stream_of;      /* core stream by program stream */
    uint32_t *pool_of;        /* core pool + 1 by label, 0 = not made yet */
    uint32_t *after;          /* completions put off to the end of the next request */
    uint32_t after_count, after_capacity;
    uf_ranges held; /* segments and reservations */
    uf_waits waits;
    uint64_t at; /* the event under way */
    uint32_t repetition;
    int64_t longest_stall_ns, emptied_ns;
    int64_t recorded_us; /* of the events played, as they were recorded; negative = not known */
    int64_t mark_us;     /* when it was last looked how far the device is */
    uint64_t marked_event_count;
    uint64_t played_count, alloc_count, total_count, skipped_oom_count;
    uf_replay_result *result;
    uf_error *error;
    bool is_stopped;
} uf_player;

/* Equal sizes are served lowest address first, so addresses decide ties. While the replay asks the
 * driver for what the recording asked for, at the same event, it gets the recorded address; under
 * the recorded settings it then does exactly what was recorded. */
static bool recorded_addr(const uf_player *player, uint64_t size_bytes, bool is_region,
                          uint64_t *addr)
{
    const uf_event *events = player->program->events;
    uint64_t at = player->at;
    if (player->repetition != 0 || at == 0) {
        return false;
    }
    if (!is_region) {
        *addr = events[at - 1].addr;
        return events[at - 1].action == UF_ACTION_SEGMENT_ALLOC &&
               events[at - 1].size_bytes == size_bytes;
    }
    while (at > 0 && events[at - 1].action == UF_ACTION_SEGMENT_MAP) {
        at--;
        *addr = events[at].addr;
    }
    return at != player->at;
}

static bool choose_addr(void *context, uint64_t size_bytes, bool is_region, uint64_t *addr)
{
    uf_player *player = context;
    uint64_t candidate = 0;
    bool is_taken =
        recorded_addr(player, size_bytes, is_region, &candidate) &&
        uf__ranges_is_clear(&player->held, candidate, size_bytes) &&
        (candidate + size_bytes <= UF_SIM_FIRST_ADDR || candidate >= player->sim.next_addr);
    if (is_taken) {
        *addr = candidate;
    } else {
        candidate = player->sim.next_addr; /* what the device will choose */
    }
    /* Without memory for the note the address is not given out twice: it is fresh. */
    return uf__ranges_add(&player->held, candidate, size_bytes, 0) && is_taken;
}

static void forget_addr(void *context, uint64_t addr, uint64_t size_bytes)
{
    uf_player *player = context;
    uint64_t unused_bytes;
    (void)uf__ranges_remove(&player->held, addr, size_bytes, &unused_bytes);
}

/* What the policy's promise speaks of: pages that no request can have, and those it needs. */
static void note_pages(const uf_core *core, uint64_t rounded_bytes, uf_oom *oom)
{
    bool is_limited = core->limit_bytes != UF_UNLIMITED && core->limit_bytes > core->total_bytes;
    uint64_t room_bytes = is_limited ? core->limit_bytes - core->total_bytes : 0;
    uint64_t available_bytes = oom->largest_free_block_bytes; /* pages of holes, and the room */
    uint64_t movable_bytes = available_bytes > room_bytes ? available_bytes - room_bytes : 0;
    oom->frozen_bytes = uf__paging_frozen_bytes(core);
    oom->pinned_bytes = core->total_bytes - movable_bytes;
    if (rounded_bytes < UF_REQUEST_LIMIT_BYTES) {
        oom->segment_bytes = uf__granule_ceil(core, rounded_bytes);
    }
}

static void note_oom(uf_player *player, uint64_t at, uint32_t id, uint32_t pool)
{
    uf_replay_result *result = player->result;
    const uf_core *core = &player->core;
    const uf_program *program = player->program;
    player->is_stopped = player->options->on_oom == UF_ON_OOM_STOP;
    if (result->has_oom) {
        return;
    }
    result->has_oom = true;
    uf_oom *oom = &result->first_oom;
    uint64_t bytes = program->alloc_bytes[id];
    uint64_t rounded =
        bytes >= UF_REQUEST_LIMIT_BYTES ? bytes : uf__round_request(&core->conf, bytes);
    *oom = (uf_oom){.event = at,
                    .repetition = player->repetition,
                    .requested_bytes = bytes,
                    .rounded_bytes = rounded,
                    .segment_bytes = bytes >= UF_REQUEST_LIMIT_BYTES
                                         ? bytes
                                         : uf__segment_bytes(&core->conf, rounded),
                    .stream = program->streams[program->alloc_stream[id]],
                    .reserved_bytes = core->total_bytes,
                    .device_free_bytes = uf__core_device_free_bytes(core),
                    .is_in_private_pool = program->alloc_pool[id] != 0};
    oom->allocated_bytes = (uint64_t)uf__counter_all(&core->counters, UF_COUNTER_ALLOCATED_BYTES);
    oom->active_bytes = (uint64_t)uf__counter_all(&core->counters, UF_COUNTER_ACTIVE_BYTES);
    int pool_class = uf__is_small(rounded) ? UF_CLASS_SMALL : UF_CLASS_LARGE;
    oom->largest_free_block_bytes = uf__largest_block_bytes(
        core, pool, pool_class, player->stream_of[program->alloc_stream[id]]);
    if (core->paging != NULL) {
        note_pages(core, rounded, oom);
    }
}

/* A flush forgets a pool that it empties; its slot may then hold another. */
static bool is_pool_there(const uf_player *player, uint32_t label)
{
    uint32_t made = player->pool_of[label];
    const uf_program_pool *known = &player->program->pools[label];
    return made != 0 && player->core.pools[made - 1].is_known &&
           player->core.pools[made - 1].id[0] == known->id[0] &&
           player->core.pools[made - 1].id[1] == known->id[1];
}

static uf_status pool_for(uf_player *player, uint32_t label, uint32_t *pool)
{
    if (label == 0) {
        *pool = UF_DEFAULT_POOL;
        return UF_OK;
    }
    if (!is_pool_there(player, label)) {
        const uf_program_pool *known = &player->program->pools[label];
        uf_status status = uf__core_pool_create(&player->core, known->id[0], known->id[1], pool);
        if (status != UF_OK) {
            return status;
        }
        player->pool_of[label] = *pool + 1;
    }
    *pool = player->pool_of[label] - 1;
    return UF_OK;
}

/* The recording completed a free at an event; a flush may have done so before. */
static void complete(uf_player *player, uint32_t block, uint32_t id, uint64_t at)
{
    if (uf__core_is_waiting(&player->core, block, id)) {
        uf__core_complete(&player->core, block);
    } else if (uf__waits_has_any(&player->waits)) {
        uf__waits_done(&player->waits, id, at, player->program->events[at].time_us);
    }
}

/* The frees that the recording completed inside a request's flush. */
static void complete_after(uf_player *player)
{
    for (uint32_t i = 0; i < player->after_count; i++) {
        uint32_t id = player->after[i], block = player->block_of_alloc[id] & ~WAITS;
        if (block != UF_NO_BLOCK) {
            complete(player, block, id, player->at - 1);
        }
        player->block_of_alloc[id] = UF_NO_BLOCK;
    }
    player->after_count = 0;
}

/* Under the unfrag policy it matters how far the device is behind: work is taken to be done between
 * one and two lags after it was queued, in the recording's time. */
static void advance_device(uf_player *player, uint64_t at)
{
    int64_t lag_us = player->options->device_lag_us;
    int64_t time_us = player->program->events[at].time_us;
    if (time_us != UF_TIME_UNKNOWN) {
        player->sim.now_ns = time_us * 1000;
    }
    if (time_us == UF_TIME_UNKNOWN) {
        uf__sim_synchronize(&player->sim);
    } else if (time_us < player->mark_us || time_us - player->mark_us >= lag_us) {
        player->sim.event_done_count = player->marked_event_count;
        player->marked_event_count = player->sim.event_count;
        player->mark_us = time_us;
    }
}

static uf_status core_alloc(uf_player *player, uint64_t at, uint32_t id, uint32_t pool,
                            uint32_t *block)
{
    const uf_program *program = player->program;
    uint32_t stream = player->stream_of[program->alloc_stream[id]];
    if (player->core.paging == NULL) {
        return uf__core_alloc(&player->core, program->alloc_bytes[id], stream, pool, block);
    }
    if (program->event_count != 0) {
        advance_device(player, at);
    }
    int64_t stall_ns = player->sim.first_ns - player->sim.call_ns;
    uf_status status = uf__core_alloc(&player->core, program->alloc_bytes[id], stream, pool, block);
    stall_ns += player->sim.call_ns - player->sim.first_ns;
    if (stall_ns > player->longest_stall_ns) {
        player->longest_stall_ns = stall_ns;
    }
    return status;
}

static uf_status play_alloc(uf_player *player, uint64_t at, uint32_t id)
{
    const uf_program *program = player->program;
    uint32_t pool = UF_DEFAULT_POOL, block = UF_NO_BLOCK;
    uf_status status = UF_OK;
    player->at = at;
    if (__builtin_expect(program->alloc_pool[id] != 0, 0)) {
        status = pool_for(player, program->alloc_pool[id], &pool);
    }
    int64_t flush_count = player->core.counters.num_sync_all_streams;
    if (status == UF_OK) {
        status = core_alloc(player, at, id, pool, &block);
    }
    if (__builtin_expect(flush_count != player->core.counters.num_sync_all_streams, 0) &&
        uf__waits_has_any(&player->waits) &&
        uf__waits_flush(&player->waits, at, program->events[at].time_us) != UF_OK) {
        return UF_ERROR_HOST_MEMORY;
    }
    player->block_of_alloc[id] = block;
    player->alloc_count++;
    if (__builtin_expect(player->after_count != 0, 0)) {
        complete_after(player);
    }
    if (status == UF_ERROR_OUT_OF_MEMORY || status == UF_ERROR_REQUEST_TOO_LARGE) {
        note_oom(player, at, id, pool);
        return UF_OK;
    }
    return status;
}

static uf_status play_free(uf_player *player, uf_op_kind kind, uint32_t id)
{
    uint32_t block = player->block_of_alloc[id];
    if (block == UF_NO_BLOCK || (block & WAITS) != 0) {
        return UF_OK; /* its request failed, or it was freed before this repetition */
    }
    if (kind == UF_OP_FREE) {
        player->block_of_alloc[id] = UF_NO_BLOCK;
        return uf__core_free(&player->core, block);
    }
    uf_status status = uf__core_use_external(&player->core, block, id);
    if (status == UF_OK) {
        status = uf__waits_put_off(&player->waits, player->program->alloc_count, id);
    }
    if (status == UF_OK) {
        player->block_of_alloc[id] |= WAITS;
        status = uf__core_free(&player->core, block);
    }
    return status;
}

static uf_status play_completion(uf_player *player, uf_op_kind kind, uint32_t id, uint64_t at)
{
    uint32_t block = player->block_of_alloc[id] & ~WAITS;
    if (block == UF_NO_BLOCK) {
        return UF_OK;
    }
    if (kind == UF_OP_COMPLETE_AFTER) {
        if (player->after_count == player->after_capacity) {
            uint32_t capacity = player->after_capacity == 0 ? 64 : player->after_capacity * 2;
            uint32_t *grown = realloc(player->after, capacity * sizeof *grown);
            if (grown == NULL) {
                return UF_ERROR_HOST_MEMORY;
            }
            player->after = grown;
            player->after_capacity = capacity;
        }
        player->after[player->after_count++] = id;
        return UF_OK;
    }
    player->block_of_alloc[id] = UF_NO_BLOCK;
    complete(player, block, id, at);
    return UF_OK;
}

static uf_status play_pool(uf_player *player, uf_op_kind kind, uint32_t label)
{
    if (!is_pool_there(player, label)) {
        return UF_OK;
    }
    uint32_t pool = player->pool_of[label] - 1;
    player->core.pools[pool].use_count = 0;
    return kind == UF_OP_POOL_DROP ? uf__core_pool_empty(&player->core, pool) : UF_OK;
}

/* What a program asked to give back and maps again later is not what a policy moves. */
static uf_status play_empty(uf_player *player)
{
    int64_t before_ns = player->sim.call_ns;
    uf_status status = uf__core_empty_cache(&player->core);
    player->emptied_ns += player->sim.call_ns - before_ns;
    player->sim.high_water_bytes = player->sim.in_use_bytes;
    return status;
}

static uf_status play_rare(uf_player *player, uint32_t op)
{
    uf_op_kind kind = uf__op_kind(op);
    switch (kind) {
    case UF_OP_EMPTY:
        return play_empty(player);
    case UF_OP_POOL_DROP:
    case UF_OP_POOL_RETIRE:
        return play_pool(player, kind, uf__op_id(op));
    case UF_OP_OOM:
        player->result->recorded_oom_count++;
        return UF_OK;
    default:
        return UF_OK;
    }
}

static uf_status after_event(uf_player *player)
{
    const uf_replay_options *options = player->options;
    if (options->is_checked) {
        uf_status status = uf__core_check(&player->core, player->error);
        if (status != UF_OK) {
            return status;
        }
    }
    if (options->progress != NULL && player->played_count % PROGRESS_EVENTS == 0 &&
        !options->progress(options->progress_context, player->played_count, player->total_count)) {
        return UF_ERROR_INTERRUPTED;
    }
    return UF_OK;
}

/* Adds the recorded time between the first and the last of some events. */
static void note_duration(uf_player *player, uint64_t from, uint64_t to)
{
    const uf_event *events = player->program->events;
    if (from >= to || player->recorded_us < 0) {
        return;
    }
    int64_t first_us = events[from].time_us, last_us = events[to - 1].time_us;
    bool is_known = first_us != UF_TIME_UNKNOWN && last_us != UF_TIME_UNKNOWN;
    player->recorded_us = !is_known            ? -1
                          : last_us > first_us ? player->recorded_us + (last_us - first_us)
                                               : player->recorded_us;
}

static uf_status play_range(uf_player *player, uint64_t from, uint64_t to)
{
    const uint32_t *ops = player->program->ops;
    bool is_watched = player->options->is_checked || player->options->progress != NULL;
    uf_status status = UF_OK;
    uint64_t at = from;
    for (; at < to && status == UF_OK && !player->is_stopped; at++) {
        uint32_t op = ops[at];
        uf_op_kind kind = uf__op_kind(op);
        switch (kind) {
        case UF_OP_NONE:
            break;
        case UF_OP_ALLOC:
            status = play_alloc(player, at, uf__op_id(op));
            break;
        case UF_OP_FREE:
        case UF_OP_FREE_LATER:
            status = play_free(player, kind, uf__op_id(op));
            break;
        case UF_OP_COMPLETE:
        case UF_OP_COMPLETE_AFTER:
            status = play_completion(player, kind, uf__op_id(op), at);
            break;
        default:
            status = play_rare(player, op);
            break;
        }
        if (__builtin_expect(is_watched, 0) && status == UF_OK) {
            player->played_count += 1;
            status = after_event(player);
        }
    }
    player->played_count += is_watched ? 0 : at - from;
    note_duration(player, from, at);
    return status;
}

/* What was live when the trace began comes first, by address. */
static uf_status play_start(uf_player *player)
{
    uf_status status = UF_OK;
    for (uint32_t i = 0; i < player->program->start_count && status == UF_OK; i++) {
        if (!player->is_stopped) {
            status = play_alloc(player, 0, player->program->start_ids[i]);
        }
    }
    return status;
}

/* Frees what a repetition left behind, so that the next one finds what this one found. */
static uf_status end_repetition(uf_player *player, const uf_steady *steady)
{
    const uf_program *program = player->program;
    uf_status status = UF_OK;
    for (uint64_t at = steady->first_event; at < steady->end_event && status == UF_OK; at++) {
        uint32_t op = program->ops[at], id = uf__op_id(op);
        if (uf__op_kind(op) != UF_OP_ALLOC || player->block_of_alloc[id] == UF_NO_BLOCK) {
            continue;
        }
        uint32_t block = player->block_of_alloc[id] & ~WAITS;
        bool is_freed = block != player->block_of_alloc[id];
        player->block_of_alloc[id] = UF_NO_BLOCK;
        if (!is_freed) {
            status = uf__core_free(&player->core, block);
        } else if (uf__core_is_waiting(&player->core, block, id)) {
            uf__core_complete(&player->core, block);
        }
    }
    return status;
}

/* splitmix64: a small generator whose sequence is the same everywhere. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* The pieces of the steady part once more, in the order given. */
static uf_status play_pieces(uf_player *player, const uf_steady *steady, const uint32_t *order)
{
    uf_status status = end_repetition(player, steady);
    for (uint32_t i = 0; i < steady->piece_count && status == UF_OK; i++) {
        status =
            play_range(player, steady->piece_firsts[order[i]], steady->piece_firsts[order[i] + 1]);
    }
    return status;
}

/* The recording up to the end of its steady part, that part again and again, and the rest. */
static uf_status play_repetitions(uf_player *player)
{
    const uf_program *program = player->program;
    const uf_replay_options *options = player->options;
    uf_steady steady;
    uf_status status = uf__steady_find(program, &steady);
    if (status != UF_OK || steady.piece_count == 0) {
        uf__steady_fini(&steady);
        return status == UF_OK ? play_range(player, 0, program->event_count) : status;
    }
    player->result->steady_first_event = steady.first_event;
    player->result->steady_end_event = steady.end_event;
    player->result->steady_piece_count = steady.piece_count;
    player->total_count += (options->repeat_count - 1) * (steady.end_event - steady.first_event);
    uint64_t random_state = options->shuffle_seed;
    uint32_t *order = malloc((steady.piece_count + 1u) * sizeof *order);
    status = order == NULL ? UF_ERROR_HOST_MEMORY : play_range(player, 0, steady.end_event);
    for (uint32_t r = 1; r < options->repeat_count && status == UF_OK && !player->is_stopped; r++) {
        player->repetition = r;
        for (uint32_t i = 0; i < steady.piece_count; i++) {
            uint32_t j =
                options->is_shuffled ? (uint32_t)(next_random(&random_state) % (i + 1)) : i;
            order[i] = order[j];
            order[j] = i;
        }
        status = play_pieces(player, &steady, order);
    }
    if (status == UF_OK && !player->is_stopped) {
        status = play_range(player, steady.end_event, program->event_count);
    }
    free(order);
    uf__steady_fini(&steady);
    return status;
}

static uf_status play_all(uf_player *player)
{
    const uf_replay_options *options = player->options;
    uint64_t end = player->program->event_count, from = options->from_event;
    uint64_t to = options->to_event != 0 && options->to_event < end ? options->to_event : end;
    player->total_count = to;
    uf_status status = play_start(player);
    if (status == UF_OK && options->repeat_count > 1) {
        return play_repetitions(player);
    }
    if (status == UF_OK && from > 0) {
        uf_replay_options before = *options; /* failures before the range are not its own */
        before.on_oom = UF_ON_OOM_SKIP;
        player->options = &before;
        status = play_range(player, 0, from < to ? from : to);
        player->options = options;
        player->result->has_oom = false;
        player->result->first_oom = (uf_oom){0};
        uf__counters_reset_peak(&player->core.counters);
        uf__counters_reset_accumulated(&player->core.counters);
        player->sim.call_count = player->sim.sync_count = 0;
        player->sim.call_ns = player->sim.first_ns = 0;
        player->emptied_ns = player->longest_stall_ns = player->recorded_us = 0;
        if (player->core.paging != NULL) {
            player->core.paging->peak_frozen_bytes = uf__paging_frozen_bytes(&player->core);
        }
        player->played_count = player->alloc_count = 0;
        player->result->recorded_oom_count = 0;
        player->waits.first = player->waits.count;
    }
    return status == UF_OK ? play_range(player, from, to) : status;
}

/* Frees that the recording does not complete: they took at least to its last event. */
static void end_waits(uf_player *player)
{
    const uf_program *program = player->program;
    uint64_t end = player->options->to_event;
    end = end == 0 || end > program->event_count ? program->event_count : end;
    bool is_asked = uf__waits_has_any(&player->waits) && player->waits.count > 0 && end > 0;
    for (uint32_t id = 0; id < program->alloc_count && is_asked && !player->is_stopped; id++) {
        uint32_t block = player->block_of_alloc[id];
        if (block != UF_NO_BLOCK && (block & WAITS) != 0 &&
            !uf__core_is_waiting(&player->core, block & ~WAITS, id)) {
            uf__waits_done(&player->waits, id, end, program->events[end - 1].time_us);
        }
    }
    uf__waits_sum(&player->waits, player->result);
}

static void fill_result(uf_player *player)
{
    uf_replay_result *result = player->result;
    const uf_core *core = &player->core;
    uf__core_stats(core, &result->stats);
    result->event_count = player->played_count;
    result->alloc_count = player->alloc_count;
    result->peak_active_bytes = (uint64_t)result->stats.active_bytes.all.peak;
    result->peak_allocated_bytes = (uint64_t)result->stats.allocated_bytes.all.peak;
    result->peak_reserved_bytes = (uint64_t)result->stats.reserved_bytes.all.peak;
    result->end_reserved_bytes = core->total_bytes;
    result->end_active_bytes = (uint64_t)result->stats.active_bytes.all.current;
    result->oom_count = (uint64_t)result->stats.num_ooms;
    result->retry_count = (uint64_t)result->stats.num_alloc_retries;
    result->device_calls = player->sim.call_count;
    result->device_syncs = player->sim.sync_count;
    result->device_ms = (double)player->sim.call_ns / 1e6;
    end_waits(player);
    result->device_first_ms = (double)player->sim.first_ns / 1e6;
    result->device_emptied_ms = (double)player->emptied_ns / 1e6;
    result->longest_stall_ms = (double)player->longest_stall_ns / 1e6;
    result->recorded_ms = player->recorded_us < 0 ? -1.0 : (double)player->recorded_us / 1e3;
    result->peak_frozen_bytes = core->paging == NULL ? 0 : core->paging->peak_frozen_bytes;
    uf_error unused;
    (void)!uf_fragmentation_compute(&result->stats, uf__largest_request_bytes(core), 0.0,
                                    &result->fragmentation, &unused);
}

static uf_status player_init(uf_player *player, const uf_conf *conf)
{
    const uf_program *program = player->program;
    const uf_replay_options *options = player->options;
    uint64_t card_bytes = options->card_bytes;
    uint64_t total_bytes = options->total_bytes != 0 ? options->total_bytes
                           : card_bytes != 0         ? card_bytes
                                                     : program->options.total_bytes;
    uf__sim_init(&player->sim, total_bytes, card_bytes != 0 ? card_bytes : total_bytes);
    player->sim.is_caught_up = options->policy == UF_POLICY_UNFRAG && options->device_lag_us == 0;
    player->sim.costs = uf__cost_table(options->cost_model);
    player->sim.address_hook = choose_addr;
    player->sim.release_hook = forget_addr;
    player->sim.address_context = player;
    uf_core_config config = {.device = &player->sim.device,
                             .conf = conf,
                             .is_paged = options->policy == UF_POLICY_UNFRAG,
                             .granule_bytes = UINT64_C(2) << 20,
                             .large_page_bytes = UINT64_C(32) << 20,
                             .device_total_bytes = total_bytes,
                             .limit_bytes = options->limit_bytes};
    uf_status status = uf__core_init(&player->core, &config);
    if (status != UF_OK) {
        return status;
    }
    player->block_of_alloc = calloc(program->alloc_count + 1u, sizeof *player->block_of_alloc);
    player->stream_of = calloc(program->stream_count + 1u, sizeof *player->stream_of);
    player->pool_of = calloc(program->pool_count + 1u, sizeof *player->pool_of);
    if (player->block_of_alloc == NULL || player->stream_of == NULL || player->pool_of == NULL) {
        return UF_ERROR_HOST_MEMORY;
    }
    for (uint32_t i = 0; i < program->stream_count && status == UF_OK; i++) {
        status = uf__core_stream(&player->core, program->streams[i], &player->stream_of[i]);
    }
    return status;
}

static int64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static uf_status explain(const uf_player *player, uf_status status, uf_error *error)
{
    switch (status) {
    case UF_OK:
    case UF_ERROR_INTERNAL: /* the checker has said it */
        return status;
    case UF_ERROR_HAZARD:
        return uf__error_set(error, status,
                             "these settings make PyTorch release a cached block that is part of a "
                             "segment in use (after %" PRIu64 " events); what follows is undefined "
                             "there, so it is not imitated",
                             player->played_count);
    default:
        return uf__error_set(error, status, "%s (after %" PRIu64 " events)", uf_status_text(status),
                             player->played_count);
    }
}

/* The settings that count: of the unfrag policy's the rounding alone. */
static uf_status choose_conf(const uf_program *program, const uf_replay_options *options,
                             uf_conf *conf, uf_error *error)
{
    const uf_conf_reading reading = {.is_at_import = true};
    bool is_paged = options->policy == UF_POLICY_UNFRAG;
    uf_conf given;
    uf__conf_init(conf);
    if (options->conf == NULL) {
        *conf = is_paged ? *conf : program->conf;
        return UF_OK;
    }
    uf__conf_init(&given);
    uf_status status = uf__conf_read(&given, options->conf, &reading, NULL, error);
    if (status != UF_OK || !is_paged) {
        *conf = given;
    } else {
        memcpy(conf->roundup_power2_divisions, given.roundup_power2_divisions,
               sizeof conf->roundup_power2_divisions);
    }
    return status;
}

uf_status uf_replay_run(const uf_program *program, const uf_replay_options *options,
                        uf_replay_result *result, uf_error *error)
{
    const uf_replay_options defaults = {.struct_size_bytes = sizeof defaults};
    options = options == NULL ? &defaults : options;
    if (options->from_event > program->event_count) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "the range starts at event %" PRIu64 ", the trace has %" PRIu64,
                             options->from_event, program->event_count);
    }
    if (options->total_bytes > MAX_DEVICE_BYTES || options->card_bytes > MAX_DEVICE_BYTES) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "a device of more than 1 PiB is beyond what a replay can address");
    }
    uf_conf conf;
    uf_status status = choose_conf(program, options, &conf, error);
    if (status != UF_OK) {
        return status;
    }
    uf_replay_result filled = {.steady_first_event = UF_EVENT_NONE};
    uf_player player = {.program = program, .options = options, .result = &filled, .error = error};
    status = player_init(&player, &conf);
    int64_t start_ns = now_ns();
    if (status == UF_OK) {
        status = play_all(&player);
    }
    filled.elapsed_ns = now_ns() - start_ns;
    if (status == UF_OK) {
        uint64_t to = options->to_event == 0 ? program->event_count : options->to_event;
        fill_result(&player);
        status = uf__program_peak_live(program, options->from_event, to, &filled.peak_live_bytes);
        if (status == UF_OK && options->groups != NULL) {
            status = uf__groups_measure(program, &player.core, options->groups,
                                        options->group_capacity, &filled.group_count);
        }
    }
    if (status == UF_OK) {
        *result = filled;
    }
    uf__core_fini(&player.core);
    uf__ranges_fini(&player.held);
    uf__waits_fini(&player.waits);
    free(player.block_of_alloc);
    free(player.stream_of);
    free(player.pool_of);
    free(player.after);
    return explain(&player, status, error);
}
