/* SPDX-License-Identifier: MIT
 *
 * Choosing what to assume where events are silent: which segments belong to private pools, and
 * whether a flush was empty_cache or the request's own. Starts from the plainest reading; at the
 * first difference it tries the few changes that could explain it, keeps the one that gets
 * furthest, and goes on from there.
 *
 * A change matters from the event it speaks of, so a trial need not begin with the recording. The
 * run under the assumptions made so far leaves marks, copies of itself between two groups of
 * events, and a trial goes on from the last mark before its change. Marks are thinned out as the
 * run moves away from them:
 *
 *   events  |------------------------------------------------------------>
 *   marks   |               |        |     |   |  | | |||* first difference
 *                                                  |  ^ the suspect's event
 *                                                  trial ------> */
#include "replay/infer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "replay/follow.h"
#include "replay/rebuild.h"

enum {
    MAX_POOL_CHOICES = 6,
    MAX_CHANGES = 48,
    MAX_MARKS = 32,
    MIN_MARKS = 4,
    MIN_MARK_EVENTS = 256, /* between two marks */
    BLOCKS_PER_EVENT = 4   /* copying so many blocks takes as long as following an event */
};

/* All marks together take about as much memory at most, and that much more with MIN_MARKS. */
static const size_t MARK_BYTES = (size_t)64 << 20;

/* At most this many events are followed in all, copies made counted in, and four times the
 * recording; beyond it the best result so far stands. */
static const uint64_t EVENT_BUDGET = 60u * 1000u * 1000u;

typedef struct uf_inference {
    uf_program *program;
    uf_assumptions assumptions;
    uint64_t creator_count;
    uint64_t budget;
    uf_status status;            /* why a run could not be made */
    uint64_t *creators;          /* those that events made, in order: their events */
    size_t acquisition_count;    /* how many */
    uf_follow *best;             /* the run that got furthest; a core keeps pointers into it */
    uf_follow *marks[MAX_MARKS]; /* states of that run, by event */
    uint32_t mark_count;
    uint32_t spare_label;            /* a pool that nothing uses yet, 0 = none */
    uint16_t old_label, *old_labels; /* what the last change replaced; a split's by creators */
} uf_inference;

typedef enum uf_change_kind {
    UF_CHANGE_READING, /* of the group that starts at `at` */
    UF_CHANGE_LABEL,   /* the range made by creator `at` moves to another pool */
    UF_CHANGE_SPLIT    /* so do all of its pool that were guessed, made from `at` to `to` */
} uf_change_kind;

typedef struct uf_change {
    uf_change_kind kind;
    uint64_t at, to;
    uint16_t label;
    uf_reading reading;
} uf_change;

/* Whether a run got further than another: more events; or as many but with the last flush done,
 * where the other's gives back too much; or as many and then a flush that gives fewer segments back
 * out of place. */
static bool is_further(const uf_follow *run, const uf_follow *than)
{
    if (!run->has_failed || !than->has_failed) {
        return than->has_failed;
    }
    bool is_end = run->difference.event == UF_EVENT_NONE;
    bool is_than_end = than->difference.event == UF_EVENT_NONE;
    if (is_end || is_than_end) {
        return is_end && !is_than_end;
    }
    if (run->cursor != than->cursor) {
        return run->cursor > than->cursor;
    }
    if (run->settled_count != than->settled_count) {
        return run->settled_count > than->settled_count;
    }
    return run->stray_release_count != 0 && run->stray_release_count < than->stray_release_count;
}

static bool push_reading(uf_assumptions *assumptions, uint64_t event, uf_reading reading)
{
    if (assumptions->reading_count == assumptions->reading_capacity) {
        size_t capacity =
            assumptions->reading_capacity == 0 ? 8 : assumptions->reading_capacity * 2;
        uf_forced_reading *grown = realloc(assumptions->readings, capacity * sizeof *grown);
        if (grown == NULL) {
            return false;
        }
        assumptions->readings = grown;
        assumptions->reading_capacity = capacity;
    }
    assumptions->readings[assumptions->reading_count++] = (uf_forced_reading){event, reading};
    return true;
}

static bool is_forced(const uf_assumptions *assumptions, uint64_t event)
{
    for (size_t i = 0; i < assumptions->reading_count; i++) {
        if (assumptions->readings[i].event == event) {
            return true;
        }
    }
    return false;
}

