/* SPDX-License-Identifier: MIT
 *
 * The table of cards, and finding one by a name as people and drivers write it. Static data and
 * pure functions, no lock. */
#include "base/card.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/size.h"
#include "base/spelling.h"

#define KEY_CAPACITY 48
#define NEAREST_COUNT 3

/* Entries of one name stand together, the most common size first. */
static const uf_card cards[] = {
    {"GTX 1050", 2 * UF_GIB},
    {"GTX 1050", 3 * UF_GIB},
    {"GTX 1050 Ti", 4 * UF_GIB},
    {"GTX 1060", 6 * UF_GIB},
    {"GTX 1060", 3 * UF_GIB},
    {"GTX 1070", 8 * UF_GIB},
    {"GTX 1070 Ti", 8 * UF_GIB},
    {"GTX 1080", 8 * UF_GIB},
    {"GTX 1080 Ti", 11 * UF_GIB},
    {"GTX 1650", 4 * UF_GIB},
    {"GTX 1650 Super", 4 * UF_GIB},
    {"GTX 1650 Ti", 4 * UF_GIB},
    {"GTX 1660", 6 * UF_GIB},
    {"GTX 1660 Super", 6 * UF_GIB},
    {"GTX 1660 Ti", 6 * UF_GIB},
    {"Titan X", 12 * UF_GIB},
    {"Titan Xp", 12 * UF_GIB},
    {"Titan V", 12 * UF_GIB},
    {"Titan RTX", 24 * UF_GIB},
    {"RTX 2050", 4 * UF_GIB},
    {"RTX 2060", 6 * UF_GIB},
    {"RTX 2060", 12 * UF_GIB},
    {"RTX 2060 Super", 8 * UF_GIB},
    {"RTX 2070", 8 * UF_GIB},
    {"RTX 2070 Super", 8 * UF_GIB},
    {"RTX 2080", 8 * UF_GIB},
    {"RTX 2080 Super", 8 * UF_GIB},
    {"RTX 2080 Ti", 11 * UF_GIB},
    {"RTX 2080 Ti", 22 * UF_GIB},
    {"RTX 3050", 8 * UF_GIB},
    {"RTX 3050", 6 * UF_GIB},
    {"RTX 3050 Laptop", 4 * UF_GIB},
    {"RTX 3050 Laptop", 6 * UF_GIB},
    {"RTX 3050 Ti Laptop", 4 * UF_GIB},
    {"RTX 3060", 12 * UF_GIB},
    {"RTX 3060", 8 * UF_GIB},
    {"RTX 3060 Laptop", 6 * UF_GIB},
    {"RTX 3060 Ti", 8 * UF_GIB},
    {"RTX 3070", 8 * UF_GIB},
    {"RTX 3070 Laptop", 8 * UF_GIB},
    {"RTX 3070 Ti", 8 * UF_GIB},
    {"RTX 3070 Ti Laptop", 8 * UF_GIB},
    {"RTX 3080", 10 * UF_GIB},
    {"RTX 3080", 12 * UF_GIB},
    {"RTX 3080 Laptop", 8 * UF_GIB},
    {"RTX 3080 Laptop", 16 * UF_GIB},
    {"RTX 3080 Ti", 12 * UF_GIB},
    {"RTX 3080 Ti Laptop", 16 * UF_GIB},
    {"RTX 3090", 24 * UF_GIB},
    {"RTX 3090 Ti", 24 * UF_GIB},
    {"RTX 4050 Laptop", 6 * UF_GIB},
    {"RTX 4060", 8 * UF_GIB},
    {"RTX 4060 Laptop", 8 * UF_GIB},
    {"RTX 4060 Ti", 8 * UF_GIB},
    {"RTX 4060 Ti", 16 * UF_GIB},
    {"RTX 4070", 12 * UF_GIB},
    {"RTX 4070 Laptop", 8 * UF_GIB},
    {"RTX 4070 Super", 12 * UF_GIB},
    {"RTX 4070 Ti", 12 * UF_GIB},
    {"RTX 4070 Ti Super", 16 * UF_GIB},
    {"RTX 4080", 16 * UF_GIB},
    {"RTX 4080 Laptop", 12 * UF_GIB},
    {"RTX 4080 Super", 16 * UF_GIB},
    {"RTX 4090", 24 * UF_GIB},
    {"RTX 4090", 48 * UF_GIB},
    {"RTX 4090 D", 24 * UF_GIB},
    {"RTX 4090 D", 48 * UF_GIB},
    {"RTX 4090 Laptop", 16 * UF_GIB},
    {"RTX 5050", 8 * UF_GIB},
    {"RTX 5050 Laptop", 8 * UF_GIB},
    {"RTX 5060", 8 * UF_GIB},
    {"RTX 5060 Laptop", 8 * UF_GIB},
    {"RTX 5060 Ti", 16 * UF_GIB},
    {"RTX 5060 Ti", 8 * UF_GIB},
    {"RTX 5070", 12 * UF_GIB},
    {"RTX 5070 Laptop", 8 * UF_GIB},
    {"RTX 5070 Ti", 16 * UF_GIB},
    {"RTX 5070 Ti Laptop", 12 * UF_GIB},
    {"RTX 5080", 16 * UF_GIB},
    {"RTX 5080 Laptop", 16 * UF_GIB},
    {"RTX 5090", 32 * UF_GIB},
    {"RTX 5090 D", 32 * UF_GIB},
    {"RTX 5090 Laptop", 24 * UF_GIB},
    {"Quadro RTX 4000", 8 * UF_GIB},
    {"Quadro RTX 5000", 16 * UF_GIB},
    {"Quadro RTX 6000", 24 * UF_GIB},
    {"Quadro RTX 8000", 48 * UF_GIB},
    {"RTX A2000", 12 * UF_GIB},
    {"RTX A2000", 6 * UF_GIB},
    {"RTX A4000", 16 * UF_GIB},
    {"RTX A4500", 20 * UF_GIB},
    {"RTX A5000", 24 * UF_GIB},
    {"RTX A5500", 24 * UF_GIB},
    {"RTX A6000", 48 * UF_GIB},
    {"RTX 2000 Ada", 16 * UF_GIB},
    {"RTX 4000 Ada", 20 * UF_GIB},
    {"RTX 4500 Ada", 24 * UF_GIB},
    {"RTX 5000 Ada", 32 * UF_GIB},
    {"RTX 6000 Ada", 48 * UF_GIB},
    {"RTX PRO 4000 Blackwell", 24 * UF_GIB},
    {"RTX PRO 4500 Blackwell", 32 * UF_GIB},
    {"RTX PRO 5000 Blackwell", 48 * UF_GIB},
    {"RTX PRO 6000 Blackwell", 96 * UF_GIB},
    {"P4", 8 * UF_GIB},
    {"P40", 24 * UF_GIB},
    {"P100", 16 * UF_GIB},
    {"P100", 12 * UF_GIB},
    {"V100", 16 * UF_GIB},
    {"V100", 32 * UF_GIB},
    {"T4", 16 * UF_GIB},
    {"A2", 16 * UF_GIB},
    {"A10", 24 * UF_GIB},
    {"A10G", 24 * UF_GIB},
    {"A16", 16 * UF_GIB},
    {"A30", 24 * UF_GIB},
    {"A40", 48 * UF_GIB},
    {"A100", 40 * UF_GIB},
    {"A100", 80 * UF_GIB},
    {"A800", 80 * UF_GIB},
    {"A800", 40 * UF_GIB},
    {"L4", 24 * UF_GIB},
    {"L40", 48 * UF_GIB},
    {"L40S", 48 * UF_GIB},
    {"H20", 96 * UF_GIB},
    {"H20", 141 * UF_GIB},
    {"H100", 80 * UF_GIB},
    {"H100 NVL", 94 * UF_GIB},
    {"H800", 80 * UF_GIB},
    {"H200", 141 * UF_GIB},
    {"GH200", 96 * UF_GIB},
    {"GH200", 144 * UF_GIB},
    {"B200", 180 * UF_GIB},
};

