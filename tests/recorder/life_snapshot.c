/* SPDX-License-Identifier: MIT
 *
 * life_snapshot SEED CONF PATH: lives a random life and writes its snapshot, for Python to read. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "recorder/random_life.h"

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: life_snapshot SEED CONF PATH\n");
        return 2;
    }
    const life_options options = {.seed = strtoull(argv[1], NULL, 10),
                                  .conf = argv[2],
                                  .limit_bytes = UINT64_C(600) << 20,
                                  .step_count = 3000,
                                  .has_pools = true,
                                  .is_pool_mortal = true};
    life l;
    uf_error error;
    bool is_good = life_init(&l, &options, &error);
    FILE *stream = is_good ? fopen(argv[3], "wb") : NULL;
    uf_stats stats;
    if (is_good && stream == NULL) {
        snprintf(error.text, sizeof error.text, "cannot write %s", argv[3]);
    }
    is_good = stream != NULL &&
              uf_snapshot_write(l.allocator, l.recorder, stream, &error) == UF_OK &&
              uf_stats_get(l.allocator, &stats, &error) == UF_OK;
    if (stream != NULL && fclose(stream) != 0) {
        is_good = false;
    }
    if (!is_good) {
        fprintf(stderr, "life_snapshot: %s\n", error.text);
    } else {
        printf("%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "\n",
               stats.reserved_bytes.all.current, stats.allocated_bytes.all.current,
               stats.active_bytes.all.current, stats.requested_bytes.all.current);
    }
    life_fini(&l);
    return is_good ? EXIT_SUCCESS : EXIT_FAILURE;
}
