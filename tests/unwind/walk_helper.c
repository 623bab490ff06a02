// SPDX-License-Identifier: MIT
#define _GNU_SOURCE
#include "walk_helper.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>

#include "unwind/unwind.h"

static walk_result_t *target;
static uintptr_t bounds_lo, bounds_hi;
static size_t target_max;

void walk_find_stack(uintptr_t *lo, uintptr_t *hi)
{
    pthread_attr_t attr;
    void *low;
    size_t size;
    pthread_getattr_np(pthread_self(), &attr);
    pthread_attr_getstack(&attr, &low, &size);
    pthread_attr_destroy(&attr);
    *lo = (uintptr_t)low;
    *hi = *lo + size;
}

static void on_signal(int signo, siginfo_t *info, void *context)
{
    uintptr_t gp[33];
    gp_unwind_regs_t regs;
    (void)signo, (void)info;
    gp_unwind_regs_from_ucontext(&regs, gp, context);
    target->sp = regs.sp;
    target->count = gp_unwind_walk(&regs, bounds_lo, bounds_hi, target->frames, target_max, &target->flags);
}

void walk_here(walk_result_t *result, uintptr_t lo, uintptr_t hi, size_t max)
{
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    memset(result, 0, sizeof *result);
    target = result;
    target_max = max;
    bounds_lo = lo;
    bounds_hi = hi;
    sigaction(SIGUSR1, &action, NULL);
    pthread_kill(pthread_self(), SIGUSR1);
}

size_t walk_find(const walk_result_t *result, const uintptr_t *pcs, size_t n)
{
    for (size_t at = 0; at + n <= result->count; at++)
        if (memcmp(result->frames + at, pcs, n * sizeof *pcs) == 0)
            return at;
    return SIZE_MAX;
}
