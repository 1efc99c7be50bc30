/* SPDX-License-Identifier: MIT
 *
 * The text report of tune: the line to paste, what it gains and costs, the table, the proof. */
#include "tune_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "table.h"

typedef char size_text[UF_SIZE_TEXT_CAPACITY];
typedef char count_text[CLI_COUNT_TEXT_CAPACITY];

#define SIZE(buffer, bytes) uf__size_format(buffer, sizeof(buffer), bytes)

/* Columns of a settings string in the table. */
enum { NAME_WIDTH = 34 };

/* A popular setting is named beside the best if it needs at most this much more. */
#define ALTERNATIVE_SHARE 1.03

/* What every part of the report needs. */
typedef struct report {
    const tune_options *options;
    const tune_input *inputs;
    const uf_tune_result *result;
    const uf_tune_entry *best, *today; /* NULL if there is none */
} report;

uint64_t tune_room_bytes(const tune_options *options)
{
    uint64_t card_bytes =
        options->card_bytes == 0 ? 0 : options->card_bytes - options->allowance_bytes;
    bool is_limit_smaller =
        options->limit_bytes != 0 && (card_bytes == 0 || options->limit_bytes < card_bytes);
    return is_limit_smaller ? options->limit_bytes : card_bytes;
}

bool tune_has_answer(const uf_tune_result *result)
{
    return result->best != UF_NONE && (result->entries[result->best].run.is_complete ||
                                       result->entries[result->best].smallest.is_known);
}

static bool has_place(const report *of)
{
    return tune_room_bytes(of->options) != 0;
}

static const char *conf_of(const report *of, const uf_tune_entry *entry)
{
    return of->result->grid.points[entry->point].conf;
}

static const char *name_of(const report *of, const uf_tune_entry *entry)
{
    if (entry == &of->result->unfrag) {
        return "unfrag's policy, no setting";
    }
    const char *conf = conf_of(of, entry);
    return conf[0] != '\0' ? conf : "(default)";
}

static void print_place(const report *of)
{
    const tune_options *options = of->options;
    size_text card, limit, allowance;
    if (options->card_bytes != 0) {
        printf(" on a card of %s (%s of it for CUDA)", SIZE(card, options->card_bytes),
               SIZE(allowance, options->allowance_bytes));
    }
    if (options->limit_bytes != 0) {
        printf("%s under a limit of %s", options->card_bytes != 0 ? "," : "",
               SIZE(limit, options->limit_bytes));
    }
}

static void print_failure(const report *of, const uf_probe_run *run)
{
    count_text event;
    size_text request, segment, reserved;
    if (run->is_undefined) {
        printf("leads to what PyTorch leaves undefined (it would release memory that is in use)");
        return;
    }
    printf("event %s", cli_count_format(event, run->oom.event));
    if (of->result->file_count > 1) {
        printf(" of %s", of->inputs[run->failed_program].name);
    }
    printf(" asks for %s: %s beside %s reserved", SIZE(request, run->oom.requested_bytes),
           SIZE(segment, run->oom.segment_bytes), SIZE(reserved, run->oom.reserved_bytes));
}

static const uf_tune_entry *least_demanding(const report *of)
{
    const uf_tune_entry *least = NULL;
    for (uint32_t i = 0; i < of->result->entry_count; i++) {
        const uf_tune_entry *entry = &of->result->entries[i];
        bool is_less = entry->smallest.is_known && !entry->is_hazardous &&
                       (least == NULL || entry->smallest.limit_bytes < least->smallest.limit_bytes);
        least = is_less ? entry : least;
    }
    return least;
}

