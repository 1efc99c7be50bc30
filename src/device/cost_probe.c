/* SPDX-License-Identifier: MIT
 *
 * Measuring what pages cost on a device. Knows nothing of allocators. */
#include <unfrag/cost.h>

#include <inttypes.h>

#include "base/error.h"

enum { PAGES = 4, ROUNDS = 5 };

/* What one round took, for each page. */
typedef struct probe_round {
    int64_t create_ns, map_ns, unmap_ns, release_ns;
} probe_round;

static int64_t now(const uf_device *device)
{
    return device->clock_ns(device->context);
}

/* All or nothing: what was made is given back on failure. */
static uf_status measure(const uf_device *d, uint64_t addr, uint64_t page_bytes, probe_round *round)
{
    uint64_t handles[PAGES];
    uint64_t made = 0, mapped = 0;
    uf_status status = UF_OK, undone = UF_OK;
    int64_t began = now(d), ended;
    while (made < PAGES && status == UF_OK) {
        status = d->handle_create(d->context, page_bytes, &handles[made]);
        made += status == UF_OK;
    }
    ended = now(d);
    round->create_ns = (ended - began) / PAGES;
    began = ended;
    while (mapped < made && status == UF_OK) {
        status = d->handle_map(d->context, addr + mapped * page_bytes, handles[mapped], page_bytes);
        mapped += status == UF_OK;
    }
    if (status == UF_OK) {
        status = d->range_access(d->context, addr, PAGES * page_bytes, PAGES);
    }
    ended = now(d);
    round->map_ns = (ended - began) / PAGES;
    began = ended;
    if (mapped != 0) {
        undone = d->range_unmap(d->context, addr, mapped * page_bytes, mapped);
        status = status == UF_OK ? undone : status;
    }
    ended = now(d);
    round->unmap_ns = (ended - began) / PAGES;
    began = ended;
    for (uint64_t i = 0; i < made; i++) {
        undone = d->handle_release(d->context, handles[i], page_bytes);
        status = status == UF_OK ? undone : status;
    }
    round->release_ns = (now(d) - began) / PAGES;
    return status;
}

static int64_t median(int64_t values[ROUNDS])
{
    for (int i = 1; i < ROUNDS; i++) {
        for (int j = i; j > 0 && values[j - 1] > values[j]; j--) {
            int64_t value = values[j];
            values[j] = values[j - 1];
            values[j - 1] = value;
        }
    }
    return values[ROUNDS / 2];
}

static void conclude(const probe_round rounds[ROUNDS], uf_page_cost *cost)
{
    int64_t create[ROUNDS], map[ROUNDS], unmap[ROUNDS], release[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        create[i] = rounds[i].create_ns;
        map[i] = rounds[i].map_ns;
        unmap[i] = rounds[i].unmap_ns;
        release[i] = rounds[i].release_ns;
    }
    *cost = (uf_page_cost){.create_ns = median(create),
                           .map_ns = median(map),
                           .unmap_ns = median(unmap),
                           .release_ns = median(release)};
}

static bool can_probe(const uf_device *d)
{
    return d->clock_ns != NULL && d->range_reserve != NULL && d->range_release != NULL &&
           d->handle_create != NULL && d->handle_release != NULL && d->handle_map != NULL &&
           d->range_access != NULL && d->range_unmap != NULL;
}

uf_status uf_cost_probe(const uf_device *device, uint64_t page_bytes, uf_page_cost *cost,
                        uf_error *error)
{
    if (device == NULL || device->struct_size_bytes < sizeof *device || cost == NULL ||
        page_bytes == 0 || page_bytes > UINT64_MAX / PAGES) {
        return uf__error_set(error, UF_ERROR_INVALID_ARGUMENT,
                             "uf_cost_probe: device or cost is NULL, or there are no pages of "
                             "%" PRIu64 " bytes",
                             page_bytes);
    }
    if (!can_probe(device)) {
        return uf__error_set(error, UF_ERROR_UNSUPPORTED,
                             "what pages cost cannot be measured: the device lacks a clock or "
                             "cannot map handles");
    }
    probe_round rounds[ROUNDS] = {{0}};
    uint64_t addr;
    uf_status status = device->range_reserve(device->context, PAGES * page_bytes, &addr);
    if (status != UF_OK) {
        return uf__error_set(error, status, "uf_cost_probe: %s", uf_status_text(status));
    }
    for (int i = 0; i < ROUNDS && status == UF_OK; i++) {
        status = measure(device, addr, page_bytes, &rounds[i]);
    }
    (void)!device->range_release(device->context, addr, PAGES * page_bytes);
    if (status != UF_OK) {
        return uf__error_set(error, status,
                             "what pages cost could not be measured with %d pages of %" PRIu64
                             " bytes: %s",
                             PAGES, page_bytes, uf_status_text(status));
    }
    uf_page_cost found;
    conclude(rounds, &found);
    if (found.create_ns <= 0 || found.map_ns <= 0 || found.unmap_ns <= 0 || found.release_ns <= 0) {
        return uf__error_set(error, UF_ERROR_UNSUPPORTED,
                             "what pages cost cannot be measured: the device's clock stands still "
                             "in its calls");
    }
    *cost = found;
    return UF_OK;
}
