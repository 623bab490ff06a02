// SPDX-License-Identifier: MIT
// Many short durations of which some were interrupted by other programs: those are left out.
#pragma once

#include <stdint.h>

enum { DURATIONS_KEPT = 1 << 15 };

typedef struct durations {
    uint64_t count;              // ever added
    uint32_t ns[DURATIONS_KEPT]; // the last ones
} durations_t;

static inline void durations_add(durations_t *durations, uint64_t ns)
{
    durations->ns[durations->count++ % DURATIONS_KEPT] = ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
}

// Take the mean of those that lie within 100 us of the median, and its standard error; 0 and 0 of none. Empties it.
void durations_take_mean(durations_t *durations, double *mean, double *error);
