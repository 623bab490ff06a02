// SPDX-License-Identifier: MIT
// Searching sorted arrays of addresses with two looks at memory instead of twenty.
//
// Model: the addresses' span is cut into equal buckets, about one for every four elements; a table says which elements
// each bucket begins with. Where elements lie unevenly a search is a binary one within its bucket. Threads: one at a
// time while it is made, any number afterwards. Signals: not safe.
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct gp_buckets { // zero-initialized = none: searches are binary
    uint64_t base;
    unsigned shift;
    uint32_t count;  // of buckets
    uint32_t *first; // uint32_t[count + 1]
} gp_buckets_t;

// Sort as qsort() does, unless the array is in order, as most are that are read from files. Many elements are sorted by
// the digits of their addresses.
//   elements: begin with their address (uint64_t), or another number.
//   compare:  by that first, ascending, then by whatever else.
typedef int gp_compare_t(const void *left, const void *right);
void gp_sort(void *elements, size_t count, size_t stride, gp_compare_t *compare);

// Make the table for an array of elements that begin with their address (uint64_t), ascending.
// Without memory there is none.
void gp_buckets_make(gp_buckets_t *buckets, const void *elements, size_t count, size_t stride);
void gp_buckets_free(gp_buckets_t *buckets);

// The address of one element.
static inline uint64_t gp_buckets_key(const void *elements, size_t number, size_t stride)
{
    return *(const uint64_t *)(const void *)((const char *)elements + number * stride);
}

// The number of elements at `address` or lower. `elements`, `count`, `stride` as above.
static inline size_t gp_buckets_upto(const gp_buckets_t *buckets, const void *elements, size_t count, size_t stride,
                                     uint64_t address)
{
    size_t lo = 0, hi = count;
    if (buckets->count > 0) {
        if (address < buckets->base)
            return 0;
        uint64_t bucket = (address - buckets->base) >> buckets->shift;
        if (bucket >= buckets->count)
            return count;
        lo = buckets->first[bucket];
        hi = buckets->first[bucket + 1];
    }
    while (lo < hi) {
        size_t middle = lo + (hi - lo) / 2;
        if (gp_buckets_key(elements, middle, stride) <= address)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

// The same, with a look first at where the last search ended and a little further: for addresses in order.
//   last: what it returned; 0 at first.
static inline size_t gp_buckets_upto_near(const gp_buckets_t *buckets, const void *elements, size_t count,
                                          size_t stride, uint64_t address, size_t *last)
{
    size_t upto = *last;
    if (upto > 0 && gp_buckets_key(elements, upto - 1, stride) <= address) {
        for (int further = 0; further < 4; further++, upto++)
            if (upto == count || gp_buckets_key(elements, upto, stride) > address)
                return *last = upto;
    }
    return *last = gp_buckets_upto(buckets, elements, count, stride, address);
}
