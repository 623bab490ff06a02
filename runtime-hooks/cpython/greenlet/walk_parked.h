// SPDX-License-Identifier: MIT
// Stacks of waiting greenlets and tasks, and of sleeping threads, read from another thread, without the interpreter
// lock.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/word.h"
#include "interpreter/api.h"
#include "interpreter/awaits.h"
#include "signal/thread.h"

// prof_coro.object is the address of a greenlet, or of a task's coroutine object with this bit.
enum { GP_CPYTHON_IS_TASK = 1 };

// See gp_language_t.walk_parked.
size_t gp_cpython_walk_parked(uintptr_t object, uintptr_t *frames, size_t max, unsigned *flags);

// See gp_language_t.walk_asleep.
size_t gp_cpython_walk_asleep(const gp_thread_t *thread, uintptr_t *frames, size_t max, unsigned *flags);

// Find out, with a greenlet that is suspended, where greenlets keep their frames. Caller holds the interpreter lock.
void gp_cpython_parked_learn(gp_py_t *greenlet);
static inline bool gp_cpython_parked_is_known(void)
{
    return !gp_word_is(&gp_cpython_frame_object_at, 0);
}
