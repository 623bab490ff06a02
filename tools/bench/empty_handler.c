// SPDX-License-Identifier: MIT
// Part of the preloaded libbench_probe.so, where BENCH_EMPTY_HZ is set: a SIGPROF handler that does nothing, driven by
// greenprof's own timers (same event, rate and jitter of the interval; BENCH_EMPTY_ENGINE names another engine), on an
// alternate stack like greenprof's. Any cost of greenprof's beyond it is greenprof's own work.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "signal/clock_engine.h"

static gp_timer_t timer;
static const gp_clock_engine_t *engine;
static unsigned char stack[65536];

static void handler(int signal_number, siginfo_t *info, void *context)
{
    (void)signal_number, (void)info, (void)context;
    gp_timer_tick(&timer, engine);
}

static void install(void)
{
    struct sigaction action;
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof(stack)};
    memset(&action, 0, sizeof(action));
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    sigaltstack(&alternate, NULL);
    sigaction(SIGPROF, &action, NULL);
}

static bool arm(const gp_clock_engine_t *candidate, unsigned hz)
{
    pid_t tid = (pid_t)syscall(SYS_gettid);
    engine = candidate;
    gp_timer_prepare(&timer, hz, (uint32_t)tid * 2654435761u);
    return engine != NULL && engine->arm(&timer, tid, SIGPROF) == 0;
}

__attribute__((constructor)) static void start(void)
{
    const char *hz = getenv("BENCH_EMPTY_HZ"), *name = getenv("BENCH_EMPTY_ENGINE");
    if (hz == NULL)
        return;
    install();
    bool armed = name != NULL && arm(gp_clock_engine_find(name), (unsigned)atoi(hz));
    for (int i = 0; name == NULL && !armed && gp_clock_engines[i] != NULL; i++)
        armed = arm(gp_clock_engines[i], (unsigned)atoi(hz));
    if (armed)
        return;
    fputs("empty_handler: no clock engine works here\n", stderr);
    exit(1);
}
