/* SPDX-License-Identifier: MIT
 *
 * What an examination comes to: causes, the verdict, and the one step that helps most. No step
 * resets a device or ends a process by its name. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "advise/doctor.h"
#include "base/size.h"

/* A process that holds less of a card than this share is not worth a step. */
#define HOLDER_SHARE 20u

static const char *explain_library(const uf_doctor *doctor)
{
    if (doctor->has_kernel_driver || doctor->nvml.has_library) {
        return "the kernel has NVIDIA's driver, and its library libcuda.so.1 is not found here: "
               "start the container with its GPUs (docker run --gpus all), or install the "
               "driver's libraries";
    }
    return "there is no NVIDIA driver here: install it, or go on with what needs no GPU "
           "(explain, replay, tune, check)";
}

static const char *explain_init(const uf_doctor_options *options, const uf_doctor *doctor)
{
    const char *visible = uf__doctor_variable(options, "CUDA_VISIBLE_DEVICES");
    switch (doctor->probe.init_result) {
    case UF_CUDA_SUCCESS:
    case UF_CUDA_NO_DEVICE:
        if (visible != NULL) {
            return "no GPU is left by CUDA_VISIBLE_DEVICES: unset it, or name a card that exists";
        }
        if (doctor->nvml.card_count > 0) {
            return "the driver lists cards and gives none to programs: a container needs their "
                   "device files (docker run --gpus all), a split card (MIG) an instance";
        }
        return "the driver finds no GPU: a container needs its device files (docker run --gpus "
               "all), a virtual machine a GPU assigned to it";
    case UF_CUDA_STUB_LIBRARY:
        return "libcuda.so.1 is the CUDA toolkit's stub, not the driver: take the stubs folder out "
               "of LD_LIBRARY_PATH";
    case UF_CUDA_SYSTEM_NOT_READY:
        return "the cards are not ready: on machines with NVSwitch the service "
               "nvidia-fabricmanager has to run, in the driver's own version";
    case UF_CUDA_DRIVER_MISMATCH:
        return "the kernel's module and libcuda.so.1 are of different versions, as after an "
               "update: "
               "restart the machine once its programs are done, or renew the container's libraries";
    case UF_CUDA_COMPAT_NOT_SUPPORTED:
        return "a CUDA compatibility package stands in front of the driver, and this card does not "
               "support it: take its folder out of LD_LIBRARY_PATH";
    case UF_CUDA_UNKNOWN:
        return "the driver does not say why; its messages in the kernel's log begin with NVRM: "
               "'dmesg | grep NVRM'";
    default:
        return "the driver refuses to start; its messages in the kernel's log begin with NVRM: "
               "'dmesg | grep NVRM'";
    }
}

static bool has_usable_card(const uf_doctor *doctor)
{
    return doctor->probe.has_library && doctor->probe.init_result == UF_CUDA_SUCCESS &&
           doctor->probe.found_count > 0;
}

static void note_driver(const uf_doctor_options *options, uf_doctor *doctor)
{
    const uf_cuda_probe *probe = &doctor->probe;
    if (has_usable_card(doctor)) {
        return;
    }
    const char *text = !probe->has_library || probe->init_name == NULL
                           ? explain_library(doctor)
                           : explain_init(options, doctor);
    snprintf(doctor->driver_cause, sizeof doctor->driver_cause, "%s", text);
}

static void note_torch(uf_doctor *doctor)
{
    const uf_python *python = &doctor->python;
    char *note = doctor->torch_note;
    size_t capacity = sizeof doctor->torch_note;
    int version = doctor->probe.version;
    if (python->torch_metadata_version[0] != '\0' && python->torch_version[0] != '\0' &&
        strncmp(python->torch_metadata_version, python->torch_version,
                strcspn(python->torch_version, "+")) != 0) {
        snprintf(note, capacity,
                 "its files are of version %s and its metadata of %s: two installations are "
                 "mixed; install torch again",
                 python->torch_version, python->torch_metadata_version);
    } else if (python->torch == UF_TORCH_CPU && has_usable_card(doctor)) {
        snprintf(note, capacity,
                 "it is built without CUDA, so programs do not see the GPU: install a torch that "
                 "is built for CUDA");
    } else if (uf__torch_fit(python, version) == UF_TORCH_FIT_NO) {
        snprintf(
            note, capacity,
            "it is built for CUDA %s, and the driver is of CUDA %d.%d: install a newer driver, "
            "or a torch for CUDA %d",
            python->torch_runtime, version / 1000, version % 1000 / 10, version / 1000);
    }
    for (uint32_t i = 0; i < doctor->probe.device_count && note[0] == '\0'; i++) {
        const uf_cuda_probed *device = &doctor->probe.devices[i];
        if (!uf__torch_knows_card(python, device->capability_major)) {
            snprintf(note, capacity,
                     "it is built for CUDA %s, which is older than the card (compute capability "
                     "%d.%d): install a torch for a newer CUDA",
                     python->torch_runtime, device->capability_major, device->capability_minor);
        }
    }
}

