/* SPDX-License-Identifier: MIT
 *
 * unfrag replay FILE: reads a recording, follows it, plays it again, reports. Owns the order of
 * these steps and the verdict; the replay itself is the library's. */
#include "verb.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "alloc/conf.h"
#include "alloc/conf_option.h"
#include "base/error.h"
#include "interrupt.h"
#include "progress.h"
#include "replay_compare.h"
#include "replay_groups.h"
#include "replay_options.h"
#include "replay_report.h"
#include "replay_state.h"

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* The device asked for, or the first one with events. */
static uf_status choose_device(replay_view *view, uf_error *error)
{
    const uf_trace *trace = view->trace;
    const replay_options *options = view->options;
    for (uint32_t i = 0; i < trace->device_count; i++) {
        bool is_wanted = options->has_device ? trace->devices[i].device == options->device
                                             : trace->devices[i].count > 0;
        if (is_wanted) {
            view->device_position = i;
            return UF_OK;
        }
    }
    if (!options->has_device) {
        return uf__error_set(error, UF_ERROR_BAD_INPUT, "%s: no device in it has events",
                             options->input);
    }
    return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                         "--device %" PRId32 ": the recording has no such device; it has %" PRIu32
                         ", from 0 on",
                         options->device, trace->device_count);
}

/* Other devices with a history of their own are named, not silently left out. */
static void tell_other_devices(const replay_view *view)
{
    const uf_trace *trace = view->trace;
    for (uint32_t i = 0; i < trace->device_count && !view->options->has_device; i++) {
        if (i != view->device_position && trace->devices[i].count > 0) {
            fprintf(stderr,
                    "unfrag replay: device %" PRId32 " has %" PRIu64
                    " events of its own: --device %" PRId32 " replays them\n",
                    trace->devices[i].device, trace->devices[i].count, trace->devices[i].device);
        }
    }
}

static void tell_oddities(const replay_view *view)
{
    const uf_trace_oddities *odd = &view->trace->oddities;
    if (odd->unknown_action_count > 0) {
        fprintf(stderr, "unfrag replay: %" PRIu64 " events of unknown kinds were left out\n",
                odd->unknown_action_count);
    }
    if (odd->gap_count > 0 || odd->sum_mismatch_count > 0) {
        fprintf(stderr,
                "unfrag replay: the recording contradicts itself: %" PRIu64
                " segments have gaps, %" PRIu64 " have sums that their blocks do not "
                "give\n",
                odd->gap_count, odd->sum_mismatch_count);
    }
}

/* Following can take seconds; Ctrl-C ends it. */
static bool go_on(void *context, uint64_t done, uint64_t total)
{
    (void)context;
    (void)done;
    (void)total;
    return !cli_is_interrupted();
}

static uf_status make_program(replay_view *view, uint64_t limit_bytes, uf_program **program,
                              uf_error *error)
{
    const replay_options *options = view->options;
    const replay_recorded *recorded = view->recorded;
    uf_program_options how = {
        .struct_size_bytes = sizeof how,
        .device = view->device_position,
        .conf = options->is_verify ? options->conf : NULL,
        .limit_bytes = limit_bytes,
        .total_bytes = options->total_bytes != 0 ? options->total_bytes : view->trace->total_bytes,
        .num_alloc_retries = recorded->is_there ? recorded->stats.num_alloc_retries : -1,
        .progress = go_on};
    return uf_program_create(view->trace, &how, program, error);
}

/* A snapshot does not say under which limit it was recorded. A limit that was asked for may be that
 * one, too: of the two readings the one that explains more events is taken. */
static uf_status follow(replay_view *view, uf_program **program, uf_error *error)
{
    const replay_options *options = view->options;
    uint64_t known_bytes = view->input->limit_bytes;
    if (options->is_verify && options->limit_bytes != 0) {
        known_bytes = options->limit_bytes;
    }
    uf_status status = make_program(view, known_bytes, program, error);
    if (status != UF_OK || options->limit_bytes == 0 || options->limit_bytes == known_bytes ||
        uf_program_report_get(*program)->is_equal) {
        return status;
    }
    uf_program *other = NULL;
    status = make_program(view, options->limit_bytes, &other, error);
    if (status == UF_OK && uf_program_report_get(other)->events_equal >
                               uf_program_report_get(*program)->events_equal) {
        uf_program *first = *program;
        *program = other;
        other = first;
    }
    uf_program_destroy(other);
    return UF_OK;
}

