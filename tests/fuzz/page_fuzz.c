/* SPDX-License-Identifier: MIT
 *
 * Fuzz target of everything that is made of a page: arbitrary bytes lie in a page file behind a
 * valid start, are read, judged, counted to cards, and written for Prometheus. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "monitor/prometheus.h"
#include "publish/page_file.h"
#include "publish/process.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

static void require(bool is_good)
{
    if (!is_good) {
        abort();
    }
}

static void write_file(const char *path, const void *data, size_t size_bytes)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    require(file >= 0 && write(file, data, size_bytes) == (ssize_t)size_bytes);
    close(file);
}

static void show(const uf_pages *pages)
{
    char *text = NULL;
    size_t text_bytes;
    uf_cards cards;
    require(uf__cards_count(NULL, pages, &cards, NULL) == UF_OK);
    FILE *stream = open_memstream(&text, &text_bytes);
    require(stream != NULL && uf__prometheus_write(pages, &cards, stream));
    fclose(stream);
    for (size_t i = 0; i < text_bytes; i++) {
        require((unsigned char)text[i] >= 0x20 || text[i] == '\n');
    }
    free(text);
    uf__cards_fini(&cards);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
    static char folder[64];
    char path[128], raw_path[128];
    uf_monitor_page page = {.version = UF_MONITOR_VERSION, .page_bytes = sizeof page};
    const size_t from = offsetof(uf_monitor_page, device_index), room = sizeof page - from;
    if (folder[0] == '\0') {
        strcpy(folder, "/tmp/unfrag-page-fuzz-XXXXXX");
        require(mkdtemp(folder) != NULL);
    }
    memcpy(page.magic, UF_MONITOR_MAGIC, sizeof page.magic);
    memcpy((char *)&page + from, data, size_bytes < room ? size_bytes : room);
    page.pid = (uint32_t)getpid();
    page.pid_namespace = 0;
    page.start_ticks = 0;
    snprintf(path, sizeof path, "%s/%ld-0", folder, (long)getpid());
    snprintf(raw_path, sizeof raw_path, "%s/%ld-1", folder, (long)getpid());
    write_file(path, &page, sizeof page);
    write_file(raw_path, data, size_bytes);
    uf_pages pages = {0};
    require(uf__pages_read(folder, &pages, NULL) == UF_OK);
    require(pages.count >= 1);
    show(&pages);
    uf__pages_fini(&pages);
    unlink(path);
    unlink(raw_path);
    return 0;
}
