// SPDX-License-Identifier: MIT
// Known work: burn() uses that much CPU of the calling thread and says how much it really was.
#ifndef WORK_H
#define WORK_H

#include "../measured.h"

#include <stdint.h>
#include <time.h>

static inline uint64_t thread_cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t burn(uint64_t ns)
{
    uint64_t start = thread_cpu_ns(), now;
    do {
        for (volatile int i = 0; i < 2000; i++)
            ;
        now = thread_cpu_ns();
    } while (now - start < ns);
    return now - start;
}

// |a - b| <= share of b, or `slack_ns`, more on a busy machine
static inline int close_to(uint64_t a, uint64_t b, double share, uint64_t slack_ns)
{
    uint64_t apart = a > b ? a - b : b - a;
    return (double)apart <= share * (double)b || (double)apart <= measured_stretch() * (double)slack_ns;
}

// The bounds of a profile's claim: at least the time used while it ran, at most the time from before its start until
// after its stop, with greenprof's own work for the caller (more under a sanitizer).
typedef struct {
    uint64_t least_ns, most_ns;
} work_bounds_t;

// Within the bounds, or less than `share` of them or `slack_ns` outside.
static inline int work_within(uint64_t ns, work_bounds_t bounds, double share, uint64_t slack_ns)
{
    if (ns < bounds.least_ns)
        return close_to(ns, bounds.least_ns, share, slack_ns);
    return ns <= bounds.most_ns || close_to(ns, bounds.most_ns, share, slack_ns);
}

#endif
