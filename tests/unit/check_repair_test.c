/* SPDX-License-Identifier: MIT
 *
 * What authors of settings strings meant, and the corrected strings. */
#include "advise/check_repair.h"

#include <string.h>

#include "suite.h"

static uf_findings texts;

static const char *repaired(const char *version, const char *text)
{
    uf_repair repair = {.is_at_import = true};
    uf_error error;
    ck_assert_int_eq(uf__conf_release_find(version, &repair.grammar, &repair.release, &error),
                     UF_OK);
    return uf__repair(&repair, text, &texts);
}

START_TEST(items_are_found_whatever_separates_them)
{
    static const char text[] = "max_split_size_mb=128; expandable_segments = true|backend native";
    uf_meaning meaning;
    uf__meaning_read(text, &meaning);
    ck_assert_uint_ge(meaning.count, 3);
    ck_assert_ptr_eq(meaning.items[0].option, uf__conf_option_at(UF_CONF_MAX_SPLIT_SIZE));
    ck_assert_uint_eq(meaning.items[0].value_length, 3);
    ck_assert_int_eq(meaning.items[0].separator, '=');
    ck_assert_ptr_eq(meaning.items[1].option, uf__conf_option_at(UF_CONF_EXPANDABLE_SEGMENTS));
    ck_assert_mem_eq(text + meaning.items[1].value_offset, "true", 4);
}
END_TEST

START_TEST(slips_are_corrected)
{
    static const char *const pairs[][2] = {
        {"max_split_size_mb=128", "max_split_size_mb:128"},
        {"expandable_segments:true", "expandable_segments:True"},
        {"Expandable_Segments:ON", "expandable_segments:True"},
        {"max_split_sise_mb:128", "max_split_size_mb:128"},
        {"\"max_split_size_mb:128\"", "max_split_size_mb:128"},
        {"max_split_size_mb:1g", "max_split_size_mb:1024"},
        {"max_split_size_mb:128:roundup_power2_divisions:3",
         "max_split_size_mb:128,roundup_power2_divisions:4"},
        {"roundup_power2_divisions:[256:1,512:3,>:8", "roundup_power2_divisions:[256:1,512:4,>:8]"},
        {"per_process_memory_fraction:90%,garbage_collection_threshold:80%",
         "per_process_memory_fraction:0.9,garbage_collection_threshold:0.8"},
        {"expandable_segments:True,max_split_size_mb:512", "expandable_segments:True"},
        {"backend:cudamallocasync,max_split_size_mb:512", "backend:cudaMallocAsync"},
        {"max_split_size_mb:128,max_split_size_mb:256", "max_split_size_mb:256"},
        {"roundup_power2_divisions:1", ""},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        const char *text = repaired("2.11", pairs[i][0]);
        ck_assert_msg(text != NULL && strcmp(text, pairs[i][1]) == 0, "%s became %s", pairs[i][0],
                      text == NULL ? "nothing" : text);
    }
}
END_TEST

START_TEST(what_a_release_does_not_know_is_left_out)
{
    ck_assert_str_eq(repaired("2.0", "expandable_segments:True,max_split_size_mb:512"),
                     "max_split_size_mb:512");
    ck_assert_str_eq(repaired("2.9", "garbage_collection_threshold:0.8,max_split_size_mb:512"),
                     "max_split_size_mb:512");
    ck_assert_ptr_null(repaired("1.13", "expandable_segments:True"));
}
END_TEST

START_TEST(foreign_text_is_not_repaired)
{
    ck_assert_ptr_null(repaired("2.11", "C:\\Program Files\\CUDA\\bin\""));
    ck_assert_ptr_null(repaired("2.11", "max_split_size_mb:many"));
    ck_assert_ptr_null(repaired("2.11", ""));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {items_are_found_whatever_separates_them, slips_are_corrected,
                                  what_a_release_does_not_know_is_left_out,
                                  foreign_text_is_not_repaired, NULL};
    int code = suite_run("check_repair", tests);
    uf__findings_fini(&texts);
    return code;
}
