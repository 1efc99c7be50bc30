/* SPDX-License-Identifier: MIT
 *
 * One table of metrics: name, type, help, and where the number comes from. */
#include "monitor/prometheus.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef double seen_value(const uf_seen *seen);

typedef struct seen_metric {
    const char *name, *type, *help;
    seen_value *value; /* NaN = not known */
} seen_metric;

static double number(uint64_t value)
{
    return value == UF_MONITOR_UNKNOWN ? NAN : (double)value;
}

static double signed_number(int64_t value)
{
    return value < 0 ? NAN : (double)value;
}

static double of_reserved(const uf_seen *seen)
{
    return number(seen->reserved_bytes);
}
static double of_active(const uf_seen *seen)
{
    return number(seen->active_bytes);
}
static double of_allocated(const uf_seen *seen)
{
    return number(seen->allocated_bytes);
}
static double of_requested(const uf_seen *seen)
{
    return number(seen->requested_bytes);
}
static double of_cached(const uf_seen *seen)
{
    return number(seen->cached_bytes);
}
static double of_stuck(const uf_seen *seen)
{
    return signed_number(seen->page.stats.inactive_split_bytes.all.current);
}
static double of_frozen(const uf_seen *seen)
{
    return number(seen->page.frozen_bytes);
}
static double of_limit(const uf_seen *seen)
{
    return seen->page.limit_bytes == 0 ? NAN : number(seen->page.limit_bytes);
}
static double of_largest_request(const uf_seen *seen)
{
    return number(seen->page.largest_request_bytes);
}
static double of_largest_allocatable(const uf_seen *seen)
{
    return number(seen->page.largest_allocatable_bytes);
}
static double of_fragmented(const uf_seen *seen)
{
    return seen->fragmented_share < 0.0 ? NAN : seen->fragmented_share;
}
static double of_blocks(const uf_seen *seen)
{
    return signed_number(seen->page.stats.allocation.all.current);
}
static double of_allocations(const uf_seen *seen)
{
    return number(seen->allocation_count);
}
static double of_hits(const uf_seen *seen)
{
    return number(seen->page.cache_hit_count);
}
static double of_misses(const uf_seen *seen)
{
    return number(seen->page.cache_miss_count);
}
static double of_retries(const uf_seen *seen)
{
    return number(seen->retry_count);
}
static double of_ooms(const uf_seen *seen)
{
    return number(seen->oom_count);
}
static double of_remaps(const uf_seen *seen)
{
    return number(seen->page.remap_count);
}
static double of_device_allocs(const uf_seen *seen)
{
    return signed_number(seen->page.stats.num_device_alloc);
}
static double of_device_frees(const uf_seen *seen)
{
    return signed_number(seen->page.stats.num_device_free);
}
static double of_age(const uf_seen *seen)
{
    return (double)seen->age_ns / 1e9;
}
static double of_growing(const uf_seen *seen)
{
    return (seen->flags & UF_SEEN_GROWING) != 0 ? 1.0 : 0.0;
}

static const seen_metric seen_metrics[] = {
    {"unfrag_reserved_bytes", "gauge", "Bytes held from the driver.", of_reserved},
    {"unfrag_active_bytes", "gauge", "Bytes of blocks handed out or waiting for a stream.",
     of_active},
    {"unfrag_allocated_bytes", "gauge", "Bytes of blocks handed out.", of_allocated},
    {"unfrag_requested_bytes", "gauge", "Bytes that callers asked for, of active blocks.",
     of_requested},
    {"unfrag_cached_bytes", "gauge", "Bytes held that no block needs: reserved - active.",
     of_cached},
    {"unfrag_stuck_bytes", "gauge", "Cached bytes in partly used segments.", of_stuck},
    {"unfrag_frozen_bytes", "gauge", "Bytes in private pools that cannot be moved.", of_frozen},
    {"unfrag_limit_bytes", "gauge", "Most bytes to hold from the driver; absent without a limit.",
     of_limit},
    {"unfrag_largest_request_bytes", "gauge", "Largest request the cache serves as it is.",
     of_largest_request},
    {"unfrag_largest_allocatable_bytes", "gauge",
     "Largest request, also by giving cached memory back or moving it.", of_largest_allocatable},
    {"unfrag_fragmented_ratio", "gauge",
     "Share of reserved memory that is cached and not in one piece.", of_fragmented},
    {"unfrag_allocated_blocks", "gauge", "Blocks handed out.", of_blocks},
    {"unfrag_allocations_total", "counter", "Requests served.", of_allocations},
    {"unfrag_cache_hits_total", "counter", "Requests served without the device.", of_hits},
    {"unfrag_cache_misses_total", "counter", "Requests served with the device's help.", of_misses},
    {"unfrag_alloc_retries_total", "counter", "Requests that gave the cache back and tried again.",
     of_retries},
    {"unfrag_ooms_total", "counter", "Requests that failed for lack of memory.", of_ooms},
    {"unfrag_remapped_pages_total", "counter", "Pages moved to another address.", of_remaps},
    {"unfrag_device_allocations_total", "counter", "Driver allocations and mappings.",
     of_device_allocs},
    {"unfrag_device_frees_total", "counter", "Driver releases and unmappings.", of_device_frees},
    {"unfrag_sample_age_seconds", "gauge", "Seconds since the process wrote its numbers.", of_age},
    {"unfrag_growth_alarm", "gauge", "1 if active memory rises and has found no plateau.",
     of_growing},
};

