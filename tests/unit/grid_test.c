/* SPDX-License-Identifier: MIT
 *
 * The grid of settings: every string parses, none is inert or harmful, releases get what they know.
 */
#include "advise/grid.h"

#include <string.h>

#include "suite.h"

static uint32_t count_with(const uf_grid *grid, const char *word)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < grid->count; i++) {
        count += strstr(grid->points[i].conf, word) != NULL;
    }
    return count;
}

static void make(uf_grid *grid, uf_conf_grammar grammar, uint16_t release, bool has_limit)
{
    ck_assert_int_eq(uf__grid_init(grid, grammar, release, has_limit), UF_OK);
    ck_assert_uint_gt(grid->count, 4);
}

START_TEST(every_string_parses_under_its_grammar_and_to_its_values)
{
    static const struct {
        uf_conf_grammar grammar;
        uint16_t release;
    } releases[] = {{UF_CONF_2_11, 0},  {UF_CONF_2_10, 0},   {UF_CONF_2_0, 209},
                    {UF_CONF_2_0, 200}, {UF_CONF_1_10, 113}, {UF_CONF_1_10, 110}};
    for (size_t r = 0; r < sizeof releases / sizeof releases[0]; r++) {
        uf_grid grid;
        make(&grid, releases[r].grammar, releases[r].release, true);
        for (uint32_t i = 0; i < grid.count; i++) {
            const uf_conf_reading reading = {.grammar = releases[r].grammar,
                                             .release = releases[r].release,
                                             .is_at_import = true};
            uf_error error;
            uf_conf conf;
            uf__conf_init(&conf);
            ck_assert_msg(uf__conf_read(&conf, grid.points[i].conf, &reading, NULL, &error) ==
                              UF_OK,
                          "%s: %s", grid.points[i].conf, error.text);
            uf__conf_init(&conf);
            ck_assert_int_eq(uf__conf_parse(&conf, grid.points[i].conf, UF_CONF_2_11, NULL), UF_OK);
            ck_assert(uf__conf_is_equal(&conf, &grid.points[i].values));
        }
        uf__grid_fini(&grid);
    }
}
END_TEST

START_TEST(no_setting_is_inert_or_harmful)
{
    for (int has_limit = 0; has_limit < 2; has_limit++) {
        uf_grid grid;
        make(&grid, UF_CONF_2_11, 0, has_limit != 0);
        uf_conf defaults;
        uf__conf_init(&defaults);
        for (uint32_t i = 0; i < grid.count; i++) {
            const uf_conf *conf = &grid.points[i].values;
            bool has_collection = conf->garbage_collection_threshold > 0.0;
            bool has_split = conf->max_split_size_bytes != UF_UNLIMITED;
            bool has_rounding = strstr(grid.points[i].conf, "max_non_split_rounding_mb") != NULL;
            ck_assert(has_limit || !has_collection || grid.points[i].is_popular);
            ck_assert(!conf->is_expandable || (!has_collection && !has_split));
            ck_assert(!conf->is_expandable ||
                      conf->large_segment_bytes <= defaults.large_segment_bytes);
            ck_assert(has_split || !has_rounding);
            ck_assert_int_eq(grid.points[i].needs_limit, has_collection);
            ck_assert(!conf->is_async_backend);
            for (uint32_t j = 0; j < i; j++) {
                ck_assert_msg(!uf__conf_is_equal(conf, &grid.points[j].values), "%s and %s",
                              grid.points[i].conf, grid.points[j].conf);
            }
        }
        uf__grid_fini(&grid);
    }
}
END_TEST

START_TEST(the_popular_settings_come_first)
{
    static const char *const popular[] = {"", "max_split_size_mb:128",
                                          "max_split_size_mb:128,garbage_collection_threshold:0.8",
                                          "max_split_size_mb:512", "expandable_segments:True"};
    uf_grid grid;
    make(&grid, UF_CONF_2_11, 0, false);
    for (uint32_t i = 0; i < grid.count; i++) {
        ck_assert_int_eq(grid.points[i].is_popular, i < 5);
    }
    for (uint32_t i = 0; i < 5; i++) {
        ck_assert_str_eq(grid.points[i].conf, popular[i]);
    }
    uf__grid_fini(&grid);
}
END_TEST

START_TEST(releases_get_the_options_they_know)
{
    uf_grid grid;
    make(&grid, UF_CONF_2_11, 0, true);
    ck_assert_uint_gt(count_with(&grid, "large_segment_size_mb"), 0);
    ck_assert_uint_gt(count_with(&grid, "max_non_split_rounding_mb"), 0);
    ck_assert_uint_gt(count_with(&grid, "max_split_size_mb:20"), 1);
    uf__grid_fini(&grid);
    make(&grid, UF_CONF_2_10, 0, true);
    ck_assert_uint_eq(count_with(&grid, "large_segment_size_mb"), 0);
    ck_assert_uint_gt(count_with(&grid, "expandable_segments"), 0);
    uf__grid_fini(&grid);
    make(&grid, UF_CONF_2_0, 200, true);
    ck_assert_uint_eq(count_with(&grid, "expandable_segments"), 0);
    ck_assert_uint_eq(count_with(&grid, "max_non_split_rounding_mb"), 0);
    ck_assert_uint_gt(count_with(&grid, "garbage_collection_threshold"), 0);
    uf__grid_fini(&grid);
    make(&grid, UF_CONF_1_10, 110, true);
    ck_assert_uint_eq(count_with(&grid, "garbage_collection_threshold"), 0);
    ck_assert_uint_eq(count_with(&grid, "roundup_power2_divisions"), 0);
    ck_assert_uint_gt(count_with(&grid, "max_split_size_mb"), 5);
    uf__grid_fini(&grid);
}
END_TEST

START_TEST(a_setting_is_added_once_and_a_bad_one_not_at_all)
{
    uf_grid grid;
    make(&grid, UF_CONF_2_11, 0, true);
    uint32_t count = grid.count, index = 77;
    uf_error error = {0};
    ck_assert_int_eq(uf__grid_add(&grid, "max_split_size_mb:512", UF_CONF_2_11, 0, &index, &error),
                     UF_OK);
    ck_assert_uint_eq(grid.count, count);
    ck_assert_str_eq(grid.points[index].conf, "max_split_size_mb:512");
    ck_assert_int_eq(uf__grid_add(&grid, "garbage_collection_threshold:0.7,max_split_size_mb:77",
                                  UF_CONF_2_11, 0, &index, &error),
                     UF_OK);
    ck_assert_uint_eq(index, count);
    ck_assert_uint_eq(grid.count, count + 1);
    ck_assert(grid.points[index].needs_limit && !grid.points[index].is_popular);
    ck_assert_uint_eq(grid.points[index].option_count, 2);
    index = 77;
    ck_assert_int_eq(uf__grid_add(&grid, "max_spilt_size_mb:1", UF_CONF_2_11, 0, &index, &error),
                     UF_ERROR_CONF);
    ck_assert_uint_eq(index, 77);
    ck_assert_uint_eq(grid.count, count + 1);
    ck_assert(strstr(error.text, "max_split_size_mb") != NULL);
    uf__grid_fini(&grid);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {every_string_parses_under_its_grammar_and_to_its_values,
                            no_setting_is_inert_or_harmful,
                            the_popular_settings_come_first,
                            releases_get_the_options_they_know,
                            a_setting_is_added_once_and_a_bad_one_not_at_all,
                            NULL};
    return suite_run("grid", tests);
}
