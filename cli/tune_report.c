/* SPDX-License-Identifier: MIT
 *
 * The text report of tune: the line to paste, what it gains and costs, the table, the certificate. */
#include "tune_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "table.h"

typedef char size_text[UF_SIZE_TEXT_CAPACITY];
typedef char count_text[CLI_COUNT_TEXT_CAPACITY];

#define SIZE(buffer, bytes) uf__size_format(buffer, sizeof(buffer), bytes)

static bool has_place(const tune_options *options)
{
    return options->limit_bytes != 0 || options->card_bytes != 0;
}

bool tune_has_answer(const uf_tune_result *result)
{
    return result->best != UF_NONE && result->entries[result->best].run.is_complete;
}

static const char *conf_of(const uf_tune_result *result, uint32_t index)
{
    return result->grid.points[result->entries[index].point].conf;
}

static const char *name_of(const char *conf)
{
    return conf[0] != '\0' ? conf : "(default)";
}

static void print_place(const tune_options *options)
{
    size_text card, limit, allowance;
    if (options->card_bytes != 0) {
        printf(" on a card of %s, of which %s are left to CUDA and its libraries",
               SIZE(card, options->card_bytes), SIZE(allowance, options->allowance_bytes));
    }
    if (options->limit_bytes != 0) {
        printf("%s at a limit of %s", options->card_bytes != 0 ? "," : "",
               SIZE(limit, options->limit_bytes));
    }
}

static void print_no_answer(const tune_options *options, const uf_tune_result *result)
{
    const uf_tune_entry *least = NULL;
    for (uint32_t i = 0; i < result->entry_count; i++) {
        const uf_tune_entry *entry = &result->entries[i];
        if (entry->has_smallest &&
            (least == NULL || entry->smallest_limit_bytes < least->smallest_limit_bytes)) {
            least = entry;
        }
    }
    printf("No setting makes this fit");
    print_place(options);
    printf(".\n");
    size_text floor, need;
    printf("The program itself holds %s at once; no setting goes below that.\n",
           SIZE(floor, result->peak_live_bytes));
    if (least != NULL) {
        printf("The least that was found: %s with %s.\n", SIZE(need, least->smallest_limit_bytes),
               name_of(result->grid.points[least->point].conf));
    }
}

static void print_gain(const tune_options *options, const uf_tune_result *result)
{
    const uf_tune_entry *best = &result->entries[result->best];
    size_text from, to, reserved_from, reserved_to;
    if (result->baseline == UF_NONE) {
        return;
    }
    const uf_tune_entry *today = &result->entries[result->baseline];
    if (result->baseline == result->best) {
        printf("\nToday's settings are the best already: nothing to change.\n");
        return;
    }
    printf("\ntoday  %s\n", name_of(conf_of(result, result->baseline)));
    if (best->has_smallest && today->has_smallest) {
        double share = 100.0 * (1.0 - (double)best->smallest_limit_bytes /
                                          (double)today->smallest_limit_bytes);
        printf("gain   needs %s instead of %s (%.1f %% less)\n",
               SIZE(to, best->smallest_limit_bytes), SIZE(from, today->smallest_limit_bytes),
               share);
    }
    if (!today->run.is_complete && has_place(options)) {
        printf("       today's settings do not fit there\n");
    }
    if (best->free_run.is_complete && today->free_run.is_complete) {
        printf("       without a limit it reserves %s instead of %s\n",
               SIZE(reserved_to, best->free_run.peak_reserved_bytes),
               SIZE(reserved_from, today->free_run.peak_reserved_bytes));
    }
    printf("cost   %.1f ms in the driver and %" PRIu64 " waits over the recording%s", best->run.device_ms,
           best->run.device_syncs, today->run.is_complete ? "" : "\n");
    if (today->run.is_complete) {
        printf(", today's %.1f ms and %" PRIu64 "\n", today->run.device_ms,
               today->run.device_syncs);
    }
}

static void add_row(cli_table *table, const tune_options *options, const uf_tune_result *result,
                    uint32_t index)
{
    const uf_tune_entry *entry = &result->entries[index];
    const char *mark = index == result->best ? " *" : index == result->baseline ? " (today)" : "";
    cli_table_row(table);
    cli_table_cell(table, "%s%s", name_of(conf_of(result, index)), mark);
    if (has_place(options)) {
        cli_table_cell(table, "%s", entry->run.is_complete ? "yes"
                                    : entry->run.is_undefined ? "undefined"
                                                              : "no");
    }
    if (entry->has_smallest) {
        cli_table_cell_size(table, entry->smallest_limit_bytes);
        cli_table_cell(table, "%.3f", (double)entry->smallest_limit_bytes /
                                          (double)(result->peak_live_bytes + 1));
    } else {
        cli_table_cell(table, "-");
        cli_table_cell(table, "-");
    }
    if (entry->free_run.is_complete) {
        cli_table_cell_size(table, entry->free_run.peak_reserved_bytes);
    } else {
        cli_table_cell(table, "-");
    }
    if (entry->run.is_complete) {
        cli_table_cell_count(table, entry->run.retry_count);
        cli_table_cell(table, "%.1f ms", entry->run.device_ms);
        cli_table_cell_count(table, entry->run.device_syncs);
    } else {
        cli_table_cell(table, "-");
        cli_table_cell(table, "-");
        cli_table_cell(table, "-");
    }
}

