// SPDX-License-Identifier: MIT
#include "probe.h"

#include <dlfcn.h>
#include <signal.h>
#include <stddef.h>

#include "worker.h"

typedef int sigaction_t(int, const struct sigaction *, struct sigaction *);

__attribute__((visibility("default"))) bench_probe_t bench_probe;

static void (*wrapped)(int, siginfo_t *, void *);

static void around(int signal_number, siginfo_t *info, void *context)
{
    uint64_t start = worker_clock_ns(CLOCK_MONOTONIC);
    bench_probe.signals++;
    wrapped(signal_number, info, context);
    durations_add(&bench_probe.inside, worker_clock_ns(CLOCK_MONOTONIC) - start);
}

// A profiler may ask whether its own handler is in place.
static void show_wrapped(struct sigaction *old)
{
    if (old != NULL && (old->sa_flags & SA_SIGINFO) && old->sa_sigaction == around)
        old->sa_sigaction = wrapped;
}

static int wrap(int number, const struct sigaction *new, struct sigaction *old)
{
    static sigaction_t *next;
    if (next == NULL)
        next = (sigaction_t *)(uintptr_t)dlsym(RTLD_NEXT, "__sigaction");
    if (number != SIGPROF || new == NULL || !(new->sa_flags &SA_SIGINFO)) {
        int status = next(number, new, old);
        if (number == SIGPROF && status == 0)
            show_wrapped(old);
        return status;
    }
    struct sigaction action = *new;
    wrapped = new->sa_sigaction;
    action.sa_sigaction = around;
    return next(number, &action, old);
}

__attribute__((visibility("default"))) int sigaction(int number, const struct sigaction *new, struct sigaction *old)
{
    return wrap(number, new, old);
}

// glibc's other name for sigaction(), used by greenprof, which interposes sigaction() itself.
__attribute__((visibility("default"))) int __sigaction(int number, const struct sigaction *new, struct sigaction *old);

__attribute__((visibility("default"))) int __sigaction(int number, const struct sigaction *new, struct sigaction *old)
{
    return wrap(number, new, old);
}
