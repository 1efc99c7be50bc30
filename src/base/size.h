/* SPDX-License-Identifier: MIT
 *
 * Sizes in bytes: reading and writing them as text, and arithmetic that cannot wrap.
 * Everywhere a unit is binary: people say "24 GB card" and mean 24 * 2^30 bytes.
 * Pure functions, independent of the locale; no lock. */
#ifndef UF_BASE_SIZE_H
#define UF_BASE_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <unfrag/status.h>

#define UF_KIB UINT64_C(1024)
#define UF_MIB (UF_KIB * UF_KIB)
#define UF_GIB (UF_MIB * UF_KIB)
#define UF_TIB (UF_GIB * UF_KIB)

/* Room for every text uf__size_format writes. */
#define UF_SIZE_TEXT_CAPACITY 24

/* Reads a size such as "24GiB", "1.5 gib", "512M", "20KiB", "4096B" or "4096".
 * A unit is one of B, K, M, G, T, P (in either case), the last five alone or followed by B or iB,
 * and is binary in each spelling; without one the number is bytes. Blanks around number and unit
 * are allowed. A fraction needs a unit above B and is rounded to the nearest byte; at most 18
 * digits of it count.
 * Returns UF_OK, or UF_ERROR_INVALID_ARGUMENT for NULL, empty, negative, not a number, unknown unit
 * and 2^64 bytes or more; *bytes is untouched then. Zero is accepted. */
uf_status uf__size_parse(const char *text, uint64_t *bytes, uf_error *error) UF_MUST_USE;

/* The same, and also a percentage of whole_bytes from 0% to 100%, such as "90%" (rounded down). */
uf_status uf__size_parse_of(const char *text, uint64_t whole_bytes, uint64_t *bytes,
                            uf_error *error) UF_MUST_USE;

/* Writes "512 B", "1.50 KiB", "512.00 MiB", "23.42 GiB" ... and returns buffer. The text is cut if
 * capacity is below UF_SIZE_TEXT_CAPACITY; capacity 0 writes nothing. */
const char *uf__size_format(char *buffer, size_t capacity, uint64_t bytes);

/* a + b; false, and *sum untouched, if that is 2^64 or more. */
static inline bool uf__add_checked(uint64_t a, uint64_t b, uint64_t *sum)
{
    if (b > UINT64_MAX - a) {
        return false;
    }
    *sum = a + b;
    return true;
}

/* a * b; false, and *product untouched, if that is 2^64 or more. */
static inline bool uf__multiply_checked(uint64_t a, uint64_t b, uint64_t *product)
{
    uint64_t result;
    if (__builtin_mul_overflow(a, b, &result)) {
        return false;
    }
    *product = result;
    return true;
}

/* a - b; false, and *difference untouched, if b is larger. */
static inline bool uf__subtract_checked(uint64_t a, uint64_t b, uint64_t *difference)
{
    if (b > a) {
        return false;
    }
    *difference = a - b;
    return true;
}

/* value rounded up to a multiple of granule; false, and *rounded untouched, if granule is 0 or the
 * result is 2^64 or more. */
static inline bool uf__round_up_checked(uint64_t value, uint64_t granule, uint64_t *rounded)
{
    if (granule == 0) {
        return false;
    }
    uint64_t remainder = value % granule;
    if (remainder == 0) {
        *rounded = value;
        return true;
    }
    return uf__add_checked(value, granule - remainder, rounded);
}

/* value rounded up to a multiple of granule, a power of two, without a division. The caller knows
 * that the result is below 2^64; otherwise it wraps. */
static inline uint64_t uf__round_up_power2(uint64_t value, uint64_t granule)
{
    return (value + (granule - 1)) & ~(granule - 1);
}

/* value rounded down to a multiple of granule, a power of two. */
static inline uint64_t uf__round_down_power2(uint64_t value, uint64_t granule)
{
    return value & ~(granule - 1);
}

static inline bool uf__is_power2(uint64_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

/* Index of the highest set bit; value is not 0. */
static inline unsigned uf__floor_log2(uint64_t value)
{
    return 63u - (unsigned)__builtin_clzll(value);
}

#endif
