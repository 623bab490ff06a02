// SPDX-License-Identifier: MIT
#include "base/buckets.h"

#include <stdlib.h>

#include "base/memory.h"

enum { ELEMENTS_IN_BUCKET = 4, ELEMENTS_MIN = 64 };

void gp_sort(void *elements, size_t count, size_t stride, int (*compare)(const void *left, const void *right))
{
    const char *first = elements;
    for (size_t i = 1; i < count; i++) {
        if (compare(first + (i - 1) * stride, first + i * stride) > 0) {
            qsort(elements, count, stride, compare);
            return;
        }
    }
}

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
