/* SPDX-License-Identifier: MIT
 *
 * Fuzz target: files of every language that check reads. The first byte chooses the language and
 * the release. Checks that a check never fails on text, that every finding has a place and a
 * message, and that a second check of the same text finds the same. */
#include "advise/check.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool is_true)
{
    if (!is_true) {
        abort();
    }
}

static const char *const names[] = {"x.py",  "x.sh",  "x.bat",      "x.ps1",     "x.yaml",
                                    "x.env", "x.log", "Dockerfile", "x.service", "x.ipynb"};
static const char *const versions[] = {"2.11", "2.9", "1.13", "2.10"};

static void play(uf_check *check, const char *name, const char *version, const char *text,
                 size_t length)
{
    uf_error error = {UF_OK, ""};
    require(uf__check_init(check, version, &error) == UF_OK);
    uf_status status = uf__check_add_file(check, name, text, length, &error);
    require(status == UF_OK || status == UF_ERROR_BAD_INPUT);
    require(uf__check_finish(check, &error) == UF_OK);
    for (size_t i = 0; i < check->findings.count; i++) {
        const uf_finding *finding = &check->findings.items[i];
        require(finding->place.line > 0 && finding->message[0] != '\0');
        require(finding->option != NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    char *text = malloc(size);
    require(text != NULL);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    const char *name = names[data[0] % (sizeof names / sizeof names[0])];
    const char *version = versions[(data[0] >> 4) % (sizeof versions / sizeof versions[0])];
    uf_check first, second;
    play(&first, name, version, text, size - 1);
    play(&second, name, version, text, size - 1);
    require(first.findings.count == second.findings.count);
    require(first.setups.count == second.setups.count);
    uf__check_fini(&first);
    uf__check_fini(&second);

    uf_error error;
    require(uf__check_init(&first, version, &error) == UF_OK);
    uf__check_add_conf(&first, text);
    require(uf__check_finish(&first, &error) == UF_OK);
    uf__check_fini(&first);
    free(text);
    return 0;
}