/* What the run is played under: what was asked for, else what the recording says. */
static void choose_run(replay_view *view)
{
    const replay_options *options = view->options;
    const uf_trace *trace = view->trace;
    uf_replay_options *run = &view->run;
    run->struct_size_bytes = sizeof *run;
    run->conf = options->conf;
    run->policy = options->policy == REPLAY_UNFRAG ? UF_POLICY_UNFRAG : UF_POLICY_TORCH;
    run->cost_model = options->cost == REPLAY_COST_A100 ? UF_COST_A100 : UF_COST_H200;
    run->device_lag_us = (int64_t)options->lag_ms * 1000;
    run->limit_bytes = options->limit_bytes;
    run->card_bytes = options->card_bytes;
    run->total_bytes = options->total_bytes != 0 ? options->total_bytes : trace->total_bytes;
    if (run->card_bytes == 0) {
        run->card_bytes = trace->script_card_bytes;
    }
    if (run->limit_bytes == 0) {
        run->limit_bytes = trace->script_limit_bytes;
    }
    if (run->limit_bytes == 0 && run->card_bytes == 0) {
        run->limit_bytes = view->input->limit_bytes;
        view->is_limit_recorded = run->limit_bytes != 0;
    }
    run->from_event = options->from_event;
    run->to_event = options->to_event;
    run->repeat_count = options->repeat_count;
    run->is_shuffled = options->has_shuffle;
    run->shuffle_seed = options->shuffle_seed;
    run->on_oom = options->on_oom == REPLAY_SKIP ? UF_ON_OOM_SKIP : UF_ON_OOM_STOP;
}

static bool read_conf(const char *text, uf_conf *conf, uf_error *error)
{
    const uf_conf_reading reading = {.is_at_import = true};
    uf__conf_init(conf);
    return uf__conf_read(conf, text, &reading, NULL, error) == UF_OK;
}

static uf_status refuse_async(const char *where, uf_error *error)
{
    return uf__error_set(error, UF_ERROR_CONF,
                         "%s: backend:cudaMallocAsync is another allocator, the driver's own; what "
                         "is replayed is PyTorch's caching allocator (backend:native)",
                         where);
}

/* The limit in force: that of the run, or what per_process_memory_fraction makes of the device. */
static uf_status find_limit(replay_view *view, uf_error *error)
{
    const uf_replay_options *run = &view->run;
    bool has_own_row = run->conf == NULL || view->options->is_compare;
    const char *text = has_own_row ? uf_program_conf(view->program) : run->conf;
    uf_conf conf;
    view->limit_bytes = run->limit_bytes;
    if (run->policy == UF_POLICY_UNFRAG) {
        return UF_OK; /* the fraction is a setting of PyTorch's */
    }
    if (!read_conf(text, &conf, error)) {
        return UF_OK; /* the recording's own string, and PyTorch took it */
    }
    if (conf.is_async_backend) {
        return refuse_async(view->options->input, error);
    }
    uint64_t total_bytes = run->total_bytes != 0  ? run->total_bytes
                           : run->card_bytes != 0 ? run->card_bytes
                                                  : UF_RECORDED_TOTAL_BYTES;
    if (run->limit_bytes == 0 && conf.per_process_memory_fraction < 1.0) {
        view->limit_bytes = (uint64_t)(conf.per_process_memory_fraction * (double)total_bytes);
    }
    return UF_OK;
}

