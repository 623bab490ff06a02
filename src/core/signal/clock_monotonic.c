// SPDX-License-Identifier: MIT
// Clock engine `monotonic`: timers on the wall clock. No kernel timer: it would interrupt calls that wait, after they
// have waited. The pacer, a thread of greenprof's own (collect/pacer.h), sends the signals, to threads that run.
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "signal/clock_paced.h"
#include "signal/restart.h"
#include "signal/sleeps.h"
#include "signal/ticks.h"

enum { LATE_NS = 2000, PAUSE_NS = 20000 };

_Atomic(gp_timer_t *) gp_clock_armed, gp_clock_pacing;
const gp_pacer_t *gp_clock_pacer;

static int clock_monotonic_start(void)
{
    return gp_clock_pacer != NULL ? gp_clock_pacer->start() : -ENOSYS;
}

static void clock_monotonic_set_interval(gp_timer_t *timer, uint64_t ns)
{
    atomic_store_explicit(&gp_paced(timer)->interval_ns, ns, memory_order_relaxed);
}

// Timers are parts of blocks that are never unmapped. seq_cst on both sides: either the pacer, about to leave this
// timer out, sees it armed, or we see it no longer listed.
static void clock_monotonic_enlist(gp_timer_t *timer)
{
    gp_paced_t *paced = gp_paced(timer);
    if (atomic_exchange_explicit(&paced->listed, true, memory_order_seq_cst))
        return;
    paced->next = atomic_load_explicit(&gp_clock_armed, memory_order_relaxed);
    // Release: partner of the pacer's acquire.
    while (!atomic_compare_exchange_weak_explicit(&gp_clock_armed, &paced->next, timer, memory_order_release,
                                                  memory_order_relaxed))
        ;
}

static int clock_monotonic_arm(gp_timer_t *timer, pid_t tid, int signal_number)
{
    gp_paced_t *paced = gp_paced(timer);
    uint64_t interval_ns = gp_timer_draw(timer);
    if (gp_clock_has_ended(tid))
        return -ESRCH;
    atomic_store_explicit(&paced->tid, tid, memory_order_relaxed);
    atomic_store_explicit(&paced->signal_number, signal_number, memory_order_relaxed);
    atomic_store_explicit(&timer->sent, false, memory_order_relaxed);
    atomic_store_explicit(&paced->is_refused, false, memory_order_relaxed);
    clock_monotonic_set_interval(timer, interval_ns);
    atomic_store_explicit(&paced->due_ns, gp_clock_ns(CLOCK_MONOTONIC) + interval_ns, memory_order_seq_cst);
    clock_monotonic_enlist(timer);
    timer->armed = true;
    if (gp_clock_pacer != NULL)
        gp_clock_pacer->wake();
    return 0;
}

// Nothing is sent once this has returned.
static void clock_monotonic_disarm(gp_timer_t *timer)
{
    if (!timer->armed)
        return;
    // seq_cst on both sides: either the pacer sees due_ns == 0, or we see that it is sending.
    atomic_store_explicit(&gp_paced(timer)->due_ns, 0, memory_order_seq_cst);
    struct timespec pause = {.tv_nsec = PAUSE_NS};
    while (atomic_load_explicit(&gp_clock_pacing, memory_order_seq_cst) == timer)
        syscall(SYS_nanosleep, &pause, NULL); // not sched_yield(): this thread may have real-time priority
    timer->armed = false;
}

static void clock_monotonic_abandon(gp_timer_t *timer)
{
    // The pacer is the parent's.
    atomic_store_explicit(&gp_paced(timer)->due_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&gp_paced(timer)->listed, false, memory_order_relaxed);
    gp_paced(timer)->is_idle = false;
    atomic_store_explicit(&gp_clock_armed, NULL, memory_order_relaxed);
    atomic_store_explicit(&gp_clock_pacing, NULL, memory_order_relaxed);
    timer->armed = false;
}

static bool clock_monotonic_is_alive(const gp_timer_t *timer)
{
    return timer->armed && !atomic_load_explicit(&((const gp_paced_t *)timer->state)->is_refused, memory_order_relaxed);
}

static bool clock_monotonic_is_mine(const gp_timer_t *timer, const siginfo_t *info)
{
    return (info->si_code == SI_TIMER && info->si_value.sival_ptr == timer) ||
           (gp_clock_lacks_info(info) && atomic_load_explicit(&timer->sent, memory_order_relaxed));
}

static uint64_t clock_monotonic_overdue_ns(const gp_timer_t *timer, uint64_t used_ns, uint64_t cpu_ns)
{
    const gp_paced_t *paced = (const gp_paced_t *)timer->state;
    uint64_t sent_ns = atomic_load_explicit(&paced->sent_cpu_ns, memory_order_relaxed);
    uint64_t late_ns = cpu_ns > sent_ns ? cpu_ns - sent_ns : 0;
    return !atomic_load_explicit(&timer->sent, memory_order_relaxed) ? 0 : late_ns < used_ns ? late_ns : used_ns;
}

// A thread that the pacer saw at work may have gone to sleep before the signal came; or it was about to wake up, and
// had to wait for a processor. Then it is in its waiting call, and a sample would show this call instead of its work. A
// thread without a sleep since the sample before was kept from its processor: its work is this call.
static bool clock_monotonic_is_late(gp_timer_t *timer, const ucontext_t *context)
{
    gp_paced_t *paced = gp_paced(timer);
    uint64_t sleeps = gp_sleeps(), before = paced->sleeps;
    paced->sleeps = sleeps;
    if (sleeps == before || !gp_restart_is_call(context))
        return false;
    uint64_t wall_ns =
        gp_clock_kernel_ns(CLOCK_MONOTONIC) - atomic_load_explicit(&paced->seen_ns, memory_order_relaxed);
    uint64_t used_ns =
        gp_clock_ns(CLOCK_THREAD_CPUTIME_ID) - atomic_load_explicit(&paced->seen_cpu_ns, memory_order_relaxed);
    return wall_ns > used_ns + LATE_NS;
}

const gp_clock_engine_t gp_clock_monotonic = {
    .name = "monotonic",
    .id = GP_ENGINE_MONOTONIC,
    .gap_periods = 20, // samples are drawn on the wall clock: e^-20 of the threads are longer without one
    .start = clock_monotonic_start,
    .arm = clock_monotonic_arm,
    .disarm = clock_monotonic_disarm,
    .abandon = clock_monotonic_abandon,
    .set_interval = clock_monotonic_set_interval,
    .is_alive = clock_monotonic_is_alive,
    .is_mine = clock_monotonic_is_mine,
    .overdue_ns = clock_monotonic_overdue_ns,
    .is_late = clock_monotonic_is_late,
};