static void print_no_answer(const report *of)
{
    const uf_tune_result *result = of->result;
    const uf_tune_entry *least = least_demanding(of);
    size_text floor, need, card;
    if (!has_place(of)) {
        printf(result->is_interrupted ? "Nothing is known yet.\n"
                                      : "No setting completes, not even without a limit.\n");
        return;
    }
    printf("No setting makes this fit");
    print_place(of);
    printf(".\n\n");
    printf("floor  %s: what the program holds at once\n", SIZE(floor, result->peak_live_bytes));
    if (least != NULL) {
        printf("needs  %s at least, with %s\n", SIZE(need, least->smallest.limit_bytes),
               name_of(of, least));
        if (least->card_bytes != 0) {
            printf("card   the smallest that is large enough has %s\n",
                   SIZE(card, least->card_bytes));
        }
        if (least->run.has_run && !least->run.is_complete && least->run.oom.segment_bytes != 0) {
            printf("fails  ");
            print_failure(of, &least->run);
            printf("\n");
        }
    }
}

/* The smallest limits. */
static void print_need(const char *label, const uf_smallest *to, const uf_smallest *from)
{
    size_text less, more;
    if (!to->is_known || !from->is_known) {
        printf("%-6s today's settings complete under no limit that was tried\n", label);
    } else if (to->limit_bytes == from->limit_bytes) {
        printf("%-6s needs no less, %s\n", label, SIZE(less, to->limit_bytes));
    } else {
        double share = 100.0 * (1.0 - (double)to->limit_bytes / (double)from->limit_bytes);
        printf("%-6s needs %s instead of %s (%.1f %% %s)\n", label, SIZE(less, to->limit_bytes),
               SIZE(more, from->limit_bytes), share < 0.0 ? -share : share,
               share < 0.0 ? "more" : "less");
    }
}

static void print_reserved(const char *label, const char *where, const uf_probe_run *to,
                           const uf_probe_run *from)
{
    size_text less, more;
    if (to->is_complete && from->is_complete &&
        to->peak_reserved_bytes == from->peak_reserved_bytes) {
        printf("%-6s reserves no less %s, %s\n", label, where, SIZE(less, to->peak_reserved_bytes));
    } else if (to->is_complete && from->is_complete) {
        printf("%-6s reserves %s %s, today %s\n", label, SIZE(less, to->peak_reserved_bytes), where,
               SIZE(more, from->peak_reserved_bytes));
    }
}

/* The program stands still until other streams are done: the longest wait at least, all at most. */
static void print_stream_waits(const char *whose, const uf_probe_run *run)
{
    if (!run->is_complete || run->stream_wait_count == 0) {
        return;
    }
    count_text count;
    printf("       %s forced wait%s for other streams%s",
           cli_count_format(count, run->stream_wait_count), run->stream_wait_count == 1 ? "" : "s",
           whose);
    if (run->stream_wait_ms >= 0.0) {
        printf(", %.1f to %.1f ms in all", run->longest_stream_wait_ms, run->stream_wait_ms);
    } else {
        printf(" of unknown length");
    }
    printf("\n");
}

static void print_stall(const char *label, const uf_probe_run *best, const uf_probe_run *today)
{
    if (!best->is_complete) {
        return;
    }
    count_text waits, waits_today;
    printf("%-6s %.1f ms in the driver and %s waits for the device", label, best->device_ms,
           cli_count_format(waits, best->device_syncs));
    if (today->is_complete) {
        printf(", today %.1f ms and %s", today->device_ms,
               cli_count_format(waits_today, today->device_syncs));
    }
    printf("\n");
    print_stream_waits("", best);
    if (today != best && today->is_complete) {
        print_stream_waits(" today", today);
    }
}

/* At a place what counts is to fit there, then the stall; without one the smallest limit. */
static void print_gain(const report *of)
{
    if (of->today == NULL) {
        return;
    }
    if (of->today == of->best) {
        printf("\nToday's settings are as good as any: nothing to change.\n");
        print_stream_waits("", &of->best->run);
        return;
    }
    const uf_probe_run *best = &of->best->run, *today = &of->today->run;
    printf("\ntoday  %s\n", name_of(of, of->today));
    if (!has_place(of)) {
        print_need("gain", &of->best->smallest, &of->today->smallest);
        print_reserved("", "without a limit", &of->best->smallest.unlimited,
                       &of->today->smallest.unlimited);
        print_stall("cost", best, today);
        return;
    }
    if (!today->is_complete) {
        printf("gain   it fits; today's settings do not:\n       ");
        print_failure(of, today);
        printf("\n");
    }
    print_reserved("gain", "there", best, today);
    print_stall(today->is_complete ? "" : "cost", best, today);
    print_need("", &of->best->smallest, &of->today->smallest);
}