static bool print_table(const tune_options *options, const uf_tune_result *result)
{
    cli_table *table = cli_table_create();
    cli_table_column(table, "settings", CLI_LEFT);
    if (has_place(options)) {
        cli_table_column(table, "fits", CLI_LEFT);
    }
    cli_table_column(table, "smallest limit", CLI_RIGHT);
    cli_table_column(table, "x floor", CLI_RIGHT);
    cli_table_column(table, "reserves freely", CLI_RIGHT);
    cli_table_column(table, "retries", CLI_RIGHT);
    cli_table_column(table, "in driver", CLI_RIGHT);
    cli_table_column(table, "waits", CLI_RIGHT);
    for (uint32_t i = 0; i < result->entry_count; i++) {
        add_row(table, options, result, i);
    }
    printf("\n");
    bool is_printed = cli_table_print(table, stdout);
    cli_table_destroy(table);
    size_text floor;
    printf("\nThe floor, %s, is what the program held at once. Retries, time and waits are at %s.\n",
           SIZE(floor, result->peak_live_bytes),
           has_place(options) ? "the place asked for" : "each setting's smallest limit");
    return is_printed;
}

static void print_certificate(const tune_options *options, const uf_tune_result *result)
{
    const uf_tune_entry *best = &result->entries[result->best];
    size_text limit, request, segment, card, allowance;
    if (!best->has_smallest) {
        return;
    }
    uint64_t card_bytes = uf__tune_card(best->smallest_limit_bytes, options->allowance_bytes);
    printf("\nProof  completes at %s", SIZE(limit, best->smallest_limit_bytes));
    if (best->below.has_run && !best->below.is_complete && !best->below.is_undefined) {
        count_text event;
        printf("; 2 MiB less fails at event %s,\n       a request of %s that wants %s of the driver",
               cli_count_format(event, best->below.oom.event),
               SIZE(request, best->below.oom.requested_bytes),
               SIZE(segment, best->below.oom.segment_bytes));
    }
    printf("\n       unfrag replay --conf '%s' --limit %" PRIu64 " %s\n",
           conf_of(result, result->best), best->smallest_limit_bytes, options->inputs[0]);
    if (best->has_gaps) {
        printf("       Some smaller limits complete, too, but limits between them fail.\n");
    }
    if (card_bytes != 0) {
        printf("Card   the smallest is one of %s, with %s left to CUDA and its libraries\n",
               SIZE(card, card_bytes), SIZE(allowance, options->allowance_bytes));
    } else {
        printf("Card   none up to 80 GiB is large enough\n");
    }
}

static void print_caveats(const tune_options *options, const uf_tune_result *result)
{
    const uf_tune_entry *best = &result->entries[result->best];
    if (result->grid.points[best->point].needs_limit) {
        printf("Note   garbage collection works only under a memory limit: call\n"
               "       torch.cuda.set_per_process_memory_fraction(f) with f = limit / total memory\n");
    }
    if (result->recorded_oom_count > 0) {
        printf("Note   the program ran out of memory %" PRIu64
               " times while it was recorded and went on: it may\n"
               "       choose other sizes where memory is larger or smaller than it was then\n",
               result->recorded_oom_count);
    }
    if (options->input_count > 1) {
        printf("Note   sums and peaks are over %" PRIu32 " recordings: peaks are of the worst\n",
               options->input_count);
    }
}

bool tune_report_text(const tune_options *options, const uf_tune_result *result)
{
    if (result->is_interrupted) {
        printf("Interrupted: the best so far.\n");
    }
    if (tune_has_answer(result)) {
        const char *conf = conf_of(result, result->best);
        printf("Best");
        print_place(options);
        printf(":\n\n    %s%s%s\n", conf[0] != '\0' ? "export PYTORCH_CUDA_ALLOC_CONF=" : "",
               conf[0] != '\0' ? conf : "unset PYTORCH_CUDA_ALLOC_CONF", "");
        print_gain(options, result);
    } else {
        print_no_answer(options, result);
    }
    bool is_printed = print_table(options, result);
    if (tune_has_answer(result)) {
        print_certificate(options, result);
        print_caveats(options, result);
    }
    count_text events;
    printf("\nTried %" PRIu32 " settings in %" PRIu64 " replays, %s events in %.1f s (%.1f million a "
           "second).\n",
           result->tried_count, result->replay_count,
           cli_count_format(events, result->event_count), result->seconds,
           result->seconds > 0.0 ? (double)result->event_count / result->seconds / 1e6 : 0.0);
    return is_printed && !ferror(stdout);
}
