/* SPDX-License-Identifier: MIT
 *
 * The list of findings: names, texts, order. */
#include "advise/finding.h"

#include <string.h>

#include "suite.h"

START_TEST(every_id_has_a_name_of_its_own)
{
    for (unsigned i = 0; i < UF_FINDING_COUNT; i++) {
        const char *name = uf__finding_name((uf_finding_id)i);
        ck_assert_uint_gt(strlen(name), 3);
        for (unsigned k = 0; k < i; k++) {
            ck_assert_str_ne(name, uf__finding_name((uf_finding_id)k));
        }
    }
    ck_assert_str_eq(uf__severity_name(uf__finding_severity(UF_FINDING_AFTER_IMPORT)), "note");
}
END_TEST

START_TEST(findings_are_sorted_by_place_and_equals_keep_their_order)
{
    uf_findings findings = {0};
    uint64_t seed = 7;
    for (uint32_t i = 0; i < 500; i++) {
        uf_finding_place place = {(uint32_t)(suite_random(&seed) % 3),
                                  (uint32_t)(suite_random(&seed) % 20),
                                  (uint32_t)(suite_random(&seed) % 2)};
        uf__findings_add(&findings, UF_FINDING_TOO_LATE, place,
                         uf__findings_print(&findings, "%03u", i), "", NULL);
    }
    uf__findings_sort(&findings);
    ck_assert_uint_eq(findings.count, 500);
    for (size_t i = 1; i < findings.count; i++) {
        const uf_finding_place *a = &findings.items[i - 1].place, *b = &findings.items[i].place;
        uint32_t left = a->source * 1000 + a->cell * 100 + a->line;
        uint32_t right = b->source * 1000 + b->cell * 100 + b->line;
        ck_assert_uint_le(left, right);
        if (left == right) {
            ck_assert_int_lt(strcmp(findings.items[i - 1].option, findings.items[i].option), 0);
        }
    }
    uf__findings_fini(&findings);
    ck_assert_ptr_null(findings.items);
}
END_TEST

START_TEST(texts_of_any_length_are_kept)
{
    uf_findings findings = {0};
    char *large = calloc(1, 100001);
    memset(large, 'x', 100000);
    const char *small = uf__findings_copy(&findings, "abc", 2);
    const char *copy = uf__findings_copy(&findings, large, 100000);
    ck_assert_str_eq(small, "ab");
    ck_assert_str_eq(copy, large);
    ck_assert_uint_eq(strlen(uf__findings_print(&findings, "%s!", large)), 100001);
    ck_assert(!findings.has_failed);
    free(large);
    uf__findings_fini(&findings);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {every_id_has_a_name_of_its_own,
                                  findings_are_sorted_by_place_and_equals_keep_their_order,
                                  texts_of_any_length_are_kept, NULL};
    return suite_run("finding", tests);
}