/* The model's first fault. */
static bool step_model(uf_doctor *doctor)
{
    char size[UF_SIZE_TEXT_CAPACITY];
    const uf_weights *weights = &doctor->weights;
    if (!doctor->has_model || uf__weights_is_complete(weights)) {
        return false;
    }
    uint64_t lacking = 0;
    const uf_weight_file *first = NULL;
    for (size_t i = 0; i < weights->file_count; i++) {
        const uf_weight_file *file = &weights->files[i];
        if (uf__weight_is_fault(file->state)) {
            first = first == NULL ? file : first;
            lacking += file->expected_bytes > file->file_bytes
                           ? file->expected_bytes - file->file_bytes
                           : 0;
        }
    }
    if (first == NULL) {
        snprintf(doctor->next, sizeof doctor->next,
                 "fetch the model: there are no weight files in %.300s", weights->folder);
        return true;
    }
    if (doctor->disk_count > 0 && doctor->disks[0].has_sizes &&
        lacking > doctor->disks[0].available_bytes) {
        snprintf(doctor->next, sizeof doctor->next,
                 "make room on the model's disk: %s are still to come, more than is available",
                 uf__size_format(size, sizeof size, lacking));
        return true;
    }
    snprintf(doctor->next, sizeof doctor->next, "fetch %.200s again (%s: %.200s)%s", first->path,
             uf__weight_state_name(first->state), first->text != NULL ? first->text : "",
             weights->fault_count > 1 ? ", and the others listed" : "");
    return true;
}

static bool step_setting(uf_doctor *doctor)
{
    for (uint32_t i = 0; i < doctor->around.count; i++) {
        const uf_surrounding *item = &doctor->around.items[i];
        if (!item->is_fault) {
            continue;
        }
        if (item->fix != NULL && item->fix[0] != '\0') {
            snprintf(doctor->next, sizeof doctor->next, "export %s=%.300s", item->name, item->fix);
        } else if (item->fix != NULL || item->active == UF_ACTIVE_NO) {
            snprintf(doctor->next, sizeof doctor->next, "unset %s: %.400s", item->name, item->why);
        } else {
            snprintf(doctor->next, sizeof doctor->next, "correct %s: %.400s", item->name,
                     item->why);
        }
        return true;
    }
    return false;
}

static void say_holder(uf_doctor *doctor, const uf_holder *holder, const char *card)
{
    char size[UF_SIZE_TEXT_CAPACITY];
    uf__size_format(size, sizeof size, holder->bytes);
    char *next = doctor->next;
    size_t capacity = sizeof doctor->next;
    switch (holder->kind) {
    case UF_HOLDER_ZOMBIE:
        snprintf(next, capacity,
                 "process %u has ended and still holds %s of %s: its parent, process %u, has to "
                 "take notice of it, or to end",
                 holder->pid, size, card, holder->parent_pid);
        return;
    case UF_HOLDER_UNSEEN:
        snprintf(next, capacity, "process %u holds %s of %s and is not visible here: %s",
                 holder->pid, size, card,
                 doctor->holders.is_whole_host
                     ? "it is ending, so ask again in a moment"
                     : "look for it on the host, or in the other containers");
        return;
    case UF_HOLDER_CONTAINER:
        snprintf(
            next, capacity,
            "process %u in container %s holds %s of %s: stop that container if nobody needs it",
            holder->pid, holder->container, size, card);
        return;
    case UF_HOLDER_STUCK:
        snprintf(next, capacity,
                 "process %u (%s) holds %s of %s and waits within the kernel: see 'dmesg | grep "
                 "NVRM'",
                 holder->pid, holder->name, size, card);
        return;
    case UF_HOLDER_STOPPED:
        snprintf(next, capacity,
                 "process %u (%s) is stopped and holds %s of %s: continue it, or end it where it "
                 "was started",
                 holder->pid, holder->name, size, card);
        return;
    case UF_HOLDER_PLAIN:
        break;
    }
    snprintf(next, capacity,
             "process %u (%s) holds %s of %s: let it finish, or end it where it was started, "
             "before you need that memory",
             holder->pid, holder->name, size, card);
}

