// SPDX-License-Identifier: MIT
// A library loaded late by a service, which brings coroutines: plugin_burn() has one of its own use the CPU.
#include "../context.h"
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

enum { STACK_BYTES = 65536, SLICE_NS = 1000000 };

static ucontext_t caller, worker;
static uint64_t wanted_ns;
static int is_over;

static uint64_t cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void plugin_worker(void)
{
    for (uint64_t start = cpu_ns(), slice = start; slice - start < wanted_ns;) {
        uint64_t end = slice + SLICE_NS;
        while ((slice = cpu_ns()) < end)
            ;
        swapcontext(&worker, &caller);
    }
    is_over = 1;
}

__attribute__((visibility("default"))) void plugin_burn(uint64_t ns)
{
    char *stack = malloc(STACK_BYTES);
    wanted_ns = ns;
    context_on(&worker, stack, STACK_BYTES, &caller);
    makecontext(&worker, plugin_worker, 0);
    for (is_over = 0; !is_over;) // not by number: a slice may be longer, and one that is over cannot be resumed
        swapcontext(&caller, &worker);
    free(stack);
}
