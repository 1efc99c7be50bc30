/* SPDX-License-Identifier: MIT
 *
 * The tables of driver call times. That of the H200 is measured (medians, driver 580, PCIe 5). Of
 * an A100 there are four figures, for handles of 2 MiB: create 193 us, map 1.5, access 36,
 * unmap 26. The rest of its table is taken, not measured: a larger handle costs as many times more
 * there as on the H200, each of several handles in one call costs what one alone does, and the
 * other calls (cuMemAlloc, cuMemFree, reserve, release) are those of the H200. */
#include "device/cost.h"

#include <stddef.h>

typedef struct cost_point {
    uint64_t size_mib;
    int64_t ns;
} cost_point;

enum { POINT_COUNT = 5 };

struct uf_cost_table {
    cost_point points[UF_COST_CALL_COUNT][POINT_COUNT];
};

/* The last point of a row repeats where fewer were measured. */
static const uf_cost_table h200 = {{
    [UF_COST_MALLOC] = {{2, 32000}, {20, 32000}, {256, 40000}, {1024, 79000}, {2458, 167000}},
    [UF_COST_FREE] = {{2, 27000}, {20, 36000}, {256, 95000}, {1024, 304000}, {2458, 698000}},
    [UF_COST_RESERVE] = {{0, 17000}, {0, 17000}, {0, 17000}, {0, 17000}, {0, 17000}},
    [UF_COST_CREATE] = {{2, 9000}, {512, 12000}, {2048, 27000}, {2048, 27000}, {2048, 27000}},
    [UF_COST_MAP] = {{2, 700}, {2048, 1300}, {2048, 1300}, {2048, 1300}, {2048, 1300}},
    [UF_COST_ACCESS] = {{2, 41000}, {512, 52000}, {2048, 89000}, {2048, 89000}, {2048, 89000}},
    [UF_COST_ACCESS_EACH] = {{2, 27000}, {2, 27000}, {2, 27000}, {2, 27000}, {2, 27000}},
    [UF_COST_UNMAP] = {{2, 21000}, {2048, 38000}, {2048, 38000}, {2048, 38000}, {2048, 38000}},
    [UF_COST_UNMAP_EACH] = {{2, 17000}, {2, 17000}, {2, 17000}, {2, 17000}, {2, 17000}},
    [UF_COST_RELEASE] = {{2, 12000}, {20, 21000}, {128, 41000}, {512, 135000}, {2048, 535000}},
}};

static const uf_cost_table a100 = {{
    [UF_COST_MALLOC] = {{2, 32000}, {20, 32000}, {256, 40000}, {1024, 79000}, {2458, 167000}},
    [UF_COST_FREE] = {{2, 27000}, {20, 36000}, {256, 95000}, {1024, 304000}, {2458, 698000}},
    [UF_COST_RESERVE] = {{0, 17000}, {0, 17000}, {0, 17000}, {0, 17000}, {0, 17000}},
    [UF_COST_CREATE] = {{2, 193000}, {512, 257000}, {2048, 579000}, {2048, 579000}, {2048, 579000}},
    [UF_COST_MAP] = {{2, 1500}, {2048, 2800}, {2048, 2800}, {2048, 2800}, {2048, 2800}},
    [UF_COST_ACCESS] = {{2, 36000}, {512, 45700}, {2048, 78100}, {2048, 78100}, {2048, 78100}},
    [UF_COST_ACCESS_EACH] = {{2, 36000}, {2, 36000}, {2, 36000}, {2, 36000}, {2, 36000}},
    [UF_COST_UNMAP] = {{2, 26000}, {2048, 47000}, {2048, 47000}, {2048, 47000}, {2048, 47000}},
    [UF_COST_UNMAP_EACH] = {{2, 26000}, {2, 26000}, {2, 26000}, {2, 26000}, {2, 26000}},
    [UF_COST_RELEASE] = {{2, 12000}, {20, 21000}, {128, 41000}, {512, 135000}, {2048, 535000}},
}};

const uf_cost_table *uf__cost_table(uf_cost_model model)
{
    return model == UF_COST_A100 ? &a100 : &h200;
}

int64_t uf__cost_ns(const uf_cost_table *table, uf_cost_call call, uint64_t size_bytes)
{
    const cost_point *row = table->points[call];
    double size_mib = (double)size_bytes / (1024.0 * 1024.0);
    if (size_mib <= (double)row[0].size_mib) {
        return row[0].ns;
    }
    for (size_t i = 1; i < POINT_COUNT; i++) {
        double low = (double)row[i - 1].size_mib, high = (double)row[i].size_mib;
        if (size_mib < high) {
            double share = (size_mib - low) / (high - low);
            return row[i - 1].ns + (int64_t)(share * (double)(row[i].ns - row[i - 1].ns));
        }
    }
    return row[POINT_COUNT - 1].ns;
}

void uf__cost_page(const uf_cost_table *table, uint64_t size_bytes, uf_page_cost *cost)
{
    cost->create_ns = uf__cost_ns(table, UF_COST_CREATE, size_bytes);
    cost->map_ns = uf__cost_ns(table, UF_COST_MAP, size_bytes) +
                   uf__cost_ns(table, UF_COST_ACCESS_EACH, size_bytes);
    cost->unmap_ns = uf__cost_ns(table, UF_COST_UNMAP_EACH, size_bytes);
    cost->release_ns = uf__cost_ns(table, UF_COST_RELEASE, size_bytes);
}
