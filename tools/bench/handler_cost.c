// SPDX-License-Identifier: MIT
// The handler's own cost once caches are warm: called directly, signal delivery excluded.
//
//   bench_handler_cost [DEPTH...]      default 5 20 50 100; prints the median of many calls, ns
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#include "collect/collector.h"
#include "greenprof/prof.h"
#include "signal/handler.h"
#include "signal/ticks.h"

enum {
    CALLS = 20000,
    CALLS_A_ROUND = 100,
    PAUSE_NS = 3000,
    PERIOD_NS = 40000, // PAUSE_NS is weight enough for a sample, and no sample too costly
};

static uint64_t took[CALLS];
static volatile int sink;

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void pause_a_little(void)
{
    uint64_t end = gp_clock_ns(CLOCK_MONOTONIC) + PAUSE_NS; // or no CPU time would have passed for the next one
    while (gp_clock_ns(CLOCK_MONOTONIC) < end)
        ;
}

static void call_handler(void)
{
    ucontext_t context;
    siginfo_t info = {.si_signo = SIGPROF, .si_code = SI_KERNEL};
    getcontext(&context); // this frame and those above it stay as they are
    for (int i = 0; i < CALLS; i++) {
        if (i % CALLS_A_ROUND == 0)
            gp_collector_sync();
        gp_thread_self->timer.period_ns = PERIOD_NS;
        gp_thread_self->timer.cost_ns = 0;
        gp_thread_self->timer.block_left = 1u << 30; // no new interval: its price is printed by itself
        pause_a_little();
        uint64_t start = gp_ticks();
        gp_handler(SIGPROF, &info, &context);
        took[i] = gp_ticks() - start;
    }
}

__attribute__((noinline)) static void descend(int depth)
{
    if (depth > 0)
        descend(depth - 1);
    else
        call_handler();
    sink++; // not a tail call
}

static uint64_t median_ns(void)
{
    qsort(took, CALLS, sizeof(took[0]), by_value);
    return gp_ticks_to_ns(took[CALLS / 2]);
}

static uint64_t clock_ns(void)
{
    for (int i = 0; i < CALLS; i++) {
        uint64_t start = gp_ticks();
        gp_clock_ns(CLOCK_THREAD_CPUTIME_ID);
        took[i] = gp_ticks() - start;
    }
    return median_ns();
}

int main(int argc, char **argv)
{
    static const int depths[] = {5, 20, 50, 100};
    prof_options_t options = PROF_OPTIONS_INIT;
    options.frequency_hz = 1; // the timer itself stays out of the way
    prof_t *profile = prof_start(&options);
    if (profile == NULL) {
        perror("prof_start");
        return 1;
    }
    printf("thread CPU clock, read once a sample: %lu ns\n", (unsigned long)clock_ns());
    for (int i = 0; i < (argc > 1 ? argc - 1 : 4); i++) {
        int depth = argc > 1 ? atoi(argv[i + 1]) : depths[i];
        uint64_t before[GP_COUNTER_COUNT], after[GP_COUNTER_COUNT];
        gp_collector_counters(before);
        descend(depth > 4 ? depth - 4 : 1); // main and those above and below it
        gp_collector_counters(after);
        printf("depth %d: the whole handler %lu ns (median of %lu samples)\n", depth, (unsigned long)median_ns(),
               (unsigned long)(after[GP_COUNTER_SAMPLES] - before[GP_COUNTER_SAMPLES]));
    }
    prof_free(profile);
    return 0;
}
