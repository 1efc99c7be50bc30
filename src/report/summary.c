/* SPDX-License-Identifier: MIT
 *
 * The sentences. */
#include "report/summary.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"

/* Less than this share of the peak lost is not worth a setting. */
#define WORTH_PERCENT 3.0

typedef char size_text[UF_SIZE_TEXT_CAPACITY];

#define SIZE(buffer, bytes) uf__size_format(buffer, sizeof(buffer), bytes)

/* A count in groups of three digits. */
typedef char count_text[32];

static const char *grouped(count_text buffer, uint64_t count)
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRIu64, count), at = 0;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0) {
            buffer[at++] = ' ';
        }
        buffer[at++] = digits[i];
    }
    buffer[at] = '\0';
    return buffer;
}

static UF_PRINTF(2, 3) void point(uf_summary *summary, const char *format, ...)
{
    if (summary->point_count < UF_SUMMARY_LINES) {
        va_list list;
        va_start(list, format);
        vsnprintf(summary->points[summary->point_count++], UF_SUMMARY_TEXT, format, list);
        va_end(list);
    }
}

static UF_PRINTF(2, 3) void advise(uf_summary *summary, const char *format, ...)
{
    if (summary->advice_count < UF_SUMMARY_LINES) {
        va_list list;
        va_start(list, format);
        vsnprintf(summary->advice[summary->advice_count++], UF_SUMMARY_TEXT, format, list);
        va_end(list);
    }
}

static double percent_of(uint64_t part, uint64_t whole)
{
    return whole == 0 ? 0.0 : (double)part / (double)whole * 100.0;
}

static void say_headline(const uf_summary_request *request, uf_summary *summary)
{
    const uf_history *history = request->history;
    uint64_t live = history->peaks[UF_LEVEL_LIVE].bytes;
    uint64_t reserved = history->peaks[UF_LEVEL_RESERVED].bytes;
    uint64_t oom_count = request->marks->counts[UF_MARK_OOM];
    size_text live_text, reserved_text, lost_text;
    SIZE(live_text, live);
    SIZE(reserved_text, reserved);
    SIZE(lost_text, summary->lost_bytes);
    double percent = percent_of(summary->lost_bytes, live);
    if (history->program == NULL) {
        uint64_t active = history->end_levels[UF_LEVEL_ACTIVE];
        SIZE(live_text, active);
        SIZE(lost_text, reserved - (active < reserved ? active : reserved));
        snprintf(summary->headline, UF_SUMMARY_TEXT,
                 "When the snapshot was taken, %s were reserved: %s in use, %s cached.",
                 reserved_text, live_text, lost_text);
    } else if (oom_count > 0) {
        snprintf(summary->headline, UF_SUMMARY_TEXT,
                 "%" PRIu64 " request%s failed: out of memory. The program held at most %s at "
                 "once, and %s were reserved for it.",
                 oom_count, oom_count == 1 ? "" : "s", live_text, reserved_text);
    } else {
        snprintf(summary->headline, UF_SUMMARY_TEXT,
                 "No request failed. The program held at most %s at once; %s were reserved for it, "
                 "%s (%.1f %%) more than it needed.",
                 live_text, reserved_text, lost_text, percent);
    }
}

/* Where the cached bytes lie, most first. */
static void say_cached(const uf_moment *moment, const char *when, uf_summary *summary)
{
    const uf_snapshot_state *state = &moment->state;
    size_text cached, between, whole, others, pools;
    SIZE(cached, state->cached_bytes);
    SIZE(between, state->between_bytes);
    SIZE(whole, state->whole_bytes);
    SIZE(others, state->stream_bytes);
    SIZE(pools, state->pool_bytes);
    if (state->cached_bytes == 0) {
        return;
    }
    char rest[2 * UF_SIZE_TEXT_CAPACITY + 64] = "";
    int length = 0;
    if (state->stream_bytes > 0) {
        length = snprintf(rest, sizeof rest, ", %s in segments of other streams", others);
    }
    if (state->pool_bytes > 0 && length >= 0) {
        snprintf(rest + length, sizeof rest - (size_t)length, ", %s in private pools", pools);
    }
    point(summary,
          "%s %s were cached: %s between live blocks, where they cannot be given back, %s in whole "
          "segments%s.",
          when, cached, between, whole, rest);
}

