// SPDX-License-Identifier: MIT
// Which code of Python takes a lock, makes it, or waits for it: the innermost frame that is not the library's own.
// Threads: that of the frames. Signals: not safe.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gp_lock_caller {
    GP_LOCK_OF_PROGRAM,
    GP_LOCK_OF_LIBRARY,   // threading.py
    GP_LOCK_OF_CONDITION, // Condition.wait() there: waits for a notice
    GP_LOCK_OF_SEMAPHORE, // acquire() there
    GP_LOCK_OF_JOIN,      // waits for a thread's end
    GP_LOCK_OF_WORKER,    // of concurrent.futures: waits for work
};

// The caller that a frame word stands for. Cost: ~2 ns; ~5 us where its code was not met yet.
enum gp_lock_caller gp_lock_place_caller(uintptr_t word);

// The calling thread's. Returns a frame word; 0 = none. Cost: ~15 ns.
//   is_kept: it is asked for later: the code is to outlive its module's import. Caller holds the interpreter lock.
uintptr_t gp_lock_place_own(bool is_kept);

// Among frames. Returns their first word where all are the library's; 0 = there are none.
uintptr_t gp_lock_place_of(const uintptr_t *frames, size_t depth);
