// SPDX-License-Identifier: MIT
// Waits of Python's threads for locks (_thread.lock, RLock and what is built of them): what the interpreter calls for
// them comes here first.
//
// Model: a lock is a semaphore, and from 3.13 on a byte of an object (lock_objects.h). To take one the interpreter
// tries, and waits only where that fails: so a wait alone is timed. Owners are noted in a table of the latest few
// thousand locks; threads that give one back while others wait, with their code. A wait ended by the lock's owner was
// one for a lock. Another thread's end of it makes it an event's (conditions, queues), and a sleep as before, but for
// threading.Semaphore: there the giver is the owner. A lock is called by the place where it was made, else by its first
// wait's. Source: Python/thread_pthread.h, Modules/_threadmodule.c, Lib/threading.py.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Find the types of locks that are no semaphores, with the interpreter's lock. Idempotent.
void gp_locks_find(void);

// See gp_language_t.follow.
void gp_locks_follow(bool is_attached);

enum { GP_LOCKS_MARK = 44 }; // bit of a frame word: no code object is at such an address

// Is a frame word one of a wait, which names code instead of being a frame?
static inline bool gp_locks_is_word(uintptr_t word)
{
    return word >> GP_LOCKS_MARK & 1;
}

// The frame named by it; and, of a frame at the location `loc`, what is shown: "[lock FILE:LINE]", "[in FUNCTION
// (FILE:LINE)]". Collector only, drain lock held.
static inline uintptr_t gp_locks_word_frame(uintptr_t word)
{
    return word & ~((uintptr_t)1 << GP_LOCKS_MARK | 1);
}

uint64_t gp_locks_locate(uintptr_t word, uint64_t loc);