/* Would it have fitted beside what was in use? Under a limit that is known that decides; without
 * one it is what the driver had left and what was cached. */
static bool had_room(const uf_failure *failure, uint64_t limit_bytes)
{
    uint64_t active = failure->levels[UF_LEVEL_ACTIVE];
    uint64_t reserved = failure->levels[UF_LEVEL_RESERVED];
    uint64_t cached = reserved > active ? reserved - active : 0;
    return limit_bytes != 0 ? failure->wanted_bytes <= limit_bytes &&
                                  active <= limit_bytes - failure->wanted_bytes
                            : failure->device_free_bytes < failure->wanted_bytes &&
                                  failure->wanted_bytes - failure->device_free_bytes <= cached;
}

/* How many failures fragmentation explains, and how many nothing but more memory would help. */
static void say_kinds(const uf_summary_request *request, uf_summary *summary)
{
    const uf_history *history = request->history;
    uint64_t with_room = 0, without_room = 0;
    size_text limit;
    count_text count;
    for (uint64_t i = 0; i < history->failure_count; i++) {
        const uf_failure *failure = &history->failures[i];
        bool is_limit_unknown =
            request->limit_bytes == 0 && failure->device_free_bytes >= failure->wanted_bytes;
        with_room += had_room(failure, request->limit_bytes);
        without_room += !had_room(failure, request->limit_bytes) && !is_limit_unknown;
    }
    bool is_one = history->failure_count == 1;
    const char *under = request->limit_bytes != 0 ? " under the limit of " : "";
    const char *amount = request->limit_bytes != 0 ? SIZE(limit, request->limit_bytes) : "";
    if (with_room > 0 && is_one) {
        point(summary,
              "There was room enough in all%s%s, but not in one piece: that is fragmentation.",
              under, amount);
    } else if (with_room > 0) {
        point(summary,
              "For %s of the failures there was room enough in all%s%s, but not in one piece: that "
              "is "
              "fragmentation.",
              grouped(count, with_room), under, amount);
    }
    if (without_room > 0) {
        point(summary,
              "%s asked for more than was left beside what was in use: no setting helps there, "
              "only a program that holds less.",
              is_one ? "It" : grouped(count, without_room));
    }
}

static void say_failure(const uf_summary_request *request, uf_summary *summary)
{
    const uf_moment *failure = uf__moments_failure(request->moments);
    if (failure == NULL) {
        return;
    }
    size_text wanted, active, cached, largest;
    count_text event;
    uint64_t oom_count = request->marks->counts[UF_MARK_OOM];
    point(summary,
          "%s at event %s: %s were asked for while %s were in use and %s cached, in pieces "
          "of at most %s.",
          oom_count > 1 ? "The last request failed" : "It failed", grouped(event, failure->event),
          SIZE(wanted, failure->wanted_bytes), SIZE(active, failure->levels[UF_LEVEL_ACTIVE]),
          SIZE(cached, failure->state.cached_bytes),
          SIZE(largest, failure->state.largest_cached_bytes));
    const uf_explanation *explanation = failure->explanation;
    for (uint32_t i = 0; i < explanation->cause_count && i < 2; i++) {
        char cause[40];
        snprintf(cause, sizeof cause, "%s", uf__cause_id(explanation->causes[i]));
        for (char *at = strchr(cause, '_'); at != NULL; at = strchr(at, '_')) {
            *at = ' ';
        }
        point(summary, "%s %s: %s.", i == 0 ? "Its cause:" : "Also", cause,
              explanation->reasons[i]);
    }
    say_kinds(request, summary);
}

/* What `explain` advises for the last failure. */
static void advise_failure(const uf_summary_request *request, uf_summary *summary)
{
    const uf_moment *failure = uf__moments_failure(request->moments);
    const uf_settings_row *best = uf__settings_best(request->settings);
    for (uint32_t i = 0; failure != NULL && i < failure->explanation->advice_count; i++) {
        const char *text = failure->explanation->advice[i];
        bool is_said = summary->advice_count > 0 && best != NULL && best->conf[0] != '\0' &&
                       strstr(text, best->conf) != NULL;
        if (!is_said) {
            advise(summary, "%s", text);
        }
    }
}