/* Is there a reason to take a setting instead of today's? */
static bool is_gain(const report *of, const uf_tune_entry *entry, const uf_tune_entry *today)
{
    if (today == NULL || (has_place(of) && !today->run.is_complete)) {
        return true;
    }
    return has_place(of) ? entry->run.stall_ms < today->run.stall_ms
                         : !today->smallest.is_known ||
                               entry->smallest.limit_bytes < today->smallest.limit_bytes;
}

/* A setting that people know, needs little more, and no limit in the program. */
static void print_alternative(const report *of)
{
    const uf_tune_result *result = of->result;
    const uf_tune_entry *other = NULL, *today = of->today;
    bool is_simple = of->best == of->today || result->grid.points[of->best->point].is_popular;
    for (uint32_t i = 0; i < result->entry_count && !is_simple; i++) {
        const uf_tune_entry *entry = &result->entries[i];
        bool is_good = result->grid.points[entry->point].is_popular && entry->smallest.is_known &&
                       !result->grid.points[entry->point].needs_limit && !entry->is_hazardous &&
                       entry != today && (!has_place(of) || entry->run.is_complete) &&
                       is_gain(of, entry, today) &&
                       (double)entry->smallest.limit_bytes <=
                           ALTERNATIVE_SHARE * (double)of->best->smallest.limit_bytes;
        if (is_good &&
            (other == NULL || entry->smallest.limit_bytes < other->smallest.limit_bytes)) {
            other = entry;
        }
    }
    size_text need;
    count_text waits;
    if (other != NULL && of->best->smallest.is_known) {
        printf("or     %s, which needs %s, %.1f ms and %s waits\n", name_of(of, other),
               SIZE(need, other->smallest.limit_bytes), other->run.device_ms,
               cli_count_format(waits, other->run.device_syncs));
    }
}

static void add_figures(cli_table *table, const uf_probe_run *run)
{
    if (run->is_complete) {
        cli_table_cell(table, "%.1f ms", run->device_ms);
        cli_table_cell_count(table, run->device_syncs);
    } else {
        cli_table_cell(table, "-");
        cli_table_cell(table, "-");
    }
}

static const char *fit_text(const uf_probe_run *run)
{
    return run->is_complete ? "yes" : run->is_undefined ? "undefined" : run->has_run ? "no" : "-";
}

/* How much of a settings string goes on one line: all, or up to the last comma that fits. */
static size_t line_length(const char *conf, size_t width)
{
    size_t length = strlen(conf), best = 0;
    for (size_t i = 0; i + 1 < length && length > width && (i < width || best == 0); i++) {
        best = conf[i] == ',' ? i + 1 : best;
    }
    return best != 0 ? best : length;
}

/* Begins a row; a long name takes several, of which the last one gets the figures. */
static void add_name(cli_table *table, const report *of, const uf_tune_entry *entry)
{
    const char *name = name_of(of, entry), *mark = entry == of->best ? "* " : "  ";
    size_t length = line_length(name, NAME_WIDTH);
    while (name[length] != '\0') {
        cli_table_row(table);
        cli_table_cell(table, "%s%.*s", mark, (int)length, name);
        name += length;
        mark = "    ";
        length = line_length(name, NAME_WIDTH - 2);
    }
    cli_table_row(table);
    cli_table_cell(table, "%s%s%s%s", mark, name, entry == of->today ? " (today)" : "",
                   entry->is_hazardous ? " (hazardous)" : "");
}