/* The peak of what was held from the driver, backwards from the final segments. */
static uint64_t recorded_peak_bytes(const replay_view *view)
{
    const uf_trace *trace = view->trace;
    const uf_trace_device *device = &trace->devices[view->device_position];
    uint64_t reserved_bytes = 0;
    for (uint32_t i = 0; i < trace->segment_count; i++) {
        bool is_ours = trace->segments[i].device == device->device;
        reserved_bytes += is_ours ? trace->segments[i].total_bytes : 0;
    }
    uint64_t peak_bytes = reserved_bytes;
    for (uint64_t i = device->count; i > 0; i--) {
        const uf_event *event = &trace->events[device->first + i - 1];
        if (event->action == UF_ACTION_SEGMENT_ALLOC || event->action == UF_ACTION_SEGMENT_MAP) {
            reserved_bytes -= event->size_bytes <= reserved_bytes ? event->size_bytes : 0;
        } else if (event->action == UF_ACTION_SEGMENT_FREE ||
                   event->action == UF_ACTION_SEGMENT_UNMAP) {
            reserved_bytes += event->size_bytes;
        }
        peak_bytes = reserved_bytes > peak_bytes ? reserved_bytes : peak_bytes;
    }
    return peak_bytes;
}

static uf_status play(replay_view *view, uf_error *error)
{
    cli_progress progress;
    cli_progress_init(&progress, "replaying");
    view->run.progress = cli_progress_update;
    view->run.progress_context = &progress;
    view->run.groups = calloc(REPLAY_GROUP_CAPACITY, sizeof *view->run.groups);
    view->run.group_capacity = view->run.groups == NULL ? 0 : REPLAY_GROUP_CAPACITY;
    uf_status status = uf_replay_run(view->program, &view->run, &view->result, error);
    cli_progress_fini(&progress);
    return status;
}

/* Was nothing asked for that differs from the recording? */
static bool is_as_recorded(const replay_view *view)
{
    const replay_options *options = view->options;
    bool has_change = options->policy != REPLAY_TORCH || options->cost != REPLAY_COST_H200 ||
                      options->conf != NULL || options->limit_bytes != 0 ||
                      options->card_bytes != 0 || options->total_bytes != 0 ||
                      options->from_event != 0 || options->to_event != 0 ||
                      options->repeat_count > 1 || options->has_on_oom;
    return !has_change && view->trace->form != UF_FORM_SCRIPT && view->followed->is_equal &&
           !view->followed->has_lost_beginning;
}

static uint64_t first_recorded_oom(const replay_view *view)
{
    const uf_trace_device *device = &view->trace->devices[view->device_position];
    for (uint64_t i = 0; i < device->count; i++) {
        if (view->trace->events[device->first + i].action == UF_ACTION_OOM) {
            return i;
        }
    }
    return UF_EVENT_NONE;
}

/* The figures of the model that followed the recording, not those of the run: the run does not
 * repeat requests that failed, and so may go another way. */
static void take_followed_figures(replay_view *view)
{
    const uf_program_report *followed = view->followed;
    uf_replay_result *result = &view->result;
    uint64_t end_reserved_bytes = (uint64_t)followed->stats.reserved_bytes.all.current;
    if (result->has_oom || result->end_reserved_bytes != end_reserved_bytes) {
        (void)!uf_fragmentation_compute(&followed->stats, 0, 0.0, &result->fragmentation, NULL);
        result->group_count = 0; /* they are the run's */
    }
    result->stats = followed->stats;
    result->peak_active_bytes = (uint64_t)followed->stats.active_bytes.all.peak;
    result->peak_allocated_bytes = (uint64_t)followed->stats.allocated_bytes.all.peak;
    result->peak_reserved_bytes = (uint64_t)followed->stats.reserved_bytes.all.peak;
    result->end_active_bytes = (uint64_t)followed->stats.active_bytes.all.current;
    result->end_reserved_bytes = end_reserved_bytes;
    result->oom_count = (uint64_t)followed->stats.num_ooms;
    result->retry_count = (uint64_t)followed->stats.num_alloc_retries;
    result->device_calls = followed->device_calls;
    result->device_syncs = followed->device_syncs;
    result->device_ms = followed->device_ms;
    result->has_oom = false;
    view->first_recorded_oom = first_recorded_oom(view);
}