static void say_growth(const uf_history *history, uf_summary *summary)
{
    uf_snapshot_state state;
    size_text from, to;
    if (history->program == NULL ||
        !uf__snapshot_examine(history->trace, history->device, &state) || !state.is_growing) {
        return;
    }
    point(summary,
          "What is live between the peaks grows, from %s to %s: something keeps what it should let "
          "go.",
          SIZE(from, state.growth_from_bytes), SIZE(to, state.growth_to_bytes));
    advise(summary, "Look in the memory map for blocks that are never freed: colour it by age, and "
                    "see who allocated the oldest.");
}

static const char *shown(const uf_settings_row *row)
{
    return row->conf[0] == '\0' ? "PyTorch's defaults" : row->conf;
}

static void say_settings(const uf_summary_request *request, uf_summary *summary)
{
    const uf_settings *settings = request->settings;
    const uf_settings_row *today = uf__settings_today(settings);
    const uf_settings_row *best = uf__settings_best(settings);
    if (best == NULL || today == NULL || best->has_smallest != today->has_smallest) {
        return;
    }
    uint64_t best_bytes =
        best->has_smallest ? best->smallest_limit_bytes : best->peak_reserved_bytes;
    uint64_t today_bytes =
        best->has_smallest ? today->smallest_limit_bytes : today->peak_reserved_bytes;
    double gain =
        today_bytes > best_bytes ? percent_of(today_bytes - best_bytes, today_bytes) : 0.0;
    size_text best_text, today_text;
    SIZE(best_text, best_bytes);
    SIZE(today_text, today_bytes);
    const char *what = best->has_smallest ? "runs within" : "reserves";
    if (best == today || gain < WORTH_PERCENT) {
        point(summary, "Of the settings compared none is much better than today's: it %s %s.", what,
              today_text);
        return;
    }
    point(summary, "With %s it %s %s, with today's settings %s%s.", shown(best), what, best_text,
          today_text,
          request->marks->counts[UF_MARK_OOM] > 0 ? " (without the requests that failed)" : "");
    if (best->conf[0] == '\0') {
        advise(summary,
               "Remove today's settings from PYTORCH_CUDA_ALLOC_CONF: %.1f %% less memory.", gain);
    } else {
        advise(summary, "Set PYTORCH_CUDA_ALLOC_CONF=%s: %.1f %% less memory, proved by replay.",
               best->conf, gain);
    }
}

static void say_limits(const uf_history *history, uf_summary *summary)
{
    const uf_program_report *report = history->program != NULL ? &history->program->report : NULL;
    if (report == NULL) {
        point(summary, "The snapshot has no history of events, so there is no timeline: call "
                       "torch.cuda.memory._record_memory_history(max_entries=5_000_000) before the "
                       "part that matters.");
        return;
    }
    if (report->has_lost_beginning) {
        point(summary,
              "The beginning of the recording is lost: %" PRIu64
              " blocks of it were rebuilt, and what was larger before is not seen.",
              report->start_block_count);
    }
    if (history->stray_count > 0) {
        point(summary, "%" PRIu64 " events on memory that nothing explains were left out.",
              history->stray_count);
    }
}

void uf__summary_make(const uf_summary_request *request, uf_summary *summary)
{
    const uf_history *history = request->history;
    uint64_t live = history->peaks[UF_LEVEL_LIVE].bytes;
    uint64_t reserved = history->peaks[UF_LEVEL_RESERVED].bytes;
    memset(summary, 0, sizeof *summary);
    summary->lost_bytes = reserved > live ? reserved - live : 0;
    say_headline(request, summary);
    say_failure(request, summary);
    if (request->moments->count > 0) {
        bool is_peak = request->moments->items[0].kind == UF_MOMENT_PEAK;
        say_cached(&request->moments->items[0],
                   is_peak ? "When most was reserved," : "In the snapshot", summary);
    }
    say_growth(history, summary);
    say_settings(request, summary); /* what was proved for this program comes first */
    advise_failure(request, summary);
    say_limits(history, summary);
    if (summary->advice_count == 0 && history->program != NULL &&
        percent_of(summary->lost_bytes, live) < WORTH_PERCENT) {
        advise(summary, "Nothing is to be won by settings: what is reserved is what the program "
                        "needs. To need less, it must hold less.");
    }
}