static void add_row(cli_table *table, const report *of, const uf_tune_entry *entry)
{
    const uf_smallest *smallest = &entry->smallest;
    add_name(table, of, entry);
    if (has_place(of)) {
        cli_table_cell(table, "%s", fit_text(&entry->run));
    }
    if (smallest->is_known) {
        cli_table_cell_size(table, smallest->limit_bytes);
        cli_table_cell(table, "%.3f",
                       (double)smallest->limit_bytes / (double)(of->result->peak_live_bytes + 1));
    } else {
        cli_table_cell(table, "-");
        cli_table_cell(table, "-");
    }
    if (entry->card_bytes != 0) {
        cli_table_cell(table, "%" PRIu64 " GiB", entry->card_bytes >> 30);
    } else {
        cli_table_cell(table, "-");
    }
    if (!has_place(of) && smallest->unlimited.is_complete) {
        cli_table_cell_size(table, smallest->unlimited.peak_reserved_bytes);
    } else if (!has_place(of)) {
        cli_table_cell(table, "-");
    }
    add_figures(table, &entry->run);
}

/* What of the floor is blocks that wait for other streams, to the precision that matters: rounding
 * makes what is held a little larger. */
static uint64_t waiting_bytes(const uf_tune_result *result)
{
    return result->peak_live_bytes > result->held_bytes
               ? result->peak_live_bytes - result->held_bytes
               : 0;
}

static void print_unfrag_note(const report *of)
{
    const uf_tune_result *result = of->result;
    const uf_probe_run *run = &result->unfrag.run;
    size_text frozen;
    if (!result->has_unfrag) {
        return;
    }
    printf("unfrag's policy is another allocator, simulated here: it moves pages");
    if (run->is_complete) {
        printf(" (%.1f ms of its time)", run->moving_ms > 0.0 ? run->moving_ms : 0.0);
    }
    if (run->is_complete && run->peak_frozen_bytes > 0) {
        printf(",\n       but not those of private pools, %s at most",
               SIZE(frozen, run->peak_frozen_bytes));
    }
    printf(".\n");
}

static bool print_table(const report *of)
{
    if (of->result->entry_count == 0) {
        return true;
    }
    cli_table *table = cli_table_create();
    cli_table_column(table, "  settings", CLI_LEFT);
    if (has_place(of)) {
        cli_table_column(table, "fits", CLI_LEFT);
    }
    cli_table_column(table, "needs", CLI_RIGHT);
    cli_table_column(table, "x floor", CLI_RIGHT);
    cli_table_column(table, "card", CLI_RIGHT);
    if (!has_place(of)) {
        cli_table_column(table, "unlimited", CLI_RIGHT);
    }
    cli_table_column(table, "in driver", CLI_RIGHT);
    cli_table_column(table, "waits", CLI_RIGHT);
    for (uint32_t i = 0; i < of->result->entry_count; i++) {
        add_row(table, of, &of->result->entries[i]);
    }
    if (of->result->has_unfrag) {
        add_row(table, of, &of->result->unfrag);
    }
    printf("\n");
    bool is_printed = cli_table_print(table, stdout);
    cli_table_destroy(table);
    size_text floor, waiting;
    const uf_tune_result *result = of->result;
    printf("\nneeds: the smallest limit that completes; driver and waits %s.\n"
           "floor: %s, what the program held at once",
           has_place(of) ? "where it must run" : "there", SIZE(floor, result->peak_live_bytes));
    if (waiting_bytes(result) > 0) {
        printf("; of it %s\n       only waited for other streams",
               SIZE(waiting, waiting_bytes(result)));
    }
    printf(".\n");
    print_unfrag_note(of);
    return is_printed;
}

