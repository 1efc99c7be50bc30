/* SPDX-License-Identifier: MIT
 *
 * The JSON of `unfrag doctor`. A key is always there; what is not known is null. */
#include "doctor_report.h"

#include <stdio.h>

#include "json.h"

static void write_bytes(cli_json *json, const char *key, bool is_known, uint64_t value)
{
    if (is_known) {
        cli_json_uint64(json, key, value);
    } else {
        cli_json_null(json, key);
    }
}

static void write_flag(cli_json *json, const char *key, bool is_known, bool value)
{
    if (is_known) {
        cli_json_bool(json, key, value);
    } else {
        cli_json_null(json, key);
    }
}

/* Empty is not known. */
static void write_text(cli_json *json, const char *key, const char *text)
{
    cli_json_string(json, key, text != NULL && text[0] != '\0' ? text : NULL);
}

static void write_release(cli_json *json, const char *key, int version)
{
    char text[32];
    snprintf(text, sizeof text, "%d.%d", version / 1000, version % 1000 / 10);
    cli_json_string(json, key, version > 0 ? text : NULL);
}

static void write_driver(cli_json *json, const uf_doctor *doctor)
{
    const uf_cuda_probe *probe = &doctor->probe;
    cli_json_object_begin(json, "driver");
    cli_json_bool(json, "usable", doctor->driver_cause[0] == '\0');
    write_text(json, "cause", doctor->driver_cause);
    write_text(json, "version", doctor->nvml.driver_version);
    write_release(json, "cuda", probe->version);
    cli_json_bool(json, "has_library", probe->has_library);
    write_text(json, "library_error", probe->library_error);
    cli_json_bool(json, "has_kernel_module", doctor->has_kernel_driver);
    if (probe->init_name != NULL) {
        cli_json_int64(json, "init_result", probe->init_result);
    } else {
        cli_json_null(json, "init_result");
    }
    write_text(json, "init_name", probe->init_name);
    write_text(json, "nvml_failure", doctor->nvml.failure);
    cli_json_object_end(json);
}

static void write_trial(cli_json *json, const char *key, const uf_cuda_trial *trial)
{
    bool is_failure = trial->was_tried && !trial->works;
    cli_json_object_begin(json, key);
    write_flag(json, "works", trial->was_tried, trial->works);
    write_bytes(json, "granule_bytes", trial->granule_bytes > 0, trial->granule_bytes);
    cli_json_string(json, "failed_step",
                    is_failure ? uf__cuda_step_name(trial->failed_step) : NULL);
    cli_json_string(json, "error", is_failure ? trial->result_name : NULL);
    cli_json_object_end(json);
}

static void write_abilities(cli_json *json, const uf_cuda_probed *cuda)
{
    char text[32];
    static const uf_cuda_trial untried = {0};
    snprintf(text, sizeof text, "%d.%d", cuda != NULL ? cuda->capability_major : 0,
             cuda != NULL ? cuda->capability_minor : 0);
    cli_json_string(json, "compute_capability",
                    cuda != NULL && cuda->capability_major > 0 ? text : NULL);
    write_bytes(json, "multiprocessors", cuda != NULL && cuda->multiprocessor_count > 0,
                cuda != NULL ? (uint64_t)cuda->multiprocessor_count : 0);
    write_flag(json, "is_integrated", cuda != NULL && cuda->has_integrated,
               cuda != NULL && cuda->is_integrated);
    write_flag(json, "rdma_with_vmm", cuda != NULL && cuda->has_rdma_with_vmm,
               cuda != NULL && cuda->can_rdma_with_vmm);
    write_trial(json, "vmm", cuda != NULL ? &cuda->vmm : &untried);
    write_trial(json, "host_memory", cuda != NULL ? &cuda->host_memory : &untried);
}

static void write_card(cli_json *json, const uf_doctor_card *card)
{
    const uf_nvml_card *nvml = card->nvml;
    unsigned valid = nvml != NULL ? nvml->valid : 0;
    cli_json_object_begin(json, NULL);
    write_text(json, "name", card->name);
    write_text(json, "uuid", nvml != NULL ? nvml->uuid : NULL);
    write_text(json, "pci_bus_id",
               card->cuda != NULL ? card->cuda->pci_bus_id
               : nvml != NULL     ? nvml->pci_bus_id
                                  : NULL);
    cli_json_bool(json, "is_visible", card->cuda != NULL);
    write_bytes(json, "total_bytes", card->has_total, card->total_bytes);
    write_bytes(json, "free_bytes", card->has_free, card->free_bytes);
    write_bytes(json, "reserved_bytes", (valid & UF_NVML_HAS_RESERVED) != 0,
                nvml != NULL ? nvml->reserved_bytes : 0);
    write_bytes(json, "held_bytes", card->has_held, card->held_bytes);
    write_bytes(json, "unseen_bytes", card->has_unseen, card->unseen_bytes);
    write_flag(json, "is_mig", (valid & UF_NVML_HAS_MIG) != 0, nvml != NULL && nvml->is_mig);
    write_flag(json, "is_ecc", (valid & UF_NVML_HAS_ECC) != 0, nvml != NULL && nvml->is_ecc);
    write_bytes(json, "ecc_uncorrected", (valid & UF_NVML_HAS_ECC_ERRORS) != 0,
                nvml != NULL ? nvml->ecc_uncorrected_count : 0);
    write_flag(json, "is_exclusive", (valid & UF_NVML_HAS_COMPUTE_MODE) != 0,
               nvml != NULL && nvml->is_exclusive);
    write_abilities(json, card->cuda);
    cli_json_object_end(json);
}

