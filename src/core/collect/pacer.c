// SPDX-License-Identifier: MIT
#include "collect/pacer.h"

#include <errno.h>
#include <linux/close_range.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/futex.h"
#include "collect/pace_queue.h"
#include "coro/task.h"
#include "coro/threads.h"
#include "signal/clock_paced.h"
#include "signal/ticks.h"

enum {
    // A signal that no handler got for so long is sent again: sigwait() has taken it. The next one has twice as long:
    // the thread blocks it, and real-time signals queue.
    LOST_MIN_NS = 1000000,
    LOST_MAX_NS = 1000000000,
    LET_RUN_NS = 50000,        // where its state is not known, a thread that would run does so meanwhile
    DESCRIPTORS_MAX = 1 << 16, // closed one by one where the kernel (before 5.9) does not close them all
};

static pid_t runs_in; // process that it runs in; sampler's lock
static _Atomic uint32_t changes;
static bool is_away;     // the pacer has ended for a moment: its list stays
static bool sees_states; // the kernel can be asked whether a thread sleeps, as far as there is a /proc

// The pacer's thread alone.
static gp_pace_queue_t queue;
static size_t idle_count;

static void pacer_wake(void)
{
    atomic_fetch_add_explicit(&changes, 1, memory_order_release);
    gp_futex(&changes, FUTEX_WAKE, 1, NULL);
}

static void pacer_sleep_until(uint64_t ns, uint32_t seen)
{
    struct timespec until = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
    syscall(SYS_futex, &changes, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, seen, ns != 0 ? &until : NULL, NULL,
            FUTEX_BITSET_MATCH_ANY);
}

// Source: close_range(2), unshare(2).
static bool pacer_own_descriptors(void)
{
    if (syscall(SYS_close_range, 0u, ~0u, CLOSE_RANGE_UNSHARE) == 0)
        return true;
    if (syscall(SYS_unshare, CLONE_FILES) != 0)
        return false;
    for (int fd = 0; fd < DESCRIPTORS_MAX; fd++)
        syscall(SYS_close, fd); // of the copy
    return true;
}

static void pacer_set_idle(gp_paced_t *paced, bool is_idle)
{
    if (paced->is_idle != is_idle)
        idle_count += is_idle ? (size_t)1 : (size_t)-1;
    paced->is_idle = is_idle;
}

// On a processor, or waiting for one: a running thread's clock goes on, as seen from another processor; and a thread
// waits for this one while the pacer has it.
static bool pacer_goes_on(pid_t tid, uint64_t used_ns)
{
    if (gp_clock_ns(gp_thread_clock(tid)) > used_ns)
        return true;
    char state = sees_states ? gp_task_state(tid) : 0;
    if (state != 0)
        return state == 'R';
    struct timespec pause = {.tv_nsec = LET_RUN_NS};
    syscall(SYS_nanosleep, &pause, NULL);
    return gp_clock_ns(gp_thread_clock(tid)) > used_ns;
}

static bool pacer_runs(gp_timer_t *timer, pid_t tid)
{
    gp_paced_t *paced = gp_paced(timer);
    uint64_t before_ns = atomic_load_explicit(&paced->seen_cpu_ns, memory_order_relaxed);
    uint64_t used_ns = gp_clock_ns(gp_thread_clock(tid));
    pacer_set_idle(paced, used_ns == before_ns);
    if (used_ns == before_ns) // it has not run since it was looked at last
        return false;
    bool is_running = pacer_goes_on(tid, used_ns);
    atomic_store_explicit(&paced->seen_cpu_ns, gp_clock_ns(gp_thread_clock(tid)), memory_order_relaxed);
    atomic_store_explicit(&paced->seen_ns, gp_clock_ns(CLOCK_MONOTONIC), memory_order_relaxed);
    return is_running;
}

static bool pacer_is_under_way(gp_timer_t *timer, uint64_t now)
{
    gp_paced_t *paced = gp_paced(timer);
    if (!atomic_load_explicit(&timer->sent, memory_order_relaxed)) {
        paced->lost_ns = LOST_MIN_NS;
        return false;
    }
    if (now - paced->sent_ns < paced->lost_ns)
        return true;
    if (paced->lost_ns < LOST_MAX_NS)
        paced->lost_ns *= 2;
    return false;
}