/* Each recording alone, where there are several. */
static bool print_files(const report *of)
{
    const uf_tune_result *result = of->result;
    if (result->file_count < 2 || of->best == NULL) {
        return true;
    }
    uint32_t worst = 0;
    for (uint32_t i = 1; i < result->file_count; i++) {
        bool is_worse = result->files[i].best.limit_bytes > result->files[worst].best.limit_bytes;
        worst = is_worse ? i : worst;
    }
    cli_table *table = cli_table_create();
    cli_table_column(table, "recording", CLI_LEFT);
    cli_table_column(table, "floor", CLI_RIGHT);
    cli_table_column(table, "needs, best", CLI_RIGHT);
    cli_table_column(table, "needs, today", CLI_RIGHT);
    for (uint32_t i = 0; i < result->file_count; i++) {
        const uf_tune_file *file = &result->files[i];
        cli_table_row(table);
        cli_table_cell(table, "%s%s", of->inputs[i].name, i == worst ? " (worst)" : "");
        cli_table_cell_size(table, file->peak_live_bytes);
        if (file->best.is_known) {
            cli_table_cell_size(table, file->best.limit_bytes);
        } else {
            cli_table_cell(table, "-");
        }
        if (file->baseline.is_known) {
            cli_table_cell_size(table, file->baseline.limit_bytes);
        } else {
            cli_table_cell(table, "-");
        }
    }
    printf("\n");
    bool is_printed = cli_table_print(table, stdout);
    cli_table_destroy(table);
    printf("\nFigures above are sums over the %" PRIu32
           " recordings, limits and peaks those of the "
           "worst.\n",
           result->file_count);
    return is_printed;
}

/* The command that shows it; a proof must be one that a person can repeat. */
static void print_command(const report *of, const uf_place *place, uint32_t program)
{
    printf("       unfrag replay --conf '%s'", conf_of(of, of->best));
    if (place->limit_bytes != 0) {
        printf(" --limit %" PRIu64, place->limit_bytes);
    }
    if (place->card_bytes != 0) {
        printf(" --card %" PRIu64, place->card_bytes);
    }
    uint64_t total_bytes = place->total_bytes != 0 ? place->total_bytes : of->options->total_bytes;
    if (total_bytes != 0) {
        printf(" --total %" PRIu64, total_bytes);
    }
    if (of->options->has_device) {
        printf(" --device %" PRId32, of->options->device);
    }
    printf(" %s\n", of->inputs[program].name);
}

static void print_proof(const report *of)
{
    const uf_smallest *smallest = &of->best->smallest;
    size_text limit, margin, allowance;
    if (!smallest->is_known) {
        return;
    }
    uint32_t program = smallest->below.has_run ? smallest->below.failed_program : 0;
    printf("\nProof  completes at %s%s", SIZE(limit, smallest->limit_bytes),
           smallest->is_at_most ? ", maybe at less" : "");
    if (smallest->below.has_run && !smallest->is_at_most) {
        if (smallest->is_floor) {
            printf(", the floor");
        } else {
            printf("; at 2 MiB less\n       ");
            print_failure(of, &smallest->below);
        }
    }
    printf("\n");
    const uf_place place = {.limit_bytes = smallest->limit_bytes};
    print_command(of, &place, program);
    if (smallest->has_gaps) {
        printf("       Some smaller limits complete, too, but limits between them fail.\n");
    }
    if (smallest->is_floor && waiting_bytes(of->result) > 0) {
        printf(
            "       Less completes, too, but only by waiting for other streams to give back what\n"
            "       the recording let wait: time that is not known, so it is not proposed.\n");
    } else if (smallest->is_floor) {
        printf(
            "       Less completes, too: expandable pages may pass a limit by a part of a page.\n");
    }
    uint64_t room_bytes = tune_room_bytes(of->options);
    if (room_bytes != 0 && of->best->run.is_complete) {
        if (room_bytes >= smallest->limit_bytes) {
            printf("Fits   with %s to spare\n", SIZE(margin, room_bytes - smallest->limit_bytes));
        } else {
            printf("Fits   %s below what it needs%s\n",
                   SIZE(margin, smallest->limit_bytes - room_bytes),
                   of->best->run.stream_wait_count > 0 ? ": only by waiting for other streams"
                                                       : "; limits between fail");
        }
        print_command(of, &of->best->place, program);
    }
    if (of->best->card_bytes != 0) {
        printf("Card   %" PRIu64 " GiB are enough, %s of them left to CUDA\n",
               of->best->card_bytes >> 30, SIZE(allowance, of->options->allowance_bytes));
    } else if (!of->result->is_interrupted) {
        printf("Card   none up to 80 GiB is large enough\n");
    }
}