static void write_card_number(cli_json *json, const uf_doctor *doctor, int nvml_index)
{
    for (uint32_t i = 0; i < doctor->card_count && nvml_index >= 0; i++) {
        if (doctor->cards[i].nvml_index == nvml_index) {
            cli_json_uint64(json, "card", i);
            return;
        }
    }
    cli_json_null(json, "card");
}

static void write_holders(cli_json *json, const uf_doctor *doctor)
{
    const uf_holders *holders = &doctor->holders;
    cli_json_array_begin(json, "processes");
    for (size_t i = 0; i < holders->count; i++) {
        const uf_holder *holder = &holders->items[i];
        const char *kind = uf__holder_kind_name(holders, holder);
        cli_json_object_begin(json, NULL);
        write_card_number(json, doctor, holder->card);
        cli_json_uint64(json, "pid", holder->pid);
        write_bytes(json, "bytes", holder->has_bytes, holder->bytes);
        cli_json_string(json, "state", kind[0] != '\0' ? kind : "running");
        write_text(json, "name", holder->name);
        write_text(json, "command", holder->command);
        write_text(json, "container", holder->container);
        write_bytes(json, "parent_pid", holder->parent_pid > 0, holder->parent_pid);
        write_bytes(json, "user_id", holder->has_user, holder->user_id);
        cli_json_object_end(json);
    }
    cli_json_array_end(json);
    cli_json_bool(json, "processes_by_open_files", holders->is_by_files);
    cli_json_bool(json, "is_container", holders->is_container || !holders->is_whole_host);
}

static void write_settings(cli_json *json, const uf_doctor *doctor)
{
    const uf_surroundings *around = &doctor->around;
    cli_json_array_begin(json, "settings");
    for (uint32_t i = 0; i < around->count; i++) {
        const uf_surrounding *item = &around->items[i];
        cli_json_object_begin(json, NULL);
        cli_json_string(json, "name", item->name);
        cli_json_string(json, "value", item->value);
        cli_json_string(json, "active", uf__active_name(item->active));
        cli_json_bool(json, "is_fault", item->is_fault);
        write_text(json, "why", item->why);
        cli_json_string(json, "fix", item->fix);
        cli_json_object_end(json);
    }
    cli_json_array_end(json);
    cli_json_string(json, "settings_judged_for", around->check.version);
}

static void write_python(cli_json *json, const uf_doctor *doctor)
{
    static const char *const kinds[] = {[UF_TORCH_NONE] = NULL,
                                        [UF_TORCH_UNKNOWN] = NULL,
                                        [UF_TORCH_CPU] = "cpu",
                                        [UF_TORCH_CUDA] = "cuda",
                                        [UF_TORCH_HIP] = "rocm"};
    const uf_python *python = &doctor->python;
    uf_torch_fit fit = uf__torch_fit(python, doctor->probe.version);
    cli_json_object_begin(json, "python");
    write_text(json, "program", python->program);
    write_text(json, "version", python->version);
    write_text(json, "failure", python->failure);
    cli_json_object_end(json);
    if (python->torch == UF_TORCH_NONE) {
        cli_json_null(json, "torch");
        return;
    }
    cli_json_object_begin(json, "torch");
    write_text(json, "version", python->torch_version);
    write_text(json, "folder", python->torch_folder);
    cli_json_string(json, "built_for", kinds[python->torch]);
    write_text(json, "runtime", python->torch_runtime);
    write_flag(json, "driver_runs_it", fit != UF_TORCH_FIT_UNKNOWN, fit != UF_TORCH_FIT_NO);
    write_text(json, "note", doctor->torch_note);
    cli_json_object_end(json);
}

static void write_disks(cli_json *json, const uf_doctor *doctor)
{
    cli_json_array_begin(json, "disks");
    for (uint32_t i = 0; i < doctor->disk_count; i++) {
        const uf_doctor_disk *disk = &doctor->disks[i];
        cli_json_object_begin(json, NULL);
        cli_json_string(json, "what", disk->what);
        cli_json_string(json, "path", disk->path);
        write_bytes(json, "total_bytes", disk->has_sizes, disk->total_bytes);
        write_bytes(json, "available_bytes", disk->has_sizes, disk->available_bytes);
        cli_json_object_end(json);
    }
    cli_json_array_end(json);
}

