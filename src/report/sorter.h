// SPDX-License-Identifier: MIT
// Sorts more records than memory should hold.
//
// Model: records are collected, and sorted and put by in a temporary file (see spill.h) whenever GP_SORTER_BYTES are
// together; at the end the sorted runs are merged. Few records stay in memory and need no file.
//
// Order of calls: init -> add... -> end -> each, any number of times -> free. Threads: one at a time.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { GP_SORTER_BYTES = 8 << 20 };

// As of qsort(); records that are equal come in the order in which they were added.
typedef int gp_sorter_compare_t(const void *left, const void *right);

typedef struct gp_sorter { // zero-initialized = none, may be freed
    size_t record_bytes;
    gp_sorter_compare_t *compare;
    uint8_t *records; // collected: of the last run
    size_t count, capacity;
    size_t run_count; // runs in the file, each of run_records
    size_t run_records;
    int fd;
} gp_sorter_t;

void gp_sorter_init(gp_sorter_t *sorter, size_t record_bytes, gp_sorter_compare_t *compare);

// Returns 0, -ENOMEM, or why the temporary file could not be written.
int gp_sorter_add(gp_sorter_t *sorter, const void *record);
int gp_sorter_end(gp_sorter_t *sorter);

// Hand out all records in order.
//   take: returns 0, or a negative value that ends it and is returned.
int gp_sorter_each(const gp_sorter_t *sorter, int (*take)(void *context, const void *record), void *context);

void gp_sorter_free(gp_sorter_t *sorter);
