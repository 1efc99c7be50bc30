/* SPDX-License-Identifier: MIT
 *
 * Judges variables: the settings by the check, the others by what reads them. */
#include "advise/surroundings.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "alloc/conf_option.h"
#include "base/error.h"

#define NEWEST_RELEASE "2.11"

const char *uf__active_name(uf_active active)
{
    static const char *const names[] = {[UF_ACTIVE_UNKNOWN] = "unknown",
                                        [UF_ACTIVE_YES] = "yes",
                                        [UF_ACTIVE_PARTLY] = "partly",
                                        [UF_ACTIVE_NO] = "no",
                                        [UF_ACTIVE_REFUSED] = "refused"};
    return names[active];
}

/* Findings that say: this option is read, and nothing comes of it. */
static bool is_inert(uf_finding_id id)
{
    return id == UF_FINDING_THRESHOLD_WITHOUT_FRACTION || id == UF_FINDING_ROUNDUP_INERT ||
           id == UF_FINDING_ROUNDING_WITHOUT_SPLIT || id == UF_FINDING_THREADS_WITHOUT_REGISTER ||
           id == UF_FINDING_IGNORED_ITEM || id == UF_FINDING_ASYNC_IGNORES ||
           id == UF_FINDING_OTHER_NAME_WINS;
}

static bool is_of_setup(const uf_finding *finding, const uf_setup *setup, bool is_counting)
{
    bool is_named = strcmp(finding->option, setup->name) == 0;
    return is_named ||
           (is_counting && finding->id != UF_FINDING_CACHING_OFF &&
            finding->id != UF_FINDING_OTHER_NAME_WINS && finding->id != UF_FINDING_NAME_NOT_READ &&
            finding->id != UF_FINDING_MISSPELT_VARIABLE);
}

/* The bytes of a field, by its type. */
static size_t field_bytes(const uf_conf_option *option)
{
    switch (option->type) {
    case UF_CONF_TYPE_SHARE:
        return sizeof(double);
    case UF_CONF_TYPE_BOOLEAN:
    case UF_CONF_TYPE_BACKEND:
        return sizeof(bool);
    case UF_CONF_TYPE_DIVISIONS:
        return sizeof((uf_conf *)NULL)->roundup_power2_divisions;
    case UF_CONF_TYPE_MIB:
    case UF_CONF_TYPE_INTEGER:
    case UF_CONF_TYPE_POWER2:
        break;
    }
    return sizeof(uint64_t);
}

static uint32_t count_changed(const uf_conf *conf)
{
    uf_conf defaults;
    uint32_t count = 0;
    uf__conf_init(&defaults);
    for (size_t i = 0; i < UF_CONF_OPTION_COUNT; i++) {
        const uf_conf_option *option = uf__conf_option_at(i);
        count += memcmp((const char *)conf + option->offset,
                        (const char *)&defaults + option->offset, field_bytes(option)) != 0;
    }
    return count;
}

static bool has_caching_off(const uf_check *check)
{
    for (size_t i = 0; i < check->findings.count; i++) {
        if (check->findings.items[i].id == UF_FINDING_CACHING_OFF) {
            return true;
        }
    }
    return false;
}

/* Mapped segments need what the driver was asked for. */
static const uf_cuda_probed *find_without_vmm(const uf_cuda_probe *probe)
{
    for (uint32_t i = 0; i < probe->device_count; i++) {
        const uf_cuda_trial *trial = &probe->devices[i].vmm;
        if (trial->was_tried && !trial->works && trial->result != UF_CUDA_OUT_OF_MEMORY) {
            return &probe->devices[i];
        }
    }
    return NULL;
}

static void say(uf_surrounding *item, uf_active active, const char *why)
{
    item->active = active;
    item->why = why;
    item->is_fault = active != UF_ACTIVE_YES && active != UF_ACTIVE_UNKNOWN;
}

static void judge_torch(uf_surroundings *around, const uf_python *python,
                        const uf_cuda_probe *probe, uf_surrounding *item)
{
    uf_findings *texts = &around->check.findings;
    const uf_cuda_probed *device = find_without_vmm(probe);
    if (python->torch == UF_TORCH_CPU) {
        say(item, UF_ACTIVE_NO, "the active Python's torch is built without CUDA");
    } else if (has_caching_off(&around->check)) {
        say(item, UF_ACTIVE_NO,
            "PYTORCH_NO_CUDA_MEMORY_CACHING switches the caching allocator off");
    } else if (around->check.effective.is_expandable && device != NULL) {
        say(item, UF_ACTIVE_REFUSED,
            uf__findings_print(texts,
                               "expandable_segments needs virtual memory management, which device "
                               "%d refuses",
                               device->index));
        item->fix = "";
    }
}

