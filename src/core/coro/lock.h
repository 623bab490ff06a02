// SPDX-License-Identifier: MIT
// Taking and giving back a lock that fork() takes, too (process/process.c).
//
// A signal handler of the program may fork while its own thread is in the middle of such a section: that fork waits
// for none of the locks, which would be for ever.
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

// How many of them the calling thread has, or is about to have.
extern __thread unsigned gp_locks_held __attribute__((tls_model("initial-exec")));

// Serializes all changes of records, regions, scopes and the list of threads. The handler never takes it. Lock order:
// sampler lock -> drain lock -> registry lock.
extern pthread_mutex_t gp_registry_lock;

static inline void gp_lock(pthread_mutex_t *lock)
{
    gp_locks_held++;
    atomic_signal_fence(memory_order_seq_cst); // a handler that comes now sees it before the lock is held
    pthread_mutex_lock(lock);
}

// Returns whether it is taken before `until`, on CLOCK_MONOTONIC.
bool gp_lock_until(pthread_mutex_t *lock, const struct timespec *until);

static inline void gp_unlock(pthread_mutex_t *lock)
{
    pthread_mutex_unlock(lock);
    atomic_signal_fence(memory_order_seq_cst);
    gp_locks_held--;
}