static void judge(replay_view *view)
{
    const uf_program_report *followed = view->followed;
    view->is_good = !view->result.has_oom;
    if (!view->options->is_verify && !view->is_as_recorded) {
        return;
    }
    take_followed_figures(view);
    view->is_good = true;
    if (!view->options->is_verify) {
        return;
    }
    view->is_good = followed->is_equal;
    view->is_compared = view->recorded->is_there && !followed->has_lost_beginning;
    if (view->is_compared) {
        replay_stats_compare(view->recorded, &followed->stats, &view->comparison);
        view->is_good =
            view->is_good && view->comparison.equal_count == view->comparison.compared_count;
    }
}

/* A script was not recorded: there is nothing that it could differ from. */
static void tell_difference(const replay_view *view)
{
    const uf_program_report *followed = view->followed;
    if (replay_is_inexact(view) && !view->options->is_verify &&
        followed->contradiction_count == 0) {
        fprintf(stderr,
                "unfrag replay: PyTorch's behaviour is followed up to event %" PRIu64 " of %" PRIu64
                " only (%s); flushes and private pools after it are not certain.%s\n",
                followed->events_equal, followed->event_count, followed->difference.text,
                view->options->limit_bytes == 0
                    ? " If it was recorded under a memory limit, name that with --limit"
                    : "");
    }
}

/* Settings that are given for --verify stand in for those a recording lacks. */
static void tell_other_settings(const replay_view *view)
{
    const uf_trace_settings *recorded = &view->trace->settings;
    const char *given = view->options->conf;
    if (!view->options->is_verify || given == NULL || !recorded->has_conf) {
        return;
    }
    const char *text = uf_trace_string(view->trace, recorded->conf);
    uf_conf asked, had;
    uf_error error;
    if (!read_conf(given, &asked, &error) || !read_conf(text, &had, &error) ||
        !uf__conf_is_equal(&asked, &had)) {
        fprintf(stderr,
                "unfrag replay: --conf differs from the settings that are in the recording (%s); "
                "it is compared as if --conf had been in force\n",
                text[0] != '\0' ? text : "PyTorch's defaults");
    }
}

/* Of PyTorch's settings the rounding alone means something under the unfrag policy. */
static void tell_ignored_settings(const replay_options *options)
{
    const uf_conf_reading reading = {.is_at_import = true};
    uf_conf_report report = {0};
    uf_error error;
    uf_conf conf;
    if (options->policy != REPLAY_UNFRAG || options->conf == NULL) {
        return;
    }
    uf__conf_init(&conf);
    if (uf__conf_read(&conf, options->conf, &reading, &report, &error) != UF_OK) {
        return;
    }
    uint32_t ignored = report.named & ~(UINT32_C(1) << UF_CONF_ROUNDUP_POWER2_DIVISIONS);
    const char *separator = "";
    if (ignored == 0) {
        return;
    }
    fprintf(stderr, "unfrag replay: --policy unfrag has no use for ");
    for (size_t i = 0; i < UF_CONF_OPTION_COUNT; i++) {
        const uf_conf_option *option = uf__conf_option_at(i);
        if ((ignored >> option->id & 1) != 0) {
            fprintf(stderr, "%s%s", separator, option->name);
            separator = ", ";
        }
    }
    fprintf(stderr, ": ignored%s\n",
            (ignored >> UF_CONF_PER_PROCESS_MEMORY_FRACTION & 1) != 0
                ? " (a memory limit is given with --limit)"
                : "");
}

static cli_exit report(replay_view *view)
{
    bool is_printed = view->options->is_json ? replay_report_json(view) : replay_report_text(view);
    if (!is_printed) {
        fprintf(stderr, "unfrag replay: the report could not be printed\n");
        return CLI_EXIT_ENVIRONMENT;
    }
    return view->is_good && view->followed->contradiction_count == 0 ? CLI_EXIT_DONE : CLI_EXIT_NO;
}

static cli_exit replay_program(replay_view *view)
{
    uf_error error = {0};
    view->followed = uf_program_report_get(view->program);
    choose_run(view);
    if (find_limit(view, &error) != UF_OK) {
        return cli_fail("replay", &error);
    }
    view->recorded_peak_bytes = view->followed->oom_count > 0 ? recorded_peak_bytes(view) : 0;
    view->is_as_recorded = is_as_recorded(view);
    if (view->is_as_recorded || view->options->is_verify) {
        view->run.on_oom = UF_ON_OOM_SKIP; /* the recording went on, too */
    }
    tell_difference(view);
    tell_other_settings(view);
    tell_ignored_settings(view->options);
    if (view->options->is_compare) {
        if (!view->options->has_on_oom) {
            view->run.on_oom = UF_ON_OOM_STOP;
        }
        return replay_compare(view);
    }
    cli_exit code;
    if (play(view, &error) == UF_OK) {
        judge(view);
        code = report(view);
    } else {
        code = cli_fail("replay", &error);
    }
    free(view->run.groups);
    return code;
}