/* A label's value: backslash, quote and newline are escaped; other control characters are none. */
static void write_label(FILE *stream, const char *name, const char *text)
{
    fprintf(stream, "%s=\"", name);
    for (; *text != '\0'; text++) {
        if (*text == '\\' || *text == '"') {
            fputc('\\', stream);
        }
        fputc(*text == '\n' ? ' ' : *text, stream);
    }
    fputc('"', stream);
}

static void write_number(FILE *stream, double value)
{
    if (value == floor(value) && fabs(value) < 1e18) {
        fprintf(stream, " %.0f\n", value);
    } else {
        fprintf(stream, " %.9g\n", value);
    }
}

static void write_head(FILE *stream, const char *name, const char *type, const char *help)
{
    fprintf(stream, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* How many pages before this one are of the same process and device. */
static unsigned ordinal_of(const uf_pages *pages, size_t at)
{
    unsigned ordinal = 0;
    for (size_t i = 0; i < at; i++) {
        ordinal += pages->items[i].page.pid == pages->items[at].page.pid &&
                   pages->items[i].page.device_index == pages->items[at].page.device_index;
    }
    return ordinal;
}

static void write_process(FILE *stream, const uf_pages *pages, size_t at)
{
    const uf_monitor_page *page = &pages->items[at].page;
    fprintf(stream, "pid=\"%" PRIu32 "\",device=\"%" PRId32 "\",allocator=\"%u\",", page->pid,
            page->device_index, ordinal_of(pages, at));
    write_label(stream, "policy", page->policy);
}

static void write_seen_metric(FILE *stream, const uf_pages *pages, const seen_metric *metric)
{
    write_head(stream, metric->name, metric->type, metric->help);
    for (size_t i = 0; i < pages->count; i++) {
        double value = metric->value(&pages->items[i]);
        if (!isnan(value)) {
            fprintf(stream, "%s{", metric->name);
            write_process(stream, pages, i);
            fputc('}', stream);
            write_number(stream, value);
        }
    }
}

static void write_process_info(FILE *stream, const uf_pages *pages)
{
    write_head(stream, "unfrag_process_info", "gauge", "1 for each allocator that is watched.");
    for (size_t i = 0; i < pages->count; i++) {
        const uf_monitor_page *page = &pages->items[i].page;
        fputs("unfrag_process_info{", stream);
        write_process(stream, pages, i);
        fputc(',', stream);
        write_label(stream, "command", page->command);
        fputc(',', stream);
        write_label(stream, "uuid", page->device_uuid);
        fputs("} 1\n", stream);
    }
}

static void write_pools(FILE *stream, const uf_pages *pages)
{
    write_head(stream, "unfrag_pool_reserved_bytes", "gauge",
               "Bytes held from the driver by pool; 0:0 is the default pool.");
    for (size_t i = 0; i < pages->count; i++) {
        const uf_monitor_page *page = &pages->items[i].page;
        for (uint32_t row = 0; row < page->pool_row_count; row++) {
            const uf_monitor_pool_row *pool = &page->pools[row];
            bool is_twice = false; /* on a page that is none */
            for (uint32_t other = 0; other < row; other++) {
                is_twice = is_twice || (page->pools[other].id[0] == pool->id[0] &&
                                        page->pools[other].id[1] == pool->id[1]);
            }
            if (is_twice || pool->reserved_bytes == UF_MONITOR_UNKNOWN) {
                continue;
            }
            fputs("unfrag_pool_reserved_bytes{", stream);
            write_process(stream, pages, i);
            fprintf(stream, ",pool=\"%" PRIu64 ":%" PRIu64 "\"} %" PRIu64 "\n", pool->id[0],
                    pool->id[1], pool->reserved_bytes);
        }
    }
}

typedef enum card_number { CARD_TOTAL, CARD_TAKEN, CARD_OURS, CARD_OTHERS, CARD_COUNT } card_number;

static uint64_t card_bytes(const uf_card_use *card, card_number which)
{
    switch (which) {
    case CARD_TOTAL:
        return card->total_bytes;
    case CARD_TAKEN:
        return card->taken_bytes;
    case CARD_OURS:
        return card->ours_bytes;
    default:
        return card->others_bytes;
    }
}

static void write_cards(FILE *stream, const uf_cards *cards)
{
    static const struct {
        const char *name, *help;
    } names[CARD_COUNT] = {
        {"unfrag_card_memory_bytes", "The card's memory."},
        {"unfrag_card_taken_bytes", "Bytes held by anybody, the driver included."},
        {"unfrag_card_watched_bytes", "Bytes reserved by processes that are watched."},
        {"unfrag_card_others_bytes", "Bytes held by other processes, as the driver tells."},
    };
    for (int which = 0; which < CARD_COUNT; which++) {
        write_head(stream, names[which].name, "gauge", names[which].help);
        for (size_t i = 0; i < cards->count; i++) {
            const uf_card_use *card = &cards->items[i];
            uint64_t bytes = card_bytes(card, (card_number)which);
            if (bytes != UF_MONITOR_UNKNOWN) {
                fprintf(stream, "%s{card=\"%zu\",", names[which].name, i);
                write_label(stream, "uuid", card->uuid);
                fputc(',', stream);
                write_label(stream, "name", card->name);
                fprintf(stream, "} %" PRIu64 "\n", bytes);
            }
        }
    }
}

bool uf__prometheus_write(const uf_pages *pages, const uf_cards *cards, FILE *stream)
{
    for (size_t i = 0; i < sizeof seen_metrics / sizeof seen_metrics[0]; i++) {
        write_seen_metric(stream, pages, &seen_metrics[i]);
    }
    write_process_info(stream, pages);
    write_pools(stream, pages);
    write_cards(stream, cards);
    return ferror(stream) == 0;
}
