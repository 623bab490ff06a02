// SPDX-License-Identifier: MIT
// The shadow stack of one green thread in one exact profile.
#ifndef GP_CPYTHON_EXACT_STACK_H
#define GP_CPYTHON_EXACT_STACK_H

#include <stdbool.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "exact.h"
#include "exact_table.h"

typedef struct exact_entry {
    exact_function_t *function;
    exact_edge_t *edge;    // NULL: nobody on this stack called it
    uint64_t start, below; // stack time at its call; time of what it called
} exact_entry_t;

typedef struct exact_stack {
    struct exact *profile;
    exact_entry_t *entries;
    size_t depth, room;
    uint64_t excluded;               // ticks that did not pass here: stack time = ticks - excluded
    uint64_t paused_at;              // ticks; 0 = it runs
    struct exact_stack *next, *prev; // of its profile
} exact_stack_t;

// Ticks of the time-stamp counter, or ns where that cannot be relied on. exact_ticks_init() comes first, once.
extern bool exact_use_counter;
void exact_ticks_init(void);
uint64_t exact_clock_ns(void);
double exact_seconds_per_tick(void);

static inline uint64_t exact_ticks(void)
{
#if defined(__x86_64__)
    if (exact_use_counter)
        return __rdtsc();
#endif
    return exact_clock_ns();
}

// A function is called, or returns. A return that fits no entry is ignored: it was called before the profile started.
void exact_stack_push(exact_stack_t *stack, uint64_t now, const void *key, PyObject *object);
void exact_stack_pop(exact_stack_t *stack, uint64_t now, const void *key);

// The green thread is switched away, or back.
void exact_stack_pause(exact_stack_t *stack, uint64_t now);
void exact_stack_resume(exact_stack_t *stack, uint64_t now);

// All that is active returns now.
void exact_stack_flush(exact_stack_t *stack, uint64_t now);

#endif