/* The largest holder of a card that programs see. */
static bool step_holder(uf_doctor *doctor)
{
    for (uint32_t i = 0; i < doctor->card_count; i++) {
        const uf_doctor_card *card = &doctor->cards[i];
        const uf_holder *largest = NULL;
        for (size_t k = 0; k < doctor->holders.count && card->cuda != NULL; k++) {
            const uf_holder *holder = &doctor->holders.items[k];
            bool is_here = holder->card == card->nvml_index && holder->has_bytes;
            if (is_here && (largest == NULL || holder->bytes > largest->bytes)) {
                largest = holder;
            }
        }
        if (largest != NULL && card->has_total &&
            largest->bytes >= card->total_bytes / HOLDER_SHARE) {
            char name[32];
            snprintf(name, sizeof name, "card %u", i);
            say_holder(doctor, largest, name);
            return true;
        }
    }
    return false;
}

static bool step_vmm(uf_doctor *doctor)
{
    for (uint32_t i = 0; i < doctor->probe.device_count; i++) {
        const uf_cuda_trial *trial = &doctor->probe.devices[i].vmm;
        if (trial->was_tried && !trial->works && trial->result == UF_CUDA_OUT_OF_MEMORY) {
            snprintf(doctor->next, sizeof doctor->next,
                     "card %u has no memory left, not even for the trial: find out who holds it "
                     "(ask on the host, outside any container)",
                     i);
            return true;
        }
    }
    return false;
}

static void step_recommend(uf_doctor *doctor)
{
    const char *conf = uf__recommendations_conf(&doctor->recommendations);
    const uf_cuda_trial *trial = &doctor->probe.devices[0].vmm;
    bool is_possible = conf != NULL && (strstr(conf, "expandable") == NULL || trial->works);
    if (is_possible && !doctor->around.has_conf) {
        snprintf(doctor->next, sizeof doctor->next,
                 "export PYTORCH_CUDA_ALLOC_CONF=%s, and record your program to be sure of it: "
                 "unfrag tune",
                 conf);
        return;
    }
    snprintf(doctor->next, sizeof doctor->next,
             "record your program (torch.cuda.memory._record_memory_history) and ask for its best "
             "settings: unfrag tune snapshot.pickle");
}

void uf__doctor_conclude(const uf_doctor_options *options, uf_doctor *doctor)
{
    bool has_fault = doctor->has_model && !uf__weights_is_complete(&doctor->weights);
    for (uint32_t i = 0; i < doctor->around.count; i++) {
        has_fault = has_fault || doctor->around.items[i].is_fault;
    }
    note_driver(options, doctor);
    note_torch(doctor);
    doctor->verdict = has_fault                 ? UF_DOCTOR_FAULT
                      : has_usable_card(doctor) ? UF_DOCTOR_GOOD
                                                : UF_DOCTOR_NO_CARD;
    if (step_model(doctor)) {
        return;
    }
    if (doctor->driver_cause[0] != '\0' && !has_fault) {
        snprintf(doctor->next, sizeof doctor->next, "%s", doctor->driver_cause);
        return;
    }
    if (step_setting(doctor)) {
        return;
    }
    if (doctor->torch_note[0] != '\0') {
        snprintf(doctor->next, sizeof doctor->next, "torch: %s", doctor->torch_note);
        return;
    }
    if (!step_holder(doctor) && !step_vmm(doctor)) {
        step_recommend(doctor);
    }
}
