/* SPDX-License-Identifier: MIT
 *
 * The text of `unfrag doctor`: one paragraph per subject, the next step last. */
#include "doctor_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "table.h"

typedef struct size_text {
    char text[UF_SIZE_TEXT_CAPACITY];
} size_text;

/* "1.50 GiB", or "-" for what is not known. */
static const char *show(size_text *buffer, bool is_known, uint64_t bytes)
{
    return is_known ? uf__size_format(buffer->text, sizeof buffer->text, bytes) : "-";
}

static const char *or_dash(const char *text)
{
    return text != NULL && text[0] != '\0' ? text : "-";
}

static void print_driver(const uf_doctor *doctor)
{
    const uf_cuda_probe *probe = &doctor->probe;
    printf("Driver\n");
    if (doctor->driver_cause[0] == '\0') {
        printf("  NVIDIA %s", or_dash(doctor->nvml.driver_version));
        if (probe->version > 0) {
            printf(", CUDA %d.%d", probe->version / 1000, probe->version % 1000 / 10);
        }
        printf("\n");
    } else if (!probe->has_library) {
        printf("  no driver library: %s\n", probe->library_error);
    } else if (probe->init_name == NULL) {
        printf("  %s\n", probe->library_error);
    } else if (probe->init_result != UF_CUDA_SUCCESS) {
        printf("  no GPU can be used: cuInit says %s (%d)\n", probe->init_name, probe->init_result);
    } else {
        printf("  no GPU can be used: the driver counts none\n");
    }
    if (doctor->driver_cause[0] != '\0') {
        printf("  %s\n", doctor->driver_cause);
    }
    if (doctor->nvml.failure[0] != '\0' && doctor->probe.has_library) {
        printf("  management library: %s; processes and totals come from elsewhere\n",
               doctor->nvml.failure);
    }
}

static void print_trial(const char *what, const uf_cuda_trial *trial)
{
    size_text size;
    printf("     %s: ", what);
    if (!trial->was_tried) {
        printf("-\n");
    } else if (trial->works) {
        printf("works (tried with %s)\n", show(&size, true, trial->granule_bytes));
    } else if (trial->failed_step == UF_CUDA_STEP_ATTRIBUTE) {
        printf("no, the device says so\n");
    } else if (trial->failed_step == UF_CUDA_STEP_FUNCTION) {
        printf("no, the driver is too old for it (CUDA 10.2 brought it)\n");
    } else {
        printf("refused: %s says %s (%d)\n", uf__cuda_step_name(trial->failed_step),
               trial->result_name, trial->result);
    }
}

static void print_modes(const uf_doctor_card *card)
{
    const uf_nvml_card *nvml = card->nvml;
    const uf_cuda_probed *cuda = card->cuda;
    size_text size;
    if (cuda != NULL) {
        if (cuda->capability_major > 0) {
            printf("     compute capability %d.%d", cuda->capability_major, cuda->capability_minor);
        } else {
            printf("     compute capability -");
        }
        printf(", GPUDirect RDMA with mapped memory %s%s\n",
               !cuda->has_rdma_with_vmm ? "-" : (cuda->can_rdma_with_vmm ? "yes" : "no"),
               cuda->is_integrated ? ", shares the host's memory" : "");
    }
    if (nvml == NULL) {
        return;
    }
    printf("     MIG %s, ECC %s",
           (nvml->valid & UF_NVML_HAS_MIG) == 0 ? "-" : (nvml->is_mig ? "on" : "off"),
           (nvml->valid & UF_NVML_HAS_ECC) == 0 ? "-" : (nvml->is_ecc ? "on" : "off"));
    if ((nvml->valid & UF_NVML_HAS_ECC_ERRORS) != 0 && nvml->ecc_uncorrected_count > 0) {
        printf(" (%" PRIu64 " uncorrected errors)", nvml->ecc_uncorrected_count);
    }
    if (nvml->is_exclusive) {
        printf(", one process at a time");
    }
    if (nvml->is_prohibited) {
        printf(", closed to programs (compute mode 'prohibited')");
    }
    printf("\n");
    if (card->has_unseen) {
        printf("     held by nobody that can be seen: %s\n", show(&size, true, card->unseen_bytes));
    }
}

static void print_cards(const uf_doctor *doctor)
{
    size_text total, vacant, held;
    if (doctor->card_count == 0) {
        return;
    }
    printf("\nCards\n");
    for (uint32_t i = 0; i < doctor->card_count; i++) {
        const uf_doctor_card *card = &doctor->cards[i];
        printf("  %" PRIu32 "  %s: total %s, free %s, held by processes %s%s\n", i,
               or_dash(card->name), show(&total, card->has_total, card->total_bytes),
               show(&vacant, card->has_free, card->free_bytes),
               show(&held, card->has_held, card->held_bytes),
               card->cuda == NULL ? "; programs do not see it" : "");
        print_modes(card);
        if (card->cuda != NULL) {
            print_trial("virtual memory management", &card->cuda->vmm);
            print_trial("host memory mapped on the card", &card->cuda->host_memory);
        }
    }
}

