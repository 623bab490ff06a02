// SPDX-License-Identifier: MIT
// Threads of greenprof's own, out of the way for a moment.
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/futex.h"
#include "coro/threads.h"
#include "signal/ticks.h"

enum { PATIENCE_NS = 1000000000, STEP_NS = 100000 };

static _Atomic bool is_ending;

bool gp_thread_own_may_stay(void)
{
    return !atomic_load_explicit(&is_ending, memory_order_acquire);
}

static bool is_there(pid_t tid)
{
    return tid != 0 && syscall(SYS_tgkill, getpid(), tid, 0) == 0;
}

// The kernel counts a thread until it is gone, which is a little later than its last instruction.
//   tids: those that were seen so far; one that ends may still have started another.
static bool are_there(pid_t tids[GP_THREADS_OWN_MAX])
{
    pid_t now[GP_THREADS_OWN_MAX], caller = (pid_t)syscall(SYS_gettid);
    bool is_any_there = false;
    gp_thread_own_ids(now);
    for (int i = 0; i < GP_THREADS_OWN_MAX; i++) {
        if (now[i] == caller)
            continue;
        is_any_there |= now[i] != 0 || is_there(tids[i]);
        if (now[i] != 0)
            tids[i] = now[i];
    }
    return is_any_there;
}

bool gp_thread_end_own(void (*wake)(void))
{
    static _Atomic uint32_t never;
    pid_t tids[GP_THREADS_OWN_MAX] = {0};
    uint64_t start = gp_clock_ns(CLOCK_MONOTONIC);
    atomic_store_explicit(&is_ending, true, memory_order_release);
    while (are_there(tids)) {
        if (gp_clock_ns(CLOCK_MONOTONIC) - start > PATIENCE_NS)
            return false;
        wake();
        gp_futex_wait(&never, 0, STEP_NS);
    }
    return true;
}

void gp_thread_let_own_begin(void)
{
    atomic_store_explicit(&is_ending, false, memory_order_release);
}
