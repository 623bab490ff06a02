// SPDX-License-Identifier: MIT
// The lock of exact mode, and its memory.
//
// Instrumented functions run anywhere: inside the host's malloc, in its signal handlers, on small coroutine stacks. So
// the lock is only ever held with all signals blocked (a handler never meets it half-way on its own thread), nothing
// else is locked under it, and memory comes from mappings that are cut into blocks, reused, and never returned. Lock
// order: sampler lock -> drain lock -> registry lock -> this one.
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct gp_exact_guard {
    uint64_t mask; // the signal mask from before
    int saved_errno;
} gp_exact_guard_t;

// Take and give back the lock. Threads: any. Signals: safe. Cost: two system calls.
void gp_exact_lock(gp_exact_guard_t *guard);
void gp_exact_unlock(const gp_exact_guard_t *guard);

// A zeroed block, or NULL. Caller holds the lock. Cost: O(bytes).
void *gp_exact_alloc(size_t bytes);

// Give a block of `bytes` back; NULL is accepted. Caller holds the lock. The block stays readable: a late reader
// without the lock sees nonsense, never a hole.
void gp_exact_release(void *block, size_t bytes);
