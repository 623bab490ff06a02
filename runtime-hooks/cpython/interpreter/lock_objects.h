// SPDX-License-Identifier: MIT
// Python's locks where they are no semaphores: a byte in the object of a _thread.lock, from 3.13 on, and of a
// _thread.RLock, from 3.14 on.
//
// Model: taking and giving such a lock calls nothing, so the definitions of the type's methods are replaced, as is what
// makes one; a thread that waits sleeps on a semaphore of its own, behind the address of the byte. An object's size
// tells what its lock is. Source: Python/parking_lot.c, struct wait_entry; Modules/_threadmodule.c; pycore_lock.h,
// _PyRecursiveMutex.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Calls for a lock, made with the interpreter's lock, before it is given, after it is taken or made.
typedef struct gp_lock_events {
    void (*gives)(uintptr_t lock);
    void (*took)(uintptr_t lock);
    void (*made)(uintptr_t lock);
} gp_lock_events_t;

// Find the types, if the version has them, and follow their locks; with the interpreter's lock. Idempotent.
void gp_lock_objects_find(const gp_lock_events_t *events);

// Once found, follow them or leave them as they were. Any thread.
void gp_lock_objects_follow(bool is_attached);

// Are semaphores no locks at all?
bool gp_lock_objects_are_all(void);

// The object of the lock that a semaphore of the interpreter's is waited on for; 0 = none.
uintptr_t gp_lock_objects_parked(const void *semaphore);