/* The number a card has in the list above; "-" if it is not known. */
static void card_number(const uf_doctor *doctor, int nvml_index, char *text, size_t capacity)
{
    snprintf(text, capacity, "-");
    for (uint32_t i = 0; i < doctor->card_count && nvml_index >= 0; i++) {
        if (doctor->cards[i].nvml_index == nvml_index) {
            snprintf(text, capacity, "%" PRIu32, i);
            return;
        }
    }
}

static bool print_holders(const uf_doctor *doctor)
{
    const uf_holders *holders = &doctor->holders;
    size_text size;
    if (holders->count == 0) {
        if (doctor->card_count > 0) {
            printf("\nProcesses on the cards: none%s\n",
                   holders->is_whole_host ? "" : " that can be seen from this container");
        }
        return true;
    }
    printf("\nProcesses on the cards%s\n",
           holders->is_by_files ? " (by their open device files; sizes are not known)" : "");
    cli_table *table = cli_table_create();
    cli_table_column(table, "  card", CLI_LEFT);
    cli_table_column(table, "process", CLI_RIGHT);
    cli_table_column(table, "holds", CLI_RIGHT);
    cli_table_column(table, "what", CLI_LEFT);
    cli_table_column(table, "command", CLI_LEFT);
    for (size_t i = 0; i < holders->count; i++) {
        const uf_holder *holder = &holders->items[i];
        const char *kind = uf__holder_kind_name(holders, holder);
        char number[16];
        card_number(doctor, holder->card, number, sizeof number);
        cli_table_row(table);
        cli_table_cell(table, "  %s", number);
        cli_table_cell(table, "%" PRIu32, holder->pid);
        cli_table_cell(table, "%s", show(&size, holder->has_bytes, holder->bytes));
        cli_table_cell(table, "%s%s%s", kind[0] != '\0' ? kind : "running",
                       holder->container[0] != '\0' ? " " : "", holder->container);
        cli_table_cell(table, "%.60s",
                       or_dash(holder->command[0] != '\0' ? holder->command : holder->name));
    }
    bool is_good = cli_table_print(table, stdout);
    cli_table_destroy(table);
    return is_good;
}

static void print_settings(const uf_doctor *doctor)
{
    const uf_surroundings *around = &doctor->around;
    printf("\nSettings (judged for PyTorch %s%s)\n", around->check.version,
           around->is_torch_known ? ", the one found" : "; none was found");
    if (around->count == 0) {
        printf("  none: PyTorch's defaults\n");
    }
    for (uint32_t i = 0; i < around->count; i++) {
        const uf_surrounding *item = &around->items[i];
        printf("  %s=%s\n", item->name, item->value != NULL ? item->value : "-");
        printf("     active: %s%s%s\n", uf__active_name(item->active),
               item->why[0] != '\0' ? "; " : "", item->why);
    }
}

static void print_python(const uf_doctor *doctor)
{
    static const char *const fits[] = {[UF_TORCH_FIT_UNKNOWN] = "-",
                                       [UF_TORCH_FIT_YES] = "yes",
                                       [UF_TORCH_FIT_MINOR] = "yes, within the same CUDA major",
                                       [UF_TORCH_FIT_NO] = "no"};
    const uf_python *python = &doctor->python;
    printf("\nPython\n  %s %s\n", or_dash(python->program), or_dash(python->version));
    if (python->failure[0] != '\0') {
        printf("  %s\n", python->failure);
    }
    if (python->is_outside_environment) {
        printf("  not that of the activated environment %s\n", python->environment);
    }
    switch (python->torch) {
    case UF_TORCH_NONE:
        printf("  torch: %s\n", python->version[0] != '\0' ? "not installed" : "-");
        break;
    case UF_TORCH_UNKNOWN:
        printf("  torch %s, built for -\n", or_dash(python->torch_version));
        break;
    case UF_TORCH_CPU:
        printf("  torch %s, built without CUDA\n", or_dash(python->torch_version));
        break;
    case UF_TORCH_HIP:
        printf("  torch %s, built for ROCm %s\n", or_dash(python->torch_version),
               or_dash(python->torch_runtime));
        break;
    case UF_TORCH_CUDA:
        printf("  torch %s, built for CUDA %s; the driver runs it: %s\n",
               or_dash(python->torch_version), or_dash(python->torch_runtime),
               fits[uf__torch_fit(python, doctor->probe.version)]);
        break;
    }
    if (python->torch_folder[0] != '\0') {
        printf("  %s\n", python->torch_folder);
    }
    if (doctor->torch_note[0] != '\0') {
        printf("  %s\n", doctor->torch_note);
    }
}

static void print_disks(const uf_doctor *doctor)
{
    size_text available, total;
    printf("\nDisk\n");
    for (uint32_t i = 0; i < doctor->disk_count; i++) {
        const uf_doctor_disk *disk = &doctor->disks[i];
        printf("  %s: %s available of %s (%s)\n", disk->what,
               show(&available, disk->has_sizes, disk->available_bytes),
               show(&total, disk->has_sizes, disk->total_bytes), disk->path);
    }
    if (doctor->disk_count == 0) {
        printf("  -\n");
    }
}

