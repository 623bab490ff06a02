// SPDX-License-Identifier: MIT
// Locks that threads sleep for, and their owners, seen from another thread.
//
// Model: a hook that times waits for locks has left its words with the thread (signal/gil_wait.h). For others the
// system call tells: pthread_mutex_lock() waits for the lock's word to be no longer 2, or for its owner's death; the
// owner's number is beside it. Caller holds the drain lock. Signals: not safe.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "signal/thread.h"

// Put words (collect/lock_words.h) in front of the frames of a thread asleep in futex(), and GP_SAMPLE_LOCK into
// `*flags`, where it waits for a lock.
//   arguments: uintptr_t[3] of the call. frames: uintptr_t[max], `depth` are there.
// Returns the depth. Cost: ~1 us.
size_t gp_lock_scan_put(const gp_thread_t *thread, const uintptr_t arguments[3], uintptr_t *frames, size_t depth,
                        size_t max, unsigned *flags);
