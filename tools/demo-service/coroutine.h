// SPDX-License-Identifier: MIT
// Stackful coroutines on glibc's ucontext, with pooled stacks.
//
// Model: a coroutine belongs to the thread that created it. The thread's own stack resumes
// coroutines, and a coroutine suspends itself back to it; there is no switch from coroutine to
// coroutine. The loop (loop.h) decides which is resumed when.
//
// greenprof sees makecontext() and swapcontext() by itself. What it cannot see is when a parked coroutine becomes
// ready: the loop tells, with prof_coro_ready().
#pragma once

#include <greenprof/coro.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

typedef void (*coroutine_fn)(void *arg);

// What the loop knows of a coroutine that waits.
typedef struct coroutine_wait {
    bool waiting;
    bool idle;           // nothing is lost when the wait is cancelled
    int fd;              // -1 = waits for time only
    int result;          // 0, or a negative errno value: why the wait ended
    int64_t deadline_ms; // LOOP_NEVER = none
    size_t timer_index;  // position in the timer heap
} coroutine_wait_t;

typedef struct coroutine {
    ucontext_t context;
    coroutine_fn run;
    void *arg;
    bool finished;
    prof_coro_t *record; // what greenprof calls it; NULL before it starts
    coroutine_wait_t wait;
    struct coroutine *next;       // in the queue of ready coroutines, or among the idle stacks
    struct coroutine *next_alive; // all coroutines of a loop
    struct coroutine *prev_alive;
} coroutine_t;

// Make a coroutine that will run fn(arg) when first resumed.
// Returns it, or NULL when no stack is to be had.
coroutine_t *coroutine_create(coroutine_fn fn, void *arg);

// Run a coroutine until it suspends itself or ends. Only on the thread's own stack.
void coroutine_resume(coroutine_t *co);

// Go back to the stack that resumed the calling coroutine.
void coroutine_suspend(void);

// The coroutine that runs on this thread; NULL on the thread's own stack.
coroutine_t *coroutine_self(void);

// Put the stack of a finished coroutine back into the thread's pool.
void coroutine_recycle(coroutine_t *co);

// Unmap the thread's idle stacks. Cost: one system call a stack.
void coroutine_pool_free(void);
