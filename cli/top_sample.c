/* SPDX-License-Identifier: MIT
 *
 * Reading one sample. */
#include "top_sample.h"

#include <time.h>

static const int64_t NVML_INTERVAL_NS = 5000000000;

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now = {0};
    (void)clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static uf_status ask_driver(cli_top_sample *sample, uf_error *error)
{
    int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    if (now_ns < sample->next_nvml_ns) {
        return UF_OK;
    }
    sample->next_nvml_ns = now_ns + NVML_INTERVAL_NS;
    uf__nvml_fini(&sample->nvml);
    return uf__nvml_read(&sample->nvml, error);
}

uf_status cli_top_sample_read(cli_top_sample *sample, uf_error *error)
{
    uf_status status = ask_driver(sample, error);
    if (status == UF_OK) {
        status = uf__pages_read(NULL, &sample->pages, error);
    }
    sample->unix_ns = clock_ns(CLOCK_REALTIME);
    if (status == UF_OK) {
        uf__cards_fini(&sample->cards);
        status = uf__cards_count(&sample->nvml, &sample->pages, &sample->cards, error);
    }
    return status;
}

void cli_top_sample_keep(cli_top_sample *sample, uint32_t pid)
{
    size_t count = 0;
    for (size_t i = 0; i < sample->pages.count; i++) {
        if (sample->pages.items[i].page.pid == pid) {
            sample->pages.items[count++] = sample->pages.items[i];
        }
    }
    sample->pages.count = count;
}

void cli_top_sample_fini(cli_top_sample *sample)
{
    uf__pages_fini(&sample->pages);
    uf__cards_fini(&sample->cards);
    uf__nvml_fini(&sample->nvml);
}
