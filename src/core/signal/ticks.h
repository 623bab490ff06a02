// SPDX-License-Identifier: MIT
// The switch clock: a time stamp that costs ~10 ns, and its calibration to nanoseconds.
//
// Model: gp_ticks() is the time-stamp counter where it is invariant, else CLOCK_MONOTONIC in nanoseconds. Ticks of all
// threads are comparable. gp_ticks_init() must have returned before ticks are converted.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/arch.h"

typedef struct gp_ticks_scale {
    uint64_t mult; // ns = ticks * mult >> 32
    bool counter;  // the time-stamp counter is used
} gp_ticks_scale_t;

extern gp_ticks_scale_t gp_ticks_scale __attribute__((visibility("hidden")));

// A clock, read by the kernel: a sanitizer's runtime may stand before clock_gettime(), and a signal handler have
// interrupted it. Returns 0 where there is no such clock. Signals: safe.
static inline uint64_t gp_clock_kernel_ns(clockid_t clock)
{
    struct timespec now;
    if (syscall(SYS_clock_gettime, clock, &now) != 0)
        return 0;
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// The same, and CLOCK_MONOTONIC without a system call. Signals: safe for the CPU clocks.
static inline uint64_t gp_clock_ns(clockid_t clock)
{
    struct timespec now;
    if (clock != CLOCK_MONOTONIC)
        return gp_clock_kernel_ns(clock);
    if (clock_gettime(clock, &now) != 0)
        return 0;
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// The CPU clock of a thread of this process. Source: the kernel's MAKE_THREAD_CPUCLOCK(tid, CPUCLOCK_SCHED), as glibc's
// pthread_getcpuclockid() builds it.
static inline clockid_t gp_thread_clock(int tid)
{
    return (clockid_t)(~(unsigned)tid << 3 | 6u);
}

// The processor's counter, where gp_ticks_scale.counter says that it is used. Signals: safe. Cost: 6 to 17 ns.
static inline uint64_t gp_ticks_counter(void)
{
    return gp_arch_counter();
}

// Signals: safe. Cost: the counter's.
static inline uint64_t gp_ticks(void)
{
    if (__builtin_expect(gp_ticks_scale.counter, 1))
        return gp_ticks_counter();
    return gp_clock_ns(CLOCK_MONOTONIC);
}

static inline uint64_t gp_ticks_to_ns(uint64_t ticks)
{
    return (uint64_t)(((unsigned __int128)ticks * gp_ticks_scale.mult) >> 32);
}

// Ticks in `ns` nanoseconds.
static inline uint64_t gp_ticks_from_ns(uint64_t ns)
{
    return (uint64_t)(((unsigned __int128)ns << 32) / (gp_ticks_scale.mult ? gp_ticks_scale.mult : 1));
}

// Note the first of the two points that calibration needs. Call it as early as possible. Cost: ~100 ns.
void gp_ticks_begin(void);

// Calibrate. Idempotent; spins until 2 ms have passed since gp_ticks_begin(). Signals: not safe.
void gp_ticks_init(void);

// Frequency of gp_ticks(), Hz.
uint64_t gp_ticks_hz(void);