static void pacer_send(gp_timer_t *timer, pid_t tid, uint64_t now)
{
    siginfo_t info;
    memset(&info, 0, sizeof(info));
    info.si_signo = atomic_load_explicit(&gp_paced(timer)->signal_number, memory_order_relaxed);
    info.si_code = SI_TIMER;
    info.si_value.sival_ptr = timer;
    gp_paced(timer)->sent_ns = now;
    if (!atomic_load_explicit(&timer->sent, memory_order_relaxed)) // else it waits
        atomic_store_explicit(&gp_paced(timer)->sent_cpu_ns,
                              atomic_load_explicit(&gp_paced(timer)->seen_cpu_ns, memory_order_relaxed),
                              memory_order_relaxed);
    atomic_store_explicit(&timer->sent, true, memory_order_relaxed);
    if (syscall(SYS_rt_tgsigqueueinfo, getpid(), tid, info.si_signo, &info) == 0)
        return;
    atomic_store_explicit(&timer->sent, false, memory_order_relaxed);
    // EAGAIN: of real-time signals, where the user's queue is full.
    atomic_store_explicit(&gp_paced(timer)->is_refused, errno != ESRCH && errno != EAGAIN, memory_order_relaxed);
}

// Returns when it is to be looked at again; 0 = it is not armed.
static uint64_t pacer_look_at(gp_timer_t *timer, uint64_t now)
{
    gp_paced_t *paced = gp_paced(timer);
    uint64_t due = atomic_load_explicit(&paced->due_ns, memory_order_seq_cst);
    if (due == 0 || due > now)
        return due;
    // In one order with disarm()'s.
    atomic_store_explicit(&gp_clock_pacing, timer, memory_order_seq_cst);
    pid_t tid = atomic_load_explicit(&paced->tid, memory_order_relaxed);
    if (atomic_load_explicit(&paced->due_ns, memory_order_seq_cst) != 0 && !pacer_is_under_way(timer, now) &&
        pacer_runs(timer, tid))
        pacer_send(timer, tid, now);
    uint64_t interval_ns = atomic_load_explicit(&paced->interval_ns, memory_order_relaxed);
    uint64_t next = now + (paced->is_idle ? gp_pace_idle_ns(interval_ns, idle_count) : interval_ns);
    // Where it was disarmed meanwhile, it stays so.
    if (!atomic_compare_exchange_strong_explicit(&paced->due_ns, &due, next, memory_order_seq_cst,
                                                 memory_order_seq_cst))
        next = due;
    atomic_store_explicit(&gp_clock_pacing, NULL, memory_order_release);
    return next;
}

static void pacer_put(gp_timer_t *timer, uint64_t due)
{
    if (!gp_pace_put(&queue, timer, due))
        atomic_store_explicit(&gp_paced(timer)->listed, false, memory_order_seq_cst); // until it is armed again
}

static void pacer_take_armed(void)
{
    // Acquire: partner of the release in enlist().
    gp_timer_t *timer = atomic_exchange_explicit(&gp_clock_armed, NULL, memory_order_acquire), *next;
    for (; timer != NULL; timer = next) {
        next = gp_paced(timer)->next;
        pacer_put(timer, atomic_load_explicit(&gp_paced(timer)->due_ns, memory_order_relaxed));
    }
}

// Drop a timer that is not armed. If another thread arms it just now, either that thread lists it, or the pacer keeps
// it.
static void pacer_leave_out(gp_timer_t *timer)
{
    gp_paced_t *paced = gp_paced(timer);
    pacer_set_idle(paced, false);
    atomic_store_explicit(&paced->listed, false, memory_order_seq_cst);
    uint64_t due = atomic_load_explicit(&paced->due_ns, memory_order_seq_cst);
    if (due != 0 && !atomic_exchange_explicit(&paced->listed, true, memory_order_seq_cst))
        pacer_put(timer, due);
}

static void *pacer_pace(void *unused)
{
    (void)unused;
    sees_states = pacer_own_descriptors();
    prctl(PR_SET_TIMERSLACK, 1);
    for (;;) {
        // Acquire: partner of the release in pacer_wake().
        uint32_t seen = atomic_load_explicit(&changes, memory_order_acquire);
        uint64_t now = gp_clock_ns(CLOCK_MONOTONIC);
        if (!gp_thread_helper_may_stay()) {
            is_away = true;
            runs_in = 0;
            return NULL;
        }
        pacer_take_armed();
        while (queue.count > 0 && queue.entries[0].due_ns <= now) {
            gp_timer_t *timer = gp_pace_take(&queue).timer;
            uint64_t due = pacer_look_at(timer, now);
            if (due != 0)
                pacer_put(timer, due > now ? due : now + 1);
            else
                pacer_leave_out(timer);
        }
        pacer_sleep_until(queue.count > 0 ? queue.entries[0].due_ns : 0, seen);
    }
}

static int pacer_start(void)
{
    pthread_t thread;
    if (runs_in == getpid())
        return 0;
    if (!is_away)
        queue.count = idle_count = 0; // a parent's
    is_away = false;
    runs_in = getpid(); // before it begins: a pacer told to leave at once takes it back
    int error = gp_thread_start_own(pacer_pace, NULL, &thread);
    if (error != 0) {
        runs_in = 0;
        return error;
    }
    pthread_detach(thread);
    return 0;
}

bool gp_pacer_runs(void)
{
    return runs_in == getpid();
}

const gp_pacer_t gp_pacer = {pacer_start, pacer_wake};
