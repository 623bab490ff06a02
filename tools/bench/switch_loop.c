// SPDX-License-Identifier: MIT
// The loop around the assembly switch, compiled twice: with ANNOUNCED as 0 and as 1. Position-independent, as the
// coroutine library that makes such calls would be.
#include <stdint.h>
#include <stdlib.h>

#include "swap.h"

#if ANNOUNCED
#include <greenprof/coro.h>
#define NAME      bench_switch_announced
#define WITH_WORK bench_work_announced
#else
#define NAME      bench_switch_bare
#define WITH_WORK bench_work_bare
#endif

enum {
    STACK_BYTES = 64 << 10,
    WORK_STEPS = 140,
    SAVED_WORDS = 20, // at least what bench_swap() restores
};

static void *home, *other;
#if ANNOUNCED
static prof_coro_t *coro;
#endif

static void run(void)
{
    for (;;) {
#if ANNOUNCED
        prof_coro_switch(NULL);
#endif
        bench_swap(&other, home);
    }
}

static void *new_stack(void)
{
    unsigned char *low = aligned_alloc(64, STACK_BYTES);
    if (low == NULL)
        abort();
#if ANNOUNCED
    coro = prof_coro_create(low, STACK_BYTES, "other");
#endif
    // A multiple of 16: once the entry address is taken off, the stack is aligned as a call would leave it.
    uintptr_t *sp = (uintptr_t *)(void *)(low + STACK_BYTES) - SAVED_WORDS - 4;
    sp[ENTRY_WORD] = (uintptr_t)run;
    sp[ENTRY_WORD + 1] = 0;
    return sp;
}

// Work between two switches, as a service that switches five million times a second has it: ~190 ns.
static void work(void)
{
    static volatile unsigned seed = 1;
    unsigned x = seed;
    for (int i = 0; i < WORK_STEPS; i++)
        x = x * 1664525u + 1013904223u;
    seed = x;
}

__attribute__((aligned(64))) void WITH_WORK(unsigned long amount)
{
    if (other == NULL)
        other = new_stack();
    for (unsigned long i = 0; i < amount; i++) {
        work();
#if ANNOUNCED
        prof_coro_switch(coro);
#endif
        bench_swap(&home, other);
        work();
    }
}

__attribute__((aligned(64))) void NAME(unsigned long amount)
{
    if (other == NULL)
        other = new_stack();
    for (unsigned long i = 0; i < amount; i++) {
#if ANNOUNCED
        prof_coro_switch(coro);
#endif
        bench_swap(&home, other);
    }
}