/* Binds the labels of what is still there at the end: snapshots name its pool. */
static bool bind_final(uf_inference *inference, const uf_ranges *ranges)
{
    uf_program *program = inference->program;
    const uf_trace *trace = program->trace;
    for (uint32_t s = 0; s < trace->segment_count; s++) {
        const uf_trace_segment *segment = &trace->segments[s];
        uint32_t label = 0;
        if (segment->device != program->device || !segment->has_pool_id) {
            continue;
        }
        if (!uf__program_pool_find(program, segment->pool_id, &label)) {
            return false;
        }
        for (size_t r = uf__ranges_position(ranges, segment->addr);
             r < ranges->count && ranges->items[r].addr < segment->addr + segment->total_bytes;
             r++) {
            uint64_t creator = ranges->items[r].creator;
            uf__label_set(&inference->assumptions, creator, (uint16_t)label);
            inference->assumptions.is_bound[creator] = 1;
            inference->assumptions.has_private |= label != 0;
        }
    }
    return true;
}

static bool is_acquisition(const uf_event *event)
{
    return event->action == UF_ACTION_SEGMENT_ALLOC || event->action == UF_ACTION_SEGMENT_MAP;
}

static bool list_creators(uf_inference *inference)
{
    const uf_program *program = inference->program;
    size_t count = 0;
    for (uint64_t i = 0; i < program->event_count; i++) {
        count += is_acquisition(&program->events[i]);
    }
    inference->creators = malloc((count + 1) * sizeof *inference->creators);
    inference->old_labels = malloc((count + 1) * sizeof *inference->old_labels);
    if (inference->creators == NULL || inference->old_labels == NULL) {
        return false;
    }
    for (uint64_t i = 0; i < program->event_count; i++) {
        if (is_acquisition(&program->events[i])) {
            inference->creators[inference->acquisition_count++] = i;
        }
    }
    return true;
}

static bool assume_plainly(uf_inference *inference)
{
    uf_program *program = inference->program;
    uint64_t start_count = program->start == NULL ? 0 : program->start->segment_count;
    inference->creator_count = program->event_count + start_count;
    uf_assumptions *assumptions = &inference->assumptions;
    assumptions->labels = calloc(inference->creator_count + 1, sizeof *assumptions->labels);
    assumptions->is_bound = calloc(inference->creator_count + 1, 1);
    if (assumptions->labels == NULL || assumptions->is_bound == NULL || !list_creators(inference)) {
        return false;
    }
    uf_ranges ranges = {0};
    uint64_t unused_bytes;
    bool is_good = true;
    for (uint64_t i = 0; i < start_count && is_good; i++) {
        const uf_start_segment *segment = &program->start->segments[i];
        uf__label_set(assumptions, program->event_count + i, (uint16_t)segment->label);
        assumptions->has_private |= segment->label != 0;
        is_good = uf__ranges_add(&ranges, segment->addr, segment->end - segment->addr,
                                 program->event_count + i);
    }
    for (uint64_t i = 0; i < program->event_count && is_good; i++) {
        const uf_event *event = &program->events[i];
        if (is_acquisition(event)) {
            is_good = uf__ranges_add(&ranges, event->addr, event->size_bytes, i);
            const uf_site *site = &program->trace->sites[event->site];
            uint32_t label = 0;
            if (is_good && site->has_pool_id) {
                is_good = uf__program_pool_find(program, site->pool_id, &label);
                uf__label_set(assumptions, i, (uint16_t)label);
                assumptions->is_bound[i] = 1;
                assumptions->has_private |= label != 0;
            }
        } else if (event->action == UF_ACTION_SEGMENT_FREE ||
                   event->action == UF_ACTION_SEGMENT_UNMAP) {
            is_good = uf__ranges_remove(&ranges, event->addr, event->size_bytes, &unused_bytes);
        }
    }
    is_good = is_good && bind_final(inference, &ranges);
    uf__ranges_fini(&ranges);
    return is_good;
}

/* The pools a segment could move to, likeliest first: the one in use last if nothing was flushed
 * since, a new one, then others by how lately they were used. */
