// SPDX-License-Identifier: MIT
// Known times: functions that burn CPU time, sleep in the kernel, and park on a coroutine while another one burns.
// Prints what the thread's CPU clock and the monotonic clock said of each ("NAME CPU_NS WAIT_NS").
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <ucontext.h>

#include <greenprof/prof.h>

#define PLAIN __attribute__((no_instrument_function))

static ucontext_t loop, first, second;
static char stacks[2][65536];

PLAIN static uint64_t read_clock(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

PLAIN static void spin(uint64_t ns)
{
    uint64_t end = read_clock(CLOCK_THREAD_CPUTIME_ID) + ns;
    while (read_clock(CLOCK_THREAD_CPUTIME_ID) < end)
        ;
}

typedef struct span {
    uint64_t cpu, wall;
} span_t;

static span_t spun, slept, parked, outer_span;

PLAIN static span_t begin(void)
{
    return (span_t){read_clock(CLOCK_THREAD_CPUTIME_ID), read_clock(CLOCK_MONOTONIC)};
}

PLAIN static void end(span_t *sum, span_t start)
{
    sum->cpu += read_clock(CLOCK_THREAD_CPUTIME_ID) - start.cpu;
    sum->wall += read_clock(CLOCK_MONOTONIC) - start.wall;
}

__attribute__((noinline)) void spins(void)
{
    span_t start = begin();
    spin(2000000);
    end(&spun, start);
}

__attribute__((noinline)) void sleeps(void)
{
    span_t start = begin();
    struct timespec time = {.tv_nsec = 5000000};
    nanosleep(&time, NULL);
    end(&slept, start);
}

__attribute__((noinline)) void parks(void)
{
    uint64_t start = read_clock(CLOCK_MONOTONIC);
    swapcontext(&first, &loop);
    parked.wall += read_clock(CLOCK_MONOTONIC) - start;
}

__attribute__((noinline)) void outer(int level)
{
    uint64_t start = read_clock(CLOCK_MONOTONIC);
    if (level > 0) {
        outer(level - 1);
        return;
    }
    for (int i = 0; i < 20; i++) {
        spins();
        sleeps();
        parks();
    }
    outer_span.wall += read_clock(CLOCK_MONOTONIC) - start;
}

static int rounds_left = 20;

PLAIN static void run_first(void)
{
    outer(3);
    rounds_left = -1;
}

PLAIN static void run_second(void)
{
    for (;;) {
        spin(3000000);
        swapcontext(&second, &loop);
    }
}

PLAIN static void make(ucontext_t *context, char *stack, void (*run)(void))
{
    getcontext(context);
    context->uc_stack.ss_sp = stack;
    context->uc_stack.ss_size = sizeof(stacks[0]);
    context->uc_link = &loop;
    makecontext(context, run, 0);
}

PLAIN static unsigned long long rest(uint64_t wall, uint64_t cpu)
{
    return wall > cpu ? wall - cpu : 0; // two clocks: a little less is possible
}

PLAIN int main(void)
{
    prof_options_t options = PROF_OPTIONS_INIT;
    options.mode = PROF_MODE_EXACT;
    options.scope = PROF_SCOPE_PROCESS;
    prof_t *prof = prof_start(&options);
    make(&first, stacks[0], run_first);
    make(&second, stacks[1], run_second);
    while (rounds_left >= 0) {
        swapcontext(&loop, &first);
        swapcontext(&loop, &second);
    }
    prof_stop(prof);
    printf("spins %llu %llu\n", (unsigned long long)spun.cpu, rest(spun.wall, spun.cpu));
    printf("sleeps %llu %llu\n", (unsigned long long)slept.cpu, rest(slept.wall, slept.cpu));
    printf("parks 0 %llu\n", (unsigned long long)parked.wall);
    printf("outer %llu %llu\n", (unsigned long long)(spun.cpu + slept.cpu),
           rest(outer_span.wall, spun.cpu + slept.cpu));
    return prof_dump(prof, "json", "times.json") != 0;
}
