// SPDX-License-Identifier: MIT
// Known truth: each work_* function burns CPU and books exactly what it burnt; the program prints the books at its end.
//
//   EXPECT work_alpha 1.234567          CPU seconds booked by this function
//   COROUTINE entry 1.234567 42         CPU seconds of a coroutine, and how often it was switched to
//   TOTAL 3.456789                      CPU seconds of all of the program's own threads
//
// Times are read from the thread CPU clock, so neither preemption nor a busy machine changes the truth.
#ifndef TRUTH_H
#define TRUTH_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(__clang__)
#define TRUTH_OUT_OF_LINE __attribute__((noinline))
#else
#define TRUTH_OUT_OF_LINE __attribute__((noinline, noclone))
#endif

static inline uint64_t truth_clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t truth_cpu_ns(void)
{
    return truth_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

// About 2 us.
static inline void truth_spin(void)
{
    volatile double x = 0;
    for (int i = 0; i < 1500; i++)
        x = x + i * 0.5;
}

static inline void truth_book(uint64_t *book, uint64_t ns)
{
    __atomic_fetch_add(book, ns, __ATOMIC_RELAXED);
}

// Burn until the thread CPU clock shows `end`, and book what that took.
static inline __attribute__((always_inline)) void truth_burn_until(uint64_t start, uint64_t end, uint64_t *book)
{
    uint64_t now;
    do {
        truth_spin();
        now = truth_cpu_ns();
    } while (now < end);
    truth_book(book, now - start);
}

// work_NAME(ns) burns that much; NAME_ns is what it really burnt.
#define WORK(name)                                                                                                     \
    static uint64_t name##_ns;                                                                                         \
    static TRUTH_OUT_OF_LINE void work_##name(uint64_t ns)                                                             \
    {                                                                                                                  \
        uint64_t start = truth_cpu_ns();                                                                               \
        truth_burn_until(start, start + ns, &name##_ns);                                                               \
        __asm__ volatile(""); /* no tail call: the caller stays on the stack */                                        \
    }

// A system call past all that greenprof stands in for: libc's syscall() too. Returns a negative errno value.
static inline long truth_call_kernel(long number, long a, long b, long c, long d)
{
#if defined(__x86_64__)
    register long r10 __asm__("r10") = d;
    __asm__ volatile("syscall" : "+a"(number) : "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
    return number;
#else
    long result = syscall(number, a, b, c, d);
    return result < 0 ? -errno : result;
#endif
}

static inline double truth_seconds(uint64_t ns)
{
    return (double)ns / 1e9;
}

#define EXPECT(name) printf("EXPECT work_" #name " %.6f\n", truth_seconds(name##_ns))

// A number of a file of /proc, behind `key` at the beginning of a line; with an empty key how many lines there are.
static inline long truth_from_proc(const char *path, const char *key)
{
    char line[512];
    long found = 0, lines = 0;
    FILE *file = fopen(path, "re");
    size_t length = strlen(key);
    for (; file != NULL && fgets(line, sizeof(line), file) != NULL; lines++)
        if (length > 0 && strncmp(line, key, length) == 0)
            found = strtol(line + length, NULL, 10);
    if (file != NULL)
        fclose(file);
    return length > 0 ? found : lines;
}

// CPU time of the program's threads: each brackets itself with these two.
static uint64_t truth_total_ns;
static __thread uint64_t truth_thread_start_ns;

static inline void truth_thread_begin(void)
{
    truth_thread_start_ns = truth_cpu_ns();
}

static inline void truth_thread_end(void)
{
    uint64_t now = truth_cpu_ns();
    truth_book(&truth_total_ns, now - truth_thread_start_ns);
    truth_thread_start_ns = now;
}

// The calling thread is the last to be counted.
static inline void truth_print_total(void)
{
    truth_thread_end();
    printf("TOTAL %.6f\n", truth_seconds(truth_total_ns));
    fflush(stdout);
}

#endif