static size_t list_pools(uf_inference *inference, uint16_t *labels)
{
    const uf_follow *follow = inference->best;
    uint32_t count = inference->program->pool_count;
    size_t listed = 0;
    uint64_t before = UINT64_MAX;
    for (size_t round = 0; round + 2 < MAX_POOL_CHOICES; round++) {
        uint32_t latest = 0;
        for (uint32_t label = 1; label < count; label++) {
            uint64_t last = follow->label_last_event[label];
            if (last != 0 && last < before &&
                (latest == 0 || last > follow->label_last_event[latest])) {
                latest = label;
            }
        }
        if (latest == 0) {
            break;
        }
        before = follow->label_last_event[latest];
        labels[listed++] = (uint16_t)latest;
    }
    if (inference->spare_label == 0 &&
        !uf__program_pool(inference->program, NULL, &inference->spare_label)) {
        return listed;
    }
    bool is_open = listed > 0 && (follow->last_flush_event == UF_EVENT_NONE ||
                                  follow->label_last_event[labels[0]] > follow->last_flush_event);
    size_t position = is_open ? 1 : 0;
    memmove(&labels[position + 1], &labels[position], (listed - position) * sizeof *labels);
    labels[position] = (uint16_t)inference->spare_label;
    return listed + 1;
}

static void add_label_changes(uf_inference *inference, uint64_t creator, uf_change *changes,
                              size_t *count)
{
    const uf_assumptions *assumptions = &inference->assumptions;
    if (creator == UF_EVENT_NONE || creator >= inference->creator_count ||
        assumptions->is_bound[creator]) {
        return;
    }
    uint16_t labels[MAX_POOL_CHOICES];
    size_t label_count = list_pools(inference, labels);
    for (size_t i = 0; i < label_count; i++) {
        if (labels[i] != uf__label(assumptions, creator)) {
            changes[(*count)++] =
                (uf_change){.kind = UF_CHANGE_LABEL, .at = creator, .label = labels[i]};
        }
    }
    /* A recorded pool that nothing was seen to use yet. */
    for (uint32_t label = 1; label < inference->program->pool_count; label++) {
        if (inference->program->pools[label].is_recorded &&
            inference->best->label_last_event[label] == 0 &&
            uf__label(assumptions, creator) != label && *count < MAX_CHANGES) {
            changes[(*count)++] =
                (uf_change){.kind = UF_CHANGE_LABEL, .at = creator, .label = (uint16_t)label};
        }
    }
}

/* Two captures taken for one: the guessed members of a pool move to a new one together, all of
 * them, or those made since the last flush. */
static void add_splits(uf_inference *inference, uint64_t creator, uf_change *changes, size_t *count)
{
    const uf_assumptions *assumptions = &inference->assumptions;
    const uf_follow *follow = inference->best;
    if (creator == UF_EVENT_NONE || creator >= inference->creator_count) {
        return;
    }
    uint16_t label = uf__label(assumptions, creator);
    if (label == 0 || label == UF_LABEL_UNKNOWN || inference->spare_label == 0) {
        return;
    }
    uint64_t first = UF_EVENT_NONE, recent = UF_EVENT_NONE;
    for (size_t i = 0; i < inference->acquisition_count && recent == UF_EVENT_NONE; i++) {
        uint64_t at = inference->creators[i];
        bool is_guess = uf__label(assumptions, at) == label && !assumptions->is_bound[at];
        bool is_recent = follow->last_flush_event != UF_EVENT_NONE && at > follow->last_flush_event;
        first = is_guess && first == UF_EVENT_NONE ? at : first;
        recent = is_guess && is_recent ? at : recent;
    }
    const uint64_t starts[2] = {first, recent};
    for (size_t i = 0; i < 2 && *count < MAX_CHANGES; i++) {
        if (starts[i] != UF_EVENT_NONE && (i == 0 || recent != first)) {
            changes[(*count)++] = (uf_change){.kind = UF_CHANGE_SPLIT,
                                              .at = starts[i],
                                              .to = follow->cursor,
                                              .label = (uint16_t)inference->spare_label};
        }
    }
}

/* What could be assumed otherwise, likelier changes first: *likely_count of them. */
static size_t list_changes(uf_inference *inference, uf_change *changes, size_t *likely_count)
{
    const uf_follow *follow = inference->best;
    const uf_program *program = inference->program;
    size_t count = 0;
    uint64_t group = follow->group_first;
    if (!is_forced(&inference->assumptions, group)) {
        if (follow->has_lead) {
            changes[count++] = (uf_change){.at = group,
                                           .reading = follow->lead_reading == UF_READING_IN_CALL
                                                          ? UF_READING_EXPLICIT
                                                          : UF_READING_IN_CALL};
        }
        if (follow->cursor < program->event_count &&
            program->events[follow->cursor].action == UF_ACTION_OOM) {
            changes[count++] = (uf_change){.at = group, .reading = UF_READING_REDIRECTED};
        }
    }
    /* Where a flush differs, what it gave back wrongly is likelier wrong than what it should have.
     */
    bool is_flush = follow->stray_release_count != 0;
    uint64_t first = is_flush ? follow->suspect_model : follow->suspect_recorded;
    uint64_t second = is_flush ? follow->suspect_recorded : follow->suspect_model;
    *likely_count = count;
    add_label_changes(inference, first, changes, &count);
    *likely_count = is_flush ? count : *likely_count;
    if (second != first) {
        add_label_changes(inference, second, changes, &count);
    }
    *likely_count = is_flush ? *likely_count : count;
    if (follow->suspect_released != first && follow->suspect_released != second) {
        add_label_changes(inference, follow->suspect_released, changes, &count);
    }
    add_splits(inference, first, changes, &count);
    add_splits(inference, second, changes, &count);
    return count;
}

