/* SPDX-License-Identifier: MIT
 *
 * Reading and following. */
#include "tune_input.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "input.h"
#include "replay_stats.h"

/* The device asked for, or the first one with a history. */
static uf_status choose_device(const tune_options *options, const tune_input *input,
                               uint32_t *position, uf_error *error)
{
    const uf_trace *trace = input->trace;
    for (uint32_t i = 0; i < trace->device_count; i++) {
        bool is_wanted = options->has_device ? trace->devices[i].device == options->device
                                             : trace->devices[i].count > 1;
        if (is_wanted && trace->devices[i].count > 1) {
            *position = i;
            return UF_OK;
        }
        if (is_wanted) {
            return uf__error_set(error, UF_ERROR_BAD_INPUT,
                                 "%s: device %" PRId32 " has no history to replay", input->name,
                                 options->device);
        }
    }
    if (options->has_device) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "--device %" PRId32 ": %s has no such device; it has %" PRIu32
                             ", from 0 on",
                             options->device, input->name, trace->device_count);
    }
    return uf__error_set(error, UF_ERROR_BAD_INPUT,
                         "%s has no history of events, so there is nothing to replay: call "
                         "torch.cuda.memory._record_memory_history(max_entries=5_000_000) before "
                         "the part that matters, then _dump_snapshot() again",
                         input->name);
}

static uf_status make_program(const tune_options *options, const tune_input *input,
                              uint32_t position, uint64_t limit_bytes, int64_t retry_count,
                              uf_program **program, uf_error *error)
{
    const uf_trace *trace = input->trace;
    uf_program_options how = {.struct_size_bytes = sizeof how,
                              .device = position,
                              .limit_bytes = limit_bytes,
                              .total_bytes = options->total_bytes != 0 ? options->total_bytes
                                                                       : trace->total_bytes,
                              .num_alloc_retries = retry_count};
    return uf_program_create(trace, &how, program, error);
}

/* A snapshot does not say under which limit it was recorded. The limit that was asked for may be
 * that one, too: of the two readings the one that explains more events is taken. */
static uf_status follow(const tune_options *options, tune_input *input, uint32_t position,
                        uint64_t known_bytes, int64_t retry_count, uf_error *error)
{
    uf_status status =
        make_program(options, input, position, known_bytes, retry_count, &input->program, error);
    if (status != UF_OK || options->limit_bytes == 0 || options->limit_bytes == known_bytes ||
        uf_program_report_get(input->program)->is_equal) {
        return status;
    }
    uf_program *other = NULL;
    status =
        make_program(options, input, position, options->limit_bytes, retry_count, &other, error);
    if (status == UF_OK && uf_program_report_get(other)->events_equal >
                               uf_program_report_get(input->program)->events_equal) {
        uf_program *first = input->program;
        input->program = other;
        other = first;
    }
    uf_program_destroy(other);
    return status;
}

static void tell_oddities(const tune_options *options, const tune_input *input, uint32_t position)
{
    const uf_program_report *report = uf_program_report_get(input->program);
    const uf_trace *trace = input->trace;
    if (trace->form != UF_FORM_SCRIPT && !report->is_equal && report->contradiction_count == 0) {
        fprintf(stderr,
                "unfrag tune: %s: PyTorch's behaviour is followed up to event %" PRIu64
                " of %" PRIu64 " only (%s); flushes and private pools after it are not certain\n",
                input->name, report->events_equal, report->event_count, report->difference.text);
    }
    if (report->has_lost_beginning) {
        fprintf(stderr,
                "unfrag tune: %s: its beginning is lost: %" PRIu64
                " blocks of it were rebuilt, and "
                "what was larger before is not seen\n",
                input->name, report->start_block_count);
    }
    if (trace->oddities.unknown_action_count > 0) {
        fprintf(stderr, "unfrag tune: %s: %" PRIu64 " events of unknown kinds were left out\n",
                input->name, trace->oddities.unknown_action_count);
    }
    for (uint32_t i = 0; i < trace->device_count && !options->has_device; i++) {
        if (i != position && trace->devices[i].count > 1) {
            fprintf(stderr,
                    "unfrag tune: %s: device %" PRId32 " has %" PRIu64
                    " events of its own: --device %" PRId32 " tunes for them\n",
                    input->name, trace->devices[i].device, trace->devices[i].count,
                    trace->devices[i].device);
        }
    }
}

static uf_status open_found(const tune_options *options, const cli_input *found, tune_input *input,
                            uf_error *error)
{
    uint32_t position = 0;
    replay_recorded recorded = {0};
    uf_status status = cli_input_read(found, true, &input->trace, error);
    if (status == UF_OK) {
        status = choose_device(options, input, &position, error);
    }
    if (status != UF_OK) {
        return status;
    }
    if (found->stats_path != NULL &&
        replay_recorded_read(found->stats_path, &recorded, NULL) != UF_OK) {
        replay_recorded_fini(&recorded); /* they are a courtesy */
        memset(&recorded, 0, sizeof recorded);
    }
    status = follow(options, input, position, found->limit_bytes,
                    recorded.is_there ? recorded.stats.num_alloc_retries : -1, error);
    replay_recorded_fini(&recorded);
    if (status != UF_OK) {
        return status;
    }
    const uf_program_report *report = uf_program_report_get(input->program);
    if (report->contradiction_count > 0) {
        return uf__error_set(error, UF_ERROR_BAD_INPUT,
                             "%s contradicts itself at event %" PRIu64 ": %s", input->name,
                             report->contradiction.event, report->contradiction.text);
    }
    tell_oddities(options, input, position);
    return UF_OK;
}

uf_status tune_input_open(const tune_options *options, const char *name, tune_input *input,
                          uf_error *error)
{
    *input = (tune_input){.name = name};
    cli_input found;
    uf_status status = cli_input_find(name, &found, error);
    if (status == UF_OK) {
        status = open_found(options, &found, input, error);
        cli_input_fini(&found);
    }
    return status;
}

void tune_input_close(tune_input *input)
{
    uf_program_destroy(input->program);
    uf_trace_destroy(input->trace);
    input->program = NULL;
    input->trace = NULL;
}
