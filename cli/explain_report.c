/* SPDX-License-Identifier: MIT
 *
 * One screen: the message, a bar of the card, the causes with their arithmetic, what to do. */
#include "explain_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "wrap.h"

#define BAR_WIDTH 64
#define PINNED_SHOWED 3

static const char *size_of(uf_amount amount, char buffer[UF_SIZE_TEXT_CAPACITY + 1])
{
    if (!amount.is_known) {
        return "-";
    }
    bool is_negative = amount.bytes < 0;
    buffer[0] = '-';
    uf__size_format(buffer + is_negative, UF_SIZE_TEXT_CAPACITY,
                    is_negative ? 0 - (uint64_t)amount.bytes : (uint64_t)amount.bytes);
    return buffer;
}

static uf_amount figure(const uf_message *message, uf_figure_kind kind)
{
    const uf_figure *printed = &message->figures[kind];
    bool is_known = printed->is_known && printed->bytes <= (uint64_t)INT64_MAX / 2;
    return (uf_amount){is_known, is_known ? (int64_t)printed->bytes : 0};
}

typedef struct part {
    char mark;
    const char *name;
    uf_amount amount;
} part;

/* The share of a part in the bar; at least one mark for what is there. */
static int marks_of(uf_amount amount, int64_t whole)
{
    if (!amount.is_known || amount.bytes <= 0 || whole <= 0) {
        return 0;
    }
    double share = (double)amount.bytes / (double)whole * BAR_WIDTH;
    int marks = share > BAR_WIDTH ? BAR_WIDTH : (int)(share + 0.5);
    return marks > 0 ? marks : 1;
}

static void print_bar(const part *parts, size_t count, int64_t whole)
{
    char bar[BAR_WIDTH + 1];
    size_t length = 0;
    memset(bar, '.', BAR_WIDTH);
    bar[BAR_WIDTH] = '\0';
    for (size_t i = 0; i < count; i++) {
        for (int mark = marks_of(parts[i].amount, whole); mark > 0 && length < BAR_WIDTH; mark--) {
            bar[length++] = parts[i].mark;
        }
    }
    printf("  [%s]\n", bar);
    for (size_t i = 0; i < count; i++) {
        char size[UF_SIZE_TEXT_CAPACITY + 1];
        if (parts[i].amount.is_known) {
            printf("   %c %-10s %11s\n", parts[i].mark, parts[i].name,
                   size_of(parts[i].amount, size));
        }
    }
}

/* What is free comes last, and "outside" before it: the order on the card does not matter. */
static void print_card(const uf_explanation *out)
{
    const uf_message *message = &out->message;
    const uf_reckoning *sums = &out->reckoning;
    bool is_apple = message->form == UF_MESSAGE_P;
    uf_amount whole = is_apple ? sums->limit : figure(message, UF_FIGURE_TOTAL);
    if (!whole.is_known ||
        !(sums->allocated.is_known || figure(message, UF_FIGURE_DEVICE_FREE).is_known)) {
        return;
    }
    uf_amount outside = sums->outside;
    if (!outside.is_known && message->form == UF_MESSAGE_A && sums->gap.bytes > 0) {
        outside = sums->gap;
    }
    part parts[] = {{'#', "allocated", sums->allocated},
                    {':', "cached", sums->cached},
                    {'o', sums->outside.is_known ? "outside" : "the rest", outside},
                    {'.', "free", figure(message, UF_FIGURE_DEVICE_FREE)}};
    char size[UF_SIZE_TEXT_CAPACITY + 1];
    printf("\n  %s of %s", is_apple ? "allowed:" : "a card", size_of(whole, size));
    if (message->has_device) {
        printf(", number %" PRId32, message->device);
    }
    printf("\n");
    print_bar(parts, sizeof parts / sizeof parts[0], whole.bytes);
}

static void print_asked(const uf_explanation *out)
{
    const uf_reckoning *sums = &out->reckoning;
    uf_amount asked = figure(&out->message, UF_FIGURE_REQUESTED);
    char size[UF_SIZE_TEXT_CAPACITY + 1], least[UF_SIZE_TEXT_CAPACITY + 1],
        most[UF_SIZE_TEXT_CAPACITY + 1];
    if (!asked.is_known) {
        return;
    }
    printf("   > wanted     %11s", size_of(asked, size));
    if (sums->is_segment && sums->least_wanted.bytes <= 1) {
        printf("   a small segment; the tensor has up to %s", size_of(sums->most_wanted, most));
    } else if (sums->is_segment && asked.bytes < (int64_t)UF_GIB) {
        printf("   a segment; the tensor has %s to %s", size_of(sums->least_wanted, least),
               size_of(sums->most_wanted, most));
    }
    printf("\n");
}

static void print_head(const explain_view *view)
{
    const uf_explanation *out = view->explanation;
    const uf_message *message = &out->message;
    if (message->form == UF_MESSAGE_NONE) {
        printf("No out-of-memory message");
        if (view->log != NULL) {
            printf(" in %" PRIu64 " lines", view->log->line_count);
        }
        printf(".\n");
        return;
    }
    printf("%s: %s", uf__message_form_id(message->form), uf__message_form_text(message->form));
    if (message->name[0] != '\0') {
        printf(" (%s)", message->name);
    }
    if (out->first_line > 0 && out->last_line > out->first_line) {
        printf("; lines %" PRIu64 " to %" PRIu64, out->first_line, out->last_line);
    } else if (out->first_line > 0) {
        printf("; line %" PRIu64, out->first_line);
    }
    if (out->count > 1) {
        printf(", %" PRIu64 " times", out->count);
    }
    printf("\n");
    if (view->log != NULL && view->log->group_count > 1) {
        printf("The worst of %" PRIu64 " messages of %" PRIu32 " kinds.\n",
               view->log->message_count, view->log->group_count);
    }
}

