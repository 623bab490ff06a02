// SPDX-License-Identifier: MIT
#include "coro/lock.h"

#include "coro/tsan_hints.h"
#include "signal/ticks.h"

pthread_mutex_t gp_registry_lock = PTHREAD_MUTEX_INITIALIZER;

enum { TRY_NS = 20000 };

__thread unsigned gp_locks_held __attribute__((tls_model("initial-exec")));

// A program's ThreadSanitizer knows of trylock, and of clocklock it does not: it would take unlocking for a mistake of
// the program's.
static bool lock_try_until(pthread_mutex_t *lock, const struct timespec *until)
{
    uint64_t until_ns = (uint64_t)until->tv_sec * 1000000000u + (uint64_t)until->tv_nsec;
    struct timespec pause = {.tv_nsec = TRY_NS};
    while (pthread_mutex_trylock(lock) != 0) {
        if (gp_clock_ns(CLOCK_MONOTONIC) >= until_ns)
            return false;
        syscall(SYS_nanosleep, &pause, NULL);
    }
    return true;
}

bool gp_lock_until(pthread_mutex_t *lock, const struct timespec *until)
{
    gp_locks_held++;
    atomic_signal_fence(memory_order_seq_cst); // as in gp_lock()
    bool is_taken = gp_tsan_hints_is_there() ? lock_try_until(lock, until)
                                             : pthread_mutex_clocklock(lock, CLOCK_MONOTONIC, until) == 0;
    gp_locks_held -= !is_taken;
    return is_taken;
}