/* Makes a change. Labels are kept aside for undo; readings are a stack. */
static bool apply(uf_inference *inference, const uf_change *change)
{
    uf_assumptions *assumptions = &inference->assumptions;
    if (change->kind == UF_CHANGE_READING) {
        return push_reading(assumptions, change->at, change->reading);
    }
    assumptions->has_private = true;
    if (change->kind == UF_CHANGE_LABEL) {
        inference->old_label = uf__label(assumptions, change->at);
        uf__label_set(assumptions, change->at, change->label);
        return true;
    }
    uint16_t from = uf__label(assumptions, change->at);
    for (size_t i = 0; i < inference->acquisition_count; i++) {
        uint64_t at = inference->creators[i];
        inference->old_labels[i] = uf__label(assumptions, at);
        if (at >= change->at && at <= change->to && inference->old_labels[i] == from &&
            !assumptions->is_bound[at]) {
            uf__label_set(assumptions, at, change->label);
        }
    }
    return true;
}

static void undo(uf_inference *inference, const uf_change *change)
{
    uf_assumptions *assumptions = &inference->assumptions;
    if (change->kind == UF_CHANGE_READING) {
        assumptions->reading_count--;
        return;
    }
    if (change->kind == UF_CHANGE_LABEL) {
        uf__label_set(assumptions, change->at, inference->old_label);
        return;
    }
    for (size_t i = 0; i < inference->acquisition_count; i++) {
        uf__label_set(assumptions, inference->creators[i], inference->old_labels[i]);
    }
}

static void follow_destroy(uf_follow *follow)
{
    if (follow != NULL) {
        uf__follow_fini(follow);
        free(follow);
    }
}

static void spend(uf_inference *inference, uint64_t event_count)
{
    inference->budget -= event_count < inference->budget ? event_count : inference->budget;
}

/* A copy of a run; NULL if the host has no memory left. */
static uf_follow *copy_of(uf_inference *inference, const uf_follow *follow)
{
    uf_follow *copy = malloc(sizeof *copy);
    if (copy != NULL && !uf__follow_copy(copy, follow)) {
        follow_destroy(copy);
        copy = NULL;
    }
    spend(inference, follow->core.blocks.count / BLOCKS_PER_EVENT);
    return copy;
}

/* A run that stands at the last mark not after an event, else at the start. NULL if the host has no
 * memory left. */
static uf_follow *start_before(uf_inference *inference, uint64_t event)
{
    uint32_t mark = inference->mark_count;
    while (mark > 0 && inference->marks[mark - 1]->cursor > event) {
        mark--;
    }
    if (mark > 0) {
        return copy_of(inference, inference->marks[mark - 1]);
    }
    uf_follow *follow = malloc(sizeof *follow);
    if (follow == NULL) {
        return NULL;
    }
    uf_status status = uf__follow_begin(follow, inference->program, &inference->assumptions);
    if (status != UF_OK) {
        follow_destroy(follow);
        inference->status = status;
        return NULL;
    }
    return follow;
}

static bool go(uf_inference *inference, uf_follow *follow, uint64_t until)
{
    uint64_t from = follow->cursor;
    uf_status status = uf__follow_go(follow, until);
    inference->program->followed_count += follow->cursor - from;
    spend(inference, follow->cursor - from + 1);
    inference->status = status != UF_OK ? status : inference->status;
    return status == UF_OK;
}

/* One run under the present assumptions, which changed from an event on; NULL if the host has no
 * memory left. */
static uf_follow *run_from(uf_inference *inference, uint64_t event)
{
    uf_follow *follow = start_before(inference, event);
    if (follow != NULL && !go(inference, follow, UINT64_MAX)) {
        follow_destroy(follow);
        return NULL;
    }
    return follow;
}

