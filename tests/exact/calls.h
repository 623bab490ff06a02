// SPDX-License-Identifier: MIT
// The common part of the scenarios of calls.c.
#ifndef CALLS_H
#define CALLS_H

#include <setjmp.h>
#include <ucontext.h>

#include "truth.h"

enum { CATCHES_MAX = 64 };

typedef struct coro {
    truth_stack_t truth; // first: see F()
    ucontext_t context, *back;
    uint64_t random;
    int calls_left, level_max;
    bool over, pinned; // pinned: not to be abandoned now
    jmp_buf *catches[CATCHES_MAX];
    int catch_count, catch_floor; // those below the floor are not for now
    void *stack;
    struct coro *next;
} coro_t;

extern FILE *truth_file;
extern truth_table_t whole; // of the profile over all

// A coroutine that may make `calls` calls.
PLAIN coro_t *new_coro(uint64_t seed, int calls, void (*start)(unsigned, unsigned));
PLAIN void run_tree(coro_t *self);
PLAIN void yield(coro_t *self);

// `calls crowd`: calls_crowd.c
PLAIN void crowd(int count, uint64_t seed);

#endif
