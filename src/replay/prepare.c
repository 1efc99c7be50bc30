/* SPDX-License-Identifier: MIT
 *
 * From a trace to a program: settings, linking, start state, inference. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "replay/audit.h"
#include "replay/infer.h"
#include "replay/program.h"
#include "replay/rebuild.h"

/* Settings that a trace of a release without a settings string still names one by one. */
static void take_recorded_values(uf_conf *conf, const uf_trace_settings *settings)
{
    if (settings->has_max_split_size) {
        conf->max_split_size_bytes = (uint64_t)settings->max_split_size_bytes;
    }
    if (settings->has_gc_threshold) {
        conf->garbage_collection_threshold = settings->gc_threshold;
    }
    if (settings->has_expandable) {
        conf->is_expandable = settings->is_expandable;
    }
    if (settings->has_divisions) {
        memcpy(conf->roundup_power2_divisions, settings->divisions, sizeof settings->divisions);
    }
}

static uf_status take_conf(uf_program *program, uf_error *error)
{
    const uf_trace_settings *settings = &program->trace->settings;
    const char *text = program->options.conf;
    uf__conf_init(&program->conf);
    bool is_given = text != NULL;
    if (!is_given) {
        text = settings->has_conf ? uf_trace_string(program->trace, settings->conf) : "";
    }
    program->conf_text = strdup(text);
    if (program->conf_text == NULL) {
        return uf__error_set(error, UF_ERROR_HOST_MEMORY, "no memory for the settings");
    }
    const uf_conf_reading reading = {.is_at_import = true};
    uf_status status = uf__conf_read(&program->conf, text, &reading, NULL, error);
    if (is_given) {
        return status;
    }
    /* A recorded string ran, whatever we make of it; single values in the trace are what counted.
     */
    take_recorded_values(&program->conf, settings);
    return UF_OK;
}

uf_status uf_program_create(const uf_trace *trace, const uf_program_options *options,
                            uf_program **program_out, uf_error *error)
{
    uf_program *program = calloc(1, sizeof *program);
    if (program == NULL) {
        return uf__error_set(error, UF_ERROR_HOST_MEMORY, "no memory for a program");
    }
    program->trace = trace;
    program->options.num_alloc_retries = -1;
    if (options != NULL) {
        program->options = *options;
    }
    if (program->options.total_bytes == 0) {
        program->options.total_bytes =
            trace->total_bytes != 0 ? trace->total_bytes : UF_RECORDED_TOTAL_BYTES;
    }
    uint32_t device = program->options.device;
    uf_status status = UF_OK;
    if (device < trace->device_count) {
        program->events = trace->events + trace->devices[device].first;
        program->event_count = trace->devices[device].count;
        program->device = trace->devices[device].device;
    } else if (device != 0) {
        status = uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                               "the trace has %" PRIu32 " devices, not a device at position "
                               "%" PRIu32,
                               trace->device_count, device);
    } else if (trace->segment_count > 0) {
        program->device = trace->segments[0].device;
    }
    if (status == UF_OK) {
        status = take_conf(program, error);
    }
    if (status == UF_OK) {
        status = uf__program_link(program, error);
    }
    bool is_recording = trace->form != UF_FORM_SCRIPT && program->event_count > 0;
    if (status == UF_OK && is_recording) {
        status = uf__rebuild(program);
        status = status == UF_OK ? uf__infer(program) : status;
        status = status == UF_OK ? uf__audit(program) : status;
        if (status != UF_OK) {
            (void)uf__error_set(error, status, "%s while following %" PRIu64 " events",
                                uf_status_text(status), program->event_count);
        }
    }
    if (status != UF_OK) {
        uf_program_destroy(program);
        return status;
    }
    *program_out = program;
    return UF_OK;
}

void uf_program_destroy(uf_program *program)
{
    if (program == NULL) {
        return;
    }
    free(program->ops);
    free(program->alloc_bytes);
    free(program->alloc_stream);
    free(program->alloc_pool);
    free(program->start_ids);
    free(program->start_addrs);
    free(program->streams);
    free(program->pools);
    free(program->conf_text);
    uf__start_destroy(program->start);
    free(program);
}

const uf_program_report *uf_program_report_get(const uf_program *program)
{
    return &program->report;
}

const char *uf_program_conf(const uf_program *program)
{
    return program->conf_text;
}
