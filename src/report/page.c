/* SPDX-License-Identifier: MIT
 *
 * Putting the page together. */
#include "report/page.h"

#include <string.h>

#include "base/error.h"
#include "base/utf8.h"

/* Places in the template. */
#define PLACE_OPEN "<!--@"
#define PLACE_CLOSE "-->"

static void write_escaped(const char *text, FILE *stream)
{
    const unsigned char *bytes = (const unsigned char *)text;
    size_t length = strlen(text);
    for (size_t i = 0; i < length;) {
        size_t count = uf__utf8_length(bytes + i, length - i, false);
        if (count == 0 || (count == 1 && bytes[i] < 0x20)) {
            fputs("\xef\xbf\xbd", stream);
            i++;
        } else if (count == 1 && strchr("<>&\"'", bytes[i]) != NULL) {
            fprintf(stream, "&#%d;", bytes[i]);
            i++;
        } else {
            fwrite(bytes + i, 1, count, stream);
            i += count;
        }
    }
}

/* In JSON these letters stand in strings only, where they can be written otherwise: no text can
 * then end the script element, or begin a comment in it. */
static void write_data(const char *data, size_t length, FILE *stream)
{
    size_t start = 0;
    for (size_t i = 0; i < length; i++) {
        if (data[i] == '<' || data[i] == '>' || data[i] == '&') {
            fwrite(data + start, 1, i - start, stream);
            fprintf(stream, "\\u%04x", (unsigned)data[i]);
            start = i + 1;
        }
    }
    fwrite(data + start, 1, length - start, stream);
}

static bool ends_with(const char *name, const char *ending)
{
    size_t length = strlen(name), ending_length = strlen(ending);
    return length >= ending_length && strcmp(name + length - ending_length, ending) == 0;
}

static void write_assets(const char *ending, FILE *stream)
{
    for (const uf_page_asset *asset = uf__page_assets; asset->name != NULL; asset++) {
        if (ends_with(asset->name, ending)) {
            fwrite(asset->bytes, 1, asset->size_bytes, stream);
            fputc('\n', stream);
        }
    }
}

static uf_status write_packs(const uf_page *page, FILE *stream)
{
    uf_status status = UF_OK;
    for (uint32_t i = 0; i < page->pack_count && status == UF_OK; i++) {
        size_t written_bytes;
        fprintf(stream, "<script type=\"text/plain\" id=\"columns-%u\">", (unsigned)i);
        status = uf__pack_write(&page->packs[i], stream, &written_bytes);
        fputs("</script>\n", stream);
    }
    return status;
}

static uf_status fill_place(const uf_page *page, const char *name, size_t length, FILE *stream)
{
    if (length == 5 && strncmp(name, "title", length) == 0) {
        write_escaped(page->title, stream);
    } else if (length == 7 && strncmp(name, "licence", length) == 0) {
        write_assets("LICENSE", stream);
    } else if (length == 5 && strncmp(name, "style", length) == 0) {
        write_assets(".css", stream);
    } else if (length == 6 && strncmp(name, "script", length) == 0) {
        write_assets(".js", stream);
    } else if (length == 4 && strncmp(name, "data", length) == 0) {
        write_data(page->data, page->data_bytes, stream);
    } else if (length == 7 && strncmp(name, "columns", length) == 0) {
        return write_packs(page, stream);
    }
    return UF_OK;
}

static const char *find(const char *from, const char *end, const char *what)
{
    return from < end ? memmem(from, (size_t)(end - from), what, strlen(what)) : NULL;
}

uf_status uf__page_write(const uf_page *page, FILE *stream, uf_error *error)
{
    const uf_page_asset *template = uf__page_assets;
    while (template->name != NULL && !ends_with(template->name, ".html")) {
        template ++;
    }
    const char *at = (const char *)template->bytes, *end = at + template->size_bytes;
    uf_status status = UF_OK;
    for (const char *place = find(at, end, PLACE_OPEN); place != NULL && status == UF_OK;
         place = find(at, end, PLACE_OPEN)) {
        const char *name = place + strlen(PLACE_OPEN);
        const char *close = find(name, end, PLACE_CLOSE);
        fwrite(at, 1, (size_t)(place - at), stream);
        status = fill_place(page, name, (size_t)(close - name), stream);
        at = close + strlen(PLACE_CLOSE);
    }
    fwrite(at, 1, (size_t)(end - at), stream);
    if (status == UF_OK && ferror(stream) != 0) {
        status = UF_ERROR_IO;
    }
    return status == UF_OK ? UF_OK
                           : uf__error_set(error, status, "the page could not be written: %s",
                                           uf_status_text(status));
}
