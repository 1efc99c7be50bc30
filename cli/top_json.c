/* SPDX-License-Identifier: MIT
 *
 * A sample as one line of JSON: raw numbers, null where they are not known. */
#include "top_report.h"

#include <math.h>

#include "json.h"

static void write_known(cli_json *json, const char *key, uint64_t value)
{
    if (value == UF_MONITOR_UNKNOWN) {
        cli_json_null(json, key);
    } else {
        cli_json_uint64(json, key, value);
    }
}

static void write_text(cli_json *json, const char *key, const char *text)
{
    cli_json_string(json, key, text[0] != '\0' ? text : NULL);
}

static void write_share(cli_json *json, const char *key, double share)
{
    cli_json_double(json, key, share < 0.0 ? (double)NAN : share);
}

static void write_cards(cli_json *json, const uf_cards *cards)
{
    cli_json_array_begin(json, "cards");
    for (size_t i = 0; i < cards->count; i++) {
        const uf_card_use *card = &cards->items[i];
        cli_json_object_begin(json, NULL);
        write_known(json, "index", card->index < 0 ? UF_MONITOR_UNKNOWN : (uint64_t)card->index);
        write_text(json, "name", card->name);
        write_text(json, "uuid", card->uuid);
        write_known(json, "total_bytes", card->total_bytes);
        write_known(json, "taken_bytes", card->taken_bytes);
        write_known(json, "watched_bytes", card->ours_bytes);
        write_known(json, "others_bytes", card->others_bytes);
        cli_json_object_end(json);
    }
    cli_json_array_end(json);
}

static void write_pools(cli_json *json, const uf_monitor_page *page)
{
    cli_json_array_begin(json, "pools");
    for (uint32_t i = 0; i < page->pool_row_count; i++) {
        const uf_monitor_pool_row *row = &page->pools[i];
        cli_json_object_begin(json, NULL);
        cli_json_array_begin(json, "id");
        cli_json_uint64(json, NULL, row->id[0]);
        cli_json_uint64(json, NULL, row->id[1]);
        cli_json_array_end(json);
        write_known(json, "reserved_bytes", row->reserved_bytes);
        write_known(json, "active_bytes", row->active_bytes);
        write_known(json, "allocated_bytes", row->allocated_bytes);
        write_known(json, "requested_bytes", row->requested_bytes);
        cli_json_uint64(json, "segments", row->segment_count);
        cli_json_uint64(json, "blocks", row->block_count);
        cli_json_bool(json, "is_private", (row->flags & UF_MONITOR_POOL_PRIVATE) != 0);
        cli_json_bool(json, "is_destroyed", (row->flags & UF_MONITOR_POOL_DESTROYED) != 0);
        cli_json_object_end(json);
    }
    cli_json_array_end(json);
}

static void write_streams(cli_json *json, const uf_monitor_page *page)
{
    cli_json_array_begin(json, "streams");
    for (uint32_t i = 0; i < page->stream_row_count; i++) {
        const uf_monitor_stream_row *row = &page->streams[i];
        cli_json_object_begin(json, NULL);
        cli_json_uint64(json, "stream", row->stream);
        write_known(json, "reserved_bytes", row->reserved_bytes);
        write_known(json, "active_bytes", row->active_bytes);
        write_known(json, "allocated_bytes", row->allocated_bytes);
        write_known(json, "requested_bytes", row->requested_bytes);
        cli_json_uint64(json, "segments", row->segment_count);
        cli_json_uint64(json, "blocks", row->block_count);
        cli_json_object_end(json);
    }
    cli_json_array_end(json);
}

static void write_stats(cli_json *json, const uf_stats *stats)
{
    const char *key;
    int64_t value;
    cli_json_object_begin(json, "stats");
    for (size_t i = 0; uf_stats_entry(stats, i, &key, &value); i++) {
        if (value == INT64_MIN) {
            cli_json_null(json, key);
        } else {
            cli_json_int64(json, key, value);
        }
    }
    cli_json_object_end(json);
}

static void write_process(cli_json *json, const uf_seen *seen)
{
    const uf_monitor_page *page = &seen->page;
    cli_json_object_begin(json, NULL);
    cli_json_uint64(json, "pid", page->pid);
    cli_json_int64(json, "device", page->device_index);
    write_text(json, "command", page->command);
    write_text(json, "policy", page->policy);
    write_text(json, "conf", page->conf);
    write_text(json, "device_name", page->device_name);
    write_text(json, "device_uuid", page->device_uuid);
    write_known(json, "limit_bytes",
                page->limit_bytes == 0 ? UF_MONITOR_UNKNOWN : page->limit_bytes);
    write_known(json, "device_total_bytes", page->device_total_bytes);
    write_known(json, "device_free_bytes", page->device_free_bytes);
    write_known(json, "reserved_bytes", seen->reserved_bytes);
    write_known(json, "active_bytes", seen->active_bytes);
    write_known(json, "allocated_bytes", seen->allocated_bytes);
    write_known(json, "requested_bytes", seen->requested_bytes);
    write_known(json, "cached_bytes", seen->cached_bytes);
    write_known(json, "frozen_bytes", page->frozen_bytes);
    write_known(json, "largest_request_bytes", page->largest_request_bytes);
    write_known(json, "largest_allocatable_bytes", page->largest_allocatable_bytes);
    write_known(json, "allocations", seen->allocation_count);
    write_share(json, "allocations_per_second", seen->allocations_per_second);
    write_known(json, "cache_hits", page->cache_hit_count);
    write_known(json, "cache_misses", page->cache_miss_count);
    write_share(json, "hit_share", seen->hit_share);
    write_known(json, "remaps", page->remap_count);
    write_known(json, "retries", seen->retry_count);
    write_known(json, "ooms", seen->oom_count);
    write_share(json, "fragmented_share", seen->fragmented_share);
    cli_json_bool(json, "is_fragmented", (seen->flags & UF_SEEN_FRAGMENTED) != 0);
    cli_json_bool(json, "is_growing", (seen->flags & UF_SEEN_GROWING) != 0);
    cli_json_bool(json, "is_stalled", (seen->flags & UF_SEEN_STALLED) != 0);
    cli_json_double(json, "age_seconds", (double)seen->age_ns / 1e9);
    write_stats(json, &page->stats);
    write_pools(json, page);
    write_streams(json, page);
    cli_json_object_end(json);
}

cli_exit cli_top_print_json(const cli_top_sample *sample, const size_t *order, size_t count,
                            FILE *stream)
{
    cli_json json;
    cli_json_init(&json, stream);
    json.is_on_one_line = true;
    cli_json_object_begin(&json, NULL);
    cli_json_double(&json, "time", (double)sample->unix_ns / 1e9);
    write_cards(&json, &sample->cards);
    cli_json_array_begin(&json, "processes");
    for (size_t i = 0; i < count; i++) {
        write_process(&json, &sample->pages.items[order[i]]);
    }
    cli_json_array_end(&json);
    cli_json_object_end(&json);
    bool is_written = cli_json_finish(&json);
    return is_written && fflush(stream) == 0 ? CLI_EXIT_DONE : CLI_EXIT_ENVIRONMENT;
}
