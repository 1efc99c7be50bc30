/* SPDX-License-Identifier: MIT
 *
 * What torch.save writes: since PyTorch 1.6 a zip archive, whose directory stands at its end. A
 * file that is cut has lost it. The pickle inside is not looked at. Also what is saved in place of
 * weights by mistake. */
#include "advise/weights_parts.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define END_BYTES 22
#define COMMENT_BYTES_MAX 65535
#define END64_BYTES 56
#define LOCATOR_BYTES 20
#define HEAD_BYTES 1024
#define TEXT_BYTES_LEAST 12 /* fewer letters may be the start of anything */

static uint64_t read_le(const unsigned char *bytes, unsigned count)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < count; i++) {
        value |= (uint64_t)bytes[i] << (8 * i);
    }
    return value;
}

bool uf__weights_is_placeholder(int stream, uf_weight_file *file)
{
    static const char pointer[] = "version https://git-lfs.github.com/spec/";
    char head[HEAD_BYTES + 1] = "";
    size_t length = file->file_bytes < HEAD_BYTES ? (size_t)file->file_bytes : HEAD_BYTES;
    if (length == 0) {
        uf__weights_say(file, UF_WEIGHT_CUT, "it is empty");
        return true;
    }
    if (!uf__weights_read(stream, 0, head, length)) {
        return false;
    }
    if (strncmp(head, pointer, sizeof pointer - 1) == 0) {
        const char *size = strstr(head, "\nsize ");
        file->expected_bytes = size != NULL ? strtoull(size + 6, NULL, 10) : 0;
        uf__weights_say(file, UF_WEIGHT_PLACEHOLDER,
                        "it is a pointer of Git LFS: fetch the file itself with 'git lfs pull'");
        return true;
    }
    size_t blank = strspn(head, " \t\r\n");
    if (head[blank] == '<') {
        uf__weights_say(file, UF_WEIGHT_PLACEHOLDER,
                        "it is a web page, such as one that asks for a login");
        return true;
    }
    if (length < TEXT_BYTES_LEAST) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        unsigned char letter = (unsigned char)head[i];
        if (!isprint(letter) && !isspace(letter)) {
            return false;
        }
    }
    uf__weights_say(file, UF_WEIGHT_PLACEHOLDER, "it is a text: '%.60s'", head + blank);
    for (char *at = file->text; at != NULL && *at != '\0'; at++) {
        *at = iscntrl((unsigned char)*at) ? ' ' : *at;
    }
    return true;
}

/* The directory lies directly in front of the end record, and begins with an entry. */
static void check_directory(int stream, uint64_t directory, uint64_t size, uint64_t end,
                            uf_weight_file *file)
{
    unsigned char entry[4];
    if (directory > end || size > end - directory) {
        uf__weights_say(file, UF_WEIGHT_DAMAGED,
                        "its archive's directory lies behind the file's end");
    } else if (size < 4 || !uf__weights_read(stream, directory, entry, sizeof entry) ||
               memcmp(entry, "PK\1\2", 4) != 0) {
        uf__weights_say(file, UF_WEIGHT_DAMAGED,
                        "its archive's directory is not where its end says");
    } else {
        file->expected_bytes = file->file_bytes;
    }
}

static void read_end(int stream, uint64_t end, const unsigned char *record, uf_weight_file *file)
{
    unsigned char locator[LOCATOR_BYTES], end64[END64_BYTES];
    uint64_t size = read_le(record + 12, 4), directory = read_le(record + 16, 4);
    if (end >= LOCATOR_BYTES &&
        uf__weights_read(stream, end - LOCATOR_BYTES, locator, sizeof locator) &&
        memcmp(locator, "PK\6\7", 4) == 0) {
        uint64_t at = read_le(locator + 8, 8);
        if (at > end || !uf__weights_read(stream, at, end64, sizeof end64) ||
            memcmp(end64, "PK\6\6", 4) != 0) {
            uf__weights_say(file, UF_WEIGHT_DAMAGED, "its archive's 64-bit end is not there");
            return;
        }
        size = read_le(end64 + 40, 8);
        directory = read_le(end64 + 48, 8);
        end = at;
    }
    check_directory(stream, directory, size, end, file);
}

static void check_archive(int stream, uf_weight_file *file)
{
    uint64_t most = END_BYTES + COMMENT_BYTES_MAX;
    size_t length = (size_t)(file->file_bytes < most ? file->file_bytes : most);
    uint64_t start = file->file_bytes - length;
    unsigned char *tail = malloc(length);
    if (tail == NULL || !uf__weights_read(stream, start, tail, length)) {
        uf__weights_say(file, UF_WEIGHT_UNCHECKED, "its end could not be read");
        free(tail);
        return;
    }
    bool is_found = false;
    for (size_t i = length < END_BYTES ? 0 : length - END_BYTES + 1; i > 0 && !is_found; i--) {
        const unsigned char *at = tail + i - 1;
        size_t behind = length - (i - 1) - END_BYTES;
        if (memcmp(at, "PK\5\6", 4) == 0 && read_le(at + 20, 2) <= behind) {
            is_found = true;
            read_end(stream, start + i - 1, at, file);
        }
    }
    if (!is_found) {
        uf__weights_say(file, UF_WEIGHT_CUT,
                        "its archive has no end: the file was cut, by how much cannot be told");
    }
    free(tail);
}

void uf__weights_check_pickle(int stream, uf_weight_file *file)
{
    unsigned char head[4] = {0};
    if (!uf__weights_read(stream, 0, head, sizeof head)) {
        uf__weights_say(file, UF_WEIGHT_CUT, "it has %" PRIu64 " bytes", file->file_bytes);
    } else if (memcmp(head, "PK\3\4", 4) == 0) {
        check_archive(stream, file);
    } else if (head[0] == 0x80) {
        uf__weights_say(file, UF_WEIGHT_UNCHECKED,
                        "a format before PyTorch 1.6, which does not tell its length");
    } else if (memcmp(head, "\0\0\0\0", 4) == 0) {
        uf__weights_say(file, UF_WEIGHT_UNFINISHED,
                        "it begins with zeros: room was made for it, and nothing written");
    } else {
        uf__weights_say(file, UF_WEIGHT_UNCHECKED, "neither an archive nor a pickle");
    }
}