/* A settings string that is read: what its findings come to. */
static void judge_conf(uf_surroundings *around, const uf_setup *setup, bool is_counting,
                       uf_surrounding *item)
{
    uint32_t inert = 0;
    const uf_finding *first = NULL;
    for (size_t i = 0; i < around->check.findings.count; i++) {
        const uf_finding *finding = &around->check.findings.items[i];
        if (!is_of_setup(finding, setup, is_counting)) {
            continue;
        }
        if (finding->severity == UF_SEVERITY_ERROR) {
            say(item, UF_ACTIVE_REFUSED, finding->message);
            item->fix = finding->fix;
            return;
        }
        inert += is_inert(finding->id);
        bool is_better = first == NULL || (is_inert(finding->id) && !is_inert(first->id));
        first = is_better ? finding : first;
    }
    if (first != NULL) {
        item->why = first->message;
        item->fix = first->severity == UF_SEVERITY_WARNING ? first->fix : NULL;
    }
    if (!is_counting) {
        item->active = UF_ACTIVE_NO;
        item->is_fault = true;
        return;
    }
    uint32_t changed = count_changed(&around->check.effective);
    if (changed == 0) {
        say(item, UF_ACTIVE_NO, inert > 0 ? item->why : "it says what the defaults are");
    } else if (inert == 0) {
        item->active = UF_ACTIVE_YES;
    } else {
        item->active = inert < changed ? UF_ACTIVE_PARTLY : UF_ACTIVE_NO;
    }
    item->is_fault = inert > 0;
}

static uf_surrounding *add(uf_surroundings *around, const char *name, const char *value)
{
    if (around->count == UF_SURROUNDINGS_MAX) {
        return NULL;
    }
    uf_surrounding *item = &around->items[around->count++];
    *item = (uf_surrounding){.name = name, .value = value, .why = ""};
    return item;
}

static void judge_settings(uf_surroundings *around, const uf_python *python,
                           const uf_cuda_probe *probe)
{
    const uf_check *check = &around->check;
    for (size_t i = 0; i < check->setups.count; i++) {
        const uf_setup *setup = &check->setups.items[i];
        uf_surrounding *item = add(around, setup->name, setup->value);
        if (item == NULL) {
            return;
        }
        if (setup->variable == UF_VARIABLE_NO_CACHING) {
            say(item, UF_ACTIVE_YES,
                "the caching allocator is off: every allocation is a call of the driver, and "
                "every release waits for the GPU; for debugging only");
            item->fix = "";
            continue;
        }
        /* texts are compared by address: the string that counts is one of the set-ups' */
        bool is_counting = check->has_effective && setup->value == check->effective_text;
        around->has_conf = around->has_conf || setup->variable < UF_VARIABLE_CONF_COUNT;
        judge_conf(around, setup, is_counting, item);
        if (item->active == UF_ACTIVE_YES || item->active == UF_ACTIVE_PARTLY) {
            judge_torch(around, python, probe, item);
        }
        if (item->active == UF_ACTIVE_YES || item->active == UF_ACTIVE_PARTLY) {
            around->is_expandable = check->effective.is_expandable;
        }
    }
}

static uint32_t count_entries(const char *value)
{
    uint32_t count = 0;
    for (const char *at = value; *at != '\0';) {
        size_t length = strcspn(at, ",");
        count += length > 0;
        at += length + (at[length] == ',' ? 1 : 0);
    }
    return count;
}

static void judge_visible(uf_surroundings *around, const uf_cuda_probe *probe, uf_surrounding *item)
{
    uint32_t wanted = count_entries(item->value);
    bool is_none = wanted == 0 || item->value[0] == '-' || strcmp(item->value, "NoDevFiles") == 0;
    if (is_none) {
        say(item, UF_ACTIVE_YES, "it hides every card");
    } else if (!probe->has_library ||
               (probe->init_result != UF_CUDA_SUCCESS && probe->init_result != UF_CUDA_NO_DEVICE)) {
        say(item, UF_ACTIVE_UNKNOWN, "the driver cannot be asked");
    } else if (probe->found_count == 0) {
        say(item, UF_ACTIVE_REFUSED, "the driver finds no card by it");
    } else if (probe->found_count < wanted) {
        say(item, UF_ACTIVE_PARTLY,
            uf__findings_print(&around->check.findings,
                               "the driver finds %u of its %u entries: the first wrong one ends "
                               "the list",
                               probe->found_count, wanted));
    } else {
        say(item, UF_ACTIVE_YES,
            uf__findings_print(&around->check.findings, "programs see %u card%s",
                               probe->found_count, probe->found_count == 1 ? "" : "s"));
    }
}