static void print_limit_note(const report *of)
{
    uint64_t limit_bytes = of->best->place.limit_bytes != 0 ? of->best->place.limit_bytes
                                                            : of->best->smallest.limit_bytes;
    printf(
        "Note   garbage collection works under a memory limit only; in the program, at the start:\n"
        "       total = torch.cuda.get_device_properties(0).total_memory\n"
        "       torch.cuda.set_per_process_memory_fraction(%" PRIu64 " / total)\n",
        limit_bytes);
}

static void print_notes(const report *of)
{
    const uf_tune_result *result = of->result;
    if (of->best != NULL && result->grid.points[of->best->point].needs_limit) {
        print_limit_note(of);
    }
    if (result->recorded_oom_count > 0) {
        count_text count;
        printf("Note   %s requests failed when this was recorded, and the program went on: it may "
               "ask\n"
               "       for other sizes where there is more or less memory than there was then\n",
               cli_count_format(count, result->recorded_oom_count));
    }
    bool is_missing = false, has_pools = false;
    for (uint32_t i = 0; i < result->file_count; i++) {
        const uf_program *program = of->inputs[i].program;
        has_pools |= uf_program_report_get(program)->pool_count > 0;
        is_missing |= i > 0 && of->options->conf == NULL &&
                      strcmp(uf_program_conf(program), uf_program_conf(of->inputs[0].program)) != 0;
    }
    if (is_missing) {
        printf("Note   the recordings ran with different settings: 'today' is the first one's\n");
    }
    if (of->today == NULL && !result->is_interrupted) {
        printf(
            "Note   the recorded settings are none that this release's own allocator takes: '%s'\n",
            uf_program_conf(of->inputs[0].program));
    }
    if (has_pools) {
        printf(
            "Note   private pools (CUDA graphs) stay apart whatever the settings: what they cache\n"
            "       serves no other request\n");
    }
    if (of->options->grammar != UF_CONF_2_11) {
        printf(
            "Note   settings are those that PyTorch %s takes; replayed is the allocator of 2.11\n",
            of->options->torch);
    }
}

static void print_best(const report *of)
{
    const char *conf = conf_of(of, of->best);
    printf("Best");
    print_place(of);
    printf(":\n\n");
    if (conf[0] != '\0') {
        printf("    export PYTORCH_CUDA_ALLOC_CONF=%s\n", conf);
    } else {
        printf("    unset PYTORCH_CUDA_ALLOC_CONF\n");
    }
    print_gain(of);
    print_alternative(of);
}

bool tune_report_text(const tune_options *options, const tune_input *inputs,
                      const uf_tune_result *result)
{
    report of = {.options = options, .inputs = inputs, .result = result};
    of.best = tune_has_answer(result) ? &result->entries[result->best] : NULL;
    of.today = result->baseline != UF_NONE ? &result->entries[result->baseline] : NULL;
    if (result->is_interrupted) {
        printf("Interrupted; this is what was found so far.\n\n");
    }
    if (of.best != NULL) {
        print_best(&of);
    } else {
        print_no_answer(&of);
    }
    bool is_printed = print_table(&of) && print_files(&of);
    if (of.best != NULL) {
        print_proof(&of);
    }
    print_notes(&of);
    count_text events;
    printf("\nTried %" PRIu32 " settings in %" PRIu64
           " replays, %s events in %.1f s (%.1f million a "
           "second);\n%" PRIu32 " more were decided without a replay.\n",
           result->tried_count, result->replay_count, cli_count_format(events, result->event_count),
           result->seconds,
           result->seconds > 0.0 ? (double)result->event_count / result->seconds / 1e6 : 0.0,
           result->skipped_count);
    return is_printed && !ferror(stdout);
}
