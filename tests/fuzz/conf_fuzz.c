/* SPDX-License-Identifier: MIT
 *
 * Fuzz target: settings strings in every grammar. The first byte chooses the grammar and the
 * moment. Checks that a refused string names a fault inside the text, that reading is repeatable,
 * and that what 2.11 accepts at import can be written and read back. */
#include "alloc/conf.h"

#include <stdlib.h>
#include <string.h>

#include "alloc/rounding.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool is_true)
{
    if (!is_true) {
        abort();
    }
}

/* What any accepted settings must allow: sizes that round upwards, to multiples of 512. */
static void check_rounding(const uf_conf *conf)
{
    for (unsigned bit = 0; bit < 60; bit++) {
        uint64_t bytes = (UINT64_C(1) << bit) + bit;
        uint64_t rounded = uf__round_request(conf, bytes);
        require(rounded >= bytes && rounded % UF_MIN_BLOCK_BYTES == 0);
        require(uf__segment_bytes(conf, rounded) >= rounded);
    }
}

static void count_item(void *context, const uf_conf_item *item)
{
    size_t *count = context;
    require(item->offset_bytes <= item->value_offset_bytes);
    require(item->value_offset_bytes < item->end_offset_bytes);
    ++*count;
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

    size_t item_count = 0;
    uf_conf_reading reading = {.grammar = (uf_conf_grammar)(data[0] % 4),
                               .is_at_import = (data[0] & 4) != 0,
                               .on_item = count_item,
                               .context = &item_count};
    uf_conf conf, again;
    uf_conf_report report, report_again;
    uf_error error = {UF_OK, ""};
    uf__conf_init(&conf);
    uf__conf_init(&again);
    uf_status status = uf__conf_read(&conf, text, &reading, &report, &error);
    uf_status status_again = uf__conf_read(&again, text, &reading, &report_again, NULL);
    require(status == UF_OK || status == UF_ERROR_CONF);
    require(status == status_again && report.fault == report_again.fault);
    require(report.named == report_again.named && report.oddities == report_again.oddities);
    require(uf__conf_is_equal(&conf, &again));
    require((status == UF_OK) == (report.fault == UF_CONF_FAULT_NONE));
    require(report.offset_bytes <= strlen(text));
    require((status == UF_OK) == (error.text[0] == '\0'));
    check_rounding(&conf);
    if (status == UF_OK && reading.grammar == UF_CONF_2_11) {
        char written[UF_CONF_TEXT_CAPACITY];
        require(uf__conf_format(&conf, written, sizeof written, NULL) == UF_OK);
        if (reading.is_at_import) {
            require(uf__conf_backend_scan(text, NULL, NULL) == UF_OK);
        }
    }
    free(text);
    return 0;
}