/* The event from which on a change matters: 0 if it speaks of the start state. */
static uint64_t first_event(const uf_inference *inference, const uf_change *change)
{
    return change->at < inference->program->event_count ? change->at : 0;
}

static void drop_marks(uf_inference *inference, uint32_t from)
{
    while (inference->mark_count > from) {
        follow_destroy(inference->marks[--inference->mark_count]);
    }
}

static void drop_marks_after(uf_inference *inference, uint64_t event)
{
    uint32_t kept = inference->mark_count;
    while (kept > 0 && inference->marks[kept - 1]->cursor > event) {
        kept--;
    }
    drop_marks(inference, kept);
}

/* Removes the mark whose loss lengthens the way to the run least, in proportion. */
static void thin_marks(uf_inference *inference, uint64_t cursor)
{
    uint32_t chosen = 1;
    double least = 0.0;
    for (uint32_t i = 1; i + 1 < inference->mark_count; i++) {
        uint64_t gap = inference->marks[i + 1]->cursor - inference->marks[i - 1]->cursor;
        double loss = (double)gap / (double)(cursor - inference->marks[i]->cursor + 1);
        if (i == 1 || loss < least) {
            least = loss;
            chosen = i;
        }
    }
    follow_destroy(inference->marks[chosen]);
    inference->mark_count--;
    memmove(&inference->marks[chosen], &inference->marks[chosen + 1],
            (inference->mark_count - chosen) * sizeof(uf_follow *));
}

static uint32_t mark_limit(const uf_follow *follow)
{
    size_t bytes =
        follow->core.blocks.count * sizeof(uf_block) + follow->core.shelf_count * sizeof(uf_shelf);
    size_t count = MARK_BYTES / bytes;
    return count > MAX_MARKS ? MAX_MARKS : count < MIN_MARKS ? MIN_MARKS : (uint32_t)count;
}

static bool leave_mark(uf_inference *inference, const uf_follow *follow)
{
    while (inference->mark_count >= mark_limit(follow)) {
        thin_marks(inference, follow->cursor);
    }
    uf_follow *mark = copy_of(inference, follow);
    if (mark != NULL) {
        inference->marks[inference->mark_count++] = mark;
    }
    return mark != NULL;
}

/* The best run once more, under assumptions that changed from an event on, leaving marks. */
static bool advance(uf_inference *inference, uint64_t event)
{
    drop_marks_after(inference, event);
    follow_destroy(inference->best);
    uf_follow *follow = inference->best = start_before(inference, event);
    bool is_good = follow != NULL;
    while (is_good && !follow->has_failed && follow->cursor < inference->program->event_count) {
        /* None at the very start: the start state depends on assumptions, too. */
        uint64_t last_mark =
            inference->mark_count == 0 ? 0 : inference->marks[inference->mark_count - 1]->cursor;
        if (follow->cursor > last_mark) {
            is_good = leave_mark(inference, follow);
        }
        uint64_t step = follow->core.blocks.count / BLOCKS_PER_EVENT;
        step = step < MIN_MARK_EVENTS ? MIN_MARK_EVENTS : step;
        is_good = is_good && go(inference, follow, follow->cursor + step);
    }
    return is_good;
}

/* Tries each change; keeps the best if it gets further. */
static bool improve(uf_inference *inference, bool *is_better)
{
    uf_change changes[MAX_CHANGES];
    size_t likely_count, count = list_changes(inference, changes, &likely_count);
    size_t best_index = count;
    uf_follow *best = NULL;
    for (size_t i = 0; i < count && inference->budget > 0; i++) {
        if (i >= likely_count && best != NULL) {
            break;
        }
        bool is_applied = apply(inference, &changes[i]);
        uf_follow *follow =
            is_applied ? run_from(inference, first_event(inference, &changes[i])) : NULL;
        if (is_applied) {
            undo(inference, &changes[i]);
        }
        if (follow == NULL) {
            follow_destroy(best);
            return false;
        }
        if (is_further(follow, best != NULL ? best : inference->best)) {
            follow_destroy(best);
            best_index = i;
            best = follow;
        } else {
            follow_destroy(follow);
        }
    }
    *is_better = best != NULL;
    follow_destroy(best);
    if (*is_better) {
        const uf_change *chosen = &changes[best_index];
        if (!apply(inference, chosen)) {
            return false;
        }
        inference->program->report.relabel_count += chosen->kind != UF_CHANGE_READING;
        if (chosen->kind != UF_CHANGE_READING && chosen->label == inference->spare_label) {
            inference->spare_label = 0;
        }
        return advance(inference, first_event(inference, chosen));
    }
    return true;
}

