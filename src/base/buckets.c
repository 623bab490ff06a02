// SPDX-License-Identifier: MIT
#include "base/buckets.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { ELEMENTS_IN_BUCKET = 4, ELEMENTS_MIN = 64 };

// Addresses, to sort by; for fewer elements than MANY qsort() is faster.
enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS, MANY = 512 };

// --- sorting

static bool buckets_is_sorted(const char *elements, size_t count, size_t stride, gp_compare_t *compare)
{
    for (size_t i = 1; i < count; i++)
        if (compare(elements + (i - 1) * stride, elements + i * stride) > 0)
            return false;
    return true;
}

// Sort by one digit; equal ones stay in order.
static void buckets_sort_by_digit(uint64_t *to, const uint64_t *from, size_t count, unsigned shift)
{
    size_t starts[DIGITS] = {0}, next = 0;
    for (size_t i = 0; i < count; i++)
        starts[from[i] >> shift & (DIGITS - 1)]++;
    for (size_t digit = 0; digit < DIGITS; digit++) {
        size_t of_digit = starts[digit];
        starts[digit] = next;
        next += of_digit;
    }
    for (size_t i = 0; i < count; i++)
        to[starts[from[i] >> shift & (DIGITS - 1)]++] = from[i];
}

// Sort by the upper half, which is at most `highest`. Returns which of both arrays has them in order.
static const uint64_t *buckets_sort_upper(uint64_t *items, uint64_t *other, size_t count, uint64_t highest)
{
    for (unsigned bit = 0; bit < 32 && highest >> bit > 0; bit += DIGIT_BITS) {
        buckets_sort_by_digit(other, items, count, 32 + bit);
        uint64_t *sorted = other;
        other = items;
        items = sorted;
    }
    return items;
}

static void buckets_sort_equal(char *elements, size_t count, size_t stride, gp_compare_t *compare)
{
    for (size_t first = 0, end; first < count; first = end) {
        uint64_t address = gp_buckets_key(elements, first, stride);
        for (end = first + 1; end < count && gp_buckets_key(elements, end, stride) == address; end++)
            ;
        if (end - first > 1)
            qsort(elements + first * stride, end - first, stride, compare);
    }
}

// Put the elements in the order of their addresses; `places` has, of each, how far it is above the lowest one, and its
// number in the lower half. Returns false where there is no memory.
static bool buckets_sort_places(char *elements, size_t count, size_t stride, uint64_t *places, uint64_t highest)
{
    char *before = malloc(count * stride);
    if (before == NULL)
        return false;
    memcpy(before, elements, count * stride);
    const uint64_t *sorted = buckets_sort_upper(places, places + count, count, highest);
    for (size_t i = 0; i < count; i++)
        memcpy(elements + i * stride, before + (uint32_t)sorted[i] * stride, stride);
    free(before);
    return true;
}

// Returns false where it cannot be done so.
static bool buckets_sort_by_address(char *elements, size_t count, size_t stride)
{
    uint64_t lowest = UINT64_MAX, highest = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t address = gp_buckets_key(elements, i, stride);
        lowest = address < lowest ? address : lowest;
        highest = address > highest ? address : highest;
    }
    if (count > UINT32_MAX || highest - lowest > UINT32_MAX)
        return false;
    uint64_t *places = malloc(2 * count * sizeof(*places));
    if (places == NULL)
        return false;
    for (size_t i = 0; i < count; i++)
        places[i] = (gp_buckets_key(elements, i, stride) - lowest) << 32 | i;
    bool done = buckets_sort_places(elements, count, stride, places, highest - lowest);
    free(places);
    return done;
}

void gp_sort(void *elements, size_t count, size_t stride, gp_compare_t *compare)
{
    if (buckets_is_sorted(elements, count, stride, compare))
        return;
    if (count >= MANY && buckets_sort_by_address(elements, count, stride))
        buckets_sort_equal(elements, count, stride, compare);
    else
        qsort(elements, count, stride, compare);
}

// --- searching

void gp_buckets_make(gp_buckets_t *buckets, const void *elements, size_t count, size_t stride)
{
    *buckets = (gp_buckets_t){0};
    if (count < ELEMENTS_MIN || count >= UINT32_MAX)
        return;
    buckets->base = gp_buckets_key(elements, 0, stride);
    uint64_t span = gp_buckets_key(elements, count - 1, stride) - buckets->base;
    while (span >> buckets->shift >= count / ELEMENTS_IN_BUCKET)
        buckets->shift++;
    buckets->count = (uint32_t)(span >> buckets->shift) + 1;
    buckets->first = gp_memory_had(malloc(((size_t)buckets->count + 1) * sizeof(*buckets->first)));
    if (buckets->first == NULL) {
        *buckets = (gp_buckets_t){0};
        return;
    }
    uint32_t bucket = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t of = (gp_buckets_key(elements, i, stride) - buckets->base) >> buckets->shift;
        while (bucket <= of)
            buckets->first[bucket++] = (uint32_t)i;
    }
    while (bucket <= buckets->count)
        buckets->first[bucket++] = (uint32_t)count;
}

void gp_buckets_free(gp_buckets_t *buckets)
{
    free(buckets->first);
    *buckets = (gp_buckets_t){0};
}