static void print_causes(const uf_explanation *out)
{
    printf("\n");
    for (uint32_t i = 0; i < out->cause_count; i++) {
        char lead[48];
        snprintf(lead, sizeof lead, "%-8s%s: ", i == 0 ? "Cause" : "also",
                 uf__cause_id(out->causes[i]));
        cli_print_wrapped(lead, 8, out->reasons[i]);
    }
    for (uint32_t i = 0; i < out->contradiction_count; i++) {
        cli_print_wrapped("but     the message contradicts itself: ", 8, out->contradictions[i]);
    }
    if (out->message.figures[UF_FIGURE_PRIVATE].is_known) {
        char size[UF_SIZE_TEXT_CAPACITY + 1];
        printf(
            "Private pools: %s are printed as allocated, but are cached blocks of these pools.\n",
            size_of(figure(&out->message, UF_FIGURE_PRIVATE), size));
    }
}

static void print_advice(const uf_explanation *out)
{
    printf("\nWhat to do\n");
    for (uint32_t i = 0; i < out->advice_count; i++) {
        char lead[16];
        snprintf(lead, sizeof lead, "  %" PRIu32 ". ", i + 1);
        cli_print_wrapped(lead, 5, out->advice[i]);
    }
}

static bool is_of_torch(const char *filename)
{
    return strstr(filename, "/torch/") != NULL || strstr(filename, "\\torch\\") != NULL ||
           strstr(filename, "??") != NULL || filename[0] == '\0' || filename[0] == '<' ||
           strstr(filename, ".cpp") != NULL || strstr(filename, ".so") != NULL;
}

const uf_frame *explain_frame(const uf_trace *trace, const uf_trace_block *block)
{
    if (block == NULL || block->stack >= trace->stack_count) {
        return NULL;
    }
    const uf_stack *stack = &trace->stacks[block->stack];
    for (uint32_t i = 0; i < stack->count; i++) {
        const uf_frame *frame = &trace->frames[trace->frame_ids[stack->first + i]];
        if (!is_of_torch(uf_trace_string(trace, frame->filename))) {
            return frame;
        }
    }
    return stack->count > 0 ? &trace->frames[trace->frame_ids[stack->first]] : NULL;
}

static void print_pinned(const explain_view *view, const uf_snapshot_pinned *pinned)
{
    char cached[UF_SIZE_TEXT_CAPACITY], whole[UF_SIZE_TEXT_CAPACITY], held[UF_SIZE_TEXT_CAPACITY];
    char text[512];
    int length = snprintf(
        text, sizeof text,
        "%s of %s cached at 0x%" PRIx64 ": held by %" PRIu64 " live blocks, the largest %s",
        uf__size_format(cached, sizeof cached, pinned->cached_bytes),
        uf__size_format(whole, sizeof whole, pinned->segment->total_bytes), pinned->segment->addr,
        pinned->live_count, uf__size_format(held, sizeof held, pinned->holder->size_bytes));
    const uf_frame *frame = explain_frame(view->trace, pinned->holder);
    if (frame != NULL && length > 0 && (size_t)length < sizeof text) {
        snprintf(text + length, sizeof text - (size_t)length, " from %s:%" PRId64 " %s",
                 uf_trace_string(view->trace, frame->filename), frame->line,
                 uf_trace_string(view->trace, frame->name));
    }
    cli_print_wrapped("    ", 6, text);
}

static void print_snapshot(const explain_view *view)
{
    const uf_snapshot_state *state = view->snapshot;
    char cached[UF_SIZE_TEXT_CAPACITY], between[UF_SIZE_TEXT_CAPACITY],
        whole[UF_SIZE_TEXT_CAPACITY], stream[UF_SIZE_TEXT_CAPACITY], pool[UF_SIZE_TEXT_CAPACITY];
    printf("\nSnapshot: %s cached = %s between live blocks + %s in whole segments + %s of another "
           "stream",
           uf__size_format(cached, sizeof cached, state->cached_bytes),
           uf__size_format(between, sizeof between, state->between_bytes),
           uf__size_format(whole, sizeof whole, state->whole_bytes),
           uf__size_format(stream, sizeof stream, state->stream_bytes));
    if (state->pool_bytes > 0) {
        printf(" + %s in private pools", uf__size_format(pool, sizeof pool, state->pool_bytes));
    }
    printf("\n");
    if (state->pinned_all_count > 0) {
        printf("  %" PRIu64 " segments are pinned:\n", state->pinned_all_count);
    }
    for (uint32_t i = 0; i < state->pinned_count && i < PINNED_SHOWED; i++) {
        print_pinned(view, &state->pinned[i]);
    }
}

void explain_report_text(const explain_view *view)
{
    const uf_explanation *out = view->explanation;
    print_head(view);
    print_card(out);
    print_asked(out);
    print_causes(out);
    if (view->snapshot != NULL) {
        print_snapshot(view);
    }
    print_advice(out);
}
