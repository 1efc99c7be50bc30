/* SPDX-License-Identifier: MIT
 *
 * The result of `unfrag check`, as text and as JSON. */
#include "check_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "alloc/conf_option.h"
#include "base/size.h"
#include "json.h"

static const char *setup_kind_name(uf_setup_kind kind)
{
    switch (kind) {
    case UF_SETUP_CONF:
        return "string";
    case UF_SETUP_SET:
        return "environment";
    case UF_SETUP_COMMAND:
        return "command";
    case UF_SETUP_LOCAL:
        return "not exported";
    case UF_SETUP_LOST:
        return "lost";
    case UF_SETUP_CALL:
        return "call";
    case UF_SETUP_EXPORT:
    case UF_SETUP_UNSET:
    case UF_SETUP_RUN:
    case UF_SETUP_FRACTION:
    case UF_SETUP_OBSERVE:
        break;
    }
    return NULL;
}

static void write_place(cli_json *json, const uf_check *check, uf_finding_place place)
{
    const char *name = check->source_names[place.source];
    cli_json_string(json, "file", name[0] == '\0' ? NULL : name);
    if (place.line == 0) {
        cli_json_null(json, "line");
    } else {
        cli_json_uint64(json, "line", place.line);
    }
    if (place.cell != 0) {
        cli_json_uint64(json, "cell", place.cell);
    }
}

static void write_findings(cli_json *json, const uf_check *check)
{
    cli_json_array_begin(json, "findings");
    for (size_t i = 0; i < check->findings.count; i++) {
        const uf_finding *finding = &check->findings.items[i];
        cli_json_object_begin(json, NULL);
        cli_json_string(json, "id", uf__finding_name(finding->id));
        cli_json_string(json, "severity", uf__severity_name(finding->severity));
        cli_json_string(json, "option", finding->option);
        write_place(json, check, finding->place);
        cli_json_string(json, "message", finding->message);
        cli_json_string(json, "fix", finding->fix);
        cli_json_object_end(json);
    }
    cli_json_array_end(json);
}

static void write_setups(cli_json *json, const uf_check *check)
{
    cli_json_array_begin(json, "setups");
    for (size_t i = 0; i < check->setups.count; i++) {
        const uf_setup *setup = &check->setups.items[i];
        const char *kind = setup_kind_name(setup->kind);
        if (kind == NULL) {
            continue;
        }
        cli_json_object_begin(json, NULL);
        cli_json_string(json, "kind", kind);
        write_place(json, check, setup->place);
        cli_json_string(json, "variable", setup->name);
        cli_json_string(json, "value", setup->value);
        cli_json_object_end(json);
    }
    cli_json_array_end(json);
}

static uint64_t integer_of(const uf_conf *conf, const uf_conf_option *option)
{
    uint64_t value;
    memcpy(&value, (const char *)conf + option->offset, sizeof value);
    return value;
}

static void write_option(cli_json *json, const uf_conf *conf, const uf_conf_option *option)
{
    const char *field = (const char *)conf + option->offset;
    double share;
    bool is_on;
    switch (option->type) {
    case UF_CONF_TYPE_MIB:
        if (integer_of(conf, option) == UF_UNLIMITED) {
            cli_json_null(json, option->name);
        } else {
            cli_json_uint64(json, option->name, integer_of(conf, option) / UF_MIB);
        }
        break;
    case UF_CONF_TYPE_INTEGER:
    case UF_CONF_TYPE_POWER2:
        cli_json_uint64(json, option->name, integer_of(conf, option));
        break;
    case UF_CONF_TYPE_SHARE:
        memcpy(&share, field, sizeof share);
        cli_json_double(json, option->name, share);
        break;
    case UF_CONF_TYPE_BOOLEAN:
        memcpy(&is_on, field, sizeof is_on);
        cli_json_bool(json, option->name, is_on);
        break;
    case UF_CONF_TYPE_BACKEND:
        cli_json_string(json, option->name, conf->is_async_backend ? "cudaMallocAsync" : "native");
        break;
    case UF_CONF_TYPE_DIVISIONS:
        cli_json_array_begin(json, option->name);
        for (size_t i = 0; i < UF_CONF_DIVISION_COUNT; i++) {
            cli_json_uint64(json, NULL, conf->roundup_power2_divisions[i]);
        }
        cli_json_array_end(json);
        break;
    }
}

cli_exit cli_check_print_json(const uf_check *check)
{
    cli_json json;
    cli_json_init(&json, stdout);
    cli_json_object_begin(&json, NULL);
    cli_json_bool(&json, "valid", uf__check_is_valid(check));
    cli_json_string(&json, "torch", check->version);
    write_findings(&json, check);
    write_setups(&json, check);
    cli_json_string(&json, "conf", check->effective_text);
    cli_json_object_begin(&json, "effective");
    for (size_t i = 0; i < UF_CONF_OPTION_COUNT; i++) {
        const uf_conf_option *option = uf__conf_option_at(i);
        if (uf__conf_option_exists(option, check->grammar, check->release)) {
            write_option(&json, &check->effective, option);
        }
    }
    cli_json_object_end(&json);
    cli_json_object_end(&json);
    return cli_json_finish(&json) ? CLI_EXIT_DONE : CLI_EXIT_ENVIRONMENT;
}

static void print_place(const uf_check *check, uf_finding_place place)
{
    const char *name = check->source_names[place.source];
    if (name[0] != '\0') {
        printf("%s:", name);
        if (place.cell != 0) {
            printf("cell %" PRIu32 ":", place.cell);
        }
        if (place.line != 0) {
            printf("%" PRIu32 ":", place.line);
        }
        printf(" ");
    }
}

static const char *skip_blanks(const char *text)
{
    return text + strspn(text, " \t");
}

static void print_effective(const uf_check *check)
{
    char text[UF_CONF_TEXT_CAPACITY];
    if (!check->has_effective) {
        return;
    }
    if (uf__conf_format(&check->effective, text, sizeof text, NULL) == UF_OK) {
        printf("in force (PyTorch %s): %s\n", check->version,
               text[0] == '\0' ? "the defaults" : text);
    }
}

void cli_check_print(const uf_check *check)
{
    size_t counts[UF_SEVERITY_ERROR + 1] = {0};
    for (size_t i = 0; i < check->findings.count; i++) {
        const uf_finding *finding = &check->findings.items[i];
        counts[finding->severity]++;
        print_place(check, finding->place);
        printf("%s: %s%s%s [%s]\n", uf__severity_name(finding->severity), finding->option,
               finding->option[0] == '\0' ? "" : ": ", finding->message,
               uf__finding_name(finding->id));
        if (finding->fix != NULL && finding->fix[0] != '\0') {
            printf("    fix: %s\n", skip_blanks(finding->fix));
        } else if (finding->fix != NULL) {
            printf("    fix: leave it out\n");
        }
    }
    if (uf__check_is_valid(check)) {
        print_effective(check);
    }
    if (check->findings.count == 0) {
        printf("nothing to find fault with\n");
    } else {
        printf("%zu error%s, %zu warning%s, %zu note%s\n", counts[UF_SEVERITY_ERROR],
               counts[UF_SEVERITY_ERROR] == 1 ? "" : "s", counts[UF_SEVERITY_WARNING],
               counts[UF_SEVERITY_WARNING] == 1 ? "" : "s", counts[UF_SEVERITY_NOTE],
               counts[UF_SEVERITY_NOTE] == 1 ? "" : "s");
    }
}