static void write_sum(cli_json *json, bool is_known, const uf_weights_sum *sum)
{
    write_bytes(json, "data_bytes", is_known, sum->data_bytes);
    write_bytes(json, "parameters", is_known, sum->parameter_count);
    write_bytes(json, "tensors", is_known, sum->tensor_count);
    cli_json_object_begin(json, "dtypes");
    for (unsigned i = 0; i < UF_DTYPE_COUNT && is_known; i++) {
        if (sum->dtype_bytes[i] > 0 || sum->dtype_parameters[i] > 0) {
            cli_json_object_begin(json, uf__dtype_name((uf_dtype)i));
            cli_json_uint64(json, "bytes", sum->dtype_bytes[i]);
            cli_json_uint64(json, "parameters", sum->dtype_parameters[i]);
            cli_json_object_end(json);
        }
    }
    cli_json_object_end(json);
}

static void write_sets(cli_json *json, const uf_weights *weights)
{
    cli_json_array_begin(json, "sets");
    for (size_t i = 0; i < weights->set_count; i++) {
        const uf_weight_set *set = &weights->sets[i];
        cli_json_object_begin(json, NULL);
        cli_json_string(json, "component", set->component);
        cli_json_string(json, "name", set->name);
        cli_json_string(json, "format", uf__weight_format_name(set->format));
        cli_json_bool(json, "is_chosen", set->is_chosen);
        cli_json_uint64(json, "files", set->file_count);
        cli_json_uint64(json, "faults", set->is_absent ? 0 : set->fault_count);
        cli_json_uint64(json, "file_bytes", set->file_bytes);
        write_sum(json, set->has_sum, &set->sum);
        cli_json_object_end(json);
    }
    cli_json_array_end(json);
}

static void write_model(cli_json *json, const uf_doctor *doctor)
{
    const uf_weights *weights = &doctor->weights;
    if (!doctor->has_model) {
        cli_json_null(json, "model");
        return;
    }
    cli_json_object_begin(json, "model");
    cli_json_string(json, "folder", weights->folder);
    cli_json_bool(json, "is_complete", uf__weights_is_complete(weights));
    cli_json_bool(json, "is_truncated", weights->is_truncated);
    write_sum(json, weights->has_sum, &weights->sum);
    write_sets(json, weights);
    cli_json_array_begin(json, "files");
    for (size_t i = 0; i < weights->file_count; i++) {
        const uf_weight_file *file = &weights->files[i];
        cli_json_object_begin(json, NULL);
        cli_json_string(json, "path", file->path);
        cli_json_string(json, "format", uf__weight_format_name(file->format));
        cli_json_string(json, "state", uf__weight_state_name(file->state));
        cli_json_uint64(json, "file_bytes", file->file_bytes);
        write_bytes(json, "expected_bytes", file->expected_bytes > 0, file->expected_bytes);
        cli_json_string(json, "text", file->text);
        cli_json_object_end(json);
    }
    cli_json_array_end(json);
    cli_json_object_end(json);
}

static void write_recommendations(cli_json *json, const uf_doctor *doctor)
{
    const uf_recommendations *list = &doctor->recommendations;
    write_bytes(json, "recommended_for_bytes", doctor->recommended_card_bytes > 0,
                doctor->recommended_card_bytes);
    write_bytes(json, "allowance_bytes", list->count > 0, list->allowance_bytes);
    cli_json_array_begin(json, "recommendations");
    for (size_t i = 0; i < list->count; i++) {
        const uf_recommendation *item = &list->items[i];
        cli_json_object_begin(json, NULL);
        cli_json_string(json, "recording", item->recording);
        cli_json_string(json, "what", item->what);
        cli_json_bool(json, "default_fits", item->default_fits);
        cli_json_bool(json, "fits", item->fits);
        cli_json_string(json, "conf", item->fits ? item->conf : NULL);
        cli_json_bool(json, "needs_limit", item->needs_limit);
        cli_json_uint64(json, "need_bytes", item->need_bytes);
        cli_json_uint64(json, "default_need_bytes", item->default_need_bytes);
        cli_json_object_end(json);
    }
    cli_json_array_end(json);
}

cli_exit cli_doctor_print_json(const uf_doctor *doctor)
{
    static const char *const verdicts[] = {
        [UF_DOCTOR_GOOD] = "good", [UF_DOCTOR_FAULT] = "fault", [UF_DOCTOR_NO_CARD] = "no card"};
    cli_json json;
    cli_json_init(&json, stdout);
    cli_json_object_begin(&json, NULL);
    cli_json_string(&json, "verdict", verdicts[doctor->verdict]);
    write_driver(&json, doctor);
    cli_json_array_begin(&json, "cards");
    for (uint32_t i = 0; i < doctor->card_count; i++) {
        write_card(&json, &doctor->cards[i]);
    }
    cli_json_array_end(&json);
    write_holders(&json, doctor);
    write_settings(&json, doctor);
    write_python(&json, doctor);
    write_disks(&json, doctor);
    write_model(&json, doctor);
    write_recommendations(&json, doctor);
    cli_json_string(&json, "next", doctor->next);
    cli_json_object_end(&json);
    return cli_json_finish(&json) ? CLI_EXIT_DONE : CLI_EXIT_ENVIRONMENT;
}
