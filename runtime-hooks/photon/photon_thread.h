// SPDX-License-Identifier: MIT
// PhotonLibOS, linked into the program: photon::thread_create() tells the stacks. Its switch routines are local
// symbols, called by inline assembly, which nothing can stand before: the stack pointer decides which one runs. Source:
// PhotonLibOS 0.6 to 0.9, thread/thread.cpp (struct thread, thread_create).
#pragma once

#include "wrap/wrap.h"

typedef void *start_t(void *);

typedef struct thread { // its beginning; it lies at the top of its stack
    uint64_t links_and_state[8];
    void *argument;
    start_t *start;
    char *stack_low;
    char *stackful_alloc_top;
    size_t stack_bytes;
} thread_t;

// Announce a new thread, if it is as this file knows them. Returns it.
static inline thread_t *announce(thread_t *thread, start_t *start)
{
    uintptr_t at = (uintptr_t)thread, lo = thread != NULL ? (uintptr_t)thread->stack_low : 0;
    if (thread != NULL && thread->start == start && lo < at && at - lo < thread->stack_bytes)
        gp_wrap_announce_unseen(thread->stack_low, thread->stack_bytes, (const void *)(uintptr_t)start, NULL);
    return thread;
}