static cli_exit replay_trace(replay_view *view)
{
    if (replay_state_is_all(view->trace)) {
        const replay_options *options = view->options;
        bool is_question = options->card_bytes != 0 || options->limit_bytes != 0 ||
                           options->conf != NULL || options->is_compare;
        bool is_printed =
            replay_state_print(view->trace, options->input, is_question, options->is_json);
        return is_printed ? CLI_EXIT_DONE : CLI_EXIT_ENVIRONMENT;
    }
    uf_error error = {0};
    uf_program *program = NULL;
    if (view->options->is_verify && view->trace->form == UF_FORM_SCRIPT) {
        uf__error_set(&error, UF_ERROR_INVALID_ARGUMENT,
                      "--verify %s: a script has no recorded layout to compare with",
                      view->options->input);
        return cli_fail("replay", &error);
    }
    if (choose_device(view, &error) != UF_OK) {
        return cli_fail("replay", &error);
    }
    int64_t start = now_ns();
    if (follow(view, &program, &error) != UF_OK) {
        return cli_fail("replay", &error);
    }
    view->prepare_ns = now_ns() - start;
    view->program = program;
    tell_other_devices(view);
    tell_oddities(view);
    cli_exit code = replay_program(view);
    uf_program_destroy(program);
    return code;
}

/* Statistics that were named must be there; those found beside the recording are a courtesy. */
static uf_status read_recorded(const replay_view *view, replay_recorded *recorded, uf_error *error)
{
    const char *chosen = view->options->stats_path;
    const char *path = chosen != NULL ? chosen : view->input->stats_path;
    if (path == NULL) {
        return UF_OK;
    }
    uf_status status = replay_recorded_read(path, recorded, error);
    if (status != UF_OK && chosen == NULL) {
        fprintf(stderr, "unfrag replay: the recorded statistics are left out: %s\n", error->text);
        return UF_OK;
    }
    return status;
}

static cli_exit replay_input(const replay_options *options, const cli_input *input)
{
    uf_error error = {0};
    replay_recorded recorded = {0};
    replay_view view = {.options = options,
                        .input = input,
                        .recorded = &recorded,
                        .first_recorded_oom = UF_EVENT_NONE};
    if (read_recorded(&view, &recorded, &error) != UF_OK) {
        return cli_fail("replay", &error);
    }
    uf_trace *trace = NULL;
    int64_t start = now_ns();
    uf_status status = cli_input_read(input, true, &trace, &error);
    view.read_ns = now_ns() - start;
    view.trace = trace;
    cli_exit code = status == UF_OK ? replay_trace(&view) : cli_fail("replay", &error);
    uf_trace_destroy(trace);
    replay_recorded_fini(&recorded);
    return code;
}

/* What can be refused before minutes are spent on reading. */
static uf_status check_options(const replay_options *options, uf_error *error)
{
    uf_conf conf;
    if (options->conf == NULL) {
        return UF_OK;
    }
    if (!read_conf(options->conf, &conf, error)) {
        return error->status;
    }
    return conf.is_async_backend ? refuse_async("--conf", error) : UF_OK;
}

cli_exit cli_replay(int argc, char **argv)
{
    replay_options options;
    cli_exit code = replay_options_parse(argc, argv, &options);
    if (code != CLI_EXIT_DONE) {
        return code;
    }
    uf_error error = {0};
    cli_input input;
    if (check_options(&options, &error) != UF_OK ||
        cli_input_find(options.input, &input, &error) != UF_OK) {
        return cli_fail("replay", &error);
    }
    code = replay_input(&options, &input);
    cli_input_fini(&input);
    return code;
}
