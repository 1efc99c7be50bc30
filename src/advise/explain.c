/* SPDX-License-Identifier: MIT
 *
 * Chooses what is explained: the worst message of a text, growth that the text shows, a load that
 * never ended, or the failed request of a snapshot. */
#include "advise/explain.h"

#include <stdio.h>
#include <string.h>

#include "advise/explain_parts.h"

const char *uf__cause_id(uf_cause cause)
{
    static const char *const ids[UF_CAUSE_COUNT] = {
#define UF_CAUSE_ID(name, id) [name] = id,
        UF_CAUSE_LIST(UF_CAUSE_ID)
#undef UF_CAUSE_ID
    };
    return ids[cause];
}

bool uf__explain_has(const uf_explanation *explanation, uf_cause cause)
{
    for (uint32_t i = 0; i < explanation->cause_count; i++) {
        if (explanation->causes[i] == cause) {
            return true;
        }
    }
    return false;
}

/* The series that shows a leak, if one does. */
static const uf_growth *find_growth(const uf_message_log *log)
{
    if (uf__growth_is_steady(&log->failures, 3)) {
        return &log->failures;
    }
    const uf_growth *best = NULL;
    for (uint32_t i = 0; i < log->growth_count; i++) {
        const uf_growth *growth = &log->growths[i];
        if (uf__growth_is_steady(growth, 4) && (best == NULL || growth->count > best->count)) {
            best = growth;
        }
    }
    return best;
}

/* A crash report may print the card beside a message that has no figures. */
static void borrow_report(const uf_message_log *log, uf_message *message)
{
    uf_figure *total = &message->figures[UF_FIGURE_TOTAL];
    uf_figure *device = &message->figures[UF_FIGURE_DEVICE_FREE];
    bool is_bare = message->form == UF_MESSAGE_A || message->form == UF_MESSAGE_BARE ||
                   message->form == UF_MESSAGE_DRIVER;
    if (is_bare && !total->is_known && !device->is_known && log->report_total.is_known) {
        *total = log->report_total;
        *device = log->report_device_free;
        message->signs |= UF_SIGN_FROM_REPORT;
    }
}

static void choose_message(const uf_message_log *log, uf_explanation *out)
{
    const uf_message_group *worst = uf__message_worst(log);
    out->growth = find_growth(log);
    if (worst != NULL && (uf__message_form_rank(worst->message.form) > 2 || out->growth == NULL)) {
        out->message = worst->message;
        out->count = worst->count;
        out->first_line = worst->first_line;
        out->last_line = worst->last_line;
        borrow_report(log, &out->message);
    } else if (out->growth != NULL) {
        out->message.form = UF_MESSAGE_GROWTH;
        out->count = out->growth->count;
        out->first_line = out->growth->first_line;
        out->last_line = out->growth->last_line;
    } else if (log->has_loading) {
        out->message.form = UF_MESSAGE_HANG;
        out->count = 1;
        out->first_line = out->last_line = log->loading_line;
    }
}

/* The snapshot's own record of the failure. */
static void choose_snapshot(const uf_snapshot_state *state, uf_explanation *out)
{
    uf_message *message = &out->message;
    if (!state->has_oom) {
        return;
    }
    message->form = UF_MESSAGE_SNAPSHOT;
    message->has_device = true;
    message->device = state->device;
    message->figures[UF_FIGURE_REQUESTED] = (uf_figure){true, state->oom_requested_bytes, 0};
    message->figures[UF_FIGURE_DEVICE_FREE] = (uf_figure){true, state->oom_device_free_bytes, 0};
    message->figures[UF_FIGURE_ALLOCATED] = (uf_figure){true, state->allocated_bytes, 0};
    message->figures[UF_FIGURE_RESERVED] = (uf_figure){true, state->reserved_bytes, 0};
    if (state->total_bytes > 0) {
        message->figures[UF_FIGURE_TOTAL] = (uf_figure){true, state->total_bytes, 0};
    }
    if (state->limit_bytes > 0) {
        message->figures[UF_FIGURE_ALLOWED] = (uf_figure){true, state->limit_bytes, 0};
    }
    out->count = state->oom_count;
}

void uf__explain(const uf_explain_request *request, uf_explanation *explanation)
{
    memset(explanation, 0, sizeof *explanation);
    if (request->log != NULL) {
        choose_message(request->log, explanation);
    }
    if (explanation->message.form == UF_MESSAGE_NONE && request->snapshot != NULL) {
        choose_snapshot(request->snapshot, explanation);
    }
    uf__explain_reckon(explanation);
    uf__explain_causes(request, explanation);
    explanation->is_oom =
        explanation->cause_count > 0 && explanation->causes[0] != UF_CAUSE_NOT_AN_OOM;
    uf__explain_advise(request, explanation);
}
