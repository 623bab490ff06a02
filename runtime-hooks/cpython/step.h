// SPDX-License-Identifier: MIT
// The step of an asyncio task: what runs between two of its waits, on the thread of its loop and above the loop's
// frames. Or a call that a thread makes for somebody else (handed.h).
//
// Written by the thread that steps (step.c); its handler, and the switch hook on it, read.
#ifndef GP_CPYTHON_STEP_H
#define GP_CPYTHON_STEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layout.h"
#include "signal/coro_record.h"

typedef struct gp_step {
    const void *task;     // or the call; NULL = none
    const void *greenlet; // on which it runs; NULL = the thread's main one, or there is no such thing
    uintptr_t base;       // the frame that makes the step: those of the task end before it
    prof_coro_t *coro;    // the task's record, and its id; NULL and 0 = not known
    uint64_t coro_id;
    uintptr_t
        waiting; // while a coroutine is being switched to that has not its frames yet: a task's coroutine object, whose
                 // awaits are its stack; or its innermost frame, with a bit; 0 = the frames that are there are its
} gp_step_t;

enum {
    GP_STEP_HAS_NOT_BEGUN = 1, // instead of `waiting`: it has no stack yet, or it is not known
    GP_STEP_IS_FRAME = 2,      // the bit
};

extern __thread gp_step_t gp_step_here __attribute__((tls_model("initial-exec")));

// Copies memory of this process; false where there is none. One for a thread that holds the interpreter lock, another
// (gp_cpython_peek) for everybody else.
typedef bool gp_cpython_read_t(uintptr_t from, void *to, size_t bytes);

bool gp_cpython_read_own(uintptr_t from, void *to, size_t bytes);

// Frames of a suspended coroutine object and of those that it awaits.
//   object: a coroutine, generator, or what wraps them; of anything else there are no frames.
//   frames: uintptr_t[max], innermost first, as gp_language_t.walk() gives them.
// Returns how many. Signals: safe with gp_cpython_read_own() on a thread that holds the interpreter lock.
size_t gp_cpython_walk_awaits(gp_cpython_read_t *read, uintptr_t object, uintptr_t *frames, size_t max);

// Frames from a suspended one on outwards, as a greenlet that is switched away from has them.
//   base: the walk ends before it; 0 = at the outermost one.
size_t gp_cpython_walk_frames(gp_cpython_read_t *read, uintptr_t frame, uintptr_t base, uintptr_t *frames, size_t max);

#endif