static void print_parameters(uint64_t count)
{
    char text[CLI_COUNT_TEXT_CAPACITY];
    if (count < 1000000) {
        printf(", %s parameters", cli_count_format(text, count));
    } else if (count < 1000000000) {
        printf(", %.1f million parameters", (double)count / 1e6);
    } else {
        printf(", %.2f billion parameters", (double)count / 1e9);
    }
}

static void print_set(const uf_weight_set *set)
{
    size_text size;
    printf("  %s%s%s (%s): %s in %" PRIu32 " file%s", set->component,
           set->component[0] != '\0' ? "/" : "", set->name, uf__weight_format_name(set->format),
           show(&size, true, set->file_bytes), set->file_count, set->file_count == 1 ? "" : "s");
    if (set->has_sum) {
        print_parameters(set->sum.parameter_count);
        for (unsigned i = 0; i < UF_DTYPE_COUNT; i++) {
            if (set->sum.dtype_bytes[i] > 0) {
                printf(", %s %s", uf__dtype_name((uf_dtype)i),
                       show(&size, true, set->sum.dtype_bytes[i]));
            }
        }
    }
    printf("%s\n", set->is_absent   ? "; not here"
                   : set->is_chosen ? ""
                                    : "; not what is loaded by default");
}

static void print_model(const uf_doctor *doctor)
{
    const uf_weights *weights = &doctor->weights;
    size_text size;
    if (!doctor->has_model) {
        return;
    }
    printf("\nModel %s\n", weights->folder);
    for (size_t i = 0; i < weights->set_count; i++) {
        print_set(&weights->sets[i]);
    }
    for (size_t i = 0; i < weights->file_count; i++) {
        const uf_weight_file *file = &weights->files[i];
        if (file->state != UF_WEIGHT_COMPLETE && file->state != UF_WEIGHT_ABSENT) {
            printf("  %s: %s: %s\n", uf__weight_state_name(file->state), file->path,
                   file->text != NULL ? file->text : "-");
        }
    }
    if (weights->is_truncated) {
        printf("  not everything was looked at: too many files, or too deep\n");
    }
    if (uf__weights_is_complete(weights)) {
        printf("  complete; weights to load: %s\n",
               show(&size, weights->has_sum, weights->sum.data_bytes));
    } else {
        printf("  not complete: %" PRIu32 " fault%s\n", weights->fault_count,
               weights->fault_count == 1 ? "" : "s");
    }
}

static bool print_recommendations(const uf_doctor *doctor)
{
    const uf_recommendations *list = &doctor->recommendations;
    size_text size;
    if (list->count == 0 && doctor->recommended_card_bytes != 0) {
        printf("\nSettings for a card of %s: - (the table of the bundled recordings, "
               "data/cards.tsv, is "
               "not beside this program;\n  unfrag tune computes them from a recording of yours)\n",
               show(&size, true, doctor->recommended_card_bytes));
    }
    if (list->count == 0) {
        return true;
    }
    printf("\nSettings for a card of %s, by replay of the bundled recordings\n",
           show(&size, true, doctor->recommended_card_bytes));
    cli_table *table = cli_table_create();
    cli_table_column(table, "  recording", CLI_LEFT);
    cli_table_column(table, "by default", CLI_LEFT);
    cli_table_column(table, "needs", CLI_RIGHT);
    cli_table_column(table, "settings", CLI_LEFT);
    for (size_t i = 0; i < list->count; i++) {
        const uf_recommendation *item = &list->items[i];
        cli_table_row(table);
        cli_table_cell(table, "  @%s", item->recording);
        cli_table_cell(table, "%s", item->default_fits ? "fits" : "does not fit");
        cli_table_cell(table, "%s", show(&size, true, item->need_bytes));
        cli_table_cell(table, "%s%s",
                       !item->fits ? "none fits" : (item->conf[0] != '\0' ? item->conf : "default"),
                       item->fits && item->needs_limit ? " with a memory limit" : "");
    }
    bool is_good = cli_table_print(table, stdout);
    cli_table_destroy(table);
    printf("  needs: the smallest limit that the settings complete in, and %s for CUDA and its\n"
           "  libraries; the models are in data/README.md, other sizes need a recording of yours\n",
           show(&size, true, list->allowance_bytes));
    return is_good;
}

cli_exit cli_doctor_print(const uf_doctor *doctor)
{
    print_driver(doctor);
    print_cards(doctor);
    bool is_good = print_holders(doctor);
    print_settings(doctor);
    print_python(doctor);
    print_disks(doctor);
    print_model(doctor);
    is_good = print_recommendations(doctor) && is_good;
    printf("\nNext: %s\n", doctor->next);
    return is_good ? CLI_EXIT_DONE : CLI_EXIT_ENVIRONMENT;
}
