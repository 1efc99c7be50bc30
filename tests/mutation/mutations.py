# SPDX-License-Identifier: MIT
"""The rules of the allocator, each broken in one place, and the recordings that notice."""

import collections

# edits: (text as it is, text that breaks the rule); each must occur exactly once in the file.
Mutation = collections.namedtuple("Mutation", "name file edits recordings")

GRAPHS = "graphs.default"
GRAPHS_EXPANDABLE = "graphs.expandable"
STREAMS = "multistream.default"
STREAMS_EXPANDABLE = "multistream.expandable"
RESNET = "resnet-stacks"
SPLIT = "train.split128"
DIVISIONS = "zimage-1024.roundup4"
COLLECTED = "zimage-mixed.split128-gc80.cap24GiB"
REFUSED = "sdxl-mixed.default.cap14GiB"
# Operation logs, for rules that no recording of a program shows.
POOLS_LOG = "oplog:pools-1"
SPLIT_LOG = "oplog:split64-1"

FRONT_OLD = """    *front = (uf_block){.addr = rest->addr,
                        .size_bytes = front_bytes,
                        .prev = rest->prev,
                        .next = index,
"""
FRONT_NEW = """    *front = (uf_block){.addr = rest->addr + rest->size_bytes - front_bytes,
                        .size_bytes = front_bytes,
                        .prev = index,
                        .next = rest->next,
"""
LINKS_OLD = """    if (rest->prev != UF_NO_BLOCK) {
        blocks[rest->prev].next = front_index;
    }
    rest->prev = front_index;
    rest->addr += front_bytes;
"""
LINKS_NEW = """    if (rest->next != UF_NO_BLOCK) {
        blocks[rest->next].prev = front_index;
    }
    rest->next = front_index;
"""

FLUSH_OLD = """            status = release_class(core, UF_DEFAULT_POOL, UF_CLASS_LARGE);
        }
        if (status == UF_OK) {
            status = release_class(core, UF_DEFAULT_POOL, UF_CLASS_SMALL);
"""
FLUSH_NEW = """            status = release_class(core, UF_DEFAULT_POOL, UF_CLASS_SMALL);
        }
        if (status == UF_OK) {
            status = release_class(core, UF_DEFAULT_POOL, UF_CLASS_LARGE);
"""

PRIVATE_OLD = """    uf_status status = release_class(core, pool, UF_CLASS_SMALL);
    if (status == UF_OK) {
        status = release_class(core, pool, UF_CLASS_LARGE);
"""
PRIVATE_NEW = """    uf_status status = release_class(core, pool, UF_CLASS_LARGE);
    if (status == UF_OK) {
        status = release_class(core, pool, UF_CLASS_SMALL);
"""

SEARCH = ("    uint32_t first = uf__freeset_find(&shelf->cached, blocks, rounded_bytes, &spot);\n"
          "    if (first == UF_NO_BLOCK) {\n        return UF_NO_BLOCK;\n    }\n")

