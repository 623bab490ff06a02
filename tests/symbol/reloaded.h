// SPDX-License-Identifier: MIT
// The work of the program and its plugins: spin for a known time.
#ifndef RELOADED_H
#define RELOADED_H

#include <time.h>

static inline double cpu_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

#endif
