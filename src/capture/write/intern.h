// SPDX-License-Identifier: MIT
// Small numbers for 128-bit keys, in order of first sight. Bounded: when the table is full it is emptied, and keys seen
// again get new numbers; numbers are never reused, and end at UINT32_MAX.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gp_intern {
    struct gp_intern_slot *slots;
    uint32_t mask, used, last;
    uint32_t limit; // slots at most, a power of two from 1024 on; 0 = GP_INTERN_SLOTS
    uint32_t anew;  // times that it was emptied
} gp_intern_t;

enum { GP_INTERN_SLOTS = 1 << 21, GP_INTERN_SLOT_BYTES = 24 };

// The number of a key, from 1. *is_new: it has just been given out. 0 when memory is short, or there are no more.
uint32_t gp_intern(gp_intern_t *table, uint64_t key0, uint64_t key1, bool *is_new);

// Take back the number that the latest call has just given out: what it stands for could not be written.
void gp_intern_undo(gp_intern_t *table, uint64_t key0, uint64_t key1);

// A key for arbitrary bytes: a 128-bit hash; two different contents share one with negligible probability.
void gp_intern_key(const void *bytes, size_t length, uint64_t key[2]);

// Empty it and start again at 1; the limit stays.
void gp_intern_reset(gp_intern_t *table);
