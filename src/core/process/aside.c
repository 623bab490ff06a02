// SPDX-License-Identifier: MIT
#include "process/aside.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "collect/collector.h"
#include "collect/pacer.h"
#include "collect/sampler.h"
#include "control/control.h"
#include "coro/lock.h"
#include "coro/process_id.h"
#include "coro/threads.h"
#include "record/session.h"

enum { TRIES = 10000, PAUSE_NS = 100000 };

static _Atomic uint64_t asider; // process and thread that has them step aside; 0 = none does
static _Atomic bool is_behind;  // one was still there when the program had changed
static void (*_Atomic wake_others)(void);

void gp_aside_wake_by(void (*wake)(void))
{
    atomic_store_explicit(&wake_others, wake, memory_order_release);
}

void gp_aside_wake(void)
{
    void (*wake)(void) = atomic_load_explicit(&wake_others, memory_order_acquire);
    gp_collector_kick();
    gp_session_wake();
    gp_pacer.wake();
    gp_control_wake();
    if (wake != NULL)
        wake();
}

// Has the program one thread, beside some of greenprof's own that all end where they are asked to? An own thread that
// begins or ends just now may be in one count and not in the other: a match is right; so is twice the same number of
// others in a row.
static bool aside_is_alone(void)
{
    struct stat tasks;
    struct timespec pause = {.tv_nsec = PAUSE_NS};
    for (int i = 0, seen = 0; i < TRIES && gp_thread_helper_staying() == 0; i++) {
        int own = gp_thread_helper_count();
        if (stat("/proc/self/task", &tasks) != 0)
            return false;
        int others = (int)tasks.st_nlink - 3 - own; // "." and "..", and the caller
        if (others == 0)
            return own > 0;
        if (others > 0 && others == seen)
            return false;
        seen = others;
        syscall(SYS_nanosleep, &pause, NULL);
    }
    return false;
}

// A forked child of a thread beside the one that has them step aside has the mark, and no such thread.
static bool aside_is_taken(uint64_t by)
{
    return by != 0 && (pid_t)(by >> 32) == getpid();
}

// Claim the turn: one thread steps aside at a time. Returns false where it is not to be had: for a handler, that has
// interrupted its own thread.
static bool aside_claim(void)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    uint64_t mine = (uint64_t)getpid() << 32 | (uint32_t)syscall(SYS_gettid), seen;
    for (int i = 0; i < TRIES; i++) {
        seen = atomic_load_explicit(&asider, memory_order_relaxed);
        if (!aside_is_taken(seen) &&
            atomic_compare_exchange_strong_explicit(&asider, &seen, mine, memory_order_acquire, memory_order_relaxed))
            return true;
        if (seen == mine)
            return false;
        syscall(SYS_nanosleep, &pause, NULL);
    }
    return false;
}

static bool aside_applies(gp_aside_for_t what)
{
    if (!gp_process_is_open() || gp_locks_held != 0 || gp_thread_helper_count() == 0)
        return false;
    pid_t tid = (pid_t)syscall(SYS_gettid);
    if (what == GP_ASIDE_ALL && !atomic_load_explicit(&is_behind, memory_order_relaxed) && !gp_thread_helper_differ())
        return false;
    return !gp_thread_is_own(tid) && (what == GP_ASIDE_ALL || (what == GP_ASIDE_FIRST && tid == getpid()) ||
                                      (what == GP_ASIDE_ALONE && aside_is_alone()));
}

// Where one does not end in time, the call is made with it.
void gp_aside_begin(gp_aside_t *aside, gp_aside_for_t what)
{
    int saved = errno, cancel;
    *aside = (gp_aside_t){0};
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    if (aside_applies(what) && aside_claim()) {
        *aside = (gp_aside_t){true, gp_collector_runs(), gp_pacer_runs()};
        atomic_store_explicit(&is_behind, !gp_thread_end_own(gp_aside_wake), memory_order_relaxed);
    }
    pthread_setcancelstate(cancel, NULL);
    errno = saved;
}

// The writing thread begins when there is something to write.
void gp_aside_end(const gp_aside_t *aside)
{
    int saved = errno, cancel;
    if (!aside->is_away)
        return;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    gp_thread_let_own_begin();
    gp_sampler_enter();
    if (aside->collector)
        gp_collector_start();
    if (aside->pacer)
        gp_pacer.start();
    gp_sampler_leave();
    atomic_store_explicit(&asider, 0, memory_order_release);
    pthread_setcancelstate(cancel, NULL);
    errno = saved;
}

void gp_aside_for_good(void)
{
    gp_thread_end_own(gp_aside_wake);
}
