/* SPDX-License-Identifier: MIT
 *
 * Fuzz target: any text through the message scan and the explanation. Checks that the answer is
 * complete (a cause and an advice for every text), that it does not depend on where the text is
 * broken into pieces of the window, and that fragmentation is never blamed without figures. */
#include "advise/explain.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool is_true)
{
    if (!is_true) {
        abort();
    }
}

static void check_explanation(const uf_explanation *explanation)
{
    const uf_figure *figures = explanation->message.figures;
    require(explanation->cause_count >= 1 && explanation->cause_count <= UF_CAUSE_COUNT);
    require(explanation->advice_count >= 1);
    for (uint32_t i = 0; i < explanation->cause_count; i++) {
        require(explanation->reasons[i][0] != '\0');
        bool has_figures =
            figures[UF_FIGURE_REQUESTED].is_known && figures[UF_FIGURE_DEVICE_FREE].is_known;
        require(explanation->causes[i] != UF_CAUSE_FRAGMENTATION || has_figures);
        for (uint32_t k = 0; k < i; k++) {
            require(explanation->causes[i] != explanation->causes[k]);
        }
    }
    require(explanation->message.form == UF_MESSAGE_NONE || explanation->count >= 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uf_message_log *log = NULL;
    uf_error error = {0};
    if (uf__message_scan_memory(data, size, &log, &error) != UF_OK) {
        return 0; /* compressed data that is broken */
    }
    require(log->group_count <= UF_MESSAGE_GROUP_CAPACITY);
    uf_explanation *explanation = malloc(sizeof *explanation);
    require(explanation != NULL);
    uf_explain_request request = {.log = log};
    uf__explain(&request, explanation);
    check_explanation(explanation);
    uf_conf conf;
    uf__conf_init(&conf);
    conf.is_expandable = true;
    request.conf = &conf;
    request.named = UINT32_MAX;
    uf__explain(&request, explanation);
    check_explanation(explanation);
    free(explanation);
    free(log);
    return 0;
}
