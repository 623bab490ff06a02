// SPDX-License-Identifier: MIT
// Known work: burn() uses that much CPU of the calling thread and says how much it really was.
#ifndef WORK_H
#define WORK_H

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

// |a - b| <= share of b, or `slack_ns`
static inline int close_to(uint64_t a, uint64_t b, double share, uint64_t slack_ns)
{
    uint64_t apart = a > b ? a - b : b - a;
    return (double)apart <= share * (double)b || apart <= slack_ns;
}

#endif