#define CARD_COUNT (sizeof cards / sizeof cards[0])

/* Words a name may carry that do not tell two cards apart. */
static const char *const noise_words[] = {
    "nvidia",      "geforce", "tesla", "graphics", "card",   "gpu",       "generation",
    "edition",     "pcie",    "pci",   "sxm",      "sxm2",   "sxm3",      "sxm4",
    "sxm5",        "sxm6",    "hbm2",  "hbm2e",    "hbm3",   "hbm3e",     "gddr5",
    "gddr6",       "gddr6x",  "gddr7", "with",     "max",    "q",         "design",
    "workstation", "server",  "vram",  "desktop",  "memory", "blackwell",
};

typedef struct card_query {
    char key[KEY_CAPACITY]; /* letters and digits, lower case, without noise */
    uint64_t memory_bytes;  /* 0 if the name gives none */
} card_query;

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static char fold(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_alphanumeric(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z');
}

static bool is_noise(const char *word)
{
    for (size_t i = 0; i < sizeof noise_words / sizeof noise_words[0]; i++) {
        if (strcmp(word, noise_words[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_memory_unit(const char *word)
{
    return strcmp(word, "g") == 0 || strcmp(word, "gb") == 0 || strcmp(word, "gib") == 0;
}

/* "12gb" -> 12; 0 if it is not digits followed by a unit. *is_number: digits alone. */
static uint64_t read_memory(const char *word, bool *is_number)
{
    uint64_t gib = 0;
    size_t i = 0;
    for (; is_digit(word[i]) && i < 4; i++) {
        gib = gib * 10 + (uint64_t)(word[i] - '0');
    }
    *is_number = i > 0 && word[i] == '\0';
    return i > 0 && is_memory_unit(word + i) ? gib : 0;
}

static void append_word(card_query *query, const char *word)
{
    size_t length = strlen(query->key);
    snprintf(query->key + length, sizeof query->key - length, "%s", word);
}

/* Reads the next run of letters and digits, lower case and cut to capacity; false at the end. */
static bool next_word(const char **at, char *word, size_t capacity)
{
    while (**at != '\0' && !is_alphanumeric(fold(**at))) {
        ++*at;
    }
    size_t length = 0;
    for (; is_alphanumeric(fold(**at)); ++*at) {
        if (length + 1 < capacity) {
            word[length++] = fold(**at);
        }
    }
    word[length] = '\0';
    return length > 0;
}

static void read_query(const char *name, card_query *query)
{
    char word[KEY_CAPACITY];
    memset(query, 0, sizeof *query);
    while (next_word(&name, word, sizeof word)) {
        bool is_number;
        uint64_t gib = read_memory(word, &is_number);
        const char *ahead = name;
        char unit[KEY_CAPACITY];
        if (is_number && next_word(&ahead, unit, sizeof unit) && is_memory_unit(unit)) {
            strncat(word, unit, sizeof word - strlen(word) - 1);
            gib = read_memory(word, &is_number);
            name = ahead;
        }
        if (gib != 0) {
            query->memory_bytes = gib * UF_GIB;
        } else if (!is_noise(word)) {
            append_word(query, strcmp(word, "mobile") == 0 ? "laptop" : word);
        }
    }
}

/* True if `key` names the card: exactly, or without its leading rtx, gtx or quadro. */
static bool is_named(const char *key, const char *card_key)
{
    static const char *const prefixes[] = {"", "rtx", "gtx", "quadro"};
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        size_t length = strlen(prefixes[i]);
        if (strncmp(card_key, prefixes[i], length) == 0 && strcmp(card_key + length, key) == 0) {
            return true;
        }
    }
    return false;
}

static uf_status report_size(const card_query *query, size_t first, uf_error *error)
{
    char sizes[80] = "";
    for (size_t i = first; i < CARD_COUNT && strcmp(cards[i].name, cards[first].name) == 0; i++) {
        size_t length = strlen(sizes);
        snprintf(sizes + length, sizeof sizes - length, "%s%u GiB", i == first ? "" : " and ",
                 (unsigned)(cards[i].memory_bytes / UF_GIB));
    }
    return uf__error_set(error, UF_ERROR_NOT_FOUND,
                         "the %s is known with %s, not with %u GiB; give a size such as %uGiB "
                         "instead of the card's name",
                         cards[first].name, sizes, (unsigned)(query->memory_bytes / UF_GIB),
                         (unsigned)(query->memory_bytes / UF_GIB));
}

/* Names the cards whose spelling is nearest, each name once. */
static uf_status report_unknown(const char *name, const card_query *query, uf_error *error)
{
    size_t best[NEAREST_COUNT];
    size_t distances[NEAREST_COUNT];
    size_t best_count = 0;
    for (size_t i = 0; i < CARD_COUNT; i++) {
        if (i > 0 && strcmp(cards[i].name, cards[i - 1].name) == 0) {
            continue;
        }
        card_query card;
        read_query(cards[i].name, &card);
        size_t distance = uf__spelling_distance(query->key, strlen(query->key), card.key);
        size_t at = best_count;
        while (at > 0 && distances[at - 1] > distance) {
            at--;
        }
        if (at == NEAREST_COUNT) {
            continue;
        }
        best_count += best_count < NEAREST_COUNT ? 1 : 0;
        for (size_t j = best_count - 1; j > at; j--) {
            best[j] = best[j - 1];
            distances[j] = distances[j - 1];
        }
        best[at] = i;
        distances[at] = distance;
    }
    return uf__error_set(error, UF_ERROR_NOT_FOUND,
                         "no card is known as '%.60s'; the nearest names are %s, %s and %s; a size "
                         "such as 12GiB always works",
                         name, cards[best[0]].name, cards[best[1]].name, cards[best[2]].name);
}

uf_status uf__card_find(const char *name, const uf_card **card, uf_error *error)
{
    card_query query = {{0}, 0};
    if (name != NULL) {
        read_query(name, &query);
    }
    if (query.key[0] == '\0') {
        return uf__error_set(error, UF_ERROR_NOT_FOUND,
                             "the card's name is empty; give one such as \"RTX 3060\" or a size "
                             "such as 12GiB");
    }
    size_t first = CARD_COUNT;
    for (size_t i = 0; i < CARD_COUNT; i++) {
        card_query candidate;
        read_query(cards[i].name, &candidate);
        if (!is_named(query.key, candidate.key)) {
            continue;
        }
        if (query.memory_bytes == 0 || query.memory_bytes == cards[i].memory_bytes) {
            *card = &cards[i];
            return UF_OK;
        }
        if (first == CARD_COUNT) {
            first = i;
        }
    }
    if (first != CARD_COUNT) {
        return report_size(&query, first, error);
    }
    return report_unknown(name, &query, error);
}

size_t uf__card_count(void)
{
    return CARD_COUNT;
}

const uf_card *uf__card_at(size_t index)
{
    return &cards[index];
}
