/* SPDX-License-Identifier: MIT
 *
 * Debug mode: three mistakes, found on a device of host memory. Addresses differ from run to run,
 * so only sizes and offsets are printed. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <unfrag/host.h>
#include <unfrag/unfrag.h>

static const char *const NAMES[] = {"overrun",        "use after free",  "double free",
                                    "inside pointer", "foreign pointer", "overlap"};

static void on_damage(void *context, const uf_damage *damage)
{
    (void)context; /* damage->text is a line that says all of this in words */
    printf("%s: block of %" PRIu64 " bytes on stream %" PRIu64 ", offset %" PRIu64 ", %" PRIu64
           " bytes changed\n",
           NAMES[damage->kind], damage->size_bytes, damage->stream, damage->offset_bytes,
           damage->damaged_bytes);
}

/* What a GPU's kernel would do. */
static void kernel(void *context, uint64_t addr, uint64_t size_bytes)
{
    (void)context;
    memset((void *)(uintptr_t)addr, 0, size_bytes);
}

int main(void)
{
    uf_error error;
    uf_host *host;
    uf_allocator *allocator;
    uint64_t first, second;

    if (uf_host_create(NULL, &host, &error) != UF_OK) {
        return 1;
    }
    uf_allocator_options options = {.struct_size_bytes = sizeof options,
                                    .device = uf_host_device(host),
                                    .policy = UF_POLICY_UNFRAG,
                                    .is_debug = true,
                                    .on_damage = on_damage};
    if (uf_allocator_create(&options, &allocator, &error) != UF_OK ||
        uf_alloc(allocator, 1000, 7, &first, &error) != UF_OK ||
        uf_alloc(allocator, 1000, 7, &second, &error) != UF_OK) {
        return 1;
    }

    /* Three bytes too many: the free says so, and gives the memory back all the same. */
    if (uf_host_launch(host, 7, kernel, NULL, first, 1003) != UF_OK) {
        return 1;
    }
    printf("%s\n", uf_status_name(uf_free(allocator, first, &error)));
    printf("%s\n", uf_status_name(uf_free(allocator, first, &error)));

    /* Stream 9 uses a block without being named, and is late. */
    if (uf_free(allocator, second, &error) != UF_OK ||
        uf_host_launch(host, 9, kernel, NULL, second, 1000) != UF_OK) {
        return 1;
    }
    uf_host_run(host, 7, 100); /* what stream 7 has to do */
    uf_host_run(host, 9, 100);
    printf("%s\n", uf_status_name(uf_check(allocator, &error)));
    uf_allocator_destroy(allocator);
    uf_host_destroy(host);
    return 0;
}
