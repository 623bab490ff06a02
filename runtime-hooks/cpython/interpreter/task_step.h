// SPDX-License-Identifier: MIT
// The step of an asyncio task: what runs between two of its waits, on the thread of its loop and above the loop's
// frames. Or a call that a thread makes for another coroutine (pools/pool_calls.h).
//
// Written by the thread that steps (step.c); its handler, and the switch hook on it, read.
#pragma once

#include <stdint.h>

#include "signal/coro_record.h"

typedef struct gp_task_step {
    const void *task;     // or the call; NULL = none
    const void *greenlet; // on which it runs; NULL = the thread's main one, or there is no such thing
    uintptr_t base;       // the frame that makes the step: those of the task end before it
    prof_coro_t *coro;    // the task's record, and its id; NULL and 0 = not known
    uint64_t coro_id;
    uintptr_t waiting; // while switching to a coroutine without its frames yet: a task's coroutine object (its awaits
                       // are the stack); or a greenlet, with a bit; 0 = the frames that are there are its own
} gp_task_step_t;

enum {
    GP_STEP_HAS_NOT_BEGUN = 1, // instead of `waiting`: it has no stack yet, or it is not known
    GP_STEP_IS_GREENLET = 2,   // the bit
};

extern __thread gp_task_step_t gp_step_here __attribute__((tls_model("initial-exec")));