static int64_t retries_off(const uf_inference *inference, const uf_follow *follow)
{
    int64_t off =
        follow->core.counters.num_alloc_retries - inference->program->options.num_alloc_retries;
    return off < 0 ? -off : off;
}

/* Where events leave open who flushed, the recorded number of retries decides: reads one group
 * after the other the other way and keeps what brings the number nearer. */
static bool settle_retries(uf_inference *inference)
{
    if (inference->program->options.num_alloc_retries < 0 || inference->best->has_failed) {
        return true;
    }
    bool is_more = inference->best->core.counters.num_alloc_retries <
                   inference->program->options.num_alloc_retries;
    size_t count =
        is_more ? inference->best->open_explicit_count : inference->best->open_in_call_count;
    uint64_t *open = malloc((count + 1) * sizeof *open);
    if (open == NULL) {
        return false;
    }
    if (count > 0) {
        memcpy(open, is_more ? inference->best->open_explicit : inference->best->open_in_call,
               count * sizeof *open);
    }
    bool is_good = true;
    for (size_t i = 0; i < count && is_good && inference->budget > 0 &&
                       retries_off(inference, inference->best) > 0;
         i++) {
        if (is_forced(&inference->assumptions, open[i])) {
            continue;
        }
        uf_change change = {.at = open[i],
                            .reading = is_more ? UF_READING_IN_CALL : UF_READING_EXPLICIT};
        bool is_applied = apply(inference, &change);
        uf_follow *follow = is_applied ? run_from(inference, open[i]) : NULL;
        is_good = follow != NULL;
        if (is_good && !follow->has_failed &&
            retries_off(inference, follow) < retries_off(inference, inference->best)) {
            follow_destroy(inference->best);
            inference->best = follow;
            drop_marks_after(inference, open[i]);
        } else {
            if (is_applied) {
                undo(inference, &change);
            }
            follow_destroy(follow);
        }
    }
    free(open);
    return is_good;
}

static void report_best(uf_inference *inference)
{
    uf_program *program = inference->program;
    const uf_follow *best = inference->best;
    uf_program_report *report = &program->report;
    report->is_equal = !best->has_failed;
    report->events_equal = best->cursor;
    report->difference = best->difference;
    report->has_given_up = best->has_failed && inference->budget == 0;
    if (program->start != NULL && best->has_failed) {
        report->unexplained_events = program->event_count - best->cursor;
    }
    report->empty_cache_count = best->empty_cache_count;
    report->device_calls = best->sim.call_count;
    report->device_syncs = best->sim.sync_count;
    report->device_ms = (double)best->sim.call_ns / 1e6;
    uf__core_stats(&best->core, &report->stats);
    for (uint32_t label = 1; label < program->pool_count; label++) {
        report->pool_count +=
            best->label_last_event[label] != 0 || program->pools[label].is_recorded;
    }
}

uf_status uf__infer(uf_program *program)
{
    uf_inference inference = {.program = program,
                              .budget = EVENT_BUDGET + 4 * program->event_count,
                              .status = UF_ERROR_HOST_MEMORY};
    bool is_good = assume_plainly(&inference);
    inference.best = is_good ? run_from(&inference, 0) : NULL;
    is_good = inference.best != NULL;
    bool is_better = is_good && inference.best->has_failed;
    is_good = is_good && (!is_better || advance(&inference, 0));
    while (is_good && is_better && inference.best->has_failed && inference.budget > 0) {
        is_good = improve(&inference, &is_better);
    }
    is_good = is_good && settle_retries(&inference);
    drop_marks(&inference, 0);
    if (is_good && program->followed_count > inference.best->cursor) {
        /* Trials wrote into the program; the chosen run writes last. */
        follow_destroy(inference.best);
        inference.best = run_from(&inference, 0);
        is_good = inference.best != NULL;
    }
    if (is_good) {
        report_best(&inference);
    }
    drop_marks(&inference, 0);
    follow_destroy(inference.best);
    free(inference.assumptions.labels);
    free(inference.assumptions.is_bound);
    free(inference.creators);
    free(inference.old_labels);
    free(inference.assumptions.readings);
    return is_good ? UF_OK : inference.status;
}
