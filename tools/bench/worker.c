// SPDX-License-Identifier: MIT
#include "worker.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe.h"

long worker_option(int argc, char **argv, const char *name, long otherwise)
{
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return atol(argv[i + 1]);
    return otherwise;
}

static void pin(long cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    if (sched_setaffinity(0, sizeof(set), &set) != 0)
        perror("sched_setaffinity");
}

static void answer(worker_block_fn *block, unsigned long amount, unsigned which)
{
    double figures[WORKER_FIGURES] = {0};
    uint64_t wall = worker_clock_ns(CLOCK_MONOTONIC), cpu = worker_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    block(amount, which, figures);
    cpu = worker_clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
    wall = worker_clock_ns(CLOCK_MONOTONIC) - wall;
    if (amount == 0 && &bench_probe != NULL)
        durations_take_mean(&bench_probe.inside, &figures[0], &figures[1]);
    uint64_t signals = &bench_probe != NULL ? bench_probe.signals : 0;
    printf("%lu %lu %lu %lu", (unsigned long)wall, (unsigned long)cpu,
           (unsigned long)worker_clock_ns(CLOCK_PROCESS_CPUTIME_ID), (unsigned long)signals);
    for (int i = 0; i < WORKER_FIGURES; i++)
        printf(" %.6g", figures[i]);
    putchar('\n');
    fflush(stdout);
}

int worker_serve(int argc, char **argv, worker_block_fn *block)
{
    long hz = worker_option(argc, argv, "--sample", 0), cpu = worker_option(argc, argv, "--pin", -1);
    if (hz > 0 && worker_sampling_start((unsigned)hz) != 0) {
        perror("cannot sample");
        return 1;
    }
    if (cpu >= 0)
        pin(cpu); // after the collector was started: it stays free to run elsewhere
    unsigned long amount;
    unsigned which;
    while (scanf("%lu %u", &amount, &which) == 2)
        answer(block, amount, which);
    return 0;
}
