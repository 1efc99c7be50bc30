# SPDX-License-Identifier: MIT
"""The rules of the unfrag policy's parts and of debug mode, each broken in one place, and the unit test
that notices."""

import collections

# edits: (text as it is, text that breaks the rule); each must occur exactly once in the file.
Mutation = collections.namedtuple("Mutation", "name file edits test")

PLACE, HOLE, TAKE = "alloc/place.c", "alloc/hole.c", "alloc/take.c"
EPOCH, SHADOW, PAGING = "alloc/epoch.c", "alloc/shadow.c", "alloc/paging.c"
CHECK, DEBUG, POISON = "alloc/paging_check.c", "alloc/debug.c", "alloc/poison.c"
GLUE = "alloc/allocator_debug.c"

CHECK_OLD = "        if (%s) {\n            return broken("
CHECK_NEW = "        if (false && (%s)) {\n            return broken("


def unchecked(name, condition):
    """The checker without one of its questions."""
    return Mutation(name, CHECK, [(CHECK_OLD % condition, CHECK_NEW % condition)], "paging_check")


MUTATIONS = (
    # Where a block goes
    Mutation("at_equal_cost_the_last_hole_wins", PLACE, [
        ("|| cost < search->best.cost) {", "|| cost <= search->best.cost) {")], "place"),
    Mutation("a_created_page_costs_as_any_other", PLACE, [
        ("GROWN_DIVISOR = 4", "GROWN_DIVISOR = 1")], "place"),
    Mutation("a_cut_hole_costs_twice", PLACE, [("SPLIT_DIVISOR = 4", "SPLIT_DIVISOR = 1")], "place"),
    Mutation("without_a_limit_looser_holes_count", PLACE, [("SLACK = 2", "SLACK = 3")], "place"),
    Mutation("bounds_inside_are_places_while_there_is_room", PLACE, [
        ("if (search->is_limited && search->room_bytes < search->size_bytes) {",
         "if (search->is_limited) {")], "place"),
    Mutation("a_page_at_work_is_cut_like_an_idle_one", PLACE, [
        ("cost += core->redirection_count != 0 ? COST_NEVER : COST_WAIT;", "")], "place"),
    Mutation("a_cut_is_free", PLACE, [
        ("cost += (uint64_t)core->paging->costs[UF_PAGE_LARGE].unmap_ns;", "cost += 0;")], "place"),
    Mutation("a_loose_page_maps_itself", PLACE, [
        ("cost += loose * map + grown", "cost += grown")], "place"),
    Mutation("a_moved_page_costs_no_unmapping", PLACE, [
        ("cost += (rest - grown) * (map + (uint64_t)paging->costs[size].unmap_ns);",
         "cost += (rest - grown) * map;")], "place"),
    Mutation("only_the_start_of_a_hole_is_a_place", PLACE, [
        ("        if (!is_last(core, hole)) {", "        if (false) {")], "place"),
    # Holes
    Mutation("a_closed_page_counts_as_known", HOLE, [
        (" && !core->paging->pages[page].is_closed", "")], "hole"),
    Mutation("known_pages_begin_in_front_of_the_hole", HOLE, [
        ("at < hole->addr ? hole->addr : at > end ? end : at", "at > end ? end : at")], "hole"),
    Mutation("known_pages_end_behind_the_hole", HOLE, [
        ("at < hole->addr ? hole->addr : at > end ? end : at",
         "at < hole->addr ? hole->addr : at")], "hole"),
    Mutation("a_merged_hole_is_as_old_as_its_oldest_part", HOLE, [
        ("other->age_base > block->age_base", "other->age_base < block->age_base")], "hole"),
    Mutation("half_a_granule_belongs_to_the_hole", HOLE, [
        (".from = uf__granule_ceil(core, hole->addr)", ".from = uf__granule_floor(core, hole->addr)")],
        "hole"),
    Mutation("what_is_behind_a_piece_is_not_put_back", HOLE, [
        ("    if (uf__block_end(&core->blocks.items[index]) > end) {", "    if (false) {")], "hole"),
    # Taking pages
    Mutation("the_youngest_hole_gives_first", TAKE, [
        ("return (a->age > b->age) - (a->age < b->age);",
         "return (a->age < b->age) - (a->age > b->age);")], "take"),
    Mutation("what_is_at_work_counts_as_idle", TAKE, [
        ("bool is_idle = uf__epoch_is_done(core, its_stream, hole->age_base);",
         "bool is_idle = true;")], "take"),
    Mutation("pages_of_another_stream_are_aliased", TAKE, [
        ("mode == UF_TAKE_ALIAS && its_stream == stream", "mode == UF_TAKE_ALIAS")], "take"),
    Mutation("a_capture_leaves_shadows", TAKE, [
        ("core->redirection_count == 0 ? UF_TAKE_ALIAS : UF_TAKE_IDLE", "UF_TAKE_ALIAS")], "take"),
    Mutation("a_living_pool_gives_pages", TAKE, [
        ("core->pools[shelf->pool].use_count == 0 ||", "true ||")], "take"),
    Mutation("age_does_not_count", TAKE, [(" || victims[i].age > freed_by", "")], "take"),
    Mutation("a_page_has_more_shadows_than_can_be_counted", TAKE, [
        ("core->paging->pages[page].shadow_count < UINT8_MAX", "true")], "take"),
    Mutation("a_hole_forgets_that_pages_went", TAKE, [
        ("if (is_idle && status == UF_OK && hole->requested_bytes > run.from) {", "if (false) {")],
        "take"),
    Mutation("a_full_driver_stays_full", TAKE, [
        ("                *is_refused = *is_refused && !is_made;\n", "")], "take"),
    Mutation("no_large_page_is_given_back", TAKE, [
        ("    *is_made = status == UF_OK && core->paging->loose_count[UF_PAGE_LARGE] > large_count;",
         "    *is_made = false;")], "take"),
    Mutation("missing_large_pages_are_not_made_up_for", TAKE, [
        ("small_count += missing * per_large;", "")], "take"),
    # Epochs
    Mutation("every_stream_is_marked", EPOCH, [
        ("        if (has_freed_since(core, i)) {", "        if (true || has_freed_since(core, i)) {")],
        "epoch"),
    Mutation("a_capture_records_events", EPOCH, [
        ("    uf_status status = UF_OK;\n    if (core->redirection_count != 0) {\n        return UF_OK;",
         "    uf_status status = UF_OK;\n    if (false) {\n        return UF_OK;")], "epoch"),
    Mutation("a_capture_asks_for_events", EPOCH, [
        ("core->redirection_count == 0 && i < core->paging->stream_count",
         "i < core->paging->stream_count")], "epoch"),
    Mutation("a_capture_waits", EPOCH, [
        ("    if (core->redirection_count != 0) {\n        return UF_ERROR_BUSY;",
         "    if (false) {\n        return UF_ERROR_BUSY;")], "epoch"),
    Mutation("the_free_that_ended_an_epoch_is_not_in_it", EPOCH, [
        ("return sequence <= core->paging->epochs[stream].done_sequence;",
         "return sequence < core->paging->epochs[stream].done_sequence;")], "epoch"),
    Mutation("one_watched_stream_is_enough", EPOCH, [
        ("least = sequence < least ? sequence : least;",
         "least = sequence < least && sequence != 0 ? sequence : least;")], "epoch"),
    Mutation("a_stream_without_frees_is_not_watched", EPOCH, [
        ("paging->is_every_stream_watched ? paging->free_sequence : paging->last_free[stream]",
         "paging->last_free[stream]")], "epoch"),
    Mutation("a_stream_that_was_only_named_is_not_watched", "alloc/pending.c", [
        ("core->paging->is_every_stream_watched &&\n", "false &&\n")], "epoch"),
    Mutation("an_event_that_could_not_be_waited_for_is_done", EPOCH, [
        ("            status = core->device->event_wait(core->device->context, epochs->open[0].event);\n"
         "            if (status != UF_OK) {",
         "            status = core->device->event_wait(core->device->context, epochs->open[0].event);\n"
         "            if (false) {")], "epoch"),
    # Shadows
    Mutation("a_page_does_not_know_its_shadow", SHADOW, [
        ("        paging->pages[pages[count]].shadow_count++;\n", "")], "shadow"),
    Mutation("a_page_keeps_its_shadow", SHADOW, [
        ("        paging->pages[shadow->pages[i]].shadow_count--;\n", "")], "shadow"),
    Mutation("a_shadow_goes_before_the_work_is_done", SHADOW, [
        ("        if (uf__epoch_is_done(core, shadow->stream, shadow->sequence)) {", "        if (true) {")],
        "shadow"),
    Mutation("a_shadow_that_cannot_be_unmapped_goes", SHADOW, [
        ("    if (status != UF_OK) {\n        return uf__core_device_failed(core, status);",
         "    if (false) {\n        return uf__core_device_failed(core, status);")], "shadow"),
    Mutation("a_page_goes_while_it_is_mapped", PAGING, [
        ("    if (paging->pages[paging->loose[size]].shadow_count != 0) {", "    if (false) {")], "shadow"),
    # Pages that can be neither used nor unmapped
    Mutation("what_was_mapped_in_vain_stays_mapped", PAGING, [
        ("        if (uf__pages_unmap(core, &mapped) != UF_OK) {", "        if (true) {")], "paging"),
    Mutation("closed_pages_are_not_noted", PAGING, [("            close(core, &mapped);\n", "")], "paging"),
    Mutation("closed_pages_are_handed_out", PAGING, [
        ("core->paging->closed_count != 0 && at < stretch->to;", "false;")], "paging"),
    Mutation("an_opened_page_is_opened_again", PAGING, [
        ("        open_page(core->paging, page);\n    }\n    return UF_OK;",
         "    }\n    return UF_OK;")], "paging"),
    Mutation("a_page_taken_away_stays_closed", PAGING, [
        ("        open_page(core->paging, page);\n        loosen(core->paging, page);",
         "        loosen(core->paging, page);")], "paging"),
    # The checker
    unchecked("loose_pages_in_a_table_pass",
              "page >= paging->page_count || !paging->pages[page].is_there ||\n"
              "            paging->pages[page].is_loose"),
    unchecked("pages_of_other_places_pass",
              "addr < paging->pages[page].addr ||\n"
              "            addr >= paging->pages[page].addr + uf__page_bytes(core, page)"),
    Mutation("a_hole_may_know_what_is_outside", CHECK, [
        ("    if (hole->requested_bytes < hole->addr ||\n"
         "        hole->requested_bytes > hole->addr + hole->size_bytes) {",
         "    if (false) {")], "paging_check"),
    unchecked("a_hole_may_know_pages_that_are_not_there",
              "uf__page_at(core, hole->region, at) == UF_NO_PAGE"),
    Mutation("an_active_block_may_have_gaps", CHECK, [
        ("            return broken(error, \"an active block has no page somewhere\", index);",
         "            continue;")], "paging_check"),
    Mutation("a_large_page_may_begin_before_its_block", CHECK, [
        ("(page_addr < block->addr || page_addr", "(page_addr")], "paging_check"),
    Mutation("a_large_page_may_end_behind_its_block", CHECK, [
        ("|| page_addr + uf__page_bytes(core, page) > end)", ")")], "paging_check"),
    Mutation("the_loose_list_is_not_looked_at", CHECK, [
        ("if (!paging->pages[i].is_loose || paging->pages[i].size != size) {", "if (false) {")],
        "paging_check"),
    Mutation("the_loose_list_is_not_counted", CHECK, [
        ("if (count != paging->loose_count[size]) {", "if (false) {")], "paging_check"),
    Mutation("loose_bytes_are_not_added_up", CHECK, [
        ("if (loose_bytes != paging->loose_bytes || total_bytes", "if (total_bytes")], "paging_check"),
    Mutation("all_bytes_are_not_added_up", CHECK, [
        ("loose_bytes != paging->loose_bytes || total_bytes + plain_bytes != core->total_bytes",
         "loose_bytes != paging->loose_bytes")], "paging_check"),
    Mutation("a_shadow_may_have_pages", CHECK, [
        ("                status = broken(error, \"a shadow has pages\", i);\n", "")], "paging_check"),
    Mutation("mapped_and_loose_need_not_be_all", CHECK, [
        ("    if (status == UF_OK &&\n"
         "        mapped_bytes + core->paging->loose_bytes + plain_bytes != core->total_bytes) {",
         "    if (false) {")], "paging_check"),
    # Debug mode
    Mutation("filled_memory_that_went_is_expected", GLUE, [("    case UF_ACTION_SEGMENT_UNMAP:\n", "")],
             "debug_random"),
    Mutation("filled_segments_that_went_are_expected", GLUE, [
        ("    case UF_ACTION_SEGMENT_FREE:\n", "")], "debug_random"),
    Mutation("free_memory_of_pools_is_filled", GLUE, [
        (".is_filled = !is_shared}", ".is_filled = is_shared || true}")], "debug"),
    Mutation("an_open_scope_waits", GLUE, [
        ("return allocator->core.redirection_count == 0;", "return allocator != NULL;")], "debug"),
    Mutation("nothing_is_looked_at_before_memory_goes", GLUE, [
        ("        uf__debug_check(allocator->debug);\n", "")], "debug"),
    Mutation("what_is_handed_out_is_not_looked_at", DEBUG, [
        ("    if (can_wait) {\n        look_at_range(", "    if (false) {\n        look_at_range(")], "debug"),
    Mutation("memory_in_use_is_handed_out", DEBUG, [
        ("if (at < debug->block_count && debug->blocks[at].addr < end) {", "if (false) {")], "debug"),
    Mutation("a_guard_ends_early", DEBUG, [
        ("uint64_t bytes = block->size_bytes - block->requested_bytes;", "uint64_t bytes = 511;")], "debug"),
    Mutation("a_guard_that_could_not_be_set_is_expected", DEBUG, [
        ("GUARD_BYTE, block->stream) == UF_OK;", "GUARD_BYTE, block->stream) != UF_ERROR_BUSY;")],
        "debug_random"),
    Mutation("a_filling_that_could_not_be_set_is_expected", DEBUG, [
        ("                          block.stream) == UF_OK) {",
         "                          block.stream) != UF_ERROR_BUSY) {")], "debug_random"),
    Mutation("a_guard_is_told_again_and_again", DEBUG, [
        ("debug->blocks[i].is_guarded &= debug->damage_count == before;",
         "debug->blocks[i].is_guarded &= debug->damage_count >= before;")], "debug"),
    Mutation("damage_told_is_told_again", DEBUG, [
        ("    if (debug->untold_at > since) {", "    if (debug->untold_at > since + 1000) {")], "debug"),
    Mutation("frees_are_not_remembered", DEBUG, [
        ("for (*ago = 0; *ago < debug->free_count &&", "for (*ago = 0; false &&")], "debug"),
    Mutation("a_stretch_cut_in_its_middle_loses_its_rear", POISON, [
        ("            (void)insert(map, first, &rear);\n", "")], "poison"),
    Mutation("a_stretch_cut_at_its_start_keeps_it", POISON, [
        ("    if (behind < map->count && map->items[behind].addr < end) {", "    if (false) {")], "poison"),
    Mutation("new_stretches_lie_over_old_ones", POISON, [
        ("    uf__poison_drop(map, poison->addr, poison->size_bytes);\n    return insert",
         "    return insert")], "poison"),
)