MUTATIONS = (
    Mutation("equal_sizes_are_served_highest_address_first", "alloc/core.c", [
        (SEARCH, SEARCH + """    first = uf__freeset_before(&shelf->cached, blocks, blocks[first].size_bytes, UINT64_MAX);
    spot.link = &shelf->cached.roots[spot.bin];
    while (*spot.link != first) {
        uf_block *here = &blocks[*spot.link];
        spot.link = &here->child[uf__freeset_less(here, blocks[first].size_bytes,
                                                  blocks[first].addr)];
    }
""")], [GRAPHS, RESNET]),
    Mutation("a_rest_of_exactly_1_mib_is_split_off", "alloc/core.c", [
        ("rest_bytes > UF_SMALL_MAX_BYTES", "rest_bytes >= UF_SMALL_MAX_BYTES")],
        [RESNET]),
    Mutation("a_rest_of_512_kib_is_split_off", "alloc/core.c", [
        ("rest_bytes > UF_SMALL_MAX_BYTES", "rest_bytes > UF_SMALL_MAX_BYTES / 2")],
        [GRAPHS, RESNET]),
    Mutation("a_small_rest_below_1024_stays_in_the_block", "alloc/core.c", [
        ("rest_bytes < UF_MIN_BLOCK_BYTES ||", "rest_bytes < 2 * UF_MIN_BLOCK_BYTES ||")],
        [GRAPHS, RESNET]),
    Mutation("the_rest_of_a_split_is_at_the_front", "alloc/core.c", [
        (FRONT_OLD, FRONT_NEW), (LINKS_OLD, LINKS_NEW)], [GRAPHS]),
    Mutation("a_freed_block_is_not_merged_with_the_next", "alloc/core.c", [
        ("if (can_absorb(blocks, next, block->is_mapped))",
         "if (!block->is_mapped && can_absorb(blocks, next, block->is_mapped))")], [GRAPHS]),
    Mutation("a_freed_block_is_not_merged_with_the_previous", "alloc/core.c", [
        ("if (can_absorb(blocks, prev, block->is_mapped))",
         "if (!block->is_mapped && can_absorb(blocks, prev, block->is_mapped))")], [GRAPHS]),
    Mutation("a_merged_block_keeps_the_request_of_what_it_absorbed", "alloc/core.c", [
        ("        merged.prev_bytes = blocks[prev].size_bytes;\n",
         "        merged.prev_bytes = blocks[prev].size_bytes;\n"
         "        block->requested_bytes = blocks[prev].requested_bytes;\n")], [GRAPHS, RESNET]),
    Mutation("the_rest_of_a_split_forgets_its_last_request", "alloc/core.c", [
        ("    rest->life = UF_LIFE_FREE;\n",
         "    rest->life = UF_LIFE_FREE;\n    rest->requested_bytes = 0;\n")], [STREAMS]),
    Mutation("segments_are_rounded_to_1_mib", "alloc/rounding.h", [
        ("#define UF_ROUND_LARGE_BYTES UINT64_C(2097152)",
         "#define UF_ROUND_LARGE_BYTES UINT64_C(1048576)")], [GRAPHS, RESNET]),
    Mutation("segments_of_their_own_size_begin_at_12_mib", "alloc/rounding.h", [
        ("#define UF_MIN_LARGE_BYTES UINT64_C(10485760)",
         "#define UF_MIN_LARGE_BYTES UINT64_C(12582912)")], [GRAPHS, RESNET]),
    Mutation("exactly_1_mib_is_large", "alloc/core.c", [
        ("request->pool_class = rounded <= UF_SMALL_MAX_BYTES",
         "request->pool_class = rounded < UF_SMALL_MAX_BYTES")], [GRAPHS, RESNET]),
    Mutation("divisions_begin_one_division_later", "alloc/rounding.h", [
        ("bytes > (divisions << 9)", "bytes > (divisions << 12)")], [DIVISIONS]),
    Mutation("the_walk_by_effective_size_is_left_out", "alloc/core.c", [
        ("    while (blocks[index].region != 0) {\n",
         "    while (blocks == NULL) {\n")], [GRAPHS_EXPANDABLE, STREAMS_EXPANDABLE]),
    Mutation("growing_does_not_start_at_the_free_end_before_the_gap", "alloc/region.c", [
        ("if (is_usable(core, blocks[start].prev))",
         "if (blocks == NULL && is_usable(core, blocks[start].prev))")], [STREAMS_EXPANDABLE]),
    Mutation("large_regions_have_pages_of_2_mib", "alloc/region.c", [
        (": core->conf.large_segment_bytes;", ": UF_SMALL_SEGMENT_BYTES;")], [STREAMS_EXPANDABLE]),
    Mutation("a_flush_goes_small_before_large", "alloc/release.c", [(FLUSH_OLD, FLUSH_NEW)],
             [GRAPHS]),
    Mutation("a_private_pool_goes_large_before_small", "alloc/release.c", [
        (PRIVATE_OLD, PRIVATE_NEW)], [POOLS_LOG]),
    Mutation("free_pages_are_unmapped_from_the_largest_down", "alloc/release.c", [
        ("? uf__region_unmap_block(core, indices[i])",
         "? uf__region_unmap_block(core, indices[expandable_count - 1 - i])")],
        [GRAPHS_EXPANDABLE, STREAMS_EXPANDABLE]),
    Mutation("ages_are_not_reset", "alloc/core.c", [
        ("    block->age_base = core->pools[shelf->pool].classes[shelf->pool_class].search_count;\n",
         "")], [COLLECTED]),
    Mutation("a_pass_of_the_collection_stops_at_its_target", "alloc/release.c", [
        ("bool is_due = status == UF_OK &&",
         "bool is_due = status == UF_OK && *freed_bytes == 0 &&")], [COLLECTED]),
    Mutation("oversize_blocks_are_split", "alloc/core.c", [
        ("    return request->rounded_bytes < core->conf.max_split_size_bytes &&\n"
         "           rest_bytes > UF_SMALL_MAX_BYTES;",
         "    return rest_bytes > UF_SMALL_MAX_BYTES;")], [SPLIT]),
    Mutation("an_oversize_block_serves_a_normal_request", "alloc/core.c", [
        ("return size_bytes >= max_split ? UF_NO_BLOCK : index;", "return index;")], [SPLIT]),
    Mutation("an_oversize_block_serves_any_oversize_request", "alloc/core.c", [
        ("return is_too_large ? UF_NO_BLOCK : index;", "return index;")], [SPLIT]),
    Mutation("oversize_release_is_left_out", "alloc/acquire.c", [
        ("if (core->conf.max_split_size_bytes != UF_UNLIMITED) {",
         "if (core->conf.max_split_size_bytes == 1) {")], [SPLIT_LOG]),
    Mutation("a_retry_is_not_counted", "alloc/acquire.c", [
        ("        core->counters.num_alloc_retries++;\n", "")], [REFUSED]),
    Mutation("an_oom_event_shows_the_segment", "alloc/acquire.c", [
        ("UF_ACTION_OOM, free_bytes, request->rounded_bytes,",
         "UF_ACTION_OOM, free_bytes, request->segment_bytes,")], [REFUSED]),
    Mutation("inactive_split_changes_piece_by_piece", "alloc/core.c", [
        ("        net += is_split;\n        net_bytes += is_split * (int64_t)block->size_bytes;\n",
         "        uf__counter_change(counters, UF_COUNTER_INACTIVE_SPLIT, c, is_split);\n"
         "        uf__counter_change(counters, UF_COUNTER_INACTIVE_SPLIT_BYTES, c,\n"
         "                           is_split * (int64_t)block->size_bytes);\n")], [GRAPHS]),
    Mutation("a_first_split_counts_the_part_handed_out", "alloc/core.c", [
        ("net_bytes += size_bytes - (int64_t)rounded_bytes;",
         "net_bytes += was_split ? size_bytes - (int64_t)rounded_bytes : (int64_t)rounded_bytes;")], [GRAPHS]),
    Mutation("the_peak_of_both_pools_is_the_sum_of_peaks", "alloc/counters.c", [
        ("    int64_t all = uf__counter_all(counters, id);\n    if (own",
         "    int64_t all = mark->peak[0] + mark->peak[1];\n    if (own")], [GRAPHS]),
    Mutation("active_bytes_fall_by_the_merged_size", "alloc/core.c", [
        ("uf__counter_decrease(counters, UF_COUNTER_ACTIVE_BYTES, c, size_bytes);",
         "uf__counter_decrease(counters, UF_COUNTER_ACTIVE_BYTES, c, block->size_bytes);")],
        [GRAPHS]),
    Mutation("a_waiting_block_counts_as_allocated", "alloc/core.c", [
        ("    uf__counter_decrease(counters, UF_COUNTER_ALLOCATION, shelf->pool_class, 1);\n",
         "    uf__counter_decrease(counters, UF_COUNTER_ALLOCATION, shelf->pool_class,\n"
         "                         block->uses == 0);\n")], [STREAMS]),
)