static void judge_preload(uf_surroundings *around, uf_surrounding *item)
{
    char path[512];
    const char *missing = NULL;
    for (const char *at = item->value; *at != '\0' && missing == NULL;) {
        size_t length = strcspn(at, ": ");
        snprintf(path, sizeof path, "%.*s", (int)length, at);
        if (strchr(path, '/') != NULL && access(path, R_OK) != 0) {
            missing = uf__findings_copy(&around->check.findings, path, strlen(path));
        }
        at += length + (at[length] != '\0' ? 1 : 0);
    }
    if (missing != NULL) {
        say(item, UF_ACTIVE_NO,
            uf__findings_print(&around->check.findings,
                               "%s cannot be read, and the loader goes on without it", missing));
    } else if (strstr(item->value, "malloc") != NULL) {
        say(item, UF_ACTIVE_YES, "changes the host's memory, not the GPU's");
    } else {
        say(item, UF_ACTIVE_UNKNOWN, "loaded into every program; what it changes cannot be told");
    }
}

static void judge_other(uf_surroundings *around, const uf_cuda_probe *probe, const char *text)
{
    static const char *const names[] = {
        "CUDA_VISIBLE_DEVICES=", "CUDA_DEVICE_ORDER=", "CUDA_LAUNCH_BLOCKING=", "LD_PRELOAD="};
    size_t which = 0;
    while (which < 4 && strncmp(text, names[which], strlen(names[which])) != 0) {
        which++;
    }
    if (which == 4) {
        return;
    }
    size_t length = strlen(names[which]);
    uf_findings *texts = &around->check.findings;
    const char *value = uf__findings_copy(texts, text + length, strlen(text + length));
    if (value[0] == '\0' && which != 0) {
        return; /* as if it were not set */
    }
    uf_surrounding *item = add(around, uf__findings_copy(texts, text, length - 1), value);
    if (item == NULL) {
        return;
    }
    if (which == 0) {
        judge_visible(around, probe, item);
    } else if (which == 1) {
        bool is_known = strcmp(value, "PCI_BUS_ID") == 0 || strcmp(value, "FASTEST_FIRST") == 0;
        say(item, is_known ? UF_ACTIVE_YES : UF_ACTIVE_NO,
            is_known ? "" : "neither PCI_BUS_ID nor FASTEST_FIRST: it is ignored");
    } else if (which == 2) {
        bool is_on = strcmp(value, "0") != 0;
        say(item, is_on ? UF_ACTIVE_YES : UF_ACTIVE_NO,
            is_on ? "each kernel is waited for: for debugging only" : "0 is the default");
        item->is_fault = false;
    } else {
        judge_preload(around, item);
    }
}

static uf_status start_check(const uf_python *python, uf_surroundings *around, uf_error *error)
{
    uf_error ignored;
    if (python->torch_version[0] != '\0' &&
        uf__check_init(&around->check, python->torch_version, &ignored) == UF_OK) {
        around->is_torch_known = true;
        return UF_OK;
    }
    uf__check_fini(&around->check);
    return uf__check_init(&around->check, NEWEST_RELEASE, error);
}

uf_status uf__surroundings_read(const char *const *variables, size_t count, const uf_python *python,
                                const uf_cuda_probe *probe, uf_surroundings *around,
                                uf_error *error)
{
    memset(around, 0, sizeof *around);
    uf_status status = start_check(python, around, error);
    if (status == UF_OK) {
        uf__check_add_environment(&around->check, variables, count);
        status = uf__check_finish(&around->check, error);
    }
    if (status != UF_OK) {
        return status;
    }
    judge_settings(around, python, probe);
    for (size_t i = 0; i < count; i++) {
        judge_other(around, probe, variables[i]);
    }
    return around->check.findings.has_failed
               ? uf__error_set(error, UF_ERROR_HOST_MEMORY, "no host memory to judge settings")
               : UF_OK;
}

void uf__surroundings_fini(uf_surroundings *around)
{
    uf__check_fini(&around->check);
    memset(around, 0, sizeof *around);
}
