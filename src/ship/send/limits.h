// SPDX-License-Identifier: MIT
// How much may be sent in a time, and how long to wait after a failure. Times are of CLOCK_MONOTONIC, ns.
#pragma once

#include <stdint.h>

uint64_t gp_now_ns(void);

typedef struct gp_limit { // at most `rate` units a second on average; rate 0 = any number
    uint64_t rate, free_ns;
} gp_limit_t;

// Take units. What was taken is paid for before the next.
void gp_limit_take(gp_limit_t *limit, uint64_t units, uint64_t now_ns);

typedef struct gp_backoff { // zero-initialized: nothing failed
    uint64_t pause_ns, until_ns;
} gp_backoff_t;

// A failure: wait twice as long as after the last one, from `first_ns` to 60 s.
void gp_backoff_more(gp_backoff_t *backoff, uint64_t first_ns, uint64_t now_ns);
