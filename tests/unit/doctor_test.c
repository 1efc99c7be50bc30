/* SPDX-License-Identifier: MIT
 *
 * The whole examination over a fake driver and a made-up /proc: cards joined, sizes, verdicts, and
 * the next step. */
#include "advise/doctor.h"

#include "unit/fake_gpu.h"
#include "unit/folder.h"
#include "unit/suite.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

static uf_doctor doctor;
static const char *variables[4];
static uf_doctor_options options;

static void prepare(const char *setup)
{
    folder_create();
    memset(variables, 0, sizeof variables);
    variables[0] = "PATH=/nowhere";
    variables[1] = "HOME=/";
    options = (uf_doctor_options){.variables = variables,
                                  .variable_count = 2,
                                  .root = folder,
                                  .cards_table = PROJECT_DATA_DIR "/cards.tsv"};
    fake_gpu_set(setup);
}

static void examine(uf_doctor_verdict verdict, const char *next)
{
    uf_error error = {0};
    ck_assert_int_eq(uf__doctor_examine(&options, &doctor, &error), UF_OK);
    ck_assert_msg(doctor.verdict == verdict, "verdict %d, next: %s", doctor.verdict, doctor.next);
    ck_assert_msg(strstr(doctor.next, next) != NULL, "next: %s", doctor.next);
}

static void finish(void)
{
    uf__doctor_fini(&doctor);
    folder_destroy();
}

START_TEST(cards_of_both_libraries_are_joined_by_their_bus)
{
    prepare("card=A|8589934592|8589934592|hidden;card=B|25769803776|20401094656;"
            "process=1|4194305|4294967296");
    examine(UF_DOCTOR_GOOD, "4194305 holds 4.00 GiB of card 0");
    ck_assert_uint_eq(doctor.card_count, 2);
    const uf_doctor_card *card = &doctor.cards[0];
    ck_assert_str_eq(card->name, "B");
    ck_assert_int_eq(card->nvml_index, 1);
    ck_assert_uint_eq(card->total_bytes, 24 * GIB);
    ck_assert_uint_eq(card->held_bytes, 4 * GIB);
    ck_assert(card->has_unseen);
    ck_assert_uint_eq(card->unseen_bytes, 512 * MIB); /* 24 - 19 - 4 - 0.5 of the driver */
    ck_assert_str_eq(doctor.cards[1].name, "A");
    ck_assert_ptr_null(doctor.cards[1].cuda);
    finish();
}
END_TEST

START_TEST(a_split_card_counts_its_instance)
{
    prepare("card=H100|85899345920|85899345920|mig;fail=nvmlDeviceGetMemoryInfo_v2|4");
    examine(UF_DOCTOR_GOOD, "");
    ck_assert(doctor.cards[0].nvml->is_mig);
    ck_assert(doctor.cards[0].has_total && doctor.cards[0].has_free);
    ck_assert(!doctor.cards[0].has_held);
    finish();
}
END_TEST

START_TEST(without_a_card_the_cause_is_told)
{
    static const struct {
        const char *setup, *next;
    } cases[] = {{"init=100", "finds no GPU"},
                 {"init=34", "stub"},
                 {"init=803", "different versions"},
                 {"init=802", "fabricmanager"},
                 {"init=999", "NVRM"},
                 {"card=A|1073741824|1073741824|hidden", "lists cards and gives none"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        prepare(cases[i].setup);
        examine(UF_DOCTOR_NO_CARD, cases[i].next);
        finish();
    }
    prepare("init=100");
    variables[options.variable_count++] = "CUDA_VISIBLE_DEVICES=-1";
    examine(UF_DOCTOR_NO_CARD, "unset it");
    finish();
}
END_TEST

START_TEST(a_setting_without_effect_is_a_fault)
{
    prepare("card=A|25769803776|25232932864");
    variables[options.variable_count++] =
        "PYTORCH_CUDA_ALLOC_CONF=garbage_collection_threshold:0.8";
    examine(UF_DOCTOR_FAULT, "PYTORCH_CUDA_ALLOC_CONF");
    finish();
}
END_TEST

START_TEST(a_model_that_is_not_whole_comes_first)
{
    prepare("init=100");
    options.model = folder;
    folder_write_text("model.safetensors", "<html>");
    examine(UF_DOCTOR_FAULT, "fetch model.safetensors again (placeholder");
    finish();
    prepare("init=100");
    options.model = folder;
    examine(UF_DOCTOR_FAULT, "there are no weight files");
    finish();
}
END_TEST

START_TEST(on_a_good_machine_settings_are_proposed_from_the_recordings)
{
    prepare("card=A|25769803776|25232932864");
    examine(UF_DOCTOR_GOOD, "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
    ck_assert_uint_eq(doctor.recommended_card_bytes, 24 * GIB);
    ck_assert_uint_eq(doctor.recommendations.count, 6);
    finish();
    prepare("card=A|25769803776|25232932864|novmm"); /* and not where they cannot work */
    examine(UF_DOCTOR_GOOD, "unfrag tune snapshot.pickle");
    finish();
    prepare("card=A|25769803776|25232932864");
    options.card_bytes = 12 * GIB;
    examine(UF_DOCTOR_GOOD, "");
    ck_assert_uint_eq(doctor.recommended_card_bytes, 12 * GIB);
    finish();
}
END_TEST

/* Nobody's program is ended by its name, and no device is reset. */
START_TEST(no_step_resets_a_device_or_kills_by_name)
{
    static const char *const setups[] = {"init=100",
                                         "init=999",
                                         "init=803",
                                         "card=A|8589934592|0",
                                         "card=A|8589934592|0;process=0|4194305|8000000000",
                                         "card=A|1073741824|1073741824|hidden"};
    static const char *const banned[] = {"reset", "pkill", "killall", "kill -9"};
    for (size_t i = 0; i < sizeof setups / sizeof setups[0]; i++) {
        uf_error error = {0};
        prepare(setups[i]);
        ck_assert_int_eq(uf__doctor_examine(&options, &doctor, &error), UF_OK);
        ck_assert_str_ne(doctor.next, "");
        for (size_t k = 0; k < sizeof banned / sizeof banned[0]; k++) {
            ck_assert_ptr_null(strstr(doctor.next, banned[k]));
        }
        finish();
    }
}
END_TEST

int main(int argc, char **argv)
{
    (void)argc;
    fake_gpu_enter(argv);
    const TTest *const tests[] = {cards_of_both_libraries_are_joined_by_their_bus,
                                  a_split_card_counts_its_instance,
                                  without_a_card_the_cause_is_told,
                                  a_setting_without_effect_is_a_fault,
                                  a_model_that_is_not_whole_comes_first,
                                  on_a_good_machine_settings_are_proposed_from_the_recordings,
                                  no_step_resets_a_device_or_kills_by_name,
                                  NULL};
    return suite_run("doctor", tests);
}
