/* SPDX-License-Identifier: MIT
 *
 * Runs a fuzz target as a plain test: every file of the folders given is played as it is, cut
 * short at 64 places, and with single bits flipped. Deterministic; knows nothing of the target. */
#include <dirent.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CUT_COUNT 64
#define FLIP_COUNT 192
#define MAX_INPUT_BYTES (1 << 24)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

static uint64_t play_count;

/* The target gets a copy of exactly its size, so that a sanitizer sees reads beyond the end. */
static void play(const uint8_t *data, size_t size_bytes)
{
    uint8_t *copy = malloc(size_bytes > 0 ? size_bytes : 1);
    if (copy == NULL) {
        fprintf(stderr, "no host memory for %zu bytes\n", size_bytes);
        exit(1);
    }
    if (size_bytes > 0) {
        memcpy(copy, data, size_bytes);
    }
    (void)LLVMFuzzerTestOneInput(copy, size_bytes);
    free(copy);
    play_count += 1;
}

/* splitmix64: the same flips on every machine. */
static uint64_t next_random(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = *state;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static void play_variants(uint8_t *data, size_t size_bytes)
{
    play(data, size_bytes);
    if (size_bytes > (1 << 18)) {
        return;
    }
    for (size_t i = 0; i < CUT_COUNT; i++) {
        play(data, size_bytes * i / CUT_COUNT);
    }
    uint64_t state = size_bytes;
    for (size_t i = 0; i < FLIP_COUNT && size_bytes > 0; i++) {
        size_t at = (size_t)(next_random(&state) % size_bytes);
        uint8_t bit = (uint8_t)(1u << (next_random(&state) % 8));
        data[at] ^= bit;
        play(data, size_bytes);
        data[at] ^= bit;
    }
}

static bool play_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        return false;
    }
    uint8_t *data = malloc(MAX_INPUT_BYTES);
    size_t size_bytes = data != NULL ? fread(data, 1, MAX_INPUT_BYTES, file) : 0;
    bool is_read = data != NULL && ferror(file) == 0;
    fclose(file);
    if (is_read) {
        play_variants(data, size_bytes);
    } else {
        fprintf(stderr, "%s: cannot be read\n", path);
    }
    free(data);
    return is_read;
}

static bool play_folder(const char *folder)
{
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, NULL, alphasort);
    if (count < 0) {
        perror(folder);
        return false;
    }
    bool is_good = true;
    uint64_t file_count = 0;
    for (int i = 0; i < count; i++) {
        char path[4096];
        struct stat status;
        int length = snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (length > 0 && (size_t)length < sizeof path && stat(path, &status) == 0 &&
            S_ISREG(status.st_mode)) {
            is_good = play_file(path) && is_good;
            file_count += 1;
        }
        free(entries[i]);
    }
    free(entries);
    printf("%s: %" PRIu64 " files\n", folder, file_count);
    return is_good && file_count > 0;
}

int main(int argc, char **argv)
{
    bool is_good = argc > 1;
    for (int i = 1; i < argc; i++) {
        is_good = play_folder(argv[i]) && is_good;
    }
    printf("%" PRIu64 " inputs played\n", play_count);
    return is_good ? 0 : 1;
}
